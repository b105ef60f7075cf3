"""How much memory there is for a model."""

import ctypes
import os
import sys
from pathlib import Path

_MEMINFO = Path("/proc/meminfo")


def available_bytes() -> int | None:
    """Bytes that could be had without moving others out; None where nobody can tell.

    Where a system tells only how much there is in all, that.
    """
    try:
        if sys.platform == "win32":
            return _windows_bytes()
        if _MEMINFO.exists():
            return available_in(_MEMINFO.read_text(encoding="ascii", errors="replace"))
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):  # ValueError: a name that this system does not have
        return None


def available_in(meminfo: str) -> int | None:
    """What Linux's /proc/meminfo calls available, in bytes; None if it does not say."""
    for line in meminfo.splitlines():
        name, _, value = line.partition(":")
        words = value.split()
        if name == "MemAvailable" and words and words[0].isdecimal():
            return int(words[0]) * 1024
    return None


def _windows_bytes() -> int | None:
    if sys.platform != "win32":
        return None

    class Status(ctypes.Structure):
        _fields_ = (
            ("length", ctypes.c_ulong),
            ("load", ctypes.c_ulong),
            ("total", ctypes.c_ulonglong),
            ("available", ctypes.c_ulonglong),
            ("others", ctypes.c_ulonglong * 5),
        )

    status = Status(length=ctypes.sizeof(Status))
    if not ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status)):
        return None
    return int(status.available)
