"""One piece of work at a time on a thread of its own; the newest counts."""

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal

from engine.errors import EngineError

_POLL_MS = 20
_Queue = SimpleQueue[tuple[bool, Any]]  # whether it was done, and the answer or the sentence


class Aside(QObject):
    """Owns the thread; signals come on the thread that made this object."""

    done = Signal(object)  # what the work returned
    failed = Signal(str)  # a sentence

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._queue = _Queue()
        self._poll = QTimer(self, interval=_POLL_MS)
        self._poll.timeout.connect(self._hand_over)

    @property
    def is_running(self) -> bool:
        """Whether an answer is to come."""
        return self._poll.isActive()

    def start(self, work: Callable[[], object]) -> None:
        """Begin; what is still being worked on is not heard of any more."""
        self._queue = _Queue()
        # A daemon: a disk that does not answer must not keep the program from ending.
        threading.Thread(target=_do, args=(work, self._queue), name="aside", daemon=True).start()
        self._poll.start()

    def stop(self) -> None:
        """Hear no more."""
        self._poll.stop()

    def _hand_over(self) -> None:
        try:
            is_done, answer = self._queue.get_nowait()
        except Empty:
            return
        self._poll.stop()
        (self.done if is_done else self.failed).emit(answer)


def _do(work: Callable[[], object], queue: _Queue) -> None:
    """Runs on the thread."""
    try:
        queue.put((True, work()))
    except EngineError as error:
        queue.put((False, str(error)))
    except Exception:  # a bug, which the thread's excepthook tells
        queue.put((False, "This could not be found out; the message above says more."))
        raise
