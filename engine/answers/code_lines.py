"""The engine's own four lines with the shapes that went through them, and a second opinion.

The text is read from the file of the function that the passes call, the shapes from the tensors
of the reading that is shown. The second opinion is torch's fused kernel on the same q, k and v.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from engine.answers.source import Source, Statement

AXES = {
    "H": "heads",
    "G": "KV heads",
    "T": "queries of this call",
    "S": "keys",
    "D": "features of a head",
}


@dataclass(frozen=True)
class Operand:
    """What a name in a line stood for: a tensor by its shape, or else a number."""

    name: str
    axes: str = ""  # a letter of `AXES` for each axis, "1" for one that is there for the kernel
    shape: tuple[int, ...] = ()
    value: float | None = None

    def said(self) -> str:
        """Such as "q [H 9, T 72, D 64]" or "start = 128"."""
        if self.value is not None:
            return f"{self.name} = {self.value:.7g}"
        parts = zip(self.axes, self.shape, strict=True)
        sizes = (str(size) if axis == "1" else f"{axis} {size}" for axis, size in parts)
        return f"{self.name} [{', '.join(sizes)}]"


@dataclass(frozen=True)
class Line:
    """A statement that ran, what it took and what it gave."""

    statement: Statement
    takes: tuple[Operand, ...]
    gives: tuple[Operand, ...]

    def said(self) -> str:
        """Such as "weights [H 9, T 72, S 200] · v [G 3, S 200, D 64] → mix [H 9, T 72, D 64]"."""
        took = " · ".join(operand.said() for operand in self.takes)
        gave = " · ".join(operand.said() for operand in self.gives)
        return f"{took} → {gave}"


@dataclass(frozen=True)
class Called:
    """A function, and those of its lines that ran one by one."""

    source: Source
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Fused:
    """One layer's mixes by torch's fused kernel, against those of the engine's lines."""

    called: Called
    difference: np.float32  # the largest |mix − mix of the kernel|, over all heads and positions
    head: int  # where it is
    position: int
    feature: int
    mix: np.float32  # there, by the engine
    fused: np.float32  # there, by the kernel
    largest_value: np.float32  # |v| of the layer

    # A mix is a mean of values, so it is measured by them. Two ways to sum in float32 differed by
    # at most 1e-6 of the largest, in trained models and with scores into the thousands.
    TOLERANCE = 1e-5

    @property
    def most(self) -> float:
        """What the difference may be."""
        return self.TOLERANCE * float(self.largest_value)

    @property
    def agrees(self) -> bool:
        """Whether the two are the same but for rounding; never if one of them is not finite."""
        return bool(self.difference <= self.most)


@dataclass(frozen=True)
class EngineCode:
    """The call that computed one query's row in one layer.

    A pass hands its queries to the function in blocks. `rows` are the positions of the call's
    block, `passed` those of the pass as far as they are shown.
    """

    layer: int
    query: int  # a position
    rows: range
    passed: range
    attend: Called
    around: tuple[Source, ...]  # who calls it, and what it calls
    recorded: tuple[Operand, ...]  # q, k and v of the pass
    fused: Fused | None
    obstacle: str = ""  # why there is no second opinion, in a sentence
    heads_off: tuple[int, ...] = ()  # of this layer: their mix is set to 0 behind the four lines

    @property
    def row(self) -> int:
        """The query's among the T of the call."""
        return self.query - self.rows.start

    def lines(self) -> Iterator[tuple[str, Line]]:
        """Every line with its shapes, and whose it is."""
        for called in (self.attend, *((self.fused.called,) if self.fused else ())):
            for line in called.lines:
                yield called.source.name, line
