"""A KV cache with a budget: a new key takes the place of one that is given up."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from engine.attention import Recorder, Scoring, matmul_heads
from engine.config import ModelConfig
from engine.kv_cache import KVCache, Places
from engine.windows.eviction import NEVER, Budget
from engine.windows.heavy_hitters import give_up


class EvictingCache(KVCache, Recorder):
    """Owns two tensors [L, G, B, D], where their rows stand, and how much weight each has got.

    Many tokens can be read in one pass, each query finding what it would find if it came by itself:
    which keys go depends on positions alone, or on the weights of the queries before in the same
    layer, which are worked out first (`engine.windows.heavy_hitters`). For those it must know how
    each layer scores; without `scorings`, tokens must come one by one once the budget is full.

    It records the pass as well, for the weights that it goes by: give it to the model as cache and
    as recorder. `length` counts what was read, held or not.
    """

    def __init__(
        self,
        config: ModelConfig,
        budget: Budget,
        device: torch.device | None = None,
        scorings: Sequence[Scoring] = (),
    ) -> None:
        super().__init__(config, device=device, n_rows=budget.n_keys)
        self.budget, self._scorings = budget, scorings
        self._q: Tensor | None = None  # of the layer that is about to write
        self._is_counted = False  # whether the weights of that layer were added beforehand
        shape = config.n_layer, config.n_kv_head
        rows = (*shape, self.allocated_rows)
        self._position = torch.zeros(rows, dtype=torch.int64)
        self._weight = torch.zeros(rows, dtype=torch.float64)
        self.dropped_at = torch.full((*shape, config.max_seq_len), NEVER, dtype=torch.int64)
        self._groups = torch.arange(config.n_kv_head)
        self._places = Places(self._position[0, :, :0])  # of the layer that was written last

    @property
    def n_held(self) -> int:
        """How many keys each layer and group holds."""
        return min(self.length, self.allocated_rows)

    def n_at_once(self, n_tokens: int) -> int:
        """How many of so many further tokens one pass may read; at least one."""
        if not self.budget.by_weight or self._scorings:
            return n_tokens
        return max(1, min(n_tokens, self.allocated_rows - self.length))

    def write(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Store a layer's new rows [G, T, D]; return those that some of them find [G, ≤ B + T, D].

        Raises:
            ValueError: there are more rows than `n_at_once` allows, or their q was not recorded.
        """
        n_new = k.shape[-2]
        self._is_counted = False
        if n_new > self.n_at_once(n_new):
            raise ValueError(f"{n_new} rows at once cannot be evicted one by one.")
        if self.length + n_new <= self.allocated_rows:
            return self._write_all(layer, k, v)
        if n_new == 1:
            return self._write_one(layer, k, v)
        by_weight = self.budget.by_weight
        return self._write_weighed(layer, k, v) if by_weight else self._write_many(layer, k, v)

    def _write_all(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """As long as there is room nothing goes."""
        end = self.length + k.shape[-2]
        self._position[layer, :, self.length : end] = torch.arange(self.length, end)
        self.k[layer, :, self.length : end] = k
        self.v[layer, :, self.length : end] = v
        return self._rows(layer, end)

    def _write_one(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """A row takes the place of the one that goes, which may be another in each group."""
        at = self._victims(layer) + self._groups * self.allocated_rows  # [G] in G · B
        position = self._position[layer].view(-1)
        given_up = position[at] + self._groups * self.dropped_at.shape[-1]  # [G] in G · N
        self.dropped_at[layer].view(-1).index_fill_(0, given_up, self.length)
        position.index_fill_(0, at, self.length)
        self._weight[layer].view(-1).index_fill_(0, at, 0)
        for part, rows in ((self.k, k), (self.v, v)):
            part[layer].flatten(0, 1).index_copy_(0, at.to(part.device), rows[:, 0])
        return self._rows(layer, self.allocated_rows)

    def _rows(self, layer: int, n_rows: int) -> tuple[Tensor, Tensor]:
        """The first rows of a layer, and where they stand from now on."""
        self._places = Places(self._position[layer, :, :n_rows].to(self.k.device))
        return self.k[layer, :, :n_rows], self.v[layer, :, :n_rows]

    def _write_many(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """All that is held and all that is new, until the queries are through; some of it stays."""
        held, end = self.n_held, self.length + k.shape[-2]
        position = torch.cat((self._position[layer, 0, :held], torch.arange(self.length, end)))
        beyond = torch.full_like(position, self.capacity)
        gone_at = torch.where(position < self.budget.sinks, beyond, position + self.budget.n_recent)
        goes = gone_at < end
        self.dropped_at[layer, :, position[goes]] = gone_at[goes]
        joined_k = torch.cat((self.k[layer, :, :held], k), dim=1)  # [G, ≤ B + T, D]
        joined_v = torch.cat((self.v[layer, :, :held], v), dim=1)
        stays = torch.nonzero(~goes)[:, 0]  # B of them, as there are more rows than that
        self._position[layer] = position[stays]
        self.k[layer] = joined_k[:, stays.to(k.device)]
        self.v[layer] = joined_v[:, stays.to(v.device)]
        self._places = Places(position[None].to(k.device), gone_at[None].to(k.device))
        return joined_k, joined_v

    def _write_weighed(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """The same where it goes by weights, and each group keeps rows of its own choice."""
        if self._q is None:
            raise ValueError("what goes by weights cannot be told without q: record the pass here.")
        held, n_group = self.n_held, len(self._groups)
        new = torch.arange(self.length, self.length + k.shape[-2]).expand(n_group, -1)
        position = torch.cat((self._position[layer, :, :held], new), dim=1)  # [G, N], N = B + T
        joined_k = torch.cat((self.k[layer, :, :held], k), dim=1)  # [G, N, D]
        joined_v = torch.cat((self.v[layer, :, :held], v), dim=1)
        scoring = replace(self._scorings[layer], places=Places(position.to(k.device)))
        scores = matmul_heads(self._q * scoring.scale, joined_k.mT)  # [H, T, N]
        scores = scoring.masked(scores, self.length).cpu()
        got = self._weight[layer, :, :held].numpy()
        found = give_up(scores.numpy(), position.numpy(), got, self.budget, self.capacity)
        gone_at, weight = map(torch.from_numpy, found)  # [G, N]
        goes = gone_at < self.capacity
        group, column = torch.nonzero(goes, as_tuple=True)
        self.dropped_at[layer, group, position[group, column]] = gone_at[group, column]
        stays = torch.nonzero(~goes)[:, 1].view(n_group, -1)  # [G, B]
        self._position[layer] = position.gather(1, stays)
        self._weight[layer] = weight.gather(1, stays)
        rows = stays.to(k.device)[..., None].expand(-1, -1, k.shape[-1])  # [G, B, D]
        self.k[layer] = joined_k.gather(1, rows)
        self.v[layer] = joined_v.gather(1, rows)
        self._places = Places(position.to(k.device), gone_at.to(k.device))
        self._is_counted = True
        return joined_k, joined_v

    def _victims(self, layer: int) -> Tensor:
        """Which row each group gives up [G]; the row to come is not among them."""
        budget, position = self.budget, self._position[layer]
        if not budget.by_weight:
            beyond = position.masked_fill(position < budget.sinks, self.capacity)
            return beyond.argmin(dim=-1)
        is_recent = position > self.length - budget.n_recent
        return self._weight[layer].masked_fill(is_recent, torch.inf).argmin(dim=-1)

    def places(self, layer: int) -> Places:  # noqa: ARG002 - the layer that was written last
        """Where the rows stand that the latest `write` gave."""
        return self._places

    def gone_at(self, layer: int) -> Tensor:
        """Which query no longer found the row of each position [G, N]; those that stay: none."""
        dropped_at = self.dropped_at[layer]
        return dropped_at.masked_fill(dropped_at == NEVER, self.capacity).to(self.k.device)

    @property
    def used_bytes(self) -> int:
        """Bytes of the rows that are held, counted on the tensors themselves."""
        return sum(
            part[:, :, : self.n_held].numel() * part.element_size() for part in (self.k, self.v)
        )

    # As a recorder

    def keep_qkv(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> None:  # noqa: ARG002
        """Note the queries [H, T, D] of the rows that are about to be written."""
        self._q = q

    def keep_weights(self, layer: int, rows: slice, weights: Tensor) -> None:  # noqa: ARG002
        """Add what each held key got from the heads that share it: weights [H, rows, ≤ B]."""
        if self.budget.by_weight and not self._is_counted:
            n_held = weights.shape[-1]
            by_group = weights.cpu().view(len(self._groups), -1, n_held)
            self._weight[layer, :, :n_held] += by_group.sum(dim=1, dtype=torch.float64)  # [G, ≤ B]
