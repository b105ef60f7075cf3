"""All heads at once, small: maxima over bins of queries and keys, which only ever grow.

Maxima of maxima are maxima, so a new row is merged into its bin and, when the text outgrows the
64 bins, neighbouring bins are merged in pairs. Nothing is pooled twice and nothing is lost.
"""

from collections.abc import Callable
from dataclasses import dataclass
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from engine.conditions import Conditions
from engine.session import Session
from engine.trace import Trace, bin_size

Bytes = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Thumbnails:
    """Every head's pattern in at most 64 × 64 bins, as round(255 · √(largest weight in the bin)).

    `peaks` [L, H, R, R] leave the first key out; `first` [L, H, R] is its weight. If they grew
    from earlier thumbnails, only the rows of bins from `changed_from` on differ from those.
    """

    n_tokens: int
    bin_size: int
    peaks: Bytes
    first: Bytes
    changed_from: int = 0
    grown_from: "ref[Thumbnails] | None" = None


def merge_bins(peaks: Bytes, factor: int, axis: int) -> Bytes:
    """Merge `factor` neighbours along an axis into one by their maximum, the last may be fewer."""
    if factor == 1:
        return peaks
    starts = np.arange(0, peaks.shape[axis], factor)
    return np.maximum.reduceat(peaks, starts, axis=axis)


def visible_bins(conditions: Conditions, n_tokens: int, size: int) -> NDArray[np.bool_]:
    """In which bins [R, R] of queries and keys the mask lets at least one cell through."""
    first = np.arange(0, n_tokens, size)
    last = np.minimum(first + size, n_tokens) - 1
    if conditions.mask == "none":
        return np.ones((len(first), len(first)), dtype=np.bool_)
    seen = first <= last[:, None]
    if conditions.mask == "window":
        nearest = np.maximum(first[:, None] - last, 0)  # the smallest query − key in the bin
        seen &= (nearest < conditions.window) | (first < conditions.sinks)
    return seen


Recondense = Callable[[Session, Trace, int], tuple[Bytes, Bytes]]


class ThumbnailMaker:
    """Owns the thumbnails shown last and brings them up to date with little work."""

    def __init__(self, recondense: Recondense) -> None:
        """`recondense(session, trace, size)` gives the rows that were kept too coarsely again.

        That happens when a long text is cut back: its rows were condensed for the long one.
        """
        self._recondense = recondense
        self._shown: Thumbnails | None = None
        self._session = Session()

    def make(self, session: Session) -> Thumbnails:
        """The thumbnails of all rows of the session."""
        n_known = self._n_common(session)
        if self._shown is not None and n_known == self._shown.n_tokens == len(session):
            return self._shown
        if self._shown is None or not n_known or n_known < self._shown.n_tokens:
            thumbnails = self._from_scratch(session)
        else:
            thumbnails = self._grown(self._shown, session)
        self._shown, self._session = thumbnails, session
        return thumbnails

    def _n_common(self, session: Session) -> int:
        n_known = 0
        for old, new in zip(self._session.traces, session.traces, strict=False):
            if old is not new:
                break
            n_known = new.end
        return n_known

    def _rows(self, session: Session, trace: Trace, size: int) -> tuple[Bytes, Bytes]:
        """A pass's rows with keys in bins of `size`: [L, H, T, bins] and [L, H, T]."""
        if trace.bin_size > size:
            return self._recondense(session, trace, size)
        return merge_bins(trace.peaks, size // trace.bin_size, axis=3), trace.first

    def _from_scratch(self, session: Session) -> Thumbnails:
        n_tokens = len(session)
        size = bin_size(n_tokens)
        shape = session.traces[0].first.shape[:2] if session.traces else (0, 0)
        nothing = Thumbnails(
            0, size, np.zeros((*shape, 0, 0), np.uint8), np.zeros((*shape, 0), np.uint8)
        )
        return self._grown(nothing, session)

    def _grown(self, shown: Thumbnails, session: Session) -> Thumbnails:
        n_tokens = len(session)
        size = bin_size(n_tokens)
        factor = size // shown.bin_size
        n_bins = -(-n_tokens // size)
        shape = shown.first.shape[:2]
        peaks = np.zeros((*shape, n_bins, n_bins), np.uint8)
        first = np.zeros((*shape, n_bins), np.uint8)
        if shown.n_tokens:
            old = merge_bins(merge_bins(shown.peaks, factor, axis=2), factor, axis=3)
            peaks[:, :, : old.shape[2], : old.shape[3]] = old
            old_first = merge_bins(shown.first, factor, axis=2)
            first[:, :, : old_first.shape[2]] = old_first
        for trace in session.traces:
            if trace.end > shown.n_tokens:
                rows, row_first = self._rows(session, trace, size)
                _merge_in(peaks, first, trace, size, rows, row_first)
        for array in (peaks, first):
            array.setflags(write=False)
        changed_from = shown.n_tokens // size if factor == 1 else 0
        return Thumbnails(n_tokens, size, peaks, first, changed_from, ref(shown))


def _merge_in(
    peaks: Bytes, first: Bytes, trace: Trace, size: int, rows: Bytes, row_first: Bytes
) -> None:
    """Merge a pass's rows [L, H, T, bins] into their bins of peaks and first, in place."""
    # Bins start at multiples of the size, counted from position 0, not from the pass.
    bins = np.arange(trace.start, trace.end) // size
    starts = np.flatnonzero(np.diff(bins, prepend=-1))
    at = slice(int(bins[0]), int(bins[-1]) + 1)
    # A pass that was cut back has columns behind its last query; they are all masked.
    rows = rows[..., : peaks.shape[3]]
    keys = slice(0, rows.shape[3])
    pooled = np.maximum.reduceat(rows, starts, axis=2)
    peaks[:, :, at, keys] = np.maximum(peaks[:, :, at, keys], pooled)
    first[:, :, at] = np.maximum(first[:, :, at], np.maximum.reduceat(row_first, starts, axis=2))
