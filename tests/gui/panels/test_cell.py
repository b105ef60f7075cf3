"""One cell: numbers read off the panel against the stored tensors, and what a hidden one costs."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDockWidget, QWidget
from pytestqt.qtbot import QtBot

import engine.scope
from engine.answers.cell import CellArithmetic
from engine.conditions import Conditions
from engine.reading import Look, Reading
from engine.scope import Scope
from gui import graphs
from gui.panels.cell import WAITING, CellPanel
from gui.state import Display, OpenedCell, Selection
from gui.theme import THEMES, Theme
from gui.widgets.arithmetic_stages import Bars, Dials, Marks, Note, Term
from gui.widgets.arithmetic_view import HINT, ArithmeticView
from gui.widgets.matrix_view import MatrixView
from gui.wishes import EditText, SelectHead, SelectPosition, SetMask, WantCell, Wish
from tests.gui.picture_facts import colours, middle, point_at
from tests.gui.tiny_scope import house, view_of
from tests.gui.whole_window import WholeWindow, wait_until

LEFT = Qt.MouseButton.LeftButton
TEXT = "to be or not to be"


@pytest.fixture
def make_scope(lettered: Callable[..., Scope]) -> Callable[..., Scope]:
    """`make_scope("alibi")` has a small random model open on TEXT."""
    return partial(lettered, TEXT)


@pytest.fixture
def panel(window: QWidget) -> CellPanel:
    """A shown panel as a column of a window."""
    widget = CellPanel()
    house(window, widget, 400, 380)
    return widget


def show(
    panel: CellPanel, scope: Scope, look: Look, key: int | None, **fields: Any
) -> tuple[Reading, CellArithmetic]:
    """What the window does with an answer."""
    reading = scope.look(look)
    cell = scope.cell(reading, key)
    assert cell is not None
    selection = Selection(look.layer, look.head, look.query, key)
    opened = OpenedCell(reading, key, cell)
    panel.show_view(
        view_of(reading, cell=opened, selection=selection, wanted=frozenset({WantCell}), **fields)
    )
    QApplication.processEvents()
    return reading, cell


def number(panel: CellPanel, step: str) -> float:
    """What the text of the panel says that a step leads to."""
    (line,) = [line for line in panel.text().splitlines() if line.startswith(step)]
    return float(line.split(" = ")[-1].replace("∞", "inf"))


def row(panel: CellPanel, caption: str) -> list[float]:
    """The numbers that the text of the panel lists under a caption."""
    found = re.search(rf"^{re.escape(caption)}.*:\n((?:\t.+\n?)+)", panel.text(), re.MULTILINE)
    assert found, caption
    lines = found[1].rstrip("\n").split("\n")
    return [float(line.split("\t")[-1].replace("∞", "inf")) for line in lines]


def by_hand(reading: Reading, layer: int, head: int, query: int, key: int) -> dict[str, Any]:
    """The arithmetic of a causal head on two key heads, in plain loops from what is stored."""
    q = reading.session.q(layer)[head, query].tolist()
    keys = reading.session.k(layer)[head // 2].tolist()
    values = reading.session.v(layer)[head // 2].tolist()
    dots = [sum(a * b for a, b in zip(q, k, strict=True)) for k in keys]
    scores = [dot / len(q) ** 0.5 for dot in dots[: query + 1]]
    powers = [float(np.exp(score - max(scores))) for score in scores]
    weights = [power / sum(powers) for power in powers]
    mix = [sum(w * v[i] for w, v in zip(weights, values, strict=False)) for i in range(len(q))]
    return {
        "q": q,
        "k": keys[key],
        "products": [a * b for a, b in zip(q, keys[key], strict=True)],
        "dot": dots[key],
        "score": scores[key],
        "maximum": max(scores),
        "power": powers[key],
        "weight": weights[key],
        "weights": weights,
        "mix": mix,
    }


# In the whole window


class CountedScope(Scope):
    """A scope that counts how often it is asked for a cell."""

    count = 0

    def cell(self, reading: Reading, key: int | None = None) -> CellArithmetic | None:
        """As ever."""
        type(self).count += 1
        return super().cell(reading, key)


@pytest.fixture(scope="module")
def one_window(qapp: QApplication, small_model: Path) -> Iterator[WholeWindow]:  # noqa: ARG001
    """A window for all tests of this file, on a model with rotary positions and grouped heads."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine.scope, "Scope", CountedScope)
        whole = WholeWindow(model=small_model, prompt=TEXT).start()
        graphs.start_import()  # so that the curves behind the panel are made once, here
        wait_until(lambda: graphs.loader().module is not None, "pyqtgraph")
        whole.action("panel_cache").trigger()
        whole.idle()
        yield whole
        whole.close()


