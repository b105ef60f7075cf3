"""The cost lab: formulas at once, times as they are measured, refusals before they are tried."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from engine.cost import room
from engine.cost.formulas import ATTENTION, crossing, pass_cost, total
from engine.cost.measurements import TIMED_PARTS, Lab, LengthTime, Machine, Worked, ladder
from engine.reading import Reading
from gui import graphs
from gui.costs import Costs, Measured
from gui.panels.cost import CostPanel
from gui.view import View
from gui.widgets.curves import CurveChart
from gui.wishes import MeasureCost, SetCosts, StopMeasuringCost, Wish
from gui.words.cost_lab import growth
from tests.gui.tiny_scope import house, tiny_scope, view_of

MACHINE = Machine(80e9, 10e9, 2, "cpu")


def timed(n_tokens: int) -> LengthTime:
    """Attention takes n² µs / 100, all else 10 n µs, half of it the MLP's."""
    seconds = dict.fromkeys(TIMED_PARTS, 0.0)
    seconds["scores"] = 0.75e-8 * n_tokens**2
    seconds["mix"] = 0.25e-8 * n_tokens**2
    seconds["MLP"] = seconds["projections"] = 5e-6 * n_tokens
    return LengthTime(n_tokens, seconds, 1e-3)


def with_fixed_cost(n_tokens: int) -> LengthTime:
    """The same, and a millisecond for any length."""
    point = timed(n_tokens)
    return LengthTime(n_tokens, {**point.seconds, "rest": 1e-3}, 1e-3)


def lab(longest: int = 4096, **more: Any) -> Lab:
    """A sweep whose answers are known."""
    return Lab(longest, MACHINE, tuple(map(timed, ladder(longest))), n_done=longest, **more)


PREFILL = Worked(n_new=500, start=0, multiply_adds=3_000_000_000, n_bytes=150_000_000, seconds=0.1)
DECODE = Worked(n_new=1, start=500, multiply_adds=7_000_000, n_bytes=28_000_000, seconds=0.004)


@pytest.fixture
def panel(window: QWidget) -> CostPanel:
    """A shown panel in a window that leaves it room."""
    widget = CostPanel()
    house(window, widget, 1200, 380)
    return widget


@pytest.fixture
def reading() -> Reading:
    """A text of five tokens, read by a model of two layers, 4 heads of 4 on 2, width 16."""
    return tiny_scope().edit("to be")


def view_with(reading: Reading, found: Lab | None = None, **fields: Any) -> View:
    """What the window shows while this was measured."""
    measured = None if found is None else Measured(reading, found)
    return view_of(reading, costs=Costs(lab=measured, **fields))


def rows_of(panel: CostPanel) -> dict[str, tuple[str, ...]]:
    """What the table says of each part."""
    return {row[0]: row[1:] for row in panel.table.rows}


def test_the_formula_is_there_before_anything_is_measured(
    panel: CostPanel, reading: Reading
) -> None:
    """At 128 tokens by hand: two layers of 16 · 128 + 16 · 16 … and 27 tokens of vocabulary."""
    panel.show_view(view_with(reading, longest=128))
    rows = rows_of(panel)
    vocabulary = reading.info.config.vocab_size
    assert rows["projections"][0] == f"{2 * 128 * (16 * 32 + 16 * 16) / 1000:.3g} k"
    assert rows["scores"][:2] == (
        f"{2 * 16 * 128 * 128 / 1000:.3g} k",
        f"{2 * 16 * 128 * 129 / 2 / 1000:.3g} k",
    )
    assert rows["MLP"][0] == f"{2 * 128 * 2 * 16 * 64 / 1000:.3g} k"
    assert rows["output"][0] == f"{128 * 16 * vocabulary / 1000:.3g} k"
    assert rows["scores"][3:] == ("—", "—")
    assert panel.run.said.text() == "Nothing is measured yet."
    assert not panel.time_chart.isVisible()
    assert not panel.roof_chart.isVisible()


def test_measured_times_stand_beside_the_formula(panel: CostPanel, reading: Reading) -> None:
    """At 4,096 tokens: scores 0.75e-8 · 4096², the MLP 5e-6 · 4096 seconds."""
    panel.show_view(view_with(reading, lab()))
    rows = rows_of(panel)
    assert rows["scores"][3:] == ("126 ms", "n^2.00")
    assert rows["MLP"][3:] == ("20.5 ms", "n^1.00")
    assert rows["in all"][3] == "209 ms"


