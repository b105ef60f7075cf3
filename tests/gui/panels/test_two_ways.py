"""Decoding with and without the cache, and reading at once and in turn, as the panel shows them."""

from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from engine.conditions import Conditions
from engine.cost.measurements import BothWays, DecodeStep, OneByOne
from engine.reading import Reading
from engine.scope import Scope
from gui import graphs
from gui.costs import Costs, Measured
from gui.panels.two_ways import CHANGED, TwoWaysPanel
from gui.state import Display
from gui.theme import THEMES
from gui.view import View
from gui.wishes import MeasureCost, SetCosts, StopMeasuringCost, Wish
from tests.gui.tiny_scope import house, tiny_scope, view_of

STEPS = (  # with / without: 1 / 6 rows, 2 / 12 k multiply-adds, 10 / 30 ms; then 7, 14, 50
    DecodeStep(6, 3, 1, 6, 2000, 12_000, 0.010, 0.030, 2e-6, same_draw=True),
    DecodeStep(7, 4, 1, 7, 2000, 14_000, 0.010, 0.050, 1e-6, same_draw=True),
)


@pytest.fixture
def panel(window: QWidget) -> TwoWaysPanel:
    """A shown panel in a window that leaves it room."""
    widget = TwoWaysPanel()
    house(window, widget, 1200, 380)
    return widget


@pytest.fixture
def scope() -> Scope:
    """A model of two layers."""
    return tiny_scope()


def view_with(reading: Reading, **fields: Any) -> View:
    """What the window shows while this is known of the costs."""
    return view_of(reading, costs=Costs(**fields))


def decoded(reading: Reading, *steps: DecodeStep, wanted: int = 2) -> Measured[BothWays]:
    """So many steps of both ways after five tokens."""
    return Measured(reading, BothWays(5, wanted, 0.02, steps))


def is_seen_whole(widget: QWidget) -> bool:
    """Whether nothing of it is cut off, or scrolled away."""
    return widget.isVisible() and widget.visibleRegion().boundingRect() == widget.rect()


def press(panel: QWidget, key: Qt.Key = Qt.Key.Key_Space) -> None:
    """A key, on whatever has the keyboard."""
    panel.setFocus()
    QTest.keyClick(panel, key)


def test_steps_and_the_button_ask_for_decoding_both_ways(
    panel: TwoWaysPanel, wishes: list[Wish], scope: Scope
) -> None:
    panel.show_view(view_of(scope.edit("to be")))
    panel.steps.setFocus()
    panel.steps.selectAll()
    QTest.keyClicks(panel.steps, "12")
    QTest.keyClick(panel.steps, Qt.Key.Key_Return)
    press(panel.run_both.button)
    press(panel.run_one.button)
    assert wishes == [
        SetCosts({"n_steps": 12}),
        MeasureCost("both ways"),
        MeasureCost("one by one"),
    ]


@pytest.mark.parametrize(("typed", "said"), [("0", "steps = 0 is not"), ("x", "no whole number")])
def test_impossible_steps_are_refused_in_a_sentence(
    panel: TwoWaysPanel, wishes: list[Wish], scope: Scope, typed: str, said: str
) -> None:
    panel.show_view(view_of(scope.edit("to be")))
    panel.steps.selectAll()
    QTest.keyClicks(panel.steps, typed)
    QTest.keyClick(panel.steps, Qt.Key.Key_Return)
    assert said in panel.complaint.text()
    assert wishes == []


def test_while_it_runs_the_button_ends_it(
    panel: TwoWaysPanel, wishes: list[Wish], scope: Scope
) -> None:
    reading = scope.edit("to be")
    view = view_with(reading, running="both ways", both_ways=decoded(reading, STEPS[0]))
    panel.show_view(view)
    assert panel.run_both.button.text() == "Stop"
    assert panel.run_one.button.text() == "Read both ways"
    assert panel.run_both.said.text() == "1 of 2 steps, 46%, after a text of 5 tokens"
    resting = view_with(
        reading, running="both ways", both_ways=decoded(reading, STEPS[0]), is_resting=True
    )
    panel.show_view(resting)
    said = "waiting until nothing else is asked for, at 46%"
    assert panel.run_both.said.text() == said
    press(panel.run_both.button)
    assert wishes == [StopMeasuringCost()]


