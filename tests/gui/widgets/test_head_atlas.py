"""All heads in one picture: colours, order, what is recoloured, the pointer and the keys."""

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QPointF, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from gui.theme import LIGHT, THEMES, Theme, lookup_table
from gui.widgets.atlas_layout import AtlasLayout, Room
from gui.widgets.head_atlas import HeadAtlas
from gui.widgets.head_tiles import Tiles
from gui.widgets.pixels import packed
from gui.widgets.scales import tone_table
from tests.gui.picture_facts import colours, middle, point_at


@pytest.fixture
def atlas(qtbot: QtBot) -> HeadAtlas:
    """An empty atlas on screen."""
    atlas = HeadAtlas()
    qtbot.addWidget(atlas)
    atlas.resize(480, 400)
    atlas.set_theme(LIGHT)
    atlas.show()
    return atlas


def show(atlas: HeadAtlas, n_layer: int = 3, n_head: int = 4, n_bins: int = 1) -> NDArray[np.uint8]:
    """Give the atlas heads whose bins hold value 10 · (place in the grid + 1), causally."""
    values = 10 * np.arange(1, n_layer * n_head + 1) % 256
    peaks = np.zeros((n_layer, n_head, n_bins, n_bins), np.uint8)
    peaks[:] = values.reshape(n_layer, n_head, 1, 1) * np.tri(n_bins, dtype=np.uint8)
    atlas.set_grid(n_layer, n_head)
    atlas.set_thumbnails(peaks, np.tri(n_bins, dtype=bool))
    return peaks


def tone(value: int) -> int:
    """The colour of a thumbnail's value in the light theme."""
    table = tone_table(lookup_table(LIGHT.weights_map), "linear", packed(LIGHT.masked))
    return int(table[value])


@pytest.mark.parametrize("grid", [(2, 2), (6, 8), (12, 12), (3, 1), (1, 1)])
def test_every_head_is_drawn_in_its_place_in_its_colour(
    atlas: HeadAtlas, grid: tuple[int, int]
) -> None:
    peaks = show(atlas, *grid)
    shown = colours(atlas)
    for layer in range(grid[0]):
        for head in range(grid[1]):
            wanted = tone(max(1, int(peaks[layer, head, 0, 0])))
            assert shown[middle(atlas.head_rect(layer, head))] == wanted


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_the_masked_half_is_hatched_and_unlike_weight_0(atlas: HeadAtlas, theme: Theme) -> None:
    atlas.set_theme(theme)
    atlas.set_grid(2, 2)
    atlas.set_thumbnails(np.zeros((2, 2, 4, 4), np.uint8), np.tri(4, dtype=bool))
    place = atlas.head_rect(0, 1)
    shown = colours(atlas)
    quarter = place.width() / 4
    corner = shown[
        int(place.top()) : int(place.top() + quarter),
        int(place.right() - quarter) + 1 : int(place.right()),
    ]
    assert set(corner.ravel().tolist()) == {packed(theme.masked), packed(theme.hatch)}
    low = shown[int(place.bottom()) - 2, int(place.left()) + 2]
    assert low == lookup_table(theme.weights_map)[0]


@pytest.mark.parametrize("order", [None, [(1, 1), (0, 0), (1, 0), (0, 1)]])
def test_layers_with_windows_of_their_own_are_hatched_by_themselves(
    atlas: HeadAtlas, order: list[tuple[int, int]] | None
) -> None:
    """The same cell is masked in layer 1 and has weight 0 in layer 0, in any order."""
    atlas.set_grid(2, 2)
    causal = np.tri(4, dtype=bool)
    atlas.set_thumbnails(
        np.zeros((2, 2, 4, 4), np.uint8), np.stack([causal, causal & ~np.tri(4, k=-2, dtype=bool)])
    )
    atlas.set_order(order)
    shown = colours(atlas)
    for layer, head in np.ndindex(2, 2):
        place = atlas.head_rect(layer, head)
        low = int(shown[int(place.bottom()) - 2, int(place.left()) + 2])
        hatched = low in (packed(LIGHT.masked), packed(LIGHT.hatch))
        assert hatched == (layer == 1)


def test_a_weight_above_the_mask_is_not_hidden(atlas: HeadAtlas) -> None:
    atlas.set_grid(1, 1)
    peaks = np.zeros((1, 1, 4, 4), np.uint8)
    peaks[0, 0, 0, 3] = 255
    atlas.set_thumbnails(peaks, np.tri(4, dtype=bool))
    place = atlas.head_rect(0, 0)
    assert colours(atlas)[int(place.top()) + 3, int(place.right()) - 3] == tone(255)


