"""What a KV cache holds under one design or another, from the sizes alone; no torch.

    bytes = Σ over layers of  numbers per token and layer · rows that the layer keeps · bytes

Keys and values are 2 · n_kv_head · head_dim numbers per token and layer: with as many key/value
heads as query heads that is multi-head attention, with fewer grouped (Ainslie et al. 2023), with
one multi-query (Shazeer 2019). A layer with a window keeps min(tokens, window) rows. Latent
attention keeps one compressed row instead (DeepSeek-AI 2024).
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from engine.conditions import Conditions
from engine.config import ModelConfig
from engine.cost.formulas import n_kept
from engine.errors import EngineError

CACHE_FORMATS: dict[str, int] = {"float32": 4, "16 bit": 2, "int8": 1}  # bytes of a number


@dataclass(frozen=True)
class CacheDesign:
    """One way to hold keys and values: how much of each token, in how many layers, how long.

    `windows` are the layers' own, 0 for none; the mask's window and first positions come on top.
    """

    name: str
    numbers: int  # per token and layer
    windows: tuple[int, ...]  # [L]
    conditions: Conditions = Conditions()  # noqa: RUF009 - frozen

    def rows(self, n_tokens: int) -> list[int]:
        """Rows that each layer keeps of so many tokens [L]."""
        seen = np.array([n_tokens], np.int64)
        per_window = {
            window: int(n_kept(seen, window, self.conditions)[0]) if n_tokens else 0
            for window in set(self.windows)
        }
        return [per_window[window] for window in self.windows]

    def layer_bytes(self, n_tokens: int, bytes_per_number: float = 4) -> list[float]:
        """What each layer holds of so many tokens [L]."""
        return [self.numbers * rows * bytes_per_number for rows in self.rows(n_tokens)]

    def n_bytes(self, n_tokens: int, bytes_per_number: float = 4) -> float:
        """What all layers hold together."""
        return self.numbers * sum(self.rows(n_tokens)) * bytes_per_number

    @classmethod
    def of(
        cls,
        config: ModelConfig,
        name: str = "this model",
        n_kv_head: int = 0,
        conditions: Conditions = Conditions(),  # noqa: B008 - frozen
    ) -> Self:
        """A model's own, or the same model with another number of key/value heads.

        Raises:
            EngineError: the query heads cannot be shared out evenly.
        """
        n_kv_head = n_kv_head or config.n_kv_head
        if config.n_head % n_kv_head:
            raise EngineError(
                f"{config.n_head} query heads cannot share {n_kv_head} key/value heads evenly; "
                f"use a number that divides {config.n_head}."
            )
        windows = config.windows or (0,) * config.n_layer
        return cls(name, 2 * n_kv_head * config.head_dim, windows, conditions)


def grouped_heads(config: ModelConfig) -> int:
    """A number of key/value heads between one for each query head and one for all.

    The model's own, where it is such a number; else the divisor of n_head nearest to its root.
    0 where there is none between, as for a prime.
    """
    if 1 < config.n_kv_head < config.n_head:
        return config.n_kv_head
    between = [n for n in range(2, config.n_head) if config.n_head % n == 0]
    return min(between, key=lambda n: abs(n * n - config.n_head), default=0)


def designs(config: ModelConfig, window: int, sinks: int) -> tuple[CacheDesign, ...]:
    """The same model under the designs that are in use, its own attention heads kept.

    Raises:
        ConfigError: a window is smaller than 1, or the first positions are negative.
    """
    grouped = grouped_heads(config)
    near = Conditions(mask="window", window=window)
    both = Conditions(mask="window", window=window, sinks=sinks)
    found = [CacheDesign.of(config, "multi-head", config.n_head)]
    if grouped:
        found.append(CacheDesign.of(config, "grouped", grouped))
    found.append(CacheDesign.of(config, "multi-query", 1))
    found.append(CacheDesign.of(config, "window", conditions=near))
    found.append(CacheDesign.of(config, "first + window", conditions=both))
    return tuple(found)
