"""What a pass is run under: changing any of it means starting again at position 0."""

from dataclasses import dataclass
from typing import Any, Literal, get_args

from engine.errors import ConfigError

Mask = Literal["causal", "window", "none"]
OffBy = Literal["zero", "mean"]


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """Which keys a query may see, which heads are silent, which positions are supplied.

    `window` (queries see that many positions, their own included) and `sinks` (the first
    positions, visible to everyone after them) count only under the mask "window", and are 0
    otherwise, so that two equal conditions compare equal. The text stands at the positions from
    `first_position` on; nothing stands before it.

    A head that is off still looks where it looks, but what it mixed is replaced (`off_by`, which
    is "zero" as long as no head is off):

    - "zero": by zeros (Michel et al. 2019).
    - "mean": by the mean of that head's own mixes at all positions that the query may see, its own
      included: the first t + 1 of the text under the causal mask, all of it with the mask off,
      those inside the window under a window, the layer's own or the mask's. Wang et al. 2022 take
      the mean over other texts; here it is the text itself, and nothing that is hidden from the
      query, so that old rows stay true when the text grows.

    Raises:
        ConfigError: the mask or the replacement is unknown, the window is smaller than 1, or the
            first position is negative.
    """

    mask: Mask = "causal"
    window: int = 0
    sinks: int = 0
    heads_off: frozenset[tuple[int, int]] = frozenset()  # layer, head
    off_by: OffBy = "zero"
    positions: bool = True
    first_position: int = 0

    def __post_init__(self) -> None:
        if self.first_position < 0:
            raise ConfigError(
                f"a text cannot begin at position {self.first_position}; use 0 or more."
            )
        if self.mask not in get_args(Mask):
            raise ConfigError(
                f"the mask {self.mask!r} is unknown; use one of {', '.join(get_args(Mask))}."
            )
        if self.off_by not in get_args(OffBy):
            raise ConfigError(
                f"a head cannot be replaced by {self.off_by!r}; use one of "
                f"{', '.join(get_args(OffBy))}."
            )
        if not self.heads_off:
            object.__setattr__(self, "off_by", "zero")
        if self.mask != "window":
            object.__setattr__(self, "window", 0)
            object.__setattr__(self, "sinks", 0)
        elif self.window < 1 or self.sinks < 0:
            raise ConfigError(
                f"a window of {self.window} positions with {self.sinks} first ones is not "
                "possible; the window must be 1 or more and the first ones 0 or more."
            )

    @property
    def append_only(self) -> bool:
        """Whether rows that were computed stay true when the text grows."""
        return self.mask != "none"

    def off_in(self, layer: int) -> list[int]:
        """Which heads of a layer are off, in order."""
        return sorted(head for at, head in self.heads_off if at == layer)

    def narrowed(self, window: int = 0) -> int:
        """How many of the last positions a query sees, the first ones aside; 0: all of them.

        `window` is the layer's own, 0 for none.
        """
        if self.mask == "none":
            return 0
        if not window or not self.window:
            return window or self.window
        return min(window, self.window)

    def n_first(self, window: int = 0) -> int:
        """How many first positions such a layer's queries see besides, as far as it does itself."""
        return self.sinks if self.narrowed(window) != window else 0

    def hiding(self, window: int = 0) -> int:
        """Of the last how many positions such a layer hides all that stands before; 0: of none."""
        return window if self.n_first(window) else self.narrowed(window)

    def visible(self, query: Any, key: Any, window: int = 0) -> Any:  # noqa: ANN401 - numpy or torch
        """Which keys may be seen: boolean, the broadcast shape of the two position arrays.

        `window` is the layer's own, 0 for none: the mask can narrow it, and only "none" lifts it.
        """
        if self.mask == "none":
            return (query >= 0) & (key >= 0)
        seen = key <= query
        if window:
            seen = seen & (key > query - window)
        if self.mask == "window":
            seen = seen & ((key > query - self.window) | (key < self.sinks))
        return seen