def test_fitted_powers_say_where_it_is_linear(panel: CostPanel, reading: Reading) -> None:
    """10 n + n² / 100: linear to begin with, bent at the end; attention alone is a square."""
    panel.show_view(view_with(reading, lab()))
    x = np.array([8.0, 16.0, 32.0, 64.0])
    short = np.polyfit(np.log(x), np.log(10 * x + x**2 / 100), 1)[0]
    assert f"the time grows as n^{short:.2f} from 8 to 64 tokens" in panel.times.text()
    assert panel.times.text().endswith("that of attention alone as n^2.00 there.")
    fixed = Lab(4096, MACHINE, tuple(with_fixed_cost(n) for n in ladder(4096)))
    panel.show_view(view_with(reading, fixed))
    assert panel.times.text().endswith("the fixed cost of each operation counts most.")
    assert "projections, MLP and output do the same for each token" in panel.growth.text()


@pytest.mark.parametrize(
    ("windows", "said"),
    [
        ((), "Only scores and mix grow with the square."),
        ((8, 0), "Only scores and mix grow with the square, in the 1 layer without a window."),
        ((8, 16), "Nothing grows with the square for long: every layer has a window of its own."),
    ],
)
def test_what_grows_with_the_square_is_said_of_this_models_layers(
    reading: Reading, windows: tuple[int, ...], said: str
) -> None:
    """With a window in every layer, 4 times the length costs no more than 4 times as much."""
    config = replace(reading.info.config, windows=windows)
    assert growth(config, 4096).endswith(said)
    cost = [total(pass_cost(config, n), ATTENTION).multiply_adds for n in (1024, 4096)]
    assert (cost[1] / cost[0] < 4.2) == bool(windows and all(windows))


def test_times_that_fall_with_the_length_are_not_explained_away(
    panel: CostPanel, reading: Reading
) -> None:
    """A busy machine took a second for the shortest text."""
    disturbed = LengthTime(8, {**timed(8).seconds, "rest": 1.0}, 1e-3)
    points = (disturbed, *map(timed, ladder(4096)[1:]))
    panel.show_view(view_with(reading, Lab(4096, MACHINE, points)))
    assert "as n^-" in panel.times.text()
    assert panel.times.text().endswith("something else slowed it; sweep again at rest.")


def test_the_crossing_is_given_by_formula_and_by_time(panel: CostPanel, reading: Reading) -> None:
    """By time n² / 100 = 10 n: at 1,000 tokens, between two that were measured."""
    panel.show_view(view_with(reading, lab()))
    at = crossing(reading.info.config)
    text = panel.crossing.text()
    assert f"than all other parts together from {at:,} tokens on" in text
    measured = int(text.split("from about ")[1].split(" tokens on")[0].replace(",", ""))
    assert measured == pytest.approx(1000, rel=0.02)


def test_a_crossing_that_was_not_reached_is_not_guessed(panel: CostPanel, reading: Reading) -> None:
    panel.show_view(view_with(reading, lab(512), longest=512))
    assert panel.crossing.text().endswith("By the time measured here, not up to 512.")


def test_the_roof_says_what_each_pass_waits_for(panel: CostPanel, reading: Reading) -> None:
    """Ridge at 8 per byte; prefill makes 20 and needs 37.5 ms of arithmetic, decode 0.25."""
    panel.show_view(view_with(reading, lab(prefill=PREFILL, decode=DECODE)))
    text = panel.roof.text()
    assert "with 2 threads: at most 80 G multiply-adds and 10 GB of memory per second" in text
    assert "meet at 8 multiply-adds per byte" in text
    assert "Prefill of 500 tokens makes 20 for each byte: arithmetic is the bound." in text
    assert "take at least 37.5 ms of the 100 ms that it took" in text
    assert "Decoding one token makes 0.25 for each byte: memory is the bound." in text
    assert "takes at least 2.8 ms of the 4 ms that it took" in text


def test_a_pass_above_the_roof_is_not_said_to_take_longer_than_it_did(
    panel: CostPanel, reading: Reading
) -> None:
    """3 G in 20 ms are 150 G/s, where 80 was the most that was measured."""
    quick = Worked(500, 0, 3_000_000_000, 150_000_000, 0.020)
    panel.show_view(view_with(reading, lab(prefill=quick, decode=DECODE)))
    text = panel.roof.text()
    assert "It was 1.9 times as fast as the most that was measured of this machine" in text
    assert "sweep again when it rests" in text
    assert "take at least" not in text


def test_weights_that_fit_into_the_processors_cache_beat_memory(
    panel: CostPanel, reading: Reading
) -> None:
    """7 M in 1 ms are 7 G/s, where memory allows 2.5."""
    quick = Worked(1, 500, 7_000_000, 28_000_000, 0.001)
    panel.show_view(view_with(reading, lab(prefill=PREFILL, decode=quick)))
    assert "it is 2.8 times as fast as memory allows" in panel.roof.text()


