"""Who hears of a training: somebody at a terminal, or a program that reads lines of JSON."""

import os
import sys
import time
from pathlib import Path
from typing import Any, Protocol

from engine.config import ModelConfig
from engine.training.lines import began_facts, moment_facts, steps_facts, to_line
from engine.training.record import HeldOutLoss, Moment, Progress, TrainingRecord

_LINE_SECONDS = 0.2  # at least so long between two lines on steps


class Teller(Protocol):
    """What there is to tell of a training, in the order in which it happens."""

    def stage(self, sentence: str) -> None:
        """What is done now, before the first step."""

    def began(
        self, record: TrainingRecord, step: int, config: ModelConfig, *, is_new: bool
    ) -> None:
        """The first step is next, or that after `step`."""

    def stepped(self, progress: Progress) -> None:
        """One more step is done."""

    def looked(self, moment: Moment) -> None:
        """The model was looked at."""

    def saved(self, step: int) -> None:
        """So far nothing can be lost."""

    def paused(self, step: int) -> None:
        """It is saved and waits."""

    def resumed(self, step: int) -> None:
        """It goes on."""

    def stopped(self, step: int, out: Path) -> None:
        """It is saved and ends before the last step."""

    def given_up(self, sentence: str) -> None:
        """It ends before the first step."""

    def finished(self, held_out: HeldOutLoss, out: Path) -> None:
        """All is done; the loss over the whole held-out text."""

    def failed(self, sentence: str) -> None:
        """It ends here."""


class ToTerminal:
    """A line now and then, for somebody who reads along."""

    def __init__(self, report_steps: int) -> None:
        self._report_steps = report_steps

    def stage(self, sentence: str) -> None:
        """Nothing: it takes seconds."""

    def began(
        self, record: TrainingRecord, step: int, config: ModelConfig, *, is_new: bool
    ) -> None:
        """Nothing: the first step will say it."""

    def stepped(self, progress: Progress) -> None:
        """One line in `report_steps`, and one for each look at the held-out text."""
        if progress.held_out is not None or progress.step % self._report_steps == 0:
            print(describe(progress), flush=True)

    def looked(self, moment: Moment) -> None:
        """Nothing: the step says it."""

    def saved(self, step: int) -> None:
        """Nothing: it is as it should be."""

    def paused(self, step: int) -> None:
        """Where it stands."""
        print(f"Paused and saved at step {step}.", flush=True)

    def resumed(self, step: int) -> None:
        """Nothing: the next step says it."""

    def stopped(self, step: int, out: Path) -> None:  # noqa: ARG002 - the last line told it
        """How to go on."""
        print(f"Stopped and saved in {out}; the same command with --resume goes on.")

    def given_up(self, sentence: str) -> None:
        """That it was heard."""
        print(sentence)

    def finished(self, held_out: HeldOutLoss, out: Path) -> None:
        """What it came to."""
        print(
            f"Done: {held_out.per_token:.4f} nats per token, {held_out.per_character:.4f} nats "
            f"per character over the whole held-out text; the model is in {out / 'last'}."
        )

    def failed(self, sentence: str) -> None:
        """To the error stream."""
        print(f"Error: {sentence}", file=sys.stderr)


class ToProgram:
    """Lines of JSON, a few in a second at most; `engine.training.lines` says what is in them."""

    def __init__(self) -> None:
        self._losses: list[float] = []
        self._progress: Progress | None = None
        self._due = 0.0

    def stage(self, sentence: str) -> None:
        """What is done now."""
        self._tell("stage", sentence=sentence)

    def began(
        self, record: TrainingRecord, step: int, config: ModelConfig, *, is_new: bool
    ) -> None:
        """What there will be to draw."""
        facts = {"is_new": is_new, "step": step, "vocab_size": config.vocab_size}
        self._tell("began", **facts, **began_facts(record))

    def stepped(self, progress: Progress) -> None:
        """Gather steps until a line is due."""
        self._losses.append(progress.loss)
        self._progress = progress
        if time.monotonic() >= self._due:
            self._tell_steps()

    def looked(self, moment: Moment) -> None:
        """The moment, after the steps that led to it."""
        self._tell_steps()
        self._tell("moment", **moment_facts(moment))

    def saved(self, step: int) -> None:
        """At which step."""
        self._tell_at("saved", step)

    def paused(self, step: int) -> None:
        """At which step."""
        self._tell_at("paused", step)

    def resumed(self, step: int) -> None:
        """At which step."""
        self._tell_at("resumed", step)

    def stopped(self, step: int, out: Path) -> None:  # noqa: ARG002 - the program knows it
        """At which step."""
        self._tell_at("stopped", step)

    def given_up(self, sentence: str) -> None:
        """Nothing: its end says it."""

    def finished(self, held_out: HeldOutLoss, out: Path) -> None:  # noqa: ARG002 - as above
        """What it came to."""
        self._tell_steps()
        losses = {"per_token": held_out.per_token, "per_character": held_out.per_character}
        self._tell("finished", **losses)

    def failed(self, sentence: str) -> None:
        """Why."""
        self._tell_steps()
        self._tell("failed", sentence=sentence)

    def _tell_at(self, event: str, step: int) -> None:
        self._tell_steps()
        self._tell(event, step=step)

    def _tell_steps(self) -> None:
        if self._progress is not None:
            self._tell("steps", **steps_facts(self._losses, self._progress))
            self._losses, self._progress = [], None
            self._due = time.monotonic() + _LINE_SECONDS

    def _tell(self, event: str, **facts: Any) -> None:  # noqa: ANN401 - what JSON can say
        try:
            print(to_line(event, **facts), flush=True)
        except BrokenPipeError:
            # Whoever listened is gone, which the end of the input says too; save and end in peace.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def describe(progress: Progress) -> str:
    """One line for the terminal."""
    minutes, seconds = divmod(round(progress.seconds_left), 60)
    line = (
        f"step {progress.step}/{progress.steps}  loss {progress.loss:.3f}  "
        f"{progress.tokens_per_second:.0f} tokens/s  {minutes}:{seconds:02} left"
    )
    if progress.held_out is not None:
        line += (
            f"  held out {progress.held_out.per_token:.4f} nats/token, "
            f"{progress.held_out.per_character:.4f} nats/character"
        )
    return line
