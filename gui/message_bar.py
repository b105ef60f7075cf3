"""Where the user is told something: one sentence above the panels, gone when it is read."""

import re

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QSizePolicy, QWidget

from gui.messages import Message

_MARKS = {"info": "ℹ", "warning": "⚠", "error": "✗"}
_INFO_MS = 8000
_ZERO_WIDTH_SPACE = "\u200b"
_LONG_RUN = re.compile(r"\S{24}")


class MessageBar(QWidget):
    """Shows the latest message; hidden while there is none. Information goes by itself."""

    def __init__(self) -> None:
        super().__init__()
        self._message = Message("info", "")
        self._label = QLabel()
        self._label.setTextFormat(Qt.TextFormat.PlainText)
        self._label.setWordWrap(True)
        self._copy = QPushButton()
        self._copy.clicked.connect(self._copy_message)
        self._close = QPushButton("Close")
        self._close.clicked.connect(self.hide)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(8, 2, 8, 2)
        layout.addWidget(self._label, 1)
        layout.addWidget(self._copy)
        layout.addWidget(self._close)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Maximum)
        self.setAccessibleName("Messages")
        self._timer = QTimer(self, singleShot=True, interval=_INFO_MS)
        self._timer.timeout.connect(self.hide)
        self.hide()

    @property
    def sentence(self) -> str:
        """What is shown, without its mark."""
        return self._message.sentence

    def show_message(self, message: Message) -> None:
        """Show one message in place of the one before."""
        self._message = message
        self._label.setText(f"{_MARKS[message.level]} {_breakable(message.sentence)}")
        self._label.setAccessibleName(f"{message.level}: {message.sentence}")
        self._copy.setText("Copy details" if message.details else "Copy")
        self.show()
        self._timer.stop()
        if message.level == "info":
            self._timer.start()

    def forget_info(self) -> None:
        """Hide what was only worth knowing at its moment; warnings and errors stay."""
        if self._timer.isActive():
            self.hide()

    def _copy_message(self) -> None:
        parts = filter(None, (self._message.sentence, self._message.details))
        QGuiApplication.clipboard().setText("\n\n".join(parts))


def _breakable(sentence: str) -> str:
    """The sentence with places to break the longest words: a path must not widen the window."""
    return _LONG_RUN.sub(lambda run: f"{run[0]}{_ZERO_WIDTH_SPACE}", sentence)
