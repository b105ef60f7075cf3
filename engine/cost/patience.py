"""Long work in pieces: each may be given up for something more urgent, and is then done again."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from engine.cancelling import Cancelled, give_up_if
from engine.errors import CancelledError

_Answer = TypeVar("_Answer")


@dataclass(frozen=True)
class GivingWay:
    """A recorder of a pass that keeps nothing, and gives it up in the midst of a layer.

    A layer of a long pass takes too long to be waited for: this asks before attention and after
    each block of queries as well. What it is told of is never looked at.
    """

    cancelled: Cancelled

    def keep_qkv(self, layer: int, q: object, k: object, v: object) -> None:  # noqa: ARG002
        """Attention begins."""
        give_up_if(self.cancelled)

    def keep_weights(self, layer: int, rows: slice, weights: object) -> None:  # noqa: ARG002
        """A block of queries is done."""
        give_up_if(self.cancelled)

    def keep_residual(self, depth: int, residual: object) -> None:
        """The pass asks there by itself."""


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
