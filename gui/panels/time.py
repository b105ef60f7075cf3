"""Time: step, go back, play, and go to any moment of the text."""

from collections.abc import Callable
from typing import ClassVar

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout

from engine.reading import Reading
from engine.sampling import Sampling
from gui.export.numbers import Table
from gui.export.tables import time_tables
from gui.panels.absence import absence
from gui.panels.base import Panel
from gui.theme import Theme
from gui.view import View
from gui.widgets.fitting_label import FittingLabel, font_of, plain_tip
from gui.widgets.user_slider import UserSlider
from gui.wishes import GoTo, Play, SetSpeed, Step, StepBack, Wish
from gui.words.quantities import counted

SPEEDS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)  # steps per second, as the slider offers them

_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


class TimePanel(Panel):
    """Transport buttons, speed, a slider over all tokens, and where the text stands."""

    name: ClassVar[str] = "time"

    def __init__(self) -> None:
        super().__init__()
        self.back = self._button("Back", "One token back; nothing is forgotten", StepBack)
        self.step = self._button("Step", "One token further", Step)
        self.play = self._button("Play", "", self._toggled_play)
        self.sentence = self._button(
            "To sentence end",
            "Go on until a sentence ends",
            lambda: Play("sentence"),
        )
        self.slider = UserSlider()
        self.slider.setAccessibleName("Time: tokens shown")
        self.slider.chosen.connect(lambda cursor: self.wish(GoTo(cursor)))
        self.speed = UserSlider()
        self.speed.setAccessibleName("Speed: steps per second")
        self.speed.setToolTip("How many tokens per second while playing, at most")
        self.speed.setPageStep(1)
        self.speed.chosen.connect(lambda at: self.wish(SetSpeed(SPEEDS[at])))
        self.speed_text, self.where = FittingLabel(), FittingLabel()
        self.context = FittingLabel(Qt.AlignmentFlag.AlignCenter)
        self.sampling = FittingLabel(_RIGHT)
        self._lay_out()

    def _button(self, text: str, tip: str, wish: Callable[[], Wish]) -> QPushButton:
        button = QPushButton(text)
        button.setToolTip(tip)
        button.setAccessibleName(text)
        button.setAccessibleDescription(tip)
        button.setAutoDefault(False)
        button.clicked.connect(lambda _checked: self.wish(wish()))
        return button

    def _lay_out(self) -> None:
        self._controls = QHBoxLayout()
        for widget in (self.back, self.step, self.play, self.sentence):
            self._controls.addWidget(widget)
        self._controls.addWidget(self.slider, 1)
        self._controls.addWidget(self.speed)
        self._controls.addWidget(self.speed_text)
        self._labels = QHBoxLayout()
        self._labels.addWidget(self.where)
        self._labels.addWidget(self.context, 1)
        self._labels.addWidget(self.sampling)
        self._rows = QVBoxLayout(self)
        self._rows.addLayout(self._controls)
        self._rows.addLayout(self._labels)
        self._rows.addStretch(1)

    def _toggled_play(self) -> Play:
        playing = self._drawn is not None and self._drawn.state.playing != ""
        return Play("" if playing else "play")

    def draw(self, view: View, _previous: View | None) -> None:
        """Show where the text stands and what can be done from there."""
        self._draw_buttons(view)
        self._draw_slider(view)
        self._draw_labels(view)

    def numbers(self, view: View) -> tuple[Table, ...]:
        """Where the text stands, and how it goes on."""
        return time_tables(view.reading) if view.reading is not None else ()

    def _dress(self, theme: Theme) -> None:
        unit = theme.unit
        self._rows.setContentsMargins(2 * unit, unit, 2 * unit, unit)
        self._rows.setSpacing(unit)
        self._controls.setSpacing(unit)
        self._labels.setSpacing(4 * unit)
        font = font_of(self, theme.font_body)
        for button in (self.back, self.step, self.play, self.sentence):
            button.setFont(font)
        self.play.setText("Pause")  # the wider of its two faces
        self.play.setMinimumWidth(self.play.sizeHint().width())
        self.speed.setFixedWidth(7 * theme.font_body)
        self.speed_text.set_look(theme, theme.text_dim)
        self.speed_text.set_wordings("0.5 per second")
        self.speed_text.setMinimumWidth(self.speed_text.sizeHint().width())
        self.sampling.set_look(theme, theme.text_dim)

    def _draw_buttons(self, view: View) -> None:
        reading, playing = view.reading, view.state.playing
        can_go_on = view.n_tokens > 0 and not (reading and reading.full)
        self.back.setEnabled(reading is not None and reading.cursor > reading.n_fallen + 1)
        self.step.setEnabled(can_go_on)
        self.sentence.setEnabled(can_go_on and playing != "sentence")
        self.play.setEnabled(can_go_on or playing != "")
        text, tip = (
            ("Pause", "Stop here")
            if playing
            else ("Play", "Go on token by token, at the speed on the right")
        )
        self.play.setText(text)
        self.play.setAccessibleName(text)
        self.play.setToolTip(tip)
        self.play.setAccessibleDescription(tip)

    def _draw_slider(self, view: View) -> None:
        reading, theme = view.reading, view.theme
        speed = view.state.steps_per_second
        nearest = min(range(len(SPEEDS)), key=lambda at: abs(SPEEDS[at] - speed))
        self.speed.show_value(nearest, 0, len(SPEEDS) - 1)
        self.speed_text.set_wordings(f"{speed:g} per second")
        self.speed.setAccessibleDescription(f"{speed:g} steps per second")
        self.slider.setEnabled(view.n_tokens > 0)
        if reading is None or not view.n_tokens:
            self.slider.show_value(0, 0, 0)
            self.slider.set_mark(None, theme.accent)
            return
        n_prompt = reading.document.n_prompt
        self.slider.show_value(reading.cursor, reading.n_fallen + 1, len(reading.document))
        self.slider.set_mark(n_prompt, theme.text)
        place = (
            f"{_where(reading)}. The mark is the end of the prompt, {counted(n_prompt, 'token')}."
        )
        self.slider.setToolTip(plain_tip(place))
        self.slider.setAccessibleDescription(place)

    def _draw_labels(self, view: View) -> None:
        reading, theme = view.reading, view.theme
        self.where.set_look(theme, theme.text_dim if view.state.stale else theme.text)
        missing = absence(view, "its tokens in time")
        if reading is None or missing:
            self.where.set_wordings(missing)
            self.context.set_wordings("")
        else:
            short = f"token {reading.cursor:,} of {len(reading.document):,}"
            self.where.set_wordings(_where(reading), short)
            self.context.set_wordings(*_context(reading))
        full = reading is not None and reading.full
        self.context.set_look(
            theme,
            theme.text if full else theme.text_dim,
            bold=full,
            ground=theme.fallen if full else "",
        )
        self.sampling.set_wordings(*_sampling(view.state.sampling))


