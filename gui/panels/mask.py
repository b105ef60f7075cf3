"""Which keys each query may see, and what that does to the loss and to the prediction."""

from typing import Any, ClassVar, Literal, get_args

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QButtonGroup,
    QGridLayout,
    QHBoxLayout,
    QRadioButton,
    QVBoxLayout,
    QWidget,
)

from engine.conditions import Conditions
from engine.errors import ConfigError
from engine.reading import Reading
from gui.export.numbers import Table
from gui.export.tables import mask_tables
from gui.mask_memory import MaskMemory, TopCandidate, causal, mean_loss, top_candidate
from gui.panels.absence import absence
from gui.panels.base import Figure, Panel
from gui.state import MaskChoice
from gui.theme import Theme
from gui.view import View
from gui.widgets.arithmetic_stages import exact
from gui.widgets.candidate_text import percent, token_label
from gui.widgets.fitting_label import plain_tip
from gui.widgets.lettering import quoted
from gui.widgets.mask_schema import MaskSchema
from gui.widgets.number_field import Number, NumberField, NumberKind
from gui.widgets.scrolled_page import ScrolledPage
from gui.widgets.user_slider import UserSlider
from gui.widgets.wrapping_label import WrappingLabel
from gui.wishes import SetMask

Choice = Literal["causal", "none", "window", "first k + window"]

CHOICES: tuple[Choice, ...] = get_args(Choice)
_N_SCHEMA = 12
_N_NAMED = 3  # masks that were tried before
_NO_BREAK = "\u00a0"
_FIRST_SINKS = 4  # offered until somebody has set another number
_LEAST_REACH = 16  # of the sliders, while the text is short


