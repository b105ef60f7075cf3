"""One head as a large heatmap: rows are queries, columns are keys."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRect, QRectF, QSizeF, Qt
from PySide6.QtGui import QColor, QMouseEvent, QPainter, QWheelEvent
from PySide6.QtWidgets import QApplication, QWidget

from gui.widgets.agreement import agreeing, agreeing_tokens
from gui.widgets.axis_labels import AxisLabels
from gui.widgets.cell_drawing import MOST_RUNS, Grid, draw_runs, runs
from gui.widgets.head_view import Cell, HeadView
from gui.widgets.legend import Legend, draw_left_out, hatch_period
from gui.widgets.matrix_axes import Margins, MatrixAxes, label_room
from gui.widgets.matrix_geometry import MatrixGeometry, roomy, whole
from gui.widgets.pixels import Canvas, Spans, colour_cells, packed, strokes
from gui.widgets.scales import MASKED

_WHEEL_STEP = 120  # an eighth of a degree each, as Qt counts
_ZOOM = 1.25
_LARGEST_CELL = 9.0  # in ems, when everything is shown
_LARGEST_ZOOM = 6.0
_NUMBERED_CELL = 3.0  # from here on a cell has room for its number
_MOST_NUMBERS = 400


@dataclass(frozen=True)
class _Places:
    """Where everything lies, in logical pixels except `area`, which is in device pixels."""

    area: tuple[int, int, int, int]  # left, top, width, height that the matrix may take
    margins: Margins
    legend: QRectF
    is_legend_upright: bool


class _Kept(NamedTuple):
    """How many tokens and how many labels, from the first on, the canvas shows as they are."""

    tokens: int
    labels: int


class _Pointed(NamedTuple):
    """A cell under the pointer: where it is, and the weight beside it."""

    cell: Cell
    place: QRectF
    number: QRectF
    text: str
    marked: QRect  # the number's place and its frame


@dataclass(frozen=True)
class _Ground:
    """What a picture is drawn on: while this is the same, only what is new is drawn into it."""

    canvas: Canvas
    places: _Places
    room: MatrixGeometry
    legend: Legend


class MatrixView(HeadView):
    """The heatmap of one head, with its axes, its legend and what it is zoomed to.

    The wheel zooms around the pointer, dragging moves, a double click shows all again.
    """

    _has_legend = True

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._places: _Places | None = None
        self._geometry = MatrixGeometry(0, 0, 1.0, 0, 0, 1, 1)
        self._box = QRectF()  # of the cells, in logical pixels
        self._room = QRectF()  # of these and of those that there is room for
        self._ground: _Ground | None = None  # None: nothing on the canvas can be kept
        self._kept = _Kept(0, 0)
        self._widest = 0.0  # of the labels drawn
        self._more_labels: Sequence[str] = ()  # of another matrix that must have the same places
        self._axes: MatrixAxes | None = None
        self._lit_axes: tuple[AxisLabels, ...] = ()  # rows and columns, for lit labels
        self._zoom: float | None = None  # device pixels a cell; None shows all
        self._wheel = 0
        self._pressed: QPointF | None = None
        self._dragged_from: tuple[int, int] | None = None
        self._strokes = np.zeros((1, 1), np.bool_)
        self._pointed: _Pointed | None = None  # None: to be found anew
        self._placed_for: tuple[object, _Places] | None = None
        self._hatched_for: tuple[int, int, int, int] | None = None
        self.setAccessibleName("Attention of one head, heatmap")

    def set_matrix(
        self,
        weights: NDArray[np.float32],
        visible: NDArray[np.bool_],
        row_labels: Sequence[str],
        column_labels: Sequence[str],
        n_same: int = 0,
    ) -> None:
        """Show a matrix, as every view of a head does; only what is new is drawn.

        Raises:
            ValueError: the shapes or the numbers of labels disagree.
        """
        ground, kept, extent = self._ground, self._kept, self._extent
        old = self._weights, self._visible
        names = self._row_labels, self._column_labels
        super().set_matrix(weights, visible, row_labels, column_labels, n_same)
        if ground is None or len(row_labels) != len(column_labels):
            return
        n_same = n_same or agreeing_tokens(old, (weights, visible))
        tokens = min(kept.tokens, n_same, len(row_labels))
        labels = min(kept.labels, agreeing(names[0], self._row_labels))
        if row_labels is not column_labels:
            labels = min(labels, agreeing(names[1], self._column_labels))
        self._ground, self._kept = ground, _Kept(tokens, labels)
        if extent is not None:
            self._extent = extent.continued(tokens, weights)

    def reset_view(self) -> None:
        """Show all cells."""
        self._zoom = None
        self._redraw(layout=True)

    @property
    def is_zoomed(self) -> bool:
        """Whether only a part may be shown."""
        return self._zoom is not None

    def cell_rect(self, query: int, key: int) -> QRectF:
        """Where a cell is drawn, in logical pixels; outside the widget if it is not shown."""
        self._prepare()
        return self._cell_rect(query, key)

    def _cell_rect(self, query: int, key: int) -> QRectF:
        top, height = self._geometry.row(query)
        left, width = self._geometry.column(key)
        ratio = self._canvas.ratio
        return QRectF(left / ratio, top / ratio, width / ratio, height / ratio)

    def cell_at(self, place: QPointF) -> Cell | None:
        """Query and key at a logical pixel; None where there is no cell."""
        self._prepare()
        if self._is_empty:
            return None
        ratio = self._canvas.ratio
        return self._geometry.cell_at(place.x() * ratio, place.y() * ratio)

    # layout

    def _lay_out(self) -> None:
        known = self._kept.labels if self._ground is not None else 0
        fresh = (*self._row_labels[known:], *self._column_labels[known:], *self._more_labels)
        self._widest = max(self._widest if known else 0.0, self._axis_bold.widest(fresh))
        self._pointed = None
        before, rows, columns = self._geometry, *self._weights.shape
        places, self._geometry = self._placed_best()
        if self._zoom is not None and self._zoom <= self._geometry.cell:
            self._zoom = None
        if self._zoom is not None:
            part = MatrixGeometry.windowed(rows, columns, self._zoom, places.area)
            self._geometry = part.moved_to(before.x, before.y)
        self._places = places
        self._box = self._logical(self._geometry)
        self._room = self._box if self._zoom is not None else self._logical(self._geometry.room)
        g, ratio = self._geometry, self._canvas.ratio
        self._axes = MatrixAxes.around(
            self._room,
            places.margins,
            (self._row_labels, self._column_labels),
            (self._room.top() - g.y / ratio, self._room.left() - g.x / ratio, g.cell / ratio),
            (self._theme, self._axis),
        )
        self._lit_axes = self._axes.lit(self._axis_bold)

    def _placed_best(self) -> tuple[_Places, MatrixGeometry]:
        """The form of the legend that leaves cells most room, and the cells; most steps keep it."""
        legend, (rows, columns) = self._legend(), self._weights.shape
        key = (
            *(legend, self._widest, self._canvas.size, self._axis, self._zoom is None),
            *(self._names_axes(), roomy(rows), roomy(columns)),
        )
        if self._placed_for is not None and self._placed_for[0] == key:
            places = self._placed_for[1]
            return places, self._fitted(places.area)
        forms = [self._placed(legend, upright=upright) for upright in self._legend_forms()]
        fitting = [(places, self._fitted(places.area)) for places in forms]
        best = max(fitting, key=lambda each: each[1].cell)
        self._placed_for = key, best[0]
        return best

    def _legend_forms(self) -> tuple[bool, ...]:
        """Whether upright, for each form that may be tried."""
        return (True, False) if self._has_legend else (False,)

    def _names_axes(self) -> bool:
        """Whether there is room for what the axes are called."""
        return True

    def _logical(self, g: MatrixGeometry) -> QRectF:
        ratio = self._canvas.ratio
        return QRectF(g.left / ratio, g.top / ratio, g.width / ratio, g.height / ratio)

    def _placed(self, legend: Legend, *, upright: bool) -> _Places:
        theme, ratio, axis = self._theme, self._canvas.ratio, self._axis
        unit, width, height = theme.unit, self.width(), self.height()
        top = self._header().bottom() + unit
        margins = Margins(
            label_room(axis, self._widest, 0.22 * width, 4),  # the keys' name stands below
            label_room(axis, self._widest, 0.22 * height),
            2.0 * unit,
            axis.line if self._names_axes() else 0.0,
        )
        left = margins.names + unit + margins.labels_left + margins.gutter
        bottom = margins.gutter + margins.labels_below + unit
        legend_width = legend.column_width(axis) if upright else 0
        legend_height = 0 if upright or not self._has_legend else legend.rows_height(axis) + unit
        right = legend_width + 3 * unit if upright else unit
        area = (
            round(left * ratio),
            round(top * ratio),
            max(1, floor((width - left - right) * ratio)),
            max(1, floor((height - top - bottom - legend_height) * ratio)),
        )
        if upright:  # beside the matrix, in the middle of what room there is
            drawn = area[2] if self._zoom is not None else self._fitted(area).room.width
            spare = (area[2] - drawn) // 2
            area = (area[0] + spare, area[1], drawn, area[3])
            box = QRectF((area[0] + drawn) / ratio + 2 * unit, top, legend_width, 0)
            box.setBottom(height - unit)
        else:
            box = QRectF(unit, height - legend_height, width - 2 * unit, legend_height)
        return _Places(area, margins, box, upright)

    def _fitted(self, area: tuple[int, int, int, int]) -> MatrixGeometry:
        rows, columns = self._weights.shape
        largest = _LARGEST_CELL * self._axis.em * self._canvas.ratio
        return MatrixGeometry.fitted(rows, columns, area, largest)

    # what stays

    def _redraw(self, *, layout: bool) -> None:
        self._ground = self._pointed = None
        super()._redraw(layout=layout)

    def _draw(self) -> None:
        if self._places is None or self._axes is None:
            return
        g, axes = self._geometry, self._axes
        ground = None
        if self._zoom is None and self._weights.size > _MOST_NUMBERS:
            ground = _Ground(self._canvas, self._places, g.room, self._legend())
        is_fresh = ground is None or ground != self._ground
        kept = _Kept(0, 0) if is_fresh else self._kept
        if is_fresh:
            self._canvas.pixels.fill(packed(self._theme.surface))
        else:
            self._blank_beyond(g)
        self._draw_cells(kept.tokens)
        with QPainter(self._canvas.image) as painter:
            self._draw_on_cells(painter)
            if is_fresh:
                self._draw_around(painter)
            else:
                axes.blank_labels(painter, kept.labels)
            axes.draw_labels(painter, kept.labels)
        self._ground, self._kept = ground, _Kept(*self._weights.shape)

    def _draw_pixels(self) -> None:
        self._canvas.pixels.fill(packed(self._theme.surface))
        self._draw_cells(0)

    def _draw_rectangles(self, painter: QPainter) -> bool:
        """Draw the cells in sight; not where several share a pixel, nor where they are many."""
        g, ratio = self._geometry, self._canvas.ratio
        if g.cell < 1:
            return False
        rows, columns = g.row_spans.start, g.column_spans.start
        first, last = int(rows[0]), int(rows[-1]) + 1
        left, right = int(columns[0]), int(columns[-1]) + 1
        cells = runs(self._levels(first, last)[:, left:right])
        if len(cells) > MOST_RUNS:
            return False
        edges = [g.row(row)[0] for row in range(first, last)]
        sides = [g.column(column)[0] for column in range(left, right)]
        grid = Grid(
            [max(g.top, at) / ratio for at in (*edges, g.top + g.height)],
            [max(g.left, at) / ratio for at in (*sides, g.left + g.width)],
        )
        draw_runs(painter, cells, grid, self._table, self._theme)
        return True

    def _draw_lines(self, painter: QPainter) -> None:
        if self._axes is not None:
            self._draw_on_cells(painter)
            self._draw_around(painter)
            self._axes.draw_labels(painter, 0)

    def _draw_on_cells(self, painter: QPainter) -> None:
        if self._leave_first_out:
            self._draw_left_out_column(painter)
        self._draw_numbers(painter)

    def _draw_around(self, painter: QPainter) -> None:
        if self._axes is not None and self._places is not None:
            self._axes.draw_frame(painter)
            self._draw_legend(painter, self._places)

    def _blank_beyond(self, g: MatrixGeometry) -> None:
        """Clear the room that is without cells, where there may have been some."""
        room, blank = g.room, packed(self._theme.surface)
        place = self._canvas.pixels[g.top : g.top + room.height, g.left : g.left + room.width]
        place[g.height :] = blank
        place[:, g.width :] = blank

    def _draw_cells(self, n_kept: int) -> None:
        """Draw all cells; if the first tokens' are kept, the later rows and, masked, columns."""
        g = self._geometry
        box = self._canvas.pixels[g.top : g.top + g.height, g.left : g.left + g.width]
        hatching, columns = self._hatching(), g.column_spans
        top = 0 if not n_kept else max(0, int(n_kept * g.cell) - 1)  # it may share a pixel
        rows = g.row_spans.part(top, g.height)
        if len(rows.start):
            first = int(rows.start[0])
            index = self._levels(first, g.n_rows)
            lines = Spans(rows.start - first, rows.stop - first)
            colour_cells(box[top:], self._table, index, lines, columns, hatching[top:])
        if top:
            left = int(np.searchsorted(columns.start, n_kept))
            masked, hatch = self._table[MASKED], self._table[256 + MASKED]
            box[:top, left:] = np.where(hatching[:top, left:], hatch, masked)

    def _hatching(self) -> NDArray[np.bool_]:
        """Which of the room's pixels are on the strokes."""
        room, theme, ratio = self._geometry.room, self._theme, self._canvas.ratio
        g = self._geometry if self._zoom is not None else room
        period, stroke = round(hatch_period(theme) * ratio), max(1, round(ratio))
        wanted = (g.height, g.width, period, stroke)
        if self._hatched_for != wanted:
            self._strokes, self._hatched_for = strokes(*wanted) > 0, wanted
        return self._strokes[: self._geometry.height, : self._geometry.width]

    def _draw_left_out_column(self, painter: QPainter) -> None:
        box, ratio = self._box, self._canvas.ratio
        left, width = self._geometry.column(0)
        strip = QRectF(left / ratio, box.top(), width / ratio, box.height()).intersected(box)
        if not strip.isEmpty():
            draw_left_out(painter, strip, self._theme)

    def _draw_numbers(self, painter: QPainter) -> None:
        """Write each weight into its cell, where cells are large."""
        g, ratio = self._geometry, self._canvas.ratio
        if g.cell / ratio < _NUMBERED_CELL * self._axis.em or self._weights.size > _MOST_NUMBERS:
            return
        index = self._levels(0, g.n_rows)
        painter.setFont(self._axis.font)
        for query, key in np.argwhere(index != MASKED):
            row, column = g.row(query), g.column(key)
            place = QRectF(column[0] / ratio, row[0] / ratio, column[1] / ratio, row[1] / ratio)
            if not self._box.contains(place) or (self._leave_first_out and key == 0):
                continue
            ground = QColor.fromRgb(int(self._table[index[query, key]]))
            is_bright = ground.red() * 0.3 + ground.green() * 0.59 + ground.blue() * 0.11 > 140
            painter.setPen(QColor("#000000" if is_bright else "#FFFFFF"))
            painter.drawText(
                place, int(Qt.AlignmentFlag.AlignCenter), self._rounded(self._weights[query, key])
            )

    def _rounded(self, weight: np.float32) -> str:
        """A weight as it is written into its cell."""
        return f"{weight:.2f}"

    def _draw_legend(self, painter: QPainter, places: _Places) -> None:
        legend = self._legend()
        if not self._has_legend:
            return
        if places.is_legend_upright:
            legend.draw_column(painter, self._axis, places.legend)
        else:
            legend.draw_rows(painter, self._axis, places.legend)

    # what follows the pointer and the selection

    def _draw_selection(self, painter: QPainter) -> None:
        theme = self._theme
        if self._axes is not None:
            self._axes.draw_last_row_marker(painter)
        frames = self._strips(self._query, self._key)
        self._draw_frames(painter, frames, theme.accent, theme.stroke)
        for axis, chosen in zip(self._lit_axes, (self._query, self._key), strict=True):
            if chosen is not None:
                axis.draw_lit(
                    painter,
                    chosen,
                    ground=theme.accent,
                    paper=theme.surface,
                    ink=theme.on_accent,
                )
            painter.rotate(-90)  # for the columns

    def _draw_hover(self, painter: QPainter, cell: Cell) -> None:
        theme, pointed_at = self._theme, self._pointed_at(cell)
        one = pointed_at.place.intersected(self._box)
        across, down = QRectF(one), QRectF(one)  # from the labels to the cell
        across.setLeft(self._box.left())
        down.setBottom(self._box.bottom())
        self._draw_frames(painter, [across, down], theme.text, max(1.0, theme.stroke / 1.5))
        selected = (self._query, self._key)
        for axis, chosen, pointed in zip(self._lit_axes, selected, cell, strict=True):
            if chosen is not None and _overlap(axis, chosen, pointed):
                painter.fillRect(axis.covered(chosen), QColor(theme.surface))
            axis.draw_lit(
                painter, pointed, ground=theme.text, paper=theme.surface, ink=theme.surface
            )
            painter.rotate(-90)  # for the columns
        painter.resetTransform()
        self._draw_number(painter, pointed_at)

    def _draw_frames(
        self, painter: QPainter, frames: list[QRectF], colour: str, width: float
    ) -> None:
        """Draw frames around places, with a halo so that they show on every colour.

        As bars of whole pixels, which Qt fills in half the time that its pens take.
        """
        ratio = self._canvas.ratio
        halo, line = max(1, round(0.75 * ratio)) / ratio, max(1, round(width * ratio)) / ratio
        rings = (self._theme.surface, 0.0, line + 2 * halo), (colour, halo, line + halo)
        painter.setPen(Qt.PenStyle.NoPen)
        for ink, near, far in rings:
            painter.setBrush(QColor(ink))
            painter.drawRects([bar for frame in frames for bar in _ring(frame, near, far)])
        painter.setBrush(Qt.BrushStyle.NoBrush)

    def _strips(self, query: int | None, key: int | None) -> list[QRectF]:
        box, g, ratio = self._box, self._geometry, self._canvas.ratio
        strips = []
        if query is not None and 0 <= query < g.n_rows:
            top, height = g.row(query)
            strips.append(QRectF(box.left(), top / ratio, box.width(), height / ratio))
        if key is not None and 0 <= key < g.n_columns:
            left, width = g.column(key)
            strips.append(QRectF(left / ratio, box.top(), width / ratio, box.height()))
        return [strip.intersected(box) for strip in strips if strip.intersects(box)]

    def _pointed_at(self, cell: Cell) -> _Pointed:
        """Where a cell and its weight are; as long as the pointer stays, they are found once."""
        if self._pointed is None or self._pointed.cell != cell:
            place, text = self._cell_rect(*cell), self._told(*cell)
            number = self._beside(place, text)
            marked = _covering(number.left(), number.top(), number.right(), number.bottom())
            self._pointed = _Pointed(cell, place, number, text, marked)
        return self._pointed

    def _beside(self, cell: QRectF, text: str) -> QRectF:
        """The box for a weight beside its cell."""
        unit = self._theme.unit
        is_number = any(map(str.isdigit, text))
        wide = len(text) * self._body_bold.width("0" if is_number else "m")  # never seen before
        size = QSizeF(wide + 3 * unit, self._body_bold.line + unit)
        place = QRectF(QPointF(cell.right() + 2 * unit, 0), size)
        place.moveTop(cell.center().y() - size.height() / 2)
        if place.right() > self.width():
            place.moveRight(cell.left() - 2 * unit)
        if place.left() < 0:  # no room on either side: above it, or below
            place.moveLeft(max(0.0, min(cell.left(), self.width() - 1 - place.width())))
            place.moveBottom(cell.top() - 2 * unit)
            if place.top() < 0:
                place.moveTop(cell.bottom() + 2 * unit)
        return place

    def _draw_number(self, painter: QPainter, pointed: _Pointed) -> None:
        theme, place = self._theme, pointed.number
        painter.fillRect(place, QColor(theme.surface))
        painter.setPen(QColor(theme.text))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRect(place)
        self._body_bold.draw_whole(painter, place.adjusted(1.5 * theme.unit, 0, 0, 0), pointed.text)

    def _marked(self, cell: Cell) -> list[QRect]:
        """A band across and one down: few, small places repaint fastest."""
        if not self._lit_axes or not self._has(*cell):
            return []
        rows, columns = self._lit_axes
        pointed = self._pointed_at(cell)
        place, aside = pointed.place, 1.5 * rows.lettering.line
        left, top, right, bottom = place.left(), place.top(), place.right(), place.bottom()
        row, column = (top + bottom) / 2, (left + right) / 2
        across = _covering(rows.left - 2, row - aside, right + 4, row + aside)
        down = _covering(column - aside, top - 4, column + aside, 4 - columns.left)
        return [across.united(pointed.marked), down]

    def _selection_moved(self) -> None:
        if self._zoom is None or self._is_empty or not self._is_laid_out:
            return
        rows, columns = self._weights.shape
        query = self._query if self._query is not None and self._query < rows else None
        key = self._key if self._key is not None and self._key < columns else None
        self._show(self._geometry.showing(query, key))

    def _show(self, geometry: MatrixGeometry) -> None:
        """Draw another part of the matrix."""
        if geometry != self._geometry:
            self._geometry = geometry
            self._redraw(layout=True)

    # mouse

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Zoom around the pointer."""
        self._prepare()
        if self._is_empty or self._places is None:
            event.ignore()
            return
        self._wheel += event.angleDelta().y()
        steps = int(self._wheel / _WHEEL_STEP)
        self._wheel -= steps * _WHEEL_STEP
        if steps:
            self._zoom_by(steps, event.position())
        event.accept()

    def _zoom_by(self, steps: int, place: QPointF) -> None:
        ratio, old = self._canvas.ratio, self._geometry.cell
        new = whole(old * _ZOOM**steps)
        if new == old:
            new = old + (1 if steps > 0 else -1)
        new = min(new, max(old, whole(_LARGEST_ZOOM * self._axis.em * ratio)))
        was_whole = self._zoom is None
        if was_whole and steps < 0:
            return
        self._zoom = new
        at = (place.x() * ratio, place.y() * ratio)
        column = (at[0] - self._geometry.left + self._geometry.x) / old
        row = (at[1] - self._geometry.top + self._geometry.y) / old
        self._lay_out()  # the window onto the matrix may grow
        if self._zoom is not None:
            g = self._geometry
            self._geometry = g.moved_to(
                round(column * g.cell - (at[0] - g.left)), round(row * g.cell - (at[1] - g.top))
            )
        self._redraw(layout=True)
        self._hover(self.cell_at(place))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Begin a click or a drag."""
        if event.button() == Qt.MouseButton.LeftButton:
            self._prepare()
            self._pressed = event.position()
            self._dragged_from = None

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Move the part shown while the button is down, else hover."""
        if self._pressed is None:
            self._hover(self.cell_at(event.position()))
            return
        moved = event.position() - self._pressed
        if self._dragged_from is None:
            if moved.manhattanLength() < QApplication.startDragDistance():
                return
            self._dragged_from = (self._geometry.x, self._geometry.y)
            self._hover(None)
        ratio = self._canvas.ratio
        x, y = self._dragged_from
        self._show(
            self._geometry.moved_to(round(x - moved.x() * ratio), round(y - moved.y() * ratio))
        )

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Click, unless it was a drag."""
        if event.button() != Qt.MouseButton.LeftButton or self._pressed is None:
            return
        was_drag = self._dragged_from is not None
        self._pressed = self._dragged_from = None
        cell = self.cell_at(event.position())
        if not was_drag and cell is not None:
            self.cell_clicked.emit(*cell)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Show all cells again."""
        if event.button() == Qt.MouseButton.LeftButton:
            self.reset_view()


def _overlap(axis: AxisLabels, one: int, other: int | None) -> bool:
    return other is not None and abs(axis.middle(one) - axis.middle(other)) < axis.lettering.line


def _covering(left: float, top: float, right: float, bottom: float) -> QRect:
    """The whole pixels of a place, and one more on each side."""
    x, y = floor(left) - 1, floor(top) - 1
    return QRect(x, y, ceil(right) + 1 - x, ceil(bottom) + 1 - y)


def _ring(frame: QRectF, near: float, far: float) -> tuple[QRectF, ...]:
    """Four bars around a place, from so far outside it to so far."""
    left, top, width, height = frame.left(), frame.top(), frame.width(), frame.height()
    thick, wide, high = far - near, width + 2 * far, height + 2 * near
    return (
        QRectF(left - far, top - far, wide, thick),
        QRectF(left - far, top + height + near, wide, thick),
        QRectF(left - far, top - near, thick, high),
        QRectF(left + width + near, top - near, thick, high),
    )
