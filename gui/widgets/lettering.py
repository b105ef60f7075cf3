"""Text on pictures: always plain, elided to its place, thinned so that it never overlaps."""

import re
from collections.abc import Sequence
from math import ceil

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QPainter

LONGEST = 80  # characters of a label that are ever measured
_REMEMBERED = 8192

LEFT, CENTRE, RIGHT = 0, 1, 2
_RUN = re.compile(r"([␣⏎⇥])\1{2,}")  # three or more: two are as short


class Lettering:
    """One font size of a widget: measures, elides (both remembered) and draws."""

    def __init__(self, font: QFont, pixels: int, *, bold: bool = False) -> None:
        self.font = QFont(font)
        self.font.setPixelSize(pixels)
        self.font.setBold(bold)
        self._metrics = QFontMetricsF(self.font)
        self.line = ceil(self._metrics.height())
        self.em = pixels
        self._drop = (self._metrics.ascent() - self._metrics.descent()) / 2
        self._widths: dict[str, float] = {}
        self._fitted: dict[tuple[str, int], tuple[str, float]] = {}
        self._sentence = ("", 0.0)  # the last one that was measured, and its width

    def width(self, text: str) -> float:
        """Logical pixels that a text takes."""
        text = text[:LONGEST]
        if text not in self._widths:
            if len(self._widths) > _REMEMBERED:
                self._widths.clear()
            self._widths[text] = self._metrics.horizontalAdvance(text)
        return self._widths[text]

    def widest(self, texts: Sequence[str]) -> float:
        """The width of the widest of some texts (of 128 of them, evenly spread, if more)."""
        return max(map(self.width, texts[:: ceil(len(texts) / 128) or 1]), default=0)

    def elided(self, text: str, width: float) -> str:
        """The text, cut with an ellipsis where it is wider than that."""
        return self.fitted(text, width)[0]

    def fitted(self, text: str, width: float) -> tuple[str, float]:
        """The same, and how wide that is."""
        key = text, int(width)
        known = self._fitted.get(key)
        if known is None:
            if len(self._fitted) > _REMEMBERED:
                self._fitted.clear()
            known = self._fitted[key] = self._cut(text, key[1])
        return known

    def _cut(self, text: str, width: int) -> tuple[str, float]:
        shown = text[:LONGEST]
        if self.width(shown) > width:
            shown = with_runs_counted(text)[:LONGEST]
            shown = self._metrics.elidedText(shown, Qt.TextElideMode.ElideRight, width)
        return shown, self.width(shown)

    def draw(self, painter: QPainter, place: QRectF, text: str, align: int = LEFT) -> None:
        """Draw a text on one line, in the painter's pen, elided to its place."""
        middle = place.center().y()
        self.draw_across(painter, place.left(), place.width(), middle, text, align)

    def draw_across(
        self, painter: QPainter, left: float, width: float, middle: float, text: str, align: int
    ) -> None:
        """The same of numbers, which cost a list less than a place for each of its texts."""
        known = self._fitted.get((text, int(width)))
        text, wide = self.fitted(text, width) if known is None else known
        if align:
            left += (width - wide) * align / 2
        # at a baseline, which costs a third of what Qt's drawing into a box does
        painter.setFont(self.font)
        painter.drawText(QPointF(left, middle + self._drop), text)

    def draw_whole(self, painter: QPainter, place: QRectF, text: str) -> None:
        """Draw a text on one line from the left of its place, however long it is."""
        self._draw_at(painter, place.left(), place.center().y(), text)

    def _draw_at(self, painter: QPainter, left: float, middle: float, text: str) -> None:
        painter.setFont(self.font)
        painter.drawText(QPointF(left, middle + self._drop), text)

    def fits(self, text: str, width: float) -> bool:
        """Whether a sentence has room; only the last one is remembered.

        Measured only if its characters, an em each, would not fit: few are wider.
        """
        if len(text) * self.em <= width:
            return True
        if text != self._sentence[0]:
            self._sentence = text, self._metrics.horizontalAdvance(text)
        return self._sentence[1] <= width

    def draw_in_middle(self, painter: QPainter, place: QRectF, text: str) -> None:
        """Draw a sentence in the middle of a place, on as many lines as it takes."""
        painter.setFont(self.font)
        flags = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap
        painter.drawText(place, int(flags), text)

    def draw_long(self, painter: QPainter, place: QRectF, text: str) -> None:
        """Draw a sentence on one line, elided to its place."""
        if not self.fits(text, place.width()):
            text = self._metrics.elidedText(text, Qt.TextElideMode.ElideRight, place.width())
        self._draw_at(painter, place.left(), place.center().y(), text)


def with_runs_counted(text: str) -> str:
    """A token with its runs of spaces, newlines or tabs as numbers: cut, all runs look alike."""
    return _RUN.sub(lambda run: f"{run[1]}×{len(run[0])}", text)


def every(cell: float, line: float) -> int:
    """Draw every how-manieth label, so that lines of that height never overlap."""
    return max(1, ceil(line / cell)) if cell > 0 else 1


def quoted(text: str) -> str:
    """A token inside a sentence: its direction must not turn the sentence's words around."""
    return f"'\u2068{text[:LONGEST]}\u2069'"
