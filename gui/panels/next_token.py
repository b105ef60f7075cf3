"""What could follow, how probable each token is, and how it came to be so."""

from math import ceil
from typing import ClassVar

from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QButtonGroup, QHBoxLayout, QPushButton, QVBoxLayout

from engine.reading import Reading
from gui.export.numbers import Table
from gui.export.tables import candidate_tables
from gui.panels.absence import absence
from gui.panels.base import Figure, Panel
from gui.theme import Theme
from gui.view import View
from gui.widgets.arithmetic_stages import exact
from gui.widgets.candidate_bars import CandidateBars, Columns
from gui.widgets.candidate_text import Candidates, cross_entropy, percent
from gui.widgets.fitting_label import FittingLabel, font_of
from gui.widgets.lettering import quoted
from gui.widgets.sampling_fields import SamplingFields
from gui.widgets.token_text import display
from gui.wishes import Choose, SetSampling

_COLUMNS: dict[Columns, tuple[str, str]] = {
    "bars": ("Bars", "Every token's probability as a bar."),
    "stages": ("Stages", "From logit to probability: temperature, top-k, top-p."),
}
_ARITHMETIC = 100  # characters of a long one
_LEAST_ROWS = 5  # with fewer, the bars need the place of the arithmetic


class NextTokenPanel(Panel):
    """The candidates for what follows the selected position, and how one of them is drawn."""

    name: ClassVar[str] = "next_token"

    def __init__(self) -> None:
        super().__init__()
        self.bars = CandidateBars()
        self.sampling = SamplingFields()
        self.heading, self.follows = FittingLabel(fills=True), FittingLabel(fills=True)
        self.note = self.sampling.note
        self.arithmetic = FittingLabel(name="How this probability came to be", fills=True)
        self.reveal = QPushButton("Show")
        self.reveal.setToolTip("Scroll to the token that follows in the text.")
        self.reveal.setAccessibleName("Show the token that follows in the text")
        self.columns = QButtonGroup(self)
        self._candidates: Candidates | None = None
        self._place()
        self.setFocusProxy(self.bars)
        self.copy_by_key(self.bars)
        self.bars.chosen.connect(self._choose)
        self.bars.pointed.connect(self._explain)
        self.sampling.changed.connect(lambda sampling: self.wish(SetSampling(sampling)))
        self.reveal.clicked.connect(self._reveal)
        self.columns.idClicked.connect(self._set_columns)

    def draw(self, view: View, previous: View | None) -> None:
        """Show the candidates of the view."""
        if previous is None or view.state.sampling is not previous.state.sampling:
            self.sampling.show_sampling(view.state.sampling)
        self.bars.set_stale(view.state.stale)
        if view.n_tokens and previous is not None and view.reading is previous.reading:
            return
        if view.reading is not None and view.n_tokens:
            self._show_reading(view, view.reading)
        else:
            self._show_nothing(absence(view, "what could follow"))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Give the arithmetic's place to the bars where there is little."""
        super().resizeEvent(event)
        self._share_height()

    def numbers(self, view: View) -> tuple[Table, ...]:
        """Every stage of every token of the vocabulary."""
        reading = view.reading
        stages = None if reading is None else reading.stages
        return () if reading is None or stages is None else candidate_tables(reading, stages)

    def figures(self) -> tuple[Figure, ...]:
        """The probability and the logit of the pointed row, else of the current one."""
        candidates, token_id = self._candidates, self.bars.pointed_id
        if candidates is None or token_id is None:
            return ()
        stages = candidates.stages
        return (
            Figure("probability", exact(stages.probs[token_id])),
            Figure("plain softmax", exact(stages.plain_probs[token_id])),
            Figure("logit", exact(stages.logits[token_id])),
        )

    # Drawing

    def _show_nothing(self, sentence: str) -> None:
        self._candidates = None
        for widget in (self.heading, self.follows, self.reveal, self.note, self.arithmetic):
            widget.hide()
        self.bars.set_empty(sentence)
        self.setAccessibleDescription(f"{self.help} {sentence}")

    def _show_reading(self, view: View, reading: Reading) -> None:
        candidates = candidates_of(reading)
        if candidates is None:
            return
        self._candidates = candidates
        token = quoted(display(view.tokens[reading.position], 20))
        self.heading.set_wordings(
            f"What follows {token} at position {reading.position}", f"After {token}"
        )
        if candidates.follows is not None:
            self.follows.set_wordings(*_follows(candidates, candidates.follows))
        self.note.set_wordings(*_note(candidates))
        self.heading.show()
        self.note.show()
        self.follows.setVisible(candidates.follows is not None)
        self.reveal.setVisible(candidates.follows is not None)
        self.bars.set_candidates(candidates)
        self._share_height()
        self.setAccessibleDescription(
            f"{self.heading.text()}. {candidates.sentence()} {self.note.text()}"
        )

    def _explain(self, token_id: int) -> None:
        candidates = self._candidates
        if token_id < 0 or candidates is None:
            self.arithmetic.set_wordings("")
            return
        token = quoted(candidates.text(token_id))
        self.arithmetic.set_wordings(f"{token}: {candidates.arithmetic(token_id)}")

    def _dress(self, theme: Theme) -> None:
        unit = theme.unit
        self.bars.set_theme(theme)
        self.sampling.set_theme(theme)
        self.heading.set_look(theme, theme.text, bold=True)
        self.follows.set_look(theme, theme.text)
        self.arithmetic.set_look(theme, theme.text, small=True)
        for button in (*self.columns.buttons(), self.reveal):
            button.setFont(font_of(self, theme.font_axis))
        self._rows.setContentsMargins(2 * unit, unit, 2 * unit, unit)
        for layout in (self._rows, self._head, self._follows):
            layout.setSpacing(unit)

    # Wishes

    def _choose(self, token_id: int) -> None:
        reading = self._drawn.reading if self._drawn else None
        if reading is not None:
            self.wish(Choose(reading.position, token_id))

    def _reveal(self) -> None:
        if self._candidates is not None and self._candidates.follows is not None:
            self.bars.reveal(self._candidates.follows)
            self.bars.setFocus()

    def _set_columns(self, index: int) -> None:
        self.bars.set_columns(list(_COLUMNS)[index])
        self._share_height()

    # Layout

    def _place(self) -> None:
        self._head, self._follows = QHBoxLayout(), QHBoxLayout()
        self._head.addWidget(self.heading, 1)
        for index, (text, tip) in enumerate(_COLUMNS.values()):
            button = QPushButton(text)
            button.setCheckable(True)
            button.setChecked(index == 0)
            button.setToolTip(tip)
            button.setAccessibleDescription(tip)
            self.columns.addButton(button, index)
            self._head.addWidget(button)
        self._follows.addWidget(self.follows, 1)
        self._follows.addWidget(self.reveal)
        self._rows = QVBoxLayout(self)
        self._rows.addLayout(self._head)
        self._rows.addLayout(self._follows)
        self._rows.addWidget(self.bars, 1)
        self._rows.addWidget(self.arithmetic)
        self._rows.addWidget(self.sampling)

    def _share_height(self) -> None:
        """Among the stages the arithmetic always stands; beside bars where they have room."""
        wanted = self.columns.checkedId() == list(_COLUMNS).index("stages")
        is_shown = self.arithmetic.isVisibleTo(self)
        before = self.arithmetic.sizeHint().height()
        self.arithmetic.set_max_lines(self._arithmetic_lines())
        needed = self.arithmetic.sizeHint().height()
        room = self.bars.height() + (before if is_shown else 0) - needed
        has_room = room >= self.bars.height_of(_LEAST_ROWS)
        self.arithmetic.setVisible(self._candidates is not None and (wanted or has_room))

    def _arithmetic_lines(self) -> int:
        """As many as the longest arithmetic takes, so that nothing jumps on hovering."""
        wide = _ARITHMETIC * self.arithmetic.letter
        return min(ceil(wide / max(1, self.width())), 3)


