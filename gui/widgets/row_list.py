"""A list of painted rows under a header: moving, hovering and choosing, whatever the rows show."""

from abc import abstractmethod
from html import escape
from typing import ClassVar, NamedTuple

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QHelpEvent,
    QKeyEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import QToolTip, QWidget

from gui.theme import LIGHT, Theme
from gui.widgets.candidate_columns import Span
from gui.widgets.lettering import LEFT, Lettering
from gui.widgets.pixels import cover
from gui.widgets.scrolled_picture import STALE, PointedPicture

_LEAST_ROWS = 3


class Cell(NamedTuple):
    """One text of a row or of the header, and where it stands across."""

    text: str
    span: Span
    align: int = LEFT

    def draw(self, painter: QPainter, letters: Lettering, middle: float) -> None:
        """Draw the text around a height, elided to its span."""
        text, (left, width), align = self
        letters.draw_across(painter, left, width, middle, text, align)


class RowList(PointedPicture[int]):
    """Rows of one height; only those in sight are painted.

    Arrow keys, Home and End, and Page Up and Down where `HAS_PAGES`, move the current row; Enter
    or a click chooses it. Hovering points at a row without moving the current one.
    Subclasses say how many rows there are and what stands in them, and call `_rearrange` when
    that has changed.
    """

    AIR: ClassVar[float] = 1.5  # spacing units above and below a row's texts
    HAS_PAGES: ClassVar[bool] = False  # else Page Up and Down are the clicker's
    HAS_HAND: ClassVar[bool] = False  # whether the pointer over a row is a hand

    chosen = Signal(int)  # what `told` says of a row

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._sentence = ""
        self._current = 0
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.verticalScrollBar().valueChanged.connect(self._scrolled)
        self._take_theme(LIGHT)

    # What the rows are

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """How many there are."""

    @abstractmethod
    def header_cells(self) -> list[Cell]:
        """The column titles, from left to right."""

    @abstractmethod
    def cells(self, row: int) -> list[Cell]:
        """What a row says, from left to right."""

    @abstractmethod
    def spoken(self, row: int) -> str:
        """A row in words."""

    @abstractmethod
    def tooltip(self, row: int) -> str:
        """All that is known of a row, in lines of plain text."""

    @abstractmethod
    def paint_bars(self, painter: QPainter, row: int, place: QRectF) -> None:
        """Draw what stands under the texts of a row."""

    @abstractmethod
    def place_columns(self, width: float) -> None:
        """Find a place for each column at this width."""

    def is_marked(self, row: int) -> bool:  # noqa: ARG002 - what a subclass may say
        """Whether a row has a mark at its left edge."""
        return False

    def foot(self, theme: Theme) -> int:  # noqa: ARG002 - what a subclass may go by
        """Logical pixels under a row's texts, for bars that lie there."""
        return 0

    def told(self, row: int) -> int:
        """What `chosen` tells of a row."""
        return row

    def described(self, row: int) -> str:
        """What is said of the current row."""
        return f"Current row: {self.spoken(row)}."

    def help(self) -> str:
        """What is said on hovering over the header, in lines of plain text."""
        return ""

    # What to show

    def set_theme(self, theme: Theme) -> None:
        """Draw in another look."""
        self._take_theme(theme)
        self._lay_out()

    def set_empty(self, sentence: str) -> None:
        """Show a sentence instead of rows; "" shows them again."""
        if sentence != self._sentence:
            self._sentence = sentence
            self._rearrange()

    # What is shown

    @property
    def sentence(self) -> str:
        """What stands there instead of rows."""
        return self._sentence

    @property
    def current_row(self) -> int | None:
        """The row that Enter would choose."""
        return self._current if self.n_rows and not self._sentence else None

    @property
    def pointed_row(self) -> int | None:
        """The row under the pointer, else the current one."""
        return self.current_row if self._hovered is None else self._hovered

    def header(self) -> list[str]:
        """The column titles."""
        return [cell.text for cell in self.header_cells()]

    def texts(self, row: int) -> list[str]:
        """What a row says."""
        return [cell.text for cell in self.cells(row)]

    def tooltip_at(self, place: QPointF) -> str:
        """What is said on hovering there: all that is known of a row, or what the columns mean."""
        row = self._at(place)
        if row is not None:
            return self.tooltip(row)
        is_header = not self._sentence and place.y() < self._header_height()
        return self.help() if is_header else ""

    def height_of(self, n_rows: int) -> int:
        """Logical pixels that the header and so many rows need."""
        return self._header_height() + n_rows * self._row_height

    def row_place(self, row: int) -> QRectF:
        """Where a row lies in the viewport, in sight or not."""
        top = self._header_height() + row * self._row_height - self.verticalScrollBar().value()
        return QRectF(0, top, self.viewport().width(), self._row_height)

    def rows_in_sight(self) -> range:
        """The rows that are at least partly visible."""
        first = self.verticalScrollBar().value() // self._row_height
        last = (self.verticalScrollBar().value() + self._room()) // self._row_height
        return range(first, min(self.n_rows, last + 1))

    # Qt

    def sizeHint(self) -> QSize:
        """Eight rows."""
        return QSize(300, self.height_of(8))

    def minimumSizeHint(self) -> QSize:
        """A few rows."""
        return QSize(200, self.height_of(_LEAST_ROWS))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep the scroll bar's range right."""
        super().resizeEvent(event)
        self._lay_out()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Move the current row, or choose it."""
        key, row = event.key(), self.current_row
        page = max(1, self._room() // self._row_height - 1)
        moves = {
            Qt.Key.Key_Down: self._current + 1,
            Qt.Key.Key_Up: self._current - 1,
            Qt.Key.Key_Home: 0,
            Qt.Key.Key_End: self.n_rows - 1,
        }
        if self.HAS_PAGES:
            moves |= {
                Qt.Key.Key_PageDown: self._current + page,
                Qt.Key.Key_PageUp: self._current - page,
            }
        if row is None or event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier:
            event.ignore()
        elif key in {Qt.Key.Key_Return, Qt.Key.Key_Enter}:
            self.chosen.emit(self.told(row))
        elif key in moves:
            self.go_to(moves[Qt.Key(key)])
        else:
            event.ignore()

    def _click(self, at: int) -> None:
        self._current = at
        self._tell()
        self.chosen.emit(self.told(at))

    def viewportEvent(self, event: QEvent) -> bool:
        """Tooltips in plain text."""
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            text = self.tooltip_at(QPointF(event.pos()))
            shown = f"<p style='white-space:pre'>{escape(text)}</p>" if text else ""
            QToolTip.showText(event.globalPos(), shown, self)
            return True
        return super().viewportEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the header and the rows in sight, as far as they need it."""
        theme, area, wanted = self._theme, self.viewport().rect(), event.rect()
        with QPainter(self.viewport()) as painter:
            painter.fillRect(area, QColor(theme.surface))
            if self._sentence:
                painter.setPen(QColor(theme.text_dim))
                self._body.draw_in_middle(painter, QRectF(area), self._sentence)
                self.frame_focus(painter, theme)
                return
            if self._is_stale:
                painter.setOpacity(STALE)
            rows, high = self.rows_in_sight(), self._row_height
            top = self.row_place(rows.start).top()
            for row in rows:
                if top <= wanted.bottom() and top + high > wanted.top():
                    self._paint_row(painter, row, QRectF(0, top, area.width(), high))
                top += high
            self._paint_header(painter)
            if self.current_row not in rows:
                self.frame_focus(painter, theme)

    # Moving

    def go_to(self, row: int) -> None:
        """Make a row current, the nearest there is, and bring it into sight."""
        self._current = min(max(row, 0), max(0, self.n_rows - 1))
        top = self._current * self._row_height
        bar, room = self.verticalScrollBar(), self._room()
        if top < bar.value():
            bar.setValue(top)
        elif top + self._row_height > bar.value() + room:
            bar.setValue(top + self._row_height - room)
        self._hovered = None
        self._tell()

    def _rearrange(self) -> None:
        """Other rows are there now."""
        self._current = min(self._current, max(0, self.n_rows - 1))
        if self._hovered is not None and self._hovered >= self.n_rows:
            self._hovered = None
        self._lay_out()
        self._tell()

    def _scrolled(self) -> None:
        self._hover(None)
        self.viewport().update()

    def _hover(self, row: int | None) -> None:
        if row != self._hovered:
            for each in (row, self._hovered):
                if each is not None:
                    self.viewport().update(self.row_place(each).toAlignedRect())
            self._hovered = row
            if self.HAS_HAND:
                self.show_hand(can_click=row is not None)

    def _tell(self) -> None:
        """Redraw, and say which row is current."""
        self.viewport().update()
        row = self.current_row
        self.setAccessibleDescription(self._sentence if row is None else self.described(row))

    # Places

    def _take_theme(self, theme: Theme) -> None:
        self._theme = theme
        self._axis = Lettering(self.font(), theme.font_axis)
        self._body = Lettering(self.font(), theme.font_body)
        self._foot = self.foot(theme)
        self._row_height = self._body.line + self._foot + round(self.AIR * theme.unit)
        self._ink, self._dim = QColor(theme.text), QColor(theme.text_dim)
        self._mark = QColor(theme.accent)

    def _header_height(self) -> int:
        return self._axis.line + self._theme.unit

    def _room(self) -> int:
        return max(0, self.viewport().height() - self._header_height())

    def _lay_out(self) -> None:
        bar = self.verticalScrollBar()
        n_rows = 0 if self._sentence else self.n_rows
        bar.setRange(0, max(0, n_rows * self._row_height - self._room()))
        bar.setSingleStep(self._row_height)
        bar.setPageStep(max(self._row_height, self._room() - self._row_height))
        self.place_columns(float(self.viewport().width()))
        self.viewport().update()

    def _at(self, place: QPointF) -> int | None:
        if self._sentence or place.y() < self._header_height():
            return None
        inside = place.y() - self._header_height() + self.verticalScrollBar().value()
        row = int(inside // self._row_height)
        in_width = 0 <= place.x() < self.viewport().width()
        return row if in_width and row < self.n_rows else None

    # Drawing

    def paint_texts(self, painter: QPainter, row: int, place: QRectF) -> None:
        """Write a row: what comes first in full size, the rest small."""
        painter.setPen(self._ink)
        middle = place.top() + (place.height() - self._foot) / 2
        for column, cell in enumerate(self.cells(row)):
            cell.draw(painter, self._axis if column else self._body, middle)

    def paint_frame(self, painter: QPainter, place: QRectF) -> None:
        """Frame the current row, in a thick line while keys go here."""
        thick = self._theme.stroke if self.hasFocus() else 1
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(QColor(self._theme.accent), thick))
        painter.drawRect(place.adjusted(1, 1, -2, -1))

    def header_middle(self) -> float:
        """The height around which the column titles are written."""
        return self._header_height() / 2

    def _paint_header(self, painter: QPainter) -> None:
        """Draw the header, over what of a row has scrolled under it."""
        height, width = self._header_height(), self.viewport().width()
        cover(painter, QRectF(0, 0, width, height), self._theme.surface)
        painter.setPen(self._dim)
        for cell in self.header_cells():
            cell.draw(painter, self._axis, self.header_middle())
        painter.setPen(QColor(self._theme.line))
        painter.drawLine(QPointF(0, height - 0.5), QPointF(width, height - 0.5))

    def _paint_row(self, painter: QPainter, row: int, place: QRectF) -> None:
        theme = self._theme
        if row == self._hovered:
            painter.fillRect(place, QColor(theme.raised))
        if self.is_marked(row):
            painter.fillRect(QRectF(0, place.top(), theme.unit, place.height()), self._mark)
        self.paint_bars(painter, row, place)
        self.paint_texts(painter, row, place)
        if row == self._current:
            self.paint_frame(painter, place)
