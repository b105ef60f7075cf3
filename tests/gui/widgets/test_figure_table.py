"""A table to read: plain text, as high as its rows, copied by the keyboard."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from gui.theme import DARK, LIGHT, PROJECTOR, Theme
from gui.widgets.curves import Series
from gui.widgets.figure_table import FigureTable

ROWS = [("<b>one</b>", "1 KiB", "2"), ("two", "3 KiB", "4")]


@pytest.fixture
def table(qtbot: QtBot) -> FigureTable:
    """Two rows of three columns."""
    widget = FigureTable("Sizes", ("design", "bytes", "rows"))
    qtbot.addWidget(widget)
    widget.set_theme(LIGHT)
    widget.show_rows(ROWS)
    widget.resize(300, widget.sizeHint().height())
    widget.show()
    return widget


def test_cells_hold_their_texts_to_the_letter(table: FigureTable) -> None:
    """Also where a text looks like markup, in the cell as in its tooltip."""
    item = table.item(0, 0)
    assert item is not None
    assert item.text() == "<b>one</b>"
    assert "&lt;b&gt;one" in item.toolTip()


def test_it_says_its_rows_to_who_cannot_see_them(table: FigureTable) -> None:
    assert table.accessibleName() == "Sizes"
    assert table.accessibleDescription() == (
        "<b>one</b>: bytes 1 KiB, rows 2. two: bytes 3 KiB, rows 4."
    )


@pytest.mark.parametrize("theme", [LIGHT, DARK, PROJECTOR], ids=lambda theme: theme.name)
def test_all_rows_are_seen_without_scrolling(table: FigureTable, theme: Theme) -> None:
    table.set_theme(theme)
    table.show_rows([*ROWS, *ROWS, *ROWS])
    table.resize(300, table.minimumSizeHint().height())
    QApplication.processEvents()
    last = table.visualItemRect(table.item(5, 0))
    assert table.viewport().rect().contains(last)
    assert last.height() >= theme.font_axis


def test_the_key_for_copying_takes_the_row_in_use(table: FigureTable) -> None:
    table.setFocus()
    table.setCurrentCell(0, 0)
    QTest.keyClick(table, Qt.Key.Key_Down)
    QTest.keyClick(table, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QGuiApplication.clipboard().text() == "two\t3 KiB\t4"


def test_a_row_can_carry_the_look_of_a_curve(table: FigureTable) -> None:
    table.show_rows(ROWS, [Series("one", "text", "dashes"), None])
    first, second = table.item(0, 0), table.item(1, 0)
    assert first is not None
    assert second is not None
    assert not first.icon().isNull()
    assert second.icon().isNull()


def test_names_stay_and_columns_give_way_where_it_is_narrow(qtbot: QtBot) -> None:
    """The last to give way is the last named; wide again, all come back."""
    table = FigureTable("Parts", ("part", "first", "second", "third"), gives_way=(2, 1))
    qtbot.addWidget(table)
    table.set_theme(LIGHT)
    table.show_rows([("a rather long name", "1,000,000", "2,000,000", "3,000,000")])
    table.show()
    hidden = []
    for width in (600, 280, 220, 600):
        table.resize(width, 60)
        QApplication.processEvents()
        hidden.append([column for column in range(4) if table.isColumnHidden(column)])
        assert table.columnWidth(0) > table.fontMetrics().horizontalAdvance("a rather long name")
    assert hidden == [[], [2], [1, 2], []]
    item = table.item(0, 0)
    assert item is not None
    assert "second 2,000,000" in item.toolTip()


@pytest.mark.parametrize("theme", [LIGHT, DARK, PROJECTOR], ids=lambda theme: theme.name)
def test_headings_take_no_room_that_names_need(qtbot: QtBot, theme: Theme) -> None:
    """Where all words fit, none is cut: not the names of rows, nor headings or figures."""
    headings = ("part", "multiply-adds", "needed", "time grows as")
    table = FigureTable("Parts", headings)
    qtbot.addWidget(table)
    table.set_theme(theme)
    table.show_rows([("norms and all their sums", "13.3 G", "1.96 GiB", "n^1.26")])
    metrics = table.fontMetrics()
    words = [metrics.horizontalAdvance(heading) for heading in headings]
    words[0] = metrics.horizontalAdvance("norms and all their sums")
    words[2] = metrics.horizontalAdvance("1.96 GiB")
    table.resize(sum(words) + 4 * 3 * theme.unit, 60)
    table.show()
    QApplication.processEvents()
    widths = [table.columnWidth(column) for column in range(4)]
    assert all(width > word for width, word in zip(widths, words, strict=True))


def test_headings_can_change(table: FigureTable) -> None:
    table.set_headings("design", "at 9", "at 99")
    heading = table.horizontalHeaderItem(1)
    assert heading is not None
    assert heading.text() == "at 9"
