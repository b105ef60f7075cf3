"""The editable prompt, with its tokens as chips under the letters.

The chips are painted behind the text of an ordinary QPlainTextEdit, so caret, selection, undo,
input methods and accessibility stay Qt's own; extra selections would cost many times as much.
"""

from collections.abc import Sequence
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PySide6.QtCore import QMimeData, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import (
    QBrush,
    QColor,
    QPainter,
    QPaintEvent,
    QPalette,
    QPen,
    QTextBlock,
    QTextCursor,
    QTextLine,
)
from PySide6.QtWidgets import QFrame, QPlainTextEdit, QWidget

from gui.theme import LIGHT, Theme
from gui.widgets.held_text import Places, difference, held, told

PLACEHOLDER = "Type or paste a text: the model runs with every keystroke."


class TokenState(IntEnum):
    """Where a token came from, or that the model no longer sees it."""

    PROMPT = 0
    GENERATED = 1
    FALLEN_OUT = 2


class _Chips(NamedTuple):
    """The tokens in the document's own UTF-16 positions, in order."""

    starts: NDArray[np.int64]
    stops: NDArray[np.int64]
    states: NDArray[np.uint8]
    colours: NDArray[np.uint32] | None


_NO_CHIPS = _Chips(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.uint8), None)


class PromptEdit(QPlainTextEdit):
    """Owns the text while it is being written, and how its tokens are drawn under it.

    Signals:
        text_edited: the user changed the text (typing, pasting, undoing); not `show_text`, not an
            input method that is still composing.
    """

    text_edited = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = LIGHT
        self._text = ""
        self._places = Places(None)
        self._is_showing = False
        self._chips = _NO_CHIPS
        self._selected: int | None = None
        self.setAccessibleName("Prompt")
        self.setAccessibleDescription(PLACEHOLDER)
        self.setPlaceholderText(PLACEHOLDER)
        self.setTabChangesFocus(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.textChanged.connect(self._notice)
        self.set_theme(LIGHT)

    def text(self) -> str:
        """The text, character for character, lone surrogates and no-break spaces included."""
        return self._text

    def show_text(self, text: str) -> None:
        """Show this text, touching only what differs; caret, scroll and undo history stay.

        A caret at the very end stays at the end, so that one can type on after stepping.
        """
        if text == self._text:
            return
        start, stop, end = difference(self._text, text)
        old, bar = self.textCursor(), self.verticalScrollBar()
        is_at_end = old.atEnd() and not old.hasSelection()
        anchor, position, scroll = old.anchor(), old.position(), bar.value()
        first, last = (int(place) for place in self._places([start, stop]))
        self._is_showing = True
        try:
            edit = QTextCursor(self.document())
            edit.setPosition(first)
            edit.setPosition(last, QTextCursor.MoveMode.KeepAnchor)
            edit.beginEditBlock()
            edit.insertText(held(text[start:end]))
            edit.endEditBlock()
        finally:
            self._is_showing = False
        grown = edit.position() - last
        caret = self.textCursor()
        if is_at_end:
            caret.movePosition(QTextCursor.MoveOperation.End)
        else:
            caret.setPosition(_kept(anchor, first, last, grown))
            caret.setPosition(_kept(position, first, last, grown), QTextCursor.MoveMode.KeepAnchor)
        self.setTextCursor(caret)
        if not is_at_end:
            bar.setValue(scroll)

    def set_theme(self, theme: Theme) -> None:
        """Take on a theme's colours and sizes."""
        self._theme = theme
        font = self.font()
        font.setPixelSize(theme.font_title)
        self.setFont(font)
        palette = self.palette()
        for role, colour in (
            (QPalette.ColorRole.Base, theme.surface),
            (QPalette.ColorRole.Text, theme.text),
            (QPalette.ColorRole.PlaceholderText, theme.text_dim),
            (QPalette.ColorRole.Highlight, theme.accent),
            (QPalette.ColorRole.HighlightedText, theme.on_accent),
        ):
            palette.setColor(role, QColor(colour))
        self.setPalette(palette)
        self.document().setDocumentMargin(2 * theme.unit)
        self.setCursorWidth(max(1, round(theme.stroke)))
        self.viewport().update()

    def set_tokens(
        self,
        char_spans: Sequence[tuple[int, int]] | NDArray[np.integer],
        states: ArrayLike | None = None,
        colours: NDArray[np.uint32] | None = None,
    ) -> None:
        """Draw these tokens under the text.

        Args:
            char_spans: [n, 2] start and stop in characters of `text()`, in order.
            states: [n] of `TokenState`; all PROMPT if left out.
            colours: [n] as 0xFFRRGGBB, toned down so that the letters stay legible; 0 for none.
        """
        spans = np.asarray(char_spans, np.int64).reshape(-1, 2)
        kinds = np.zeros(len(spans), np.uint8) if states is None else np.asarray(states, np.uint8)
        self._chips = _Chips(self._places(spans[:, 0]), self._places(spans[:, 1]), kinds, colours)
        self.viewport().update()

    def set_selected(self, index: int | None) -> None:
        """Underline the token with this place in `char_spans`."""
        if index != self._selected:
            self._selected = index
            self.viewport().update()

    def insertFromMimeData(self, source: QMimeData) -> None:
        """Paste or drop: plain text only, line ends of any system as newlines."""
        if source.hasText():
            text = source.text().replace("\r\n", "\n").replace("\r", "\n")
            self.insertPlainText(held(text))
            self.ensureCursorVisible()

    def canInsertFromMimeData(self, source: QMimeData) -> bool:
        """Whether there is any text to paste."""
        return source.hasText()

    def createMimeDataFromSelection(self) -> QMimeData:
        """What copying takes: the characters themselves, where Qt would take spaces for nbsp."""
        data = QMimeData()
        data.setText(told(self.textCursor().selectedText()))
        return data

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the chips of the visible lines, then let Qt write over them."""
        if len(self._chips.starts):
            with QPainter(self.viewport()) as painter:
                self._paint_chips(painter, QRectF(event.rect()))
        super().paintEvent(event)

    def _notice(self) -> None:
        raw = self.document().toRawText()
        text = told(raw)
        if text == self._text:  # Qt also tells of a changed preedit or format
            return
        self._text = text
        self._places = Places.of(raw)
        if not self._is_showing:
            self.text_edited.emit(text)

    def _paint_chips(self, painter: QPainter, clip: QRectF) -> None:
        sheet = _Sheet(self._theme)
        block, offset = self.firstVisibleBlock(), self.contentOffset()
        while block.isValid():
            place = self.blockBoundingGeometry(block).translated(offset)
            if place.top() > clip.bottom():
                break
            if block.isVisible() and place.bottom() >= clip.top():
                self._collect(sheet, block, place.topLeft(), clip)
            block = block.next()
        sheet.paint(painter)

    def _collect(self, sheet: "_Sheet", block: QTextBlock, origin: QPointF, clip: QRectF) -> None:
        layout = block.layout()
        for number in range(_first_line(block, clip.top() - origin.y()), layout.lineCount()):
            line = layout.lineAt(number)
            top = origin.y() + line.y()
            if top > clip.bottom():
                break
            start = block.position() + line.textStart()
            stop = start + line.textLength()
            first = int(self._chips.stops.searchsorted(start, "right"))
            last = int(self._chips.starts.searchsorted(stop, "left"))
            for index in range(first, last):
                span = (
                    max(int(self._chips.starts[index]), start) - block.position(),
                    min(int(self._chips.stops[index]), stop) - block.position(),
                )
                if span[0] < span[1]:
                    rect = _rect(line, span, QPointF(origin.x(), top))
                    self._add(sheet, index, rect)

    def _add(self, sheet: "_Sheet", index: int, rect: QRectF) -> None:
        colours = self._chips.colours
        colour = 0 if colours is None else int(colours[index])
        sheet.add(rect, int(self._chips.states[index]), colour, selected=index == self._selected)


class _Sheet:
    """The chips of one paint, sorted by how they are drawn, so that each way is one call."""

    def __init__(self, theme: Theme) -> None:
        self._theme = theme
        self._grounds: dict[int, list[QRectF]] = {}
        self._fallen: list[QRectF] = []
        self._generated: list[QRectF] = []
        self._selected: list[QRectF] = []

    def add(self, rect: QRectF, state: int, colour: int, *, selected: bool) -> None:
        fallen = state == TokenState.FALLEN_OUT
        theme = self._theme
        base = theme.fallen if fallen else theme.raised
        ground = _toned(colour, theme.surface) if colour and not fallen else QColor(base).rgb()
        x, y, width, height = rect.x(), rect.y(), rect.width(), rect.height()
        shapes = self._grounds.setdefault(ground, [])
        shapes.append(QRectF(x, y + 1, width, height - 2))  # two rectangles: softened corners
        shapes.append(QRectF(x + 1, y, width - 2, height))
        if fallen:
            self._fallen.append(rect)
        if state == TokenState.GENERATED:
            self._generated.append(rect)
        if selected:
            self._selected.append(rect)

    def paint(self, painter: QPainter) -> None:
        painter.setPen(Qt.PenStyle.NoPen)
        for ground, rects in self._grounds.items():
            painter.setBrush(QColor.fromRgb(ground))
            painter.drawRects(rects)
        painter.setBrush(QBrush(QColor(self._theme.hatch), Qt.BrushStyle.BDiagPattern))
        painter.drawRects(self._fallen)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        dots = QPen(QColor(self._theme.text_dim), self._theme.stroke, Qt.PenStyle.DotLine)
        painter.setPen(dots)
        for rect in self._generated:
            painter.drawLine(
                rect.bottomLeft() + QPointF(2, -1), rect.bottomRight() + QPointF(-1, -1)
            )
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(self._theme.accent))
        thick = 2 * self._theme.stroke
        painter.drawRects(
            [rect.adjusted(0, rect.height() - thick, 0, 0) for rect in self._selected]
        )


def _rect(line: QTextLine, span: tuple[int, int], origin: QPointF) -> QRectF:
    """Where a stretch of one line stands, a gap left to the next chip."""
    ends = sorted((_x(line, span[0]), _x(line, span[1])))
    width = max(ends[1] - ends[0] - 1, 1.0)
    return QRectF(origin.x() + ends[0], origin.y() + 1, width, line.height() - 2)


def _x(line: QTextLine, position: int) -> float:
    at: Any = line.cursorToX(position)  # the stubs say object; it is (x, position)
    return float(at[0])


def _first_line(block: QTextBlock, y: float) -> int:
    """The first line of a block that ends below `y`, found by halving: there may be thousands."""
    layout = block.layout()
    low, high = 0, layout.lineCount()
    while low < high:
        middle = (low + high) // 2
        line = layout.lineAt(middle)
        if line.y() + line.height() < y:
            low = middle + 1
        else:
            high = middle
    return low


def _kept(position: int, first: int, last: int, grown: int) -> int:
    """Where a caret goes when [first, last) is replaced by `grown` units more."""
    if position <= first:
        return position
    return position + grown if position >= last else min(position, last + grown)


def _toned(colour: int, surface: str) -> int:
    """A third of a colour on the panel's ground: seen, and never in the way of the letters."""
    strong, weak = QColor.fromRgb(colour), QColor(surface)
    return QColor(
        (strong.red() + 2 * weak.red()) // 3,
        (strong.green() + 2 * weak.green()) // 3,
        (strong.blue() + 2 * weak.blue()) // 3,
    ).rgb()
