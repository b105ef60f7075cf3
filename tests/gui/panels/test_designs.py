"""Other designs of the cache, by the formula; layers, by the tensors; well-known models."""

from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

import resources
from engine.conditions import Conditions
from gui import graphs
from gui.costs import Costs
from gui.panels.designs import DesignsPanel
from gui.state import MaskChoice
from gui.wishes import SetCosts, Wish
from tests.gui.tiny_scope import BYTES_PER_TOKEN, house, tiny_scope, view_of


@pytest.fixture
def panel(window: QWidget) -> DesignsPanel:
    """A shown panel in a window that leaves it room."""
    widget = DesignsPanel()
    house(window, widget, 1200, 380)
    return widget


def rows_of(panel: DesignsPanel) -> dict[str, tuple[str, ...]]:
    """What the table says of each design."""
    return {row[0]: row[1:] for row in panel.table.rows}


def test_each_design_has_its_formula_and_its_bytes(panel: DesignsPanel) -> None:
    """Two layers, 4 heads of 4 on 2: 16 numbers per token and layer; 12 tokens of at most 32."""
    panel.show_view(view_of(tiny_scope().edit("to be or not")))
    assert panel.heading.text().startswith("12 of at most 32 tokens.")
    assert "128 B per token and 4 KiB at its limit" in panel.heading.text()
    assert rows_of(panel) == {
        "this model": ("16 · 2 · tokens · 4", "1.5 KiB", "4 KiB"),
        "multi-head": ("32 · 2 · tokens · 4", "3 KiB", "8 KiB"),
        "grouped": ("16 · 2 · tokens · 4", "1.5 KiB", "4 KiB"),
        "multi-query": ("8 · 2 · tokens · 4", "768 B", "2 KiB"),
        "window of 16": ("16 · 2 · min(tokens, 16) · 4", "1.5 KiB", "2 KiB"),
        "first 4 + window of 16": ("16 · 2 · min(tokens, 4 + 16) · 4", "1.5 KiB", "2.5 KiB"),
    }


def test_the_own_design_is_what_the_tensors_hold(panel: DesignsPanel) -> None:
    reading = tiny_scope().edit("to be or not")
    panel.show_view(view_of(reading))
    assert reading.cache_bytes == 12 * BYTES_PER_TOKEN == 1.5 * 1024
    assert rows_of(panel)["this model"][1] == "1.5 KiB"


def test_windows_follow_the_mask_that_is_chosen(panel: DesignsPanel) -> None:
    reading = tiny_scope().edit("to be or not")
    panel.show_view(view_of(reading, mask=MaskChoice(window=5, sinks=2)))
    assert "window of 5" in rows_of(panel)
    assert rows_of(panel)["first 2 + window of 5"][1] == "896 B"


def test_a_smaller_format_is_asked_for_by_its_button(panel: DesignsPanel) -> None:
    wished: list[Wish] = []
    panel.wished.connect(wished.append)
    panel.show_view(view_of(tiny_scope().edit("to be")))
    button = panel.formats.button(2)
    assert button.text() == "int8"
    button.setFocus()
    QTest.keyClick(button, Qt.Key.Key_Space)
    assert wished == [SetCosts({"cache_format": "int8"})]


def test_a_smaller_format_changes_every_figure(panel: DesignsPanel) -> None:
    reading = tiny_scope().edit("to be or not")
    panel.show_view(view_of(reading, costs=Costs(cache_format="int8")))
    assert rows_of(panel)["this model"] == ("16 · 2 · tokens · 1", "384 B", "1 KiB")
    assert panel.families.rows[0][1] == "18 KiB"  # GPT-2: 2 · 12 · 64 · 12 numbers


def test_curves_run_to_the_limit_and_windows_stay_flat(qtbot: QtBot, panel: DesignsPanel) -> None:
    panel.show_view(view_of(tiny_scope().edit("to be or not")))
    graphs.start_import()
    qtbot.waitUntil(lambda: panel.chart.is_drawn, timeout=20_000)
    assert panel.chart._plot is not None
    curves = [np.array(item.getData()) for item in panel.chart._plot._items]
    assert curves[0][:, -1].tolist() == [32, 4]  # KiB
    assert curves[4][1, 15:18].tolist() == [2 * 15 / 16, 2, 2]  # a window of 16 at 15, 16, 17
    assert curves[6][0].tolist() == [12, 12]  # where the text stands


