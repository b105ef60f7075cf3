"""A training in a process of its own: lines of JSON come out of it, orders go in."""

import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue

from PySide6.QtCore import QObject, QTimer, Signal

import engine
from engine.training.lines import Event, from_line

_POLL_MS = 50
_ERRORS_FILE = "errors.txt"
_ROOT = Path(engine.__file__).parents[1]
if sys.platform == "win32":
    _FLAGS = subprocess.CREATE_NO_WINDOW | subprocess.BELOW_NORMAL_PRIORITY_CLASS
else:
    _FLAGS = 0  # there it takes a low priority by itself


class TrainingProcess(QObject):
    """Owns one process. It ends by itself, saved, when this program lets go of it or dies.

    Raises:
        OSError: it cannot be started.
    """

    told = Signal(object)  # Event
    ended = Signal(int, str)  # exit status, and the last line of its errors

    def __init__(self, folder: Path, words: Sequence[str], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._folder = folder
        self._queue: SimpleQueue[Event | int] = SimpleQueue()
        self._process = _start(folder, words)
        # A daemon: the program may end while the training still saves.
        self._thread = threading.Thread(target=self._listen, name="training", daemon=True)
        self._thread.start()
        self._poll = QTimer(self, interval=_POLL_MS)
        self._poll.timeout.connect(self._hand_over)
        self._poll.start()

    @property
    def number(self) -> int:
        """The system's number of the process."""
        return self._process.pid

    def order(self, word: str) -> None:
        """Say "pause", "resume" or "stop"; one that has ended does not hear it."""
        orders = self._process.stdin
        if orders is not None and not orders.closed:
            with suppress(OSError):  # past the file's buffer, where nothing must be left behind
                os.write(orders.fileno(), f"{word}\n".encode())

    def let_go(self) -> None:
        """Have it stop, save and end, without waiting for that."""
        self._poll.stop()
        self.order("stop")
        if self._process.stdin is not None:
            self._process.stdin.close()

    def kill(self) -> None:
        """End it at once, unsaved; no signal comes after this."""
        self._poll.stop()
        self._process.kill()
        self.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()

    def wait(self) -> int:
        """Wait for its end; returns its exit status."""
        self._thread.join()
        return self._process.wait()

    def _listen(self) -> None:
        """Runs on a thread of its own."""
        if self._process.stdout is not None:
            with self._process.stdout as lines:
                for line in lines:
                    event = from_line(line.decode("utf-8", "replace"))
                    if event is not None:
                        self._queue.put(event)
        self._queue.put(self._process.wait())

    def _hand_over(self) -> None:
        while True:
            try:
                said = self._queue.get_nowait()
            except Empty:
                return
            if isinstance(said, int):
                self._end(said)
                return
            self.told.emit(said)

    def _end(self, status: int) -> None:
        self._poll.stop()
        self._thread.join()
        if self._process.stdin is not None:
            self._process.stdin.close()
        self.ended.emit(status, _last_line(self._folder / _ERRORS_FILE))


def _start(folder: Path, words: Sequence[str]) -> "subprocess.Popen[bytes]":
    path = os.pathsep.join(filter(None, (str(_ROOT), os.environ.get("PYTHONPATH", ""))))
    with (folder / _ERRORS_FILE).open("wb") as errors:
        return subprocess.Popen(  # noqa: S603 - our own interpreter and module
            [sys.executable, "-m", "engine.training", *words, "--out", str(folder), "--json"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": path, "PYTHONIOENCODING": "utf-8"},
            creationflags=_FLAGS,
        )


def _last_line(path: Path) -> str:
    try:
        lines = path.read_text("utf-8", "replace").split("\n")
    except OSError:
        return ""
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
