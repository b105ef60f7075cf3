"""All heads of all layers in one picture, on one scale, in the order of a measured role."""

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QLabel, QSlider, QVBoxLayout

from engine.answers.ablation import MEASURE_FORMULAS, MEASURES
from engine.reading import Reading
from engine.readouts import ROLE_FORMULAS, ROLES, Role
from engine.thumbnails import visible_bins
from gui.export.numbers import Table
from gui.export.tables import heads_tables
from gui.panels.absence import absence
from gui.panels.base import Figure, Panel
from gui.state import Order
from gui.theme import lookup_table
from gui.view import View
from gui.widgets.fitting_label import FittingLabel, plain_tip
from gui.widgets.head_atlas import HeadAtlas
from gui.widgets.head_tiles import Tiles
from gui.widgets.pixels import packed
from gui.widgets.scales import exact, sentence, tone_table
from gui.wishes import SelectHead, SetDisplay, Wish
from gui.words.head_effects import (
    EFFECT_TITLES,
    all_on,
    layer_heads,
    nats_on_tile,
    off_caption,
    switched,
    true_effects,
)

_NATURAL = "layer by layer"
_ORDERS: tuple[Order | None, ...] = (None, *ROLES, *MEASURES)
_SLIDER_STEPS = 100
_ENTROPY_CEILING = 5.0  # nats; a row spread evenly over 148 keys


