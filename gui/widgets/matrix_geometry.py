"""Where the cells of a large matrix lie, in whole device pixels."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

from gui.widgets.pixels import Spans, cell_of, first_pixel, pixels_of, spans

_WHOLE = 12  # from this many pixels on, all cells have the same size


@dataclass(frozen=True)
class MatrixGeometry:
    """A window of `width` × `height` pixels at (`left`, `top`) onto square cells.

    `x`, `y` are how far it is moved into the matrix. Cells of less than a pixel share one;
    small ones take up whole pixels and differ by one, so that the picture fills its place;
    from twelve pixels on all are equal.
    """

    n_rows: int
    n_columns: int
    cell: float
    left: int
    top: int
    width: int
    height: int
    x: int = 0
    y: int = 0

    @classmethod
    def fitted(
        cls, n_rows: int, n_columns: int, area: tuple[int, int, int, int], largest: float
    ) -> Self:
        """All cells within an area (left, top, width, height), none wider than `largest`.

        There is room for some more, so that most steps leave the present cells in their places.
        """
        cell = whole(min(area[2] / roomy(n_columns), area[3] / roomy(n_rows), largest))
        return cls.windowed(n_rows, n_columns, cell, area)

    @cached_property
    def room(self) -> Self:
        """The cells that there are and those that there is room for."""
        columns, rows = roomy(self.n_columns), roomy(self.n_rows)
        width, height = first_pixel(columns, self.cell), first_pixel(rows, self.cell)
        return replace(self, n_rows=rows, n_columns=columns, width=width, height=height)

    @classmethod
    def windowed(
        cls, n_rows: int, n_columns: int, cell: float, area: tuple[int, int, int, int]
    ) -> Self:
        """The first cells, of a given size, as many as an area has room for."""
        left, top, width, height = area
        width = max(1, min(width, first_pixel(n_columns, cell)))
        height = max(1, min(height, first_pixel(n_rows, cell)))
        return cls(n_rows, n_columns, cell, left, top, width, height)

    def moved_to(self, x: int, y: int) -> Self:
        """The same window elsewhere on the matrix, never beyond its edges."""
        x = max(0, min(x, first_pixel(self.n_columns, self.cell) - self.width))
        y = max(0, min(y, first_pixel(self.n_rows, self.cell) - self.height))
        return replace(self, x=x, y=y)

    def showing(self, row: int | None, column: int | None) -> Self:
        """Moved as little as it takes to show a row and a column whole."""
        x, y = self.x, self.y
        if column is not None:
            x = _towards(x, self.width, self.column(column), self.left)
        if row is not None:
            y = _towards(y, self.height, self.row(row), self.top)
        return self.moved_to(x, y)

    def row(self, index: int) -> tuple[int, int]:
        """First pixel and height of a row on the canvas, at least one pixel high."""
        return self._span(index, self.top - self.y)

    def column(self, index: int) -> tuple[int, int]:
        """First pixel and width of a column on the canvas, at least one pixel wide."""
        return self._span(index, self.left - self.x)

    def cell_at(self, x: float, y: float) -> tuple[int, int] | None:
        """Row and column at a pixel of the canvas; None outside."""
        x, y = x - self.left, y - self.top
        if not (0 <= x < self.width and 0 <= y < self.height):
            return None
        row, column = cell_of(int(y) + self.y, self.cell), cell_of(int(x) + self.x, self.cell)
        return min(row, self.n_rows - 1), min(column, self.n_columns - 1)

    @property
    def row_spans(self) -> Spans:
        """The rows of each line of pixels."""
        return spans(self.n_rows, self.cell, self.y, self.height)

    @property
    def column_spans(self) -> Spans:
        """The columns of each column of pixels."""
        return spans(self.n_columns, self.cell, self.x, self.width)

    def _span(self, index: int, origin: int) -> tuple[int, int]:
        start, length = pixels_of(index, self.cell)
        return origin + start, length


def roomy(n: int) -> int:
    """A number of cells from `n` on that stays the same for the next few: a 16th more at most."""
    step = 1 << max(0, n.bit_length() - 5)
    return -(-n // step) * step


def whole(cell: float) -> float:
    """A cell size that is drawn evenly: a whole number once that costs little room."""
    return float(int(cell)) if cell >= _WHOLE else cell


def _towards(at: int, length: int, span: tuple[int, int], origin: int) -> int:
    before = span[0] - origin
    after = span[0] + span[1] - origin - length
    return at + (before if before < 0 else max(0, after))
