"""In what a second run differs: three switches, a field for each that is on, and presets."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from engine.answers.comparison import WayWanted
from engine.conditions import Conditions, Mask
from engine.document import Document
from engine.errors import ConfigError
from gui.compare_choice import CompareChoice, Difference
from gui.library.dialogs import ask_for_file, ask_for_folder
from gui.theme import Theme
from gui.widgets.fitting_label import FittingLabel, plain_tip
from gui.widgets.number_field import Number, NumberField, NumberKind
from gui.widgets.prompt_edit import PromptEdit
from resources import Pair

_DIFFERENCES: dict[Difference, tuple[str, str]] = {
    "text": ("Text", "B reads another text."),
    "conditions": ("Mask", "B runs under another mask, or without positions."),
    "model": ("Model", "B is another model."),
}
_WAYS: dict[WayWanted, str] = {
    "automatic": "automatic",
    "position": "by position",
    "token": "by token",
}
_MASKS: dict[Mask, str] = {"none": "no mask", "causal": "causal mask", "window": "window"}
_DOORS = ("Folder…", "File…")
_MOST_POSITIONS = 1_000_000  # of a window; more is refused by nobody, but nobody means it


class CompareFields(QWidget):
    """Shows a choice and tells of changes; decides nothing."""

    changed = Signal(object)  # dict of fields of CompareChoice
    preset_chosen = Signal(object)  # Pair

    def __init__(self, models: Sequence[tuple[str, Path]], pairs: Sequence[Pair]) -> None:
        super().__init__()
        self._models, self._pairs = list(models), tuple(pairs)
        self._choice = CompareChoice()
        self._open_path = ""
        self.presets = _combo("Presets", [pair.title for pair in pairs])
        self.presets.setPlaceholderText("Presets")
        self.presets.setCurrentIndex(-1)
        self.presets.setToolTip("Two runs that are worth comparing.")
        self.lead = FittingLabel(
            Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, fills=True
        )
        self.lead.set_wordings("B differs in", "B:")
        self.switches: dict[Difference, QPushButton] = {}
        self.way = _combo("Which tokens are compared", list(_WAYS.values()))
        self.way.setToolTip("Token i with token i, or equal tokens wherever they stand.")
        self.prompt = PromptEdit()
        self.prompt.setAccessibleName("Prompt of the second run, B")
        self.mask_choice = _combo("Mask of the second run, B", list(_MASKS.values()))
        self.window_field = NumberField(_kind("window", 1), lambda n: _check(window=n), self)
        self.sinks_field = NumberField(_kind("first k", 0), lambda k: _check(sinks=k), self)
        self.positions = QCheckBox("positions")
        self.positions.setToolTip("Without them the model cannot tell the order of the tokens.")
        self.model_choice = _combo("Model of the second run, B", [])
        self.model_choice.setPlaceholderText("choose a model")
        self.same_head = QCheckBox("A's head")
        self.same_head.setToolTip("Layer and head of B are those of A, or the last that B has.")
        self.layer_field = NumberField(_kind("B's layer", 0), lambda n: self._check_at(0, n))
        self.head_field = NumberField(_kind("B's head", 0), lambda n: self._check_at(1, n))
        self._at, self._n_at = (0, 0), (1, 1)  # of B: layer and head, how many there are of each
        self.complaint = FittingLabel(fills=True)
        self._window_parts: tuple[QWidget, ...] = ()
        self._head_parts: tuple[QWidget, ...] = ()
        self._slack = 0
        self._place()
        self._connect()

    def show_choice(self, choice: CompareChoice, text_a: str, open_path: str) -> None:
        """Show what is chosen; A's text stands in B's field until another one is typed."""
        self._choice, self._open_path = choice, open_path
        for name, switch in self.switches.items():
            switch.setChecked(name in choice.differs)
        self.way.setCurrentIndex(list(_WAYS).index(choice.way))
        self.prompt.setVisible("text" in choice.differs)
        self.prompt.show_text(text_a if choice.text is None else choice.text)
        self.mask_choice.setCurrentIndex(list(_MASKS).index(choice.mask))
        has_conditions = "conditions" in choice.differs
        self.mask_choice.setVisible(has_conditions)
        self.positions.setVisible(has_conditions)
        for part in self._window_parts:
            part.setVisible(has_conditions and choice.mask == "window")
        self.window_field.show_value(choice.window)
        self.sinks_field.show_value(choice.sinks)
        self.positions.setChecked(choice.positions)
        self.model_choice.setVisible("model" in choice.differs)
        self._show_model(choice.model)
        has_model = "model" in choice.differs
        self.same_head.setVisible(has_model)
        self.same_head.setChecked(choice.at is None)
        for part in self._head_parts:
            part.setVisible(has_model and choice.at is not None)
        self._show_at(choice.at or self._at)

    def show_heads(self, at: tuple[int, int], n_layer: int, n_head: int) -> None:
        """Know which head of B is shown, and how many it has."""
        self._at, self._n_at = at, (n_layer, n_head)
        self.layer_field.set_most(n_layer - 1)
        self.head_field.set_most(n_head - 1)
        if self._choice.at is None:
            self._show_at(at)

    def _show_at(self, at: tuple[int, int]) -> None:
        self.layer_field.show_value(at[0])
        self.head_field.show_value(at[1])

    def show_tokens(self, document: Document) -> None:
        """Draw B's tokens under its text, if that is the text of the field."""
        if document.text == self.prompt.text():
            self.prompt.set_tokens(document.spans)

    def set_theme(self, theme: Theme) -> None:
        """Draw in another look."""
        self.prompt.set_theme(theme)
        self._slack = theme.unit
        self.lead.setMaximumWidth(8 * theme.font_body)
        self.complaint.set_look(theme, theme.bad, small=True)
        self.lead.set_look(theme, theme.text)
        for field in self._fields:
            field.set_theme(theme)
        for layout in (self._switches, self._texts, self._of_model, self._conditions, self._rows):
            layout.setSpacing(theme.unit)

    def set_lines(self, n_lines: int) -> None:
        """Give B's prompt so many lines."""
        self.prompt.setFixedHeight(self.prompt.height_of(n_lines) + self._slack)

    # Telling

    def _connect(self) -> None:
        self.presets.activated.connect(self._choose_preset)
        self.way.activated.connect(lambda row: self.changed.emit({"way": list(_WAYS)[row]}))
        self.prompt.text_edited.connect(lambda text: self.changed.emit({"text": text}))
        self.mask_choice.activated.connect(
            lambda row: self.changed.emit({"mask": list(_MASKS)[row]})
        )
        self.window_field.committed.connect(lambda n: self.changed.emit({"window": int(n)}))
        self.sinks_field.committed.connect(lambda k: self.changed.emit({"sinks": int(k)}))
        self.positions.clicked.connect(lambda on: self.changed.emit({"positions": on}))
        self.model_choice.activated.connect(self._choose_model)
        self.same_head.clicked.connect(
            lambda same: self.changed.emit({"at": None if same else self._at})
        )
        self.layer_field.committed.connect(lambda _n: self._tell_at())
        self.head_field.committed.connect(lambda _n: self._tell_at())
        for field in self._fields:
            field.complained.connect(self._complain)

    @property
    def _fields(self) -> tuple[NumberField, ...]:
        return self.window_field, self.sinks_field, self.layer_field, self.head_field

    def _tell_at(self) -> None:
        self.changed.emit({"at": (int(self.layer_field.value), int(self.head_field.value))})

    def _check_at(self, axis: int, number: Number) -> None:
        """Whether B has such a layer or head."""
        name, most = ("layer", "head")[axis], self._n_at[axis] - 1
        if not 0 <= number <= most:
            raise ConfigError(f"{name} = {number} is not in B; use 0 to {most}.")

    def _choose_preset(self, row: int) -> None:
        self.presets.setCurrentIndex(-1)
        self.preset_chosen.emit(self._pairs[row])

    def _switch(self, name: Difference) -> None:
        differs = self._choice.differs ^ {name}
        changes: dict[str, Any] = {"differs": differs}
        if name == "model" and self._choice.model is None:
            others = (path for _name, path in self._models if str(path) != self._open_path)
            changes["model"] = next(others, None)
        self.changed.emit(changes)

    def _choose_model(self, row: int) -> None:
        if row < len(self._models):
            self.changed.emit({"model": self._models[row][1], "at": None})
            return
        ask = ask_for_folder if row == len(self._models) else ask_for_file
        path = ask(self)
        if path is None:
            self._show_model(self._choice.model)
        else:
            self.changed.emit({"model": path, "at": None})

    def _show_model(self, path: Path | None) -> None:
        known = [each for _name, each in self._models]
        if path is not None and path not in known:
            self._models.append((path.name, path))
            known.append(path)
        names = [*(name for name, _path in self._models), *_DOORS]
        if names != [self.model_choice.itemText(row) for row in range(self.model_choice.count())]:
            self.model_choice.clear()
            self.model_choice.addItems(names)
        self.model_choice.setCurrentIndex(-1 if path is None else known.index(path))
        self.model_choice.setToolTip(plain_tip(self.model_choice.currentText()))

    def _complain(self) -> None:
        said = filter(None, (field.complaint for field in self._fields))
        self.complaint.set_wordings(next(said, ""))
        self.complaint.setVisible(bool(self.complaint.text()))

    # Layout

    def _place(self) -> None:
        self._rows, self._switches = QVBoxLayout(self), QHBoxLayout()
        self._texts, self._of_model = QHBoxLayout(), QHBoxLayout()
        self._conditions = QHBoxLayout()
        self._rows.setContentsMargins(0, 0, 0, 0)
        self._switches.addWidget(self.presets)
        self._switches.addWidget(self.lead, 1)
        for name, (text, tip) in _DIFFERENCES.items():
            switch = QPushButton(text)
            switch.setCheckable(True)
            switch.setToolTip(tip)
            switch.setAccessibleName(f"B differs in: {text}")
            switch.setAccessibleDescription(tip)
            switch.clicked.connect(lambda _on=False, name=name: self._switch(name))
            self.switches[name] = switch
            self._switches.addWidget(switch)
        self._switches.addWidget(self.way)
        self._switches.addStretch(1)
        window, sinks, layer, head = (QLabel(name) for name in ("n", "first", "layer", "head"))
        self._head_parts = (layer, self.layer_field, head, self.head_field)
        self._window_parts = (window, self.window_field, sinks, self.sinks_field)
        labels = (window, sinks, layer, head)
        for label, field in zip(labels, self._fields, strict=True):
            label.setTextFormat(Qt.TextFormat.PlainText)
            label.setBuddy(field)
        self._texts.addWidget(self.prompt, 1)
        across = QSizePolicy.Policy
        self.model_choice.setSizePolicy(across.Expanding, across.Fixed)  # for names of any length
        self._of_model.addWidget(self.model_choice, 2)
        for part in (self.same_head, *self._head_parts):
            self._of_model.addWidget(part)
        self._of_model.addStretch(1)
        for widget in (self.mask_choice, *self._window_parts, self.positions):
            self._conditions.addWidget(widget)
        self._conditions.addStretch(1)
        self._rows.addLayout(self._switches)
        self._rows.addLayout(self._texts)
        self._rows.addLayout(self._of_model)
        self._rows.addLayout(self._conditions)
        self._rows.addWidget(self.complaint)
        self.complaint.hide()


def _combo(name: str, rows: Sequence[str]) -> QComboBox:
    combo = QComboBox()
    combo.addItems(list(rows))
    combo.setAccessibleName(name)
    combo.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
    combo.setMinimumContentsLength(7)
    return combo


def _kind(name: str, least: int) -> NumberKind:
    use = f"use {least} or more"
    return NumberKind(name=name, least=least, most=_MOST_POSITIONS, step=1, use=use, room_for="00")


def _check(window: Number = 1, sinks: Number = 0) -> None:
    Conditions(mask="window", window=int(window), sinks=int(sinks))
