"""Switching heads off, and what moves the answer most: in the whole window, by keys and clicks."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QPointF, Qt
from PySide6.QtGui import QContextMenuEvent, QGuiApplication, QHelpEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenu, QToolTip, QWidget
from pytestqt.qtbot import QtBot

from engine.answers.ablation import Head
from engine.answers.ablation_pass import EffectSweep
from engine.conditions import Conditions
from engine.loading import load
from engine.scope import Scope
from gui.panels.head import HeadPanel
from gui.panels.heads import HeadsPanel
from gui.panels.heads_off import HINT, NOT_MEASURED, HeadsOffPanel
from gui.state import HeadsOff
from gui.theme import THEMES
from gui.widgets.effect_rows import EffectRows, points
from gui.widgets.pair_rows import PairRows, Pairs
from gui.wishes import (
    EditText,
    SelectHead,
    SelectPosition,
    SetDisplay,
    SetHeadsOff,
    SetMask,
    WantIntact,
)
from tests.gui.picture_facts import colours, middle, point_at
from tests.gui.tiny_scope import tiny_scope, view_of
from tests.gui.whole_window import WholeWindow, wait_until

LEFT = Qt.MouseButton.LeftButton
TEXT = "To be, or not to be"
# What the screenless platform says of a menu that pops up.
menus = pytest.mark.qt_log_ignore("does not support (raise|grabbing the keyboard)")

Doubles = NDArray[np.float64]


@pytest.fixture(scope="module")
def opened(qapp: QApplication, small_model: Path) -> Iterator[WholeWindow]:  # noqa: ARG001
    """One window for all tests of this file."""
    whole = WholeWindow(model=small_model, prompt=TEXT).start()
    yield whole
    whole.close()


@pytest.fixture
def whole(opened: WholeWindow) -> WholeWindow:
    """The window on the same text, all heads on, with the panel in front."""
    opened.wish(SetHeadsOff(vars(HeadsOff())), SetMask({"mask": "causal"}), EditText(TEXT))
    opened.wish(SetDisplay({"shade": "weights", "sort": None, "theme": THEMES["light"]}))
    opened.wish(SelectHead(1, 1), SelectPosition(None))
    opened.window.go_to_panel("heads_off")
    opened.idle()
    opened.activate()
    panel(opened)._turn_to(0)
    return opened


def panel(whole: WholeWindow) -> HeadsOffPanel:
    """The panel itself."""
    found = whole.panel("heads_off")
    assert isinstance(found, HeadsOffPanel)
    return found


def click(widget: QWidget) -> None:
    """With the mouse, in the middle."""
    QTest.mouseClick(widget, LEFT)


def compared(whole: WholeWindow) -> HeadsOffPanel:
    """The panel, once what it compares with is there."""

    def is_there() -> bool:
        opened = whole.state.intact
        return opened is not None and opened.answers(whole.reading)

    wait_until(is_there)
    whole.idle()
    return panel(whole)


def measured(whole: WholeWindow) -> HeadsOffPanel:
    """The panel, after a click on its button and once all heads are measured."""
    found = panel(whole)
    found._turn_to(1)
    click(found.measure)
    assert whole.state.measuring
    wait_until(lambda: not whole.state.measuring)
    whole.idle()
    return found


def softmax(logits: NDArray[np.floating]) -> Doubles:
    """By its definition."""
    powers = np.exp(logits.astype(np.float64))
    return np.asarray(powers / powers.sum())


def read(folder: Path, *heads: Head, **more: Any) -> tuple[float, Doubles]:
    """Mean loss and last distribution of TEXT, read from the start by an engine of its own."""
    scope = Scope(load(folder))
    scope.set_conditions(Conditions(heads_off=frozenset(heads), **more))
    reading = scope.edit(TEXT)
    assert reading.stages is not None
    losses = reading.session.loss[1:].astype(np.float64)
    return float(losses.mean()), softmax(reading.stages.logits)


# Switching


def test_a_key_switches_the_selected_head_off_and_everything_says_so(whole: WholeWindow) -> None:
    """Overview, head, panel, status; and the same key switches it on again."""
    heads, head = whole.panel("heads"), whole.panel("head")
    assert isinstance(heads, HeadsPanel)
    assert isinstance(head, HeadPanel)
    before = colours(heads.atlas.viewport())
    place = heads.atlas.head_rect(1, 1)
    assert place is not None
    whole.press("Ctrl+H")
    whole.idle()
    assert whole.reading.conditions.heads_off == {(1, 1)}
    shown = colours(heads.atlas.viewport())
    assert (shown != before)[middle(place)]
    ink = int(THEMES["light"].text[1:], 16) | 0xFF000000
    corner = QPointF(place.left() + place.width() / 4, place.top() + place.height() / 4)
    assert shown[int(corner.y()), int(corner.x())] == ink  # a stroke of the cross
    other = heads.atlas.head_rect(0, 2)
    assert other is not None
    assert (shown == before)[middle(other)]
    assert head.heading.text().startswith("Layer 1, head 1 · off")
    assert not head.is_on.isChecked()
    assert heads.named.text().startswith("Layer 1, head 1: off, zero")
    assert panel(whole).which.text() == "Off: L1 H1"
    assert "1 head is off" in whole.app.window._status.text()
    whole.press("Ctrl+H")
    whole.idle()
    assert whole.reading.conditions == Conditions()
    assert head.is_on.isChecked()
    assert panel(whole).which.text() == "No head is off"
    assert np.array_equal(colours(heads.atlas.viewport()), before)


def test_a_click_in_one_head_switches_it_off_and_on(whole: WholeWindow) -> None:
    """Its box says whether it is on."""
    head = whole.panel("head")
    assert isinstance(head, HeadPanel)
    for off in ({(1, 1)}, set()):
        QTest.mouseClick(head.is_on, LEFT, pos=head.is_on.rect().center() / 2)
        whole.idle()
        assert whole.reading.conditions.heads_off == off
        assert head.is_on.isChecked() == (not off)


def test_a_layer_is_named_in_one_word_and_one_click_brings_all_back(whole: WholeWindow) -> None:
    """With the very numbers that were there before."""
    before = whole.reading.session.loss
    whole.press("Ctrl+Shift+H")
    whole.wish(SelectHead(0, 2))
    whole.press("Ctrl+H")
    whole.idle()
    assert len(whole.reading.conditions.heads_off) == 5
    assert panel(whole).which.text() == "Off: L0 H2, L1 all"
    assert not np.allclose(whole.reading.session.loss[1:], before[1:])
    click(panel(whole).restore)
    whole.idle()
    assert np.array_equal(whole.reading.session.loss, before, equal_nan=True)
    assert not panel(whole).restore.isEnabled()


def test_zero_and_mean_are_two_different_things(whole: WholeWindow, small_model: Path) -> None:
    """A click chooses; the numbers are those of the engine by itself."""
    whole.wish(SetHeadsOff({"heads": frozenset({(0, 1)})}))
    for at, by in ((1, "mean"), (0, "zero")):
        click(panel(whole).by.button(at))
        whole.idle()
        assert whole.reading.conditions.off_by == by
        assert panel(whole).by.checkedId() == at
        loss, _probs = read(small_model, (0, 1), off_by=by)
        now = whole.reading.session.loss[1:].astype(np.float64).mean()
        assert now == pytest.approx(loss, abs=1e-5)


def _menu(on: QWidget, place: QPointF) -> dict[str, Any]:
    """What a right click offers, by its words."""
    event = QContextMenuEvent(
        QContextMenuEvent.Reason.Mouse, place.toPoint(), on.mapToGlobal(place.toPoint())
    )
    QApplication.sendEvent(on, event)
    top = on.window()
    (menu,) = [each for each in top.findChildren(QMenu) if each.isVisible()]
    return {action.text(): action for action in menu.actions()} | {"": menu}


@menus
def test_a_right_click_in_the_overview_switches_what_is_under_it(whole: WholeWindow) -> None:
    """The head, its layer, and whatever is off."""
    heads = whole.panel("heads")
    assert isinstance(heads, HeadsPanel)
    port = heads.atlas.viewport()

    def choose(layer: int, head: int, text: str) -> None:
        place = heads.atlas.head_rect(layer, head)
        assert place is not None
        point_at(port, place.center())
        offered = _menu(port, place.center())
        offered[text].trigger()
        offered[""].close()
        whole.idle()

    choose(0, 3, "Switch off layer 0, head 3")
    assert whole.reading.conditions.heads_off == {(0, 3)}
    choose(0, 1, "Switch off all of layer 0")
    assert whole.reading.conditions.heads_off == {(0, head) for head in range(4)}
    choose(0, 3, "Switch on layer 0, head 3")
    assert whole.reading.conditions.heads_off == {(0, 0), (0, 1), (0, 2)}
    choose(1, 2, "Switch all heads on")
    assert whole.reading.conditions == Conditions()


# Side by side


def test_loss_and_candidates_stand_side_by_side(whole: WholeWindow, small_model: Path) -> None:
    """Both as an engine of its own gives them, from the start."""
    loss_on, on = read(small_model)
    loss_off, off = read(small_model, (1, 1), (0, 0))
    whole.wish(SetHeadsOff({"heads": frozenset({(1, 1), (0, 0)})}))
    found = compared(whole)
    figures = f"{loss_on:.3f} → {loss_off:.3f} nats"
    assert figures in found.loss.text()
    moved = float((on * (np.log(on) - np.log(off))).sum())
    assert found.moved.text().startswith(f"After position {len(TEXT) - 1} ")
    told = re.search(r"moved by ([\d.]+) nats", found.moved.text())
    assert told is not None
    assert float(told[1]) == pytest.approx(moved, rel=0.06)
    pairs = found.pairs.pairs
    assert pairs is not None
    assert pairs.before == pytest.approx(on[pairs.token_ids], abs=1e-5)
    assert pairs.now == pytest.approx(off[pairs.token_ids], abs=1e-5)
    assert set(np.argsort(-on)[:5]) | set(np.argsort(-off)[:5]) <= set(pairs.token_ids.tolist())
    largest = np.maximum(pairs.before, pairs.now)
    assert np.array_equal(np.sort(largest)[::-1], largest)
    first = int(pairs.token_ids[0])
    assert found.pairs.header() == ["token", "all heads on", "now"]
    assert found.pairs.texts(0)[1:] == [f"{100 * on[first]:.1f} %", f"{100 * off[first]:.1f} %"]
    wide = [bar.width() for bar in found.pairs.bar_places(0)]
    assert wide[0] / wide[1] == pytest.approx(on[first] / off[first], rel=1e-3)
    assert figures in found.accessibleDescription()


def test_what_is_compared_is_dimmed_until_the_new_comparison_is_there(whole: WholeWindow) -> None:
    """A text that grew is no longer the one that was compared."""
    whole.wish(SetHeadsOff({"heads": frozenset({(0, 0)})}))
    found = compared(whole)
    assert not found.pairs.is_stale
    old = whole.state.intact
    assert old is not None
    whole.wish(EditText(TEXT + "!"))
    view = found.drawn
    assert view is not None
    found.draw(replace(view, state=replace(whole.state, intact=old)), view)
    assert found.pairs.is_stale
    compared(whole)
    found.draw(replace(view, state=whole.state), view)
    assert not found.pairs.is_stale


def test_with_all_heads_on_one_sentence_says_how_to_switch_one_off(whole: WholeWindow) -> None:
    """And no number stands there."""
    whole.wish(SetHeadsOff({"heads": frozenset({(0, 0)})}))
    assert compared(whole).pairs.sentence == ""
    whole.wish(SetHeadsOff({"heads": frozenset()}))
    found = panel(whole)
    assert found.pairs.sentence == HINT
    assert (found.loss.text(), found.moved.text(), found.pairs.pairs) == ("", "", None)


@menus
def test_the_token_that_follows_is_marked_and_every_label_is_plain_text(qtbot: QtBot) -> None:
    """In words and at the edge; what looks like markup is shown to the letter."""
    rows = PairRows()
    qtbot.addWidget(rows)
    rows.resize(330, 200)
    pairs = Pairs(
        titles=("before", "after"),
        token_ids=np.array([7, 5]),
        labels=("<b>x</b>", "y"),
        spoken=("<b>x</b>", "y"),
        before=np.array([0.75, 0.25]),
        now=np.array([0.5, 0.0]),
        follows=5,
    )
    rows.set_pairs(pairs)
    rows.show()
    assert [rows.is_marked(row) for row in range(2)] == [False, True]
    assert rows.spoken(1) == "y, which follows in the text: before 25.0 %, after 0 %"
    assert rows.texts(0) == ["<b>x</b>", "75.0 %", "50.0 %"]
    widths = [[bar.width() for bar in rows.bar_places(row)] for row in range(2)]
    assert widths[1] == [pytest.approx(widths[0][0] / 3), 0]
    place = rows.row_place(0).center().toPoint()
    port = rows.viewport()
    QApplication.sendEvent(port, QHelpEvent(QEvent.Type.ToolTip, place, port.mapToGlobal(place)))
    assert "&lt;b&gt;x&lt;/b&gt;, id 7" in QToolTip.text()
    QToolTip.hideText()


@pytest.mark.parametrize("text", ["", "T"])
def test_too_short_a_text_is_said_to_be_so(whole: WholeWindow, text: str) -> None:
    """No text compares nothing; one token has a prediction and no loss."""
    whole.wish(EditText(text), SetHeadsOff({"heads": frozenset({(0, 0)})}))
    found = panel(whole)
    if not text:
        assert found.pairs.sentence.startswith("There is no text yet.")
        assert found.rows.sentence.startswith("There is no text yet.")
        assert not found.measure.isEnabled()
        return
    compared(whole)
    assert found.loss.text() == "One token has no loss; a loss needs two."
    assert found.pairs.n_rows > 5
    measured(whole)
    said = dict(zip(found.rows.header()[2:], found.rows.texts(0)[1:], strict=True))
    assert said["loss"] == "–"
    lines = found.rows.lines
    assert lines is not None
    assert np.isnan(lines.loss).all()
    assert np.isfinite(lines.answer).all()


# What moves the answer most


def test_a_click_measures_every_head_and_ranks_them(whole: WholeWindow, small_model: Path) -> None:
    """Each number is that of running the text without the head, by an engine of its own."""
    loss_on, on = read(small_model)
    found = measured(whole)
    lines = found.rows.lines
    assert lines is not None
    assert sorted(lines.heads) == [(layer, head) for layer in range(2) for head in range(4)]
    token_id = whole.state.followed_id
    for row, head in enumerate(lines.heads):
        loss, off = read(small_model, head)
        moved = float((on * (np.log(on) - np.log(off))).sum())
        assert lines.answer[row] == pytest.approx(moved, abs=1e-5, rel=1e-3)
        assert lines.loss[row] == pytest.approx(loss - loss_on, abs=1e-5)
        assert lines.probability[row] == pytest.approx(off[token_id] - on[token_id], abs=1e-5)
        layer, at = head
        assert found.rows.texts(row)[0] == f"L{layer} H{at}"
        assert repr(float(lines.answer[row])) in found.rows.tooltip(row)
    assert np.array_equal(np.sort(lines.answer)[::-1], lines.answer)
    click(found.orders.button(1))
    whole.idle()
    assert whole.state.display.shade == "loss"
    lines = found.rows.lines
    assert lines is not None
    sizes = np.abs(lines.loss)
    assert np.array_equal(np.sort(sizes)[::-1], sizes)
    assert found.measure.text() == "What moves the answer most"
    assert "all heads" in found.state_of_it.text()


def test_the_overview_is_shaded_by_what_was_measured(whole: WholeWindow) -> None:
    """The strongest head has the end of the map, and a number; in its order if that is chosen."""
    found = measured(whole)
    heads = whole.panel("heads")
    assert isinstance(heads, HeadsPanel)
    lines, atlas = found.rows.lines, heads.atlas
    assert lines is not None
    strongest, weakest = lines.heads[0], lines.heads[-1]
    tiles = atlas._tiles
    assert tiles is not None
    assert tiles.largest == lines.answer[0]
    theme = THEMES["light"]
    shown = colours(atlas.viewport())
    for head in (strongest, weakest):
        place = atlas.head_rect(*head)
        assert place is not None
        colour = tiles.colour(head, theme)
        assert colour is not None
        assert shown[int(place.top()) + 2, int(place.left()) + 2] == colour.rgb()
    shown_row = lines.heads.index((1, 1))
    assert f"answer {float(lines.answer[shown_row])!r}" in heads.named.text()
    assert "answer moves" in heads.named.text()
    heads.sort.setCurrentIndex(6)
    heads.sort.activated.emit(6)
    whole.idle()
    assert whole.state.display.sort == "answer"
    assert atlas._order == lines.heads
    heads.sort.activated.emit(0)


def test_a_row_that_is_chosen_selects_its_head(whole: WholeWindow) -> None:
    """By click and by Enter; its row is marked."""
    found = measured(whole)
    lines = found.rows.lines
    assert lines is not None
    QTest.mouseClick(found.rows.viewport(), LEFT, pos=found.rows.row_place(2).center().toPoint())
    whole.idle()
    assert (whole.state.selection.layer, whole.state.selection.head) == lines.heads[2]
    assert found.rows.is_marked(2)
    found.rows.setFocus()
    whole.press("Down", found.rows)
    whole.press("Return", found.rows)
    whole.idle()
    assert (whole.state.selection.layer, whole.state.selection.head) == lines.heads[3]
    for keys, row in (("Home", 0), ("End", 7), ("Up", 6), ("Down", 7), ("Down", 7)):
        whole.press(keys, found.rows)
        assert found.rows.current_row == row


def test_over_a_head_that_a_click_selects_the_pointer_is_a_hand(whole: WholeWindow) -> None:
    """And over the titles it is not."""
    found = measured(whole)
    port = found.rows.viewport()
    for place, shape in (
        (found.rows.row_place(1).center(), Qt.CursorShape.PointingHandCursor),
        (QPointF(30, found.rows.header_middle()), Qt.CursorShape.ArrowCursor),
    ):
        QTest.mouseMove(port, place.toPoint())
        assert port.cursor().shape() == shape


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (0.1234, "+12.3 pp"),
        (-0.00004, "−0.004 pp"),
        (-0.0000073, "−7e−4 pp"),
        (6e-7, "+6e−5 pp"),
        (0.0, "0 pp"),
        (float("nan"), "–"),
    ],
)
def test_a_small_change_of_a_probability_is_as_short_as_its_title(change: float, said: str) -> None:
    """A number that is cut reads as another number."""
    rows = EffectRows()
    assert points(change) == said
    assert rows._axis.width(said) <= rows._axis.width("probability")
    rows.deleteLater()


def test_the_copy_key_copies_the_number_with_all_digits(whole: WholeWindow) -> None:
    """Of the current row, in either list."""
    found = measured(whole)
    lines = found.rows.lines
    assert lines is not None
    found.rows.setFocus()
    found.rows.go_to(0)
    whole.press("Ctrl+C", found.rows)
    assert QGuiApplication.clipboard().text() == repr(float(lines.answer[0]))
    whole.wish(SetHeadsOff({"heads": frozenset({(0, 0)})}))
    compared(whole)
    click(found.pages.button(0))
    found.pairs.setFocus()
    found.pairs.go_to(1)
    whole.press("Ctrl+C", found.pairs)
    assert found.pairs.pairs is not None
    assert QGuiApplication.clipboard().text() == repr(float(found.pairs.pairs.now[1]))


def test_what_was_measured_on_another_text_is_dimmed_and_said_to_be(whole: WholeWindow) -> None:
    """The overview shows weights again; coming back to the text, it is true once more."""
    found = measured(whole)
    heads = whole.panel("heads")
    assert isinstance(heads, HeadsPanel)
    assert not found.rows.is_stale
    whole.wish(EditText(TEXT + "!"))
    assert found.rows.is_stale
    assert found.rows.n_rows == 8
    assert found.state_of_it.text() == "Measured on another text or under other conditions."
    assert heads.atlas._tiles is None
    assert "answer" not in heads.named.text()
    whole.wish(EditText(TEXT))
    assert not found.rows.is_stale
    assert heads.atlas._tiles is not None
    whole.wish(SelectPosition(2))
    assert found.rows.is_stale
    assert "which is not the selected one" in found.state_of_it.text()
    click(found.orders.button(1))  # losses are those of the text
    whole.idle()
    assert not found.rows.is_stale
    assert heads.atlas._tiles is not None
    whole.wish(SetMask({"mask": "window", "window": 2}))
    assert found.rows.is_stale


def test_the_button_stops_what_it_began(
    whole: WholeWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And says what it does; what was measured stays, and is said to be a part."""
    real = EffectSweep.step
    held: list[bool] = [True]

    def step(sweep: EffectSweep, cancelled: Callable[[], bool]) -> Any:
        effects = real(sweep, cancelled)
        wait = effects.n_measured == 3
        while wait and held and not cancelled():
            pass
        return effects

    monkeypatch.setattr(EffectSweep, "step", step)
    found = panel(whole)
    found._turn_to(1)
    click(found.measure)
    wait_until(lambda: whole.state.effects and whole.state.effects.effects.n_measured == 2)
    assert found.measure.text() == "Stop measuring"
    assert found.state_of_it.text() == "Measured 2 of 8 heads … (Esc stops)"
    assert whole.app.window._status.text() == found.state_of_it.text()
    click(found.measure)
    held.clear()
    whole.idle()
    assert not whole.state.measuring
    assert "2 of 8 heads" in found.state_of_it.text()
    assert found.rows.n_rows == 2


