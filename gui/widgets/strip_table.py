"""Strips of numbers one above the other, a column for each token, all on one scale."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import isnan
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import QToolTip, QWidget

from gui.theme import LIGHT, Theme, lookup_table
from gui.widgets.legend import draw_hatched
from gui.widgets.lens_grid import ink_on
from gui.widgets.lettering import CENTRE, LEFT, Lettering, every
from gui.widgets.pixels import cover
from gui.widgets.scrolled_picture import STALE, ScrolledPicture
from gui.widgets.sight import Sight
from gui.widgets.token_text import speak

Palette: TypeAlias = Literal["loss", "weights", "difference"]
Floats: TypeAlias = NDArray[np.floating]

_COLUMN = 5.2  # ems of a column that can be read
_NARROW = 4.2  # to which it shrinks if all then fit
_WIDEST = 9.0  # to which it grows while there are few
_MOST_MORE = 2.5  # lines by which a strip grows where there is room
_LEAST_LETTERED = 2.4  # ems below which a column has no letters


@dataclass(frozen=True, eq=False)
class Strip:
    """One row: how it is called, in fewer and fewer words, and what it says of each token [S].

    `fill` is how far up its palette each number lies, 0 to 1 (NaN: no number), `texts` the numbers
    as they are written. `held` draws a lane below: 1 where a key is in sight or held, 0 where it is
    not, between where only some heads hold it, NaN where the question makes no sense. `sight`
    is drawn as a square to the left.
    """

    wordings: tuple[str, ...]
    fill: Floats | None = None
    texts: Sequence[str] = ()
    palette: Palette = "loss"
    held: Floats | None = None
    sight: Sight | None = None


class StripTable(ScrolledPicture):
    """Tokens above strips; one column is the query, another may be marked.

    Left, Right, Home and End and a click choose the query; with Shift they move the mark. Where
    the query is given, they move the mark without it (`moves_mark`). Up and Down scroll.
    """

    chosen = Signal(int)  # the position that is to be the query
    marked = Signal(int)  # the position that is to be marked

    def __init__(
        self, name: str, *, moves_mark: bool = False, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._moves_mark = moves_mark
        self._labels: tuple[str, ...] = ()
        self._tokens: tuple[bytes, ...] = ()
        self._strips: tuple[Strip, ...] = ()
        self._query: int | None = None
        self._mark: int | None = None
        self._is_whole = False
        self._sentence = ""
        self._gutter, self._more = 0, 0.0
        self.setAccessibleName(name)
        self.viewport().setMouseTracking(True)
        for bar in (self.horizontalScrollBar(), self.verticalScrollBar()):
            bar.valueChanged.connect(lambda _: self.viewport().update())
        self.set_theme(LIGHT)

    # What to show

    def set_theme(self, theme: Theme) -> None:
        """Draw in another look."""
        self._theme = theme
        self._axis = Lettering(self.font(), theme.font_axis)
        self._bold = Lettering(self.font(), theme.font_axis, bold=True)
        self._body = Lettering(self.font(), theme.font_body)
        self._lay_out()

    def set_empty(self, sentence: str) -> None:
        """Show a sentence instead."""
        self._labels, self._tokens, self._strips, self._sentence = (), (), (), sentence
        self._query = self._mark = None
        self._lay_out()

    def set_strips(
        self, labels: Sequence[str], tokens: Sequence[bytes], strips: Sequence[Strip]
    ) -> None:
        """Show these tokens [S] and strips."""
        is_other_text = tuple(tokens) != self._tokens
        self._labels, self._tokens, self._strips = tuple(labels), tuple(tokens), tuple(strips)
        self._lay_out()
        if is_other_text:
            self._reveal(self._query)

    def set_columns(self, query: int | None, mark: int | None) -> None:
        """Frame the query's column, and the marked one."""
        if (query, mark) != (self._query, self._mark):
            was = self._query
            self._query, self._mark = query, mark
            if query != was:
                self._reveal(query)
            elif self._moves_mark:
                self._reveal(mark)
            self._say()
            self.viewport().update()

    def set_whole(self, is_whole: bool) -> None:  # noqa: FBT001 - a button's signal
        """Show all columns at once, however narrow, or such as can be read."""
        if is_whole != self._is_whole:
            self._is_whole = is_whole
            self._lay_out()
            self._reveal(self._query)

    # What is shown

    @property
    def strips(self) -> tuple[Strip, ...]:
        """The strips, from top to bottom."""
        return self._strips

    @property
    def is_lettered(self) -> bool:
        """Whether columns are wide enough for numbers."""
        return self._column >= _LEAST_LETTERED * self._axis.em

    @property
    def query(self) -> int | None:
        """The column that is framed as the query."""
        return self._query

    @property
    def mark(self) -> int | None:
        """The column that is marked."""
        return self._mark

    def positions_in_sight(self) -> range:
        """The columns that are at least partly visible."""
        if not self._labels:
            return range(0)
        left = self.horizontalScrollBar().value()
        first = int(left / self._column)
        last = int((left + self._room()) / self._column) + 1
        return range(max(0, first), min(len(self._labels), last))

    def cell_place(self, strip: int, position: int) -> QRectF:
        """Where a strip's cell lies in the viewport, in sight or not."""
        top = self._strip_top(strip) + self._heading
        return QRectF(self._left(position), top, self._column, self._cell_height(strip))

    def lane_place(self, strip: int, position: int) -> QRectF:
        """Where a strip's lane lies below a cell."""
        cell = self.cell_place(strip, position)
        return QRectF(cell.left(), cell.bottom() + 1, cell.width(), self._lane)

    def heading(self, strip: int) -> str:
        """The wording of a strip that fits."""
        width = self._room() - self._theme.unit
        wordings = self._strips[strip].wordings
        return next((each for each in wordings if self._body.fits(each, width)), wordings[-1])

    def spoken(self, position: int) -> str:
        """One column in words."""
        parts = [
            f"{strip.wordings[-1]} {strip.texts[position]}"
            for strip in self._strips
            if strip.texts and strip.texts[position]
        ]
        token = f"{speak(self._tokens[position])} at position {position}"
        return f"{token}: {'; '.join(parts)}." if parts else f"{token}."

    # Measures

    def _left(self, position: int) -> float:
        return self._gutter + position * self._column - self.horizontalScrollBar().value()

    def _room(self) -> int:
        return self.viewport().width() - self._gutter

    def sight_place(self, strip: int) -> QRectF:
        """Where a strip's square is drawn."""
        side = self._strip_height(strip) - 2 * self._theme.unit
        return QRectF(1, self._strip_top(strip) + self._theme.unit / 2, side, side)

    def _strip_top(self, strip: int) -> float:
        top = self._head - self.verticalScrollBar().value()
        return top + sum(self._strip_height(each) for each in range(strip))

    def _cell_height(self, strip: int) -> float:
        has_cells = self._strips[strip].fill is not None
        return float(self._axis.line + self._theme.unit + self._more) if has_cells else 0.0

    def _strip_height(self, strip: int) -> float:
        lane = self._lane + 2 if self._strips[strip].held is not None else 0
        return self._heading + self._cell_height(strip) + lane + self._theme.unit

    def _high(self) -> float:
        return self._head + sum(self._strip_height(each) for each in range(len(self._strips)))

    def _lay_out(self) -> None:
        theme, n = self._theme, len(self._labels)
        self._heading = self._body.line
        self._lane = 2 * theme.unit
        self._head = self._axis.line + theme.unit
        room = self.viewport().size()
        self._more = 0.0
        n_tall = sum(strip.fill is not None for strip in self._strips)
        if n_tall:
            spare = (room.height() - self._high()) / n_tall
            self._more = min(max(0.0, spare), _MOST_MORE * self._axis.line)
        self._gutter = 0
        for index, strip in enumerate(self._strips):
            if strip.sight is not None:
                self._gutter = max(self._gutter, round(self._strip_height(index)))
        self._column = _COLUMN * self._axis.em
        if self._is_whole and n:
            self._column = min(_WIDEST * self._axis.em, max(1.0, self._room() / n))
        elif n and self._room() / n >= _NARROW * self._axis.em:
            self._column = min(_WIDEST * self._axis.em, self._room() / n)
        across, down = self.horizontalScrollBar(), self.verticalScrollBar()
        across.setRange(0, max(0, round(n * self._column) - self._room()))
        across.setPageStep(max(1, self._room()))
        across.setSingleStep(round(self._column))
        down.setRange(0, max(0, round(self._high()) - room.height()))
        down.setPageStep(room.height())
        down.setSingleStep(self._body.line)
        self._say()
        self.updateGeometry()
        self.viewport().update()

    def _reveal(self, position: int | None) -> None:
        if position is None or position >= len(self._labels):
            return
        bar, left = self.horizontalScrollBar(), position * self._column
        spare = self._column  # the neighbour that it predicts, or that stands before it
        if left - spare < bar.value():
            bar.setValue(round(left - spare))
        elif left + self._column + spare > bar.value() + self._room():
            bar.setValue(round(left + self._column + spare - self._room()))

    def _say(self) -> None:
        query = self._query
        if self._moves_mark and self._mark is not None:
            query = self._mark
        is_there = query is not None and query < len(self._labels)
        self.setAccessibleDescription(
            self.spoken(query) if is_there and query is not None else self._sentence
        )

    # Qt

    def sizeHint(self) -> QSize:
        """All strips, and eight columns."""
        n_tall = sum(strip.fill is not None for strip in self._strips)
        high = round(self._high() - n_tall * self._more) + self._theme.unit
        return QSize(round(8 * _COLUMN * self._axis.em), high)

    def minimumSizeHint(self) -> QSize:
        """One strip: where there is little room the others are scrolled to."""
        return QSize(150, self._head + self._heading + 2 * self._axis.line)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep the scroll bars' ranges right."""
        super().resizeEvent(event)
        self._lay_out()
        if event.size().width() != event.oldSize().width():
            self._reveal(self._query)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Move the query, or the mark with Shift; scroll to other strips."""
        last = len(self._labels) - 1
        modifiers = event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
        has_shift = modifiers == Qt.KeyboardModifier.ShiftModifier
        is_mark = has_shift or self._moves_mark
        at = self._mark if is_mark and self._mark is not None else self._query
        moves = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}
        ends = {Qt.Key.Key_Home: 0, Qt.Key.Key_End: last}
        key = event.key()
        scrolls = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}
        if last >= 0 and not modifiers and key in scrolls:
            bar = self.verticalScrollBar()
            bar.setValue(bar.value() + scrolls[Qt.Key(key)] * bar.singleStep())
            return
        if last < 0 or (modifiers and not has_shift) or key not in {*moves, *ends}:
            event.ignore()
            return
        wanted = ends.get(Qt.Key(key), (last if at is None else at) + moves.get(Qt.Key(key), 0))
        self._ask(min(max(wanted, 0), last), is_mark=is_mark)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """A click chooses the query; with Shift, the mark."""
        position = self.position_at(event.position())
        if event.button() == Qt.MouseButton.LeftButton and position is not None:
            has_shift = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
            self._ask(position, is_mark=has_shift or self._moves_mark)

    def _ask(self, position: int, *, is_mark: bool) -> None:
        (self.marked if is_mark else self.chosen).emit(position)

    def position_at(self, place: QPointF) -> int | None:
        """The column at a place of the viewport."""
        along = place.x() - self._gutter
        position = int((along + self.horizontalScrollBar().value()) / self._column)
        return position if along >= 0 and position < len(self._labels) else None

    def viewportEvent(self, event: QEvent) -> bool:
        """Tooltips in plain text."""
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            position = self.position_at(QPointF(event.pos()))
            text = "" if position is None else self.spoken(position)
            QToolTip.showText(event.globalPos(), f"<span>{escape(text)}</span>" if text else "")
            return True
        return super().viewportEvent(event)

    # Painting

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the strips in sight under the row of tokens."""
        del event
        theme, area = self._theme, QRectF(self.viewport().rect())
        with QPainter(self.viewport()) as painter:
            painter.fillRect(area, QColor(theme.surface))
            if not self._labels:
                painter.setFont(self._body.font)
                painter.setPen(QColor(theme.text_dim))
                flags = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap
                painter.drawText(area, int(flags), self._sentence)
                return
            painter.setOpacity(STALE if self._is_stale else 1.0)
            right = QRectF(self._gutter, 0, area.width() - self._gutter, area.height())
            painter.save()
            painter.setClipRect(right)
            for index in range(len(self._strips)):
                self._paint_strip(painter, index)
                self._paint_marks(painter, index)
            cover(painter, QRectF(0, 0, area.width(), self._head), theme.surface)
            self._paint_tokens(painter)
            painter.restore()
            self._paint_gutter(painter, area)

    def _paint_gutter(self, painter: QPainter, area: QRectF) -> None:
        theme = self._theme
        cover(painter, QRectF(0, 0, self._gutter, area.height()), theme.surface)
        for index, strip in enumerate(self._strips):
            if strip.sight is not None:
                strip.sight.draw(painter, self.sight_place(index), theme)
        cover(painter, QRectF(0, 0, self._gutter, self._head), theme.surface)

    def _paint_strip(self, painter: QPainter, index: int) -> None:
        theme, strip = self._theme, self._strips[index]
        top = self._strip_top(index)
        heading = QRectF(self._gutter + 2, top, self._room() - 2, self._heading)
        painter.setPen(QColor(theme.text))
        self._body.draw_long(painter, heading, self.heading(index))
        if strip.fill is not None:
            table = lookup_table(getattr(theme, f"{strip.palette}_map"))
            for position in self.positions_in_sight():
                self._paint_cell(painter, index, position, table)
        if strip.held is not None:
            for position in self.positions_in_sight():
                self._paint_held(painter, self.lane_place(index, position), strip.held[position])

    def _paint_cell(
        self, painter: QPainter, index: int, position: int, table: NDArray[np.uint32]
    ) -> None:
        theme, strip = self._theme, self._strips[index]
        place = self.cell_place(index, position)
        assert strip.fill is not None  # noqa: S101 - asked before
        fill = float(strip.fill[position])
        ground = QColor(theme.surface)
        if not isnan(fill):
            ground = QColor.fromRgb(int(table[round(255 * min(max(fill, 0.0), 1.0))]))
            painter.fillRect(place, ground)
        if self.is_lettered:
            painter.setPen(QColor(theme.text_dim if isnan(fill) else ink_on(ground)))
            self._axis.draw(painter, place.adjusted(1, 0, -1, 0), strip.texts[position], CENTRE)
            painter.setPen(QColor(theme.line))
            painter.drawRect(place)

    def _paint_held(self, painter: QPainter, place: QRectF, share: float) -> None:
        if isnan(share):
            return
        if share < 1:
            draw_hatched(painter, place, self._theme)
        if share > 0:
            filled = QRectF(place)
            filled.setTop(place.bottom() - share * place.height())
            painter.fillRect(filled, QColor(self._theme.key))
        if self.is_lettered:
            painter.setPen(QColor(self._theme.line))
            painter.drawRect(place)

    def _paint_tokens(self, painter: QPainter) -> None:
        theme = self._theme
        step = 1 if self.is_lettered else every(self._column, 4 * self._axis.em)
        for position in self.positions_in_sight():
            if position % step or position in (self._query, self._mark):
                continue
            place = QRectF(self._left(position) + 1, 0, step * self._column - 2, self._head)
            painter.setPen(QColor(theme.text))
            align = CENTRE if step == 1 else LEFT
            self._axis.draw(painter, place, self._labels[position], align)
        for framed, ground, ink in (
            (self._mark, theme.key, theme.surface),
            (self._query, theme.accent, theme.on_accent),
        ):
            if framed is not None and framed in self.positions_in_sight():
                position, label = framed, self._labels[framed]
                wide = max(self._column, min(self._bold.width(label), 6 * self._axis.em) + 4)
                left = min(self._left(position), self.viewport().width() - wide)
                place = QRectF(left, 0, wide, self._head)
                painter.fillRect(place, QColor(ground))
                painter.setPen(QColor(ink))
                self._bold.draw(painter, place, label, CENTRE)

    def _paint_marks(self, painter: QPainter, index: int) -> None:
        """Frame the query's and the marked cells of a strip, its lane with them."""
        theme, strip = self._theme, self._strips[index]
        painter.setBrush(Qt.BrushStyle.NoBrush)
        thick = 2.0 if self.hasFocus() else 1.25
        for position, colour, style in (
            (self._mark, theme.key, Qt.PenStyle.DashLine),
            (self._query, theme.accent, Qt.PenStyle.SolidLine),
        ):
            if position is None or position not in self.positions_in_sight():
                continue
            place = self.cell_place(index, position)
            if strip.held is not None:
                place.setBottom(self.lane_place(index, position).bottom())
            place.setWidth(max(place.width(), 3.0))
            pen = QPen(QColor(colour), thick * theme.stroke, style)
            pen.setJoinStyle(Qt.PenJoinStyle.MiterJoin)
            painter.setPen(pen)
            painter.drawRect(place)
