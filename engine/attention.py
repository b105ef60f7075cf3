"""Attention, written out: project, position, cache, scores, mask, softmax, mix, output.

The textbook's four lines are `attend`. What differs from the textbook's:

- Grouped heads: G key/value heads serve H = G · R query heads; with R = 1 this is multi-head
  attention, with G = 1 multi-query attention.
- A layer may see through a window of its own, and may bend large scores (`Scoring`).
- Queries go in blocks, each against the keys up to its own end and from the first that a window
  shows, the layer's or the mask's, so that most of what is masked is never computed.
- A head can be switched off: its mix is then replaced by zeros or by a mean (`Conditions`).
- `attend` is a free function of q, k and v: the program shows a pattern by calling the very
  function that the pass called, and shows its lines as well.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import torch
from torch import Tensor, nn

from engine.conditions import Conditions
from engine.config import QUERY_BLOCK, ModelConfig
from engine.kv_cache import KVCache, Places
from engine.layers import Linear, make_qk_norm
from engine.positions import rotate


class Recorder:
    """Is told what a pass computes, and keeps nothing of it; see `engine.recorder`."""

    def keep_qkv(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> None:
        """A layer's new q [H, T, D], k and v [G, T, D], after the position scheme."""

    def keep_weights(self, layer: int, rows: slice, weights: Tensor) -> None:
        """The weights [H, rows, keys up to the block's end] of some of the new queries.

        Without what no query of the block sees in a layer with a window: there the first keys
        are missing, which `engine.recorder.with_first_keys` adds.
        """

    def keep_mlp(self, layer: int, mlp: Tensor) -> None:
        """What a layer's MLP [T, C] puts out, before any norm of it."""

    def keep_residual(self, depth: int, residual: Tensor) -> None:
        """The residual [T, C] after so many layers; at depth 0 it is the embedding."""


def query_blocks(start: int, n_new: int, conditions: Conditions) -> Iterator[tuple[slice, int]]:
    """Split T new queries: for each block its rows and how many keys it needs at most."""
    for first in range(0, n_new, QUERY_BLOCK):
        last = min(first + QUERY_BLOCK, n_new)
        yield slice(first, last), start + (last if conditions.append_only else n_new)


@dataclass(frozen=True)
class Scoring:
    """How one layer scores its queries against keys, under the conditions of a pass."""

    conditions: Conditions
    scale: float  # of q · k
    window: int = 0  # the layer's own or the mask's, behind which all is hidden; 0: none
    cap: float = 0.0  # scores are bent into ± this; 0: they are not
    slopes: Tensor | None = None  # ALiBi's [H]
    first_key: int = 0  # the position of the first key that is given
    places: Places | None = None  # where the keys stand if not side by side (some were evicted)

    def visible(self, query: Any, key: Any) -> Any:  # noqa: ANN401 - numpy or torch alike
        """Which keys may be seen: boolean, the broadcast shape of the two position arrays."""
        return self.conditions.visible(query, key, self.window)

    def masked(self, scores: Tensor, start: int) -> Tensor:
        """Scores [..., H, T, S] as softmax takes them: capped, lowered by ALiBi, −∞ if hidden.

        The query of row t stands at position start + t, the key of column s at first_key + s, or
        where `places` puts it. With ALiBi each score falls by slope · distance. What is given may
        be written to.
        """
        if self.cap:
            scores = torch.tanh(scores / self.cap) * self.cap
        n_queries, n_keys = scores.shape[-2:]
        n_open = self.n_open(start, n_keys)
        if n_open == n_keys:
            return scores
        query = torch.arange(start, start + n_queries, device=scores.device)[:, None]
        key = self.keys(scores)[..., n_open:]
        seen = self.visible(query, key)
        if self.places is not None and self.places.gone_at is not None:
            seen = seen & (query < _by_head(self.places.gone_at, scores))
        added = scores.new_zeros(())
        if self.slopes is not None:
            added = -self.slopes[:, None, None].to(scores) * (query - key).abs()
        added = torch.where(seen, added, -torch.inf)  # far faster than filling scores
        if not n_open:
            return scores + added
        scores[..., n_open:] += added
        return scores

    def n_open(self, start: int, n_keys: int) -> int:
        """How many of the first keys no query from `start` on can fail to see, or see lowered.

        For those nothing need be worked out; they are most of a long text's.
        """
        if self.slopes is not None or self.places is not None or self.window:
            return 0
        open_keys = {"none": n_keys, "causal": min(start + 1, n_keys), "window": 0}
        return open_keys[self.conditions.mask]

    def keys(self, scores: Tensor) -> Tensor:
        """The positions of the keys of scores [..., H, T, S]: [S], or [H, 1, S] by `places`."""
        if self.places is None:
            end = self.first_key + scores.shape[-1]
            return torch.arange(self.first_key, end, device=scores.device)
        return _by_head(self.places.at, scores)

    def blocks(self, start: int, n_new: int) -> Iterator[tuple[slice, slice, Self]]:
        """Split T new queries: for each block its rows, the keys it may see, and their scoring.

        Through a window a query sees no key before those that the block's first one sees; where
        keys do not stand side by side, none is left out.
        """
        is_sliding = self.window and self.places is None and self.conditions.append_only
        for rows, n_keys in query_blocks(start, n_new, self.conditions):
            first = max(0, start + rows.start - self.window + 1) if is_sliding else 0
            yield rows, slice(first, n_keys), replace(self, first_key=first) if first else self

    def of_head(self, head: int) -> Self:
        """The scoring of one head alone."""
        if self.slopes is None:
            return self
        return replace(self, slopes=self.slopes[head : head + 1])


