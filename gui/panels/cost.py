"""The cost lab: what a pass costs by its length, part by part, by the formula and measured."""

from typing import ClassVar

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QLabel, QWidget

from engine.config import LARGEST
from engine.cost.formulas import ATTENTION, crossing, pass_cost, total
from engine.cost.measurements import Fit, Lab, Machine, Worked, fits_at_both_ends, ladder
from engine.cost.room import check_room
from engine.errors import EngineError
from engine.reading import Reading
from gui.costs import Costs
from gui.export.cost_tables import lab_tables
from gui.export.numbers import Table
from gui.panels.absence import absence
from gui.panels.base import Figure, Panel
from gui.theme import Theme
from gui.view import View
from gui.widgets.column_page import ColumnPage
from gui.widgets.curves import CurveChart, Floats, Points, Series
from gui.widgets.figure_table import FigureTable
from gui.widgets.fitting_label import FittingLabel, font_of, tint
from gui.widgets.number_field import Number, NumberField, NumberKind
from gui.widgets.run_button import RunButton
from gui.widgets.user_slider import UserSlider
from gui.widgets.wrapping_label import WrappingLabel
from gui.wishes import MeasureCost, SetCosts, StopMeasuringCost
from gui.words.chart_axes import logs, powers_of_ten, powers_of_two
from gui.words.cost_lab import (
    HEADINGS,
    Digits,
    crossing_words,
    growth,
    lab_said,
    length_digits,
    limit_words,
    part_rows,
    roof_words,
    time_growth,
)
from gui.words.two_ways import digits_said

SHORTEST = 128
SWEEP = (
    "Time passes of growing length on this machine, part by part, and the machine itself; "
    "typing always comes first."
)
_ATTENTION = Series("attention", "text", "line")
_OTHERS = Series("all else", "text_dim", "dashes")
_CROSSING = Series("crossing", "accent", "dotted")
_TIMES = (
    Series("attention", "text", "dots"),
    Series("all else", "text_dim", "triangles"),
    Series("fitted", "text", "line"),
    Series("", "text_dim", "dashes"),
)
_ROOF = (
    Series("roof", "text", "line"),
    Series("prefill", "text", "dots"),
    Series("decode", "text_dim", "triangles"),
)
_N_POINTS = 48
_NOTHING: Points = np.empty(0), np.empty(0)


