"""What is known about one pass: a frozen record of the rows that it computed.

A record keeps q, k, v and the final hidden state of its new tokens, which is the whole story:
any pattern and any logit can be computed from them again. The L · H · T · S weights themselves
are not kept; what a panel needs of all heads at once is condensed while they pass by:

- `peaks`: each row's largest weight per bin of keys, as round(255 · √weight). Bins are powers of
  two and maxima can be merged, so thumbnails only ever gain rows and stay exact.
- `features`: the per-row sums that head roles and checks are made of.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
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


@dataclass(frozen=True)
class Trace:
    """One pass over T new tokens that stand at positions start … start + T - 1.

    All arrays are read-only. `loss[t]` is the cross-entropy in nats of token t under the row
    before it (NaN for the first token of a text), `rank[t]` how many tokens were more probable.
    """

    start: int
    token_ids: NDArray[np.int64]  # [T]
    q: Floats  # [L, H, T, D], after the position scheme
    k: Floats  # [L, G, T, D], after the position scheme
    v: Floats  # [L, G, T, D]
    hidden: Floats  # [T, C], after the final norm
    loss: Floats  # [T]
    rank: NDArray[np.int64]  # [T]
    peaks: Bytes  # [L, H, T, bins], without the first key
    first: Bytes  # [L, H, T], the first key's weight, in the units of `peaks`
    features: Floats  # [L, H, T, N_FEATURES]
    bin_size: int
    seconds: float  # from the start of the pass to the end of its arithmetic
    cache_bytes: int  # held by the KV cache in use after the pass

    @property
    def n_tokens(self) -> int:
        """T."""
        return len(self.token_ids)

    @property
    def end(self) -> int:
        """The position after the last token: S."""
        return self.start + self.n_tokens

    def head(self, n_tokens: int) -> Self:
        """The same pass without the rows from n_tokens on; views, not copies."""
        rows = slice(0, n_tokens)
        return replace(
            self,
            token_ids=self.token_ids[rows],
            q=self.q[:, :, rows],
            k=self.k[:, :, rows],
            v=self.v[:, :, rows],
            hidden=self.hidden[rows],
            loss=self.loss[rows],
            rank=self.rank[rows],
            peaks=self.peaks[:, :, rows],
            first=self.first[:, :, rows],
            features=self.features[:, :, rows],
        )


def has_earlier_twin(token_ids: Sequence[int]) -> NDArray[np.bool_]:
    """For each position, whether the same token stands somewhere before it [S]."""
    seen: set[int] = set()
    found = np.zeros(len(token_ids), dtype=np.bool_)
    for position, token in enumerate(token_ids):
        found[position] = token in seen
        seen.add(token)
    return found
