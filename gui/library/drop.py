"""A file or folder that is dropped on the window is a model to open."""

from pathlib import Path

from PySide6.QtCore import QEvent, QMimeData, QObject, Qt, Signal
from PySide6.QtGui import QDropEvent
from PySide6.QtWidgets import QWidget

_KINDS = (QEvent.Type.DragEnter, QEvent.Type.DragMove, QEvent.Type.Drop)


class ModelDrop(QObject):
    """Watches a window, and what in it takes drops itself, such as a field for text.

    Those get everything but a single file or folder. Only they are watched, for a watched widget
    asks Python about every one of its events.
    """

    dropped = Signal(object)  # the Path to open

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        takers = [widget for widget in window.findChildren(QWidget) if widget.acceptDrops()]
        window.setAcceptDrops(True)
        for widget in (window, *takers):
            widget.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Take what carries one path; leave the rest to whoever is watched."""
        if event.type() not in _KINDS or not isinstance(event, QDropEvent):
            return super().eventFilter(watched, event)
        path = dropped_path(event.mimeData())
        if path is None:
            return super().eventFilter(watched, event)
        event.setDropAction(Qt.DropAction.CopyAction)  # a move would delete it where it was
        event.accept()
        if event.type() == QEvent.Type.Drop:
            self.dropped.emit(path)
        return True


def dropped_path(data: QMimeData) -> Path | None:
    """The one file or folder of this computer that is carried; None if it is anything else."""
    urls = data.urls()
    if len(urls) != 1 or not urls[0].isLocalFile():
        return None
    return Path(urls[0].toLocalFile())
