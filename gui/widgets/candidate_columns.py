"""Where the columns of the candidates lie, at every width."""

from dataclasses import dataclass
from typing import NamedTuple

from gui.theme import Theme
from gui.widgets.lettering import Lettering

_ROOMY = 26  # ems from which on the token stands beside its bar, not on it
_TOKEN = 9.0  # ems that a token gets beside its bar
_LEAST_TOKEN = 5.0  # ems that a token needs beside its stages


class Span(NamedTuple):
    """From left to right in logical pixels."""

    left: float
    width: float

    @property
    def right(self) -> float:
        """Where it ends."""
        return self.left + self.width

    def inside(self, left: float, right: float) -> "Span":
        """The same without so much at its ends."""
        return Span(self.left + left, max(0.0, self.width - left - right))


@dataclass(frozen=True)
class BarColumns:
    """Rank, token, bar, percentage, id; in a narrow list the token lies on its bar."""

    rank: Span
    token: Span
    bar: Span
    share: Span
    last: Span

    @property
    def is_on_bar(self) -> bool:
        """Whether the token is written on its bar."""
        return self.token.left == self.bar.left


@dataclass(frozen=True)
class StageColumns:
    """Token, logit, after temperature, kept by top-k and by top-p, and the final probability.

    Where that leaves too little for the token, both answers share one column.
    """

    spans: tuple[Span, ...]

    @property
    def is_short(self) -> bool:
        """Whether top-k and top-p share a column."""
        return len(self.spans) < 6


def bar_columns(
    width: float, theme: Theme, axis: Lettering, body: Lettering, n_rows: int
) -> BarColumns:
    """The columns of a list of so many rows."""
    gap = float(theme.unit)
    counted, share = axis.width(f"{n_rows:,}") + 1, body.width("< 0.001 %") + 1
    rank = Span(2 * gap, counted)
    last = Span(width - gap - counted, counted)
    percentage = Span(last.left - 2 * gap - share, share)
    left, right = rank.right + 2 * gap, percentage.left - 2 * gap
    room = max(0.0, right - left)
    if width < _ROOMY * body.em:
        return BarColumns(rank, Span(left, room), Span(left, room), percentage, last)
    token = Span(left, min(_TOKEN * body.em, room / 2))
    bar_left = token.right + 2 * gap
    return BarColumns(rank, token, Span(bar_left, max(0.0, right - bar_left)), percentage, last)


def stage_columns(width: float, theme: Theme, axis: Lettering, body: Lettering) -> StageColumns:
    """The columns of the table."""
    gap = float(theme.unit)
    logit, kept = (axis.width(text) + 1 for text in ("−00.00", "top-p"))
    share, short = (axis.width(text) + 1 for text in ("0.00000", "0.0000"))
    for widths in ((logit, share, kept, kept, share), (logit, short, kept, short)):
        token = width - 3 * gap - sum(widths) - 1.5 * gap * len(widths)
        if token >= _LEAST_TOKEN * body.em:
            break
    spans = [Span(2 * gap, max(0.0, token))]
    for each in widths:
        spans.append(Span(spans[-1].right + 1.5 * gap, each))
    return StageColumns(tuple(spans))
