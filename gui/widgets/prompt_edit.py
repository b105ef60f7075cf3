"""The editable prompt, with its tokens as chips under the letters.

The chips are painted behind the text of an ordinary QPlainTextEdit, so caret, selection, undo,
input methods and accessibility stay Qt's own; extra selections would cost many times as much.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence
from enum import IntEnum
from functools import cache
from math import ceil, floor
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PySide6.QtCore import QEvent, QLineF, QMimeData, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QKeyEvent,
    QPainter,
    QPaintEvent,
    QPalette,
    QPen,
    QTextBlock,
    QTextCursor,
)
from PySide6.QtWidgets import QFrame, QPlainTextEdit, QWidget

from gui.theme import LIGHT, Theme
from gui.widgets.chips import hatching, mixed
from gui.widgets.held_text import Places, difference, held, told

PLACEHOLDER = "Type or paste a text: the model runs with every keystroke."
_MOST_SHEETS = 256
_STEP_KEYS = (Qt.Key.Key_PageUp, Qt.Key.Key_PageDown)


class TokenState(IntEnum):
    """Where a token came from, or that the model no longer sees it."""

    PROMPT = 0
    GENERATED = 1
    FALLEN_OUT = 2


_GENERATED, _FALLEN_OUT = int(TokenState.GENERATED), int(TokenState.FALLEN_OUT)


class _Chips(NamedTuple):
    """The tokens in the document's own UTF-16 positions, in order."""

    starts: NDArray[np.int64]
    stops: NDArray[np.int64]
    states: NDArray[np.uint8]
    colours: NDArray[np.uint32] | None

    def between(self, start: int, stop: int) -> tuple[int, int]:
        """The indices of the tokens that stand in this stretch of the document."""
        return (
            int(self.stops.searchsorted(start, "right")),
            int(self.starts.searchsorted(stop, "left")),
        )

    def part(self, first: int, last: int, origin: int) -> "_Chips":
        """Some of the tokens, their positions counted from `origin`."""
        colours = None if self.colours is None else self.colours[first:last]
        starts, stops = self.starts[first:last] - origin, self.stops[first:last] - origin
        return _Chips(starts, stops, self.states[first:last], colours)

    def shifted(self, position: int, removed: int, added: int) -> "_Chips":
        """The tokens after `removed` units at a position have given way to `added` others."""
        end, grown = position + removed, added - removed
        starts, stops = self.starts, self.stops
        starts = np.where(starts >= end, starts + grown, np.minimum(starts, position))
        behind = (stops >= end) & (stops > position)
        stops = np.where(behind, stops + grown, np.minimum(stops, position))
        return self._replace(starts=starts, stops=stops)

    def n_as(self, other: "_Chips") -> int:
        """How many tokens, from the first on, look as others do."""
        both = min(len(self.starts), len(other.starts))
        differs = np.zeros(both + 1, np.bool_)
        differs[both] = True
        for mine, theirs in zip(self, other, strict=True):
            if mine is None or theirs is None:
                differs[0] |= mine is not theirs
            else:
                differs[:both] |= mine[:both] != theirs[:both]
        return int(differs.argmax())

    def content(self) -> tuple[bytes, ...]:
        """Equal for tokens that look alike."""
        return tuple(each.tobytes() for each in self if each is not None)


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
        self._sheets: dict[int, tuple[object, _Sheet]] = {}  # by block, with what they show
        self.setAccessibleName("Prompt")
        self.setAccessibleDescription(PLACEHOLDER)
        self.setPlaceholderText(PLACEHOLDER)
        self.setTabChangesFocus(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.textChanged.connect(self._notice)
        self.document().contentsChange.connect(self._shift)
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

    def minimumSizeHint(self) -> QSize:
        """One line: the tokens below need their room too."""
        return QSize(super().minimumSizeHint().width(), self.height_of(1))

    def height_of(self, n_lines: int) -> int:
        """Logical pixels that so many lines need."""
        margin = ceil(2 * self.document().documentMargin())
        return ceil(n_lines * self.fontMetrics().lineSpacing()) + margin

    def set_theme(self, theme: Theme) -> None:
        """Take on a theme's colours and sizes."""
        self._theme = theme
        self._sheets.clear()
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
        self.viewport().setPalette(palette)  # it does not follow once a style sheet was in force
        self.document().setDocumentMargin(2 * theme.unit)
        self.updateGeometry()
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
        before = self._chips
        self._chips = _Chips(self._places(spans[:, 0]), self._places(spans[:, 1]), kinds, colours)
        n_same = self._chips.n_as(before)
        for chips in (before, self._chips):
            self._update_from(chips, n_same)

    def set_selected(self, index: int | None) -> None:
        """Underline the token with this place in `char_spans`."""
        if index != self._selected:
            for each in (index, self._selected):
                self._update_from(self._chips, each)
            self._selected = index

    def _update_from(self, chips: _Chips, index: int | None) -> None:
        """Paint the paragraph of one of these tokens anew, and all below it."""
        if index is None or not 0 <= index < len(chips.starts):
            return
        block, viewport = self.document().findBlock(int(chips.starts[index])), self.viewport()
        top = self.blockBoundingGeometry(block).translated(self.contentOffset()).top()
        viewport.update(viewport.rect().adjusted(0, max(0, floor(top)), 0, 0))

    def insertFromMimeData(self, source: QMimeData) -> None:
        """Paste or drop: plain text only, line ends of any system as newlines."""
        if source.hasText():
            text = source.text().replace("\r\n", "\n").replace("\r", "\n")
            self.insertPlainText(held(text))
            self.ensureCursorVisible()

    def event(self, event: QEvent) -> bool:
        """Leave Page Up and Page Down to the steps, as a lecturer's clicker sends them."""
        if (
            event.type() == QEvent.Type.ShortcutOverride
            and isinstance(event, QKeyEvent)
            and event.key() in _STEP_KEYS
        ):
            event.ignore()
            return True
        return super().event(event)

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

    def _shift(self, position: int, removed: int, added: int) -> None:
        """Keep the chips by their letters until the new tokens arrive."""
        stops = self._chips.stops
        if removed != added and len(stops) and position < stops[-1]:
            self._chips = self._chips.shifted(position, removed, added)

    def _paint_chips(self, painter: QPainter, clip: QRectF) -> None:
        known, self._sheets = self._sheets, {}
        block, offset = self.firstVisibleBlock(), self.contentOffset()
        while block.isValid():
            place = self.blockBoundingGeometry(block).translated(offset)
            if place.top() > clip.bottom():
                break
            if block.isVisible() and place.bottom() > clip.top():
                lines = _lines(block, clip.top() - place.top(), clip.bottom() - place.top())
                self._paint_block(painter, block, lines, place.topLeft(), known)
            block = block.next()
        self._sheets = known | self._sheets if len(known) < _MOST_SHEETS else self._sheets

    def _paint_block(
        self,
        painter: QPainter,
        block: QTextBlock,
        lines: range,
        origin: QPointF,
        known: "dict[int, tuple[object, _Sheet]]",
    ) -> None:
        first, last = self._chips.between(block.position(), block.position() + block.length())
        chips = self._chips.part(first, last, block.position())
        selected = None if self._selected is None else self._selected - first
        if selected is not None and not 0 <= selected < last - first:
            selected = None
        width = self.viewport().width()
        key = (block.revision(), block.length(), lines, width, chips.content(), selected)
        entry = known.get(block.blockNumber())
        if entry is None or entry[0] != key:
            entry = (key, _sheet_of(block, lines, chips, selected, self._theme))
        self._sheets[block.blockNumber()] = entry
        painter.translate(origin)
        entry[1].paint(painter)
        painter.translate(-origin)


class _Sheet:
    """The chips of one block, sorted by how they are drawn, so that each way is one call.

    Positions count from the block's top left corner.
    """

    def __init__(self, theme: Theme) -> None:
        self._theme = theme
        self._grounds: defaultdict[int, list[QRectF]] = defaultdict(list)
        self._fallen: list[QRectF] = []
        self._generated: list[QLineF] = []
        self._selected: list[QRectF] = []
        self._plain = QColor(theme.raised).rgb()
        self._grey = QColor(theme.fallen).rgb()

    def add(self, x: float, y: float, width: float, height: float, state: int, colour: int) -> None:
        """Add one chip."""
        is_fallen = state == _FALLEN_OUT
        ground = self._plain if not colour else _toned(colour, self._theme.surface)
        shapes = self._grounds[self._grey if is_fallen else ground]
        # Two rectangles: softened corners.
        shapes += QRectF(x, y + 1, width, height - 2), QRectF(x + 1, y, width - 2, height)
        if is_fallen:
            self._fallen.append(QRectF(x, y, width, height))
        elif state == _GENERATED:
            bottom = y + height - 1
            self._generated.append(QLineF(x + 2, bottom, x + width - 1, bottom))

    def select(self, x: float, y: float, width: float, height: float) -> None:
        """Underline one chip."""
        thick = 2 * self._theme.stroke
        self._selected.append(QRectF(x, y + height - thick, width, thick))

    def paint(self, painter: QPainter) -> None:
        """Draw all that was added."""
        painter.setPen(Qt.PenStyle.NoPen)
        for ground, rects in self._grounds.items():
            painter.setBrush(QColor.fromRgb(ground))
            painter.drawRects(rects)
        if self._fallen:
            painter.setBrush(hatching(self._theme))
            painter.drawRects(self._fallen)
        if self._generated:
            dim, stroke = QColor(self._theme.text_dim), self._theme.stroke
            painter.setPen(QPen(dim, stroke, Qt.PenStyle.DotLine))
            painter.drawLines(self._generated)
            painter.setPen(Qt.PenStyle.NoPen)
        if self._selected:
            painter.setBrush(QColor(self._theme.accent))
            painter.drawRects(self._selected)


def _sheet_of(
    block: QTextBlock, lines: range, chips: _Chips, selected: int | None, theme: Theme
) -> _Sheet:
    """The chips of some lines of a block."""
    sheet, layout = _Sheet(theme), block.layout()
    starts, stops, states = chips.starts.tolist(), chips.stops.tolist(), chips.states.tolist()
    colours = [0] * len(starts) if chips.colours is None else chips.colours.tolist()
    for number in lines:
        line = layout.lineAt(number)
        y, height = line.y() + 1, line.height() - 2
        begin, end = line.textStart(), line.textStart() + line.textLength()
        at: dict[int, float] = {}
        for index in range(*chips.between(begin, end)):
            start, stop = max(starts[index], begin), min(stops[index], end)
            if start >= stop:
                continue
            for edge in (start, stop):
                if edge not in at:
                    at[edge] = line.cursorToX(edge)[0]  # type: ignore[index]  # stubs say object
            left, right = at[start], at[stop]
            x, width = min(left, right), max(abs(right - left) - 1, 1.0)  # a gap to the next chip
            sheet.add(x, y, width, height, states[index], colours[index])
            if index == selected:
                sheet.select(x, y, width, height)
    return sheet


def _lines(block: QTextBlock, top: float, bottom: float) -> range:
    """The lines of a block between two heights, found by halving: there may be thousands."""
    layout = block.layout()
    lines = range(layout.lineCount())
    first = bisect_left(lines, top, key=lambda i: layout.lineAt(i).y() + layout.lineAt(i).height())
    last = bisect_right(lines, bottom, key=lambda i: layout.lineAt(i).y())
    return range(first, last)


def _kept(position: int, first: int, last: int, grown: int) -> int:
    """Where a caret goes when [first, last) is replaced by `grown` units more."""
    if position <= first:
        return position
    return position + grown if position >= last else min(position, last + grown)


@cache
def _toned(colour: int, surface: str) -> int:
    """A third of a colour on the panel's ground: seen, and never in the way of the letters."""
    return mixed(QColor(surface), QColor.fromRgb(colour), 1 / 3).rgb()