class MaskPanel(Panel):
    """The mask as a choice, a drawing of it, and what it changed on the text that is read.

    It remembers the mean losses that readings of a text had, so that two masks can be compared;
    all of them were measured.
    """

    name: ClassVar[str] = "mask"

    def __init__(self) -> None:
        super().__init__()
        self._memory = MaskMemory()
        self._remembered: Reading | None = None
        self._longest = 1
        self.choices = QButtonGroup(self)
        self.window_slider, self.sinks_slider = UserSlider(), UserSlider()
        self.window_field = self._field("window", 1, self._check_window)
        self.sinks_field = self._field("first k", 0, self._check_sinks)
        self.schema = MaskSchema()
        self.explanation, self.note, self.loss, self.loss_caption, self.top, self.others = (
            WrappingLabel() for _ in range(6)
        )
        self.complaint = WrappingLabel()
        self.complaint.hide()
        self._labels = (WrappingLabel("window n"), WrappingLabel("first k"))
        self.sinks_field.show_value(_FIRST_SINKS)
        self._lay_out()
        self.choices.idClicked.connect(self._choose)
        self.window_slider.chosen.connect(lambda n: self.wish(SetMask({"window": n})))
        self.sinks_slider.chosen.connect(lambda k: self.wish(SetMask({"sinks": k})))
        self.window_field.committed.connect(lambda n: self.wish(SetMask({"window": n})))
        self.sinks_field.committed.connect(lambda k: self.wish(SetMask({"sinks": k})))

    def show_view(self, view: View) -> None:
        """Remember what was measured even while nobody looks."""
        if view.reading is not None and view.reading is not self._remembered:
            self._remembered = view.reading
            if view.n_tokens:
                self._memory.remember(view.reading)
        super().show_view(view)

    def draw(self, view: View, _previous: View | None) -> None:
        """Show the mask in force and what it did."""
        self._draw_controls(view)
        self._draw_effect(view)
        parts = (self.explanation, self.note, self.loss, self.loss_caption, self.top, self.others)
        said = " ".join(label.text() for label in parts if not label.isHidden())
        self.setAccessibleDescription(f"{self.help} {said}")

    def numbers(self, view: View) -> tuple[Table, ...]:
        """The mean losses that the text had under its masks, this one's last."""
        reading = view.reading
        loss = None if reading is None else mean_loss(reading)
        if reading is None or loss is None:
            return ()
        return mask_tables({**self._memory.others(reading), reading.conditions: loss})

    def figures(self) -> tuple[Figure, ...]:
        """The losses and the probability that are shown, with all digits."""
        reading = self._drawn.reading if self._drawn else None
        loss = None if reading is None else mean_loss(reading)
        if reading is None or loss is None:
            return ()
        found = [Figure("mean loss in nats", exact(loss))]
        others = self._memory.others(reading)
        for conditions, other in list(others.items())[::-1][:_N_NAMED]:
            found.append(Figure(f"mean loss, {mask_name(conditions)}", exact(other)))
        top = top_candidate(reading)
        if top is not None:
            found.append(Figure("probability of the most probable", exact(top.probability)))
        return tuple(found)

    # Controls

    def _draw_controls(self, view: View) -> None:
        mask = view.state.mask
        choice = choice_of(mask)
        self.choices.button(CHOICES.index(choice)).setChecked(True)
        if view.reading is not None:
            self._longest = view.reading.info.config.max_seq_len
        reach = _reach(view.n_tokens, self._longest)
        self.window_field.set_most(self._longest)
        self.sinks_field.set_most(self._longest)
        self.window_field.show_value(mask.window)
        if mask.sinks or not self.sinks_field.value:
            self.sinks_field.show_value(mask.sinks or _FIRST_SINKS)
        self.window_slider.show_value(min(mask.window, reach), 1, reach)
        self.sinks_slider.show_value(min(int(self.sinks_field.value), reach), 1, reach)
        for widget in (self.window_slider, self.window_field, self._labels[0]):
            widget.setVisible(mask.mask == "window")
        for widget in (self.sinks_slider, self.sinks_field, self._labels[1]):
            widget.setVisible(choice == "first k + window")
        self.schema.set_visible_keys(schema(mask.conditions))
        own = own_windows(view.reading, mask.conditions)
        self.explanation.setText(f"{explanation(mask.conditions)}{own}")

    def _choose(self, index: int) -> None:
        changes: dict[str, Any] = {"mask": CHOICES[index]}
        if CHOICES[index] in {"window", "first k + window"}:
            sinks = self.sinks_field.value if CHOICES[index] != "window" else 0
            changes = {"mask": "window", "window": self.window_field.value, "sinks": sinks}
        self.wish(SetMask(changes))

    def _check_window(self, value: Number) -> None:
        Conditions(mask="window", window=int(value))
        self._check_length("window", value, 1)

    def _check_sinks(self, value: Number) -> None:
        Conditions(mask="window", window=1, sinks=int(value))
        self._check_length("first k", value, 0)

    def _check_length(self, name: str, value: Number, least: int) -> None:
        if value > self._longest:
            raise ConfigError(
                f"{name} = {value} reaches beyond the {self._longest:,} positions that this model "
                f"sees; use {least} to {self._longest}."
            )

    def _complain(self) -> None:
        sentences = filter(None, (self.window_field.complaint, self.sinks_field.complaint))
        self.complaint.say(next(sentences, ""))

    # What it did

    def _draw_effect(self, view: View) -> None:
        reading = view.reading
        missing = absence(view, "what the mask does to its loss")
        for label in (self.loss, self.loss_caption, self.top, self.others):
            label.say("")
            label.setToolTip("")
        self.note.say(missing)
        colour = view.theme.text_dim if view.state.stale else view.theme.text
        self.loss.set_look(view.theme.font_large, colour, bold=True)
        if reading is None or missing:
            return
        self.note.say(cache_note(reading))
        before = self._memory.loss(reading, causal(reading.conditions))
        self.loss.say(loss_figures(reading, before))
        self.loss_caption.say(loss_caption(reading, before))
        before_top = self._memory.top(reading, causal(reading.conditions))
        self.top.say(top_sentence(reading, before_top))
        others = self._memory.others(reading)
        others.pop(causal(reading.conditions), None)
        self.others.say(_others(others))
        digits = "; ".join(f"{figure.name} {figure.digits}" for figure in self.figures())
        for label in (self.loss, self.loss_caption, self.top, self.others):
            label.setToolTip(plain_tip(digits))

    # Look

    def _dress(self, theme: Theme) -> None:
        unit = theme.unit
        for button in self.choices.buttons():
            button.setStyleSheet(_radio_style(theme))
        for label in (*self._labels, self.explanation, self.note, self.top):
            label.set_look(theme.font_axis, theme.text)
        for label in (self.loss_caption, self.others):
            label.set_look(theme.font_axis, theme.text_dim)
        self.complaint.set_look(theme.font_axis, theme.bad)
        for field in (self.window_field, self.sinks_field):
            field.set_theme(theme)
        self.schema.set_theme(theme)
        self._rows.setContentsMargins(2 * unit, unit, 2 * unit, unit)
        self._rows.setSpacing(unit)
        self._drawing.setSpacing(2 * unit)
        self._choice_grid.setVerticalSpacing(unit)
        self._size_grid.setSpacing(unit)

    def _lay_out(self) -> None:
        content = QWidget()
        self._rows = QVBoxLayout(content)
        self._choice_grid, self._size_grid = QGridLayout(), QGridLayout()
        for index, choice in enumerate(CHOICES):
            button = QRadioButton(choice)
            button.setAccessibleDescription(_MEANING[choice])
            button.setToolTip(_MEANING[choice])
            self.choices.addButton(button, index)
            self.copy_by_key(button)
            self._choice_grid.addWidget(button, index % 2, index // 2)
        sizes = (self.window_slider, self.window_field), (self.sinks_slider, self.sinks_field)
        for row, (label, (slider, field)) in enumerate(zip(self._labels, sizes, strict=True)):
            slider.setAccessibleName(field.accessibleName())
            label.setWordWrap(False)
            label.setAlignment(Qt.AlignmentFlag.AlignVCenter)
            label.setBuddy(field)
            for column, widget in enumerate((label, slider, field)):
                self._size_grid.addWidget(widget, row, column)
        self._size_grid.setColumnStretch(1, 1)
        self._drawing = QHBoxLayout()
        self._drawing.addWidget(self.schema, 0, Qt.AlignmentFlag.AlignTop)
        self._drawing.addWidget(self.explanation, 1, Qt.AlignmentFlag.AlignTop)
        self._rows.addLayout(self._choice_grid)
        self._rows.addLayout(self._size_grid)
        self._rows.addWidget(self.complaint)
        for label in (self.loss, self.loss_caption, self.top, self.others):
            self._rows.addWidget(label)
        self._rows.addLayout(self._drawing)
        self._rows.addWidget(self.note)
        self._rows.addStretch(1)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(ScrolledPage(content))

    def _field(self, name: str, least: int, check: Any) -> NumberField:  # noqa: ANN401
        use = "use 1 or more" if least else "use 0 or more"
        kind = NumberKind(name=name, least=least, most=1, step=1, use=use)
        field = NumberField(kind, check, self)
        field.complained.connect(self._complain)
        return field


_MEANING: dict[Choice, str] = {
    "causal": "Each query sees itself and everything before it, nothing after it.",
    "none": "Every query sees every position, those after it too: also the token to be predicted.",
    "window": "Each query sees only the last positions, its own included.",
    "first k + window": "Each query sees the last positions, and the first ones always.",
}


def _radio_style(theme: Theme) -> str:
    """Rings that stand out from every ground; the platform's own vanish on a dark one."""
    size, line = theme.font_body, max(1, round(theme.stroke))
    dot = size // 3
    return f"""
    QRadioButton {{
        font-size: {size}px; color: {theme.text}; spacing: {theme.unit}px;
        border: {line}px solid transparent; border-radius: {theme.unit}px;
    }}
    QRadioButton:focus {{ border-color: {theme.accent}; }}
    QRadioButton::indicator {{
        width: {size - 2 * line}px; height: {size - 2 * line}px; border-radius: {size // 2}px;
        border: {line}px solid {theme.text_dim}; background: {theme.surface};
    }}
    QRadioButton::indicator:checked {{
        width: {size - 2 * dot}px; height: {size - 2 * dot}px;
        border: {dot}px solid {theme.accent};
    }}
    """


def _reach(n_tokens: int, longest: int) -> int:
    """How far the sliders go: a power of two that covers the text, within the context limit."""
    reach = _LEAST_REACH
    while reach < n_tokens:
        reach *= 2
    return min(reach, longest)


def choice_of(mask: MaskChoice) -> Choice:
    """Which of the four choices is in force."""
    if mask.mask != "window":
        return mask.mask
    return "first k + window" if mask.sinks else "window"


def schema(conditions: Conditions) -> np.ndarray:
    """The mask for a few positions, row = query, column = key."""
    position = np.arange(_N_SCHEMA)
    visible = conditions.visible(position[:, None], position)
    return np.broadcast_to(visible, (_N_SCHEMA, _N_SCHEMA))


def mask_name(conditions: Conditions) -> str:
    """The mask in a few words."""
    if conditions.mask == "none":
        return "no mask"
    if conditions.mask == "causal":
        return "causal mask"
    first = f"first {conditions.sinks} + " if conditions.sinks else ""
    return f"{first}window of {conditions.window}"


def explanation(conditions: Conditions) -> str:
    """What each query sees under the mask, with its numbers."""
    if conditions.mask != "window":
        return _MEANING[conditions.mask]
    last = f"the last {conditions.window} positions" if conditions.window > 1 else "only itself"
    own = ", its own included" if conditions.window > 1 else ""
    first = f", and always the first {conditions.sinks}" if conditions.sinks else ""
    wide = " Wider than the schema." if conditions.window >= _N_SCHEMA else ""
    return f"Each query sees {last}{own}{first}.{wide}"


def own_windows(reading: Reading | None, conditions: Conditions) -> str:
    """What the model's own windows hide besides, in a sentence; nothing where there are none."""
    windows = reading.info.config.windows if reading else ()
    if not any(windows) or conditions.mask == "none":
        return ""
    narrow, n_layer = [window for window in windows if window], len(windows)
    where = "every layer" if len(narrow) == n_layer else f"{len(narrow)} of {n_layer} layers"
    last = f"{min(narrow):,}" if len(set(narrow)) == 1 else f"{min(narrow):,} to {max(narrow):,}"
    return f" In {where} of this model a query never sees more than the last {last} positions."


def cache_note(reading: Reading) -> str:
    """What the last pass could reuse from the cache, and why."""
    if not reading.stats:
        return ""
    last = reading.stats[-1]
    if not reading.conditions.append_only:
        return (
            "Nothing could be reused from the cache: without the mask, a later token changes "
            f"every earlier row. {_rows(last.n_computed)} recomputed, {last.n_kept:,} reused."
        )
    if not reading.use_cache:
        return f"The cache is off: {_rows(last.n_computed)} recomputed."
    return (
        "Under this mask a later token changes no earlier row, so the cache stays true. "
        f"{_rows(last.n_computed)} computed, {last.n_kept:,} reused."
    )


def _rows(n_rows: int) -> str:
    return "1 row was" if n_rows == 1 else f"{n_rows:,} rows were"


def loss_figures(reading: Reading, before: float | None) -> str:
    """The mean loss, after the one under the causal mask if that was measured."""
    now = mean_loss(reading)
    if now is None:
        return "no loss yet"
    if before is None or reading.conditions.mask == "causal":
        return f"{now:.2f} nats"
    return f"{before:.2f} → {now:.2f} nats"


def loss_caption(reading: Reading, before: float | None) -> str:
    """What the figures are."""
    n_known = int(np.count_nonzero(~np.isnan(reading.session.loss)))
    if not n_known:
        return "The first token is not predicted; a loss needs two."
    tokens = f"{n_known:,} tokens" if n_known > 1 else "1 token"
    mean = f"Mean loss per token of this text, over {tokens}"
    name = mask_name(reading.conditions)
    if reading.conditions.mask == "causal":
        return f"{mean}: {name}."
    if before is None:
        return (
            f"{mean}: {name}. The causal mask was not measured on this text; "
            "switch it on once to compare."
        )
    return f"{mean}: causal mask → {name}."


def top_sentence(reading: Reading, before: TopCandidate | None) -> str:
    """How the most probable next token moved."""
    now = top_candidate(reading)
    if now is None:
        return ""
    moved = [_candidate(reading, now)]
    if before is not None and reading.conditions.mask != "causal":
        moved.insert(0, _candidate(reading, before))
    where = f"after position {reading.position}, by the plain softmax"
    return f"Most probable {where}: {' → '.join(moved)}"


def _candidate(reading: Reading, top: TopCandidate) -> str:
    token = quoted(token_label(reading.info.vocabulary, top.token_id))
    return f"{token} {percent(top.probability)}".replace(" ", _NO_BREAK)


def _others(losses: dict[Conditions, float], n_named: int = _N_NAMED) -> str:
    """The masks that were measured last on this text, the latest first."""
    if not losses:
        return ""
    named = list(losses.items())[::-1][:n_named]
    said = ", ".join(f"{mask_name(conditions)} {loss:.2f}" for conditions, loss in named)
    return f"Measured before on this text: {said}."
