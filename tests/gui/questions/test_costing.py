"""Measuring beside the text: real experiments, in a whole window, that never stand in the way."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from engine.cost import machine, room
from engine.cost.measurements import BothWays, Lab, OneByOne, ladder
from gui.costs import Costs
from gui.panels.cost import CostPanel
from gui.panels.two_ways import TwoWaysPanel
from gui.questions import costing
from gui.questions.costing import _Work
from gui.wishes import MeasureCost, OpenModel, Play, SetCosts, SetMask, StopMeasuringCost
from tests.gui.whole_window import WholeWindow, wait_until


@pytest.fixture(autouse=True)
def _quick_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("_SIDE", 8), ("_PIECES", 2), ("_ROWS", 8), ("_COLUMNS", 8)):
        monkeypatch.setattr(machine, name, value)


@pytest.fixture
def window(qapp: QApplication, small_model: Path) -> Iterator[WholeWindow]:  # noqa: ARG001
    """A window on twelve characters, read by a model that sees 64."""
    whole = WholeWindow(model=small_model, prompt="to be or not").start()
    yield whole
    whole.close()


def costs(window: WholeWindow) -> Costs:
    """What is known of the costs."""
    return window.state.costs


def rest(window: WholeWindow) -> None:
    """Wait until nothing is measured any more."""
    wait_until(lambda: not costs(window).running, "the end of the experiment")
    window.idle()


def ask(window: WholeWindow, *wanted: object) -> None:
    """What panels wish for, without waiting for what comes of it."""
    assert window.app.controller is not None
    for each in wanted:
        window.app.controller.fulfil(each)


def test_a_key_on_the_button_decodes_both_ways(window: WholeWindow) -> None:
    window.window.go_to_panel("two_ways")
    panel = window.panel("two_ways")
    assert isinstance(panel, TwoWaysPanel)
    ask(window, SetCosts({"n_steps": 6}))
    panel.run_both.button.setFocus()
    QTest.keyClick(panel.run_both.button, Qt.Key.Key_Space)
    assert costs(window).running == "both ways"
    rest(window)
    measured = costs(window).both_ways
    assert measured is not None
    both: BothWays = measured.found
    assert both.is_done
    assert both.n_same == 6
    assert both.column("rows_without").tolist() == [13, 14, 15, 16, 17, 18]
    assert panel.totals.rows[0][1:3] == ("6", "93")
    assert panel.agreement.text().startswith("✓")


def test_the_decoding_is_the_one_that_stepping_shows(window: WholeWindow) -> None:
    """The same sampling with the same seed draws the same tokens."""
    ask(window, SetCosts({"n_steps": 5}), MeasureCost("both ways"))
    rest(window)
    measured = costs(window).both_ways
    assert measured is not None
    for _ in range(5):
        window.press("PgDown", window.window)
        window.idle()
    drawn = window.reading.session.token_ids[-5:].tolist()
    assert [step.token_id for step in measured.found.steps] == drawn


def test_reading_both_ways_finds_equal_rows(window: WholeWindow) -> None:
    ask(window, MeasureCost("one by one"))
    rest(window)
    measured = costs(window).one_by_one
    assert measured is not None
    one: OneByOne = measured.found
    assert one.is_done
    assert one.n_equal == one.n_tokens == 12


def test_a_sweep_comes_in_pieces_and_to_an_end(window: WholeWindow) -> None:
    seen: list[int] = []

    def note(*_change: object) -> None:
        lab = costs(window).lab
        if lab is not None:
            seen.append(lab.found.n_done)

    window.app.store.changed.connect(note)
    ask(window, SetCosts({"longest": 1024}), MeasureCost("sweep"))
    rest(window)
    measured = costs(window).lab
    assert measured is not None
    lab: Lab = measured.found
    assert lab.is_done
    assert lab.lengths.tolist() == ladder(1024)
    assert seen == sorted(seen)


def test_typing_comes_before_the_next_piece(window: WholeWindow) -> None:
    """Each key is answered while the sweep goes on."""
    ask(window, SetCosts({"longest": 200_000}), MeasureCost("sweep"))
    wait_until(lambda: costs(window).lab is not None, "the first piece")
    window.type("abc")
    wait_until(lambda: "abc" in window.reading.document.text, "the text")
    assert costs(window).running == "sweep"
    before = costs(window).lab
    wait_until(lambda: costs(window).lab is not before, "another piece")
    ask(window, StopMeasuringCost())
    assert costs(window).running == ""
    window.idle()


def test_whoever_types_has_the_engine_to_himself(window: WholeWindow) -> None:
    """From the first key on no piece is asked for until it has been quiet; then all lengths are."""
    assert window.app.controller is not None
    quiet = window.app.controller._costing.quiet
    ask(window, SetCosts({"longest": 2048}), MeasureCost("sweep"))
    wait_until(lambda: (lab := costs(window).lab) and lab.found.points, "a point")
    quiet.setInterval(10_000_000)  # nobody is ever quiet for so long
    asked: list[str] = []
    window.app.controller._engine.queued.connect(asked.append)
    for text in ("a", "ab", "abc"):
        window.type(text[-1])
        wait_until(lambda text=text: text in window.reading.document.text, "the text")
    wait_until(lambda: window.state.cache_check, "the check that follows the last key")
    wait_until(lambda: costs(window).is_resting, "the sweep to rest")
    assert asked.count("edit") == 3
    assert asked[0] == "edit"
    assert costing.KIND not in asked
    assert costs(window).running == "sweep"
    panel = window.panel("cost")
    assert isinstance(panel, CostPanel)
    window.window.go_to_panel("cost")
    assert panel.run.said.text().startswith("waiting until nothing else is asked for")
    quiet.start(0)
    rest(window)
    measured = costs(window).lab
    assert measured is not None
    assert measured.found.is_done
    assert measured.found.lengths.tolist() == ladder(2048)
    assert not costs(window).is_resting


def test_a_sweep_rests_while_text_is_played(window: WholeWindow) -> None:
    """And goes on when nobody plays any more."""
    assert window.app.controller is not None
    quiet = window.app.controller._costing.quiet
    ask(window, SetCosts({"longest": 1024}), MeasureCost("sweep"), Play("play"))
    wait_until(lambda: costs(window).is_resting, "the sweep to rest")
    over: list[bool] = []
    quiet.timeout.connect(lambda: over.append(costs(window).is_resting))
    quiet.start(0)
    wait_until(lambda: len(over) > 2, "a while to be over more than once")
    assert window.state.playing
    assert all(over)
    ask(window, Play(""))
    rest(window)
    assert costs(window).lab is not None


def test_an_interrupted_piece_tells_nothing_while_others_wait() -> None:
    """What it found is told with the next one, when nobody waits for the window any more."""
    waits = [False, True, False]
    work = _Work(lambda _scope, _waited: iter(["one", "two", "three"]), lambda: waits.pop(0))
    scope: Any = None
    interrupted = work.piece(scope, lambda: False)
    assert (interrupted.found, interrupted.is_last) == (None, False)
    after = work.piece(scope, lambda: False)
    assert (after.found, after.is_last) == ("three", True)


def test_stopping_keeps_what_is_known(window: WholeWindow) -> None:
    ask(window, SetCosts({"longest": 200_000}), MeasureCost("sweep"))
    wait_until(lambda: (lab := costs(window).lab) and lab.found.points, "a point")
    ask(window, StopMeasuringCost())
    measured = costs(window).lab
    assert measured is not None
    n_points = len(measured.found.points)
    window.type("x")
    window.idle()
    assert costs(window).running == ""
    after = costs(window).lab
    assert after is not None
    assert len(after.found.points) == n_points
    assert not after.found.is_done


def test_another_experiment_ends_the_one_before(window: WholeWindow) -> None:
    ask(window, SetCosts({"longest": 200_000}), MeasureCost("sweep"), MeasureCost("one by one"))
    assert costs(window).running == "one by one"
    rest(window)
    assert costs(window).one_by_one is not None
    assert costs(window).lab is None


def test_another_model_ends_it(window: WholeWindow, make_model: Callable[..., Path]) -> None:
    """Its weights are not kept alive by a sweep."""
    ask(window, SetCosts({"longest": 200_000}), MeasureCost("sweep"))
    wait_until(lambda: costs(window).lab is not None, "the first piece")
    ask(window, OpenModel(make_model("other", seed=2)))
    wait_until(lambda: window.reading.info.name == "other", "the other model")
    assert costs(window).running == ""
    window.idle()


def test_another_model_ends_a_sweep_that_rests(
    window: WholeWindow, make_model: Callable[..., Path]
) -> None:
    """No job of its own is under way then that the other model could replace."""
    assert window.app.controller is not None
    window.app.controller._costing.quiet.setInterval(10_000_000)
    ask(window, SetCosts({"longest": 200_000}), MeasureCost("sweep"))
    wait_until(lambda: costs(window).lab is not None, "the first piece")
    window.type("a")
    wait_until(lambda: costs(window).is_resting, "the sweep to rest")
    ask(window, OpenModel(make_model("other", seed=2)))
    assert costs(window).running == ""
    assert not costs(window).is_resting
    wait_until(lambda: window.reading.info.name == "other", "the other model")
    window.idle()


def test_closing_ends_it(window: WholeWindow) -> None:
    """Nothing is left running, which every test is asked for."""
    ask(window, SetCosts({"longest": 200_000}), MeasureCost("sweep"))
    wait_until(lambda: costs(window).lab is not None, "the first piece")
    window.close()


def test_without_the_mask_it_says_why_not(window: WholeWindow) -> None:
    ask(window, SetMask({"mask": "none"}))
    window.idle()
    ask(window, MeasureCost("both ways"))
    rest(window)
    assert "Without the mask" in costs(window).obstacles["both ways"]
    ask(window, SetMask({"mask": "causal"}))
    window.idle()
    ask(window, SetCosts({"n_steps": 1}), MeasureCost("both ways"))
    rest(window)
    assert costs(window).obstacles == {}
    assert costs(window).both_ways is not None


def test_in_a_full_context_nothing_can_be_decoded(window: WholeWindow) -> None:
    window.editor.setPlainText("a" * 64)
    window.idle()
    ask(window, MeasureCost("both ways"))
    rest(window)
    assert "sees at most 64 tokens" in costs(window).obstacles["both ways"]


def test_without_a_text_there_is_nothing_to_go_on_from(window: WholeWindow) -> None:
    window.editor.setPlainText("")
    window.idle()
    ask(window, MeasureCost("one by one"))
    assert "type something first" in costs(window).obstacles["one by one"]
    assert costs(window).running == ""


def test_what_memory_has_no_room_for_is_not_tried(
    window: WholeWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "available_bytes", lambda: 300_000_000)
    ask(window, SetCosts({"longest": 1_000_000}), MeasureCost("sweep"))
    assert "286 MiB are free" in costs(window).obstacles["sweep"]
    assert costs(window).running == ""
    assert costs(window).lab is None


def test_a_bug_in_an_experiment_is_shown_as_one(
    window: WholeWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And ends it; the text goes on."""
    told: list[str] = []
    window.app.messages.listen(lambda message: told.append(message.sentence))

    def broken(*_: object) -> Iterator[object]:
        raise ZeroDivisionError("by design")
        yield

    monkeypatch.setattr("engine.scope.sweep", broken)
    ask(window, MeasureCost("sweep"))
    rest(window)
    assert any("This is a bug: ZeroDivisionError: by design" in each for each in told)
    window.type("x")
    window.idle()
    assert "x" in window.reading.document.text
