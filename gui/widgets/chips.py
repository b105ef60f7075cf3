"""How one token looks as a chip: its label, measured once, and the colours of its states."""

import re
from enum import IntEnum
from math import ceil
from typing import NamedTuple

from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QBrush, QColor, QFont, QFontMetricsF, QPainter, QPen

from gui.theme import Theme
from gui.widgets.token_text import display

_MOST_CHARACTERS = 32
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

    def fonts(self) -> tuple[QFont, QFont, QFont]:
        """The font of each style."""
        return self.body, self.body, self.axis


class Ink(NamedTuple):
    """The pens for one ground: of the text, and of what is only a mark."""

    text: QPen
    dim: QPen


class ChipColours:
    """Owns the brushes and pens of one theme, made once per colour."""

    def __init__(self, theme: Theme) -> None:
        self.theme = theme
        self.raised = QColor(theme.raised)
        self.surface = QColor(theme.surface)
        self.fallen = QColor(theme.fallen)
        self.recomputed = QColor(theme.recomputed)
        self.key = QColor(theme.key)
        self.line = QPen(QColor(theme.line), 1)
        self.hover = QPen(QColor(theme.text_dim), 1)
        self.number = QPen(QColor(theme.text_dim))
        self.strong = QPen(QColor(theme.text), 2 * theme.stroke)
        self.query_frame = QPen(QColor(theme.accent), 1.5 * theme.stroke)
        self.key_frame = QPen(self.key, 1.5 * theme.stroke, Qt.PenStyle.DashLine)
        self.generated = QPen(QColor(theme.text_dim), theme.stroke, Qt.PenStyle.DotLine)
        strokes = mixed(self.fallen, QColor(theme.text_dim), 0.35)
        self.hatch = QBrush(strokes, Qt.BrushStyle.BDiagPattern)
        self._inks: dict[tuple[int, bool], Ink] = {}

    def ink(self, ground: QColor, *, quiet: bool = False) -> Ink:
        """Pens that are legible on this ground; `quiet` for what is not in play."""
        known = self._inks.get((ground.rgb(), quiet))
        if known is None:
            text = QColor(self.theme.text_dim if quiet else self.theme.text)
            if contrast(text, ground) < 4.5:
                text = QColor(_black_or_white(ground))
            known = Ink(QPen(text), QPen(mixed(text, ground, 0.4)))
            self._inks[ground.rgb(), quiet] = known
        return known


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


def draw_label(painter: QPainter, fonts: ChipFonts, label: Label, at: QPointF, ink: Ink) -> None:
    """Draw a label on a chip whose top left corner is `at`."""
    by_style = fonts.fonts()
    for piece, x, style in label.pieces:
        painter.setFont(by_style[style])
        painter.setPen(ink.dim if style == Style.MARK else ink.text)
        painter.drawText(at + QPointF(x, fonts.baseline), piece)


def _black_or_white(ground: QColor) -> str:
    return "#000000" if luminance(ground) > 0.179 else "#FFFFFF"
