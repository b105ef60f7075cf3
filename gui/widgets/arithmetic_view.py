"""Stages of an arithmetic from top to bottom; every number can be read with all its digits."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QMarginsF, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QKeyEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
)
from PySide6.QtWidgets import QWidget

from gui.theme import LIGHT, Theme
from gui.widgets.arithmetic_drawing import ArithmeticDrawing
from gui.widgets.arithmetic_stages import Item, Marks, Stage, Term, full_text, summary
from gui.widgets.scrolled_picture import STALE, PointedPicture

HINT = "Point at a number to read all its digits."

At = tuple[int, int]  # which item, which of its numbers


@dataclass(frozen=True)
class _Placed:
    """An item and where it lies in the whole picture; its stage, if it is the stage's first."""

    item: Item
    place: QRectF
    stage: Stage | None
    head: QRectF


class ArithmeticView(PointedPicture[At]):
    """Draws stages and tells the number under the pointer, or else the current one.

    Up and Down go to another row, Left, Right, Home and End along it, with Ctrl to the first
    and last row. Only what is in sight is painted.
    """

    told = Signal(str)  # the number that is pointed at, with all its digits

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._stages: tuple[Stage, ...] = ()
        self._placed: list[_Placed] = []
        self._sentence = ""
        self._current: At | None = None
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.verticalScrollBar().valueChanged.connect(lambda _value: self._hover(None))
        self.set_theme(LIGHT)

    # What to show

    def set_theme(self, theme: Theme) -> None:
        """Draw in another look."""
        self._theme = theme
        self._drawing = ArithmeticDrawing(self.font(), theme)
        self._lay_out()

    def set_stages(self, stages: Sequence[Stage]) -> None:
        """Show these; the place in them stays where the rows above it are of the same kinds."""
        before = [type(placed.item) for placed in self._placed]
        self._stages, self._sentence = tuple(stages), ""
        self._hovered = None
        self._lay_out()
        if self._current is not None:
            row, index = self._current
            above = [type(placed.item) for placed in self._placed[: row + 1]]
            stays = before[: row + 1] == above
            self._current = (row, min(index, len(self._placed[row].item) - 1)) if stays else None
        self._tell()

    def set_empty(self, sentence: str) -> None:
        """Show a sentence instead."""
        self.set_stages(())
        self._sentence = sentence
        self._tell()

    # What is shown

    def text(self) -> str:
        """The whole arithmetic, every number with all its digits."""
        return full_text(self._stages)

    def told_now(self) -> str:
        """The number under the pointer, or else the current one, with all its digits."""
        at = self._hovered or self._current
        return self._placed[at[0]].item.tell(at[1]) if at else ""

    def rows(self) -> list[Item]:
        """What is shown, from top to bottom."""
        return [placed.item for placed in self._placed]

    def place_of(self, row: int, index: int) -> QRectF:
        """Where a number of a row lies in the viewport, in sight or not."""
        placed = self._placed[row]
        slot = self._drawing.slot(placed.item, placed.place, index)
        return slot.translated(0, -self.verticalScrollBar().value())

    # Moving

    def go_to_stage(self, title: str, *, is_result: bool) -> None:
        """Make a stage's result the current number, or else what it begins with."""
        rows = self._rows_of(title)
        if not rows:
            return
        items = [self._placed[row].item for row in rows]
        results = [at for at, item in enumerate(items) if isinstance(item, Term) and item.is_result]
        numbers = [at for at, item in enumerate(items) if not isinstance(item, Marks)]
        at = (results or [len(rows) - 1])[0] if is_result else (numbers or [0])[0]
        self._hovered, self._current = None, (rows[at], 0)
        top = self._placed[rows[0]].head.top() - 2 * self._theme.unit
        self.verticalScrollBar().setValue(int(top))
        self._reveal(self._current)
        self._tell()

    def _rows_of(self, title: str) -> list[int]:
        """The rows of a stage in which there are numbers."""
        rows, stage = [], ""
        for row, placed in enumerate(self._placed):
            stage = placed.stage.title if placed.stage is not None else stage
            if stage == title and len(placed.item):
                rows.append(row)
        return rows

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Go to another number. Page Up and Page Down are the clicker's."""
        at = self._by_key(event)
        if at is None:
            event.ignore()
            return
        self._hovered = None
        self._current = at
        self._reveal(at)
        self._tell()

    def _by_key(self, event: QKeyEvent) -> At | None:
        rows = [row for row, placed in enumerate(self._placed) if len(placed.item)]
        known = {
            Qt.Key.Key_Up,
            Qt.Key.Key_Down,
            Qt.Key.Key_Left,
            Qt.Key.Key_Right,
            Qt.Key.Key_Home,
            Qt.Key.Key_End,
        }
        key = Qt.Key(event.key())
        if not rows or key not in known:
            return None
        if self._current is None:
            return rows[0], 0
        row, index = self._current
        wide = bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
        if wide and key in {Qt.Key.Key_Home, Qt.Key.Key_End}:
            return rows[0 if key == Qt.Key.Key_Home else -1], 0
        step = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}.get(key)
        if step is not None:
            row = rows[min(max(rows.index(row) + step, 0), len(rows) - 1)]
        last = len(self._placed[row].item) - 1
        index = {
            Qt.Key.Key_Left: index - 1,
            Qt.Key.Key_Right: index + 1,
            Qt.Key.Key_Home: 0,
            Qt.Key.Key_End: last,
        }.get(key, index)
        return row, min(max(index, 0), last)

    def _reveal(self, at: At) -> None:
        placed = self._placed[at[0]]
        bar, unit = self.verticalScrollBar(), self._theme.unit
        top = (placed.head if placed.stage else placed.place).top() - 2 * unit
        bottom = placed.place.bottom() + unit
        if top < bar.value():
            bar.setValue(int(top))
        elif bottom > bar.value() + self.viewport().height():
            bar.setValue(int(bottom - self.viewport().height()))

    def _hover(self, at: At | None) -> None:
        if at != self._hovered:
            self._hovered = at
            self._tell()

    def _click(self, at: At) -> None:
        self._current = at
        self._tell()

    def _tell(self) -> None:
        """Redraw, and say which number is pointed at."""
        told = self.told_now()
        self.setAccessibleDescription(f"{told} {summary(self._stages)}{self._sentence}".strip())
        self.told.emit(told or (HINT if self._stages else ""))
        self.viewport().update()

    # Layout

    def _lay_out(self) -> None:
        self._placed = list(self._places())
        unit = self._theme.unit
        end = self._placed[-1].place.bottom() + 2 * unit if self._placed else 0
        room = self.viewport().height()
        bar = self.verticalScrollBar()
        bar.setRange(0, max(0, int(end) - room))
        bar.setPageStep(room)
        bar.setSingleStep(2 * self._drawing.body.line)
        self.viewport().update()

    def _places(self) -> Iterator[_Placed]:
        unit = self._theme.unit
        left, width = 2 * unit, max(1, self.viewport().width() - 4 * unit)
        y = float(unit)
        for stage in self._stages:
            head = QRectF(left, y + 2 * unit, width, self._drawing.head_height(stage, width))
            y = head.bottom()
            for at, item in enumerate(stage.items):
                place = QRectF(left, y, width, self._drawing.height(item, width))
                yield _Placed(item, place, None if at else stage, head)
                y = place.bottom() + unit

    def _at(self, point: QPointF) -> At | None:
        point = point + QPointF(0, self.verticalScrollBar().value())
        for row, placed in enumerate(self._placed):
            index = self._drawing.index_at(placed.item, placed.place, point)
            if index is not None:
                return row, index
        return None

    # Qt's

    def sizeHint(self) -> QSize:
        """Some of it; the rest is scrolled to."""
        return QSize(20, 24) * self._theme.font_body

    def minimumSizeHint(self) -> QSize:
        """A few rows."""
        return QSize(12, 8) * self._theme.font_body

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw what is in sight, and frame the number that is told."""
        with QPainter(self.viewport()) as painter:
            painter.fillRect(self.viewport().rect(), QColor(self._theme.surface))
            if not self._stages:
                painter.setPen(QColor(self._theme.text_dim))
                room = QRectF(self.viewport().rect()).marginsRemoved(self._around())
                self._drawing.body.draw_in_middle(painter, room, self._sentence)
                self.frame_focus(painter, self._theme)
                return
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            if self._is_stale:
                painter.setOpacity(STALE)
            offset = self.verticalScrollBar().value()
            painter.translate(0, -offset)
            sight = QRectF(event.rect()).translated(0, offset)
            for row, placed in enumerate(self._placed):
                self._paint(painter, row, placed, sight)
            seen, at = QRectF(self.viewport().rect()).translated(0, offset), self._current
            if at is None or not seen.intersects(self._placed[at[0]].place):
                painter.resetTransform()
                self.frame_focus(painter, self._theme)

    def _around(self) -> QMarginsF:
        """What stays free around a sentence."""
        air = 4.0 * self._theme.unit
        return QMarginsF(air, air, air, air)

    def _paint(self, painter: QPainter, row: int, placed: _Placed, sight: QRectF) -> None:
        theme = self._theme
        above = placed.head.adjusted(0, -2 * theme.unit, 0, 0)
        if placed.stage is not None and above.intersects(sight):
            self._drawing.draw_head(painter, placed.stage, placed.head)
        if not placed.place.adjusted(0, 0, 0, theme.unit).intersects(sight):
            return
        self._drawing.draw(placed.item, painter, placed.place)
        for at, colour in (
            (self._current, theme.accent if self.hasFocus() else theme.text_dim),
            (self._hovered, theme.text),
        ):
            if at is not None and at[0] == row:
                self._drawing.draw_frame(painter, placed.item, placed.place, at[1], colour)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Lay everything out for the new width."""
        super().resizeEvent(event)
        self._lay_out()

    def changeEvent(self, event: QEvent) -> None:
        """Follow the application's font."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self.set_theme(self._theme)