def candidates_of(reading: Reading) -> Candidates | None:
    """All that could follow the reading's position; None for an empty text."""
    if reading.stages is None:
        return None
    follows, loss = _what_follows(reading)
    return Candidates(reading.stages, reading.sampling, reading.info.vocabulary, follows, loss)


def _what_follows(reading: Reading) -> tuple[int | None, float]:
    """The token behind the position and its loss in nats; None if the text ends there.

    What lies beyond the cursor has no recorded loss, so it is worked out from the logits.
    """
    after = reading.position + 1
    if after < reading.n_tokens:
        return int(reading.session.token_ids[after]), float(reading.session.loss[after])
    place = reading.n_fallen + after
    if place >= len(reading.document) or reading.stages is None:
        return None, float("nan")
    token_id = reading.document.token_ids[place]
    return token_id, cross_entropy(reading.stages.logits, token_id)


def _follows(candidates: Candidates, token_id: int) -> tuple[str, ...]:
    token = quoted(candidates.text(token_id))
    rank = f"rank {candidates.row(token_id) + 1:,}"
    plain = percent(float(candidates.stages.plain_probs[token_id]))
    loss = f"loss {candidates.loss:.2f} nats"
    return (
        f"In the text follows {token}: {rank}, plain softmax {plain}, {loss}",
        f"In the text: {token}, {rank}, {loss}",
        f"{token} {rank}, {loss}",
        f"{token} {rank}, {candidates.loss:.2f} nats",
        f"{rank}, {candidates.loss:.2f} nats",
    )


def _note(candidates: Candidates) -> tuple[str, ...]:
    if not candidates.sampling.temperature:
        return (
            "Greedy (temperature 0): the most probable token is certain.",
            "Greedy: the most probable token.",
            "Greedy: rank 1.",
        )
    drawn = f"{candidates.n_drawable:,} of {len(candidates):,}"
    return (
        f"Drawn from {drawn} tokens. Line: plain softmax.",
        f"Drawn from {drawn} tokens.",
        f"From {drawn} tokens.",
        f"From {drawn}.",
    )
