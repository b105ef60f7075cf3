"""From cells to device pixels: whole pixels a cell, or the largest cell of a pixel."""

from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QColor, QImage, QPaintEngine, QPainter

_BAND = 1 << 16  # pixels that stay in the processor's cache
_LINE_KEEPERS = (QPaintEngine.Type.SVG, QPaintEngine.Type.Pdf)
_ROUNDING = 1e-9  # of the quotient of two whole numbers

Value = TypeVar("Value", bound=np.generic)


@dataclass(frozen=True)
class Spans:
    """The cells that each pixel of one axis shows: from `start` to before `stop` [n_pixels]."""

    start: NDArray[np.intp]
    stop: NDArray[np.intp]

    def part(self, first: int, last: int) -> "Spans":
        """The spans of the pixels from `first` to before `last`."""
        return Spans(self.start[first:last], self.stop[first:last])


@lru_cache(maxsize=16)  # both axes of a picture as a rule, and of the next one
def spans(n_cells: int, cell: float, first_pixel: int, n_pixels: int) -> Spans:
    """What `n_pixels` pixels from `first_pixel` on show of cells that are `cell` pixels wide."""
    pixels = np.arange(first_pixel, first_pixel + n_pixels + 1)
    edges = np.floor(pixels / cell + _ROUNDING).astype(np.intp)
    start = np.minimum(edges[:-1], n_cells - 1)
    return Spans(start, np.clip(edges[1:], start + 1, n_cells))


def first_pixel(index: int, cell: float) -> int:
    """Where a cell begins, counted from the first one's first pixel, if it has pixels."""
    return ceil(index * cell - _ROUNDING)


def pixels_of(index: int, cell: float) -> tuple[int, int]:
    """First pixel and number of pixels of a cell; where several share one, that one."""
    after = first_pixel(index + 1, cell)
    start = first_pixel(index, cell) if cell >= 1 else after - 1
    return start, after - start


def cell_of(pixel: float, cell: float) -> int:
    """The cell at a pixel, the first of them if it shows several."""
    return int(pixel / cell + _ROUNDING)


def pool(values: NDArray[Value], rows: Spans, columns: Spans) -> NDArray[Value]:
    """The largest of each pixel's cells: [..., n_rows, n_columns] → [..., pixels, pixels]."""
    return _largest(_largest(values, rows, -2), columns, -1)


def _largest(values: NDArray[Value], along: Spans, axis: int) -> NDArray[Value]:
    largest = _picked(values, along.start, axis)
    for more in range(1, int((along.stop - along.start).max(initial=0))):
        others = np.minimum(along.start + more, along.stop - 1)
        np.maximum(largest, _picked(values, others, axis), out=largest)
    return largest


def _picked(values: NDArray[Value], at: NDArray[np.intp], axis: int) -> NDArray[Value]:
    return values[..., at] if axis == -1 else values.take(at, axis)


def strokes(height: int, width: int, period: int, stroke: int) -> NDArray[np.uint16]:
    """What to add to the indices of an area [height, width] for its hatching.

    256 on the diagonal strokes, 0 between them; the sums are indices into a `hatched` table.
    """
    line = np.where(np.arange(height + width) % period < stroke, 256, 0).astype(np.uint16)
    return np.lib.stride_tricks.as_strided(line, (height, width), (line.strides[0],) * 2)


def hatched(table: NDArray[np.uint32], hatch: int) -> NDArray[np.uint32]:
    """A table [256] made [512]: on the strokes, index 0 (a masked cell) has another colour."""
    both = np.concatenate((table, table))
    both[256] = hatch
    return both


def colour_cells(
    pixels: NDArray[np.uint32],
    table: NDArray[np.uint32],
    index: NDArray[np.uint8],
    rows: Spans,
    columns: Spans,
    is_stroke: NDArray[np.bool_],
) -> None:
    """Write cells into `pixels` [height, width], whose lines show `rows` and columns `columns`.

    `index` [n, m] are places in a `hatched` table, `is_stroke` [height, width] says which pixels
    are on the strokes. A picture has more pixels than cells: so cells are coloured and drawn out
    across, and what that gives is copied line by line.
    """
    index, lines = _unshared(index, rows, -2)
    index, places = _unshared(index, columns, -1)
    colours, masked = (each.take(places, 1) for each in (table.take(index), index == 0))
    band = max(1, _BAND // max(1, len(places)))
    for top in range(0, len(lines), band):
        part = slice(top, top + band)
        pixels[part] = colours.take(lines[part], 0)
        np.copyto(pixels[part], table[256], where=masked.take(lines[part], 0) & is_stroke[part])


def _unshared(
    index: NDArray[np.uint8], along: Spans, axis: int
) -> tuple[NDArray[np.uint8], NDArray[np.intp]]:
    """Cells of which no pixel shows several any more, and which of them each pixel shows."""
    if (along.stop - along.start).max(initial=0) <= 1:
        return index, along.start
    return _largest(index, along, axis), np.arange(len(along.start))


def packed(colour: str) -> int:
    """A theme's #RRGGBB as 0xFFRRGGBB."""
    return 0xFF000000 | int(colour.removeprefix("#"), 16)


def keeps_lines(painter: QPainter) -> bool:
    """Whether what is painted stays lines and letters, as in SVG and PDF, not pixels."""
    return painter.paintEngine().type() in _LINE_KEEPERS


def cover(painter: QPainter, place: QRectF, colour: str) -> None:
    """Hide what was painted at a place, in whatever opacity; SVG as Qt writes it has no clip."""
    opacity = painter.opacity()
    painter.setOpacity(1.0)
    painter.fillRect(place, QColor(colour))
    painter.setOpacity(opacity)


def sides(outer: QRectF, inner: QRectF) -> tuple[QRectF, QRectF, QRectF, QRectF]:
    """What an area has above, below, left and right of a place in it."""
    return (
        QRectF(outer.topLeft(), QPointF(outer.right(), inner.top())),
        QRectF(QPointF(outer.left(), inner.bottom()), outer.bottomRight()),
        QRectF(QPointF(outer.left(), inner.top()), inner.bottomLeft()),
        QRectF(inner.topRight(), QPointF(outer.right(), inner.bottom())),
    )


class Canvas:
    """A picture in device pixels that numpy fills, Qt letters and one drawImage shows.

    `pixels` [height, width], 0xFFRRGGBB, is the memory of `image`; RGB32 is what the raster
    engine copies without converting.
    """

    def __init__(self, width: int, height: int, ratio: float) -> None:
        self.size = (max(width, 1), max(height, 1), ratio)
        self.image = QImage(*self.size[:2], QImage.Format.Format_RGB32)
        self.image.setDevicePixelRatio(ratio)
        self.ratio = ratio
        line = self.image.bytesPerLine() // 4
        flat = np.frombuffer(self.image.bits(), np.uint32)
        self.pixels = flat.reshape(self.image.height(), line)[:, : self.image.width()]

    def fits(self, width: int, height: int, ratio: float) -> bool:
        """Whether the picture has this size already."""
        return self.size == (max(width, 1), max(height, 1), ratio)
