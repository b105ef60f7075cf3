"""The cache under other designs: the same text, this model's limit, and well-known models."""

from functools import cache, lru_cache
from typing import ClassVar

import numpy as np
from PySide6.QtWidgets import QButtonGroup, QHBoxLayout, QPushButton, QWidget

import resources
from engine.cost.cache import CACHE_FORMATS, CacheDesign, designs
from engine.reading import Reading
from engine.sizes import bytes_said
from gui.export.cost_tables import LENGTHS, design_of, design_tables, rows_said
from gui.export.numbers import Table
from gui.panels.absence import absence
from gui.panels.base import Figure, Panel
from gui.state import State
from gui.theme import Theme
from gui.view import View
from gui.widgets.column_page import ColumnPage
from gui.widgets.curves import Axis, CurveChart, Floats, Series
from gui.widgets.figure_table import FigureTable, Row
from gui.widgets.fitting_label import font_of
from gui.widgets.wrapping_label import WrappingLabel
from gui.wishes import SetCosts
from gui.words.cache_figures import CacheFigures
from gui.words.chart_axes import from_zero, up_to

LOOKS = (
    Series("this model", "text", "line"),
    Series("multi-head", "text_dim", "line"),
    Series("grouped", "text", "dashes"),
    Series("multi-query", "text_dim", "dashes"),
    Series("window", "text", "dotted"),
    Series("first + window", "text_dim", "dash and dot"),
)
_NOW = Series("this text", "accent", "dotted")
_UNITS = (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10))
FIRST = 4  # positions that are always kept, where the mask panel names none
_FINEST = 256  # points of a curve

FORMULA = (
    "bytes = numbers per token and layer · rows that all layers keep · bytes per number. Keys and "
    "values are 2 · n_kv_head · head_dim numbers: multi-head has n_kv_head = n_head, multi-query "
    "1. A window keeps min(tokens, window) rows. The upright line is where this text stands."
)
FAMILIES_NOTE = (
    "By the same formula, from the published config.json of each model on huggingface.co. In "
    "brackets: longer than the configuration allows."
)


