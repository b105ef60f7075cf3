"""The logit lens as a grid: a row for each depth, the output at the bottom; a column a position."""

from dataclasses import dataclass
from math import ceil, floor

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QImage,
    QKeyEvent,
    QLinearGradient,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import QWidget

from engine.answers.lens import Lens
from gui.theme import LIGHT, Theme
from gui.widgets.lens_text import LensTable
from gui.widgets.lettering import CENTRE, LEFT, RIGHT, Lettering, every
from gui.widgets.pixels import cover, packed, pool, sides, spans
from gui.widgets.scrolled_picture import STALE, PointedPicture

DEPTH_AXIS = "after ↓"
LEGEND = ("probability of the top token", "top token's p", "p")
RIGHT_MARK = ("bold, underlined: what really follows", "bold: really follows", "bold: follows")

_LEAST_COLUMN, _LARGEST_COLUMN = 4.6, 9.0  # ems
_HIGHEST_ROW = 3.0  # lines
_LETTERED = 2.2  # ems from which on a cell has room for letters
_NOT_READ, _NOT_FINITE = 254, 255  # levels that are no probabilities

Cell = tuple[int, int]  # depth, position


@dataclass(frozen=True)
class _Places:
    """Where things are, in logical pixels of the viewport; cells may be scrolled."""

    left: float  # where the columns begin, behind the names of the depths
    top: float  # where the rows begin, under the tokens
    width: float  # of the window on the columns
    height: float  # of the window on the rows
    column: float  # width of a cell
    row: float  # height of a cell
    is_short: bool  # whether depths have their short names


def shades(theme: Theme) -> NDArray[np.uint32]:
    """The colour of each level [256]: 0 to 253 are probabilities 0 to 1.

    The others are a position that has not been read, and what is no number.

    From the ground to the hue of the residual, which is what the lens reads.
    """
    low, high = (
        np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)], np.float64)
        for colour in (theme.surface, theme.residual)
    )
    share = np.linspace(0, 1, _NOT_READ)[:, None]
    red, green, blue = np.round(low + share * (high - low)).astype(np.uint32).T
    table = np.empty(256, np.uint32)
    table[:_NOT_READ] = 0xFF000000 | red << 16 | green << 8 | blue
    table[_NOT_READ] = packed(theme.raised)
    table[_NOT_FINITE] = packed(theme.bad)
    return table


def levels_of(lens: Lens) -> NDArray[np.uint8]:
    """The level of each cell [L+1, S]."""
    probability = lens.top_probability
    share = np.nan_to_num(probability.astype(np.float64))
    level = np.round(np.clip(share, 0, 1) * (_NOT_READ - 1)).astype(np.uint8)
    level[~np.isfinite(probability)] = _NOT_FINITE
    level[:, ~lens.known] = _NOT_READ
    return level


