"""One cell: the arithmetic behind the selected weight, from q and k to the residual."""

from typing import ClassVar

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication, QKeySequence, QShortcut
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout

from engine.answers.cell import CellArithmetic
from engine.reading import Reading
from gui.export.numbers import Table
from gui.export.tables import cell_tables
from gui.panels.absence import absence
from gui.panels.base import AskingPanel, Figure
from gui.state import OpenedCell
from gui.theme import Theme
from gui.view import View
from gui.widgets.arithmetic_stages import exact
from gui.widgets.arithmetic_view import ArithmeticView
from gui.widgets.check_line import CheckLine
from gui.widgets.fitting_label import FittingLabel, font_of
from gui.widgets.verdict import verdict_of
from gui.wishes import WantCell
from gui.words.cell_places import CellPlace
from gui.words.cell_stages import addresses, stages_of

WAITING = "The arithmetic is being worked out."
_TOLD_LINES = 2


class CellPanel(AskingPanel):
    """Shows the weight that is selected; asks for it only while it can be seen."""

    name: ClassVar[str] = "cell"
    wants = WantCell

    def __init__(self) -> None:
        super().__init__()
        self.heading = FittingLabel()
        self.told = FittingLabel(name="The number that is pointed at", fills=True)
        self.told.set_max_lines(_TOLD_LINES)
        self.view = ArithmeticView()
        self.view.setAccessibleName("Arithmetic of the selected weight")
        self.view.told.connect(self.told.set_wordings)
        self.check = CheckLine()
        self.copy_button = QPushButton("Copy")
        self.copy_button.setToolTip("Copy the whole arithmetic as text (Ctrl+C).")
        self.copy_button.setAccessibleName("Copy the arithmetic")
        self.copy_button.clicked.connect(self._copy)
        shortcut = QShortcut(QKeySequence.StandardKey.Copy, self)
        shortcut.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        shortcut.activated.connect(self._copy)
        self.setFocusProxy(self.view)
        self._head = QHBoxLayout()
        self._head.addWidget(self.heading, 1)
        self._head.addWidget(self.copy_button)
        self._layout = QVBoxLayout(self)
        self._layout.addLayout(self._head)
        self._layout.addWidget(self.view, 1)
        self._foot = QVBoxLayout()
        self._foot.addWidget(self.told)
        self._foot.addWidget(self.check)
        self._layout.addLayout(self._foot)
        self._place: CellPlace | None = None  # to be shown once it is there

    def draw(self, view: View, previous: View | None) -> None:
        """Show the arithmetic that the view has; dimmed while it is not the selected weight's."""
        opened = view.state.cell
        missing = absence(view, "the arithmetic behind a weight")
        cell = None if opened is None or missing else opened.arithmetic
        if opened is None or cell is None:
            self._show_nothing(missing or WAITING)
            return
        is_selected = opened.answers(view.reading, view.state.selection.key)
        self.view.set_stale(self.is_stale(view, is_answered=is_selected))
        if previous is None or opened is not previous.state.cell or not self.view.rows():
            self._show_cell(opened, cell)
        if is_selected and self._place is not None:
            place, self._place = self._place, None
            self.view.go_to_stage(place.stage, is_result=place.is_result)

    def show_place(self, place: object) -> None:
        """Go to a stage, once the arithmetic of the selected weight is there."""
        if isinstance(place, CellPlace):
            self._place = place
            view = self.drawn
            if view is not None and self.is_seen:
                self.draw(view, view)

    def reading_of(self, view: View) -> Reading | None:
        """The reading that the arithmetic was asked for, which may be older."""
        return None if view.state.cell is None else view.state.cell.reading

    def numbers(self, view: View) -> tuple[Table, ...]:
        """Every stage of the weight."""
        opened = view.state.cell
        cell = None if opened is None else opened.arithmetic
        return () if opened is None or cell is None else cell_tables(opened.reading, cell)

    def figures(self) -> tuple[Figure, ...]:
        """The number under the pointer, else the current one, with what it is."""
        told = self.view.told_now()
        return (Figure("what is pointed at", told),) if told else ()

    def _show_nothing(self, sentence: str) -> None:
        for widget in (self.heading, self.told, self.check, self.copy_button):
            widget.hide()
        self.view.set_empty(sentence)
        self.setAccessibleDescription(f"{self.help} {sentence}")

    def _show_cell(self, opened: OpenedCell, cell: CellArithmetic) -> None:
        self.heading.set_wordings(*addresses(opened, cell))
        self.view.set_stages(stages_of(opened))
        shown = exact(cell.shown[cell.key])
        recomputed = exact(cell.weight)
        self.check.show_check(
            verdict_of(cell.difference <= CellArithmetic.TOLERANCE),
            (
                f"recomputed {cell.weight:.7g}, shown {cell.shown[cell.key]:.7g}, difference",
                f"{cell.weight:.7g}, shown {cell.shown[cell.key]:.7g}",
                "recomputed − shown",
            ),
            f"≤ {cell.difference:.0e}" if cell.difference else "0",
            f"Recomputed {recomputed} from the q and k above; the heatmap shows {shown}. The "
            "difference is the largest of this row's weights; "
            f"at most {CellArithmetic.TOLERANCE:g} is right.",
        )
        for widget in (self.heading, self.told, self.check, self.copy_button):
            widget.show()
        self.setAccessibleDescription(
            f"{self.heading.text()}. {self.view.accessibleDescription()} {self.check.text()}"
        )

    def _dress(self, theme: Theme) -> None:
        unit = theme.unit
        self._layout.setContentsMargins(0, unit, 0, unit)
        self._layout.setSpacing(unit)
        self._foot.setSpacing(unit)
        for row in (self._head, self._foot):
            row.setContentsMargins(2 * unit, 0, 2 * unit, 0)
        self.heading.set_look(theme, theme.text, bold=True)
        self.told.set_look(theme, theme.text)
        self.copy_button.setFont(font_of(self, theme.font_axis))
        self.view.set_theme(theme)
        self.check.set_theme(theme)

    def text(self) -> str:
        """The whole arithmetic as text: which weight, all stages, and the comparison."""
        return f"{self.heading.text()}\n\n{self.view.text()}\n\n{self.check.text()}"

    def _copy(self) -> None:
        if self.view.rows():
            QGuiApplication.clipboard().setText(self.text())