@pytest.mark.parametrize("n_bins", [33, 50, 64])
def test_a_single_peak_survives_in_a_thumbnail_smaller_than_its_bins(
    atlas: HeadAtlas, n_bins: int
) -> None:
    atlas.set_grid(12, 12)
    rng = np.random.default_rng(n_bins)
    peaks = np.zeros((12, 12, n_bins, n_bins), np.uint8)
    for layer in range(12):
        for head in range(12):
            peaks[layer, head, rng.integers(n_bins), rng.integers(n_bins)] = 255
    atlas.set_thumbnails(peaks, np.ones((n_bins, n_bins), bool))
    shown = colours(atlas)
    assert atlas.head_rect(0, 0).width() < n_bins
    for layer in range(12):
        for head in range(12):
            place = atlas.head_rect(layer, head).toRect()
            part = shown[place.top() : place.bottom() + 1, place.left() : place.right() + 1]
            assert tone(255) in part


@pytest.mark.usefixtures("qapp")
@given(st.data())
def test_telling_which_rows_changed_gives_the_same_picture_as_showing_all(
    data: st.DataObject,
) -> None:
    n_bins = data.draw(st.integers(1, 40))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    peaks = rng.integers(0, 256, (2, 3, n_bins, n_bins)).astype(np.uint8)
    step, whole = HeadAtlas(), HeadAtlas()
    width = data.draw(st.integers(60, 300))
    for one in (step, whole):
        one.resize(width, 200)
        one.set_grid(2, 3)
    step.set_thumbnails(peaks, np.tri(n_bins, dtype=bool))
    for _ in range(data.draw(st.integers(1, 3))):
        if data.draw(st.booleans()):
            step._prepare()
        first = data.draw(st.integers(0, n_bins - 1))
        last = data.draw(st.integers(first + 1, n_bins))
        peaks = peaks.copy()
        peaks[:, :, first:last] = rng.integers(0, 256, peaks[:, :, first:last].shape)
        step.set_thumbnails(peaks, np.tri(n_bins, dtype=bool), (first, last))
    whole.set_thumbnails(peaks, np.tri(n_bins, dtype=bool))
    for one in (step, whole):
        one._prepare()
    assert np.array_equal(step._canvas.pixels, whole._canvas.pixels)


def test_the_first_key_s_weight_is_drawn_into_its_bin(atlas: HeadAtlas) -> None:
    show(atlas, 1, 2, 2)
    peaks = np.array([[[[10, 0], [20, 30]], [[10, 0], [20, 30]]]], np.uint8)
    first = np.array([[[200, 5], [0, 100]]], np.uint8)
    atlas.set_thumbnails(peaks, np.tri(2, dtype=bool), None, first)
    shown = colours(atlas)
    for head, wanted in enumerate(([200, 20], [10, 100])):
        box = atlas.head_rect(0, head)
        assert box is not None
        x = int(box.left() + box.width() / 4)
        tops = [int(box.top() + box.height() * part) for part in (0.25, 0.75)]
        assert [shown[top, x] for top in tops] == [tone(value) for value in wanted]
    assert peaks[0, 0, 0, 0] == 10  # what was handed in is left as it is


def test_a_step_touches_no_other_row_s_pixels(atlas: HeadAtlas) -> None:
    show(atlas, 3, 4, 8)
    before = colours(atlas)
    lied_about = np.full((3, 4, 8, 8), 255, np.uint8)
    atlas.set_thumbnails(lied_about, np.tri(8, dtype=bool), (7, 8))
    after = colours(atlas)
    place = atlas.head_rect(1, 1)
    edge = int(place.top() + place.height() * 7 / 8) - 1
    assert (after[int(place.top()) : edge] == before[int(place.top()) : edge])[
        :, int(place.left()) : int(place.right())
    ].all()
    assert after[int(place.bottom()) - 2, int(place.left()) + 2] == tone(255)


def test_the_order_puts_heads_one_after_another(atlas: HeadAtlas) -> None:
    peaks = show(atlas)
    order = [(2, 1), (0, 0), (1, 3)]
    atlas.set_order(order)
    shown = colours(atlas)
    places = [atlas.head_rect(*head) for head in order]
    for (layer, head), place in zip(order, places, strict=True):
        assert shown[middle(place)] == tone(int(peaks[layer, head, 0, 0]))
    reading = [(place.top(), place.left()) for place in places]
    assert reading == sorted(reading)
    assert atlas.head_rect(0, 1) is None
    atlas.set_order(None)
    assert atlas.head_rect(0, 1) is not None


