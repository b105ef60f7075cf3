"""The legends of several pictures on one line, where each of its own would take their room."""

from collections.abc import Sequence

from PySide6.QtCore import QRectF, QSize
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from gui.theme import LIGHT, Theme
from gui.widgets.legend import Legend
from gui.widgets.lettering import Lettering


class LegendLine(QWidget):
    """Draws legends beside each other, each with its share of the width."""

    def __init__(self, shares: Sequence[int]) -> None:
        super().__init__()
        self._shares = tuple(shares)
        self._legends: tuple[Legend, ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.set_theme(LIGHT)

    def set_theme(self, theme: Theme) -> None:
        """Draw in another look."""
        self._theme = theme
        self._letters = Lettering(self.font(), theme.font_axis)
        self.updateGeometry()
        self.update()

    def set_legends(self, *legends: Legend) -> None:
        """Show these; none leaves the line empty."""
        if legends != self._legends:
            self._legends = legends
            self.update()

    def sizeHint(self) -> QSize:
        """One line."""
        return QSize(20 * self._theme.font_axis, self._letters.line)

    def minimumSizeHint(self) -> QSize:
        """The same, however narrow."""
        return QSize(0, self._letters.line)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw them on the theme's surface."""
        with QPainter(self) as painter:
            painter.fillRect(self.rect(), QColor(self._theme.surface))
            left, whole = 0.0, self.width() / sum(self._shares)
            for legend, share in zip(self._legends, self._shares, strict=False):
                place = QRectF(left, 0, share * whole - 2 * self._theme.unit, self.height())
                legend.draw_line(painter, self._letters, place)
                left += share * whole
