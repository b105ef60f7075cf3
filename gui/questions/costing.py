"""Measures what context costs on the engine's thread, in pieces, behind everything else.

Each piece is a job of its own. One that is under way is given up within a layer as soon as
something else is asked for, a key being one such thing, and it is made again only when all of that
is answered and nothing more has been asked for a while: so whoever types has the engine, and the
window, to themselves.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, QTimer

from engine.cancelling import Cancelled
from engine.cost.room import check_room, two_ways_bytes
from engine.errors import CancelledError, EngineError
from engine.reading import Reading
from gui.costs import Costs, Experiment, Measured
from gui.state import Store
from gui.worker import EngineThread, Job

if TYPE_CHECKING:
    from engine.scope import Scope

KIND = "cost"
QUIET_MS = 400  # after the last answer, which somebody who types does not let pass
_PIECE_SECONDS = 0.1  # after which what is known is shown

_FIELDS: dict[Experiment, str] = {
    "both ways": "both_ways",
    "one by one": "one_by_one",
    "sweep": "lab",
}
NO_TEXT = "There is no text to go on from; type something first."


@dataclass(frozen=True)
class _Piece:
    """What is known after a piece of work; None if it brought nothing new."""

    found: object
    is_last: bool


class _Work:
    """Owns an experiment under way; used on the engine's thread alone."""

    def __init__(
        self,
        begin: Callable[["Scope", Cancelled], Iterator[object]],
        others_wait: Callable[[], bool],
    ) -> None:
        self._begin, self._others_wait = begin, others_wait
        self._steps: Iterator[object] | None = None
        self._void: Cancelled = lambda: False

    def piece(self, scope: "Scope", void: Cancelled) -> _Piece:
        """Go on for a while, or until something else waits.

        Raises:
            CancelledError: it is no longer wanted.
        """
        self._void = void
        if self._steps is None:
            self._steps = self._begin(scope, lambda: self._others_wait() or self._void())
        found, until = None, time.monotonic() + _PIECE_SECONDS
        for found in self._steps:
            if void():
                raise CancelledError("the measurement is no longer wanted.")
            if self._others_wait():
                return _Piece(None, is_last=False)  # to be told with the next; now others draw
            if time.monotonic() > until:
                return _Piece(found, is_last=False)
        return _Piece(found, is_last=True)


class Costing(QObject):
    """Owns what is being measured: one experiment at a time."""

    def __init__(
        self,
        store: Store,
        engine: EngineThread,
        on_scope: Callable[[Callable[["Scope", Cancelled], Any]], Callable[[Cancelled], Any]],
    ) -> None:
        super().__init__()
        self._store, self._engine, self._on_scope = store, engine, on_scope
        self._work: _Work | None = None
        self._reading: Reading | None = None  # what it is measured on
        self._number = 0  # of the job under way; 0: none
        self.quiet = QTimer(self, singleShot=True, interval=QUIET_MS)  # runs out when it is
        self.quiet.timeout.connect(self._wake)
        engine.queued.connect(self._on_queued)
        engine.answered.connect(self._on_answer)
        engine.failed.connect(self._on_failure)
        engine.crashed.connect(lambda number, _error: self._on_end(number))
        engine.dropped.connect(self._on_end)

    def begin(self, what: Experiment) -> None:
        """Measure in this way; what was being measured ends."""
        self.stop()
        costs, reading = self._store.state.costs, self._store.state.reading
        if reading is None:
            return
        try:
            self._check(what, costs, reading)
        except EngineError as error:
            self._tell(obstacles={**costs.obstacles, what: str(error)})
            return
        begin: dict[Experiment, Callable[[Scope, Cancelled], Iterator[object]]] = {
            "both ways": lambda scope, waited: scope.with_and_without(
                reading, costs.n_steps, waited
            ),
            "one by one": lambda scope, waited: scope.parallel_and_serial(reading, waited),
            "sweep": lambda scope, waited: scope.sweep(reading, costs.longest, waited),
        }
        self._work = _Work(begin[what], lambda: self._engine.has_waiting)
        self._reading = reading
        without = {key: said for key, said in costs.obstacles.items() if key != what}
        self._tell(running=what, obstacles=without, **{_FIELDS[what]: None})
        self._go_on()

    def stop(self) -> None:
        """Give up what is being measured; what is known of it stays."""
        self._engine.give_up(KIND)
        self._end()

    def close(self) -> None:
        """Hear and tell nothing more: the window is going."""
        self._work, self._number = None, 0
        self.quiet.stop()

    def change(self, changes: dict[str, Any]) -> None:
        """Take up other choices."""
        self._tell(**changes)

    @staticmethod
    def _check(what: Experiment, costs: Costs, reading: Reading) -> None:
        """See that it can be tried at all.

        Raises:
            EngineError: there is no text, or not enough memory.
        """
        config = reading.info.config
        if what == "sweep":
            check_room(config, costs.longest)
            return
        if not reading.n_tokens:
            raise EngineError(NO_TEXT)
        more = costs.n_steps if what == "both ways" else 0
        needed = partial(two_ways_bytes, conditions=reading.conditions)
        check_room(config, min(config.max_seq_len, reading.n_tokens + more), needed)

    def _go_on(self) -> None:
        """Do the next piece, at once or when it is quiet."""
        self._number = 0
        if self._work is None:
            return
        is_resting = self.quiet.isActive()
        if is_resting != self._store.state.costs.is_resting:
            self._tell(is_resting=is_resting)
        if not is_resting:
            self._number = self._engine.submit(Job(KIND, self._on_scope(self._work.piece)))

    def _on_queued(self, kind: str) -> None:
        """Something else is asked for: rest from here on, or end where another model comes."""
        if self._work is None or kind == KIND:
            return
        if kind == "open":
            self._end()  # there may be no job that the other model's could replace
        else:
            self.quiet.start()

    def _wake(self) -> None:
        """Go on, unless something else is still being done or text is being played."""
        if self._engine.awaits_others(KIND) or self._store.state.playing:
            self.quiet.start()
        elif not self._number:
            self._go_on()

    def _on_answer(self, number: int, answer: object) -> None:
        running, reading = self._store.state.costs.running, self._reading
        if number != self._number or not running or reading is None:
            if self.quiet.isActive():
                self.quiet.start()  # somebody looks at that answer first
            return
        assert isinstance(answer, _Piece)  # noqa: S101 - what its own job answers
        if answer.found is not None:
            self._tell(**{_FIELDS[running]: Measured(reading, answer.found)})
        if answer.is_last:
            self._end()
        else:
            self._go_on()

    def _on_failure(self, number: int, error: EngineError) -> None:
        costs = self._store.state.costs
        if number == self._number and costs.running:
            self._tell(obstacles={**costs.obstacles, costs.running: str(error)})
            self._end()

    def _on_end(self, number: int) -> None:
        if number == self._number:
            self._end()

    def _end(self) -> None:
        self._work, self._reading, self._number = None, None, 0
        self.quiet.stop()
        self._tell(running="", is_resting=False)

    def _tell(self, **changes: Any) -> None:  # noqa: ANN401 - the fields of Costs
        self._store.update(costs=replace(self._store.state.costs, **changes))
