"""The window "On this computer": all models that were found here, and the way to any other."""

from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QEvent, QModelIndex, QObject, Qt, Signal
from PySide6.QtGui import QKeyEvent, QShowEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QCheckBox,
    QDialog,
    QHBoxLayout,
    QHeaderView,
    QLineEdit,
    QMenu,
    QProgressBar,
    QPushButton,
    QTableView,
    QVBoxLayout,
    QWidget,
)

import resources
from engine.formats import FormatChoice
from engine.library import Found, Looking, Place, added_place, available_bytes, standard_places
from gui.data_folder import kept_models_folder
from gui.library.dialogs import ask_for_file, ask_for_folder
from gui.library.search import LibrarySearch
from gui.library.table import FOUND_ROLE, TABLE_STYLE, LibraryFilter, LibraryTable, Memory
from gui.settings import Settings
from gui.widgets.plain_label import plain_label, say
from gui.words.names import plain

_SETTING = "library_folders"
_DETAIL_LINES = 3
# The widest texts that are usual in each column; the first gets its share of what they leave.
_SAMPLES = ("", "attention-scope", "Layers × heads ▾", "1,000 MiB", "Hugging Face cache")


def usual_places() -> tuple[Place, ...]:
    """The bundled models, those that were trained here, and the stores of other programs."""
    bundled = (Place("Bundled", folder) for folder in resources.model_folders())
    return (*bundled, Place("Trained here", kept_models_folder()), *standard_places())


