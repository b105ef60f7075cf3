"""The engine's thread: jobs in order, latest wins, one signal for each."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from PySide6.QtCore import QThread
from pytestqt.qtbot import QtBot

from engine.errors import CancelledError, ConfigError
from gui.worker import Cancelled, EngineThread, Job

PATIENCE = 10.0  # seconds; what should happen happens at once


class Heard:
    """What an engine told, in order."""

    def __init__(self, engine: EngineThread) -> None:
        self.told: list[tuple[str, int, Any]] = []
        engine.answered.connect(lambda number, answer: self._note("answered", number, answer))
        engine.failed.connect(lambda number, error: self._note("failed", number, error))
        engine.crashed.connect(lambda number, error: self._note("crashed", number, error))
        engine.dropped.connect(lambda number: self._note("dropped", number, None))

    def _note(self, signal: str, number: int, what: Any) -> None:
        assert QThread.currentThread().isMainThread()
        self.told.append((signal, number, what))

    @property
    def ends(self) -> list[tuple[str, int]]:
        """Signals and numbers."""
        return [(signal, number) for signal, number, _what in self.told]


class Gate:
    """A job that runs until it is let go, or until it sees that it was replaced."""

    def __init__(self, *, looks: bool = True) -> None:
        self.begun, self.go = threading.Event(), threading.Event()
        self.looks = looks

    def work(self, void: Cancelled) -> str:
        """Wait."""
        self.begun.set()
        for _ in range(int(PATIENCE * 1000)):
            if self.go.wait(0.001):
                return "let go"
            if self.looks and void():
                raise CancelledError
        raise AssertionError("nobody let this job go")


@pytest.fixture
def engine(qapp: object) -> Iterator[EngineThread]:  # noqa: ARG001 - signals need one
    """A thread at work."""
    thread = EngineThread()
    thread.start()
    yield thread
    thread.close()


@pytest.fixture
def heard(engine: EngineThread) -> Heard:
    """What it tells."""
    return Heard(engine)


@pytest.fixture
def gate(engine: EngineThread) -> Iterator[Gate]:
    """The first job, an edit, under way; the thread is busy until it is let go."""
    gate = Gate()
    engine.submit(Job("edit", gate.work))
    assert gate.begun.wait(PATIENCE)
    yield gate
    gate.go.set()


def quick(answer: object = None) -> Callable[[Cancelled], object]:
    """Work that is done at once."""
    return lambda _void: answer


def test_it_tells_what_is_queued_and_whether_anything_else_is_to_be_done(
    qtbot: QtBot, engine: EngineThread, gate: Gate
) -> None:
    """An edit is under way; a check, and whatever else, counts until it is answered."""
    queued: list[str] = []
    engine.queued.connect(queued.append)
    engine.submit(Job("check", quick()))
    assert queued == ["check"]
    assert engine.awaits_others("check")
    gate.go.set()
    qtbot.waitUntil(lambda: not engine.awaits_others("check"))
    qtbot.waitUntil(lambda: not engine.awaits_others("nothing"))


def test_jobs_are_done_in_order_and_answered_by_their_numbers(
    qtbot: QtBot, engine: EngineThread, heard: Heard
) -> None:
    """Numbers grow, answers come as they are."""
    numbers = [engine.submit(Job("step", quick(name))) for name in "abc"]
    qtbot.waitUntil(lambda: len(heard.told) == 3)
    assert heard.told == [
        ("answered", number, name) for number, name in zip(numbers, "abc", strict=True)
    ]


def test_jobs_run_elsewhere_and_are_heard_here(
    qtbot: QtBot, engine: EngineThread, heard: Heard
) -> None:
    """The window's thread never computes."""
    threads: list[bool] = []
    engine.submit(Job("step", lambda _void: threads.append(QThread.currentThread().isMainThread())))
    qtbot.waitUntil(lambda: len(heard.told) == 1)
    assert threads == [False]


def test_an_expected_failure_and_a_bug_are_told_apart(
    qtbot: QtBot, engine: EngineThread, heard: Heard
) -> None:
    """Each is handed on whole, and the thread goes on working."""
    failure, bug = ConfigError("too small"), ZeroDivisionError("oops")

    def fail(_void: Cancelled) -> None:
        raise failure

    def crash(_void: Cancelled) -> None:
        raise bug

    engine.submit(Job("edit", fail))
    engine.submit(Job("edit", crash))
    engine.submit(Job("edit", quick("fine")))
    qtbot.waitUntil(lambda: len(heard.told) == 3)
    assert heard.told == [("failed", 1, failure), ("crashed", 2, bug), ("answered", 3, "fine")]
    assert bug.__traceback__ is not None


@pytest.mark.usefixtures("gate")
def test_the_latest_edit_wins(qtbot: QtBot, engine: EngineThread, heard: Heard) -> None:
    """The running one gives up, waiting ones are never run."""
    for _ in range(3):
        last = engine.submit(Job("edit", quick("latest"), frozenset({"edit"})))
    qtbot.waitUntil(lambda: len(heard.told) == 4)
    assert sorted(heard.ends) == [
        ("answered", last),
        ("dropped", 1),
        ("dropped", 2),
        ("dropped", 3),
    ]
    assert heard.told[-1] == ("answered", last, "latest")


