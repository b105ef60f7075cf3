"""Dropping a model on the window, and everything else that can be dropped there."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QApplication, QMainWindow, QPlainTextEdit, QWidget
from pytestqt.qtbot import QtBot

from gui.library.drop import ModelDrop


@pytest.fixture
def window(qtbot: QtBot) -> QMainWindow:
    """One with a field for text in its middle."""
    window = QMainWindow()
    qtbot.addWidget(window)
    window.setCentralWidget(QPlainTextEdit())
    window.resize(300, 200)
    window.show()
    return window


def carrying(urls: Sequence[str] = (), text: str = "") -> QMimeData:
    data = QMimeData()
    if urls:
        data.setUrls([QUrl(url) for url in urls])
    if text:
        data.setText(text)
    return data


def drop(widget: QWidget, data: QMimeData) -> tuple[bool, Qt.DropAction]:
    """Drag something over a widget and let it go; whether it was welcome, and what became of it."""
    actions = Qt.DropAction.CopyAction | Qt.DropAction.MoveAction
    buttons, keys = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    enter = QDragEnterEvent(QPoint(5, 5), actions, data, buttons, keys)
    enter.setAccepted(False)
    QApplication.sendEvent(widget, enter)
    if not enter.isAccepted():
        return False, Qt.DropAction.IgnoreAction
    event = QDropEvent(QPointF(5, 5), actions, data, buttons, keys)
    QApplication.sendEvent(widget, event)
    return True, event.dropAction()


def field_of(window: QMainWindow) -> QPlainTextEdit:
    field = window.centralWidget()
    assert isinstance(field, QPlainTextEdit)
    return field


@pytest.mark.parametrize("name", ["a model", "toy & co.gguf", "ckpt.pt"])
def test_a_file_or_folder_dropped_anywhere_is_to_be_opened(
    qtbot: QtBot, window: QMainWindow, tmp_path: Path, name: str
) -> None:
    """On the window and on a field for text, which would write its address down."""
    watcher = ModelDrop(window)
    path = tmp_path / name
    for target in (window, field_of(window).viewport()):
        with qtbot.waitSignal(watcher.dropped) as told:
            outcome = drop(target, carrying([QUrl.fromLocalFile(str(path)).toString()]))
        assert told.args == [path]
        assert outcome == (True, Qt.DropAction.CopyAction)  # a move would delete the file
    assert field_of(window).toPlainText() == ""


@pytest.mark.parametrize(
    "urls", [["https://example.org/model"], ["file:///a", "file:///b"]], ids=["web", "two files"]
)
def test_what_is_not_one_path_is_not_opened(
    qtbot: QtBot, window: QMainWindow, urls: list[str]
) -> None:
    watcher = ModelDrop(window)
    with qtbot.assertNotEmitted(watcher.dropped):
        assert not drop(window, carrying(urls))[0]


def test_text_still_drops_into_a_field(qtbot: QtBot, window: QMainWindow) -> None:
    watcher = ModelDrop(window)
    with qtbot.assertNotEmitted(watcher.dropped):
        assert drop(field_of(window).viewport(), carrying(text="to be"))[0]
    assert field_of(window).toPlainText() == "to be"
