"""How long work is told that it is no longer wanted: it asks now and then, and gives up."""

from collections.abc import Callable
from typing import TypeAlias

Cancelled: TypeAlias = Callable[[], bool]


def never() -> bool:
    """For work that nobody gives up."""
    return False
