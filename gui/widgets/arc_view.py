"""One head as links: from the selected query to the keys that it looks at."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QPointF, QRect, QRectF, Qt
from PySide6.QtGui import QColor, QMouseEvent, QPainter, QPainterPath, QPen
from PySide6.QtWidgets import QWidget

from gui.widgets.axis_labels import AxisLabels
from gui.widgets.head_view import KEY_AXIS, QUERY_AXIS, Cell, HeadView
from gui.widgets.legend import draw_left_out, hatch_period
from gui.widgets.lettering import LEFT, RIGHT, Lettering
from gui.widgets.pixels import packed, pool, spans, strokes
from gui.widgets.scales import HIGHEST, LOWEST, MASKED, NOT_FINITE, exact

_TALLEST_ROW = 2.0  # in lines
_WIDEST_LINK = 6.0  # in strokes
_MASKED_LABEL = 0.6  # opacity
_FAINTEST = 0.22  # opacity of the weakest link drawn
_NUMBERED = 5  # how many of the strongest have their number beside them
_WIDE = 40  # ems of width from which on the legend stands beside the links
_NUMBER = "0.0000"


@dataclass(frozen=True)
class _Places:
    """Where everything lies, in logical pixels."""

    queries: AxisLabels
    keys: AxisLabels
    legend: QRectF
    is_legend_upright: bool

    @property
    def start(self) -> float:
        """Where links begin."""
        return self.queries.right

    @property
    def rail(self) -> QRectF:
        """The strip of the keys' colours, where links end."""
        keys = self.keys
        wide = keys.lettering.em * 0.8
        height = keys.cell * len(keys.labels)
        return QRectF(keys.left - 1.5 * wide, keys.start, wide, height)


