"""Strips of numbers above each other: read off as pixels, walked by keys, clicked."""

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QColor, QHelpEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QToolTip, QWidget

from engine.conditions import Conditions
from gui.theme import LIGHT, THEMES, Theme, lookup_table
from gui.widgets.sight import MOST, Sight
from gui.widgets.strip_table import Strip, StripTable
from tests.gui.picture_facts import colours, middle
from tests.gui.tiny_scope import house

# What the plugin that draws without a screen says of every tooltip.
pytestmark = pytest.mark.qt_log_ignore(r"does not support raise\(\)", extend=True)

LABELS = tuple("abcdefgh")
TOKENS = tuple(label.encode() for label in LABELS)
FILL = np.array([np.nan, 0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0])
TEXTS = ("", *(f"{each:.1f}" for each in FILL[1:].tolist()))
HELD = np.array([0, 0, 0.5, 1, 1, 1, np.nan, np.nan])
LEFT = Qt.MouseButton.LeftButton
SHIFT = Qt.KeyboardModifier.ShiftModifier


def strips(theme: str = "loss") -> list[Strip]:
    """Two rows, the second with a lane and a square."""
    sight = Sight.of(Conditions(), 8, 5)
    return [
        Strip(("a long heading for the first row", "first"), FILL, TEXTS, "weights"),
        Strip(("second",), FILL, TEXTS, theme, HELD, sight),  # type: ignore[arg-type]
    ]


@pytest.fixture
def table(window: QWidget) -> StripTable:
    """A shown table, wide enough for all columns."""
    widget = StripTable("strips")
    house(window, widget, 700, 220)
    widget.set_strips(LABELS, TOKENS, strips())
    widget.set_columns(5, 2)
    QApplication.processEvents()
    return widget


@pytest.fixture
def asked(table: StripTable) -> list[tuple[str, int]]:
    """What was asked for, in order."""
    heard: list[tuple[str, int]] = []
    table.chosen.connect(lambda at: heard.append(("query", at)))
    table.marked.connect(lambda at: heard.append(("mark", at)))
    return heard


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_each_cell_has_the_colour_of_its_number(table: StripTable, theme: Theme) -> None:
    """Read off a corner of each cell, where no letter stands."""
    table.set_theme(theme)
    table.set_columns(None, None)
    QApplication.processEvents()
    shown = colours(table.viewport())
    for index, palette in enumerate((theme.weights_map, theme.loss_map)):
        for position in range(1, 8):
            place = table.cell_place(index, position)
            wanted = lookup_table(palette)[round(255 * FILL[position])]
            assert shown[int(place.top()) + 3, int(place.left()) + 4] == wanted
        first = table.cell_place(index, 0)
        assert shown[int(first.top()) + 3, int(first.left()) + 4] == QColor(theme.surface).rgb()


def test_a_lane_is_filled_where_a_key_is_held_and_hatched_where_not(table: StripTable) -> None:
    shown = colours(table.viewport())
    key = QColor(LIGHT.key).rgb()

    def share(position: int) -> float:
        place = table.lane_place(1, position).adjusted(2, 1, -2, -1).toRect()
        part = shown[place.top() : place.bottom() + 1, place.left() : place.right() + 1]
        return float((part == key).mean())

    assert share(0) == 0
    assert 0.3 < share(2) < 0.7
    assert share(3) == share(4) == 1
    assert share(7) == 0
    hatch = table.lane_place(1, 0).toRect()
    part = shown[hatch.top() : hatch.bottom(), hatch.left() : hatch.right()]
    assert (part == QColor(LIGHT.hatch).rgb()).any()


def test_the_square_shows_what_each_position_sees(table: StripTable) -> None:
    """Half of it under the causal mask; the query's row in the accent."""
    shown = colours(table.viewport())
    box = table.sight_place(1)

    def at(row: float, column: float) -> int:
        y = round(box.top() + (row + 0.5) * box.height() / 8)
        return int(shown[y, round(box.left() + (column + 0.5) * box.width() / 8)])

    key, accent = QColor(LIGHT.key).rgb(), QColor(LIGHT.accent).rgb()
    assert at(3, 1) == key
    assert at(7, 6) == key
    assert at(5, 2) == accent
    assert at(2, 6) not in {key, accent}


def test_headings_say_as_much_as_has_room(table: StripTable) -> None:
    assert table.heading(0) == "a long heading for the first row"
    table.resize(160, 220)
    QApplication.processEvents()
    assert table.heading(0) == "first"


@pytest.mark.parametrize(
    ("key", "modifier", "wanted"),
    [
        (Qt.Key.Key_Left, Qt.KeyboardModifier.NoModifier, ("query", 4)),
        (Qt.Key.Key_Right, Qt.KeyboardModifier.NoModifier, ("query", 6)),
        (Qt.Key.Key_Home, Qt.KeyboardModifier.NoModifier, ("query", 0)),
        (Qt.Key.Key_End, Qt.KeyboardModifier.NoModifier, ("query", 7)),
        (Qt.Key.Key_Left, SHIFT, ("mark", 1)),
        (Qt.Key.Key_Right, SHIFT, ("mark", 3)),
        (Qt.Key.Key_Home, SHIFT, ("mark", 0)),
    ],
)
def test_keys_ask_for_another_query_or_with_shift_another_mark(
    table: StripTable,
    asked: list[tuple[str, int]],
    key: Qt.Key,
    modifier: Qt.KeyboardModifier,
    wanted: tuple[str, int],
) -> None:
    QTest.keyClick(table, key, modifier)
    assert asked == [wanted]


