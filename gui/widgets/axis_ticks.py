"""Where an axis carries a number, and how that number is written; plain arithmetic."""

from math import ceil, floor, log10
from typing import NamedTuple


class Tick(NamedTuple):
    """A place on an axis, in the axis's own coordinates, and its text."""

    at: float
    text: str


def nice_step(span: float, n_wanted: int) -> float:
    """The 1, 2 or 5 times a power of ten that cuts a span into at most so many parts."""
    rough = span / max(1, n_wanted)
    power = 10.0 ** floor(log10(rough))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.9999)


def linear_ticks(low: float, high: float, n_wanted: int, *, whole: bool = False) -> list[Tick]:
    """Ticks at round numbers between low and high; only at whole numbers if `whole`."""
    if not high > low:
        return [Tick(low, _number(low, 1.0))]
    step = nice_step(high - low, n_wanted)
    if whole:
        step = max(1.0, round(step))
    first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
    return [Tick(at * step, _number(at * step, step)) for at in range(first, last + 1)]


def log_ticks(low: float, high: float) -> list[Tick]:
    """Ticks at the powers of ten from 10 ** low to 10 ** high; low and high are exponents."""
    return [Tick(float(at), _power(at)) for at in range(ceil(low), floor(high) + 1)]


def round_up(value: float) -> float:
    """The next 1, 1.5, 2, 3, 4, 5, 6 or 8 times a power of ten, for the top of an axis."""
    if value <= 0:
        return 1.0
    power = 10.0 ** floor(log10(value))
    return next(
        power * factor for factor in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if power * factor >= value
    )


def _power(exponent: int) -> str:
    return f"{10**exponent:,}" if 0 <= exponent < 6 else f"{10.0**exponent:g}"


def _number(value: float, step: float) -> str:
    decimals = max(0, -floor(log10(step) + 1e-9))
    return f"{value:,.{decimals}f}"
