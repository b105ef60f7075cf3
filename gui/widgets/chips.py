"""How one token looks as a chip: its label, measured once, and the colours of its states."""

import re
from enum import IntEnum
from math import ceil
from typing import NamedTuple

from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import (
    QBrush,
    QColor,
    QFont,
    QFontMetricsF,
    QPainter,
    QPainterPath,
    QPen,
    QPixmap,
)

from gui.theme import Theme
from gui.widgets.token_text import display

_MOST_CHARACTERS = 32
_MOST_PICTURES = 2048
_SEGMENTS = re.compile(
    "(?s)(?P<isolated>\u2068[^\u2069]*\u2069)|(?P<mark>[␣⏎⇥◌]+)"
    r"|(?P<name>‹[^‹›]*›|\\u[0-9A-F]{4})|[^␣⏎⇥‹\\\u2068]+|."
)


class Style(IntEnum):
    """How loud a piece of a label is: the text itself, a mark for space, a name in brackets."""

    TEXT = 0
    MARK = 1
    NAME = 2


class Label(NamedTuple):
    """What stands on a chip: pieces with their distance from its left edge, and its width."""

    pieces: tuple[tuple[str, float, Style], ...]
    width: int


class ChipFonts:
    """Owns the fonts, the measures of a row, and the labels measured so far."""

    def __init__(self, font: QFont, theme: Theme) -> None:
        self.body, self.axis = QFont(font), QFont(font)
        self.body.setPixelSize(theme.font_body)
        self.axis.setPixelSize(theme.font_axis)
        self.bold = QFont(self.axis)
        self.bold.setBold(True)
        self._metrics = [QFontMetricsF(each) for each in (self.body, self.body, self.axis)]
        self.digit = QFontMetricsF(self.bold).horizontalAdvance("0")
        self.axis_ascent = self._metrics[Style.NAME].ascent()
        body = self._metrics[Style.TEXT]
        self.pad = round(1.5 * theme.unit)
        self.gap = theme.unit
        self.lane = ceil(self._metrics[Style.NAME].height())  # above a chip, for its number
        self.chip = ceil(body.height()) + 2 * theme.unit
        self.bar = round(2.5 * theme.unit)  # below it, for a weight of 1
        self.row = self.lane + self.chip + self.bar + theme.unit // 2
        self.baseline = theme.unit + body.ascent()
        self._least = 4 * theme.unit
        self._labels: dict[bytes, Label] = {}

    def label(self, token: bytes, begun: str = "") -> Label:
        """The label of a token; `begun` is the character that it begins and others complete."""
        if begun:  # written out before the bytes that begin it
            before, _, begins = display(token, _MOST_CHARACTERS).rpartition("‹")
            return self._measured(f"{before}{begun}‹{begins}")
        known = self._labels.get(token)
        if known is None:
            known = self._labels[token] = self._measured(display(token, _MOST_CHARACTERS))
        return known

    def axis_width(self, text: str) -> float:
        """How wide small text is."""
        return self._metrics[Style.NAME].horizontalAdvance(text)

    def shortened(self, text: str, width: float) -> str:
        """Small text, cut short where it is wider than that."""
        return self._metrics[Style.NAME].elidedText(text, Qt.TextElideMode.ElideRight, width)

    def _measured(self, text: str) -> Label:
        pieces = []
        x = 0.0
        for found in _SEGMENTS.finditer(text):
            style = Style.MARK if found["mark"] else Style.NAME if found["name"] else Style.TEXT
            pieces.append((found[0], x, style))
            x += self._metrics[style].horizontalAdvance(found[0])
        width = max(ceil(x) + 2 * self.pad, self._least)
        indent = (width - x) / 2
        return Label(tuple((piece, indent + at, style) for piece, at, style in pieces), width)


class Look(NamedTuple):
    """How a chip is drawn, its label apart."""

    ground: int  # 0xFFRRGGBB
    is_quiet: bool = False  # out of play: the query may not see it, or it has fallen out
    is_hatched: bool = False
    joins_previous: bool = False  # spells one character together with the token before
    joins_next: bool = False