@pytest.mark.usefixtures("gate")
def test_a_job_of_another_kind_is_not_replaced(
    qtbot: QtBot, engine: EngineThread, heard: Heard
) -> None:
    """Only what a job names gives way to it."""
    engine.submit(Job("look", quick()))
    engine.submit(Job("edit", quick(), frozenset({"edit"})))
    qtbot.waitUntil(lambda: len(heard.told) == 3)
    assert heard.ends == [("dropped", 1), ("answered", 2), ("answered", 3)]


def test_an_answer_that_is_on_its_way_can_still_be_replaced(
    qtbot: QtBot, engine: EngineThread, heard: Heard
) -> None:
    """What finished before the newer wish, but was not heard before it, is too late."""
    done = threading.Event()
    engine.submit(Job("step", lambda _void: "old"))
    engine.submit(Job("look", lambda _void: done.set()))
    assert done.wait(PATIENCE)  # without the event loop: nothing can be heard meanwhile
    assert heard.told == []
    engine.submit(Job("edit", quick("new"), frozenset({"step"})))
    qtbot.waitUntil(lambda: len(heard.told) == 3)
    assert heard.ends == [("dropped", 1), ("answered", 2), ("answered", 3)]


def test_what_cannot_be_taken_back_is_heard_once_it_is_done(
    qtbot: QtBot, engine: EngineThread, heard: Heard
) -> None:
    """Given up or replaced too late, its answer comes; in time, it is dropped like any other."""
    gate, done = Gate(), threading.Event()
    engine.submit(Job("open", quick("first"), is_final=True))
    engine.submit(Job("open", quick("second"), is_final=True))
    engine.submit(Job("look", lambda _void: done.set()))
    assert done.wait(PATIENCE)  # without the event loop: nothing can be heard meanwhile
    engine.submit(Job("open", gate.work, frozenset({"open"}), is_final=True))
    assert gate.begun.wait(PATIENCE)
    engine.give_up("open")
    qtbot.waitUntil(lambda: len(heard.told) == 4)
    assert heard.ends == [("answered", 1), ("answered", 2), ("answered", 3), ("dropped", 4)]


def test_a_replaced_job_that_does_not_look_is_dropped_when_it_ends(
    qtbot: QtBot, engine: EngineThread, heard: Heard
) -> None:
    """Its answer is never shown."""
    gate = Gate(looks=False)
    engine.submit(Job("edit", gate.work))
    assert gate.begun.wait(PATIENCE)
    engine.submit(Job("edit", quick("new"), frozenset({"edit"})))
    gate.go.set()
    qtbot.waitUntil(lambda: len(heard.told) == 2)
    assert heard.told == [("dropped", 1, None), ("answered", 2, "new")]


def test_a_replaced_failure_is_not_told_but_a_bug_is(
    qtbot: QtBot, engine: EngineThread, heard: Heard
) -> None:
    """Nobody asks for the old text any more; a bug stays one."""
    go, bug = threading.Event(), ZeroDivisionError()

    def fail(_void: Cancelled) -> None:
        go.wait(PATIENCE)
        raise ConfigError

    def crash(_void: Cancelled) -> None:
        raise bug

    engine.submit(Job("edit", fail))
    engine.submit(Job("step", crash))
    engine.submit(Job("look", lambda _void: done.set()))
    done = threading.Event()
    go.set()
    assert done.wait(PATIENCE)
    engine.submit(Job("edit", quick(), frozenset({"edit", "step"})))
    qtbot.waitUntil(lambda: len(heard.told) == 4)
    assert heard.ends == [("dropped", 1), ("crashed", 2), ("answered", 3), ("answered", 4)]


def test_what_a_step_goes_on_from_is_done_first(
    qtbot: QtBot, engine: EngineThread, heard: Heard, gate: Gate
) -> None:
    """A later move of the slider does not take the earlier one from under a step."""
    go_there, step = frozenset({"go"}), Job("step", quick(), is_relative=True)
    engine.submit(Job("go", quick(), go_there))
    engine.submit(Job("go", quick(), go_there))
    engine.submit(step)
    engine.submit(Job("go", quick(), go_there))
    gate.go.set()
    qtbot.waitUntil(lambda: len(heard.told) == 5)
    ends = sorted(heard.ends, key=lambda end: end[1])
    assert [signal for signal, _number in ends] == ["answered", "dropped", *["answered"] * 3]


@pytest.mark.usefixtures("gate")
def test_a_replaced_step_keeps_nothing_alive(
    qtbot: QtBot, engine: EngineThread, heard: Heard
) -> None:
    """An edit makes both the step and the edit before it void."""
    engine.submit(Job("step", quick(), is_relative=True))
    engine.submit(Job("edit", quick(), frozenset({"edit", "step"})))
    qtbot.waitUntil(lambda: len(heard.told) == 3)
    assert sorted(heard.ends) == [("answered", 3), ("dropped", 1), ("dropped", 2)]


@pytest.mark.usefixtures("gate")
def test_closing_waits_for_the_running_job_and_drops_the_rest(
    qtbot: QtBot, engine: EngineThread, heard: Heard
) -> None:
    """Afterwards the thread is gone and every job has had its signal."""
    engine.submit(Job("step", quick()))
    engine.close()
    assert engine.isFinished()
    qtbot.waitUntil(lambda: len(heard.told) == 2)
    assert sorted(heard.ends) == [("dropped", 1), ("dropped", 2)]


@pytest.mark.usefixtures("qapp")
def test_closing_twice_or_before_the_start_is_nothing_special() -> None:
    """Whatever way a program ends."""
    engine = EngineThread()
    engine.close()
    engine.close()
    assert not engine.isRunning()