@pytest.fixture
def whole(one_window: WholeWindow) -> WholeWindow:
    """The window on TEXT before every test, with another panel in front."""
    one_window.wish(EditText(TEXT), SetMask({"mask": "causal"}), SelectHead(0, 0))
    one_window.wish(SelectPosition(None))
    one_window.action("panel_heads").trigger()
    wait_until(lambda: WantCell not in one_window.state.wanted)
    CountedScope.count = 0
    return one_window


def opened_panel(whole: WholeWindow) -> CellPanel:
    """The panel, once it is seen and has been answered."""
    whole.action("panel_cell").trigger()
    panel = whole.panel("cell")
    assert isinstance(panel, CellPanel)
    wait_until(lambda: panel.is_seen)
    wait_for_cell(whole)
    return panel


def wait_for_cell(whole: WholeWindow) -> None:
    """Until the selected weight's arithmetic is shown."""

    def is_shown() -> bool:
        state = whole.state
        return state.cell is not None and state.cell.answers(state.reading, state.selection.key)

    wait_until(is_shown, "the arithmetic")
    QApplication.processEvents()


def test_a_click_on_a_weight_opens_its_arithmetic(whole: WholeWindow) -> None:
    """Every number read off the panel is what the stored q, k and v give."""
    panel = opened_panel(whole)
    whole.wish(SelectHead(1, 3))
    matrix = whole.child(MatrixView)
    query, key = 12, 5
    QTest.mouseClick(matrix, LEFT, pos=matrix.cell_rect(query, key).center().toPoint())
    whole.idle()
    wait_for_cell(whole)
    hand = by_hand(whole.reading, 1, 3, query, key)
    assert panel.heading.text().startswith(f"Layer 1, head 3 · query {query} ")
    assert f"key {key} " in panel.heading.text()
    assert row(panel, f"q: query {query}") == pytest.approx(hand["q"], rel=1e-6)
    assert row(panel, f"k: key {key}") == pytest.approx(hand["k"], rel=1e-6)
    assert row(panel, "q · k, feature by feature") == pytest.approx(hand["products"])
    assert number(panel, "sum of the products") == pytest.approx(hand["dot"])
    assert number(panel, "score, causal mask: visible") == pytest.approx(hand["score"])
    assert number(panel, "exponential, ") == pytest.approx(hand["power"])
    assert number(panel, "weight, ") == pytest.approx(hand["weight"])
    assert row(panel, "weights")[: query + 1] == pytest.approx(hand["weights"])
    assert number(panel, "sum of the row's weights") == pytest.approx(1)
    assert row(panel, "= mix") == pytest.approx(hand["mix"])
    shown = str(whole.reading.focus.weights[query, key])
    assert f"shown {float(shown):.7g}" in panel.check.text()
    assert panel.check.verdict == "holds"


def test_a_hidden_panel_asks_for_nothing(whole: WholeWindow) -> None:
    """Not while typing and selecting before it is seen, nor after it was left."""
    whole.wish(EditText("to be"), SelectPosition(3, 1), SelectHead(0, 2))
    assert WantCell not in whole.state.wanted
    assert CountedScope.count == 0
    opened_panel(whole)
    assert CountedScope.count == 1
    whole.action("panel_heads").trigger()
    wait_until(lambda: WantCell not in whole.state.wanted)
    whole.wish(EditText("to be or"), SelectPosition(4, 2))
    assert CountedScope.count == 1
    opened_panel(whole)
    assert CountedScope.count == 2


