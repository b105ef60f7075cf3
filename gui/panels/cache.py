"""The KV cache: what it holds, by measure and by formula, and what it saves, pass by pass."""

from collections import Counter
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QCheckBox, QHBoxLayout, QLabel, QVBoxLayout

from engine.conditions import Conditions
from engine.cost.formulas import n_kept
from engine.reading import PassStats, Reading
from engine.sizes import bytes_said
from gui.export.numbers import Table
from gui.export.tables import pass_tables
from gui.panels.absence import absence
from gui.panels.base import Figure, Panel
from gui.theme import LIGHT, Theme
from gui.view import View
from gui.widgets.arithmetic_stages import exact
from gui.widgets.axis_ticks import linear_ticks, log_ticks
from gui.widgets.chart_grid import ChartGrid
from gui.widgets.curves import Axis, CurveChart, Floats, Points, Series
from gui.widgets.fitting_label import FittingLabel, font_of, tint
from gui.widgets.verdict import GLYPHS, Verdict, verdict_colour, verdict_of
from gui.wishes import SetCache
from gui.words.cache_figures import CacheFigures, PassColumns, thrown_away, used_cache
from gui.words.chart_axes import from_zero
from gui.words.quantities import counted

N_SHOWN = 200  # passes, those to come included; older ones stay in the sums
_AHEAD = 20  # the axis of passes moves on by so many

FORMULA = "2 · n_layer · n_kv_head · head_dim · tokens · bytes"
WINDOWED = (
    "2 · n_kv_head · head_dim · rows of all layers · bytes; through a window, the layer's own or "
    "the mask's, a layer keeps min(tokens, window) rows and the first k that the mask keeps in "
    "sight, because no later query sees the others"
)
MASK_OFF = (
    "Without the mask nothing can be cached: a new token changes every earlier row.",
    "Without the mask nothing can be cached.",
)
CACHE_OFF = (
    "The cache is off: every pass computes the rows of all tokens again.",
    "The cache is off: every pass computes all rows.",
)

_WIDE_EMS, _HIGH_EMS = 40, 15  # from where on lines fit on one line, or may take two

_WITH, _WITHOUT = "text", "text_dim"  # colours of the theme


class _CacheSwitch(QCheckBox):
    """Wears what the state says; a press asks, and does not turn itself."""

    def nextCheckState(self) -> None:
        """Stay as it is until it is told."""


