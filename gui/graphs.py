"""The one door to pyqtgraph, which takes more than half a second to import.

So it is imported on a thread of its own, once something is on the screen; whoever draws curves
shows a sentence until then.

PySide makes its classes when they are first asked for, and dies if two threads do so at once.
pyqtgraph asks for all of them; so they are made before, on the window's thread, a few at a time.
"""

import importlib
import sys
import threading
import time
from collections.abc import Iterator
from functools import cache
from typing import Any

from PySide6 import QtCore, QtGui, QtWidgets
from PySide6.QtCore import QObject, QTimer, Signal

_SLICE_SECONDS = 0.004


class GraphLoader(QObject):
    """Owns the import of pyqtgraph: at most one, on a thread that ends with it."""

    ready = Signal()
    failed = Signal(str)  # a sentence for the user

    def __init__(self) -> None:
        super().__init__()
        self._thread: threading.Thread | None = None
        self._making: Iterator[None] | None = None
        self._module: Any = None
        self.failure = ""

    @property
    def module(self) -> Any:  # noqa: ANN401 - pyqtgraph has no types
        """The module pyqtgraph, or None as long as it is not there."""
        if self._module is None and self._making is None:
            self._module = sys.modules.get("pyqtgraph")
        return self._module

    def start_import(self) -> None:
        """Begin unless it is there already or under way; `ready` or `failed` follows."""
        if self._making is None and self.module is None:
            self._making = _make_qt_classes()
            self._go_on()

    def _go_on(self) -> None:
        for _pause in self._making or ():
            QTimer.singleShot(0, self, self._go_on)
            return
        # No daemon: one that dies half-way through an import can take the process with it.
        self._thread = threading.Thread(target=self._import, name="pyqtgraph", daemon=False)
        self._thread.start()

    def _import(self) -> None:
        try:
            self._module = importlib.import_module("pyqtgraph")
        except ImportError as error:
            self.failure = f"The curves cannot be drawn: pyqtgraph is not to be had ({error})."
            self.failed.emit(self.failure)
        else:
            self.ready.emit()


def _make_qt_classes() -> Iterator[None]:
    """Ask for all that PySide's three large modules hold; pauses every few milliseconds."""
    began = time.monotonic()
    for module in (QtCore, QtGui, QtWidgets):
        for name in dir(module):
            getattr(module, name)
            if time.monotonic() - began > _SLICE_SECONDS:
                yield
                began = time.monotonic()


@cache
def loader() -> GraphLoader:
    """The loader of this process; call it first on the window's thread."""
    return GraphLoader()


def start_import() -> None:
    """Import pyqtgraph in the background, so that the first curve need not wait for it."""
    loader().start_import()
