"""The panels of one head and of the prompt point at the same cell."""

from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QEvent, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from engine.readouts import ROLE_FORMULAS, ROLES
from gui.panels.head import HeadPanel
from gui.panels.heads import HeadsPanel
from gui.state import Display
from gui.theme import THEMES, Theme
from gui.view import resolve
from gui.widgets.matrix_view import MatrixView
from gui.wishes import SelectPosition, SetDisplay
from tests.gui.tiny_scope import house, tiny_scope, view_of
from tests.gui.whole_window import WholeWindow, wait_until


@pytest.fixture(scope="module")
def whole(qapp: QApplication, small_model: Path) -> Iterator[WholeWindow]:  # noqa: ARG001
    """A window with a short text."""
    window = WholeWindow(model=small_model, prompt="To be, or not to be").start()
    yield window
    window.close()


def test_a_click_on_a_cell_selects_its_query_and_key(whole: WholeWindow) -> None:
    """The heatmap's cell becomes the selection that all panels follow."""
    matrix = whole.child(MatrixView)
    place = matrix.cell_rect(5, 2).center().toPoint()
    QTest.mouseClick(matrix, Qt.MouseButton.LeftButton, pos=place)
    whole.idle()
    assert (whole.state.selection.query, whole.state.selection.key) == (5, 2)


def test_the_cell_under_the_mouse_is_lit_on_the_token_strip(whole: WholeWindow) -> None:
    """The strip shows where the pointed query looks, and the selected one when the mouse goes."""
    matrix = whole.child(MatrixView)
    QTest.mouseMove(matrix, matrix.cell_rect(4, 1).center().toPoint())
    whole.idle()
    assert resolve(whole.state).lit == (4, 1)
    matrix.hover_left.emit()
    whole.idle()
    assert resolve(whole.state).lit == (5, 2)


def test_another_drawing_under_the_pointer_forgets_what_was_pointed_at(
    whole: WholeWindow,
) -> None:
    """The links take the heatmap's place, which tells that the pointer left while it is drawn."""
    matrix = whole.child(MatrixView)
    QTest.mouseMove(matrix, matrix.cell_rect(3, 1).center().toPoint())
    whole.idle()
    assert whole.state.pointed == (3, 1)
    whole.press("Ctrl+2")
    wait_until(lambda: whole.state.pointed is None, "the pointer to be forgotten")
    whole.press("Ctrl+1")
    whole.idle()


def test_the_row_in_words_names_the_key_with_the_largest_weight(whole: WholeWindow) -> None:
    """What a screen reader says of the row is the row's own maximum."""
    view = resolve(whole.state)
    largest = int(np.argmax(whole.reading.focus.weights[5]))
    assert f"at position {largest} ({view.row[largest]:.1%})" in view.row_sentence
    assert "looks most at" in view.row_sentence


def test_how_many_positions_carry_nine_tenths_is_said_of_the_row(whole: WholeWindow) -> None:
    """Counted by taking the largest weights one by one."""
    whole.wish(SelectPosition(5, 2))
    row = np.sort(whole.reading.focus.weights[5].astype(np.float64))[::-1]
    n_keys = next(n for n in range(1, 7) if row[:n].sum() >= 0.9 - 1e-6)
    panel = whole.panel("head")
    assert isinstance(panel, HeadPanel)
    carry = "carry" if n_keys > 1 else "carries"
    assert panel.row_text.text().endswith(f" {n_keys} of 6 positions {carry} 90 % of the weight.")
    QApplication.sendEvent(whole.child(MatrixView), QEvent(QEvent.Type.Leave))
    names = {figure.name: figure.digits for figure in panel.figures()}
    assert names["number of positions that carry 90 %"] == str(n_keys)


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_how_many_carry_nine_tenths_is_read_in_the_middle_of_a_small_window(
    window: QWidget, theme: Theme
) -> None:
    """Whatever the head's role is called: its name then takes fewer words."""
    panel = HeadPanel()
    house(window, panel, 540, 330)
    view = view_of(tiny_scope().edit("to be or not to be"), display=Display(theme=theme))
    for role in (*ROLES, None):
        panel.show_view(replace(view, role=role))
        QApplication.processEvents()
        assert "90 %" in panel.row_text.shown()
        assert (role or "mixed") in panel.heading.shown()


def test_orders_of_heads_say_their_formulas(whole: WholeWindow) -> None:
    """On hovering an entry of the list, and for those who do not see it once it is chosen."""
    heads = whole.panel("heads")
    assert isinstance(heads, HeadsPanel)
    for row, role in enumerate(ROLES, start=1):
        assert heads.sort.itemText(row) == role
        tip = heads.sort.itemData(row, Qt.ItemDataRole.ToolTipRole)
        assert ROLE_FORMULAS[role] in unescape(tip)
    whole.wish(SetDisplay({"sort": "entropy"}))
    assert ROLE_FORMULAS["entropy"] in heads.sort.accessibleDescription()
    whole.wish(SetDisplay({"sort": None}))
