"""Two runs side by side: the selected head of both, what is different, and what could follow."""

from dataclasses import dataclass
from typing import ClassVar

from PySide6.QtCore import QSize
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QBoxLayout,
    QHBoxLayout,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

import resources
from engine.answers.alignment import ABSENT
from engine.answers.comparison import Comparison
from engine.reading import Reading
from gui.export.numbers import Table
from gui.export.stamp import Fact, conditions_said
from gui.export.tables import comparison_tables
from gui.panels.absence import absence
from gui.panels.base import AskingPanel, Figure
from gui.theme import Theme
from gui.view import View
from gui.widgets.candidate_pairs import CandidatePairs
from gui.widgets.compare_fields import CompareFields
from gui.widgets.even_row import EvenRow
from gui.widgets.fitting_label import FittingLabel
from gui.widgets.head_view import Cell
from gui.widgets.legend_line import LegendLine
from gui.widgets.pair_matrix import DifferenceMatrix, PairMatrix
from gui.wishes import Compare, EditText, PointAt, SelectPosition, WantComparison
from gui.words.compare import (
    OPENING,
    cell_numbers,
    cell_words,
    follows_words,
    labels,
    largest_words,
    loss_sentence,
    next_sentence,
    runs_sentence,
    titles,
    waiting,
    way_sentence,
)

_ROWS = 6  # of candidates that must fit below the matrices
_LEAST_SQUARES = 15  # ems of height below which the matrices want all the room
_TABLE = 34  # ems of width of the candidates beside the matrices
_WIDE = 2.1  # how much wider than high the matrices then must have it
_AROUND = 7  # ems of height for what stands around the matrices
_ANY = (1 << 24) - 1  # Qt's QWIDGETSIZE_MAX: as large as there is room
_TWO_LINES = 34  # ems of height from which on B's prompt has two lines


