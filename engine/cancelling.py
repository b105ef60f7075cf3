"""How long work is told that it is no longer wanted: it asks now and then, and gives up."""

from collections.abc import Callable
from typing import TypeAlias

from engine.errors import CancelledError

Cancelled: TypeAlias = Callable[[], bool]


def never() -> bool:
    """For work that nobody gives up."""
    return False


def give_up_if(cancelled: Cancelled) -> None:
    """End work between two of its steps, if it is no longer wanted.

    Raises:
        CancelledError: `cancelled` said so.
    """
    if cancelled():
        raise CancelledError("it was given up for something newer.")
