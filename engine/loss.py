"""What a text costs the model: cross-entropy per token and per character, from recorded losses.

The loss of a token is −ln p of that very token under the row before it, in nats; ÷ ln 2 it is in
bits. The first token that the model sees has no row before it, hence no loss, and is not counted.

Per character means: all counted nats divided by how many characters of the text the counted
tokens spell. A character is a Unicode code point; one of which the uncounted first token holds
some bytes and a counted one the rest counts in full.
"""

from dataclasses import dataclass
from math import log
from typing import Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]

NATS_PER_BIT = log(2)


def mean_loss(loss: Floats) -> float:
    """Nats per token of losses [S], all but the first, which is none; NaN without another."""
    return float(loss[1:].mean(dtype=np.float64)) if len(loss) > 1 else float("nan")


def bits(nats: Floats) -> Doubles:
    """The same losses in bits [S]."""
    return np.asarray(nats, np.float64) / NATS_PER_BIT


def probabilities(nats: Floats) -> Doubles:
    """The probability that each token had [S]: exp(−loss)."""
    probs: Doubles = np.exp(-np.asarray(nats, np.float64))
    return probs


def worst_first(nats: Floats) -> NDArray[np.intp]:
    """Positions [S] from the largest loss to the smallest; equal ones in the text's order.

    A loss that is no number stands behind all others, as the first token's does.
    """
    return np.argsort(-np.asarray(nats, np.float64), kind="stable")


@dataclass(frozen=True)
class LossSummary:
    """The counted tokens together; without any, every mean is NaN."""

    n_tokens: int  # counted
    n_characters: int  # that those tokens spell
    nats: float  # their sum

    @classmethod
    def of(cls, loss: Floats, spans: NDArray[np.int64]) -> Self:
        """From the losses [S] of a text and where its tokens stand in its characters [S, 2].

        All but the first token are counted; if one of their losses is no number, no mean is.

        Raises:
            ValueError: there are not as many spans as losses.
        """
        if len(loss) != len(spans):
            raise ValueError(f"{len(loss)} losses and {len(spans)} spans are not of one text.")
        counted = np.asarray(loss[1:], np.float64)
        n_characters = int(spans[-1, 1] - spans[1, 0]) if len(counted) else 0
        return cls(len(counted), n_characters, float(counted.sum()))

    @property
    def mean(self) -> float:
        """Nats per token."""
        return self.nats / self.n_tokens if self.n_tokens else float("nan")

    @property
    def bits_per_token(self) -> float:
        """Mean loss ÷ ln 2."""
        return self.mean / NATS_PER_BIT

    @property
    def perplexity(self) -> float:
        """exp(mean loss): as uncertain as among so many equally probable tokens."""
        with np.errstate(over="ignore"):  # infinite beyond 709 nats
            return float(np.exp(np.float64(self.mean)))

    @property
    def nats_per_character(self) -> float:
        """All nats ÷ characters; NaN if the counted tokens spell none."""
        return self.nats / self.n_characters if self.n_characters else float("nan")

    @property
    def bits_per_character(self) -> float:
        """The same in bits, which tokenizers of any kind can be compared by."""
        return self.nats_per_character / NATS_PER_BIT