class ChipPictures:
    """Owns the pictures of chips drawn so far: the same word in the same state is drawn once."""

    def __init__(self, fonts: ChipFonts, theme: Theme) -> None:
        self._fonts = fonts
        self._theme = theme
        self._ratio = 1.0
        self._chips: dict[tuple[Label, Look], QPixmap] = {}
        self._numbers: dict[int, QPixmap] = {}

    def set_ratio(self, ratio: float) -> None:
        """Draw for a screen with so many device pixels to a logical one."""
        if ratio != self._ratio:
            self._ratio = ratio
            self._chips.clear()
            self._numbers.clear()

    def chip(self, label: Label, look: Look) -> QPixmap:
        """The picture of a chip."""
        known = self._chips.get((label, look))
        if known is None:
            if len(self._chips) >= _MOST_PICTURES:
                self._chips.clear()
            known = self._chips[label, look] = self._drawn(label, look)
        return known

    def number(self, number: int) -> QPixmap:
        """The picture of a position's number, as wide as its digits."""
        known = self._numbers.get(number)
        if known is None:
            if len(self._numbers) >= _MOST_PICTURES:
                self._numbers.clear()
            known = self._blank(self.number_width(number), self._fonts.lane)
            with QPainter(known) as painter:
                self.draw_number(painter, number)
            self._numbers[number] = known
        return known

    def draw_chip(self, painter: QPainter, label: Label, look: Look) -> None:
        """The same chip as lines and letters, for a device on which they stay sharp."""
        self._draw_ground(painter, QRectF(0, 0, label.width, self._fonts.chip), look, is_cut=False)
        self._draw_label(painter, label, look)

    def draw_number(self, painter: QPainter, number: int) -> None:
        """The same number as letters."""
        text = str(number)
        painter.setFont(self._fonts.axis)
        painter.setPen(QColor(self._theme.text_dim))
        place = QRectF(0, 0, self.number_width(number), self._fonts.lane)
        painter.drawText(place, Qt.AlignmentFlag.AlignCenter, text)

    def number_width(self, number: int) -> int:
        """How wide a position's number is."""
        return ceil(self._fonts.digit * len(str(number)))

    def _blank(self, width: int, height: int) -> QPixmap:
        picture = QPixmap(ceil(width * self._ratio), ceil(height * self._ratio))
        picture.setDevicePixelRatio(self._ratio)
        picture.fill(QColor(self._theme.surface))
        return picture

    def _drawn(self, label: Label, look: Look) -> QPixmap:
        picture = self._blank(label.width, self._fonts.chip)
        with QPainter(picture) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            self._draw_ground(painter, QRectF(0, 0, label.width, self._fonts.chip), look)
            self._draw_label(painter, label, look)
        return picture

    def _draw_ground(
        self, painter: QPainter, chip: QRectF, look: Look, *, is_cut: bool = True
    ) -> None:
        """`is_cut`: what is drawn beyond the chip's edges is not seen."""
        theme, radius = self._theme, self._theme.unit
        is_outlined = look.is_quiet and not look.is_hatched
        painter.setPen(QPen(QColor(theme.line), 1) if is_outlined else Qt.PenStyle.NoPen)
        inset = 0.5 if is_outlined else 0.0
        left = 2 * radius if look.joins_previous else -inset  # beyond the edge: not rounded there
        right = 2 * radius if look.joins_next else -inset
        shape = QPainterPath()
        if is_cut:
            shape.addRoundedRect(chip.adjusted(-left, inset, right, -inset), radius, radius)
        else:
            shape.addRoundedRect(chip.adjusted(inset, inset, -inset, -inset), radius, radius)
            square = QPainterPath()  # where the neighbour goes on
            for joins, place in (
                (look.joins_previous, chip.adjusted(0, inset, -chip.width() / 2, -inset)),
                (look.joins_next, chip.adjusted(chip.width() / 2, inset, 0, -inset)),
            ):
                if joins:
                    square.addRect(place)
            shape = shape.united(square)
        for brush in (QBrush(QColor.fromRgb(look.ground)), hatching(theme))[: 1 + look.is_hatched]:
            painter.setBrush(brush)
            painter.drawPath(shape)
        if look.joins_previous:
            painter.setPen(QPen(QColor(theme.text_dim), theme.stroke, Qt.PenStyle.DotLine))
            painter.drawLine(QLineF(0, radius, 0, chip.height() - radius))

    def _draw_label(self, painter: QPainter, label: Label, look: Look) -> None:
        ground = QColor.fromRgb(look.ground)
        text = QColor(self._theme.text_dim if look.is_quiet else self._theme.text)
        if contrast(text, ground) < 4.5:
            text = QColor(black_or_white(ground))
        pens = {False: QPen(text), True: QPen(mixed(text, ground, 0.4))}
        for piece, x, style in label.pieces:
            painter.setFont(self._fonts.axis if style == Style.NAME else self._fonts.body)
            painter.setPen(pens[style == Style.MARK])
            painter.drawText(QPointF(x, self._fonts.baseline), piece)


def mixed(one: QColor, other: QColor, share: float) -> QColor:
    """`one` with a share of `other` in it."""
    return QColor.fromRgbF(
        one.redF() + (other.redF() - one.redF()) * share,
        one.greenF() + (other.greenF() - one.greenF()) * share,
        one.blueF() + (other.blueF() - one.blueF()) * share,
    )


def luminance(colour: QColor) -> float:
    """How bright a colour is, 0 to 1, as WCAG 2 defines it."""
    linear = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
        for c in (colour.redF(), colour.greenF(), colour.blueF())
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: QColor, other: QColor) -> float:
    """The contrast of two colours, 1 to 21, as WCAG 2 defines it."""
    dark, bright = sorted((luminance(one), luminance(other)))
    return (bright + 0.05) / (dark + 0.05)


def hatching(theme: Theme) -> QBrush:
    """The strokes over what the model no longer sees."""
    strokes = mixed(QColor(theme.fallen), QColor(theme.text_dim), 0.35)
    return QBrush(strokes, Qt.BrushStyle.BDiagPattern)


def black_or_white(ground: QColor) -> str:
    """The one of the two that is legible on this ground."""
    return "#000000" if luminance(ground) > 0.179 else "#FFFFFF"
