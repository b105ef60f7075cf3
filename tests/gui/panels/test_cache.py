"""The KV cache panel: measured bytes beside the formula, rows saved, time, and the switch."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from engine.conditions import Conditions
from engine.reading import PassStats, Reading
from gui import graphs
from gui.panels.cache import N_SHOWN, CachePanel
from gui.state import Display
from gui.theme import THEMES, Theme
from gui.widgets.curves import CurveChart
from gui.wishes import SetCache, Wish
from gui.words.cache_figures import PassColumns
from tests.gui.tiny_scope import BYTES_PER_TOKEN, house, picture, tiny_scope, view_of


@pytest.fixture
def panel(window: QWidget) -> CachePanel:
    """A shown panel, wide enough for the whole wording of its lines."""
    widget = CachePanel()
    house(window, widget, 900, 180)
    return widget


def charts(panel: CachePanel) -> list[CurveChart]:
    """From left to right."""
    return [panel.bytes_chart, panel.rows_chart, panel.time_chart]


def wait_for_curves(qtbot: QtBot, panel: CachePanel) -> None:
    """Until pyqtgraph is there and every chart is built."""
    graphs.start_import()
    qtbot.waitUntil(lambda: all(chart.is_drawn for chart in charts(panel)), timeout=20_000)


def drawn(chart: CurveChart, name: str) -> NDArray[np.float64]:
    """The points of one series as the curve itself holds them [2, points]."""
    at = [series.name for series in chart.series].index(name)
    assert chart._plot is not None
    x, y = chart._plot._items[at].getData()
    return np.array([x, y])


def test_bytes_stand_beside_the_formula(panel: CachePanel) -> None:
    """Two times 2 layers × 2 key/value heads × 4 numbers × 4 bytes make 128 a token."""
    panel.show_view(view_of(tiny_scope(max_seq_len=32).edit("to be or not")))
    assert BYTES_PER_TOKEN == 128
    assert panel.held.text() == "holds 1,536 B (1.5 KiB) of 4,096 B preallocated"
    assert panel.formula.text() == (
        "✓ 2 · 2 n_layer · 2 n_kv_head · 4 head_dim · 12 tokens · 4 bytes = 1,536 B, "
        "as the tensors hold"
    )
    assert "2 · n_layer · n_kv_head · head_dim · tokens · bytes" in panel.formula.toolTip()


def test_a_layer_with_a_window_of_its_own_stays_flat(qtbot: QtBot, panel: CachePanel) -> None:
    """A window of 6 in one of two layers: 64 bytes for each row, min(tokens, 6) + tokens rows."""
    scope = tiny_scope(windows=(6, 0))
    reading = scope.edit("to be")
    for _step in range(3):
        reading = scope.step()
    panel.show_view(view_of(reading))
    assert panel.held.text().startswith("holds 896 B")
    assert panel.formula.text() == (
        "✓ 2 · 2 n_kv_head · 4 head_dim · (1 · min(8, 6) + 1 · 8) rows · 4 bytes = 896 B, "
        "as the tensors hold"
    )
    assert "keeps min(tokens, window) rows" in panel.formula.toolTip()
    assert panel.formula.toolTip().endswith("the layers hold 384, 512 B")
    assert panel.rows.text().startswith("last pass wrote 128 B, 1 of 8 rows computed")
    wait_for_curves(qtbot, panel)
    for name in ("held", "formula"):  # after 5, 6, 7 and 8 tokens
        kib = drawn(panel.bytes_chart, name)[1]
        assert (1024 * kib).tolist() == [64 * rows for rows in (5 + 5, 6 + 6, 6 + 7, 6 + 8)]


def test_under_a_windows_mask_it_holds_what_is_in_sight(qtbot: QtBot, panel: CachePanel) -> None:
    """First all 5 tokens, then 1 + 3, and 3: 128 bytes each; every pass by the mask it had."""
    scope = tiny_scope()
    scope.edit("to be")
    scope.set_conditions(Conditions(mask="window", window=3, sinks=1))
    reading = scope.step()
    panel.show_view(view_of(reading))
    assert panel.held.text().startswith("holds 512 B")
    assert panel.formula.text() == (
        "✓ 2 · 2 n_kv_head · 4 head_dim · 2 · min(6, 1 + 3) rows · 4 bytes = 512 B, "
        "as the tensors hold"
    )
    assert "or the mask's, a layer keeps min(tokens, window) rows" in panel.formula.toolTip()
    reading = scope.set_conditions(Conditions(mask="window", window=3))
    panel.show_view(view_of(reading))
    assert "2 · min(6, 3) rows · 4 bytes = 384 B, as the tensors" in panel.formula.text()
    wait_for_curves(qtbot, panel)
    for name in ("held", "formula"):
        kib = drawn(panel.bytes_chart, name)[1]
        assert (1024 * kib).tolist() == [128 * rows for rows in (5, 4, 4, 3)]


@pytest.mark.parametrize(
    ("n_tokens", "rows"), [(4, "min(4, 1 + 2)"), (5, "min(5, 1 + 2)"), (6, "2"), (12, "2")]
)
def test_a_layers_own_window_hides_the_first_positions_in_the_end(
    panel: CachePanel, n_tokens: int, rows: str
) -> None:
    """A window of 5 in one layer, under the first 1 and a window of 2."""
    scope = tiny_scope(windows=(5, 0))
    scope.edit("to be or not"[:n_tokens])
    panel.show_view(view_of(scope.set_conditions(Conditions(mask="window", window=2, sinks=1))))
    both = f"min({n_tokens}, 1 + 2)"
    said = f"2 · {both} rows" if rows == both else f"(1 · {rows} + 1 · {both}) rows"
    assert f"✓ 2 · 2 n_kv_head · 4 head_dim · {said} · 4 bytes" in panel.formula.text()
    assert panel.formula.text().endswith("as the tensors hold")


def test_where_all_layers_have_one_window_the_whole_cache_is_flat(panel: CachePanel) -> None:
    panel.show_view(view_of(tiny_scope(windows=(4, 4)).edit("to be or not")))
    assert panel.formula.text() == (
        "✓ 2 · 2 n_kv_head · 4 head_dim · 2 · min(12, 4) rows · 4 bytes = 512 B, "
        "as the tensors hold"
    )


def test_a_step_adds_one_token_and_computes_one_row(panel: CachePanel) -> None:
    """In all: 5 + 1 + 1 rows instead of 5 + 6 + 7."""
    scope = tiny_scope()
    scope.edit("to be")
    scope.step()
    reading = scope.step()
    panel.show_view(view_of(reading))
    took = 1000 * reading.stats[-1].seconds
    assert panel.rows.text() == (
        f"last pass +128 B, 1 of 7 rows computed, {took:.1f} ms; 3 passes in all: 7 of 18 rows"
    )
    assert panel.held.text().startswith("holds 896 B")


def test_an_edit_in_the_middle_computes_from_there_on(panel: CachePanel) -> None:
    """Of "to be or" the first three tokens stay, so five are written again."""
    scope = tiny_scope()
    scope.edit("to be or")
    panel.show_view(view_of(scope.edit("to me or")))
    assert panel.rows.text().startswith("last pass +640 B, 5 of 8 rows computed")
    assert panel.formula.text().startswith("✓")


def test_the_exported_passes_tell_what_each_threw_away(panel: CachePanel) -> None:
    """8 tokens, an edit after 3, a step, and the cache off: nothing was held, nothing is undone."""
    scope = tiny_scope()
    scope.edit("to be or")
    scope.edit("to me or")
    scope.step()
    scope.set_cache(use=False)
    passes, _layers = panel.numbers(view_of(scope.step()))
    assert np.asarray(passes.columns["rows_kept"]).tolist() == [0, 3, 8, 0, 0]
    assert np.asarray(passes.columns["rows_thrown_away"]).tolist() == [0, 5, 0, 0, 0]
    nothing, _layers = panel.numbers(view_of(tiny_scope().edit("")))
    assert len(np.asarray(nothing.columns["rows_thrown_away"])) == len(nothing.columns["pass"])


def test_what_has_fallen_out_of_the_context_is_counted_beside_what_was_thrown_away(
    panel: CachePanel,
) -> None:
    """A context of 8: with a ninth token all positions move, and all rows are computed again."""
    scope = tiny_scope(max_seq_len=8)
    scope.edit("to be or")
    panel.show_view(view_of(scope.edit("to be or no")))
    assert panel.rows.text().startswith(
        "last pass +1,024 B, 8 of 8 rows computed, 0 kept and 8 thrown away, 3 fallen out, "
    )


def test_a_step_back_does_not_empty_the_cache(panel: CachePanel) -> None:
    """Three tokens are shown, eight are held, and the formula counts what is held."""
    scope = tiny_scope()
    scope.edit("to be or")
    panel.show_view(view_of(scope.go_to(3)))
    assert panel.held.text().startswith("holds 1,024 B")
    assert "8 tokens" in panel.formula.text()
    assert panel.formula.text().startswith("✓")


def test_bytes_that_differ_from_the_formula_are_crossed(panel: CachePanel) -> None:
    """In words as well."""
    reading = tiny_scope().edit("to be")
    panel.show_view(view_of(replace(reading, cache_bytes=641)))
    assert panel.formula.text().startswith("✗")
    assert panel.formula.text().endswith("= 640 B, but the tensors hold 641 B")
    # Room for another number of numbers than the formula knows of.
    panel.show_view(view_of(replace(reading, cache_allocated_bytes=4_000)))
    assert panel.formula.text().startswith("✗")


def test_with_the_cache_off_everything_is_computed_again(qtbot: QtBot, panel: CachePanel) -> None:
    """Said in a sentence, counted in rows, and drawn with a mark of its own."""
    scope = tiny_scope()
    scope.edit("to be")
    scope.step()
    scope.set_cache(use=False)
    reading = scope.step()
    panel.show_view(view_of(reading, use_cache=False))
    assert panel.held.text().startswith("holds 0 B of")
    assert panel.formula.text().startswith("The cache is off: every pass computes")
    # Passes of 5, 1, then 6 and 7 rows; without the cache 5, 6, 6 and 7.
    assert panel.rows.text().startswith("last pass +0 B, 7 of 7 rows computed")
    assert panel.rows.text().endswith("4 passes in all: 19 of 24 rows")
    wait_for_curves(qtbot, panel)
    assert drawn(panel.rows_chart, "with").tolist() == [[1, 2, 3, 4], [5, 1, 6, 7]]
    assert drawn(panel.rows_chart, "without").tolist() == [[1, 2, 3, 4], [5, 6, 6, 7]]
    kib = 128 / 1024
    assert drawn(panel.bytes_chart, "held")[1].tolist() == [5 * kib, 6 * kib, 0, 0]
    assert drawn(panel.bytes_chart, "formula")[1].tolist() == [n * kib for n in (5, 6, 6, 7)]
    seconds = [each.seconds for each in reading.stats]
    for name, passes in (("with", [1, 2]), ("without", [3, 4])):
        x, y = drawn(panel.time_chart, name)
        assert x.tolist() == passes
        assert 10**y == pytest.approx([1000 * seconds[number - 1] for number in passes])


def test_without_the_mask_nothing_is_cached(panel: CachePanel) -> None:
    """And the panel says why."""
    scope = tiny_scope()
    scope.edit("to be")
    panel.show_view(view_of(scope.set_conditions(Conditions(mask="none"))))
    assert panel.formula.text() == (
        "Without the mask nothing can be cached: a new token changes every earlier row."
    )
    assert panel.held.text().startswith("holds 0 B of")
    assert panel.rows.text().startswith("last pass +0 B, 5 of 5 rows computed")


@pytest.mark.parametrize("use", [True, False])
def test_the_switch_asks_and_waits_to_be_told(
    qtbot: QtBot, panel: CachePanel, wishes: list[Wish], *, use: bool
) -> None:
    """By mouse and by the space bar; it shows the state, not its own press."""
    panel.show_view(view_of(tiny_scope().edit("a"), use_cache=use))
    assert panel.switch.isChecked() == use
    qtbot.mouseClick(panel.switch, Qt.MouseButton.LeftButton, pos=panel.switch.rect().center())
    panel.switch.setFocus()
    qtbot.keyClick(panel.switch, Qt.Key.Key_Space)
    assert wishes == [SetCache(not use)] * 2
    assert panel.switch.isChecked() == use
    wishes.clear()
    panel.show_view(view_of(tiny_scope().edit("a"), use_cache=not use))
    assert panel.switch.isChecked() != use
    assert wishes == []


def test_without_a_text_a_sentence_stands_there(panel: CachePanel) -> None:
    """Nothing is drawn that the model did not produce."""
    panel.show_view(view_of(tiny_scope().edit("")))
    assert panel.sentence.text().startswith("There is no text yet.")
    assert not panel.held.isVisible()
    assert not any(chart.isVisible() for chart in charts(panel))
    panel.show_view(view_of(None, phase="loading"))
    assert panel.sentence.text() == "The model is being loaded."


def test_one_pass_is_drawn_as_a_stroke(qtbot: QtBot, panel: CachePanel) -> None:
    """One pass makes no line, so a stroke stands at its place: one row in pass 1."""
    panel.show_view(view_of(tiny_scope().edit("a")))
    assert "1 token · 4 bytes = 128 B" in panel.formula.text()
    assert panel.rows.text().endswith("1 pass in all: 1 of 1 rows")
    wait_for_curves(qtbot, panel)
    x, y = drawn(panel.rows_chart, "with")
    assert x.mean() == 1
    assert x[0] < x[1]
    assert y.tolist() == [1, 1]


def test_a_text_that_was_emptied_is_counted_too(panel: CachePanel) -> None:
    """Rewinding to nothing is a pass without rows; the one after it starts anew."""
    scope = tiny_scope()
    scope.edit("to be")
    scope.edit("")
    panel.show_view(view_of(scope.edit("ab")))
    assert panel.held.text().startswith("holds 256 B")
    assert panel.rows.text().endswith("3 passes in all: 7 of 7 rows")


def test_figures_stand_before_pyqtgraph_is_there(
    qtbot: QtBot, panel: CachePanel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numbers at once, curves when they can be drawn."""
    with monkeypatch.context() as without:
        without.setattr(graphs.GraphLoader, "module", None)
        panel.show_view(view_of(tiny_scope().edit("to be")))
        before = picture(panel)
        assert panel.held.text().startswith("holds 640 B")
        assert not any(chart.is_drawn for chart in charts(panel))
    graphs.loader().ready.emit()
    wait_for_curves(qtbot, panel)
    assert picture(panel) != before