class HeadsPanel(Panel):
    """Thumbnails of every head; sort and filter by role."""

    name: ClassVar[str] = "heads"

    def __init__(self) -> None:
        super().__init__()
        self.atlas = HeadAtlas()
        self.sort = QComboBox()
        for row, order in enumerate(_ORDERS):
            self.sort.addItem(_title(order))
            self.sort.setItemData(row, plain_tip(_meaning(order)), Qt.ItemDataRole.ToolTipRole)
        self.sort.setAccessibleName("Order of the heads")
        self.sort.setSizeAdjustPolicy(
            QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
        )
        self.sort.setMinimumContentsLength(len(_NATURAL))
        self.least = QSlider(Qt.Orientation.Horizontal)
        self.least.setRange(0, _SLIDER_STEPS)
        self.least.setAccessibleName("Least score")
        self.least.setMinimumWidth(60)
        self.least_label = QLabel()
        self.least_label.setTextFormat(Qt.TextFormat.PlainText)
        self.named = FittingLabel()
        controls = QHBoxLayout()
        controls.addWidget(self.sort)
        controls.addWidget(self.least, 1)
        controls.addWidget(self.least_label)
        self._layout = QVBoxLayout(self)
        self._layout.addLayout(controls)
        self._layout.addWidget(self.atlas, 1)
        self._layout.addWidget(self.named)
        self.setFocusProxy(self.atlas)
        self.copy_by_key(self.atlas)
        self._role: Role | None = None
        self.sort.activated.connect(self._sort_by)
        self.least.sliderMoved.connect(self._filter)
        self.least.actionTriggered.connect(self._filter_by_key)
        self.atlas.head_clicked.connect(lambda *at: self.wish(SelectHead(*at)))
        self.atlas.head_move_requested.connect(self._move)
        self.atlas.head_hovered.connect(self._point)
        self.atlas.hover_left.connect(lambda: self._name(*self._selected()))

    def draw(self, view: View, previous: View | None) -> None:
        """Thumbnails, order, captions and the selected head."""
        display = view.state.display
        if previous is None or display is not previous.state.display:
            self._draw_controls(view)
        if previous is None or view.theme is not previous.theme:
            self._layout.setSpacing(view.theme.unit)
            self._layout.setContentsMargins(*[view.theme.unit * 2] * 4)
            self.named.set_look(view.theme, view.theme.text_dim)
            self.atlas.set_theme(view.theme)
        if (
            previous is None
            or view.theme is not previous.theme
            or display.scale != previous.state.display.scale
        ):
            colours = lookup_table(view.theme.weights_map)
            self.atlas.set_scale(tone_table(colours, display.scale, packed(view.theme.masked)))
        self.atlas.set_stale(view.state.stale and view.state.phase == "loading")
        reading = view.reading
        if reading is None or not reading.n_tokens:
            self.atlas.set_empty(absence(view, "where every head looks"))
            return
        config = reading.info.config
        self.atlas.set_grid(config.n_layer, config.n_head)
        self.atlas.set_order(view.order, view.dimmed)
        if view.order is not None or self.atlas.pointed_head is not None:
            self.atlas.set_captions(view.captions)  # else nobody reads them
        self.atlas.set_off(view.off)
        self._draw_shades(view, previous)
        self._draw_thumbnails(view, previous)
        self.atlas.set_selected(view.layer, view.head)
        self._name(view.layer, view.head)

    def numbers(self, view: View) -> tuple[Table, ...]:
        """Roles and thumbnails of all heads."""
        return heads_tables(view.reading) if view.reading is not None else ()

    def figures(self) -> tuple[Figure, ...]:
        """The scores of the head under the pointer, else of the selected one."""
        view = self._drawn
        if view is None or view.reading is None or not view.n_tokens:
            return ()
        at = self.atlas.pointed_head or (view.layer, view.head)
        scores = view.reading.roles.scores
        first = view.state.display.sorted_role or view.role or ROLES[0]
        roles = [first, *(role for role in ROLES if role != first)]
        figures = [Figure(f"score “{role}”", exact(scores[role][at])) for role in roles]
        for measure in MEASURES[::-1]:
            opened = true_effects(view.state, measure)
            if opened is not None and opened.effects.top[at] >= 0:
                score = repr(float(opened.effects.scores(measure)[at]))
                is_first = measure in {view.state.display.sort, view.state.display.shade}
                figures.insert(0 if is_first else len(figures), Figure(_title(measure), score))
        return tuple(figures)

    def offers(self) -> tuple[tuple[str, Wish], ...]:
        """Switch the head under the pointer, else the selected one, or its layer, off or on."""
        view = self._drawn
        if view is None or view.reading is None or not view.n_tokens:
            return ()
        layer, head = self.atlas.pointed_head or (view.layer, view.head)
        off, whole = view.state.heads_off.heads, layer_heads(view.reading, layer)
        one = "on" if (layer, head) in off else "off"
        all_of_it = "on" if off.issuperset(whole) else "off"
        offered: list[tuple[str, Wish]] = [
            (f"Switch {one} layer {layer}, head {head}", switched(view.state, (layer, head))),
            (f"Switch {all_of_it} all of layer {layer}", switched(view.state, *whole)),
        ]
        if off:
            offered.append(("Switch all heads on", all_on()))
        return tuple(offered)

    def _draw_controls(self, view: View) -> None:
        self._role, order = view.state.display.sorted_role, view.state.display.sort
        self.sort.setCurrentIndex(_ORDERS.index(order))
        self.sort.setToolTip(plain_tip(_meaning(order)))
        self.sort.setAccessibleDescription(_meaning(order))
        ceiling = _ENTROPY_CEILING if self._role == "entropy" else 1.0
        self.least.setEnabled(self._role is not None)
        self.least.setValue(round(view.state.display.least / ceiling * _SLIDER_STEPS))
        self.least_label.setText(_least_text(view))

    def _draw_shades(self, view: View, previous: View | None) -> None:
        shades = view.shades
        before = previous.shades if previous is not None else None
        if shades is None:
            self.atlas.set_tiles(None)
        elif before is None or shades is not before:
            texts = {
                (layer, head): nats_on_tile(float(score), signed=shades.measure == "loss")
                for (layer, head), score in np.ndenumerate(shades.scores)
            }
            self.atlas.set_tiles(Tiles(shades.scores, shades.largest, texts))

    def _draw_thumbnails(self, view: View, previous: View | None) -> None:
        reading = view.reading
        if reading is None:
            return
        leave_out = view.state.display.leave_first_out
        before = previous.reading if previous else None
        if (
            previous is not None
            and before is not None
            and before.thumbnails is reading.thumbnails
            and previous.state.display.leave_first_out == leave_out
            and before.info is reading.info
        ):
            return
        thumbnails = reading.thumbnails
        n_bins = thumbnails.peaks.shape[2]
        is_grown = (
            previous is not None
            and before is not None
            and thumbnails.grown_from is not None
            and thumbnails.grown_from() is before.thumbnails
            and before.conditions == reading.conditions
            and previous.state.display.leave_first_out == leave_out
        )
        changed = (thumbnails.changed_from, n_bins) if is_grown else None
        first_key = None if leave_out else thumbnails.first
        self.atlas.set_thumbnails(thumbnails.peaks, _visible(reading), changed, first_key)

    def _selected(self) -> tuple[int, int]:
        return (self._drawn.layer, self._drawn.head) if self._drawn else (0, 0)

    def _point(self, layer: int, head: int) -> None:
        if self._drawn is not None:
            self.atlas.set_captions(self._drawn.captions)
        self._name(layer, head)

    def _name(self, layer: int, head: int) -> None:
        view = self._drawn
        if view is None or view.reading is None:
            return
        caption = self._caption(view, view.reading, layer, head)
        chosen = view.state.display.scale
        scale = sentence("linear" if chosen == "row" else chosen)
        scale = view.shades.sentence if view.shades is not None else scale
        name = f"Layer {layer}, head {head}"
        known = f"{name}: {caption}" if caption else f"{name}: mixed"
        wordings = [f"{known} · colour: {scale}", known, name]
        if view.shades is not None:
            short = view.captions.get((layer, head), "")
            wordings[1:1] = [f"{known} · {scale}", f"{name}: {short} · {scale}"]
            wordings[-1:] = [f"L{layer} H{head}: {short} · {scale}", f"{name}: {short}", name]
        self.named.set_wordings(*wordings)

    def _caption(self, view: View, reading: Reading, layer: int, head: int) -> str:
        """That it is off; or the effect or role it is ordered, shaded or named by, all digits."""
        if (layer, head) in view.off:
            return off_caption(reading)
        shaded = view.shades.measure if view.shades is not None else None
        measure = view.state.display.sorted_measure or shaded
        opened = true_effects(view.state, measure) if measure is not None else None
        if measure is not None and opened is not None and opened.effects.top[layer, head] >= 0:
            return f"{measure} {float(opened.effects.scores(measure)[layer, head])!r}"
        role = self._role or (reading.roles.name(layer, head) if reading.n_tokens else None)
        score = None if role is None else reading.roles.scores[role][layer, head]
        return "" if score is None or np.isnan(score) else f"{role} {exact(score)}"

    def _move(self, layers: int, heads: int) -> None:
        view = self._drawn
        if view is None or view.reading is None:
            return
        if view.order is not None:
            place = view.order.index((view.layer, view.head))
            at = view.order[max(0, min(len(view.order) - 1, place + heads + layers))]
        else:
            config = view.reading.info.config
            at = (
                max(0, min(config.n_layer - 1, view.layer + layers)),
                max(0, min(config.n_head - 1, view.head + heads)),
            )
        self.wish(SelectHead(*at))

    def _sort_by(self, row: int) -> None:
        self.wish(SetDisplay({"sort": _ORDERS[row], "least": 0.0}))

    def _filter_by_key(self, _action: int) -> None:
        self._filter(self.least.sliderPosition())

    def _filter(self, place: int) -> None:
        ceiling = _ENTROPY_CEILING if self._role == "entropy" else 1.0
        self.wish(SetDisplay({"least": place / _SLIDER_STEPS * ceiling}))


