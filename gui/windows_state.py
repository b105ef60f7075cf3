"""What the Windows panel shows: what was chosen, what was asked, and what came of it; no Qt."""

from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias, get_args

from engine.conditions import Conditions
from engine.reading import Reading
from engine.sampling import Sampling
from engine.windows.eviction import Budget, Eviction, Policy
from engine.windows.fixed_window_loss import FixedWindowLoss
from engine.windows.masks import Windows, three_masks
from engine.windows.visibility import NUMBERS, Visibility

Page: TypeAlias = Literal["windows", "visible", "prepared", "eviction"]
PAGES: tuple[Page, ...] = get_args(Page)

STATES = (*NUMBERS, None)  # of the page "visible": the token that is predicted; None: training


@dataclass(frozen=True)
class WindowsChoice:
    """Which page is open, and the numbers on its controls."""

    page: Page = "windows"
    state: int = 0  # of STATES
    window: int = 8
    sinks: int = 2  # first positions that stay visible, or are kept
    sentence_window: int = 3  # on the prepared sentence, in tokens
    policy: Policy = "window"
    n_keys: int = 16  # the budget of each layer

    @property
    def budget(self) -> Budget:
        """The cache's.

        Raises:
            ConfigError: the first positions fill it.
        """
        sinks = self.sinks if self.policy == "first + window" else 0
        return Budget(policy=self.policy, n_keys=self.n_keys, sinks=sinks)

    def check(self) -> None:
        """Refuse what no mask or budget can be.

        Raises:
            ConfigError: a window is smaller than 1, or the first positions fill the budget.
        """
        for window in (self.window, self.sentence_window):
            three_masks(Conditions(), window, self.sinks)
        _ = self.budget


@dataclass(frozen=True)
class Asked:
    """All that an answer depends on; two that are equal have the same answer."""

    what: Literal["windows", "visible", "sentence", "fixed window", "eviction"]
    info: int  # the id of the model's, which a reading beside it keeps alive
    token_ids: tuple[int, ...] = ()  # of the text; for the sentence, what stands before it
    conditions: Conditions | None = None
    query: int = -1
    sizes: tuple[int, ...] = ()
    budget: Budget | None = None
    sampling: Sampling | None = None


def asked_by(reading: Reading, choice: WindowsChoice) -> tuple[Asked, ...]:
    """What the open page wants worked out, in this order; nothing for an empty text.

    Raises:
        ConfigError: the budget is not possible.
    """
    token_ids = reading.document.token_ids[reading.n_fallen : reading.cursor]
    info, conditions = id(reading.info), replace(reading.conditions, mask="causal")
    if not token_ids:
        return ()
    if choice.page == "visible":
        return (Asked("visible", info, token_ids, reading.conditions),)
    if choice.page == "prepared":
        sizes = choice.sentence_window, choice.sinks
        prefix_ids = reading.document.prefix_ids
        return (Asked("sentence", info, prefix_ids, conditions, sizes=sizes),)
    if choice.page == "eviction":
        budget = choice.budget
        return (
            Asked(
                "eviction",
                info,
                token_ids,
                reading.conditions,
                sizes=(reading.cursor,),
                budget=budget,
                sampling=reading.sampling,
            ),
        )
    sizes = choice.window, choice.sinks
    return (
        Asked("windows", info, token_ids, conditions, reading.position, sizes),
        Asked("fixed window", info, token_ids, sizes=(choice.window,)),
    )


@dataclass(frozen=True, eq=False)
class Answer:
    """What came of a question; without a value, the obstacle says why in one sentence."""

    asked: Asked
    reading: Reading
    token_ids: tuple[int, ...] = ()  # that were read
    tokens: tuple[bytes, ...] = ()
    windows: Windows | None = None
    visibility: Visibility | None = None
    fixed_window: FixedWindowLoss | None = None
    eviction: Eviction | None = None
    obstacle: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether nothing of it is still to come."""
        return self.eviction is None or self.eviction.is_whole


@dataclass(frozen=True)
class WindowsState:
    """Everything of the Windows panel that can change while it is open."""

    choice: WindowsChoice = field(default_factory=WindowsChoice)
    answers: tuple[Answer, ...] = ()  # the latest of each kind
    progress: float | None = None  # of what is being worked out, 0 to 1

    def answer(self, what: str) -> Answer | None:
        """The latest answer of a kind, of whatever text and numbers."""
        return next((each for each in self.answers if each.asked.what == what), None)

    def with_answer(self, answer: Answer) -> "WindowsState":
        """The same with a newer answer of its kind."""
        others = tuple(each for each in self.answers if each.asked.what != answer.asked.what)
        return replace(self, answers=(*others, answer), progress=None)
