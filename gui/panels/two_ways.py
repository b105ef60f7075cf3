"""The same work done in two ways, here and now: with and without the cache, at once and in turn."""

from typing import ClassVar

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QLabel

from engine.cost.measurements import TOLERANCE, BothWays, OneByOne
from engine.errors import EngineError
from engine.reading import Reading
from gui.costs import Costs, Experiment
from gui.export.cost_tables import two_ways_tables
from gui.export.numbers import Table
from gui.panels.absence import absence
from gui.panels.base import Figure, Panel
from gui.theme import Theme
from gui.view import View
from gui.widgets.axis_ticks import Tick, linear_ticks
from gui.widgets.column_page import ColumnPage
from gui.widgets.curves import Axis, CurveChart, Series
from gui.widgets.figure_table import FigureTable
from gui.widgets.fitting_label import font_of, tint
from gui.widgets.number_field import Number, NumberField, NumberKind
from gui.widgets.run_button import RunButton
from gui.widgets.verdict import GLYPHS, verdict_of
from gui.widgets.wrapping_label import WrappingLabel
from gui.wishes import MeasureCost, SetCosts, StopMeasuringCost
from gui.words.chart_axes import from_zero
from gui.words.two_ways import (
    HIDDEN_CELLS,
    agreement,
    both_said,
    digits_said,
    equality,
    one_said,
    step_digits,
    token_digits,
    totals,
    turns,
    uncounted,
)

_WITH, _WITHOUT = Series("with", "text", "line"), Series("without", "text_dim", "dashes")
MOST_STEPS = 4096
DECODING = (
    "Decode some tokens after the text, each once with the cache and once with all rows computed "
    "again."
)
CHANGED = "The text, the mask or the model has changed since."
READING = "Read the text in one pass, and again one token at a time, under the same mask."


