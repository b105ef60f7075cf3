"""What the controller lends to those who ask the engine aside, about what is shown."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from engine.errors import CancelledError, EngineError

# Kinds of jobs that give way to every other question; the lens goes on where it was given up.
IDLE = frozenset({"check", "effects", "lens", "windows"})

_Answer = TypeVar("_Answer")


@dataclass(frozen=True)
class Asking:
    """What the controller does for whoever wants something worked out."""

    ask_aside: Callable[..., int]  # kind, work, what shows it, replaced kinds; gives a number
    awaits: Callable[[int], bool]  # whether that job's answer may still come
    awaits_more_than: Callable[[frozenset[str]], bool]  # whether other kinds are to be done first
    settle: Callable[[], None]  # what comes when nothing else is to be done

    def forget(self, work: Callable[..., object], replaced: frozenset[str]) -> None:
        """Let the engine give back what was kept for answers that nobody looks at any more."""
        self.ask_aside("forget", work, lambda _: self.settle(), replaced)


def attempt(work: Callable[[], _Answer]) -> tuple[_Answer | None, str]:
    """What some work gives; or None, and why, which is shown where the answer would be.

    Raises:
        CancelledError: the work was given up.
    """
    try:
        return work(), ""
    except CancelledError:
        raise
    except EngineError as error:
        return None, str(error)
