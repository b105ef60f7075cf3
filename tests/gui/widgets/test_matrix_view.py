"""The heatmap of one head: its colours, its labels, the pointer and the keys."""

import sys
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QPointF, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from gui.theme import DARK, LIGHT, PROJECTOR, THEMES, Theme, lookup_table
from gui.widgets.axis_labels import AxisLabels
from gui.widgets.lettering import Lettering
from gui.widgets.matrix_geometry import MatrixGeometry
from gui.widgets.matrix_view import MatrixView
from gui.widgets.pixels import colour_cells, hatched, packed, pool, spans
from gui.widgets.scales import WeightScale
from tests.gui.picture_facts import PaintWatch, colours, drag, middle, point_at, turn_wheel

HOSTILE = [
    "<b>bold</b>",
    "&amp; &lt;",
    "שלום עולם",
    "مرحبا",
    "👩‍👩‍👧‍👦",
    "",
    " ",
    "x" * 100_000,
    "\x00",
    "a\nb\tc",
    "é́́",
    "\u202eabc",
]


@pytest.fixture
def view(qtbot: QtBot) -> MatrixView:
    """A heatmap without a head, on screen."""
    view = MatrixView()
    qtbot.addWidget(view)
    view.resize(640, 480)
    view.set_theme(LIGHT)
    view.show()
    return view


