"""Code that can be read, selected and copied, with what is said of it between its lines."""

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QMimeData, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontDatabase,
    QFontMetricsF,
    QKeyEvent,
    QKeySequence,
    QPalette,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
)
from PySide6.QtWidgets import QFrame, QTextEdit, QWidget

from gui.theme import LIGHT, Theme
from gui.widgets.code_spans import Kind, Part, PartKind, spans

_STEP_KEYS = (Qt.Key.Key_PageUp, Qt.Key.Key_PageDown)  # a clicker's
_HANG = 2  # letters by which what continues a line stands in


class CodeView(QTextEdit):
    """Shows parts as plain text, never as markup; keeps place and selection while it can.

    Signals:
        copy_wanted: the key for copying was pressed with nothing selected.
    """

    copy_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._parts: tuple[Part, ...] = ()
        self._is_stale = False
        self.setReadOnly(True)
        self.setAcceptRichText(False)
        self.setTabChangesFocus(True)
        self.setUndoRedoEnabled(False)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.NoContextMenu)  # the panel has one
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse
            | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.set_theme(LIGHT)

    def set_theme(self, theme: Theme) -> None:
        """Take on a theme's colours and sizes."""
        self._theme = theme
        palette = self.palette()
        for role, colour in (
            (QPalette.ColorRole.Base, theme.surface),
            (QPalette.ColorRole.Text, theme.text),
            (QPalette.ColorRole.Highlight, theme.accent),
            (QPalette.ColorRole.HighlightedText, theme.on_accent),
        ):
            palette.setColor(role, QColor(colour))
        self.setPalette(palette)
        self.viewport().setPalette(palette)  # it does not follow once a style sheet was in force
        self.document().setDocumentMargin(2 * theme.unit)
        self._code_font = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
        self._code_font.setPixelSize(theme.font_body)
        self._letter = QFontMetricsF(self._code_font).horizontalAdvance("x")
        self._write()

    def show_parts(self, parts: Sequence[Part], *, stale: bool = False) -> None:
        """Show these, dimmed if they wait for a newer answer."""
        if (tuple(parts), stale) != (self._parts, self._is_stale):
            self._parts, self._is_stale = tuple(parts), stale
            self._write()

    def parts(self) -> tuple[Part, ...]:
        """What is shown."""
        return self._parts

    def minimumSizeHint(self) -> QSize:
        """A few lines."""
        return QSize(12, 6) * self._theme.font_body

    # Writing

    def _write(self) -> None:
        bar, old = self.verticalScrollBar(), self.textCursor()
        scroll, anchor, position = bar.value(), old.anchor(), old.position()
        before = self.toPlainText()
        self.clear()
        cursor = QTextCursor(self.document())
        for at, part in enumerate(self._parts):
            self._write_part(cursor, part, is_first=at == 0)
        kept = self.textCursor()
        is_same = before == self.toPlainText()
        kept.setPosition(anchor if is_same else 0)
        kept.setPosition(position if is_same else 0, QTextCursor.MoveMode.KeepAnchor)
        self.setTextCursor(kept)
        bar.setValue(scroll)

    def _write_part(self, cursor: QTextCursor, part: Part, *, is_first: bool) -> None:
        text = part.text
        kinds = list(spans(text)) if part.kind == "code" else []
        start = 0
        for at, line in enumerate(text.split("\n")):
            block = self._block(part.kind, line, is_first_line=at == 0, is_first=is_first)
            if is_first and at == 0:
                cursor.setBlockFormat(block)
            else:
                cursor.insertBlock(block)
            here = 0
            for span in kinds:
                first, last = span.start - start, span.stop - start
                if here <= first < last <= len(line):
                    cursor.insertText(line[here:first], self._letters(part.kind))
                    cursor.insertText(line[first:last], self._letters(part.kind, span.kind))
                    here = last
            cursor.insertText(line[here:], self._letters(part.kind))
            start += len(line) + 1

    def _block(
        self, kind: PartKind, line: str, *, is_first_line: bool, is_first: bool
    ) -> QTextBlockFormat:
        """Where a line begins, where it goes on if it is long, and its distance to the one above.

        Its own leading spaces stay letters, so that what is copied is the code.
        """
        unit, block = self._theme.unit, QTextBlockFormat()
        if kind in {"code", "shapes"}:
            inset = _HANG if kind == "shapes" else 0
            hang = len(line) - len(line.lstrip(" ")) + _HANG
            block.setLeftMargin((inset + hang) * self._letter)
            block.setTextIndent(-hang * self._letter)
        if kind == "sentence":
            block.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        above = {"title": 3 * unit, "note": 2 * unit, "code": 1.5 * unit}.get(kind, 0)
        if is_first_line and not is_first:
            block.setTopMargin(above)
        return block

    def _letters(self, kind: PartKind, span: Kind | None = None) -> QTextCharFormat:
        theme, letters = self._theme, QTextCharFormat()
        font = QFont(self._code_font)
        if kind in {"title", "note", "sentence"}:
            font = QFont(self.font())
            font.setPixelSize(theme.font_axis if kind == "note" else theme.font_body)
        font.setBold(kind == "title" or span == "keyword")
        letters.setFont(font)
        colours: dict[Kind, str] = {
            "comment": theme.text_dim,
            "query": theme.query,
            "key": theme.key,
            "value": theme.value,
        }
        colour = colours.get(span, theme.text) if span else theme.text
        if kind in {"note", "sentence"}:
            colour = theme.text_dim
        letters.setForeground(QColor(theme.text_dim if self._is_stale else colour))
        return letters

    # Keys

    def event(self, event: QEvent) -> bool:
        """Take the key for copying; leave Page Up and Page Down to the steps, for a clicker."""
        if event.type() == QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent):
            if event.matches(QKeySequence.StandardKey.Copy):
                event.accept()
                return True
            if event.key() in _STEP_KEYS:
                event.ignore()
                return False
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Copy what is selected, or else ask for all of it."""
        if event.matches(QKeySequence.StandardKey.Copy) and not self.textCursor().hasSelection():
            self.copy_wanted.emit()
        else:
            super().keyPressEvent(event)

    def createMimeDataFromSelection(self) -> QMimeData:
        """Plain text alone."""
        data = QMimeData()
        data.setText(self.textCursor().selection().toPlainText())  # no-break spaces as spaces
        return data