def test_neither_pyqtgraph_nor_torch_is_imported_with_the_panel() -> None:
    """The first paint must not wait for either."""
    code = (
        "import sys, gui.panels.cache, gui.panels.checks, gui.panels.time;"
        "sys.exit(bool({'pyqtgraph', 'torch'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0  # noqa: S603


def test_looking_elsewhere_leaves_the_curves_alone(
    qtbot: QtBot, panel: CachePanel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reading without a new pass draws no curve again."""
    scope = tiny_scope()
    panel.show_view(view_of(scope.edit("to be")))
    wait_for_curves(qtbot, panel)
    calls: list[object] = []
    monkeypatch.setattr(CurveChart, "show_points", lambda *given: calls.append(given))
    panel.show_view(view_of(scope.go_to(2)))
    assert calls == []
    scope.go_to(5)
    panel.show_view(view_of(scope.step()))
    assert len(calls) == 3


def many(reading: Reading, n_passes: int) -> Reading:
    """The reading after so many passes of its last kind."""
    return replace(reading, stats=tuple(replace(reading.stats[-1]) for _ in range(n_passes)))


def test_the_latest_passes_are_drawn_and_all_are_counted(qtbot: QtBot, panel: CachePanel) -> None:
    """Of a thousand passes the last two hundred, under their own numbers."""
    panel.show_view(view_of(many(tiny_scope().edit("to be"), 1_000)))
    wait_for_curves(qtbot, panel)
    assert panel.rows.text().endswith("1,000 passes in all: 5,000 of 5,000 rows")
    for chart in charts(panel):
        x = drawn(chart, chart.series[0].name)[0]
        assert (len(x), x[0], x[-1]) == (N_SHOWN, 1_001 - N_SHOWN, 1_000)


def test_columns_follow_a_growing_and_a_new_list() -> None:
    """Another run's passes are never taken for a continuation."""
    first = tuple(PassStats(n, n, 0, 0.001, n, True, "started") for n in range(1, 600))
    columns = PassColumns()
    columns.update(first[:1])
    columns.update(first)
    assert columns.n_tokens.tolist() == list(range(1, 600))
    other = tuple(PassStats(7, 1, 6, 0.002, 9, False, "cache off") for _ in range(700))
    columns.update(other)
    assert columns.n_tokens.tolist() == [7] * 700
    assert columns.milliseconds == pytest.approx(2.0)
    assert not columns.cached.any()
    columns.update(other[:2])
    assert columns.numbers.tolist() == [1, 2]


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_everything_fits_at_the_bottom_of_a_small_window(panel: CachePanel, theme: Theme) -> None:
    """At 600 × 170 lines are shortened, and their result stays; nothing is pushed out."""
    panel.resize(600, 170)
    panel.show_view(view_of(tiny_scope().edit("to be or not"), display=Display(theme=theme)))
    picture(panel)
    for label in (panel.held, panel.formula, panel.rows):
        assert "…" not in label.shown()
    assert "1,536 B" in panel.formula.shown()
    for chart in charts(panel):
        corner = chart.mapTo(panel, chart.rect().bottomRight())
        assert panel.rect().contains(corner)
        assert chart.height() >= 60


def test_where_it_is_low_the_figures_go_first(panel: CachePanel) -> None:
    """The charts step aside, and come back with the room for them."""
    panel.show_view(view_of(tiny_scope().edit("to be")))
    for height, has_charts in ((70, False), (180, True), (90, False)):
        panel.resize(900, height)
        picture(panel)
        assert all(chart.isVisible() == has_charts for chart in charts(panel))
        for label in (panel.held, panel.formula, panel.rows):
            assert panel.rect().contains(label.geometry())


@pytest.mark.parametrize(("height", "n_shown"), [(340, 3), (260, 2), (170, 1)])
def test_where_it_is_narrow_charts_stand_in_a_column(
    panel: CachePanel, height: int, n_shown: int
) -> None:
    """As many as are high enough, rows first; the long lines wrap."""
    panel.resize(280, height)
    panel.show_view(view_of(tiny_scope().edit("to be")))
    picture(panel)
    shown = [chart for chart in charts(panel) if chart.isVisible()]
    assert len(shown) == n_shown
    assert panel.rows_chart in shown
    places = [chart.geometry() for chart in shown]
    assert len({place.x() for place in places}) == 1
    assert not any(a.intersects(b) for i, a in enumerate(places) for b in places[:i])
    assert panel.formula.shown().endswith("640 B")


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_drawing_twice_gives_the_same_picture(
    qtbot: QtBot, panel: CachePanel, theme: Theme
) -> None:
    """Nothing is left over from what was shown before, also not from another theme."""
    view = view_of(tiny_scope().edit("to be"), display=Display(theme=theme))
    panel.show_view(view)
    wait_for_curves(qtbot, panel)
    first = picture(panel)
    panel.show_view(view_of(None, phase="loading"))
    panel.show_view(view_of(tiny_scope().edit("a text of another length")))
    panel.show_view(view_of(view.reading, display=Display(theme=theme)))
    assert picture(panel) == first


def test_charts_say_in_words_what_they_show(panel: CachePanel) -> None:
    """For those who do not see curves."""
    scope = tiny_scope()
    scope.edit("to be")
    panel.show_view(view_of(scope.step()))
    assert panel.rows_chart.accessibleDescription() == (
        "rows computed in pass 2: 1; without the cache 6"
    )
    assert "with the cache" in panel.time_chart.accessibleDescription()
    assert panel.held.text() in panel.accessibleDescription()


def test_an_edit_says_what_it_kept_and_what_it_threw_away(panel: CachePanel) -> None:
    """Of 8 rows "to " stays; a longer text throws nothing away."""
    scope = tiny_scope()
    scope.edit("to be or")
    panel.show_view(view_of(scope.edit("to me or")))
    assert "5 of 8 rows computed, 3 kept and 5 thrown away" in panel.rows.text()
    panel.show_view(view_of(scope.edit("to me or not")))
    assert "4 of 12 rows computed, " in panel.rows.text()
    assert "thrown away" not in panel.rows.text()
    panel.show_view(view_of(scope.edit("to")))
    assert "0 of 2 rows computed, 2 kept and 10 thrown away" in panel.rows.text()


def test_without_the_cache_nothing_is_thrown_away(panel: CachePanel) -> None:
    scope = tiny_scope()
    scope.edit("to be or")
    scope.set_cache(use=False)
    panel.show_view(view_of(scope.edit("to me")))
    assert "thrown away" not in panel.rows.text()


def test_each_layers_bytes_are_told_and_exported(panel: CachePanel) -> None:
    """Twelve tokens: 12 · 64 bytes in each of two layers."""
    view = view_of(tiny_scope().edit("to be or not"))
    panel.show_view(view)
    assert "each of 2 layers holds 768 B" in panel.formula.toolTip()
    (layers,) = [table for table in panel.numbers(view) if table.name == "layers"]
    assert np.asarray(layers.columns["bytes_held"]).tolist() == [768, 768]
    unlike = replace(view.reading, cache_layer_bytes=(700, 836)) if view.reading else None
    panel.show_view(view_of(unlike))
    assert "the layers hold 700, 836 B" in panel.formula.toolTip()
