"""What a pass costs, from the configuration alone: multiply-adds and bytes, part by part.

Plain arithmetic, without torch. Only matrix products count, as they do for torch's own counter
(`torch.utils.flop_counter`, which counts two operations for a multiply-add); what is done number
by number (norms, rotary positions, softmax, the bend of the MLP, sums) is left out. Two counts:

- `multiply_adds` is what this engine computes. Its attention takes queries in blocks, each
  against all keys up to the block's end, through a window from the first key that some query of
  the block sees; so it also computes cells that the mask then hides.
- `needed` counts only the cells that the mask shows; everything else is the same.

For a pass of T new tokens that follow others, with S positions in the end (2 · multiply-adds is
what papers call FLOPs; Kaplan et al. 2020, table 1, count the same products):

    projections   L · T · C · (H + 2G) · D   and   L · T · H · D · C
    scores, mix   each L · H · D · (the sum over all blocks of rows · keys)
    MLP           L · T · C · F · 2, gated · 3
    output        V · C for each row of logits
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray

from engine.conditions import Conditions
from engine.config import QUERY_BLOCK, ModelConfig
from engine.formats import WEIGHT_BYTES, FormatName

Part = Literal["embedding", "projections", "scores", "mix", "MLP", "output"]
PARTS: tuple[Part, ...] = get_args(Part)
ATTENTION: tuple[Part, ...] = ("scores", "mix")  # what grows with the square of the length

_CAUSAL = Conditions()
_FLOAT = 4  # bytes of a number in all that is no weight


@dataclass(frozen=True)
class PartCost:
    """One part of a pass, over all layers.

    The bytes are those of the operands and results of its products: each weight once, the keys
    or values of each block of queries once, and every row that goes in or comes out.
    """

    multiply_adds: int = 0
    needed: int = 0
    weight_bytes: int = 0
    cache_bytes: int = 0  # keys (scores) or values (mix)
    row_bytes: int = 0

    @property
    def n_bytes(self) -> int:
        """All bytes together."""
        return self.weight_bytes + self.cache_bytes + self.row_bytes

    def __add__(self, other: Self) -> Self:
        return type(self)(
            self.multiply_adds + other.multiply_adds,
            self.needed + other.needed,
            self.weight_bytes + other.weight_bytes,
            self.cache_bytes + other.cache_bytes,
            self.row_bytes + other.row_bytes,
        )


Cost = Mapping[Part, PartCost]


def total(cost: Cost, parts: tuple[Part, ...] = PARTS) -> PartCost:
    """Some parts together, all of them if none are named."""
    whole = PartCost()
    for part in parts:
        whole += cost[part]
    return whole


def pass_cost(
    config: ModelConfig,
    n_new: int,
    start: int = 0,
    conditions: Conditions = _CAUSAL,
    number_format: FormatName = "float32",
    n_logits: int | None = None,
) -> Cost:
    """What a pass over `n_new` tokens after `start` cached ones costs.

    `n_logits` rows of logits are computed, one for each new token if not given.
    """
    n_layer, width = config.n_layer, config.d_model
    q_width, kv_width = config.n_head * config.head_dim, config.n_kv_head * config.head_dim
    n_logits = n_new if n_logits is None else n_logits
    each = _Matrices(number_format)
    joined = each.product(n_new, width, q_width + 2 * kv_width, bias=config.qkv_bias)
    back = each.product(n_new, q_width, width, bias=config.attention_output_bias)
    inward = each.product(n_new, width, config.d_ff, bias=config.mlp_bias)
    outward = each.product(n_new, config.d_ff, width, bias=config.mlp_bias)
    if config.mlp == "gated":
        inward = inward + inward
    n_computed = n_keys = 0
    for window, n_layers in Counter(config.windows or n_layer * (0,)).items():
        cells, keys = _attended(n_new, start, conditions, window)
        n_computed, n_keys = n_computed + n_layers * cells, n_keys + n_layers * keys
    n_shown = sum(n_visible(config, layer, n_new, start, conditions) for layer in range(n_layer))
    attention = PartCost(
        multiply_adds=q_width * n_computed,
        needed=q_width * n_shown,
        cache_bytes=_FLOAT * kv_width * n_keys,
        row_bytes=_FLOAT * (n_layer * n_new * q_width + config.n_head * n_computed),
    )
    return MappingProxyType(
        {
            "embedding": _embedding(config, n_new, each),
            "projections": _times(n_layer, joined + back),
            "scores": attention,
            "mix": attention + _means(config, n_new, start, conditions),
            "MLP": _times(n_layer, inward + outward),
            "output": each.product(n_logits, width, config.vocab_size, bias=False),
        }
    )


def n_visible(
    config: ModelConfig,
    layer: int,
    n_new: int,
    start: int = 0,
    conditions: Conditions = _CAUSAL,
) -> int:
    """How many cells of a layer's new rows the mask shows, in each head."""
    if not conditions.append_only:
        return n_new * (start + n_new)
    window = config.window(layer)
    if conditions.sinks:
        return int(n_kept(np.arange(start + 1, start + n_new + 1), window, conditions).sum())
    narrowest = conditions.narrowed(window)
    return _sum_of_kept(start + n_new, narrowest) - _sum_of_kept(start, narrowest)


