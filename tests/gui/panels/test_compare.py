"""Two runs side by side: typed, switched, pointed at and read off, on the model on screen."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QComboBox, QTabBar, QWidget
from pytestqt.qtbot import QtBot

import engine.answers.second_run
from engine.answers.alignment import ABSENT
from engine.answers.comparison import Comparison, Wanted
from engine.answers.second_run import SecondRun
from engine.conditions import Conditions
from engine.loading import load
from engine.reading import Look, Reading
from engine.scope import Scope
from gui.compare_choice import CompareChoice
from gui.panels.base import Panel
from gui.panels.compare import ComparePanel
from gui.state import Display, OpenedComparison, Selection
from gui.theme import THEMES, Theme, lookup_table
from gui.widgets.number_field import NumberField
from gui.widgets.scales import exact
from gui.wishes import (
    Compare,
    EditText,
    PointAt,
    SelectHead,
    SelectPosition,
    SetDisplay,
    WantComparison,
    Wish,
)
from resources import pairs
from tests.gui.picture_facts import colours, middle, point_at
from tests.gui.tiny_scope import house, named_scope, tiny_scope, view_of
from tests.gui.whole_window import WholeWindow, wait_until

LEFT = Qt.MouseButton.LeftButton
TEXT = "to be or not"


@pytest.fixture
def whole(qapp: QApplication, small_model: Path) -> Iterator[WholeWindow]:  # noqa: ARG001
    """The program with a small model of letters, Compare in front."""
    window = WholeWindow(model=small_model, prompt=TEXT).start()
    window.window.go_to_panel("compare")
    shown(window)
    yield window
    window.close()


def panel_of(whole: WholeWindow) -> ComparePanel:
    """Its panel."""
    panel = whole.panel("compare")
    assert isinstance(panel, ComparePanel)
    return panel


def shown(whole: WholeWindow) -> Comparison:
    """The comparison that is wanted now, once it is on the panel."""

    def is_answered() -> bool:
        state, opened = whole.state, whole.state.comparison
        if opened is None or state.reading is None:
            return False
        wanted = state.compare.wanted(state.reading, state.formats)
        return opened.answers(state.reading, wanted) and panel_of(whole)._drawn is not None

    whole.idle()
    wait_until(is_answered, "the comparison")
    comparison = panel_of(whole).shown
    assert comparison is not None
    return comparison


def by_itself(path: Path | str, text: str, look: Look, conditions: Conditions) -> Reading:
    """What a model of its own, opened here, makes of a text."""
    scope = Scope(load(Path(path)))
    scope.set_conditions(conditions)
    scope.look(look)
    return scope.edit(text)


def choose(combo: QComboBox, text: str) -> None:
    """Go through a list with the arrow keys until a row is there."""
    rows = [combo.itemText(row) for row in range(combo.count())]
    wanted = rows.index(text)
    for _ in rows:
        if combo.currentIndex() == wanted:
            return
        key = Qt.Key.Key_Down if combo.currentIndex() < wanted else Qt.Key.Key_Up
        QTest.keyClick(combo, key)


# Presets


def test_the_words_in_two_orders_are_a_preset(whole: WholeWindow, small_model: Path) -> None:
    """Chosen with a key: both texts, position by position; each square by a model of its own."""
    whole.wish(SelectHead(1, 2))
    panel = panel_of(whole)
    QTest.keyClick(panel.fields.presets, Qt.Key.Key_Down)
    whole.idle()
    comparison = shown(whole)
    assert whole.editor.text() == whole.reading.document.text == "dog bites person"
    assert panel.fields.prompt.text() == comparison.b.document.text == "person bites dog"
    assert comparison.way == "position"
    assert panel.fields.way.currentText() == "by position"
    assert comparison.alignment.pairs.tolist() == [[at, at] for at in range(16)]
    a, b = (
        by_itself(small_model, text, Look(1, 2), Conditions()).focus.weights
        for text in ("dog bites person", "person bites dog")
    )
    assert np.array_equal(panel.matrices[0]._weights, a)
    assert np.array_equal(panel.matrices[1]._weights, b)
    assert np.array_equal(panel.matrices[2]._weights, b - a)
    for slot, (one, other) in enumerate(zip("dog", "per", strict=True)):
        assert panel.matrices[2]._row_labels[slot] == f"{one}→{other}"


@pytest.mark.parametrize("pair", pairs(), ids=lambda pair: pair.title)
def test_every_preset_is_what_it_says(whole: WholeWindow, pair: Any) -> None:
    """Texts, mask and positions as written; what is not written stays as on screen."""
    panel_of(whole).fields.preset_chosen.emit(pair)
    whole.idle()
    comparison = shown(whole)
    assert comparison.a.document.text == (TEXT if pair.a is None else pair.a)
    assert comparison.b.document.text == (pair.b or comparison.a.document.text)
    assert comparison.a.conditions == Conditions()
    assert comparison.b.conditions == Conditions(
        mask=pair.mask or "causal", window=pair.window, positions=pair.positions
    )
    assert pair.way in {"automatic", comparison.way}
    assert comparison.difference.any()


# Live


def test_typing_in_either_prompt_updates_the_comparison(
    whole: WholeWindow, small_model: Path
) -> None:
    """Until B's is touched, A's text stands in it."""
    panel = panel_of(whole)
    assert panel.fields.prompt.text() == TEXT
    whole.type("!")
    comparison = shown(whole)
    assert panel.fields.prompt.text() == comparison.b.document.text == f"{TEXT}!"
    panel.fields.prompt.setFocus()
    QTest.keyClick(panel.fields.prompt, Qt.Key.Key_End, Qt.KeyboardModifier.ControlModifier)
    QTest.keyClicks(panel.fields.prompt, "xy")
    comparison = shown(whole)
    assert comparison.b.document.text == f"{TEXT}!xy"
    assert comparison.a.document.text == whole.editor.text() == f"{TEXT}!"
    assert len(comparison) == len(TEXT) + 3
    whole.type("?")
    comparison = shown(whole)
    assert (comparison.a.document.text, comparison.b.document.text) == (f"{TEXT}!?", f"{TEXT}!xy")
    own = by_itself(small_model, f"{TEXT}!xy", Look(*_head(whole)), Conditions())
    here = comparison.alignment.b != ABSENT
    found = panel.matrices[1]._weights[np.ix_(here, here)]
    assert found == pytest.approx(own.focus.weights, abs=1e-5)


def _head(whole: WholeWindow) -> tuple[int, int]:
    return whole.reading.focus.layer, whole.reading.focus.head


def test_another_head_is_compared_when_it_is_selected(
    whole: WholeWindow, small_model: Path
) -> None:
    whole.wish(Compare({"text": "not to be"}))
    for layer, head in ((0, 1), (1, 3)):
        whole.wish(SelectHead(layer, head))
        comparison = shown(whole)
        own = by_itself(small_model, "not to be", Look(layer, head), Conditions())
        assert (comparison.b.focus.layer, comparison.b.focus.head) == (layer, head)
        assert comparison.b.focus.weights == pytest.approx(own.focus.weights, abs=1e-5)


def test_a_keystroke_costs_nothing_while_nobody_looks(
    whole: WholeWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No second run, no drawing; and its memory was given back. Coming back catches up."""
    panel = panel_of(whole)
    compares, draws = [], []
    compare, draw = SecondRun.compare, ComparePanel.draw

    def counting(self: SecondRun, *given: Any) -> Any:
        compares.append(given[1].document.text)
        return compare(self, *given)

    monkeypatch.setattr(SecondRun, "compare", counting)

    def drawing(self: ComparePanel, *given: Any) -> None:
        draws.append(given)
        draw(self, *given)

    monkeypatch.setattr(ComparePanel, "draw", drawing)
    whole.window.go_to_panel("head")
    wait_until(lambda: WantComparison not in whole.state.wanted, "nobody to look")
    controller = whole.app.controller
    assert controller is not None
    wait_until(lambda: not controller._tickets, "the memory")
    second = controller._comparing._second
    assert second is not None
    assert second._scope is None
    whole.type("abc")
    whole.idle()
    wait_until(lambda: not controller._tickets, "the check")
    assert whole.reading.document.text == f"{TEXT}abc"
    assert (compares, draws) == ([], [])
    whole.window.go_to_panel("compare")
    comparison = shown(whole)
    assert comparison.a.document.text == f"{TEXT}abc"
    assert panel.is_seen


