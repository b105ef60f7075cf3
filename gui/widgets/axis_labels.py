"""The labels of one axis: thinned, elided, with any one of them lit on demand."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QPainter

from gui.widgets.lettering import RIGHT, Lettering, every


@dataclass(frozen=True)
class AxisLabels:
    """Labels stacked downwards, one a cell; for columns, hand in a painter turned by −90°.

    `start` is where the first cell begins (it may lie before `low`, when zoomed in), labels
    are drawn whose middle lies between `low` and `high`; they reach from `left` to `right`.
    All in the painter's logical pixels.
    """

    labels: Sequence[str]
    lettering: Lettering
    start: float
    cell: float
    low: float
    high: float
    left: float
    right: float
    align: int = RIGHT
    only: tuple[int, ...] | None = None  # the labels to draw, where it is not every n-th

    @cached_property
    def step(self) -> int:
        """Every how-manieth label is drawn."""
        return every(self.cell, self.lettering.line)

    def middle(self, index: int) -> float:
        """Where a label's middle lies."""
        return self.start + (index + 0.5) * self.cell

    def is_within(self, index: int) -> bool:
        """Whether a label's middle lies in what is shown."""
        return 0 <= index < len(self.labels) and self.low <= self.middle(index) <= self.high

    def box(self, index: int) -> QRectF:
        """The place of a label."""
        line = self.lettering.line
        return QRectF(self.left, self.middle(index) - line / 2, self.right - self.left, line)

    def shown(self, first: int = 0) -> list[int]:
        """Which labels, from `first` on, are drawn when none is lit."""
        if self.only is not None:
            return list(self.only)
        if not self.labels or self.cell <= 0:
            return []
        first = max(first, int((self.low - self.start) / self.cell))
        last = min(len(self.labels), int((self.high - self.start) / self.cell) + 1)
        first += -first % self.step
        return [index for index in range(first, last, self.step) if self.is_within(index)]

    def draw(self, painter: QPainter, colour: str, first: int = 0) -> None:
        """Draw the labels that fit, from `first` on."""
        painter.setPen(QColor(colour))
        for index in self.shown(first):
            self.lettering.draw(painter, self.box(index), self.labels[index], self.align)

    def covered(self, index: int) -> QRectF:
        """What a lit label takes, its own place and those of the labels that it displaces."""
        line, middle = self.lettering.line, self.middle(index)
        first = last = middle
        before = index - index % self.step
        for other in (before, before + self.step) if self.only is None else self.only:
            at = self.middle(other)
            # Neighbours that touch are not overlapped.
            if other < len(self.labels) and abs(at - middle) < line - 0.01:
                first, last = min(first, at), max(last, at)
        return QRectF(self.left, first - line / 2, self.right - self.left, last - first + line)

    def draw_lit(self, painter: QPainter, index: int, *, ground: str, paper: str, ink: str) -> None:
        """Draw one label on a ground of its own, blanking what it would overlap."""
        if not self.is_within(index):
            return
        painter.fillRect(self.covered(index), QColor(paper))
        letters, room, middle = self.lettering, self.right - self.left, self.middle(index)
        text, wide = letters.fitted(self.labels[index], room)
        wide += letters.em / 2
        left = self.right - wide + 2 if self.align == RIGHT else self.left - 2
        box = QRectF(left, middle - letters.line / 2, wide, letters.line)
        painter.fillRect(box, QColor(ground))
        painter.setPen(QColor(ink))
        letters.draw_across(painter, self.left, room, middle, text, self.align)
