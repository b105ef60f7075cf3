"""What a user can want, as values: panels emit them, the controller fulfils them."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from engine.sampling import Sampling
from gui.costs import Experiment


@dataclass(frozen=True)
class StopOpening:
    """Give up opening a model; what is open stays."""


@dataclass(frozen=True)
class EditText:
    """The prompt is now this text."""

    text: str


@dataclass(frozen=True)
class SelectHead:
    """Look at this head."""

    layer: int
    head: int


@dataclass(frozen=True)
class SelectPosition:
    """Point at this query (None: follow the text) and, maybe, at one of its keys."""

    query: int | None
    key: int | None = None


@dataclass(frozen=True)
class PointAt:
    """The mouse is over this query and key; None: over none any more."""

    cell: tuple[int, int] | None


@dataclass(frozen=True)
class Want:
    """Somebody looks at something that the engine works out only then, or no longer does."""

    wanted: bool


@dataclass(frozen=True)
class WantCell(Want):
    """Somebody looks at the arithmetic of the selected weight, or no longer does."""


@dataclass(frozen=True)
class WantLens(Want):
    """Somebody looks at what each layer would answer, or no longer does."""


@dataclass(frozen=True)
class WantResidual(Want):
    """Somebody looks at what was added to the residual, or no longer does."""


@dataclass(frozen=True)
class WantConsequence(Want):
    """Somebody looks at what the number format does to the predictions, or no longer does."""


@dataclass(frozen=True)
class WantCode(Want):
    """Somebody looks at the engine's lines behind the selected row, or no longer does."""


@dataclass(frozen=True)
class WantWindows(Want):
    """Somebody looks at what windows and budgets do to the text, or no longer does."""


@dataclass(frozen=True)
class ChooseWindows:
    """Change some fields of `WindowsChoice`."""

    changes: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class WantComparison(Want):
    """Somebody looks at a second run beside the one on screen, or no longer does."""


@dataclass(frozen=True)
class Compare:
    """Change some fields of `CompareChoice`: in what the second run differs."""

    changes: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class WantIntact(Want):
    """Somebody looks at what the text would be with all heads on, or no longer does."""


@dataclass(frozen=True)
class SetHeadsOff:
    """Change some fields of `HeadsOff`: the model is run again with other heads off."""

    changes: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class WantLeak(Want):
    """Somebody looks at the leak pair, or no longer does."""


@dataclass(frozen=True)
class WantSchemes(Want):
    """Somebody looks at the position schemes, or no longer does."""


@dataclass(frozen=True)
class ChangeExperiment:
    """Change some fields of `ExperimentChoice`."""

    changes: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class MeasureEffects:
    """Switch each head off in turn, and measure what that does to loss and prediction."""


@dataclass(frozen=True)
class StopMeasuring:
    """Measure no further heads; those that were measured stay."""


@dataclass(frozen=True)
class Follow:
    """Take the logit of this token apart: an id, what follows in the text, or the most probable."""

    token: int | Literal["next", "top"]


@dataclass(frozen=True)
class Step:
    """One token further."""


@dataclass(frozen=True)
class StepBack:
    """One token back from wherever the text stands by then."""


@dataclass(frozen=True)
class GoTo:
    """Show the text with its first so many tokens."""

    cursor: int


@dataclass(frozen=True)
class Choose:
    """Put this token after that position, whatever stood there."""

    position: int
    token_id: int


@dataclass(frozen=True)
class Play:
    """Go on by itself ("play"), to the end of a sentence ("sentence"), or stop ("")."""

    mode: str


@dataclass(frozen=True)
class SetSpeed:
    """So many steps per second while playing."""

    steps_per_second: float


@dataclass(frozen=True)
class SetSampling:
    """Draw tokens in this way."""

    sampling: Sampling


@dataclass(frozen=True)
class SetMask:
    """Change some fields of `MaskChoice`."""

    changes: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class SetCache:
    """Switch the KV cache on or off."""

    use: bool


@dataclass(frozen=True)
class SetPrefix:
    """Put before texts the token that the model expects there, or do not."""

    use: bool


@dataclass(frozen=True)
class SetFormat:
    """Change some fields of `FormatChoice`: open the model again in another format or place."""

    changes: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class MeasureCost:
    """Measure what context costs, in one of the ways of `gui.costs`; another one ends."""

    what: Experiment


@dataclass(frozen=True)
class StopMeasuringCost:
    """Give up what is being measured; what is known of it stays."""


@dataclass(frozen=True)
class SetCosts:
    """Change some fields of `Costs` that are the user's."""

    changes: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class SetDisplay:
    """Change some fields of `Display`."""

    changes: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class OpenModel:
    """Load the model in this folder; the present one stays until it is ready."""

    path: Path


Wish = (
    EditText
    | StopOpening
    | Want
    | SelectHead
    | SelectPosition
    | PointAt
    | Compare
    | ChooseWindows
    | SetHeadsOff
    | MeasureEffects
    | StopMeasuring
    | ChangeExperiment
    | Follow
    | Step
    | StepBack
    | GoTo
    | Choose
    | Play
    | SetSpeed
    | SetSampling
    | SetMask
    | SetCache
    | SetPrefix
    | SetFormat
    | MeasureCost
    | StopMeasuringCost
    | SetCosts
    | SetDisplay
    | OpenModel
)
