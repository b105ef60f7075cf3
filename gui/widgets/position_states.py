"""What is known of each position of a text, and the colour of its chip that follows from it."""

from dataclasses import dataclass
from functools import lru_cache
from math import nan

import numpy as np
from numpy.typing import NDArray
from PySide6.QtGui import QColor

from gui.theme import Theme, lookup_table
from gui.widgets.chips import mixed


@dataclass
class PositionStates:
    """Positions count from the first token that the model sees; arrays are [S] or None."""

    losses: NDArray[np.float32] | None = None  # nats
    loss_ceiling: float = 8.0  # the loss at the end of the colour map
    has_loss_colours: bool = True
    weights: NDArray[np.float32] | None = None  # one row of a head's pattern
    visible: NDArray[np.bool_] | None = None  # whether the query may see it
    generated_from: int | None = None
    n_prefix: int = 0  # the first that were put before the text
    recomputed: range = range(0)
    flash: float = 0.0  # how brightly those are lit, 0 to 1
    computed: range | None = None  # by the latest pass, as long as it is the latest
    has_pass_marks: bool = False  # whether those are marked

    def loss(self, position: int) -> float:
        """Nats; NaN where none is known."""
        if self.losses is None or not 0 <= position < len(self.losses):
            return nan
        return float(self.losses[position])

    def may_be_seen(self, position: int) -> bool:
        """Whether the mask lets the query see it."""
        if self.visible is None:
            return True
        return position < len(self.visible) and bool(self.visible[position])

    def is_generated(self, position: int) -> bool:
        """Whether the model wrote it."""
        is_behind = self.generated_from is not None and position >= self.generated_from
        return is_behind and not self.is_prefix(position)

    def is_prefix(self, position: int) -> bool:
        """Whether it was put before the text, and spells nothing of it."""
        return 0 <= position < self.n_prefix

    def lit_within(self, first: int, last: int) -> range:
        """Those from `first` to before `last` that are lit at this moment."""
        start, stop = max(first, self.recomputed.start), min(last, self.recomputed.stop)
        return range(start, stop) if self.flash > 0 else range(0)

    def is_marked(self, position: int) -> bool:
        """Whether it is marked as computed by the latest pass."""
        return self.has_pass_marks and self.computed is not None and position in self.computed

    def grounds(
        self, first: int, last: int, theme: Theme
    ) -> tuple[NDArray[np.uint32], NDArray[np.bool_]]:
        """The colour of some positions' chips, 0xFFRRGGBB, and which may be seen [n] each."""
        seen = np.full(last - first, self.visible is None)
        if self.visible is not None:
            part = self.visible[first:last]
            seen[: len(part)] = part
        plain, masked = (np.uint32(QColor(each).rgb()) for each in (theme.raised, theme.surface))
        grounds = np.where(seen, plain, masked)
        if self.losses is not None and self.has_loss_colours:
            losses = self.losses[first:last]
            known = seen[: len(losses)] & ~np.isnan(losses)
            share = np.clip(losses[known] / self.loss_ceiling, 0, 1)
            table = lookup_table(theme.loss_map)
            grounds[: len(losses)][known] = table[np.round(255 * share).astype(np.intp)]
        elif self.has_pass_marks and self.computed is not None:
            positions = np.arange(first, last)
            marked = (positions >= self.computed.start) & (positions < self.computed.stop)
            grounds[marked & seen] = QColor(theme.recomputed).rgb()
        return grounds, seen

    def lit(self, ground: int, theme: Theme) -> int:
        """The colour of a chip that is lit, as brightly as it is at this moment."""
        return _lit(ground, theme.recomputed, self.flash)


@lru_cache(maxsize=1024)  # few colours, many chips
def _lit(ground: int, light: str, flash: float) -> int:
    return mixed(QColor.fromRgb(ground), QColor(light), flash).rgb()