class CostPanel(Panel):
    """A field and a button for the sweep, three pictures on logarithmic axes, and a table."""

    name: ClassVar[str] = "cost"
    is_of_text: ClassVar[bool] = False

    def __init__(self) -> None:
        super().__init__()
        kind = NumberKind(
            name="longest",
            least=SHORTEST,
            most=LARGEST,
            step=SHORTEST,
            use=f"use {SHORTEST} or more",
            room_for="000000",
        )
        self._reading: Reading | None = None
        self.longest = NumberField(kind, self._check_longest, self)
        self.longest.setToolTip("The longest text to measure, in tokens")
        self.longest_label = QLabel("up to")
        self.longest_label.setTextFormat(Qt.TextFormat.PlainText)
        self.longest_label.setBuddy(self.longest)
        self.run = RunButton("Sweep the length", SWEEP, (self.longest_label, self.longest))
        self.complaint, self.note = WrappingLabel(), WrappingLabel()
        self.growth, self.times, self.crossing, self.roof = (WrappingLabel() for _ in range(4))
        self.work_chart = CurveChart(
            ("multiply-adds of a pass", "mult.-adds"), "tokens", (_ATTENTION, _OTHERS, _CROSSING)
        )
        self.time_chart = CurveChart(("ms of a pass, measured", "ms"), "tokens", _TIMES)
        self.bytes_chart = CurveChart(
            ("bytes moved by a pass", "bytes"), "tokens", (_ATTENTION, _OTHERS)
        )
        self.roof_chart = CurveChart(
            ("multiply-adds per second, measured", "per second"), "per byte", _ROOF
        )
        self.slider = UserSlider()
        self.slider.setAccessibleName("Length: tokens of the pass")
        self.slider.chosen.connect(self._choose)
        self.length_said = FittingLabel()
        self.table = FigureTable("Parts of a pass", HEADINGS, gives_way=(2, 3, 5))
        self._lengths: list[int] = []
        self.complaint.say("")
        self._connect()
        self._page = ColumnPage(
            (
                self.run,
                self.complaint,
                self.note,
                self.work_chart,
                self.time_chart,
                self.growth,
                self.times,
                self.crossing,
            ),
            (self._length_row(), self.table, self.bytes_chart, self.roof_chart, self.roof),
        )
        outer = QHBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(self._page)
        self.setFocusProxy(self.longest)

    def _connect(self) -> None:
        for chart in (self.work_chart, self.time_chart, self.bytes_chart):
            chart.set_teller(self._tell)
        self.longest.committed.connect(
            lambda n: self.wish(SetCosts({"longest": int(n), "length": 0}))
        )
        self.longest.complained.connect(self.complaint.say)
        self.run.run_wanted.connect(lambda: self.wish(MeasureCost("sweep")))
        self.run.stop_wanted.connect(lambda: self.wish(StopMeasuringCost()))

    def _length_row(self) -> QWidget:
        row = QWidget()
        across = QHBoxLayout(row)
        across.setContentsMargins(0, 0, 0, 0)
        across.addWidget(self.slider, 1)
        across.addWidget(self.length_said)
        return row

    def _check_longest(self, value: Number) -> None:
        if not SHORTEST <= value <= LARGEST:
            raise EngineError(
                f"longest = {value} is not possible; use {SHORTEST} to {LARGEST:,} tokens."
            )
        if self._reading is not None:
            check_room(self._reading.info.config, int(value))

    def _choose(self, index: int) -> None:
        self.wish(SetCosts({"length": self._lengths[index]}))

    def draw(self, view: View, previous: View | None) -> None:
        """Show the formula at once, and what was measured as it comes."""
        is_new_theme = previous is None or previous.theme is not view.theme
        costs, reading = view.state.costs, view.reading
        self._reading = reading
        self._draw_controls(view)
        before = None if is_new_theme else previous
        if before is not None and _shows_the_same(view, before):
            return
        missing = "" if reading is not None else absence(view, "what its passes cost")
        widgets = (self.work_chart, self.bytes_chart, self.table, self.slider, self.length_said)
        for widget in widgets:
            widget.setVisible(reading is not None)
        self.note.say(missing)
        if reading is not None:
            if before is None or not _has_the_same_formula(view, before):
                self._draw_formula(reading, costs)
            self._draw_length(reading, costs)
            self._draw_measured(reading, costs)
        labels = (self.note, self.growth, self.times, self.crossing, self.roof)
        words = (*(label.text() for label in labels), self.table.words())
        self.setAccessibleDescription(" ".join((self.help, *filter(None, words))))

    def reading_of(self, view: View) -> Reading | None:
        """The one on whose model it was measured, if it was."""
        lab = _lab_of(view.state.costs, view.reading)
        return view.reading if lab is None else view.state.costs.lab.reading  # type: ignore[union-attr]

    def figures(self) -> tuple[Figure, ...]:
        """The length that is pointed at in a chart, else the one whose parts are listed."""
        charts = (self.work_chart, self.time_chart, self.bytes_chart)
        places = [chart.pointed for chart in charts if chart.pointed is not None]
        return tuple(Figure(*each) for each in self._digits(places[0] if places else None))

    def _digits(self, place: float | None) -> Digits:
        """Of the length at a place along the logarithmic axis; None: the one that is listed."""
        view = self._drawn
        reading = None if view is None else view.reading
        if view is None or reading is None or not self._lengths:
            return ()
        listed = self._lengths[self.slider.value()]
        length = listed if place is None else round(10**place)
        held, lab = reading.info.held.number_format, _lab_of(view.state.costs, reading)
        return length_digits(reading.info.config, length, held, lab)

    def _tell(self, place: float) -> str:
        return digits_said(f"{10**place:,.0f} tokens", self._digits(place))

    def numbers(self, view: View) -> tuple[Table, ...]:
        """The formula at every length, what was measured, and the machine."""
        reading, costs = view.reading, view.state.costs
        if reading is None:
            return ()
        return lab_tables(reading, ladder(costs.longest), _lab_of(costs, reading))

    # The parts

    def _draw_controls(self, view: View) -> None:
        costs = view.state.costs
        self.longest.show_value(costs.longest)
        lab = _lab_of(costs, view.reading)
        is_running = costs.running == "sweep"
        said = lab_said(lab, is_running=is_running, is_resting=costs.is_resting)
        self.run.show_progress(
            is_running=is_running,
            wordings=said,
            obstacle=costs.obstacles.get("sweep", ""),
            can_run=view.reading is not None,
        )

    def _draw_formula(self, reading: Reading, costs: Costs) -> None:
        config, held = reading.info.config, reading.info.held.number_format
        self._lengths = ladder(costs.longest)
        x = np.unique(np.geomspace(self._lengths[0], costs.longest, _N_POINTS).round())
        found = [pass_cost(config, int(n), number_format=held) for n in x]
        for chart, name, unit in (
            (self.work_chart, "multiply_adds", "multiply-adds"),
            (self.bytes_chart, "n_bytes", "bytes"),
        ):
            ours = np.array([getattr(total(each, ATTENTION), name) for each in found], np.float64)
            others = np.array([getattr(total(each), name) for each in found], np.float64) - ours
            y = powers_of_ten(min(ours.min(), others.min()), max(ours.max(), others.max()))
            points = [(logs(x), logs(ours)), (logs(x), logs(others))]
            if chart is self.work_chart:
                at = crossing(config)
                points.append(_upright(at, y.low, y.high) if at else _NOTHING)
            words = (
                f"{unit} at {x[-1]:,.0f} tokens: attention {ours[-1]:,.0f}, all else "
                f"{others[-1]:,.0f}"
            )
            chart.show_points(points, powers_of_two(x[0], x[-1]), y, words)
        self.growth.say(growth(config, costs.longest))
        self.note.say(limit_words(config, costs.longest))

    def _draw_length(self, reading: Reading, costs: Costs) -> None:
        """The parts at the chosen length, with their times where it was measured."""
        config, held = reading.info.config, reading.info.held.number_format
        length = costs.length if costs.length in self._lengths else self._lengths[-1]
        self.slider.show_value(self._lengths.index(length), 0, len(self._lengths) - 1)
        self.length_said.set_wordings(f"{length:,} tokens")
        self.slider.setAccessibleDescription(f"{length:,} tokens")
        self.table.show_rows(part_rows(config, length, held, _lab_of(costs, reading)))

    def _draw_measured(self, reading: Reading, costs: Costs) -> None:
        lab = _lab_of(costs, reading)
        self.crossing.say(crossing_words(reading.info.config, lab))
        has_times = lab is not None and len(lab.points) > 0
        self.time_chart.setVisible(has_times)
        self.times.say(time_growth(lab) if lab is not None and has_times else "")
        if lab is not None and has_times:
            self._draw_times(lab, costs.longest)
        machine = None if lab is None else lab.machine
        self.roof_chart.setVisible(machine is not None)
        self.roof.say("" if lab is None else roof_words(machine, lab.prefill, lab.decode))
        if lab is not None and machine is not None:
            self._draw_roof(machine, lab.prefill, lab.decode)

    def _draw_times(self, lab: Lab, longest: int) -> None:
        x = lab.lengths
        ours, others = 1000 * lab.column("attention"), 1000 * lab.column("others")
        points: list[Points] = [(logs(x), logs(ours)), (logs(x), logs(others))]
        for each in (ours, others):
            _short, long = fits_at_both_ends(x, each)
            points.append(_NOTHING if long is None else _fitted(long))
        y = powers_of_ten(min(ours.min(), others.min()), max(ours.max(), others.max()))
        words = (
            f"milliseconds at {x[-1]:,.0f} tokens: attention {ours[-1]:,.4g}, all else "
            f"{others[-1]:,.4g}"
        )
        self.time_chart.show_points(points, powers_of_two(x[0], max(longest, x[-1])), y, words)

    def _draw_roof(self, machine: Machine, prefill: Worked | None, decode: Worked | None) -> None:
        worked = [each for each in (prefill, decode) if each is not None]
        places = [machine.ridge, *(each.per_byte for each in worked)]
        x = powers_of_ten(min(places) / 2, max(places) * 2)
        corners = np.array([10**x.low, machine.ridge, 10**x.high])
        roof = np.array([machine.roof(float(at)) for at in corners])
        reached = [each.per_second for each in worked]
        y = powers_of_ten(min([roof[0], *reached]), max([roof[-1], *reached]))
        points: list[Points] = [(logs(corners), logs(roof))]
        points += [_NOTHING if each is None else _place(each) for each in (prefill, decode)]
        self.roof_chart.show_points(points, x, y, roof_words(machine, prefill, decode))

    def _dress(self, theme: Theme) -> None:
        self._page.set_theme(theme)
        self.longest.set_theme(theme)
        self.longest_label.setFont(font_of(self, theme.font_body))
        tint(self.longest_label, theme.text)
        self.run.set_theme(theme)
        self.length_said.set_look(theme, theme.text)
        self.complaint.set_look(theme.font_axis, theme.bad)
        self.note.set_look(theme.font_axis, theme.text_dim)
        for label in (self.growth, self.times, self.crossing, self.roof):
            label.set_look(theme.font_body, theme.text)
        for chart in (self.work_chart, self.time_chart, self.bytes_chart, self.roof_chart):
            chart.set_theme(theme)
            chart.setMinimumHeight(11 * theme.font_axis)
        self.table.set_theme(theme)


