"""Ranges and ticks of charts that begin at zero or run over powers of ten; plain arithmetic."""

from math import ceil, floor, log2

import numpy as np
from numpy.typing import NDArray

from gui.widgets.axis_ticks import Tick, linear_ticks, log_ticks, round_up
from gui.widgets.curves import Axis

_MOST_TICKS = 6


def from_zero(highest: float, *, whole: bool = False) -> Axis:
    """From zero to a round number above the highest."""
    top = round_up(float(highest))
    return Axis(0.0, top * 1.05, tuple(linear_ticks(0.0, top, 3, whole=whole)))


def up_to(highest: float) -> Axis:
    """From zero to exactly the highest, ticks at whole numbers."""
    return Axis(0.0, max(1.0, highest), tuple(linear_ticks(0.0, highest, 4, whole=True)))


def powers_of_ten(low: float, high: float) -> Axis:
    """The logarithms of a range, widened to whole powers of ten."""
    first, last = floor(np.log10(low) + 1e-9), ceil(np.log10(high) - 1e-9)
    last = max(last, first + 1)
    step = max(1, ceil((last - first) / _MOST_TICKS))
    ticks = tuple(_short(tick) for tick in log_ticks(first, last)[::step])
    return Axis(first - 0.08, last + 0.08, ticks)


def _short(tick: Tick) -> Tick:
    """A power of ten with its prefix: 1G, not 1e+09."""
    power = round(tick.at)
    prefixes = {0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P"}
    base = max((each for each in prefixes if each <= power), default=0)
    if power < 0 or power > 17:
        return tick
    return Tick(tick.at, f"{10 ** (power - base)}{prefixes[base]}")


def powers_of_two(low: float, high: float) -> Axis:
    """The decimal logarithms of a range of lengths, ticks at every second or so power of two."""
    first, last = floor(log2(low) + 1e-9), ceil(log2(high) - 1e-9)
    step = max(1, ceil((last - first) / _MOST_TICKS))
    ticks = [Tick(float(np.log10(2.0**at)), f"{2**at:,}") for at in range(first, last + 1, step)]
    return Axis(float(np.log10(low)) - 0.04, float(np.log10(high)) + 0.04, tuple(ticks))


def logs(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Decimal logarithms."""
    logarithms: NDArray[np.float64] = np.log10(values)
    return logarithms