def _where(reading: Reading) -> str:
    n_tokens, n_prompt = len(reading.document), reading.document.n_prompt
    parts = f"{n_prompt:,} prompt, {n_tokens - n_prompt:,} generated"
    return f"token {reading.cursor:,} of {n_tokens:,} ({parts})"


def _context(reading: Reading) -> tuple[str, ...]:
    limit = reading.info.config.max_seq_len
    if not reading.full:
        held = f"{reading.n_tokens:,} of {limit:,}"
        return f"context: {held} tokens", held
    fallen = f"; the first {reading.n_fallen:,} have fallen out" if reading.n_fallen else ""
    return (
        f"■ context full: {limit:,} of {limit:,} tokens{fallen}",
        f"■ context full: {limit:,} of {limit:,}",
        "■ context full",
        "■ full",
    )


def _sampling(sampling: Sampling) -> tuple[str, ...]:
    if sampling.temperature == 0:
        return ("greedy (temperature 0)", "greedy")
    parts = [f"temperature {sampling.temperature:g}"]
    if sampling.top_k:
        parts.append(f"top_k {sampling.top_k}")
    if sampling.top_p < 1:
        parts.append(f"top_p {sampling.top_p:g}")
    parts.append(f"seed {sampling.seed}")
    return ", ".join(parts), f"seed {sampling.seed}"