class DesignsPanel(Panel):
    """Curves over the length, a table that explains them, each layer, and a table of models."""

    name: ClassVar[str] = "designs"
    is_of_text: ClassVar[bool] = False

    def __init__(self) -> None:
        super().__init__()
        self.heading, self.layers_note = WrappingLabel(), WrappingLabel()
        self.families_note, self.sources = WrappingLabel(), WrappingLabel()
        self.formula = WrappingLabel(FORMULA)
        self.formats = QButtonGroup(self)
        self.chart = CurveChart(
            ("held, by tokens", "held"), "tokens", (*LOOKS, _NOW), has_legend=False
        )
        self.table = FigureTable(
            "Designs", ("design", "bytes", "now", "at the limit"), 2, gives_way=(1,)
        )
        self.layers = CurveChart(
            ("KiB by layer", "KiB"),
            "layer",
            (Series("held", "text", "dots"), Series("still seen", "text_dim", "triangles")),
        )
        self.families = FigureTable(
            "Well-known models",
            ("model", "per token", *(said for said, _n in LENGTHS)),
            gives_way=(1,),
        )
        self.chart.set_teller(self._tell)
        choices = self._choices()
        self._page = ColumnPage(
            (self.heading, choices, self.chart, self.table, self.formula),
            (self.layers, self.layers_note, self.families_note, self.families, self.sources),
        )
        outer = QHBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(self._page)
        self.setFocusProxy(self.formats.button(0))

    def _choices(self) -> QWidget:
        row = QWidget()
        across = QHBoxLayout(row)
        across.setContentsMargins(0, 0, 0, 0)
        for index, (name, n_bytes) in enumerate(CACHE_FORMATS.items()):
            button = QPushButton(name)
            button.setCheckable(True)
            button.setAutoDefault(False)
            plural = "" if n_bytes == 1 else "s"
            button.setToolTip(f"Count {n_bytes} byte{plural} for each number in the cache")
            button.setAccessibleDescription(button.toolTip())
            self.formats.addButton(button, index)
            across.addWidget(button)
        across.addStretch(1)
        names = tuple(CACHE_FORMATS)
        self.formats.idClicked.connect(
            lambda index: self.wish(SetCosts({"cache_format": names[index]}))
        )
        return row

    def draw(self, view: View, _previous: View | None) -> None:
        """Work everything out again: it is plain arithmetic."""
        chosen = view.state.costs.cache_format
        self.formats.button(tuple(CACHE_FORMATS).index(chosen)).setChecked(True)
        reading = view.reading
        for widget in (self.chart, self.table, self.formula, self.layers):
            widget.setVisible(reading is not None)
        if reading is None:
            self.heading.say(absence(view, "what the cache would hold under other designs"))
            self.layers_note.say("")
        else:
            self._draw_designs(view, reading)
            self._draw_layers(view, reading)
        self._draw_families(CACHE_FORMATS[chosen])
        words = (self.heading.text(), self.table.words(), self.layers_note.text())
        self.setAccessibleDescription(" ".join((self.help, *filter(None, words))))

    def figures(self) -> tuple[Figure, ...]:
        """Bytes under each design: at the length that is pointed at, else of this text."""
        view = self._drawn
        reading = None if view is None else view.reading
        if view is None or reading is None:
            return ()
        pointed = self.chart.pointed
        return self._figures(view, reading, reading.n_tokens if pointed is None else round(pointed))

    def _figures(self, view: View, reading: Reading, n_tokens: int) -> tuple[Figure, ...]:
        n_bytes = CACHE_FORMATS[view.state.costs.cache_format]
        return tuple(
            Figure(f"bytes of {each.name}", str(each.n_bytes(n_tokens, n_bytes)))
            for each in shown_designs(view.state, reading)
        )

    def _tell(self, n_tokens: float) -> str:
        view = self._drawn
        reading = None if view is None else view.reading
        if view is None or reading is None:
            return ""
        figures = self._figures(view, reading, round(n_tokens))
        said = "; ".join(f"{figure.name} {figure.digits}" for figure in figures)
        return f"{n_tokens:,.0f} tokens: {said}"

    def numbers(self, view: View) -> tuple[Table, ...]:
        """The designs at every length drawn, the layers, and the models."""
        reading = view.reading
        if reading is None:
            return ()
        n_bytes = CACHE_FORMATS[view.state.costs.cache_format]
        return design_tables(reading, shown_designs(view.state, reading), n_bytes)

    def _draw_designs(self, view: View, reading: Reading) -> None:
        n_bytes = CACHE_FORMATS[view.state.costs.cache_format]
        limit, now = reading.info.config.max_seq_len, reading.n_tokens
        shown = shown_designs(view.state, reading)
        own = shown[0]
        each = bytes_said(own.numbers * n_bytes * len(own.windows))
        whole = bytes_said(own.n_bytes(limit, n_bytes))
        most = "at most " if any(own.windows) else ""
        self.heading.say(
            f"{now:,} of at most {limit:,} tokens. By the formula, in {_spelled(n_bytes)} for "
            f"each number, this model takes {most}{each} per token and {whole} at its limit."
        )
        x, curves = _curves(shown, limit, n_bytes)
        highest = max(float(curve.max()) for curve in curves)
        unit, size = next((u for u in _UNITS if highest >= u[1]), _UNITS[-1])
        named = {each.name: curve / size for each, curve in zip(shown, curves, strict=True)}
        drawn = [named.get(name) for name in _names(view.state)]
        nothing = np.empty(0), np.empty(0)
        points = [nothing if curve is None else (x, curve) for curve in drawn]
        y = from_zero(highest / size)
        points.append((np.array([now, now], np.float64), np.array([0.0, y.high])))
        self.chart.set_titles(f"{unit} held, by tokens", unit)
        rows = [_design_row(each, now, limit, n_bytes) for each in shown]
        words = "; ".join(f"{row[0]} {row[3]}" for row in rows)
        self.chart.show_points(points, up_to(limit), y, f"held at {limit:,} tokens: {words}")
        self.table.set_headings("design", "bytes", f"at {now:,}", f"at {limit:,}")
        looks = dict(zip(_names(view.state), LOOKS, strict=True))
        self.table.show_rows(rows, [looks[each.name] for each in shown])

    def _draw_layers(self, view: View, reading: Reading) -> None:
        figures = CacheFigures.of(reading)
        held = np.array(reading.cache_layer_bytes, np.float64) / 1024
        design = CacheDesign.of(reading.info.config, conditions=reading.conditions)
        seen = design.layer_bytes(figures.n_tokens, figures.bytes_per_number)
        layer = np.arange(len(held), dtype=np.float64)
        needed = np.array(seen) / 1024
        note = layers_note(reading, seen)
        self.layers.show_points(
            ((layer, held), (layer, needed)),
            Axis(-0.5, len(held) - 0.5, up_to(len(held) - 1).ticks),
            from_zero(max(1e-3, held.max(), needed.max())),
            note,
        )
        self.layers_note.say(note)
        self.layers_note.set_look(view.theme.font_axis, view.theme.text)

    def _draw_families(self, n_bytes: int) -> None:
        rows, dim = [], set()
        for at, family in enumerate(_families()):
            design = design_of(family)
            per_token = bytes_said(design.numbers * n_bytes * family.n_layer)
            cells = [family.name, per_token]
            for column, (_said, n_tokens) in enumerate(LENGTHS):
                said = bytes_said(design.n_bytes(n_tokens, n_bytes))
                if n_tokens > family.max_seq_len:
                    said = f"({said})"
                    dim.add((at, 2 + column))
                cells.append(said)
            rows.append(tuple(cells))
        self.families.show_rows(rows, dim=frozenset(dim))
        self.families_note.say(f"Well-known models, in {_spelled(n_bytes)} for each number.")
        self.sources.say(f"{FAMILIES_NOTE}\n{_sources()}")

    def _dress(self, theme: Theme) -> None:
        self._page.set_theme(theme)
        for label in (self.heading, self.families_note):
            label.set_look(theme.font_body, theme.text)
        for label in (self.formula, self.sources):
            label.set_look(theme.font_axis, theme.text_dim)
        for chart, high in ((self.chart, 15), (self.layers, 10)):
            chart.set_theme(theme)
            chart.setMinimumHeight(high * theme.font_axis)
        for table in (self.table, self.families):
            table.set_theme(theme)
        for button in self.formats.buttons():
            button.setFont(font_of(self, theme.font_body))