def test_the_panel_follows_text_head_and_key(whole: WholeWindow) -> None:
    """Whatever is wished one after the other, what is shown is the last one's."""
    panel = opened_panel(whole)
    assert whole.app.controller is not None
    for wish in (SelectPosition(3, 1), SelectHead(0, 1), SelectPosition(9, 4), EditText("to beer")):
        whole.app.controller.fulfil(wish)
    whole.idle()
    wait_for_cell(whole)
    hand = by_hand(whole.reading, 0, 1, 6, 4)
    assert number(panel, "weight, ") == pytest.approx(hand["weight"])
    assert not panel.view._is_stale


def test_selecting_under_another_mask_keeps_up(whole: WholeWindow) -> None:
    """A click on a hidden key after the mask went on again: weight 0, and said why."""
    panel = opened_panel(whole)
    whole.wish(SetMask({"mask": "none"}), SelectPosition(3, 9))
    wait_for_cell(whole)
    assert number(panel, "weight, ") > 0
    whole.wish(SetMask({"mask": "causal"}))
    wait_for_cell(whole)
    assert number(panel, "weight, ") == 0


def test_an_empty_text_has_no_arithmetic(whole: WholeWindow) -> None:
    """A sentence instead; with a text again, numbers again."""
    panel = opened_panel(whole)
    whole.wish(EditText(""))
    assert panel.view.rows() == []
    assert "There is no text yet." in panel.accessibleDescription()
    assert panel.check.isHidden()
    whole.wish(EditText("to be"))
    wait_for_cell(whole)
    assert panel.view.rows()
    assert panel.check.isVisible()


def test_a_panel_that_is_closed_asks_for_nothing_any_more(whole: WholeWindow) -> None:
    """And goes on when it is opened again."""
    opened_panel(whole)
    dock = whole.window.findChild(QDockWidget, "dock_cell")
    assert isinstance(dock, QDockWidget)
    dock.close()
    wait_until(lambda: WantCell not in whole.state.wanted)
    count = CountedScope.count
    whole.wish(SelectPosition(5, 2))
    assert CountedScope.count == count
    opened_panel(whole)
    assert CountedScope.count == count + 1


# The panel


def test_being_seen_is_told(qtbot: QtBot, panel: CellPanel) -> None:
    """Once each, after the fact."""
    wished: list[Wish] = []
    panel.wished.connect(wished.append)
    panel.hide()
    qtbot.waitUntil(lambda: wished == [WantCell(False)])
    panel.show()
    qtbot.waitUntil(lambda: wished == [WantCell(False), WantCell(True)])
    panel.set_in_front(False)  # behind another tab
    qtbot.waitUntil(lambda: wished[2:] == [WantCell(False)])


def test_a_panel_that_is_there_from_the_start_asks_by_itself(
    qtbot: QtBot, panel: CellPanel, make_scope: Callable[..., Scope]
) -> None:
    """Nobody listened when it was shown, so it tells again when nothing is wanted for it."""
    wished: list[Wish] = []
    panel.wished.connect(wished.append)
    panel.show_view(view_of(make_scope().look(Look())))
    qtbot.waitUntil(lambda: wished == [WantCell(True)])


def test_until_the_answer_comes_the_panel_says_so(
    panel: CellPanel, make_scope: Callable[..., Scope]
) -> None:
    """Then it dims what is no longer the selected weight's, and keeps it."""
    scope = make_scope()
    reading = scope.look(Look())
    panel.show_view(view_of(reading, wanted=frozenset({WantCell})))
    assert WAITING in panel.accessibleDescription()
    reading, cell = show(panel, scope, Look(0, 1, 8), 3)
    text = panel.text()
    opened = OpenedCell(reading, 3, cell)
    panel.show_view(view_of(reading, cell=opened, selection=Selection(0, 1, 8, 4)))
    assert not panel.view._is_stale
    wait_until(lambda: panel.view._is_stale)
    assert panel.text() == text


@pytest.mark.parametrize(
    ("scheme", "said"),
    [
        ("none", "This model is told no positions"),
        ("learned", "(a learned table)"),
        ("sinusoidal", "(sines)"),
        ("rotary", "q: its pairs, turned to position 9"),
        ("alibi", "− slope 0.0625 · distance 5 ="),
    ],
)
def test_what_the_position_scheme_did_is_told(
    panel: CellPanel, make_scope: Callable[..., Scope], scheme: str, said: str
) -> None:
    """Each in its place; and what it did leads to the score."""
    _, cell = show(panel, make_scope(scheme), Look(0, 1, 9), 4)
    assert said in panel.text()
    dials = [item for item in panel.view.rows() if isinstance(item, Dials)]
    assert len(dials) == (2 if scheme == "rotary" else 0)
    expected = sum(cell.products.tolist()) / 2 - (0.0625 * 5 if scheme == "alibi" else 0)
    assert number(panel, "score, causal mask: visible") == pytest.approx(expected)


