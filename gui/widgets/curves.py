"""Curves over a common x axis, drawn by pyqtgraph once it is there.

What makes them quick, and the reason for most lines here: ranges are given and never found out,
data are thinned to the width by peaks and clipped to the view, nothing is searched for NaN, lines
are one pixel wide (pyqtgraph draws thicker ones in segments), there are no menus, and a chart is
a bare view box with two axes instead of a PlotWidget, which takes four times as long to build.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, QSize, Qt, QTimer
from PySide6.QtGui import (
    QColor,
    QFontMetricsF,
    QPainter,
    QPaintEvent,
    QPen,
    QPolygonF,
    QShowEvent,
)
from PySide6.QtWidgets import QGraphicsGridLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget

from gui.graphs import loader
from gui.theme import LIGHT, Theme
from gui.widgets.axis_ticks import Tick
from gui.widgets.fitting_label import font_of, plain_tip, tint

Floats = NDArray[np.float64]
Mark = Literal["line", "dashes", "dots", "triangles"]
Points = tuple[Floats, Floats]  # x and y, as long as each other, all finite, x growing

_LEAST_PIXELS = 48
_SWATCH_EMS = 1.3


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

    def __init__(self, title: str, series: Sequence[Series]) -> None:
        super().__init__()
        self._title, self._series = title, tuple(series)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.set_theme(LIGHT)

    def set_theme(self, theme: Theme) -> None:
        """Take over colours and sizes."""
        self._theme = theme
        self._font = font_of(self, theme.font_axis)
        self._metrics = QFontMetricsF(self._font)
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        """One line."""
        return QSize(_LEAST_PIXELS, ceil(self._metrics.height()) + 1)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw the title at the left and the legend at the right."""
        theme, height = self._theme, self.height()
        swatch, gap = _SWATCH_EMS * theme.font_axis, 0.4 * theme.font_axis
        with QPainter(self) as painter:
            painter.setFont(self._font)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            x = float(self.width())
            for series in reversed(self._series):
                wide = self._metrics.horizontalAdvance(series.name)
                x -= wide
                painter.setPen(QColor(theme.text_dim))
                painter.drawText(QPointF(x, self._baseline()), series.name)
                x -= gap + swatch
                _draw_swatch(painter, QRectF(x, 0, swatch, height), series, theme)
                x -= 2 * gap
            room = max(0.0, x)
            title = self._metrics.elidedText(self._title, Qt.TextElideMode.ElideRight, room)
            painter.setPen(QColor(theme.text))
            painter.drawText(QPointF(0, self._baseline()), title)

    def _baseline(self) -> float:
        return (self.height() + self._metrics.ascent() - self._metrics.descent()) / 2


class CurveChart(QWidget):
    """A caption, two axes and some series; ranges and ticks are handed over with the points."""

    def __init__(self, title: str, x_title: str, series: Sequence[Series]) -> None:
        super().__init__()
        self.title, self.x_title, self.series = title, x_title, tuple(series)
        self.setAccessibleName(title)
        self._theme = LIGHT
        self._caption = Caption(title, series)
        self._plot: _Plot | None = None
        self._latest: tuple[Sequence[Points], Axis, Axis] | None = None
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
        self.setToolTip(plain_tip(words))
        if self._plot is None:
            self._build_soon()
        self._redraw()

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
        self._redraw()

    def showEvent(self, event: QShowEvent) -> None:
        """Build what could not be built while hidden."""
        super().showEvent(event)
        self._build_soon()

    def _redraw(self) -> None:
        if self._plot is not None and self._latest is not None:
            self._plot.show(*self._latest)

    def minimumSizeHint(self) -> QSize:
        """Still a picture."""
        return QSize(2 * _LEAST_PIXELS, self._caption.sizeHint().height() + _LEAST_PIXELS)

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
        self.widget = self._pg.GraphicsView()
        self.widget.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.widget.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.widget.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Ignored)
        self._box = self._pg.ViewBox(enableMenu=False, enableMouse=False)
        self._box.disableAutoRange()
        self._left = self._pg.AxisItem("left")
        self._bottom = self._pg.AxisItem("bottom")
        self._corner = QLabel(x_title)
        self._corner.setTextFormat(Qt.TextFormat.PlainText)
        self._lay_out()
        self._items = [self._item() for _ in self._series]

    def _lay_out(self) -> None:
        grid = QGraphicsGridLayout()
        grid.setContentsMargins(0, 0, 0, 0)
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

    def _item(self) -> Any:  # noqa: ANN401
        item = self._pg.PlotDataItem(connect="all", skipFiniteCheck=True)
        self._box.addItem(item, ignoreBounds=True)
        item.setDownsampling(auto=True, method="peak")
        item.setClipToView(True)
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
        height = ceil(self._metrics.height()) + 2
        self._bottom.setHeight(height)
        self._corner.setFont(self._font)
        self._corner.setFixedHeight(height)
        tint(self._corner, theme.text_dim)
        for item, series in zip(self._items, self._series, strict=True):
            self._dress_item(item, series, theme)
        self._ranges = None

    def _dress_item(self, item: Any, series: Series, theme: Theme) -> None:  # noqa: ANN401
        colour = getattr(theme, series.colour)
        if series.mark in ("line", "dashes"):
            item.setPen(curve_pen(theme, series))
            return
        item.setPen(None)
        item.setSymbol("o" if series.mark == "dots" else "t1")
        item.setSymbolSize(round(0.45 * theme.font_axis))
        item.setSymbolPen(self._pg.mkPen(colour))
        item.setSymbolBrush(self._pg.mkBrush(colour if series.mark == "dots" else theme.surface))

    def show(self, points: Sequence[Points], x: Axis, y: Axis) -> None:
        """Set ranges first, so that the points are thinned once and for these."""
        if self._ranges != (x, y):
            self._ranges = (x, y)
            self._set_axis(self._left, y)
            self._set_axis(self._bottom, x)
            self._left.setWidth(self._widest(y) + 6)
            self._box.setRange(xRange=(x.low, x.high), yRange=(y.low, y.high), padding=0)
        for item, (xs, ys) in zip(self._items, points, strict=True):
            item.setData(xs, ys)

    def _widest(self, axis: Axis) -> int:
        texts = (self._corner.text(), *(tick.text for tick in axis.ticks))
        return ceil(max(map(self._metrics.horizontalAdvance, texts)))

    def _set_axis(self, item: Any, axis: Axis) -> None:  # noqa: ANN401
        item.setTicks([[(tick.at, tick.text) for tick in axis.ticks], []])


def curve_pen(theme: Theme, series: Series) -> QPen:
    """The pen of a series: one pixel, or the projector's thick one."""
    pen = QPen(QColor(getattr(theme, series.colour)))
    pen.setWidth(1 if theme.stroke < 2 else round(theme.stroke))
    pen.setCosmetic(True)
    if series.mark == "dashes":
        pen.setStyle(Qt.PenStyle.DashLine)
    return pen


def _draw_swatch(painter: QPainter, area: QRectF, series: Series, theme: Theme) -> None:
    middle = area.center()
    colour = QColor(getattr(theme, series.colour))
    half = 0.25 * theme.font_axis
    if series.mark in ("line", "dashes"):
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
