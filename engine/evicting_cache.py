"""A KV cache with a budget: a new key takes the place of one that is given up."""

import torch
from torch import Tensor

from engine.config import ModelConfig
from engine.eviction import NEVER, Budget
from engine.kv_cache import KVCache


class EvictingCache(KVCache):
    """Owns two tensors [L, G, B, D], where their rows stand, and how much weight each has got.

    It reads one token at a time, and it records the pass as well, for the weights that it goes by:
    give it to the model as cache and as recorder. `length` counts what was read, held or not.
    """

    def __init__(
        self, config: ModelConfig, budget: Budget, device: torch.device | None = None
    ) -> None:
        super().__init__(config, device=device, n_rows=budget.n_keys)
        self.budget = budget
        shape = config.n_layer, config.n_kv_head
        rows = (*shape, self.allocated_rows)
        self._position = torch.zeros(rows, dtype=torch.int64)
        self._weight = torch.zeros(rows, dtype=torch.float64)
        self.dropped_at = torch.full((*shape, config.max_seq_len), NEVER, dtype=torch.int64)
        self._groups = torch.arange(config.n_kv_head)

    @property
    def n_held(self) -> int:
        """How many keys each layer and group holds."""
        return min(self.length, self.allocated_rows)

    def write(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Store one new row [G, 1, D] of a layer; return those held with it [G, ≤ B, D].

        Raises:
            ValueError: there is more than one new row.
        """
        if k.shape[-2] != 1:
            raise ValueError(f"{k.shape[-2]} rows at once cannot be evicted one by one.")
        if self.n_held < self.allocated_rows:
            slot = torch.full_like(self._groups, self.n_held)
        else:
            slot = self._victims(layer)  # [G]
            given_up = self._position[layer, self._groups, slot]
            self.dropped_at[layer, self._groups, given_up] = self.length
        self._position[layer, self._groups, slot] = self.length
        self._weight[layer, self._groups, slot] = 0
        self.k[layer, self._groups, slot] = k[:, 0]
        self.v[layer, self._groups, slot] = v[:, 0]
        n_held = min(self.length + 1, self.allocated_rows)
        return self.k[layer, :, :n_held], self.v[layer, :, :n_held]

    def _victims(self, layer: int) -> Tensor:
        """Which row each group gives up [G]; the row to come is not among them."""
        budget, position = self.budget, self._position[layer]
        if budget.policy != "most attended":
            beyond = position.masked_fill(position < budget.sinks, self.capacity)
            return beyond.argmin(dim=-1)
        is_recent = position > self.length - budget.n_recent
        return self._weight[layer].masked_fill(is_recent, torch.inf).argmin(dim=-1)

    def places(self, layer: int) -> Tensor:
        """Where the rows that a layer holds, the new one included, stand [G, ≤ B]."""
        n_held = min(self.length + 1, self.allocated_rows)
        return self._position[layer, :, :n_held].to(self.k.device)

    @property
    def used_bytes(self) -> int:
        """Bytes of the rows that are held, counted on the tensors themselves."""
        return sum(
            part[:, :, : self.n_held].numel() * part.element_size() for part in (self.k, self.v)
        )

    # As a recorder

    def keep_qkv(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> None:
        """Not asked."""

    def keep_weights(self, layer: int, rows: slice, weights: Tensor) -> None:  # noqa: ARG002
        """Add what each held key got from the heads [H, 1, ≤ B] that share it."""
        got = weights[:, 0].cpu().double()  # [H, ≤ B]
        n_held = got.shape[-1]
        self._weight[layer, :, :n_held] += got.view(len(self._groups), -1, n_held).sum(dim=1)

    def keep_residual(self, depth: int, residual: Tensor) -> None:
        """Not asked."""