def test_heads_that_are_off_already_are_measured_no_more(whole: WholeWindow) -> None:
    """The others are measured beside them, replaced as they are."""
    whole.wish(SetHeadsOff({"heads": frozenset({(0, 0), (1, 3)}), "by": "mean"}))
    found = measured(whole)
    lines = found.rows.lines
    assert lines is not None
    assert len(lines) == 6
    assert not {(0, 0), (1, 3)} & set(lines.heads)
    assert "mean" in found.state_of_it.text()


def test_before_anything_is_measured_one_sentence_says_how(whole: WholeWindow) -> None:
    """Nor is a number of another model shown."""
    other = tiny_scope().edit("abc")
    found = panel(whole)
    view = view_of(other)
    found.draw(view, None)
    assert found.rows.sentence == NOT_MEASURED
    measured(whole)
    found.draw(view_of(other, effects=whole.state.effects), found.drawn)
    assert found.rows.sentence == NOT_MEASURED


@menus
def test_a_right_click_in_the_panel_offers_all_heads_on(whole: WholeWindow) -> None:
    whole.wish(SetHeadsOff({"heads": frozenset({(0, 0)})}))
    compared(whole)
    port = panel(whole).pairs.viewport()
    offered = _menu(port, QPointF(20, 40))
    assert "Copy probability now" in offered
    offered["Switch all heads on"].trigger()
    offered[""].close()
    whole.idle()
    assert whole.reading.conditions == Conditions()


