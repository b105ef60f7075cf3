"""The KV cache: keys and values of every position so far, for all layers, in two tensors."""

from collections.abc import Callable, Sequence
from copy import copy
from typing import NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.config import ModelConfig
from engine.errors import ContextFullError

# Rows that are allocated at first: enough for most texts, little even for a long context.
FIRST_ROWS = 1024

Floats = NDArray[np.float32]
# A layer's keys and values [G, rows, D] that were written at the positions from one to another.
Recorded = Callable[[int, int, int], tuple[Floats, Floats]]


class Places(NamedTuple):
    """Where the rows that a layer reads stand, where that is not at 0 … S − 1; G or 1 rows.

    `gone_at` is the first query that no longer finds a row, where the queries of one pass differ
    in what is left for them; a row that stays has one beyond them all.
    """

    at: Tensor  # [G, S]
    gone_at: Tensor | None = None  # [G, S]


class KVCache:
    """Owns two tensors [L, G, rows, D] and one length, which the model advances.

    Rows double when a text needs more, up to the context limit: a context of 131,072 positions
    would take gigabytes that hardly any text uses.

    A pass writes each layer's new rows behind the length and reads everything up to its own
    end; `advance` then makes them part of the cache. A pass that is given up half-way leaves
    the length where it was, so nothing has to be undone.

    Where heads are replaced by the mean of their mixes, those are kept beside the rows
    (`write_mixes`). No model needs them to go on, so they are not counted in the bytes.
    """

    def __init__(
        self,
        config: ModelConfig,
        dtype: torch.dtype = torch.float32,
        device: torch.device | None = None,
        n_rows: int = FIRST_ROWS,
        n_layer: int | None = None,
    ) -> None:
        """Room for `n_rows` at first, in all layers or so many of them."""
        self._capacity = config.max_seq_len
        rows = min(self._capacity, n_rows)
        n_layer = config.n_layer if n_layer is None else n_layer
        shape = (n_layer, config.n_kv_head, rows, config.head_dim)
        self.k = torch.empty(shape, dtype=dtype, device=device)
        self.v = torch.empty(shape, dtype=dtype, device=device)
        self._mixes: dict[tuple[int, int], Tensor] = {}  # [rows, D] of a layer's head
        self.length = 0

    def copy(self) -> Self:
        """Another cache with the same rows, which goes its own way from here."""
        other = copy(self)
        other.k, other.v = torch.empty_like(self.k), torch.empty_like(self.v)
        for rows, known in ((other.k, self.k), (other.v, self.v)):
            rows[:, :, : self.length] = known[:, :, : self.length]
        mixes = {at: rows.clone() for at, rows in self._mixes.items()}
        other._mixes = mixes  # noqa: SLF001
        return other

    @property
    def capacity(self) -> int:
        """How many positions fit."""
        return self._capacity

    def write(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Store a layer's new rows [G, T, D]; return all its keys and values [G, S, D].

        Raises:
            ContextFullError: the new rows would pass the capacity.
        """
        end = self._end(k)
        if end > self.allocated_rows:
            self._grow(end)
        self.k[layer, :, self.length : end] = k
        self.v[layer, :, self.length : end] = v
        return self.k[layer, :, :end], self.v[layer, :, :end]

    def _end(self, k: Tensor) -> int:
        """The position behind new rows [G, T, D]."""
        end = self.length + k.shape[-2]
        if end > self.capacity:
            raise ContextFullError(
                f"{end} tokens do not fit into a context of {self.capacity}; shorten the text."
            )
        return end

    def write_mixes(self, layer: int, heads: Sequence[int], mixes: Tensor) -> Tensor:
        """Store the new rows [h, T, D] of some heads' mixes; return all of them [h, S, D].

        To be called after `write`, which makes room.

        Raises:
            ValueError: the cache holds rows whose mixes were not stored.
        """
        end = self.length + mixes.shape[-2]
        for head, rows in zip(heads, mixes, strict=True):
            old = self._mixes.get((layer, head))
            if old is None and self.length:
                raise ValueError(f"the mixes of {self.length} positions were not stored.")
            if old is None or len(old) < end:
                n_rows = self.allocated_rows
                n_rows = n_rows if end <= n_rows else min(self._capacity, 2 * end)
                new = self.k.new_empty(n_rows, rows.shape[-1])
                if old is not None:
                    new[: self.length] = old[: self.length]
                self._mixes[layer, head] = new
            self._mixes[layer, head][self.length : end] = rows
        return torch.stack([self._mixes[layer, head][:end] for head in heads])

    def places(self, layer: int) -> Places | None:  # noqa: ARG002 - what another cache may ask
        """Where a layer's rows stand; None: at 0 … S − 1, as nothing was evicted."""
        return None

    def n_gone(self, layer: int) -> int:  # noqa: ARG002
        """How many of a layer's first rows are missing from what the latest `write` gave."""
        return 0

    def gone_at(self, layer: int) -> Tensor | None:  # noqa: ARG002
        """Which query no longer found the row of each position [G, N]; None: all are there."""
        return None

    def _grow(self, end: int) -> None:
        """Make room for `end` rows; the first layer of a pass does it for all."""
        rows = min(self._capacity, max(end, 2 * self.allocated_rows))
        for name in ("k", "v"):
            old: Tensor = getattr(self, name)
            new = old.new_empty((*old.shape[:2], rows, old.shape[3]))
            new[:, :, : self.length] = old[:, :, : self.length]
            setattr(self, name, new)

    def advance(self, n_tokens: int) -> None:
        """Make the rows that every layer has just written part of the cache."""
        self.length += n_tokens

    def rewind(self, length: int, recorded: Recorded | None = None) -> None:  # noqa: ARG002
        """Forget everything from position `length` on; the memory is kept for what follows.

        A cache that let go of earlier rows takes them back from what was `recorded`.
        """
        self.length = min(self.length, length)
        if not self.length:
            self._mixes.clear()

    def rows_in_use(self, layer: int) -> tuple[Tensor, Tensor]:
        """A layer's keys and values [G, rows, D]; the last one is the latest position's."""
        return self.k[layer, :, : self.length], self.v[layer, :, : self.length]

    @property
    def used_bytes(self) -> int:
        """Bytes of the rows that are in use, counted on the tensors themselves."""
        return sum(
            part[:, :, : self.length].numel() * part.element_size() for part in (self.k, self.v)
        )

    @property
    def layer_bytes(self) -> tuple[int, ...]:
        """The same, layer by layer [L]."""
        k, v = self.k[:, :, : self.length], self.v[:, :, : self.length]
        return tuple(a.nbytes + b.nbytes for a, b in zip(k, v, strict=True))

    @property
    def bytes_per_number(self) -> int:
        """Bytes of each number in the tensors."""
        return self.k.element_size()

    @property
    def allocated_rows(self) -> int:
        """How many positions fit before the tensors grow."""
        return self.k.shape[2]

    @property
    def allocated_bytes(self) -> int:
        """Bytes of the two tensors, used or not."""
        return sum(part.numel() * part.element_size() for part in (self.k, self.v))
