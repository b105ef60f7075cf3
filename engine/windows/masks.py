"""The same text under several masks, side by side: what each costs, shows and must keep.

A window of n lets a query see n positions, its own included; the first k may stay visible to all
(Xiao et al. 2023 call them attention sinks). A mask is a rule for one layer: through L layers a
window still passes on what stood up to L · (n − 1) positions back, each layer handing on what the
one below has gathered.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from engine.conditions import Conditions
from engine.config import ModelConfig
from engine.loss import mean_loss

Floats = NDArray[np.float32]

BYTES_PER_NUMBER = 4  # the KV cache holds float32


@dataclass(frozen=True, eq=False)
class UnderMask:
    """A text read under one mask; S tokens, seen from one of its positions, the query."""

    conditions: Conditions
    loss: Floats  # [S] nats; NaN for the first token
    row: Floats  # [L, H, S] the query's weights; 0 on what it may not see
    top: tuple[tuple[int, float], ...]  # the most probable tokens after the query: id, probability
    cache_rows: tuple[int, ...]  # [L] keys that each layer's tensors hold after the text
    cache_bytes: int  # of those keys and their values; nothing is cached without a mask

    @property
    def mean(self) -> float:
        """Nats per token over all but the first; NaN without one."""
        return mean_loss(self.loss)


@dataclass(frozen=True, eq=False)
class Windows:
    """One text under several masks."""

    query: int
    masks: tuple[UnderMask, ...]

    @property
    def n_tokens(self) -> int:
        """S."""
        return len(self.masks[0].loss)


def three_masks(conditions: Conditions, window: int, sinks: int) -> tuple[Conditions, ...]:
    """The causal mask, a window, and the first positions with a window; all else as it is.

    Raises:
        ConfigError: the window is smaller than 1, or there are fewer than 0 first positions.
    """
    return (
        replace(conditions, mask="causal", window=0, sinks=0),
        replace(conditions, mask="window", window=window, sinks=0),
        replace(conditions, mask="window", window=window, sinks=sinks),
    )


def visible_keys(
    conditions: Conditions, query: int, n_tokens: int, window: int = 0
) -> NDArray[np.bool_]:
    """Which of a text's keys a query may see in a layer with that window of its own [S]."""
    seen: NDArray[np.bool_] = conditions.visible(np.int64(query), np.arange(n_tokens), window)
    return seen


def bytes_per_row(config: ModelConfig) -> int:
    """Bytes that one token's key and value take in one layer."""
    return 2 * config.n_kv_head * config.head_dim * BYTES_PER_NUMBER


def reach(conditions: Conditions, config: ModelConfig) -> int | None:
    """How many positions back a window's layers can hand something on together.

    None: without an end, under the causal mask and none at all.
    """
    if conditions.mask != "window":
        return None
    widths = (conditions.narrowed(config.window(layer)) for layer in range(config.n_layer))
    return sum(width - 1 for width in widths)


def antecedent(token_ids: Sequence[int] | NDArray[np.int64], query: int) -> int | None:
    """What followed the latest earlier occurrence of the query's token; None if there is none.

    It is where a copying head looks (`engine.readouts`, induction), and so what a window that is
    too narrow takes from it.
    """
    wanted = int(token_ids[query])
    for key in range(query - 1, -1, -1):
        if int(token_ids[key]) == wanted:
            return key + 1
    return None