# What leaves the program


def test_the_numbers_are_those_on_the_panel(whole: WholeWindow) -> None:
    """Both distributions over the whole vocabulary, both losses, and every head."""
    whole.wish(SetHeadsOff({"heads": frozenset({(0, 1)})}))
    found = compared(whole)
    measured(whole)
    view = found.drawn
    assert view is not None
    tables = {table.name: table.columns for table in found.numbers(view)}
    assert list(tables) == ["switches", "candidates", "tokens", "moved", "heads", "shown"]
    assert tables["switches"]["off"].tolist() == [False, True] + [False] * 6  # type: ignore[union-attr]
    candidates, reading = tables["candidates"], whole.reading
    assert len(candidates["token_id"]) == reading.info.config.vocab_size
    assert np.asarray(candidates["probability_now"]).sum() == pytest.approx(1)
    assert np.array_equal(tables["tokens"]["nats_now"], reading.session.loss, equal_nan=True)
    lines = found.rows.lines
    assert lines is not None
    assert list(zip(tables["heads"]["layer"], tables["heads"]["head"], strict=True)) == list(
        lines.heads
    )
    assert np.array_equal(tables["heads"]["divergence_nats"], lines.answer)
    whole.wish(EditText(TEXT + "!"))
    view = found.drawn
    assert view is not None
    assert "heads" not in {table.name for table in found.numbers(view)}