def test_rotary_pairs_are_told_before_and_after_their_turn(
    panel: CellPanel, make_scope: Callable[..., Scope]
) -> None:
    """The pair read off before, turned by the angle read off, is the pair read off after."""
    show(panel, make_scope(), Look(1, 0, 9), 4)
    dials = next(item for item in panel.view.rows() if isinstance(item, Dials))
    for index in range(2):
        digits = re.findall(r"-?\d+\.?\d*(?:e-?\d+)?", dials.tell(index).split(": ", 1)[1])
        before_x, before_y, degrees, after_x, after_y = map(float, digits)
        turned = complex(before_x, before_y) * np.exp(1j * np.radians(degrees))
        assert (turned.real, turned.imag) == pytest.approx((after_x, after_y), abs=1e-6)


def test_heads_that_share_the_key_are_drawn_and_named(
    panel: CellPanel, make_scope: Callable[..., Scope]
) -> None:
    """Four query heads on two keys: 2 and 3 share the second; not with a key for each head."""
    show(panel, make_scope(), Look(0, 3), 2)
    (marks,) = [item for item in panel.view.rows() if isinstance(item, Marks)]
    assert marks.caption == "key and value head 1 serves query heads 2, 3"
    at = panel.view.rows().index(marks)
    shot = colours(panel.view.viewport())
    grounds = [
        shot[middle(panel.view.place_of(at, head).adjusted(0, 0, -16, -16))] for head in range(4)
    ]
    assert grounds[0] == grounds[1] != grounds[2] == grounds[3]
    show(panel, make_scope(n_kv_head=4), Look(0, 3), 2)
    assert not [item for item in panel.view.rows() if isinstance(item, Marks)]


@pytest.mark.parametrize("mask", ["causal", "window", "none"])
def test_what_the_mask_did_is_told(
    panel: CellPanel, make_scope: Callable[..., Scope], mask: Any
) -> None:
    """A later key under each mask: hidden, hidden, visible."""
    scope = make_scope()
    scope.set_conditions(Conditions(mask=mask, window=3))
    show(panel, scope, Look(0, 0, 5), 7)
    if mask == "none":
        assert number(panel, "score, mask off: visible, nothing added") > -np.inf
        assert number(panel, "weight, ") > 0
    else:
        name = "causal mask" if mask == "causal" else "window"
        assert number(panel, f"score, {name}: hidden") == -np.inf
        assert number(panel, "weight, ") == 0
        assert "key 7 '\u2068r\u2069' = 0.0, hidden by the mask" in _tell(panel, "weights", 7)


def _tell(panel: CellPanel, caption: str, index: int) -> str:
    (bars,) = [
        item for item in panel.view.rows() if isinstance(item, Bars) and item.caption == caption
    ]
    return bars.tell(index)


def test_without_a_key_the_largest_weight_is_shown_and_said(
    panel: CellPanel, make_scope: Callable[..., Scope]
) -> None:
    """And not said where one is selected."""
    scope = make_scope()
    reading, _ = show(panel, scope, Look(0, 1, 8), None)
    assert "No key is selected, so this is the row's largest weight." in panel.text()
    weights = reading.focus.weights[8]
    assert number(panel, "weight, ") == pytest.approx(weights.max(), abs=1e-6)
    assert f"key {weights.argmax()} " in panel.heading.text()
    show(panel, scope, Look(0, 1, 8), 3)
    assert "No key is selected" not in panel.text()


def test_weighted_values_add_up_to_the_mix(
    panel: CellPanel, make_scope: Callable[..., Scope]
) -> None:
    """The rows that are listed, the others together, and their sum, feature by feature."""
    show(panel, make_scope(), Look(1, 2, 14), 6)
    rows = [item for item in panel.view.rows() if isinstance(item, Bars) and item.hue == "value"]
    own, *parts, mix = rows
    assert own.caption.startswith("v of key 6 ")
    assert any("(this weight)" in part.caption for part in parts)
    np.testing.assert_allclose(sum(part.values for part in parts), mix.values, atol=1e-12)


