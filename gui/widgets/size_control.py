"""A whole number as a slider and a field beside each other, under one name."""

from collections.abc import Callable

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QWidget

from gui.theme import Theme
from gui.widgets.fitting_label import font_of
from gui.widgets.number_field import Number, NumberField, NumberKind
from gui.widgets.user_slider import UserSlider

_LEAST_REACH = 16  # of the slider, while the text is short


class SizeControl(QWidget):
    """Owns the slider and the field; the slider reaches as far as the text, the field further."""

    chosen = Signal(int)
    complained = Signal(str)  # one sentence; empty when all is well again

    def __init__(self, name: str, least: int, tip: str, check: Callable[[Number], object]) -> None:
        super().__init__()
        self._least = least
        kind = NumberKind(name=name, least=least, most=least, step=1, use=f"use {least} or more")
        self.label = QLabel(name)
        self.label.setTextFormat(Qt.TextFormat.PlainText)
        self.slider = UserSlider()
        self.field = NumberField(kind, check, self)
        for widget in (self.label, self.slider, self.field):
            widget.setToolTip(tip)
        self.slider.setAccessibleName(name)
        self.slider.setAccessibleDescription(tip)
        self.label.setBuddy(self.field)
        self.setFocusProxy(self.slider)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self.label)
        row.addWidget(self.slider, 1)
        row.addWidget(self.field)
        self.slider.chosen.connect(self.chosen)
        self.field.committed.connect(lambda value: self.chosen.emit(int(value)))
        self.field.complained.connect(self.complained)

    def show_value(self, value: int, n_tokens: int, longest: int) -> None:
        """Show a value on a text of so many tokens, for a model that sees so many at most."""
        reach = _LEAST_REACH
        while reach < n_tokens:
            reach *= 2
        reach = max(self._least, min(reach, longest))
        self.field.set_most(longest)
        self.field.show_value(value)
        self.slider.show_value(min(value, reach), self._least, reach)

    def set_theme(self, theme: Theme) -> None:
        """Draw in another look."""
        self.label.setFont(font_of(self, theme.font_axis))
        self.field.set_theme(theme)
        layout = self.layout()
        if layout is not None:
            layout.setSpacing(theme.unit)
