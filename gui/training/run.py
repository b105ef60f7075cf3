"""One training or recorded run: how it stands, what is known of it, and what can be done."""

import math
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, Self

from PySide6.QtCore import QObject, Signal

from engine.errors import TrainingError
from engine.training.lines import Event, follow
from engine.training.plan import multiply_adds, n_parameters
from engine.training.record import STATE_FILE, TrainingRecord
from gui.training.process import TrainingProcess
from gui.training.shelf import (
    About,
    TrainingData,
    begun_with,
    data_words,
    model_facts,
    n_steps_saved,
    read_record,
)

Phase = Literal[
    "starting",
    "running",
    "pausing",
    "paused",
    "stopping",
    "stopped",
    "finishing",
    "finished",
    "failed",
    "recorded",
]
SAVE_MINUTES = 0.5  # a crash loses at most so much, and the step that was under way
_MODELS = ("last", "best")
_KILLED = -9


class TrainingRun(QObject):
    """Owns what is known of one run, and its process while there is one."""

    changed = Signal()  # anything but the list of models
    ended = Signal(str)  # its process is gone; the sentence is empty where that was asked for

    def __init__(self, folder: Path, title: str, about: About | None) -> None:
        super().__init__()
        self.folder = folder
        self.title = title
        self.about = about
        self.phase: Phase = "recorded"
        self.sentence = ""  # what is done, or why it failed
        self.record: TrainingRecord | None = read_record(folder)
        self.step = self.steps = 0
        self.tokens_per_second = math.nan
        self.seconds_left = math.nan
        self.vocab_size = 0  # 0: not known yet
        self.n_saved = 0  # steps
        self.model: dict[str, Any] = {}  # the settings of a recorded one
        self._process: TrainingProcess | None = None

    @classmethod
    def recorded(cls, folder: Path) -> Self:
        """A model that was trained before, and the record beside it."""
        run = cls(folder, f"Recorded: {folder.name}", None)
        run.model = model_facts(folder, "model")
        if run.record is not None:
            run.step = run.steps = len(run.record.losses)
        return run

    @classmethod
    def on_shelf(cls, folder: Path) -> Self:
        """A training as the last process left it.

        Raises:
            EngineError: the folder holds none, or a damaged one.
        """
        about = About.read(folder)
        run = cls(folder, about.title, about)
        run.steps = about.plan.steps
        run.step = run.n_saved = n_steps_saved(folder)
        if run.record is not None:
            run.record = run.record.until(run.step)
        run.phase, run.sentence = "stopped", ""
        last = model_facts(folder / "last")
        if last.get("step") == run.steps:
            run.phase = "finished"
            run.sentence = _result(last, "held_out_nats_")
        elif about.failure:
            run.phase, run.sentence = "failed", about.failure
        return run

    # What can be said

    @property
    def is_busy(self) -> bool:
        """Whether it computes now."""
        return self._process is not None and self.phase != "paused"

    @property
    def is_waiting(self) -> bool:
        """Whether its process is there and computes nothing."""
        return self._process is not None and self.phase == "paused"

    @property
    def can_go_on(self) -> bool:
        """Whether it could be started or resumed."""
        return self.phase in {"paused", "stopped", "failed"}

    @property
    def can_be_stopped(self) -> bool:
        """Whether its process is there and does not end anyway."""
        return self._process is not None and self.phase not in {"stopping", "finished", "failed"}

    @property
    def models(self) -> dict[str, Path]:
        """The models that can be kept or opened, by what they are called."""
        if self.phase == "recorded":
            return {"recorded": self.folder}
        if self.is_busy:
            return {}
        folders = {name: self.folder / name for name in _MODELS}
        return {name: each for name, each in folders.items() if model_facts(each)}

    @property
    def speed(self) -> float:
        """Multiply-adds per second; NaN before it is known."""
        if self.about is None or not self.vocab_size:
            return math.nan
        return self.tokens_per_second * multiply_adds(self.about.plan.config(self.vocab_size))

    @property
    def n_parameters(self) -> int | None:
        """How many weights the model has, once that is known."""
        if self.about is None or not self.vocab_size:
            return None
        return n_parameters(self.about.plan.config(self.vocab_size))

    # What can be done

    def start(self, plays: TrainingData, n_threads: int) -> None:
        """Start, or go on from the last save.

        Raises:
            TrainingError: the process cannot be started.
        """
        if self.about is None or self.is_busy:
            return
        if self._process is not None:
            self._process.order("resume")
            self._enter("running")
            return
        words = [
            *self.about.plan.words(begun_with(self.folder)),
            *data_words(self.folder, self.about, plays),
            *("--threads", str(n_threads), "--nice", "--save-minutes", str(SAVE_MINUTES)),
        ]
        if (self.folder / STATE_FILE).exists():
            words.append("--resume")
        try:
            self._keep_failure("")
            self._process = TrainingProcess(self.folder, words, self)
        except OSError as error:
            raise TrainingError(
                f"The training cannot be started: {error.strerror or error}."
            ) from error
        self._process.told.connect(self._hear)
        self._process.ended.connect(self._end)
        self._enter("starting", "Starting …")

    def pause(self) -> None:
        """Have it save and wait."""
        if self._process is not None and self.phase == "running":
            self._process.order("pause")
            self._enter("pausing", "Saving …")

    def stop(self) -> None:
        """Have it save and end."""
        if self._process is not None:
            self._process.order("stop")
            self._enter("stopping", "Saving …")

    def let_go(self) -> None:
        """Have it save and end without this program."""
        if self._process is not None:
            self._process.let_go()

    def kill(self) -> None:
        """End its process at once, with nothing saved."""
        if self._process is not None:
            self._process.kill()

    @property
    def process(self) -> TrainingProcess | None:
        """The process, as long as there is one."""
        return self._process

    # What is heard

    def _hear(self, event: Event) -> None:
        kind = event["event"]
        self.record = follow(self.record, event)
        self.step = event.get("step", self.step)
        if kind == "stage":
            self.phase = "finishing" if self.phase == "running" else self.phase
            self.sentence = event["sentence"]
        elif kind == "began":
            self.vocab_size = event["vocab_size"]
            self._enter_running()
        elif kind == "steps":
            self.tokens_per_second = event["tokens_per_second"]
            self.seconds_left = event["seconds_left"]
        elif kind == "saved":
            self.n_saved = event["step"]
        elif kind == "paused":
            self.phase, self.sentence = "paused", ""
        elif kind == "resumed":
            self._enter_running()
        elif kind == "stopped":
            self.phase, self.sentence = "stopping", ""
        elif kind == "finished":
            self.phase, self.sentence = "finished", _result(event)
        elif kind == "failed":
            self.phase, self.sentence = "failed", event["sentence"]
        self.changed.emit()

    def _enter_running(self) -> None:
        """Run, unless something else was asked for meanwhile."""
        if self.phase in {"starting", "running", "paused"}:
            self.phase, self.sentence = "running", ""

    def _enter(self, phase: Phase, sentence: str = "") -> None:
        self.phase, self.sentence = phase, sentence
        self.changed.emit()

    def _end(self, status: int, last_words: str) -> None:
        if self._process is not None:
            self._process.deleteLater()
            self._process = None
        self.n_saved = n_steps_saved(self.folder)
        if self.phase not in {"finished", "failed"}:
            self.phase = "stopped"
            if status:
                self.phase = "failed"
                self.sentence = _unexpected(status, last_words, self.n_saved)
            else:
                self.sentence = ""
        if self.phase == "failed":
            with suppress(OSError):  # a full disk may be why; the sentence is shown all the same
                self._keep_failure(self.sentence)
        self.changed.emit()
        self.ended.emit(self.sentence)

    def _keep_failure(self, sentence: str) -> None:
        if self.about is not None and self.about.failure != sentence:
            self.about = self.about.with_failure(sentence)
            self.about.write(self.folder)


def _result(facts: Event, prefix: str = "") -> str:
    try:
        return (
            f"Over the whole held-out text: {facts[prefix + 'per_token']:.3f} nats per token, "
            f"{facts[prefix + 'per_character']:.3f} per character."
        )
    except (KeyError, TypeError, ValueError):  # a file that somebody changed
        return ""


def _unexpected(status: int, last_words: str, n_saved: int) -> str:
    how = f"with exit status {status}"
    if status < 0:
        how = f"by signal {-status}"
        if status == _KILLED:
            how += " (the system does that when memory runs out)"
    said = f": {last_words}" if last_words else ""
    rest = f"It can go on from step {n_saved:,}, its last save." if n_saved else ""
    return f"The training was ended {how}{said}. {rest}".strip()
