"""What the controller lends to those who ask the engine aside, about what is shown."""

from collections.abc import Callable
from dataclasses import dataclass

# Kinds of jobs that give way to every other question.
IDLE = frozenset({"check", "effects", "windows"})


@dataclass(frozen=True)
class Asking:
    """What the controller does for whoever wants something worked out."""

    ask_aside: Callable[..., int]  # kind, work, what shows it, replaced kinds; gives a number
    awaits: Callable[[int], bool]  # whether that job's answer may still come
    awaits_more_than: Callable[[frozenset[str]], bool]  # whether other kinds are to be done first
    settle: Callable[[], None]  # what comes when nothing else is to be done
