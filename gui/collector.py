"""Looks for garbage cycles on the window's thread, and sees that no other thread does.

When a callable that a signal is connected to dies, PySide disconnects it: it takes one of Qt's
locks and, with that in its hands, waits for the interpreter. Python collects on whichever thread
makes the next object. Were that the engine's, it could wait for the window's thread while that one,
holding the interpreter, waits for the same lock to connect something: for ever.
"""

import gc

from PySide6.QtCore import QObject, QTimer

_EVERY_MS = 1000


class Collector(QObject):
    """Owns when garbage is collected while the window is open: as often as Python would at most."""

    def __init__(self) -> None:
        super().__init__()
        self._was_enabled = gc.isenabled()
        self._timer = QTimer(self, interval=_EVERY_MS)
        self._timer.timeout.connect(self.collect)

    def start(self) -> None:
        """Collect from now on, among what comes from now on: what a start makes stays anyway."""
        gc.disable()
        gc.freeze()
        self._timer.start()

    def stop(self) -> None:
        """Leave it to Python again, if it was left to Python before."""
        self._timer.stop()
        if self._was_enabled:
            gc.enable()

    def collect(self) -> None:
        """Collect the oldest generation that is due; by Python's own counts and thresholds."""
        counts, thresholds = gc.get_count(), gc.get_threshold()
        for generation in (2, 1, 0):
            if counts[generation] > thresholds[generation]:
                gc.collect(generation)
                return
