"""All passes of one text so far: an immutable story that only appends.

Prefill, a decoded token, an edit and a branch are one operation: keep the common prefix, append
a pass. What the prefix keeps is shared with the story before, never copied.
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from operator import is_

import numpy as np
from numpy.typing import NDArray

from engine.trace import N_FEATURES, Trace

Floats = NDArray[np.float32]

# What an empty text holds.
_NO_IDS = np.empty(0, np.int64)
_NO_LOSS = np.empty(0, np.float32)
_NO_ROWS = np.empty((0, 0, 0), np.float32)
_NO_FEATURES = np.empty((0, 0, 0, N_FEATURES), np.float32)


@dataclass(frozen=True)
class Session:
    """The passes in order; each starts where the one before ends."""

    traces: tuple[Trace, ...] = ()

    def __len__(self) -> int:
        """How many tokens have been read: S."""
        return self.traces[-1].end if self.traces else 0

    def n_shared(self, other: "Session") -> int:
        """How many tokens, from the first on, have been read by the same passes in both."""
        are_same = map(is_, self.traces, other.traces)
        n_passes = sum(takewhile(bool, are_same))  # no loop of ours: there may be thousands
        return self.traces[n_passes - 1].end if n_passes else 0

    def truncate(self, length: int) -> "Session":
        """The story of the first `length` tokens; a pass across the border loses its tail."""
        kept = [trace for trace in self.traces if trace.start < length]
        if kept and kept[-1].end > length:
            kept[-1] = kept[-1].head(length - kept[-1].start)
        return Session(tuple(kept))

    def append(self, trace: Trace) -> "Session":
        """The story with one more pass; whatever it computes again is replaced.

        Raises:
            ValueError: the pass leaves a gap behind the tokens that are known.
        """
        if trace.start > len(self):
            raise ValueError(f"a pass from {trace.start} on leaves a gap after {len(self)} tokens.")
        return Session((*self.truncate(trace.start).traces, trace))

    @cached_property
    def token_ids(self) -> NDArray[np.int64]:
        """[S]."""
        return self._stitch([trace.token_ids for trace in self.traces], 0, _NO_IDS)

    @cached_property
    def loss(self) -> Floats:
        """Nats per token [S]; NaN for the first."""
        return self._stitch([trace.loss for trace in self.traces], 0, _NO_LOSS)

    @cached_property
    def rank(self) -> NDArray[np.int64]:
        """How many tokens were more probable than the one that stands there [S]."""
        return self._stitch([trace.rank for trace in self.traces], 0, _NO_IDS)

    @cached_property
    def features(self) -> Floats:
        """[L, H, S, N_FEATURES]."""
        return self._stitch([trace.features for trace in self.traces], 2, _NO_FEATURES)

    def q(self, layer: int) -> Floats:
        """One layer's queries [H, S, D]."""
        return self._stitch([trace.q[layer] for trace in self.traces], 1, _NO_ROWS)

    def k(self, layer: int) -> Floats:
        """One layer's keys [G, S, D]."""
        return self._stitch([trace.k[layer] for trace in self.traces], 1, _NO_ROWS)

    def v(self, layer: int) -> Floats:
        """One layer's values [G, S, D]."""
        return self._stitch([trace.v[layer] for trace in self.traces], 1, _NO_ROWS)

    def queries(self, rows: slice) -> Floats:
        """All layers' queries at the positions of `rows` [L, H, T, D]."""
        parts = [trace.q[:, :, own] for trace, own in self._parts(rows.start, rows.stop)]
        return self._stitch(parts, 2, _NO_ROWS)

    def mlp(self, rows: slice) -> Floats:
        """What each layer's MLP put out at the positions of `rows` [L, T, C], before any norm."""
        parts = [trace.mlp[:, own] for trace, own in self._parts(rows.start, rows.stop)]
        return self._stitch(parts, 1, _NO_ROWS)

    def keys_and_values(self, layer: int, start: int, end: int) -> tuple[Floats, Floats]:
        """One layer's keys and values [G, rows, D] at the positions from `start` up to `end`."""
        parts = list(self._parts(start, end))
        k = [trace.k[layer][:, own] for trace, own in parts]
        v = [trace.v[layer][:, own] for trace, own in parts]
        return self._stitch(k, 1, _NO_ROWS), self._stitch(v, 1, _NO_ROWS)

    def _parts(self, start: int, end: int) -> Iterator[tuple[Trace, slice]]:
        """The passes that computed some positions, and which of their own rows those are."""
        for trace in self.traces:
            if trace.start < end and start < trace.end:
                yield trace, slice(max(0, start - trace.start), end - trace.start)

    def hidden(self, position: int) -> Floats:
        """The final hidden state at one position [C].

        Raises:
            IndexError: the position has not been read.
        """
        trace, at = self.place(position)
        row: Floats = trace.hidden[at]
        return row

    def place(self, position: int) -> tuple[Trace, int]:
        """The pass that computed a position, and which of its rows that is.

        Raises:
            IndexError: the position has not been read.
        """
        if not 0 <= position < len(self):
            raise IndexError(f"position {position} is not among the {len(self)} that were read.")
        trace = self.traces[bisect_right(self.traces, position, key=lambda each: each.start) - 1]
        return trace, position - trace.start

    @property
    def nbytes(self) -> int:
        """Bytes of all the records, linear in the number of tokens."""
        return sum(trace.nbytes for trace in self.traces)

    @staticmethod
    def _stitch(parts: list[np.ndarray], axis: int, nothing: np.ndarray) -> np.ndarray:
        if not parts:
            return nothing
        if len(parts) == 1:
            return parts[0]
        stitched = np.concatenate(parts, axis=axis)
        stitched.setflags(write=False)
        return stitched
