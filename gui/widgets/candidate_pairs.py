"""What could follow in two runs: a row for each token, with both probabilities and B − A."""

from math import isnan

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSize
from PySide6.QtGui import QColor, QMouseEvent, QPainter, QResizeEvent

from engine.answers.comparison import NextTokens
from gui.theme import Theme, lookup_table
from gui.widgets.candidate_columns import Span
from gui.widgets.candidate_text import percent
from gui.widgets.lettering import CENTRE, LEFT, RIGHT
from gui.widgets.row_list import Cell, RowList
from gui.widgets.scales import difference_reach, signed
from gui.widgets.token_text import display, speak

NOT_THERE = "–"  # of a token that one vocabulary does not have
_SOME_ROWS = 8
_MOST_ROWS = 100
_LONGEST = 24  # characters of a token


class CandidatePairs(RowList):
    """As many of the tokens as there is room for, the most probable in either run first.

    There is nothing to choose: a press makes a row the current one.
    """

    AIR = 1

    def __init__(self) -> None:
        self._tokens: NextTokens | None = None
        self._reach = 1.0
        super().__init__()
        self.setAccessibleName("Candidates of both runs")

    # What to show

    def set_theme(self, theme: Theme) -> None:
        """Draw in another look, which may need another size."""
        super().set_theme(theme)
        self.updateGeometry()

    def set_empty(self, sentence: str) -> None:
        """Show a sentence instead."""
        self._tokens, self._sentence = None, sentence
        self._rearrange()

    def set_tokens(self, tokens: NextTokens) -> None:
        """Show these."""
        if tokens is self._tokens:
            return
        self._tokens, self._sentence = tokens, ""
        shown = tokens.difference[:_MOST_ROWS]
        self._reach = difference_reach(shown[~np.isnan(shown)].astype(np.float32))
        self._current, self._hovered = 0, None
        self._rearrange()

    # What is shown

    @property
    def n_rows(self) -> int:
        """How many rows can be seen."""
        known = min(len(self._tokens.tokens), _MOST_ROWS) if self._tokens is not None else 0
        return min(known, self._room() // self._row_height)

    @property
    def current_row(self) -> int | None:
        """The current one; while that has no room, the last that has."""
        row = super().current_row
        return None if row is None else min(row, self.n_rows - 1)

    @property
    def reach(self) -> float:
        """The difference at either end of the bars."""
        return self._reach

    def bar_place(self, row: int) -> QRectF:
        """Where the bar of the difference has room, from −reach to +reach."""
        return self._bar_within(self.row_place(row))

    def header_cells(self) -> list[Cell]:
        """Token, A, B, the ends of the scale, the difference."""
        reach = f"{100 * self._reach:g}"
        return [
            Cell("token", self._token),
            Cell("A", self._a, RIGHT),
            Cell("B", self._b, RIGHT),
            Cell("0", self._bar, CENTRE),
            Cell("points", self._points, RIGHT),
            Cell(f"−{reach}", self._bar, LEFT),
            Cell(f"+{reach}", self._bar, RIGHT),
        ]

    def cells(self, row: int) -> list[Cell]:
        """The token, both probabilities, the difference in points."""
        tokens = self._tokens
        if tokens is None:
            return []
        return [
            Cell(display(tokens.tokens[row], _LONGEST), self._token),
            Cell(_percent(tokens.prob_a[row]), self._a, RIGHT),
            Cell(_percent(tokens.prob_b[row]), self._b, RIGHT),
            Cell(_points(tokens.difference[row]), self._points, RIGHT),
        ]

    def spoken(self, row: int) -> str:
        """A row in words."""
        tokens = self._tokens
        if tokens is None:
            return ""
        a, b, apart = self.texts(row)[1:]
        return f"{speak(tokens.tokens[row])} A {a}, B {b}, B − A {apart}"

    def described(self, row: int) -> str:
        """The current row in words."""
        return self.spoken(row)

    def tooltip(self, row: int) -> str:
        """All digits of a row, as lines of plain text."""
        tokens = self._tokens
        if tokens is None:
            return ""
        lines = [display(tokens.tokens[row], 200)]
        for name, ids, probs in (
            ("A", tokens.id_a, tokens.prob_a),
            ("B", tokens.id_b, tokens.prob_b),
        ):
            known = f"{float(probs[row])!r} (id {ids[row]})"
            lines.append(f"{name} {known if ids[row] >= 0 else 'has no such token'}")
        apart = float(tokens.difference[row])
        lines.append(f"B − A {'is not there' if isnan(apart) else signed(repr(apart))}")
        return "\n".join(lines)

    # Qt

    def sizeHint(self) -> QSize:
        """Some rows."""
        return QSize(26 * self._theme.font_axis, self.height_of(_SOME_ROWS))

    def minimumSizeHint(self) -> QSize:
        """One."""
        return QSize(22 * self._theme.font_axis, self.height_of(1))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Other rows may be in sight."""
        super().resizeEvent(event)
        self._tell()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Make a row the current one."""
        row = self._at(event.position())
        if row is not None:
            self._current = row
            self._tell()

    # Places

    def place_columns(self, width: float) -> None:
        """Token, A, B, the bar, the difference."""
        gap = 2 * self._theme.unit
        number = self._body.width("< 0.001 %") + 1
        points = max(self._body.width("−100.0"), self._axis.width("points")) + 1
        bar = min(12 * self._axis.em, max(6 * self._axis.em, 0.22 * width))
        right = width - self._theme.unit
        spans = []
        for wide in (points, bar, number, number):
            spans.append(Span(right - wide, wide))
            right -= wide + gap
        self._points, self._bar, self._b, self._a = spans
        left = float(self._theme.unit)
        self._token = Span(left, max(0.0, right - left))

    def _bar_within(self, place: QRectF) -> QRectF:
        return QRectF(self._bar.left, place.top(), self._bar.width, place.height())

    # Drawing

    def paint_texts(self, painter: QPainter, row: int, place: QRectF) -> None:
        """All in full size."""
        painter.setPen(self._ink)
        for cell in self.cells(row):
            cell.draw(painter, self._body, place.center().y())

    def paint_frame(self, painter: QPainter, place: QRectF) -> None:
        """Only while keys go here, up to the right edge."""
        if self.hasFocus():
            super().paint_frame(painter, place.adjusted(0, 0, 1, 0))

    def header_middle(self) -> float:
        """Higher, so that the titles stand off the bars."""
        return self._axis.line / 2

    def paint_bars(self, painter: QPainter, row: int, place: QRectF) -> None:
        """The difference, from a line at 0 to either side."""
        apart = float(self._tokens.difference[row]) if self._tokens is not None else 0.0
        room = self._bar_within(place)
        middle = room.center().x()
        if not isnan(apart):
            share = max(-1.0, min(1.0, apart / self._reach))
            colours = lookup_table(self._theme.difference_map)
            box = QRectF(middle, room.top() + 3, share * room.width() / 2, room.height() - 6)
            ink = QColor.fromRgb(int(colours[round(127.5 + 127.5 * share)]))
            painter.fillRect(box.normalized(), ink)
            if abs(box.width()) > 2:  # the map's middle is near the ground
                painter.setPen(self._dim)
                painter.drawRect(box.normalized())
        painter.setPen(self._dim)
        painter.drawLine(QPointF(middle, room.top()), QPointF(middle, room.bottom()))


def _percent(probability: float) -> str:
    return NOT_THERE if isnan(probability) else percent(float(probability))


def _points(apart: float) -> str:
    """A difference of probabilities in percentage points."""
    if isnan(apart):
        return NOT_THERE
    return signed(f"{100 * apart:.1f}")