class ArcView(HeadView):
    """Queries on the left, keys on the right, links from the selected query between them.

    All tokens are always in view: where there are too many for their labels, the strongest
    keys keep theirs. A click on the left asks for another query, on the right for a key.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._places: _Places | None = None
        self._linked_query: int | None = None
        self._named_key: int | None = None
        self._pointed_query: int | None = None
        self.setAccessibleName("Attention of one head, links")

    def query_at(self, place: QPointF) -> int | None:
        """The query on the left at a logical pixel."""
        places = self._laid_out()
        if places is None or place.x() > places.start:
            return None
        return _row_at(places.queries, place.y())

    def key_at(self, place: QPointF) -> int | None:
        """The key on the right at a logical pixel, from half of the links' way on."""
        places = self._laid_out()
        if places is None or not (
            (places.start + places.rail.left()) / 2 < place.x() < self._right(places)
        ):
            return None
        return _row_at(places.keys, place.y())

    # layout

    def _laid_out(self) -> _Places | None:
        self._prepare()
        return None if self._is_empty else self._places

    def _right(self, places: _Places) -> float:
        numbers = self._axis_bold.width(_NUMBER) + 2 * self._theme.unit
        return places.keys.right + numbers

    def _lay_out(self) -> None:
        axis, unit = self._axis, self._theme.unit
        legend = self._legend()
        is_upright = self.width() > _WIDE * axis.em
        right, bottom = self.width() - 2.0 * unit, self.height() - 1.5 * unit
        if is_upright:
            wide = legend.column_width(axis)
            place = QRectF(right - wide, self._header().bottom() + 2 * unit, wide, 0)
            place.setBottom(bottom)
            right = place.left() - 3 * unit
        else:
            high = legend.rows_height(axis)
            place = QRectF(unit, bottom - high, self.width() - 2 * unit, high)
            bottom = place.top() - unit
        top = self._header().bottom() + axis.line + 2 * unit
        queries, keys = self._weights.shape
        cell = min((bottom - top) / max(queries, keys), _TALLEST_ROW * axis.line)
        cell = max(cell, 1 / self._canvas.ratio / 8)
        room = min(11.0 * axis.em, 0.24 * right)
        left_room = max(self._axis_bold.widest(self._row_labels), 3 * axis.em)
        right_room = max(self._axis_bold.widest(self._column_labels), 3 * axis.em)
        numbers = self._axis_bold.width(_NUMBER) + 2 * unit
        first = AxisLabels(
            self._row_labels,
            axis,
            top,
            cell,
            top - 1,
            bottom + 1,
            2.0 * unit,
            2.0 * unit + min(left_room, room) + 2,
            RIGHT,
        )
        second = replace(
            first,
            labels=self._column_labels,
            left=right - numbers - min(right_room, room) - 2,
            right=right - numbers,
            align=LEFT,
        )
        self._places = _Places(first, second, place, is_upright)

    # what stays

    def _draw(self) -> None:
        self._linked_query, self._named_key = self._chosen_query(), self._key
        self._draw_pixels()
        with QPainter(self._canvas.image) as painter:
            self._draw_lines(painter)

    def _draw_pixels(self) -> None:
        self._canvas.pixels.fill(packed(self._theme.surface))
        levels = self._linked_levels()
        if self._places is not None and len(levels):
            self._draw_rail(self._places.rail, levels)

    def _draw_lines(self, painter: QPainter) -> None:
        places, query, levels = self._places, self._linked_query, self._linked_levels()
        if places is None:
            return
        self._draw_titles(painter, places)
        places.queries.draw(painter, self._theme.text)
        self._draw_keys(painter, places, levels)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if query is not None:
            self._draw_links(painter, places, query, levels)

    def _linked_levels(self) -> NDArray[np.uint8]:
        """The indices of the colours of the linked query's row [S]; none without one."""
        query = self._linked_query
        if query is None:
            return np.zeros(0, np.uint8)
        levels: NDArray[np.uint8] = self._levels(query, query + 1)[0]
        if self._leave_first_out:
            levels[0] = MASKED
        return levels

    def _draw_titles(self, painter: QPainter, places: _Places) -> None:
        axis, theme = self._axis, self._theme
        legend = self._legend()
        if places.is_legend_upright:
            legend.draw_column(painter, axis, places.legend)
        else:
            legend.draw_rows(painter, axis, places.legend)
        painter.setPen(QColor(theme.text_dim))
        over = places.queries.start - axis.line - theme.unit
        wide = axis.width(QUERY_AXIS) + 2
        left = max(2.0 * theme.unit, places.queries.right - wide)
        axis.draw(painter, QRectF(left, over, wide, axis.line), QUERY_AXIS)
        wide = axis.width(KEY_AXIS) + 2
        left = min(places.rail.left(), self._right(places) - wide)
        axis.draw(painter, QRectF(left, over, wide, axis.line), KEY_AXIS)

    def _draw_rail(self, rail: QRectF, levels: NDArray[np.uint8]) -> None:
        """The row of weights itself, upright, in the colours of the heatmap."""
        ratio, theme = self._canvas.ratio, self._theme
        top, left = round(rail.top() * ratio), round(rail.left() * ratio)
        height, width = max(1, round(rail.height() * ratio)), round(rail.width() * ratio)
        rows = spans(len(levels), height / len(levels), 0, height)
        index = pool(levels[:, np.newaxis], rows, spans(1, width, 0, width))
        place = self._canvas.pixels[top : top + height, left : left + width]
        index = index[: place.shape[0], : place.shape[1]]
        period, stroke = round(hatch_period(theme) * ratio), max(1, round(ratio))
        hatching = strokes(place.shape[0], place.shape[1], period, stroke)
        place[:] = self._table.take(hatching + index)

    def _draw_keys(self, painter: QPainter, places: _Places, levels: NDArray[np.uint8]) -> None:
        theme, keys = self._theme, places.keys
        if len(levels) and self._leave_first_out:
            first = QRectF(places.rail)
            first.setHeight(max(1.0, keys.cell))
            draw_left_out(painter, first, theme)
        if len(levels):
            painter.setPen(QColor(theme.line))
            painter.drawRect(places.rail)
        named = self._named(keys, levels)
        self._places = replace(places, keys=replace(keys, only=tuple(named)))
        for index in named:
            is_seen = not len(levels) or levels[index] != MASKED
            colour = QColor(theme.text if is_seen else theme.text_dim)
            colour.setAlphaF(1 if is_seen else _MASKED_LABEL)
            painter.setPen(colour)
            keys.lettering.draw(painter, keys.box(index), keys.labels[index], LEFT)
        numbered = set(named) & set(_strongest(levels)[:_NUMBERED])
        query = self._linked_query
        painter.setPen(QColor(theme.text))
        for index in numbered if query is not None else ():
            self._draw_number(painter, places, self._axis, index, f"{self._row(query)[index]:.4f}")

    def _draw_number(
        self, painter: QPainter, places: _Places, lettering: Lettering, key: int, text: str
    ) -> None:
        place = places.keys.box(key)
        place.setLeft(places.keys.right)
        place.setRight(self._right(places))
        lettering.draw(painter, place, text, RIGHT)

    def _named(self, keys: AxisLabels, levels: NDArray[np.uint8]) -> list[int]:
        """The keys that have a label: all, or the strongest and what fits between them."""
        if keys.step == 1:
            return replace(keys, only=None).shown()
        taken: list[int] = []
        apart = keys.lettering.line / keys.cell
        chosen = [] if self._key is None else [self._key]
        spread = replace(keys, only=None).shown()
        for index in [*chosen, *_strongest(levels)[:40], *spread]:
            if keys.is_within(index) and all(abs(index - other) >= apart for other in taken):
                taken.append(index)
        return taken

    def _draw_links(
        self, painter: QPainter, places: _Places, query: int, levels: NDArray[np.uint8]
    ) -> None:
        theme = self._theme
        painter.setBrush(Qt.BrushStyle.NoBrush)
        for key in reversed(_strongest(levels)):
            level = int(levels[key])
            is_bad = level == NOT_FINITE
            share = 1.0 if is_bad else (level - LOWEST) / (HIGHEST - LOWEST)
            colour = QColor(theme.bad if is_bad else theme.accent)
            colour.setAlphaF(_FAINTEST + (1 - _FAINTEST) * share)
            wide = theme.stroke * (0.5 + (_WIDEST_LINK - 0.5) * share)
            painter.setPen(QPen(colour, wide, Qt.PenStyle.SolidLine, Qt.PenCapStyle.FlatCap))
            painter.drawPath(self._link(places, query, key))

    def _link(self, places: _Places, query: int, key: int) -> QPainterPath:
        start = QPointF(places.start + 2 * self._theme.unit, places.queries.middle(query))
        end = QPointF(places.rail.left(), places.keys.middle(key))
        middle = (start.x() + end.x()) / 2
        path = QPainterPath(start)
        path.cubicTo(QPointF(middle, start.y()), QPointF(middle, end.y()), end)
        return path

    def _chosen_query(self) -> int | None:
        is_there = self._query is not None and 0 <= self._query < self._weights.shape[0]
        return self._query if is_there else None

    def _row(self, query: int | None) -> NDArray[np.float32]:
        row: NDArray[np.float32] = self._weights[query if query is not None else -1]
        return row

    # what follows the pointer and the selection

    def _draw_selection(self, painter: QPainter) -> None:
        if self._places is None:
            return
        theme = self._theme
        self._light(painter, self._places.queries, self._query, theme.accent, theme.on_accent)
        self._light(painter, self._places.keys, self._key, theme.accent, theme.on_accent)
        self._light(painter, self._places.queries, self._pointed_query, theme.text, theme.surface)

    def _draw_hover(self, painter: QPainter, cell: Cell) -> None:
        if self._places is not None:
            theme = self._theme
            self._light(painter, self._places.keys, cell[1], theme.text, theme.surface)
            self._draw_pointed(painter, self._places, *cell)

    def _light(
        self, painter: QPainter, axis: AxisLabels, index: int | None, ground: str, ink: str
    ) -> None:
        if index is not None:
            bold = replace(axis, lettering=self._axis_bold)
            bold.draw_lit(painter, index, ground=ground, paper=self._theme.surface, ink=ink)

    def _draw_pointed(self, painter: QPainter, places: _Places, query: int, key: int) -> None:
        theme = self._theme
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        is_seen = self._visible[query, key] or self._weights[query, key] != 0
        style = Qt.PenStyle.SolidLine if is_seen else Qt.PenStyle.DotLine
        painter.setPen(QPen(QColor(theme.text), theme.stroke, style))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawPath(self._link(places, query, key))
        text = exact(self._weights[query, key]) if is_seen else "masked"
        wide = self._axis_bold.width(text) + 2 * theme.unit
        line = self._axis_bold.line
        place = QRectF(0, places.keys.middle(key) - line / 2, wide, line)
        place.moveRight(places.rail.left() - 2 * theme.unit)
        painter.fillRect(place, QColor(theme.text))
        painter.setPen(QColor(theme.surface))
        self._axis_bold.draw(painter, place.adjusted(theme.unit, 0, 0, 0), text, LEFT)

    def _marked(self, _cell: Cell) -> list[QRect]:
        places = self._places
        if places is None:
            return []
        wide = self._right(places) - places.start
        return [QRectF(places.start, 0, wide, self.height()).toAlignedRect()]

    def _selection_moved(self) -> None:
        if self._chosen_query() != self._linked_query:
            self._hovered = None
        if (self._chosen_query(), self._key) != (self._linked_query, self._named_key):
            self._redraw(layout=False)

    # mouse

    def leaveEvent(self, event: QEvent) -> None:
        """Nothing is pointed at any more."""
        if self._pointed_query is not None:
            self._pointed_query = None
            self._mark_again()
        super().leaveEvent(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Read the key under the pointer, or light the query under it."""
        pointed = self.query_at(event.position())
        if pointed != self._pointed_query:
            self._pointed_query = pointed
            self._mark_again()
        query, key = self._chosen_query(), self.key_at(event.position())
        self._hover(None if query is None or key is None else (query, key))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Ask for the query on the left, or for the key on the right."""
        if event.button() != Qt.MouseButton.LeftButton:
            return
        query, key = self.query_at(event.position()), self.key_at(event.position())
        if query is not None:
            self.cell_clicked.emit(query, self._key_for(query))
        elif key is not None and (chosen := self._chosen_query()) is not None:
            self.cell_clicked.emit(chosen, key)

    def _key_for(self, query: int) -> int:
        """The selected key if this query sees it, else the one that it looks at most."""
        keys = self._weights.shape[1]
        if self._key is not None and self._key < keys and self._visible[query, self._key]:
            return self._key
        return int(self._weights[query].argmax())


def _strongest(levels: NDArray[np.uint8]) -> list[int]:
    """The keys that are linked, the strongest first."""
    order = np.argsort(-levels.astype(np.int16), kind="stable")
    return [int(key) for key in order if levels[key] > LOWEST]


def _row_at(axis: AxisLabels, y: float) -> int | None:
    index = int((y - axis.start) // axis.cell)
    return index if 0 <= index < len(axis.labels) else None
