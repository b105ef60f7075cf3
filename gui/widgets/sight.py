"""What each position of a text can see under a mask, shaded in a small square.

Every cell stands for one query (row) and one key (column) of the text itself; of a long text only
some are drawn, evenly spread.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen

from engine.conditions import Conditions
from gui.theme import Theme
from gui.widgets.legend import draw_hatched

MOST = 48  # cells along a side, one more for the query


@dataclass(frozen=True, eq=False)
class Sight:
    """Which of some positions [n] see which [n, n]; `query` is the one that stands out."""

    positions: NDArray[np.int64]
    seen: NDArray[np.bool_]
    query: int | None = None

    @classmethod
    def of(cls, conditions: Conditions, n_tokens: int, query: int | None) -> Self:
        """A mask over so many tokens, as it is for a layer without a window of its own."""
        spread = np.linspace(0, max(0, n_tokens - 1), min(n_tokens, MOST)).round()
        more = [] if query is None or query >= n_tokens else [query]
        at = np.unique(np.append(spread, more)).astype(np.int64)
        seen = np.broadcast_to(conditions.visible(at[:, None], at), (len(at), len(at)))
        return cls(at, seen, query)

    def draw(self, painter: QPainter, box: QRectF, theme: Theme) -> None:
        """Fill a square: what is seen in the keys' colour, the query's row in its own."""
        draw_hatched(painter, box, theme)
        n = max(1, len(self.positions))
        wide, high = box.width() / n, box.height() / n
        painter.save()
        painter.setPen(Qt.PenStyle.NoPen)
        for row, keys in enumerate(self.seen):
            is_query = self.query is not None and self.positions[row] == self.query
            colour = QColor(theme.accent if is_query else theme.key)
            # Runs of seen keys: each begins and ends where the row changes.
            edges = np.flatnonzero(np.diff(np.concatenate(([0], keys.view(np.int8), [0]))))
            top, bottom = (round(box.top() + at * high) for at in (row, row + 1))
            for edge in edges.reshape(-1, 2).tolist():
                left, right = (round(box.left() + at * wide) for at in edge)
                run = QRectF(left, top, max(1, right - left), max(1, bottom - top))
                painter.fillRect(run, colour)
        painter.setPen(QPen(QColor(theme.line), 1))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRect(box)
        painter.restore()
