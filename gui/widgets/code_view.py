"""Code that can be read, selected and copied, with what is said of it between its lines."""

from collections.abc import Hashable, Iterator, Sequence

from PySide6.QtCore import (
    QEvent,
    QMimeData,
    QPoint,
    QPointF,
    QRectF,
    QSignalBlocker,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import (
    QColor,
    QFocusEvent,
    QFont,
    QFontDatabase,
    QFontMetricsF,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPalette,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextFormat,
)
from PySide6.QtWidgets import QFrame, QTextEdit, QWidget

from gui.theme import LIGHT, Theme
from gui.widgets.code_spans import Kind, Part, PartKind, spans
from gui.widgets.scrolled_picture import veil

_STEP_KEYS = (Qt.Key.Key_PageUp, Qt.Key.Key_PageDown)  # a clicker's
_ENTER = (Qt.Key.Key_Return, Qt.Key.Key_Enter)
_TO_END = QTextCursor.MoveOperation.EndOfBlock
_HANG = 2  # letters by which what continues a line stands in

_Run = tuple[str, QTextCharFormat]


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
        if stale != self._is_stale:
            self._is_stale = stale
            self.viewport().update()
        before, self._parts = self._parts, tuple(parts)
        if _frame(before) == _frame(self._parts):
            self._write_changes(before)
        else:
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
        with QSignalBlocker(self):  # the caret moves with every letter
            self.clear()
            cursor = QTextCursor(self.document())
            cursor.beginEditBlock()  # one layout, in the end
            for part in self._parts:
                for at, letters in enumerate(self._lines(part)):
                    if at or part is not self._parts[0]:
                        cursor.insertBlock()
                    self._put(cursor, part, at, letters)
            cursor.endEditBlock()
        kept = self.textCursor()
        is_same = before == self.toPlainText()
        kept.setPosition(anchor if is_same else 0)
        kept.setPosition(position if is_same else 0, QTextCursor.MoveMode.KeepAnchor)
        self.setTextCursor(kept)
        bar.setValue(scroll)
        self._lead_lines()

    def _write_changes(self, before: tuple[Part, ...]) -> None:
        """Write those parts anew that say something else, each in the lines that it has."""
        scroll = self.verticalScrollBar().value()
        cursor = QTextCursor(self.document())
        first = 0
        with QSignalBlocker(self):
            cursor.beginEditBlock()
            for old, part in zip(before, self._parts, strict=True):
                if old.text != part.text:
                    for at, letters in enumerate(self._lines(part)):
                        block = self.document().findBlockByNumber(first + at)
                        cursor.setPosition(block.position())
                        cursor.movePosition(_TO_END, QTextCursor.MoveMode.KeepAnchor)
                        self._put(cursor, part, at, letters)
                first += part.n_lines
            cursor.endEditBlock()
        self.verticalScrollBar().setValue(scroll)
        self._lead_lines()

    def _put(self, cursor: QTextCursor, part: Part, at: int, letters: list[_Run]) -> None:
        """Write one of a part's lines in place of what is selected."""
        line = "".join(text for text, _look in letters)
        has_room_above = at == 0 and part is not self._parts[0]
        cursor.setBlockFormat(self._block(part.kind, line, has_room_above=has_room_above))
        for text, look in letters:
            cursor.insertText(text, look)

    def _lead_lines(self) -> None:
        self._leads = [lead for part in self._parts for lead in part.line_leads]
        self._light()

    def _lines(self, part: Part) -> Iterator[list[_Run]]:
        """The letters of each line, in pieces that look the same."""
        kinds = spans(part.text) if part.kind == "code" else ()
        plain = self._letters(part.kind)
        start = 0
        for line in part.text.split("\n"):
            here, pieces = 0, []
            for span in kinds:
                first, last = span.start - start, span.stop - start
                if here <= first < last <= len(line):
                    pieces.append((line[here:first], plain))
                    pieces.append((line[first:last], self._letters(part.kind, span.kind)))
                    here = last
            yield [*pieces, (line[here:], plain)]
            start += len(line) + 1

    def _block(self, kind: PartKind, line: str, *, has_room_above: bool) -> QTextBlockFormat:
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
        if has_room_above:
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
        letters.setForeground(QColor(colour))
        return letters

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the text, and a veil over one that waits."""
        super().paintEvent(event)
        if self._is_stale:
            with QPainter(self.viewport()) as painter:
                painter.fillRect(event.rect(), veil(self._theme))

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
            cursor.movePosition(_TO_END, QTextCursor.MoveMode.KeepAnchor)
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


def _frame(parts: tuple[Part, ...]) -> list[tuple[PartKind, int]]:
    """What texts have in common whose lines stand in the same places."""
    return [(part.kind, part.n_lines) for part in parts]
