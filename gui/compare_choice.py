"""In what the second run differs from the one on screen: the user's choices, and as a question."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from engine.answers.comparison import Wanted, WayWanted
from engine.conditions import Conditions, Mask
from engine.formats import FormatChoice
from engine.reading import Reading

Difference = Literal["text", "conditions", "model"]


@dataclass(frozen=True)
class CompareChoice:
    """What B is; what is not among `differs` is as in A, and its choice rests.

    `text` None is A's until another one is typed.
    """

    differs: frozenset[Difference] = frozenset({"text"})
    text: str | None = None
    mask: Mask = "none"
    window: int = 4
    sinks: int = 0
    positions: bool = True
    model: Path | None = None
    way: WayWanted = "automatic"
    at: tuple[int, int] | None = None  # layer and head of another model; None: A's

    def conditions(self, of_a: Conditions) -> Conditions | None:
        """What B is run under, given A's; None for A's own.

        Raises:
            ConfigError: the window is too small.
        """
        if "conditions" not in self.differs:
            return None
        return replace(
            of_a,
            mask=self.mask,
            window=self.window,
            sinks=self.sinks,
            positions=self.positions,
        )

    def wanted(self, reading: Reading, formats: FormatChoice) -> Wanted:
        """What to ask of the engine, given A's reading and how models are held.

        Raises:
            ConfigError: the window is too small.
        """
        return Wanted(
            text=self.text if "text" in self.differs else None,
            conditions=self.conditions(reading.conditions),
            path=self.model if "model" in self.differs else None,
            formats=formats,
            way=self.way,
            at=self.at if "model" in self.differs else None,
        )