class CachePanel(Panel):
    """A switch, three lines of figures, and three charts over the number of the pass."""

    name: ClassVar[str] = "cache"

    def __init__(self) -> None:
        super().__init__()
        self.switch = _CacheSwitch("KV cache")
        self.switch.setToolTip("Off: every pass computes keys and values of all tokens again")
        self.switch.setAccessibleDescription(self.switch.toolTip())
        self.switch.clicked.connect(lambda _checked: self._toggle())
        self.held, self.formula, self.rows = FittingLabel(), FittingLabel(), FittingLabel()
        self.sentence = QLabel()
        self.sentence.setTextFormat(Qt.TextFormat.PlainText)
        self.sentence.setWordWrap(True)
        self.sentence.setAlignment(Qt.AlignmentFlag.AlignTop)
        held = Series("held", _WITH, "line"), Series("formula", _WITHOUT, "dashes")
        rows = Series("with", _WITH, "line"), Series("without", _WITHOUT, "dashes")
        took = Series("with", _WITH, "dots"), Series("without", _WITHOUT, "triangles")
        self.bytes_chart = CurveChart(("KiB after a pass", "KiB"), "pass", held)
        self.rows_chart = CurveChart(("rows computed", "rows"), "pass", rows)
        self.time_chart = CurveChart(("ms per pass", "ms"), "pass", took)
        for chart in (self.rows_chart, self.time_chart, self.bytes_chart):
            chart.set_teller(self._tell_pass)
        self.copy_by_key(self.switch)
        self.charts = ChartGrid((self.rows_chart, self.time_chart, self.bytes_chart))
        self._em = LIGHT.font_body
        self._columns = PassColumns()
        self._charted: Sequence[PassStats] | None = None
        self._lay_out()

    def _lay_out(self) -> None:
        self._top = QHBoxLayout()
        self._top.addWidget(self.switch)
        self._top.addWidget(self.held, 1)
        self._column = QVBoxLayout(self)
        self._column.addLayout(self._top)
        self._column.addWidget(self.formula)
        self._column.addWidget(self.rows)
        self._column.addWidget(self.charts, 1)
        self._column.addWidget(self.sentence, 1)

    def _toggle(self) -> None:
        if self._drawn is not None:
            self.wish(SetCache(not self._drawn.state.use_cache))

    def draw(self, view: View, _previous: View | None) -> None:
        """Show the figures of this moment; the curves only if a pass was added."""
        self.switch.setChecked(view.state.use_cache)
        reading = view.reading
        missing = absence(view, "what the cache holds and saves")
        self.sentence.setText(missing)
        self.sentence.setVisible(bool(missing))
        for widget in (self.held, self.formula, self.rows):
            widget.setVisible(not missing)
        self.charts.setVisible(not missing)
        if reading is None or missing:
            self.setAccessibleDescription(missing)
            return
        self._draw_figures(view, reading)
        self._columns.update(reading.stats)
        self._draw_rows(view, reading)
        if self._charted is not reading.stats:
            self._charted = reading.stats
            self._draw_charts(reading)
        parts = (self.held.text(), self.formula.text(), self.rows.text())
        self.setAccessibleDescription(" ".join(parts))

    def numbers(self, view: View) -> tuple[Table, ...]:
        """Every pass so far, and what each layer holds."""
        return pass_tables(view.reading) if view.reading is not None else ()

    def figures(self) -> tuple[Figure, ...]:
        """What the pass cost that is pointed at in a chart, else the latest."""
        stats = () if self._drawn is None or not self._drawn.reading else self._drawn.reading.stats
        charts = (self.rows_chart, self.time_chart, self.bytes_chart)
        pointed = [chart.pointed for chart in charts if chart.pointed is not None]
        return pass_figures(stats, int(pointed[0]) if pointed else len(stats))

    def _tell_pass(self, number: float) -> str:
        reading = self._drawn.reading if self._drawn else None
        figures = pass_figures(() if reading is None else reading.stats, int(number))
        said = "; ".join(f"{figure.name} {figure.digits}" for figure in figures)
        return f"Pass {number:.0f}: {said}"

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Where it is narrow and high, let lines wrap."""
        super().resizeEvent(event)
        self._wrap_lines()

    def _wrap_lines(self) -> None:
        narrow = self.width() < _WIDE_EMS * self._em
        high = self.height() > _HIGH_EMS * self._em
        for line in (self.formula, self.rows):
            line.set_max_lines(2 if narrow and high else 1)

    def _dress(self, theme: Theme) -> None:
        unit = theme.unit
        self._column.setContentsMargins(2 * unit, unit, 2 * unit, unit)
        self._column.setSpacing(unit // 2)
        self._top.setSpacing(3 * unit)
        self._em = theme.font_body
        self._wrap_lines()
        font = font_of(self, theme.font_body)
        for widget in (self.switch, self.sentence):
            widget.setFont(font)
        tint(self.sentence, theme.text_dim)
        for chart in (self.bytes_chart, self.rows_chart, self.time_chart):
            chart.set_theme(theme)
        self.charts.set_spacing(2 * unit)

    def _draw_figures(self, view: View, reading: Reading) -> None:
        theme, figures = view.theme, CacheFigures.of(reading)
        verdict: Verdict = verdict_of(figures.agrees) if figures.in_use else "idle"
        held, allocated = f"{figures.held:,} B", f"{figures.allocated:,} B"
        self.held.set_look(theme, _quiet(view, theme.text))
        self.held.set_wordings(
            f"holds {held}{_scaled(figures.held)} of {allocated} preallocated",
            f"holds {held} of {allocated}",
            f"holds {held}",
        )
        self.formula.set_look(theme, _quiet(view, verdict_colour(theme, verdict)))
        if not figures.in_use:
            self.formula.set_wordings(*(CACHE_OFF if not reading.use_cache else MASK_OFF))
            return
        agreement = "as the tensors hold" if figures.agrees else f"but the tensors hold {held}"
        self.formula.set_wordings(*_formula(figures, GLYPHS[verdict], agreement))
        formula = WINDOWED if figures.has_windows else FORMULA
        self.formula.setToolTip(f"{formula}; {self.formula.text()}; {_by_layer(reading)}")

    def _draw_rows(self, view: View, reading: Reading) -> None:
        self.rows.set_look(view.theme, _quiet(view, view.theme.text))
        if not reading.stats:
            self.rows.set_wordings("")
            return
        last, columns = reading.stats[-1], self._columns
        figures = CacheFigures.of(reading)
        row_bytes = figures.row_bytes * figures.n_layer if used_cache(last) else 0
        written = last.n_computed * row_bytes
        computed, without = int(columns.n_computed.sum()), int(columns.n_tokens.sum())
        thrown = thrown_away(reading.stats)
        gone = f", {last.n_kept:,} kept and {thrown:,} thrown away" if thrown else ""
        fallen = f", {reading.n_fallen:,} fallen out" if reading.n_fallen else ""
        rows = counted(last.n_tokens, "row")
        short = f"{last.n_computed:,} of {rows}"
        if thrown:
            short += f", {last.n_kept:,} kept, {thrown:,} thrown away"
        short += fallen
        done = f"{last.n_computed:,} of {rows} computed{gone}{fallen}"
        wrote = f"wrote {written:,} B" if figures.has_windows else f"+{written:,} B"
        per_pass = f"last pass {wrote}, {done}"
        in_all = (
            f"{counted(len(columns), 'pass', 'passes')} in all: {computed:,} of {without:,} rows"
        )
        took = f"{1000 * last.seconds:,.1f} ms"
        self.rows.set_wordings(
            f"{per_pass}, {took}; {in_all}",
            f"{wrote}, {short}, {took}; {in_all}",
            f"{wrote}, {short}; in all {computed:,} of {without:,}",
            f"{short}; in all {computed:,} of {without:,}",
            short,
        )

    def _draw_charts(self, reading: Reading) -> None:
        columns, figures = self._columns, CacheFigures.of(reading)
        if not len(columns):
            return
        newest = len(columns) + -len(columns) % _AHEAD
        shown = slice(max(0, newest - N_SHOWN), None)
        x, n_tokens = columns.numbers[shown], columns.n_tokens[shown]
        computed = columns.n_computed[shown]
        axis = _pass_axis(x)
        held = columns.cache_bytes[shown] / 1024
        formula = figures.bytes_after(columns, shown) / 1024
        self.bytes_chart.show_points(
            ((x, held), (x, formula)),
            axis,
            from_zero(max(held.max(), formula.max())),
            f"KiB held after pass {len(columns)}: {held[-1]:,.1f}; by the formula for all "
            f"{n_tokens[-1]:,.0f} tokens {formula[-1]:,.1f}",
        )
        self.rows_chart.show_points(
            ((x, computed), (x, n_tokens)),
            axis,
            from_zero(n_tokens.max(), whole=True),
            f"rows computed in pass {len(columns)}: {computed[-1]:,.0f}; without the cache "
            f"{n_tokens[-1]:,.0f}",
        )
        self._draw_times(x, axis, shown)

    def _draw_times(self, x: Floats, axis: Axis, shown: slice) -> None:
        columns = self._columns
        took, cached = columns.milliseconds[shown], columns.cached[shown]
        # A pass that only dropped rows did no arithmetic and has no time.
        timed = (columns.n_computed[shown] > 0) & (took > 0)
        parts: list[Points] = []
        words = []
        for name, used in (("with", cached), ("without", ~cached)):
            chosen = timed & used
            parts.append((x[chosen], np.log10(took[chosen])))
            if chosen.any():
                words.append(f"{name} the cache {np.median(took[chosen]):.1f} (median)")
        self.time_chart.show_points(
            parts, axis, _powers_of_ten(took[timed]), f"milliseconds per pass: {', '.join(words)}"
        )


def pass_figures(stats: Sequence[PassStats], number: int) -> tuple[Figure, ...]:
    """What a pass cost, counted from 1, with all digits; nothing if there is none."""
    if not 1 <= number <= len(stats):
        return ()
    stat = stats[number - 1]
    return (
        Figure("rows computed", str(stat.n_computed)),
        Figure("rows without the cache", str(stat.n_tokens)),
        Figure("milliseconds", exact(1000 * stat.seconds)),
        Figure("bytes held", str(stat.cache_bytes)),
    )


def _quiet(view: View, colour: str) -> str:
    """What waits for a newer answer is dimmed."""
    return view.theme.text_dim if view.state.stale else colour


def _by_layer(reading: Reading) -> str:
    """What each layer's tensors hold."""
    held = reading.cache_layer_bytes
    if len(set(held)) == 1:
        return f"each of {counted(len(held), 'layer')} holds {held[0]:,} B"
    return f"the layers hold {', '.join(f'{each:,}' for each in held)} B"