def test_pictures_hold_what_was_measured(qtbot: QtBot, panel: CostPanel, reading: Reading) -> None:
    panel.show_view(view_with(reading, lab(prefill=PREFILL, decode=DECODE)))
    graphs.start_import()
    charts = panel.time_chart, panel.roof_chart, panel.work_chart
    qtbot.waitUntil(lambda: all(chart.is_drawn for chart in charts), timeout=20_000)
    points = []
    for chart in charts:
        assert chart._plot is not None
        points.append([np.array(item.getData()) for item in chart._plot._items])
    times, roof, work = points
    lengths = np.array(ladder(4096), np.float64)
    np.testing.assert_allclose(times[0], [np.log10(lengths), np.log10(lengths**2 * 1e-5)])
    np.testing.assert_allclose(times[1], [np.log10(lengths), np.log10(lengths * 1e-2)])
    slope = np.diff(times[2][1]) / np.diff(times[2][0])  # of the fitted line
    np.testing.assert_allclose(slope, [2])
    np.testing.assert_allclose(roof[1][:, 0], [np.log10(20), np.log10(30e9)])
    np.testing.assert_allclose(roof[2][:, 0], [np.log10(0.25), np.log10(1.75e9)])
    at = np.log10(crossing(reading.info.config))
    np.testing.assert_allclose(work[2][0], [at, at])


def test_pointing_at_a_length_tells_all_its_digits(
    qtbot: QtBot, panel: CostPanel, reading: Reading
) -> None:
    """The time where it was measured; everywhere what the formula says."""
    panel.show_view(view_with(reading, lab()))
    graphs.start_import()
    qtbot.waitUntil(lambda: panel.time_chart.is_drawn, timeout=20_000)
    tip = panel.time_chart.tip_at(panel.time_chart.place_at(float(np.log10(1024))))
    assert tip.startswith("1,024 tokens: milliseconds in all ")
    point = timed(1024)
    assert f"milliseconds of attention {1000 * point.attention!r}" in tip
    figures = {figure.name: figure.digits for figure in panel.figures()}
    above = 4096 * (4096 + 128) // 2  # the cells that blocks of 128 compute
    assert figures["multiply-adds of attention"] == str(2 * 2 * 16 * above)
    panel.show_view(view_with(reading, longest=512))
    assert "milliseconds in all" not in {figure.name for figure in panel.figures()}


def test_the_button_sweeps_and_ends_the_sweep(
    panel: CostPanel, wishes: list[Wish], reading: Reading
) -> None:
    panel.show_view(view_with(reading))
    panel.run.button.setFocus()
    QTest.keyClick(panel.run.button, Qt.Key.Key_Space)
    half = Lab(4096, MACHINE, (timed(1024),), n_done=1024)
    panel.show_view(view_with(reading, half, running="sweep"))
    assert panel.run.said.text() == "measuring 1,024 of 4,096 tokens, 12%"
    QTest.keyClick(panel.run.button, Qt.Key.Key_Space)
    assert wishes == [MeasureCost("sweep"), StopMeasuringCost()]
    panel.show_view(view_with(reading, half))
    assert panel.run.said.text() == "Stopped at 1,024 of 4,096 tokens."


def test_the_slider_chooses_among_the_lengths(
    panel: CostPanel, wishes: list[Wish], reading: Reading
) -> None:
    panel.show_view(view_with(reading, longest=512))
    assert panel.length_said.text() == "512 tokens"
    panel.slider.setFocus()
    QTest.keyClick(panel.slider, Qt.Key.Key_Left)
    assert wishes == [SetCosts({"length": 384})]
    panel.show_view(view_with(reading, longest=512, length=384))
    assert panel.length_said.text() == "384 tokens"