class ComparePanel(AskingPanel):
    """A, B and B − A on one axis of slots; asks for the second run while it is seen."""

    name: ClassVar[str] = "compare"
    wants = WantComparison

    def __init__(self) -> None:
        super().__init__()
        folders = resources.model_folders()
        self.fields = CompareFields([(path.name, path) for path in folders], resources.pairs())
        self.told = FittingLabel(name="The cell that is pointed at", fills=True)
        self.note = FittingLabel(fills=True)
        self.note.set_max_lines(2)
        self.matrices = (PairMatrix(), PairMatrix(), DifferenceMatrix())
        self.legends = LegendLine((2, 1))
        self.follows = FittingLabel(name="Which predictions are compared", fills=True)
        self.candidates = CandidatePairs()
        self.turn = QPushButton("Next token")
        self.turn.setCheckable(True)
        self.turn.setToolTip("What could follow in both runs, instead of the patterns.")
        self._shown: Comparison | None = None
        self._largest: tuple[str, ...] = ("",)  # where the difference is largest, in words
        self._cell: tuple[int | None, int | None] = (None, None)  # slots of query and key
        self._selected: tuple[int | None, int | None] | None = None  # what the cell was taken from
        self._pointed: Cell | None = None
        self._told_obstacle = ""
        self._squares, self._table = QWidget(), QWidget()
        self._rows = QVBoxLayout(self)
        self._squares_rows, self._table_rows = QVBoxLayout(self._squares), QVBoxLayout(self._table)
        self._line = QHBoxLayout()
        self._body = QBoxLayout(QBoxLayout.Direction.TopToBottom)
        self._em = 11
        self._place()
        self.setFocusProxy(self.matrices[0])
        for matrix, name in zip(self.matrices, ("A", "B", "the difference B − A"), strict=True):
            matrix.setAccessibleName(f"Heatmap of {name}")
            matrix.cell_hovered.connect(lambda *cell: self._point(cell))
            matrix.hover_left.connect(lambda: self._point(None))
            matrix.cell_clicked.connect(self._choose)
            matrix.cell_requested.connect(self._choose)
            self.copy_by_key(matrix)
        self.copy_by_key(self.candidates)
        self.fields.changed.connect(lambda changes: self.wish(Compare(changes)))
        self.fields.preset_chosen.connect(self._take_preset)

    def draw(self, view: View, _previous: View | None) -> None:
        """Show the comparison that the view has; dimmed while it is not what is wanted now."""
        state = view.state
        path = view.reading.info.path if view.reading is not None else ""
        self.fields.show_choice(state.compare, state.text, path)
        standing = _standing_of(view)
        comparison, obstacle = standing.comparison, standing.obstacle
        self._note(standing, view.theme)
        if comparison is None:
            self._show_nothing(obstacle or standing.pending)
            return
        is_log = state.display.scale == "log"
        for matrix in self.matrices[:2]:
            matrix.set_scale("log" if is_log else "linear", False)
        is_other = comparison is not self._shown
        if is_other:
            self._show_comparison(comparison)
        b = comparison.b
        self.fields.show_tokens(b.document)
        self.fields.show_heads(
            (b.focus.layer, b.focus.head), b.info.config.n_layer, b.info.config.n_head
        )
        self.legends.set_legends(self.matrices[0].legend, self.matrices[2].legend)
        is_stale = self.is_stale(view, is_answered=not standing.pending) or bool(obstacle)
        for widget in (*self.matrices, self.candidates):
            widget.set_stale(is_stale)
        self._follow_selection(view, comparison)
        if is_other or obstacle != self._told_obstacle:
            self._describe(comparison, obstacle)

    def minimumSizeHint(self) -> QSize:
        """As narrow as without candidates, which stand beside the patterns where it is wide."""
        lines = (self.fields.minimumSizeHint(), self._line.minimumSize())
        return self._narrowest(self._rows, *lines, self._squares.minimumSizeHint())

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Both the patterns and the candidates where there is room for both."""
        super().resizeEvent(event)
        self._share_room()

    # What leaves the program

    def reading_of(self, view: View) -> Reading | None:
        """A's reading, which may be older than the newest."""
        opened = view.state.comparison
        return None if opened is None or opened.comparison is None else opened.comparison.a

    def more_facts(self, view: View) -> dict[str, Fact]:
        """What must be known of B."""
        opened = view.state.comparison
        if opened is None or opened.comparison is None:
            return {}
        b = opened.comparison.b
        return {
            "b_model": b.info.name,
            "b_number_format": b.info.held.title,
            "b_text": b.document.text,
            "b_tokens": b.n_tokens,
            "b_layer": b.focus.layer,
            "b_head": b.focus.head,
            "b_conditions": conditions_said(b.conditions),
            "compared_by": opened.comparison.way,
        }

    def numbers(self, view: View) -> tuple[Table, ...]:
        """Both heads, their difference, both losses and all that could follow."""
        opened = view.state.comparison
        return (
            ()
            if opened is None or opened.comparison is None
            else comparison_tables(opened.comparison)
        )

    def figures(self) -> tuple[Figure, ...]:
        """The three numbers of the cell, or of the candidate that has the keyboard."""
        if self._shown is None:
            return ()
        row, tokens = self.candidates.pointed_row, self._shown.next_tokens
        has_candidate = self.candidates.hasFocus() or self.candidates.underMouse()
        if has_candidate and row is not None and tokens is not None:
            return tuple(
                Figure(name, repr(float(numbers[row])))
                for name, numbers in (
                    ("B − A", tokens.difference),
                    ("A's probability", tokens.prob_a),
                    ("B's probability", tokens.prob_b),
                )
            )
        cell = self._told_cell
        if cell is None:
            return ()
        found = [pair for pair in cell_numbers(self._shown, cell) if any(map(str.isdigit, pair[1]))]
        return tuple(
            Figure(name, number.replace("−", "-").removeprefix("+"))
            for name, number in reversed(found)
        )

    # Drawing

    @property
    def cell(self) -> tuple[int | None, int | None]:
        """The slots of the selected query and key."""
        return self._cell

    @property
    def shown(self) -> Comparison | None:
        """What is drawn."""
        return self._shown

    @property
    def _told_cell(self) -> Cell | None:
        if self._pointed is not None:
            return self._pointed
        query, key = self._cell
        return None if query is None or key is None else (query, key)

    def _show_nothing(self, sentence: str) -> None:
        self._shown, self._cell, self._pointed = None, (None, None), None
        self.told.set_wordings("")
        self.follows.set_wordings("")
        self.legends.set_legends()
        for matrix in self.matrices:
            matrix.set_empty(sentence if matrix is self.matrices[1] else "")
            matrix.setAccessibleDescription(sentence)
        self.candidates.set_empty(sentence)
        self.setAccessibleDescription(f"{self.help} {sentence}")

    def _show_comparison(self, comparison: Comparison) -> None:
        self._shown, self._selected = comparison, None
        self._largest = largest_words(comparison)
        named = labels(comparison)
        slots = comparison.alignment
        squares = (
            (comparison.weights_a, comparison.visible_a, slots.a == ABSENT),
            (comparison.weights_b, comparison.visible_b, slots.b == ABSENT),
            (comparison.difference, comparison.exists, ~slots.both),
        )
        together = (*named[0], *named[1])
        for matrix, (weights, visible, absent), own, heads in zip(
            self.matrices, squares, named, titles(comparison), strict=True
        ):
            matrix.set_titles(*heads)
            if len(comparison):
                matrix.set_absent(absent, together)
                matrix.set_matrix(weights, visible, own, own)
            else:
                matrix.set_empty("")
        self.follows.set_wordings(*follows_words(comparison))
        if comparison.next_tokens is None:
            self.candidates.set_empty(follows_words(comparison)[0])
        else:
            self.candidates.set_tokens(comparison.next_tokens)

    def _follow_selection(self, view: View, comparison: Comparison) -> None:
        """Frame what the program has selected, unless a slot that A lacks was chosen since."""
        n_a = comparison.a.n_tokens
        chosen = tuple(at if at is not None and at < n_a else None for at in (view.query, view.key))
        if (chosen[0], chosen[1]) != self._selected:
            self._selected = chosen[0], chosen[1]
            query, key = (
                None if at is None else comparison.alignment.slot_of_a(at) for at in chosen
            )
            self._set_cell(query, key)
        if self._pointed is not None and max(self._pointed) >= len(comparison):
            self._pointed = None
        self._tell_cell()

    def _set_cell(self, query: int | None, key: int | None) -> None:
        self._cell = query, key
        for matrix in self.matrices:
            matrix.set_cell(query, key)
        self._tell_cell()

    def _tell_cell(self) -> None:
        comparison, cell = self._shown, self._told_cell
        if comparison is None:
            return
        if cell is None:
            self.told.set_wordings(*self._largest)
            return
        words = cell_words(comparison, cell)
        self.told.set_wordings(*words)
        for matrix in self.matrices:
            matrix.setAccessibleDescription(words[0])

    def _note(self, standing: "_Standing", theme: Theme) -> None:
        """Why there is no newer comparison, or that a model is opened for it."""
        is_opening = standing.pending.startswith(OPENING) and standing.comparison is not None
        self.note.set_look(theme, theme.bad if standing.obstacle else theme.text_dim)
        self.note.set_wordings(standing.obstacle or (standing.pending if is_opening else ""))
        self.note.setVisible(bool(self.note.text()))

    def _describe(self, comparison: Comparison, obstacle: str) -> None:
        self._told_obstacle = obstacle
        parts = (
            obstacle,
            runs_sentence(comparison),
            way_sentence(comparison),
            loss_sentence(comparison),
            f"{self._largest[0]}.",
            next_sentence(comparison),
        )
        self.setAccessibleDescription(" ".join(filter(None, parts)))

    def _dress(self, theme: Theme) -> None:
        unit = theme.unit
        self.fields.set_theme(theme)
        self.legends.set_theme(theme)
        self.candidates.set_theme(theme)
        self.told.set_look(theme, theme.text)
        self.follows.set_look(theme, theme.text, small=True)
        for matrix in self.matrices:
            matrix.set_theme(theme)
        self._rows.setContentsMargins(2 * unit, unit, 2 * unit, unit)
        for layout in (self._rows, self._body, self._squares_rows, self._table_rows, self._line):
            layout.setSpacing(unit)
        self._em = theme.font_axis
        self._share_room()

    # Wishes

    def _point(self, cell: Cell | None) -> None:
        """Light the same cell in all three, and in A's tokens."""
        self._pointed = cell
        for matrix in self.matrices:
            matrix.show_pointed(cell)
        self._tell_cell()
        at = None if cell is None else self._in_a(cell)
        self.wish(PointAt(at))

    def _choose(self, query: int, key: int) -> None:
        """Select a cell: everywhere, if A has it."""
        self._set_cell(query, key)
        at = self._in_a((query, key))
        if at is not None:
            self._selected = at
            self.wish(SelectPosition(*at))

    def _in_a(self, cell: Cell) -> tuple[int, int] | None:
        if self._shown is None:
            return None
        query, key = (int(self._shown.alignment.a[slot]) for slot in cell)
        return None if ABSENT in {query, key} else (query, key)

    def _take_preset(self, pair: resources.Pair) -> None:
        differs = set()
        changes: dict[str, object] = {"way": pair.way}
        if pair.b is not None:
            differs.add("text")
            changes["text"] = pair.b
        if pair.mask or not pair.positions:
            differs.add("conditions")
            changes["positions"] = pair.positions
            changes["mask"] = pair.mask or "causal"
            if pair.window:
                changes |= {"window": pair.window, "sinks": 0}
        if pair.a is not None:
            self.wish(EditText(pair.a))
        self.wish(Compare({**changes, "differs": frozenset(differs)}))

    # Layout

    def _place(self) -> None:
        self._squares_rows.addWidget(EvenRow(self.matrices), 1)
        self._squares_rows.addWidget(self.legends)
        self._table_rows.addWidget(self.follows)
        self._table_rows.addWidget(self.candidates, 1)
        for layout in (self._squares_rows, self._table_rows):
            layout.setContentsMargins(0, 0, 0, 0)
        self._body.addWidget(self._squares, 1)
        self._body.addWidget(self._table, 0)
        self._line.addWidget(self.told, 1)
        self._line.addWidget(self.turn)
        self.turn.clicked.connect(self._share_room)
        self._rows.addWidget(self.fields)
        self._rows.addWidget(self.note)
        self._rows.addLayout(self._line)
        self._rows.addLayout(self._body, 1)
        self.note.hide()

    def _share_room(self) -> None:
        """Candidates beside the matrices, below them, or instead of them."""
        em = self._em
        self.fields.set_lines(2 if self.height() > _TWO_LINES * em else 1)
        height = self.height() - self.fields.sizeHint().height() - 4 * em
        table = self.candidates.height_of(_ROWS) + 2 * em
        is_beside = self.width() - _TABLE * em >= _WIDE * height
        is_below = not is_beside and height - table >= _LEAST_SQUARES * em
        has_both = is_beside or is_below
        direction = QBoxLayout.Direction
        self._body.setDirection(direction.LeftToRight if is_beside else direction.TopToBottom)
        self._body.setStretchFactor(self._table, 0 if has_both else 1)
        squares = self.width() // 3 + _AROUND * em  # high they cannot use more
        self._table.setMinimumHeight(max(table, height - squares) if is_below else 0)
        self._table.setMinimumWidth(_TABLE * em if is_beside else 0)
        self._table.setMaximumWidth(_TABLE * em if is_beside else _ANY)
        self.turn.setVisible(not has_both)
        self._squares.setVisible(has_both or not self.turn.isChecked())
        self._table.setVisible(has_both or self.turn.isChecked())


@dataclass(frozen=True)
class _Standing:
    """How far the comparison that is wanted now has come."""

    comparison: Comparison | None = None  # the latest, of this text or an earlier one
    pending: str = ""  # what goes on until a newer one is there
    obstacle: str = ""  # why there will be none


def _standing_of(view: View) -> _Standing:
    reading, opened = view.reading, view.state.comparison
    missing = absence(view, "two runs side by side")
    if reading is None or missing:
        return _Standing(pending=missing)
    wanted = view.state.compare.wanted(reading, view.state.formats)
    if opened is None:
        return _Standing(pending=waiting(wanted.path, is_open=False))
    if opened.answers(reading, wanted):
        return _Standing(opened.comparison, obstacle=opened.obstacle)
    is_open = not opened.obstacle and opened.wanted.path == wanted.path
    return _Standing(opened.comparison, waiting(wanted.path, is_open=is_open))
