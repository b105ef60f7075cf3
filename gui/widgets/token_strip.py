"""The strip of tokens: what the model really reads, one chip a token, from left to right.

A position counts from the first token that the model sees, as in the engine's records; tokens
that have fallen out stand before it and have none.
"""

import html
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PySide6.QtCore import QEvent, QPointF, QRect, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import (
    QColor,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPalette,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import QToolTip, QWidget

from gui.theme import LIGHT, Theme
from gui.widgets.agreement import agreeing
from gui.widgets.chips import ChipFonts, Label, Look, hatching
from gui.widgets.position_states import PositionStates
from gui.widgets.scrolled_picture import ScrolledPicture
from gui.widgets.strip_layer import Face, StripLayer, draw_pass_mark
from gui.widgets.token_flow import TokenFlow
from gui.widgets.token_text import begun_character, describe, display, joined_to_previous, speak
from gui.words.quantities import counted

BEFORE_TEXT = "put before the text, as the model expects it; it spells nothing of it"
EMPTY = "No tokens yet: what you write in the prompt stands here, cut into tokens."
_FLASH_MS, _FLASH_STEPS = 200, 4
_ROWS_AT_FIRST = 3

# How far from its row's begin, token, ground, whether it is seen, is the query, how brightly lit,
# whether it is marked.
_Chip = tuple[int, bytes, int, bool, bool, float, bool]


class TokenStrip(ScrolledPicture):
    """Owns the chips on screen: where they stand, what state each is drawn in.

    Signals:
        position_clicked: the user wants this position to be the query (mouse or arrow keys).
        position_hovered: the mouse is over this position.
        hover_left: the mouse is over none any more.
    """

    position_clicked = Signal(int)
    position_hovered = Signal(int)
    hover_left = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._tokens: list[bytes] = []
        self._ids: Sequence[int] = ()
        self._joined: list[bool] = []
        self._widths: NDArray[np.int64] = np.zeros(0, np.int64)
        self._n_fallen_out = 0
        self._limit = 0
        self._flow = TokenFlow()
        self._query: int | None = None
        self._key: int | None = None
        self._states = PositionStates()
        self._n_thrown = 0  # rows of the cache, by the latest pass
        self._flash_left = 0
        self._has_motion = True
        self._hovered: int | None = None  # a place among all tokens
        self._flash = QTimer(self)
        self._flash.setInterval(_FLASH_MS // _FLASH_STEPS)
        self._flash.timeout.connect(self._fade)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.viewport().setMouseTracking(True)
        self.setAccessibleName("Tokens")
        self.set_theme(LIGHT)

    # What is shown

    def set_theme(self, theme: Theme) -> None:
        """Take on a theme's colours and sizes."""
        self._fonts = ChipFonts(self.font(), theme)
        self._layer = StripLayer(self._fonts, theme)
        self._rows: dict[int, tuple[object, dict[_Chip, Face]]] = {}  # with what they depend on
        self._theme = theme
        text_dim = QColor(theme.text_dim)
        self._key_colour = QColor(theme.key)
        self._query_frame = QPen(QColor(theme.accent), 1.5 * theme.stroke)
        self._key_frame = QPen(self._key_colour, 1.5 * theme.stroke, Qt.PenStyle.DashLine)
        self._hover_frame = QPen(text_dim, 1)
        palette = self.palette()
        palette.setColor(QPalette.ColorRole.Base, QColor(theme.surface))
        self.setPalette(palette)
        self.viewport().setPalette(palette)  # it does not follow once a style sheet was in force
        self._measure(0)
        self._lay_out(0)
        self._reveal(self._place(self._query))
        self.updateGeometry()

    def set_tokens(
        self, tokens: Sequence[bytes], ids: Sequence[int], n_fallen_out: int = 0, limit: int = 0
    ) -> None:
        """Show these tokens; what is equal from the first token on costs next to nothing.

        Args:
            tokens: [n] the bytes of each token of the whole text.
            ids: [n] their ids.
            n_fallen_out: how many of the first the model no longer sees.
            limit: how many it sees at most; said when some have fallen out.
        """
        new, old, band = list(tokens), self._tokens, self._band()
        first = agreeing(old, new)
        has_grown = len(new) > first
        self._tokens, self._ids = new, ids
        self._n_fallen_out, self._limit = n_fallen_out, limit
        if (first, len(new)) != (len(old), len(old)):
            start = max(first - 3, 0)  # a character may reach three bytes back
            while start > 0 and self._joined[start]:
                start -= 1
            self._joined = self._joined[:start] + joined_to_previous(new[start:])
            self._measure(start)
            if self._hovered is not None and self._hovered >= len(new):
                self._hovered = None
            self._lay_out(start)
            self._reveal(len(new) - 1 if has_grown and first == len(old) else first)
        elif band != self._band():
            self._lay_out(len(new))
        self._say()
        self.viewport().update()

    def set_losses(
        self, losses: ArrayLike | None, *, ceiling: float = 8.0, coloured: bool = True
    ) -> None:
        """Colour the chips by loss [S] in nats from 0 to `ceiling`; NaN is none, None is off."""
        self._states.losses = None if losses is None else np.asarray(losses, np.float32)
        self._states.has_loss_colours = coloured
        self._states.loss_ceiling = ceiling
        self.viewport().update()

    def set_recomputed(self, start: int, stop: int) -> None:
        """Flash the positions that a pass computed; the reused ones keep calm."""
        self._states.recomputed = range(start, stop)
        self._set_flash(_FLASH_STEPS if self._has_motion and stop > start else 0)
        self.viewport().update()
        if self._flash_left:
            self._flash.start()

    def set_pass(self, computed: range, n_thrown: int, *, marked: bool) -> None:
        """Note which positions the latest pass computed, and how many rows it threw away.

        Where they are `marked`, they stay so until the next pass, and a legend stands above.
        """
        band, states = self._band(), self._states
        if (computed, n_thrown, marked) == (states.computed, self._n_thrown, states.has_pass_marks):
            return
        states.computed, states.has_pass_marks, self._n_thrown = computed, marked, n_thrown
        if band != self._band():
            self._lay_out(len(self._tokens))
            self._reveal(self._place(self._query))
        self._say()
        self.viewport().update()

    def set_motion(self, has_motion: bool) -> None:  # noqa: FBT001 - a Qt setter
        """Whether the strip may flash."""
        self._has_motion = has_motion
        if not has_motion and self._flash_left:
            self._set_flash(0)
            self._flash.stop()
            self.viewport().update()

    def set_selected(self, query: int | None, key: int | None = None) -> None:
        """Frame the position that looks, and the one of the cell that is looked into."""
        if (query, key) == (self._query, self._key):
            return
        has_moved = query != self._query
        self._query, self._key = query, key
        if has_moved:
            self._reveal(self._place(query))
        self._say()
        self.viewport().update()

    def set_row(self, weights: ArrayLike | None, visible: ArrayLike | None = None) -> None:
        """Stand a bar on each key as high as its weight, and dim what the query may not see.

        Args:
            weights: [S] one row of a head's pattern, 0 to 1; None for no bars.
            visible: [S] whether the mask lets the query see it; what lies behind S is not seen.
        """
        self._states.weights = None if weights is None else np.asarray(weights, np.float32)
        self._states.visible = None if visible is None else np.asarray(visible, np.bool_)
        self.viewport().update()

    def set_generated_from(self, position: int | None) -> None:
        """Mark the tokens from this position on as written by the model."""
        self._states.generated_from = position
        self.viewport().update()

    def set_prefix(self, n_tokens: int) -> None:
        """Mark so many of the first positions as put before the text."""
        if n_tokens != self._states.n_prefix:
            self._states.n_prefix = n_tokens
            self._say()
            self.viewport().update()

    # Where things are

    def rect_of(self, position: int) -> QRect:
        """Where the chip of a position stands in the viewport; may be scrolled out of it."""
        return self._rect(position + self._n_fallen_out).toRect()

    @property
    def pointed_position(self) -> int | None:
        """The position under the mouse, else the query's; None over what has fallen out."""
        place = self._place(self._query) if self._hovered is None else self._hovered
        at = -1 if place is None else place - self._n_fallen_out
        return at if at >= 0 else None

    def is_flashing(self) -> bool:
        """Whether recomputed chips are lit at this moment."""
        return self._flash_left > 0

    def sizeHint(self) -> QSize:
        """Three rows."""
        return QSize(600, self.height_of(_ROWS_AT_FIRST))

    def minimumSizeHint(self) -> QSize:
        """One row."""
        return QSize(40 * self._theme.unit, self.height_of(1))

    def height_of(self, rows: int) -> int:
        """Logical pixels that so many rows need, with the legend if there is one."""
        return rows * self._fonts.row + 2 * self._margin() + self._band()

    def _margin(self) -> int:
        return 2 * self._theme.unit

    def _band(self) -> int:
        """Height of the legend: what has fallen out, and what the latest pass did."""
        is_there = self._n_fallen_out or (self._states.has_pass_marks and self._tokens)
        return self._fonts.lane + self._theme.unit if is_there else 0

    def _place(self, position: int | None) -> int | None:
        if position is None or not 0 <= position < len(self._tokens) - self._n_fallen_out:
            return None
        return position + self._n_fallen_out

    def _top(self, row: int) -> int:
        top = self._band() + self._margin() + row * self._fonts.row
        return top - self.verticalScrollBar().value()

    def _rect(self, place: int) -> QRectF:
        top = self._top(self._flow.row_of(place)) + self._fonts.lane
        x = self._margin() + self._flow.x(place)
        return QRectF(x, top, int(self._flow.widths[place]), self._fonts.chip)

    def _place_at(self, point: QPointF) -> int | None:
        if not self._tokens or point.y() < self._band():
            return None
        row = int((point.y() - self._top(0)) // self._fonts.row)
        if not 0 <= row < len(self._flow):
            return None
        place = self._flow.nearest(row, point.x() - self._margin())
        half = self._fonts.gap / 2
        rect = self._rect(place).adjusted(-half, 0, half, 0)
        return place if rect.left() <= point.x() < rect.right() else None

    # Laying out

    def _measure(self, start: int) -> None:
        fonts = self._fonts
        fresh = np.fromiter(
            (fonts.label(token).width for token in self._tokens[start:]),
            np.int64,
            len(self._tokens) - start,
        )
        self._widths = np.concatenate((self._widths[:start], fresh))
        for place in np.flatnonzero(self._joined[start:]) + start:
            self._widths[place - 1] = self._label(int(place) - 1).width

    def _label(self, place: int) -> Label:
        goes_on = place + 1 < len(self._joined) and self._joined[place + 1]
        begun = begun_character(self._tokens, place) if goes_on else ""
        return self._fonts.label(self._tokens[place], begun)

    def _character(self, place: int) -> str:
        """The text that this token spells together with those joined to it; "" if alone."""
        start, stop = place, place + 1
        while self._joined[start]:
            start -= 1
        while stop < len(self._joined) and self._joined[stop]:
            stop += 1
        return display(b"".join(self._tokens[start:stop]), 4) if stop - start > 1 else ""

    def _lay_out(self, first_changed: int) -> None:
        width = max(self.viewport().width() - 2 * self._margin(), 1)
        joined = np.array(self._joined, np.bool_)
        self._flow.lay_out(
            self._widths, joined, width, self._fonts.gap, first_changed=first_changed
        )
        bar, height = self.verticalScrollBar(), self.viewport().height()
        beyond = self.height_of(len(self._flow)) - height
        bar.setRange(0, _whole_rows(max(beyond, 0), self._fonts.row))
        bar.setPageStep(max(height // self._fonts.row, 1) * self._fonts.row)
        bar.setSingleStep(self._fonts.row)

    def _reveal(self, place: int | None) -> None:
        if place is None or not 0 <= place < len(self._tokens):
            return
        bar = self.verticalScrollBar()
        top = self._flow.row_of(place) * self._fonts.row
        room = self.viewport().height() - self._band() - 2 * self._margin()
        lowest = _whole_rows(top + self._fonts.row - max(room, self._fonts.row), self._fonts.row)
        bar.setValue(min(max(bar.value(), lowest), top))

    def _say(self) -> None:
        if not self._tokens:
            self.setAccessibleDescription(EMPTY)
            return
        said = [f"{counted(len(self._tokens), 'token')}."]
        if self._n_fallen_out:
            said.append(f"{self._fallen_sentence()}.")
        if self._states.has_pass_marks:
            said.append(self._pass_sentence())
        if self._states.n_prefix:
            said.append(f"Position 0 was {BEFORE_TEXT}.")
        for name, position in (("query", self._query), ("key", self._key)):
            place = self._place(position)
            if place is not None:
                said.append(f"The {name} is position {position}: {speak(self._tokens[place])}.")
        self.setAccessibleDescription(" ".join(said))

    def _pass_counts(self) -> tuple[int, int]:
        """How many positions on screen the latest pass computed, and how many it kept."""
        seen = range(len(self._tokens) - self._n_fallen_out)
        computed = self._states.computed or range(0)
        n_computed = len(seen[computed.start : computed.stop])
        return n_computed, len(seen) - n_computed

    def _pass_sentence(self) -> str:
        n_computed, n_kept = self._pass_counts()
        computed = self._states.computed or range(0)
        which = f": positions {computed.start} to {computed.start + n_computed - 1}"
        which = f": position {computed.start}" if n_computed == 1 else which if n_computed else ""
        thrown = f", and threw {self._n_thrown:,} rows away" if self._n_thrown else ""
        return f"The latest pass kept {n_kept:,} rows and computed {n_computed:,}{which}{thrown}."

    def _fallen_sentence(self) -> str:
        return f"{self._n_fallen_out} {self._fallen_note()}"

    def _fallen_note(self) -> str:
        first, n_prefix = self._n_fallen_out, self._states.n_prefix
        before = "".join(display(token, 12) for token in self._tokens[first : first + n_prefix])
        named = f"{before} and " if before else ""
        return f"fallen out: the model sees {named}the last {self._limit - n_prefix} tokens"

    def _fade(self) -> None:
        """Grow dimmer, and paint no more again than the rows that are lit."""
        self._set_flash(self._flash_left - 1)
        lit = self._states.recomputed
        first, last = self._place(lit.start), self._place(lit.stop - 1)
        if first is None or last is None:
            self.viewport().update()
        else:
            top, bottom = (self._top(self._flow.row_of(place)) for place in (first, last))
            place = QRect(0, top, self.viewport().width(), bottom + self._fonts.row - top)
            self.viewport().update(place)
        if not self._flash_left:
            self._flash.stop()

    def _set_flash(self, steps_left: int) -> None:
        self._flash_left = max(steps_left, 0)
        self._states.flash = self._flash_left / _FLASH_STEPS

    # What the user does

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Set the chips anew for another width."""
        super().resizeEvent(event)
        self._lay_out(0 if event.size().width() != event.oldSize().width() else len(self._tokens))
        place = self._place(self._query)
        self._reveal(len(self._tokens) - 1 if place is None else place)

    def scrollContentsBy(self, dx: int, dy: int) -> None:  # noqa: ARG002 - Qt's signature
        """Paint anew: the line about fallen tokens does not scroll."""
        self.viewport().update()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """A click wishes for its position as the query."""
        place = self._place_at(event.position())
        if event.button() == Qt.MouseButton.LeftButton and place is not None:
            self._wish(place)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """The end of a click is the strip's too."""
        event.accept()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Tell which position the mouse is over."""
        self._hover(self._place_at(event.position()))

    def leaveEvent(self, event: QEvent) -> None:
        """The mouse is gone."""
        self._hover(None)
        super().leaveEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Arrow keys, Home and End wish for another position; other keys are not the strip's."""
        target = self._target(Qt.Key(event.key()))
        if target is None or event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier:
            event.ignore()
        else:
            self._wish(target)

    def viewportEvent(self, event: QEvent) -> bool:
        """Show what is known of the token under the mouse."""
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            place = self._place_at(QPointF(event.pos()))
            text = "" if place is None else self.describe_place(place)
            where = QRect() if place is None else self._rect(place).toRect()
            QToolTip.showText(event.globalPos(), _as_plain(text), self.viewport(), where)
            return True
        return super().viewportEvent(event)

    def describe_place(self, place: int) -> str:
        """All that is known of a token, fallen ones counted, as lines of plain text."""
        position = place - self._n_fallen_out
        notes = []
        if position < 0:
            notes.append(self._fallen_note())
        elif not self._states.may_be_seen(position):
            notes.append(f"the query at position {self._query} may not see it")
        elif self._states.weights is not None and position < len(self._states.weights):
            notes.append(f"weight {self._states.weights[position]!s}")
        if position >= 0 and self._states.computed is not None:
            is_new = position in self._states.computed
            notes.append(f"{'computed' if is_new else 'kept'} by the latest pass")
        if self._states.is_generated(position):
            notes.append("written by the model")
        if self._states.is_prefix(position):
            notes.append(BEFORE_TEXT)
        return describe(
            self._tokens[place],
            int(self._ids[place]),
            None if position < 0 else position,
            loss=self._states.loss(position),
            part_of=self._character(place),
            notes=notes,
        )

    def _target(self, key: Qt.Key) -> int | None:
        last = len(self._tokens) - 1
        if last < self._n_fallen_out:
            return None
        current = self._place(self._query)
        at = last if current is None else current
        row = self._flow.row_of(at)
        middle = self._flow.x(at) + int(self._flow.widths[at]) / 2
        moves = {
            Qt.Key.Key_Left: lambda: at - 1,
            Qt.Key.Key_Right: lambda: at + 1,
            Qt.Key.Key_Up: lambda: self._flow.nearest(row - 1, middle) if row else at,
            Qt.Key.Key_Down: lambda: (
                self._flow.nearest(row + 1, middle) if row + 1 < len(self._flow) else at
            ),
            Qt.Key.Key_Home: lambda: self._n_fallen_out,
            Qt.Key.Key_End: lambda: last,
        }
        if key not in moves:
            return None
        return min(max(moves[key](), self._n_fallen_out), last)

    def _wish(self, place: int) -> None:
        position = place - self._n_fallen_out
        if position >= 0:
            self.position_clicked.emit(position)

    def _hover(self, place: int | None) -> None:
        if place == self._hovered:
            return
        left, self._hovered = self._hovered, place
        for each in (left, place):
            if each is not None and each < len(self._tokens):
                self.viewport().update(self._rect(each).toRect().adjusted(-2, -2, 2, 2))
        self.show_hand(can_click=place is not None and place >= self._n_fallen_out)
        if place is not None and place >= self._n_fallen_out:
            self.position_hovered.emit(place - self._n_fallen_out)
        elif left is not None and left >= self._n_fallen_out:
            self.hover_left.emit()

    # Painting

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the rows in view."""
        with QPainter(self.viewport()) as painter:
            if not self._tokens:
                self._paint_sentence(painter, self.viewport().rect(), EMPTY)
            else:
                painter.setRenderHint(QPainter.RenderHint.Antialiasing)
                self._paint_chips(painter, event.rect())
                self._paint_band(painter)
            if self.hasFocus():
                painter.setRenderHint(QPainter.RenderHint.Antialiasing, on=False)
                painter.setPen(QColor(self._theme.accent))
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.drawRect(self.viewport().rect().adjusted(0, 0, -1, -1))

    def _paint_sentence(self, painter: QPainter, place: QRect, sentence: str) -> None:
        painter.setFont(self._fonts.body)
        painter.setPen(QColor(self._theme.text_dim))
        flags = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap
        margin = self._margin()
        painter.drawText(place.adjusted(margin, 0, -margin, 0), int(flags), sentence)

    def _paint_band(self, painter: QPainter) -> None:
        if not self._band():
            return
        unit, width = self._theme.unit, self.viewport().width()
        painter.fillRect(QRectF(0, 0, width, self._band()), QColor(self._theme.surface))
        x = float(self._margin())
        for colour, kind, text in self._legend():
            if kind != "words":
                swatch = QRectF(x, unit, 5 * unit, self._fonts.lane)
                painter.fillRect(swatch, QColor(colour))
                if kind == "hatched":
                    painter.fillRect(swatch, hatching(self._theme))
                if kind == "marked":
                    draw_pass_mark(painter, swatch, QColor(colour), self._theme)
                x = swatch.right() + 2 * unit
            shown = self._fonts.shortened(text, width - x - unit)
            painter.setFont(self._fonts.axis)
            painter.setPen(QColor(self._theme.text_dim))
            painter.drawText(QPointF(x, unit + self._fonts.axis_ascent), shown)
            x += self._fonts.axis_width(shown) + 4 * unit

    def _legend(self) -> list[tuple[str, str, str]]:
        """What the states of chips mean: a colour, how the swatch is drawn, and words."""
        theme, found = self._theme, []
        if self._states.has_pass_marks:
            n_computed, n_kept = self._pass_counts()
            has_losses = self._states.losses is not None and self._states.has_loss_colours
            colour = theme.raised if has_losses else theme.recomputed  # the ground is the loss's
            found.append((colour, "marked", f"computed {n_computed:,}"))
            found.append((theme.raised, "plain", f"kept {n_kept:,}"))
            if self._n_thrown:
                found.append(("", "words", f"thrown away {self._n_thrown:,}"))
        if self._n_fallen_out:
            found.append((theme.fallen, "hatched", self._fallen_sentence()))
        return found

    def _rows_in(self, clip: QRect) -> range:
        """The rows that a part of the viewport shows; none is cut at the top."""
        top = max(clip.top(), self._band() + self._margin())
        first = max((top - self._top(0)) // self._fonts.row, 0)
        last = (clip.bottom() - self._top(0)) // self._fonts.row
        return range(first, min(last + 1, len(self._flow)))

    def _faces_of(self, row: int) -> list[Face]:
        """What the chips of a row show, from left to right; the faces of the last time, if true."""
        start, stop = self._flow.row(row)
        top, states, n_fallen = self._top(row), self._states, self._n_fallen_out
        first, last = (max(place - n_fallen, 0) for place in (start, stop))
        n_quiet = (stop - start) - (last - first)  # fallen out
        fallen = QColor(self._theme.fallen).rgb()
        is_query, flash = [False] * (stop - start), [0.0] * (stop - start)
        query = self._place(self._query)
        if query is not None and start <= query < stop:
            is_query[query - start] = True
        for place in states.lit_within(first, last):
            flash[place + n_fallen - start] = states.flash
        marked = [states.is_marked(place - n_fallen) for place in range(start, stop)]
        grounds, seen = states.grounds(first, last, self._theme)
        chips = zip(
            self._flow.ahead(start, stop).tolist(),
            self._tokens[start:stop],
            [fallen] * n_quiet + grounds.tolist(),
            [False] * n_quiet + seen.tolist(),
            is_query,
            flash,
            marked,
            strict=True,
        )
        joined = self._joined[start : stop + 1]
        written = states.generated_from
        if written is not None and written >= last:
            written = None  # a keystroke moves the end of the prompt
        shared = (
            (top, start, n_fallen, written, states.n_prefix),
            any(joined) and (joined, self._tokens[start : stop + 3]),
        )
        known = self._rows.get(row, (None, {}))
        before = known[1] if known[0] == shared else {}
        faces = {
            chip: before.get(chip) or self._new_face(place, top, chip)
            for place, chip in enumerate(chips, start)
        }
        self._rows[row] = shared, faces
        return list(faces.values())

    def _new_face(self, place: int, top: int, chip: _Chip) -> Face:
        ahead, _token, ground, is_seen, is_query, flash, is_marked = chip
        position, states = place - self._n_fallen_out, self._states
        joins_previous = self._joined[place]
        joins_next = place + 1 < len(self._joined) and self._joined[place + 1]
        look = Look(
            states.lit(ground, self._theme) if flash else ground,
            is_quiet=not is_seen,
            is_hatched=position < 0,
            joins_previous=joins_previous,
            joins_next=joins_next,
        )
        label = self._label(place)
        number = None if position < 0 or is_query else position
        beside = 0 if joins_previous or joins_next else self._fonts.gap - 2
        if number is not None and self._layer.number_width(number) > label.width + beside:
            number = None  # it is in the tooltip only
        is_generated = position >= 0 and states.is_generated(position)
        is_prefix = states.is_prefix(position)
        x = self._margin() + ahead
        return Face(x, top, label, look, number, is_generated, flash > 0, is_prefix, is_marked)

    def _paint_chips(self, painter: QPainter, clip: QRect) -> None:
        viewport = self.viewport()
        rows = self._rows_in(viewport.rect())
        self._rows = {row: self._rows[row] for row in rows if row in self._rows}
        faces = [face for row in rows for face in self._faces_of(row)]
        self._layer.show(painter, viewport.size(), self.devicePixelRatioF(), faces, clip)
        self._paint_weights(painter, clip)
        for place in {self._place(self._query), self._place(self._key), self._hovered}:
            if place is not None:
                self._paint_marks(painter, place, self._rect(place))

    def _paint_weights(self, painter: QPainter, clip: QRect) -> None:
        """A bar under each key, as high as its weight."""
        weights, offset = self._states.weights, self._n_fallen_out
        if weights is None:
            return
        bars = []
        for row in self._rows_in(clip):
            start, stop = self._flow.row(row)
            start, stop = max(start, offset), min(stop, offset + len(weights))
            if start >= stop:
                continue
            y = self._top(row) + self._fonts.lane + self._fonts.chip
            x = self._margin() + self._flow.x(start)
            heights = np.clip(weights[start - offset : stop - offset], 0, 1)
            lefts = x + self._flow.ahead(start, stop)
            bars += [
                QRectF(left + 1, y, width - 2, height)
                for left, width, height in zip(
                    lefts.tolist(),
                    self._flow.widths[start:stop].tolist(),
                    (heights * self._fonts.bar).tolist(),
                    strict=True,
                )
            ]
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self._key_colour)
        painter.drawRects(bars)

    def _paint_query_number(self, painter: QPainter, position: int, chip: QRectF) -> None:
        text, unit = str(position), self._theme.unit
        place = QRectF(0, 0, self._fonts.digit * len(text) + 2 * unit, self._fonts.lane)
        place.moveCenter(QPointF(chip.center().x(), chip.top() - self._fonts.lane / 2))
        painter.setFont(self._fonts.bold)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(self._theme.accent))
        painter.drawRoundedRect(place, unit, unit)
        painter.setPen(QColor(self._theme.on_accent))
        painter.drawText(place, Qt.AlignmentFlag.AlignCenter, text)

    def _paint_marks(self, painter: QPainter, place: int, chip: QRectF) -> None:
        position, radius = place - self._n_fallen_out, self._theme.unit
        frame = self._hover_frame
        if position == self._query:
            frame = self._query_frame
            self._paint_query_number(painter, position, chip)
        elif position == self._key:
            frame = self._key_frame
        half = frame.widthF() / 2
        painter.setPen(frame)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRoundedRect(chip.adjusted(half, half, -half, -half), radius, radius)


def _whole_rows(pixels: int, row: int) -> int:
    """The least number of whole rows that is at least so high: no row is cut at the top."""
    return -(-pixels // row) * row


def _as_plain(text: str) -> str:
    """Plain text for a tooltip: Qt would take what looks like markup for markup."""
    return f"<p style='white-space:pre'>{html.escape(text)}</p>" if text else ""
