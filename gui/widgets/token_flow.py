"""Chips set in rows like words in a paragraph, by numbers alone: quick for half a million."""

import numpy as np
from numpy.typing import NDArray

_NO_INTS = np.zeros(0, np.int64)


class TokenFlow:
    """Owns which row each token stands in and where; a run of joined tokens is never parted.

    A run wider than the row is the exception: it is cut where the row ends.
    """

    def __init__(self) -> None:
        self.starts = _NO_INTS  # [rows] the first token of each row
        self.widths = _NO_INTS  # [tokens]
        self._joined = np.zeros(0, np.bool_)
        self._x = _NO_INTS  # [tokens] where each would stand if there were one endless row
        self._limit = 1
        self._gap = 0

    def __len__(self) -> int:
        return len(self.starts)

    def lay_out(
        self,
        widths: NDArray[np.int64],
        joined: NDArray[np.bool_],
        limit: int,
        gap: int,
        *,
        first_changed: int = 0,
    ) -> None:
        """Set tokens of these widths in rows of `limit` pixels, `gap` between runs.

        Rows that end well before `first_changed` are kept as they are.
        """
        kept = 0
        if (limit, gap) == (self._limit, self._gap) and len(self.starts):
            kept = int(self.starts.searchsorted(max(first_changed - 4, 0), "right")) - 1
        self.widths, self._joined, self._limit, self._gap = widths, joined, limit, gap
        advances = widths + np.where(np.append(joined[1:], False), 0, gap)
        self._x = np.cumsum(advances) - advances
        self.starts = np.concatenate((self.starts[: max(kept, 0)], self._rows_from(kept)))

    def row_of(self, token: int) -> int:
        """The row in which a token stands."""
        return int(self.starts.searchsorted(token, "right")) - 1

    def row(self, row: int) -> tuple[int, int]:
        """The tokens of one row, from the first to before the second."""
        stop = self.starts[row + 1] if row + 1 < len(self.starts) else len(self.widths)
        return int(self.starts[row]), int(stop)

    def x(self, token: int) -> int:
        """How far a token stands from the left end of its row."""
        return int(self._x[token] - self._x[self.starts[self.row_of(token)]])

    def ahead(self, start: int, stop: int) -> NDArray[np.int64]:
        """How far the tokens from `start` to before `stop` stand from the first of them."""
        ahead: NDArray[np.int64] = self._x[start:stop] - self._x[start]
        return ahead

    def nearest(self, row: int, x: float) -> int:
        """The token of a row at that distance from its left end, or the closest to it."""
        start, stop = self.row(row)
        at = self._x[start] + x + self._gap / 2
        token = int(self._x[start:stop].searchsorted(at, "right")) + start - 1
        return min(max(token, start), stop - 1)

    def _rows_from(self, kept: int) -> NDArray[np.int64]:
        n = len(self.widths)
        start = int(self.starts[kept]) if kept > 0 else 0
        ends = self._x + self.widths
        runs = np.maximum.accumulate(np.where(self._joined, 0, np.arange(n)))
        starts = []
        while start < n:
            starts.append(start)
            after = int(ends.searchsorted(self._x[start] + self._limit, "right"))
            if after < n and runs[after] > start:
                after = int(runs[after])
            start = max(after, start + 1)
        return np.array(starts, np.int64)
