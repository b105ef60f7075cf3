"""Fills a `Trace` while a pass runs: keeps q, k and v, condenses the weights as they go by."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from engine.attention import Recorder
from engine.conditions import Conditions
from engine.config import ModelConfig
from engine.kv_cache import Places
from engine.trace import (
    ENTROPY,
    FIRST_TOKEN,
    INDUCTION,
    MASKED,
    N_FEATURES,
    PREVIOUS_TOKEN,
    ROW_SUM,
    SAME_TOKEN,
    Trace,
    bin_size,
    has_earlier_twin,
)

# Room for selectors: those of a text of 1,800 tokens.
_SELECTOR_BYTES = 1 << 25

_SELECTED = (SAME_TOKEN, INDUCTION, MASKED, ROW_SUM, PREVIOUS_TOKEN)


def condense(weights: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Rows of weights [H, T, S] → their peaks [H, T, bins] and first-key weight [H, T], 8-bit.

    The first key has its own number, because in many heads it takes nearly all the weight, and
    leaving it out must not need the weights again.
    """
    peaks = F.max_pool1d(weights, size, ceil_mode=True)
    with_zero = F.pad(weights[..., 1:size], (1, 0))  # there is always something to take from
    peaks[..., 0] = with_zero.amax(dim=-1)
    return _to_bytes(peaks), _to_bytes(weights[..., 0])


def with_first_keys(weights: Tensor, end: int) -> Tensor:
    """A block's weights [H, rows, keys], and zeros for the first keys, which none of it sees.

    `end` is the position behind the block's last query.
    """
    n_missing = end - weights.shape[-1]
    return F.pad(weights, (n_missing, 0)) if n_missing > 0 else weights


def at_their_places(weights: Tensor, places: Places, end: int) -> Tensor:
    """A block's weights [H, rows, keys] with zeros for the keys that nobody holds any more.

    `places` are the same for all groups; `end` is the position behind the block's last query.
    """
    at = places.at[0, : weights.shape[-1]]
    whole = weights.new_zeros(*weights.shape[:-1], int(at[-1]) + 1)
    whole[..., at.to(weights.device)] = weights
    return whole[..., :end]


def row_entropy(weights: Tensor) -> Tensor:
    """−Σ w · ln w over the last axis, in nats; a weight of 0 adds nothing.

    `torch.special.entr` says the same and takes three times as long.
    """
    smallest = torch.finfo(weights.dtype).tiny
    return weights.clamp_min(smallest).log_().mul_(weights).sum(dim=-1).neg_()


def _to_bytes(weights: Tensor) -> Tensor:
    """Square root, so that small weights keep their differences in 8 bits."""
    return (weights.sqrt() * 255).round().to(torch.uint8)


