"""Large and small numbers to read: three digits and a prefix; no Qt."""

from math import isnan

from engine.sizes import in_unit, three_digits

_COUNTS = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def count_said(number: float) -> str:
    """3360000000 → 3.36 G; below a thousand the number itself."""
    return in_unit(number, _COUNTS) or f"{number:,.3g}"


def time_said(seconds: float) -> str:
    """0.00123 → 1.23 ms; what was not measured is a dash."""
    if isnan(seconds):
        return "—"
    if seconds >= 0.9995:
        return f"{three_digits(seconds)} s"
    return f"{three_digits(1000 * seconds)} ms"


def times_said(ratio: float) -> str:
    """How many times as much: 17 ×, 1.3 ×, 1,240 ×."""
    return f"{three_digits(ratio)} ×"


def power_said(exponent: float) -> str:
    """1.02 → n^1.02."""
    return f"n^{exponent:.2f}"


def counted(number: int, one: str, more: str = "") -> str:
    """1 token, 2,048 tokens."""
    return f"{number:,} {one if number == 1 else more or f'{one}s'}"
