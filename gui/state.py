"""What the window knows: frozen values, and the one store that tells when they change."""

from dataclasses import dataclass, field, fields, replace
from typing import Any, Generic, Literal, TypeVar

from PySide6.QtCore import QObject, Signal

from engine.answers.ablation import MEASURES, Effects, Intact, Measure
from engine.answers.cell import CellArithmetic
from engine.answers.code_lines import EngineCode
from engine.answers.comparison import Comparison, Wanted
from engine.answers.lens import Lens
from engine.answers.residual import Attribution, Stream, next_token, top_token
from engine.conditions import Conditions, OffBy
from engine.experiments.records import Change, LeakTrials, SchemeReadings
from engine.formats import Consequence, FormatChoice
from engine.reading import CacheCheck, Reading
from engine.readouts import ROLES, Role
from engine.sampling import Sampling
from gui.compare_choice import CompareChoice
from gui.costs import Costs
from gui.theme import LIGHT, Theme
from gui.windows_state import WindowsState
from gui.wishes import Want

Scale = Literal["linear", "log", "row"]
Drawing = Literal["heatmap", "arcs"]
Order = Role | Measure  # what heads can be sorted by
Shade = Literal["weights"] | Measure  # what the overview colours them by
Followed = int | Literal["next", "top"]  # a token id, what follows in the text, the most probable
AUTOMATIC = FormatChoice("automatic")
Phase = Literal["starting", "loading", "running", "ready", "failed"]
Experiment = TypeVar("Experiment", LeakTrials, SchemeReadings)  # what one of them came to


@dataclass(frozen=True)
class Selection:
    """What the user points at; None follows the text (query) or points at nothing (key)."""

    layer: int = 0
    head: int = 0
    query: int | None = None
    key: int | None = None


@dataclass(frozen=True)
class Display:
    """How things are drawn; nothing here changes a number."""

    theme: Theme = LIGHT
    zoom: float = 1.0
    scale: Scale = "linear"
    leave_first_out: bool = False
    drawing: Drawing = "heatmap"
    sort: Order | None = None
    least: float = 0.0  # heads whose sorted role scores less are dimmed
    shade: Shade = "weights"
    show_loss: bool = False
    show_pass: bool = False  # which tokens the latest pass computed
    motion: bool = True

    @property
    def sorted_role(self) -> Role | None:
        """The role that heads are sorted by, if they are by one."""
        return next((role for role in ROLES if role == self.sort), None)

    @property
    def sorted_measure(self) -> Measure | None:
        """The effect that heads are sorted by, if they are by one."""
        return next((measure for measure in MEASURES if measure == self.sort), None)


@dataclass(frozen=True)
class MaskChoice:
    """The mask controls; the window's sizes are kept while another mask is in force."""

    mask: Literal["causal", "window", "none"] = "causal"
    window: int = 16
    sinks: int = 0

    @property
    def conditions(self) -> Conditions:
        """What the engine runs under."""
        return Conditions(mask=self.mask, window=self.window, sinks=self.sinks)


@dataclass(frozen=True)
class HeadsOff:
    """Which heads of the open model are switched off, and what stands in their place."""

    heads: frozenset[tuple[int, int]] = frozenset()  # layer, head
    by: OffBy = "zero"


@dataclass(frozen=True, eq=False)
class OpenedCell:
    """The arithmetic of a weight, and the reading and key that it was asked for."""

    reading: Reading
    key: int | None  # None: the row's largest weight
    arithmetic: CellArithmetic | None  # None for an empty text

    def answers(self, reading: Reading | None, key: int | None) -> bool:
        """Whether this is the weight that is selected."""
        return self.reading is reading and self.key == key


@dataclass(frozen=True, eq=False)
class OpenedLens:
    """What each layer would answer, and the reading that it was asked for."""

    reading: Reading
    lens: Lens | None  # None for an empty text

    @property
    def is_whole(self) -> bool:
        """Whether all its positions have been read."""
        return self.lens is None or self.lens.is_whole

    def answers(self, reading: Reading) -> bool:
        """Whether it is true of this reading too: the same tokens, read in the same way."""
        return _what_was_read(self.reading) == _what_was_read(reading)


