"""All heads at once: layers × heads thumbnails on one canvas."""

from collections.abc import Collection, Mapping, Sequence
from math import ceil, floor

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QPoint, QPointF, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QRegion,
    QResizeEvent,
)
from PySide6.QtWidgets import QWidget

from gui.theme import LIGHT, Theme, lookup_table
from gui.widgets.atlas_layout import SMALLEST, AtlasLayout, Room
from gui.widgets.head_tiles import Tiles, draw_off, draw_tile
from gui.widgets.legend import hatch_period
from gui.widgets.lettering import CENTRE, LEFT, RIGHT, Lettering, every
from gui.widgets.pixels import (
    Canvas,
    Spans,
    hatched,
    keeps_lines,
    packed,
    pool,
    spans,
    strokes,
)
from gui.widgets.scales import tone_table
from gui.widgets.scrolled_picture import ScrolledPicture, veil

Head = tuple[int, int]  # layer, head

_DIMMED = 0.82  # how much of a dimmed head's colours is background
_WORTH = 0.75  # how much smaller captions under the thumbnails may make them
_ROOMY = 40  # logical pixels of a box from which on the gaps are wide


class HeadAtlas(ScrolledPicture):
    """The thumbnails of all heads, their order, the selected one and the one pointed at.

    One canvas holds all thumbnails and their labels; a step that adds one row to the text
    recolours that row's pixels of every head and copies the canvas once.
    """

    head_hovered = Signal(int, int)
    hover_left = Signal()
    head_clicked = Signal(int, int)
    head_move_requested = Signal(int, int)  # by how many layers and heads; if sorted: 0, places

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._n_layer = self._n_head = 0
        self._peaks: NDArray[np.uint8] = np.zeros((0, 0, 0, 0), np.uint8)
        self._first_key: NDArray[np.uint8] | None = None
        self._seen: NDArray[np.uint8] = np.zeros((0, 0), np.uint8)
        self._order: tuple[Head, ...] | None = None
        self._dimmed: frozenset[Head] = frozenset()
        self._captions: dict[Head, str] = {}
        self._off: frozenset[Head] = frozenset()
        self._tiles: Tiles | None = None
        self._selected: Head | None = None
        self._hovered: Head | None = None
        self._sentence = ""
        self._tones: NDArray[np.uint32] | None = None
        self._canvas = Canvas(1, 1, 1.0)
        self._layout: AtlasLayout | None = None
        self._changed: tuple[int, int] | None = None  # bin rows to recolour; None: all
        self._is_laid_out = False
        self._take_theme(LIGHT)
        self.viewport().setMouseTracking(True)
        self.viewport().setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setAccessibleName("Attention of all heads")

    def set_theme(self, theme: Theme) -> None:
        """Draw in another look, on its linear scale unless `set_scale` follows."""
        self._tones = None
        self._take_theme(theme)
        self._lay_out_later()

    def set_grid(self, n_layer: int, n_head: int) -> None:
        """Say how many heads there are; thumbnails, order and captions of others go."""
        if (n_layer, n_head) == (self._n_layer, self._n_head):
            return
        self._n_layer, self._n_head = n_layer, n_head
        self._peaks, self._first_key = np.zeros((n_layer, n_head, 0, 0), np.uint8), None
        self._seen = np.zeros((0, 0), np.uint8)
        self._order, self._dimmed, self._captions = None, frozenset(), {}
        self._off, self._tiles = frozenset(), None
        self._selected = self._hovered = None
        self._lay_out_later()

    def set_thumbnails(
        self,
        peaks: NDArray[np.uint8],
        visible: NDArray[np.bool_],
        changed_rows: tuple[int, int] | None = None,
        first_key: NDArray[np.uint8] | None = None,
    ) -> None:
        """Show peaks [L, H, R, B]: round(255 · sqrt(weight)) of the largest cell of each bin.

        `visible` [R, B], or [L, R, B] where layers differ, says in which bins the mask lets any
        cell through; a bin that it does not is drawn as masked, unless it holds a weight all the
        same. `changed_rows` (first, after last) promises that all other rows are as they were,
        values and mask; None promises nothing. `first_key` [L, H, R] are the peaks of the
        first key, where they are not among the others. The arrays are kept, not copied.

        Raises:
            ValueError: the shapes do not fit each other or the grid.
        """
        grid = (self._n_layer, self._n_head)
        wanted = peaks.shape[2:] if visible.ndim == 2 else (self._n_layer, *peaks.shape[2:])
        if peaks.ndim != 4 or peaks.shape[:2] != grid or wanted != visible.shape:
            raise ValueError(
                f"thumbnails {peaks.shape} must be {grid} × the bins of visible {visible.shape}."
            )
        is_step = changed_rows is not None and peaks.shape == self._peaks.shape
        self._peaks, self._first_key = peaks, first_key
        self._seen = visible.astype(np.uint8)
        if changed_rows is None or not is_step or self._changed is None or self._sentence:
            self._sentence = ""
            self._recolour()
            return
        first, last = self._changed
        self._changed = changed_rows
        if first != last:
            self._changed = min(first, changed_rows[0]), max(last, changed_rows[1])
        self.viewport().update(self._bands(*changed_rows))

    def set_order(self, order: Sequence[Head] | None, dimmed: Collection[Head] = ()) -> None:
        """Show the heads one after another in an order, or None for the natural grid.

        The filtered ones stay in their places, dimmed.
        """
        new = None if order is None else tuple(order)
        if new != self._order:
            self._order = new
            self._lay_out_later()
        if frozenset(dimmed) != self._dimmed:
            self._dimmed = frozenset(dimmed)
            self._recolour()

    def set_captions(self, captions: Mapping[Head, str]) -> None:
        """Give heads a short text: under them when sorted, beside their name when hovered."""
        if dict(captions) != self._captions:
            self._captions = dict(captions)
            if self._order is not None:
                self._lay_out_later()
            self.viewport().update()

    def set_off(self, heads: Collection[Head]) -> None:
        """Cross out the heads that are switched off."""
        if frozenset(heads) != self._off:
            self._off = frozenset(heads)
            self.viewport().update()

    def set_tiles(self, tiles: Tiles | None) -> None:
        """Show a shade for each head in place of its thumbnail, or the thumbnails again."""
        if tiles is not self._tiles:
            self._tiles = tiles
            self.viewport().update()

    def set_scale(self, tones: NDArray[np.uint32]) -> None:
        """Take the colour of each value [256], as `scales.tone_table` makes them."""
        self._tones = tones
        self._recolour()

    def set_selected(self, layer: int, head: int) -> None:
        """Frame a head and scroll to it."""
        if (layer, head) != self._selected:
            self._selected = (layer, head)
            self._prepare()
            self._scroll_to(self._selected)
            self.viewport().update()

    def set_empty(self, sentence: str) -> None:
        """Show a sentence instead of heads."""
        self._sentence = sentence
        self.viewport().update()

    def head_rect(self, layer: int, head: int) -> QRectF | None:
        """Where a head's thumbnail is, in the viewport's logical pixels; None if not shown."""
        self._prepare()
        at = self._place_of((layer, head))
        if at is None or self._layout is None:
            return None
        x, y = self._layout.corner(at)
        side = self._layout.box / self._canvas.ratio
        return QRectF(
            x / self._canvas.ratio - self.horizontalScrollBar().value(),
            y / self._canvas.ratio - self.verticalScrollBar().value(),
            side,
            side,
        )

    def head_at(self, place: QPointF) -> Head | None:
        """Layer and head at a logical pixel of the viewport; None where there is none."""
        self._prepare()
        if self._layout is None or self._sentence:
            return None
        ratio = self._canvas.ratio
        at = self._layout.box_at(
            (place.x() + self.horizontalScrollBar().value()) * ratio,
            (place.y() + self.verticalScrollBar().value()) * ratio,
        )
        return None if at is None else self._head_of(at)

    @property
    def pointed_head(self) -> Head | None:
        """The head under the pointer."""
        return self._hovered

    def sizeHint(self) -> QSize:
        """Room for a dozen layers and heads."""
        return QSize(32, 32) * self._theme.font_axis

    def minimumSizeHint(self) -> QSize:
        """Small enough for any dock; it scrolls then."""
        return QSize(12, 10) * self._theme.font_axis

    # order

    @property
    def _count(self) -> int:
        return self._n_layer * self._n_head if self._order is None else len(self._order)

    def _head_of(self, at: int) -> Head:
        return divmod(at, self._n_head) if self._order is None else self._order[at]

    def _place_of(self, head: Head) -> int | None:
        if self._order is not None:
            return self._order.index(head) if head in self._order else None
        layer, column = head
        is_there = 0 <= layer < self._n_layer and 0 <= column < self._n_head
        return layer * self._n_head + column if is_there else None

    # layout

    def _lay_out_later(self) -> None:
        self._is_laid_out = False
        self._changed = None
        self.viewport().update()

    def _recolour(self) -> None:
        self._changed = None
        self.viewport().update()

    def _prepare(self) -> None:
        """Bring layout, canvas and colours up to date."""
        if not self._is_laid_out or self._canvas.ratio != self.devicePixelRatioF():
            self._lay_out()
        if self._layout is not None and self._peaks.size and self._changed != (0, 0):
            self._paint_heads()
            self._changed = (0, 0)

    def _lay_out(self) -> None:
        ratio = self.devicePixelRatioF()
        self._is_laid_out = True
        self._changed = None
        size = self.maximumViewportSize()
        layout = self._fitted(size, ratio) if self._count else None
        if layout is not None and layout.height > round(size.height() * ratio):
            bar = self.verticalScrollBar().sizeHint().width()
            layout = self._fitted(QSize(size.width() - bar, size.height()), ratio)
        self._layout = layout
        width = layout.width if layout else round(size.width() * ratio)
        height = layout.height if layout else round(size.height() * ratio)
        if not self._canvas.fits(width, height, ratio):
            self._canvas = Canvas(width, height, ratio)
        self._set_scroll_ranges(size, QSize(round(width / ratio), round(height / ratio)))
        self._canvas.pixels.fill(packed(self._theme.surface))
        if layout is not None:
            self._hatching = np.ascontiguousarray(
                strokes(
                    layout.box,
                    layout.box,
                    round((hatch_period(self._theme) - 1) * ratio),
                    max(1, round(ratio)),
                )
            )
            with QPainter(self._canvas.image) as painter:
                self._draw_places(painter, layout)
                self._draw_letters(painter, layout)

    def _fitted(self, size: QSize, ratio: float) -> AtlasLayout:
        theme, axis = self._theme, self._axis
        width, height = round(size.width() * ratio), round(size.height() * ratio)
        smallest, under = round(SMALLEST * ratio), round(axis.line * ratio)

        def room(gap: int) -> Room:
            left = axis.width(f"L{self._n_layer - 1}") + theme.unit
            return Room(width, height, round(left * ratio), round(axis.line * ratio), gap, smallest)

        def fitted(gap: int) -> AtlasLayout:
            if self._order is None:
                return AtlasLayout.grid(self._n_layer, self._n_head, room(gap))
            bare, full = (
                AtlasLayout.sorted(self._count, (round(wide * ratio), under), room(gap))
                for wide in self._caption_widths()
            )
            is_worth = full.box >= _WORTH * bare.box and bare.height >= _WORTH * full.height
            return full if is_worth else bare

        wide = fitted(round(1.5 * theme.unit * ratio))
        return wide if wide.box >= _ROOMY * ratio else fitted(max(2, round(3 * ratio)))

    def _caption_widths(self) -> tuple[float, float]:
        """Logical pixels of the widest name alone, and with its caption."""
        name = self._axis.width(f"L{self._n_layer - 1} H{self._n_head - 1}")
        captions = [f"  {text}" for text in self._captions.values()]
        return name + 2, name + self._axis.widest(captions) + 4

    def _set_scroll_ranges(self, shown: QSize, whole: QSize) -> None:
        down, across = self.verticalScrollBar(), self.horizontalScrollBar()
        is_tall, is_wide = whole.height() > shown.height(), whole.width() > shown.width()
        page = shown - QSize(
            down.sizeHint().width() if is_tall else 0,
            across.sizeHint().height() if is_wide else 0,
        )
        for bar, length, visible, is_needed in (
            (down, whole.height(), page.height(), is_tall),
            (across, whole.width(), page.width(), is_wide and whole.width() > page.width()),
        ):
            bar.setRange(0, max(0, length - visible) if is_needed else 0)
            bar.setPageStep(visible)
            bar.setSingleStep(self._axis.line)

    def _scroll_to(self, head: Head) -> None:
        place = self.head_rect(*head)
        if place is None:
            return
        margin = 2 * self._theme.unit
        for bar, low, high, length in (
            (self.verticalScrollBar(), place.top(), place.bottom(), self.viewport().height()),
            (self.horizontalScrollBar(), place.left(), place.right(), self.viewport().width()),
        ):
            if low < margin:
                bar.setValue(round(bar.value() + low - margin))
            elif high > length - margin:
                bar.setValue(round(bar.value() + high - length + margin))

    # what stays

    def _draw_places(self, painter: QPainter, layout: AtlasLayout) -> None:
        """A hairline around each box, so that white weights do not melt into white paper."""
        ratio = self._canvas.ratio
        painter.setPen(QColor(self._theme.line))
        pixel = 1 / ratio
        for at in range(layout.count):
            x, y = layout.corner(at)
            side = layout.box / ratio
            place = QRectF(x / ratio, y / ratio, side, side).adjusted(-pixel, -pixel, pixel, pixel)
            painter.fillRect(place, QColor(self._theme.line))

    def _draw_letters(self, painter: QPainter, layout: AtlasLayout) -> None:
        if self._order is None:
            self._draw_edges(painter, layout)
        else:
            self._draw_captions(painter, layout)

    def _draw_sharp(self, painter: QPainter, layout: AtlasLayout) -> None:
        """Draw only the thumbnails as pixels, for a device on which letters can stay sharp."""
        shown = self._canvas
        self._canvas = Canvas(shown.image.width(), shown.image.height(), shown.ratio)
        self._canvas.pixels.fill(packed(self._theme.surface))
        with QPainter(self._canvas.image) as pixels:
            self._draw_places(pixels, layout)
        self._changed = None
        self._paint_heads()
        self._changed = (0, 0)
        painter.save()
        painter.translate(self._moved())
        painter.drawImage(0, 0, self._canvas.image)
        self._canvas = shown
        self._draw_letters(painter, layout)
        painter.restore()

    def _draw_edges(self, painter: QPainter, layout: AtlasLayout) -> None:
        axis, ratio = self._axis, self._canvas.ratio
        painter.setPen(QColor(self._theme.text))
        box, line = layout.box / ratio, axis.line
        widest = axis.width(f"H{self._n_head - 1}") + self._theme.unit
        x, y = layout.corner(0)
        for layer in range(0, self._n_layer, every(layout.step_y / ratio, line)):
            middle = layout.corner(layer * self._n_head)[1] / ratio + box / 2
            place = QRectF(0, middle - line / 2, x / ratio - self._theme.unit, line)
            axis.draw(painter, place, f"L{layer}", RIGHT)
        for head in range(0, self._n_head, every(layout.step_x / ratio, widest)):
            middle = layout.corner(head)[0] / ratio + box / 2
            place = QRectF(middle - widest / 2, y / ratio - line - 1, widest, line)
            axis.draw(painter, place, f"H{head}", CENTRE)

    def _draw_captions(self, painter: QPainter, layout: AtlasLayout) -> None:
        axis, ratio = self._axis, self._canvas.ratio
        box, step = layout.box / ratio, layout.step_x / ratio
        painter.setPen(QColor(self._theme.text))
        for at in range(layout.count):
            layer, head = self._head_of(at)
            x, y = layout.corner(at)
            place = QRectF(x / ratio + (box - step) / 2, y / ratio + box, step, axis.line)
            text = f"L{layer} H{head}"
            more = self._captions.get((layer, head))
            if more and axis.width(f"{text}  {more}") <= step:
                text = f"{text}  {more}"
            axis.draw(painter, place, text, CENTRE)

    # the heads' pixels

    def _bands(self, first: int, last: int) -> QRegion:
        """Where in the viewport some rows of bins of all heads are."""
        layout, ratio, region = self._layout, self._canvas.ratio, QRegion()
        if layout is None:
            return region
        top, bottom = _pixels_that_show(self._spans(layout)[0], first, last)
        moved, wide = self._moved(), ceil(layout.width / ratio)
        lines = [layout.top + line * layout.step_y for line in range(layout.rows)]
        edges = [(floor((at + top) / ratio), ceil((at + bottom) / ratio)) for at in lines]
        x, y = moved.x(), moved.y()
        for first_line, last_line in edges:
            region += QRect(x, y + first_line, wide, last_line - first_line)
        return region

    def _moved(self) -> QPoint:
        return QPoint(-self.horizontalScrollBar().value(), -self.verticalScrollBar().value())

    def _paint_heads(self) -> None:
        layout = self._layout
        if layout is None:
            return
        rows, columns = self._spans(layout)
        first, last = self._changed or (0, self._seen.shape[-2])
        top, bottom = _pixels_that_show(rows, first, last)
        if top == bottom:
            return
        low, high = int(rows.start[top]), int(rows.stop[bottom - 1])
        peaks = self._peaks[:, :, low:high]
        if self._first_key is not None:
            peaks = _with_first(peaks, self._first_key[:, :, low:high])
        peaks = peaks.reshape(-1, high - low, peaks.shape[3])
        seen = self._seen[..., low:high, :]
        if seen.ndim == 3:
            seen = seen.repeat(self._n_head, axis=0)
        if self._order is not None:
            places = [layer * self._n_head + head for layer, head in self._order]
            peaks = peaks[places]
            seen = seen[places] if seen.ndim == 3 else seen
        shown = np.maximum(peaks, seen)  # visible: at least 1
        part = rows.part(top, bottom)
        index = pool(shown, Spans(part.start - low, part.stop - low), columns)
        self._fill(layout, top, bottom, self._coloured(index, top, bottom))

    def _spans(self, layout: AtlasLayout) -> tuple[Spans, Spans]:
        n_rows, n_columns = self._peaks.shape[2:]
        cell = layout.box / max(n_rows, n_columns)
        high, wide = round(cell * n_rows), round(cell * n_columns)
        return spans(n_rows, cell, 0, high), spans(n_columns, cell, 0, wide)

    def _coloured(self, index: NDArray[np.uint8], top: int, bottom: int) -> NDArray[np.uint32]:
        """The colours of pixels [heads, bottom - top, width]."""
        tones = self._current_tones()
        hatch = packed(self._theme.hatch)
        hatching = self._hatching[top:bottom, : index.shape[2]]
        colours = hatched(tones, hatch).take(hatching + index)
        if self._dimmed:
            dimmed = [at for at in range(self._count) if self._head_of(at) in self._dimmed]
            colours[dimmed] = _faded(tones, packed(self._theme.surface)).take(index[dimmed])
        return colours

    def _fill(
        self, layout: AtlasLayout, top: int, bottom: int, colours: NDArray[np.uint32]
    ) -> None:
        """Write lines of pixels of all heads into the canvas."""
        pixels = self._canvas.pixels
        down, across = pixels.strides
        width = colours.shape[2]
        full = layout.count // layout.columns
        for first_row, n_rows, n_columns in (
            (0, full, layout.columns),
            (full, 1, layout.count - full * layout.columns),
        ):
            if not n_rows * n_columns:
                continue
            start = first_row * layout.columns
            y = layout.top + first_row * layout.step_y + top
            boxes = np.lib.stride_tricks.as_strided(
                pixels[y:, layout.left :],
                (n_rows, n_columns, bottom - top, width),
                (layout.step_y * down, layout.step_x * across, down, across),
            )
            boxes[:] = colours[start : start + n_rows * n_columns].reshape(boxes.shape)

    def _current_tones(self) -> NDArray[np.uint32]:
        if self._tones is None:
            theme = self._theme
            self._tones = tone_table(
                lookup_table(theme.weights_map), "linear", packed(theme.masked)
            )
        return self._tones

    def _take_theme(self, theme: Theme) -> None:
        self._theme = theme
        self._axis = Lettering(self.font(), theme.font_axis)
        self._body = Lettering(self.font(), theme.font_body)
        self._hatching = strokes(1, 1, 1, 1)

    # Qt's

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Copy the canvas, then frame what is selected and hovered."""
        self._prepare()
        theme = self._theme
        with QPainter(self.viewport()) as painter:
            if self._sentence or not self._peaks.size:
                self._draw_sentence(painter)
                return
            if self._layout is not None and keeps_lines(painter):
                self._draw_sharp(painter, self._layout)
            else:
                painter.drawImage(self._moved(), self._canvas.image)
            self._draw_over(painter)
            if self._is_stale:
                painter.fillRect(self.viewport().rect(), veil(theme))
            if self._hovered is not None:
                self._draw_frame(painter, self._hovered, theme.text, theme.stroke)
            if self._selected is not None:
                self._draw_frame(painter, self._selected, theme.accent, 1.6 * theme.stroke)
            if self._hovered is not None:
                self._draw_name(painter, self._hovered)
            if self.hasFocus():
                painter.setPen(QColor(theme.accent))
                painter.drawRect(self.viewport().rect().adjusted(0, 0, -1, -1))

    def _draw_over(self, painter: QPainter) -> None:
        """Shades in place of thumbnails, and crosses on heads that are off."""
        every_head = range(self._count) if self._tiles is not None else ()
        for head in map(self._head_of, every_head):
            place = self.head_rect(*head)
            if place is not None and self._tiles is not None:
                draw_tile(painter, place, self._tiles, head, self._theme, self._axis)
        for head in self._off:
            place = self.head_rect(*head)
            if place is not None:
                draw_off(painter, place, self._theme)

    def _draw_sentence(self, painter: QPainter) -> None:
        theme = self._theme
        place = self.viewport().rect()
        painter.fillRect(place, QColor(theme.surface))
        painter.setPen(QColor(theme.text_dim))
        room = QRectF(place).adjusted(*(4 * theme.unit * side for side in (1, 1, -1, -1)))
        self._body.draw_in_middle(painter, room, self._sentence)

    def _draw_frame(self, painter: QPainter, head: Head, colour: str, width: float) -> None:
        place = self.head_rect(*head)
        if place is None:
            return
        out = width / 2
        pen = painter.pen()
        pen.setColor(QColor(colour))
        pen.setWidthF(width)
        pen.setJoinStyle(Qt.PenJoinStyle.MiterJoin)
        painter.setPen(pen)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRect(place.adjusted(-out, -out, out, out))

    def _name(self, head: Head) -> tuple[QRectF, str]:
        """The label of a hovered head, beside its thumbnail."""
        text = f"layer {head[0]}, head {head[1]}"
        if more := self._captions.get(head):
            text = f"{text}: {more}"
        unit, view = self._theme.unit, QRectF(self.viewport().rect())
        place = self.head_rect(*head) or QRectF()
        wide = min(ceil(self._body.width(text)) + 3 * unit + 2, view.width())
        box = QRectF(place.left(), place.bottom() + unit, wide, self._body.line + unit)
        if box.bottom() > view.bottom():
            box.moveBottom(place.top() - unit)
        if box.right() > view.right():
            box.moveRight(view.right())
        return box, text

    def _draw_name(self, painter: QPainter, head: Head) -> None:
        theme = self._theme
        box, text = self._name(head)
        painter.fillRect(box, QColor(theme.text))
        painter.setPen(QColor(theme.surface))
        inner = box.adjusted(1.5 * theme.unit, 0, -1.5 * theme.unit, 0)
        self._body.draw(painter, inner, text, LEFT)

    def _hover(self, head: Head | None) -> None:
        if head == self._hovered:
            return
        region = QRegion()
        for one in (self._hovered, head):
            if one is not None and (place := self.head_rect(*one)) is not None:
                halo = self._theme.stroke + 2
                region += place.adjusted(-halo, -halo, halo, halo).toAlignedRect()
                region += self._name(one)[0].toAlignedRect()
        self._hovered = head
        self.show_hand(can_click=head is not None)
        self.viewport().update(region)
        if head is None:
            self.hover_left.emit()
        else:
            self.head_hovered.emit(*head)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Lay the thumbnails out anew."""
        self._lay_out_later()
        super().resizeEvent(event)

    def changeEvent(self, event: QEvent) -> None:
        """Follow the application's font."""
        if event.type() == QEvent.Type.FontChange:
            self._take_theme(self._theme)
            self._lay_out_later()
        super().changeEvent(event)

    def viewportEvent(self, event: QEvent) -> bool:
        """Nothing is hovered once the pointer has left."""
        if event.type() == QEvent.Type.Leave:
            self._hover(None)
        return super().viewportEvent(event)

    def scrollContentsBy(self, _dx: int, _dy: int) -> None:
        """Draw the other part."""
        self.viewport().update()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Name the head under the pointer."""
        self._hover(self.head_at(event.position()))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Choose the head under the pointer."""
        head = self.head_at(event.position())
        if event.button() == Qt.MouseButton.LeftButton and head is not None:
            self.head_clicked.emit(*head)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """The press was the choice."""
        event.accept()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Ask for the head beside the selected one, in the order shown."""
        at = self._place_of(self._selected) if self._selected is not None else None
        self._prepare()
        columns = self._layout.columns if self._layout else 1
        moves = {
            Qt.Key.Key_Left: -1,
            Qt.Key.Key_Right: 1,
            Qt.Key.Key_Up: -columns,
            Qt.Key.Key_Down: columns,
        }
        if at is None or self._selected is None or Qt.Key(event.key()) not in moves:
            event.ignore()
            return
        to = at + moves[Qt.Key(event.key())]
        is_row_end = (
            self._order is None
            and abs(moves[Qt.Key(event.key())]) == 1
            and (to // columns != at // columns)
        )
        if 0 <= to < self._count and not is_row_end:
            down, across = divmod(to, columns)[0] - at // columns, to % columns - at % columns
            moved = (down, across) if self._order is None else (0, to - at)
            self.head_move_requested.emit(*moved)


def _pixels_that_show(rows: Spans, first: int, last: int) -> tuple[int, int]:
    """First and after the last pixel of a box that shows any of some rows of bins."""
    within = np.flatnonzero((rows.stop > first) & (rows.start < last))
    return (int(within[0]), int(within[-1]) + 1) if len(within) else (0, 0)


def _with_first(peaks: NDArray[np.uint8], first: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Peaks [L, H, rows, B] with the first key's put back into its bin."""
    whole = peaks.copy()
    np.maximum(whole[..., 0], first, out=whole[..., 0])
    return whole


def _faded(tones: NDArray[np.uint32], paper: int) -> NDArray[np.uint32]:
    """Colours most of the way to the paper's."""
    channels = tones.view(np.uint8).reshape(-1, 4).astype(np.float32)
    ground = np.array([paper], np.uint32).view(np.uint8).astype(np.float32)
    mixed = channels + (ground - channels) * np.float32(_DIMMED)
    return np.ascontiguousarray(mixed.round().astype(np.uint8)).view(np.uint32).ravel()
