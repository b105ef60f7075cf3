"""How the tests of painted widgets point at them and read their colours."""

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QObject, QPoint, QPointF, QRectF, Qt
from PySide6.QtGui import QImage, QMouseEvent, QPaintEvent, QWheelEvent
from PySide6.QtWidgets import QApplication, QWidget


def colours(widget: QWidget) -> NDArray[np.uint32]:
    """What a widget shows: 0xFFRRGGBB [height, width]."""
    image = widget.grab().toImage().convertToFormat(QImage.Format.Format_RGB32)
    flat = np.frombuffer(image.constBits(), np.uint32)
    return flat.reshape(image.height(), -1)[:, : image.width()].copy()


def on_screen(window: QWidget) -> QImage:
    """What a window shows once what it asked for is painted: `grab` would paint it all again."""
    QApplication.sendPostedEvents(window, QEvent.Type.UpdateRequest.value)
    return window.screen().grabWindow(window.winId()).toImage()


def is_all_painted(window: QWidget) -> bool:
    """Whether a window shows what it would if it were painted whole again."""
    QApplication.processEvents()
    shown = on_screen(window)
    for each in (window, *window.findChildren(QWidget)):
        each.update()
    return shown == on_screen(window)


def middle(place: QRectF) -> tuple[int, int]:
    """Row and column of the pixel in the middle of a place."""
    return int(place.center().y()), int(place.center().x())


def point_at(widget: QWidget, place: QPointF) -> None:
    """Move the pointer there."""
    _mouse(widget, QEvent.Type.MouseMove, place, Qt.MouseButton.NoButton)


def drag(widget: QWidget, start: QPointF, end: QPointF) -> None:
    """Press the left button, move, let go."""
    _mouse(widget, QEvent.Type.MouseButtonPress, start, Qt.MouseButton.LeftButton)
    _mouse(widget, QEvent.Type.MouseMove, end, Qt.MouseButton.LeftButton)
    _mouse(widget, QEvent.Type.MouseButtonRelease, end, Qt.MouseButton.LeftButton)


def turn_wheel(widget: QWidget, place: QPointF, notches: int) -> None:
    """Turn the wheel, away from the user if positive."""
    event = QWheelEvent(
        place,
        QPointF(widget.mapToGlobal(place.toPoint())),
        QPoint(),
        QPoint(0, 120 * notches),
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QApplication.sendEvent(widget, event)


def _mouse(widget: QWidget, kind: QEvent.Type, place: QPointF, button: Qt.MouseButton) -> None:
    held = Qt.MouseButton.NoButton if kind == QEvent.Type.MouseButtonRelease else button
    pressed = Qt.MouseButton.NoButton if kind == QEvent.Type.MouseMove else button
    where = QPointF(widget.mapToGlobal(place.toPoint()))
    none = Qt.KeyboardModifier.NoModifier
    QApplication.sendEvent(widget, QMouseEvent(kind, place, where, pressed, held, none))


class PaintWatch(QObject):
    """Adds up the area that a widget repaints."""

    def __init__(self, widget: QWidget) -> None:
        super().__init__(widget)
        self.area = 0
        widget.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Count, and let the event pass."""
        if isinstance(event, QPaintEvent):
            place = event.region().boundingRect()
            if event.region().rectCount() == 1:
                self.area += place.width() * place.height()
            else:
                self.area += _area(event)
        return super().eventFilter(watched, event)


def _area(event: QPaintEvent) -> int:
    region = event.region()
    bound = region.boundingRect()
    lines = range(bound.top(), bound.bottom() + 1)
    strips = (region.intersected(bound.__class__(bound.left(), y, bound.width(), 1)) for y in lines)
    return sum(strip.boundingRect().width() for strip in strips if not strip.isEmpty())
