"""One door to the user: what was told, in which order, and how it is shown."""

import threading

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QLabel, QPushButton, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from gui.message_bar import MessageBar
from gui.messages import Message, Messages

HOSTILE = (
    "<b>bold</b> &amp; <img src=x>",
    "a\0b",
    "\ud800 lone",
    "👩\u200d👩\u200d👧 joined",
    "שלום עולם",
    "two\nlines",
)


@pytest.fixture
def heard() -> list[Message]:
    """What a listener heard."""
    return []


@pytest.fixture
def bar(window: QWidget) -> MessageBar:
    """A message bar at the top of a window."""
    bar = MessageBar()
    layout = QVBoxLayout(window)
    layout.addWidget(bar)
    layout.addWidget(QWidget(), 1)
    window.resize(800, 300)
    window.show()
    return bar


def button(bar: MessageBar, text: str) -> QPushButton:
    """The button that says so."""
    return next(each for each in bar.findChildren(QPushButton) if each.text() == text)


@pytest.mark.usefixtures("qapp")
def test_messages_come_with_their_level_in_order(heard: list[Message]) -> None:
    """Information, warning, error with its details."""
    messages = Messages()
    messages.listen(heard.append)
    messages.info("one.")
    messages.warning("two.")
    messages.error("three.", "Traceback")
    assert heard == [
        Message("info", "one."),
        Message("warning", "two."),
        Message("error", "three.", "Traceback"),
    ]


@pytest.mark.usefixtures("qapp")
def test_what_was_told_before_anybody_listened_is_heard_once(heard: list[Message]) -> None:
    """The window opens later than the first thing can go wrong."""
    messages = Messages()
    messages.error("early.")
    messages.listen(heard.append)
    messages.info("late.")
    assert [message.sentence for message in heard] == ["early.", "late."]


def test_a_message_from_another_thread_is_shown_on_the_windows_own(
    qtbot: QtBot, bar: MessageBar
) -> None:
    """Bugs happen everywhere, widgets live here."""
    messages = Messages()
    messages.listen(bar.show_message)
    thread = threading.Thread(target=messages.error, args=("from afar.",))
    thread.start()
    thread.join()
    assert bar.isHidden()
    qtbot.waitUntil(bar.isVisible)
    assert bar.sentence == "from afar."


def test_the_bar_is_there_only_while_it_says_something(qtbot: QtBot, bar: MessageBar) -> None:
    """Until it is closed."""
    assert bar.isHidden()
    bar.show_message(Message("error", "Something failed."))
    assert bar.isVisible()
    qtbot.mouseClick(button(bar, "Close"), Qt.MouseButton.LeftButton)
    assert bar.isHidden()


def test_the_levels_differ_in_shape_not_only_in_colour(bar: MessageBar) -> None:
    """Each has its own mark before the sentence."""
    marks = set()
    for level in ("info", "warning", "error"):
        bar.show_message(Message(level, "So it is."))
        (label,) = bar.findChildren(QLabel)
        marks.add(label.text().removesuffix(" So it is."))
        assert label.accessibleName() == f"{level}: So it is."
    assert len(marks) == 3


def test_information_goes_by_itself_and_errors_stay(qtbot: QtBot, bar: MessageBar) -> None:
    """An error is to be read and closed."""
    bar._timer.setInterval(20)
    bar.show_message(Message("info", "By the way."))
    qtbot.waitUntil(bar.isHidden)
    bar.show_message(Message("info", "By the way."))
    bar.show_message(Message("error", "It failed."))
    assert not bar._timer.isActive()
    assert bar.isVisible()


def test_information_goes_with_its_moment_and_errors_stay(bar: MessageBar) -> None:
    """As when the text that was too long has been shortened."""
    bar.show_message(Message("info", "The context is full."))
    bar.forget_info()
    assert bar.isHidden()
    for level in ("warning", "error"):
        bar.show_message(Message(level, "It failed."))
        bar.forget_info()
        assert bar.isVisible()


@pytest.mark.parametrize("text", HOSTILE)
def test_a_message_is_plain_text(qtbot: QtBot, bar: MessageBar, text: str) -> None:
    """Whatever a path or a token in it looks like."""
    bar.show_message(Message("error", text))
    (label,) = bar.findChildren(QLabel)
    assert label.textFormat() == Qt.TextFormat.PlainText
    assert text[-4:] in label.text()
    assert bar.sentence == text
    bar.repaint()
    qtbot.mouseClick(button(bar, "Copy"), Qt.MouseButton.LeftButton)


def test_a_long_path_does_not_widen_the_window(bar: MessageBar) -> None:
    """It is broken over lines, and shown whole."""
    window = bar.window()
    sentence = f"/home/{'x' * 900} is no folder; open one."
    bar.show_message(Message("error", sentence))
    assert window.minimumSizeHint().width() < 800
    (label,) = bar.findChildren(QLabel)
    assert label.text().replace("\u200b", "").endswith(sentence)
    window.layout().activate()
    letters = label.fontMetrics().horizontalAdvance("x" * 900)
    assert label.height() >= letters // label.width() * label.fontMetrics().height()


def test_a_message_can_be_copied_exactly(qtbot: QtBot, bar: MessageBar) -> None:
    """Without anything that was put in to break lines."""
    sentence = f"/home/{'x' * 900} is no folder."
    bar.show_message(Message("error", sentence))
    qtbot.mouseClick(button(bar, "Copy"), Qt.MouseButton.LeftButton)
    assert QGuiApplication.clipboard().text() == sentence


def test_a_bug_can_be_copied_with_its_details(qtbot: QtBot, bar: MessageBar) -> None:
    """By keyboard as well."""
    details = "Traceback (most recent call last):\n  <module>\nValueError: no"
    bar.show_message(Message("error", "This is a bug: ValueError: no", details))
    copy = button(bar, "Copy details")
    copy.setFocus()
    qtbot.keyClick(copy, Qt.Key.Key_Space)
    assert QGuiApplication.clipboard().text() == f"This is a bug: ValueError: no\n\n{details}"
    bar.show_message(Message("info", "Fine."))
    assert not any(each.text() == "Copy details" for each in bar.findChildren(QPushButton))
