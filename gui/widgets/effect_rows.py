"""Heads in the order of what each does, with a bar and its numbers."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QColor, QPainter

from gui.widgets.candidate_columns import Span
from gui.widgets.lettering import RIGHT
from gui.widgets.row_list import Cell, RowList
from gui.words.head_effects import nats

_LEAST_BAR = 4.0  # ems


@dataclass(frozen=True, eq=False)
class EffectLines:
    """What is known of each head [n], in the order of its size; a number may be NaN.

    `bars` are the numbers that the order is by: `answer` or `loss`, both in nats.
    """

    heads: tuple[tuple[int, int], ...]
    answer: NDArray[np.float64]
    loss: NDArray[np.float64]
    probability: NDArray[np.float64]  # change, as a share of 1
    logit: NDArray[np.float64]  # change
    is_by_loss: bool
    token: str  # whose probability and logit that is, as it is drawn

    def __len__(self) -> int:
        """How many heads."""
        return len(self.heads)

    @property
    def bars(self) -> NDArray[np.float64]:
        """What the heads are sorted by."""
        return self.loss if self.is_by_loss else self.answer


class EffectRows(RowList):
    """One row a head; bars of changes grow from a line at 0. A click selects the head."""

    HAS_HAND = True

    def __init__(self) -> None:
        self._lines: EffectLines | None = None
        self._selected: tuple[int, int] | None = None
        self._head = self._bar = Span(0, 0)
        self._numbers: list[tuple[str, Span]] = []
        super().__init__()
        self.setAccessibleName("Heads by their effect")

    def set_lines(self, lines: EffectLines | None) -> None:
        """Show these heads, in this order."""
        if lines is not self._lines:
            self._lines = lines
            self._rearrange()

    def set_selected(self, layer: int, head: int) -> None:
        """Mark the head that is drawn."""
        if (layer, head) != self._selected:
            self._selected = (layer, head)
            self.viewport().update()

    @property
    def lines(self) -> EffectLines | None:
        """What is shown."""
        return self._lines

    @property
    def n_rows(self) -> int:
        """How many heads."""
        return len(self._lines) if self._lines is not None else 0

    def header_cells(self) -> list[Cell]:
        """Head, bar, numbers."""
        return [
            Cell("head", self._head),
            Cell("nats", self._bar),
            *(Cell(title, span, RIGHT) for title, span in self._numbers),
        ]

    def cells(self, row: int) -> list[Cell]:
        """The head and its numbers."""
        lines = self._lines
        if lines is None:
            return []
        layer, head = lines.heads[row]
        said = {
            "answer": nats(float(lines.answer[row]), signed=False),
            "loss": nats(float(lines.loss[row])),
            "probability": points(float(lines.probability[row])),
        }
        name = f"L{layer} H{head}"
        return [
            Cell(name, self._head),
            *(Cell(said[title], span, RIGHT) for title, span in self._numbers),
        ]

    def spoken(self, row: int) -> str:
        """A head in words."""
        lines = self._lines
        if lines is None:
            return ""
        layer, head = lines.heads[row]
        return (
            f"layer {layer}, head {head}: without it the answer moves by "
            f"{nats(float(lines.answer[row]), signed=False)} nats, the loss by "
            f"{nats(float(lines.loss[row]))} nats, the probability of {lines.token} by "
            f"{points(float(lines.probability[row]))}"
        )

    def tooltip(self, row: int) -> str:
        """The same with all digits."""
        lines = self._lines
        if lines is None:
            return ""
        layer, head = lines.heads[row]
        return "\n".join(
            (
                f"Without layer {layer}, head {head}:",
                f"the answer moves by {float(lines.answer[row])!r} nats",
                f"the loss by {float(lines.loss[row])!r} nats per token",
                f"the probability of {lines.token} by {float(lines.probability[row])!r}",
                f"its logit by {float(lines.logit[row])!r}",
            )
        )

    def is_marked(self, row: int) -> bool:
        """The head that is drawn is."""
        return self._lines is not None and self._lines.heads[row] == self._selected

    def bar_place(self, row: int) -> QRectF:
        """Where a row's bar lies: from 0 to the right, or for a loss that falls to the left."""
        place, lines = self.row_place(row), self._lines
        inset = self._theme.unit / 2
        value = 0.0 if lines is None else float(np.nan_to_num(lines.bars[row]))
        largest = 0.0 if lines is None else float(np.nan_to_num(np.abs(lines.bars)).max(initial=0))
        zero, room = self._zero()
        width = room * value / largest if largest else 0.0
        left = zero + min(width, 0.0)
        return QRectF(left, place.top() + inset, abs(width), place.height() - 2 * inset)

    def _zero(self) -> tuple[float, float]:
        """Where 0 lies across, and how wide the largest bar is."""
        if self._lines is not None and self._lines.is_by_loss:
            return self._bar.left + self._bar.width / 2, self._bar.width / 2
        return self._bar.left, self._bar.width

    def paint_bars(self, painter: QPainter, row: int, place: QRectF) -> None:
        """The bar, and the line at 0."""
        theme = self._theme
        painter.fillRect(self.bar_place(row), QColor(theme.text_dim))
        zero, _room = self._zero()
        painter.setPen(QColor(theme.text_dim))
        painter.drawLine(QPointF(zero, place.top()), QPointF(zero, place.bottom()))

    def place_columns(self, width: float) -> None:
        """The head, a bar, and as many numbers as there is room for."""
        gap = float(self._theme.unit)
        names = [f"L{layer} H{head}" for layer, head in self._lines.heads] if self._lines else []
        self._head = Span(2 * gap, self._body.widest(names or ["L0 H0"]) + 1)
        number = self._axis.width("−0.0000") + 1
        wanted = {"answer": number, "loss": number, "probability": self._axis.width("probability")}
        order = ("probability", "answer", "loss")
        if self._lines is not None and self._lines.is_by_loss:
            order = ("probability", "loss", "answer")
        left = self._head.right + 2 * gap
        for n_dropped in range(len(order)):
            dropped = (order[0], order[2])[:n_dropped]
            kept = {name: wide + 1 for name, wide in wanted.items() if name not in dropped}
            room = width - gap - left - sum(kept.values()) - 2 * gap * len(kept)
            if room >= _LEAST_BAR * self._body.em:
                break
        self._numbers, right = [], width - gap
        for name, wide in reversed(kept.items()):
            self._numbers.insert(0, (name, Span(right - wide, wide)))
            right -= wide + 2 * gap
        self._bar = Span(left, max(0.0, right - left))


def points(change: float) -> str:
    """A change of a probability in percentage points, with no more letters than a title has."""
    size = 100 * abs(change)
    if not np.isfinite(size):
        return "–"
    if size >= 0.05:
        text = f"{size:.1f}"
    elif size >= 0.001 or not size:
        text = f"{size:.1g}"
    else:
        mantissa, exponent = f"{size:.0e}".split("e")
        text = f"{mantissa}e{int(exponent)}".replace("-", "−")
    sign = "−" if change < 0 else "+" if change else ""
    return f"{sign}{text} pp"
