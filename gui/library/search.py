"""Looks for models on a thread of its own and hands over what it finds, a little at a time.

A thread of Python's and a queue, not a QThread: a disk over a network that no longer answers
holds its thread for as long as it likes, and the program must be able to end meanwhile.
"""

import threading
from collections.abc import Sequence
from queue import Empty, SimpleQueue

from PySide6.QtCore import QCoreApplication, QObject, QTimer, Signal

from engine.library import Found, Looking, Note, Place, search

_POLL_MS = 50
_PATIENCE_SECONDS = 2  # with a thread that was told to stop

_Queue = SimpleQueue[Found | Looking | Note | None]  # None: it is over


class LibrarySearch(QObject):
    """Owns at most one search at a time; all signals come on the thread that made this object."""

    found = Signal(list)  # of Found
    looking = Signal(object)  # Looking
    noted = Signal(str)
    ended = Signal()  # everything was looked at

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._queue = _Queue()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._poll = QTimer(self, interval=_POLL_MS)
        self._poll.timeout.connect(self._hand_over)
        application = QCoreApplication.instance()
        if application is not None:
            application.aboutToQuit.connect(self.stop)

    @property
    def is_running(self) -> bool:
        """Whether there is more to come."""
        return self._poll.isActive()

    def start(self, places: Sequence[Place]) -> None:
        """Begin, in place of a search that is still going on."""
        self.stop()
        # New ones for each search: an old one that hangs may come back.
        self._queue, self._stop = _Queue(), threading.Event()
        self._thread = threading.Thread(
            target=_look, args=(places, self._queue, self._stop), name="library", daemon=True
        )
        self._thread.start()
        self._poll.start()

    def stop(self) -> None:
        """Give the search up; no signal of it comes after this."""
        self._poll.stop()
        self._stop.set()
        if self._thread is not None:
            self._thread.join(_PATIENCE_SECONDS)
            self._thread = None

    def _hand_over(self) -> None:
        models: list[Found] = []
        is_over = False
        looking: Looking | None = None
        while not is_over:
            try:
                told = self._queue.get_nowait()
            except Empty:
                break
            is_over = told is None
            if isinstance(told, Found):
                models.append(told)
            elif isinstance(told, Looking):
                looking = told
            elif isinstance(told, Note):
                self.noted.emit(told.sentence)
        if models:
            self.found.emit(models)
        if looking is not None:
            self.looking.emit(looking)
        if is_over:
            self._poll.stop()
            self.ended.emit()


def _look(places: Sequence[Place], queue: _Queue, stop: threading.Event) -> None:
    """Runs on the search's own thread."""
    try:
        for told in search(places, stop.is_set):
            queue.put(told)
    except Exception:  # a bug, which the thread's excepthook tells
        queue.put(Note("The search broke off; what it had not reached is not listed."))
        raise
    finally:
        queue.put(None)
