"""Curves over a common x axis, drawn by pyqtgraph once it is there.

What makes them quick, and the reason for most lines here: ranges are given and never found out,
data are clipped to the view and thinned to its width by peaks (here, which takes a tenth of the
time of pyqtgraph's own way), nothing is searched for NaN, lines are one pixel wide (pyqtgraph
draws thicker ones in segments), there are no menus, and a chart is a bare view box with two axes
instead of a PlotWidget, which takes more than twice as long to build.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, QSize, Qt, QTimer
from PySide6.QtGui import (
    QColor,
    QFontMetricsF,
    QHelpEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPolygonF,
    QShowEvent,
)
from PySide6.QtWidgets import (
    QGraphicsGridLayout,
    QLabel,
    QSizePolicy,
    QToolTip,
    QVBoxLayout,
    QWidget,
)

from gui.graphs import loader
from gui.theme import LIGHT, Theme
from gui.widgets.axis_ticks import Tick
from gui.widgets.fitting_label import font_of, plain_tip, tint
from gui.widgets.lettering import every

Floats = NDArray[np.float64]
Mark = Literal["line", "dashes", "dotted", "dash and dot", "dots", "triangles"]
Points = tuple[Floats, Floats]  # x and y, as long as each other, all finite, x growing

_LINES: tuple[Mark, ...] = ("line", "dashes", "dotted", "dash and dot")
_DASHES: dict[Mark, tuple[float, ...]] = {  # in widths of the pen
    "dashes": (5.0, 4.0),
    "dotted": (1.0, 3.0),
    "dash and dot": (8.0, 3.0, 1.0, 3.0),
}
_STROKE = 0.06  # of the width
_LEAST_PIXELS, _LEAST_EMS = 40, 13
_SWATCH_EMS: dict[Mark, float] = {
    "line": 1.2,
    "dashes": 1.7,
    "dotted": 1.7,
    "dash and dot": 1.7,
    "dots": 0.6,
    "triangles": 0.6,
}


@dataclass(frozen=True)
class Series:
    """One set of points: its name in the legend, a colour of the theme by name, and a mark."""

    name: str
    colour: str
    mark: Mark


@dataclass(frozen=True)
class Axis:
    """One axis's range, fixed, and its ticks."""

    low: float
    high: float
    ticks: tuple[Tick, ...]


