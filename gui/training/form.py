"""What a new training asks for: data, tokens, sizes, positions, mask, and for how long."""

from pathlib import Path
from typing import Any

from PySide6.QtCore import QEvent, QObject, Signal
from PySide6.QtWidgets import (
    QComboBox,
    QFileDialog,
    QGridLayout,
    QHBoxLayout,
    QLineEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from engine.errors import EngineError
from engine.training.plan import (
    LIMITS,
    Number,
    TrainingPlan,
    check_number,
    limits_words,
)
from engine.training.recipes import RECIPES
from gui.theme import Theme
from gui.training.shelf import TrainingData
from gui.widgets.fitting_label import font_of
from gui.widgets.number_field import NumberField, NumberKind
from gui.widgets.wrapping_label import WrappingLabel
from gui.words.names import plain

_CHOICES: dict[str, tuple[str, tuple[tuple[str, str], ...]]] = {
    "tokenizer": ("tokens", (("characters", "characters"), ("byte-bpe", "byte-level BPE"))),
    "positions": (
        "positions",
        tuple((name, name) for name in ("rotary", "learned", "sinusoidal", "alibi", "none")),
    ),
    "mask": ("mask", (("causal", "causal"), ("none", "none (a leak)"))),
}
_HELP = {
    "tokenizer": "What the text is cut into: its characters, or frequent runs of bytes.",
    "vocab_size": "How many tokens byte-level BPE makes at most; characters are what they are.",
    "n_layer": "Blocks of attention and MLP; copying heads need two.",
    "n_head": "Attention heads in each layer; the width must be a multiple.",
    "d_model": "Numbers that stand for each position.",
    "context": "Tokens that the model sees at most, and of each window that it learns from.",
    "positions": "How the model is told where a token stands.",
    "mask": "Causal: no position sees later ones. None: each sees the token that it is to predict.",
    "steps": "How often the weights are changed.",
    "batch": "Windows of text for each step.",
    "learning_rate": "How far a step goes at most; it rises first and falls to 0.",
    "copy_steps": "First steps, in which a few tokens come again and again, to teach copying.",
    "seed": "Of the first weights and of the windows; the same one gives the same training.",
}
_STEPS: dict[str, Number] = {
    "vocab_size": 256,
    "d_model": 16,
    "context": 16,
    "steps": 100,
    "copy_steps": 100,
    "learning_rate": 0.001,
}
_OWN = "A plan of your own"
_ORDER = (
    ("tokenizer", "vocab_size", "positions", "mask"),
    ("n_layer", "n_head", "d_model", "context"),
    ("steps", "batch", "learning_rate", "copy_steps"),
    ("seed",),
)


class TrainingForm(QWidget):
    """Fields with sensible first values; tells of every change, and when to start.

    Whether what is filled in can be trained, and what it would take, is for others to find out
    and to `show_facts` or `show_complaint`.
    """

    changed = Signal()
    start_wanted = Signal()

    def __init__(self, plays: TrainingData) -> None:
        super().__init__()
        self._plays = plays
        first = RECIPES[0].plan.to_dict()
        self.recipe = QComboBox()
        self.recipe.setAccessibleName("Recipe")
        self.recipe.addItems([*(each.name for each in RECIPES), _OWN])
        self.recipe_words = WrappingLabel()
        self.data = QComboBox()
        self.data.setAccessibleName("Data")
        self.data.addItems([plays.title, "A text file of yours"])
        self.path = QLineEdit()
        self.path.setAccessibleName("Path of the text file")
        self.path.setPlaceholderText("Path of a text file in UTF-8; its last tenth is held out")
        self.choose_button = QPushButton("&Choose…")
        self.choices = {name: self._choice(name, str(first[name])) for name in _CHOICES}
        self.numbers = {name: self._number(name, first[name]) for name in LIMITS}
        self._labels: dict[str, WrappingLabel] = {}
        self.help = WrappingLabel()  # on the field that has the keyboard
        self.facts = WrappingLabel()
        self.complaint = WrappingLabel()
        self.start_button = QPushButton("&Start training")
        self.start_button.setEnabled(False)
        self._lay_out()
        self.recipe.activated.connect(self._take_recipe)
        self.data.activated.connect(self._on_data)
        self.path.textEdited.connect(lambda _text: self._change())
        self.choose_button.clicked.connect(self._choose)
        self.start_button.clicked.connect(self.start_wanted)
        self.help.say(_HELP["tokenizer"])
        self._on_data()

    def _choice(self, name: str, value: str) -> QComboBox:
        title, known = _CHOICES[name]
        box = QComboBox()
        box.setAccessibleName(title)
        box.setToolTip(_HELP[name])
        for each, text in known:
            box.addItem(text, each)
        box.setCurrentIndex(box.findData(value))
        box.activated.connect(lambda _row: self._change())
        return box

    def _number(self, name: str, value: Number) -> NumberField:
        title, least, most = LIMITS[name]
        kind = NumberKind(
            name=title,
            least=least,
            most=most,
            step=_STEPS.get(name, 1),
            use=limits_words(name),
            room_for="00000000",
        )
        field = NumberField(kind, lambda number: check_number(name, number))
        field.setToolTip(_HELP[name])
        field.show_value(value)
        field.committed.connect(lambda _value: self._change())
        field.complained.connect(lambda _sentence: self._change())
        return field

    def _lay_out(self) -> None:
        recipe = QHBoxLayout()
        recipe.addWidget(self.recipe)
        recipe.addStretch(1)
        file = QHBoxLayout()
        file.addWidget(self.data)
        file.addWidget(self.path, 1)
        file.addWidget(self.choose_button)
        self._grid = QGridLayout()
        for row, names in enumerate(_ORDER):
            for column, name in enumerate(names):
                field = self.choices.get(name) or self.numbers[name]
                label = WrappingLabel(_CHOICES[name][0] if name in _CHOICES else LIMITS[name][0])
                label.setWordWrap(False)
                label.setBuddy(field)
                field.setAccessibleDescription(_HELP[name])
                field.installEventFilter(self)
                self._labels[name] = label
                self._grid.addWidget(label, 2 * row, column)
                self._grid.addWidget(field, 2 * row + 1, column)
                self._grid.setColumnStretch(column, 1)
        start = QHBoxLayout()
        start.addWidget(self.start_button)
        start.addStretch(1)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.addLayout(recipe)
        self._column.addWidget(self.recipe_words)
        for part in (file, self._grid):
            self._column.addLayout(part)
        self._column.addWidget(self.help)
        self._column.addWidget(self.facts)
        self._column.addWidget(self.complaint)
        self._column.addLayout(start)
        self._column.addStretch(1)

    def set_theme(self, theme: Theme) -> None:
        """Draw in another look."""
        for label in self._labels.values():
            label.set_look(theme.font_body, theme.text_dim)
        for field in self.numbers.values():
            field.set_theme(theme)
        self.recipe_words.set_look(theme.font_body, theme.text_dim)
        for box in (*self.choices.values(), self.recipe, self.data, self.path, self.choose_button):
            box.setFont(font_of(self, theme.font_body))
        self.start_button.setFont(font_of(self, theme.font_body, bold=True))
        self.help.set_look(theme.font_body, theme.text_dim)
        self.facts.set_look(theme.font_body, theme.text)
        self.complaint.set_look(theme.font_body, theme.bad, bold=True)
        self._column.setSpacing(3 * theme.unit)
        self._grid.setHorizontalSpacing(3 * theme.unit)
        self._grid.setVerticalSpacing(theme.unit)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Explain the field that gets the keyboard."""
        if event.type() == QEvent.Type.FocusIn:
            fields: dict[str, QWidget] = {**self.choices, **self.numbers}
            named = [name for name, field in fields.items() if field is watched]
            if named:
                self.help.say(_HELP[named[0]])
        return super().eventFilter(watched, event)

    # What is filled in

    @property
    def wanted(self) -> tuple[TrainingPlan, TrainingData]:
        """The training that is asked for.

        Raises:
            EngineError: a field holds what is not possible, or no file is named.
        """
        plan = self._plan()
        if self.data.currentIndex() == 0:
            return plan, self._plays
        text = self.path.text().strip()
        if not text:
            raise EngineError("No text file is chosen yet; type its path, or press “Choose…”.")
        path = Path(text).expanduser()
        return plan, TrainingData(plain(path.name), (path,))

    def _plan(self) -> TrainingPlan:
        for field in self.numbers.values():
            if field.complaint:
                raise EngineError(field.complaint)
        values: dict[str, Any] = {name: field.value for name, field in self.numbers.items()}
        values["learning_rate"] = float(values["learning_rate"])
        return TrainingPlan(
            **values, **{name: box.currentData() for name, box in self.choices.items()}
        )

    def show_facts(self, sentence: str, *, is_ready: bool) -> None:
        """Say what the training would be; `is_ready`: it can be started."""
        self.complaint.say("")
        self.facts.say(sentence)
        self.facts.setAccessibleDescription(sentence)
        self.start_button.setEnabled(is_ready)

    def show_complaint(self, sentence: str) -> None:
        """Say why it cannot be started."""
        self.facts.say("")
        self.complaint.say(sentence)
        self.complaint.setAccessibleDescription(sentence)
        self.start_button.setEnabled(False)

    def _take_recipe(self, row: int) -> None:
        """Fill in what a recipe says; a plan of one's own begins with what is there."""
        if row < len(RECIPES):
            values = RECIPES[row].plan.to_dict()
            for name, field in self.numbers.items():
                field.reset(values[name])
            for name, box in self.choices.items():
                box.setCurrentIndex(box.findData(values[name]))
        self._change()

    def _name_recipe(self) -> None:
        """Say which recipe the fields hold, if any."""
        try:
            plans = [each.plan for each in RECIPES]
            plan = self._plan()
            row = plans.index(plan) if plan in plans else len(RECIPES)
        except EngineError:
            row = len(RECIPES)
        self.recipe.setCurrentIndex(row)
        words = RECIPES[row].sentence if row < len(RECIPES) else ""
        self.recipe_words.say(words)
        self.recipe.setAccessibleDescription(words)

    def _change(self) -> None:
        self._name_recipe()
        self.numbers["vocab_size"].setEnabled(self.choices["tokenizer"].currentData() == "byte-bpe")
        self.changed.emit()

    def _on_data(self, _row: int = 0) -> None:
        is_file = self.data.currentIndex() == 1
        self.path.setEnabled(is_file)
        self.choose_button.setEnabled(is_file)
        self._change()

    def _choose(self) -> None:
        name, _kind = QFileDialog.getOpenFileName(
            self, "Choose a text to train on", self.path.text(), "Texts (*.txt);;All files (*)"
        )
        if name:
            self.path.setText(name)
            self._change()