def test_pointing_at_a_length_tells_all_digits(qtbot: QtBot, panel: DesignsPanel) -> None:
    """Of this text if none is pointed at."""
    panel.show_view(view_of(tiny_scope().edit("to be or not")))
    graphs.start_import()
    qtbot.waitUntil(lambda: panel.chart.is_drawn, timeout=20_000)
    tip = panel.chart.tip_at(panel.chart.place_at(20))
    assert tip.startswith("20 tokens: bytes of this model 2560; bytes of multi-head 5120; ")
    assert panel.figures()[0].digits == "1536"


def test_each_layers_bytes_are_those_of_its_tensors(panel: DesignsPanel) -> None:
    reading = tiny_scope().edit("to be or not")
    panel.show_view(view_of(reading))
    assert panel.layers_note.text() == (
        "Each of 2 layers holds 768 B of keys and values, and the last query sees all of it."
    )
    (layers,) = [table for table in panel.numbers(view_of(reading)) if table.name == "layers"]
    assert np.asarray(layers.columns["bytes_held"]).tolist() == [768, 768]


def test_a_masks_window_lets_go_of_what_it_hides(panel: DesignsPanel) -> None:
    """Of 12 rows the last query sees 1 + 4: 2 layers of 5 rows of 64 bytes, in real tensors."""
    scope = tiny_scope()
    scope.edit("to be or not")
    reading = scope.set_conditions(Conditions(mask="window", window=4, sinks=1))
    (layers,) = [table for table in panel.numbers(view_of(reading)) if table.name == "layers"]
    for column in ("bytes_held", "bytes_still_seen"):
        assert np.asarray(layers.columns[column]).tolist() == [5 * 64] * 2
    panel.show_view(view_of(reading))
    assert panel.layers_note.text() == (
        "Each of 2 layers holds 320 B of keys and values, and the last query sees all of it; what "
        "a window hides from every later query was let go."
    )


@pytest.mark.parametrize(("n_tokens", "kept"), [(3, 3), (4, 4), (5, 4), (12, 4)])
def test_a_layers_own_window_lets_go_of_what_it_hides(
    panel: DesignsPanel, n_tokens: int, kept: int
) -> None:
    """A window of 4, below it, at it and above: what is held is what is seen, in real tensors."""
    reading = tiny_scope(windows=(4, 0)).edit("to be or not"[:n_tokens])
    panel.show_view(view_of(reading))
    (layers,) = [table for table in panel.numbers(view_of(reading)) if table.name == "layers"]
    for column in ("bytes_held", "bytes_still_seen"):
        assert np.asarray(layers.columns[column]).tolist() == [kept * 64, n_tokens * 64]
    assert "the last query sees all of it; what a window hides" in panel.layers_note.text()


def test_what_a_layers_own_window_leaves_of_other_designs_is_spelled_out(
    panel: DesignsPanel,
) -> None:
    """Windows of 4 and none beside the mask's 16 and first 4: 16 numbers of 4 bytes in a row."""
    panel.show_view(view_of(tiny_scope(windows=(4, 0)).edit("to be or not")))
    assert "this model takes at most 128 B per token and 2.25 KiB" in panel.heading.text()
    rows = {row[0]: row[1:] for row in panel.table.rows}
    assert rows["this model"][0] == "16 · (1 · tokens + 1 · min(tokens, 4)) · 4"
    several = rows["first 4 + window of 16"]
    assert several[0] == "16 · (1 · min(tokens, 4 + 16) + 1 · min(tokens, 4)) · 4"
    assert several[2] == "1.5 KiB"  # (20 + 4) · 64 bytes
    panel.show_view(view_of(tiny_scope(windows=(20, 20)).edit("to be or not")))
    rows = {row[0]: row[1:] for row in panel.table.rows}
    assert rows["window of 16"][0] == "16 · 2 · min(tokens, 16) · 4"
    several = rows["first 4 + window of 16"]
    assert several[0] == "16 · 2 · min(tokens, 4 + 16) while in its 20, then 16 · 4"
    assert several[2] == "2 KiB"  # at 32 tokens the first four are out of sight: 2 · 16 · 64


def test_layers_that_hold_different_amounts_are_said_so(panel: DesignsPanel) -> None:
    reading = tiny_scope().edit("to be or not")
    panel.show_view(view_of(replace(reading, cache_layer_bytes=(64, 768))))
    assert panel.layers_note.text().startswith("The 2 layers hold 64 to 768 B")


