"""All the ways to a model: the list of this computer's, the last ones, dialogs, dropping it."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from engine.formats import FormatChoice
from gui.library.dialogs import ask_for_file, ask_for_folder
from gui.library.drop import ModelDrop
from gui.library.recent import RecentMenu, RecentModels
from gui.main_window import MainWindow
from gui.messages import Messages
from gui.settings import Settings

if TYPE_CHECKING:
    from gui.library.download_window import DownloadWindow
    from gui.library.window import LibraryWindow


class ModelDoors(QObject):
    """Owns what asks for a model to open, and what remembers those that were opened."""

    chosen = Signal(object)  # the Path to open

    def __init__(
        self,
        window: MainWindow,
        settings: Settings,
        messages: Messages,
        choice: Callable[[], FormatChoice],
    ) -> None:
        super().__init__(window)
        self._choice = choice
        self._window = window
        self._settings = settings
        self._messages = messages
        self._library: LibraryWindow | None = None
        self._download: DownloadWindow | None = None
        self._recent = RecentModels(settings)
        self.recent_menu = RecentMenu(self._recent, window)
        self.recent_menu.chosen.connect(self.chosen)
        self._drop = ModelDrop(window)
        self._drop.dropped.connect(self.chosen)
        window.menus.add_menu(self.recent_menu, behind="open_file")

    def show_library(self) -> None:
        """List the models on this computer."""
        from gui.library.window import LibraryWindow  # noqa: PLC0415 - hardly any start needs it

        if self._library is None:
            self._library = LibraryWindow(self._settings, self._window, choice=self._choice)
            self._library.chosen.connect(self.chosen)
            self._library.download_wanted.connect(self.show_download)
        self._library.show()
        self._library.activateWindow()

    def show_download(self) -> None:
        """Offer to fetch a model; a download that is going on is shown."""
        from gui.library.download_window import DownloadWindow  # noqa: PLC0415 - hardly any start needs it

        if self._download is None:
            self._download = DownloadWindow(self._messages, self._window)
            self._download.chosen.connect(self.chosen)
            self._window.closing.connect(self._download.stop)
        self._download.show()
        self._download.activateWindow()

    def ask_for_file(self) -> None:
        """Let the user look for a file."""
        self._choose(ask_for_file(self._window))

    def ask_for_folder(self) -> None:
        """Let the user look for a folder."""
        self._choose(ask_for_folder(self._window))

    def _choose(self, path: Path | None) -> None:
        if path is not None:
            self.chosen.emit(path)

    def remember(self, path: Path) -> None:
        """Put a model that was opened among the last ones."""
        self._recent.add(path)