def test_totals_stand_beside_each_other(panel: TwoWaysPanel, scope: Scope) -> None:
    """Sums of the two steps, and how many times as much it is without the cache."""
    reading = scope.edit("to be")
    panel.show_view(view_with(reading, both_ways=decoded(reading, *STEPS)))
    assert panel.run_both.said.text() == "2 of 2 steps, after a text of 5 tokens"
    assert panel.totals.rows == (
        ("rows of keys and values", "2", "13", "6.5 ×"),
        ("multiply-adds", "4 k", "26 k", "6.5 ×"),
        ("time", "20 ms", "80 ms", "4 ×"),
    )
    assert panel.agreement.text().startswith("✓ The logits of both ways differ by at most 2.0e-06")
    assert "the same next token at 2 of 2 steps" in panel.agreement.text()


@pytest.mark.parametrize("theme", ["light", "projector"])
def test_whether_both_ways_gave_the_same_is_seen_without_scrolling(
    qtbot: QtBot, window: QWidget, panel: TwoWaysPanel, scope: Scope, theme: str
) -> None:
    """In the middle of a small window, below what was pressed and above the curves."""
    house(window, panel, 550, 340)
    reading, display = scope.edit("to be"), Display(theme=THEMES[theme])
    one = Measured(reading, OneByOne(5, 0.004, 1000, (0.002,) * 5, 800, 3e-7, 4e-6, 5))
    for verdict, costs in (
        (panel.agreement, Costs(both_ways=decoded(reading, *STEPS))),
        (panel.equality, Costs(one_by_one=one)),
    ):
        panel.show_view(view_of(reading, costs=costs, display=display))
        qtbot.waitUntil(lambda verdict=verdict: is_seen_whole(verdict))


def test_results_that_differ_are_crossed(panel: TwoWaysPanel, scope: Scope) -> None:
    """By their size, or because another token would have been drawn."""
    reading = scope.edit("to be")
    far = DecodeStep(6, 3, 1, 6, 1, 1, 0.1, 0.1, 0.5, same_draw=True)
    other = DecodeStep(6, 3, 1, 6, 1, 1, 0.1, 0.1, 1e-7, same_draw=False)
    for step in (far, other):
        panel.show_view(view_with(reading, both_ways=decoded(reading, step)))
        assert panel.agreement.text().startswith("✗")


def test_curves_hold_every_step(qtbot: QtBot, panel: TwoWaysPanel, scope: Scope) -> None:
    reading = scope.edit("to be")
    panel.show_view(view_with(reading, both_ways=decoded(reading, *STEPS)))
    graphs.start_import()
    charts = panel.rows_chart, panel.time_chart, panel.work_chart
    qtbot.waitUntil(lambda: all(chart.is_drawn for chart in charts), timeout=20_000)
    found = []
    for chart in charts:
        assert chart._plot is not None
        found.append([np.array(item.getData()[1]).tolist() for item in chart._plot._items])
    assert found[0] == [[1, 1], [6, 7]]
    np.testing.assert_allclose(found[1], [[10, 10], [30, 50]])
    np.testing.assert_allclose(found[2], [[0.002, 0.002], [0.012, 0.014]])


def test_reading_one_by_one_shows_both_times(panel: TwoWaysPanel, scope: Scope) -> None:
    reading = scope.edit("to be")
    one = OneByOne(5, 0.004, 1000, (0.002,) * 5, 800, 3e-7, 4e-6, 5)
    panel.show_view(view_with(reading, one_by_one=Measured(reading, one)))
    assert panel.turns.rows == (
        ("time", "4 ms", "10 ms", "2.5 ×"),
        ("multiply-adds", "1 k", "800", "0.8 ×"),
    )
    assert panel.equality.text().startswith("✓ 5 of 5 tokens have the same keys, values and logits")
    assert "3.0e-07 of keys and values, 4.0e-06 of logits" in panel.equality.text()


def test_what_was_stopped_says_how_far_it_came(panel: TwoWaysPanel, scope: Scope) -> None:
    """And compares no part of it with the whole."""
    reading = scope.edit("to be")
    one = OneByOne(5, 0.004, 1000, (0.002,) * 2, 300, 3e-7, 4e-6, 1)
    both = decoded(reading, STEPS[0])
    panel.show_view(view_with(reading, both_ways=both, one_by_one=Measured(reading, one)))
    assert panel.run_one.said.text() == "2 of 5 tokens; stopped"
    assert panel.run_both.said.text() == "1 of 2 steps; stopped, after a text of 5 tokens"
    assert [row[3] for row in panel.turns.rows] == ["—", "—"]
    assert panel.equality.text().startswith("✗ 1 of 2")


