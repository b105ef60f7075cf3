"""The one engine thread: takes jobs in order, drops those that something newer replaced."""

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from PySide6.QtCore import QThread, Signal

from engine.errors import CancelledError, EngineError

Cancelled = Callable[[], bool]


@dataclass(frozen=True)
class Job:
    """One thing to do on the engine's thread.

    `work` gets a function that says whether the job was replaced meanwhile, and may give up by
    raising CancelledError. `replaces` names the kinds of earlier jobs that this one makes void.
    """

    kind: str
    work: Callable[[Cancelled], Any]
    replaces: frozenset[str] = frozenset()


@dataclass(eq=False)
class _Ticket:
    job: Job
    number: int
    void: threading.Event = field(default_factory=threading.Event)


class EngineThread(QThread):
    """Owns the queue. Each job ends in one signal with the number that `submit` gave."""

    answered = Signal(int, object)
    failed = Signal(int, object)  # an EngineError: a sentence for the user
    crashed = Signal(int, object)  # anything else: a bug
    dropped = Signal(int)  # replaced by something newer, however far it had come

    def __init__(self) -> None:
        super().__init__()
        self._wake = threading.Condition()
        self._waiting: deque[_Ticket] = deque()
        self._running: _Ticket | None = None
        self._closing = False
        self._last_number = 0

    def submit(self, job: Job) -> int:
        """Queue a job behind the others; returns its number."""
        with self._wake:
            number = self._last_number = self._last_number + 1
            void = [each for each in self._waiting if each.job.kind in job.replaces]
            if self._running is not None and self._running.job.kind in job.replaces:
                self._running.void.set()
            for ticket in void:
                self._waiting.remove(ticket)
            self._waiting.append(_Ticket(job, number))
            self._wake.notify()
        for ticket in void:
            self.dropped.emit(ticket.number)
        return number

    def close(self) -> None:
        """Void all jobs, end the thread and wait for it."""
        with self._wake:
            self._closing = True
            if self._running is not None:
                self._running.void.set()
            self._waiting.clear()
            self._wake.notify()
        self.wait()

    def run(self) -> None:
        """Work until closed; runs on the engine's thread."""
        while True:
            with self._wake:
                self._running = None
                self._wake.wait_for(lambda: self._closing or bool(self._waiting))
                if self._closing:
                    return
                ticket = self._running = self._waiting.popleft()
            self._do(ticket)

    def _do(self, ticket: _Ticket) -> None:
        tell, answer = self.answered, None
        try:
            answer = ticket.job.work(ticket.void.is_set)
        except CancelledError:
            ticket.void.set()
        except EngineError as error:
            tell, answer = self.failed, error
        except Exception as error:  # noqa: BLE001 - handed on whole, to be shown as a bug
            self.crashed.emit(ticket.number, error)
            return
        if ticket.void.is_set():
            self.dropped.emit(ticket.number)
        else:
            tell.emit(ticket.number, answer)