def test_the_residual_is_told_with_length_and_direction(
    panel: CellPanel, make_scope: Callable[..., Scope]
) -> None:
    """Against W_O's columns times the mix that the panel shows."""
    scope = make_scope()
    reading, _ = show(panel, scope, Look(0, 2, 9), 4)
    matrix = scope._run.model.get_parameter("blocks.0.attention.output.weight").numpy()
    added = matrix[:, 8:12].astype(float) @ np.array(row(panel, "= mix"))
    assert row(panel, "added to the residual of query 9") == pytest.approx(added)
    length = number(panel, "length of what is added")
    assert length == pytest.approx(sum(added**2) ** 0.5)
    hidden = reading.session.hidden(9).astype(float)
    cosine = sum(added * hidden) / length / sum(hidden**2) ** 0.5
    assert number(panel, "cosine of what is added") == pytest.approx(cosine)


def test_a_weight_that_does_not_agree_is_told(
    panel: CellPanel, make_scope: Callable[..., Scope]
) -> None:
    """Were the picture to show another number, the line would say so."""
    reading, cell = show(panel, make_scope(), Look(0, 1, 8), 3)
    assert panel.check.verdict == "holds"
    wrong = cell.shown.copy()
    wrong[2] += 0.25
    opened = OpenedCell(reading, 3, replace(cell, shown=wrong))
    panel.show_view(view_of(reading, cell=opened, selection=Selection(0, 1, 8, 3)))
    assert panel.check.verdict == "fails"
    assert "2e-01" in panel.check.text() or "3e-01" in panel.check.text()


# Reading numbers


def test_keys_reach_every_number(
    qtbot: QtBot, panel: CellPanel, make_scope: Callable[..., Scope]
) -> None:
    """Down through all rows, right along each: each is told as its row tells it, and in sight."""
    show(panel, make_scope(), Look(1, 1, 9), 4)
    panel.view.setFocus()
    assert panel.told.text() == HINT
    qtbot.keyClick(panel.view, Qt.Key.Key_Home, Qt.KeyboardModifier.ControlModifier)
    rows = [(at, item) for at, item in enumerate(panel.view.rows()) if len(item)]
    for at, item in rows:
        qtbot.keyClick(panel.view, Qt.Key.Key_Home)
        for index in range(len(item)):
            assert panel.told.text() == item.tell(index)
            assert panel.view.accessibleDescription().startswith(item.tell(index))
            place = panel.view.place_of(at, index)
            assert 0 <= place.top() <= place.bottom() <= panel.view.viewport().height()
            qtbot.keyClick(panel.view, Qt.Key.Key_Right)
        qtbot.keyClick(panel.view, Qt.Key.Key_Down)
    kinds = {type(item) for _at, item in rows}
    assert kinds == {Bars, Dials, Marks, Term}


def test_the_pointer_reaches_numbers_and_leaves_none_behind(
    panel: CellPanel, make_scope: Callable[..., Scope]
) -> None:
    """Hovered, a number is told; beside it, the hint is back."""
    _, cell = show(panel, make_scope(), Look(0, 0, 9), 4)
    rows = panel.view.rows()
    at = next(at for at, item in enumerate(rows) if isinstance(item, Bars))
    point_at(panel.view.viewport(), panel.view.place_of(at, 2).center())
    assert panel.told.text() == f"q of feature 2 = {cell.q[2]!s}"
    point_at(
        panel.view.viewport(), panel.view.place_of(at, 0).topLeft() - panel.view.rect().topRight()
    )
    assert panel.told.text() == HINT


def test_ctrl_c_copies_the_whole_arithmetic(
    qtbot: QtBot, panel: CellPanel, make_scope: Callable[..., Scope]
) -> None:
    """Also from the button; with every digit of the stored numbers."""
    reading, _ = show(panel, make_scope(), Look(1, 1, 9), 4)
    panel.window().activateWindow()
    qtbot.waitUntil(panel.window().isActiveWindow)
    panel.view.setFocus()
    for copy in (
        lambda: qtbot.keyClick(panel.view, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier),
        panel.copy_button.click,
    ):
        QGuiApplication.clipboard().clear()
        copy()
        text = QGuiApplication.clipboard().text()
        assert text == panel.text()
        for value in (*reading.session.q(1)[1, 9], *reading.session.k(1)[0, 4]):
            assert f"\t{value!s}\n" in text
        assert "recomputed" in text


