"""Curves: ticks at round numbers, fixed ranges, and pyqtgraph only when it is wanted."""

import importlib
import sys
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from gui import graphs
from gui.theme import DARK, LIGHT, THEMES, Theme
from gui.widgets.axis_ticks import Tick, linear_ticks, log_ticks, round_up
from gui.widgets.curves import Axis, CurveChart, Series, peaks
from tests.gui.tiny_scope import house, picture

SERIES = (Series("train", "text", "line"), Series("held out", "bad", "dots"))


@pytest.fixture
def chart(qtbot: QtBot, window: QWidget) -> CurveChart:
    """A shown chart whose curves can be drawn."""
    graphs.start_import()
    qtbot.waitUntil(lambda: graphs.loader().module is not None, timeout=20_000)
    widget = CurveChart(("loss in nats", "nats"), "step", SERIES)
    house(window, widget, 400, 160)
    return widget


def square() -> tuple[Axis, Axis]:
    """Both axes from 0 to 10."""
    axis = Axis(0, 10, (Tick(0, "0"), Tick(10, "10")))
    return axis, axis


def show(qtbot: QtBot, chart: CurveChart, heights: Sequence[float]) -> None:
    """A line at one height, and dots at another."""
    x = np.arange(11.0)
    points = [(x, np.full(11, height)) for height in heights]
    chart.show_points(points, *square(), "words")
    qtbot.waitUntil(lambda: chart.is_drawn)


def rows_of(chart: CurveChart, colour: str) -> list[int]:
    """In which rows of the picture this very colour is, right of the axis."""
    image, wanted = picture(chart), QColor(colour).name()
    return [
        y
        for y in range(24, image.height() - 24)
        if any(image.pixelColor(x, y).name() == wanted for x in range(60, image.width() - 12))
    ]


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_points_are_drawn_at_their_height(qtbot: QtBot, chart: CurveChart, theme: Theme) -> None:
    """The higher value is further up, each in its series' colour on the theme's ground."""
    chart.set_theme(theme)
    show(qtbot, chart, (7.5, 2.5))
    line, dots = rows_of(chart, theme.text), rows_of(chart, theme.bad)
    assert max(line) < min(dots)
    assert picture(chart).pixelColor(200, 90).name() == QColor(theme.surface).name()


def test_ranges_are_those_given(qtbot: QtBot, chart: CurveChart) -> None:
    """The same axis makes the same place, whatever the data are."""
    show(qtbot, chart, (5, 0))
    before = rows_of(chart, LIGHT.text)
    show(qtbot, chart, (5, 9))
    assert rows_of(chart, LIGHT.text) == before


def test_peaks_survive_thinning(qtbot: QtBot, chart: CurveChart) -> None:
    """One value of ten thousand that stands out is still seen."""
    x = np.linspace(0, 10, 10_000)
    y = np.full(10_000, 1.0)
    y[4_321] = 9.0
    chart.show_points([(x, y), (x[:1], y[:1])], *square(), "a peak")
    qtbot.waitUntil(lambda: chart.is_drawn)
    rows = rows_of(chart, LIGHT.text)
    assert max(rows) - min(rows) > 0.6 * (chart.height() - 48)


@given(st.integers(1, 300), st.integers(1, 50), st.floats(0, 60), st.floats(0, 60))
def test_thinning_keeps_extremes_and_neighbours(
    n_points: int, n_columns: int, low: float, span: float
) -> None:
    """Whatever is in view keeps its lowest and highest value, in few enough points."""
    x = np.arange(float(n_points))
    y = np.random.default_rng(n_points).normal(size=n_points)
    kept_x, kept_y = peaks(x, y, low, low + span, n_columns)
    seen = y[(x >= low) & (x <= low + span)]
    if len(seen):
        assert kept_y.min() <= seen.min()
        assert kept_y.max() >= seen.max()
    assert len(kept_x) == len(kept_y) <= max(2 * n_columns, 2)
    assert set(kept_y) <= set(y)
    assert (np.diff(kept_x) >= 0).all()


def test_few_points_stay_as_they_are() -> None:
    """Up to two to a column, with one neighbour beyond each end of the view."""
    x, y = np.arange(10.0), np.arange(10.0) ** 2
    kept_x, kept_y = peaks(x, y, 3, 6, 100)
    assert kept_x.tolist() == [2, 3, 4, 5, 6, 7]
    assert kept_y.tolist() == [4, 9, 16, 25, 36, 49]


def test_a_theme_is_changed_with_the_curves_in_place(qtbot: QtBot, chart: CurveChart) -> None:
    """There and back is the same picture."""
    show(qtbot, chart, (7, 3))
    before = picture(chart)
    chart.set_theme(DARK)
    assert picture(chart) != before
    chart.set_theme(LIGHT)
    assert picture(chart) == before


def test_what_cannot_be_imported_is_said(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence with the reason, and no exception on the thread."""

    def refuse(name: str) -> None:
        raise ImportError(f"no {name} here")

    loader = graphs.GraphLoader()
    monkeypatch.delitem(sys.modules, "pyqtgraph", raising=False)
    monkeypatch.setattr(importlib, "import_module", refuse)
    with qtbot.waitSignal(loader.failed) as told:
        loader.start_import()
    assert told.args == [
        "The curves cannot be drawn: pyqtgraph is not to be had (no pyqtgraph here)."
    ]
    assert loader.module is None
    assert loader.failure == told.args[0]


def test_the_import_is_begun_once(qtbot: QtBot) -> None:
    """However often it is asked for."""
    graphs.start_import()
    graphs.start_import()
    qtbot.waitUntil(lambda: graphs.loader().module is not None, timeout=20_000)
    assert graphs.loader().module.__name__ == "pyqtgraph"


@given(st.floats(1e-9, 1e12), st.integers(1, 8))
def test_ticks_lie_on_the_axis_at_round_numbers(high: float, n_wanted: int) -> None:
    """From 0 on, evenly, one, two or five times a power of ten apart."""
    ticks = [tick.at for tick in linear_ticks(0, high, n_wanted)]
    assert ticks[0] == 0
    assert 1 <= len(ticks) <= n_wanted + 1
    assert ticks[-1] <= high * (1 + 1e-6)
    if len(ticks) > 1:
        steps = np.diff(ticks)
        assert steps == pytest.approx(steps[0])
        mantissa = float(f"{steps[0]:.6e}".split("e")[0])
        assert mantissa in (1, 2, 5)


def test_ticks_are_written_as_short_as_they_can_be() -> None:
    """Whole numbers where the steps are whole, else as many decimals as they need."""
    assert [tick.text for tick in linear_ticks(0, 2_000, 2)] == ["0", "1,000", "2,000"]
    assert [tick.text for tick in linear_ticks(0, 0.4, 2)] == ["0.0", "0.2", "0.4"]
    assert [tick.text for tick in linear_ticks(1, 3, 8, whole=True)] == ["1", "2", "3"]
    assert linear_ticks(4, 4, 3) == [Tick(4, "4")]
    assert log_ticks(-1, 2) == [Tick(-1, "0.1"), Tick(0, "1"), Tick(1, "10"), Tick(2, "100")]
    assert [tick.text for tick in log_ticks(3, 6)] == ["1,000", "10,000", "100,000", "1e+06"]


@given(st.floats(1e-6, 1e15))
def test_the_top_of_an_axis_is_close_above_the_highest_value(value: float) -> None:
    """At most twice as high, so that at least half of the picture is used."""
    assert value <= round_up(value) <= 2 * value


def test_an_axis_of_nothing_still_has_a_top() -> None:
    """All values 0: one unit."""
    assert round_up(0) == 1
