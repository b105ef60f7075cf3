"""One run in the lab: how it stands, what can be done with it, and how it looked."""

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QLineEdit,
    QMessageBox,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from engine.errors import EngineError
from engine.training.plan import TrainingPlan
from gui.theme import Theme
from gui.training.run import TrainingRun
from gui.training.runs import TrainingRuns
from gui.training.sentences import about_words, state_words
from gui.training.shelf import model_facts
from gui.training.view import TrainingView
from gui.widgets.fitting_label import font_of
from gui.widgets.wrapping_label import WrappingLabel
from gui.words.names import plain


class TrainingPage(QWidget):
    """Shows one run and fulfils what its buttons ask of `runs`."""

    open_wanted = Signal(object)  # the Path of a model

    def __init__(self, runs: TrainingRuns) -> None:
        super().__init__()
        self._runs = runs
        self._run: TrainingRun | None = None
        self._kept: dict[Path, tuple[Path, int]] = {}  # of each model: as what, at which step
        self.state = WrappingLabel()
        self.about = WrappingLabel()
        self.note = WrappingLabel()
        self.resume_button = QPushButton("&Resume")
        self.pause_button = QPushButton("&Pause")
        self.stop_button = QPushButton("S&top")
        self.model = QComboBox()
        self.model.setAccessibleName("Which model to keep: the last, or the best on held-out text")
        self.model.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self.name = QLineEdit()
        self.name.setAccessibleName("Name of the model")
        self.name.setPlaceholderText("Name of the model")
        self.keep_button = QPushButton("&Keep")
        self.open_button = QPushButton("&Open")
        self.discard_button = QPushButton("&Discard…")
        self.view = TrainingView()
        self._buttons = (
            self.resume_button,
            self.pause_button,
            self.stop_button,
            self.keep_button,
            self.open_button,
            self.discard_button,
        )
        self._lay_out()
        self._connect()

    def _lay_out(self) -> None:
        for button, tip in zip(
            self._buttons,
            (
                "Go on from where it stands",
                "Save and wait; it goes on at once",
                "Save and end its process; it can be resumed later",
                "Copy the model under this name to your models",
                "Open the model in the main window; one that was not kept yet is kept first",
                "Remove this training and all that it wrote; nothing that was kept",
            ),
            strict=True,
        ):
            button.setToolTip(tip)
            button.setAccessibleDescription(tip)
        self._line = QHBoxLayout()
        for button in (self.resume_button, self.pause_button, self.stop_button):
            self._line.addWidget(button)
        self._line.addStretch(1)
        self._line.addWidget(self.model)
        self._line.addWidget(self.name, 2)
        for button in (self.keep_button, self.open_button, self.discard_button):
            self._line.addWidget(button)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        for label in (self.state, self.about):
            self._column.addWidget(label)
        self._column.addLayout(self._line)
        self._column.addWidget(self.note)
        self._column.addWidget(self.view, 1)

    def _connect(self) -> None:
        self.resume_button.clicked.connect(lambda: self._do(self._runs.start))
        self.pause_button.clicked.connect(lambda: self._do(TrainingRun.pause))
        self.stop_button.clicked.connect(lambda: self._do(TrainingRun.stop))
        self.keep_button.clicked.connect(lambda: self._do(self._keep))
        self.open_button.clicked.connect(lambda: self._do(self._open))
        self.discard_button.clicked.connect(lambda: self._do(self._discard))
        self.name.returnPressed.connect(self.keep_button.click)

    def set_theme(self, theme: Theme) -> None:
        """Draw in another look."""
        self.state.set_look(theme.font_body, theme.text, bold=True)
        self.about.set_look(theme.font_body, theme.text_dim)
        self.note.set_look(theme.font_body, theme.accent, bold=True)
        for widget in (*self._buttons, self.model, self.name):
            widget.setFont(font_of(self, theme.font_body))
        self.view.set_theme(theme)
        self._column.setSpacing(theme.unit)
        self._line.setSpacing(theme.unit)

    # Showing

    def show_run(self, run: TrainingRun) -> None:
        """Show a run, or the news of the one that is shown."""
        is_other = run is not self._run
        self._run = run
        if is_other:
            self.note.say("")
            self.name.setText(_suggested(run))
            self.name.setCursorPosition(0)
        state, about = state_words(run), about_words(run)
        self.state.say(state)
        self.state.setAccessibleDescription(state)
        self.about.say(about)
        self._show_buttons(run)
        self.view.show_record(run.record, run.steps, is_other=is_other)

    def _show_buttons(self, run: TrainingRun) -> None:
        is_training = run.phase != "recorded"
        models = run.models
        for button, is_there, is_possible in (
            (self.resume_button, is_training, run.can_go_on),
            (self.pause_button, is_training, run.phase == "running"),
            (self.stop_button, is_training, run.can_be_stopped),
            (self.keep_button, is_training, bool(models)),
            (self.open_button, True, bool(models)),
            (self.discard_button, is_training, not run.is_busy),
        ):
            had_keys = button.hasFocus() and not is_possible
            button.setVisible(is_there)
            button.setEnabled(is_possible)
            if had_keys:
                self.view.slider.setFocus()
        self.resume_button.setText("&Start" if not run.step else "&Resume")
        self.name.setVisible(is_training)
        self.model.setVisible(is_training and len(models) > 1)
        texts = [_model_words(name, folder) for name, folder in models.items()]
        if texts != [self.model.itemText(row) for row in range(self.model.count())]:
            self.model.clear()
            for text, name in zip(texts, models, strict=True):
                self.model.addItem(text, name)

    # Doing

    def _do(self, work: Callable[[TrainingRun], object]) -> None:
        """Do something with the run, and say in one sentence why it cannot be done."""
        if self._run is None:
            return
        self.note.say("")
        try:
            work(self._run)
        except EngineError as error:
            self.note.say(str(error))

    def _chosen_model(self, run: TrainingRun) -> str:
        chosen: str | None = self.model.currentData()
        return chosen if chosen in run.models else next(iter(run.models))

    def _keep(self, run: TrainingRun) -> Path:
        name = self._chosen_model(run)
        model = run.models[name]
        folder = self._runs.keep(run, name, self.name.text())
        self._kept[model] = (folder, run.step)
        self.note.say(f"Kept as “{plain(folder.name)}”; it is among your models and recorded runs.")
        return folder

    def _open(self, run: TrainingRun) -> None:
        model = run.models[self._chosen_model(run)]
        kept, step = self._kept.get(model, (model, -1))
        if run.phase == "recorded":
            self.open_wanted.emit(model)
        elif step == run.step and kept.exists():
            self.open_wanted.emit(kept)
        else:
            self.open_wanted.emit(self._keep(run))

    def _discard(self, run: TrainingRun) -> None:
        yes, no = QMessageBox.StandardButton.Yes, QMessageBox.StandardButton.No
        question = QMessageBox(
            QMessageBox.Icon.Question,
            "Discard the training",
            f"Remove the training “{plain(run.title)}” and all that it wrote?",
            yes | no,
            self,
        )
        question.setTextFormat(Qt.TextFormat.PlainText)  # a file's name is in it
        question.setDefaultButton(no)
        answer = question.exec()
        question.deleteLater()
        if answer == yes:
            self._run = None
            self._runs.discard(run)


def _suggested(run: TrainingRun) -> str:
    """A name to begin with."""
    if run.about is None:
        return ""
    plan: TrainingPlan = run.about.plan
    stem = Path(run.about.data_title).stem.split(" (")[0]
    return f"{stem} {plan.n_layer}x{plan.n_head}x{plan.d_model} {plan.positions}"


def _model_words(name: str, folder: Path) -> str:
    """One of a training's models: which it is."""
    step = model_facts(folder).get("step")
    return f"{name}, step {step:,}" if isinstance(step, int) else name
