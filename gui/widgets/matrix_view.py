"""One head as a large heatmap: rows are queries, columns are keys."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSizeF, Qt
from PySide6.QtGui import QColor, QMouseEvent, QPainter, QPen, QPolygonF, QWheelEvent
from PySide6.QtWidgets import QApplication, QWidget

from gui.widgets.axis_labels import AxisLabels
from gui.widgets.head_view import KEY_AXIS, QUERY_AXIS, Cell, HeadView
from gui.widgets.legend import Legend, draw_left_out, hatch_period
from gui.widgets.lettering import CENTRE, Lettering
from gui.widgets.matrix_geometry import MatrixGeometry, whole
from gui.widgets.pixels import colour, packed, pool, strokes
from gui.widgets.scales import MASKED, exact

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
    labels_left: float
    labels_height: float
    gutter: float
    legend: QRectF
    is_legend_upright: bool


class MatrixView(HeadView):
    """The heatmap of one head, with its axes, its legend and what it is zoomed to.

    The wheel zooms around the pointer, dragging moves, a double click shows all again.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._places: _Places | None = None
        self._geometry = MatrixGeometry(0, 0, 1.0, 0, 0, 1, 1)
        self._box = QRectF()  # of the cells, in logical pixels
        self._lit_axes: tuple[AxisLabels, ...] = ()  # rows and columns, for lit labels
        self._zoom: float | None = None  # device pixels a cell; None shows all
        self._wheel = 0
        self._pressed: QPointF | None = None
        self._dragged_from: tuple[int, int] | None = None
        self._hatching = strokes(1, 1, 1, 1)
        self._hatched_for: tuple[int, int, int, int] | None = None
        self.setAccessibleName("Attention of one head, heatmap")

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
        legend = self._legend()
        upright, flat = self._placed(legend, upright=True), self._placed(legend, upright=False)
        before = self._geometry
        fitting = [(places, self._fitted(places.area)) for places in (upright, flat)]
        places, self._geometry = max(fitting, key=lambda each: each[1].cell)
        if self._zoom is not None and self._zoom <= self._geometry.cell:
            self._zoom = None
        if self._zoom is not None:
            rows, columns = self._weights.shape
            part = MatrixGeometry.windowed(rows, columns, self._zoom, places.area)
            self._geometry = part.moved_to(before.x, before.y)
        self._places = places
        box, ratio = self._geometry, self._canvas.ratio
        self._box = QRectF(box.left / ratio, box.top / ratio, box.width / ratio, box.height / ratio)
        self._lit_axes = (
            self._row_axis(places, self._axis_bold),
            self._column_axis(places, self._axis_bold),
        )

    def _placed(self, legend: Legend, *, upright: bool) -> _Places:
        theme, ratio, axis = self._theme, self._canvas.ratio, self._axis
        unit, width, height = theme.unit, self.width(), self.height()
        gutter = 2.0 * unit
        top = self._header().bottom() + unit
        labels_left = _label_room(self._axis_bold, self._row_labels, 0.22 * width)
        labels_height = _label_room(self._axis_bold, self._column_labels, 0.22 * height)
        left = axis.line + unit + labels_left + gutter
        bottom = gutter + labels_height + axis.line + 2 * unit
        legend_width = legend.column_width(axis) if upright else 0
        legend_height = 0 if upright else legend.rows_height(axis) + unit
        right = legend_width + 3 * unit if upright else unit
        area = (
            round(left * ratio),
            round(top * ratio),
            max(1, floor((width - left - right) * ratio)),
            max(1, floor((height - top - bottom - legend_height) * ratio)),
        )
        if upright:  # beside the matrix, in the middle of what room there is
            drawn = area[2] if self._zoom is not None else self._fitted(area).width
            spare = (area[2] - drawn) // 2
            area = (area[0] + spare, area[1], drawn, area[3])
            box = QRectF((area[0] + drawn) / ratio + 2 * unit, top, legend_width, 0)
            box.setBottom(height - unit)
        else:
            box = QRectF(unit, height - legend_height, width - 2 * unit, legend_height)
        return _Places(area, labels_left, labels_height, gutter, box, upright)

    def _fitted(self, area: tuple[int, int, int, int]) -> MatrixGeometry:
        rows, columns = self._weights.shape
        largest = _LARGEST_CELL * self._axis.em * self._canvas.ratio
        return MatrixGeometry.fitted(rows, columns, area, largest)

    def _row_axis(self, places: _Places, lettering: Lettering) -> AxisLabels:
        box, g, ratio = self._box, self._geometry, self._canvas.ratio
        right = box.left() - places.gutter
        return AxisLabels(
            self._row_labels,
            lettering,
            box.top() - g.y / ratio,
            g.cell / ratio,
            box.top(),
            box.bottom(),
            right - places.labels_left,
            right,
        )

    def _column_axis(self, places: _Places, lettering: Lettering) -> AxisLabels:
        """The columns' labels, for a painter turned by −90°."""
        box, g, ratio = self._box, self._geometry, self._canvas.ratio
        right = -(box.bottom() + places.gutter)
        return AxisLabels(
            self._column_labels,
            lettering,
            box.left() - g.x / ratio,
            g.cell / ratio,
            box.left(),
            box.right(),
            right - places.labels_height,
            right,
        )

    # what stays

    def _draw(self) -> None:
        if not self._is_laid_out:
            self._canvas.pixels.fill(packed(self._theme.surface))
        self._draw_cells()
        with QPainter(self._canvas.image) as painter:
            if self._leave_first_out:
                self._draw_left_out_column(painter)
            self._draw_numbers(painter)
            if not self._is_laid_out and self._places is not None:
                self._draw_axes(painter, self._places)

    def _draw_cells(self) -> None:
        g, theme, ratio = self._geometry, self._theme, self._canvas.ratio
        index = pool(self._current_levels().index, g.row_spans, g.column_spans)
        box = self._canvas.pixels[g.top : g.top + g.height, g.left : g.left + g.width]
        period, stroke = round(hatch_period(theme) * ratio), max(1, round(ratio))
        wanted = (g.height, g.width, period, stroke)
        if self._hatched_for != wanted:
            self._hatching, self._hatched_for = np.ascontiguousarray(strokes(*wanted)), wanted
        colour(box, self._table, index, self._hatching)

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
        index = self._current_levels().index
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
                place, int(Qt.AlignmentFlag.AlignCenter), f"{self._weights[query, key]:.2f}"
            )

    def _draw_axes(self, painter: QPainter, places: _Places) -> None:
        theme, axis, box = self._theme, self._axis, self._box
        rows, columns = self._row_axis(places, axis), self._column_axis(places, axis)
        rows.draw(painter, theme.text)
        painter.setPen(QColor(theme.text_dim))
        title = rows.left - theme.unit - axis.line
        under = box.bottom() + places.gutter + places.labels_height + theme.unit
        middle = QRectF(0, under, max(box.width(), axis.width(KEY_AXIS) + 2), axis.line)
        middle.moveLeft(box.center().x() - middle.width() / 2)
        axis.draw(painter, middle, KEY_AXIS, CENTRE)
        painter.setPen(QColor(theme.line))
        painter.drawRect(box.adjusted(-1, -1, 0, 0))
        if rows.step > 1:
            for index in rows.shown():
                at = rows.middle(index)
                painter.drawLine(QPointF(rows.right + 2, at), QPointF(box.left() - 2, at))
        if columns.step > 1:
            for index in columns.shown():
                at = columns.middle(index)
                painter.drawLine(QPointF(at, box.bottom() + 2), QPointF(at, -columns.right - 2))
        self._draw_last_row_marker(painter, rows)
        legend = self._legend()
        if places.is_legend_upright:
            legend.draw_column(painter, axis, places.legend)
        else:
            legend.draw_rows(painter, axis, places.legend)
        painter.rotate(-90)
        columns.draw(painter, theme.text)
        painter.setPen(QColor(theme.text_dim))
        wide = max(box.height(), axis.width(QUERY_AXIS) + 2)
        beside = QRectF(-(box.center().y() + wide / 2), title, wide, axis.line)
        if beside.right() > -theme.unit:
            beside.moveRight(-theme.unit)
        axis.draw(painter, beside, QUERY_AXIS, CENTRE)

    def _draw_last_row_marker(self, painter: QPainter, rows: AxisLabels) -> None:
        """A triangle at the last query, which is the one that predicts."""
        last = len(self._row_labels) - 1
        if not rows.is_within(last):
            return
        half = self._theme.unit * 0.9
        tip = QPointF(self._box.left() - 1, rows.middle(last))
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(self._theme.query))
        back = tip - QPointF(1.7 * half, 0)
        painter.drawPolygon(QPolygonF([tip, back - QPointF(0, half), back + QPointF(0, half)]))
        painter.restore()

    # what follows the pointer and the selection

    def _draw_selection(self, painter: QPainter) -> None:
        theme = self._theme
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
        theme = self._theme
        one = self._cell_rect(*cell).intersected(self._box)
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
        self._draw_number(painter, *cell)

    def _draw_frames(
        self, painter: QPainter, frames: list[QRectF], colour: str, width: float
    ) -> None:
        """Draw frames around places, with a halo so that they show on every colour."""
        painter.setBrush(Qt.BrushStyle.NoBrush)
        out = width / 2 + 0.75  # the halo ends where the cells begin
        outside = [frame.adjusted(-out, -out, out, out) for frame in frames]
        for ink, stroke in ((self._theme.surface, width + 1.5), (colour, width)):
            pen = QPen(QColor(ink), stroke)
            pen.setJoinStyle(Qt.PenJoinStyle.MiterJoin)
            painter.setPen(pen)
            painter.drawRects(outside)

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

    def _number(self, query: int, key: int) -> tuple[QRectF, str]:
        """The box beside the cell, and the weight in it."""
        weight = self._weights[query, key]
        is_masked = not self._visible[query, key] and weight == 0
        text = "masked" if is_masked else exact(weight)
        unit, cell = self._theme.unit, self._cell_rect(query, key)
        wide = len(text) * self._body_bold.width("m" if is_masked else "0")  # never seen before
        size = QSizeF(wide + 3 * unit, self._body_bold.line + unit)
        place = QRectF(QPointF(cell.right() + 2 * unit, 0), size)
        place.moveTop(cell.center().y() - size.height() / 2)
        if place.right() > self.width():
            place.moveRight(cell.left() - 2 * unit)
        return place, text

    def _draw_number(self, painter: QPainter, query: int, key: int) -> None:
        theme = self._theme
        place, text = self._number(query, key)
        painter.fillRect(place, QColor(theme.surface))
        painter.setPen(QColor(theme.text))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRect(place)
        self._body_bold.draw_whole(painter, place.adjusted(1.5 * theme.unit, 0, 0, 0), text)

    def _marked(self, cell: Cell) -> list[QRectF]:
        """A band across and one down: few, small places repaint fastest."""
        if not self._lit_axes or not self._has(*cell):
            return []
        rows, columns = self._lit_axes
        number, _ = self._number(*cell)
        aside, one = 1.5 * rows.lettering.line, self._cell_rect(*cell)
        across = QRectF(rows.left - 2, one.center().y() - aside, 0, 2 * aside)
        across.setRight(one.right() + 4)
        down = QRectF(one.center().x() - aside, one.top() - 4, 2 * aside, 0)
        down.setBottom(4 - columns.left)
        around = one.adjusted(-4, -4, 4, 4).united(number.adjusted(-1, -1, 1, 1))
        return [across.united(around) if across.intersects(around) else across, down, around]

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


def _label_room(axis: Lettering, labels: Sequence[str], most: float) -> float:
    return min(max(axis.widest(labels) + 2, 2.5 * axis.em), 10 * axis.em, most)


def _overlap(axis: AxisLabels, one: int, other: int | None) -> bool:
    return other is not None and abs(axis.middle(one) - axis.middle(other)) < axis.lettering.line
