"""Large and small numbers to read: three digits and a prefix; no Qt."""

from math import isnan

_COUNTS = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_BYTES = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))


def count_said(number: float) -> str:
    """3360000000 → 3.36 G; below a thousand the number itself."""
    for size, prefix in _COUNTS:
        if number >= 0.9995 * size:
            return f"{_three(number / size)} {prefix}"
    return f"{number:,.3g}"


def bytes_said(n_bytes: float) -> str:
    """1536 → 1.5 KiB; 36864 → 36 KiB."""
    for size, unit in _BYTES:
        if n_bytes >= 0.9995 * size:
            return f"{_three(n_bytes / size)} {unit}"
    return f"{n_bytes:,.0f} B"


def time_said(seconds: float) -> str:
    """0.00123 → 1.23 ms; what was not measured is a dash."""
    if isnan(seconds):
        return "—"
    if seconds >= 0.9995:
        return f"{_three(seconds)} s"
    return f"{_three(1000 * seconds)} ms"


def times_said(ratio: float) -> str:
    """How many times as much: 17 ×, 1.3 ×, 1,240 ×."""
    return f"{_three(ratio)} ×"


def power_said(exponent: float) -> str:
    """1.02 → n^1.02."""
    return f"n^{exponent:.2f}"


def _three(value: float) -> str:
    """Three digits that count, never in powers of ten."""
    return f"{value:,.0f}" if value >= 99.95 else f"{value:.3g}"
