"""How the next token is drawn, as four fields and one button."""

from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import (
    QGridLayout,
    QHBoxLayout,
    QPushButton,
    QWidget,
)

from engine.sampling import Sampling
from gui.theme import Theme
from gui.widgets.fitting_label import FittingLabel, font_of
from gui.widgets.number_field import Number, NumberField, NumberKind
from gui.widgets.wrapping_label import WrappingLabel

_KINDS = {
    kind.name: kind
    for kind in (
        NumberKind(
            name="temperature", least=0, most=100, step=0.1, use="use 0 or more", room_for="0.0001"
        ),
        NumberKind(name="top_k", least=0, most=10**6, step=1, use="use 0 (all tokens) or more"),
        NumberKind(name="top_p", least=0.05, most=1, step=0.05, use="use more than 0, at most 1"),
        NumberKind(name="seed", least=0, most=2**64 - 1, step=1, use="use 0 or more"),
    )
}
_HELP = {
    "temperature": "The logits are divided by it: lower is surer, 0 is greedy.",
    "top_k": "Only the so many most probable tokens stay; 0 keeps all.",
    "top_p": "Only the smallest set of tokens stays whose probability reaches this; 1 keeps all.",
    "seed": "The same seed gives the same text, also after stepping back.",
}


class SamplingFields(QWidget):
    """Temperature, top-k, top-p, seed and "Greedy"; tells of every whole, possible change.

    `note` has room for what the sampling comes to.

    A value that is not possible is told in one sentence under the fields and changes nothing.
    """

    changed = Signal(object)  # Sampling

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._warm = Sampling().temperature  # what "Greedy" goes back to
        self.fields = {name: self._field(name) for name in _KINDS}
        self._labels = {name: WrappingLabel(name.replace("_", "-")) for name in _KINDS}
        self.greedy = QPushButton("Greedy")
        self.greedy.setCheckable(True)
        self.greedy.setToolTip("Temperature 0: always the most probable token.")
        self.greedy.clicked.connect(self._toggle_greedy)
        self.note = FittingLabel()
        self.complaint = WrappingLabel()
        self.complaint.hide()
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        for column, (name, field) in enumerate(self.fields.items()):
            label = self._labels[name]
            label.setWordWrap(False)
            label.setBuddy(field)
            self._grid.addWidget(label, 0, column)
            self._grid.addWidget(field, 1, column)
            self._grid.setColumnStretch(column, 1)
        self._last = QHBoxLayout()
        self._last.addWidget(self.note, 1)
        self._last.addWidget(self.greedy)
        self._grid.addWidget(self.complaint, 2, 0, 1, len(self.fields))
        self._grid.addLayout(self._last, 3, 0, 1, len(self.fields))
        self.show_sampling(Sampling())

    def show_sampling(self, sampling: Sampling) -> None:
        """Show what is in force; nothing is told of it."""
        for name, field in self.fields.items():
            field.show_value(getattr(sampling, name))
        if sampling.temperature:
            self._warm = sampling.temperature
        self.greedy.setChecked(not sampling.temperature)

    def set_theme(self, theme: Theme) -> None:
        """Draw in another look."""
        for label in self._labels.values():
            label.set_look(theme.font_axis, theme.text_dim)
        for field in self.fields.values():
            field.set_theme(theme)
        self.greedy.setFont(font_of(self, theme.font_axis))
        self.complaint.set_look(theme.font_axis, theme.bad)
        self.note.set_look(theme, theme.text_dim)
        self._grid.setHorizontalSpacing(theme.unit)
        self._grid.setVerticalSpacing(theme.unit // 2)

    def _field(self, name: str) -> NumberField:
        field = NumberField(_KINDS[name], lambda value: _check(name, value), self)
        field.setToolTip(_HELP[name])
        field.committed.connect(self._commit)
        field.complained.connect(self._complain)
        return field

    def _commit(self) -> None:
        values: dict[str, Any] = {name: field.value for name, field in self.fields.items()}
        self.changed.emit(Sampling(**values))

    def _toggle_greedy(self, is_greedy: bool) -> None:  # noqa: FBT001 - Qt's signal
        self.fields["temperature"].show_value(0.0 if is_greedy else self._warm)
        self._commit()

    def _complain(self) -> None:
        sentences = [each.complaint for each in self.fields.values() if each.complaint]
        self.complaint.say(sentences[0] if sentences else "")


def _check(name: str, value: Number) -> None:
    """Let the engine judge one value.

    Raises:
        ConfigError: the value is not possible.
    """
    values: dict[str, Any] = {name: value}
    Sampling(**values)