def test_what_is_seen_is_also_said(panel: CellPanel, make_scope: Callable[..., Scope]) -> None:
    """The steps with their numbers, for those who do not see the picture."""
    _, cell = show(panel, make_scope(), Look(1, 1, 9), 4)
    said = panel.accessibleDescription()
    assert "Layer 1, head 1" in said
    for value in (cell.dot, cell.score, cell.weight, cell.length):
        assert f"{value:.4f}".replace("-", "−") in said


def test_the_place_stays_when_another_weight_is_opened(
    qtbot: QtBot, panel: CellPanel, make_scope: Callable[..., Scope]
) -> None:
    """So that one number can be followed from key to key."""
    scope = make_scope()
    show(panel, scope, Look(1, 1, 9), 4)
    panel.view.setFocus()
    for _ in range(5):
        qtbot.keyClick(panel.view, Qt.Key.Key_Down)
    before = panel.told.text()
    scrolled = panel.view.verticalScrollBar().value()
    _, cell = show(panel, scope, Look(1, 1, 9), 7)
    assert panel.told.text() != before
    assert panel.told.text().split(" = ")[0] == before.split(" = ")[0]
    assert panel.view.verticalScrollBar().value() == scrolled
    assert panel.told.text() == f"k of feature 0 = {cell.k[0]!s}"


# Looks


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_bars_have_the_hues_of_query_key_value_and_residual(
    panel: CellPanel, make_scope: Callable[..., Scope], theme: Theme
) -> None:
    """In every theme; each hue is seen in the rows that it belongs to, and in no others."""
    panel.resize(400, 2400)
    show(panel, make_scope(), Look(0, 1, 9), 4, display=Display(theme=theme))
    shot = colours(panel.view.viewport())
    hues = {hue: QColor(getattr(theme, hue)).rgb() for hue in ("query", "key", "value", "residual")}
    for at, item in enumerate(panel.view.rows()):
        if isinstance(item, Bars):
            place = panel.view.place_of(at, 0).toRect()
            strip = shot[place.top() : place.bottom(), :]
            seen = {hue for hue, colour in hues.items() if (strip == colour).any()}
            assert seen == ({item.hue} if item.hue != "plain" else set())


@pytest.mark.parametrize(("width", "has_numbers"), [(200, False), (900, True)])
def test_numbers_stand_below_bars_where_they_have_room(
    panel: CellPanel, make_scope: Callable[..., Scope], width: int, *, has_numbers: bool
) -> None:
    """Eight features with room for two decimals each, or not."""
    panel.resize(width, 600)
    show(panel, make_scope(head_dim=8), Look(0, 1, 9), 4)
    drawing, rows = panel.view._drawing, panel.view.rows()
    bars = next(item for item in rows if isinstance(item, Bars))
    assert bool(drawing._numbers(bars, panel.view.viewport().width())) == has_numbers


def test_thousands_of_bars_keep_their_peaks(qtbot: QtBot) -> None:
    """One tall bar among many more than there are pixels is still seen, upwards and downwards."""
    from gui.widgets.arithmetic_stages import Stage  # noqa: PLC0415

    view = ArithmeticView()
    qtbot.addWidget(view)
    view.resize(300, 300)
    values = np.zeros(5000)
    values[1234], values[3456] = 1.0, -1.0
    bars = Bars("many", "x", values, str, 1.0, "value")
    view.set_stages([Stage("", "", [bars, Note("That is all.")])])
    view.show()
    shot = colours(view.viewport())
    first, last = view.place_of(0, 0), view.place_of(0, 4999)
    colour = QColor(THEMES["light"].value).rgb()
    upper, lower = int(first.top()) + 3, int(first.bottom()) - 3
    for line, index in ((upper, 1234), (lower, 3456)):
        (found,) = np.nonzero(shot[line] == colour)
        assert len(found) in {1, 2}
        assert found[0] == pytest.approx(view.place_of(0, index).left(), abs=1.5)
    assert last.right() <= view.viewport().width()