def _title(order: Order | None) -> str:
    for measure in MEASURES:
        if order == measure:
            return EFFECT_TITLES[measure]
    return order or _NATURAL


def _meaning(order: Order | None) -> str:
    """What an order is by, with its formula."""
    for role in ROLES:
        if order == role:
            return f"{role}, measured on this text: {ROLE_FORMULAS[role]}."
    for measure in MEASURES:
        if order == measure:
            return (
                f"{EFFECT_TITLES[measure]}: {MEASURE_FORMULAS[measure]}. "
                "It is measured by “What moves the answer most”."
            )
    return "Order the heads by a role, measured on this text."


def _visible(reading: Reading) -> NDArray[np.bool_]:
    """Which bins the mask lets through [R, R]; [L, R, R] where layers have their own windows."""
    config, thumbnails = reading.info.config, reading.thumbnails
    how = (reading.conditions, thumbnails.n_tokens, thumbnails.bin_size)
    if not any(config.windows):
        return visible_bins(*how)
    by_window = {window: visible_bins(*how, window) for window in set(config.windows)}
    return np.stack([by_window[window] for window in config.windows])


def _least_text(view: View) -> str:
    display = view.state.display
    if display.sorted_role is None:
        return ""
    if not display.least:
        return "all heads"
    sign = "≤" if display.sort == "entropy" else "≥"
    return f"{sign} {display.least:.2f}"
