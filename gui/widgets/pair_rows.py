"""The candidates for the next token under two conditions, side by side on one scale."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QPainter

from gui.theme import Theme
from gui.widgets.candidate_columns import Span
from gui.widgets.candidate_text import percent
from gui.widgets.lettering import RIGHT
from gui.widgets.row_list import Cell, RowList

_LEAST_TOKEN = 4.5  # ems
_MOST_TOKEN = 10.0


@dataclass(frozen=True, eq=False)
class Pairs:
    """Tokens [n] and the probability of each before and now, by the plain softmax."""

    titles: tuple[str, str]  # of the two columns
    token_ids: NDArray[np.int64]
    labels: tuple[str, ...]  # as they are drawn
    spoken: tuple[str, ...]
    before: NDArray[np.float64]
    now: NDArray[np.float64]
    follows: int | None = None  # the token that stands next in the text, if any does

    def __len__(self) -> int:
        """How many tokens."""
        return len(self.token_ids)


class PairRows(RowList):
    """One row a token: its probability before and now, each over a bar from 0 to 100 %."""

    def __init__(self) -> None:
        self._pairs: Pairs | None = None
        self._token = self._before = self._now = Span(0, 0)
        super().__init__()
        self.setAccessibleName("Next-token candidates side by side")

    def set_pairs(self, pairs: Pairs | None) -> None:
        """Show these tokens, in this order."""
        if pairs is not self._pairs:
            self._pairs = pairs
            self._rearrange()

    @property
    def pairs(self) -> Pairs | None:
        """What is shown."""
        return self._pairs

    @property
    def n_rows(self) -> int:
        """How many tokens."""
        return len(self._pairs) if self._pairs is not None else 0

    def header_cells(self) -> list[Cell]:
        """Token, before, now."""
        if self._pairs is None:
            return []
        before, now = self._pairs.titles
        return [
            Cell("token", self._token),
            Cell(before, self._before),
            Cell(now, self._now),
        ]

    def cells(self, row: int) -> list[Cell]:
        """The token and its two probabilities."""
        pairs = self._pairs
        if pairs is None:
            return []
        return [
            Cell(pairs.labels[row], self._token),
            Cell(percent(float(pairs.before[row])), self._before, RIGHT),
            Cell(percent(float(pairs.now[row])), self._now, RIGHT),
        ]

    def spoken(self, row: int) -> str:
        """A token in words."""
        pairs = self._pairs
        if pairs is None:
            return ""
        shares = (percent(float(each[row])) for each in (pairs.before, pairs.now))
        said = ", ".join(
            f"{title} {share}" for title, share in zip(pairs.titles, shares, strict=True)
        )
        follows = ", which follows in the text" if self.is_marked(row) else ""
        return f"{pairs.spoken[row]}{follows}: {said}"

    def tooltip(self, row: int) -> str:
        """The same with all digits."""
        pairs = self._pairs
        if pairs is None:
            return ""
        return "\n".join(
            [
                f"{pairs.spoken[row]}, id {pairs.token_ids[row]}",
                f"{pairs.titles[0]}: {float(pairs.before[row])!r}",
                f"{pairs.titles[1]}: {float(pairs.now[row])!r}",
                *(["follows in the text"] if self.is_marked(row) else []),
            ]
        )

    def is_marked(self, row: int) -> bool:
        """The token that follows in the text is."""
        pairs = self._pairs
        return pairs is not None and int(pairs.token_ids[row]) == pairs.follows

    def foot(self, theme: Theme) -> int:
        """The bars' height."""
        return theme.unit

    def bar_places(self, row: int) -> tuple[QRectF, QRectF]:
        """Where the two bars of a row lie."""
        place = self.row_place(row)
        top = place.bottom() - self._foot - self._theme.unit / 2
        bars = []
        for span, values in (
            (self._before, self._pairs.before if self._pairs else None),
            (self._now, self._pairs.now if self._pairs else None),
        ):
            share = 0.0 if values is None else float(values[row])
            bars.append(QRectF(span.left, top, span.width * share, self._foot))
        return bars[0], bars[1]

    def paint_bars(self, painter: QPainter, row: int, _place: QRectF) -> None:
        """A rail up to 100 %, the probability before in outline, the one now filled."""
        theme = self._theme
        before, now = self.bar_places(row)
        for bar, span in ((before, self._before), (now, self._now)):
            rail = QRectF(span.left, bar.top(), span.width, bar.height())
            painter.fillRect(rail, QColor(theme.raised))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QColor(theme.text_dim))
        painter.drawRect(before.adjusted(0.5, 0.5, -0.5, -0.5))
        painter.fillRect(now, QColor(theme.text_dim))

    def place_columns(self, width: float) -> None:
        """The token, then two columns of the same width."""
        gap = float(self._theme.unit)
        wanted = min(_MOST_TOKEN * self._body.em, width * 0.34)
        token = max(_LEAST_TOKEN * self._body.em, wanted)
        self._token = Span(2 * gap, token)
        each = max(0.0, (width - token - 7 * gap) / 2)
        self._before = Span(self._token.right + 2 * gap, each)
        self._now = Span(self._before.right + 2 * gap, each)
