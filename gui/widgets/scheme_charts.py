"""The position schemes' losses by position on one chart, and a table that is its legend."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QWidget

from engine.experiments.records import SchemeReading, SchemeReadings
from gui.theme import Theme
from gui.widgets.axis_ticks import linear_ticks
from gui.widgets.curves import Axis, CurveChart, Points, Series
from gui.widgets.figure_table import FigureTable
from gui.widgets.trial_view import loss_words

_NEIGHBOURS, _NEIGHBOUR_SHARE = 16, 8  # tokens, or an eighth of a long text
_NOTHING: Points = (np.zeros(0), np.zeros(0))
# Those that say where a token stands have one hue, those that say how far away another; line and
# dashes tell the two of each apart without any hue.
_LOOKS: dict[str, Series] = {
    "learned": Series("learned", "absolute", "line"),
    "sinusoidal": Series("sinusoidal", "absolute", "dashes"),
    "rotary": Series("rotary", "relative", "line"),
    "alibi": Series("ALiBi", "relative", "dashes"),
    "none": Series("none", "text", "dotted"),
}
_TRAINED = Series("trained to", "text_dim", "line")


def neighbours(n_tokens: int) -> int:
    """Over how many tokens a loss is averaged, its own being the last."""
    return max(_NEIGHBOURS, n_tokens // _NEIGHBOUR_SHARE)


def smoothed(loss: NDArray[np.float32]) -> NDArray[np.float64]:
    """Each token's mean with its neighbours before it [T − 1]; the first token has no loss."""
    total = np.concatenate(([0.0], np.cumsum(loss[1:], dtype=np.float64)))
    last = np.arange(1, len(total))
    first = np.maximum(0, last - neighbours(len(loss)))
    mean: NDArray[np.float64] = (total[last] - total[first]) / (last - first)
    return mean


class SchemeLosses(QWidget):
    """Owns the chart of the changed text's losses, or of the text's own, and the legend."""

    def __init__(self, schemes: Sequence[str]) -> None:
        super().__init__()
        self._looks = [_LOOKS[name] for name in schemes]
        self.chart = CurveChart(
            ("nats per token", "nats"), "position", (*self._looks, _TRAINED), has_legend=False
        )
        self.chart.setAccessibleName("Loss by position, all schemes")
        self.legend = FigureTable("Mean losses", ("mean nats", "as it is", "changed"))
        across, down = QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed
        self.legend.setSizePolicy(across, down)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self.chart, 1)
        row.addWidget(self.legend, 1)
        self._row = row

    def set_theme(self, theme: Theme) -> None:
        """Draw in another look."""
        self.chart.set_theme(theme)
        self.legend.set_theme(theme)
        self._row.setSpacing(2 * theme.unit)

    def show_readings(self, readings: SchemeReadings) -> None:
        """All schemes on the same axes, at the positions at which the text stands."""
        shift, n_tokens = readings.change.shift, len(readings.tokens)
        curves = [smoothed(each.changed_loss) for each in readings.readings]
        # As either text needs it: the axis stays when one looks from one to the other.
        both = [*curves, *(smoothed(each.loss) for each in readings.readings)]
        known = np.concatenate(both) if n_tokens > 1 else np.array([0.0, 1.0])
        low, high = float(np.floor(known.min())), float(np.ceil(known.max()))
        end = max(shift + 2, shift + n_tokens)
        x = np.arange(shift + 1, shift + n_tokens, dtype=np.float64)
        trained = float(readings.trained_length)
        mark = (np.array([trained, trained + 1e-6]), np.array([low, high]))
        is_changed = not readings.change.is_none
        rows = [
            (look.name, loss_words(each.mean_loss), _changed(each, is_changed=is_changed))
            for look, each in zip(self._looks, readings.readings, strict=True)
        ]
        self.legend.show_rows(rows, self._looks)
        self.chart.show_points(
            (*((x, curve) for curve in curves), mark if shift < trained < end else _NOTHING),
            Axis(float(shift), float(end), tuple(linear_ticks(shift, end, 4, whole=True))),
            Axis(low, high, tuple(linear_ticks(low, high, 4, whole=True))),
            self.legend.words(),
        )
        self.chart.set_teller(lambda at: self._told(readings, round(at)))

    def _told(self, readings: SchemeReadings, position: int) -> str:
        index = min(max(1, position - readings.change.shift), len(readings.tokens) - 1)
        if index < 1:
            return self.legend.words()
        told = (
            f"{look.name} {smoothed(each.changed_loss)[index - 1]:.8g}"
            for look, each in zip(self._looks, readings.readings, strict=True)
        )
        return f"Position {index + readings.change.shift}, nats: {', '.join(told)}."

    def show_nothing(self) -> None:
        """Show empty axes."""
        axis = Axis(0.0, 1.0, ())
        nothing = [_NOTHING] * (len(self._looks) + 1)
        self.chart.show_points(nothing, axis, axis, "Nothing is read yet.")
        self.legend.show_rows([(look.name, "", "") for look in self._looks], self._looks)


def _changed(reading: SchemeReading, *, is_changed: bool) -> str:
    return loss_words(reading.changed_mean_loss) if is_changed else "—"
