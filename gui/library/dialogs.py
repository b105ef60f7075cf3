"""The system's own dialogs for a model's file or folder."""

from pathlib import Path

from PySide6.QtWidgets import QFileDialog, QWidget

_KINDS = "Models (*.gguf *.pt);;All files (*)"


def ask_for_file(parent: QWidget | None) -> Path | None:
    """A GGUF file or a nanoGPT checkpoint; None if the user thinks better of it."""
    name, _kind = QFileDialog.getOpenFileName(parent, "Open a model's file", "", _KINDS)
    return Path(name) if name else None


def ask_for_folder(parent: QWidget | None, title: str = "Open a model's folder") -> Path | None:
    """A folder; None if the user thinks better of it."""
    name = QFileDialog.getExistingDirectory(parent, title)
    return Path(name) if name else None