class Caption(QWidget):
    """The title of a chart, with the unit, and its legend: a line of text with drawn marks."""

    def __init__(self, titles: Sequence[str], series: Sequence[Series]) -> None:
        super().__init__()
        self._titles, self._series = tuple(titles), tuple(series)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.set_theme(LIGHT)

    def set_theme(self, theme: Theme) -> None:
        """Take over colours and sizes."""
        self._theme = theme
        self._font = font_of(self, theme.font_axis)
        self._metrics = QFontMetricsF(self._font)
        self.updateGeometry()
        self.update()

    def set_titles(self, titles: Sequence[str]) -> None:
        """Write another title."""
        self._titles = tuple(titles)
        self.update()

    def sizeHint(self) -> QSize:
        """One line."""
        return QSize(_LEAST_PIXELS, ceil(self._metrics.height()) + 1)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw the title at the left and the legend at the right."""
        theme, height = self._theme, self.height()
        gap = 0.3 * theme.font_axis
        with QPainter(self) as painter:
            painter.setFont(self._font)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            x = float(self.width())
            for series in reversed(self._series):
                if not series.name:  # explained by another one
                    continue
                wide = self._metrics.horizontalAdvance(series.name)
                x -= wide
                painter.setPen(QColor(theme.text_dim))
                painter.drawText(QPointF(x, self._baseline()), series.name)
                swatch = _SWATCH_EMS[series.mark] * theme.font_axis
                x -= gap + swatch
                draw_swatch(painter, QRectF(x, 0, swatch, height), series, theme)
                x -= 2 * gap
            painter.setPen(QColor(theme.text))
            painter.drawText(QPointF(0, self._baseline()), self._title(max(0.0, x)))

    def _title(self, room: float) -> str:
        for title in self._titles:
            if self._metrics.horizontalAdvance(title) <= room:
                return title
        return self._metrics.elidedText(self._titles[-1], Qt.TextElideMode.ElideRight, room)

    def _baseline(self) -> float:
        return (self.height() + self._metrics.ascent() - self._metrics.descent()) / 2


class CurveChart(QWidget):
    """A caption, two axes and some series; ranges and ticks are handed over with the points.

    `titles` name what is drawn and its unit; the first that fits beside the legend is shown. The
    legend can be left to somebody else, where there are too many series for one line.
    """

    def __init__(
        self,
        titles: Sequence[str],
        x_title: str,
        series: Sequence[Series],
        *,
        has_legend: bool = True,
    ) -> None:
        super().__init__()
        self.titles, self.x_title, self.series = tuple(titles), x_title, tuple(series)
        self.setAccessibleName(self.titles[0])
        self._theme = LIGHT
        self._caption = Caption(titles, series if has_legend else ())
        self._plot: _Plot | None = None
        self._latest: tuple[Sequence[Points], Axis, Axis] | None = None
        self._teller: Callable[[float], str] | None = None
        self._pointer: QPointF | None = None
        self.setMouseTracking(True)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(0)
        self._column.addWidget(self._caption)
        self._column.addStretch(1)
        loader().ready.connect(self._build_soon)
        loader().failed.connect(self.update)

    def set_theme(self, theme: Theme) -> None:
        """Take over colours and sizes."""
        if theme is not self._theme:
            self._theme = theme
            self._caption.set_theme(theme)
            if self._plot:
                self._plot.dress(self, theme)
                self._redraw()
            self.update()

    def show_points(self, points: Sequence[Points], x: Axis, y: Axis, words: str) -> None:
        """Draw each series' points in these ranges; `words` say the same to who cannot see.

        Until pyqtgraph is there, a sentence stands here.
        """
        self._latest = (points, x, y)
        self.setAccessibleDescription(words)
        if self._plot is None:
            self._build_soon()
        self._redraw()

    def set_teller(self, teller: Callable[[float], str]) -> None:
        """Say this of the point that is pointed at, given its x, with all the digits of its y."""
        self._teller = teller

    def _nearest(self, place: QPointF) -> float | None:
        """The x of the point that is nearest, across."""
        if self._plot is None or self._latest is None:
            return None
        there = np.concatenate([xs for xs, _ys in self._latest[0]])
        if not len(there):
            return None
        x = self._plot.x_at(QPointF(self._plot.widget.mapFrom(self, place.toPoint())))
        return float(there[np.abs(there - x).argmin()])

    @property
    def pointed(self) -> float | None:
        """The x of the point that is nearest to the pointer; None if that is elsewhere."""
        return None if self._pointer is None else self._nearest(self._pointer)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Remember where the pointer is; the points may change under it."""
        self._pointer = event.position()

    def leaveEvent(self, event: QEvent) -> None:
        """None is any more."""
        super().leaveEvent(event)
        self._pointer = None

    def event(self, event: QEvent) -> bool:
        """Tell the point under the pointer."""
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            QToolTip.showText(event.globalPos(), plain_tip(self.tip_at(event.pos())), self)
            return True
        return super().event(event)

    def tip_at(self, place: QPoint) -> str:
        """What is said on hovering there: the nearest point, or else what the chart says."""
        x = self._nearest(QPointF(place))
        if x is None or self._teller is None:
            return self.accessibleDescription()
        return self._teller(x)

    def place_at(self, x: float) -> QPoint:
        """A place in the chart that points at this x, once the curves can be seen."""
        if self._plot is None:
            return QPoint()
        plot: QWidget = self._plot.widget
        return plot.mapTo(self, QPoint(round(self._plot.place_of(x)), plot.height() // 2))

    def set_titles(self, *titles: str) -> None:
        """Name what is drawn in another way, as where the unit has changed."""
        if titles != self.titles:
            self.titles = titles
            self.setAccessibleName(titles[0])
            self._caption.set_titles(titles)

    @property
    def is_drawn(self) -> bool:
        """Whether the curves can be seen, not only a sentence in their place."""
        return self._plot is not None and self._latest is not None

    def _build_soon(self) -> None:
        # In a turn of its own: three charts at once would be felt.
        QTimer.singleShot(0, self, self._build)

    def _build(self) -> None:
        if self._plot is not None or self._latest is None or not self.isVisible():
            return
        if loader().module is None:
            return
        self._plot = _Plot(loader().module, self.series, self.x_title)
        self._column.takeAt(1)
        self._column.addWidget(self._plot.widget, 1)
        self._plot.dress(self, self._theme)
        self._plot.resized.connect(self._redraw)
        self._redraw()

    def showEvent(self, event: QShowEvent) -> None:
        """Build what could not be built while hidden."""
        super().showEvent(event)
        self._build_soon()

    def _redraw(self) -> None:
        if self._plot is not None and self._latest is not None:
            self._plot.show(*self._latest)

    def minimumSizeHint(self) -> QSize:
        """Still a picture: a legend, two numbers and their axis."""
        line, em = self._caption.sizeHint().height(), self._theme.font_axis
        return QSize(_LEAST_EMS * em, 2 * line + _LEAST_PIXELS)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """As long as there is no curve, say so."""
        if self._plot is not None or self._latest is None:
            return
        with QPainter(self) as painter:
            painter.setFont(font_of(self, self._theme.font_axis))
            painter.setPen(QColor(self._theme.text_dim))
            sentence = loader().failure or "The curves are on their way."
            flags = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap
            painter.drawText(self.rect(), flags, sentence)


class _Plot:
    """The pyqtgraph side of a chart."""

    def __init__(
        self,
        pyqtgraph: Any,  # noqa: ANN401 - the module, which has no types
        series: Sequence[Series],
        x_title: str,
    ) -> None:
        self._pg = pyqtgraph
        self._series = tuple(series)
        self._ranges: tuple[Axis, Axis] | None = None
        self._size = (0.0, 0.0)
        self.widget = self._pg.GraphicsView()
        self.widget.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.widget.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.widget.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Ignored)
        self._box = self._pg.ViewBox(enableMenu=False, enableMouse=False)
        self._box.disableAutoRange()
        self.resized = self._box.sigResized  # after which points must be thinned anew
        self._left = self._pg.AxisItem("left")
        self._bottom = self._pg.AxisItem("bottom")
        self._corner = QLabel(x_title)
        self._corner.setTextFormat(Qt.TextFormat.PlainText)
        self._lay_out()
        self._items = [self._item(each) for each in self._series]

    def _lay_out(self) -> None:
        self._grid = grid = QGraphicsGridLayout()
        grid.setSpacing(0)
        grid.addItem(self._left, 0, 0)
        grid.addItem(self._box, 0, 1)
        grid.addItem(self._bottom, 1, 1)
        self._central = self._pg.GraphicsWidget()
        self._central.setLayout(grid)
        self.widget.setCentralItem(self._central)
        for axis in (self._left, self._bottom):
            axis.linkToView(self._box)
        # The corner under the left axis is free: there the x axis is named.
        over = QVBoxLayout(self.widget)
        over.setContentsMargins(0, 0, 0, 0)
        over.addWidget(self._corner, 0, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignBottom)

    def _item(self, series: Series) -> Any:  # noqa: ANN401
        kind = self._pg.PlotCurveItem if series.mark in _LINES else self._pg.ScatterPlotItem
        item = kind()
        self._box.addItem(item, ignoreBounds=True)
        return item

    def dress(self, chart: QWidget, theme: Theme) -> None:
        """Take over colours and sizes."""
        self.widget.setBackground(QColor(theme.surface))
        self._font = font_of(chart, theme.font_axis)
        self._metrics = QFontMetricsF(self._font)
        for axis in (self._left, self._bottom):
            axis.setPen(self._pg.mkPen(theme.line))
            axis.setTextPen(self._pg.mkPen(theme.text_dim))
            axis.setStyle(tickFont=self._font, tickLength=-theme.unit // 2, tickTextOffset=2)
        height = ceil(self._metrics.height()) + 4
        self._bottom.setHeight(height)
        self._grid.setContentsMargins(0, height / 2, height / 2, 0)  # for half a number
        self._corner.setFont(self._font)
        self._corner.setFixedHeight(height)
        tint(self._corner, theme.text_dim)
        for item, series in zip(self._items, self._series, strict=True):
            self._dress_item(item, series, theme)
        self._ranges = None

    def _dress_item(self, item: Any, series: Series, theme: Theme) -> None:  # noqa: ANN401
        if series.mark in _LINES:
            item.setPen(curve_pen(theme, series))
            return
        colour, is_hollow = getattr(theme, series.colour), series.mark == "triangles"
        item.setSymbol("t1" if is_hollow else "o")
        item.setSize(round(0.5 * theme.font_axis))
        item.setPen(self._pg.mkPen(colour))
        item.setBrush(self._pg.mkBrush(theme.surface if is_hollow else colour))

    def show(self, points: Sequence[Points], x: Axis, y: Axis) -> None:
        """Set ranges first, so that the points are thinned once and for these."""
        size = self._box.width(), self._box.height()
        if self._ranges != (x, y) or self._size != size:
            self._ranges, self._size = (x, y), size
            widest = max(
                (self._metrics.horizontalAdvance(tick.text) for tick in x.ticks), default=0
            )
            self._set_axis(self._left, y, size[1], self._metrics.height())
            self._set_axis(self._bottom, x, size[0], 1.5 * widest)
            self._left.setWidth(self._widest(y) + 6)
            self._box.setRange(xRange=(x.low, x.high), yRange=(y.low, y.high), padding=0)
        n_columns = max(1, int(size[0]))
        for item, series, each in zip(self._items, self._series, points, strict=True):
            seen = peaks(*each, x.low, x.high, n_columns)
            if series.mark not in _LINES:
                item.setData(*seen)
            else:
                item.setData(*_visible(*seen, x), connect="all", skipFiniteCheck=True)

    def x_at(self, place: QPointF) -> float:
        """The x value at a place of the widget."""
        scene = self.widget.mapToScene(place.toPoint())
        return float(self._box.mapSceneToView(scene).x())

    def place_of(self, x: float) -> float:
        """Where an x value lies in the widget, across."""
        return float(self.widget.mapFromScene(self._box.mapViewToScene(QPointF(x, 0))).x())

    def _widest(self, axis: Axis) -> int:
        texts = (self._corner.text(), *(tick.text for tick in axis.ticks))
        return ceil(max(map(self._metrics.horizontalAdvance, texts)))

    def _set_axis(self, item: Any, axis: Axis, room: float, line: float) -> None:  # noqa: ANN401
        parts = room / max(1, len(axis.ticks) - 1)
        shown = axis.ticks[:: every(parts, line)]
        item.setTicks([[(tick.at, tick.text) for tick in shown], []])


def peaks(x: Floats, y: Floats, low: float, high: float, n_columns: int) -> Points:
    """What can be seen of some points between low and high on so many columns of pixels.

    Where more than two points share a column, the lowest and the highest stand for all of them.
    One point beyond each end is kept, so that a line goes on to the edge.
    """
    start = max(0, int(np.searchsorted(x, low)) - 1)
    stop = int(np.searchsorted(x, high, side="right")) + 1
    x, y = x[start:stop], y[start:stop]
    size = -(-len(x) // n_columns)
    if size <= 2:
        return x, y
    starts = np.arange(0, len(x), size)
    lowest, highest = np.minimum.reduceat(y, starts), np.maximum.reduceat(y, starts)
    return np.repeat(x[starts], 2), np.stack((lowest, highest), axis=1).ravel()


def _visible(xs: Floats, ys: Floats, x: Axis) -> Points:
    """A single point makes no line: it becomes a short stroke."""
    if len(xs) != 1:
        return xs, ys
    half = _STROKE * (x.high - x.low) / 2
    return xs[0] + np.array([-half, half]), ys.repeat(2)


def curve_pen(theme: Theme, series: Series) -> QPen:
    """The pen of a series: one pixel, or the projector's thick one."""
    pen = QPen(QColor(getattr(theme, series.colour)))
    pen.setWidth(1 if theme.stroke < 2 else round(theme.stroke))
    pen.setCosmetic(True)
    if series.mark in _DASHES:
        pen.setDashPattern(_DASHES[series.mark])
    return pen


def draw_swatch(painter: QPainter, area: QRectF, series: Series, theme: Theme) -> None:
    """What a series looks like, for a legend."""
    middle = area.center()
    colour = QColor(getattr(theme, series.colour))
    half = 0.25 * theme.font_axis
    if series.mark in _LINES:
        painter.setPen(curve_pen(theme, series))
        painter.drawLine(QPointF(area.left(), middle.y()), QPointF(area.right(), middle.y()))
        return
    painter.setPen(colour)
    painter.setBrush(colour if series.mark == "dots" else QColor(theme.surface))
    if series.mark == "dots":
        painter.drawEllipse(middle, half, half)
        return
    corners = [(-half, half), (half, half), (0.0, -half)]
    painter.drawPolygon(QPolygonF([middle + QPointF(*corner) for corner in corners]))
