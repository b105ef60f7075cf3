"""A slider that speaks only when its user moves it, and may carry one mark."""

from PySide6.QtCore import QPointF, QRect, Qt, Signal
from PySide6.QtGui import QColor, QMouseEvent, QPainter, QPaintEvent, QPolygonF
from PySide6.QtWidgets import QAbstractSlider, QSlider, QStyle, QStyleOptionSlider

_MARK_HALF_WIDTH = 4


class UserSlider(QSlider):
    """Horizontal; a click goes to the place clicked, and showing a value tells nobody."""

    chosen = Signal(int)

    def __init__(self) -> None:
        super().__init__(Qt.Orientation.Horizontal)
        self._wanted: int | None = None  # what to show once the handle is let go
        self._mark: int | None = None
        self._colour = ""
        self._is_showing = False  # a value, from outside
        self._painted: tuple[int, float | None] | None = None  # where handle and mark were painted
        self.actionTriggered.connect(self._tell)
        self.sliderReleased.connect(self._settle)

    def _tell(self, _action: int) -> None:
        if self.sliderPosition() != self.value():
            self.chosen.emit(self.sliderPosition())

    def _settle(self) -> None:
        if self._wanted is not None:
            self.setValue(self._wanted)
            self._wanted = None

    def show_value(self, value: int, lowest: int, highest: int) -> None:
        """Show a value; while the user holds the handle it stays under the pointer."""
        self._is_showing = True
        self.setRange(lowest, highest)
        if self.isSliderDown():
            self._wanted = value
        else:
            self.setValue(value)
        self._is_showing = False
        if self._looks() != self._painted:
            self.update()

    def set_mark(self, at: int | None, colour: str) -> None:
        """Mark one value, or none."""
        if (at, colour) != (self._mark, self._colour):
            self._mark, self._colour = at, colour
            self.update()

    def mark_x(self) -> float | None:
        """Where the mark stands, in the widget's coordinates."""
        return self._mark_between(*self._places())

    def _mark_between(self, groove: QRect, handle: QRect) -> float | None:
        if self._mark is None or not self.minimum() <= self._mark <= self.maximum():
            return None
        span = groove.width() - handle.width()
        along = QStyle.sliderPositionFromValue(self.minimum(), self.maximum(), self._mark, span)
        return groove.x() + handle.width() / 2 + along

    def _places(self) -> tuple[QRect, QRect]:
        option = QStyleOptionSlider()
        self.initStyleOption(option)
        control = QStyle.ComplexControl.CC_Slider
        parts = QStyle.SubControl.SC_SliderGroove, QStyle.SubControl.SC_SliderHandle
        groove, handle = (
            self.style().subControlRect(control, option, part, self) for part in parts
        )
        return groove, handle

    def _looks(self) -> tuple[int, float | None]:
        """Where the handle and the mark stand."""
        groove, handle = self._places()
        return handle.x(), self._mark_between(groove, handle)

    def _value_at(self, x: float) -> int:
        groove, handle = self._places()
        span = groove.width() - handle.width()
        along = round(x) - groove.x() - handle.width() // 2
        return QStyle.sliderValueFromPosition(self.minimum(), self.maximum(), along, span)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Bring the handle to the pointer and let it be dragged on."""
        if event.button() != Qt.MouseButton.LeftButton or self.minimum() == self.maximum():
            event.ignore()
            return
        self.setSliderDown(True)
        self.setSliderPosition(self._value_at(event.position().x()))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Follow the pointer while the button is held."""
        if self.isSliderDown():
            self.setSliderPosition(self._value_at(event.position().x()))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Let the handle go."""
        if event.button() == Qt.MouseButton.LeftButton and self.isSliderDown():
            self.setSliderDown(False)

    def sliderChange(self, change: QAbstractSlider.SliderChange) -> None:
        """Leave it to `show_value` whether to paint: a token more of a thousand moves nothing."""
        if not self._is_showing:
            super().sliderChange(change)

    def paintEvent(self, event: QPaintEvent) -> None:
        """The slider of the style, and the mark over its groove."""
        super().paintEvent(event)
        self._painted = _handle, x = self._looks()
        if x is None:
            return
        groove = self._places()[0]
        top, middle = groove.top(), groove.center().y()
        half = _MARK_HALF_WIDTH
        flag = [QPointF(x - half, top), QPointF(x + half, top), QPointF(x, top + 1.5 * half)]
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(QColor(self._colour))
            painter.setBrush(QColor(self._colour))
            painter.drawPolygon(QPolygonF(flag))
            painter.drawLine(QPointF(x, top), QPointF(x, middle + half))
