"""Long work in pieces: each may be given up for something more urgent, and is then done again."""

from collections.abc import Callable, Iterator
from typing import TypeVar

from engine.cancelling import Cancelled
from engine.errors import CancelledError

_Answer = TypeVar("_Answer")


def give_up_if(cancelled: Cancelled) -> None:
    """End a piece of work between two of its steps.

    Raises:
        CancelledError: something else is wanted.
    """
    if cancelled():
        raise CancelledError("the piece was given up for something newer.")


def patiently(work: Callable[[], _Answer]) -> Iterator[_Answer | None]:
    """Do a piece of work: its answer, after a None for each time that it was given up.

    Work that is given up raises CancelledError and leaves everything as it was.
    """
    while True:
        try:
            answer = work()
        except CancelledError:
            yield None
        else:
            yield answer
            return
