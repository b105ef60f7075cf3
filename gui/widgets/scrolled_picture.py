"""What pictures that are scrolled have in common: the keys, waiting, and the pointer."""

from typing import Generic, TypeVar

from PySide6.QtCore import QEvent, QPointF, Qt
from PySide6.QtGui import QColor, QFocusEvent, QMouseEvent, QPainter
from PySide6.QtWidgets import QAbstractScrollArea, QFrame, QWidget

from gui.theme import Theme

STALE = 0.45  # how opaque a picture is that is out of date

At = TypeVar("At")  # what can be pointed at: a row, a cell; equal to itself when found again


def veil(theme: Theme) -> QColor:
    """What dims a picture that is out of date when it is filled over it."""
    colour = QColor(theme.surface)
    colour.setAlphaF(1 - STALE)
    return colour


class ScrolledPicture(QAbstractScrollArea):
    """Shows by what it draws whether keys go there, and whether it is out of date."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self._is_stale = False

    @property
    def is_stale(self) -> bool:
        """Whether it is dimmed."""
        return self._is_stale

    def set_stale(self, is_stale: bool) -> None:  # noqa: FBT001
        """Dim what is shown: it is no longer, or not yet, true of what else is on the window."""
        if is_stale != self._is_stale:
            self._is_stale = is_stale
            self.viewport().update()

    def show_hand(self, *, can_click: bool) -> None:
        """Show by the pointer whether a click on what it is over does something."""
        shapes = Qt.CursorShape
        self.viewport().setCursor(shapes.PointingHandCursor if can_click else shapes.ArrowCursor)

    def frame_focus(self, painter: QPainter, theme: Theme) -> None:
        """Frame the whole while keys go here; for where nothing that is in sight tells so."""
        if self.hasFocus():
            painter.setOpacity(1.0)
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QColor(theme.accent))
            painter.drawRect(self.viewport().rect().adjusted(0, 0, -1, -1))

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Keys go here from now on."""
        super().focusInEvent(event)
        self.viewport().update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """They go elsewhere."""
        super().focusOutEvent(event)
        self.viewport().update()


class PointedPicture(ScrolledPicture, Generic[At]):
    """Tells what the pointer is over, and what was clicked: pressed and let go in one place."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._hovered: At | None = None
        self._pressed: At | None = None
        self.viewport().setMouseTracking(True)

    def _at(self, place: QPointF) -> At | None:
        """What stands at a place in the viewport; None where nothing does."""
        raise NotImplementedError

    def _hover(self, at: At | None) -> None:
        """The pointer is over this; it may have been before."""
        raise NotImplementedError

    def _click(self, at: At) -> None:
        raise NotImplementedError

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Remember where a click begins."""
        if event.button() == Qt.MouseButton.LeftButton:
            self._pressed = self._at(event.position())

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """A click ends where it began, or is none."""
        if event.button() != Qt.MouseButton.LeftButton:
            return
        pressed, self._pressed = self._pressed, None
        at = self._at(event.position())
        if at is not None and at == pressed:
            self._click(at)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Tell what is under the pointer."""
        self._hover(self._at(event.position()))

    def viewportEvent(self, event: QEvent) -> bool:
        """The pointer leaving."""
        if event.type() == QEvent.Type.Leave:
            self._hover(None)
        return super().viewportEvent(event)
