"""A position scheme's loss by position, smoothed, with the length it was trained on."""

import numpy as np
from numpy.typing import NDArray

from engine.experiments import SchemeReading, SchemeReadings
from gui.widgets.axis_ticks import linear_ticks, round_up
from gui.widgets.curves import Axis, CurveChart, Points, Series

_NEIGHBOURS = 16  # tokens over which a loss is averaged, up to its own
_NOTHING: Points = (np.zeros(0), np.zeros(0))


def smoothed(loss: NDArray[np.float32]) -> NDArray[np.float64]:
    """Each token's mean with up to 15 before it [T − 1]; the first token has no loss."""
    total = np.concatenate(([0.0], np.cumsum(loss[1:], dtype=np.float64)))
    last = np.arange(1, len(total))
    first = np.maximum(0, last - _NEIGHBOURS)
    mean: NDArray[np.float64] = (total[last] - total[first]) / (last - first)
    return mean


def loss_range(readings: SchemeReadings) -> float:
    """The top of an axis on which all curves fit."""
    curves = [smoothed(each) for one in readings.readings for each in (one.loss, one.changed_loss)]
    return max((float(curve.max()) for curve in curves if len(curve)), default=1.0)


class SchemeChart(CurveChart):
    """The loss of the text as it is and changed, on the same axes for all schemes."""

    def __init__(self, title: str) -> None:
        super().__init__(
            (f"{title}, nats", title),
            "position",
            (
                # Named in the panel, once for all charts.
                Series("", "text", "line"),
                Series("", "accent", "dashes"),
                Series("", "text_dim", "line"),
            ),
        )

    def show_reading(self, reading: SchemeReading, trained_length: int, top: float) -> None:
        """Both losses, and a line at the end of what the model was trained on."""
        n_tokens = len(reading.loss)
        x = np.arange(1, n_tokens, dtype=np.float64)
        high = round_up(top)
        is_changed = not np.array_equal(reading.loss, reading.changed_loss, equal_nan=True)
        end = float(trained_length)
        mark = (np.array([end, end + 1e-6]), np.array([0.0, high]))
        self.show_points(
            (
                (x, smoothed(reading.loss)),
                (x, smoothed(reading.changed_loss)) if is_changed else _NOTHING,
                mark if n_tokens > trained_length else _NOTHING,
            ),
            Axis(0.0, max(2.0, n_tokens), tuple(linear_ticks(0, n_tokens, 4, whole=True))),
            Axis(0.0, high * 1.05, tuple(linear_ticks(0.0, high, 3))),
            f"Mean loss {reading.mean_loss:.2f} nats per token, changed "
            f"{reading.changed_mean_loss:.2f}.",
        )

    def hide_points(self) -> None:
        """Show empty axes."""
        axis = Axis(0.0, 1.0, ())
        self.show_points((_NOTHING, _NOTHING, _NOTHING), axis, axis, "Nothing is read yet.")