def _sum_of_kept(n_tokens: int, window: int) -> int:
    """Σ min(s, window) for s from 1 to n_tokens; without a window Σ s."""
    growing = min(n_tokens, window) if window else n_tokens
    return growing * (growing + 1) // 2 + (n_tokens - growing) * window


def n_kept(
    n_tokens: NDArray[np.int64], window: int = 0, conditions: Conditions = _CAUSAL
) -> NDArray[np.int64]:
    """How many of the first so many positions the last of them sees; each at least itself.

    `window` is the layer's own, 0 for none. Under a mask that can only append this is also how
    many rows of keys and values such a layer has to hold: what one query no longer sees, no
    later one will, the first positions of the mask aside.
    """
    own = np.minimum(n_tokens, window) if window else n_tokens
    if conditions.mask != "window":
        return own
    near = np.minimum(own, conditions.window)
    first_own = n_tokens - own  # the first position that the layer's own window shows
    first_near = n_tokens - near
    sinks = np.minimum(first_near, conditions.sinks) - first_own
    kept: NDArray[np.int64] = near + np.maximum(sinks, 0)
    return kept


def crossing(config: ModelConfig, conditions: Conditions = _CAUSAL, most: int = 2**24) -> int:
    """The shortest text that costs attention more multiply-adds than all other parts together.

    0 where there is none up to `most`, as under a narrow window.
    """

    def is_beyond(n_tokens: int) -> bool:
        cost = pass_cost(config, n_tokens, conditions=conditions)
        attention = total(cost, ATTENTION).multiply_adds
        return 2 * attention > total(cost).multiply_adds

    if not is_beyond(most):
        return 0
    low, high = 0, most  # not beyond, beyond
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_beyond(middle) else (middle, high)
    return high


def _means(config: ModelConfig, n_new: int, start: int, conditions: Conditions) -> PartCost:
    """What it takes to put means in place of the mixes of heads that are off.

    A second product for each such head: how much each position counts, times all mixes so far.
    """
    if conditions.off_by != "mean":
        return PartCost()
    n_off = sum(len(conditions.off_in(layer)) for layer in range(config.n_layer))
    n_computed, n_keys = _computed(n_new, start, conditions)
    n_products = n_off * config.head_dim * n_computed
    return PartCost(
        multiply_adds=n_products,
        needed=n_products,
        cache_bytes=_FLOAT * n_off * config.head_dim * n_keys,
        row_bytes=_FLOAT * n_off * (n_computed + config.head_dim * n_new),
    )


