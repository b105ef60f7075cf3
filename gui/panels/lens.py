"""What the model would answer after each of its layers, at every position."""

from typing import ClassVar

from PySide6.QtWidgets import QButtonGroup, QHBoxLayout, QPushButton, QVBoxLayout

from engine.answers.lens import Lens
from engine.reading import Reading
from gui.export.numbers import Table
from gui.export.tables import lens_tables
from gui.panels.absence import absence
from gui.panels.base import AskingPanel, Figure
from gui.theme import Theme
from gui.view import View
from gui.widgets.arithmetic_stages import exact
from gui.widgets.check_line import CheckLine
from gui.widgets.fitting_label import FittingLabel, font_of
from gui.widgets.lens_grid import LensGrid
from gui.widgets.lens_text import LensTable
from gui.widgets.token_text import display
from gui.widgets.verdict import verdict_of
from gui.widgets.wrapping_label import WrappingLabel
from gui.wishes import SelectPosition, WantLens

WAITING = "The lens is being worked out."
POST_NORM = (
    "This model norms after each part and has no final norm, so each row goes to the output "
    "matrix as it is."
)
_CHECK_WORDS = ("residuals end in the model's output", "they end in the output", "= output")
_CHECK_REASON = (
    "The last row is the model's output itself. The residuals are worked out once more for the "
    "other rows; the figure is how far any logit at their end is from the shown pass at most; at "
    f"most {Lens.TOLERANCE:g} is right."
)
_WIDTHS = {
    "Tokens": "Columns wide enough to read the top tokens; scroll for the others.",
    "All": "All positions at once, as shades.",
}
_TOLD_LINES = 2


class LensPanel(AskingPanel):
    """A grid of depths × positions, and a line that proves its last row; asks while it is seen."""

    name: ClassVar[str] = "lens"
    wants = WantLens

    def __init__(self) -> None:
        super().__init__()
        self.heading = FittingLabel()
        self.told = FittingLabel(name="The cell that is pointed at", fills=True)
        self.told.set_max_lines(_TOLD_LINES)
        self.note = WrappingLabel()
        self.grid = LensGrid()
        self.check = CheckLine()
        self.widths = QButtonGroup(self)
        self._table: LensTable | None = None
        self._place()
        self.setFocusProxy(self.grid)
        self.copy_by_key(self.grid)
        self.grid.position_requested.connect(lambda at: self.wish(SelectPosition(at)))
        self.grid.pointed.connect(self._explain)
        self.widths.idClicked.connect(lambda index: self.grid.set_shows_all(bool(index)))

    def draw(self, view: View, _previous: View | None) -> None:
        """Show the lens that the view has; dimmed while it is not the shown text's."""
        opened = view.state.lens
        missing = absence(view, "what each layer would answer")
        lens = None if opened is None or missing else opened.lens
        if opened is None or lens is None:
            self._show_nothing(missing or WAITING, is_coming=not missing)
            return
        if self._table is None or self._table.lens is not lens:
            self._show_lens(opened.reading, lens)
        is_shown = view.reading is not None and opened.answers(view.reading)
        self.grid.set_stale(self.is_stale(view, is_answered=is_shown))
        last = len(lens) - 1
        self._show_position(last if view.query is None else min(view.query, last))

    def reading_of(self, view: View) -> Reading | None:
        """The reading that the lens was asked for, which may be older."""
        return None if view.state.lens is None else view.state.lens.reading

    def numbers(self, view: View) -> tuple[Table, ...]:
        """What each depth would answer at each position."""
        opened = view.state.lens
        lens = None if opened is None else opened.lens
        return () if opened is None or lens is None else lens_tables(opened.reading, lens)

    def figures(self) -> tuple[Figure, ...]:
        """The probabilities of the cell under the pointer, else of the current one."""
        cell, table = self.grid.pointed_cell, self._table
        if cell is None or table is None:
            return ()
        lens = table.lens
        return (
            Figure("top token's probability", exact(lens.top_probability[cell])),
            Figure("followed token's probability", exact(lens.target_probability[cell])),
            Figure("followed token's rank", str(lens.target_rank[cell] + 1)),
        )

    # Drawing

    def _show_nothing(self, sentence: str, *, is_coming: bool) -> None:
        """Say why there is no lens; if one `is_coming`, keep its place, which takes a while."""
        self._table = None
        self.note.hide()
        for label in (self.heading, self.told):
            label.set_wordings("")
        self.check.show_check("waiting", _CHECK_WORDS, "not read yet", _CHECK_REASON)
        self._show_parts(visible=is_coming)
        self.grid.set_empty(sentence)
        self.setAccessibleDescription(f"{self.help} {sentence}")

    def _show_parts(self, *, visible: bool) -> None:
        for widget in (self.heading, self.told, self.check, *self.widths.buttons()):
            widget.setVisible(visible)

    def _show_lens(self, reading: Reading, lens: Lens) -> None:
        tokens = reading.document.tokens[reading.n_fallen : reading.cursor]
        labels = tuple(map(display, tokens))
        self._table = LensTable(lens, labels, tokens, reading.info.vocabulary)
        self.note.say("" if lens.has_final_norm else POST_NORM)
        self.check.show_check(
            verdict_of(lens.difference <= Lens.TOLERANCE),
            _CHECK_WORDS if lens.is_whole else _partly_read(lens),
            f"± {lens.difference:.1g}" if lens.difference else "± 0",
            _CHECK_REASON,
        )
        self._show_parts(visible=True)
        self.grid.set_table(self._table)

    def _show_position(self, position: int) -> None:
        self.grid.set_position(position)
        if self._table is not None:
            self.heading.set_wordings(*self._table.headline(position))
            parts = (self._table.spoken(position), self.check.text(), self.note.text())
            self.setAccessibleDescription(" ".join(filter(None, parts)))

    def _explain(self, depth: int, position: int) -> None:
        table = self._table
        if table is not None and position < len(table.lens) and depth <= table.lens.n_layer:
            self.told.set_wordings(*table.describe(depth, position))

    def _dress(self, theme: Theme) -> None:
        unit = theme.unit
        self.grid.set_theme(theme)
        self.heading.set_look(theme, theme.text, bold=True)
        self.told.set_look(theme, theme.text)
        self.note.set_look(theme.font_axis, theme.text_dim)
        self.check.set_theme(theme)
        for button in self.widths.buttons():
            button.setFont(font_of(self, theme.font_axis))
        self._column.setContentsMargins(2 * unit, unit, 2 * unit, unit)
        for layout in (self._column, self._head):
            layout.setSpacing(unit)

    # Layout

    def _place(self) -> None:
        self._head = QHBoxLayout()
        self._head.addWidget(self.heading, 1)
        for index, (text, tip) in enumerate(_WIDTHS.items()):
            button = QPushButton(text)
            button.setCheckable(True)
            button.setChecked(index == 0)
            button.setToolTip(tip)
            button.setAccessibleDescription(tip)
            self.widths.addButton(button, index)
            self._head.addWidget(button)
        self._column = QVBoxLayout(self)
        self._column.addLayout(self._head)
        self._column.addWidget(self.grid, 1)
        self._column.addWidget(self.told)
        self._column.addWidget(self.note)
        self._column.addWidget(self.check)


def _partly_read(lens: Lens) -> tuple[str, ...]:
    """What is checked so far: words, unlike a figure, ask for no more room than there is."""
    read = f"{lens.n_known} of {len(lens)}"
    return f"{read} positions read; {_CHECK_WORDS[1]}", f"{read} positions read", f"{read} read"
