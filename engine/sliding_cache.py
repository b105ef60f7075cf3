"""A KV cache that lets go of what a layer's own window hides from every query to come."""

from copy import copy
from typing import Self

import torch
from torch import Tensor

from engine.config import QUERY_BLOCK, ModelConfig
from engine.kv_cache import FIRST_ROWS, Floats, KVCache, Recorded

# How many rows that slid out of sight are moved along, so that going back by a block needs no
# records. They count as given up all the same.
_SPARE = QUERY_BLOCK
# Room behind a window's rows and these, so that they are moved once in many steps, not in each.
_ROOM = 2 * QUERY_BLOCK


def new_cache(
    config: ModelConfig, device: torch.device | None = None, n_rows: int = FIRST_ROWS
) -> KVCache:
    """An empty cache for a model, with room for so many rows; it slides where layers have windows.

    What a mask hides is kept: only a window of the layer's own lets rows go.
    """
    has_windows = any(config.windows)
    return (SlidingCache if has_windows else KVCache)(config, device=device, n_rows=n_rows)


class SlidingCache(KVCache):
    """Owns the last min(tokens, window) rows of each layer that has a window, all of the others.

    The layers without a window are a `KVCache`'s; each of the others has two tensors [G, room, D]
    in which its rows stand side by side, the first of them at some position.

    As there, rows count once the pass has advanced the length, and what a pass replaces stays
    until then. Going back needs rows that were let go: `rewind` takes them from the records. Where
    it is given none, it may go back by a block of queries, or to the very beginning.
    """

    def __init__(
        self,
        config: ModelConfig,
        dtype: torch.dtype = torch.float32,
        device: torch.device | None = None,
        n_rows: int = FIRST_ROWS,
    ) -> None:
        whole = [layer for layer in range(config.n_layer) if not config.window(layer)]
        super().__init__(config, dtype, device, n_rows, len(whole))
        self._whole = {layer: at for at, layer in enumerate(whole)}
        empty = self.k.new_empty(config.n_kv_head, 0, config.head_dim)
        self._sliding = {
            layer: _LastRows(window, min(window + _SPARE + _ROOM, self.capacity), empty, n_rows)
            for layer, window in enumerate(config.windows)
            if window
        }
        self._n_layer = config.n_layer
        self._n_gone = 0  # of the layer that was written last

    def copy(self) -> Self:
        """Another cache with the same rows, which goes its own way from here."""
        other = super().copy()
        other._sliding = {at: rows.copy() for at, rows in self._sliding.items()}  # noqa: SLF001
        return other

    def write(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Store a layer's new rows [G, T, D]; return those that some new query sees, and no other.

        These are all up to the new end, where the layer has a window without the first `n_gone`.

        Raises:
            ContextFullError: the new rows would pass the capacity.
            ValueError: earlier rows that are seen were let go, and `rewind` did not get them back.
        """
        self._n_gone = 0
        if layer in self._whole:
            return super().write(self._whole[layer], k, v)
        self._end(k)
        self._n_gone, k, v = self._sliding[layer].write(self.length, k, v)
        return k, v

    def n_gone(self, layer: int) -> int:  # noqa: ARG002 - the layer that was written last
        """How many of a layer's first rows are missing from what the latest `write` gave."""
        return self._n_gone

    def advance(self, n_tokens: int) -> None:
        """Make the rows that every layer has just written part of the cache."""
        super().advance(n_tokens)
        for rows in self._sliding.values():
            rows.settle()

    @torch.inference_mode()  # passes made the tensors so
    def rewind(self, length: int, recorded: Recorded | None = None) -> None:
        """Forget everything from position `length` on, and take back what is in sight from there.

        `recorded` gives a layer's keys and values [G, rows, D] at some positions.
        """
        super().rewind(length)
        for layer, rows in self._sliding.items():
            missing = rows.rewind(self.length)
            if missing and recorded is not None:
                rows.take_back(*recorded(layer, missing.start, missing.stop), self.length)

    def rows_in_use(self, layer: int) -> tuple[Tensor, Tensor]:
        """A layer's keys and values [G, rows, D]; the last one is the latest position's."""
        if layer in self._whole:
            return super().rows_in_use(self._whole[layer])
        return self._sliding[layer].in_use(self.length)

    @property
    def layer_bytes(self) -> tuple[int, ...]:
        """Bytes of the rows that are in use, layer by layer [L], counted on the tensors."""
        pairs = (self.rows_in_use(layer) for layer in range(self._n_layer))
        return tuple(k.nbytes + v.nbytes for k, v in pairs)

    @property
    def used_bytes(self) -> int:
        """Bytes of the rows that are in use, counted on the tensors themselves."""
        return sum(self.layer_bytes)

    @property
    def allocated_bytes(self) -> int:
        """Bytes of all tensors, used or not."""
        return super().allocated_bytes + sum(rows.n_bytes for rows in self._sliding.values())


class _LastRows:
    """One layer's keys and values at the latest positions: those from `first` on, side by side."""

    def __init__(self, window: int, most_room: int, empty: Tensor, n_rows: int) -> None:
        self.window, self.most_room = window, most_room
        self.first = 0  # the position of row 0
        self.k, self.v = (self._room(empty, n_rows) for _ in range(2))  # [G, room, D]
        self._moved: tuple[int, Tensor, Tensor] | None = None  # first, k, v: by a pass under way

    def copy(self) -> "_LastRows":
        """The same rows in tensors of their own."""
        other = copy(self)
        other.k, other.v = self.k.clone(), self.v.clone()
        return other

    def _room(self, like: Tensor, n_rows: int) -> Tensor:
        """A tensor [G, room, D] with room for so many rows, as far as they have to be kept."""
        n_group, _rows, head_dim = like.shape
        return like.new_empty(n_group, min(n_rows, self.most_room), head_dim)

    def write(self, start: int, k: Tensor, v: Tensor) -> tuple[int, Tensor, Tensor]:
        """Store rows from position `start` on; the first position seen, and keys and values."""
        self._moved = None
        seen = max(0, start - self.window + 1)
        if seen < self.first:
            raise ValueError(f"the rows {seen} to {self.first - 1} were let go.")
        at, end = start - self.first, start + k.shape[-2]
        if end - self.first <= self.k.shape[-2]:
            for rows, new in ((self.k, k), (self.v, v)):
                rows[:, at : end - self.first] = new
            in_sight = slice(seen - self.first, end - self.first)
            return seen, self.k[:, in_sight], self.v[:, in_sight]
        # No room behind them: what will be kept goes to other tensors, to count if the pass does.
        # A pass of many tokens may see more rows than will be kept, and those together.
        old = slice(seen - self.first, at)
        self._moved = self._move(start, k, v)
        return seen, torch.cat((self.k[:, old], k), dim=1), torch.cat((self.v[:, old], v), dim=1)

    def _move(self, start: int, k: Tensor, v: Tensor) -> tuple[int, Tensor, Tensor]:
        """The last rows, those from `start` on being new, in other tensors: the first, and both."""
        end = start + k.shape[-2]
        first = max(self.first, end - self.window - _SPARE)
        n_old = max(0, start - first)
        moved = []
        for rows, new in ((self.k, k), (self.v, v)):
            room = self._room(rows, 2 * (end - first))
            room[:, :n_old] = rows[:, start - self.first - n_old : start - self.first]
            room[:, n_old : end - first] = new[:, max(0, first - start) :]
            moved.append(room)
        return first, moved[0], moved[1]

    def settle(self) -> None:
        """The pass is through: what it moved is where the rows are."""
        if self._moved is not None:
            self.first, self.k, self.v = self._moved
            self._moved = None

    def rewind(self, length: int) -> range:
        """Forget what stands from `length` on; which positions in sight from there were let go."""
        self._moved = None
        self.first = min(self.first, length)
        return range(max(0, length - self.window), self.first)

    def take_back(self, k: Floats, v: Floats, length: int) -> None:
        """Put rows [G, rows, D] before the first one again; there is room for a whole window."""
        for rows, given in ((self.k, k), (self.v, v)):
            known = rows[:, : length - self.first]
            together = torch.cat((torch.tensor(given).to(rows), known), dim=1)
            rows[:, : together.shape[1]] = together
        self.first -= k.shape[1]

    def in_use(self, length: int) -> tuple[Tensor, Tensor]:
        """The rows [G, min(tokens, window), D] that end at a length."""
        at = slice(max(0, length - self.window - self.first), length - self.first)
        return self.k[:, at], self.v[:, at]

    @property
    def n_bytes(self) -> int:
        """Of both tensors, used or not."""
        return self.k.nbytes + self.v.nbytes