def _scaled(n_bytes: int) -> str:
    return f" ({bytes_said(n_bytes)})" if n_bytes >= 1024 else ""


def _formula(figures: CacheFigures, glyph: str, agreement: str) -> tuple[str, ...]:
    result = f"{figures.by_formula:,.0f} B"
    each = f"{figures.bytes_per_number} bytes"
    heads = f"{figures.n_kv_head} n_kv_head · {figures.head_dim} head_dim"
    bare_heads = f"{figures.n_kv_head} · {figures.head_dim}"
    if figures.has_windows:
        rows = _rows(figures)
        named = f"{glyph} 2 · {heads} · {rows} rows · {each} = {result}"
        bare = f"{glyph} 2 · {bare_heads} · {rows} · {each} = {result}"
    else:
        tokens = counted(figures.n_tokens, "token")
        named = f"{glyph} 2 · {figures.n_layer} n_layer · {heads} · {tokens} · {each} = {result}"
        bare = f"{glyph} 2 · {figures.n_layer} · {bare_heads} · {tokens} · {each} = {result}"
    return f"{named}, {agreement}", named, bare, f"{glyph} formula {result}"


def _rows(figures: CacheFigures) -> str:
    """The rows of all layers, where some have windows: "(2 · min(9, 4) + 1 · 9)"."""
    windows = sorted(figures.windows, key=lambda window: (window == 0, window))
    kinds = Counter(_kept(figures.n_tokens, own, figures.conditions) for own in windows)
    said = [f"{n_layers} · {rows}" for rows, n_layers in kinds.items()]
    return said[0] if len(said) == 1 else f"({' + '.join(said)})"