def _attended(n_new: int, start: int, conditions: Conditions, own: int) -> tuple[int, int]:
    """Cells that a layer with such a window of its own computes, and keys that it reads.

    Where the mask keeps first positions in sight, and the window has left them behind, the cache
    gives those and the last ones; each block has of these as many as it would have of all.
    """
    n_first, last = conditions.n_first(own), start - conditions.narrowed(own) + 1
    if not n_first or n_first >= last:
        return _computed(n_new, start, conditions, conditions.hiding(own))
    hidden = max(0, start - own + 1) if own else 0  # of the first ones, by the layer's own window
    n_keys = start + n_new - last + n_first - min(hidden, n_first)
    firsts = np.arange(0, n_new, QUERY_BLOCK, dtype=np.int64)
    ends = np.minimum(firsts + QUERY_BLOCK, n_new)
    keys = np.minimum(start + ends, n_keys)
    return int(((ends - firsts) * keys).sum()), int(keys.sum())


def _computed(n_new: int, start: int, conditions: Conditions, window: int = 0) -> tuple[int, int]:
    """Cells that the blocks of queries compute in each head, and keys that they read.

    Blocks as `engine.attention.query_blocks` cuts them: each has the keys up to its own end, or,
    without a mask that hides what comes later, all of them. Through a window it has none before
    those that its first query sees.
    """
    if window and conditions.append_only:
        firsts = np.arange(start, start + n_new, QUERY_BLOCK, dtype=np.int64)
        ends = np.minimum(firsts + QUERY_BLOCK, start + n_new)
        keys = ends - np.maximum(firsts - window + 1, 0)
        return int(((ends - firsts) * keys).sum()), int(keys.sum())
    n_full, rest = divmod(n_new, QUERY_BLOCK)
    n_blocks, end = n_full + (rest > 0), start + n_new
    if not conditions.append_only:
        return n_new * end, n_blocks * end
    in_full = n_full * start + QUERY_BLOCK * n_full * (n_full + 1) // 2  # their keys
    if not rest:
        return QUERY_BLOCK * in_full, in_full
    return QUERY_BLOCK * in_full + rest * end, in_full + end


@dataclass(frozen=True)
class _Matrices:
    """Products with weights that are held in some format."""

    number_format: FormatName

    def bytes_of(self, n_out: int, n_in: int, *, bias: bool = False) -> int:
        """A matrix with the scales of its rows, where it has any, and its bias."""
        per_row = _FLOAT * ((self.number_format == "int8") + bias)
        return n_out * (n_in * WEIGHT_BYTES[self.number_format] + per_row)

    def product(self, n_rows: int, n_in: int, n_out: int, *, bias: bool) -> PartCost:
        """Rows [n_rows, n_in] times a matrix; nothing is read where there are no rows."""
        n_products = n_rows * n_in * n_out
        return PartCost(
            multiply_adds=n_products,
            needed=n_products,
            weight_bytes=self.bytes_of(n_out, n_in, bias=bias) if n_rows else 0,
            row_bytes=_FLOAT * n_rows * (n_in + n_out),
        )


def _embedding(config: ModelConfig, n_new: int, each: _Matrices) -> PartCost:
    """Rows that are looked up: no product. An untied table stays float32."""
    row = each.bytes_of(1, config.d_model) if config.tied_output else _FLOAT * config.d_model
    if config.positions in ("learned", "sinusoidal"):
        row += _FLOAT * config.d_model
    return PartCost(weight_bytes=n_new * row, row_bytes=_FLOAT * n_new * config.d_model)


def _times(n_times: int, part: PartCost) -> PartCost:
    """The same, so many times."""
    return PartCost(
        n_times * part.multiply_adds,
        n_times * part.needed,
        n_times * part.weight_bytes,
        n_times * part.cache_bytes,
        n_times * part.row_bytes,
    )
