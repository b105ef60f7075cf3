"""How fast something comes, and for how long it still will: figures for a progress bar."""

from collections import deque

_SECONDS = 5.0  # that are looked back on; less jumps about, more is late to notice a change
_LEAST_SECONDS = 0.5  # before which nothing is claimed


class Pace:
    """Owns how much was there at each of the last few seconds."""

    def __init__(self) -> None:
        self._noted: deque[tuple[float, int]] = deque()

    def note(self, now: float, n_done: int) -> None:
        """Hear that at the second `now` so much is done; less than before begins anew."""
        if self._noted and n_done < self._noted[-1][1]:
            self._noted.clear()
        self._noted.append((now, n_done))
        while self._noted[0][0] < now - _SECONDS and len(self._noted) > 2:
            self._noted.popleft()

    @property
    def per_second(self) -> float | None:
        """How much comes in a second; None while that cannot be said."""
        if not self._noted:
            return None
        (began, first), (now, last) = self._noted[0], self._noted[-1]
        return (last - first) / (now - began) if now - began >= _LEAST_SECONDS else None

    def seconds_left(self, n_left: int) -> float | None:
        """How long the rest takes at this pace; None while that cannot be said."""
        pace = self.per_second
        return n_left / pace if pace else None


def duration_text(seconds: float) -> str:
    """A time to wait, as exact as it can be known: 20 s, 3 min, 1 h 20 min."""
    if seconds < 60:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours:,} h {minutes} min" if hours < 100 else f"{hours:,} h"
