"""A training in a process of its own: what it tells, what it obeys, what a sudden end costs."""

import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import engine.training.command
import engine.training.session
from engine.checkpoints.folder import load_checkpoint
from engine.folder_lock import FolderLock
from engine.training.lines import follow, from_line
from engine.training.record import RECORD_FILE, STATE_FILE, TrainingRecord, load_record
from engine.training.trainer import read_facts
from tests.engine.training_process import TINY, VERSE, Child, Event

FEW = replace(TINY, steps=12)
SAVE_OFTEN = "--save-minutes=0"


@pytest.fixture
def text(tmp_path: Path) -> Path:
    """A text file."""
    path = tmp_path / "verse.txt"
    path.write_text(VERSE * 20, encoding="utf-8")
    return path


@pytest.fixture
def children() -> Iterator[list[Child]]:
    """Those that a test started; none outlives it."""
    started: list[Child] = []
    yield started
    for child in started:
        child.process.kill()
        child.end()


def _followed(events: list[Event], record: TrainingRecord | None = None) -> TrainingRecord:
    for event in events:
        record = follow(record, event)
    assert record is not None
    return record


def _assert_same(one: TrainingRecord, other: TrainingRecord) -> None:
    assert (one.token_ids, one.tokens) == (other.token_ids, other.tokens)
    assert one.losses.tolist() == other.losses.tolist()
    assert len(one.moments) == len(other.moments)
    for first, second in zip(one.moments, other.moments, strict=True):
        assert (first.step, first.tokens) == (second.step, second.tokens)
        assert (first.held_out, first.sample) == (second.held_out, second.sample)
        assert first.repeat_loss == second.repeat_loss
        np.testing.assert_array_equal(first.roles, second.roles)
        np.testing.assert_array_equal(first.patterns, second.patterns)


def test_what_is_told_is_what_is_recorded(
    tmp_path: Path, text: Path, children: list[Child]
) -> None:
    """Line by line, every loss and every look; and in the end a model that loads."""
    out = tmp_path / "out"
    child = Child(out, text, plan=FEW)
    children.append(child)
    assert child.end() == 0
    record = _followed(child.events)
    assert [moment.step for moment in record.moments] == list(range(13))
    assert len(record.losses) == 12
    _assert_same(record, load_record(out / RECORD_FILE))
    (finished,) = child.of_kind("finished")
    facts = load_checkpoint(out / "last").facts
    assert finished["per_token"] == facts["held_out_nats_per_token"]
    assert finished["per_character"] == facts["held_out_nats_per_character"]
    (began,) = child.of_kind("began")
    assert (began["is_new"], began["step"]) == (True, 0)
    assert began["vocab_size"] == len(set(VERSE)) + 256


def test_a_line_that_is_no_event_is_passed_over() -> None:
    assert from_line("a library's warning") is None
    assert from_line("[1]") is None
    assert from_line('{"event": "saved", "step": 3}') == {"event": "saved", "step": 3}


def test_it_pauses_saved_goes_on_and_stops_saved(
    tmp_path: Path, text: Path, children: list[Child]
) -> None:
    """By lines on its input, and is saved unasked as often as was said.

    While it is paused nothing moves, and its model can be opened.
    """
    out = tmp_path / "out"
    child = Child(out, text, "--save-minutes=0.01")
    children.append(child)
    child.until_kind("steps")
    first = child.until_kind("saved")["step"]
    assert child.until_kind("saved")["step"] > first
    child.say("pause")
    paused = child.until_kind("paused")["step"]
    assert read_facts(out / STATE_FILE)["step"] == paused
    assert load_checkpoint(out / "last").facts["step"] == paused
    assert len(load_record(out / RECORD_FILE).losses) == paused
    child.say("resume")
    assert child.until_kind("resumed")["step"] == paused
    assert child.until_kind("steps")["step"] > paused
    child.say("stop")
    stopped = child.until_kind("stopped")["step"]
    assert child.end() == 0
    assert read_facts(out / STATE_FILE)["step"] == stopped
    assert load_checkpoint(out / "last").facts["step"] == stopped


def test_it_ends_saved_when_the_program_that_began_it_is_gone(
    tmp_path: Path, text: Path, children: list[Child]
) -> None:
    """Its input ends, and nobody reads its lines; no training goes on unseen."""
    out = tmp_path / "out"
    child = Child(out, text, "--save-minutes=60")
    children.append(child)
    step = child.until_kind("steps")["step"]
    assert child.process.stdin is not None
    assert child.process.stdout is not None
    child.process.stdout.close()
    child.process.stdin.close()
    assert child.process.wait() == 0
    assert read_facts(out / STATE_FILE)["step"] >= step


def test_a_killed_training_goes_on_from_its_last_save(
    tmp_path: Path, text: Path, children: list[Child]
) -> None:
    """With what it would have done anyway: the losses are those of one that ran through."""
    plan = replace(TINY, steps=60, batch=1)
    whole = Child(tmp_path / "whole", text, plan=plan)
    children.append(whole)
    assert whole.end() == 0
    out = tmp_path / "out"
    killed = Child(out, text, SAVE_OFTEN, plan=plan)
    children.append(killed)
    saved = killed.until(lambda event: event["event"] == "saved" and event["step"] >= 5)["step"]
    killed.process.send_signal(signal.SIGKILL)
    killed.end()
    assert killed.process.returncode == -signal.SIGKILL
    resumed = Child(out, text, "--resume", plan=plan)
    children.append(resumed)
    began = resumed.until_kind("began")
    assert not began["is_new"]
    assert began["step"] >= saved
    assert resumed.end() == 0
    _assert_same(load_record(out / RECORD_FILE), load_record(tmp_path / "whole" / RECORD_FILE))
    record = _followed(resumed.events, _followed(killed.events))
    _assert_same(record, load_record(out / RECORD_FILE))


def test_two_processes_do_not_write_one_training(
    tmp_path: Path,
    text: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The second gives up in one sentence; once the first has ended, it can begin."""
    monkeypatch.setattr(engine.training.session, "_LOCK_SECONDS", 0.0)
    out = tmp_path / "out"
    out.mkdir()
    words = [*FEW.words(), "--data", str(text), "--held-out-share=0.1", "--out", str(out)]
    with FolderLock(out, patience=0):
        assert engine.training.command.main(words) == 1
    assert "is being trained by another process; stop that one" in capsys.readouterr().err
    with FolderLock(out, patience=0):
        pass


def test_what_is_wrong_is_told_as_a_sentence(
    tmp_path: Path, text: Path, children: list[Child]
) -> None:
    text.write_text("abc", encoding="utf-8")
    child = Child(tmp_path / "out", text)
    children.append(child)
    assert child.end() == 1
    (failed,) = child.of_kind("failed")
    assert "is too short: 10% of it, which would be held out, is less than" in failed["sentence"]


def test_stopped_before_the_first_step_it_leaves_quietly(
    tmp_path: Path, text: Path, children: list[Child]
) -> None:
    child = Child(tmp_path / "out", text)
    children.append(child)
    child.say("stop")
    assert child.end() == 0
    assert not child.of_kind("failed")
    assert not child.of_kind("steps")