# Look


@pytest.mark.parametrize("name", THEMES)
@pytest.mark.parametrize("page", [0, 1])
def test_it_fits_a_narrow_column_in_every_theme(whole: WholeWindow, name: str, page: int) -> None:
    """Nothing holds the dock open beyond its usual width."""
    whole.wish(SetHeadsOff({"heads": frozenset({(0, 1)})}))
    found = compared(whole)
    measured(whole)
    whole.wish(SetDisplay({"theme": THEMES[name]}))
    found._turn_to(page)
    QApplication.processEvents()
    assert found.minimumSizeHint().width() <= 345
    assert found.minimumSizeHint().height() <= 300
    for rows in (found.pairs, found.rows):
        for _text, span, _align in rows.header_cells():
            assert span.width > 0
            assert span.right <= rows.viewport().width() + 1
    whole.wish(SetDisplay({"theme": THEMES["light"]}))


def test_a_hidden_panel_asks_for_nothing(whole: WholeWindow) -> None:
    """The engine compares only for who looks."""
    whole.window.go_to_panel("mask")
    whole.idle()
    wait_until(lambda: WantIntact not in whole.state.wanted)
    whole.wish(SetHeadsOff({"heads": frozenset({(1, 0)})}))
    assert whole.state.intact is None or not whole.state.intact.answers(whole.reading)
    whole.window.go_to_panel("heads_off")
    compared(whole)
