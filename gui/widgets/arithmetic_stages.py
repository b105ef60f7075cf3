"""Arithmetic as stages: rows of bars, dials, marks and terms, each number of which can be read.

What can be read of an item is counted from 0: `len(item)` numbers, told one by one by
`item.tell(index)`, and all at once by `item.lines()`. No Qt.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Hue = Literal["query", "key", "value", "residual", "plain"]

_WIDEST = 1e4  # from here on a short number has an exponent


def short(value: float) -> str:
    """A number in four or five digits, with a real minus."""
    if not np.isfinite(value):
        return {np.inf: "∞", -np.inf: "−∞"}.get(value, "not a number")
    size = abs(value)
    if value == 0 or 1e-3 <= size < _WIDEST:
        text = f"{value:.4f}" if value else "0"
    else:
        mantissa, exponent = f"{value:.2e}".split("e")
        text = f"{mantissa}e{int(exponent)}"
    return text.replace("-", "−")


def exact(value: np.floating | float) -> str:
    """Every digit that a number has in its own precision, to be read and to be copied."""
    text = str(value) if isinstance(value, np.floating) else repr(float(value))
    return text.replace("inf", "∞")


@dataclass(frozen=True, eq=False)
class Bars:
    """Numbers [n] as bars, n of them at most as many as the place allows.

    `top` is the size of a bar of full height; `hidden` [n] ones are hatched instead.
    """

    caption: str
    symbol: str  # what one of the numbers is called
    values: NDArray[np.floating]
    name: Callable[[int], str]  # what one of the numbers belongs to: "feature 3"
    top: float
    hue: Hue = "plain"
    is_signed: bool = True
    marked: int | None = None
    hidden: NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        """How many numbers there are."""
        return len(self.values)

    def tell(self, index: int) -> str:
        """One number with all its digits."""
        told = f"{self.symbol} of {self.name(index)} = {exact(self.values[index])}"
        is_hidden = self.hidden is not None and self.hidden[index]
        return f"{told}, hidden by the mask" if is_hidden else told

    def lines(self) -> Iterator[str]:
        """The caption, and a line for each number."""
        yield f"{self.caption}:"
        for index in range(len(self)):
            yield f"\t{self.name(index)}\t{exact(self.values[index])}"


@dataclass(frozen=True, eq=False)
class Dials:
    """Pairs of features [n, 2] before and after a turn by angles [n] in radians."""

    caption: str
    symbol: str
    before: NDArray[np.floating]
    after: NDArray[np.floating]
    angles: NDArray[np.floating]
    hue: Hue

    def __len__(self) -> int:
        """How many pairs there are."""
        return len(self.angles)

    def tell(self, index: int) -> str:
        """One pair with all its digits."""
        before, after = (", ".join(map(exact, pair[index])) for pair in (self.before, self.after))
        angle = exact(np.degrees(float(self.angles[index])))
        return f"{self.symbol}, {self._pair(index)}: ({before}) turned by {angle}° → ({after})"

    def lines(self) -> Iterator[str]:
        """The caption, and a line for each pair."""
        yield f"{self.caption}: before, angle in radians, after"
        for index in range(len(self)):
            numbers = (*self.before[index], self.angles[index], *self.after[index])
            yield "\t".join(("", self._pair(index), *map(exact, numbers)))

    def _pair(self, index: int) -> str:
        return f"features {index} and {index + len(self)}"


@dataclass(frozen=True, eq=False)
class Marks:
    """A row of counted things, some of them filled, one of them framed."""

    caption: str
    count: int
    filled: frozenset[int]
    framed: int
    hue: Hue
    name: Callable[[int], str]

    def __len__(self) -> int:
        """How many things there are."""
        return self.count

    def tell(self, index: int) -> str:
        """One thing in words."""
        return self.name(index)

    def lines(self) -> Iterator[str]:
        """The caption, which says it all."""
        yield self.caption


@dataclass(frozen=True)
class Term:
    """One step and the number that it leads to; `told` is the step with all digits."""

    text: str
    value: float
    told: str
    is_result: bool = False

    def __len__(self) -> int:
        """One."""
        return 1

    def tell(self, _index: int) -> str:
        """The step, and the number with all its digits."""
        return f"{self.told} = {exact(self.value)}"

    def lines(self) -> Iterator[str]:
        """The same."""
        yield self.tell(0)


@dataclass(frozen=True)
class Note:
    """A sentence; there is no number in it to be read."""

    text: str

    def __len__(self) -> int:
        """None."""
        return 0

    def tell(self, _index: int) -> str:
        """The sentence."""
        return self.text

    def lines(self) -> Iterator[str]:
        """The sentence."""
        yield self.text


Item: TypeAlias = Bars | Dials | Marks | Term | Note


@dataclass(frozen=True)
class Stage:
    """A step of the whole, with its formula and what it is made of."""

    title: str
    formula: str
    items: Sequence[Item]

    def lines(self) -> Iterator[str]:
        """The stage as text, every number with all its digits."""
        yield f"{self.title}: {self.formula}"
        for item in self.items:
            yield from item.lines()


def full_text(stages: Sequence[Stage]) -> str:
    """All of it, a number a line."""
    return "\n\n".join("\n".join(stage.lines()) for stage in stages)


def summary(stages: Sequence[Stage]) -> str:
    """What is to be said where nothing can be seen: the steps, without the long rows."""
    said = []
    for stage in stages:
        steps = [
            f"{item.text}: {short(item.value)}" if isinstance(item, Term) else item.caption
            for item in stage.items
            if isinstance(item, Term | Marks)
        ]
        said.append(f"{stage.title}: {'; '.join(steps) or stage.formula}.")
    return " ".join(said)