def test_filtered_heads_are_dimmed_and_keep_their_places(atlas: HeadAtlas) -> None:
    peaks = show(atlas)
    place = atlas.head_rect(1, 1)
    atlas.set_order(None, {(1, 1)})
    assert atlas.head_rect(1, 1) == place
    shown = colours(atlas)
    assert shown[middle(place)] not in (tone(int(peaks[1, 1, 0, 0])), packed(LIGHT.surface))
    assert shown[middle(atlas.head_rect(1, 2))] == tone(int(peaks[1, 2, 0, 0]))


def test_another_scale_recolours_all_heads(atlas: HeadAtlas) -> None:
    peaks = show(atlas)
    colours(atlas)
    table = tone_table(lookup_table(LIGHT.weights_map), "log", packed(LIGHT.masked))
    atlas.set_scale(table)
    shown = colours(atlas)[middle(atlas.head_rect(2, 2))]
    assert shown == table[peaks[2, 2, 0, 0]]


def test_the_selected_head_is_framed_in_the_accent(atlas: HeadAtlas) -> None:
    show(atlas)
    atlas.set_selected(1, 2)
    shown = colours(atlas)
    place = atlas.head_rect(1, 2)
    assert shown[int(place.top()) - 2, int(place.center().x())] == packed(LIGHT.accent)
    other = atlas.head_rect(0, 0)
    assert shown[int(other.top()) - 2, int(other.center().x())] != packed(LIGHT.accent)


def test_clicking_a_head_asks_for_it_also_in_an_order(atlas: HeadAtlas, qtbot: QtBot) -> None:
    show(atlas)
    for order in (None, [(2, 1), (1, 3), (0, 0)]):
        atlas.set_order(order)
        with qtbot.waitSignal(atlas.head_clicked) as clicked:
            qtbot.mouseClick(
                atlas.viewport(),
                Qt.MouseButton.LeftButton,
                pos=atlas.head_rect(1, 3).center().toPoint(),
            )
        assert clicked.args == [1, 3]


def test_hovering_names_the_head_once_and_leaving_says_so(atlas: HeadAtlas, qtbot: QtBot) -> None:
    show(atlas)
    heard = []
    atlas.head_hovered.connect(lambda *head: heard.append(head))
    place = atlas.head_rect(2, 1).center()
    plain = colours(atlas)
    point_at(atlas.viewport(), place)
    point_at(atlas.viewport(), place + QPointF(2, 2))
    assert heard == [(2, 1)]
    assert atlas.viewport().cursor().shape() == Qt.CursorShape.PointingHandCursor
    assert not np.array_equal(plain, colours(atlas))
    with qtbot.waitSignal(atlas.hover_left):
        QApplication.sendEvent(atlas.viewport(), QEvent(QEvent.Type.Leave))
    assert np.array_equal(plain, colours(atlas))


def test_arrow_keys_ask_for_the_neighbour_in_the_grid(atlas: HeadAtlas, qtbot: QtBot) -> None:
    show(atlas)
    atlas.set_selected(1, 1)
    for key, wanted in (
        (Qt.Key.Key_Up, [-1, 0]),
        (Qt.Key.Key_Down, [1, 0]),
        (Qt.Key.Key_Left, [0, -1]),
        (Qt.Key.Key_Right, [0, 1]),
    ):
        with qtbot.waitSignal(atlas.head_move_requested) as asked:
            qtbot.keyClick(atlas, key)
        assert asked.args == wanted


def test_arrow_keys_stop_at_the_edges(atlas: HeadAtlas, qtbot: QtBot) -> None:
    show(atlas)
    for selected, keys in (
        ((0, 0), (Qt.Key.Key_Up, Qt.Key.Key_Left)),
        ((2, 3), (Qt.Key.Key_Down, Qt.Key.Key_Right)),
        ((1, 0), (Qt.Key.Key_Left,)),
    ):
        atlas.set_selected(*selected)
        with qtbot.assertNotEmitted(atlas.head_move_requested):
            for key in keys:
                qtbot.keyClick(atlas, key)


def test_in_an_order_arrow_keys_ask_for_places_in_it(atlas: HeadAtlas, qtbot: QtBot) -> None:
    show(atlas)
    atlas.set_order([(2, 1), (1, 3), (0, 0)])
    atlas.set_selected(1, 3)
    with qtbot.waitSignal(atlas.head_move_requested) as asked:
        qtbot.keyClick(atlas, Qt.Key.Key_Right)
    assert asked.args == [0, 1]


