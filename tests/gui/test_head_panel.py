"""The panels of one head and of the prompt point at the same cell."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from gui.view import resolve
from gui.widgets.matrix_view import MatrixView
from tests.gui.whole_window import WholeWindow


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


def test_the_row_in_words_names_the_key_with_the_largest_weight(whole: WholeWindow) -> None:
    """What a screen reader says of the row is the row's own maximum."""
    view = resolve(whole.state)
    largest = int(np.argmax(whole.reading.focus.weights[5]))
    assert f"at position {largest} ({view.row[largest]:.1%})" in view.row_sentence
    assert "looks most at" in view.row_sentence
