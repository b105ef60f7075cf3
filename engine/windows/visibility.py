"""What may be seen to predict a token, and whether what stands after it makes a difference.

Tokens are counted from 1 here, as a reader counts them: token n stands at position n − 1, and the
query at position n − 2, the last one before it, predicts it. In training every position is such a
query, in one and the same pass; so a pass over a whole text must give for token n what a pass over
the n − 1 tokens before it gives. That is measured, not taken for granted.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.conditions import Conditions
from engine.loss import mean_loss

Floats = NDArray[np.float32]

NUMBERS = (3, 8)  # tokens whose prediction is looked at
TOLERANCE = 1e-3  # of a logit, as sums in another order may differ


@dataclass(frozen=True, eq=False)
class Prediction:
    """One token of a text of S, predicted out of a pass over all of them."""

    number: int  # counted from 1
    seen: Floats  # [S] in which share of the layers the query may see each key
    top: tuple[tuple[int, float], ...]  # the most probable tokens: id, probability
    loss: float  # of the token that stands there, in nats; NaN if none does yet
    apart: float  # by how much a logit differs at most from a pass over what stands before

    @property
    def query(self) -> int:
        """The position that predicts it."""
        return self.number - 2

    @property
    def is_apart(self) -> bool:
        """Whether what stands after it made a difference."""
        return self.apart > TOLERANCE


@dataclass(frozen=True, eq=False)
class Visibility:
    """A text of S tokens under the conditions in force."""

    conditions: Conditions
    loss: Floats  # [S] nats, of all positions in one pass; NaN for the first
    n_seen: NDArray[np.int64]  # [S] how many keys the query before each may see; 0 for the first
    predictions: tuple[Prediction, ...]  # of NUMBERS, those that have all tokens before them

    @property
    def n_tokens(self) -> int:
        """S."""
        return len(self.loss)

    @property
    def mean(self) -> float:
        """Nats per token over all but the first; NaN without one."""
        return mean_loss(self.loss)

    def prediction(self, number: int) -> Prediction | None:
        """That of a token; None if the text is too short."""
        return next((each for each in self.predictions if each.number == number), None)
