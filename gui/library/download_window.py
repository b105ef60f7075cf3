"""The window "Download a model": a repository by its name, what it offers, and how it comes."""

import time
from pathlib import Path
from typing import Literal

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QComboBox,
    QDialog,
    QFormLayout,
    QHBoxLayout,
    QHeaderView,
    QLabel,
    QLineEdit,
    QProgressBar,
    QPushButton,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from engine.hub import (
    Choice,
    Client,
    Offer,
    Progress,
    free_bytes,
    lacking_bytes,
    usual_cache,
)
from engine.sizes import bytes_said
from gui.library.downloading import Downloading
from gui.library.pace import Pace, duration_text
from gui.library.table import TABLE_STYLE
from gui.messages import Messages
from gui.widgets.plain_label import plain_label, say
from gui.words.names import plain

_BAR = 1000  # steps of the progress bar, which cannot count as many bytes as a model has
_STATUS_LINES = 3
_ASKING = "Nothing goes to the network until you look a repository up."
_Phase = Literal["asking", "looking", "offered", "fetching", "fetched"]


class DownloadWindow(QDialog):
    """Owns one download at most. It stands beside the main window, which goes on meanwhile.

    Closing it hides it, and a download goes on; how that ends is then told by `messages`.
    """

    chosen = Signal(object)  # the Path to open

    def __init__(
        self,
        messages: Messages,
        parent: QWidget | None = None,
        client: Client | None = None,
        root: Path | None = None,
    ) -> None:
        super().__init__(parent)
        self.setWindowTitle("Download a model")
        self._messages = messages
        self._root = root or usual_cache()
        self._offer: Offer | None = None
        self._path: Path | None = None  # of what was fetched
        self._done = 0  # bytes
        self._pace = Pace()
        self._downloading = Downloading(client or Client(), self._root, self)
        self._build()
        self._connect()
        self._enter("asking", _ASKING)
        if parent is not None:
            self.resize(parent.size() * 0.7)

    # Building

    def _build(self) -> None:
        self.repository = QLineEdit()
        self.repository.setPlaceholderText("owner/name, or the address of its page")
        self.repository.setAccessibleName("Repository")
        self.revision = QLineEdit()
        self.revision.setAccessibleName("Revision")
        self.revision.setPlaceholderText("main")
        self.look_up_button = QPushButton("&Look up")
        self.model = QComboBox()
        self.model.setAccessibleName("Model of the repository")
        self.commit = QLineEdit(readOnly=True)
        self.commit.setAccessibleName("Commit")
        self.commit.setPlaceholderText("The commit that the revision is now; it stays pinned")
        self.files = self._make_table()
        self.summary = plain_label("What is to be fetched")
        self.progress = QProgressBar()
        self.progress.setRange(0, _BAR)
        self.progress.setTextVisible(False)
        self.progress.setAccessibleName("Progress of the download")
        self.figures = plain_label("How fast it comes")
        self.status = plain_label("State of the download")
        self.download_button = QPushButton("&Download")
        self.stop_button = QPushButton("&Stop")
        self.open_button = QPushButton("&Open the model")
        self.close_button = QPushButton("&Close")
        self._lay_out()

    @staticmethod
    def _make_table() -> QTableWidget:
        table = QTableWidget(0, 2)
        table.setStyleSheet(TABLE_STYLE)
        table.setHorizontalHeaderLabels(["File", "Size"])
        table.setAccessibleName("Files that are fetched")
        table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        table.setTabKeyNavigation(False)
        table.setShowGrid(False)
        table.verticalHeader().hide()
        header = table.horizontalHeader()
        header.setHighlightSections(False)
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        header.setSectionResizeMode(1, QHeaderView.ResizeMode.ResizeToContents)
        return table

    def _lay_out(self) -> None:
        asked = QHBoxLayout()
        asked.addWidget(self.repository, 3)
        revision = QLabel("Re&vision:")
        revision.setBuddy(self.revision)
        asked.addWidget(revision)
        asked.addWidget(self.revision, 1)
        asked.addWidget(self.look_up_button)
        self._form = QFormLayout()
        for title, field in (
            ("&Repository:", asked),
            ("&Model:", self.model),
            ("Comm&it:", self.commit),
        ):
            self._form.addRow(title, field)
        label = self._form.labelForField(asked)
        if isinstance(label, QLabel):
            label.setBuddy(self.repository)
        come = QHBoxLayout()
        come.addWidget(self.progress, 1)
        come.addWidget(self.figures, 1)
        line = QHBoxLayout()
        for button in (self.download_button, self.stop_button, self.open_button):
            line.addWidget(button)
        line.addStretch(1)
        line.addWidget(self.close_button)
        layout = QVBoxLayout(self)
        layout.addLayout(self._form)
        layout.addWidget(self.files, 1)
        layout.addWidget(self.summary)
        layout.addLayout(come)
        layout.addWidget(self.status)
        layout.addLayout(line)
        for button in self.findChildren(QPushButton):
            button.setAutoDefault(False)  # so that Enter is what the moment asks for

    def _connect(self) -> None:
        self.repository.textEdited.connect(self._forget)
        self.revision.textEdited.connect(self._forget)
        self.look_up_button.clicked.connect(self._look_up)
        self.model.activated.connect(self._show_choice)
        self.download_button.clicked.connect(self._fetch)
        self.stop_button.clicked.connect(self._stop)
        self.open_button.clicked.connect(self._open)
        self.close_button.clicked.connect(self.reject)
        self._downloading.offered.connect(self._on_offer)
        self._downloading.progressed.connect(self._on_progress)
        self._downloading.fetched.connect(self._on_fetched)
        self._downloading.failed.connect(self._on_failure)

    def showEvent(self, event: QShowEvent) -> None:
        """Be ready to be written into."""
        super().showEvent(event)
        if not event.spontaneous():
            self._fit_to_letters()
            if self._phase in {"asking", "offered"}:
                self.repository.setFocus()
                self.repository.selectAll()

    def changeEvent(self, event: QEvent) -> None:
        """Follow letters that become larger or smaller."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange and self.isVisible():
            self._fit_to_letters()

    def _fit_to_letters(self) -> None:
        metrics = self.fontMetrics()
        self.files.verticalHeader().setDefaultSectionSize(round(metrics.height() * 1.6))
        self.status.setMinimumHeight(_STATUS_LINES * metrics.lineSpacing())
        self._make_room()

    def _make_room(self) -> None:
        """Be as high as large letters and long sentences need, as far as the screen goes."""
        layout = self.layout()
        if layout is not None and self.isVisible():
            needed = layout.totalHeightForWidth(self.width())
            most = self.screen().availableGeometry().height()
            self.resize(self.width(), min(max(self.height(), needed), most))

    # Phases

    def _enter(self, phase: _Phase, sentence: str = "") -> None:
        """Show what can be done now, and say how things stand."""
        self._phase = phase
        is_busy = phase in {"looking", "fetching"}
        self.repository.setReadOnly(is_busy)
        self.revision.setReadOnly(is_busy)
        self.model.setEnabled(phase in {"offered", "fetched"})
        self._form.setRowVisible(self.model, self.model.count() > 1)
        self.look_up_button.setEnabled(not is_busy)
        self.download_button.setEnabled(phase == "offered")
        self.stop_button.setEnabled(is_busy)
        self.open_button.setEnabled(phase == "fetched")
        self.progress.setRange(0, 0 if phase == "looking" else _BAR)  # 0: of unknown length
        self.progress.setVisible(is_busy or phase == "fetched" or self._done > 0)
        defaults = {"offered": self.download_button, "fetched": self.open_button}
        defaults.get(phase, self.look_up_button).setDefault(True)
        if sentence:
            say(self.status, sentence)

    def _forget(self) -> None:
        """What was offered is not what is written now."""
        if self._offer is None:
            return
        self._offer = self._path = None
        self._done = 0
        self.model.clear()
        self.commit.clear()
        self.files.setRowCount(0)
        say(self.summary, "")
        say(self.figures, "")
        self._enter("asking", _ASKING)

    # Looking up

    def _look_up(self) -> None:
        self._forget()
        self._enter("looking", "Asking for the repository …")
        self.stop_button.setFocus()
        self._downloading.look_up(self.repository.text(), self.revision.text())

    def _on_offer(self, offer: Offer) -> None:
        self._offer = offer
        self.model.clear()
        for choice in offer.choices:
            self.model.addItem(plain(f"{choice.title}, {bytes_said(choice.n_bytes)}"))
        self.model.setCurrentIndex(offer.usual)
        self.commit.setText(offer.commit)
        self._show_choice()
        if self.isVisible():
            self.download_button.setFocus()

    @property
    def _choice(self) -> Choice | None:
        return self._offer.choices[self.model.currentIndex()] if self._offer else None

    def _show_choice(self) -> None:
        """The files of the choice, and how much of them is to come."""
        if self._offer is None or self._choice is None:
            return
        choice = self._choice
        self.files.setRowCount(len(choice.files))
        for row, file in enumerate(choice.files):
            size = QTableWidgetItem(bytes_said(file.n_bytes))
            size.setTextAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
            self.files.setItem(row, 0, QTableWidgetItem(plain(file.name)))
            self.files.setItem(row, 1, size)
        self._show_room(self._offer, choice)
        self._enter("offered", "No pickle is among them, and nothing of them is run.")

    def _show_room(self, offer: Offer, choice: Choice) -> None:
        """How much of a choice is here, and where the rest finds its place."""
        done = choice.n_bytes - lacking_bytes(offer, choice, self._root)
        free = free_bytes(self._root)
        n = len(choice.files)
        room = "" if free is None else f"; {bytes_said(free)} are free on its disk"
        say(
            self.summary,
            plain(
                f"{n} {'file' if n == 1 else 'files'}, {bytes_said(choice.n_bytes)}; they go to "
                f"{self._root}{room}."
            ),
        )
        self._show_done(done, choice.n_bytes)
        self._make_room()

    # Fetching

    def _fetch(self) -> None:
        if self._offer is None or self._choice is None:
            return
        self._pace = Pace()
        self._enter("fetching", f"Fetching {self._offer.repository} …")
        self._downloading.fetch(self._offer, self._choice)
        self.stop_button.setFocus()

    def _on_progress(self, progress: Progress) -> None:
        if self._phase != "fetching":
            return
        self._pace.note(time.monotonic(), progress.n_done)
        parts = [self._show_done(progress.n_done, progress.n_total)]
        pace = self._pace.per_second
        if pace is not None:
            parts.append(f"{bytes_said(round(pace))}/s")
        left = self._pace.seconds_left(progress.n_total - progress.n_done)
        if left is not None:
            parts.append(f"{duration_text(left)} left")
        say(self.figures, " · ".join(parts))
        say(self.status, plain(f"Fetching {progress.file} …"))

    def _show_done(self, n_done: int, n_total: int) -> str:
        """Draw how much is here; returns the same in words."""
        self._done = n_done
        self.progress.setRange(0, _BAR)
        self.progress.setValue(_BAR * n_done // n_total if n_total else _BAR)
        text = f"{bytes_said(n_done)} of {bytes_said(n_total)}"
        say(self.figures, text if n_done else "")
        return text

    def stop(self) -> None:
        """Give up what is going on; what came is kept on the disk."""
        self._downloading.stop()

    def _stop(self) -> None:
        was, offer, choice = self._phase, self._offer, self._choice
        self.stop()
        if was == "fetching" and offer is not None and choice is not None:
            self._show_room(offer, choice)
            self._enter(
                "offered",
                "Stopped. What came is kept; Download goes on from there, also at another start.",
            )
            self.download_button.setFocus()
        else:
            self._enter("asking", "Stopped.")
            self.repository.setFocus()

    def _on_fetched(self, path: Path) -> None:
        self._path = path
        if self._offer is not None and self._choice is not None:
            self._show_room(self._offer, self._choice)
        name = self._offer.repository if self._offer else path.name
        self._enter("fetched", f"{name} is here, and every byte was checked.")
        if self.isVisible():
            self.open_button.setFocus()
        else:
            self._messages.info(f"{name} is downloaded; “Download a model…” opens it.")

    def _on_failure(self, sentence: str) -> None:
        is_lost = self._offer is None
        if self._offer is not None and self._choice is not None:
            self._show_room(self._offer, self._choice)
        self._enter("asking" if is_lost else "offered", plain(sentence))
        (self.repository if is_lost else self.download_button).setFocus()
        if not self.isVisible():
            self._messages.warning(sentence)

    def _open(self) -> None:
        if self._path is not None:
            self.accept()
            self.chosen.emit(self._path)
