"""A training in a process of its own, as the window starts one, for tests that talk to it."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from engine.training.plan import TrainingPlan

ROOT = Path(__file__).parents[2]
VERSE = "Full fathom five thy father lies;\nOf his bones are coral made;\n"
Event = dict[str, Any]

TINY = TrainingPlan(
    n_layer=1, n_head=2, d_model=16, context=16, steps=100_000, batch=2, copy_steps=0
)


class Child:
    """One process, its events so far, and a way to wait for the next."""

    def __init__(self, out: Path, text: Path, *more: str, plan: TrainingPlan = TINY) -> None:
        self.events: list[Event] = []
        words = [*plan.words(), "--data", str(text), "--held-out-share=0.1", "--threads=1"]
        self.process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            [sys.executable, "-m", "engine.training", *words, "--out", str(out), "--json", *more],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            text=True,
        )

    def until(self, holds: Callable[[Event], object]) -> Event:
        """Read on until an event is the wanted one."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.events.append(json.loads(line))
            if holds(self.events[-1]):
                return self.events[-1]
        raise AssertionError(f"it never came: {self.events[-3:]}")

    def until_kind(self, kind: str) -> Event:
        """The next event of a kind."""
        return self.until(lambda event: event["event"] == kind)

    def say(self, order: str) -> None:
        """One order."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{order}\n")
        self.process.stdin.flush()

    def end(self) -> int:
        """Read what it still says, and wait."""
        assert self.process.stdout is not None
        assert self.process.stdin is not None
        if not self.process.stdout.closed:
            self.events += map(json.loads, self.process.stdout)
        self.process.stdout.close()
        self.process.stdin.close()
        return self.process.wait()

    def of_kind(self, kind: str) -> list[Event]:
        """All events of a kind so far."""
        return [event for event in self.events if event["event"] == kind]
