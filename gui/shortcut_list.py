"""The list of all commands and keys, made from the table of commands."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import (
    QAbstractItemView,
    QDialog,
    QHeaderView,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

if TYPE_CHECKING:
    from gui.commands import Command


class ShortcutList(QDialog):
    """A window with a row for each command: where it is, what it does, its keys."""

    def __init__(self, commands: Sequence["Command"], parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Keyboard shortcuts")
        table = QTableWidget(len(commands), 4)
        table.setAccessibleName("Keyboard shortcuts")
        table.setHorizontalHeaderLabels(["Menu", "Command", "Keys", "What it does"])
        table.verticalHeader().hide()
        table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        for row, command in enumerate(commands):
            keys = ", ".join(
                QKeySequence(each).toString(QKeySequence.SequenceFormat.NativeText)
                for each in command.shortcuts
            )
            for column, text in enumerate((command.menu, command.title, keys, command.help)):
                table.setItem(row, column, QTableWidgetItem(text))
        table.resizeColumnsToContents()
        table.horizontalHeader().setSectionResizeMode(3, QHeaderView.ResizeMode.Stretch)
        # What a command does is read whole, on as many lines as that takes.
        table.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        layout = QVBoxLayout(self)
        layout.addWidget(table)
        self.resize(parent.size() * 0.9)
