"""How the items of an arithmetic are laid out and drawn, each in a place of a given width."""

from collections.abc import Iterator
from functools import singledispatchmethod
from math import ceil, floor

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QMarginsF, QPointF, QRectF, Qt
from PySide6.QtGui import QBrush, QColor, QFont, QFontMetricsF, QPainter, QPen

from gui.theme import Theme
from gui.widgets.arithmetic_stages import Bars, Dials, Hue, Item, Marks, Note, Stage, Term, short
from gui.widgets.lettering import CENTRE, RIGHT, Lettering

_BARS_EMS = 2.2  # height of a row of bars
_DIAL_EMS = 2.2
_MARK_EMS = 1.7
_LEAST_FRAME = 3.0  # logical pixels of the frame around a thin bar
_DECIMALS = (4, 3, 2)
_WRAP = int(Qt.TextFlag.TextWordWrap)


class ArithmeticDrawing:
    """One look: measures items, finds their numbers, draws them."""

    def __init__(self, font: QFont, theme: Theme) -> None:
        self.theme = theme
        self.axis = Lettering(font, theme.font_axis)
        self.body = Lettering(font, theme.font_body)
        self.bold = Lettering(font, theme.font_body, bold=True)
        self.title = Lettering(font, theme.font_title, bold=True)
        self._metrics = QFontMetricsF(self.axis.font)
        self._least_number = self.axis.width("0.0")

    # Sizes

    def head_height(self, stage: Stage, width: float) -> float:
        """What a stage's title and formula take."""
        return self.title.line + self._wrapped(stage.formula, width) + self.theme.unit

    def height(self, item: Item, width: float) -> float:
        """What an item takes."""
        if isinstance(item, Note):
            return self._wrapped(item.text, width)
        if isinstance(item, Term):
            return self.body.line + self.theme.unit / 2
        if isinstance(item, Bars):
            numbers = self.axis.line if self._numbers(item, width) else 0
            return self.axis.line + _BARS_EMS * self.body.em + numbers
        size, per_line = self._cells(item, width)
        return self._caption_height(item, width) + ceil(len(item) / per_line) * size

    def slot(self, item: Item, place: QRectF, index: int) -> QRectF:
        """Where one of an item's numbers is drawn."""
        if isinstance(item, Bars):
            step = place.width() / len(item)
            top = place.top() + self.axis.line
            return QRectF(place.left() + index * step, top, step, _BARS_EMS * self.body.em)
        if isinstance(item, Dials | Marks):
            size, per_line = self._cells(item, place.width())
            line, column = divmod(index, per_line)
            top = place.top() + self._caption_height(item, place.width())
            return QRectF(place.left() + column * size, top + line * size, size, size)
        return place

    def index_at(self, item: Item, place: QRectF, point: QPointF) -> int | None:
        """The number that is drawn at a point of the item's place, if any is."""
        if not len(item) or not place.contains(point):
            return None
        if isinstance(item, Bars):
            if point.y() < place.top() + self.axis.line:
                return None
            at = int((point.x() - place.left()) / place.width() * len(item))
            return min(at, len(item) - 1)
        if isinstance(item, Dials | Marks):
            size, per_line = self._cells(item, place.width())
            line = floor((point.y() - self.slot(item, place, 0).top()) / size)
            column = floor((point.x() - place.left()) / size)
            at = line * per_line + column
            return at if line >= 0 and column < per_line and at < len(item) else None
        return 0

    def _cells(self, item: Dials | Marks, width: float) -> tuple[float, int]:
        ems = _DIAL_EMS if isinstance(item, Dials) else _MARK_EMS
        size = ems * self.body.em
        return size, max(1, int(width // size))

    def _caption_height(self, item: Dials | Marks, width: float) -> float:
        return self._wrapped(item.caption, width)

    def _wrapped(self, text: str, width: float) -> float:
        return ceil(self._metrics.boundingRect(QRectF(0, 0, width, 1e4), _WRAP, text).height())

    def _numbers(self, item: Bars, width: float) -> list[str]:
        """What stands below the bars: as many decimals for all as have room, or nothing."""
        room = width / max(1, len(item)) - self.theme.unit
        for decimals in _DECIMALS if room >= self._least_number else ():
            texts = [_rounded(value, decimals) for value in item.values.tolist()]
            if max(map(self.axis.width, texts)) <= room:
                return texts
        return []

    # Drawing

    def draw_head(self, painter: QPainter, stage: Stage, place: QRectF) -> None:
        """A stage's title with a line above, and its formula."""
        theme = self.theme
        painter.setPen(QPen(QColor(theme.line), 1))
        above = place.top() - theme.unit
        painter.drawLine(QPointF(place.left(), above), QPointF(place.right(), above))
        title = QRectF(place.left(), place.top(), place.width(), self.title.line)
        painter.setPen(QColor(theme.text))
        self.title.draw(painter, title, stage.title)
        self._text(painter, place.adjusted(0, self.title.line, 0, 0), stage.formula)

    @singledispatchmethod
    def draw(self, item: Item, painter: QPainter, place: QRectF) -> None:
        """An item in its place.

        Raises:
            TypeError: there is no such item.
        """
        raise TypeError(f"{item!r} is no item that can be drawn in {place} by {painter}.")

    @draw.register
    def _(self, item: Note, painter: QPainter, place: QRectF) -> None:
        self._text(painter, place, item.text)

    @draw.register
    def _(self, item: Term, painter: QPainter, place: QRectF) -> None:
        letters = self.bold if item.is_result else self.body
        number = short(item.value)
        width = letters.width(number)
        painter.setPen(QColor(self.theme.text))
        letters.draw(painter, place, number, RIGHT)
        words = place.adjusted(0, 0, -width - 2 * self.theme.unit, 0)
        letters = letters if letters.fits(item.text, words.width()) else self.axis
        letters.draw(painter, words, item.text)

    @draw.register
    def _(self, item: Marks, painter: QPainter, place: QRectF) -> None:
        theme = self.theme
        self._text(painter, place, item.caption)
        for index in range(len(item)):
            box = self.slot(item, place, index).adjusted(1, 1, -2, -2)
            painter.setPen(QPen(QColor(theme.line), 1))
            fill = _faint(self._colour(item.hue), 0.3)
            painter.setBrush(fill if index in item.filled else Qt.BrushStyle.NoBrush)
            if index == item.framed:
                painter.setPen(QPen(QColor(theme.accent), 2 * theme.stroke))
            painter.drawRect(box)
            painter.setPen(QColor(theme.text if index in item.filled else theme.text_dim))
            self.axis.draw(painter, box, str(index), CENTRE)

    @draw.register
    def _(self, item: Dials, painter: QPainter, place: QRectF) -> None:
        self._text(painter, place, item.caption, self.theme.text)
        longest = float(np.hypot(*item.after.T).max(initial=0)) or 1.0
        for index in range(len(item)):
            self._draw_dial(painter, item, index, self.slot(item, place, index), longest)

    def _draw_dial(
        self, painter: QPainter, item: Dials, index: int, box: QRectF, longest: float
    ) -> None:
        """A pair as a hand, thin before and thick after, and the angle between as a sector."""
        theme, colour, radius = self.theme, self._colour(item.hue), box.width() / 2 - 2
        before, after = item.before[index], item.after[index]
        start = np.degrees(np.arctan2(before[1], before[0]))
        painter.setBrush(_faint(colour, 0.25))
        painter.setPen(Qt.PenStyle.NoPen)
        painter.drawPie(
            box.marginsRemoved(QMarginsF(2, 2, 2, 2)),
            round(16 * float(start)),
            round(16 * float(np.degrees(item.angles[index]))),
        )
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(QColor(theme.line), 1))
        painter.drawEllipse(box.center(), radius, radius)
        for pair, pen in (
            (before, QPen(colour, 0.7 * theme.stroke)),
            (after, QPen(colour, 2 * theme.stroke)),
        ):
            x, y = (radius * float(part) / longest for part in pair)
            painter.setPen(pen)
            painter.drawLine(box.center(), box.center() + QPointF(x, -y))

    @draw.register
    def _(self, item: Bars, painter: QPainter, place: QRectF) -> None:
        theme = self.theme
        caption = QRectF(place.left(), place.top(), place.width(), self.axis.line)
        painter.setPen(QColor(theme.text_dim))
        scale = f"± {short(item.top)}" if item.is_signed else f"0 to {short(item.top)}"
        self.axis.draw(painter, caption, scale, RIGHT)
        caption.setRight(caption.right() - self.axis.width(scale) - 2 * theme.unit)
        painter.setPen(QColor(theme.text))
        self.axis.draw(painter, caption, item.caption)
        area = QRectF(place.left(), caption.bottom(), place.width(), _BARS_EMS * self.body.em)
        self._draw_hidden(painter, item, area)
        self._draw_marked(painter, item, place)
        zero = area.center().y() if item.is_signed else area.bottom() - 1
        full = (zero - area.top()) / item.top
        colour = self._colour(item.hue)
        for left, right, low, high in _columns(item.values, area):
            top, bottom = zero - max(high, 0.0) * full, zero - min(low, 0.0) * full
            gap = 1.0 if right - left >= _LEAST_FRAME else 0.0
            bar = QRectF(left, top, max(1.0, right - left - gap), max(bottom - top, 0.5))
            painter.fillRect(bar, colour)
        painter.fillRect(QRectF(area.left(), zero, area.width(), 1), QColor(theme.text_dim))
        painter.setPen(QColor(theme.text_dim))
        for index, text in enumerate(self._numbers(item, place.width())):
            slot = self.slot(item, place, index)
            below = QRectF(slot.left(), slot.bottom(), slot.width(), self.axis.line)
            self.axis.draw(painter, below, text, CENTRE)

    def draw_frame(
        self, painter: QPainter, item: Item, place: QRectF, index: int, colour: str
    ) -> None:
        """Frame one number, so that it is seen which one is told."""
        box = self.slot(item, place, index)
        if box.width() < _LEAST_FRAME:
            box = QRectF(box.center().x() - _LEAST_FRAME / 2, box.top(), _LEAST_FRAME, box.height())
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(QColor(colour), self.theme.stroke))
        painter.drawRect(box)

    def _draw_hidden(self, painter: QPainter, item: Bars, area: QRectF) -> None:
        if item.hidden is None:
            return
        for first, last in _runs(item.hidden):
            step = area.width() / len(item)
            box = QRectF(
                area.left() + first * step, area.top(), (last - first) * step, area.height()
            )
            painter.fillRect(box, QColor(self.theme.masked))
            painter.fillRect(box, QBrush(QColor(self.theme.hatch), Qt.BrushStyle.BDiagPattern))

    def _draw_marked(self, painter: QPainter, item: Bars, place: QRectF) -> None:
        if item.marked is not None:
            self.draw_frame(painter, item, place, item.marked, self.theme.accent)

    def _text(self, painter: QPainter, place: QRectF, text: str, colour: str = "") -> None:
        painter.setFont(self.axis.font)
        painter.setPen(QColor(colour or self.theme.text_dim))
        painter.drawText(place, _WRAP, text)

    def _colour(self, hue: Hue) -> QColor:
        theme = self.theme
        hues = {
            "query": theme.query,
            "key": theme.key,
            "value": theme.value,
            "residual": theme.residual,
        }
        return QColor(hues.get(hue, theme.text_dim))


def _rounded(value: float, decimals: int) -> str:
    return f"{value:.{decimals}f}".replace("-", "−") if np.isfinite(value) else short(value)


def _faint(colour: QColor, opacity: float) -> QColor:
    faint = QColor(colour)
    faint.setAlphaF(opacity)
    return faint


def _columns(
    values: NDArray[np.floating], area: QRectF
) -> Iterator[tuple[float, float, float, float]]:
    """Left, right, lowest and highest of each bar; of each pixel, where bars are thinner."""
    finite = np.where(np.isfinite(values), values, 0).astype(np.float64)
    n_columns = min(len(finite), max(1, int(area.width())))
    starts = np.arange(n_columns) * len(finite) // n_columns
    lows, highs = np.minimum.reduceat(finite, starts), np.maximum.reduceat(finite, starts)
    edges = area.left() + np.arange(n_columns + 1) * area.width() / n_columns
    yield from zip(
        edges[:-1].tolist(), edges[1:].tolist(), lows.tolist(), highs.tolist(), strict=True
    )


def _runs(flags: NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """The stretches of true flags, from the first to before the last."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], flags, [False])).astype(np.int8)))
    yield from zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)
