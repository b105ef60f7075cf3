"""From logits to the next token: each stage apart, so that what was drawn from can be shown.

Temperature, then top-k, then top-p, all over the whole vocabulary. Temperature 0 means greedy:
the most probable token has probability 1. A draw depends on the seed and the position alone, so
the same seed gives the same text, also after stepping back.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.errors import ConfigError

Floats = NDArray[np.floating]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How the next token is chosen.

    Raises:
        ConfigError: temperature is negative or not finite, top_k negative, top_p outside (0, 1], or
            the seed outside 0 … 2⁶⁴ − 1.
    """

    temperature: float = 0.8
    top_k: int = 0  # 0: all tokens stay
    top_p: float = 1.0
    seed: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.temperature < np.inf:
            raise ConfigError(f"temperature = {self.temperature} is not possible; use 0 or more.")
        if self.top_k < 0:
            raise ConfigError(f"top_k = {self.top_k} is not possible; use 0 (all tokens) or more.")
        if not 0 < self.top_p <= 1:
            raise ConfigError(f"top_p = {self.top_p} is not possible; use more than 0, at most 1.")
        if not 0 <= self.seed < 2**64:
            raise ConfigError(f"seed = {self.seed} is not possible; use 0 to 2⁶⁴ − 1.")


@dataclass(frozen=True, eq=False)
class Stages:
    """What became of every token of the vocabulary, stage by stage; all arrays are [V]."""

    logits: Floats
    scaled: Floats  # logits / temperature; at temperature 0 the logits themselves
    plain_probs: Floats  # softmax of the logits, before anything was changed
    scaled_probs: Floats  # softmax of `scaled`
    in_top_k: Bools
    in_top_p: Bools  # of those that top-k left
    probs: Floats  # what is drawn from: sums to 1
    order: NDArray[np.intp]  # token ids from the most to the least probable


def softmax(scores: Floats) -> Floats:
    """Non-negative, summing to 1 along the last axis, in float64."""
    shifted = np.asarray(scores, dtype=np.float64) - np.max(scores, axis=-1, keepdims=True)
    exponentials = np.exp(shifted)
    return np.asarray(exponentials / exponentials.sum(axis=-1, keepdims=True))


def descending(logits: Floats) -> NDArray[np.intp]:
    """Token ids from the largest number to the smallest, equal ones from the smaller id on.

    As a stable sort, which takes ten times as long for a large vocabulary: hardly any are equal.
    """
    order = np.argsort(-logits)
    ranked = logits[order]
    is_next_equal = ranked[1:] == ranked[:-1]
    tied = np.flatnonzero(np.append(is_next_equal, False) | np.append(False, is_next_equal))
    order[tied] = order[tied][np.lexsort((order[tied], -ranked[tied]))]
    return order


def stages(logits: Floats, sampling: Sampling) -> Stages:
    """All stages for one row of logits [V].

    Ties are broken in favour of the smaller token id, in every stage. Top-p keeps the smallest
    set of most probable tokens whose probability reaches p (Holtzman et al. 2020), worked out
    over what top-k left and renormalised.
    """
    logits = np.asarray(logits, dtype=np.float64)
    order = descending(logits)
    plain_probs = softmax(logits)
    if sampling.temperature == 0:
        scaled = logits
        scaled_probs = np.zeros_like(logits)
        scaled_probs[order[0]] = 1.0
    else:
        # An extreme temperature may overflow; below the maximum only towards probability 0.
        with np.errstate(over="ignore"):
            scaled = logits / sampling.temperature
            scaled_probs = softmax((logits - logits.max()) / sampling.temperature)
    in_top_k = np.ones(logits.shape, dtype=np.bool_)
    if sampling.top_k:
        in_top_k[order[sampling.top_k :]] = False
    kept = np.where(in_top_k, scaled_probs, 0.0)
    kept /= kept.sum()
    in_top_p = in_top_k.copy()
    if sampling.top_p < 1:
        reached = np.cumsum(kept[order])
        in_top_p[order[1:][reached[:-1] >= sampling.top_p]] = False
    probs = np.where(in_top_p, kept, 0.0)
    probs /= probs.sum()
    return Stages(logits, scaled, plain_probs, scaled_probs, in_top_k, in_top_p, probs, order)


def draw(probs: Floats, seed: int, position: int) -> int:
    """One token id, drawn from probs [V] by a number that seed and position alone decide."""
    key = np.array([seed, position], dtype=np.uint64)
    random = np.random.Generator(np.random.Philox(key=key)).random()
    cumulative = np.cumsum(probs)
    last = int(np.flatnonzero(probs)[-1])
    return min(int(np.searchsorted(cumulative, random * cumulative[-1], side="right")), last)
