"""The links of one head: which there are, what they say, and how they are asked for."""

import sys

import numpy as np
import pytest
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QPointF, Qt
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from gui.theme import LIGHT, THEMES, Theme, lookup_table
from gui.widgets.arc_view import ArcView
from gui.widgets.pixels import packed
from tests.gui.picture_facts import colours, point_at
from tests.gui.widgets.test_matrix_view import HOSTILE, causal


@pytest.fixture
def view(qtbot: QtBot) -> ArcView:
    """A view of links without a head, on screen."""
    view = ArcView()
    qtbot.addWidget(view)
    view.resize(640, 480)
    view.set_theme(LIGHT)
    view.show()
    return view


def show(view: ArcView, weights: NDArray[np.float32], query: int | None) -> None:
    """Give the view causal weights, and select a query."""
    n = len(weights)
    names = [f"t{i}" for i in range(n)]
    view.set_matrix(weights, np.tri(n, dtype=bool), names, names)
    view.set_cell(query, None)


def looking(n: int, query: int, **at: float) -> NDArray[np.float32]:
    """Weights that are 0 but for one query's, given as k3=0.5."""
    weights = np.zeros((n, n), np.float32)
    for key, weight in at.items():
        weights[query, int(key[1:])] = weight
    return weights


def key_place(view: ArcView, key: int) -> QPointF:
    """A point on a key, found by asking every line of the right edge of the links."""
    x = next(x for x in range(view.width() - 1, 0, -1) if view.key_at(QPointF(x, 200)) is not None)
    lines = [y for y in range(view.height()) if view.key_at(QPointF(x, y)) == key]
    return QPointF(x, lines[len(lines) // 2])


def query_place(view: ArcView, query: int) -> QPointF:
    """A point on a query of the left column."""
    lines = [y for y in range(view.height()) if view.query_at(QPointF(20, y)) == query]
    return QPointF(20, lines[len(lines) // 2])


def ink(view: ArcView) -> NDArray[np.intp]:
    """The lines of pixels, half way along the links, that are not paper; the pointer is away."""
    shown = colours(view)[60:-80]
    middle = int((20 + key_place(view, 0).x()) * 0.45)
    return np.flatnonzero(shown[:, middle] != packed(LIGHT.surface)) + 60


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_a_key_s_place_on_the_rail_has_the_colour_of_its_weight(
    view: ArcView, theme: Theme
) -> None:
    view.set_theme(theme)
    show(view, looking(12, 8, k3=1.0), 8)
    shown, table = colours(view), lookup_table(theme.weights_map)
    full, empty, masked = (shown[int(key_place(view, key).y())] for key in (3, 5, 10))
    assert table[255] in full
    assert table[255] not in empty
    assert table[0] in empty
    assert packed(theme.masked) in masked


def test_weight_links_the_query_with_the_key_and_no_weight_does_not(view: ArcView) -> None:
    show(view, looking(12, 8), 8)
    assert len(ink(view)) == 0
    show(view, looking(12, 8, k8=1.0), 8)
    assert len(ink(view)) > 0


def test_a_larger_weight_makes_a_thicker_link(view: ArcView) -> None:
    thickness = []
    for weight in (0.1, 0.5, 1.0):
        show(view, looking(12, 8, k8=weight), 8)
        thickness.append(len(ink(view)))
    assert thickness == sorted(set(thickness))


def test_by_row_the_largest_is_as_thick_as_weight_1(view: ArcView) -> None:
    show(view, looking(12, 8, k8=1.0), 8)
    full = len(ink(view))
    show(view, looking(12, 8, k8=0.05), 8)
    view.set_scale("row", False)
    assert len(ink(view)) == full


def test_without_the_first_token_it_is_not_linked(view: ArcView) -> None:
    show(view, looking(12, 8, k0=1.0), 8)
    assert len(ink(view)) > 0
    view.set_scale("linear", True)
    assert len(ink(view)) == 0


def test_another_query_draws_its_own_links(view: ArcView) -> None:
    show(view, looking(12, 8, k8=1.0), 8)
    view.set_cell(2, None)
    assert len(ink(view)) == 0
    view.set_cell(8, None)
    assert len(ink(view)) > 0


@pytest.mark.parametrize("n", [12, 500])
def test_a_single_weight_is_seen_on_the_rail_at_any_length(view: ArcView, n: int) -> None:
    show(view, looking(n, n - 1, k7=1.0), n - 1)
    assert lookup_table(LIGHT.weights_map)[255] in colours(view)[30:400, 300:500]


def test_clicking_a_query_asks_for_it_with_the_key_that_it_looks_at_most(
    view: ArcView, qtbot: QtBot
) -> None:
    show(view, looking(12, 6, k4=0.9, k1=0.1), 8)
    place = query_place(view, 6).toPoint()
    with qtbot.waitSignal(view.cell_clicked) as clicked:
        qtbot.mouseClick(view, Qt.MouseButton.LeftButton, pos=place)
    assert clicked.args == [6, 4]
    view.set_cell(8, 2)
    with qtbot.waitSignal(view.cell_clicked) as clicked:
        qtbot.mouseClick(view, Qt.MouseButton.LeftButton, pos=place)
    assert clicked.args == [6, 2]


def test_clicking_a_key_asks_for_it_under_the_same_query(view: ArcView, qtbot: QtBot) -> None:
    show(view, looking(12, 8, k3=1.0), 8)
    with qtbot.waitSignal(view.cell_clicked) as clicked:
        qtbot.mouseClick(view, Qt.MouseButton.LeftButton, pos=key_place(view, 5).toPoint())
    assert clicked.args == [8, 5]


def test_hovering_a_key_names_the_cell_and_leaving_says_so(view: ArcView, qtbot: QtBot) -> None:
    show(view, looking(12, 8, k3=1.0), 8)
    with qtbot.waitSignal(view.cell_hovered) as hovered:
        point_at(view, key_place(view, 3))
    assert hovered.args == [8, 3]
    with qtbot.waitSignal(view.hover_left):
        QApplication.sendEvent(view, QEvent(QEvent.Type.Leave))


def test_the_arrow_keys_ask_for_the_next_query_and_key(view: ArcView, qtbot: QtBot) -> None:
    show(view, looking(12, 8, k3=1.0), 8)
    view.set_cell(8, 3)
    for key, wanted in ((Qt.Key.Key_Up, [7, 3]), (Qt.Key.Key_Right, [8, 4])):
        with qtbot.waitSignal(view.cell_requested) as asked:
            qtbot.keyClick(view, key)
        assert asked.args == wanted


@pytest.mark.parametrize("n", [1, 2, 60, 500])
def test_every_token_can_be_reached_while_it_has_a_pixel(view: ArcView, n: int) -> None:
    show(view, np.eye(n, dtype=np.float32), n - 1)
    found = {view.query_at(QPointF(20, y)) for y in range(view.height())} - {None}
    assert min(found) == 0
    assert max(found) >= n - (1 if n < 400 else 2)
    assert len(found) >= min(n, 250)


def test_zero_tokens_and_no_query_answer_nothing(view: ArcView, qtbot: QtBot) -> None:
    view.set_empty("Type something.")
    with qtbot.assertNotEmitted(view.cell_clicked):
        qtbot.mouseClick(view, Qt.MouseButton.LeftButton)
    assert colours(view).size
    show(view, looking(12, 8, k3=1.0), None)
    with qtbot.assertNotEmitted(view.cell_clicked):
        qtbot.mouseClick(view, Qt.MouseButton.LeftButton, pos=key_place(view, 3).toPoint())
    assert colours(view).size


def test_fewer_tokens_than_the_selection_and_the_pointer_are_fine(view: ArcView) -> None:
    show(view, np.eye(50, dtype=np.float32), 49)
    view.set_cell(49, 48)
    point_at(view, key_place(view, 40))
    names = ["a", "b", "c"]
    view.set_matrix(*causal(3), names, names)
    assert colours(view).size


def test_hostile_labels_are_drawn_as_plain_text(view: ArcView) -> None:
    n = len(HOSTILE)
    view.set_matrix(*causal(n), HOSTILE, HOSTILE)
    for index in range(n):
        view.set_cell(index, index)
        point_at(view, key_place(view, index))
        assert colours(view).size


def test_small_places_are_fine(view: ArcView) -> None:
    for theme in THEMES.values():
        view.set_theme(theme)
        show(view, np.eye(40, dtype=np.float32), 30)
        for size in ((1, 1), (60, 40), (200, 150), (900, 120), (120, 900)):
            view.resize(*size)
            view.set_cell(30, 2)
            assert colours(view).shape == (size[1], size[0])


def test_two_thousand_repaints_do_not_use_up_references_to_none(view: ArcView) -> None:
    show(view, np.eye(3, dtype=np.float32), 2)
    view.set_cell(2, 1)
    view.repaint()
    before = sys.getrefcount(None)
    for _ in range(2000):
        view.repaint()
    assert before - sys.getrefcount(None) < 500
