"""The models that were opened last: remembered by their paths, offered in a menu."""

from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QMenu, QWidget

from engine.library import model_name
from gui.settings import Settings
from gui.words.names import plain

MOST = 8
_SETTING = "recent_models"


class RecentModels:
    """Owns the list, which is kept in the settings."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._paths: tuple[Path, ...] = tuple(map(Path, settings.read(_SETTING)[:MOST]))

    def paths(self) -> tuple[Path, ...]:
        """The latest first."""
        return self._paths

    def add(self, path: Path) -> None:
        """Put a model that was opened to the front; it stands in the list once."""
        others = (other for other in self._paths if other != path)
        self._paths = (path, *others)[:MOST]
        self._settings.write(_SETTING, tuple(map(str, self._paths)))


class RecentMenu(QMenu):
    """Offers what `models` remembers at the moment in which it is opened."""

    chosen = Signal(object)  # the Path to open

    def __init__(self, models: RecentModels, parent: QWidget | None = None) -> None:
        super().__init__("&Recent models", parent)
        self.setToolTipsVisible(True)
        self._models = models
        self.aboutToShow.connect(self._fill)
        self._fill()

    def _fill(self) -> None:
        self.clear()
        paths = self._models.paths()
        for number, path in enumerate(paths, 1):
            name = plain(model_name(path)).replace("&", "&&")
            action = self.addAction(f"&{number}  {name}")
            action.setToolTip(plain(str(path)))
            action.setStatusTip(plain(str(path)))
            action.triggered.connect(lambda _on=False, path=path: self.chosen.emit(path))
        if not paths:
            self.addAction("No model has been opened yet").setEnabled(False)
