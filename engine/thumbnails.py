"""All heads at once, small: maxima over bins of queries and keys, which only ever grow.

Maxima of maxima are maxima, so a new row is merged into its bin and, when the text outgrows the
64 bins, neighbouring bins are merged in pairs. Nothing is pooled twice and nothing is lost.
"""

from collections.abc import Callable
from copy import copy
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
    """Merge `factor` neighbours, a power of two, into one by their maximum; the last may be fewer.

    Pair by pair, which is ten times as fast as `np.maximum.reduceat` on such short runs.
    """
    while factor > 1:
        along = np.moveaxis(peaks, axis, 0)
        merged, odd = np.copy(along[0::2]), along[1::2]
        np.maximum(merged[: len(odd)], odd, out=merged[: len(odd)])
        peaks = np.moveaxis(merged, 0, axis)
        factor //= 2
    return peaks


def visible_bins(
    conditions: Conditions, n_tokens: int, size: int, window: int = 0
) -> NDArray[np.bool_]:
    """In which bins [R, R] of queries and keys the mask lets at least one cell through.

    `window` is the layer's own, 0 for none.
    """
    first = np.arange(0, n_tokens, size)
    last = np.minimum(first + size, n_tokens) - 1
    if conditions.mask == "none":
        return np.ones((len(first), len(first)), dtype=np.bool_)
    nearest = np.maximum(first[:, None] - last, 0)  # the smallest query − key in the bin
    own = window or n_tokens
    near = nearest < own
    if conditions.mask == "window":
        to_sinks = np.maximum(first[:, None] - np.minimum(last, conditions.sinks - 1), 0)
        near = nearest < min(own, conditions.window)
        near |= (first < conditions.sinks) & (to_sinks < own)
    seen: NDArray[np.bool_] = near & (first <= last[:, None])
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

    def beside(self, recondense: Recondense) -> "ThumbnailMaker":
        """Another maker that shows the same, and goes its own way from here."""
        other = copy(self)
        other._recondense = recondense  # noqa: SLF001
        return other

    def make(self, session: Session) -> Thumbnails:
        """The thumbnails of all rows of the session."""
        n_known = self._n_common(session)
        shown = self._shown
        if shown is not None and n_known == shown.n_tokens == len(session):
            return shown
        if shown is None or not n_known or shown.bin_size > bin_size(len(session)):
            thumbnails = self._from_scratch(session)
        elif n_known < shown.n_tokens:
            thumbnails = self._grown(_cut(shown, n_known), session)
        else:
            thumbnails = self._grown(shown, session)
        self._shown, self._session = thumbnails, session
        return thumbnails

    def _n_common(self, session: Session) -> int:
        n_known = 0
        for old, new in zip(self._session.traces, session.traces, strict=False):
            if old is not new:
                break
            n_known = new.end
        return n_known

    def _from_scratch(self, session: Session) -> Thumbnails:
        shape = session.traces[0].first.shape[:2] if session.traces else (0, 0)
        nothing = Thumbnails(
            n_tokens=0,
            bin_size=bin_size(len(session)),
            peaks=np.zeros((*shape, 0, 0), np.uint8),
            first=np.zeros((*shape, 0), np.uint8),
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
        changed = slice(shown.n_tokens // size, n_bins)
        for whole, rows in zip((peaks, first), self._rows(session, shown, size), strict=True):
            pooled = merge_bins(rows, size, axis=2)
            whole[:, :, changed] = np.maximum(whole[:, :, changed], pooled)
        for array in (peaks, first):
            array.setflags(write=False)
        changed_from = changed.start if factor == 1 else 0
        return Thumbnails(n_tokens, size, peaks, first, changed_from, ref(shown))

    def _rows(self, session: Session, shown: Thumbnails, size: int) -> tuple[Bytes, Bytes]:
        """All rows that are not shown yet, keys in bins of `size`: [L, H, T, bins] and [L, H, T].

        They begin with the bin of the first one; rows of that bin that are shown already are 0.
        """
        n_tokens, begin = len(session), shown.n_tokens // size * size
        shape = (*shown.first.shape[:2], n_tokens - begin)
        peaks = np.zeros((*shape, -(-n_tokens // size)), np.uint8)
        first = np.zeros(shape, np.uint8)
        for trace in session.traces:
            if trace.end <= shown.n_tokens:
                continue
            if trace.bin_size > size:
                rows, row_first = self._recondense(session, trace, size)
            else:
                rows = merge_bins(trace.peaks, size // trace.bin_size, axis=3)
                row_first = trace.first
            skipped = max(0, shown.n_tokens - trace.start)
            at = slice(trace.start + skipped - begin, trace.end - begin)
            # A pass that was cut back has columns behind its last query; they are all masked.
            rows = rows[:, :, skipped:, : peaks.shape[3]]
            peaks[:, :, at, : rows.shape[3]] = rows
            first[:, :, at] = row_first[:, :, skipped:]
        return peaks, first


def _cut(shown: Thumbnails, n_tokens: int) -> Thumbnails:
    """The complete bins of the first `n_tokens` tokens."""
    n_bins = n_tokens // shown.bin_size
    return Thumbnails(
        n_tokens=n_bins * shown.bin_size,
        bin_size=shown.bin_size,
        peaks=shown.peaks[:, :, :n_bins, :n_bins],
        first=shown.first[:, :, :n_bins],
    )
