"""The one engine thread: takes jobs in order, drops those that something newer replaced."""

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from PySide6.QtCore import QThread, Signal

from engine.cancelling import Cancelled
from engine.errors import CancelledError, EngineError


@dataclass(frozen=True)
class Job:
    """One thing to do on the engine's thread.

    `work` gets a function that says whether the job was replaced meanwhile, and may give up by
    raising CancelledError. `replaces` names the kinds of earlier jobs that this one makes void;
    but a job that goes on from where those before it lead (`is_relative`) keeps them alive as
    long as it is itself to be done. Of what cannot be taken back (`is_final`) the answer is heard
    once it is done, even if it was made void since.
    """

    kind: str
    work: Callable[[Cancelled], Any]
    replaces: frozenset[str] = frozenset()
    is_relative: bool = False
    is_final: bool = False


@dataclass(eq=False)
class _Ticket:
    job: Job
    number: int
    void: threading.Event = field(default_factory=threading.Event)


@dataclass(frozen=True)
class _End:
    """How a job came out."""

    answer: Any = None
    error: Exception | None = None

    @property
    def is_done(self) -> bool:
        """Whether there is an answer."""
        return self.error is None

    @property
    def is_expected(self) -> bool:
        """Whether this is no bug."""
        return self.is_done or isinstance(self.error, EngineError)


class EngineThread(QThread):
    """Owns the queue. Each job ends in one signal with the number that `submit` gave.

    Signals are sent on the thread that made this object, where `submit` and `close` belong as
    well; so a job that is not final can be replaced until the very moment in which its answer is
    heard.
    """

    answered = Signal(int, object)
    failed = Signal(int, object)  # an EngineError: a sentence for the user
    crashed = Signal(int, object)  # anything else: a bug
    dropped = Signal(int)  # replaced by something newer, however far it had come
    queued = Signal(str)  # a job of this kind was submitted

    _ended = Signal(object, object)  # _Ticket, and its answer or exception in an _End

    def __init__(self) -> None:
        super().__init__()
        self._wake = threading.Condition()
        self._waiting: deque[_Ticket] = deque()
        self._unheard: dict[int, _Ticket] = {}  # in the order in which they are done
        self._is_closing = False
        self._last_number = 0
        self._ended.connect(self._hear)

    def submit(self, job: Job) -> int:
        """Queue a job behind the others; returns its number."""
        self._last_number += 1
        ticket = _Ticket(job, self._last_number)
        self._drop(self._replaced(job))
        self._unheard[ticket.number] = ticket
        with self._wake:
            self._waiting.append(ticket)
            self._wake.notify()
        self.queued.emit(job.kind)
        return ticket.number

    def _replaced(self, job: Job) -> list[_Ticket]:
        replaced = []
        for ticket in reversed(self._unheard.values()):
            if ticket.job.kind in job.replaces:
                replaced.append(ticket)
            elif ticket.job.is_relative and not ticket.void.is_set():
                break
        return replaced[::-1]

    def _drop(self, tickets: list[_Ticket]) -> None:
        """Make jobs void; those that run, or have run, end by themselves."""
        with self._wake:
            for ticket in tickets:
                ticket.void.set()
            never_run = [ticket for ticket in tickets if ticket in self._waiting]
            for ticket in never_run:
                self._waiting.remove(ticket)
        for ticket in never_run:
            self._hear(ticket, None)

    @property
    def has_waiting(self) -> bool:
        """Whether jobs wait for the one that runs; may be asked on any thread."""
        return bool(self._waiting)

    def awaits_others(self, kind: str) -> bool:
        """Whether any job of another kind has not ended yet."""
        return any(ticket.job.kind != kind for ticket in self._unheard.values())

    def give_up(self, kind: str) -> None:
        """Make all jobs of a kind void; each ends in `dropped`."""
        self._drop([ticket for ticket in self._unheard.values() if ticket.job.kind == kind])

    def close(self) -> None:
        """Void all jobs, end the thread and wait for it."""
        self._drop(list(self._unheard.values()))
        with self._wake:
            self._is_closing = True
            self._wake.notify()
        self.wait()

    def _hear(self, ticket: _Ticket, end: _End | None) -> None:
        del self._unheard[ticket.number]
        if end is not None and not end.is_expected:
            self.crashed.emit(ticket.number, end.error)
        elif end is None or (ticket.void.is_set() and not (ticket.job.is_final and end.is_done)):
            self.dropped.emit(ticket.number)
        elif end.error is not None:
            self.failed.emit(ticket.number, end.error)
        else:
            self.answered.emit(ticket.number, end.answer)

    def run(self) -> None:
        """Work until closed; runs on the engine's thread."""
        while True:
            with self._wake:
                self._wake.wait_for(lambda: self._is_closing or bool(self._waiting))
                if self._is_closing:
                    return
                ticket = self._waiting.popleft()
            self._ended.emit(ticket, _do(ticket))


def _do(ticket: _Ticket) -> _End | None:
    """Do a job on the engine's thread; None if it gave up."""
    try:
        return _End(ticket.job.work(ticket.void.is_set))
    except CancelledError:
        return None
    except Exception as error:  # noqa: BLE001 - handed on whole, to be shown as a bug
        return _End(error=error)
