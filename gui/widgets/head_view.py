"""What the two drawings of one head share: their data, their picture, the sentence on top."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFocusEvent,
    QKeyEvent,
    QPainter,
    QPaintEvent,
    QRegion,
    QResizeEvent,
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from gui.theme import LIGHT, Theme, lookup_table
from gui.widgets.legend import Legend
from gui.widgets.lettering import Lettering, quoted
from gui.widgets.pixels import Canvas, hatched, keeps_lines, packed
from gui.widgets.scales import Extent, WeightScale, colour_table, exact, levels
from gui.widgets.scrolled_picture import veil

QUERY_AXIS, KEY_AXIS = "query (who looks)", "key (at whom)"
HINT = "Point at a weight to read it."
LONG_HINT = "Point at a weight to read it; Enter opens the arithmetic of the selected one."

_ENTER = (Qt.Key.Key_Return, Qt.Key.Key_Enter)

Cell = tuple[int, int]


class HeadView(QWidget):
    """One head's weights [T, S], the selected cell, and the picture of them.

    A subclass lays the picture out (`_lay_out`), draws it (`_draw`: its pixels, `_draw_pixels`,
    and what is written and drawn around them, `_draw_lines`), draws the selection on a copy
    (`_draw_selection`) and what follows the pointer over that, again and again (`_draw_hover`).
    Nothing is drawn before it is shown.
    """

    cell_hovered = Signal(int, int)  # query, key
    hover_left = Signal()
    cell_clicked = Signal(int, int)
    cell_requested = Signal(int, int)  # by keyboard
    opened = Signal()  # by Enter: whatever is selected

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._weights: NDArray[np.float32] = np.zeros((0, 0), np.float32)
        self._visible: NDArray[np.bool_] = np.zeros((0, 0), np.bool_)
        self._row_labels: Sequence[str] = ()
        self._column_labels: Sequence[str] = ()
        self._sentence = ""
        self._scale: WeightScale = "linear"
        self._leave_first_out = False
        self._query: int | None = None
        self._key: int | None = None
        self._hovered: Cell | None = None
        self._hover_region = QRegion()  # where its marks are
        self._is_stale = False
        self._extent: Extent | None = None
        self._canvas = self._marked_canvas = Canvas(1, 1, 1.0)
        self._is_laid_out = self._is_drawn = self._is_marked = False
        self._take_theme(LIGHT)
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)

    def set_theme(self, theme: Theme) -> None:
        """Draw in another look."""
        self._take_theme(theme)
        self._redraw(layout=True)

    def set_matrix(
        self,
        weights: NDArray[np.float32],
        visible: NDArray[np.bool_],
        row_labels: Sequence[str],
        column_labels: Sequence[str],
        n_same: int = 0,  # noqa: ARG002 - for a view that draws only what is new
    ) -> None:
        """Show the weights [T, S]; `visible` [T, S] says which keys the mask lets through.

        The arrays are kept, not copied. Labels are shown as they are. `n_same` is for how many
        tokens from the first on they are known to be what is shown; 0 if that is not known.

        Raises:
            ValueError: the shapes or the numbers of labels disagree.
        """
        shape = (len(row_labels), len(column_labels))
        if not weights.shape == visible.shape == shape:
            raise ValueError(
                f"weights {weights.shape}, visible {visible.shape} and the labels {shape} must "
                "have one shape."
            )
        is_same = self._is_labelled(row_labels, column_labels)
        self._weights, self._visible = weights, visible
        self._row_labels, self._column_labels = tuple(row_labels), tuple(column_labels)
        if self._hovered and not self._has(*self._hovered):
            self._hovered = None
        self._extent = None
        self._redraw(layout=not is_same)

    def set_empty(self, sentence: str) -> None:
        """Show a sentence instead of a head."""
        self._sentence = sentence
        nothing = np.zeros((0, 0), np.float32)
        self.set_matrix(nothing, nothing.astype(np.bool_), (), ())

    def set_scale(self, scale: WeightScale, leave_first_out: bool) -> None:  # noqa: FBT001
        """Draw on another scale; with the first token left out, key 0 has no colour."""
        if (scale, leave_first_out) != (self._scale, self._leave_first_out):
            self._scale, self._leave_first_out = scale, leave_first_out
            self._redraw(layout=True)

    def set_cell(self, query: int | None, key: int | None) -> None:
        """Frame the selected query and key; None frames none."""
        if (query, key) != (self._query, self._key):
            self._query, self._key = query, key
            self._selection_moved()
            self._mark_again()

    def set_stale(self, is_stale: bool) -> None:  # noqa: FBT001
        """Dim what is shown while the next is on its way."""
        if is_stale != self._is_stale:
            self._is_stale = is_stale
            self._mark_again()

    def show_pointed(self, cell: Cell | None) -> None:
        """Mark a cell as if the pointer were on it, without telling; None marks none."""
        self._mark_hovered(cell if cell is not None and self._has(*cell) else None)

    def describe(self, query: int, key: int) -> str:
        """One cell as a sentence, with every digit of its weight."""
        who = f"query {query} {quoted(self._row_labels[query])}"
        whom = f"key {key} {quoted(self._column_labels[key])}"
        if self._is_masked(query, key):
            return f"masked: {who} cannot see {whom}"
        return f"{self._told(query, key)} = weight of {whom} for {who}"

    def sizeHint(self) -> QSize:
        """A square with room for labels."""
        return QSize(40, 36) * self._theme.font_axis

    def minimumSizeHint(self) -> QSize:
        """Small enough for any dock."""
        return QSize(16, 12) * self._theme.font_axis

    # what a subclass draws

    def _lay_out(self) -> None:
        raise NotImplementedError

    def _draw(self) -> None:
        raise NotImplementedError

    def _draw_pixels(self) -> None:
        """Fill the whole canvas anew, without any letter."""
        raise NotImplementedError

    def _draw_rectangles(self, painter: QPainter) -> bool:  # noqa: ARG002 - where there are cells
        """Draw the cells as rectangles instead, if that can be done."""
        return False

    def _draw_lines(self, painter: QPainter) -> None:
        raise NotImplementedError

    def _draw_selection(self, painter: QPainter) -> None:
        raise NotImplementedError

    def _draw_hover(self, painter: QPainter, cell: Cell) -> None:
        raise NotImplementedError

    def _marked(self, cell: Cell) -> list[QRect]:
        """Where the marks of a hovered cell are."""
        raise NotImplementedError

    def _selection_moved(self) -> None:
        """Bring the selection into view, where only a part is."""

    # what a subclass uses

    @property
    def _is_empty(self) -> bool:
        return self._weights.size == 0

    @property
    def shown_cell(self) -> Cell | None:
        """The cell that the sentence on top is about: the hovered one, else the selected one."""
        if self._hovered is not None:
            return self._hovered
        if self._query is None or self._key is None or not self._has(self._query, self._key):
            return None
        return self._query, self._key

    def _has(self, query: int, key: int) -> bool:
        queries, keys = self._weights.shape
        return 0 <= query < int(queries) and 0 <= key < int(keys)

    def _current_extent(self) -> Extent:
        if self._extent is None:
            self._extent = Extent.of(self._weights)
        return self._extent

    def _top(self) -> float:
        return self._current_extent().top(self._scale, leave_first_out=self._leave_first_out)

    def _levels(self, first: int, last: int) -> NDArray[np.uint8]:
        """The indices of the colours of some rows [last − first, S]."""
        rows = slice(first, last)
        return levels(
            self._weights[rows],
            self._visible[rows],
            self._scale,
            top=self._top(),
            leave_first_out=self._leave_first_out,
        )

    def _legend(self) -> Legend:
        has_bad = not self._current_extent().is_finite.all()
        return Legend(self._theme, self._scale, self._leave_first_out, self._top(), has_bad)

    def _mark_again(self) -> None:
        self._is_marked = False
        self.update()

    def _redraw(self, *, layout: bool) -> None:
        self._is_drawn = self._is_marked = False
        if layout:
            self._is_laid_out = False
        self.update()

    def _size_in_pixels(self) -> tuple[int, int, float]:
        """Width, height and the ratio to logical pixels."""
        ratio = self.devicePixelRatioF()
        return round(self.width() * ratio), round(self.height() * ratio), ratio

    def _prepare(self) -> None:
        """Bring layout and canvas up to date."""
        size = self._size_in_pixels()
        if not self._canvas.fits(*size):
            self._canvas, self._marked_canvas = Canvas(*size), Canvas(*size)
            self._is_laid_out = self._is_drawn = self._is_marked = False
        if self._is_drawn:
            return
        if self._is_empty:
            with QPainter(self._canvas.image) as painter:
                self._draw_sentence(painter)
        else:
            if not self._is_laid_out:
                self._lay_out()
            self._draw()
            self._is_laid_out = True
        self._is_drawn = True

    def _mark(self) -> None:
        """Put the selection on a copy, so that the pointer can pass over it quickly."""
        if not self._is_marked:
            np.copyto(self._marked_canvas.pixels, self._canvas.pixels)
            with QPainter(self._marked_canvas.image) as painter:
                self._draw_marks(painter)
            self._is_marked = True

    def _draw_sharp(self, painter: QPainter) -> None:
        """Draw at most the cells as pixels, for a device on which all else can stay sharp."""
        if self._is_empty:
            self._draw_sentence(painter)
            return
        painter.save()
        if not self._draw_rectangles(painter):
            shown, self._canvas = self._canvas, Canvas(*self._size_in_pixels())
            self._draw_pixels()
            painter.drawImage(0, 0, self._canvas.image)
            self._canvas = shown
        painter.restore()
        painter.save()
        self._draw_lines(painter)
        painter.restore()
        self._draw_marks(painter)

    def _draw_marks(self, painter: QPainter) -> None:
        if self._is_stale:
            painter.fillRect(self.rect(), veil(self._theme))
        if not self._is_empty:
            self._draw_selection(painter)
            painter.resetTransform()

    def _header(self) -> QRectF:
        unit = self._theme.unit
        return QRectF(unit, unit / 2, self.width() - 2 * unit, self._body.line)

    def _headline(self, cell: Cell | None) -> str:
        """The sentence on top, in few words where the place is narrow."""
        if cell is None:
            return LONG_HINT if self._body.fits(LONG_HINT, self._header().width()) else HINT
        query, key = cell
        text = self.describe(query, key)
        if self._body.fits(text, self._header().width()):
            return text
        return f"{self._told(query, key)}: query {query} → key {key}"

    def _is_masked(self, query: int, key: int) -> bool:
        return not self._visible[query, key] and bool(self._weights[query, key] == 0)

    def _told(self, query: int, key: int) -> str:
        """What a cell holds, with every digit."""
        return "masked" if self._is_masked(query, key) else exact(self._weights[query, key])

    def _hover(self, cell: Cell | None) -> None:
        if cell == self._hovered:
            return
        self._mark_hovered(cell)
        if cell is None:
            self.hover_left.emit()
        else:
            self.cell_hovered.emit(*cell)

    def _mark_hovered(self, cell: Cell | None) -> None:
        if cell == self._hovered:
            return
        self._hovered = cell
        marked = QRegion(self._header().toAlignedRect())
        for place in self._marked(cell) if cell is not None else ():
            marked += place
        self.update(self._hover_region.united(marked))
        self._hover_region = marked

    def _is_labelled(self, rows: Sequence[str], columns: Sequence[str]) -> bool:
        return tuple(rows) == self._row_labels and tuple(columns) == self._column_labels

    def _take_theme(self, theme: Theme) -> None:
        self._theme = theme
        self._axis = Lettering(self.font(), theme.font_axis)
        self._axis_bold = Lettering(self.font(), theme.font_axis, bold=True)
        self._body = Lettering(self.font(), theme.font_body)
        self._body_bold = Lettering(self.font(), theme.font_body, bold=True)
        colours = lookup_table(theme.weights_map)
        table = colour_table(colours, packed(theme.masked), packed(theme.bad))
        self._table = hatched(table, packed(theme.hatch))

    def _draw_sentence(self, painter: QPainter) -> None:
        theme = self._theme
        painter.fillRect(self.rect(), QColor(theme.surface))
        painter.setPen(QColor(theme.text_dim))
        place = QRectF(self.rect()).adjusted(*(4 * theme.unit * side for side in (1, 1, -1, -1)))
        self._body.draw_in_middle(painter, place, self._sentence)

    # Qt's

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Copy the picture where Qt lets it be painted, then mark what is hovered."""
        self._prepare()
        theme = self._theme
        with QPainter(self) as painter:
            if keeps_lines(painter):
                self._draw_sharp(painter)
            elif self._hovered is None and not self._is_marked:  # no pointer to be quick for
                painter.drawImage(0, 0, self._canvas.image)
                self._draw_marks(painter)
            else:
                self._mark()
                painter.drawImage(0, 0, self._marked_canvas.image)
            if not self._is_empty:
                cell = self.shown_cell
                painter.setPen(QColor(theme.text if cell else theme.text_dim))
                self._body.draw_long(painter, self._header(), self._headline(cell))
                if self._hovered is not None:
                    self._draw_hover(painter, self._hovered)
            if self.hasFocus():
                painter.setPen(QColor(theme.accent))
                painter.drawRect(self.rect().adjusted(0, 0, -1, -1))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Lay the picture out anew."""
        self._redraw(layout=True)
        super().resizeEvent(event)

    def changeEvent(self, event: QEvent) -> None:
        """Follow the application's font."""
        if event.type() == QEvent.Type.FontChange:
            self.set_theme(self._theme)
        super().changeEvent(event)

    def leaveEvent(self, event: QEvent) -> None:
        """Nothing is hovered any more."""
        self._hover(None)
        super().leaveEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Show that the keys go here."""
        self.update()
        super().focusInEvent(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """The keys go elsewhere."""
        self.update()
        super().focusOutEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Ask for another cell: arrows by one, Home and End along the row, with Ctrl along all.

        Enter opens the selected one, for whoever listens.

        Page Up and Page Down are the clicker's.
        """
        if event.key() in _ENTER and not self._is_empty:
            self.opened.emit()
            return
        cell = None if self._is_empty else self._cell_by_key(event)
        if cell is None:
            event.ignore()
        elif cell != (self._query, self._key):
            self.cell_requested.emit(*cell)

    def _cell_by_key(self, event: QKeyEvent) -> Cell | None:
        last_query, last_key = self._weights.shape[0] - 1, self._weights.shape[1] - 1
        query = last_query if self._query is None else min(self._query, last_query)
        key = min(query, last_key) if self._key is None else min(self._key, last_key)
        wide = bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
        moves = {
            Qt.Key.Key_Up: (query - 1, key),
            Qt.Key.Key_Down: (query + 1, key),
            Qt.Key.Key_Left: (query, key - 1),
            Qt.Key.Key_Right: (query, key + 1),
            Qt.Key.Key_Home: (0 if wide else query, 0),
            Qt.Key.Key_End: (last_query if wide else query, self._last_seen(query, last_key)),
        }
        if (pressed := Qt.Key(event.key())) not in moves:
            return None
        query, key = moves[pressed]
        return min(max(query, 0), last_query), min(max(key, 0), last_key)

    def _last_seen(self, query: int, otherwise: int) -> int:
        seen = np.flatnonzero(self._visible[query])
        return int(seen[-1]) if len(seen) else otherwise
