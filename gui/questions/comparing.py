"""Asks for the second run while somebody looks at it, and for nothing while nobody does."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine.answers.comparison import Wanted
from engine.cancelling import Cancelled
from engine.conditions import Conditions
from engine.errors import ConfigError
from engine.reading import Reading
from gui.messages import Messages
from gui.questions.asking import IDLE, Asking, attempt
from gui.state import OpenedComparison, Store
from gui.wishes import WantComparison

if TYPE_CHECKING:
    from engine.answers.second_run import SecondRun
    from engine.scope import Scope

KIND = "comparison"


class Comparing:
    """Owns the second run, which lives on the engine's thread, and what was asked of it."""

    def __init__(self, store: Store, messages: Messages, asking: Asking) -> None:
        self._store, self._messages, self._asking = store, messages, asking
        self._second: SecondRun | None = None  # set and used on the engine's thread alone
        self._asked: tuple[int, OpenedComparison] | None = None  # the latest job, and what for

    def want(self, wish: WantComparison) -> None:
        """Somebody looks, or no longer does: then its memory is given back."""
        was_wanted = self._store.want(wish)
        if wish.wanted:
            self.open()
        elif was_wanted:
            self._asking.forget(self._forget, IDLE | {KIND})

    def change(self, changes: dict[str, Any]) -> None:
        """Take up another choice of what differs."""
        choice = replace(self._store.state.compare, **changes)
        try:
            Conditions(mask="window", window=choice.window, sinks=choice.sinks)
        except ConfigError as error:
            self._messages.warning(str(error))
            return
        self._store.update(compare=choice)
        self.open()

    def open(self) -> None:
        """Ask for the comparison that is wanted now, unless it is there or on its way."""
        state = self._store.state
        reading, opened = state.reading, state.comparison
        if WantComparison not in state.wanted or reading is None:
            return
        if self._asking.awaits_more_than(IDLE | {KIND}):
            return
        wanted = state.compare.wanted(reading, state.formats)
        if opened is not None and opened.answers(reading, wanted):
            return
        asked = self._asked
        if (
            asked is not None
            and self._asking.awaits(asked[0])
            and asked[1].answers(reading, wanted)
        ):
            return

        def work(scope: "Scope", void: Cancelled) -> OpenedComparison:
            return self._compare(scope, reading, wanted, void)

        number = self._asking.ask_aside(KIND, work, self._show, IDLE | {KIND})
        self._asked = number, OpenedComparison(reading, wanted, None)

    def _compare(
        self, scope: "Scope", reading: Reading, wanted: Wanted, void: Cancelled
    ) -> OpenedComparison:
        """On the engine's thread."""
        from engine.answers.second_run import SecondRun  # noqa: PLC0415 - torch, here only

        if self._second is None:
            self._second = SecondRun()
        second = self._second
        comparison = attempt(lambda: second.compare(scope, reading, wanted, void))
        return OpenedComparison(reading, wanted, *comparison)

    def _forget(self, _scope: "Scope", _void: Cancelled) -> None:
        if self._second is not None:
            self._second.forget()

    def _show(self, opened: OpenedComparison) -> None:
        before = self._store.state.comparison
        if opened.comparison is None and before is not None:
            opened = replace(opened, comparison=before.comparison)  # stays, dimmed
        self._store.update(comparison=opened)
        self._asking.settle()