def causal(n: int) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Weight 1 on the diagonal, 0 below it, masked above."""
    return np.eye(n, dtype=np.float32), np.tri(n, dtype=bool)


def show(view: MatrixView, n: int = 4) -> None:
    """Give the view tokens that look at themselves only."""
    names = [f"t{i}" for i in range(n)]
    view.set_matrix(*causal(n), names, names)


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_a_cell_has_the_colour_of_its_weight(view: MatrixView, theme: Theme) -> None:
    view.set_theme(theme)
    n = 30
    show(view, n)
    shown, table = colours(view), lookup_table(theme.weights_map)
    assert shown[middle(view.cell_rect(3, 3))] == table[255]
    assert shown[middle(view.cell_rect(20, 3))] == table[0]


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_a_masked_cell_is_hatched_and_unlike_weight_0(view: MatrixView, theme: Theme) -> None:
    view.set_theme(theme)
    show(view, 4)
    place = view.cell_rect(0, 3).toRect().adjusted(3, 3, -3, -3)
    shown = colours(view)[place.top() : place.bottom(), place.left() : place.right()]
    assert set(shown.ravel().tolist()) == {packed(theme.masked), packed(theme.hatch)}
    assert int(lookup_table(theme.weights_map)[0]) not in shown


def test_a_weight_above_the_mask_is_not_hidden(view: MatrixView) -> None:
    weights, visible = causal(20)
    weights[2, 9] = 1
    names = [str(i) for i in range(20)]
    view.set_matrix(weights, visible, names, names)
    assert colours(view)[middle(view.cell_rect(2, 9))] == lookup_table(LIGHT.weights_map)[255]


@pytest.mark.parametrize("n", [700, 2000])
def test_a_single_peak_survives_when_cells_are_smaller_than_pixels(
    view: MatrixView, n: int
) -> None:
    rng = np.random.default_rng(n)
    for _ in range(5):
        query, key = rng.integers(0, n, 2)
        weights = np.zeros((n, n), np.float32)
        weights[query, key] = 1
        view.set_matrix(weights, np.ones((n, n), bool), ["t"] * n, ["t"] * n)
        place = view.cell_rect(int(query), int(key))
        assert (
            colours(view)[int(place.top()), int(place.left())]
            == (lookup_table(LIGHT.weights_map)[255])
        )


@given(st.integers(1, 90), st.integers(1, 90), st.integers(0, 2**32 - 1))
def test_pooling_is_the_largest_of_the_cells_that_a_pixel_covers(
    n_cells: int, n_pixels: int, seed: int
) -> None:
    values = np.random.default_rng(seed).integers(0, 256, (n_cells, n_cells)).astype(np.uint8)
    along = spans(n_cells, n_pixels / n_cells, 0, n_pixels)
    pooled = pool(values, along, along)
    for pixel in range(n_pixels):
        first = pixel * n_cells // n_pixels
        last = max(first + 1, (pixel + 1) * n_cells // n_pixels)
        assert pooled[pixel, 0] == values[first:last, : max(1, n_cells // n_pixels)].max()


@given(st.integers(1, 60), st.integers(1, 60), st.integers(1, 90), st.integers(0, 2**32 - 1))
def test_a_pixel_has_the_colour_of_its_largest_cell_and_masked_ones_are_hatched(
    n_rows: int, n_columns: int, n_pixels: int, seed: int
) -> None:
    """However many cells share a pixel, or pixels a cell, along either side."""
    rng = np.random.default_rng(seed)
    index = (rng.integers(0, 256, (n_rows, n_columns)) * rng.integers(0, 2)).astype(np.uint8)
    table = hatched(rng.integers(0, 2**32, 256, np.uint32), 7)
    is_stroke = rng.random((n_pixels, n_pixels)) < 0.3
    pixels = np.zeros((n_pixels, n_pixels), np.uint32)
    rows, columns = (spans(n, n_pixels / n, 0, n_pixels) for n in (n_rows, n_columns))
    colour_cells(pixels, table, index, rows, columns, is_stroke)
    for y, x in np.ndindex(pixels.shape):
        (top, bottom), (left, right) = (
            (at * n // n_pixels, max(at * n // n_pixels + 1, (at + 1) * n // n_pixels))
            for at, n in ((y, n_rows), (x, n_columns))
        )
        largest = index[top:bottom, left:right].max()
        assert pixels[y, x] == (7 if is_stroke[y, x] and not largest else table[largest])


@given(
    st.integers(1, 1100),
    st.integers(1, 1100),
    st.integers(20, 900),
    st.integers(20, 900),
    st.data(),
)
def test_every_pixel_belongs_to_one_cell_and_hits_it(
    n_rows: int, n_columns: int, width: int, height: int, data: st.DataObject
) -> None:
    g = MatrixGeometry.fitted(n_rows, n_columns, (7, 9, width, height), 100)
    assert g.width <= width
    assert g.height <= height
    x = data.draw(st.integers(0, g.width - 1))
    y = data.draw(st.integers(0, g.height - 1))
    row, column = g.cell_at(7 + x, 9 + y)
    if g.cell >= 1:
        top, tall = g.row(row)
        left, wide = g.column(column)
        assert top <= 9 + y < top + tall
        assert left <= 7 + x < left + wide
        assert abs(tall - g.cell) < 1
    assert g.cell_at(6, 9) is None
    assert g.cell_at(7 + g.width, 9) is None


def test_one_token_is_one_large_cell_of_limited_size(view: MatrixView) -> None:
    show(view, 1)
    side = view.cell_rect(0, 0).width()
    assert 6 * LIGHT.font_axis <= side <= 9 * LIGHT.font_axis
    assert (
        colours(view)[middle(view.cell_rect(0, 0).adjusted(0, 0, -20, -40))]
        == (lookup_table(LIGHT.weights_map)[255])
    )


@pytest.mark.parametrize("n", [2, 60, 300, 1024])
def test_the_square_fills_most_of_its_place(view: MatrixView, n: int) -> None:
    show(view, n)
    first, last = view.cell_rect(0, 0), view.cell_rect(n - 1, n - 1)
    side = last.bottom() - first.top()
    assert side >= 0.5 * view.height() or first.width() >= 8 * LIGHT.font_axis
    assert last.right() < view.width()
    assert last.bottom() < view.height()


@given(st.integers(1, 1024), st.floats(0.2, 60), st.floats(-300, 0))
def test_labels_never_overlap_and_stay_in_their_range(
    qapp: QApplication, n: int, cell: float, start: float
) -> None:
    lettering = Lettering(qapp.font(), 11)
    axis = AxisLabels(["word"] * n, lettering, start, cell, 0, 400, 0, 80)
    places = [axis.box(index) for index in axis.shown()]
    assert all(a.bottom() <= b.top() + 1e-6 for a, b in pairwise(places))
    assert all(0 <= place.center().y() <= 400 for place in places)
    for index in (0, n // 2, n - 1):
        covered = axis.covered(index)
        for place in places:
            inner = place.adjusted(0, 0.02, 0, -0.02)
            assert not covered.intersects(inner) or covered.contains(inner)


def test_clicking_a_cell_asks_for_it(view: MatrixView, qtbot: QtBot) -> None:
    show(view, 12)
    with qtbot.waitSignal(view.cell_clicked) as clicked:
        qtbot.mouseClick(
            view, Qt.MouseButton.LeftButton, pos=view.cell_rect(7, 2).center().toPoint()
        )
    assert clicked.args == [7, 2]


def test_hovering_names_the_cell_once_and_leaving_says_so(view: MatrixView, qtbot: QtBot) -> None:
    show(view, 12)
    heard = []
    view.cell_hovered.connect(lambda *cell: heard.append(cell))
    place = view.cell_rect(5, 3).center()
    point_at(view, place)
    point_at(view, place + QPointF(1, 1))
    assert heard == [(5, 3)]
    with qtbot.waitSignal(view.hover_left):
        QApplication.sendEvent(view, QEvent(QEvent.Type.Leave))


def test_the_sentence_gives_the_exact_weight_key_and_query(view: MatrixView) -> None:
    weights = np.full((2, 2), 0.5, np.float32)
    weights[1, 0] = 0.12345679
    view.set_matrix(weights, np.tri(2, dtype=bool), ["the", "king"], ["the", "king"])
    said = view.describe(1, 0)
    assert float(said.split()[0]) == pytest.approx(0.12345679, abs=1e-9)
    assert "key 0" in said
    assert "query 1" in said
    assert "the" in said
    assert "king" in said


def test_the_sentence_of_a_masked_cell_says_masked(view: MatrixView) -> None:
    show(view, 3)
    assert view.describe(0, 2).startswith("masked")


def test_hovering_repaints_only_a_small_part(view: MatrixView, qtbot: QtBot) -> None:
    show(view, 60)
    qtbot.waitExposed(view)
    view.repaint()
    point_at(view, view.cell_rect(30, 30).center())
    QApplication.processEvents()
    watch = PaintWatch(view)
    point_at(view, view.cell_rect(31, 30).center())
    QApplication.processEvents()
    assert 0 < watch.area < 0.25 * view.width() * view.height()


def test_a_partial_repaint_leaves_the_same_picture_as_a_whole_one(
    view: MatrixView, qtbot: QtBot
) -> None:
    show(view, 60)
    with qtbot.waitExposed(view):
        view.show()
    view.set_cell(59, 4)
    for query, key in ((30, 30), (31, 3), (58, 55), (2, 50), (40, 12)):
        point_at(view, view.cell_rect(query, key).center())
        QApplication.processEvents()
    shown = view.screen().grabWindow(view.winId()).toImage()
    pieces = np.array([shown.pixel(x, y) for y in range(0, 480, 3) for x in range(0, 640, 3)])
    whole = colours(view)[::3, ::3].ravel()
    assert (pieces == whole).all()


def test_arrow_keys_ask_for_the_neighbouring_cell(view: MatrixView, qtbot: QtBot) -> None:
    show(view, 12)
    view.set_cell(5, 3)
    for key, wanted in (
        (Qt.Key.Key_Up, [4, 3]),
        (Qt.Key.Key_Down, [6, 3]),
        (Qt.Key.Key_Left, [5, 2]),
        (Qt.Key.Key_Right, [5, 4]),
        (Qt.Key.Key_Home, [5, 0]),
        (Qt.Key.Key_End, [5, 5]),  # the last key that query 5 sees
    ):
        with qtbot.waitSignal(view.cell_requested) as asked:
            qtbot.keyClick(view, key)
        assert asked.args == wanted


def test_at_the_edge_an_arrow_key_asks_for_nothing(view: MatrixView, qtbot: QtBot) -> None:
    show(view, 12)
    view.set_cell(0, 0)
    with qtbot.assertNotEmitted(view.cell_requested):
        qtbot.keyClick(view, Qt.Key.Key_Up)
        qtbot.keyClick(view, Qt.Key.Key_Left)


@pytest.mark.parametrize("key", [Qt.Key.Key_PageUp, Qt.Key.Key_PageDown, Qt.Key.Key_Plus])
def test_the_clicker_s_keys_are_left_to_others(view: MatrixView, key: Qt.Key) -> None:
    show(view, 12)
    event = QKeyEvent(QEvent.Type.KeyPress, key, Qt.KeyboardModifier.NoModifier)
    QApplication.sendEvent(view, event)
    assert not event.isAccepted()


def test_the_wheel_zooms_around_the_pointer_and_a_double_click_shows_all_again(
    view: MatrixView, qtbot: QtBot
) -> None:
    show(view, 100)
    before = view.cell_rect(80, 40)
    place = before.center()
    turn_wheel(view, place, 6)
    assert view.is_zoomed
    assert view.cell_rect(80, 40).width() >= 3 * before.width()
    assert view.cell_at(place) == (80, 40)
    qtbot.mouseDClick(view, Qt.MouseButton.LeftButton, pos=place.toPoint())
    assert not view.is_zoomed
    assert view.cell_rect(80, 40) == before


def test_zooming_out_again_shows_all(view: MatrixView) -> None:
    show(view, 100)
    place = view.cell_rect(80, 40).center()
    turn_wheel(view, place, 3)
    for _ in range(6):
        turn_wheel(view, place, -1)
    assert not view.is_zoomed


def test_dragging_moves_what_is_shown_and_is_no_click(view: MatrixView, qtbot: QtBot) -> None:
    show(view, 100)
    turn_wheel(view, view.cell_rect(50, 50).center(), 8)
    start = view.cell_rect(50, 50).center()
    with qtbot.assertNotEmitted(view.cell_clicked):
        drag(view, start, start - QPointF(40, 24))
    assert view.cell_rect(50, 50).center() == start - QPointF(40, 24)


def test_the_selected_cell_is_brought_into_view_when_zoomed(view: MatrixView) -> None:
    show(view, 100)
    turn_wheel(view, view.cell_rect(5, 5).center(), 10)
    view.set_cell(99, 60)
    assert view.cell_at(view.cell_rect(99, 60).center()) == (99, 60)


def test_the_selected_row_and_column_are_framed_in_the_accent(view: MatrixView) -> None:
    show(view, 12)
    view.set_cell(6, 2)
    shown = colours(view)
    row, column = view.cell_rect(6, 9), view.cell_rect(10, 2)
    accent = packed(LIGHT.accent)
    above = shown[int(row.top()) - 4 : int(row.top()) + 1, int(row.center().x())]
    beside = shown[int(column.center().y()), int(column.left()) - 4 : int(column.left()) + 1]
    assert accent in above
    assert accent in beside
    view.set_cell(None, None)
    assert accent not in colours(view)[2:-2, 2:-2]  # the edge shows the focus


def test_the_last_query_is_marked_at_the_axis(view: MatrixView) -> None:
    show(view, 12)
    shown = colours(view)
    last = view.cell_rect(11, 0)
    beside = shown[int(last.center().y()), int(last.left()) - 10 : int(last.left())]
    first = view.cell_rect(3, 0)
    assert packed(LIGHT.query) in beside
    assert (
        packed(LIGHT.query)
        not in shown[int(first.center().y()), int(first.left()) - 10 : int(first.left())]
    )


def test_on_the_logarithmic_scale_a_hundredth_is_half_way_up(view: MatrixView) -> None:
    n = 20
    names = [str(i) for i in range(n)]
    view.set_matrix(np.full((n, n), 0.01, np.float32), np.ones((n, n), bool), names, names)
    view.set_scale("log", False)
    shown = colours(view)[middle(view.cell_rect(4, 4))]
    assert shown in lookup_table(LIGHT.weights_map)[126:130]


def test_without_the_first_token_its_column_has_no_weight_s_colour(view: MatrixView) -> None:
    show(view, 12)
    view.set_scale("linear", True)
    place = view.cell_rect(4, 0)
    assert colours(view)[int(place.center().y()), int(place.left()) + 3] == packed(LIGHT.raised)


def test_stale_content_is_dimmed_and_not_blanked(view: MatrixView) -> None:
    show(view, 20)
    fresh = colours(view)[middle(view.cell_rect(3, 3))]
    view.set_stale(True)
    dimmed = colours(view)[middle(view.cell_rect(3, 3))]
    assert dimmed not in (fresh, packed(LIGHT.surface))
    view.set_stale(False)
    assert colours(view)[middle(view.cell_rect(3, 3))] == fresh


def test_zero_tokens_show_the_sentence_and_answer_nothing(view: MatrixView, qtbot: QtBot) -> None:
    show(view, 5)
    view.set_empty("Type something.")
    shown = colours(view)
    assert len(np.unique(shown)) > 1
    view.set_empty("")
    assert len(np.unique(colours(view)[2:-2, 2:-2])) == 1
    with qtbot.assertNotEmitted(view.cell_clicked):
        qtbot.mouseClick(view, Qt.MouseButton.LeftButton)
    turn_wheel(view, QPointF(100, 100), 2)
    qtbot.keyClick(view, Qt.Key.Key_Down)


def test_fewer_tokens_than_the_selection_and_the_pointer_are_fine(view: MatrixView) -> None:
    show(view, 50)
    view.set_cell(49, 49)
    point_at(view, view.cell_rect(48, 48).center())
    show(view, 3)
    assert colours(view).size
    show(view, 1024)
    assert colours(view).size


def test_hostile_labels_are_drawn_as_plain_text(view: MatrixView) -> None:
    n = len(HOSTILE)
    view.set_matrix(*causal(n), HOSTILE, HOSTILE)
    for index in range(n):
        view.set_cell(index, index)
        point_at(view, view.cell_rect(n - 1, index).center())
        assert colours(view).size
    view.set_cell(None, None)
    QApplication.sendEvent(view, QEvent(QEvent.Type.Leave))
    view.set_matrix(*causal(1), ["<b>x</b>"], [""])
    marked_up = colours(view)
    view.set_matrix(*causal(1), ["x"], [""])
    assert not np.array_equal(marked_up, colours(view))


def test_what_does_not_fit_together_is_refused_with_both_shapes(view: MatrixView) -> None:
    with pytest.raises(ValueError, match=r"\(2, 2\).*\(3, 2\)"):
        view.set_matrix(np.zeros((2, 2), np.float32), np.ones((2, 2), bool), ["a"] * 3, ["b"] * 2)


def test_on_a_screen_with_two_pixels_a_point_cells_still_have_whole_pixels(
    view: MatrixView, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view, "devicePixelRatioF", lambda: 2.0)
    show(view, 20)
    place = view.cell_rect(5, 5)
    pixels = view._canvas.pixels
    top, left = round(place.top() * 2), round(place.left() * 2)
    side = round(place.width() * 2)
    assert side == place.width() * 2
    block = pixels[top : top + side, left : left + side]
    table = lookup_table(LIGHT.weights_map)
    assert (block == table[255]).all()
    assert (pixels[top : top + side, left - side : left] == table[0]).all()


@pytest.mark.parametrize("theme", [LIGHT, DARK, PROJECTOR], ids=lambda theme: theme.name)
def test_small_places_are_fine(view: MatrixView, theme: Theme) -> None:
    view.set_theme(theme)
    show(view, 40)
    for size in ((1, 1), (60, 40), (200, 150), (900, 120), (120, 900)):
        view.resize(*size)
        view.set_cell(3, 2)
        assert colours(view).shape == (size[1], size[0])


def test_two_thousand_repaints_do_not_use_up_references_to_none(view: MatrixView) -> None:
    show(view, 3)
    view.set_cell(2, 1)
    view.repaint()
    before = sys.getrefcount(None)
    for _ in range(2000):
        view.repaint()
    assert before - sys.getrefcount(None) < 500


@pytest.mark.parametrize("n", [22, 40, 130, 700])
@pytest.mark.parametrize(
    ("scale", "first_out"), [("linear", False), ("linear", True), ("row", True)]
)
def test_a_picture_that_was_added_to_is_the_same_as_one_drawn_at_once(
    qtbot: QtBot, n: int, scale: WeightScale, *, first_out: bool
) -> None:
    """Steps, an edit at the end, going back, another head, a mask switched off and on."""
    rng = np.random.default_rng(n)
    names = [f"w{i % 17}" * (1 + i % 3) for i in range(n + 30)]
    views = [MatrixView() for _ in range(2)]
    for view in views:
        qtbot.addWidget(view)
        view.resize(640, 480)
        view.set_theme(DARK)
        view.set_scale(scale, first_out)

    def pattern(
        size: int, *, is_causal: bool = True
    ) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        weights = rng.random((size, size), np.float32) ** 4
        visible = np.tri(size, dtype=bool) if is_causal else np.ones((size, size), bool)
        return weights * visible, visible

    whole, _ = pattern(n + 30)
    other, _ = pattern(n + 30)
    edited = whole.copy()
    edited[n + 5] = other[n + 5]
    relabelled = [*names[: n + 5], "another", *names[n + 6 :]]
    mask = np.tri(n + 30, dtype=bool)
    steps = [
        *((whole, size, names) for size in range(n, n + 8)),
        (whole, n + 24, names),
        (edited, n + 6, relabelled),
        (edited, n + 7, relabelled),
        (whole, n - 3, names),
        (other, n - 3, names),
        (other, n, names),
    ]
    grown, fresh = views
    for weights, size, labels in steps:
        part = weights[:size, :size] * mask[:size, :size]
        grown.set_matrix(part, mask[:size, :size], labels[:size], labels[:size])
        fresh.set_theme(DARK)  # nothing of what is drawn is kept
        fresh.set_matrix(part, mask[:size, :size], labels[:size], labels[:size])
        assert (colours(grown) == colours(fresh)).all(), size
    for weights, visible in (pattern(n, is_causal=False), pattern(n)):
        grown.set_matrix(weights, visible, names[:n], names[:n])
        fresh.set_theme(DARK)
        fresh.set_matrix(weights, visible, names[:n], names[:n])
        assert (colours(grown) == colours(fresh)).all()
