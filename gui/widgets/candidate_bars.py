"""The whole vocabulary as a list of bars, or as a table of the stages behind them."""

from dataclasses import dataclass
from html import escape
from typing import Literal

import numpy as np
from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFocusEvent,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import QAbstractScrollArea, QFrame, QToolTip, QWidget

from gui.theme import LIGHT, Theme
from gui.widgets.candidate_columns import Span, bar_columns, stage_columns
from gui.widgets.candidate_text import Candidates, number, percent, probability
from gui.widgets.lettering import CENTRE, LEFT, RIGHT, Lettering
from gui.widgets.pixels import cover
from gui.widgets.scales import round_top

Columns = Literal["bars", "stages"]

KEPT, REMOVED, BEFORE = "✓", "✗", "·"  # what a stage did: BEFORE, it had nothing left to do

_LEAST_ROWS = 3
_STALE = 0.45


@dataclass(frozen=True)
class Cell:
    """One text of a row and where it stands."""

    text: str
    span: Span
    align: int = LEFT

    def draw(self, painter: QPainter, letters: Lettering, middle: float) -> None:
        """Draw the text around a height, elided to its span."""
        place = QRectF(self.span.left, middle, self.span.width, 0)
        letters.draw(painter, place, self.text, self.align)


class CandidateBars(QAbstractScrollArea):
    """Every token of the vocabulary, the most probable first; only rows in sight are painted.

    Arrow keys, Page Up and Down, Home and End move the current row; Enter or a click chooses.
    Hovering points at a row without moving the current one.
    """

    chosen = Signal(int)  # token id
    pointed = Signal(int)  # token id of the row that is explained now; −1 without rows

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._candidates: Candidates | None = None
        self._sentence = ""
        self._columns: Columns = "bars"
        self._is_stale = False
        self._current = 0
        self._hovered: int | None = None
        self._pressed: int | None = None
        self.setAccessibleName("Candidates for the next token")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.viewport().setMouseTracking(True)
        self.verticalScrollBar().valueChanged.connect(self._scrolled)
        self.set_theme(LIGHT)

    # What to show

    def set_theme(self, theme: Theme) -> None:
        """Draw in another look."""
        self._theme = theme
        self._axis = Lettering(self.font(), theme.font_axis)
        self._body = Lettering(self.font(), theme.font_body)
        self._bold = Lettering(self.font(), theme.font_body, bold=True)
        self._struck = Lettering(self.font(), theme.font_body)
        self._struck.font.setStrikeOut(True)
        self._row_height = self._body.line + theme.unit
        self._inks = {
            name: QColor(colour)
            for name, colour in (
                ("text", theme.text),
                ("dim", theme.text_dim),
                ("good", theme.good),
                ("bad", theme.bad),
            )
        }
        self._fill = QColor(theme.text_dim)
        self._fill.setAlphaF(0.38)
        self._lay_out()

    def set_columns(self, columns: Columns) -> None:
        """Draw bars, or the stages as a table."""
        self._columns = columns
        self._redraw()

    def set_stale(self, is_stale: bool) -> None:  # noqa: FBT001
        """Dim what is shown while the next is on its way."""
        if is_stale != self._is_stale:
            self._is_stale = is_stale
            self._redraw()

    def set_empty(self, sentence: str) -> None:
        """Show a sentence instead of candidates."""
        self._candidates, self._sentence = None, sentence
        self._current, self._hovered = 0, None
        self._lay_out()
        self._tell()

    def set_candidates(self, candidates: Candidates) -> None:
        """Show these; the place in the list stays while the logits are the same."""
        before, current_id = self._candidates, self.current_id
        self._candidates = candidates
        stays = before is not None and np.array_equal(
            before.stages.logits, candidates.stages.logits
        )
        self._current = candidates.row(current_id) if stays and current_id is not None else 0
        self._lay_out()
        if not stays:
            self.verticalScrollBar().setValue(0)
        if self._hovered is not None and self._hovered >= len(candidates):
            self._hovered = None
        self._tell()

    # What is shown

    @property
    def current_id(self) -> int | None:
        """The token id that Enter would choose."""
        return self._candidates.token_id(self._current) if self._candidates else None

    @property
    def pointed_id(self) -> int | None:
        """The token id under the pointer, else the current one."""
        if self._candidates is None:
            return None
        row = self._current if self._hovered is None else self._hovered
        return self._candidates.token_id(row)

    def rows_in_sight(self) -> range:
        """The rows that are at least partly visible."""
        n_rows = len(self._candidates) if self._candidates else 0
        first = self.verticalScrollBar().value() // self._row_height
        last = (self.verticalScrollBar().value() + self._room()) // self._row_height
        return range(first, min(n_rows, last + 1))

    def row_place(self, row: int) -> QRectF:
        """Where a row lies in the viewport, in sight or not."""
        top = self._header_height() + row * self._row_height - self.verticalScrollBar().value()
        return QRectF(0, top, self.viewport().width(), self._row_height)

    def bar_place(self, row: int) -> QRectF:
        """The box that a probability at the top of the scale would fill in a row."""
        return self._bar_within(self.row_place(row))

    def _bar_within(self, place: QRectF) -> QRectF:
        bar = self._bars.bar
        inset = max(2.0, self._theme.unit / 2)
        return QRectF(bar.left, place.top() + inset, bar.width, place.height() - 2 * inset)

    def height_of(self, n_rows: int) -> int:
        """Logical pixels that the header and so many rows need."""
        return self._header_height() + n_rows * self._row_height

    @property
    def scale_top(self) -> float:
        """The probability at the right end of the bars: a round number."""
        return self._top

    def header(self) -> list[str]:
        """The column titles, from left to right."""
        return [cell.text for cell in self._header_cells()]

    def texts(self, row: int) -> list[str]:
        """What a row says, from left to right."""
        return [cell.text for cell in self._cells(row)]

    def reveal(self, token_id: int) -> None:
        """Make a token current and scroll to it."""
        if self._candidates is not None:
            self._go_to(self._candidates.row(token_id))

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

    def focusInEvent(self, event: QFocusEvent) -> None:
        """The current row's frame is thick while keys go here."""
        super().focusInEvent(event)
        self._redraw()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """The frame is thin again."""
        super().focusOutEvent(event)
        self._redraw()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Move the current row, or choose it."""
        key = event.key()
        page = max(1, self._room() // self._row_height - 1)
        moves = {
            Qt.Key.Key_Down: self._current + 1,
            Qt.Key.Key_Up: self._current - 1,
            Qt.Key.Key_PageDown: self._current + page,
            Qt.Key.Key_PageUp: self._current - page,
            Qt.Key.Key_Home: 0,
            Qt.Key.Key_End: len(self._candidates) - 1 if self._candidates else 0,
        }
        if self._candidates is None or event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier:
            event.ignore()
        elif key in {Qt.Key.Key_Return, Qt.Key.Key_Enter}:
            self.chosen.emit(self._candidates.token_id(self._current))
        elif key in moves:
            self._go_to(moves[Qt.Key(key)])
        else:
            event.ignore()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Remember where a click begins."""
        if event.button() == Qt.MouseButton.LeftButton:
            self._pressed = self._row_at(event.position())

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """A click that ends where it began chooses."""
        if event.button() != Qt.MouseButton.LeftButton:
            return
        pressed, self._pressed = self._pressed, None
        row = self._row_at(event.position())
        if row is not None and row == pressed and self._candidates is not None:
            self._current = row
            self.chosen.emit(self._candidates.token_id(row))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Point at the row under the pointer."""
        self._hover(self._row_at(event.position()))

    def viewportEvent(self, event: QEvent) -> bool:
        """Tooltips in plain text; the pointer leaving."""
        if event.type() == QEvent.Type.Leave:
            self._hover(None)
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            text = self.tooltip_at(QPointF(event.pos()))
            if text:
                shown = f"<p style='white-space:pre'>{escape(text)}</p>"
                QToolTip.showText(event.globalPos(), shown, self)
            else:
                QToolTip.hideText()
            return True
        return super().viewportEvent(event)

    def tooltip_at(self, place: QPointF) -> str:
        """What is said on hovering there: a row's exact numbers, or what the columns mean."""
        if self._candidates is None:
            return ""
        row = self._row_at(place)
        if row is not None:
            return self._candidates.tooltip(self._candidates.token_id(row))
        if place.y() < self._header_height():
            return _HELP[self._columns]
        return ""

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the header and the rows in sight, as far as they need it."""
        with QPainter(self.viewport()) as painter:
            painter.fillRect(self.viewport().rect(), QColor(self._theme.surface))
            if self._candidates is None:
                painter.setFont(self._body.font)
                painter.setPen(QColor(self._theme.text_dim))
                flags = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap
                painter.drawText(self.viewport().rect(), int(flags), self._sentence)
                return
            if self._is_stale:
                painter.setOpacity(_STALE)
            rows = self.rows_in_sight()
            place = self.row_place(rows.start)
            for row in rows:
                if event.rect().intersects(place.toRect()):
                    self._paint_row(painter, row, place)
                place = place.translated(0, self._row_height)
            self._paint_header(painter)

    # Moving

    def _go_to(self, row: int) -> None:
        if self._candidates is None:
            return
        self._current = min(max(row, 0), len(self._candidates) - 1)
        top = self._current * self._row_height
        bar, room = self.verticalScrollBar(), self._room()
        if top < bar.value():
            bar.setValue(top)
        elif top + self._row_height > bar.value() + room:
            bar.setValue(top + self._row_height - room)
        self._hovered = None
        self._tell()

    def _scrolled(self) -> None:
        self._hover(None)
        self._redraw()

    def _hover(self, row: int | None) -> None:
        if row != self._hovered:
            for each in (row, self._hovered):
                if each is not None:
                    self.viewport().update(self.row_place(each).toAlignedRect())
            self._hovered = row
            self.viewport().setCursor(
                Qt.CursorShape.ArrowCursor if row is None else Qt.CursorShape.PointingHandCursor
            )
            self._say_pointed()

    def _tell(self) -> None:
        """Redraw, and say which candidate is explained now."""
        self._redraw()
        candidates = self._candidates
        if candidates is None:
            self.setAccessibleDescription(self._sentence)
        elif self.current_id is not None:
            current = f"Current row {self._current + 1:,}: {candidates.spoken(self.current_id)}."
            self.setAccessibleDescription(f"{candidates.sentence()} {current}")
        self._say_pointed()

    def _say_pointed(self) -> None:
        pointed = self.pointed_id
        self.pointed.emit(-1 if pointed is None else pointed)

    def _redraw(self) -> None:
        self.viewport().update()

    # Places

    def _header_height(self) -> int:
        return self._axis.line + self._theme.unit

    def _room(self) -> int:
        return max(0, self.viewport().height() - self._header_height())

    def _lay_out(self) -> None:
        bar = self.verticalScrollBar()
        n_rows = len(self._candidates) if self._candidates else 0
        bar.setRange(0, max(0, n_rows * self._row_height - self._room()))
        bar.setSingleStep(self._row_height)
        bar.setPageStep(max(self._row_height, self._room() - self._row_height))
        self._top = round_top(self._candidates.largest) if self._candidates else 1.0
        width = self.viewport().width()
        self._bars = bar_columns(width, self._theme, self._axis, self._body, n_rows)
        self._stages = stage_columns(width, self._theme, self._axis, self._body)
        self._redraw()

    def _row_at(self, place: QPointF) -> int | None:
        if self._candidates is None or place.y() < self._header_height():
            return None
        inside = place.y() - self._header_height() + self.verticalScrollBar().value()
        row = int(inside // self._row_height)
        in_width = 0 <= place.x() < self.viewport().width()
        return row if in_width and row < len(self._candidates) else None

    # Texts

    def _header_cells(self) -> list[Cell]:
        candidates = self._candidates
        if candidates is None:
            return []
        if self._columns == "stages":
            temperature = candidates.sampling.temperature
            second = f"÷ {temperature:.12g}" if temperature else "greedy"
            return self._as_stages(["token", "logit", second, "top-k", "top-p", "p"], "kept")
        columns = self._bars
        top = f"{100 * self._top:.12g} %"
        return [
            Cell("rank", columns.rank.inside(-2, -self._theme.unit)),
            *([] if columns.is_on_bar else [Cell("token", columns.token)]),
            Cell("0", columns.bar),
            Cell(top, columns.bar, RIGHT),
            Cell("drawn", columns.share, RIGHT),
            Cell("id", columns.last, RIGHT),
        ]

    def _cells(self, row: int) -> list[Cell]:
        candidates = self._candidates
        if candidates is None:
            return []
        token_id = candidates.token_id(row)
        if self._columns == "stages":
            return self._stage_cells(candidates, token_id)
        columns = self._bars
        remark = self._remark(candidates, token_id)
        inset = self._theme.unit if columns.is_on_bar else 0
        wide = self._axis.width(remark) + inset if remark and columns.is_on_bar else 0
        return [
            Cell(f"{row + 1:,}", columns.rank, RIGHT),
            Cell(candidates.text(token_id), columns.token.inside(inset, wide + inset)),
            Cell(remark, columns.bar.inside(0, inset), RIGHT),
            Cell(percent(float(candidates.stages.probs[token_id])), columns.share, RIGHT),
            Cell(str(token_id), columns.last, RIGHT),
        ]

    def _stage_cells(self, candidates: Candidates, token_id: int) -> list[Cell]:
        stages = candidates.stages
        removed = candidates.removed_by(token_id)
        by_k = {"greedy": BEFORE, "top-k": REMOVED}.get(removed, KEPT)
        by_p = {"greedy": BEFORE, "top-k": BEFORE, "top-p": REMOVED}.get(removed, KEPT)
        kept = {"greedy": BEFORE, "": KEPT}.get(removed, f"{REMOVED} {removed[-1:]}")
        digits = 2 if self._stages.is_short else 3
        texts = [
            candidates.text(token_id),
            number(stages.logits[token_id]),
            probability(float(stages.scaled_probs[token_id]), digits),
            by_k,
            by_p,
            probability(float(stages.probs[token_id]), digits),
        ]
        return self._as_stages(texts, kept)

    def _as_stages(self, texts: list[str], kept: str) -> list[Cell]:
        """Six texts in their columns; where there are five, `kept` stands for two of them."""
        if self._stages.is_short:
            texts = [*texts[:3], kept, texts[5]]
        middle = [CENTRE] * (len(texts) - 4)
        aligns = [LEFT, RIGHT, RIGHT, *middle, RIGHT]
        return [Cell(*each) for each in zip(texts, self._stages.spans, aligns, strict=True)]

    @staticmethod
    def _remark(candidates: Candidates, token_id: int) -> str:
        follows = "◂ in the text" if token_id == candidates.follows else ""
        removed = candidates.removed_by(token_id)
        return " · ".join(filter(None, (follows, removed)))

    # Drawing

    def _paint_header(self, painter: QPainter) -> None:
        """Draw the header, over what of a row has scrolled under it."""
        height = self._header_height()
        ground = QRectF(0, 0, self.viewport().width(), height)
        cover(painter, ground, self._theme.surface)
        painter.setPen(QColor(self._theme.text_dim))
        for cell in self._header_cells():
            cell.draw(painter, self._axis, height / 2)
        painter.setPen(QColor(self._theme.line))
        painter.drawLine(QPointF(0, height - 0.5), QPointF(self.viewport().width(), height - 0.5))

    def _paint_row(self, painter: QPainter, row: int, place: QRectF) -> None:
        candidates = self._candidates
        if candidates is None:
            return
        token_id = candidates.token_id(row)
        is_removed = bool(candidates.removed_by(token_id))
        self._paint_ground(painter, row, place, follows=token_id == candidates.follows)
        if self._columns == "bars":
            self._paint_bar(painter, place, token_id, candidates)
        middle = place.center().y()
        cells = self._cells(row)
        token_at, final_at = (1, 3) if self._columns == "bars" else (0, len(cells) - 1)
        for column, cell in enumerate(cells):
            if not cell.text:
                continue
            is_main = column in {token_at, final_at} and not is_removed
            painter.setPen(self._inks[self._ink(cell, is_main=is_main)])
            lettering = self._axis
            if column == token_at:
                lettering = self._token_letters(token_id, candidates, is_removed=is_removed)
            elif column == final_at and self._columns == "bars":
                lettering = self._body
            cell.draw(painter, lettering, middle)

    def _ink(self, cell: Cell, *, is_main: bool) -> str:
        if self._columns == "stages" and cell.align == CENTRE and cell.text != BEFORE:
            return "good" if cell.text == KEPT else "bad"
        return "text" if is_main else "dim"

    def _token_letters(
        self, token_id: int, candidates: Candidates, *, is_removed: bool
    ) -> Lettering:
        if is_removed:
            return self._struck
        return self._bold if token_id == candidates.follows else self._body

    def _paint_ground(self, painter: QPainter, row: int, place: QRectF, *, follows: bool) -> None:
        theme = self._theme
        if row == self._hovered:
            painter.fillRect(place, QColor(theme.raised))
        if follows:
            mark = QRectF(0, place.top(), theme.unit, place.height())
            painter.fillRect(mark, self._inks["text"])
        if row == self._current:
            painter.setPen(QPen(QColor(theme.accent), theme.stroke if self.hasFocus() else 1))
            painter.drawRect(place.adjusted(1, 1, -2, -1))

    def _paint_bar(
        self, painter: QPainter, place: QRectF, token_id: int, candidates: Candidates
    ) -> None:
        theme, box = self._theme, self._bar_within(place)
        drawn = float(candidates.stages.probs[token_id]) / self._top
        plain = float(candidates.stages.plain_probs[token_id]) / self._top
        bar = QRectF(box.left(), box.top(), drawn * box.width(), box.height())
        painter.fillRect(bar, self._fill)
        thick = max(2.0, theme.stroke)
        foot = QRectF(box.left(), box.bottom() - thick, plain * box.width(), thick)
        painter.fillRect(foot, self._inks["text"])
        if foot.width() >= 1 and not self._bars.is_on_bar:
            tick = QRectF(foot.right() - 1, box.center().y(), 1, box.height() / 2)
            painter.fillRect(tick, self._inks["text"])


_HELP: dict[Columns, str] = {
    "bars": (
        "Bar: the probability that is drawn from.\n"
        "Line at its foot: the plain softmax of the logits, before temperature, top-k and top-p.\n"
        "Click a row, or press Enter on it, to go on with that token."
    ),
    "stages": (
        "logit: the model's score\n"
        "÷: softmax of the logits divided by the temperature\n"
        "top-k, top-p: ✓ kept, ✗ removed here, · removed before\n"
        "p: what is drawn from, adding up to 1 again"
    ),
}
