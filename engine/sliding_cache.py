"""A KV cache that lets go of what a window hides from every query to come.

The window may be a layer's own or the mask's. The first positions, where the mask keeps them in
sight, are held beside the last ones.
"""

from copy import copy
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from engine.conditions import Conditions
from engine.config import QUERY_BLOCK, ModelConfig
from engine.kv_cache import FIRST_ROWS, Floats, KVCache, Places, Recorded

# How many rows that slid out of sight are moved along, so that going back by a block needs no
# records. They count as given up all the same.
_SPARE = QUERY_BLOCK
# Room behind a window's rows and these, so that they are moved once in many steps, not in each.
_ROOM = 2 * QUERY_BLOCK


def new_cache(
    config: ModelConfig,
    device: torch.device | None = None,
    n_rows: int = FIRST_ROWS,
    conditions: Conditions = Conditions(),  # noqa: B008 - frozen
) -> KVCache:
    """An empty cache for passes under some conditions, with room for so many rows at first.

    It slides where a layer has a window or the mask is one.
    """
    if not any(map(conditions.narrowed, _own_windows(config))):
        return KVCache(config, device=device, n_rows=n_rows)
    return SlidingCache(config, device=device, n_rows=n_rows, conditions=conditions)


def given_by_cache(start: int, end: int, own: int, conditions: Conditions) -> Places | None:
    """Where the rows stand that a pass from `start` to `end` is given in a layer; None: in a row.

    `own` is the layer's own window, 0 for none.
    """
    if not conditions.n_first(own):
        return None
    sight = _FirstSight.of_layer(own, conditions)
    return _places(sight.of(start), max(0, start - sight.window + 1), end)


def _places(first: slice, seen: int, end: int, device: torch.device | None = None) -> Places | None:
    """Of some first rows and those from `seen` on; None where they stand side by side."""
    if first.stop == seen:
        return None
    last = torch.arange(seen, end, device=device)
    return Places(torch.cat((torch.arange(first.start, first.stop, device=device), last))[None])


def _own_windows(config: ModelConfig) -> tuple[int, ...]:
    """Of each layer; 0 for none [L]."""
    return config.windows or (0,) * config.n_layer


class SlidingCache(KVCache):
    """Owns the last min(tokens, window) rows of each layer that has a window, all of the others.

    The layers without a window are a `KVCache`'s; each of the others has two tensors [G, room, D]
    in which its rows stand side by side, the first of them at some position, and two more for the
    first positions, if the mask keeps those in sight.

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
        conditions: Conditions = Conditions(),  # noqa: B008 - frozen
    ) -> None:
        windows = {at: conditions.narrowed(own) for at, own in enumerate(_own_windows(config))}
        whole = [layer for layer, window in windows.items() if not window]
        super().__init__(config, dtype, device, n_rows, len(whole))
        self._whole = {layer: at for at, layer in enumerate(whole)}
        empty = self.k.new_empty(config.n_kv_head, 0, config.head_dim)
        self._sliding = {
            layer: _LastRows(window, min(window + _SPARE + _ROOM, self.capacity), empty, n_rows)
            for layer, window in windows.items()
            if window
        }
        self._first = {
            layer: _FirstRows(_FirstSight.of_layer(own, conditions), empty, n_rows)
            for layer, own in enumerate(_own_windows(config))
            if conditions.n_first(own)
        }
        self._n_layer = config.n_layer
        self._n_gone = 0  # of the layer that was written last
        self._places: Places | None = None  # of the same

    def copy(self) -> Self:
        """Another cache with the same rows, which goes its own way from here."""
        other = super().copy()
        other._sliding = {at: rows.copy() for at, rows in self._sliding.items()}  # noqa: SLF001
        other._first = {at: rows.copy() for at, rows in self._first.items()}  # noqa: SLF001
        return other

    def write(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Store a layer's new rows [G, T, D]; return those that some new query sees, and no other.

        These are all up to the new end, where there is a window without the first `n_gone`; or,
        where first positions are seen and what follows them is not, those at the `places`.

        Raises:
            ContextFullError: the new rows would pass the capacity.
            ValueError: earlier rows that are seen were let go, and `rewind` did not get them back.
        """
        self._n_gone, self._places = 0, None
        if layer in self._whole:
            return super().write(self._whole[layer], k, v)
        end = self._end(k)
        seen, last_k, last_v = self._sliding[layer].write(self.length, k, v)
        first = self._first.get(layer)
        if first is None:
            self._n_gone = seen
            return last_k, last_v
        first.write(self.length, k, v)
        at = first.sight.of(self.length)
        self._places = _places(at, seen, end, k.device)
        self._n_gone = 0 if self._places else at.start
        return first.before(at, last_k, last_v)

    def n_gone(self, layer: int) -> int:  # noqa: ARG002 - the layer that was written last
        """How many of a layer's first rows are missing from what the latest `write` gave."""
        return self._n_gone

    def places(self, layer: int) -> Places | None:  # noqa: ARG002 - the same
        """Where the rows stand that the latest `write` gave, where they leave a gap."""
        return self._places

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
        last = self._sliding[layer].in_use(self.length)
        first = self._first.get(layer)
        return last if first is None else first.before(first.sight.of(self.length - 1), *last)

    @property
    def layer_bytes(self) -> tuple[int, ...]:
        """Bytes of the rows that are in use, layer by layer [L], counted on the tensors."""
        return tuple(map(self._bytes_in_use, range(self._n_layer)))

    def _bytes_in_use(self, layer: int) -> int:
        parts = [*self.rows_in_use(layer)] if layer in self._whole else []
        if layer in self._sliding:
            parts += self._sliding[layer].in_use(self.length)
        if layer in self._first:
            parts += self._first[layer].rows(self._first[layer].sight.of(self.length - 1))
        return sum(part.nbytes for part in parts)

    @property
    def used_bytes(self) -> int:
        """Bytes of the rows that are in use, counted on the tensors themselves."""
        return sum(self.layer_bytes)

    @property
    def allocated_bytes(self) -> int:
        """Bytes of all tensors, used or not."""
        last = sum(rows.n_bytes for rows in self._sliding.values())
        return super().allocated_bytes + last + sum(rows.n_bytes for rows in self._first.values())


