"""What each token of the text cost the model, and what that comes to."""

from math import isnan
from typing import ClassVar

from PySide6.QtWidgets import QButtonGroup, QHBoxLayout, QPushButton, QVBoxLayout

from engine.loss import LossSummary, bits, probabilities, worst_first
from engine.reading import Reading
from gui.export.numbers import Table
from gui.export.tables import loss_tables
from gui.panels.absence import absence
from gui.panels.base import Figure, Panel
from gui.theme import Theme
from gui.view import View
from gui.widgets.arithmetic_stages import exact
from gui.widgets.fitting_label import FittingLabel, font_of
from gui.widgets.loss_rows import LossLines, LossRows
from gui.widgets.wrapping_label import WrappingLabel
from gui.wishes import SelectPosition
from gui.words.quantities import counted

CEILING = 8.0  # nats from which on the colour no longer changes, as on the token strip
MASK_OFF = (
    "The mask is off: every position sees the very token that it is to predict, so the model may "
    "look at the answer, and these losses are no predictions."
)
ONLY_FIRST = "The first token has no loss: nothing stands before it that could predict it."
_ORDERS = {
    "In order": "The tokens as they stand in the text.",
    "Worst first": "The tokens that surprised the model most come first.",
}
_N_WORST = 3


class LossPanel(Panel):
    """A summary, a choice of order, and a row for each token."""

    name: ClassVar[str] = "loss"

    def __init__(self) -> None:
        super().__init__()
        self.per_token, self.per_character = FittingLabel(), FittingLabel()
        self.note = WrappingLabel()
        self.rows = LossRows()
        self.orders = QButtonGroup(self)
        self.count = FittingLabel()
        self._place()
        self.setFocusProxy(self.rows)
        self.copy_by_key(self.rows)
        self.rows.chosen.connect(self._select)
        self.orders.idClicked.connect(lambda index: self.rows.set_sorted(bool(index)))

    def draw(self, view: View, previous: View | None) -> None:
        """Show the losses of the view's text."""
        self.rows.set_stale(view.state.stale)
        reading = view.reading
        if reading is None or not view.n_tokens:
            self._show_nothing(absence(view, "what each token cost the model"))
            return
        if previous is None or reading is not previous.reading:
            self._show_reading(view, reading)
        predicted = None if view.query is None else view.query + 1
        self.rows.set_predicted(predicted)

    def numbers(self, view: View) -> tuple[Table, ...]:
        """What every token cost, and the means."""
        reading = view.reading
        return () if reading is None else loss_tables(reading, summary_of(reading))

    def figures(self) -> tuple[Figure, ...]:
        """The loss of the token under the pointer, else of the current one."""
        reading = self._drawn.reading if self._drawn else None
        position = self.rows.pointed_position
        if reading is None or position is None or position >= reading.n_tokens:
            return ()
        return token_figures(reading, position)

    # Drawing

    def _show_nothing(self, sentence: str) -> None:
        for label in (self.per_token, self.per_character, self.count, self.note):
            label.hide()
        self.rows.set_empty(sentence)
        self.setAccessibleDescription(f"{self.help} {sentence}")

    def _show_reading(self, view: View, reading: Reading) -> None:
        session = reading.session
        lines = LossLines(view.labels, view.tokens, session.token_ids, session.loss, session.rank)
        summary = summary_of(reading)
        has_mean = summary.n_tokens > 0
        self.count.set_wordings(*_count(summary))
        self.count.show()
        self.per_token.set_wordings(*_per_token(summary))
        self.per_token.set_tip(_all_digits(summary))
        self.per_character.set_tip(_all_digits(summary))
        self.count.set_tip(_all_digits(summary))
        self.per_token.setVisible(has_mean)
        self.per_character.set_wordings(*_per_character(summary))
        self.per_character.setVisible(has_mean)
        is_open = reading.conditions.mask == "none"
        self.note.say(MASK_OFF if is_open else "" if has_mean else ONLY_FIRST)
        self.rows.set_lines(lines, ceiling=CEILING)
        parts = [self.count.text()]
        if has_mean:
            worst = worst_first(session.loss)[: min(_N_WORST, summary.n_tokens)]
            named = "; ".join(lines.spoken(int(position)) for position in worst)
            parts += [self.per_token.text(), self.per_character.text(), f"Worst: {named}"]
        parts.append(self.note.text())
        self.setAccessibleDescription(". ".join(filter(None, parts)))

    def _dress(self, theme: Theme) -> None:
        unit = theme.unit
        self.rows.set_theme(theme)
        self.per_token.set_look(theme, theme.text, bold=True)
        for label in (self.per_character, self.count):
            label.set_look(theme, theme.text)
        self.note.set_look(theme.font_body, theme.bad)
        for button in self.orders.buttons():
            button.setFont(font_of(self, theme.font_axis))
        self._column.setContentsMargins(2 * unit, unit, 2 * unit, unit)
        for layout in (self._column, self._head):
            layout.setSpacing(unit)

    # Wishes

    def _select(self, position: int) -> None:
        """Select the position before, which predicts the token; nothing does for the first."""
        if position > 0:
            self.wish(SelectPosition(position - 1))

    # Layout

    def _place(self) -> None:
        self._head = QHBoxLayout()
        self._head.addWidget(self.count, 1)
        for index, (text, tip) in enumerate(_ORDERS.items()):
            button = QPushButton(text)
            button.setCheckable(True)
            button.setChecked(index == 0)
            button.setToolTip(tip)
            button.setAccessibleDescription(tip)
            self.orders.addButton(button, index)
            self._head.addWidget(button)
        self._column = QVBoxLayout(self)
        self._column.addWidget(self.per_token)
        self._column.addWidget(self.per_character)
        self._column.addWidget(self.note)
        self._column.addLayout(self._head)
        self._column.addWidget(self.rows, 1)


