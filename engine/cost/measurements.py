"""What was measured of the cost of context on this machine: frozen records, without torch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from engine.config import QUERY_BLOCK
from engine.cost.formulas import ATTENTION

TimedPart = Literal["embedding", "projections", "scores", "mix", "MLP", "output", "rest"]
TIMED_PARTS: tuple[TimedPart, ...] = get_args(TimedPart)  # rest: norms, rotary, sums
ALL_BUT_ATTENTION: tuple[TimedPart, ...] = tuple(p for p in TIMED_PARTS if p not in ATTENTION)

Seconds = Mapping[TimedPart, float]

# Lengths of a sweep below a block of queries, each timed by itself.
SHORT = (8, 16, 32, 64)

# What two passes over the same rows may differ by, as sums in another order do.
TOLERANCE = 1e-3


def ladder(longest: int) -> list[int]:
    """The lengths of a sweep: powers of two and those half-way between, and the longest."""
    lengths = [n for n in SHORT if n <= longest]
    n = QUERY_BLOCK
    while n <= longest:
        lengths += [n] if n == QUERY_BLOCK or n + n // 2 > longest else [n, n + n // 2]
        n *= 2
    return lengths if lengths and lengths[-1] == longest else [*lengths, longest]


@dataclass(frozen=True)
class DecodeStep:
    """One token decoded twice: with the cache, and with all rows computed again."""

    n_tokens: int  # S, this token included
    token_id: int
    rows_with: int  # of keys and values computed
    rows_without: int
    multiply_adds_with: int
    multiply_adds_without: int
    seconds_with: float  # of the pass and its last row of logits
    seconds_without: float
    difference: float  # largest, of the logits for what follows
    same_draw: bool  # whether both would go on with the same token


@dataclass(frozen=True)
class BothWays:
    """The same decoding with and without the cache, as far as it has come."""

    n_prompt: int  # S before the first step
    n_wanted: int  # steps
    prompt_seconds: float  # of the pass over the prompt, which both ways need
    steps: tuple[DecodeStep, ...] = ()

    @property
    def is_done(self) -> bool:
        """Whether all steps were taken."""
        return len(self.steps) == self.n_wanted

    @property
    def share(self) -> float:
        """How much of it is done, 0 to 1, by the rows that have to be computed."""
        rows = np.arange(self.n_prompt + 1, self.n_prompt + self.n_wanted + 1)
        return float(rows[: len(self.steps)].sum() / rows.sum())

    def column(self, name: str) -> NDArray[np.float64]:
        """One field of all steps [steps]."""
        return np.array([getattr(step, name) for step in self.steps], np.float64)

    @property
    def difference(self) -> float:
        """The largest of all steps."""
        return max((step.difference for step in self.steps), default=0.0)

    @property
    def n_same(self) -> int:
        """Steps at which both ways would go on with the same token."""
        return sum(step.same_draw for step in self.steps)


@dataclass(frozen=True)
class OneByOne:
    """One text read in one pass, and token by token with the cache, under one mask."""

    n_tokens: int
    parallel_seconds: float
    parallel_multiply_adds: int
    serial_seconds: tuple[float, ...] = ()  # of each token so far
    serial_multiply_adds: int = 0  # of them together
    rows_difference: float = 0.0  # largest, of the keys and values so far
    logits_difference: float = 0.0
    n_equal: int = 0  # tokens whose rows and logits lie within TOLERANCE

    @property
    def n_done(self) -> int:
        """Tokens that were read one by one."""
        return len(self.serial_seconds)

    @property
    def is_done(self) -> bool:
        """Whether all were."""
        return self.n_done == self.n_tokens


@dataclass(frozen=True)
class Machine:
    """What this machine can do at most, measured: the roof over every pass."""

    multiply_adds_per_second: float  # in the product of two large float32 squares
    bytes_per_second: float  # read from memory, a matrix of 256 MiB times a vector
    n_threads: int
    device: str

    def best(self, other: "Machine | None") -> "Machine":
        """The higher of both figures: what is measured of a busy machine is too low."""
        if other is None:
            return self
        return replace(
            self,
            multiply_adds_per_second=max(
                self.multiply_adds_per_second, other.multiply_adds_per_second
            ),
            bytes_per_second=max(self.bytes_per_second, other.bytes_per_second),
        )

    @property
    def ridge(self) -> float:
        """Multiply-adds per byte from which on arithmetic is the bound, and memory below."""
        return self.multiply_adds_per_second / self.bytes_per_second

    def roof(self, per_byte: float) -> float:
        """Multiply-adds per second that can be had at so many per byte (Williams et al. 2009)."""
        return min(self.multiply_adds_per_second, per_byte * self.bytes_per_second)


@dataclass(frozen=True)
class Worked:
    """One kind of pass under the roof: what it computed, what it moved, how long it took."""

    n_new: int
    start: int
    multiply_adds: int
    n_bytes: int
    seconds: float

    @property
    def per_byte(self) -> float:
        """Multiply-adds for each byte moved."""
        return self.multiply_adds / self.n_bytes

    @property
    def per_second(self) -> float:
        """Multiply-adds per second, attained."""
        return self.multiply_adds / self.seconds


@dataclass(frozen=True)
class LengthTime:
    """A pass over so many tokens, timed part by part, and one more token after them."""

    n_tokens: int
    seconds: Seconds
    decode_seconds: float

    @cached_property
    def total(self) -> float:
        """Seconds of the whole pass."""
        return sum(self.seconds.values())

    @cached_property
    def attention(self) -> float:
        """Seconds of scores and mix, softmax included."""
        return sum(self.seconds[part] for part in ATTENTION)

    @property
    def others(self) -> float:
        """Seconds of all the rest."""
        return self.total - self.attention


@dataclass(frozen=True)
class Lab:
    """The sweep of the length, as far as it has come."""

    longest: int
    machine: Machine | None = None
    points: tuple[LengthTime, ...] = ()
    prefill: Worked | None = None
    decode: Worked | None = None
    n_done: int = 0  # tokens of the long pass that were read

    @property
    def is_done(self) -> bool:
        """Whether everything was measured."""
        return self.decode is not None

    @property
    def share(self) -> float:
        """How much is done, 0 to 1: later tokens attend to more of them, so by the square."""
        return 1.0 if self.is_done else 0.98 * (self.n_done / self.longest) ** 1.5

    @property
    def lengths(self) -> NDArray[np.float64]:
        """Of all points."""
        return np.array([point.n_tokens for point in self.points], np.float64)

    def seconds_of(self, part: TimedPart) -> NDArray[np.float64]:
        """One part's time at each point."""
        return np.array([point.seconds[part] for point in self.points], np.float64)

    def column(self, name: str) -> NDArray[np.float64]:
        """A figure of each point by its name, such as "attention"."""
        return np.array([getattr(point, name) for point in self.points], np.float64)