class LibraryWindow(QDialog):
    """Owns the search and the table of what it finds. Looks again whenever it is shown.

    It stands beside the main window, which goes on meanwhile, and closes with a choice.
    """

    chosen = Signal(object)  # the Path to open
    download_wanted = Signal()

    def __init__(
        self,
        settings: Settings,
        parent: QWidget | None = None,
        places: Callable[[], Sequence[Place]] = usual_places,
        available: Callable[[], int | None] = available_bytes,
        choice: Callable[[], FormatChoice] = FormatChoice,
    ) -> None:
        super().__init__(parent)
        self.setWindowTitle("On this computer")
        self._settings = settings
        self._places = places
        self._available = available
        self._choice = choice
        self._notes: list[str] = []
        self._wanted = ""  # the path of the row to come back to
        self._table = LibraryTable(self)
        self._shown = LibraryFilter(self)
        self._shown.setSourceModel(self._table)
        self._search = LibrarySearch(self)
        self._build()
        self._connect()
        self._show_row()
        if parent is not None:
            self.resize(parent.size() * 0.95)

    # Building

    def _build(self) -> None:
        self.filter = QLineEdit()
        self.filter.setPlaceholderText("Filter by name, architecture or place")
        self.filter.setAccessibleName("Filter")
        self.filter.setClearButtonEnabled(True)
        self.only_readable = QCheckBox("Only what can be &opened")
        self.table = self._make_table()
        self.status = plain_label("State of the search")
        self.progress = QProgressBar()
        self.progress.setAccessibleName("Progress of the search")
        self.progress.setTextVisible(False)
        self.path = QLineEdit(readOnly=True)
        self.path.setAccessibleName("Path of the selected model")
        self.path.setPlaceholderText("Path of the selected model")
        self.details = plain_label("Whether the selected model can be opened")
        self.open_button = QPushButton("Open")
        self.file_button = QPushButton("Open &file…")
        self.folder_button = QPushButton("Open fol&der…")
        self.download_button = QPushButton("Do&wnload…")
        self.add_button = QPushButton("&Add a folder to look in…")
        self.remove_button = QPushButton("&Remove a folder")
        self.again_button = QPushButton("&Look again")
        self.close_button = QPushButton("&Close")
        self._lay_out()

    def _make_table(self) -> QTableView:
        table = QTableView()
        table.setModel(self._shown)
        table.setStyleSheet(TABLE_STYLE)
        table.setAccessibleName("Models on this computer")
        table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        table.setTabKeyNavigation(False)
        table.setWordWrap(False)
        table.setShowGrid(False)
        table.setAlternatingRowColors(True)
        table.setSortingEnabled(True)
        table.sortByColumn(0, Qt.SortOrder.AscendingOrder)
        table.verticalHeader().hide()
        header = table.horizontalHeader()
        header.setHighlightSections(False)
        header.setStretchLastSection(True)
        header.setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        return table

    def _lay_out(self) -> None:
        above, below = QHBoxLayout(), QHBoxLayout()
        above.addWidget(self.filter, 1)
        above.addWidget(self.only_readable)
        below.addWidget(self.status, 3)
        below.addWidget(self.progress, 1)
        for button in (self.add_button, self.remove_button, self.again_button):
            below.addWidget(button)
        line = QHBoxLayout()
        for button in (
            self.open_button,
            self.file_button,
            self.folder_button,
            self.download_button,
        ):
            line.addWidget(button)
        line.addStretch(1)
        line.addWidget(self.close_button)
        layout = QVBoxLayout(self)
        layout.addLayout(above)
        layout.addWidget(self.table, 1)
        layout.addLayout(below)
        layout.addWidget(self.path)
        layout.addWidget(self.details)
        layout.addLayout(line)
        for button in self.findChildren(QPushButton):
            button.setAutoDefault(False)  # so that Enter is Open's alone
        self.open_button.setDefault(True)

    def _connect(self) -> None:
        self.filter.textChanged.connect(self._on_filter)
        self.only_readable.toggled.connect(self._shown.set_only_readable)
        self.table.selectionModel().currentRowChanged.connect(self._show_row)
        self.table.doubleClicked.connect(self._choose_current)
        self._shown.rowsInserted.connect(self._come_back)
        self._search.found.connect(self._on_found)
        self._search.looking.connect(self._on_looking)
        self._search.noted.connect(self._notes.append)
        self._search.ended.connect(self._on_end)
        self.open_button.clicked.connect(self._choose_current)
        self.file_button.clicked.connect(lambda: self._choose(ask_for_file(self)))
        self.folder_button.clicked.connect(lambda: self._choose(ask_for_folder(self)))
        self.download_button.clicked.connect(self._want_download)
        self.add_button.clicked.connect(self._add_folder)
        self.again_button.clicked.connect(self.look)
        self.close_button.clicked.connect(self.reject)

    # Looking

    @property
    def folders(self) -> tuple[str, ...]:
        """The folders that the user added."""
        folders: tuple[str, ...] = self._settings.read(_SETTING)
        return folders

    def look(self) -> None:
        """Look for models again, from the beginning."""
        found = self._current()
        self._wanted = found.path if found else self._wanted
        self._notes.clear()
        self._table.begin(Memory(self._available(), self._choice()))
        self._show_row()
        self._fill_remove_menu()
        added = [added_place(Path(folder)) for folder in self.folders]
        self.progress.show()
        self.progress.setRange(0, 0)
        say(self.status, "Looking for models …")
        self._search.start([*added, *self._places()])

    def showEvent(self, event: QShowEvent) -> None:
        """Look at what is there now."""
        super().showEvent(event)
        if not event.spontaneous():
            self.look()
            self._fit_to_letters()
            self.filter.setFocus()

    def changeEvent(self, event: QEvent) -> None:
        """Follow letters that become larger or smaller."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange and self.isVisible():
            self._fit_to_letters()

    def done(self, result: int) -> None:
        """Give the search up with the window."""
        self._search.stop()
        super().done(result)

    def _fit_to_letters(self) -> None:
        metrics = self.fontMetrics()
        em = metrics.horizontalAdvance("m")
        self.table.verticalHeader().setDefaultSectionSize(round(metrics.height() * 1.6))
        self.details.setMinimumHeight(_DETAIL_LINES * metrics.lineSpacing())
        rest = self.table.viewport().width()
        for column, sample in enumerate(_SAMPLES):
            width = metrics.horizontalAdvance(sample) + 2 * em
            self.table.setColumnWidth(column, width)
            rest -= width if sample else 0
        self.table.setColumnWidth(0, max(round(rest * 0.52), 8 * em))

    def _on_found(self, models: list[Found]) -> None:
        self._table.add(models)

    def _on_looking(self, looking: Looking) -> None:
        self.progress.setRange(0, looking.n_places)
        self.progress.setValue(looking.n_done)
        say(self.status, f"Looking in {plain(looking.place)} … {self._counted()} so far.")

    def _on_end(self) -> None:
        self.progress.hide()
        n_readable = sum(found.is_readable for found in self._table.rows)
        state = f"{self._counted()}, {n_readable} can be opened."
        if not self._table.rows:
            state = "No models were found; open a file or a folder, or add a folder to look in."
        say(self.status, " ".join([state, *map(plain, self._notes)]))
        if not self.table.currentIndex().isValid():
            self.table.selectRow(0)

    def _counted(self) -> str:
        n = len(self._table.rows)
        return f"{n:,} {'model' if n == 1 else 'models'}"

    # The table

    def _on_filter(self, text: str) -> None:
        self._shown.set_text(text)
        self.table.selectRow(0)

    def _come_back(self, parent: QModelIndex, first: int, last: int) -> None:
        """Select the row that was selected before the search began again."""
        if not self._wanted or self.table.currentIndex().isValid():
            return
        for row in range(first, last + 1):
            index = self._shown.index(row, 0, parent)
            if index.data(FOUND_ROLE).path == self._wanted:
                self.table.selectRow(row)

    def _current(self) -> Found | None:
        found: Found | None = self.table.currentIndex().data(FOUND_ROLE)
        return found

    def _show_row(self, *_indices: object) -> None:
        found = self._current()
        fits = found is not None and self._table.memory.holds(found)
        self.open_button.setEnabled(found is not None and found.is_readable)
        is_too_large = found is not None and found.is_readable and fits is False
        self.open_button.setText("Open anyway" if is_too_large else "Open")
        self._wanted = found.path if found else self._wanted
        self.path.setText(plain(found.path) if found else "")
        self.path.setCursorPosition(0)
        say(self.details, plain(self._table.memory.sentences(found)) if found else "")

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """From the filter, the arrow keys lead into the table."""
        if event.key() in (Qt.Key.Key_Down, Qt.Key.Key_Up) and self.filter.hasFocus():
            self.table.setFocus(Qt.FocusReason.OtherFocusReason)
            if not self.table.currentIndex().isValid():
                self.table.selectRow(0)
        else:
            super().keyPressEvent(event)

    # Choosing

    def _choose_current(self) -> None:
        found = self._current()
        if found is not None and found.is_readable:
            self._choose(Path(found.path))

    def _choose(self, path: Path | None) -> None:
        if path is not None:
            self.accept()
            self.chosen.emit(path)

    def _want_download(self) -> None:
        self.accept()
        self.download_wanted.emit()

    # Added folders

    def _add_folder(self) -> None:
        folder = ask_for_folder(self, "Add a folder to look for models in")
        if folder is not None and str(folder) not in self.folders:
            self._settings.write(_SETTING, (*self.folders, str(folder)))
            self.look()

    def _remove_folder(self, folder: str) -> None:
        self._settings.write(_SETTING, tuple(each for each in self.folders if each != folder))
        self.look()

    def _fill_remove_menu(self) -> None:
        menu = QMenu(self.remove_button)
        for folder in self.folders:
            action = menu.addAction(plain(folder).replace("&", "&&"))
            action.triggered.connect(lambda _on=False, each=folder: self._remove_folder(each))
        old = self.remove_button.menu()
        self.remove_button.setMenu(menu)
        if isinstance(old, QObject):
            old.deleteLater()
        self.remove_button.setEnabled(bool(self.folders))
