"""How a weight becomes one of 256 indices, and an index a colour; no Qt.

Index 0 is a masked cell, 1 to 254 are weights from 0 to the top of the scale, 255 is a weight
that is not a finite number. The order makes the largest index of several cells the right one
for the pixel that they share.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

WeightScale: TypeAlias = Literal["linear", "log", "row"]

MASKED, LOWEST, HIGHEST, NOT_FINITE = 0, 1, 254, 255
_SIZES = 127  # of a difference, for either sign
LOG_FLOOR = 1e-4  # where the logarithmic scale begins

SENTENCES: Mapping[WeightScale, str] = MappingProxyType(
    {
        "linear": "weight, 0 to 1",
        "log": "weight, logarithmic from 0.0001 to 1",
        "row": "weight as a share of its row's largest",
    }
)


@dataclass(frozen=True)
class Extent:
    """What the scale and the legend of a matrix depend on, row by row [n].

    `largest` is the largest finite weight that is not in column 0, `is_finite` whether all are.
    """

    largest: NDArray[np.float32]
    is_finite: NDArray[np.bool_]

    @classmethod
    def of(cls, weights: NDArray[np.float32]) -> "Extent":
        """The extent of weights [n, m]."""
        finite = np.isfinite(weights)
        is_finite: NDArray[np.bool_] = np.all(finite, axis=1)
        known = weights if is_finite.all() else np.where(finite, weights, np.float32(0))
        return cls(known[:, 1:].max(axis=1, initial=0), is_finite)

    def continued(self, n: int, weights: NDArray[np.float32]) -> "Extent":
        """The extent of weights [n or more, m], given that of their first n rows."""
        rest = Extent.of(weights[n:])
        return Extent(
            np.concatenate((self.largest[:n], rest.largest)),
            np.concatenate((self.is_finite[:n], rest.is_finite)),
        )

    def top(self, scale: WeightScale, *, leave_first_out: bool) -> float:
        """The weight at the top of the scale: 1, or the next round number if key 0 is left out."""
        is_free = scale == "linear" and leave_first_out
        return round_top(float(self.largest.max(initial=0))) if is_free else 1.0


def sentence(scale: WeightScale, *, leave_first_out: bool = False, top: float = 1.0) -> str:
    """What the legend calls a scale."""
    words = SENTENCES[scale]
    if scale == "linear" and top != 1:
        words = f"weight, 0 to {top:g}"
    return f"{words}, first token left out" if leave_first_out else words


def levels(
    weights: NDArray[np.float32],
    visible: NDArray[np.bool_],
    scale: WeightScale,
    *,
    top: float = 1.0,
    leave_first_out: bool = False,
) -> NDArray[np.uint8]:
    """The index of every weight [n, m], given the weight at the `top` of the scale.

    A masked cell that holds a weight all the same is shown as that weight. By row, every row
    has a top of its own, for which column 0 does not count if the first token is left out.
    """
    finite = np.isfinite(weights)
    known = weights if finite.all() else np.where(finite, weights, np.float32(0))
    if scale == "row":
        counted = known[:, 1:] if leave_first_out else known
        tops = counted.max(axis=1, initial=0, keepdims=True)
        share = np.divide(known, tops, out=np.zeros_like(known), where=tops > 0)
    else:
        share = fraction(known, scale, top)
    step = np.float32(HIGHEST - LOWEST)
    scaled = share * step
    scaled += np.float32(LOWEST + 0.5)
    index: NDArray[np.uint8] = np.clip(scaled, LOWEST, HIGHEST, out=scaled).astype(np.uint8)
    index[~visible & (known == 0)] = MASKED
    if known is not weights:
        index[~finite] = NOT_FINITE
    return index


def fraction(
    weights: NDArray[np.float32], scale: WeightScale, top: float = 1.0
) -> NDArray[np.float32]:
    """How far up the scale weights lie, 0 to 1 and beyond; by row, they are shares already."""
    if scale == "log":
        logs: NDArray[np.float32] = np.log10(np.maximum(weights, np.float32(LOG_FLOOR)))
        return logs / np.float32(-np.log10(LOG_FLOOR)) + np.float32(1)
    return weights if top == 1 else weights / np.float32(top)


def round_top(largest: float) -> float:
    """The smallest of 1, 0.5, 0.2, 0.1, 0.05, … that is not below a weight; 1 without one."""
    if not np.isfinite(largest) or largest <= 0:
        return 1.0
    decade = 10.0 ** np.floor(np.log10(largest))
    steps = (decade * step for step in (1, 2, 5, 10))
    return min(1.0, next(float(f"{step:.0e}") for step in steps if step >= largest * (1 - 1e-6)))


def colour_table(colours: NDArray[np.uint32], masked: int, not_finite: int) -> NDArray[np.uint32]:
    """The colour of each index [256], from a map [256] and two colours, all 0xFFRRGGBB."""
    table = np.empty(256, np.uint32)
    table[LOWEST : HIGHEST + 1] = colours[np.linspace(0, 255, HIGHEST).round().astype(np.intp)]
    table[MASKED], table[NOT_FINITE] = masked, not_finite
    return table


LEAST_REACH = 0.01  # of a scale of differences: what is rounding looks like 0


def difference_reach(differences: NDArray[np.float32]) -> float:
    """The difference at both ends of the scale, a round number from LEAST_REACH to 1."""
    finite = differences[np.isfinite(differences)]
    return max(LEAST_REACH, round_top(float(np.abs(finite).max(initial=0)) or LEAST_REACH))


def difference_levels(
    differences: NDArray[np.float32], exists: NDArray[np.bool_], reach: float
) -> NDArray[np.uint8]:
    """The index of every difference [n, m], given the one at both ends of the scale.

    Where there is none it is MASKED. From 1 on, indices are sizes in 127 steps, negative and
    positive ones in turn, so that of several cells in one pixel the largest is seen.
    """
    finite = np.isfinite(differences)
    known = np.where(finite, differences, np.float32(0))
    size = np.clip(np.abs(known) / np.float32(reach), 0, 1) * np.float32(_SIZES - 1)
    index = (LOWEST + 2 * size.round() + (known > 0)).astype(np.uint8)
    index[~exists] = MASKED
    index[~finite] = NOT_FINITE
    return index


def difference_table(
    colours: NDArray[np.uint32], absent: int, not_finite: int
) -> NDArray[np.uint32]:
    """The colour of each such index [256], from a diverging map [256] and two colours."""
    table = np.empty(256, np.uint32)
    share = np.arange(_SIZES) / (_SIZES - 1)
    for sign, first in ((-1, LOWEST), (1, LOWEST + 1)):
        at = (127.5 * (1 + sign * share)).round().astype(np.intp)
        table[first : HIGHEST + 1 : 2] = colours[at]
    table[MASKED], table[NOT_FINITE] = absent, not_finite
    return table


def difference_ticks(reach: float) -> list[tuple[float, str]]:
    """Where the legend of differences has a number, and the number."""
    return [(part, signed(f"{(2 * part - 1) * reach:g}")) for part in (0, 0.25, 0.5, 0.75, 1)]


def signed(number: str) -> str:
    """A number with a real minus, or a plus where it is positive; 0 has no sign."""
    if float(number) == 0:
        return number.lstrip("-")
    return f"−{number[1:]}" if number.startswith("-") else f"+{number}"


def tone_table(colours: NDArray[np.uint32], scale: WeightScale, masked: int) -> NDArray[np.uint32]:
    """The colour of each value of a thumbnail [256], which is round(255 · sqrt(weight)).

    Entry 0 is the masked colour: a visible cell has at least 1. "row" is drawn as "linear":
    all thumbnails share one scale, so that heads can be compared.
    """
    weights = np.square(np.arange(256, dtype=np.float32) / np.float32(255))
    weights[1] = 0
    share = np.clip(fraction(weights, scale), 0, 1)
    table = colours[(share * 255).round().astype(np.intp)]
    table[MASKED] = masked
    return table


def ticks(scale: WeightScale, top: float = 1.0) -> list[tuple[float, str]]:
    """Where the legend has a number, as a fraction of the bar, and the number."""
    if scale == "log":
        return [(0, "≤ 0.0001"), (0.25, "0.001"), (0.5, "0.01"), (0.75, "0.1"), (1, "1")]
    if scale == "row":
        return [(0, "0"), (0.5, "½"), (1, "largest")]
    return [(part, f"{part * top:g}") for part in (0, 0.25, 0.5, 0.75, 1)]


def exact(weight: np.float32) -> str:
    """A float32 weight with every digit it has, and none it has not."""
    return str(np.float32(weight))