class _Rows:
    """Owns some of one layer's keys and values."""

    k: Tensor  # [G, room, D]
    v: Tensor

    def copy(self) -> Self:
        """The same rows in tensors of their own."""
        other = copy(self)
        other.k, other.v = self.k.clone(), self.v.clone()
        return other

    @property
    def n_bytes(self) -> int:
        """Of both tensors, used or not."""
        return self.k.nbytes + self.v.nbytes


class _LastRows(_Rows):
    """Those of the latest positions: from `first` on, side by side."""

    def __init__(self, window: int, most_room: int, empty: Tensor, n_rows: int) -> None:
        self.window, self.most_room = window, most_room
        self.first = 0  # the position of row 0
        self.k, self.v = (self._room(empty, n_rows) for _ in range(2))  # [G, room, D]
        self._moved: tuple[int, Tensor, Tensor] | None = None  # first, k, v: by a pass under way

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


@dataclass(frozen=True)
class _FirstSight:
    """Which of the first positions a layer's queries see besides their window."""

    most: int
    window: int  # of the mask
    own: int  # of the layer, which hides the first ones too; 0: none

    @classmethod
    def of_layer(cls, own: int, conditions: Conditions) -> Self:
        """A layer's with such a window of its own."""
        return cls(conditions.n_first(own), conditions.narrowed(own), own)

    def of(self, query: int) -> slice:
        """Those that a query sees, and its window no longer shows."""
        stop = min(max(0, query - self.window + 1), self.most)
        start = max(0, query - self.own + 1) if self.own else 0
        return slice(min(start, stop), stop)


class _FirstRows(_Rows):
    """Those of the first positions, which the last rows leave behind."""

    def __init__(self, sight: "_FirstSight", empty: Tensor, n_rows: int) -> None:
        self.sight = sight
        room = empty.shape[0], min(sight.most, n_rows), empty.shape[2]
        self.k, self.v = (empty.new_empty(room) for _ in range(2))  # [G, room, D]

    def write(self, start: int, k: Tensor, v: Tensor) -> None:
        """Store those of the new rows [G, T, D], from position `start` on, that are first ones."""
        end = min(start + k.shape[-2], self.sight.most)
        if start >= end:
            return
        if end > self.k.shape[-2]:
            n_rows = min(self.sight.most, 2 * end)
            self.k, self.v = (_longer(rows, n_rows) for rows in (self.k, self.v))
        for rows, new in ((self.k, k), (self.v, v)):
            rows[:, start:end] = new[:, : end - start]

    def rows(self, at: slice) -> tuple[Tensor, Tensor]:
        """Keys and values at some positions [G, rows, D]."""
        return self.k[:, at], self.v[:, at]

    def before(self, at: slice, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Those at some positions, and the last ones after them [G, rows, D]."""
        if at.start == at.stop:
            return k, v
        return torch.cat((self.k[:, at], k), dim=1), torch.cat((self.v[:, at], v), dim=1)


def _longer(rows: Tensor, n_rows: int) -> Tensor:
    """The same rows [G, room, D] at the beginning of a tensor with room for more."""
    longer = rows.new_empty(rows.shape[0], n_rows, rows.shape[2])
    longer[:, : rows.shape[1]] = rows
    return longer
