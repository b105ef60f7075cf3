"""Cells as rectangles, for files whose pictures stay sharp at any size."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPen

from gui.theme import Theme
from gui.widgets.legend import hatch_period
from gui.widgets.scales import MASKED

MOST_RUNS = 1 << 12  # rectangles of a picture; with more the file would be larger than its pixels
_UNDER = 0.5  # logical pixels by which a rectangle reaches under the next: no seam shines through


class Run(NamedTuple):
    """Neighbours in a row that have one colour: columns from `first` to before `last`."""

    row: int
    first: int
    last: int
    level: int


def runs(levels: NDArray[np.uint8]) -> list[Run]:
    """All cells [n_rows, n_columns] as runs, row by row from left to right."""
    found = []
    for row, line in enumerate(levels):
        edges = np.flatnonzero(np.diff(line)) + 1
        for first, last in zip((0, *edges.tolist()), (*edges.tolist(), len(line)), strict=True):
            found.append(Run(row, first, last, int(line[first])))
    return found


class Grid(NamedTuple):
    """Where the rows and the columns begin and the last one ends, in logical pixels."""

    rows: list[float]
    columns: list[float]

    def place(self, run: Run) -> QRectF:
        """Where a run lies."""
        corner = QPointF(self.columns[run.first], self.rows[run.row])
        return QRectF(corner, QPointF(self.columns[run.last], self.rows[run.row + 1]))


def draw_runs(
    painter: QPainter, cells: list[Run], grid: Grid, table: NDArray[np.uint32], theme: Theme
) -> None:
    """Draw runs in their order, so that each covers what the ones before reach under it.

    `table` has a colour for each level; masked cells are hatched over it.
    """
    end = QPointF(grid.columns[-1], grid.rows[-1])
    strokes = QPainterPath()
    for run in cells:
        place = grid.place(run)
        reaching = place.adjusted(0, 0, _UNDER, _UNDER)
        reaching.setRight(min(reaching.right(), end.x()))
        reaching.setBottom(min(reaching.bottom(), end.y()))
        painter.fillRect(reaching, QColor.fromRgb(int(table[run.level])))
    origin = QPointF(grid.columns[0], grid.rows[0])
    for run in cells:
        if run.level == MASKED:
            for start, stop in _diagonals(grid.place(run), origin, hatch_period(theme)):
                strokes.moveTo(start)
                strokes.lineTo(stop)
    if not strokes.isEmpty():
        ink, line, cap = QColor(theme.hatch), Qt.PenStyle.SolidLine, Qt.PenCapStyle.FlatCap
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(ink, 1, line, cap))
        painter.drawPath(strokes)


def _diagonals(place: QRectF, origin: QPointF, period: float) -> Iterator[tuple[QPointF, QPointF]]:
    """The hatching's strokes inside a place; they go on from place to place."""
    least = place.left() - origin.x() + place.top() - origin.y()
    most = place.right() - origin.x() + place.bottom() - origin.y()
    # On a stroke, x + y from the origin on is half a pixel more than a multiple of the period.
    for at in range(int(np.ceil((least - 0.5) / period)), int((most - 0.5) // period) + 1):
        total = at * period + 0.5 + origin.x() + origin.y()
        left = max(place.left(), total - place.bottom())
        right = min(place.right(), total - place.top())
        if left < right:
            yield QPointF(left, total - left), QPointF(right, total - right)
