"""The one door to pyqtgraph, which takes more than half a second to import.

So it is imported on a thread of its own, once something is on the screen; whoever draws curves
shows a sentence until then.
"""

import importlib
import sys
import threading
from functools import cache
from typing import Any

from PySide6.QtCore import QObject, Signal


class GraphLoader(QObject):
    """Owns the import of pyqtgraph: at most one, on a thread that ends with it."""

    ready = Signal()
    failed = Signal(str)  # a sentence for the user

    def __init__(self) -> None:
        super().__init__()
        self._thread: threading.Thread | None = None
        self._module: Any = None
        self.failure = ""

    @property
    def module(self) -> Any:  # noqa: ANN401 - pyqtgraph has no types
        """The module pyqtgraph, or None as long as it is not there."""
        if self._module is None and self._thread is None:
            self._module = sys.modules.get("pyqtgraph")
        return self._module

    def start_import(self) -> None:
        """Begin unless it is there already or under way; `ready` or `failed` follows."""
        if self._thread is None and self.module is None:
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


@cache
def loader() -> GraphLoader:
    """The loader of this process; call it first on the window's thread."""
    return GraphLoader()


def start_import() -> None:
    """Import pyqtgraph in the background, so that the first curve need not wait for it."""
    loader().start_import()