def test_a_length_beyond_memory_is_refused_before_it_is_tried(
    panel: CostPanel, wishes: list[Wish], reading: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With both figures, where it was typed."""
    monkeypatch.setattr(room, "available_bytes", lambda: 1_000_000_000)
    panel.show_view(view_with(reading))
    panel.longest.selectAll()
    QTest.keyClicks(panel.longest, "1000000")
    QTest.keyClick(panel.longest, Qt.Key.Key_Return)
    assert "needs about" in panel.complaint.text()
    assert "954 MiB are free" in panel.complaint.text()
    assert wishes == []
    panel.longest.selectAll()
    QTest.keyClicks(panel.longest, "8192")
    QTest.keyClick(panel.longest, Qt.Key.Key_Return)
    assert panel.complaint.text() == ""
    assert wishes == [SetCosts({"longest": 8192, "length": 0})]


@pytest.mark.parametrize("typed", ["5", "99999999999", "-1", "many"])
def test_an_impossible_length_is_refused_in_a_sentence(
    panel: CostPanel, wishes: list[Wish], reading: Reading, typed: str
) -> None:
    panel.show_view(view_with(reading))
    panel.longest.selectAll()
    QTest.keyClicks(panel.longest, typed)
    QTest.keyClick(panel.longest, Qt.Key.Key_Return)
    assert "use 128" in panel.complaint.text()
    assert wishes == []


def test_lengths_beyond_the_context_are_said_to_be(panel: CostPanel, reading: Reading) -> None:
    panel.show_view(view_with(reading))
    assert panel.note.text().startswith("This model reads at most 32 tokens.")


def test_what_was_measured_of_another_model_is_not_shown(
    panel: CostPanel, reading: Reading
) -> None:
    other = tiny_scope(max_seq_len=64).edit("to be")
    costs = Costs(lab=Measured(reading, lab()))
    panel.show_view(view_of(other, costs=costs))
    assert panel.run.said.text() == "Nothing is measured yet."
    assert not panel.time_chart.isVisible()


def test_typing_costs_the_panel_nothing(panel: CostPanel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its figures do not depend on the text, so another text has nothing worked out again."""
    scope = tiny_scope()
    panel.show_view(view_of(scope.edit("to be")))
    calls: list[object] = []
    monkeypatch.setattr("gui.panels.cost.pass_cost", lambda *a, **_k: calls.append(a))
    panel.show_view(view_of(scope.edit("to be or")))
    assert calls == []


def test_how_far_a_sweep_is_costs_no_picture(
    panel: CostPanel, reading: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A piece that found no new point changes a line of words; one that did leaves the formula."""
    half = Lab(4096, MACHINE, (timed(1024),), n_done=1024)
    panel.show_view(view_with(reading, half, running="sweep"))
    drawn: list[CurveChart] = []
    monkeypatch.setattr(CurveChart, "show_points", lambda chart, *_: drawn.append(chart))
    panel.show_view(view_with(reading, replace(half, n_done=1152), running="sweep"))
    assert panel.run.said.text().startswith("measuring 1,152 of 4,096 tokens")
    assert drawn == []
    more = replace(half, points=(timed(1024), timed(1536)), n_done=1536)
    panel.show_view(view_with(reading, more, running="sweep"))
    assert set(drawn) == {panel.time_chart, panel.roof_chart}


def test_without_a_model_it_waits(panel: CostPanel) -> None:
    panel.show_view(view_of(None, phase="starting"))
    assert panel.note.text() == "The model is being loaded."
    assert not panel.run.button.isEnabled()
    assert panel.numbers(view_of(None)) == ()


def test_an_empty_text_is_no_obstacle(panel: CostPanel) -> None:
    panel.show_view(view_of(tiny_scope().edit("")))
    assert panel.run.button.isEnabled()
    assert len(panel.table.rows) == len(TIMED_PARTS) + 1


def test_it_exports_formula_times_and_roof(panel: CostPanel, reading: Reading) -> None:
    view = view_with(reading, lab(256, prefill=PREFILL, decode=DECODE), longest=256)
    formula, times, powers, crossings, machine, roof = panel.numbers(view)
    lengths = np.asarray(formula.columns["tokens"])
    assert lengths.tolist() == ladder(256)
    assert np.asarray(formula.columns["mix_needed"]).tolist() == [
        2 * 16 * n * (n + 1) // 2 for n in ladder(256)
    ]
    np.testing.assert_allclose(np.asarray(times.columns["scores_seconds"]), 0.75e-8 * lengths**2)
    exponent = dict(
        zip(powers.columns["time_of"], np.asarray(powers.columns["long_exponent"]), strict=True)
    )
    assert exponent["attention"] == pytest.approx(2)
    assert exponent["others"] == pytest.approx(1)
    assert np.isnan(exponent["embedding"])  # whose time is 0
    assert np.asarray(powers.columns["long_to"])[:3].tolist() == [256] * 3
    by_formula = np.asarray(crossings.columns["by_multiply_adds"])
    assert by_formula.tolist() == [crossing(reading.info.config)]
    assert np.isnan(np.asarray(crossings.columns["by_time_measured"])).all()  # beyond 256
    assert np.asarray(machine.columns["bytes_per_second"]).tolist() == [10e9]
    assert np.asarray(roof.columns["n_new"]).tolist() == [500, 1]
