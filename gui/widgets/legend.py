"""The legend of a weight scale: its name, a bar with numbers, and the marks beside it."""

from dataclasses import dataclass
from math import ceil

import numpy as np
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QLinearGradient, QPainter

from gui.theme import Theme, lookup_table
from gui.widgets.lettering import CENTRE, LEFT, RIGHT, Lettering
from gui.widgets.scales import WeightScale, sentence, ticks

_LONGEST_BAR = 14  # in ems
_SHORTEST_BAR = 3
_COLUMN = 7.5


@dataclass(frozen=True)
class Legend:
    """What the scale in force is; drawn upright beside a picture or flat below it."""

    theme: Theme
    scale: WeightScale
    leave_first_out: bool
    top: float
    not_finite: bool
    hatched: str = "masked"  # what a hatched cell is

    def column_width(self, axis: Lettering) -> int:
        """Logical pixels of the upright form."""
        return ceil(_COLUMN * axis.em)

    def rows_height(self, axis: Lettering) -> int:
        """Logical pixels of the flat form."""
        return 3 * axis.line + self.theme.unit

    def draw_column(self, painter: QPainter, axis: Lettering, place: QRectF) -> None:
        """Draw it upright, from the top of a place."""
        theme, bar = self.theme, axis.em
        painter.setFont(axis.font)
        painter.setPen(QColor(theme.text))
        words = int(Qt.TextFlag.TextWordWrap | Qt.AlignmentFlag.AlignLeft)
        text = self._sentence()
        needed = painter.boundingRect(place, words, text)
        painter.drawText(needed, words, text)
        marks = self._marks()
        y = needed.bottom() + axis.line
        room = place.bottom() - y - (len(marks) + 1) * 1.4 * axis.line
        height = min(_LONGEST_BAR * axis.em, room)
        if height > 2 * axis.line:
            box = QRectF(place.left(), y, bar, height)
            self._draw_bar(painter, box, box.bottomLeft(), box.topLeft())
            for part, number in self._ticks_that_fit(height, axis.line):
                at = QRectF(box.right(), box.bottom() - part * height, 0, 0)
                tick = at.adjusted(0, 0, theme.unit, 0)
                painter.drawLine(tick.topLeft(), tick.topRight())
                words_at = at.adjusted(1.5 * theme.unit, -axis.line / 2, 0, axis.line / 2)
                words_at.setRight(place.right())
                axis.draw(painter, words_at, number)
            y = box.bottom() + axis.line
        for mark, text in marks:
            if y + axis.line <= place.bottom() + 1:
                swatch = QRectF(place.left(), y, bar, axis.em)
                self._draw_mark(painter, swatch, mark)
                words_at = QRectF(swatch.right() + 1.5 * theme.unit, y, place.width(), axis.em)
                words_at.setRight(place.right())
                axis.draw(painter, words_at, text)
            y += 1.4 * axis.line

    def draw_rows(self, painter: QPainter, axis: Lettering, place: QRectF) -> None:
        """Draw it flat: the name and the marks, the bar, the numbers."""
        theme, line = self.theme, axis.line
        painter.setPen(QColor(theme.text))
        right = place.right()
        for mark, text in reversed(self._marks()):
            width = axis.width(text) + 1
            if right - width - 3 * axis.em < place.left() + place.width() / 3:
                break
            axis.draw(painter, QRectF(right - width, place.top(), width, line), text)
            right -= width + axis.em + theme.unit
            swatch = QRectF(right, place.top() + (line - axis.em) / 2, axis.em, axis.em)
            self._draw_mark(painter, swatch, mark)
            painter.setPen(QColor(theme.text))
            right -= 2 * theme.unit
        text = self._sentence()
        axis.draw(painter, QRectF(place.left(), place.top(), right - place.left(), line), text)
        width = min(2 * _LONGEST_BAR * axis.em, place.width())
        bar = QRectF(place.left(), place.top() + line + 2, width, line - theme.unit)
        self._draw_bar(painter, bar, bar.topLeft(), bar.topRight())
        for part, number in self._ticks_that_fit(width, 3.5 * axis.em):
            wide = axis.width(number) + 2
            at = bar.left() + part * width
            box = QRectF(at - wide / 2, bar.bottom() + 1, wide, line)
            align = CENTRE
            if part == 0:
                box.moveLeft(at)
                align = LEFT
            elif part == 1:
                box.moveRight(at)
                align = RIGHT
            axis.draw(painter, box, number, align)

    def draw_line(self, painter: QPainter, axis: Lettering, place: QRectF) -> None:
        """Draw it on one line: the name, the bar between its numbers, the marks if they fit."""
        theme, line, gap = self.theme, axis.line, 1.5 * self.theme.unit
        numbers = [number for _part, number in self._ends()]
        marks, right, x = self._marks(), place.right(), place.left()

        def write(text: str) -> None:
            nonlocal x
            wide = max(0.0, min(axis.width(text) + 1, right - x))
            painter.setPen(QColor(theme.text))
            axis.draw(painter, QRectF(x, place.top(), wide, line), text)
            x += wide + gap

        name = self._sentence()
        room = right - x - sum(axis.width(text) + 2 * gap for text in (name, *numbers))
        if room < _SHORTEST_BAR * axis.em:  # the numbers at its ends say the rest of the name
            room += axis.width(name) - axis.width(self._short_sentence())
            name = self._short_sentence()
        marked = sum(axis.width(text) + axis.em + 3 * gap for _mark, text in marks)
        if room - marked < _SHORTEST_BAR * axis.em:
            marks, marked = [], 0.0
        parts = len(numbers) - 1
        each = min(_LONGEST_BAR * axis.em, room - marked) / parts
        write(name)
        for part, number in enumerate(numbers):
            write(number)
            if part < parts and each > axis.em / 2:
                bar = QRectF(x, place.top() + line * 0.2, each, line * 0.6)
                low = QPointF(x - part * each, bar.top())
                self._draw_bar(painter, bar, low, low + QPointF(parts * each, 0))
                x = bar.right() + gap
        for mark, text in marks:
            self._draw_mark(painter, QRectF(x + gap, place.top() + 2, axis.em, line - 4), mark)
            x += axis.em + 2 * gap
            write(text)

    def _ends(self) -> list[tuple[float, str]]:
        """The numbers that are never left out."""
        numbers = self._ticks()
        return [numbers[0], numbers[-1]]

    def _sentence(self) -> str:
        return sentence(self.scale, leave_first_out=self.leave_first_out, top=self.top)

    def _short_sentence(self) -> str:
        """The name without what stands at the ends of the bar."""
        name = self._sentence()
        return name.split(",")[0] if self.scale == "linear" and not self.leave_first_out else name

    def _ticks(self) -> list[tuple[float, str]]:
        return ticks(self.scale, self.top)

    def _map(self) -> str:
        return self.theme.weights_map

    def _marks(self) -> list[tuple[str, str]]:
        marks = [("masked", self.hatched)]
        if self.leave_first_out:
            marks.append(("left out", "left out"))
        if self.not_finite:
            marks.append(("not finite", "not finite"))
        return marks

    def _ticks_that_fit(self, length: float, each: float) -> list[tuple[float, str]]:
        numbers = self._ticks()
        return numbers if length / (len(numbers) - 1) >= each else self._ends()

    def _draw_bar(self, painter: QPainter, box: QRectF, low: QPointF, high: QPointF) -> None:
        table = lookup_table(self._map())
        gradient = QLinearGradient(low, high)
        for at in np.linspace(0, 1, 33):
            gradient.setColorAt(float(at), QColor.fromRgb(int(table[round(at * 255)])))
        painter.fillRect(box, gradient)
        painter.setPen(QColor(self.theme.text_dim))
        painter.drawRect(box)
        painter.setPen(QColor(self.theme.text))

    def _draw_mark(self, painter: QPainter, box: QRectF, mark: str) -> None:
        theme = self.theme
        if mark == "not finite":
            painter.fillRect(box, QColor(theme.bad))
        elif mark == "left out":
            draw_left_out(painter, box, theme)
        else:
            draw_hatched(painter, box, theme)
        painter.setPen(QColor(theme.text_dim))
        painter.drawRect(box)
        painter.setPen(QColor(theme.text))


def draw_hatched(painter: QPainter, box: QRectF, theme: Theme) -> None:
    """Fill a box the way a masked cell looks; each stroke ends at its edge, clipped or not."""
    painter.fillRect(box, QColor(theme.masked))
    painter.save()
    painter.setClipRect(box, Qt.ClipOperation.IntersectClip)
    painter.setPen(QColor(theme.hatch))
    period = hatch_period(theme)
    at = box.left() + period / 2
    while at < box.right() + box.height():
        first, last = max(0.0, at - box.right()), min(box.height(), at - box.left())
        start = QPointF(at - first, box.top() + first)
        painter.drawLine(start, QPointF(at - last, box.top() + last))
        at += period
    painter.restore()


def draw_left_out(painter: QPainter, box: QRectF, theme: Theme) -> None:
    """Fill a box the way the first token's column looks where it is left out."""
    painter.fillRect(box, QColor(theme.raised))
    painter.setPen(QColor(theme.text_dim))
    middle = box.center().x()
    painter.drawLine(QPointF(middle, box.top()), QPointF(middle, box.bottom()))


def hatch_period(theme: Theme) -> int:
    """Logical pixels from one hatching stroke to the next."""
    return theme.unit + 2
