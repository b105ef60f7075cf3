"""The window "Training lab": train a small model here, or look through a recorded training."""

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import (
    QDialog,
    QHBoxLayout,
    QListWidget,
    QPushButton,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

import resources
from engine.errors import EngineError
from engine.library import available_bytes
from engine.training.check import TextFacts, check_texts
from engine.training.plan import TrainingPlan, n_parameters
from gui.aside import Aside
from gui.data_folder import data_folder
from gui.library.pace import duration_text
from gui.messages import Messages
from gui.settings import Settings
from gui.theme import Theme
from gui.training.form import TrainingForm
from gui.training.page import TrainingPage
from gui.training.run import TrainingRun
from gui.training.runs import TrainingRuns, seconds_needed
from gui.training.sentences import row_words
from gui.training.shelf import TrainingData
from gui.widgets.wrapping_label import WrappingLabel
from gui.words.names import plain
from resources.corpus import held_out_names, play_paths

_SETTLE_MS = 200  # how long nothing must change before the data are looked at
_NEW = "New training…"
Wanted = tuple[TrainingPlan, TrainingData]


class TrainingLab(QDialog):
    """Owns the list of runs, the form of a new one and the page of a run.

    It stands beside the main window and closes with a model to open; a training goes on while it
    is closed.
    """

    open_wanted = Signal(object)  # the Path of a model
    kept = Signal(object)  # the Path of a model that was kept

    def __init__(
        self, runs: TrainingRuns, messages: Messages, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setWindowTitle("Training lab")
        self._runs = runs
        self._messages = messages
        self._checked: tuple[Wanted, TextFacts] | None = None
        self._asked: Wanted | None = None
        self.list = QListWidget()
        self.list.setAccessibleName("Trainings and recorded runs")
        self.list.setWordWrap(True)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.form = TrainingForm(runs.plays)
        self.page = TrainingPage(runs)
        self.notes = WrappingLabel()
        self._stack = QStackedWidget()
        self._check, self._making = Aside(self), Aside(self)
        self._check_soon = QTimer(self, singleShot=True, interval=_SETTLE_MS)
        self._lay_out()
        self._connect()
        self._fill_list()
        if parent is not None:
            self.resize(parent.size() * 0.96)

    def _lay_out(self) -> None:
        self._stack.addWidget(self.form)
        self._stack.addWidget(self.page)
        left = QVBoxLayout()
        left.addWidget(self.list, 1)
        left.addWidget(self.notes)
        self._line = QHBoxLayout(self)
        self._line.addLayout(left, 1)
        self._line.addWidget(self._stack, 4)
        for button in self.findChildren(QPushButton):
            button.setAutoDefault(False)  # Enter finishes a field and presses nothing

    def _connect(self) -> None:
        self.list.currentRowChanged.connect(self._show_row)
        self.form.changed.connect(self._on_form)
        self.form.start_wanted.connect(self._start)
        self.page.open_wanted.connect(self._open)
        self._runs.listed.connect(self._fill_list)
        self._runs.changed.connect(self._on_run)
        self._runs.told.connect(self._tell)
        self._runs.kept.connect(self.kept)
        self._check_soon.timeout.connect(self._look_at_data)
        self._check.done.connect(self._on_facts)
        self._check.failed.connect(self.form.show_complaint)
        self._making.done.connect(self._on_made)
        self._making.failed.connect(self.form.show_complaint)

    def set_theme(self, theme: Theme) -> None:
        """Draw in another look."""
        self.form.set_theme(theme)
        self.page.set_theme(theme)
        self.notes.set_look(theme.font_body, theme.text_dim)
        self._line.setSpacing(3 * theme.unit)

    def showEvent(self, event: QShowEvent) -> None:
        """Catch up on what happened while nobody looked."""
        super().showEvent(event)
        if not event.spontaneous():
            self._show_row()
            self._on_form()
            self.list.setFocus()

    def let_go(self) -> None:
        """Have every training save and end; the program closes."""
        self._check.stop()
        self._making.stop()
        self._runs.let_go()

    # The list

    @property
    def shown(self) -> TrainingRun | None:
        """The run that is selected; None where it is the form."""
        row = self.list.currentRow()
        runs = self._runs.runs
        return runs[row - 1] if 0 < row <= len(runs) else None

    def select(self, run: TrainingRun) -> None:
        """Show a run."""
        self.list.setCurrentRow(1 + self._runs.runs.index(run))

    def _fill_list(self) -> None:
        shown, runs = self.shown, self._runs.runs
        self.list.clear()
        self.list.addItem(_NEW)
        for run in runs:
            self.list.addItem(plain(row_words(run)))
        self.list.setCurrentRow(1 + runs.index(shown) if shown in runs else 0)
        self.notes.say(" ".join(self._runs.notes))

    def _show_row(self, _row: int = 0) -> None:
        run = self.shown
        self._stack.setCurrentWidget(self.page if run is not None else self.form)
        if run is not None:
            self.page.show_run(run)

    def _on_run(self, run: TrainingRun) -> None:
        """Draw the news of a run, if anybody can see them."""
        if not self.isVisible():
            return
        item = self.list.item(1 + self._runs.runs.index(run))
        text = plain(row_words(run))
        if item.text() != text:
            item.setText(text)
        if run is self.shown:
            self.page.show_run(run)

    def _tell(self, sentence: str) -> None:
        if not self.isVisible():
            self._messages.info(sentence)

    def _open(self, model: Path) -> None:
        """Make way for the main window, where the model is seen."""
        self.accept()
        self.open_wanted.emit(model)

    # The form

    def _on_form(self) -> None:
        """Something was filled in: what is known of it is no longer true."""
        self._checked = None
        self._check.stop()
        try:
            self._asked = self.form.wanted
        except EngineError as error:
            self._asked = None
            self._check_soon.stop()
            self.form.show_complaint(str(error))
            return
        self.form.show_facts("Looking at the text …", is_ready=False)
        self._check_soon.start()

    def _look_at_data(self) -> None:
        if self._asked is None or not self.isVisible():
            return
        plan, data = self._asked
        self._check.start(lambda: _facts(plan, data))

    def _on_facts(self, facts: TextFacts) -> None:
        if self._asked is None:
            return
        self._checked = self._asked, facts
        self.form.show_facts(_facts_words(facts, self._asked[0], self._runs.speed), is_ready=True)

    def _start(self) -> None:
        if self._checked is None or self._making.is_running:
            return
        busy = self._runs.busy
        if busy is not None:
            self.form.show_complaint(f"“{busy.title}” is training; pause or stop it first.")
            self.form.start_button.setEnabled(True)
            return
        (plan, data), _facts = self._checked
        self.form.show_facts("Preparing the training …", is_ready=False)
        self._making.start(lambda: self._runs.make(plan, data))

    def _on_made(self, folder: Path) -> None:
        try:
            run = self._runs.add(folder)
            self.select(run)
            self._runs.start(run)
        except EngineError as error:
            self.form.show_complaint(str(error))
            return
        self.page.view.slider.setFocus()
        self._on_form()


def _facts(plan: TrainingPlan, data: TrainingData) -> TextFacts:
    """On a thread of its own: what the data are, or the sentence on what is wrong with them."""
    held_out: Sequence[str] = data.held_out
    return check_texts(plan, data.paths, held_out, data.held_out_share, available_bytes())


def _facts_words(facts: TextFacts, plan: TrainingPlan, speed: float) -> str:
    config = plan.config(facts.vocab_size)
    words = (
        f"{facts.n_characters:,} characters to learn from, {facts.n_held_out:,} held out to judge "
        f"by. A model of {n_parameters(config):,} weights"
        f"{' at most' if plan.tokenizer == 'byte-bpe' else ''}; "
        f"{plan.steps * plan.batch * plan.context:,} tokens in all. "
    )
    if not speed:
        return words + "How long that takes is known once a first training has run here."
    time = duration_text(seconds_needed(facts, plan, speed))
    return words + f"Estimated from the speed of the last training here: about {time}."


def make_lab(settings: Settings, messages: Messages, parent: QWidget) -> TrainingLab:
    """The lab over the user's trainings, the bundled plays and the bundled models."""
    plays = play_paths()
    held_out = tuple(held_out_names())
    title = f"The {len(plays)} bundled plays"
    data = TrainingData(title, tuple(plays), held_out)
    runs = TrainingRuns(data_folder(), data, resources.model_folders(), settings)
    lab = TrainingLab(runs, messages, parent)
    runs.setParent(lab)
    return lab
