"""Asks for repositories and fetches models on a thread of its own; tells the window's thread.

A thread of Python's, as for the search: a server that no longer answers holds its thread until
its patience ends, and neither the window nor the end of the program may wait for that.
"""

import threading
from collections.abc import Callable
from pathlib import Path
from queue import Empty, SimpleQueue

from PySide6.QtCore import QCoreApplication, QObject, QTimer, Signal

from engine.errors import CancelledError, EngineError
from engine.hub import Choice, Client, Offer, Progress, download, read_repository

_POLL_MS = 50
_PATIENCE_SECONDS = 2  # at the end of the program, with a thread that was told to stop

_Answer = Offer | Path | str  # a text is a sentence on what went wrong


class _Job:
    """What one thread and the window's thread share."""

    def __init__(self) -> None:
        self.answers: SimpleQueue[_Answer] = SimpleQueue()
        self.stop = threading.Event()
        self.progress: Progress | None = None  # the latest; those between are of no use

    def tell(self, progress: Progress) -> None:
        """Hear from the thread how far it is."""
        self.progress = progress


class Downloading(QObject):
    """Owns at most one question or download at a time; all signals come on its maker's thread."""

    offered = Signal(object)  # Offer
    progressed = Signal(object)  # Progress
    fetched = Signal(object)  # the Path to open
    failed = Signal(str)

    def __init__(self, client: Client, root: Path | None, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._client = client
        self._root = root
        self._job = _Job()
        self._thread: threading.Thread | None = None
        self._poll = QTimer(self, interval=_POLL_MS)
        self._poll.timeout.connect(self._hand_over)
        application = QCoreApplication.instance()
        if application is not None:
            application.aboutToQuit.connect(self._end)

    @property
    def is_running(self) -> bool:
        """Whether there is an answer to come."""
        return self._poll.isActive()

    def look_up(self, text: str, revision: str) -> None:
        """Ask what the repository that a user means offers, in place of what is still going on."""

        def work(_job: _Job) -> Offer:
            client = self._client
            return client.look_up(read_repository(text, revision, client.endpoint))

        self._start(work)

    def fetch(self, offer: Offer, choice: Choice) -> None:
        """Fetch what is lacking of a choice, in place of what is still going on."""

        def work(job: _Job) -> Path:
            return download(self._client, offer, choice, self._root, job.stop.is_set, told=job.tell)

        self._start(work)

    def stop(self) -> None:
        """Give up what is going on, at once; no signal of it comes after this."""
        self._poll.stop()
        self._job.stop.set()

    def _start(self, work: Callable[[_Job], _Answer]) -> None:
        self.stop()
        # A new one each time: what was stopped may still wait for its server.
        self._job = _Job()
        self._thread = threading.Thread(
            target=_work, args=(work, self._job), name="download", daemon=True
        )
        self._thread.start()
        self._poll.start()

    def _end(self) -> None:
        self.stop()
        if self._thread is not None:
            self._thread.join(_PATIENCE_SECONDS)

    def _hand_over(self) -> None:
        progress = self._job.progress
        if progress is not None:
            self.progressed.emit(progress)  # the same once more, too: time has passed
        try:
            answer = self._job.answers.get_nowait()
        except Empty:
            return
        self._poll.stop()
        if isinstance(answer, Offer):
            self.offered.emit(answer)
        elif isinstance(answer, Path):
            self.fetched.emit(answer)
        else:
            self.failed.emit(answer)


def _work(work: Callable[[_Job], _Answer], job: _Job) -> None:
    """Runs on the thread."""
    try:
        job.answers.put(work(job))
    except CancelledError:
        return  # whoever stopped it knows
    except EngineError as error:
        job.answers.put(str(error))
    except Exception:  # a bug, which the thread's excepthook tells
        job.answers.put("The download broke off; this is a bug.")
        raise
