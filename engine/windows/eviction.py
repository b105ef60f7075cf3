"""A budget for the KV cache: which keys are given up when it is full, and what came of it.

- "window": the last B keys stay, as in a window mask of B (the oldest goes).
- "first + window": the first k and the last B − k (StreamingLLM, Xiao et al. 2023), but a key
  keeps the position that it was read at; their paper counts positions anew within the cache.
- "most attended": half of the budget for the last keys, half for those that got the most weight
  so far, summed over all queries and over the heads that share a key (H2O, Zhang et al. 2023);
  each group of heads keeps keys of its own choice.

The newest key counts, and is never given up. A mask hides what it hides, held or not.
"""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from engine.conditions import Conditions
from engine.errors import ConfigError
from engine.loss import mean_loss

Floats = NDArray[np.float32]
Policy = Literal["window", "first + window", "most attended"]

POLICIES: tuple[Policy, ...] = get_args(Policy)
NEVER = -1


@dataclass(frozen=True, kw_only=True)
class Budget:
    """At most `n_keys` keys in each layer and group; `sinks` counts only where they stay.

    Raises:
        ConfigError: the policy is unknown, the budget is below 1, or the first keys fill it.
    """

    policy: Policy = "window"
    n_keys: int = 16
    sinks: int = 0

    def __post_init__(self) -> None:
        if self.policy not in POLICIES:
            raise ConfigError(
                f"the policy {self.policy!r} is unknown; use one of {', '.join(POLICIES)}."
            )
        if self.n_keys < 1:
            raise ConfigError(f"a budget of {self.n_keys} keys holds nothing; use 1 or more.")
        if self.policy != "first + window":
            object.__setattr__(self, "sinks", 0)
        elif not 0 <= self.sinks < self.n_keys:
            raise ConfigError(
                f"a budget of {self.n_keys} keys does not hold the first {self.sinks} and the "
                f"newest; use 0 to {self.n_keys - 1} first ones."
            )

    @property
    def by_weight(self) -> bool:
        """Whether what goes depends on weights, and not on positions alone."""
        return self.policy == "most attended"

    @property
    def n_recent(self) -> int:
        """How many of the last keys, the newest included, are never given up."""
        if self.by_weight:
            return max(1, self.n_keys // 2)
        return self.n_keys - self.sinks


@dataclass(frozen=True, eq=False)
class Continuation:
    """What was written after a text, token by token."""

    token_ids: tuple[int, ...]
    tokens: tuple[bytes, ...]

    def n_common(self, other: "Continuation") -> int:
        """How many tokens two have in common from the start."""
        shorter = min(len(self.token_ids), len(other.token_ids))
        pairs = zip(self.token_ids, other.token_ids, strict=False)
        return next((at for at, (one, two) in enumerate(pairs) if one != two), shorter)


@dataclass(frozen=True, eq=False)
class Eviction:
    """A text of S tokens, and what was written after it, under a budget and with all keys.

    `dropped_at` [L, G, N] says at which step a position's key was given up, over the N tokens that
    were read, the continuation's included: step t reads the token at position t. NEVER: it stayed.
    """

    budget: Budget
    conditions: Conditions  # of both
    loss: Floats  # [S] nats, under the budget; NaN for the first
    full_loss: Floats  # [S] with all keys
    n_more: int  # tokens that a continuation has in the end
    continuation: Continuation
    full_continuation: Continuation
    dropped_at: NDArray[np.int64]
    held_bytes: int  # by the tensors' rows in use after the text
    full_bytes: int

    @property
    def is_whole(self) -> bool:
        """Whether both continuations are written."""
        written = self.continuation.token_ids, self.full_continuation.token_ids
        return all(len(each) == self.n_more for each in written)

    @property
    def n_tokens(self) -> int:
        """S."""
        return len(self.loss)

    def kept(self, step: int) -> Floats:
        """In which share of layers and groups the keys of positions 0 … step are held [step + 1].

        As they were when the step's query looked: what it gave up is gone.
        """
        dropped_at = self.dropped_at[:, :, : step + 1]
        held = (dropped_at == NEVER) | (dropped_at > step)
        share: Floats = held.mean(axis=(0, 1), dtype=np.float64).astype(np.float32)
        return share

    def dropped(self, step: int) -> tuple[int, ...]:
        """The positions whose keys a step gave up somewhere, in order."""
        return tuple(np.unique(np.nonzero(self.dropped_at == step)[2]).tolist())

    @property
    def mean(self) -> float:
        """Nats per token under the budget, over all but the first."""
        return mean_loss(self.loss)

    @property
    def full_mean(self) -> float:
        """The same with all keys."""
        return mean_loss(self.full_loss)
