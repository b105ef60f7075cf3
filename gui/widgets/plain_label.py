"""A label of plain text whose words are read out."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel


def plain_label(name: str) -> QLabel:
    """An empty paragraph with a name for who cannot see it."""
    label = QLabel()
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setWordWrap(True)
    label.setAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop)
    label.setAccessibleName(name)
    return label


def say(label: QLabel, text: str) -> None:
    """Show a text and have it read out."""
    label.setText(text)
    label.setAccessibleDescription(text)
