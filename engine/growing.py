"""A list that only grows, of which each moment keeps its own length and nothing is copied."""

from collections.abc import Sequence
from typing import Generic, Self, TypeVar, overload

T = TypeVar("T")


class Growing(Sequence[T], Generic[T]):
    """Frozen; a longer one shares its entries with the one before, so growing takes no longer."""

    def __init__(self, entries: list[T] | None = None, length: int = 0) -> None:
        """The first so many entries of a list that nobody else changes."""
        self._entries: list[T] = [] if entries is None else entries
        self._length = length

    def plus(self, entry: T) -> Self:
        """This one and another entry; the second to go on from the same moment takes a copy."""
        entries = self._entries
        if len(entries) > self._length:
            entries = entries[: self._length]
        entries.append(entry)
        return type(self)(entries, self._length + 1)

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, at: int) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[T, ...]: ...
    def __getitem__(self, at: int | slice) -> T | tuple[T, ...]:
        if isinstance(at, slice):
            return tuple(self._entries[each] for each in range(*at.indices(self._length)))
        return self._entries[range(self._length)[at]]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Growing):
            return NotImplemented
        return self._length == other._length and self._entries is other._entries

    def __hash__(self) -> int:
        return hash((id(self._entries), self._length))