class PassRecorder(Recorder):
    """Owns the growing arrays of one pass; `trace` closes it."""

    def __init__(
        self,
        config: ModelConfig,
        token_ids: Tensor,
        start: int,
        conditions: Conditions,
        places: Callable[[int], Places | None] = lambda _layer: None,
    ) -> None:
        """`token_ids` [S] are all tokens so far; the pass computes those from `start` on.

        `places` says where the keys stand that the layer at hand reads, as a cache does.
        """
        n_total = len(token_ids)
        n_new = n_total - start
        layers, heads, groups = config.n_layer, config.n_head, config.n_kv_head
        self.token_ids = token_ids
        self.start = start
        self.conditions = conditions
        self.bin_size = bin_size(n_total)
        bins = -(-n_total // self.bin_size)
        self.q = torch.empty(layers, heads, n_new, config.head_dim)
        self.k = torch.empty(layers, groups, n_new, config.head_dim)
        self.v = torch.empty(layers, groups, n_new, config.head_dim)
        self.mlp = torch.empty(layers, n_new, config.d_model)
        self.peaks = torch.zeros(layers, heads, n_new, bins, dtype=torch.uint8)
        self.first = torch.empty(layers, heads, n_new, dtype=torch.uint8)
        self.features = torch.empty(layers, heads, n_new, N_FEATURES)
        self.windows = [config.window(layer) for layer in range(layers)]
        self._places = places
        self._waiting: list[Tensor] = []  # of the layers below, while one token is decoded
        self._selectors: dict[tuple[int, int], Tensor] = {}

    def keep_qkv(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> None:
        """A layer's new q [H, T, D], k and v [G, T, D]."""
        self.q[layer], self.k[layer], self.v[layer] = q, k, v

    def keep_weights(self, layer: int, rows: slice, weights: Tensor) -> None:
        """Condense the weights [H, rows, keys] of a block of queries."""
        weights, end = weights.cpu(), self.start + rows.stop  # wherever they are
        places = self._places(layer)
        weights = (
            with_first_keys(weights, end)
            if places is None
            else at_their_places(weights, places, end)
        )
        if self.features.shape[2] > 1:
            self._keep(slice(layer, layer + 1), rows, weights[None], self.windows[layer])
            return
        # One token: thirty small layers cost more than all of them together.
        self._waiting.append(weights)
        is_last = layer + 1 == len(self.windows)
        if is_last or self.windows[layer + 1] != self.windows[layer]:
            layers = slice(layer + 1 - len(self._waiting), layer + 1)
            self._keep(layers, rows, torch.stack(self._waiting), self.windows[layer])
            self._waiting = []

    def _keep(self, layers: slice, rows: slice, weights: Tensor, window: int) -> None:
        """Condense the weights [layers, H, rows, keys] of layers that have the same window."""
        peaks, first = condense(weights.flatten(0, 1), self.bin_size)
        self.peaks[layers, :, rows, : peaks.shape[-1]] = peaks.view(*weights.shape[:3], -1)
        self.first[layers, :, rows] = first.view(weights.shape[:3])
        features = self.features[layers, :, rows]  # [layers, H, rows, N_FEATURES]
        selectors = self._block_selectors(rows, weights.shape[-1], window)
        by_row = weights.permute(2, 0, 1, 3).flatten(1, 2)  # [rows, layers · H, keys]
        sums = (by_row @ selectors).view(-1, *weights.shape[:2], len(_SELECTED))
        features[..., list(_SELECTED)] = sums.permute(1, 2, 0, 3)
        features[..., FIRST_TOKEN] = weights[..., 0]
        features[..., ENTROPY] = row_entropy(weights)

    def keep_mlp(self, layer: int, mlp: Tensor) -> None:
        """What a layer's MLP [T, C] puts out."""
        self.mlp[layer] = mlp

    def _block_selectors(self, rows: slice, n_keys: int, window: int) -> Tensor:
        """Which keys each selected feature sums over, 0 or 1: [rows, keys, selected].

        They are the same for all layers with the same window, and kept for them as long as they
        are few: those of a long text grow with its square.
        """
        at = rows.start, window
        selectors = self._selectors.get(at)
        if selectors is None:
            selectors = self._new_selectors(rows, n_keys, window)
            n_kept = sum(each.nbytes for each in self._selectors.values())
            if n_kept + selectors.nbytes <= _SELECTOR_BYTES:
                self._selectors[at] = selectors
        return selectors

    def _new_selectors(self, rows: slice, n_keys: int, window: int) -> Tensor:
        query = torch.arange(self.start + rows.start, self.start + rows.stop)[:, None]
        key = torch.arange(n_keys)
        token_ids = self.token_ids[:n_keys]
        at_query = self.token_ids[query]  # [rows, 1]
        after_twin = torch.zeros(len(query), n_keys, dtype=torch.bool)
        after_twin[:, 1:] = token_ids[:-1] == at_query
        chosen = {
            SAME_TOKEN: (token_ids == at_query) & (key < query),
            INDUCTION: after_twin & (key <= query),
            MASKED: ~self.conditions.visible(query, key, window),
            ROW_SUM: torch.ones(len(query), n_keys, dtype=torch.bool),
            PREVIOUS_TOKEN: key == query - 1,
        }
        return torch.stack([chosen[column] for column in _SELECTED]).float().permute(1, 2, 0)

    def trace(
        self, hidden: Tensor, loss: Tensor, rank: Tensor, seconds: float, cache_bytes: int
    ) -> Trace:
        """The finished, read-only record."""
        return Trace(
            start=self.start,
            token_ids=frozen(self.token_ids[self.start :].clone()),
            q=frozen(self.q),
            k=frozen(self.k),
            v=frozen(self.v),
            mlp=frozen(self.mlp),
            hidden=frozen(hidden),
            loss=frozen(loss),
            rank=frozen(rank),
            twin=has_earlier_twin(self.token_ids.tolist(), self.start),
            peaks=frozen(self.peaks),
            first=frozen(self.first),
            features=frozen(self.features),
            bin_size=self.bin_size,
            seconds=seconds,
            cache_bytes=cache_bytes,
        )


def frozen(tensor: Tensor) -> np.ndarray:
    """The same memory, if it is the processor's, as a numpy array that nobody can write to."""
    array: np.ndarray = tensor.cpu().numpy()
    array.setflags(write=False)
    return array
