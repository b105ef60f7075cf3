"""Packs a model's matrices while the model is used, so that nobody waits for that."""

from threading import Event, Thread

from engine.matrices import unpacked
from engine.model import Transformer


class Packing:
    """Owns the thread, which takes one matrix after another."""

    def __init__(self, model: Transformer) -> None:
        self._enough = Event()
        self._thread = Thread(target=self._work, args=(model,), name="packing")
        self._thread.start()

    def _work(self, model: Transformer) -> None:
        for matrix in unpacked(model):
            if self._enough.is_set():
                return
            matrix.pack()

    def finish(self) -> None:
        """Wait until all are packed."""
        self._thread.join()

    def stop(self) -> None:
        """Pack no more after the one at hand, and wait for that."""
        self._enough.set()
        self._thread.join()