@dataclass(frozen=True)
class Fit:
    """y = factor · x^exponent through some points, by least squares of the logarithms."""

    exponent: float
    factor: float
    low: float = field(default=0.0)  # the range of x that it was fitted to
    high: float = field(default=0.0)

    def at(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """The fitted y."""
        y: NDArray[np.float64] = self.factor * x**self.exponent
        return y


def fit_power(x: Sequence[float] | NDArray[np.float64], y: NDArray[np.float64]) -> Fit | None:
    """The power of x that comes nearest to y; None below two points, or where y is not positive."""
    xs, ys = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if len(xs) < 2 or (ys <= 0).any() or xs.min() == xs.max():
        return None
    exponent, logarithm = np.polyfit(np.log(xs), np.log(ys), 1)
    return Fit(float(exponent), float(np.exp(logarithm)), float(xs.min()), float(xs.max()))


def fits_at_both_ends(
    x: NDArray[np.float64], y: NDArray[np.float64]
) -> tuple[Fit | None, Fit | None]:
    """The power at the short and at the long end: the lower and the upper third of the octaves.

    A sum of a linear and a quadratic part has no one exponent; these two say where it bends.
    """
    if not len(x):
        return None, None
    octaves = np.log2(x)
    third = (octaves.max() - octaves.min()) / 3 + 1e-9
    is_short, is_long = octaves <= octaves.min() + third, octaves >= octaves.max() - third
    return fit_power(x[is_short], y[is_short]), fit_power(x[is_long], y[is_long])


def crossing_of(
    x: NDArray[np.float64], rising: NDArray[np.float64], other: NDArray[np.float64]
) -> float | None:
    """Where a rising curve overtakes another for good, between two points on both logarithms.

    None where it does not within the points, or already lies above at the first.
    """
    if not len(x):
        return None
    apart = np.log(rising) - np.log(other)
    below = np.flatnonzero(apart <= 0)
    if not len(below) or below[-1] == len(x) - 1:
        return None
    at = int(below[-1])
    share = -apart[at] / (apart[at + 1] - apart[at])
    return float(np.exp(np.log(x[at]) + share * (np.log(x[at + 1]) - np.log(x[at]))))