def test_pointing_at_a_step_tells_all_its_digits(
    qtbot: QtBot, panel: TwoWaysPanel, scope: Scope
) -> None:
    """The latest if none is pointed at."""
    reading = scope.edit("to be")
    panel.show_view(view_with(reading, both_ways=decoded(reading, *STEPS)))
    graphs.start_import()
    qtbot.waitUntil(lambda: panel.time_chart.is_drawn, timeout=20_000)
    tip = panel.time_chart.tip_at(panel.time_chart.place_at(1))
    assert tip.startswith("Step 1: milliseconds with the cache 10.0; milliseconds without 30.0")
    assert "multiply-adds without 12000" in tip
    figures = {figure.name: figure.digits for figure in panel.figures()}
    assert figures["rows without"] == "7"
    assert figures["largest difference"] == "1e-06"


def test_pointing_at_a_token_tells_what_it_took(
    qtbot: QtBot, panel: TwoWaysPanel, scope: Scope
) -> None:
    reading = scope.edit("to be")
    one = OneByOne(5, 0.004, 1000, (0.25, 0.5, 0.125), 300, 3e-7, 4e-6, 3)
    panel.show_view(view_with(reading, one_by_one=Measured(reading, one)))
    graphs.start_import()
    qtbot.waitUntil(lambda: panel.turn_chart.is_drawn, timeout=20_000)
    tip = panel.turn_chart.tip_at(panel.turn_chart.place_at(2))
    assert tip.startswith("After 2 tokens: milliseconds since the first token 750.0; ")
    assert panel.figures()[0].digits == "875.0"


def test_an_edit_afterwards_is_pointed_out(panel: TwoWaysPanel, scope: Scope) -> None:
    reading = scope.edit("to be")
    both = decoded(reading, *STEPS)
    panel.show_view(view_with(reading, both_ways=both))
    assert "has changed since" not in panel.run_both.said.text()
    masked = scope.set_conditions(Conditions(mask="window", window=3))
    other = tiny_scope().edit("to be")
    for now in (scope.edit("to be or"), masked, other):
        panel.show_view(view_with(now, both_ways=both))
        assert panel.run_both.said.text().endswith(CHANGED)
    assert panel.reading_of(view_with(scope.edit("to"), both_ways=both)) is reading


def test_an_obstacle_is_said_where_the_result_would_be(panel: TwoWaysPanel, scope: Scope) -> None:
    panel.show_view(view_with(scope.edit("to be"), obstacles={"both ways": "No memory for it."}))
    assert panel.run_both.obstacle.text() == "No memory for it."
    assert panel.run_both.obstacle.isVisible()
    assert not panel.run_one.obstacle.isVisible()


def test_without_a_text_there_is_nothing_to_run(panel: TwoWaysPanel, scope: Scope) -> None:
    panel.show_view(view_of(scope.edit("")))
    assert not panel.run_both.button.isEnabled()
    assert not panel.run_one.button.isEnabled()
    assert panel.run_both.said.text().startswith("There is no text yet.")
    assert not panel.totals.isVisible()


def test_it_exports_steps_and_tokens(panel: TwoWaysPanel, scope: Scope) -> None:
    reading = scope.edit("to be")
    one = Measured(reading, OneByOne(5, 0.004, 1000, (0.002,) * 5, 800, 3e-7, 4e-6, 5))
    view = view_with(reading, both_ways=decoded(reading, *STEPS), one_by_one=one)
    decoding, each, whole = panel.numbers(view)
    assert np.asarray(decoding.columns["rows_without"]).tolist() == [6, 7]
    assert np.asarray(decoding.columns["seconds_without"]).tolist() == [0.03, 0.05]
    assert np.asarray(each.columns["seconds"]).tolist() == [0.002] * 5
    assert np.asarray(whole.columns["logits_difference"]).tolist() == [4e-6]
    # What was read of another text does not go out under this one's stamp.
    older = Measured(scope.edit("to"), one.found)
    tables = panel.numbers(
        view_with(reading, both_ways=view.state.costs.both_ways, one_by_one=older)
    )
    assert [table.name for table in tables] == ["decoding"]


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
@pytest.mark.parametrize("width", [420, 1200])
def test_nothing_is_cut_off_at_the_side(
    window: QWidget, panel: TwoWaysPanel, scope: Scope, theme: Any, width: int
) -> None:
    """In every theme, in one column and in two."""
    from gui.state import Display  # noqa: PLC0415

    reading = scope.edit("to be")
    costs = Costs(both_ways=decoded(reading, *STEPS))
    panel.resize(width, 380)
    panel.show_view(view_of(reading, costs=costs, display=Display(theme=theme)))
    window.repaint()
    bar = panel._page.horizontalScrollBar()
    assert bar.maximum() == 0
    assert panel.totals.width() <= width
