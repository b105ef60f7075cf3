"""What is known about one pass: a frozen record of the rows that it computed.

A record keeps q, k, v, what each MLP put out and the final hidden state of its new tokens, which is
the whole story: any pattern can be computed from them again, and with a few of the model's matrices
any residual and any logit. The L · H · T · S weights of attention themselves are not kept; what a
panel needs of all heads at once is condensed while they pass by:

- `peaks`: each row's largest weight per bin of keys, as round(255 · √weight). Bins are powers of
  two and maxima can be merged, so thumbnails only ever gain rows and stay exact.
- `features`: the per-row sums that head roles and checks are made of.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Bytes = NDArray[np.uint8]

MAX_BINS = 64

# The columns of `Trace.features`.
SAME_TOKEN, INDUCTION, MASKED, ROW_SUM, PREVIOUS_TOKEN, FIRST_TOKEN, ENTROPY = range(7)
N_FEATURES = 7


def bin_size(n_tokens: int) -> int:
    """How many keys share one thumbnail column: the smallest power of two that makes ≤ 64 bins."""
    size = 1
    while size * MAX_BINS < n_tokens:
        size *= 2
    return size


# Which axis of each array of a `Trace` counts its tokens.
_TOKEN_AXIS = {
    "token_ids": 0,
    "q": 2,
    "k": 2,
    "v": 2,
    "mlp": 1,
    "hidden": 0,
    "loss": 0,
    "rank": 0,
    "twin": 0,
    "peaks": 2,
    "first": 2,
    "features": 2,
}


@dataclass(frozen=True, eq=False)
class Summary:
    """A pass's features summed over the rows that can be asked, and what must hold for each row.

    `sums` [L, H, N_FEATURES] takes SAME_TOKEN and INDUCTION from the rows whose token stood
    somewhere before, PREVIOUS_TOKEN and FIRST_TOKEN from those at position 1 or later, and the
    rest from all rows.
    """

    sums: Floats
    n_later: int
    n_twin: int
    row_sum_error: float  # largest |Σ weights − 1|
    masked_weight: float  # largest weight on keys that the mask forbids
    all_finite: bool


@dataclass(frozen=True, eq=False)
class Trace:
    """One pass over T new tokens that stand at positions start … start + T - 1.

    All arrays are read-only, and a trace equals only itself. `loss[t]` is the cross-entropy in
    nats of token t under the row before it (NaN for the first token of a text), `rank[t]` how
    many tokens were more probable (−1 for the first).
    """

    start: int
    token_ids: NDArray[np.int64]  # [T]
    q: Floats  # [L, H, T, D], after the position scheme
    k: Floats  # [L, G, T, D], after the position scheme
    v: Floats  # [L, G, T, D]
    mlp: Floats  # [L, T, C], what each MLP put out, before any norm of it
    hidden: Floats  # [T, C], after the final norm
    loss: Floats  # [T]
    rank: NDArray[np.int64]  # [T]
    twin: NDArray[np.bool_]  # [T], whether the same token stands somewhere before
    peaks: Bytes  # [L, H, T, bins], without the first key
    first: Bytes  # [L, H, T], the first key's weight, in the units of `peaks`
    features: Floats  # [L, H, T, N_FEATURES]
    bin_size: int
    seconds: float  # from the start of the pass to the end of its arithmetic
    cache_bytes: int  # held by the KV cache in use after the pass
    n_held: int = 0  # rows that the arrays' memory holds, if that is more than T

    @property
    def n_tokens(self) -> int:
        """T."""
        return len(self.token_ids)

    @cached_property
    def summary(self) -> Summary:
        """What readouts need of all rows together, worked out once per pass."""
        later = slice(max(0, 1 - self.start), None)
        sums = self.features.sum(axis=2, dtype=np.float64)
        for columns, rows in (
            ([SAME_TOKEN, INDUCTION], self.twin),
            ([PREVIOUS_TOKEN, FIRST_TOKEN], later),
        ):
            asked = self.features[:, :, rows][..., columns]
            sums[..., columns] = asked.sum(axis=2, dtype=np.float64)
        return Summary(
            sums=sums.astype(np.float32),
            n_later=len(self.twin[later]),
            n_twin=int(self.twin.sum()),
            row_sum_error=float(np.abs(self.features[..., ROW_SUM] - 1).max(initial=0.0)),
            masked_weight=float(self.features[..., MASKED].max(initial=0.0)),
            all_finite=all(
                bool(np.isfinite(part).all())
                for part in (self.q, self.k, self.v, self.hidden, self.features)
            ),
        )

    @property
    def end(self) -> int:
        """The position after the last token: S."""
        return self.start + self.n_tokens

    @property
    def nbytes(self) -> int:
        """Bytes of the rows; the memory behind them is at most twice that."""
        arrays = [getattr(self, name) for name in _TOKEN_AXIS]
        return sum(array.nbytes for array in (*arrays, self.summary.sums))

    def head(self, n_tokens: int) -> Self:
        """The same pass without the rows from n_tokens on.

        They stay in the same memory as long as they fill half of it, else they are copied: edit
        after edit in a long text must not keep alive what each of them cut off.
        """
        n_held = self.n_held or self.n_tokens
        shared = 2 * n_tokens >= n_held
        rows = {}
        for name, axis in _TOKEN_AXIS.items():
            part = getattr(self, name)[(slice(None),) * axis + (slice(n_tokens),)]
            if not shared:
                part = part.copy()
                part.setflags(write=False)
            rows[name] = part
        return replace(self, **rows, n_held=n_held if shared else 0)


def has_earlier_twin(token_ids: Sequence[int], start: int = 0) -> NDArray[np.bool_]:
    """For each position from `start` on, whether its token stands somewhere before it [T]."""
    seen = set(token_ids[:start])
    found = np.zeros(len(token_ids) - start, dtype=np.bool_)
    for row, token in enumerate(token_ids[start:]):
        found[row] = token in seen
        seen.add(token)
    found.setflags(write=False)
    return found
