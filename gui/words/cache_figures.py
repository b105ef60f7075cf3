"""What the KV cache holds and saves, worked out from a reading; plain arithmetic, no Qt."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from engine.conditions import Conditions
from engine.cost.formulas import n_kept
from engine.reading import PassStats, Reading


@dataclass(frozen=True)
class CacheFigures:
    """The live numbers of one reading, measured and by the formula.

    A layer holds what its last query sees: through a window of its own or the mask's that is
    min(tokens, window) rows, and the first ones where the mask keeps those in sight.
    """

    in_use: bool  # switched on, and the mask lets rows stay true
    n_layer: int
    windows: tuple[int, ...]  # each layer's own, 0 for none [L]
    conditions: Conditions
    n_kv_head: int
    head_dim: int
    n_tokens: int  # whose keys and values the cache holds
    bytes_per_number: int  # in the tensors
    held: int
    allocated: int

    @classmethod
    def of(cls, reading: Reading) -> Self:
        """The figures of this moment."""
        config = reading.info.config
        in_use = reading.use_cache and reading.conditions.append_only
        # Behind a cursor that stands further back, the cache still holds the whole text.
        read = reading.stats[-1].n_tokens if reading.stats else 0
        n_tokens = reading.n_tokens if reading.at_end else read
        return cls(
            in_use=in_use,
            n_layer=config.n_layer,
            windows=config.windows or (0,) * config.n_layer,
            conditions=reading.conditions,
            n_kv_head=config.n_kv_head,
            head_dim=config.head_dim,
            n_tokens=n_tokens if in_use else 0,
            bytes_per_number=reading.cache_bytes_per_number,
            held=reading.cache_bytes,
            allocated=reading.cache_allocated_bytes,
        )

    @property
    def has_windows(self) -> bool:
        """Whether any layer lets rows go."""
        return any(map(self.conditions.narrowed, self.windows))

    def n_bytes(self, n_tokens: NDArray[np.float64], conditions: Conditions) -> NDArray[np.float64]:
        """Bytes that the cache should hold by the formula, after so many tokens each."""
        tokens = n_tokens.astype(np.int64)
        rows = np.zeros_like(n_tokens)
        for window, n_layers in Counter(self.windows).items():
            rows += n_layers * n_kept(tokens, window, conditions)
        return rows * self.row_bytes

    def bytes_after(self, columns: "PassColumns", shown: slice) -> NDArray[np.float64]:
        """The same after each of some passes, under the mask that it had."""
        found = np.zeros_like(columns.n_tokens[shown])
        masks = np.stack((columns.window[shown], columns.sinks[shown]), axis=1).astype(np.int64)
        for window, sinks in np.unique(masks, axis=0).tolist():
            mask = Conditions(mask="window" if window else "causal", window=window, sinks=sinks)
            are = (masks == (window, sinks)).all(axis=1)
            found[are] = self.n_bytes(columns.n_tokens[shown][are], mask)
        return found

    @property
    def row_bytes(self) -> int:
        """Bytes of one token's key and value in one layer."""
        return 2 * self.n_kv_head * self.head_dim * self.bytes_per_number

    @property
    def by_formula(self) -> int:
        """Bytes that the cache should hold now."""
        return int(self.n_bytes(np.array([self.n_tokens], np.float64), self.conditions)[0])

    @property
    def agrees(self) -> bool:
        """Whether the tensors hold exactly what the formula says, and have room for whole rows."""
        return self.held == self.by_formula and self.allocated % self.row_bytes == 0


class PassColumns:
    """The growing list of passes as arrays; a longer list costs only what is new in it."""

    _FIELDS = (
        "n_tokens",
        "n_computed",
        "milliseconds",
        "cache_bytes",
        "cached",
        "window",
        "sinks",
    )

    def __init__(self) -> None:
        self._rows: NDArray[np.float64] = np.empty((len(self._FIELDS), 256))
        self._stats: Sequence[PassStats] = ()

    def __len__(self) -> int:
        """How many passes."""
        return len(self._stats)

    def update(self, stats: Sequence[PassStats]) -> None:
        """Take over a longer list, or begin again if it is another run's."""
        known = len(self._stats)
        if known and (len(stats) < known or stats[known - 1] is not self._stats[-1]):
            known = 0
        while len(stats) > self._rows.shape[1]:
            self._rows = np.concatenate((self._rows, np.empty_like(self._rows)), axis=1)
        for at in range(known, len(stats)):
            each = stats[at]
            self._rows[:, at] = (
                each.n_tokens,
                each.n_computed,
                1000 * each.seconds,
                each.cache_bytes,
                used_cache(each),
                each.window,
                each.sinks,
            )
        self._stats = stats

    def _column(self, name: str) -> NDArray[np.float64]:
        return self._rows[self._FIELDS.index(name), : len(self._stats)]

    @property
    def numbers(self) -> NDArray[np.float64]:
        """Pass numbers, from 1 on [passes]."""
        return np.arange(1.0, len(self._stats) + 1)

    @property
    def n_tokens(self) -> NDArray[np.float64]:
        """S after each pass: the rows that it would compute without the cache [passes]."""
        return self._column("n_tokens")

    @property
    def n_computed(self) -> NDArray[np.float64]:
        """Rows that each pass did compute [passes]."""
        return self._column("n_computed")

    @property
    def milliseconds(self) -> NDArray[np.float64]:
        """How long each pass's arithmetic took [passes]."""
        return self._column("milliseconds")

    @property
    def cache_bytes(self) -> NDArray[np.float64]:
        """Bytes held by the cache after each pass [passes]."""
        return self._column("cache_bytes")

    @property
    def window(self) -> NDArray[np.float64]:
        """The window of the mask that each pass had, 0 for none [passes]."""
        return self._column("window")

    @property
    def sinks(self) -> NDArray[np.float64]:
        """The first positions that it kept in sight [passes]."""
        return self._column("sinks")

    @property
    def cached(self) -> NDArray[np.bool_]:
        """Whether each pass could use the cache [passes]."""
        return self._column("cached") > 0


def used_cache(stats: PassStats) -> bool:
    """Whether a pass could keep rows in the cache; without the mask none can be kept."""
    return stats.cached and stats.reason != "mask off"


def thrown_away(stats: Sequence[PassStats]) -> int:
    """Rows that the cache held before the latest pass and no longer does: what an edit undid."""
    return thrown_between(stats[-2], stats[-1]) if len(stats) > 1 else 0


def latest_pass(reading: Reading) -> tuple[range, int]:
    """Which positions on screen the latest pass computed, and how many rows it threw away."""
    latest = reading.stats[-1] if reading.stats else None
    start, stop = reading.computed
    if reading.reason == "looked":
        start, stop = (latest.n_kept, latest.n_tokens) if latest is not None else (0, 0)
    is_known = latest is not None and (latest.n_kept, latest.n_tokens) == (start, stop)
    stop = min(stop, reading.n_tokens)
    return range(min(start, stop), stop), thrown_away(reading.stats) if is_known else 0


def thrown_between(before: PassStats, after: PassStats) -> int:
    """The same of any pass and the one after it."""
    if not (used_cache(before) and used_cache(after)):
        return 0
    return max(0, before.n_tokens - after.n_kept)