@dataclass(frozen=True, eq=False)
class OpenedResidual:
    """What was added to a residual and to a token's logit, and what that was asked for."""

    reading: Reading
    token_id: int
    stream: Stream | None  # None for an empty text
    attribution: Attribution | None  # None in a post-norm model

    def answers(self, reading: Reading | None, token_id: int | None) -> bool:
        """Whether it is true of this reading's position and this token."""
        return (
            reading is not None
            and self.token_id == token_id
            and self.reading.position == reading.position
            and _what_was_read(self.reading) == _what_was_read(reading)
        )


@dataclass(frozen=True, eq=False)
class OpenedConsequence:
    """What the number format did to the predictions on a text, and the reading asked about."""

    reading: Reading
    consequence: Consequence | None  # None for an empty text, and in float32 itself
    obstacle: str = ""  # why it could not be found out

    def answers(self, reading: Reading) -> bool:
        """Whether it is true of this reading too."""
        return _what_was_read(self.reading) == _what_was_read(reading)


@dataclass(frozen=True, eq=False)
class OpenedCode:
    """The engine's lines behind a row, and the reading whose row it is."""

    reading: Reading
    code: EngineCode | None  # None for an empty text
    obstacle: str = ""  # why they cannot be shown

    def answers(self, reading: Reading | None) -> bool:
        """Whether it is true of this reading's head and position too."""
        return (
            reading is not None
            and self._at(self.reading) == self._at(reading)
            and _what_was_read(self.reading) == _what_was_read(reading)
        )

    @staticmethod
    def _at(reading: Reading) -> tuple[int, int, int]:
        return reading.focus.layer, reading.focus.head, reading.position


@dataclass(frozen=True, eq=False)
class OpenedComparison:
    """A second run beside the one on screen, and the reading and choice that it was asked for."""

    reading: Reading
    wanted: Wanted
    comparison: Comparison | None  # where there is an obstacle, of an earlier choice
    obstacle: str = ""  # why there is no newer one

    def answers(self, reading: Reading, wanted: Wanted) -> bool:
        """Whether it is the comparison of this head of this reading with what is wanted."""
        mine, focus = self.reading, reading.focus
        return (
            self.wanted == wanted
            and (mine.focus.layer, mine.focus.head) == (focus.layer, focus.head)
            and mine.position == reading.position
            and _what_was_read(mine) == _what_was_read(reading)
        )


@dataclass(frozen=True, eq=False)
class OpenedIntact:
    """What the text would be with all heads on, and the reading that it was asked for."""

    reading: Reading
    intact: Intact | None  # None for an empty text, and where no head is off

    def answers(self, reading: Reading) -> bool:
        """Whether it is true of this reading's text and position."""
        is_there = self.reading.position == reading.position
        return is_there and is_same_text(self.reading, reading)


@dataclass(frozen=True, eq=False)
class OpenedEffects:
    """What each head does, as far as it is measured, and the reading that it was asked for."""

    reading: Reading
    effects: Effects

    def is_of_text(self, reading: Reading | None) -> bool:
        """Whether the losses are those of this reading's text."""
        return reading is not None and is_same_text(self.reading, reading)

    def answers(self, reading: Reading | None, measure: Measure = "answer") -> bool:
        """Whether a measure is true of this reading; the answer is one position's."""
        is_there = measure == "loss" or (
            reading is not None and self.effects.position == reading.position
        )
        return is_there and self.is_of_text(reading)


@dataclass(frozen=True)
class ExperimentChoice:
    """What is done to the text, and which head of the small models is looked at."""

    change: Change = field(default_factory=lambda: Change(shuffle_seed=1))
    layer: int = 0
    head: int = 0


@dataclass(frozen=True, eq=False)
class OpenedExperiment(Generic[Experiment]):
    """What the models of an experiment make of a text and of what was chosen."""

    text: str
    choice: ExperimentChoice | None  # None: there is no choice
    answer: Experiment | None
    obstacle: str = ""  # why there is none

    def is_of(self, text: str, choice: ExperimentChoice) -> bool:
        """Whether the answer is the wanted one."""
        return self.text == text and self.choice in {None, choice}


def is_same_text(reading: Reading, other: Reading) -> bool:
    """Whether two readings are of the same tokens, read in the same way by the same model."""
    return _what_was_read(reading) == _what_was_read(other)