def _by_head(by_group: Tensor, scores: Tensor) -> Tensor:
    """Something known of the keys of each group [G, ≥ S], for scores [..., H, T, S]: [H, 1, S]."""
    n_head, n_keys = scores.shape[-3], scores.shape[-1]
    by_head = by_group[:, None, :n_keys].expand(-1, n_head // len(by_group), -1)  # [G, R, S]
    return by_head.reshape(n_head, 1, n_keys)


def matmul_heads(left: Tensor, right: Tensor) -> Tensor:
    """The product head by head: left [..., H, T, X] @ right [..., G, X, Y] → [..., H, T, Y].

    H / G = R heads share a matrix on the right, so their rows go into one product.
    """
    *batch, n_head, n_new, width = left.shape
    n_group = right.shape[-3]
    rows = left.reshape(*batch, n_group, n_head // n_group * n_new, width)  # [..., G, R·T, X]
    return (rows @ right).view(*batch, n_head, n_new, right.shape[-1])


def attend(q: Tensor, k: Tensor, v: Tensor, start: int, scoring: Scoring) -> tuple[Tensor, Tensor]:
    """Weights [..., H, T, S] and mix [..., H, T, D] of q [..., H, T, D] and k, v [..., G, S, D].

    The query of row t stands at position start + t, the key of column s at position s, if the
    scoring says no other place.
    """
    scores = matmul_heads(q * scoring.scale, k.mT)  # [..., H, T, S]
    scores = scoring.masked(scores, start)  # −∞ where a key is hidden
    weights = torch.softmax(scores, dim=-1, dtype=scores.dtype)  # each row sums to 1
    mix = matmul_heads(weights, v)  # [..., H, T, D]
    return weights, mix


def attention_weights(q: Tensor, k: Tensor, start: int, scoring: Scoring) -> Tensor:
    """The weights of `attend` alone [..., H, T, S]: it is given values of no features."""
    weights, _mix = attend(q, k, k[..., :0], start, scoring)
    return weights


def mean_mixes(
    mixes: Tensor, start: int, scoring: Scoring, gone_at: Tensor | None = None
) -> Tensor:
    """Means over the positions that each query sees: [..., H, T, D] from mixes [..., H, S, D].

    The queries are those at the positions from `start` on; each sees at least itself, and of what
    a cache gave up only what was there before the query `gone_at` [H, S].
    """
    means = []
    for rows, n_keys in query_blocks(start, mixes.shape[-2] - start, scoring.conditions):
        query = torch.arange(start + rows.start, start + rows.stop, device=mixes.device)[:, None]
        key = torch.arange(n_keys, device=mixes.device)
        seen = scoring.visible(query, key)  # [rows, keys]
        if gone_at is not None:
            seen = seen & (query < gone_at[:, None, :n_keys])  # [H, rows, keys]
        seen = seen.to(mixes)  # 0 or 1
        means.append(seen / seen.sum(dim=-1, keepdim=True) @ mixes[..., :n_keys, :])
    return torch.cat(means, dim=-2)


class Attention(nn.Module):
    """One layer's attention; its q, k and v come out of one joined matrix, in that order."""

    def __init__(self, config: ModelConfig, layer: int) -> None:
        super().__init__()
        self.layer = layer
        self.head_dim = config.head_dim
        self.heads = (config.n_head, config.n_kv_head, config.n_kv_head)
        self.norms_all = config.qk_norm == "all"
        self.q_norm = make_qk_norm(config, config.n_head)
        self.k_norm = make_qk_norm(config, config.n_kv_head)
        self.qkv = nn.Linear(
            config.d_model, sum(self.heads) * config.head_dim, bias=config.qkv_bias
        )
        self.output = Linear(
            config.n_head * config.head_dim, config.d_model, bias=config.attention_output_bias
        )

    def forward(
        self,
        x: Tensor,
        scoring: Scoring,
        rotation: Tensor | None = None,
        kv_cache: KVCache | None = None,
        record: Recorder | None = None,
    ) -> Tensor:
        """[..., T, C] → [..., T, C].

        Rotary positions come as `rotation` [2, T, ≤ D/2] of the new tokens.
        """
        q, k, v = self.project(x, rotation)
        if record is not None:
            record.keep_qkv(self.layer, q, k, v)
        start = n_gone = 0
        if kv_cache is not None:
            start = kv_cache.length
            k, v = kv_cache.write(self.layer, k, v)  # [G, S, D], without the first n_gone
            n_gone = kv_cache.n_gone(self.layer)
            places = kv_cache.places(self.layer)
            scoring = scoring if places is None else replace(scoring, places=places)
        mixes = []
        for rows, keys, scored in scoring.blocks(start, q.shape[-2]):
            seen = slice(keys.start - n_gone, keys.stop - n_gone)
            operands = q[..., rows, :], k[..., seen, :], v[..., seen, :], start + rows.start
            weights, mix = attend(*operands, scored)
            if record is not None:
                record.keep_weights(self.layer, rows, weights)
            mixes.append(mix)
        mix = mixes[0] if len(mixes) == 1 else torch.cat(mixes, dim=-2)  # [..., H, T, D]
        if off := scoring.conditions.off_in(self.layer):
            mix[..., off, :, :] = self._instead(mix[..., off, :, :], off, start, scoring, kv_cache)
        return torch.as_tensor(self.output(mix.transpose(-2, -3).flatten(-2)))

    def project(self, x: Tensor, rotation: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Of x [..., T, C]: q [..., H, T, D] and k, normed and turned, and v [..., G, T, D]."""
        n_head, n_kv_head, _ = self.heads
        joined: Tensor = self.qkv(x).unflatten(-1, (-1, self.head_dim)).transpose(-2, -3)
        qk, v = joined.tensor_split((n_head + n_kv_head,), dim=-3)
        qk = self._normed(qk)
        if rotation is not None:
            qk = rotate(qk, rotation)
        q, k = qk.tensor_split((n_head,), dim=-3)
        return q, k, v

    def _instead(
        self, mix: Tensor, off: list[int], start: int, scoring: Scoring, kv_cache: KVCache | None
    ) -> Tensor:
        """What stands in place of the mixes [..., off, T, D] of heads that are off."""
        if scoring.conditions.off_by == "zero":
            return torch.zeros_like(mix)
        if kv_cache is not None:
            mix = kv_cache.write_mixes(self.layer, off, mix)  # [off, S, D]
            gone_at = kv_cache.gone_at(self.layer)  # [G, N]
            if gone_at is not None:
                n_sharing = self.heads[0] // self.heads[1]
                gone_at = gone_at[[head // n_sharing for head in off]]  # [off, N]
                return mean_mixes(mix, start, scoring, gone_at)
        return mean_mixes(mix, start, scoring)

    def _normed(self, qk: Tensor) -> Tensor:
        """The same q and k [..., H+G, T, D], normed head by head or all heads as one row."""
        if isinstance(self.q_norm, nn.Identity):
            return qk
        q, k = qk.tensor_split(self.heads[:1], dim=-3)
        if self.norms_all:
            q, k = q.transpose(-2, -3).flatten(-2), k.transpose(-2, -3).flatten(-2)
            rows = torch.cat((self.q_norm(q), self.k_norm(k)), dim=-1)  # [..., T, (H+G)·D]
            return rows.view(*rows.shape[:-1], -1, self.head_dim).transpose(-2, -3)
        return torch.cat((self.q_norm(q), self.k_norm(k)), dim=-3)