def _kept(n_tokens: int, own: int, mask: Conditions) -> str:
    """The rows of a layer with such a window of its own, as a formula."""
    near, n_first = mask.narrowed(own), mask.n_first(own)
    if not near:
        return f"{n_tokens:,}"
    if not n_first:
        return f"min({n_tokens:,}, {near:,})"
    if own and n_tokens > own:  # which begins to hide the first ones
        return f"{int(n_kept(np.array([n_tokens]), own, mask)[0]):,}"
    return f"min({n_tokens:,}, {n_first:,} + {near:,})"


def _pass_axis(x: Floats) -> Axis:
    """All passes shown, and room for some to come: an axis that moves costs more than a curve."""
    low, n_ahead = float(x[0]), -int(x[-1]) % _AHEAD
    high = float(x[-1]) + n_ahead
    return Axis(low - 0.5, high + 0.5, tuple(linear_ticks(low, high, 4, whole=True)))


def _powers_of_ten(took: Floats) -> Axis:
    if not len(took):
        return Axis(0.0, 1.0, tuple(log_ticks(0, 1)))
    low, high = float(np.floor(np.log10(took.min()))), float(np.ceil(np.log10(took.max())))
    high = max(high, low + 1)
    return Axis(low - 0.08, high + 0.08, tuple(log_ticks(low, high)))