@pytest.mark.parametrize("key", [Qt.Key.Key_PageUp, Qt.Key.Key_PageDown])
def test_the_clicker_s_keys_are_left_to_others(atlas: HeadAtlas, key: Qt.Key) -> None:
    show(atlas)
    event = QKeyEvent(QEvent.Type.KeyPress, key, Qt.KeyboardModifier.NoModifier)
    QApplication.sendEvent(atlas, event)
    assert not event.isAccepted()


def test_many_heads_scroll_and_the_selected_one_is_brought_into_view(atlas: HeadAtlas) -> None:
    atlas.resize(300, 200)
    peaks = show(atlas, 30, 9, 1)
    assert atlas.head_rect(0, 0).width() >= 14
    assert atlas.verticalScrollBar().maximum() > 0
    atlas.set_selected(29, 8)
    place = atlas.head_rect(29, 8)
    assert atlas.viewport().rect().contains(place.toRect())
    assert colours(atlas)[middle(place)] == tone(int(peaks[29, 8, 0, 0]))
    assert atlas.head_at(place.center()) == (29, 8)
    atlas.resize(300, 800)
    colours(atlas)
    assert atlas.verticalScrollBar().maximum() == 0


@given(
    st.integers(1, 40),
    st.integers(1, 40),
    st.integers(30, 1500),
    st.integers(30, 1500),
    st.booleans(),
)
def test_boxes_never_overlap_and_are_hit_where_they_are(
    rows: int,
    columns: int,
    width: int,
    height: int,
    is_sorted: bool,  # noqa: FBT001
) -> None:
    room = Room(width, height, 20, 14, 3, 14)
    count = rows * columns
    layout = (
        AtlasLayout.sorted(count, (44, 14), room)
        if is_sorted
        else AtlasLayout.grid(rows, columns, room)
    )
    assert layout.box >= 14
    assert layout.step_x > layout.box
    assert layout.step_y > layout.box
    for at in {0, count // 2, count - 1}:
        x, y = layout.corner(at)
        assert 0 <= x <= layout.width - layout.box
        assert 0 <= y <= layout.height - layout.box
        assert layout.box_at(x, y) == at
        assert layout.box_at(x + layout.box - 1, y + layout.box - 1) == at
    assert layout.box_at(layout.width + 50, 5) is None
    assert layout.box_at(5, layout.height + layout.step_y) is None


@pytest.mark.parametrize("n_bins", [1, 2, 33, 64])
def test_thumbnails_fill_their_boxes_at_any_length(atlas: HeadAtlas, n_bins: int) -> None:
    atlas.set_grid(2, 2)
    atlas.set_thumbnails(
        np.full((2, 2, n_bins, n_bins), 255, np.uint8), np.ones((n_bins, n_bins), bool)
    )
    place = atlas.head_rect(1, 1).toRect()
    shown = colours(atlas)[place.top() : place.bottom() + 1, place.left() : place.right() + 1]
    assert (shown == tone(255)).all()
    assert place.width() > 150


def test_zero_tokens_show_a_sentence_and_answer_nothing(atlas: HeadAtlas, qtbot: QtBot) -> None:
    with qtbot.assertNotEmitted(atlas.head_clicked):
        qtbot.mouseClick(atlas.viewport(), Qt.MouseButton.LeftButton)
    show(atlas)
    atlas.set_empty("No text yet.")
    plain = colours(atlas)
    assert tone(50) not in plain
    with qtbot.assertNotEmitted(atlas.head_clicked):
        qtbot.mouseClick(
            atlas.viewport(),
            Qt.MouseButton.LeftButton,
            pos=atlas.head_rect(1, 1).center().toPoint(),
        )
    show(atlas)
    assert tone(50) in colours(atlas)


def test_another_model_s_grid_takes_the_place_of_the_first(atlas: HeadAtlas) -> None:
    show(atlas, 3, 4)
    atlas.set_selected(2, 3)
    atlas.set_order([(2, 3)], {(2, 3)})
    peaks = show(atlas, 1, 2)
    assert colours(atlas)[middle(atlas.head_rect(0, 1))] == tone(int(peaks[0, 1, 0, 0]))
    assert atlas.head_rect(2, 3) is None


def test_captions_are_plain_text_of_any_kind(atlas: HeadAtlas) -> None:
    show(atlas)
    texts = ["<b>x</b>", "שלום", "👩‍👩‍👧", "", "y" * 10_000, "\x00", "a\nb"]
    atlas.set_captions({(at // 4, at % 4): text for at, text in enumerate(texts)})
    for order in (None, [(at // 4, at % 4) for at in range(12)]):
        atlas.set_order(order)
        for at in range(len(texts)):
            point_at(atlas.viewport(), atlas.head_rect(at // 4, at % 4).center())
            assert colours(atlas).size


def test_stale_content_is_dimmed_and_not_blanked(atlas: HeadAtlas) -> None:
    show(atlas)
    place = middle(atlas.head_rect(2, 2))
    fresh = colours(atlas)[place]
    atlas.set_stale(True)
    assert colours(atlas)[place] not in (fresh, packed(LIGHT.surface))


def test_what_does_not_fit_the_grid_is_refused(atlas: HeadAtlas) -> None:
    atlas.set_grid(2, 2)
    with pytest.raises(ValueError, match=r"\(2, 3, 1, 1\)"):
        atlas.set_thumbnails(np.zeros((2, 3, 1, 1), np.uint8), np.ones((1, 1), bool))


def test_on_a_screen_with_two_pixels_a_point_boxes_are_whole_pixels(
    atlas: HeadAtlas, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(atlas, "devicePixelRatioF", lambda: 2.0)
    peaks = show(atlas, 3, 4)
    place = atlas.head_rect(1, 2)
    top, left, side = (round(2 * x) for x in (place.top(), place.left(), place.width()))
    assert side == 2 * place.width()
    block = atlas._canvas.pixels[top : top + side, left : left + side]
    assert (block == tone(int(peaks[1, 2, 0, 0]))).all()


def test_two_thousand_repaints_do_not_use_up_references_to_none(atlas: HeadAtlas) -> None:
    show(atlas)
    atlas.set_selected(1, 1)
    atlas.viewport().repaint()
    before = sys.getrefcount(None)
    for _ in range(2000):
        atlas.viewport().repaint()
    assert before - sys.getrefcount(None) < 500


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_a_head_that_is_off_is_crossed_out_and_still_seen(atlas: HeadAtlas, theme: Theme) -> None:
    """Not by colour alone, at any size; the others are as they were."""
    atlas.set_theme(theme)
    show(atlas, 2, 3, 4)
    before = colours(atlas)
    atlas.set_off({(1, 2)})
    shown = colours(atlas)
    place = atlas.head_rect(1, 2)
    ink = packed(theme.text)
    for across, down in ((0.25, 0.25), (0.75, 0.75), (0.25, 0.75), (0.75, 0.25)):
        x, y = place.left() + across * place.width(), place.top() + down * place.height()
        assert ink in shown[int(y) - 1 : int(y) + 2, int(x) - 1 : int(x) + 2]
    for layer, head in np.ndindex(2, 3):
        if (layer, head) != (1, 2):
            box = atlas.head_rect(layer, head).toAlignedRect()
            rows = slice(box.top(), box.bottom()), slice(box.left(), box.right())
            assert np.array_equal(shown[rows], before[rows])
    atlas.set_off(())
    assert np.array_equal(colours(atlas), before)


@pytest.mark.parametrize("order", [None, [(1, 1), (0, 0), (1, 0), (0, 1)]])
def test_tiles_take_the_place_of_thumbnails(
    atlas: HeadAtlas, order: list[tuple[int, int]] | None
) -> None:
    """Colours from a map centred on 0, what is not measured hatched, and thumbnails come back."""
    show(atlas, 2, 2, 4)
    atlas.set_order(order)
    before = colours(atlas)
    scores = np.array([[2.0, -1.0], [0.0, np.nan]])
    atlas.set_tiles(Tiles(scores, 2.0, {(0, 0): "2.0"}))
    shown = colours(atlas)
    table = lookup_table(LIGHT.difference_map)
    # the middle of 256 colours lies between two of them
    for head, index in (((0, 0), 255), ((0, 1), 64), ((1, 0), 128)):
        place = atlas.head_rect(*head)
        assert shown[int(place.top()) + 2, int(place.left()) + 2] == table[index]
    hatched = atlas.head_rect(1, 1).toAlignedRect()
    inside = shown[hatched.top() + 1 : hatched.bottom(), hatched.left() + 1 : hatched.right()]
    assert packed(LIGHT.masked) in inside
    box = atlas.head_rect(0, 0).toAlignedRect()
    written = shown[box.top() : box.bottom(), box.left() : box.right()]
    assert len(np.unique(written)) > 2  # a number on the colour
    atlas.set_tiles(None)
    assert np.array_equal(colours(atlas), before)
