"""All runs of the lab: those in training, those that can go on, and those that were recorded."""

import os
import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from engine.errors import EngineError, TrainingError
from engine.training.check import TextFacts
from engine.training.plan import TrainingPlan, multiply_adds
from gui.settings import Settings
from gui.training.run import TrainingRun
from gui.training.shelf import (
    TrainingData,
    keep_model,
    make_training,
    recorded_folders,
    training_folders,
)

_SPEED = "training_speed"


class TrainingRuns(QObject):
    """Owns the runs. One computes at a time: two would halve each other's pace."""

    listed = Signal()  # a run came or went
    changed = Signal(object)  # TrainingRun
    told = Signal(str)  # one sentence for the user
    kept = Signal(object)  # the Path of a model that was kept

    def __init__(
        self,
        data_folder: Path,
        plays: TrainingData,
        bundled: Sequence[Path],
        settings: Settings,
        n_threads: int | None = None,
    ) -> None:
        super().__init__()
        self.shelf, self.models = data_folder / "trainings", data_folder / "models"
        self.plays = plays
        self._bundled = tuple(bundled)
        self._settings = settings
        # One core stays the window's.
        self._n_threads = n_threads or max(1, (os.cpu_count() or 2) - 1)
        self.trainings: list[TrainingRun] = []
        self.recorded: list[TrainingRun] = []
        self.notes: list[str] = []  # on what cannot be read
        self._read()

    @property
    def runs(self) -> list[TrainingRun]:
        """Trainings, the newest first, then what was recorded."""
        return [*self.trainings, *self.recorded]

    @property
    def busy(self) -> TrainingRun | None:
        """The one that computes."""
        return next((run for run in self.trainings if run.is_busy), None)

    @property
    def speed(self) -> float:
        """Multiply-adds per second of the latest training that was measured; 0 before."""
        speed: float = self._settings.read(_SPEED)
        return speed

    def make(self, plan: TrainingPlan, data: TrainingData) -> Path:
        """A folder for a new training; may be called on any thread.

        Raises:
            TrainingError: it cannot be written.
        """
        return make_training(self.shelf, plan, data)

    def add(self, folder: Path) -> TrainingRun:
        """Take a new training into the list."""
        run = self._adopt(TrainingRun.on_shelf(folder))
        self.trainings.insert(0, run)
        self.listed.emit()
        return run

    def start(self, run: TrainingRun) -> None:
        """Start a run, or let it go on.

        Raises:
            TrainingError: another one computes, or its process cannot be started.
        """
        busy = self.busy
        if busy is not None and busy is not run:
            raise TrainingError(f"“{busy.title}” is training; pause or stop it first.")
        for other in self.trainings:
            if other is not run and other.is_waiting:
                other.stop()
        run.start(self.plays, self._n_threads)

    def keep(self, run: TrainingRun, model: str, name: str) -> Path:
        """Copy a model of a run to the user's models; returns its folder.

        Raises:
            TrainingError: the name will not do, or nothing can be written.
        """
        folder = keep_model(run.models[model], self.models, name)
        self.recorded.append(self._adopt(TrainingRun.recorded(folder)))
        self.listed.emit()
        self.kept.emit(folder)
        return folder

    def discard(self, run: TrainingRun) -> None:
        """Remove a training and all that it wrote; nothing that was kept.

        Raises:
            TrainingError: it cannot be removed.
        """
        run.kill()  # it may be paused
        try:
            shutil.rmtree(run.folder)
        except OSError as error:
            raise TrainingError(
                f"{run.folder} cannot be removed: {error.strerror or error}."
            ) from error
        self.trainings.remove(run)
        run.deleteLater()
        self.listed.emit()

    def let_go(self) -> None:
        """Have all of them save and end; they can be resumed at the next start."""
        for run in self.trainings:
            self._measure(run)
            run.let_go()

    def _read(self) -> None:
        for folder in training_folders(self.shelf):
            try:
                self.trainings.append(self._adopt(TrainingRun.on_shelf(folder)))
            except EngineError as error:
                self.notes.append(str(error))
        for folder in recorded_folders([*self._bundled, *sorted(self.models.glob("*"))]):
            run = self._adopt(TrainingRun.recorded(folder))
            if run.record is not None and run.record.moments:
                self.recorded.append(run)

    def _adopt(self, run: TrainingRun) -> TrainingRun:
        run.setParent(self)
        run.changed.connect(partial(self.changed.emit, run))
        run.ended.connect(partial(self._on_end, run))
        return run

    def _on_end(self, run: TrainingRun, sentence: str) -> None:
        self._measure(run)
        if sentence:
            how = "is finished" if run.phase == "finished" else "failed"
            self.told.emit(f"“{run.title}” {how}. {sentence}")

    def _measure(self, run: TrainingRun) -> None:
        if run.speed > 0:  # NaN is not
            self._settings.write(_SPEED, run.speed)


def seconds_needed(facts: TextFacts, plan: TrainingPlan, speed: float) -> float:
    """How long a training will take, by the speed of an earlier one."""
    n_tokens = plan.steps * plan.batch * plan.context
    return n_tokens * multiply_adds(plan.config(facts.vocab_size)) / speed
