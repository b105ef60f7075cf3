"""A page of blocks one below the other, or in two columns where it is wide; it scrolls."""

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QFocusEvent, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from gui.theme import LIGHT, Theme
from gui.widgets.curves import CurveChart
from gui.widgets.scrolled_page import ScrolledPage

_MUCH = 1000  # charts take what is left over, and nothing but them
_WIDE_EMS = 66  # of the axes' letters: from here on two columns


class ColumnPage(ScrolledPage):
    """Owns the arrangement of two groups of widgets, the second below or beside the first."""

    def __init__(self, first: Sequence[QWidget], second: Sequence[QWidget]) -> None:
        self.content = QWidget()  # all of it, of which the page shows as much as there is room for
        super().__init__(self.content)
        # Charts take no keyboard, so that Tab alone would not lead to those at the end.
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setAccessibleName("Page, up and down scroll it")
        self._em, self._accent, self._stroke = LIGHT.font_axis, LIGHT.accent, LIGHT.stroke
        self._groups = [QWidget(), QWidget()]
        self._columns = [QVBoxLayout(group) for group in self._groups]
        for column, widgets in zip(self._columns, (first, second), strict=True):
            column.setContentsMargins(0, 0, 0, 0)
            for widget in widgets:
                column.addWidget(widget, _MUCH if isinstance(widget, CurveChart) else 0)
            column.addStretch(1)
        self._across = QHBoxLayout(self.content)
        self._down = QVBoxLayout()
        self._across.addLayout(self._down, 1)
        for group in self._groups:
            self._down.addWidget(group)
        self._is_wide = False
        for group in self._groups:
            group.setAutoFillBackground(False)

    def set_theme(self, theme: Theme) -> None:
        """Take over sizes."""
        unit = theme.unit
        self._em, self._accent, self._stroke = theme.font_axis, theme.accent, theme.stroke
        self._across.setContentsMargins(2 * unit, unit, 2 * unit, unit)
        self._across.setSpacing(4 * unit)
        self._down.setSpacing(2 * unit)
        for column in self._columns:
            column.setSpacing(unit)
        self._arrange()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Take the second group beside the first where there is room."""
        super().resizeEvent(event)
        self._arrange()

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Show that the arrow keys go here."""
        super().focusInEvent(event)
        self.viewport().update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Show that they no longer do."""
        super().focusOutEvent(event)
        self.viewport().update()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Frame the page that has the keyboard; its margins let the frame be seen."""
        super().paintEvent(event)
        if self.hasFocus():
            with QPainter(self.viewport()) as painter:
                painter.setPen(QPen(QColor(self._accent), self._stroke))
                half = round(self._stroke / 2)
                painter.drawRect(self.viewport().rect().adjusted(half, half, -half - 1, -half - 1))

    def _arrange(self) -> None:
        is_wide = self.viewport().width() >= _WIDE_EMS * self._em
        if is_wide == self._is_wide:
            return
        self._is_wide = is_wide
        second = self._groups[1]
        (self._down if is_wide else self._across).removeWidget(second)
        if is_wide:
            self._across.addWidget(second, 1)
        else:
            self._down.addWidget(second)
