"""A small drawing of which keys each query may see, for a few positions; no model is behind it."""

from math import ceil

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPixmap
from PySide6.QtWidgets import QSizePolicy, QWidget

from gui.theme import LIGHT, Theme
from gui.widgets.legend import draw_hatched
from gui.widgets.lettering import CENTRE, Lettering
from gui.widgets.pixels import keeps_lines

_CELL = 0.78  # of the body size


class MaskSchema(QWidget):
    """Rows are queries, columns are keys; what a query may see is filled, the rest is hatched."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._visible = np.zeros((0, 0), np.bool_)
        self._picture: QPixmap | None = None
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.setAccessibleName("Schema of the mask")
        self.set_theme(LIGHT)

    def set_theme(self, theme: Theme) -> None:
        """Draw in another look."""
        self._theme = theme
        self._axis = Lettering(self.font(), theme.font_axis)
        self._picture = None
        self.updateGeometry()
        self.update()

    def set_visible_keys(self, visible: NDArray[np.bool_]) -> None:
        """Draw this mask [n, n], row = query, column = key."""
        if np.array_equal(visible, self._visible):
            return
        self._visible = visible
        self.setAccessibleDescription(
            f"Schema for {len(visible)} positions: the last one sees "
            f"{int(visible[-1].sum())}, the first one {int(visible[0].sum())} of them."
        )
        self._picture = None
        self.updateGeometry()
        self.update()

    def cell_place(self, query: int, key: int) -> QRectF:
        """Where one cell is drawn."""
        cell, left = self._cell(), self._axis.line
        top = 2 * self._axis.line
        return QRectF(left + key * cell, top + query * cell, cell, cell)

    def sizeHint(self) -> QSize:
        """The cells, their title and the names of the axes."""
        side, line = len(self._visible) * self._cell() + 1, self._axis.line
        title = ceil(self._axis.width(self._title())) + 1
        return QSize(max(line + side, title), 2 * line + side)

    def minimumSizeHint(self) -> QSize:
        """As much: a smaller drawing could not be read."""
        return self.sizeHint()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the picture, made once for each mask, theme and screen; lines stay lines."""
        del event
        if self._picture is None or self._picture.devicePixelRatio() != self.devicePixelRatio():
            self._picture = self._drawn()
        with QPainter(self) as painter:
            if keeps_lines(painter):
                self._draw(painter)
            else:
                painter.drawPixmap(0, 0, self._picture)

    def _drawn(self) -> QPixmap:
        ratio = self.devicePixelRatio()
        picture = QPixmap(self.sizeHint() * ratio)
        picture.setDevicePixelRatio(ratio)
        picture.fill(Qt.GlobalColor.transparent)
        with QPainter(picture) as painter:
            self._draw(painter)
        return picture

    def _draw(self, painter: QPainter) -> None:
        self._draw_words(painter)
        self._draw_cells(painter)

    def _draw_words(self, painter: QPainter) -> None:
        theme, line = self._theme, self._axis.line
        side = len(self._visible) * self._cell()
        painter.setPen(QColor(theme.text))
        self._axis.draw(painter, QRectF(0, 0, self.sizeHint().width(), line), self._title())
        painter.setPen(QColor(theme.text_dim))
        self._axis.draw(painter, QRectF(line, line, side, line), "keys →")
        painter.save()
        painter.translate(0, 2 * line + side)
        painter.rotate(-90)
        self._axis.draw(painter, QRectF(0, 0, side, line), "← queries", CENTRE)
        painter.restore()

    def _draw_cells(self, painter: QPainter) -> None:
        theme, n = self._theme, len(self._visible)
        for query, key in np.ndindex(*self._visible.shape):
            place = self.cell_place(query, key)
            if self._visible[query, key]:
                painter.fillRect(place, QColor(theme.text_dim))
            else:
                draw_hatched(painter, place, theme)
            painter.setPen(QColor(theme.surface))
            painter.drawRect(place)
        if n:
            painter.setPen(QColor(theme.line))
            painter.drawRect(self.cell_place(0, 0).united(self.cell_place(n - 1, n - 1)))

    def _title(self) -> str:
        return f"Schema, {len(self._visible)} positions"

    def _cell(self) -> int:
        return max(6, round(_CELL * self._theme.font_body))
