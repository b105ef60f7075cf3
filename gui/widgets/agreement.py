"""How much of what is drawn still holds for what is to be drawn next."""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Item = TypeVar("Item")


def agreeing(old: Sequence[Item], new: Sequence[Item]) -> int:
    """How many items agree from the first on, found by halving (slices compare at C speed)."""
    low, high = 0, min(len(old), len(new))
    if new[:high] == old[:high]:
        return high
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if old[low:middle] == new[low:middle] else (low, middle - 1)
    return low


def agreeing_tokens(
    old: tuple[NDArray[np.float32], NDArray[np.bool_]],
    new: tuple[NDArray[np.float32], NDArray[np.bool_]],
) -> int:
    """How many tokens, from the first on, look at each other as before and at no later one.

    Weights and what the mask lets through, [n, n] each, of two matrices.
    """
    both = min(len(old[0]), len(new[0]))
    square = (slice(both), slice(both))
    differs = np.zeros(both, np.bool_)
    for before, after in zip(old, new, strict=True):
        differs |= (before[square] != after[square]).any(axis=1)
    n = int(differs.argmax()) if differs.any() else both
    return 0 if any(matrix[:n, n:].any() for matrix in (*old, *new)) else n
