"""What small models that differ in one thing make of the same text; numpy only.

- The leak: two models trained on the same data from the same seed, one with the causal mask, one
  without it. The second reads the answer from the next position and is lost when it has to write.
- The position schemes: models that differ only in how they are told where a token stands, with
  the text as it is and with its words shuffled or moved.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.conditions import Mask
from engine.config import Positions
from engine.loss import mean_loss

Floats = NDArray[np.float32]

MASKS: tuple[Mask, ...] = ("causal", "none")  # that a model was trained with, and is read under


@dataclass(frozen=True, eq=False)
class Trial:
    """One model's reading of the text under one mask, and what it writes behind it."""

    trained_mask: Mask
    mask: Mask
    loss: Floats  # nats of each token [T], NaN at the first
    head: tuple[int, int]  # the layer and head that look most at the next position
    pattern: Floats  # of that head [T, T]
    continuation: str

    @property
    def mean_loss(self) -> float:
        """Nats per token, the first left out."""
        return mean_loss(self.loss)

    @property
    def answer_weight(self) -> float:
        """What the head gives, on average, to the token that is to be predicted."""
        return float(np.diagonal(self.pattern, offset=1).mean()) if len(self.loss) > 1 else 0.0


@dataclass(frozen=True, eq=False)
class LeakTrials:
    """Both models under both masks, on one text."""

    tokens: tuple[bytes, ...]
    n_left_out: int  # tokens at the beginning of the text that the context has no room for
    trials: tuple[Trial, ...]  # each model in turn, as its mask and without one

    def trial(self, trained_mask: Mask, mask: Mask) -> Trial:
        """One of the four."""
        return next(
            each for each in self.trials if (each.trained_mask, each.mask) == (trained_mask, mask)
        )


@dataclass(frozen=True, kw_only=True)
class Change:
    """What is done to the text: its words shuffled by a seed, the last aside, or all moved on."""

    shuffle_seed: int = 0  # 0: not shuffled
    shift: int = 0  # the position at which the text begins

    @property
    def is_none(self) -> bool:
        """Whether the text stays as it is."""
        return not (self.shuffle_seed or self.shift)


@dataclass(frozen=True, eq=False)
class SchemeReading:
    """One scheme's reading of the text as it is, and of the changed text."""

    positions: Positions
    loss: Floats  # nats of each token [T], NaN at the first
    changed_loss: Floats  # the same of the changed text [T]
    pattern: Floats  # of the head that was asked for [T, T]
    changed_pattern: Floats  # the same of the changed text [T, T]
    # How far the change moves the last token's residual: |Δ| / |x| at each depth [L + 1].
    moved: Floats
    probability_change: float  # the largest of any token's next-token probability

    @property
    def mean_loss(self) -> float:
        """Nats per token, the first left out."""
        return mean_loss(self.loss)

    @property
    def changed_mean_loss(self) -> float:
        """The same of the changed text."""
        return mean_loss(self.changed_loss)


@dataclass(frozen=True, eq=False)
class SchemeReadings:
    """All schemes on one text and on what a change made of it."""

    tokens: tuple[bytes, ...]  # [T]
    changed_tokens: tuple[bytes, ...]  # [T]
    n_left_out: int  # tokens at the beginning of the text that the context has no room for
    change: Change
    trained_length: int  # tokens of the windows that the models were trained on
    readings: tuple[SchemeReading, ...]
