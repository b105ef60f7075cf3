"""Amounts of memory as people read them, in one kind of unit everywhere."""

from collections.abc import Sequence

_UNITS = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))


def bytes_said(n_bytes: float) -> str:
    """1536 → 1.5 KiB; 36864 → 36 KiB."""
    return in_unit(n_bytes, _UNITS) or f"{n_bytes:,.0f} B"


def in_unit(number: float, units: Sequence[tuple[float, str]]) -> str:
    """A number in the first of some units that it fills, the largest first; "" if in none."""
    for size, unit in units:
        if number >= 0.9995 * size:
            return f"{three_digits(number / size)} {unit}"
    return ""


def three_digits(value: float) -> str:
    """Three digits that count, never in powers of ten."""
    return f"{value:,.0f}" if value >= 99.95 else f"{value:.3g}"
