"""What switching heads off does to a text's loss, and to the prediction at one position.

How far a distribution moved is its Kullback-Leibler divergence, Σ p · ln(p ÷ q) over the
vocabulary, in nats: p as it is shown, q without the head. It is 0 only where nothing moved.

That says what the rest of the model makes of the text without a head, and so what the head did for
this text in this company: heads can stand in for each other, and where two do the same, switching
one off moves little (McGrath et al. 2023).
"""

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from engine.conditions import OffBy

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Head = tuple[int, int]  # layer, head

Measure = Literal["answer", "loss"]
MEASURES: tuple[Measure, ...] = get_args(Measure)
MEASURE_FORMULAS: dict[Measure, str] = {
    "answer": "Σ p · ln(p ÷ q) in nats: p as the next token is predicted now, q without the head",
    "loss": "mean nats per token of this text without the head − with it",
}


@dataclass(frozen=True, eq=False)
class Intact:
    """A text as the same model reads it with all heads on, everything else being the same."""

    position: int
    loss: Floats  # [S], nats; NaN for the first token
    logits: Floats  # [V], at the position


@dataclass(frozen=True)
class Outcome:
    """How one run of a text came out."""

    loss: float  # mean nats per token; NaN for a text of one token
    divergence: float  # nats, of the distribution at the position from the one that is shown
    logit: float  # of the followed token at the position
    probability: float  # of the same, by the plain softmax
    top: int  # the most probable token at the position


@dataclass(frozen=True, eq=False)
class Effects:
    """What each head does [L, H], by switching it off besides those that are off already.

    NaN, and −1 for `top`, where a head is not measured yet or is off already.
    """

    position: int
    token_id: int  # the followed token
    off_by: OffBy
    shown: Outcome  # with no further head off
    n_heads: int  # that are to be measured
    loss: Doubles
    divergence: Doubles
    logit: Doubles
    probability: Doubles
    top: NDArray[np.int64]

    @property
    def n_measured(self) -> int:
        """How many heads are measured."""
        return int((self.top >= 0).sum())

    @property
    def is_whole(self) -> bool:
        """Whether every head is measured."""
        return self.n_measured == self.n_heads

    def scores(self, measure: Measure) -> Doubles:
        """The divergence, or the change of the mean loss, in nats [L, H]."""
        return self.divergence if measure == "answer" else self.loss - self.shown.loss

    def ranked(self, measure: Measure) -> tuple[Head, ...]:
        """The measured heads, from the largest effect in either direction to the smallest."""
        sizes = np.abs(self.scores(measure)).ravel()
        sizes[np.isnan(sizes)] = -1.0  # a text of one token has no loss, but heads in an order
        order = np.argsort(-sizes, kind="stable")
        heads = (divmod(int(at), self.top.shape[1]) for at in order)
        return tuple(head for head in heads if self.top[head] >= 0)


def log_probabilities(logits: NDArray[np.floating]) -> Doubles:
    """Logarithms of the plain softmax of one row of logits [V]."""
    doubles = logits.astype(np.float64)
    shifted = doubles - doubles.max()
    logs: Doubles = shifted - np.log(np.exp(shifted).sum())
    return logs


def divergence(p: Doubles, q: Doubles) -> float:
    """Σ p · ln(p ÷ q) in nats, from the logarithms of two distributions [V]."""
    # Rounding can leave less than nothing; numpy's maximum, unlike Python's, never loses a NaN.
    total: Any = np.maximum((np.exp(p) * (p - q)).sum(), 0.0)
    return float(total)
