"""Widgets side by side, each exactly as wide as the others."""

from collections.abc import Sequence

from PySide6.QtCore import QSize
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget


class EvenRow(QWidget):
    """Owns the places of its widgets; pixels that are left over stay empty at the right.

    A layout of Qt's gives those to some of them, and pictures that are compared differ in size.
    """

    def __init__(self, widgets: Sequence[QWidget]) -> None:
        super().__init__()
        self._widgets = tuple(widgets)
        for widget in widgets:
            widget.setParent(self)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)

    def sizeHint(self) -> QSize:
        """What the largest wants, for each."""
        return self._all([widget.sizeHint() for widget in self._widgets])

    def minimumSizeHint(self) -> QSize:
        """What the largest needs, for each."""
        return self._all([widget.minimumSizeHint() for widget in self._widgets])

    def _all(self, hints: Sequence[QSize]) -> QSize:
        width, height = max(hint.width() for hint in hints), max(hint.height() for hint in hints)
        return QSize(len(hints) * width, height)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Share the width out."""
        super().resizeEvent(event)
        each = self.width() // len(self._widgets)
        for at, widget in enumerate(self._widgets):
            widget.setGeometry(at * each, 0, each, self.height())