class LensGrid(PointedPicture[Cell]):
    """Each cell is its top token, shaded by that token's probability.

    Left, Right, Home and End ask for another position, Up and Down move among the depths; a click
    does both. Columns are wide enough to read, or as narrow as it takes to show all positions.
    """

    position_requested = Signal(int)
    pointed = Signal(int, int)  # depth and position that are explained now

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._table: LensTable | None = None
        self._sentence = ""
        self._level: NDArray[np.uint8] = np.zeros((0, 0), np.uint8)
        self._position: int | None = None
        self._depth: int | None = None  # None: the output
        self._shows_all = False
        self._overview: NDArray[np.uint32] = np.zeros((1, 1), np.uint32)
        self.setAccessibleName("Logit lens")
        for bar in (self.verticalScrollBar(), self.horizontalScrollBar()):
            bar.valueChanged.connect(self._scrolled)
        self.set_theme(LIGHT)

    # What to show

    def set_theme(self, theme: Theme) -> None:
        """Draw in another look."""
        self._theme = theme
        self._axis = Lettering(self.font(), theme.font_axis)
        self._bold = Lettering(self.font(), theme.font_axis, bold=True)
        self._body = Lettering(self.font(), theme.font_body)
        self._colours = shades(theme)
        self._lay_out()

    def set_empty(self, sentence: str) -> None:
        """Show a sentence instead of a lens."""
        self._table, self._sentence = None, sentence
        self._hovered = None
        self._lay_out()

    def set_table(self, table: LensTable) -> None:
        """Show this lens."""
        bar = self.horizontalScrollBar()
        was_at_end = bar.value() == bar.maximum()
        self._table = table
        self._level = levels_of(table.lens)
        if self._hovered is not None and not self._has(*self._hovered):
            self._hovered = None
        self._lay_out()
        if was_at_end:
            bar.setValue(bar.maximum())
        self._reveal()
        self._tell()

    def set_position(self, position: int | None) -> None:
        """Frame the column of the selected position and bring it into sight."""
        if position != self._position:
            self._position = position
            self._reveal()
            self._tell()

    def set_shows_all(self, shows_all: bool) -> None:  # noqa: FBT001
        """Make all positions fit into the width, or give tokens room to be read."""
        if shows_all != self._shows_all:
            self._shows_all = shows_all
            self._lay_out()
            self._reveal()

    # What is shown

    @property
    def cell(self) -> Cell | None:
        """Depth and position that keys have moved to; None without any."""
        if self._table is None or self._position is None or not len(self._table.lens):
            return None
        n_layer = self._table.lens.n_layer
        depth = n_layer if self._depth is None else min(self._depth, n_layer)
        return depth, min(self._position, len(self._table.lens) - 1)

    @property
    def pointed_cell(self) -> Cell | None:
        """The cell under the mouse, else the one that keys have moved to."""
        return self._hovered or self.cell

    def cell_place(self, depth: int, position: int) -> QRectF:
        """Where a cell lies in the viewport, in sight or not."""
        p = self._places
        left = p.left + position * p.column - self.horizontalScrollBar().value()
        top = p.top + depth * p.row - self.verticalScrollBar().value()
        return QRectF(left, top, p.column, p.row)

    def cell_text(self, depth: int, position: int) -> str:
        """What is written into a cell; "" where there is no room, or nothing read yet."""
        table = self._table
        if table is None or not self._is_lettered() or not table.lens.known[position]:
            return ""
        text = table.text(int(table.lens.top[depth, position]))
        return self._letters(depth, position).elided(text, self._places.column - self._theme.unit)

    def positions_in_sight(self) -> range:
        """The columns that are at least partly visible."""
        if self._table is None:
            return range(0)
        p, shift = self._places, self.horizontalScrollBar().value()
        first = max(0, floor(shift / p.column))
        return range(first, min(len(self._table.lens), ceil((shift + p.width) / p.column)))

    def depths_in_sight(self) -> range:
        """The rows that are at least partly visible."""
        if self._table is None:
            return range(0)
        p, shift = self._places, self.verticalScrollBar().value()
        first = max(0, floor(shift / p.row))
        return range(first, min(self._table.lens.n_layer + 1, ceil((shift + p.height) / p.row)))

    # Qt

    def sizeHint(self) -> QSize:
        """Some columns and rows."""
        return QSize(28, 18) * self._theme.font_axis

    def minimumSizeHint(self) -> QSize:
        """A column, and some rows."""
        return QSize(14, 9) * self._theme.font_axis

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Lay the grid out anew."""
        super().resizeEvent(event)
        self._lay_out()
        self._reveal()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Ask for another position, or move among the depths."""
        cell, table = self.cell, self._table
        if cell is None or table is None or event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier:
            event.ignore()
            return
        depth, position = cell
        last = len(table.lens) - 1
        places = {
            Qt.Key.Key_Left: position - 1,
            Qt.Key.Key_Right: position + 1,
            Qt.Key.Key_Home: 0,
            Qt.Key.Key_End: last,
        }
        depths = {Qt.Key.Key_Up: depth - 1, Qt.Key.Key_Down: depth + 1}
        key = Qt.Key(event.key())
        if key in places:
            wanted = min(max(places[key], 0), last)
            if wanted != position:
                self.position_requested.emit(wanted)
        elif key in depths:
            self._depth = min(max(depths[key], 0), table.lens.n_layer)
            self._hovered = None
            self._reveal()
            self._tell()
        else:
            event.ignore()

    def _click(self, at: Cell) -> None:
        self._depth = at[0]
        self._tell()
        self.position_requested.emit(at[1])

    def _at(self, place: QPointF) -> Cell | None:
        """Depth and position at a place in the viewport; None where there is no cell."""
        p = self._places
        x, y = place.x() - p.left, place.y() - p.top
        if self._table is None or not (0 <= x < p.width and 0 <= y < p.height):
            return None
        position = floor((x + self.horizontalScrollBar().value()) / p.column)
        depth = floor((y + self.verticalScrollBar().value()) / p.row)
        return (depth, position) if self._has(depth, position) else None

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw the axes, the cells in sight, the selected column and the legend."""
        theme, area, table = self._theme, QRectF(self.viewport().rect()), self._table
        with QPainter(self.viewport()) as painter:
            painter.fillRect(area, QColor(theme.surface))
            if table is None:
                painter.setPen(QColor(theme.text_dim))
                self._body.draw_in_middle(painter, area, self._sentence)
                self.frame_focus(painter, theme)
                return
            if self._is_stale:
                painter.setOpacity(STALE)
            p = self._places
            cells = QRectF(p.left - 1, p.top - 1, p.width + 2, p.height + 2)
            painter.setClipRect(cells)
            if self._is_lettered():
                self._paint_cells(painter)
            else:
                self._paint_overview(painter)
            self._paint_marks(painter, table)
            painter.setClipping(False)
            for side in sides(area, cells):  # of cells that are scrolled, or marked, beyond them
                cover(painter, side, theme.surface)
            self._paint_depths(painter, table)
            self._paint_tokens(painter, table)
            painter.setOpacity(1.0)
            self._paint_legend(painter, area)
            cell = self.cell if self._is_lettered() else None
            if cell is None or not cells.contains(self.cell_place(*cell).center()):
                self.frame_focus(painter, theme)

    # Moving

    def _has(self, depth: int, position: int) -> bool:
        lens = self._table.lens if self._table else None
        return lens is not None and 0 <= depth <= lens.n_layer and 0 <= position < len(lens)

    def _hover(self, cell: Cell | None) -> None:
        if cell != self._hovered:
            self._hovered = cell
            self.show_hand(can_click=cell is not None)
            self._tell()

    def _scrolled(self) -> None:
        self._hovered = None
        self._tell()

    def _reveal(self) -> None:
        cell = self.cell
        if cell is None:
            return
        p = self._places
        for bar, begin, size, room in (
            (self.horizontalScrollBar(), cell[1] * p.column, p.column, p.width),
            (self.verticalScrollBar(), cell[0] * p.row, p.row, p.height),
        ):
            if begin < bar.value():
                bar.setValue(floor(begin))
            elif begin + size > bar.value() + room:
                bar.setValue(ceil(begin + size - room))

    def _tell(self) -> None:
        self.viewport().update()
        if self.pointed_cell is not None:
            self.pointed.emit(*self.pointed_cell)

    # Places

    def _is_lettered(self) -> bool:
        p = self._places
        return p.column >= _LETTERED * self._axis.em and p.row >= self._axis.line

    def _lay_out(self) -> None:
        self._places = self._placed()
        p, table = self._places, self._table
        n_positions, n_depths = (len(table.lens), table.lens.n_layer + 1) if table else (0, 0)
        for bar, needed, room, step in (
            (self.horizontalScrollBar(), n_positions * p.column, p.width, p.column),
            (self.verticalScrollBar(), n_depths * p.row, p.height, p.row),
        ):
            # What is fitted may be off by rounding, which is nothing to scroll for.
            bar.setRange(0, max(0, ceil(needed - room - 0.01)))
            bar.setSingleStep(max(1, round(step)))
            bar.setPageStep(max(1, round(room)))
        self.viewport().update()

    def _placed(self) -> _Places:
        table, unit, axis = self._table, self._theme.unit, self._axis
        width, height = self.viewport().width(), self.viewport().height()
        n_positions, n_depths = (len(table.lens), table.lens.n_layer + 1) if table else (1, 1)
        is_short = width < 45 * axis.em
        names = [table.depth_name(d, short=is_short) for d in range(n_depths)] if table else [""]
        left = ceil(max(self._bold.widest(names), axis.width(DEPTH_AXIS))) + 2.0 * unit
        top = axis.line + unit
        foot = axis.line + 2 * unit
        room_x, room_y = max(1.0, width - left - 1), max(1.0, height - top - foot)
        column = room_x / n_positions
        row = min(room_y / n_depths, _HIGHEST_ROW * axis.line)
        if self._shows_all:
            column = min(column, _LARGEST_COLUMN * axis.em)
        else:
            least, most = _LEAST_COLUMN * axis.em, _LARGEST_COLUMN * axis.em
            column = float(floor(min(max(column, least), most)))
            row = float(max(floor(row), axis.line + 2))
        window_x, window_y = min(room_x, n_positions * column), min(room_y, n_depths * row)
        return _Places(left, top, window_x, window_y, column, row, is_short)

    # Drawing

    def _letters(self, depth: int, position: int) -> Lettering:
        is_right = self._table is not None and self._table.is_right(depth, position)
        return self._bold if is_right else self._axis

    def _paint_depths(self, painter: QPainter, table: LensTable) -> None:
        theme, p, axis = self._theme, self._places, self._axis
        painter.setPen(QColor(theme.text_dim))
        axis.draw(painter, QRectF(0, 0, p.left - theme.unit, p.top), DEPTH_AXIS, RIGHT)
        cell = self.cell
        step = every(p.row, axis.line)
        last = table.lens.n_layer
        for depth in self.depths_in_sight():
            # The output always has its name, and takes the place of the one that it would overlap.
            if depth != last and (depth % step or last - depth < step):
                continue
            middle = self.cell_place(depth, 0).center().y()
            place = QRectF(0, middle - axis.line / 2, p.left - theme.unit, axis.line)
            if place.bottom() > p.top + p.height + axis.line / 2 or middle < p.top:
                continue
            is_current = cell is not None and depth == cell[0]
            painter.setPen(QColor(theme.text if is_current else theme.text_dim))
            name = table.depth_name(depth, short=p.is_short)
            (self._bold if is_current else axis).draw(painter, place, name, RIGHT)

    def _paint_tokens(self, painter: QPainter, table: LensTable) -> None:
        """Above the columns, as many as have room beside each other."""
        theme, p, axis = self._theme, self._places, self._axis
        step = 1 if self._is_lettered() else every(p.column, 4 * axis.em)
        painter.save()
        painter.setClipRect(QRectF(p.left, 0, p.width, p.top))
        for position in self.positions_in_sight():
            if position % step:
                continue
            left = self.cell_place(0, position).left()
            place = QRectF(left + 1, 0, step * p.column - theme.unit, p.top)
            painter.setPen(QColor(theme.text_dim))
            axis.draw(painter, place, table.labels[position], CENTRE if step == 1 else LEFT)
        if self._position is not None and self._has(0, self._position):
            label = table.labels[self._position]
            wide = max(p.column, min(self._bold.width(label), 6 * axis.em) + theme.unit)
            place = QRectF(0, 0, wide, p.top)
            place.moveCenter(QPointF(self.cell_place(0, self._position).center().x(), p.top / 2))
            place.moveLeft(min(max(place.left(), p.left), p.left + max(0, p.width - wide)))
            painter.fillRect(place, QColor(theme.accent))
            painter.setPen(QColor(theme.on_accent))
            self._bold.draw(painter, place, label, CENTRE)
        painter.restore()

    def _paint_cells(self, painter: QPainter) -> None:
        theme = self._theme
        for depth in self.depths_in_sight():
            for position in self.positions_in_sight():
                place = self.cell_place(depth, position)
                colour = QColor.fromRgb(int(self._colours[self._level[depth, position]]))
                painter.fillRect(place, colour)
                painter.setPen(QColor(ink_on(colour)))
                letters, inside = self._letters(depth, position), place.adjusted(2, 0, -2, 0)
                text = self.cell_text(depth, position)
                letters.draw(painter, inside, text, CENTRE)
                if letters is self._bold:
                    wide = letters.width(text)
                    line = QRectF(0, inside.center().y() + letters.line / 2 - 2, wide, 1)
                    line.moveLeft(inside.center().x() - wide / 2)
                    painter.fillRect(line, QColor(ink_on(colour)))
                painter.setPen(QColor(theme.line))
                painter.drawRect(place)

    def _paint_overview(self, painter: QPainter) -> None:
        """All cells without letters; where several positions share a pixel, the largest."""
        p, ratio = self._places, self.devicePixelRatioF()
        n_depths, n_positions = self._level.shape
        wide = max(1, round(n_positions * p.column * ratio))
        rows = spans(n_depths, 1, 0, n_depths)
        columns = spans(n_positions, p.column * ratio, 0, wide)
        self._overview = np.ascontiguousarray(self._colours[pool(self._level, rows, columns)])
        line = self._overview.strides[0]
        image = QImage(self._overview.data, wide, n_depths, line, QImage.Format.Format_RGB32)
        place = QRectF(p.left, p.top, n_positions * p.column, n_depths * p.row)
        place.translate(-self.horizontalScrollBar().value(), -self.verticalScrollBar().value())
        painter.drawImage(place, image)
        painter.setPen(QColor(self._theme.line))
        painter.drawRect(place)

    def _paint_marks(self, painter: QPainter, table: LensTable) -> None:
        theme, p, cell = self._theme, self._places, self.cell
        painter.setBrush(Qt.BrushStyle.NoBrush)
        frames: list[tuple[QRectF, str, float]] = []
        if cell is not None:
            top, bottom = (self.cell_place(d, cell[1]) for d in (0, table.lens.n_layer))
            column = QRectF(top.topLeft(), bottom.bottomRight()).intersected(
                QRectF(p.left, p.top, p.width, p.height)
            )
            column.setWidth(max(column.width(), 3.0))
            frames.append((column, theme.accent, theme.stroke))
            if self.hasFocus() and self._is_lettered():
                frames.append((self.cell_place(*cell), theme.accent, 2 * theme.stroke))
        if self._hovered is not None:
            frames.append((self.cell_place(*self._hovered), theme.text, max(1.0, theme.stroke)))
        for place, colour, stroke in frames:
            for ink, wide in ((theme.surface, stroke + 1.5), (colour, stroke)):
                pen = QPen(QColor(ink), wide)
                pen.setJoinStyle(Qt.PenJoinStyle.MiterJoin)
                painter.setPen(pen)
                painter.drawRect(place)

    def _paint_legend(self, painter: QPainter, area: QRectF) -> None:
        """One line at the foot: what the shade means, from 0 to 1, and what bold means."""
        theme, axis, unit = self._theme, self._axis, self._theme.unit
        line = QRectF(
            unit, area.bottom() - axis.line - unit / 2, area.width() - 2 * unit, axis.line
        )
        bar_width, number = 6.0 * axis.em, axis.width("0") + unit
        least = bar_width + 2 * number + unit
        room = line.width() - least
        words = next((each for each in LEGEND if axis.width(each) + 2 + unit <= room), LEGEND[-1])
        painter.setPen(QColor(theme.text_dim))
        x = line.left()
        for text, wide in ((words, axis.width(words) + 2 + unit), ("0", number)):
            axis.draw(painter, QRectF(x, line.top(), wide, line.height()), text)
            x += wide
        bar = QRectF(x, line.top() + 2, bar_width, line.height() - 4)
        gradient = QLinearGradient(bar.topLeft(), bar.topRight())
        for at in (0.0, 1.0):
            gradient.setColorAt(at, QColor.fromRgb(int(self._colours[round((_NOT_READ - 1) * at)])))
        painter.fillRect(bar, gradient)
        painter.drawRect(bar)
        x = bar.right() + unit
        axis.draw(painter, QRectF(x, line.top(), number, line.height()), "1")
        x += number + 2 * unit
        place = QRectF(x, line.top(), line.right() - x, line.height())
        marks = RIGHT_MARK if self._is_lettered() else ()
        mark = next((each for each in marks if axis.width(each) + 2 <= place.width()), "")
        axis.draw(painter, place, mark)


def ink_on(ground: QColor) -> str:
    """Black or white, whichever stands out more on a ground (WCAG's relative luminance)."""
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in (ground.redF(), ground.greenF(), ground.blueF())
    ]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#000000" if (luminance + 0.05) / 0.05 >= 1.05 / (luminance + 0.05) else "#FFFFFF"
