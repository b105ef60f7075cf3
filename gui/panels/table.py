"""The panels as rows: which there are and where each stands at first."""

from gui.panels.base import Panel
from gui.panels.cache import CachePanel
from gui.panels.cell import CellPanel
from gui.panels.checks import ChecksPanel
from gui.panels.code import CodePanel
from gui.panels.compare import ComparePanel
from gui.panels.cost import CostPanel
from gui.panels.designs import DesignsPanel
from gui.panels.formats import FormatsPanel
from gui.panels.head import HeadPanel
from gui.panels.heads import HeadsPanel
from gui.panels.heads_off import HeadsOffPanel
from gui.panels.leak import LeakPanel
from gui.panels.lens import LensPanel
from gui.panels.loss import LossPanel
from gui.panels.mask import MaskPanel
from gui.panels.next_token import NextTokenPanel
from gui.panels.prompt import PromptPanel
from gui.panels.residual import ResidualPanel
from gui.panels.schemes import SchemesPanel
from gui.panels.time import TimePanel
from gui.panels.two_ways import TwoWaysPanel
from gui.panels.windows import WindowsPanel

# Places are explained at `MainWindow.furnish`.
PANELS: tuple[tuple[type[Panel], str], ...] = (
    (PromptPanel, "top bare"),
    (HeadsPanel, "left"),
    (ResidualPanel, "left tab"),
    (HeadPanel, "center"),
    (NextTokenPanel, "right"),
    (LossPanel, "right tab"),
    (LensPanel, "right tab"),
    (MaskPanel, "right tab"),
    (HeadsOffPanel, "right tab"),
    (CellPanel, "left tab"),
    (FormatsPanel, "left tab"),
    (CachePanel, "right low tab"),
    (TimePanel, "bottom bare"),
    (ChecksPanel, "bottom beside bare"),
    (CodePanel, "left tab"),
    (ComparePanel, "center tab"),
    (LeakPanel, "center tab"),
    (SchemesPanel, "center tab"),
    (WindowsPanel, "center tab"),
    (TwoWaysPanel, "center tab"),
    (CostPanel, "center tab"),
    (DesignsPanel, "center tab"),
)
