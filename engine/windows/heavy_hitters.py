"""Which keys a budget gives up by the weight that they got, worked out for many queries at once.

What is given up in a layer depends on that layer's own scores alone. So the scores of many queries
can be computed in one product, as any pass does, and only the choice has to be made query by query:
each is a softmax over the keys that are left, added to what those got before.
"""

import numpy as np
from numpy.typing import NDArray

from engine.windows.eviction import Budget

Floats = NDArray[np.float32]


def give_up(
    scores: Floats,
    position: NDArray[np.int64],
    got: NDArray[np.float64],
    budget: Budget,
    capacity: int,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Which query no longer finds each key [G, N], `capacity` if all do; and what each got [G, N].

    The scores [H, T, N] are masked: of T new queries, on the keys that are held and the T new ones,
    which stand at `position` [G, N]. `got` [G, N − T] is what the held ones got so far, summed over
    the heads that share them.
    """
    n_head, n_new, n_keys = scores.shape
    n_group = len(position)
    n_held = n_keys - n_new
    groups = np.arange(n_group)
    gone_at = np.full((n_group, n_keys), capacity)
    total = np.zeros((n_group, n_keys))
    total[:, :n_held] = got
    hidden = np.zeros((n_group, 1, n_keys), np.float32)  # −∞ where a key is gone
    by_group = scores.reshape(n_group, n_head // n_group, n_new, n_keys)  # [G, R, T, N]
    for at in range(n_new):
        n_there = n_held + at
        query = int(position[0, n_there])
        if n_there >= budget.n_keys:
            old = position[:, :n_there] <= query - budget.n_recent
            left = old & (gone_at[:, :n_there] == capacity)
            victims = np.where(left, total[:, :n_there], np.inf).argmin(axis=1)  # [G]
            gone_at[groups, victims] = query
            hidden[groups, 0, victims] = -np.inf
        seen = slice(0, n_there + 1)
        weights = by_group[:, :, at, seen] + hidden[:, :, seen]  # [G, R, keys so far]
        weights -= weights.max(axis=-1, keepdims=True)
        np.exp(weights, out=weights)
        weights /= weights.sum(axis=-1, keepdims=True)
        total[:, seen] += weights.sum(axis=1, dtype=np.float64)
    return gone_at, total