def test_what_is_shown_is_dimmed_while_the_next_is_worked_out(
    whole: WholeWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And stays until then; a keystroke in A is answered meanwhile, and gives the pass up."""
    begun, panel, before = threading.Event(), panel_of(whole), shown(whole)
    compare = SecondRun.compare

    def slow(self: SecondRun, scope: Any, reading: Any, wanted: Any, void: Any) -> Any:
        if wanted.text == "slow":
            begun.set()
            while not void():
                threading.Event().wait(0.002)
        return compare(self, scope, reading, wanted, void)

    monkeypatch.setattr(SecondRun, "compare", slow)
    panel.fields.prompt.selectAll()
    QTest.keyClicks(panel.fields.prompt, "slow")
    wait_until(begun.is_set)
    QApplication.processEvents()
    assert panel.shown is not None
    assert panel.shown.a is before.a
    wait_until(lambda: all(matrix._is_stale for matrix in panel.matrices))
    whole.type("!")
    wait_until(lambda: whole.reading.document.text == f"{TEXT}!", "A's answer")
    monkeypatch.setattr(SecondRun, "compare", compare)
    whole.wish(Compare({"text": "quick"}))
    assert shown(whole).b.document.text == "quick"
    assert not any(matrix._is_stale for matrix in panel.matrices)


# Conditions


def test_a_click_puts_the_run_beside_itself_without_the_mask(
    whole: WholeWindow, small_model: Path
) -> None:
    """The masked half is no longer hatched in B and in the difference."""
    panel = panel_of(whole)
    QTest.mouseClick(panel.fields.switches["text"], LEFT)
    QTest.mouseClick(panel.fields.switches["conditions"], LEFT)
    comparison = shown(whole)
    assert panel.fields.mask_choice.currentText() == "no mask"
    assert panel.fields.prompt.isHidden()
    free = by_itself(small_model, TEXT, Look(*_head(whole)), Conditions(mask="none"))
    assert comparison.difference == pytest.approx(
        free.focus.weights - whole.reading.focus.weights, abs=1e-6
    )
    assert panel.matrices[2]._visible.all()
    assert whole.state.mask.mask == "causal"
    assert whole.reading.conditions == Conditions()
    QTest.mouseClick(panel.fields.switches["conditions"], LEFT)
    assert not shown(whole).difference.any()


def test_a_window_is_set_by_keys_and_one_that_is_impossible_is_refused(whole: WholeWindow) -> None:
    """In one sentence beside the field; the window in force stays."""
    panel = panel_of(whole)
    QTest.mouseClick(panel.fields.switches["conditions"], LEFT)
    choose(panel.fields.mask_choice, "window")
    assert shown(whole).b.conditions == Conditions(mask="window", window=4)
    for typed, wanted in (("3", 3), ("0", 3), ("2", 2)):
        panel.fields.window_field.setFocus()
        panel.fields.window_field.selectAll()
        QTest.keyClicks(panel.fields.window_field, typed)
        QTest.keyClick(panel.fields.window_field, Qt.Key.Key_Return)
        assert shown(whole).b.conditions == Conditions(mask="window", window=wanted)
        assert panel.fields.complaint.isVisible() == (typed == "0")
    panel.fields.sinks_field.selectAll()
    QTest.keyClicks(panel.fields.sinks_field, "1\r")
    assert shown(whole).b.conditions == Conditions(mask="window", window=2, sinks=1)
    QTest.mouseClick(
        panel.fields.positions, LEFT, pos=QWidget.rect(panel.fields.positions).center()
    )
    QTest.keyClick(panel.fields.positions, Qt.Key.Key_Space)
    wait_until(lambda: not whole.state.compare.positions or panel.fields.positions.isChecked())
    whole.wish(Compare({"positions": False}))
    assert not shown(whole).b.conditions.positions
    assert not panel.fields.positions.isChecked()


# Models


def test_another_model_is_put_beside_by_its_folder(
    whole: WholeWindow, make_model: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chosen in the system's dialog; it is named, and so is the head that it has instead."""
    other = make_model("other", n_layer=1, n_head=2, seed=5)
    whole.wish(SelectHead(1, 3))
    monkeypatch.setattr("gui.widgets.compare_fields.ask_for_folder", lambda _parent: other)
    panel = panel_of(whole)
    whole.wish(Compare({"model": Path(whole.reading.info.path)}))
    QTest.mouseClick(panel.fields.switches["model"], LEFT)
    shown(whole)
    choose(panel.fields.model_choice, "Folder…")
    comparison = shown(whole)
    assert comparison.b.info.name == panel.fields.model_choice.currentText() == "other"
    widest = panel.fields.model_choice.fontMetrics().horizontalAdvance("positions-sinusoidal")
    assert panel.fields.model_choice.width() > widest + panel.fields.model_choice.height()
    own = by_itself(other, TEXT, Look(0, 1), Conditions())
    assert comparison.weights_b == pytest.approx(own.focus.weights, abs=1e-6)
    assert whole.reading.info.name == "small"
    assert panel.matrices[1]._titles[0].startswith("B: loss ")
    assert panel.matrices[1]._titles[0].endswith(" nats, other, L0 H1")
    assert "B is other, layer 0, head 1, causal mask." in panel.accessibleDescription()
    monkeypatch.setattr("gui.widgets.compare_fields.ask_for_folder", lambda _parent: None)
    choose(panel.fields.model_choice, "Folder…")
    assert panel.fields.model_choice.currentText() == "other"
    assert shown(whole).b.info is comparison.b.info


def test_another_models_head_can_be_chosen(
    whole: WholeWindow, make_model: Callable[..., Path]
) -> None:
    """Its own layer and head, typed; one that it lacks is a sentence; and back to A's."""
    other = make_model("other", n_layer=3, n_head=2, seed=5)
    whole.wish(SelectHead(1, 1))
    panel = panel_of(whole)
    fields = panel.fields
    assert fields.same_head.isHidden()
    whole.wish(Compare({"model": other, "differs": frozenset({"model"})}))
    shown(whole)
    assert fields.same_head.isVisible()
    assert fields.same_head.isChecked()
    assert fields.layer_field.isHidden()
    QTest.mouseClick(fields.same_head, LEFT, pos=QPoint(6, fields.same_head.height() // 2))
    wait_until(fields.layer_field.isVisible, "the fields")
    assert (fields.layer_field.text(), fields.head_field.text()) == ("1", "1")
    enter(fields.layer_field, "2")
    enter(fields.head_field, "0")
    wait_until(lambda: whole.state.compare.at == (2, 0), "the choice")
    comparison = shown(whole)
    own = by_itself(other, TEXT, Look(2, 0), Conditions())
    assert comparison.weights_b == pytest.approx(own.focus.weights, abs=1e-6)
    assert (comparison.a.focus.layer, comparison.a.focus.head) == (1, 1)
    assert panel.matrices[1]._titles[0].endswith(" nats, other, L2 H0")
    whole.wish(SelectHead(0, 3))  # A's alone
    assert (shown(whole).b.focus.layer, shown(whole).b.focus.head) == (2, 0)
    enter(fields.head_field, "7")
    assert fields.complaint.isVisible()
    assert fields.complaint.text() == "head = 7 is not in B; use 0 to 1."
    assert whole.state.compare.at == (2, 0)
    QTest.keyClick(fields.head_field, Qt.Key.Key_Escape)
    QTest.keyClick(fields.same_head, Qt.Key.Key_Space)
    wait_until(lambda: whole.state.compare.at is None, "A's head")
    assert (shown(whole).b.focus.layer, shown(whole).b.focus.head) == (0, 1)  # B's last
    assert fields.layer_field.isHidden()


def enter(field: NumberField, text: str) -> None:
    """Type into a field and finish it."""
    field.setFocus()
    field.selectAll()
    QTest.keyClicks(field, text)
    QTest.keyClick(field, Qt.Key.Key_Return)


def test_a_folder_without_a_model_is_told_and_nothing_is_lost(
    whole: WholeWindow, tmp_path: Path
) -> None:
    """One sentence; the last comparison stays, dimmed; another choice goes on."""
    panel, before = panel_of(whole), shown(whole)
    whole.wish(Compare({"model": tmp_path / "none", "differs": frozenset({"model"})}))
    wait_until(lambda: "does not exist" in panel.note.text(), "the sentence")
    assert panel.note.isVisible()
    assert panel.note.text().startswith(f"{tmp_path / 'none'} does not exist; open ")
    assert panel.note.text() in panel.accessibleDescription()
    assert panel.shown is before
    assert all(matrix._is_stale for matrix in panel.matrices)
    assert whole.window.message_bar.isHidden()
    whole.type("!")
    whole.idle()
    assert whole.reading.document.text == f"{TEXT}!"
    wait_until(lambda: "does not exist" in panel.note.text(), "the sentence again")
    QTest.mouseClick(panel.fields.switches["model"], LEFT)
    shown(whole)
    assert panel.note.isHidden()
    assert not any(matrix._is_stale for matrix in panel.matrices)


def test_closing_while_the_other_model_is_opened_ends_cleanly(
    whole: WholeWindow, make_model: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go = threading.Event(), threading.Event()

    def slow_load(*given: Any) -> Any:
        begun.set()
        assert go.wait(60)
        return load(*given)

    monkeypatch.setattr(engine.answers.second_run, "load", slow_load)
    assert whole.app.controller is not None
    whole.app.controller.fulfil(
        Compare({"model": make_model("late", seed=8), "differs": frozenset({"model"})})
    )
    wait_until(begun.is_set)
    threading.Timer(0.05, go.set).start()
    whole.window.close()
    assert whole.app.controller._engine.isFinished()


def test_that_another_model_is_being_opened_is_told(
    whole: WholeWindow, make_model: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over the comparison that was there, which stays, dimmed, until then."""
    begun, go = threading.Event(), threading.Event()

    def slow_load(*given: Any) -> Any:
        begun.set()
        assert go.wait(60)
        return load(*given)

    monkeypatch.setattr(engine.answers.second_run, "load", slow_load)
    panel, before = panel_of(whole), shown(whole)
    whole.wish(Compare({"model": make_model("late", seed=8), "differs": frozenset({"model"})}))
    wait_until(begun.is_set)
    assert panel.note.text() == "Opening late for B …"
    assert panel.note.isVisible()
    assert panel.shown is before
    go.set()
    assert shown(whole).b.info.name == "late"
    assert panel.note.isHidden()


# Its place


def test_a_tab_in_the_middle_leads_there_and_back(whole: WholeWindow) -> None:
    """Clicked; the keyboard's way is tested with all panels' keys."""
    (bar,) = [
        each
        for each in whole.window.findChildren(QTabBar)
        if "Compare" in map(each.tabText, range(each.count()))
    ]
    assert [bar.tabText(at) for at in range(2)] == ["Head", "Compare"]
    for at, name in ((0, "head"), (1, "compare")):
        QTest.mouseClick(bar, LEFT, pos=bar.tabRect(at).center())
        QApplication.processEvents()
        seen = {panel.name for panel in whole.window.findChildren(Panel) if panel.is_seen}
        assert seen & {"head", "compare"} == {name}
        assert whole.window.panel_in_use is whole.panel(name)


def test_f9_gives_the_comparison_the_width_of_the_window(whole: WholeWindow) -> None:
    """And brings the others back."""
    panel = panel_of(whole)
    before = panel.width()
    whole.press("F9", whole.window)
    QApplication.processEvents()
    assert panel.is_seen
    assert panel.width() > 0.95 * whole.window.width()
    assert panel.candidates.isVisible()
    whole.press("F9", whole.window)
    QApplication.processEvents()
    assert panel.width() == before


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_it_fits_into_a_window_of_720_lines(whole: WholeWindow, theme: Theme) -> None:
    """With everything switched on; the window stays as large as it was."""
    whole.wish(SetDisplay({"theme": theme}))
    whole.wish(
        Compare({"differs": frozenset({"text", "conditions", "model"}), "mask": "window"}),
    )
    whole.window.resize(1280, 720)
    QApplication.processEvents()
    assert (whole.window.width(), whole.window.height()) == (1280, 720)
    panel = panel_of(whole)
    for matrix in panel.matrices:
        assert matrix.isVisible()
        assert panel.rect().contains(matrix.geometry())
        assert matrix.cell_rect(0, 0).width() >= 2


def test_page_down_steps_from_bs_prompt_too(whole: WholeWindow) -> None:
    """A lecturer's clicker works wherever the caret is."""
    panel = panel_of(whole)
    panel.fields.prompt.setFocus()
    whole.press("PgDown")
    whole.idle()
    assert whole.reading.n_tokens == len(TEXT) + 1


# The panel by itself


@pytest.fixture
def panel(window: QWidget) -> ComparePanel:
    """A shown panel, with room for everything."""
    widget = ComparePanel()
    house(window, widget, 900, 900)
    window.resize(1400, 900)
    return widget


@pytest.fixture
def scope() -> Scope:
    """A model of letters on 'a bad cab'."""
    return named_scope("a bad cab")


def show(
    panel: ComparePanel, scope: Scope, text: str, way: Any = "token", **fields: Any
) -> Comparison:
    """What the window does once the second run is there."""
    reading = scope.look(Look(0, 1, fields["selection"].query if "selection" in fields else None))
    choice = CompareChoice(text=text, way=way)
    wanted = choice.wanted(reading, view_of(reading).state.formats)
    comparison = SecondRun().compare(scope, reading, wanted)
    assert comparison is not None
    opened = OpenedComparison(reading, wanted, comparison)
    fields = {
        "compare": choice,
        "comparison": opened,
        "wanted": frozenset({WantComparison}),
        **fields,
    }
    panel.show_view(view_of(reading, **fields))
    QApplication.processEvents()
    return comparison


def wished_by(panel: ComparePanel) -> list[Wish]:
    """What the panel wishes for from now on, but for being answered and for pointing."""
    wished: list[Wish] = []

    def hear(wish: Wish) -> None:
        if not isinstance(wish, (WantComparison, PointAt)):
            wished.append(wish)

    panel.wished.connect(hear)
    return wished


def test_pointing_at_a_cell_in_one_lights_it_in_all_and_tells_three_numbers(
    panel: ComparePanel, scope: Scope
) -> None:
    """Every digit of all three; leaving lights none."""
    comparison = show(panel, scope, "a big cab")
    pointed: list[Wish] = []
    panel.wished.connect(pointed.append)
    slot_of = comparison.alignment.slot_of_a
    cell = slot_of(8), slot_of(0)
    for matrix in panel.matrices:
        point_at(matrix, matrix.cell_rect(*cell).center())
        assert [each.shown_cell for each in panel.matrices] == [cell] * 3
        a, b = comparison.a.focus.weights[8, 0], comparison.b.focus.weights[8, 0]
        apart = exact(b - a)
        sign = "−" if apart.startswith("-") else "+"
        told = f"A {exact(a)}, B {exact(b)}, B − A {sign}{apart.lstrip('-')}: query 8 "
        assert panel.told.text().startswith(told)
        assert [figure.digits for figure in panel.figures()] == [apart, exact(b), exact(a)]
        assert pointed[-1] == PointAt((8, 0))
        point_at(matrix, QPointF(1, 1))
        assert [each.shown_cell for each in panel.matrices] == [None] * 3
        assert pointed[-1] == PointAt(None)
    assert panel.told.text().startswith("Largest difference ")


def test_a_cell_that_one_text_lacks_has_no_difference(panel: ComparePanel, scope: Scope) -> None:
    """It is hatched, and the reason is told; a masked cell is told as such."""
    comparison = show(panel, scope, "a big bad cab")
    slots = comparison.alignment
    row = slots.slot_of_b(12)
    only_b = next(slot for slot in range(len(slots)) if slots.a[slot] == ABSENT)
    a, b, apart = panel.matrices
    table, hatch = a._theme.masked, a._theme.hatch
    ground = {0xFF000000 | int(colour[1:], 16) for colour in (table, hatch)}
    for matrix in (a, apart):
        assert colours(matrix)[middle(matrix.cell_rect(row, only_b))] in ground
    assert colours(b)[middle(b.cell_rect(row, only_b))] not in ground
    point_at(apart, apart.cell_rect(row, only_b).center())
    said = exact(comparison.b.focus.weights[12, slots.b[only_b]])
    assert panel.told.text().startswith(f"A no token, B {said}, B − A none: query 8 ")
    assert [figure.name for figure in panel.figures()] == ["B"]
    point_at(a, a.cell_rect(0, row).center())
    assert panel.told.text().startswith("A masked, B masked, B − A none: ")
    assert panel.figures() == ()


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_a_difference_has_the_colour_of_its_sign_and_size(
    panel: ComparePanel, scope: Scope, theme: Theme
) -> None:
    """Read off the picture; A and B stand on one scale, from 0 to 1."""
    comparison = show(panel, scope, "a bid cab", display=Display(theme=theme))
    a, b, apart = panel.matrices
    reach = apart.legend.top
    table = lookup_table(theme.difference_map).astype(np.int64)
    picture = colours(apart)
    n_seen = 0
    for query, key in np.argwhere(comparison.exists):
        share = comparison.difference[query, key] / reach
        place = apart.cell_rect(query, key)
        seen = picture[int(place.top()) + 2, int(place.left()) + 2]
        assert seen in table[np.abs(np.arange(256) - 127.5 * (1 + share)).argsort()[:4]]
        n_seen += 1
    assert n_seen == comparison.exists.sum() > 10
    assert a.legend == b.legend
    assert (a.legend.top, a.legend.scale) == (1.0, "linear")
    weights = lookup_table(theme.weights_map)
    for matrix, values in ((a, comparison.weights_a), (b, comparison.weights_b)):
        place = matrix.cell_rect(0, 0)
        assert values[0, 0] == 1
        assert colours(matrix)[int(place.top()) + 2, int(place.left()) + 2] == weights[255]


def test_all_three_have_their_cells_in_the_same_places(panel: ComparePanel, scope: Scope) -> None:
    """Whatever their labels."""
    show(panel, scope, "zzz a bad cab zzz")
    for cell in ((0, 0), (5, 3), (16, 16)):
        places = [matrix.cell_rect(*cell) for matrix in panel.matrices]
        assert places[0] == places[1] == places[2]


def test_a_click_and_the_keys_select_in_the_program(
    qtbot: QtBot, panel: ComparePanel, scope: Scope
) -> None:
    """By A's positions; a slot that A lacks is only framed here."""
    wished = wished_by(panel)
    comparison = show(panel, scope, "a big bad cab")
    slots, matrix = comparison.alignment, panel.matrices[1]
    cell = slots.slot_of_a(6), slots.slot_of_a(2)
    qtbot.mouseClick(matrix, LEFT, pos=matrix.cell_rect(*cell).center().toPoint())
    assert wished == [SelectPosition(6, 2)]
    assert panel.cell == cell
    qtbot.keyClick(matrix, Qt.Key.Key_Down)
    assert wished[1:] == [SelectPosition(7, 2)]
    only_b = next(slot for slot in range(len(slots)) if slots.a[slot] == ABSENT)
    qtbot.mouseClick(matrix, LEFT, pos=matrix.cell_rect(only_b, 0).center().toPoint())
    assert len(wished) == 2
    assert panel.cell == (only_b, 0)
    assert panel.told.text().startswith("A no token, B ")
    assert all(each.shown_cell == (only_b, 0) for each in panel.matrices)
    qtbot.keyClick(panel.matrices[0], Qt.Key.Key_Home, Qt.KeyboardModifier.ControlModifier)
    assert wished[2:] == [SelectPosition(0, 0)]


def test_the_selected_cell_is_framed_where_it_stands_on_the_common_axis(
    panel: ComparePanel, scope: Scope
) -> None:
    comparison = show(panel, scope, "a big bad cab", selection=Selection(0, 1, 8, 3))
    slot_of = comparison.alignment.slot_of_a
    assert panel.cell == (slot_of(8), slot_of(3))
    assert slot_of(8) == 12
    assert panel.told.text().startswith(f"A {exact(comparison.a.focus.weights[8, 3])}, B ")


def test_candidates_of_both_stand_beside_each_other_with_their_difference(
    qtbot: QtBot, panel: ComparePanel, scope: Scope
) -> None:
    """Read off the rows, against softmaxes done here; keys move, copying gives all digits."""
    comparison = show(panel, scope, "a big cab")
    probs = []
    for reading in (comparison.a, comparison.b):
        assert reading.stages is not None
        exponentials = np.exp(reading.stages.logits.astype(np.float64))
        probs.append(exponentials / exponentials.sum())
    order = np.argsort(-np.maximum(*probs), kind="stable")
    table = panel.candidates
    assert table.n_rows >= 4
    for row in range(table.n_rows):
        _token, a, b, apart = table.texts(row)
        assert float(a.split()[0]) == pytest.approx(100 * probs[0][order[row]], abs=0.051)
        assert float(b.split()[0]) == pytest.approx(100 * probs[1][order[row]], abs=0.051)
        points = 100 * (probs[1] - probs[0])[order[row]]
        assert float(apart.replace("−", "-")) == pytest.approx(points, abs=0.051)
    table.setFocus()
    qtbot.keyClick(table, Qt.Key.Key_Down)
    assert table.pointed_row == 1
    digits = float(panel.figures()[0].digits)
    assert digits == pytest.approx((probs[1] - probs[0])[order[1]], abs=1e-9)
    assert table.accessibleDescription() == table.spoken(1)
    assert repr(float(comparison.next_tokens.prob_a[1])) in table.tooltip(1)  # type: ignore[union-attr]
    qtbot.keyClick(table, Qt.Key.Key_End)
    assert table.pointed_row == table.n_rows - 1
    qtbot.keyClick(table, Qt.Key.Key_Down)
    assert table.pointed_row == table.n_rows - 1
    for row in (0, 1):
        share = comparison.next_tokens.difference[row] / table.reach  # type: ignore[union-attr]
        room = table.bar_place(row)
        if abs(share) * room.width() / 2 > 6:
            place = QPointF(room.center().x() + share * room.width() / 4, room.center().y())
            seen = colours(table)[int(place.y()), int(place.x())]
            nearest = np.abs(np.arange(256) - 127.5 * (1 + share)).argsort()[:3]
            assert seen in lookup_table(THEMES["light"].difference_map)[nearest]


def test_the_losses_stand_over_the_squares_and_in_the_words(
    panel: ComparePanel, scope: Scope
) -> None:
    """Means of what the passes recorded, and their difference."""
    comparison = show(panel, scope, "a big cab")
    a, b = (float(np.mean(each.session.loss[1:])) for each in (comparison.a, comparison.b))
    assert panel.matrices[0]._titles[0] == f"A: loss {a:.3f} nats"
    assert panel.matrices[1]._titles[0] == f"B: loss {b:.3f} nats"
    apart = f"{b - a:+.3f}".replace("-", "−")
    assert panel.matrices[2]._titles[0] == f"B − A: {apart} nats"
    said = panel.accessibleDescription()
    assert f"Loss: A {a:.3f}, B {b:.3f} nats per token, B − A {apart}." in said
    assert "Compared equal tokens: " in said
    assert "Largest difference " in said
    assert "Most probable next: A " in said
    show(panel, scope, "a big bad cab")
    assert "bits per character" in panel.accessibleDescription()


def test_a_position_without_a_counterpart_says_so(panel: ComparePanel, scope: Scope) -> None:
    """Where the candidates would be."""
    show(panel, scope, "a bed cab", selection=Selection(0, 1, 3, None))
    assert panel.follows.text() == "The selected token has no counterpart in B."
    assert panel.candidates.accessibleDescription() == panel.follows.text()
    assert panel.candidates.pointed_row is None


@pytest.mark.parametrize(("a", "b"), [("", "a"), ("a", ""), ("a", "b"), ("", "")])
def test_empty_texts_and_single_tokens_are_shown(panel: ComparePanel, a: str, b: str) -> None:
    scope = tiny_scope()
    scope.edit(a)
    show(panel, scope, b)
    assert not panel.grab().isNull()
    if not a:
        assert "There is no text yet." in panel.accessibleDescription()
    assert panel.figures() == ()


def test_before_there_is_a_second_run_the_panel_says_what_goes_on(
    panel: ComparePanel, scope: Scope
) -> None:
    panel.show_view(view_of(None, phase="starting"))
    assert "The model is being loaded." in panel.accessibleDescription()
    reading = scope.look(Look())
    panel.show_view(view_of(reading))
    assert "The second run is being worked out." in panel.accessibleDescription()
    choice = CompareChoice(differs=frozenset({"model"}), model=Path("/models/large"))
    panel.show_view(view_of(reading, compare=choice))
    assert "Opening large for B …" in panel.accessibleDescription()


def test_where_there_is_little_room_a_button_turns_to_the_candidates(
    qtbot: QtBot, window: QWidget, panel: ComparePanel, scope: Scope
) -> None:
    """With more room both stand below each other, or beside."""
    show(panel, scope, "a big cab")
    first, table = panel.matrices[0], panel.candidates
    assert panel.turn.isHidden()
    assert first.isVisible()
    assert table.isVisible()
    assert table.mapTo(panel, QPointF()).y() > first.mapTo(panel, QPointF()).y()
    house(window, panel, 1200, 380)
    QApplication.processEvents()
    assert first.isVisible()
    assert table.isVisible()
    assert table.mapTo(panel, QPointF()).x() > first.mapTo(panel, QPointF()).x()
    house(window, panel, 520, 330)
    QApplication.processEvents()
    assert first.isVisible()
    assert not table.isVisible()
    qtbot.mouseClick(panel.turn, LEFT)
    assert table.isVisible()
    assert not first.isVisible()
    qtbot.keyClick(panel.turn, Qt.Key.Key_Space)
    assert first.isVisible()


def test_the_logarithmic_scale_is_taken_over_by_both_runs(
    panel: ComparePanel, scope: Scope
) -> None:
    """Others make one scale of two impossible."""
    for scale, used in (("log", "log"), ("row", "linear"), ("linear", "linear")):
        show(panel, scope, "a big cab", display=Display(scale=scale))  # type: ignore[arg-type]
        assert [matrix.legend.scale for matrix in panel.matrices[:2]] == [used] * 2


@pytest.mark.parametrize("width", [899, 900, 901, 902])
def test_cells_of_a_b_and_the_difference_have_one_size(
    window: QWidget, panel: ComparePanel, scope: Scope, width: int
) -> None:
    """Whatever the width is divided by."""
    house(window, panel, width, 400)
    show(panel, scope, "a big cab")
    sizes = {
        (rect.left(), rect.top(), rect.width(), rect.height())
        for rect in (matrix.cell_rect(4, 2) for matrix in panel.matrices)
    }
    assert len(sizes) == 1


# Choices as values


def test_a_choice_rests_while_it_is_not_among_what_differs(scope: Scope) -> None:
    reading = scope.look(Look())
    formats = view_of(reading).state.formats
    choice = CompareChoice(
        frozenset(), "b", "window", 3, 1, positions=False, model=Path("m"), way="token", at=(3, 1)
    )
    assert choice.wanted(reading, formats) == Wanted(formats=formats, way="token")
    everything = replace(choice, differs=frozenset({"text", "conditions", "model"}))
    window = Conditions(mask="window", window=3, sinks=1, positions=False)
    assert everything.wanted(reading, formats) == Wanted(
        "b", window, Path("m"), formats, "token", (3, 1)
    )


def test_what_a_has_switched_off_stays_off_under_another_mask() -> None:
    off = Conditions(heads_off=frozenset({(0, 1)}))
    choice = CompareChoice(differs=frozenset({"conditions"}), mask="none")
    assert choice.conditions(off) == Conditions(mask="none", heads_off=frozenset({(0, 1)}))


def test_a_window_that_is_not_possible_is_refused_in_a_sentence(whole: WholeWindow) -> None:
    """Whoever asks for it."""
    before = whole.state.compare
    whole.wish(Compare({"window": 0}))
    assert whole.state.compare == before
    assert "a window of 0 positions" in whole.window.message_bar.sentence


def test_the_theme_and_the_mouse_change_nothing_in_what_is_compared(whole: WholeWindow) -> None:
    """No second run is asked for."""
    before = shown(whole)
    whole.wish(SetDisplay({"theme": THEMES["dark"]}), PointAt((1, 0)), PointAt(None))
    assert shown(whole) is before
    whole.wish(EditText(f"{TEXT}?"))
    assert shown(whole) is not before
