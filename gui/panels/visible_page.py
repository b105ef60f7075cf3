"""What may be seen to predict token 3, token 8, and in training: three states to step through."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QButtonGroup, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from engine.reading import Focus
from engine.windows.visibility import Prediction, Visibility
from gui.panels.absence import absence
from gui.panels.base import Lead
from gui.theme import Theme
from gui.view import View
from gui.widgets.fitting_label import FittingLabel, font_of
from gui.widgets.strip_table import StripTable
from gui.widgets.token_text import display
from gui.windows_state import STATES, Answer, asked_by
from gui.wishes import ChooseWindows, SelectPosition
from gui.words.visible import (
    all_alone_said,
    alone_said,
    guess_said,
    prediction_strips,
    state_title,
    too_short,
    training_said,
    training_strips,
)

WAITING = "Some tokens are being predicted from what stands before them alone."
ONE_BY_ONE = Lead("Read the whole text one token at a time, and compare all rows", "two_ways")


class VisiblePage(QWidget):
    """A button for each state and one for the next, the strips, and what was measured."""

    wished = Signal(object)
    led = Signal(object)  # Lead

    def __init__(self) -> None:
        super().__init__()
        self._n_tokens, self._at = 0, 0
        self.states = QButtonGroup(self)
        self.following = QPushButton("Next")
        self.following.setAccessibleName("Next state")
        self.following.setToolTip("Token 3, then token 8, then training, then token 3 again.")
        self.one_by_one = QPushButton("One by one …")
        self.one_by_one.setToolTip(ONE_BY_ONE.title)
        self.table = StripTable("What may be seen")
        self.told = FittingLabel(name="What is predicted", fills=True)
        self.proof = FittingLabel(name="What stands before, alone", fills=True)
        for label in (self.told, self.proof):
            label.set_max_lines(2)
        self._place()
        self.setFocusProxy(self.following)
        self.states.idClicked.connect(self._choose)
        self.following.clicked.connect(lambda: self._choose((self._at + 1) % len(STATES)))
        self.one_by_one.clicked.connect(lambda: self.led.emit(ONE_BY_ONE))
        self.table.chosen.connect(lambda at: self.wished.emit(SelectPosition(at)))

    def _choose(self, at: int) -> None:
        """Show a state, and let the whole window look from the position that it is about."""
        self.wished.emit(ChooseWindows({"state": at}))
        number = STATES[at]
        if number is None:
            self.wished.emit(SelectPosition(None))
        elif number - 1 <= self._n_tokens:
            self.wished.emit(SelectPosition(number - 2))

    def show_view(self, view: View) -> None:
        """Show the state that is chosen, dimmed where it is of another text."""
        state, reading = view.state.windows, view.reading
        self._n_tokens, self._at = view.n_tokens, state.choice.state
        self.states.button(self._at).setChecked(True)
        number = STATES[self._at]
        missing = absence(view, "what each token is predicted from")
        answer = state.answer("visible")
        if missing or reading is None or answer is None or answer.visibility is None:
            self._show_nothing(missing or (answer.obstacle if answer else "") or WAITING)
            return
        visibility = answer.visibility
        is_fresh = answer.asked in asked_by(reading, state.choice)
        self.table.set_stale(view.state.stale or not is_fresh)
        if number is None:
            self._show_training(answer, visibility)
        elif (prediction := visibility.prediction(number)) is None:
            self._show_nothing(too_short(number, visibility.n_tokens))
        else:
            focus = (reading if is_fresh else answer.reading).focus
            self._show_prediction(answer, visibility, prediction, focus)

    def _show_nothing(self, sentence: str) -> None:
        self.table.set_empty(sentence)
        self.told.set_wordings("")
        self.proof.set_wordings("")

    def _show_prediction(
        self, answer: Answer, visibility: Visibility, prediction: Prediction, focus: Focus
    ) -> None:
        number, labels = prediction.number, tuple(map(display, answer.tokens))
        weights = focus.weights[prediction.query]
        at = focus.layer, focus.head
        strips = prediction_strips(visibility, prediction, weights, at)
        self.table.set_strips(labels, answer.tokens, strips)
        target = number - 1 if number <= visibility.n_tokens else None
        self.table.set_columns(prediction.query, target)
        self.told.set_wordings(*guess_said(prediction, labels, answer.reading.info.vocabulary))
        self.proof.set_wordings(*alone_said(prediction))

    def _show_training(self, answer: Answer, visibility: Visibility) -> None:
        labels = tuple(map(display, answer.tokens))
        self.table.set_strips(labels, answer.tokens, training_strips(visibility))
        self.table.set_columns(None, None)
        self.told.set_wordings(*training_said(visibility))
        self.proof.set_wordings(*all_alone_said(visibility))

    def sentence(self) -> str:
        """The page in words."""
        headings = (strip.wordings[0] for strip in self.table.strips)
        words = " ".join(filter(None, (*headings, self.told.text(), self.proof.text())))
        return words or self.table.accessibleDescription()

    def set_theme(self, theme: Theme) -> None:
        """Draw in another look."""
        self.table.set_theme(theme)
        self.told.set_look(theme, theme.text)
        self.proof.set_look(theme, theme.text)
        for button in (*self.states.buttons(), self.following, self.one_by_one):
            button.setFont(font_of(self, theme.font_axis))
        for layout in (self._column, self._across):
            layout.setSpacing(theme.unit)

    def _place(self) -> None:
        self._across = QHBoxLayout()
        for index, number in enumerate(STATES):
            button = QPushButton(state_title(number))
            button.setCheckable(True)
            self.states.addButton(button, index)
            self._across.addWidget(button)
        self._across.addWidget(self.following)
        self._across.addStretch(1)
        self._across.addWidget(self.one_by_one)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.addLayout(self._across)
        self._column.addWidget(self.table, 1)
        self._column.addWidget(self.told)
        self._column.addWidget(self.proof)
