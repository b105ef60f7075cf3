"""From a line of the engine, or from a weight, to the arithmetic of the cell that it computes."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QContextMenuEvent, QTextCursor
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenu
from pytestqt.qtbot import QtBot

from engine.answers.source import source_of
from engine.attention import Attention, Scoring, attend, matmul_heads
from gui.panels.base import Panel
from gui.panels.cell import CellPanel
from gui.panels.code import CodePanel
from gui.widgets.matrix_view import MatrixView
from gui.wishes import EditText, SelectHead, SelectPosition
from gui.words.cell_places import CellPlace, places_in
from tests.gui.picture_facts import drag, point_at
from tests.gui.whole_window import WholeWindow, wait_until

LEFT = Qt.MouseButton.LeftButton
TEXT = "To be, or not to be"
QUERY, KEY = 9, 4
# What the screenless platform says of a menu that pops up.
menus = pytest.mark.qt_log_ignore("does not support (raise|grabbing the keyboard)")
ENTER = Qt.Key.Key_Return


@pytest.fixture(scope="module")
def one_window(qapp: QApplication, small_model: Path) -> Iterator[WholeWindow]:  # noqa: ARG001
    """A window for all tests."""
    window = WholeWindow(model=small_model, prompt=TEXT).start()
    window.window.resize(1280, 720)
    yield window
    window.close()


@pytest.fixture
def whole(one_window: WholeWindow) -> WholeWindow:
    """With the lines of a row in front."""
    one_window.wish(EditText(TEXT), SelectHead(1, 2), SelectPosition(QUERY, KEY))
    one_window.window.go_to_panel("code")
    wait_until(lambda: one_window.state.code is not None, "the lines")
    one_window.idle()
    return one_window


def code(whole: WholeWindow) -> CodePanel:
    """The panel that leads."""
    panel = whole.panel("code")
    assert isinstance(panel, CodePanel)
    return panel


def cell(whole: WholeWindow) -> CellPanel:
    """The panel that is led to, once it shows the selected weight."""
    panel = whole.panel("cell")
    assert isinstance(panel, CellPanel)
    wait_until(lambda: panel.is_seen, "the cell panel")
    whole.idle()
    wait_until(panel.view.told_now, "a current number")
    return panel


def line_with(whole: WholeWindow, text: str) -> int:
    """The number of the line that begins so."""
    block = code(whole).view.document().begin()
    while not block.text().strip().startswith(text):
        block = block.next()
        assert block.isValid(), text
    return block.blockNumber()


def click(whole: WholeWindow, line: int) -> None:
    """Click into a line, which is brought into sight."""
    view = code(whole).view
    cursor = QTextCursor(view.document().findBlockByNumber(line))
    view.setTextCursor(cursor)
    view.ensureCursorVisible()
    QTest.mouseClick(view.viewport(), LEFT, pos=view.cursorRect(cursor).center() + QPoint(9, 0))


def by_hand(whole: WholeWindow) -> dict[str, float]:
    """What the four lines compute for the selected weight, from the stored q, k and v."""
    session = whole.reading.session
    q, k, v = session.q(1)[2], session.k(1), session.v(1)
    n_sharing = len(session.q(1)) // len(k)
    k, v = k[2 // n_sharing].astype(np.float64), v[2 // n_sharing].astype(np.float64)
    root = q.shape[-1] ** 0.5
    scores = k[: QUERY + 1] @ q[QUERY].astype(np.float64) / root
    weights = np.exp(scores) / np.exp(scores).sum()
    return {
        "scores = matmul": float(q[QUERY, 0] * k[KEY, 0]),
        "scores = scoring": float(scores[KEY]),
        "weights": float(weights[KEY]),
        "mix": float((weights @ v[: QUERY + 1])[0]),
    }


@pytest.mark.parametrize(
    ("line", "stage", "says"),
    [
        ("scores = matmul", "2 Score", "q · k of feature 0 = "),
        ("scores = scoring", "2 Score", "score, causal mask: visible, nothing added = "),
        ("weights", "3 Weight", "weight, "),
        ("mix", "4 Values", "mix of feature 0 = "),
    ],
)
@pytest.mark.parametrize("by_key", [False, True], ids=["click", "enter"])
def test_each_of_the_four_lines_leads_to_the_number_that_it_computes(
    whole: WholeWindow, line: str, stage: str, says: str, *, by_key: bool
) -> None:
    """By a click and by Enter; the stage's title is in sight with it."""
    wanted, at = by_hand(whole)[line], line_with(whole, line)
    if by_key:
        view = code(whole).view
        view.setTextCursor(QTextCursor(view.document().findBlockByNumber(at)))
        QTest.keyClick(view, ENTER)
    else:
        click(whole, at)
    panel = cell(whole)
    told = panel.view.told_now()
    assert told.startswith(says)
    assert float(told.split(" = ")[-1]) == pytest.approx(wanted, rel=1e-5, abs=1e-7)
    row, _index = panel.view._current or (0, 0)
    placed = panel.view._placed
    heads = [each for each in placed[: row + 1] if each.stage is not None]
    assert heads[-1].stage is not None
    assert heads[-1].stage.title == stage
    sight = panel.view.viewport().rect()
    assert sight.contains(panel.view.place_of(row, 0).center().toPoint())
    assert panel.view.hasFocus()


