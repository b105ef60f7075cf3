"""The residual stream from the embedding to the logits, with what was added to it as bars."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import copysign, inf

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QKeyEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPolygonF,
    QResizeEvent,
)
from PySide6.QtWidgets import QWidget

from gui.theme import LIGHT, Theme, lookup_table
from gui.widgets.candidate_columns import Span
from gui.widgets.lettering import CENTRE, LEFT, RIGHT, Lettering, every
from gui.widgets.scrolled_picture import STALE, PointedPicture
from gui.widgets.stream_columns import Measure, StreamColumns, stream_columns
from gui.widgets.stream_table import Kind, Row, StreamTable, length_text, signed

_LEAST_ROW = 2.0  # logical pixels
_FAINT = 0.5  # of the MLP's bars where no row has a label
_LEAST_HUE = 0.45  # of the way from no colour to full colour, for the smallest share
_LABELS = ("attention", "embedding", "= residual", "logits, tied")
_INDENT = 3  # units

Key = tuple[Kind, int, int]


@dataclass(frozen=True)
class _Placed:
    """A row and where it lies in the whole picture."""

    row: Row
    top: float
    height: float


class StreamView(PointedPicture[Key]):
    """Rows from top to bottom beside the stream; only those in sight are painted.

    Up, Down, Home and End move the current row; Enter or a click chooses its head, or opens its
    layer; Left and Right open the layer before and after.
    """

    chosen = Signal(int, int)  # layer, and head or −1
    pointed = Signal(object)  # the Row that is explained now
    widened = Signal(bool)  # whether both kinds of bars have room now

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._table: StreamTable | None = None
        self._sentence = ""
        self._placed: list[_Placed] = []
        self._selected = (0, 0)
        self._current: Key | None = None
        self._measure: Measure = "length"
        self._shows_all = False
        self._was_wide: bool | None = None
        self.setAccessibleName("Residual stream")
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.verticalScrollBar().valueChanged.connect(self._scrolled)
        self.set_theme(LIGHT)

    # What to show

    def set_theme(self, theme: Theme) -> None:
        """Draw in another look."""
        self._theme = theme
        self._axis = Lettering(self.font(), theme.font_axis)
        self._body = Lettering(self.font(), theme.font_body)
        self._bold = Lettering(self.font(), theme.font_body, bold=True)
        self._bold_axis = Lettering(self.font(), theme.font_axis, bold=True)
        self._signs: NDArray[np.uint32] = lookup_table(theme.difference_map)
        self._lay_out()

    def set_empty(self, sentence: str) -> None:
        """Show a sentence instead of a stream."""
        self._table, self._sentence = None, sentence
        self._placed, self._hovered = [], None
        self._lay_out()

    def set_table(self, table: StreamTable, selected: tuple[int, int]) -> None:
        """Show this stream, with the selected head's layer open."""
        is_other = selected != self._selected or self._table is None
        anchor = self._anchor() if self._table is not None else None
        self._table, self._selected = table, selected
        self._hovered = None
        if is_other:
            self._current = ("head", *selected)
        self._lay_out()
        if anchor is not None and is_other:
            self._hold(*anchor)
        if is_other:
            self._reveal()
        self._tell()

    def set_measure(self, measure: Measure) -> None:
        """Show lengths or shares where there is room for one of them only."""
        if measure != self._measure:
            self._measure = measure
            self._lay_out()

    def set_shows_all(self, shows_all: bool) -> None:  # noqa: FBT001
        """Make all layers fit into the height, none of them open, or let them be read."""
        if shows_all != self._shows_all:
            self._shows_all = shows_all
            self._lay_out()
            self._reveal()
            self._tell()

    # What is shown

    def rows(self) -> list[Row]:
        """From top to bottom."""
        return [placed.row for placed in self._placed]

    def row_place(self, key: Key) -> QRectF:
        """Where a row lies in the viewport, in sight or not.

        Raises:
            KeyError: there is no such row.
        """
        at = self._find(key)
        if at is None:
            raise KeyError(key)
        placed = self._placed[at]
        top = self._top + placed.top - self.verticalScrollBar().value()
        return QRectF(0, top, self.viewport().width(), placed.height)

    def length_bar(self, key: Key) -> QRectF:
        """Where a row's length is drawn; nothing where lengths are not shown."""
        return self._length_bar(self.row_place(key), self._row(key))

    def share_bar(self, key: Key) -> QRectF:
        """Where a row's share of the logit is drawn; nothing where shares are not shown."""
        return self._share_bar(self.row_place(key), self._row(key))

    def pointed_row(self) -> Row | None:
        """The row under the mouse, else the current one."""
        at = self._find(self._hovered or self._current)
        return None if at is None else self._placed[at].row

    @property
    def is_wide(self) -> bool:
        """Whether both kinds of bars have room."""
        return self._columns.is_wide

    def _row(self, key: Key) -> Row:
        at = self._find(key)
        if at is None:
            raise KeyError(key)
        return self._placed[at].row

    def _find(self, key: Key | None) -> int | None:
        return next((i for i, each in enumerate(self._placed) if each.row.key == key), None)

    # Moving

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Move the current row, choose it, or open another layer."""
        key = Qt.Key(event.key())
        at = self._find(self._current)
        if at is None or event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier:
            event.ignore()
            return
        last = len(self._placed) - 1
        moves = {
            Qt.Key.Key_Up: at - 1,
            Qt.Key.Key_Down: at + 1,
            Qt.Key.Key_Home: 0,
            Qt.Key.Key_End: last,
        }
        if key in moves:
            self._current = self._placed[min(max(moves[key], 0), last)].row.key
            self._hovered = None
            self._reveal()
            self._tell()
        elif key in {Qt.Key.Key_Left, Qt.Key.Key_Right}:
            self._open_layer(self._selected[0] + (1 if key == Qt.Key.Key_Right else -1))
        elif key in {Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space}:
            self._choose(self._placed[at].row)
        else:
            event.ignore()

    def _open_layer(self, layer: int) -> None:
        if self._table is not None and 0 <= layer < self._table.stream.n_layer:
            self.chosen.emit(layer, -1)

    def _choose(self, row: Row) -> None:
        if row.kind == "head":
            self.chosen.emit(row.layer, row.head)
        elif row.layer >= 0:
            self._open_layer(row.layer)

    def _click(self, at: Key) -> None:
        self._current = at
        self._tell()
        self._choose(self._row(at))

    def _at(self, place: QPointF) -> Key | None:
        if place.y() < self._top:
            return None
        y = place.y() - self._top + self.verticalScrollBar().value()
        return next(
            (each.row.key for each in self._placed if each.top <= y < each.top + each.height), None
        )

    def _hover(self, key: Key | None) -> None:
        if key != self._hovered:
            self._hovered = key
            self.show_hand(can_click=key is not None and key[1] >= 0)
            self._tell()

    def _scrolled(self) -> None:
        self._hovered = None
        self._tell()

    def _anchor(self) -> tuple[Key, float] | None:
        """The current row and how high it stands, to be held there while layers open."""
        at = self._find(self._current)
        if at is None or self._current is None:
            return None
        return self._current, self._placed[at].top - self.verticalScrollBar().value()

    def _hold(self, key: Key, height: float) -> None:
        at = self._find(key)
        if at is not None:
            self.verticalScrollBar().setValue(round(self._placed[at].top - height))

    def _reveal(self) -> None:
        """Bring the current row into sight, and as much of its block above it as has room."""
        at = self._find(self._current)
        if at is None:
            return
        placed, bar = self._placed[at], self.verticalScrollBar()
        room, unit = self.viewport().height() - self._top, self._theme.unit
        layer = placed.row.layer
        block = [each for each in self._placed if each.row.layer == layer >= 0] or [placed]
        begin = placed.top if at else 0.0
        end = placed.top + placed.height + unit
        if layer == self._selected[0]:
            whole = block[-1].top + block[-1].height
            begin = min(begin, max(block[0].top, end - room))
            end = max(end, min(whole, begin + room))
        if begin < bar.value():
            bar.setValue(int(begin))
        elif end > bar.value() + room:
            bar.setValue(round(end - room))

    def _tell(self) -> None:
        self.viewport().update()
        row = self.pointed_row()
        if row is not None and self._table is not None:
            self.setAccessibleDescription(self._table.describe(row)[0])
            self.pointed.emit(row)
        elif self._table is None:
            self.setAccessibleDescription(self._sentence)

    # Layout

    def _lay_out(self) -> None:
        theme, unit, table = self._theme, self._theme.unit, self._table
        self._top = float(self._axis.line + unit)
        self._placed = []
        gutter, label, y = 0.0, 0.0, 0.0
        room = self.viewport().height() - self._top
        if table is not None:
            rows = table.rows(-1 if self._shows_all else self._selected[0])
            thin = self._thin(rows, room)
            for row in rows:
                height = self._height(row)
                height = height if row.layer < 0 else min(height, thin)
                self._placed.append(_Placed(row, y, height))
                y += height
            self._keep_current()
            gutter = self._bold.width(f"L{table.stream.n_layer - 1}") + 1
            tied = "logits, tied" if table.config.tied_output else "logits"
            label = self._body.widest([*_LABELS[:-1], tied, "final RMSNorm"]) + 2
            label = min(label, 0.3 * self.viewport().width())
        self._columns: StreamColumns = stream_columns(
            self.viewport().width(),
            theme,
            self._body,
            self._axis,
            gutter,
            label,
            self._measure,
            has_shares=table is not None and table.attribution is not None,
        )
        bar = self.verticalScrollBar()
        bar.setRange(0, max(0, round(y + unit - room)))
        bar.setPageStep(max(1, round(room)))
        bar.setSingleStep(self._body.line)
        if table is not None and self._columns.is_wide != self._was_wide:
            self._was_wide = self._columns.is_wide
            self.widened.emit(self._was_wide)
        self.viewport().update()

    def _thin(self, rows: Sequence[Row], room: float) -> float:
        """How high a row of a layer may be for all to be in sight, if they are to be."""
        if not self._shows_all:
            return inf
        others = sum(self._height(row) for row in rows if row.layer < 0) + self._theme.unit
        n_rows = sum(row.layer >= 0 for row in rows)
        return max((room - others) / max(n_rows, 1), _LEAST_ROW)

    def _keep_current(self) -> None:
        """A row that is no longer there leaves its place to its layer's first."""
        if self._find(self._current) is None:
            layer = self._selected[0] if self._current is None else self._current[1]
            keys = [each.row.key for each in self._placed if each.row.layer == layer]
            self._current = keys[0] if keys else self._placed[0].row.key

    def _is_lettered(self, place: QRectF) -> bool:
        return place.height() >= self._axis.line

    def _height(self, row: Row) -> float:
        unit = self._theme.unit
        if row.boxes:
            return self._axis.line + 3.0 * unit
        if row.kind in {"head", "bias"}:
            return self._axis.line + unit / 2
        return self._body.line + unit

    # Qt's

    def sizeHint(self) -> QSize:
        """Some rows."""
        return QSize(26, 20) * self._theme.font_body

    def minimumSizeHint(self) -> QSize:
        """A few rows."""
        return QSize(16, 7) * self._theme.font_body

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Lay the rows out anew."""
        super().resizeEvent(event)
        self._lay_out()
        self._reveal()

    # Drawing

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw the rows in sight under the names of the columns."""
        theme, area, table = self._theme, QRectF(self.viewport().rect()), self._table
        with QPainter(self.viewport()) as painter:
            painter.fillRect(area, QColor(theme.surface))
            if table is None:
                painter.setPen(QColor(theme.text_dim))
                self._body.draw_in_middle(painter, area, self._sentence)
                self.frame_focus(painter, theme)
                return
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            if self._is_stale:
                painter.setOpacity(STALE)
            offset, is_told = self._top - self.verticalScrollBar().value(), False
            for placed in self._placed:
                place = QRectF(0, placed.top + offset, area.width(), placed.height)
                if place.bottom() >= self._top and place.top() <= area.bottom():
                    self._paint_row(painter, placed.row, place, table)
                    is_framed = self._is_lettered(place) and place.center().y() > self._top
                    is_told |= is_framed and placed.row.key == self._current
            painter.setOpacity(1.0)
            painter.fillRect(QRectF(0, 0, area.width(), self._top), QColor(theme.surface))
            self._paint_header(painter, table)
            if not is_told:
                self.frame_focus(painter, theme)

    def _paint_header(self, painter: QPainter, table: StreamTable) -> None:
        """What each column is, and how far its bars reach."""
        c, theme = self._columns, self._theme
        painter.setPen(QColor(theme.text_dim))
        line = self._axis.line

        def write(span: Span | None, text: str, align: int = LEFT) -> None:
            if span is not None:
                self._axis.draw(painter, QRectF(span.left, 0, span.width, line), text, align)

        thin = next((each for each in self._placed if each.row.layer >= 0), None)
        if thin is not None and thin.height < self._axis.line:
            self._paint_swatches(painter, c.label)
        write(c.residual, "residual", RIGHT)
        if c.length is not None and c.length_number is not None:
            longest = length_text(table.longest)
            to_end = Span(c.length.left, c.length_number.right - c.length.left)
            write(to_end, self._first(to_end.width, f"length, bars to {longest}", "length"))
            write(c.cosine, "cos", RIGHT)
        if c.share is not None and c.share_number is not None:
            reach = signed(table.largest_share).removeprefix("+")
            to_end = Span(c.share.left, c.share_number.right - c.share.left)
            long = f"adds to the logit, bars to ±{reach}"
            write(to_end, self._first(to_end.width, long, f"to logit, ±{reach}", "to logit"))

    def _paint_swatches(self, painter: QPainter, span: Span) -> None:
        """Which bars are whose, where rows have no room for letters."""
        size, x, line = 0.6 * self._axis.em, span.left, self._axis.line
        for text, opacity in (("attn", 1.0), ("MLP", _FAINT)):
            colour = QColor(self._theme.residual)
            colour.setAlphaF(opacity)
            painter.fillRect(QRectF(x, (line - size) / 2, size, size), colour)
            x += size + 2
            wide = self._axis.width(text) + 1
            self._axis.draw(painter, QRectF(x, 0, wide, line), text)
            x += wide + self._theme.unit

    def _first(self, width: float, *texts: str) -> str:
        return next((text for text in texts if self._axis.width(text) <= width), texts[-1])

    def _paint_row(self, painter: QPainter, row: Row, place: QRectF, table: StreamTable) -> None:
        self._paint_ground(painter, row, place)
        self._paint_stream(painter, row, place, table)
        if row.boxes:
            self._paint_boxes(painter, row, place)
        else:
            self._paint_label(painter, row, place)
            self._paint_numbers(painter, row, place, table)
        self._paint_frames(painter, row, place)

    def _paint_ground(self, painter: QPainter, row: Row, place: QRectF) -> None:
        """The selected layer on a ground of its own, and the layers' names beside the stream."""
        theme, c = self._theme, self._columns
        is_selected = row.layer == self._selected[0]
        if is_selected:
            painter.fillRect(place, QColor(theme.background))
        is_open = is_selected and not self._shows_all
        if row.kind != ("attention boxes" if is_open else "attention"):
            return
        step = every(place.height() if is_open else 2 * place.height(), self._axis.line)
        if step > 1 and row.layer % step:
            return
        if step == 1:
            painter.fillRect(QRectF(0, place.top(), place.width(), 1), QColor(theme.line))
        painter.setPen(QColor(theme.text if is_selected else theme.text_dim))
        gutter = QRectF(c.gutter.left, place.top(), c.gutter.width, place.height())
        plain = self._body if self._is_lettered(place) else self._axis
        bold = self._bold if self._is_lettered(place) else self._bold_axis
        (bold if is_selected else plain).draw(painter, gutter, f"L{row.layer}", RIGHT)

    def _paint_stream(self, painter: QPainter, row: Row, place: QRectF, table: StreamTable) -> None:
        """The spine, as wide as the residual is long, and how the row joins it."""
        theme, x, y = self._theme, self._columns.spine, place.center().y()
        colour = QColor(theme.residual)
        is_start = row.kind == "token"
        for length, top, bottom in (
            (0.0 if is_start else row.before, place.top(), y),
            (row.after, y, place.bottom()),
        ):
            wide = self._width_of(length, table)
            if wide:
                painter.fillRect(QRectF(x - wide / 2, top, wide, bottom - top), colour)
        painter.setPen(QPen(QColor(theme.text_dim), max(1.0, theme.stroke / 1.5)))
        label = self._columns.label.left
        if (row.kind in {"token", "place"} or row.adds) and self._has_plus(place):
            self._line(painter, label - 2, x, y)
            self._join(painter, QPointF(x, y), row, place)
        elif row.kind in {"head", "bias"}:
            painter.drawLine(QPointF(label, y), QPointF(label + (_INDENT - 1) * theme.unit, y))
            painter.drawLine(QPointF(label, place.top()), QPointF(label, y))
            below = self._find(row.key)
            follows = below is not None and self._placed[below + 1].row.kind in {"head", "bias"}
            if follows:
                painter.drawLine(QPointF(label, y), QPointF(label, place.bottom()))
        elif row.boxes or row.kind in {"logit", "after"}:
            painter.setBrush(QColor(theme.text_dim))
            if row.kind != "after":
                self._line(painter, x, label - 2, y)

    def _width_of(self, length: float, table: StreamTable) -> float:
        """How wide the stream is drawn where it is so long; at least a line."""
        if not np.isfinite(length) or length <= 0:
            return 0.0
        largest = float(np.nanmax(table.stream.residual.lengths))
        least = max(1.5, self._theme.stroke)
        return least + (2.5 * self._theme.unit - least) * length / largest

    def _line(self, painter: QPainter, start: float, end: float, y: float) -> None:
        """A line along a row, with an arrow's head at its end."""
        painter.drawLine(QPointF(start, y), QPointF(end, y))
        size = self._theme.unit * (0.8 if end > start else -0.8)
        if abs(end - start) > 2 * abs(size) and end > start:
            tip = [QPointF(end, y), QPointF(end - size, y - size), QPointF(end - size, y + size)]
            painter.setBrush(painter.pen().color())
            painter.drawPolygon(QPolygonF(tip))

    def _has_plus(self, place: QRectF) -> bool:
        return 0.4 * place.height() >= self._theme.unit

    def _join(self, painter: QPainter, middle: QPointF, row: Row, place: QRectF) -> None:
        """Where the stream begins, and where something is added to it."""
        theme = self._theme
        radius = min(1.4 * theme.unit, 0.4 * place.height())
        is_start = row.kind == "token"
        painter.setBrush(QColor(theme.residual if is_start else theme.surface))
        painter.setPen(QPen(QColor(theme.residual), max(1.0, theme.stroke)))
        painter.drawEllipse(middle, radius, radius)
        arm = 0.0 if is_start else radius * 0.6
        painter.drawLine(middle - QPointF(arm, 0), middle + QPointF(arm, 0))
        painter.drawLine(middle - QPointF(0, arm), middle + QPointF(0, arm))

    def _paint_boxes(self, painter: QPainter, row: Row, place: QRectF) -> None:
        """A part of the block: its norms and what it is, joined by arrows."""
        theme, left = self._theme, self._columns.label.left
        unit, arrow = theme.unit, 3.0 * theme.unit
        room = place.right() - left - 2 * unit
        widths: list[float] = []
        texts: Sequence[str] = ()
        for texts in row.boxes:
            widths = [self._axis.width(text) + 2 * unit + 1 for text in texts]
            if sum(widths) + arrow * (len(texts) - 1) <= room:
                break
        x, y = left, place.center().y()
        for at, (text, wide) in enumerate(zip(texts, widths, strict=True)):
            if at:
                painter.setPen(QPen(QColor(theme.text_dim), max(1.0, theme.stroke / 1.5)))
                self._line(painter, x - arrow, x, y)
            box = QRectF(x, place.top() + unit / 2, wide, place.height() - unit)
            painter.setPen(QPen(QColor(theme.text_dim), max(1.0, theme.stroke / 1.5)))
            painter.setBrush(QColor(theme.surface))
            painter.drawRoundedRect(box, unit, unit)
            painter.setPen(QColor(theme.text))
            self._axis.draw(painter, box.adjusted(unit, 0, -unit, 0), text, CENTRE)
            x = box.right() + arrow

    def _paint_label(self, painter: QPainter, row: Row, place: QRectF) -> None:
        theme, c = self._theme, self._columns
        is_head = row.kind in {"head", "bias"}
        left = c.label.left + (_INDENT * theme.unit if is_head else 0)
        is_selected = row.kind == "head" and (row.layer, row.head) == self._selected
        if row.kind in {"attention norm", "mlp norm", "final norm"}:
            wide = self._axis.width(row.label) + 2 * theme.unit + 1
            box = QRectF(c.spine - 2 * theme.unit, place.top() + 1, wide, place.height() - 2)
            painter.setPen(QPen(QColor(theme.text_dim), max(1.0, theme.stroke / 1.5)))
            painter.setBrush(QColor(theme.surface))
            painter.drawRoundedRect(box, theme.unit, theme.unit)
            painter.setPen(QColor(theme.text))
            self._axis.draw(painter, box, row.label, CENTRE)
            return
        if not self._is_lettered(place):
            return
        painter.setPen(QColor(theme.text))
        lettering = self._axis if is_head else self._body
        if is_selected or row.kind in {"logit", "after"}:
            lettering = self._bold_axis if is_head else self._bold
        wide = c.label.right - left
        if row.kind == "logit" and c.share is None and c.length is None:
            wide = place.right() - left
        lettering.draw(painter, QRectF(left, place.top(), wide, place.height()), row.label)

    def _paint_numbers(
        self, painter: QPainter, row: Row, place: QRectF, table: StreamTable
    ) -> None:
        theme, c = self._theme, self._columns
        lettering = self._axis if row.kind in {"head", "bias"} else self._body

        def write(span: Span | None, text: str) -> None:
            if span is not None and self._is_lettered(place):
                painter.setPen(QColor(theme.text))
                where = QRectF(span.left, place.top(), span.width, place.height())
                lettering.draw(painter, where, text, RIGHT)

        if row.length is not None:
            bar = self._length_bar(place, row)
            if not bar.isEmpty():
                painter.fillRect(bar, self._tinted(QColor(theme.residual), row, place))
            write(c.length_number, length_text(row.length))
            cosine = row.cosine
            write(c.cosine, "–" if cosine is None or np.isnan(cosine) else signed(cosine))
        if row.adds or row.kind == "after" or (row.kind == "token" and row.after):
            write(c.residual if row.kind != "attention" else None, length_text(row.after))
        if c.share is not None and row.share is not None:
            self._paint_share(painter, row, place, table)
            write(c.share_number, signed(row.share))

    def _length_bar(self, place: QRectF, row: Row) -> QRectF:
        span, table = self._columns.length, self._table
        if span is None or table is None or row.length is None or row.kind == "after":
            return QRectF()
        share = row.length / table.longest if table.longest else 0.0
        wide = span.width * share if np.isfinite(share) else 0.0
        return self._bar(place, row, span.left, span.left + wide)

    def _share_bar(self, place: QRectF, row: Row) -> QRectF:
        span, table = self._columns.share, self._table
        if span is None or table is None or row.share is None or row.kind == "logit":
            return QRectF()
        reach = row.share / table.largest_share if table.largest_share else 0.0
        reach = reach if np.isfinite(reach) else 0.0
        middle = span.left + span.width / 2
        return self._bar(place, row, middle, middle + reach * span.width / 2)

    def _bar(self, place: QRectF, row: Row, start: float, end: float) -> QRectF:
        part = 0.5 if row.kind in {"head", "bias"} else 0.62
        high = place.height() * (part if self._is_lettered(place) else 0.85)
        left, right = min(start, end), max(start, end)
        return QRectF(left, place.center().y() - high / 2, right - left, high)

    def _paint_share(self, painter: QPainter, row: Row, place: QRectF, table: StreamTable) -> None:
        """A signed bar from the middle, in the colour that its size has on a map around 0."""
        theme, span, share = self._theme, self._columns.share, row.share
        if span is None or share is None or row.kind == "logit":
            return
        middle = span.left + span.width / 2
        painter.fillRect(QRectF(middle, place.top(), 1, place.height()), QColor(theme.text_dim))
        bar = self._share_bar(place, row)
        if bar.width() and np.isfinite(share):
            colour = self._tinted(self._colour(share / table.largest_share), row, place)
            if not self._is_lettered(place):
                painter.fillRect(bar, colour)
                return
            painter.setPen(QPen(QColor(theme.text_dim), 1))
            painter.setBrush(colour)
            painter.drawRect(bar)

    def _colour(self, reach: float) -> QColor:
        """The map's colour of a share of the largest one, −1 to 1; the smallest too has a hue."""
        size = _LEAST_HUE + (1 - _LEAST_HUE) * abs(reach)
        return QColor.fromRgb(int(self._signs[round(127.5 + copysign(127.5 * size, reach))]))

    def _tinted(self, colour: QColor, row: Row, place: QRectF) -> QColor:
        if row.kind == "mlp" and not self._is_lettered(place):
            colour.setAlphaF(_FAINT)
        return colour

    def _paint_frames(self, painter: QPainter, row: Row, place: QRectF) -> None:
        theme = self._theme
        if not self._is_lettered(place):  # a frame would hide the bar
            if row.key == (self._hovered or self._current):
                c = self._columns
                mark = QRectF(c.label.left, place.top(), c.label.width, max(2.0, place.height()))
                painter.fillRect(mark, QColor(theme.accent))
            return
        frame = place.adjusted(self._columns.label.left - theme.unit, 0.5, -1, -0.5)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        if row.kind == "head" and (row.layer, row.head) == self._selected:
            painter.setPen(QPen(QColor(theme.accent), theme.stroke))
            painter.drawRect(frame)
        is_current = row.key == self._current and self.hasFocus()
        if is_current or row.key == self._hovered:
            painter.setPen(QPen(QColor(theme.accent if is_current else theme.text), theme.stroke))
            painter.drawRect(frame)