def _lab_of(costs: Costs, reading: Reading | None) -> Lab | None:
    """What was measured of the model that is open."""
    if costs.lab is None or reading is None or costs.lab.reading.info is not reading.info:
        return None
    return costs.lab.found


def _shows_the_same(view: View, previous: View) -> bool:
    """Whether nothing that takes arithmetic has changed: the text plays no part."""
    now, before = view.state.costs, previous.state.costs
    if view.reading is None or previous.reading is None:
        return view.reading is previous.reading and view.state.phase == previous.state.phase
    labs = _lab_of(now, view.reading), _lab_of(before, previous.reading)
    return (
        _has_the_same_formula(view, previous)
        and _has_the_same_times(*labs)
        and now.length == before.length
    )


def _has_the_same_formula(view: View, previous: View) -> bool:
    """Whether what is worked out from the configuration stands as it was drawn."""
    return (
        view.reading is not None
        and previous.reading is not None
        and view.reading.info is previous.reading.info
        and view.state.costs.longest == previous.state.costs.longest
    )


def _has_the_same_times(lab: Lab | None, before: Lab | None) -> bool:
    """Whether a sweep has measured nothing since; how far it is stands beside its button."""
    if lab is None or before is None:
        return lab is before
    return (
        lab.points is before.points
        and lab.machine is before.machine
        and lab.prefill is before.prefill
        and lab.decode is before.decode
    )


def _upright(at: float, low: float, high: float) -> Points:
    return np.full(2, np.log10(at)), np.array([low, high])


def _fitted(fit: Fit) -> Points:
    ends: Floats = np.array([fit.low, fit.high])
    return logs(ends), logs(fit.at(ends))


def _place(worked: Worked) -> Points:
    return np.array([np.log10(worked.per_byte)]), np.array([np.log10(worked.per_second)])