def test_keys_stop_at_the_ends_and_leave_commands_alone(
    table: StripTable, asked: list[tuple[str, int]]
) -> None:
    table.set_columns(7, None)
    QTest.keyClick(table, Qt.Key.Key_Right)
    QTest.keyClick(table, Qt.Key.Key_Left, Qt.KeyboardModifier.ControlModifier)
    QTest.keyClick(table, Qt.Key.Key_A)
    assert asked == [("query", 7)]


def test_a_click_chooses_and_with_shift_marks(
    table: StripTable, asked: list[tuple[str, int]]
) -> None:
    y, x = middle(table.cell_place(0, 3))
    QTest.mouseClick(table.viewport(), LEFT, pos=QPoint(x, y))
    QTest.mouseClick(table.viewport(), LEFT, SHIFT, QPoint(x, y))
    gutter = table.sight_place(1).center().toPoint()
    QTest.mouseClick(table.viewport(), LEFT, pos=gutter)
    assert asked == [("query", 3), ("mark", 3)]


def test_where_the_query_is_given_keys_and_clicks_move_the_mark(window: QWidget) -> None:
    table = StripTable("given", moves_mark=True)
    house(window, table, 700, 220)
    table.set_strips(LABELS, TOKENS, strips())
    table.set_columns(7, 2)
    marks: list[int] = []
    table.marked.connect(marks.append)
    QTest.keyClick(table, Qt.Key.Key_Left)
    y, x = middle(table.cell_place(0, 6))
    QTest.mouseClick(table.viewport(), LEFT, pos=QPoint(x, y))
    assert marks == [1, 6]
    assert "c at position 2" in table.accessibleDescription()


def test_all_columns_fit_at_once_without_letters(window: QWidget) -> None:
    table = StripTable("many")
    house(window, table, 400, 220)
    n = 300
    strip = Strip(("many",), np.linspace(0, 1, n), ("0",) * n)
    table.set_strips(("x",) * n, (b"x",) * n, [strip])
    assert table.is_lettered
    assert len(table.positions_in_sight()) < 20
    table.set_whole(is_whole=True)
    assert not table.is_lettered
    assert table.positions_in_sight() == range(n)
    assert table.horizontalScrollBar().maximum() == 0


def test_the_query_is_brought_into_sight(window: QWidget) -> None:
    table = StripTable("many")
    house(window, table, 400, 220)
    n = 300
    table.set_strips(("x",) * n, (b"x",) * n, [Strip(("many",), np.zeros(n), ("0",) * n)])
    for query in (250, 3, 299):
        table.set_columns(query, None)
        assert query in table.positions_in_sight()


def test_up_and_down_scroll_to_strips_that_have_no_room(
    table: StripTable, asked: list[tuple[str, int]]
) -> None:
    table.resize(700, 60)
    QApplication.processEvents()
    before = table.cell_place(1, 0).top()
    QTest.keyClick(table, Qt.Key.Key_Down)
    below = table.cell_place(1, 0).top()
    assert below < before
    QTest.keyClick(table, Qt.Key.Key_Up)
    assert table.cell_place(1, 0).top() == before
    assert asked == []


def test_what_is_old_is_dimmed(table: StripTable) -> None:
    before = colours(table.viewport())
    table.set_stale(is_stale=True)
    QApplication.processEvents()
    y, x = middle(table.lane_place(1, 4))
    dimmed = colours(table.viewport())[y, x]
    assert before[y, x] == QColor(LIGHT.key).rgb()
    assert QColor(int(dimmed)).lightnessF() > QColor(int(before[y, x])).lightnessF()


def test_a_sentence_stands_where_nothing_is_known(table: StripTable) -> None:
    table.set_empty("Nothing yet.")
    assert table.accessibleDescription() == "Nothing yet."
    assert table.positions_in_sight() == range(0)
    QApplication.processEvents()
    assert len(np.unique(colours(table.viewport()))) > 1


def test_hovering_tells_a_column_in_words(table: StripTable) -> None:
    """No markup of a token's can reach Qt: its signs are spelled out."""
    table.set_strips(LABELS, (TOKENS[0], b"<b>", *TOKENS[2:]), strips())
    place = table.cell_place(0, 1).center().toPoint()
    event = QHelpEvent(QHelpEvent.Type.ToolTip, place, table.viewport().mapToGlobal(place))
    QApplication.sendEvent(table.viewport(), event)
    told = "less-than sign b greater-than sign at position 1: first 0.0; second 0.0."
    assert QToolTip.text() == f"<span>{told}</span>"
    QToolTip.hideText()


# Squares


def test_a_long_text_is_thinned_and_keeps_its_query() -> None:
    sight = Sight.of(Conditions(mask="window", window=100, sinks=1), 1000, 777)
    assert len(sight.positions) <= MOST + 1
    assert 777 in sight.positions
    row = int(np.flatnonzero(sight.positions == 777)[0])
    wanted = (sight.positions <= 777) & ((sight.positions > 677) | (sight.positions < 1))
    np.testing.assert_array_equal(sight.seen[row], wanted)


def test_an_empty_texts_square_is_empty() -> None:
    assert Sight.of(Conditions(), 0, None).positions.size == 0