def _what_was_read(reading: Reading) -> tuple[object, ...]:
    """The same tokens, read in the same way by the same model, compare equal."""
    seen = slice(reading.n_fallen, reading.cursor + 1)  # and the token that follows
    return (
        id(reading.info),
        reading.cursor,
        reading.document.token_ids[seen],
        reading.conditions,
        reading.use_cache,
    )


@dataclass(frozen=True)
class State:
    """Everything that can change while the window is open."""

    phase: Phase = "starting"
    notice: str = ""  # one sentence on what goes on or went wrong
    text: str = ""  # what the prompt editor should hold
    reading: Reading | None = None
    cache_check: CacheCheck | None = None
    selection: Selection = field(default_factory=Selection)
    wanted: frozenset[type[Want]] = frozenset()  # what somebody looks at of all that is asked aside
    cell: OpenedCell | None = None
    lens: OpenedLens | None = None
    residual: OpenedResidual | None = None
    consequence: OpenedConsequence | None = None
    code: OpenedCode | None = None
    compare: CompareChoice = field(default_factory=CompareChoice)
    comparison: OpenedComparison | None = None
    heads_off: HeadsOff = field(default_factory=HeadsOff)
    intact: OpenedIntact | None = None
    measuring: bool = False  # whether each head is being switched off in turn
    effects: OpenedEffects | None = None
    leak: OpenedExperiment[LeakTrials] | None = None
    experiment: ExperimentChoice = field(default_factory=ExperimentChoice)
    schemes: OpenedExperiment[SchemeReadings] | None = None
    windows: WindowsState = field(default_factory=WindowsState)
    costs: Costs = field(default_factory=Costs)  # what context costs, measured
    formats: FormatChoice = AUTOMATIC  # of the model that is open
    followed: Followed = "next"  # the token whose logit is taken apart
    pointed: tuple[int, int] | None = None  # the query and key under the mouse, in one head
    mask: MaskChoice = field(default_factory=MaskChoice)
    use_cache: bool = True
    use_prefix: bool = True  # whether texts begin with the token that the model expects there
    sampling: Sampling = field(default_factory=Sampling)
    display: Display = field(default_factory=Display)
    playing: Literal["", "play", "sentence"] = ""
    steps_per_second: float = 4.0
    stale: bool = False  # what is drawn waits for a newer answer

    @property
    def conditions(self) -> Conditions:
        """What the engine is to run under."""
        off = self.heads_off
        return replace(self.mask.conditions, heads_off=off.heads, off_by=off.by)

    @property
    def followed_id(self) -> int | None:
        """The id of the token that is followed; where none follows, the most probable one's.

        None for an empty text.
        """
        reading, followed = self.reading, self.followed
        if reading is None or not reading.n_tokens:
            return None
        if isinstance(followed, int):
            return min(followed, reading.info.config.vocab_size - 1)
        following = next_token(reading) if followed == "next" else None
        return top_token(reading) if following is None else following


class Store(QObject):
    """Owns the state; tells everyone what changed, one change at a time."""

    changed = Signal(object, object)  # State, frozenset of field names

    def __init__(self, state: State | None = None) -> None:
        super().__init__()
        self._state = state or State()
        self._telling = False

    @property
    def state(self) -> State:
        """The state now."""
        return self._state

    def want(self, wish: Want) -> bool:
        """Note whether somebody looks; returns whether somebody did before."""
        before, kind = self._state.wanted, frozenset({type(wish)})
        self.update(wanted=before | kind if wish.wanted else before - kind)
        return type(wish) in before

    def update(self, **changes: Any) -> None:  # noqa: ANN401 - the fields of State
        """Replace some fields and tell, unless nothing differs.

        Raises:
            RuntimeError: called by somebody who is just being told; a view must not decide.
        """
        if self._telling:
            raise RuntimeError(
                f"the store was changed ({', '.join(changes)}) while it was telling."
            )
        state = replace(self._state, **changes)
        names = frozenset(
            each.name
            for each in fields(State)
            if getattr(state, each.name) is not getattr(self._state, each.name)
            and (
                each.name == "reading"
                or getattr(state, each.name) != getattr(self._state, each.name)
            )
        )
        if not names:
            return
        self._state = state
        self._telling = True
        try:
            self.changed.emit(state, names)
        finally:
            self._telling = False
