"""What a training is told while it runs: by Ctrl-C, or by lines on its standard input."""

import os
import signal
import threading
from types import FrameType
from typing import Literal, Self

Order = Literal["", "pause", "stop"]


class Orders:
    """While entered, Ctrl-C and a polite kill only say "stop", which is looked at between steps.

    With `from_input`, lines do too: "pause", "resume" and "stop"; and the end of the input, for
    then whoever gave it is gone.
    """

    SIGNALS = (signal.SIGINT, signal.SIGTERM)

    def __init__(self, *, from_input: bool = False) -> None:
        self._from_input = from_input
        self._changed = threading.Condition(threading.RLock())
        self._order: Order = ""

    def __enter__(self) -> Self:
        self._before = [signal.signal(number, self._note) for number in self.SIGNALS]
        if self._from_input:
            # A daemon: it may still wait for a line when all is over.
            threading.Thread(target=self._read, name="orders", daemon=True).start()
        return self

    def __exit__(self, *_error: object) -> None:
        for number, handler in zip(self.SIGNALS, self._before, strict=True):
            signal.signal(number, handler)

    @property
    def now(self) -> Order:
        """What is wanted; "" is to go on."""
        return self._order

    def wait_while_paused(self) -> None:
        """Come back when something else than "pause" is wanted."""
        with self._changed:
            while self._order == "pause":
                self._changed.wait(0.5)  # wakes now and then, for a signal to be heard

    def _note(self, _signal: int, _frame: FrameType | None) -> None:
        self._give("stop")

    def _give(self, order: Order) -> None:
        with self._changed:
            if self._order != "stop":  # which is the last word
                self._order = order
            self._changed.notify_all()

    def _read(self) -> None:
        # Not by sys.stdin, whose lock a thread that still reads would hold for ever.
        rest = b""
        while data := _read_some():
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                order = line.strip()
                if order == b"pause":
                    self._give("pause")
                elif order == b"resume":
                    self._give("")
                elif order == b"stop":
                    self._give("stop")
        self._give("stop")


def _read_some() -> bytes:
    try:
        return os.read(0, 4096)
    except OSError:  # closed by whoever had it
        return b""
