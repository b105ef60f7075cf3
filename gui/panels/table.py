"""The panels as rows: which there are, where each stands at first, and what is said of it.

Menus, tabs and docks are made from the rows; a panel's module is loaded when the panel is made.
"""

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gui.panels.base import Panel


@dataclass(frozen=True)
class PanelRow:
    """One panel: `cell` is the class CellPanel in the module `gui.panels.cell`."""

    name: str  # in settings, of its module
    place: str  # is explained at `MainWindow.furnish`
    title: str
    help: str  # one sentence
    tab: str = ""  # a shorter title, for where panels share one place as tabs
    short_tab: str = ""  # a still shorter one, for where many share a narrow place

    @property
    def tab_names(self) -> tuple[str, str]:
        """What its tab or dock is called, and in a narrow place."""
        name = self.tab or self.title
        return name, self.short_tab or name

    @property
    def is_in_front(self) -> bool:
        """Whether it is seen at first, not behind another's tab; a low tab depends."""
        return not self.place.endswith("tab")

    def load(self) -> "type[Panel]":
        """Load the panel's module."""
        module = import_module(f"gui.panels.{self.name}")
        kind: type[Panel] = getattr(module, self.name.title().replace("_", "") + "Panel")
        return kind

    def make(self) -> "Panel":
        """Make the panel."""
        return self.load()()


PANELS = (
    PanelRow(
        "prompt",
        "top bare",
        "Prompt",
        "Type a text; every keystroke runs the model from the first changed token on.",
    ),
    PanelRow(
        "heads",
        "left",
        "All heads",
        "Every head of every layer on one scale; each square has a row for each query and a "
        "column for each key.",
        tab="Heads",
    ),
    PanelRow(
        "residual",
        "left tab",
        "Where it goes",
        "The model's blocks from embedding to logits: what attention, each head and the MLP "
        "added to the residual, and to one token's logit.",
        tab="Residual",
    ),
    PanelRow(
        "head",
        "center",
        "One head",
        "The weights of one head: each row is a query (who looks), each column a key (at whom).",
        short_tab="Head",
    ),
    PanelRow(
        "next_token",
        "right",
        "Next token",
        "What could follow the selected position, over the whole vocabulary; click a token to"
        " go on with it.",
        tab="Next",
    ),
    PanelRow(
        "loss",
        "right tab",
        "Loss",
        "How surprised the model was by each token of the text: −ln of the probability it gave it.",
    ),
    PanelRow(
        "lens",
        "right tab",
        "Logit lens",
        "What the model would answer if it stopped after each layer: the residual there "
        "through the final norm and the output matrix.",
        tab="Lens",
    ),
    PanelRow(
        "mask",
        "right tab",
        "Mask",
        "Which keys each query may see; a change runs the model again on the same text.",
    ),
    PanelRow(
        "heads_off",
        "right tab",
        "Heads off",
        "Which heads are switched off and what that does to loss and prediction; and which "
        "head moves the answer most.",
        tab="Off",
    ),
    PanelRow(
        "cell",
        "left tab",
        "One cell",
        "How the selected weight comes about, from query and key to what its head adds to the"
        " residual; click a weight in the heatmap to open it.",
        tab="Cell",
    ),
    PanelRow(
        "format",
        "left tab",
        "Number format",
        "In which number format the weights are held, and what that does to the predictions.",
        tab="Format",
    ),
    PanelRow(
        "cache",
        "right low tab",
        "KV cache",
        "What the KV cache holds in memory, and how much arithmetic it saves in each pass.",
        tab="Cache",
    ),
    PanelRow(
        "time",
        "bottom bare",
        "Time",
        "Step through the text token by token, back and forth, or let it play.",
    ),
    PanelRow(
        "checks",
        "bottom beside bare",
        "Checks",
        "What must hold for these numbers, measured on the tensors shown.",
    ),
    PanelRow(
        "code",
        "left tab",
        "Code",
        "The four lines of the engine that computed the selected row, with the shapes that "
        "went through them, and the same from torch's fused kernel.",
    ),
    PanelRow(
        "compare",
        "center tab",
        "Compare",
        "The selected head in two runs side by side: B has another text, another mask or "
        "another model than A, which is the run on screen.",
    ),
    PanelRow(
        "leak",
        "center tab",
        "The leak",
        "Two small models that differ only in the mask they were trained with, on your text "
        "with the mask on and off. The one trained without it reads the answer and cannot "
        "write.",
        tab="Leak",
    ),
    PanelRow(
        "schemes",
        "center tab",
        "Position schemes",
        "Your text through five small models that differ only in how they are told where a "
        "token stands: as it is, with its words shuffled, or moved to later positions.",
        tab="Positions",
    ),
    PanelRow(
        "windows",
        "center tab",
        "Windows",
        "What may be seen to predict a token, and what it costs to see, or to keep, only some of "
        "the text: windows as real masks, and budgets for the KV cache.",
    ),
    PanelRow(
        "two_ways",
        "center tab",
        "The same, two ways",
        "Decoding with and without the KV cache, and reading at once and token by token: both"
        " run here and now, are timed, and must give the same.",
        tab="Two ways",
        short_tab="Ways",
    ),
    PanelRow(
        "cost",
        "center tab",
        "Cost lab",
        "What a pass costs by the length of the text, part by part: multiply-adds and bytes "
        "by the formula, and the time that this machine takes.",
        short_tab="Cost",
    ),
    PanelRow(
        "designs",
        "center tab",
        "Cache designs",
        "What the KV cache would hold of this text under other designs, what each layer "
        "holds, and what well-known models hold.",
        short_tab="Designs",
    ),
)

ROWS = {row.name: row for row in PANELS}