def test_the_lines_around_lead_to_the_first_and_the_last_stage(whole: WholeWindow) -> None:
    """The projection to q and k, and what the output adds to the residual."""
    click(whole, line_with(whole, "joined: Tensor = "))
    assert cell(whole).view.told_now().startswith("q, features 0 and ")  # a rotary model's pairs
    whole.window.go_to_panel("code")
    whole.idle()
    click(whole, line_with(whole, "return torch.as_tensor(self.output"))
    panel = cell(whole)
    wait_until(lambda: panel.view.told_now().startswith("added of feature 0"), "the last stage")


def test_words_lead_nowhere_and_letters_can_still_be_selected(whole: WholeWindow) -> None:
    """A click on a note, and a drag over a line that leads."""
    click(whole, 0)
    view = code(whole).view
    line = line_with(whole, "weights")
    place = view.place_of_line(line)
    middle = place.center().y()
    drag(view.viewport(), QPointF(place.left() + 10, middle), QPointF(place.left() + 90, middle))
    assert view.textCursor().selectedText()
    whole.idle()
    assert code(whole).is_seen
    QTest.keyClick(view, Qt.Key.Key_Home, Qt.KeyboardModifier.ControlModifier)
    QTest.keyClick(view, ENTER)
    whole.idle()
    assert code(whole).is_seen


def test_what_a_click_would_follow_is_lit_and_has_a_hand(whole: WholeWindow) -> None:
    """The line and its shapes together; nothing over a note."""
    view = code(whole).view
    whole.window.go_to_panel("head")  # the keyboard elsewhere
    whole.window.go_to_panel("code")
    whole.editor.setFocus()
    line = line_with(whole, "weights")
    point_at(view.viewport(), view.place_of_line(line).center())
    lit = sorted({each.cursor.blockNumber() for each in view.extraSelections()})
    assert lit == [line, line + 1]
    assert view.viewport().cursor().shape() == Qt.CursorShape.PointingHandCursor
    point_at(view.viewport(), view.place_of_line(0).center())
    assert not view.extraSelections()
    assert view.viewport().cursor().shape() == Qt.CursorShape.IBeamCursor
    QApplication.sendEvent(view.viewport(), QEvent(QEvent.Type.Leave))


def test_enter_on_the_heatmap_opens_the_selected_weight(whole: WholeWindow) -> None:
    """And goes on being about it: query and key stand in the heading."""
    matrix = whole.child(MatrixView)
    whole.window.go_to_panel("head")
    QTest.keyClick(matrix, ENTER)
    panel = whole.panel("cell")
    assert isinstance(panel, CellPanel)
    wait_until(lambda: panel.is_seen, "the cell panel")
    whole.idle()
    wait_until(lambda: panel.heading.text().startswith("Layer 1, head 2"), "its arithmetic")
    assert f"query {QUERY} " in panel.heading.text()
    assert f"key {KEY} " in panel.heading.text()


@menus
def test_a_right_click_offers_the_weight_under_the_pointer(
    whole: WholeWindow, qtbot: QtBot
) -> None:
    """It becomes the selected one."""
    matrix = whole.child(MatrixView)
    whole.window.go_to_panel("head")
    place = matrix.cell_rect(7, 3).center()
    point_at(matrix, place)
    head = whole.panel("head")
    menu = menu_of(head, matrix.mapTo(head, place.toPoint()))
    (action,) = [each for each in menu.actions() if each.text().startswith("Open the arithmetic")]
    assert action.text() == "Open the arithmetic of query 7, key 3"
    action.trigger()
    menu.close()
    panel = whole.panel("cell")
    assert isinstance(panel, CellPanel)
    qtbot.waitUntil(lambda: "query 7 " in panel.heading.text())
    assert (whole.state.selection.query, whole.state.selection.key) == (7, 3)
    matrix.hover_left.emit()


@menus
def test_a_right_click_on_a_line_names_its_stage(whole: WholeWindow) -> None:
    panel = code(whole)
    line = line_with(whole, "weights")
    place = panel.view.place_of_line(line).center()
    point_at(panel.view.viewport(), place)
    menu = menu_of(panel, QPoint(20, 20))
    titles = [each.text() for each in menu.actions()]
    menu.close()
    assert "Open “3 Weight” in Cell" in titles


def menu_of(panel: Panel, place: QPoint) -> QMenu:
    """What a right click shows."""
    reason = QContextMenuEvent.Reason.Mouse
    QApplication.sendEvent(panel, QContextMenuEvent(reason, place, panel.mapToGlobal(place)))
    menu = panel.findChildren(QMenu)[-1]
    assert isinstance(menu, QMenu)
    return menu


def test_which_lines_around_compute_a_stage() -> None:
    """Read by eye off the engine: q and k have a function of their own, scores another."""
    told = {
        text.strip().split(" = ")[0]: place
        for source in map(source_of, (Attention.forward, Attention.project))
        for text, place in zip(source.text.splitlines(), places_in(source), strict=True)
        if place is not None
    }
    first = CellPlace("1 Query and key")
    assert told == {
        "q, k, v": first,
        "return torch.as_tensor(self.output(mix.transpose(-2, -3).flatten(-2)))": CellPlace(
            "5 Into the residual"
        ),
        "joined: Tensor": first,
        "qk, v": first,
        "qk": first,
        "if rotation is not None:": first,
        "q, k": first,
        "return q, k, v": first,
    }
    assert set(places_in(source_of(Scoring.masked))) == {CellPlace("2 Score", is_result=True)}
    assert set(places_in(source_of(matmul_heads))) == {None}
    assert set(places_in(source_of(attend))) == {None}  # those four are told by what they gave