def test_without_a_cache_it_holds_nothing(panel: DesignsPanel) -> None:
    scope = tiny_scope()
    scope.edit("to be")
    panel.show_view(view_of(scope.set_cache(use=False)))
    assert panel.layers_note.text() == "The cache holds nothing now."


@pytest.mark.parametrize("text", ["", "t"])
def test_no_text_and_a_single_token_are_drawn(panel: DesignsPanel, text: str) -> None:
    panel.show_view(view_of(tiny_scope().edit(text)))
    assert panel.heading.text().startswith(f"{len(text)} of at most 32 tokens")
    assert len(panel.table.rows) == 6


def test_without_a_model_the_well_known_ones_are_there(panel: DesignsPanel) -> None:
    panel.show_view(view_of(None, phase="starting"))
    assert panel.heading.text() == "The model is being loaded."
    assert panel.numbers(view_of(None)) == ()
    assert len(panel.families.rows) == len(resources.cache_families())


# Well-known models


def families_at_16_bit(panel: DesignsPanel) -> dict[str, tuple[str, ...]]:
    """The table's rows in 2 bytes for each number."""
    panel.show_view(view_of(tiny_scope().edit("to be"), costs=Costs(cache_format="16 bit")))
    return {row[0]: row[1:] for row in panel.families.rows}


@pytest.mark.parametrize(
    ("model", "kib_per_token"),
    [
        ("GPT-2 small", 2 * 12 * 12 * 64 * 2 / 1024),
        ("Llama 3.1 8B", 2 * 32 * 8 * 128 * 2 / 1024),
        ("Llama 3.1 70B", 2 * 80 * 8 * 128 * 2 / 1024),
        ("Qwen2.5 7B", 2 * 28 * 4 * 128 * 2 / 1024),
        ("Gemma 2 9B", 2 * 42 * 8 * 256 * 2 / 1024),
    ],
)
def test_well_known_models_take_what_their_sizes_say(
    panel: DesignsPanel, model: str, kib_per_token: float
) -> None:
    assert families_at_16_bit(panel)[model][0] == f"{kib_per_token:g} KiB"


def test_latent_attention_keeps_one_row_of_576_numbers(panel: DesignsPanel) -> None:
    """61 · 576 · 2 bytes are 68.6 KiB a token, and 8.58 GiB at 128k."""
    assert families_at_16_bit(panel)["DeepSeek-V3"] == (
        "68.6 KiB",
        "137 MiB",
        "549 MiB",
        "8.58 GiB",
    )


def test_a_window_of_4096_is_full_at_8k(panel: DesignsPanel) -> None:
    """Mistral: 128 KiB a token up to 4,096; Gemma's other layers go on growing."""
    found = families_at_16_bit(panel)
    assert found["Mistral 7B v0.1"] == ("128 KiB", "256 MiB", "512 MiB", "(512 MiB)")
    in_mib = 21 * (4096 + 8192) * 2 * 8 * 256 * 2 / 2**20
    assert found["Gemma 2 9B"][2] == f"{in_mib / 1024:.3g} GiB"


def test_lengths_beyond_a_models_limit_are_bracketed(panel: DesignsPanel) -> None:
    found = families_at_16_bit(panel)
    assert all(cell.startswith("(") for cell in found["GPT-2 small"][1:])
    assert not any(cell.startswith("(") for cell in found["Llama 3.1 8B"])


def test_every_model_names_the_page_of_its_configuration(panel: DesignsPanel) -> None:
    families_at_16_bit(panel)
    for family in resources.cache_families():
        assert family.source.startswith("https://huggingface.co/")
        assert family.source.endswith("/config.json")
        page = family.source.split("/blob/")[0].removeprefix("https://huggingface.co/")
        assert f"{family.name}: {family.design}; {page}." in panel.sources.text()


def test_it_exports_what_it_draws(panel: DesignsPanel) -> None:
    view = view_of(tiny_scope().edit("to be or not"), costs=Costs(cache_format="16 bit"))
    designs, layers, models = panel.numbers(view)
    assert np.asarray(designs.columns["tokens"])[[0, -1]].tolist() == [0, 32]
    assert np.asarray(designs.columns["multi-query"])[-1] == 32 * 8 * 2 * 2
    assert layers.name == "layers"
    assert np.asarray(models.columns["bytes_at_2k"])[1] == 2048 * 131_072
