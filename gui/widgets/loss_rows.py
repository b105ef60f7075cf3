"""A text's tokens as rows, each with a bar for its loss and its numbers."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, isnan

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QPainter

from engine.loss import bits, probabilities, worst_first
from gui.theme import Theme, lookup_table
from gui.widgets.candidate_columns import Span
from gui.widgets.candidate_text import percent
from gui.widgets.lettering import RIGHT, Lettering
from gui.widgets.row_list import Cell, RowList
from gui.widgets.token_text import describe, speak

NO_LOSS = "no loss: nothing predicts it"
HELP = (
    "Click a token, or press Enter on it, to select the position that predicts it: the one before."
)
_LEAST_TOKEN = 4.5  # ems that a token needs
_ROOMY = 30  # ems from which on a bar stands beside its token, not under it


@dataclass(frozen=True, eq=False)
class LossLines:
    """What is known of each token [S]; a loss that is no number is shown as none.

    `labels` are the tokens as they are drawn, `rank` how many others were more probable.
    """

    labels: Sequence[str]
    tokens: Sequence[bytes]
    token_ids: NDArray[np.int64]
    loss: NDArray[np.float32]  # nats
    rank: NDArray[np.int64]

    def __len__(self) -> int:
        """S."""
        return len(self.labels)

    def numbers(self, position: int) -> tuple[str, str, str, str]:
        """Nats, bits, probability and rank, counted from 1, of a token that has a loss."""
        nats = self.loss[position : position + 1]
        return (
            f"{nats[0]:.2f}",
            f"{bits(nats)[0]:.2f}",
            percent(float(probabilities(nats)[0])),
            f"{self.rank[position] + 1:,}",
        )

    def spoken(self, position: int) -> str:
        """One token in words."""
        token = f"{speak(self.tokens[position])} at position {position}"
        if isnan(self.loss[position]):
            return f"{token}: {NO_LOSS}"
        nats, in_bits, share, rank = self.numbers(position)
        return f"{token}: {nats} nats, {in_bits} bits, probability {share}, rank {rank}"


@dataclass(frozen=True)
class _Columns:
    """Where things stand in a row, at one width; a number for which there is no room is left out.

    In a narrow list the bar lies under its token.
    """

    position: Span
    token: Span
    bar: Span
    numbers: tuple[tuple[str, Span], ...]

    @property
    def is_under(self) -> bool:
        """Whether bar and token share their place."""
        return self.bar.left == self.token.left


class LossRows(RowList):
    """One row a token, in the text's order or the worst first; `chosen` tells its position."""

    HAS_PAGES = True
    HAS_HAND = True

    def __init__(self) -> None:
        self._lines: LossLines | None = None
        self._order: NDArray[np.intp] = np.empty(0, np.intp)
        self._row_of: NDArray[np.intp] = np.empty(0, np.intp)
        self._is_sorted = False
        self._predicted: int | None = None
        self._ceiling = self._top = 8.0
        super().__init__()
        self.setAccessibleName("Loss of each token")

    # What to show

    def set_empty(self, sentence: str) -> None:
        """Show a sentence instead of tokens."""
        self._lines, self._predicted, self._sentence = None, None, sentence
        self._arrange()

    def set_lines(self, lines: LossLines, *, ceiling: float) -> None:
        """Show these tokens; a loss of `ceiling` nats or more has the map's last colour.

        Whoever looks at the end of the text goes on looking at its end when it grows.
        """
        bar = self.verticalScrollBar()
        was_at_end = not self._is_sorted and bar.value() == bar.maximum()
        is_longer = self._lines is None or len(lines) > len(self._lines)
        self._lines, self._ceiling, self._sentence = lines, ceiling, ""
        finite = lines.loss[np.isfinite(lines.loss)]
        self._top = max(ceiling, float(ceil(finite.max(initial=0.0))))
        self._arrange()
        if was_at_end and is_longer:
            bar.setValue(bar.maximum())

    def set_sorted(self, is_sorted: bool) -> None:  # noqa: FBT001
        """Show the worst first, or the text's order; the current token stays current."""
        if is_sorted == self._is_sorted:
            return
        position = self.current_position
        self._is_sorted = is_sorted
        self._arrange()
        if is_sorted:
            self.go_to(0)
        elif position is not None:
            self.go_to(self._row(position))

    def set_predicted(self, position: int | None) -> None:
        """Mark the token that the selected position predicts, make it current and show it."""
        if position == self._predicted:
            return
        self._predicted = position
        if position is not None and position < self.n_rows:
            self.go_to(self._row(position))
        self._tell()

    def _arrange(self) -> None:
        """Put the tokens into their rows."""
        position = self.current_position
        n_tokens = len(self._lines) if self._lines else 0
        order: NDArray[np.intp] = np.arange(n_tokens)
        if self._lines is not None and self._is_sorted:
            order = worst_first(self._lines.loss)
        self._order, self._row_of = order, np.empty_like(order)
        self._row_of[order] = np.arange(n_tokens)
        stays = position is not None and position < n_tokens
        self._current = self._row(position) if stays and position is not None else 0
        self._rearrange()

    # What is shown

    @property
    def n_rows(self) -> int:
        """S."""
        return len(self._order)

    @property
    def current_position(self) -> int | None:
        """The token that Enter would choose."""
        row = self.current_row
        return None if row is None else self.position_of(row)

    @property
    def pointed_position(self) -> int | None:
        """The token under the pointer, else the current one."""
        row = self.pointed_row
        return None if row is None else self.position_of(row)

    @property
    def scale_top(self) -> float:
        """The loss in nats at the right end of the bars: a whole number."""
        return self._top

    def position_of(self, row: int) -> int:
        """Which token stands in a row."""
        return int(self._order[row])

    def _row(self, position: int) -> int:
        return int(self._row_of[position])

    def bar_place(self, row: int) -> QRectF:
        """The box that a loss at the top of the scale would fill in a row."""
        return self._bar_within(self.row_place(row))

    def bar_width(self, row: int) -> float:
        """How much of that its bar fills."""
        loss = self._loss(row)
        share = 0.0 if isnan(loss) else min(loss / self._top, 1.0)
        return share * self._columns.bar.width

    # Texts

    def header_cells(self) -> list[Cell]:
        """Position, token, bar, numbers."""
        columns = self._columns
        scale = f"0 to {self._top:g} nats"
        titles = [Cell("token", columns.token), Cell(scale, columns.bar)]
        if columns.is_under:
            both = f"token, {scale}"
            is_room = self._axis.fits(both, columns.token.width)
            titles = [Cell(both if is_room else "token", columns.token)]
        return [
            Cell("#", columns.position, RIGHT),
            *titles,
            *(Cell(name, span, RIGHT) for name, span in columns.numbers),
        ]

    def cells(self, row: int) -> list[Cell]:
        """Position, token, numbers."""
        lines, columns = self._lines, self._columns
        if lines is None:
            return []
        position = self.position_of(row)
        cells = [
            Cell(str(position), columns.position, RIGHT),
            Cell(lines.labels[position], columns.token),
        ]
        if isnan(lines.loss[position]):
            left = columns.token.right if columns.is_under else columns.bar.left
            rest = Span(left, columns.numbers[-1][1].right - left)
            return [*cells, Cell(NO_LOSS, rest, RIGHT)]
        said = dict(zip(("nats", "bits", "prob.", "rank"), lines.numbers(position), strict=True))
        return [*cells, *(Cell(said[name], span, RIGHT) for name, span in columns.numbers)]

    def spoken(self, row: int) -> str:
        """A token in words."""
        return self._lines.spoken(self.position_of(row)) if self._lines else ""

    def described(self, row: int) -> str:
        """A token in words, and what Enter does."""
        return f"{super().described(row)} {HELP}"

    def help(self) -> str:
        """What a click does."""
        return HELP

    def tooltip(self, row: int) -> str:
        """All that is known of a token."""
        lines, position = self._lines, self.position_of(row)
        if lines is None:
            return ""
        loss = float(lines.loss[position])
        rank = f"rank {lines.rank[position] + 1:,}"
        return describe(
            lines.tokens[position],
            int(lines.token_ids[position]),
            position,
            loss=loss,
            notes=(NO_LOSS,) if isnan(loss) else (rank, f"predicted at position {position - 1}"),
        )

    def told(self, row: int) -> int:
        """The token's position."""
        return self.position_of(row)

    def is_marked(self, row: int) -> bool:
        """The token that the selected position predicts is."""
        return self.position_of(row) == self._predicted

    def _loss(self, row: int) -> float:
        return float(self._lines.loss[self.position_of(row)]) if self._lines else float("nan")

    # Places

    def foot(self, theme: Theme) -> int:
        """How high a bar is that lies under its token."""
        return max(4, theme.unit)

    def _take_theme(self, theme: Theme) -> None:
        super()._take_theme(theme)
        self._bold = Lettering(self.font(), theme.font_body, bold=True)

    def _bar_within(self, place: QRectF) -> QRectF:
        bar, inset = self._columns.bar, self._theme.unit / 2
        height = self._foot if self._columns.is_under else place.height() - 2 * inset
        return QRectF(bar.left, place.bottom() - inset - height, bar.width, height)

    def place_columns(self, width: float) -> None:
        """Position, token, bar, and as many numbers as there is room for."""
        gap = float(self._theme.unit)
        count = max(len(self._order), 100)
        position = Span(2 * gap, self._axis.width(f"{count - 1:,}") + 1)
        wanted = {
            "nats": self._body.width("00.00"),
            "bits": self._axis.width("00.00"),
            "prob.": max(map(self._axis.width, ("> 99.9 %", "< 0.001 %"))),
            "rank": self._axis.width("00,000"),
        }
        left = position.right + 2 * gap
        # The bits go first where there is no room for all, for they say what the nats say.
        for dropped in ((), ("bits",), ("bits", "prob."), ("bits", "prob.", "rank")):
            kept = {name: wide + 1 for name, wide in wanted.items() if name not in dropped}
            room = width - gap - left - sum(kept.values()) - 2 * gap * len(kept)
            if room >= _LEAST_TOKEN * self._body.em:
                break
        numbers, right = [], width - gap
        for name, wide in reversed(kept.items()):
            numbers.append((name, Span(right - wide, wide)))
            right -= wide + 2 * gap
        room = max(0.0, right - left)
        token = bar = Span(left, room)
        if width >= _ROOMY * self._body.em:
            token = Span(left, room * 0.4)
            bar = Span(token.right + 2 * gap, max(0.0, right - token.right - 2 * gap))
        self._columns = _Columns(position, token, bar, tuple(reversed(numbers)))

    # Drawing

    def paint_texts(self, painter: QPainter, row: int, place: QRectF) -> None:
        """Token and nats in full size, the rest small and dim; in bold what is predicted."""
        height = place.height()
        if self._columns.is_under:
            height = self._body.line + self._theme.unit / 2
        token = self._bold if self.is_marked(row) else self._body
        for column, cell in enumerate(self.cells(row)):
            is_main = column in {1, 2} and cell.text != NO_LOSS
            letters = token if column == 1 else self._body if is_main else self._axis
            painter.setPen(self._ink if is_main else self._dim)
            cell.draw(painter, letters, place.top() + height / 2)

    def paint_bars(self, painter: QPainter, row: int, place: QRectF) -> None:
        """As long as its loss, in its colour."""
        loss, box = self._loss(row), self._bar_within(place)
        if isnan(loss):
            return
        share = min(loss / self._ceiling, 1.0)
        colour = QColor.fromRgb(int(lookup_table(self._theme.loss_map)[round(255 * share)]))
        box.setWidth(max(1.0, self.bar_width(row)))
        painter.fillRect(box, colour)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(self._dim)  # the map begins at the ground's colour
        painter.drawRect(box.adjusted(0.5, 0.5, -0.5, -0.5))
