"""Amounts of memory as people read them, in one kind of unit everywhere."""

_UNITS = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))


def bytes_said(n_bytes: float) -> str:
    """1536 → 1.5 KiB; 36864 → 36 KiB."""
    for size, unit in _UNITS:
        if n_bytes >= 0.9995 * size:
            return f"{three_digits(n_bytes / size)} {unit}"
    return f"{n_bytes:,.0f} B"


def three_digits(value: float) -> str:
    """Three digits that count, never in powers of ten."""
    return f"{value:,.0f}" if value >= 99.95 else f"{value:.3g}"
