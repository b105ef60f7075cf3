"""Long work in pieces: each may be given up for something more urgent, and is then done again."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from torch import Tensor

from engine.attention import Recorder
from engine.cancelling import Cancelled, give_up_if
from engine.errors import CancelledError

_Answer = TypeVar("_Answer")


@dataclass(frozen=True)
class GivingWay(Recorder):
    """A recorder of a pass that keeps nothing, and gives it up in the midst of a layer.

    A layer of a long pass takes too long to be waited for: this asks before attention and after
    each block of queries as well. What it is told of is never looked at.
    """

    cancelled: Cancelled

    def keep_qkv(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> None:  # noqa: ARG002
        """Attention begins."""
        give_up_if(self.cancelled)

    def keep_weights(self, layer: int, rows: slice, weights: Tensor) -> None:  # noqa: ARG002
        """A block of queries is done."""
        give_up_if(self.cancelled)

    def keep_mlp(self, layer: int, mlp: Tensor) -> None:  # noqa: ARG002
        """The layer is nearly done."""
        give_up_if(self.cancelled)


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