@lru_cache(maxsize=4)  # another text changes none of them
def _curves(
    shown: tuple[CacheDesign, ...], limit: int, n_bytes: int
) -> tuple[Floats, tuple[Floats, ...]]:
    """Lengths up to the limit, and the bytes of each design at these."""
    x = np.unique(np.linspace(0, limit, min(limit + 1, _FINEST)).round())
    return x, tuple(np.array([each.n_bytes(int(n), n_bytes) for n in x]) for each in shown)


@cache
def _families() -> tuple[resources.CacheFamily, ...]:
    return resources.cache_families()


@cache
def _sources() -> str:
    said = []
    for each in _families():
        page = each.source.removeprefix("https://huggingface.co/").split("/blob/")[0]
        note = f" {each.note}" if each.note else ""
        said.append(f"{each.name}: {each.design}; {page}.{note}")
    return "\n".join(said)


def _names(state: State) -> tuple[str, ...]:
    """What the designs are called, in the order of their looks."""
    window, sinks = _kept(state)
    several = f"first {sinks} + window of {window}"
    return (
        "this model",
        "multi-head",
        "grouped",
        "multi-query",
        f"window of {window}",
        several,
    )


def _kept(state: State) -> tuple[int, int]:
    return state.mask.window, state.mask.sinks or FIRST


def shown_designs(state: State, reading: Reading) -> tuple[CacheDesign, ...]:
    """This model's own first; of the others those that it can have."""
    config = reading.info.config
    window, sinks = _kept(state)
    names = dict(zip((look.name for look in LOOKS), _names(state), strict=True))
    others = (
        CacheDesign(names[each.name], each.numbers, each.windows, each.conditions)
        for each in designs(config, window, sinks)
    )
    return (CacheDesign.of(config), *others)


def _design_row(design: CacheDesign, now: int, limit: int, n_bytes: int) -> Row:
    return (
        design.name,
        f"{design.numbers} · {rows_said(design)} · {n_bytes}",
        bytes_said(design.n_bytes(now, n_bytes)),
        bytes_said(design.n_bytes(limit, n_bytes)),
    )


def _spelled(n_bytes: int) -> str:
    return f"{n_bytes} byte{'' if n_bytes == 1 else 's'}"


def layers_note(reading: Reading, seen: list[float]) -> str:
    """What the layers' tensors hold, and what of it the mask and their windows show."""
    held = reading.cache_layer_bytes
    if not any(held):
        return "The cache holds nothing now."
    same = len(set(held)) == 1
    each = (
        f"Each of {len(held)} layers holds {held[0]:,} B"
        if same
        else (f"The {len(held)} layers hold {min(held):,} to {max(held):,} B")
    )
    if sum(seen) != sum(held):
        return (
            f"{each} of keys and values, but the last query sees {sum(seen):,.0f} of "
            f"{sum(held):,} B."
        )
    config, mask = reading.info.config, reading.conditions
    lets_go = any(mask.narrowed(config.window(layer)) for layer in range(config.n_layer))
    let_go = "; what a window hides from every later query was let go" if lets_go else ""
    return f"{each} of keys and values, and the last query sees all of it{let_go}."