def token_figures(reading: Reading, position: int) -> tuple[Figure, ...]:
    """What a token cost, with all digits; nothing for the first."""
    nats = reading.session.loss[position : position + 1]
    if isnan(nats[0]):
        return ()
    return (
        Figure("loss in nats", exact(nats[0])),
        Figure("loss in bits", exact(bits(nats)[0])),
        Figure("probability", exact(probabilities(nats)[0])),
        Figure("rank", str(reading.session.rank[position] + 1)),
    )


def summary_of(reading: Reading) -> LossSummary:
    """Over the tokens that are shown and that the model sees, but for the first of them."""
    spans = reading.document.spans[reading.n_fallen : reading.cursor]
    return LossSummary.of(reading.session.loss, spans)


def _count(summary: LossSummary) -> tuple[str, ...]:
    tokens = counted(summary.n_tokens, "token")
    if not summary.n_tokens:
        return (f"{tokens} counted",)
    perplexity = f"Perplexity {summary.perplexity:,.1f}"
    return (
        f"{perplexity} over {tokens}; the first has no loss",
        f"{perplexity} over {tokens}",
        perplexity,
    )


def _all_digits(summary: LossSummary) -> str:
    """What the summary rounds, for whoever points at it."""
    if not summary.n_tokens:
        return ""
    return (
        f"Per token {exact(summary.mean)} nats, {exact(summary.bits_per_token)} bits; per "
        f"character {exact(summary.nats_per_character)} nats, "
        f"{exact(summary.bits_per_character)} bits; perplexity {exact(summary.perplexity)}"
    )


def _per_token(summary: LossSummary) -> tuple[str, ...]:
    nats, bits = f"{summary.mean:.3f} nats", f"{summary.bits_per_token:.3f} bits"
    return f"Mean {nats} = {bits} per token", f"{nats} = {bits} per token", f"{bits} per token"


def _per_character(summary: LossSummary) -> tuple[str, ...]:
    nats = f"{summary.nats_per_character:.3f} nats"
    bits = f"{summary.bits_per_character:.3f} bits"
    characters = counted(summary.n_characters, "character")
    return (
        f"{nats} = {bits} per character, over {characters}",
        f"{nats} = {bits} per character",
        f"{bits} per character",
    )