class TwoWaysPanel(Panel):
    """Two experiments, each with a button, the largest difference, curves and totals.

    Whether both ways gave the same is what they are run for: it stands where it is seen at once.
    """

    name: ClassVar[str] = "two_ways"

    def __init__(self) -> None:
        super().__init__()
        self.run_one = RunButton("Read both ways", READING)
        kind = NumberKind(
            name="steps", least=1, most=MOST_STEPS, step=1, use=f"use 1 to {MOST_STEPS:,}"
        )
        self.steps = NumberField(kind, _check_steps, self)
        self.steps.setToolTip("How many tokens to decode both ways")
        self.steps_label = QLabel("steps")
        self.steps_label.setTextFormat(Qt.TextFormat.PlainText)
        self.steps_label.setBuddy(self.steps)
        self.run_both = RunButton("Decode both ways", DECODING, (self.steps_label, self.steps))
        self.decoding, self.reading_note = WrappingLabel(DECODING), WrappingLabel(READING)
        self.complaint, self.agreement, self.equality = (WrappingLabel() for _ in range(3))
        self.uncounted, self.hidden_cells = WrappingLabel(), WrappingLabel()
        self.rows_chart = CurveChart(("rows of keys and values", "rows"), "step", (_WITH, _WITHOUT))
        self.time_chart = CurveChart(("ms per step", "ms"), "step", (_WITH, _WITHOUT))
        self.work_chart = CurveChart(
            ("million multiply-adds per step", "M mult.-adds", "M"), "step", (_WITH, _WITHOUT)
        )
        headings = ("in all steps", "with", "without", "ratio")
        self.totals = FigureTable("Totals with and without the cache", headings)
        self.turn_chart = CurveChart(
            ("ms since the first token", "ms"),
            "tokens",
            (Series("one by one", "text", "line"), Series("at once", "text_dim", "dashes")),
        )
        headings = ("the whole text", "at once", "one by one", "ratio")
        self.turns = FigureTable("At once and one by one", headings)
        self.complaint.say("")
        self._connect()
        self._page = ColumnPage(
            (
                self.decoding,
                self.run_both,
                self.complaint,
                self.agreement,
                self.rows_chart,
                self.time_chart,
                self.work_chart,
                self.totals,
                self.uncounted,
            ),
            (
                self.reading_note,
                self.run_one,
                self.equality,
                self.turn_chart,
                self.turns,
                self.hidden_cells,
            ),
        )
        outer = QHBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(self._page)
        self.setFocusProxy(self.steps)

    @property
    def _step_charts(self) -> tuple[CurveChart, ...]:
        return self.rows_chart, self.time_chart, self.work_chart

    def _connect(self) -> None:
        for chart in self._step_charts:
            chart.set_teller(self._tell_step)
        self.turn_chart.set_teller(self._tell_token)
        self.steps.committed.connect(lambda n: self.wish(SetCosts({"n_steps": int(n)})))
        self.steps.complained.connect(self.complaint.say)
        for button, what in ((self.run_both, "both ways"), (self.run_one, "one by one")):
            button.run_wanted.connect(lambda what=what: self.wish(MeasureCost(what)))
            button.stop_wanted.connect(lambda: self.wish(StopMeasuringCost()))

    def draw(self, view: View, previous: View | None) -> None:
        """Show what is known; curves only where that has changed."""
        is_new_theme = previous is None or previous.theme is not view.theme
        costs = view.state.costs
        before = None if previous is None else previous.state.costs
        self.steps.show_value(costs.n_steps)
        self._draw_buttons(view)
        if before is None or before.both_ways is not costs.both_ways or is_new_theme:
            self._draw_both(costs.both_ways.found if costs.both_ways else None)
        if before is None or before.one_by_one is not costs.one_by_one or is_new_theme:
            self._draw_turns(costs.one_by_one.found if costs.one_by_one else None)
        labels = (self.run_both.said, self.agreement, self.run_one.said, self.equality)
        words = (label.text() for label in labels)
        self.setAccessibleDescription(" ".join((self.help, *filter(None, words))))

    def reading_of(self, view: View) -> Reading | None:
        """What the experiments ran on, if they have."""
        costs = view.state.costs
        measured = costs.both_ways or costs.one_by_one
        return measured.reading if measured is not None else view.reading

    def figures(self) -> tuple[Figure, ...]:
        """The step or the token that is pointed at in a chart, else the latest step or token."""
        costs = Costs() if self._drawn is None else self._drawn.state.costs
        one, both, pointed = costs.one_by_one, costs.both_ways, self.turn_chart.pointed
        if one is not None and (both is None or pointed is not None):
            number = one.found.n_done if pointed is None else round(pointed)
            return tuple(Figure(*each) for each in token_digits(one.found, number))
        if both is None:
            return ()
        places = [chart.pointed for chart in self._step_charts if chart.pointed is not None]
        number = round(places[0]) if places else len(both.found.steps)
        return tuple(Figure(*each) for each in step_digits(both.found, number))

    def _tell_step(self, number: float) -> str:
        both = self._drawn.state.costs.both_ways if self._drawn else None
        digits = () if both is None else step_digits(both.found, round(number))
        return digits_said(f"Step {number:.0f}", digits)

    def _tell_token(self, number: float) -> str:
        one = self._drawn.state.costs.one_by_one if self._drawn else None
        digits = () if one is None else token_digits(one.found, round(number))
        return digits_said(f"After {number:.0f} tokens", digits)

    def numbers(self, view: View) -> tuple[Table, ...]:
        """Each step and each token, and the totals; of one and the same text."""
        costs, reading = view.state.costs, self.reading_of(view)
        both, one = costs.both_ways, costs.one_by_one
        return two_ways_tables(
            both.found if both is not None else None,
            one.found if one is not None and one.reading is reading else None,
        )

    # Buttons and what they say

    def _draw_buttons(self, view: View) -> None:
        costs = view.state.costs
        both, one = costs.both_ways, costs.one_by_one
        how = {"is_running": costs.running == "both ways", "is_resting": costs.is_resting}
        said = both_said(both.found, **how) if both else ()
        self._draw_button(self.run_both, "both ways", view, said, both.reading if both else None)
        how["is_running"] = costs.running == "one by one"
        said = one_said(one.found, **how) if one else ()
        self._draw_button(self.run_one, "one by one", view, said, one.reading if one else None)

    def _draw_button(
        self,
        button: RunButton,
        what: Experiment,
        view: View,
        said: tuple[str, ...],
        of: Reading | None,
    ) -> None:
        is_running = view.state.costs.running == what
        if not said and not is_running:
            said = (absence(view, "it read both ways"), "no text yet")
        elif not is_running and of is not None and _has_changed(of, view.reading):
            said = (f"{said[0]}. {CHANGED}", f"{said[-1]}; not now")
        button.show_progress(
            is_running=is_running,
            wordings=said,
            obstacle=view.state.costs.obstacles.get(what, ""),
            can_run=view.n_tokens > 0,
        )

    # Curves and totals

    def _draw_both(self, both: BothWays | None) -> None:
        has_steps = both is not None and len(both.steps) > 0
        for widget in (self.rows_chart, self.time_chart, self.work_chart, self.totals):
            widget.setVisible(has_steps)
        if both is None or not has_steps:
            self.agreement.say("")
            self.uncounted.say("")
            return
        x = np.arange(1.0, len(both.steps) + 1)
        axis = Axis(0.5, both.n_wanted + 0.5, tuple(_step_ticks(both.n_wanted)))
        for chart, name, size in (
            (self.rows_chart, "rows", 1.0),
            (self.time_chart, "seconds", 1e-3),
            (self.work_chart, "multiply_adds", 1e6),
        ):
            ways = [both.column(f"{name}_{way}") / size for way in ("with", "without")]
            top = from_zero(max(float(way.max()) for way in ways))
            words = f"step {len(x)}: with the cache {ways[0][-1]:,.4g}, without {ways[1][-1]:,.4g}"
            chart.show_points([(x, way) for way in ways], axis, top, words)
        self.totals.show_rows(totals(both))
        is_same = both.difference <= TOLERANCE and both.n_same == len(both.steps)
        glyph = GLYPHS[verdict_of(is_same)]
        self.agreement.say(f"{glyph} {agreement(both)}")
        self.uncounted.say(uncounted(both))

    def _draw_turns(self, one: OneByOne | None) -> None:
        has_tokens = one is not None and one.n_done > 0
        for widget in (self.turn_chart, self.turns):
            widget.setVisible(has_tokens)
        if one is None or not has_tokens:
            self.equality.say("")
            self.hidden_cells.say("")
            return
        tokens = np.arange(1.0, one.n_done + 1)
        taken = 1000 * np.cumsum(one.serial_seconds)
        whole = 1000 * one.parallel_seconds
        axis = Axis(0.0, one.n_tokens + 0.5, tuple(_step_ticks(one.n_tokens)))
        across = np.array([0.0, one.n_tokens]), np.array([whole, whole])
        top = from_zero(max(float(taken[-1]), whole))
        words = f"one by one {taken[-1]:,.4g} ms for {one.n_done:,} tokens, at once {whole:,.4g}"
        self.turn_chart.show_points(((tokens, taken), across), axis, top, words)
        self.turns.show_rows(turns(one))
        glyph = GLYPHS[verdict_of(one.n_equal == one.n_done)]
        self.equality.say(f"{glyph} {equality(one)}")
        self.hidden_cells.say(HIDDEN_CELLS)

    def _dress(self, theme: Theme) -> None:
        self._page.set_theme(theme)
        self.steps.set_theme(theme)
        self.steps_label.setFont(font_of(self, theme.font_body))
        tint(self.steps_label, theme.text)
        for label in (self.decoding, self.reading_note, self.agreement, self.equality):
            label.set_look(theme.font_body, theme.text)
        for label in (self.uncounted, self.hidden_cells):
            label.set_look(theme.font_axis, theme.text_dim)
        self.complaint.set_look(theme.font_axis, theme.bad)
        for button in (self.run_both, self.run_one):
            button.set_theme(theme)
        for chart in (self.rows_chart, self.time_chart, self.work_chart, self.turn_chart):
            chart.set_theme(theme)
            chart.setMinimumHeight(9 * theme.font_axis)
        for table in (self.totals, self.turns):
            table.set_theme(theme)


def _check_steps(value: Number) -> None:
    if not 1 <= value <= MOST_STEPS:
        raise EngineError(f"steps = {value} is not possible; use 1 to {MOST_STEPS:,}.")


def _has_changed(measured: Reading, now: Reading | None) -> bool:
    """Whether what is shown is another model, another mask or another text than was measured."""
    return (
        now is None
        or measured.info is not now.info
        or measured.conditions != now.conditions
        or not np.array_equal(measured.session.token_ids, now.session.token_ids)
    )


def _step_ticks(most: int) -> list[Tick]:
    return linear_ticks(0.0, float(most), 5, whole=True)
