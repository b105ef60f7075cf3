"""In which number format the weights are held, and what that does to the predictions."""

from math import floor, log10
from typing import ClassVar

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QVBoxLayout, QWidget

from engine.formats import DEVICE_TITLES, FORMAT_SENTENCES, Consequence
from engine.reading import Reading
from engine.sizes import bytes_said
from gui.export.numbers import Table
from gui.export.tables import format_tables
from gui.panels.absence import absence
from gui.panels.base import AskingPanel, Figure
from gui.state import OpenedConsequence
from gui.theme import Theme
from gui.view import View
from gui.widgets.arithmetic_stages import exact
from gui.widgets.fitting_label import plain_tip
from gui.widgets.lettering import quoted
from gui.widgets.scrolled_page import ScrolledPage
from gui.widgets.token_text import display
from gui.widgets.wrapping_label import WrappingLabel
from gui.wishes import WantConsequence
from gui.words.quantities import counted

WAITING = "The weights are being read again in float32, to compare with."
ITSELF = "This is float32 itself: there is nothing to compare."
HINT = "The Model menu has the other formats and devices."


class FormatPanel(AskingPanel):
    """Says how the weights are held and why, and how far predictions are from float32's.

    Comparing takes the float32 weights once more, so the engine is asked only while the panel is
    seen.
    """

    name: ClassVar[str] = "format"
    wants = WantConsequence

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

    def draw(self, view: View, _previous: View | None) -> None:
        """Show the format in force, and the latest comparison on this text."""
        for label in self._labels:
            label.say("")
            label.setToolTip("")
        if view.reading is None:
            self.heading.say(absence(view, "how its weights are held"))
        else:
            self._draw_held(view.reading)
            self._draw_consequence(view, view.reading)
        said = " ".join(label.text() for label in self._labels if label.text())
        self.setAccessibleDescription(f"{self.help} {said}")

    def reading_of(self, view: View) -> Reading | None:
        """The reading that was compared, which may be older."""
        opened = self._opened(view)
        return view.reading if opened is None else opened.reading

    def numbers(self, view: View) -> tuple[Table, ...]:
        """How the weights are held, and the comparison that is shown."""
        reading, opened = self.reading_of(view), self._opened(view)
        if reading is None:
            return ()
        return format_tables(reading, None if opened is None else opened.consequence)

    def figures(self) -> tuple[Figure, ...]:
        """What was compared, with all digits; the size of the weights."""
        view = self._drawn
        reading = None if view is None else view.reading
        if view is None or reading is None:
            return ()
        opened, size = (
            self._opened(view),
            Figure("bytes of weights", str(reading.info.held.n_bytes)),
        )
        consequence = None if opened is None else opened.consequence
        if consequence is None:
            return (size,)
        return (
            Figure("largest difference", exact(consequence.difference)),
            Figure("probability", exact(consequence.probability)),
            Figure("probability in float32", exact(consequence.in_float32)),
            Figure("loss in nats", exact(consequence.loss)),
            Figure("loss in nats in float32", exact(consequence.loss_in_float32)),
            size,
        )

    @staticmethod
    def _opened(view: View) -> OpenedConsequence | None:
        """The comparison that is shown: of this model, in a format that is not float32 itself."""
        opened, reading = view.state.consequence, view.reading
        if opened is None or reading is None or not reading.n_tokens:
            return None
        is_shown = opened.reading.info is reading.info and opened.consequence is not None
        return opened if is_shown and reading.info.held.number_format != "float32" else None

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
            digits = "; ".join(f"{each.name} {each.digits}" for each in self.figures())
            for label in (self.figure, self.caption, self.rest):
                label.setToolTip(plain_tip(digits))

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
        scroll = ScrolledPage(content)
        scroll.setFocusPolicy(Qt.FocusPolicy.StrongFocus)  # there is nothing in it to go to
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(scroll)
        self.setFocusProxy(scroll)
        self.copy_by_key(scroll)


def held_sentence(reading: Reading) -> str:
    """What the weights take, against float32, and why they are held like this."""
    held, exact = reading.info.held, 4 * reading.info.n_parameters
    size = f"{bytes_said(held.n_bytes)} of weights"
    if held.number_format != "float32":
        size += f"; float32 would take {bytes_said(exact)}"
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
    positions = counted(n_tokens, "position")
    top = (
        f"The most probable token is another one at {changed:,} of {positions}."
        if changed
        else f"The most probable token is the same at {'all ' if n_tokens > 1 else ''}{positions}."
    )
    if n_tokens < 2:
        return top
    return (
        f"{top} Loss {consequence.loss:.4f} nats per token, "
        f"{consequence.loss_in_float32:.4f} in float32."
    )
