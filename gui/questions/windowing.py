"""Asks for what the Windows panel shows, while somebody looks at it and at no other time."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Signal

import resources
from engine.cancelling import Cancelled
from engine.errors import CancelledError, ConfigError
from engine.reading import Reading
from gui.messages import Messages
from gui.questions.asking import IDLE, Asking, attempt
from gui.state import Store
from gui.windows_state import Answer, Asked, asked_by
from gui.wishes import WantWindows
from gui.words.prepared import SENTENCE

if TYPE_CHECKING:
    from engine.scope import Scope
    from engine.windows.fixed_window import FixedWindow

KIND = "windows"
N_MORE = 40  # tokens of a continuation
_STEP = 0.02  # of progress that is worth telling


class Windowing(QObject):
    """Owns what was asked last, and the plays as the open model's tokens."""

    _came = Signal(float)  # from the engine's thread: how much is done
    _part_came = Signal(object)  # the same: an Answer of which something is still to come

    def __init__(self, store: Store, messages: Messages, asking: Asking) -> None:
        super().__init__()
        self._store, self._messages, self._asking = store, messages, asking
        self._asked: tuple[int, Asked] | None = None  # the latest job, and what for
        # Set and used on the engine's thread alone: the tokenizer that the plays were cut with.
        self._fixed: tuple[object, FixedWindow] | None = None
        self._came.connect(self._show_progress)
        self._part_came.connect(self._show_part)

    def want(self, wish: WantWindows) -> None:
        """Somebody looks, or no longer does: then what runs is given up, the counts forgotten."""
        was_wanted = self._store.want(wish)
        if wish.wanted:
            self.open()
        elif was_wanted:
            self._asking.forget(self._forget, IDLE | {KIND})

    def choose(self, changes: dict[str, Any]) -> None:
        """Take up another page or other numbers."""
        windows = self._store.state.windows
        choice = replace(windows.choice, **changes)
        try:
            choice.check()
        except ConfigError as error:
            self._messages.warning(str(error))
            return
        self._store.update(windows=replace(windows, choice=choice))
        self.open()

    def open(self) -> None:
        """Ask for the next thing that is wanted, unless it is there or on its way."""
        state = self._store.state
        reading, windows = state.reading, state.windows
        if WantWindows not in state.wanted or reading is None or state.playing:
            return
        if self._asking.awaits_more_than(IDLE | {KIND}):
            return
        for asked in asked_by(reading, windows.choice):
            answer = windows.answer(asked.what)
            if answer is None or answer.asked != asked or not answer.is_whole:
                if not self._is_on_its_way(asked):
                    self._ask(asked, reading)
                return

    def _is_on_its_way(self, asked: Asked) -> bool:
        latest = self._asked
        return latest is not None and latest[1] == asked and self._asking.awaits(latest[0])

    def _ask(self, asked: Asked, reading: Reading) -> None:
        windows = self._store.state.windows
        self._store.update(windows=replace(windows, progress=None))

        def work(scope: "Scope", void: Cancelled) -> Answer:
            answer, obstacle = attempt(lambda: self._work(scope, asked, reading, void))
            return answer or Answer(asked, reading, obstacle=obstacle)

        number = self._asking.ask_aside(KIND, work, self._show, IDLE | {KIND})
        self._asked = number, asked

    def _work(self, scope: "Scope", asked: Asked, reading: Reading, void: Cancelled) -> Answer:
        """On the engine's thread."""
        if reading.info is not scope.info:
            raise CancelledError("the text belongs to a model that is no longer open.")
        tokens = reading.document.tokens[reading.n_fallen : reading.cursor]
        answer = Answer(asked, reading, asked.token_ids, tokens)
        if asked.what == "visible":
            visibility = scope.visibility(reading, void)
            if visibility is None:
                raise CancelledError("the text is read under other conditions by now.")
            return replace(answer, visibility=visibility)
        if asked.what == "eviction" and asked.budget is not None:
            told = _Teller(self._came.emit)
            eviction = scope.eviction(
                reading,
                asked.budget,
                N_MORE,
                void,
                told,
                lambda found: self._part_came.emit(replace(answer, eviction=found)),
            )
            return replace(answer, eviction=eviction)
        if asked.what == "fixed window":
            told, (n_previous,) = _Teller(self._came.emit), asked.sizes
            fixed = self._fixed_window(scope).read(asked.token_ids, n_previous, void, told)
            return replace(answer, fixed_window=fixed)
        token_ids, query = asked.token_ids, asked.query
        if asked.what == "sentence":
            document, limit = scope.document_of(SENTENCE), reading.info.config.max_seq_len
            token_ids, tokens = document.token_ids[:limit], document.tokens[:limit]
            answer = replace(answer, token_ids=token_ids, tokens=tokens)
            query = len(token_ids) - 1
        window, sinks = asked.sizes
        conditions = asked.conditions or reading.conditions
        windows = scope.windows(token_ids, conditions, (window, sinks), query, void)
        return replace(answer, windows=windows)

    def _fixed_window(self, scope: "Scope") -> "FixedWindow":
        from engine.windows.fixed_window import FixedWindow  # noqa: PLC0415 - tokenizers, here only

        if self._fixed is None or self._fixed[0] is not scope.tokenizer:
            folder, held_out = resources.plays()
            self._fixed = scope.tokenizer, FixedWindow(folder, held_out, scope.tokenizer)
        return self._fixed[1]

    def _forget(self, _scope: "Scope", _void: Cancelled) -> None:
        if self._fixed is not None:
            self._fixed[1].forget_counts()

    def _show_progress(self, share: float) -> None:
        state = self._store.state
        is_awaited = self._asked is not None and self._asking.awaits(self._asked[0])
        if WantWindows in state.wanted and is_awaited:
            self._store.update(windows=replace(state.windows, progress=share))

    def _show_part(self, answer: Answer) -> None:
        """What there is of an answer that is still wanted."""
        if self._is_on_its_way(answer.asked):
            windows = self._store.state.windows
            self._store.update(
                windows=replace(windows.with_answer(answer), progress=windows.progress)
            )

    def _show(self, answer: Answer) -> None:
        self._store.update(windows=self._store.state.windows.with_answer(answer))
        self._asking.settle()


class _Teller:
    """Passes on how far something has come, in steps that can be seen."""

    def __init__(self, tell: Callable[[float], None]) -> None:
        self._tell, self._last = tell, 0.0

    def __call__(self, share: float) -> None:
        if share >= self._last + _STEP:
            self._last = share
            self._tell(share)
