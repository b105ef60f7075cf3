"""In which number format the weights are held, and what that does to the predictions."""

from math import floor, log10
from typing import ClassVar

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QScrollArea, QVBoxLayout, QWidget

from engine.formats import DEVICE_TITLES, FORMAT_SENTENCES, Consequence
from engine.reading import Reading
from gui.panels.absence import absence
from gui.panels.base import AskingPanel
from gui.theme import Theme
from gui.view import View
from gui.widgets.lettering import quoted
from gui.widgets.token_text import display
from gui.widgets.wrapping_label import WrappingLabel
from gui.wishes import WantConsequence

WAITING = "The weights are being read again in float32, to compare with."
ITSELF = "This is float32 itself: there is nothing to compare."
HINT = "The Model menu has the other formats and devices."


class FormatsPanel(AskingPanel):
    """Says how the weights are held and why, and how far predictions are from float32's.

    Comparing takes the float32 weights once more, so the engine is asked only while the panel is
    seen.
    """

    name: ClassVar[str] = "format"
    title: ClassVar[str] = "Number format"
    tab: ClassVar[str] = "Format"
    wants = WantConsequence
    help: ClassVar[str] = (
        "In which number format the weights are held, and what that does to the predictions."
    )

    def __init__(self) -> None:
        super().__init__()
        self.heading, self.held, self.meaning, self.hint = (WrappingLabel() for _ in range(4))
        self.figure, self.caption, self.rest = (WrappingLabel() for _ in range(3))
        self._labels = (
            self.heading,
            self.held,
            self.figure,
            self.caption,
            self.rest,
            self.meaning,
            self.hint,
        )
        self._place()

    def draw(self, view: View, previous: View | None) -> None:
        """Show the format in force, and the latest comparison on this text."""
        if not view.state.wants_consequence:
            self._tell_soon.start()
        if previous is None or view.theme is not previous.theme:
            self._dress(view.theme)
        for label in self._labels:
            label.say("")
        if view.reading is None:
            self.heading.say(absence(view, "how its weights are held"))
        else:
            self._draw_held(view.reading)
            self._draw_consequence(view, view.reading)
        said = " ".join(label.text() for label in self._labels if label.text())
        self.setAccessibleDescription(f"{self.help} {said}")

    def _draw_held(self, reading: Reading) -> None:
        held = reading.info.held
        self.heading.say(f"{held.title}, on {DEVICE_TITLES[held.device]}")
        self.held.say(held_sentence(reading))
        self.meaning.say(FORMAT_SENTENCES[held.number_format])
        self.hint.say(HINT)

    def _draw_consequence(self, view: View, reading: Reading) -> None:
        opened = view.state.consequence
        is_shown = opened is not None and opened.answers(reading)
        missing = absence(view, "what the format does to the predictions")
        theme = view.theme
        colour = theme.text if is_shown and not view.state.stale else theme.text_dim
        self.figure.set_look(theme.font_large, colour, bold=True)
        for label in (self.caption, self.rest):
            label.set_look(theme.font_axis, colour)
        if reading.info.held.number_format == "float32":
            self.caption.say(ITSELF)
        elif missing:
            self.caption.say(missing)
        elif opened is None or (not is_shown and opened.reading.info is not reading.info):
            self.caption.say(WAITING)
        elif opened.consequence is None:
            self.caption.say(opened.obstacle or WAITING)
        else:
            tokens = opened.reading.info.vocabulary
            self.figure.say(f"{100 * opened.consequence.difference:.2g} percentage points")
            self.caption.say(caption(opened.consequence, tokens))
            self.rest.say(rest(opened.consequence))

    def _dress(self, theme: Theme) -> None:
        unit = theme.unit
        self.heading.set_look(theme.font_body, theme.text, bold=True)
        for label in (self.held, self.meaning, self.hint):
            label.set_look(theme.font_axis, theme.text_dim)
        self._rows.setContentsMargins(2 * unit, unit, 2 * unit, unit)
        self._rows.setSpacing(unit)

    def _place(self) -> None:
        content = QWidget()
        self._rows = QVBoxLayout(content)
        for label in self._labels:
            self._rows.addWidget(label)
        self._rows.addStretch(1)
        scroll = QScrollArea()
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setWidgetResizable(True)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setWidget(content)
        for widget in (content, scroll.viewport()):
            widget.setAutoFillBackground(False)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(scroll)
        self.setFocusProxy(scroll)


def held_sentence(reading: Reading) -> str:
    """What the weights take, against float32, and why they are held like this."""
    held, exact = reading.info.held, 4 * reading.info.n_parameters
    size = f"{held.n_bytes / 1e6:,.1f} MB of weights"
    if held.number_format != "float32":
        size += f"; float32 would take {exact / 1e6:,.1f} MB"
    return f"{size}. {held.reason[:1].upper()}{held.reason[1:]}." if held.reason else f"{size}."


def caption(consequence: Consequence, vocabulary: tuple[bytes, ...]) -> str:
    """Where the largest difference lies, and between which two probabilities."""
    token, apart = consequence.token_id, 100 * consequence.difference
    digits = max(1, min(8, 1 - floor(log10(apart)))) if apart else 1  # so many that they differ
    named = quoted(display(vocabulary[token])) if token < len(vocabulary) else f"token {token}"
    return (
        "is the largest difference of a next-token probability from float32 on this text: "
        f"{_percent(consequence.probability, digits)} instead of "
        f"{_percent(consequence.in_float32, digits)} for "
        f"{named} behind position {consequence.position}."
    )


def _percent(probability: float, digits: int) -> str:
    return f"{100 * probability:.{digits}f} %"


def rest(consequence: Consequence) -> str:
    """What became of the most probable tokens and of the mean loss."""
    changed, n_tokens = consequence.n_top_changed, consequence.n_tokens
    top = (
        f"The most probable token is another one at {changed} of {n_tokens} positions."
        if changed
        else f"The most probable token is the same at all {n_tokens} positions."
    )
    if n_tokens < 2:
        return top
    return (
        f"{top} Loss {consequence.loss:.4f} nats per token, "
        f"{consequence.loss_in_float32:.4f} in float32."
    )
