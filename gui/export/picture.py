"""Any widget as a picture: to a file or to the clipboard."""

from pathlib import Path

from PySide6.QtGui import QGuiApplication, QPixmap
from PySide6.QtWidgets import QWidget


def grab(widget: QWidget) -> QPixmap:
    """The widget as it is on screen, in its device pixels."""
    return widget.grab()


def save_png(widget: QWidget, path: Path, size: tuple[int, int] | None = None) -> None:
    """Write the widget as a PNG; its top left part if `size` in device pixels is given.

    Raises:
        OSError: the file cannot be written there.
    """
    pixmap = grab(widget)
    if size is not None:
        pixmap = pixmap.copy(0, 0, *size)
    if not pixmap.save(str(path), "PNG"):
        raise OSError(f"{path} cannot be written; choose a folder that exists and can be written.")


def copy(widget: QWidget) -> None:
    """Put the widget's picture on the clipboard."""
    QGuiApplication.clipboard().setPixmap(grab(widget))
