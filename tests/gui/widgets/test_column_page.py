"""A page that is longer than its place: all of it is reached by the keyboard."""

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from gui.theme import LIGHT
from gui.widgets.column_page import ColumnPage
from gui.widgets.curves import CurveChart, Series
from gui.widgets.figure_table import FigureTable

N_ROWS = 30


@pytest.fixture
def table() -> FigureTable:
    """Longer than the page."""
    widget = FigureTable("Parts", ("part", "bytes"))
    widget.set_theme(LIGHT)
    widget.show_rows([(f"part {row}", "1 B") for row in range(N_ROWS)])
    return widget


@pytest.fixture
def chart() -> CurveChart:
    """A chart at the end."""
    widget = CurveChart(("bytes", "B"), "tokens", (Series("with", "text", "line"),))
    widget.setMinimumHeight(150)
    return widget


@pytest.fixture
def page(qtbot: QtBot, table: FigureTable, chart: CurveChart) -> ColumnPage:
    """A button, the table and the chart, in a place that shows a part of them."""
    widget = ColumnPage((QPushButton("Measure"), table), (chart,))
    qtbot.addWidget(widget)
    widget.set_theme(LIGHT)
    widget.resize(300, 200)
    widget.show()
    qtbot.waitExposed(widget)
    return widget


def place(page: ColumnPage, widget: QWidget, part: QRect) -> QRect:
    """Where on the page a part of a widget is seen."""
    return part.translated(widget.mapTo(page.viewport(), QPoint()))


def press(key: Qt.Key) -> None:
    """A key, on whatever has the keyboard."""
    focused = QApplication.focusWidget()
    assert focused is not None
    QTest.keyClick(focused, key)


def test_the_row_in_use_stays_in_sight(page: ColumnPage, table: FigureTable) -> None:
    table.setFocus()
    table.setCurrentCell(0, 0)
    for key, n_times in ((Qt.Key.Key_Down, N_ROWS - 1), (Qt.Key.Key_Up, N_ROWS - 1)):
        for _ in range(n_times):
            press(key)
            row = place(page, table.viewport(), table.visualItemRect(table.currentItem()))
            assert 0 <= row.top() < row.bottom() <= page.viewport().height()


def test_the_arrow_keys_lead_to_a_chart_at_the_end(page: ColumnPage, chart: CurveChart) -> None:
    """The page itself is one of the places that Tab leads to."""
    for _ in range(4):
        if QApplication.focusWidget() is page:
            break
        press(Qt.Key.Key_Tab)
    assert QApplication.focusWidget() is page
    for _ in range(100):
        press(Qt.Key.Key_Down)
    assert place(page, chart, chart.rect()).bottom() <= page.viewport().height()
