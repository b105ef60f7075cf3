"""Asks about what is shown, while somebody looks at the answer: a row for each kind of question."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from engine.cancelling import Cancelled
from engine.errors import CancelledError
from engine.reading import Reading
from gui.questions.asking import IDLE, Asking, attempt
from gui.state import (
    OpenedCell,
    OpenedCode,
    OpenedConsequence,
    OpenedIntact,
    OpenedLens,
    OpenedResidual,
    State,
    Store,
)
from gui.wishes import (
    Want,
    WantCell,
    WantCode,
    WantConsequence,
    WantIntact,
    WantLens,
    WantResidual,
)

if TYPE_CHECKING:
    from engine.scope import Scope

About = tuple[Any, ...]  # what an answer is about besides the reading


def _nothing_more(_state: State, _reading: Reading) -> About | None:
    return ()


@dataclass(frozen=True)
class Question:
    """What is asked, when, and who wants it.

    `kind` is that of the job, and the field of the state that keeps the answer, which has a
    method `answers(reading, *about)`. `about` is None where there is nothing to ask.
    """

    kind: str
    wish: type[Want]
    ask: Callable[["Scope", Reading, About, Cancelled], Any]
    about: Callable[[State, Reading], About | None] = _nothing_more
    is_urgent: bool = False  # goes before the other questions
    moved_by: frozenset[str] = frozenset()  # which fields of the selection change the answer
    rests_in_play: bool = False  # would be asked anew at each step
    forget: Callable[["Scope"], None] | None = None  # what the answer needs, when nobody looks
    is_whole: Callable[[Any], bool] = lambda _answer: True  # or there is more to ask for


def _cell(scope: "Scope", reading: Reading, about: About, _void: Cancelled) -> OpenedCell:
    (key,) = about
    return OpenedCell(reading, key, scope.cell(reading, key))


def _lens(scope: "Scope", reading: Reading, _about: About, void: Cancelled) -> OpenedLens:
    return OpenedLens(reading, scope.lens(reading, void, only_some=True))


def _residual(scope: "Scope", reading: Reading, about: About, void: Cancelled) -> OpenedResidual:
    (token_id,) = about
    stream, attribution = scope.residual(reading, token_id, void) or (None, None)
    return OpenedResidual(reading, token_id, stream, attribution)


def _about_residual(state: State, _reading: Reading) -> About | None:
    return None if state.followed_id is None else (state.followed_id,)


def _consequence(
    scope: "Scope", reading: Reading, _about: About, void: Cancelled
) -> OpenedConsequence:
    return OpenedConsequence(reading, *attempt(lambda: scope.consequence(reading, void)))


def _code(scope: "Scope", reading: Reading, _about: About, void: Cancelled) -> OpenedCode:
    return OpenedCode(reading, *attempt(lambda: scope.code(reading, void)))


def _intact(scope: "Scope", reading: Reading, _about: About, void: Cancelled) -> OpenedIntact:
    return OpenedIntact(reading, scope.intact(reading, void))


def _about_intact(_state: State, reading: Reading) -> About | None:
    return () if reading.conditions.heads_off else None


QUESTIONS: tuple[Question, ...] = (
    Question(
        "cell",
        WantCell,
        _cell,
        lambda state, _reading: (state.selection.key,),
        is_urgent=True,
        moved_by=frozenset({"layer", "head", "query"}),
    ),
    Question("lens", WantLens, _lens, is_whole=lambda opened: opened.is_whole),
    Question("residual", WantResidual, _residual, _about_residual, moved_by=frozenset({"query"})),
    Question(
        "consequence",
        WantConsequence,
        _consequence,
        rests_in_play=True,
        forget=lambda scope: scope.forget_float32(),
    ),
    Question("code", WantCode, _code, moved_by=frozenset({"layer", "query"})),
    Question("intact", WantIntact, _intact, _about_intact, rests_in_play=True),
)
KINDS = frozenset(question.kind for question in QUESTIONS)


@dataclass
class Coming:
    """A reading that a job will give; set on the engine's thread when it does."""

    reading: Reading | None = None


@dataclass(frozen=True)
class _Asked:
    """The latest job of a kind, what it is about, and in what state it was asked."""

    number: int
    coming: Coming
    state: State


class Asides:
    """Owns which questions are open; `aside` are the kinds of jobs that change nothing shown."""

    def __init__(self, store: Store, asking: Asking, aside: frozenset[str]) -> None:
        self._store, self._asking, self._aside = store, asking, aside
        self._asked: dict[str, _Asked] = {}

    def want(self, wish: Want) -> None:
        """Somebody looks at an answer, or no longer does."""
        question = next(each for each in QUESTIONS if each.wish is type(wish))
        was_wanted = self._store.want(wish)
        self._open(question)
        forget = question.forget
        if forget is not None and was_wanted and not wish.wanted:
            replaced = frozenset({question.kind})
            self._asking.forget(lambda scope, _void: forget(scope), replaced)

    def open(self) -> None:
        """Ask what is wanted now, unless the answer is there or on its way."""
        for question in QUESTIONS:
            self._open(question)

    def open_behind(self, coming: Coming, moved: frozenset[str]) -> None:
        """Ask about a reading that is on its way because these fields of the selection changed.

        So the engine goes on to the answer that somebody waits for without waiting for the window
        to draw that reading first. What else is wanted is asked when it is there.
        """
        state = self._store.state
        for question in QUESTIONS:
            if question.wish in state.wanted and question.moved_by & moved:
                self._ask(question, coming)
                return

    def _open(self, question: Question) -> None:
        state = self._store.state
        reading, replaced = state.reading, self._aside if question.is_urgent else IDLE
        if reading is None or question.wish not in state.wanted:
            return
        if self._asking.awaits_more_than(replaced) or (question.rests_in_play and state.playing):
            return
        about, opened = question.about(state, reading), getattr(state, question.kind)
        if about is None or self._is_under_way(question, reading, about):
            return
        if opened is not None and question.is_whole(opened) and opened.answers(reading, *about):
            return
        self._ask(question, Coming(reading))

    def _ask(self, question: Question, coming: Coming) -> None:
        state = self._store.state

        def work(scope: "Scope", void: Cancelled) -> object:
            reading = coming.reading
            about = None if reading is None else question.about(_with(state, reading), reading)
            if reading is None or about is None:
                raise CancelledError("there is nothing to ask about.")
            return question.ask(scope, reading, about, void)

        number = self._asking.ask_aside(
            question.kind,
            work,
            lambda answer: self._show(question, answer),
            self._aside if question.is_urgent else IDLE,
        )
        self._asked[question.kind] = _Asked(number, coming, state)

    def _is_under_way(self, question: Question, reading: Reading, about: About) -> bool:
        asked = self._asked.get(question.kind)
        if asked is None or not self._asking.awaits(asked.number):
            return False
        was_about = question.about(_with(asked.state, reading), reading)
        return asked.coming.reading is reading and was_about == about

    def _show(self, question: Question, answer: Any) -> None:  # noqa: ANN401 - of any kind
        state = self._store.state
        about = None if state.reading is None else question.about(state, state.reading)
        if about is not None and answer.answers(state.reading, *about):
            self._store.update(**{question.kind: answer})
        self._asking.settle()


def _with(state: State, reading: Reading) -> State:
    return replace(state, reading=reading)
