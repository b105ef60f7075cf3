"""Where the program keeps what it makes for its user: trainings, and models that were kept."""

from pathlib import Path

from PySide6.QtCore import QStandardPaths


def data_folder() -> Path:
    """The user's folder for this program's data; it may not be there yet."""
    place = QStandardPaths.StandardLocation.AppDataLocation
    return Path(QStandardPaths.writableLocation(place))


def kept_models_folder() -> Path:
    """Where trained models are that the user kept, a folder each."""
    return data_folder() / "models"
