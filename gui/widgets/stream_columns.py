"""Where the columns of the residual stream lie, at every width."""

from dataclasses import dataclass
from typing import Literal

from gui.theme import Theme
from gui.widgets.candidate_columns import Span
from gui.widgets.lettering import Lettering

Measure = Literal["length", "share"]  # what the bars show where there is room for one of them

LEAST_BAR = 5.0  # ems
_ROOMY = 13.0  # ems of a bar from which on the residual's own length has a column
_LENGTH, _COSINE, _SHARE = "00,000", "−0.00", "−00.00"


@dataclass(frozen=True)
class StreamColumns:
    """From left to right; what is not shown is None. All in logical pixels."""

    gutter: Span  # names of layers
    spine: float  # the middle of the stream
    label: Span
    length: Span | None  # a bar, and its number
    length_number: Span | None
    cosine: Span | None
    share: Span | None
    share_number: Span | None
    residual: Span | None  # the residual's own length, in a wide place

    @property
    def is_wide(self) -> bool:
        """Whether there is room for both kinds of bars."""
        return self.length is not None and self.share is not None


def stream_columns(
    width: float,
    theme: Theme,
    body: Lettering,
    axis: Lettering,
    gutter: float,
    label: float,
    measure: Measure,
    *,
    has_shares: bool,
) -> StreamColumns:
    """The columns in so many pixels, for names of layers and labels of these widths."""
    unit = float(theme.unit)
    gap = 2 * unit
    left = Span(unit, gutter)
    spine = left.right + 4 * unit
    names = Span(spine + 4 * unit, label)
    lengths, cosine, shares = (body.width(text) + 1 for text in (_LENGTH, _COSINE, _SHARE))
    room = width - names.right - 2 * gap - unit
    numbers = lengths + cosine + shares + 5 * gap
    is_wide = has_shares and room - numbers >= 2 * LEAST_BAR * body.em
    with_length = is_wide or measure == "length" or not has_shares
    with_share = has_shares and (is_wide or measure == "share")
    taken = (lengths + cosine + 2 * gap) * with_length + (shares + gap) * with_share
    n_bars = with_length + with_share
    taken += gap * (n_bars - 1)
    bar = max(0.0, (room - taken) / n_bars)
    residual: Span | None = None
    x = names.right + gap
    if bar >= _ROOMY * body.em:
        own = max(lengths, axis.width("residual") + 1)
        residual = Span(x, own)
        x = residual.right + 2 * gap
        bar -= (own + 2 * gap) / n_bars
    length = length_number = cosines = share = share_number = None
    if with_length:
        length = Span(x, bar)
        length_number = Span(length.right + gap, lengths)
        cosines = Span(length_number.right + gap, cosine)
        x = cosines.right + 2 * gap
    if with_share:
        share = Span(x, bar)
        share_number = Span(share.right + gap, shares)
    return StreamColumns(
        left, spine, names, length, length_number, cosines, share, share_number, residual
    )
