"""What could follow in two runs: a row for each token, with both probabilities and B − A."""

from html import escape
from math import isnan

import numpy as np
from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import (
    QColor,
    QFocusEvent,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from engine.comparison import NextTokens
from gui.theme import LIGHT, Theme, lookup_table
from gui.widgets.candidate_text import percent
from gui.widgets.lettering import CENTRE, LEFT, RIGHT, Lettering
from gui.widgets.scales import difference_reach, signed
from gui.widgets.token_text import display, speak

NOT_THERE = "–"  # of a token that one vocabulary does not have
_LEAST_ROWS = 4
_MOST_ROWS = 100
_LONGEST = 24  # characters of a token
_STALE = 0.45


class CandidatePairs(QWidget):
    """As many of the tokens as there is room for, the most probable in either run first.

    The arrow keys, Home and End move the current row; hovering points at one.
    """

    def __init__(self) -> None:
        super().__init__()
        self._tokens: NextTokens | None = None
        self._sentence = ""
        self._reach = 1.0
        self._current = 0
        self._hovered: int | None = None
        self._is_stale = False
        self.setAccessibleName("Candidates of both runs")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.set_theme(LIGHT)

    # What to show

    def set_theme(self, theme: Theme) -> None:
        """Draw in another look."""
        self._theme = theme
        self._axis = Lettering(self.font(), theme.font_axis)
        self._body = Lettering(self.font(), theme.font_body)
        self._row_height = self._body.line + theme.unit
        self.updateGeometry()
        self.update()

    def set_stale(self, is_stale: bool) -> None:  # noqa: FBT001
        """Dim what is shown while the next is on its way."""
        if is_stale != self._is_stale:
            self._is_stale = is_stale
            self.update()

    def set_empty(self, sentence: str) -> None:
        """Show a sentence instead."""
        self._tokens, self._sentence, self._hovered = None, sentence, None
        self._tell()

    def set_tokens(self, tokens: NextTokens) -> None:
        """Show these."""
        if tokens is self._tokens:
            return
        self._tokens = tokens
        shown = tokens.difference[:_MOST_ROWS]
        self._reach = difference_reach(shown[~np.isnan(shown)].astype(np.float32))
        self._current = 0
        self._hovered = None
        self._tell()

    # What is shown

    @property
    def pointed_row(self) -> int | None:
        """The row under the pointer, else the current one."""
        if not self.n_rows:
            return None
        row = self._current if self._hovered is None else self._hovered
        return min(row, self.n_rows - 1)

    @property
    def n_rows(self) -> int:
        """How many rows can be seen."""
        known = min(len(self._tokens.tokens), _MOST_ROWS) if self._tokens is not None else 0
        return max(0, min(known, (self.height() - self._header()) // self._row_height))

    def texts(self, row: int) -> tuple[str, str, str, str]:
        """What a row says: the token, both probabilities, the difference in points."""
        tokens = self._tokens
        if tokens is None:
            raise IndexError(f"there is no row {row}.")
        return (
            display(tokens.tokens[row], _LONGEST),
            _percent(tokens.prob_a[row]),
            _percent(tokens.prob_b[row]),
            _points(tokens.difference[row]),
        )

    def row_place(self, row: int) -> QRectF:
        """Where a row lies."""
        return QRectF(0, self._header() + row * self._row_height, self.width(), self._row_height)

    def bar_place(self, row: int) -> QRectF:
        """Where the bar of the difference has room, from −reach to +reach."""
        return self._columns(self.row_place(row))[3]

    @property
    def reach(self) -> float:
        """The difference at either end of that."""
        return self._reach

    def height_of(self, n_rows: int) -> int:
        """Logical pixels that the header and so many rows need."""
        return self._header() + n_rows * self._row_height

    def spoken(self, row: int) -> str:
        """A row in words."""
        tokens = self._tokens
        if tokens is None:
            return ""
        a, b, apart = self.texts(row)[1:]
        return f"{speak(tokens.tokens[row])} A {a}, B {b}, B − A {apart}"

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
        """A few rows."""
        return QSize(26 * self._theme.font_axis, self.height_of(2 * _LEAST_ROWS))

    def minimumSizeHint(self) -> QSize:
        """Fewer."""
        return QSize(22 * self._theme.font_axis, self.height_of(1))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Other rows may be in sight."""
        super().resizeEvent(event)
        self._tell()

    def focusInEvent(self, event: QFocusEvent) -> None:
        """The current row is framed while keys go here."""
        super().focusInEvent(event)
        self.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """No longer."""
        super().focusOutEvent(event)
        self.update()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Move the current row."""
        moves = {
            Qt.Key.Key_Down: self._current + 1,
            Qt.Key.Key_Up: self._current - 1,
            Qt.Key.Key_Home: 0,
            Qt.Key.Key_End: self.n_rows - 1,
        }
        if event.key() not in moves or not self.n_rows:
            event.ignore()
            return
        self._current = max(0, min(self.n_rows - 1, moves[Qt.Key(event.key())]))
        self._hovered = None
        self._tell()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Point at a row."""
        self._hover(self._row_at(event.position()))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Make a row the current one."""
        row = self._row_at(event.position())
        if row is not None:
            self._current = row
            self._tell()

    def leaveEvent(self, event: QEvent) -> None:
        """Nothing is pointed at any more."""
        self._hover(None)
        super().leaveEvent(event)

    def event(self, event: QEvent) -> bool:
        """Tooltips in plain text."""
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            row = self._row_at(QPointF(event.pos()))
            if row is None:
                QToolTip.hideText()
            else:
                shown = f"<p style='white-space:pre'>{escape(self.tooltip(row))}</p>"
                QToolTip.showText(event.globalPos(), shown, self)
            return True
        return super().event(event)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw the header and the rows."""
        theme = self._theme
        with QPainter(self) as painter:
            painter.fillRect(self.rect(), QColor(theme.surface))
            if self._tokens is None:
                painter.setFont(self._body.font)
                painter.setPen(QColor(theme.text_dim))
                flags = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap
                painter.drawText(self.rect(), int(flags), self._sentence)
                return
            if self._is_stale:
                painter.setOpacity(_STALE)
            self._paint_header(painter)
            for row in range(self.n_rows):
                self._paint_row(painter, row)

    # Drawing

    def _paint_header(self, painter: QPainter) -> None:
        theme = self._theme
        places = self._columns(QRectF(0, 0, self.width(), self._header() - theme.unit))
        painter.setPen(QColor(theme.text_dim))
        names = ("token", "A", "B", "0", "points")
        aligned = (LEFT, RIGHT, RIGHT, CENTRE, RIGHT)
        for place, name, align in zip(places, names, aligned, strict=True):
            self._axis.draw(painter, place, name, align)
        reach = f"{100 * self._reach:g}"
        self._axis.draw(painter, places[3], f"−{reach}", LEFT)
        self._axis.draw(painter, places[3], f"+{reach}", RIGHT)
        painter.setPen(QColor(theme.line))
        painter.drawLine(QPointF(0, self._header() - 1), QPointF(self.width(), self._header() - 1))

    def _paint_row(self, painter: QPainter, row: int) -> None:
        theme, place = self._theme, self.row_place(row)
        places = self._columns(place)
        if row == self._hovered:
            painter.fillRect(place, QColor(theme.raised))
        self._paint_bar(painter, row, places[3])
        token, a, b, apart = self.texts(row)
        texts = ((0, token, LEFT), (1, a, RIGHT), (2, b, RIGHT), (4, apart, RIGHT))
        painter.setPen(QColor(theme.text))
        for column, text, align in texts:
            self._body.draw(painter, places[column], text, align)
        if row == self._current and self.hasFocus():
            painter.setPen(QPen(QColor(theme.accent), theme.stroke))
            painter.drawRect(place.adjusted(1, 1, -1, -1))

    def _paint_bar(self, painter: QPainter, row: int, room: QRectF) -> None:
        apart = float(self._tokens.difference[row]) if self._tokens is not None else 0.0
        middle = room.center().x()
        if not isnan(apart):
            share = max(-1.0, min(1.0, apart / self._reach))
            colours = lookup_table(self._theme.difference_map)
            box = QRectF(middle, room.top() + 3, share * room.width() / 2, room.height() - 6)
            ink = QColor.fromRgb(int(colours[round(127.5 + 127.5 * share)]))
            painter.fillRect(box.normalized(), ink)
            if abs(box.width()) > 2:  # the map's middle is near the ground
                painter.setPen(QColor(self._theme.text_dim))
                painter.drawRect(box.normalized())
        painter.setPen(QColor(self._theme.text_dim))
        painter.drawLine(QPointF(middle, room.top()), QPointF(middle, room.bottom()))

    def _columns(self, place: QRectF) -> tuple[QRectF, QRectF, QRectF, QRectF, QRectF]:
        """Token, A, B, the bar, the difference."""
        gap = 2 * self._theme.unit
        number = self._body.width("0.0001 %") + 1
        points = max(self._body.width("−100.0"), self._axis.width("points")) + 1
        bar = min(12 * self._axis.em, max(6 * self._axis.em, 0.22 * place.width()))
        right = place.right() - self._theme.unit
        boxes = []
        for wide in (points, bar, number, number):
            boxes.append(QRectF(right - wide, place.top(), wide, place.height()))
            right -= wide + gap
        token = QRectF(place.left() + self._theme.unit, place.top(), 0, place.height())
        token.setRight(max(token.left(), right))
        apart, bars, b, a = boxes
        return token, a, b, bars, apart

    def _header(self) -> int:
        return self._axis.line + self._theme.unit

    def _row_at(self, place: QPointF) -> int | None:
        row = int((place.y() - self._header()) // self._row_height)
        return row if 0 <= row < self.n_rows else None

    def _hover(self, row: int | None) -> None:
        if row != self._hovered:
            self._hovered = row
            self.update()

    def _tell(self) -> None:
        """Redraw, and say what the current row holds."""
        row = self.pointed_row
        self.setAccessibleDescription(self._sentence if row is None else self.spoken(row))
        self.update()


def _percent(probability: float) -> str:
    return NOT_THERE if isnan(probability) else percent(float(probability))


def _points(apart: float) -> str:
    """A difference of probabilities in percentage points."""
    if isnan(apart):
        return NOT_THERE
    return signed(f"{100 * apart:.1f}")
