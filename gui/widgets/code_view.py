"""Code that can be read, selected and copied, with what is said of it between its lines."""

from collections.abc import Hashable, Sequence

from PySide6.QtCore import QEvent, QMimeData, QPoint, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFocusEvent,
    QFont,
    QFontDatabase,
    QFontMetricsF,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPalette,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextFormat,
)
from PySide6.QtWidgets import QFrame, QTextEdit, QWidget

from gui.theme import LIGHT, Theme
from gui.widgets.code_spans import Kind, Part, PartKind, spans

_STEP_KEYS = (Qt.Key.Key_PageUp, Qt.Key.Key_PageDown)  # a clicker's
_ENTER = (Qt.Key.Key_Return, Qt.Key.Key_Enter)
_HANG = 2  # letters by which what continues a line stands in


class CodeView(QTextEdit):
    """Shows parts as plain text, never as markup; keeps place and selection while it can.

    A line that leads somewhere is lit under the pointer and under the caret; a click, or Enter,
    follows it.

    Signals:
        copy_wanted: the key for copying was pressed with nothing selected.
        followed: what a line leads to.
    """

    copy_wanted = Signal()
    followed = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._parts: tuple[Part, ...] = ()
        self._leads: list[Hashable | None] = []  # for each line that is written
        self._pressed: QPoint | None = None
        self._pointed: int | None = None  # the line under the pointer
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
        self.viewport().setMouseTracking(True)
        self.cursorPositionChanged.connect(self._light)
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

    def lead_now(self) -> Hashable | None:
        """What the line under the pointer leads to, or else that of the caret."""
        line = self.textCursor().blockNumber() if self._pointed is None else self._pointed
        return self._leads[line] if line < len(self._leads) else None

    def minimumSizeHint(self) -> QSize:
        """A few lines."""
        return QSize(12, 6) * self._theme.font_body

    # Writing

    def _write(self) -> None:
        bar, old = self.verticalScrollBar(), self.textCursor()
        scroll, anchor, position = bar.value(), old.anchor(), old.position()
        before = self.toPlainText()
        self.clear()
        self._leads = []
        cursor = QTextCursor(self.document())
        for at, part in enumerate(self._parts):
            self._write_part(cursor, part, is_first=at == 0)
        kept = self.textCursor()
        is_same = before == self.toPlainText()
        kept.setPosition(anchor if is_same else 0)
        kept.setPosition(position if is_same else 0, QTextCursor.MoveMode.KeepAnchor)
        self.setTextCursor(kept)
        bar.setValue(scroll)
        self._light()

    def _write_part(self, cursor: QTextCursor, part: Part, *, is_first: bool) -> None:
        text = part.text
        kinds = list(spans(text)) if part.kind == "code" else []
        start = 0
        for at, line in enumerate(text.split("\n")):
            block = self._block(part.kind, line, is_first_line=at == 0, is_first=is_first)
            self._leads.append(part.leads[at] if at < len(part.leads) else None)
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
        """Follow a line, or copy what is selected, or else ask for all of it."""
        if event.key() in _ENTER:
            self._follow(self.textCursor().blockNumber(), event)
        elif event.matches(QKeySequence.StandardKey.Copy) and not self.textCursor().hasSelection():
            self.copy_wanted.emit()
        else:
            super().keyPressEvent(event)

    # The pointer

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Begin a click or a selection."""
        super().mousePressEvent(event)
        is_left = event.button() == Qt.MouseButton.LeftButton
        self._pressed = event.position().toPoint() if is_left else None

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Follow the line that was clicked, unless letters were selected."""
        super().mouseReleaseEvent(event)
        pressed, self._pressed = self._pressed, None
        if pressed is None or self.textCursor().hasSelection():
            return
        line = self._line_at(event.position())
        if line is not None and line == self._line_at(QPointF(pressed)):
            self._follow(line, event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Light what a click would follow."""
        super().mouseMoveEvent(event)
        self._point(self._line_at(event.position()))

    def viewportEvent(self, event: QEvent) -> bool:
        """The pointer leaves."""
        if event.type() == QEvent.Type.Leave:
            self._point(None)
        return super().viewportEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Light the line of the caret."""
        super().focusInEvent(event)
        self._light()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """The keys go elsewhere."""
        super().focusOutEvent(event)
        self._light()

    def place_of_line(self, line: int) -> QRectF:
        """Where a line lies in the viewport, in sight or not."""
        block = self.document().findBlockByNumber(line)
        place = self.document().documentLayout().blockBoundingRect(block)
        return place.translated(0, -self.verticalScrollBar().value())

    def _line_at(self, place: QPointF) -> int | None:
        line = self.cursorForPosition(place.toPoint()).blockNumber()
        return line if self.place_of_line(line).contains(place) else None

    def _follow(self, line: int, event: QEvent) -> None:
        lead = self._leads[line] if line < len(self._leads) else None
        if lead is None:
            event.ignore()
        else:
            self.followed.emit(lead)

    def _point(self, line: int | None) -> None:
        leads = line is not None and line < len(self._leads) and self._leads[line] is not None
        shape = Qt.CursorShape.PointingHandCursor if leads else Qt.CursorShape.IBeamCursor
        self.viewport().setCursor(shape)
        if line != self._pointed:
            self._pointed = line
            self._light()

    def _light(self) -> None:
        """Put a ground under the lines that a click and that Enter would follow."""
        ground = QColor(self._theme.raised)
        lit = []
        for line in sorted(self._lit_lines()):
            cursor = QTextCursor(self.document().findBlockByNumber(line))
            cursor.movePosition(
                QTextCursor.MoveOperation.EndOfBlock, QTextCursor.MoveMode.KeepAnchor
            )
            selection = QTextEdit.ExtraSelection()
            selection.cursor = cursor
            selection.format.setBackground(ground)
            selection.format.setProperty(QTextFormat.Property.FullWidthSelection, True)
            lit.append(selection)
        self.setExtraSelections(lit)

    def _lit_lines(self) -> set[int]:
        """The pointed line and, with the keyboard here, the caret's; and what goes with them."""
        lines = set()
        if self._pointed is not None:
            lines |= self._together(self._pointed)
        if self.hasFocus():
            lines |= self._together(self.textCursor().blockNumber())
        return lines

    def _together(self, line: int) -> set[int]:
        """All lines around one that lead where it does."""
        leads = self._leads
        if line >= len(leads) or leads[line] is None:
            return set()
        first = last = line
        while first > 0 and leads[first - 1] == leads[line]:
            first -= 1
        while last + 1 < len(leads) and leads[last + 1] == leads[line]:
            last += 1
        return set(range(first, last + 1))

    def createMimeDataFromSelection(self) -> QMimeData:
        """Plain text alone."""
        data = QMimeData()
        data.setText(self.textCursor().selection().toPlainText())  # no-break spaces as spaces
        return data
