"""A field for one number that takes any typing and complains in one sentence."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil, floor

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QColor, QKeyEvent, QPalette, QResizeEvent, QValidator, QWheelEvent
from PySide6.QtWidgets import QAbstractSpinBox, QSizePolicy, QWidget

from engine.errors import EngineError
from gui.theme import Theme
from gui.widgets.fitting_label import font_of

Number = int | float

_FRAME, _ARROWS = 14, 20  # logical pixels around the digits, and for the arrows
_CLOSE = 1e-9  # of a step: a value so near to a multiple counts as that multiple


@dataclass(frozen=True, kw_only=True)
class NumberKind:
    """What a field holds: its name in sentences, and how far an arrow key moves it.

    A whole step makes it a field for whole numbers. `least` and `most` end the steps; what may
    be typed is for the field's `check` to say.
    """

    name: str
    least: Number
    most: Number
    step: Number
    use: str  # ends the sentence on what is no number: "use 0 or more"
    room_for: str = "0000"

    @property
    def whole(self) -> bool:
        """Whether only whole numbers are meant."""
        return isinstance(self.step, int)


class NumberField(QAbstractSpinBox):
    """One number, told of when it is finished: Enter, leaving the field, or a step.

    A value that is no number, or that `check` refuses, stays in the field as it was typed, and
    `complaint` says in one sentence what would be right. Escape brings the last value back.
    """

    committed = Signal(object)  # int or float
    complained = Signal(str)  # one sentence; empty when all is well again

    def __init__(
        self, kind: NumberKind, check: Callable[[Number], object], parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._kind = kind
        self._check = check
        self._value: Number = kind.least
        self._theme: Theme | None = None
        self.complaint = ""
        self.setAccessibleName(kind.name)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.editingFinished.connect(self._finish)
        self._write()

    @property
    def value(self) -> Number:
        """The last value that was shown or committed."""
        return self._value

    def show_value(self, value: Number) -> None:
        """Show a value that came from elsewhere; what is being typed is only replaced by news."""
        if value != self._value:
            self._value = value
            self._write()

    def reset(self, value: Number) -> None:
        """Show this instead of whatever was typed, right or wrong."""
        self._value = value
        self._write()

    def set_most(self, most: Number) -> None:
        """Let steps end there."""
        self._kind = replace(self._kind, most=most)

    def set_theme(self, theme: Theme) -> None:
        """Draw in another look."""
        self._theme = theme
        self.setFont(font_of(self, theme.font_body))
        self._colour()
        self.updateGeometry()

    # What Qt asks of a spin box

    def validate(self, text: str, position: int) -> tuple[QValidator.State, str, int]:
        """Anything may be typed; it is judged when it is finished."""
        return QValidator.State.Acceptable, text, position

    def stepBy(self, steps: int) -> None:
        """Move to the next multiples of the step."""
        kind = self._kind
        at = self._value / kind.step
        nearest = floor(at + _CLOSE) if steps > 0 else ceil(at - _CLOSE)
        wanted = (nearest + steps) * kind.step
        value = min(max(wanted, kind.least), kind.most)
        self._take(int(value) if kind.whole else round(value, 10))
        self.selectAll()

    def stepEnabled(self) -> QAbstractSpinBox.StepEnabledFlag:
        """Steps end where the range ends."""
        flags = QAbstractSpinBox.StepEnabledFlag.StepNone
        if self._value < self._kind.most:
            flags |= QAbstractSpinBox.StepEnabledFlag.StepUpEnabled
        if self._value > self._kind.least:
            flags |= QAbstractSpinBox.StepEnabledFlag.StepDownEnabled
        return flags

    def sizeHint(self) -> QSize:
        """Wide enough for its digits and the arrows."""
        return QSize(self._width_of_digits() + _ARROWS, super().sizeHint().height())

    def minimumSizeHint(self) -> QSize:
        """Wide enough for its digits: where there is less room, the arrows go."""
        return QSize(self._width_of_digits(), super().minimumSizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Arrows only where they leave room for the digits."""
        super().resizeEvent(event)
        buttons = QAbstractSpinBox.ButtonSymbols
        has_room = self.width() >= self._width_of_digits() + _ARROWS
        self.setButtonSymbols(buttons.UpDownArrows if has_room else buttons.NoButtons)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Escape gives up what was typed."""
        if event.key() == Qt.Key.Key_Escape and self.text() != self._written():
            self._write()
            return
        super().keyPressEvent(event)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Only a field in use turns with the wheel; else the page scrolls."""
        if self.hasFocus():
            super().wheelEvent(event)
        else:
            event.ignore()

    # Inside

    def _finish(self) -> None:
        text = self.text().strip()
        if text == self._written() and not self.complaint:
            return
        try:
            value = self._parsed(text)
            self._check(value)
        except EngineError as error:
            self._complain(str(error))
            return
        self._take(value)

    def _parsed(self, text: str) -> Number:
        kind = self._kind
        try:
            return int(text) if kind.whole else float(text.replace(",", "."))
        except ValueError:
            sort = "whole number" if kind.whole else "number"
            shown = text if len(text) <= 20 else f"{text[:20]}…"
            raise EngineError(f"{kind.name} = {shown!r} is no {sort}; {kind.use}.") from None

    def _take(self, value: Number) -> None:
        is_news = value != self._value
        self._value = value
        self._write()
        if is_news:
            self.committed.emit(value)

    def _write(self) -> None:
        if self.text() != self._written():
            self.lineEdit().setText(self._written())
        self._complain("")
        self.setAccessibleDescription("")

    def _written(self) -> str:
        return str(self._value) if self._kind.whole else f"{self._value:.12g}"

    def _complain(self, sentence: str) -> None:
        is_news = sentence != self.complaint
        self.complaint = sentence
        if is_news:
            self.setAccessibleDescription(sentence)
            self._colour()
            self.complained.emit(sentence)

    def _colour(self) -> None:
        if self._theme is None:
            return
        palette = QPalette(self.palette())
        theme = self._theme
        colour = theme.bad if self.complaint else theme.text
        for state in (QPalette.ColorGroup.Active, QPalette.ColorGroup.Inactive):
            palette.setColor(state, QPalette.ColorRole.Text, QColor(colour))
        self.setPalette(palette)
        self.lineEdit().setPalette(palette)  # it does not follow once a style sheet was in force

    def _width_of_digits(self) -> int:
        return self.fontMetrics().horizontalAdvance(self._kind.room_for) + _FRAME
