"""A text's tokens as rows, each with a bar for its loss and its numbers."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, isnan

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
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
from PySide6.QtWidgets import QAbstractScrollArea, QFrame, QToolTip, QWidget

from engine.loss import bits, probabilities, worst_first
from gui.theme import LIGHT, Theme, lookup_table
from gui.widgets.candidate_columns import Span
from gui.widgets.candidate_text import percent
from gui.widgets.lettering import LEFT, RIGHT, Lettering
from gui.widgets.pixels import cover
from gui.widgets.token_text import describe, speak

NO_LOSS = "no loss: nothing predicts it"
HELP = (
    "Click a token, or press Enter on it, to select the position that predicts it: the one before."
)
_LEAST_ROWS = 3
_LEAST_TOKEN = 4.5  # ems that a token needs
_ROOMY = 30  # ems from which on a bar stands beside its token, not under it
_STALE = 0.45


@dataclass(frozen=True, eq=False)
class LossLines:
    """What is known of each token [S]; a loss that is no number is shown as none.

    `labels` are the tokens as they are drawn, `rank` how many others were more probable.
    """

    labels: Sequence[str]
    tokens: Sequence[bytes]
    token_ids: NDArray[np.int64]
    loss: NDArray[np.float32]  # nats
    rank: NDArray[np.int64]

    def __len__(self) -> int:
        """S."""
        return len(self.labels)

    def numbers(self, position: int) -> tuple[str, str, str, str]:
        """Nats, bits, probability and rank, counted from 1, of a token that has a loss."""
        nats = self.loss[position : position + 1]
        return (
            f"{nats[0]:.2f}",
            f"{bits(nats)[0]:.2f}",
            percent(float(probabilities(nats)[0])),
            f"{self.rank[position] + 1:,}",
        )

    def spoken(self, position: int) -> str:
        """One token in words."""
        token = f"{speak(self.tokens[position])} at position {position}"
        if isnan(self.loss[position]):
            return f"{token}: {NO_LOSS}"
        nats, in_bits, share, rank = self.numbers(position)
        return f"{token}: {nats} nats, {in_bits} bits, probability {share}, rank {rank}"


@dataclass(frozen=True)
class _Columns:
    """Where things stand in a row, at one width; a number for which there is no room is left out.

    In a narrow list the bar lies under its token.
    """

    position: Span
    token: Span
    bar: Span
    numbers: tuple[tuple[str, Span], ...]

    @property
    def is_under(self) -> bool:
        """Whether bar and token share their place."""
        return self.bar.left == self.token.left


class LossRows(QAbstractScrollArea):
    """One row a token, in the text's order or the worst first; only rows in sight are painted.

    Arrow keys, Page Up and Down, Home and End move the current row; Enter or a click chooses it.
    """

    chosen = Signal(int)  # the position of the token that was clicked

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._lines: LossLines | None = None
        self._order: NDArray[np.intp] = np.empty(0, np.intp)
        self._row_of: NDArray[np.intp] = np.empty(0, np.intp)
        self._sentence = ""
        self._is_sorted = False
        self._is_stale = False
        self._predicted: int | None = None
        self._current = 0
        self._hovered: int | None = None
        self._pressed: int | None = None
        self._ceiling = 8.0
        self._top = 1.0
        self.setAccessibleName("Loss of each token")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.viewport().setMouseTracking(True)
        self.verticalScrollBar().valueChanged.connect(self._scrolled)
        self.set_theme(LIGHT)

    # What to show

    def set_theme(self, theme: Theme) -> None:
        """Draw in another look."""
        self._theme = theme
        self._axis = Lettering(self.font(), theme.font_axis)
        self._body = Lettering(self.font(), theme.font_body)
        self._bold = Lettering(self.font(), theme.font_body, bold=True)
        self._foot = max(4, theme.unit)  # how high a bar is that lies under its token
        self._row_height = self._body.line + self._foot + round(1.5 * theme.unit)
        self._lay_out()

    def set_empty(self, sentence: str) -> None:
        """Show a sentence instead of tokens."""
        self._lines, self._sentence = None, sentence
        self._current, self._hovered, self._predicted = 0, None, None
        self._arrange()

    def set_lines(self, lines: LossLines, *, ceiling: float) -> None:
        """Show these tokens; a loss of `ceiling` nats or more has the map's last colour.

        Whoever looks at the end of the text goes on looking at its end when it grows.
        """
        bar = self.verticalScrollBar()
        was_at_end = not self._is_sorted and bar.value() == bar.maximum()
        is_longer = self._lines is None or len(lines) > len(self._lines)
        self._lines, self._ceiling = lines, ceiling
        self._arrange()
        if was_at_end and is_longer:
            bar.setValue(bar.maximum())

    def set_sorted(self, is_sorted: bool) -> None:  # noqa: FBT001
        """Show the worst first, or the text's order; the current token stays current."""
        if is_sorted == self._is_sorted:
            return
        position = self.current_position
        self._is_sorted = is_sorted
        self._arrange()
        if is_sorted:
            self._go_to(0)
        elif position is not None:
            self._go_to(self._row(position))

    def set_predicted(self, position: int | None) -> None:
        """Mark the token that the selected position predicts, make it current and show it."""
        if position == self._predicted:
            return
        self._predicted = position
        if position is not None and self._lines is not None and position < len(self._lines):
            self._go_to(self._row(position))
        self._tell()

    def set_stale(self, is_stale: bool) -> None:  # noqa: FBT001
        """Dim what is shown while the next is on its way."""
        if is_stale != self._is_stale:
            self._is_stale = is_stale
            self.viewport().update()

    # What is shown

    @property
    def current_position(self) -> int | None:
        """The token that Enter would choose."""
        return self.position_of(self._current) if self._lines and len(self._lines) else None

    @property
    def pointed_position(self) -> int | None:
        """The token under the pointer, else the current one."""
        return self.current_position if self._hovered is None else self.position_of(self._hovered)

    @property
    def scale_top(self) -> float:
        """The loss in nats at the right end of the bars: a whole number."""
        return self._top

    def position_of(self, row: int) -> int:
        """Which token stands in a row."""
        return int(self._order[row])

    def _row(self, position: int) -> int:
        return int(self._row_of[position])

    def rows_in_sight(self) -> range:
        """The rows that are at least partly visible."""
        first = self.verticalScrollBar().value() // self._row_height
        last = (self.verticalScrollBar().value() + self._room()) // self._row_height
        return range(first, min(len(self._order), last + 1))

    def row_place(self, row: int) -> QRectF:
        """Where a row lies in the viewport, in sight or not."""
        top = self._header_height() + row * self._row_height - self.verticalScrollBar().value()
        return QRectF(0, top, self.viewport().width(), self._row_height)

    def bar_place(self, row: int) -> QRectF:
        """The box that a loss at the top of the scale would fill in a row."""
        place, bar = self.row_place(row), self._columns.bar
        inset = self._theme.unit / 2
        height = self._foot if self._columns.is_under else place.height() - 2 * inset
        return QRectF(bar.left, place.bottom() - inset - height, bar.width, height)

    def bar_width(self, row: int) -> float:
        """How much of that its bar fills."""
        loss = self._loss(row)
        share = 0.0 if isnan(loss) else min(loss / self._top, 1.0)
        return share * self.bar_place(row).width()

    def header(self) -> list[str]:
        """The column titles, from left to right."""
        return [text for text, _span, _align in self._header_cells()]

    def texts(self, row: int) -> list[str]:
        """What a row says, from left to right."""
        return [text for text, _span, _align in self._cells(row)]

    # Qt

    def sizeHint(self) -> QSize:
        """Eight rows."""
        return QSize(300, self._header_height() + 8 * self._row_height)

    def minimumSizeHint(self) -> QSize:
        """A few rows."""
        return QSize(200, self._header_height() + _LEAST_ROWS * self._row_height)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep the scroll bar's range right."""
        super().resizeEvent(event)
        self._lay_out()

    def focusInEvent(self, event: QFocusEvent) -> None:
        """The current row's frame is thick while keys go here."""
        super().focusInEvent(event)
        self.viewport().update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """The frame is thin again."""
        super().focusOutEvent(event)
        self.viewport().update()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Move the current row, or choose it."""
        key = event.key()
        page = max(1, self._room() // self._row_height - 1)
        moves = {
            Qt.Key.Key_Down: self._current + 1,
            Qt.Key.Key_Up: self._current - 1,
            Qt.Key.Key_PageDown: self._current + page,
            Qt.Key.Key_PageUp: self._current - page,
            Qt.Key.Key_Home: 0,
            Qt.Key.Key_End: len(self._order) - 1,
        }
        position = self.current_position
        if position is None or event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier:
            event.ignore()
        elif key in {Qt.Key.Key_Return, Qt.Key.Key_Enter}:
            self.chosen.emit(position)
        elif key in moves:
            self._go_to(moves[Qt.Key(key)])
        else:
            event.ignore()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Remember where a click begins."""
        if event.button() == Qt.MouseButton.LeftButton:
            self._pressed = self._row_at(event.position())

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """A click that ends where it began chooses."""
        if event.button() != Qt.MouseButton.LeftButton:
            return
        pressed, self._pressed = self._pressed, None
        row = self._row_at(event.position())
        if row is not None and row == pressed:
            self._current = row
            self._tell()
            self.chosen.emit(self.position_of(row))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Light the row under the pointer."""
        self._hover(self._row_at(event.position()))

    def viewportEvent(self, event: QEvent) -> bool:
        """Tooltips in plain text; the pointer leaving."""
        if event.type() == QEvent.Type.Leave:
            self._hover(None)
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            text = self.tooltip_at(QPointF(event.pos()))
            shown = f"<p style='white-space:pre'>{escape(text)}</p>" if text else ""
            QToolTip.showText(event.globalPos(), shown, self)
            return True
        return super().viewportEvent(event)

    def tooltip_at(self, place: QPointF) -> str:
        """What is said on hovering there: all that is known of a token."""
        row = self._row_at(place)
        if row is None or self._lines is None:
            return HELP if self._lines is not None and place.y() < self._header_height() else ""
        position = self.position_of(row)
        loss = float(self._lines.loss[position])
        rank = f"rank {self._lines.rank[position] + 1:,}"
        return describe(
            self._lines.tokens[position],
            int(self._lines.token_ids[position]),
            position,
            loss=loss,
            notes=(NO_LOSS,) if isnan(loss) else (rank, f"predicted at position {position - 1}"),
        )

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the header and the rows in sight, as far as they need it."""
        theme, area = self._theme, self.viewport().rect()
        with QPainter(self.viewport()) as painter:
            painter.fillRect(area, QColor(theme.surface))
            if self._lines is None:
                painter.setFont(self._body.font)
                painter.setPen(QColor(theme.text_dim))
                flags = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap
                painter.drawText(area, int(flags), self._sentence)
                return
            if self._is_stale:
                painter.setOpacity(_STALE)
            for row in self.rows_in_sight():
                if event.rect().intersects(self.row_place(row).toAlignedRect()):
                    self._paint_row(painter, row)
            self._paint_header(painter)

    # Moving

    def _arrange(self) -> None:
        """Put the tokens into their rows."""
        position = self.current_position if len(self._order) else None
        n_tokens = len(self._lines) if self._lines else 0
        order: NDArray[np.intp] = np.arange(n_tokens)
        if self._lines is not None and self._is_sorted:
            order = worst_first(self._lines.loss)
        self._order, self._row_of = order, np.empty_like(order)
        self._row_of[order] = np.arange(n_tokens)
        stays = position is not None and position < n_tokens
        self._current = self._row(position) if stays and position is not None else 0
        if self._hovered is not None and self._hovered >= n_tokens:
            self._hovered = None
        self._lay_out()
        self._tell()

    def _go_to(self, row: int) -> None:
        self._current = min(max(row, 0), max(0, len(self._order) - 1))
        top = self._current * self._row_height
        bar, room = self.verticalScrollBar(), self._room()
        if top < bar.value():
            bar.setValue(top)
        elif top + self._row_height > bar.value() + room:
            bar.setValue(top + self._row_height - room)
        self._hovered = None
        self._tell()

    def _scrolled(self) -> None:
        self._hover(None)
        self.viewport().update()

    def _hover(self, row: int | None) -> None:
        if row != self._hovered:
            for each in (row, self._hovered):
                if each is not None:
                    self.viewport().update(self.row_place(each).toAlignedRect())
            self._hovered = row
            shape = Qt.CursorShape.ArrowCursor if row is None else Qt.CursorShape.PointingHandCursor
            self.viewport().setCursor(shape)

    def _tell(self) -> None:
        """Redraw, and say which token is current."""
        self.viewport().update()
        position = self.current_position
        if self._lines is None or position is None:
            self.setAccessibleDescription(self._sentence)
        else:
            self.setAccessibleDescription(f"Current row: {self._lines.spoken(position)}. {HELP}")

    # Places

    def _header_height(self) -> int:
        return self._axis.line + self._theme.unit

    def _room(self) -> int:
        return max(0, self.viewport().height() - self._header_height())

    def _lay_out(self) -> None:
        bar = self.verticalScrollBar()
        bar.setRange(0, max(0, len(self._order) * self._row_height - self._room()))
        bar.setSingleStep(self._row_height)
        bar.setPageStep(max(self._row_height, self._room() - self._row_height))
        self._top = self._ceiling
        if self._lines is not None:
            finite = self._lines.loss[np.isfinite(self._lines.loss)]
            self._top = max(self._top, float(ceil(finite.max(initial=0.0))))
        self._columns = self._placed(float(self.viewport().width()))
        self.viewport().update()

    def _placed(self, width: float) -> _Columns:
        gap = float(self._theme.unit)
        count = max(len(self._order), 100)
        position = Span(2 * gap, self._axis.width(f"{count - 1:,}") + 1)
        wanted = {
            "nats": self._body.width("00.00"),
            "bits": self._axis.width("00.00"),
            "prob.": max(map(self._axis.width, ("> 99.9 %", "< 0.001 %"))),
            "rank": self._axis.width("00,000"),
        }
        left = position.right + 2 * gap
        # The bits go first where there is no room for all, for they say what the nats say.
        for dropped in ((), ("bits",), ("bits", "prob."), ("bits", "prob.", "rank")):
            kept = {name: wide + 1 for name, wide in wanted.items() if name not in dropped}
            room = width - gap - left - sum(kept.values()) - 2 * gap * len(kept)
            if room >= _LEAST_TOKEN * self._body.em:
                break
        numbers, right = [], width - gap
        for name, wide in reversed(kept.items()):
            numbers.append((name, Span(right - wide, wide)))
            right -= wide + 2 * gap
        room = max(0.0, right - left)
        token = bar = Span(left, room)
        if width >= _ROOMY * self._body.em:
            token = Span(left, room * 0.4)
            bar = Span(token.right + 2 * gap, max(0.0, right - token.right - 2 * gap))
        return _Columns(position, token, bar, tuple(reversed(numbers)))

    def _row_at(self, place: QPointF) -> int | None:
        if self._lines is None or place.y() < self._header_height():
            return None
        inside = place.y() - self._header_height() + self.verticalScrollBar().value()
        row = int(inside // self._row_height)
        in_width = 0 <= place.x() < self.viewport().width()
        return row if in_width and row < len(self._order) else None

    # Texts

    def _loss(self, row: int) -> float:
        return float(self._lines.loss[self.position_of(row)]) if self._lines else float("nan")

    def _header_cells(self) -> list[tuple[str, Span, int]]:
        columns = self._columns
        scale = f"0 to {self._top:g} nats"
        titles = [("token", columns.token, LEFT), (scale, columns.bar, LEFT)]
        if columns.is_under:
            both = f"token, {scale}"
            is_room = self._axis.fits(both, columns.token.width)
            titles = [(both if is_room else "token", columns.token, LEFT)]
        return [
            ("#", columns.position, RIGHT),
            *titles,
            *((name, span, RIGHT) for name, span in columns.numbers),
        ]

    def _cells(self, row: int) -> list[tuple[str, Span, int]]:
        lines, columns = self._lines, self._columns
        if lines is None:
            return []
        position = self.position_of(row)
        cells = [
            (str(position), columns.position, RIGHT),
            (lines.labels[position], columns.token, LEFT),
        ]
        if isnan(lines.loss[position]):
            left = columns.token.right if columns.is_under else columns.bar.left
            rest = Span(left, columns.numbers[-1][1].right - left)
            return [*cells, (NO_LOSS, rest, RIGHT)]
        said = dict(zip(("nats", "bits", "prob.", "rank"), lines.numbers(position), strict=True))
        return [*cells, *((said[name], span, RIGHT) for name, span in columns.numbers)]

    # Drawing

    def _paint_header(self, painter: QPainter) -> None:
        """Draw the header, over what of a row has scrolled under it."""
        height, width = self._header_height(), self.viewport().width()
        cover(painter, QRectF(0, 0, width, height), self._theme.surface)
        painter.setPen(QColor(self._theme.text_dim))
        for text, span, align in self._header_cells():
            place = QRectF(span.left, 0, span.width, height)
            self._axis.draw(painter, place, text, align)
        painter.setPen(QColor(self._theme.line))
        painter.drawLine(QPointF(0, height - 0.5), QPointF(width, height - 0.5))

    def _paint_row(self, painter: QPainter, row: int) -> None:
        theme, place = self._theme, self.row_place(row)
        position = self.position_of(row)
        if row == self._hovered:
            painter.fillRect(place, QColor(theme.raised))
        if position == self._predicted:
            mark = QRectF(0, place.top(), theme.unit, place.height())
            painter.fillRect(mark, QColor(theme.accent))
        self._paint_bar(painter, row)
        height = self._body.line + theme.unit / 2 if self._columns.is_under else place.height()
        for column, (text, span, align) in enumerate(self._cells(row)):
            is_main = column in {1, 2} and text != NO_LOSS
            lettering = self._body if is_main else self._axis
            if column == 1 and position == self._predicted:
                lettering = self._bold
            painter.setPen(QColor(theme.text if is_main else theme.text_dim))
            where = QRectF(span.left, place.top(), span.width, height)
            lettering.draw(painter, where, text, align)
        if row == self._current:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(QColor(theme.accent), theme.stroke if self.hasFocus() else 1))
            painter.drawRect(place.adjusted(1, 1, -2, -1))

    def _paint_bar(self, painter: QPainter, row: int) -> None:
        loss, box = self._loss(row), self.bar_place(row)
        if isnan(loss):
            return
        share = min(loss / self._ceiling, 1.0)
        colour = QColor.fromRgb(int(lookup_table(self._theme.loss_map)[round(255 * share)]))
        box.setWidth(max(1.0, self.bar_width(row)))
        painter.fillRect(box, colour)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QColor(self._theme.text_dim))  # the map begins at the ground's colour
        painter.drawRect(box.adjusted(0.5, 0.5, -0.5, -0.5))
