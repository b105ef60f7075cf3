"""What the causal mask prevents: a model that was trained without it beside one that was not."""

from typing import ClassVar

import numpy as np
from PySide6.QtWidgets import QGridLayout, QVBoxLayout, QWidget

from engine.conditions import Mask
from engine.experiments.records import MASKS, LeakTrials
from gui.export.numbers import Table
from gui.export.tables import leak_tables
from gui.panels.base import Figure
from gui.panels.experiment import ExperimentPanel
from gui.questions.experimenting import LEAK_MODELS
from gui.state import OpenedExperiment, State
from gui.theme import Theme
from gui.widgets.fitting_label import FittingLabel
from gui.widgets.lettering import quoted
from gui.widgets.scales import exact
from gui.widgets.token_text import display
from gui.widgets.trial_view import TrialView, loss_words
from gui.wishes import WantLeak

_TRAINED: dict[Mask, str] = {"causal": "trained with the mask", "none": "trained without it"}
_READ: dict[Mask, str] = {"causal": "mask on", "none": "mask off"}


class LeakPanel(ExperimentPanel[LeakTrials]):
    """Two models × mask on and off: loss, continuation, and the head that reads the answer."""

    name: ClassVar[str] = "leak"
    wants = WantLeak
    models = LEAK_MODELS
    waiting = "Both models are reading the text."

    def __init__(self) -> None:
        content = QWidget()
        super().__init__(content, told="The answer that is read")
        self._content = content
        self.heading = FittingLabel(name="The four losses", fills=True)
        self.views = {
            (trained, mask): TrialView(
                f"{_TRAINED[trained]}, {_READ[mask]}".capitalize(),
                f"{_TRAINED[trained].split()[1]}, {_READ[mask]}",
            )
            for trained in MASKS
            for mask in MASKS
        }
        self._query: int | None = None
        self._place()
        self.setFocusProxy(self._leaking.matrix)
        for view in self.views.values():
            view.matrix.cell_hovered.connect(self._point)
            view.matrix.hover_left.connect(lambda: self._point(None, None))
            view.matrix.cell_clicked.connect(self._choose)
            view.matrix.cell_requested.connect(self._choose)
            self.copy_by_key(view.matrix)

    @property
    def _leaking(self) -> TrialView:
        """Where the answer is read."""
        return self.views["none", "none"]

    def _opened(self, state: State) -> OpenedExperiment[LeakTrials] | None:
        return state.leak

    def _tables(self, answer: LeakTrials) -> tuple[Table, ...]:
        """The losses of all tokens, and what each trial came to."""
        return leak_tables(answer)

    def figures(self) -> tuple[Figure, ...]:
        """The weights that are pointed at, or else on the answer, and the four mean losses.

        The weight of the heatmap that has the keyboard comes first.
        """
        if self._shown is None:
            return ()
        views = sorted(self.views.items(), key=lambda each: not each[1].matrix.hasFocus())
        weights = (
            Figure(
                f"weight, {_TRAINED[trained]}, {_READ[mask]}",
                exact(self._shown.trial(trained, mask).pattern[view.matrix.shown_cell]),
            )
            for (trained, mask), view in views
            if view.matrix.shown_cell is not None
        )
        losses = (
            Figure(f"nats per token, {_TRAINED[each.trained_mask]}, {_READ[each.mask]}",
                   repr(each.mean_loss))
            for each in self._shown.trials
        )  # fmt: skip
        return *weights, *losses

    @property
    def query(self) -> int | None:
        """The position whose answer is framed."""
        return self._query

    # Drawing

    def _show_none(self) -> None:
        self.heading.set_wordings("")
        for view in self.views.values():
            view.set_empty("")

    def _set_stale(self, *, is_stale: bool) -> None:
        for view in self.views.values():
            view.set_stale(is_stale)

    def _show_answer(self, answer: LeakTrials) -> None:
        labels = tuple(map(display, answer.tokens))
        for (trained, mask), view in self.views.items():
            view.set_trial(answer.trial(trained, mask), labels)
        self.legend.set_legends(self._leaking.matrix.legend)
        self.heading.set_wordings(*summary(answer))
        last = len(answer.tokens) - 2
        if self._query is None or self._query > last:
            self._query = max(0, last)
        self._frame()

    def _frame(self) -> None:
        trials, query = self._shown, self._query
        if trials is None or query is None:
            return
        has_answer = query + 1 < len(trials.tokens)
        for view in self.views.values():
            view.matrix.set_cell(query, query + 1 if has_answer else None)
        self._tell(query)

    def _tell(self, query: int) -> None:
        trials = self._shown
        if trials is None:
            return
        self.told.set_wordings(*answer_words(trials, query))
        read = (self.heading.text(), self.left_out.text(), self.told.text())
        self._describe(*read, written_words(trials))

    def _point(self, query: int | None, key: int | None = None) -> None:
        cell = None if query is None or key is None else (query, key)
        for view in self.views.values():
            view.matrix.show_pointed(cell)
        at = self._query if query is None else query
        if at is not None:
            self._tell(at)

    def _choose(self, query: int, _key: int) -> None:
        self._query = query
        self._frame()

    # Layout

    def _place(self) -> None:
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(self.page)
        self._rows, self._grid = QVBoxLayout(self._content), QGridLayout()
        for at, view in enumerate(self.views.values()):
            self._grid.addWidget(view, at // 2, at % 2)
        for side in (0, 1):
            self._grid.setRowStretch(side, 1)
            self._grid.setColumnStretch(side, 1)
        self._rows.addWidget(self.heading)
        self._rows.addWidget(self.left_out)
        self._rows.addWidget(self.told)
        self._rows.addLayout(self._grid, 1)
        self._rows.addWidget(self.legend)

    def _dress(self, theme: Theme) -> None:
        unit = theme.unit
        super()._dress(theme)
        self.heading.set_look(theme, theme.text, bold=True)
        for view in self.views.values():
            view.set_theme(theme)
        self._rows.setContentsMargins(2 * unit, unit, 2 * unit, unit)
        self._rows.setSpacing(unit)
        self._grid.setSpacing(unit)


def summary(trials: LeakTrials) -> tuple[str, ...]:
    """The four losses in a sentence, in fewer and fewer words."""
    if len(trials.tokens) < 2:
        first = "The first token has no loss: nothing stands before it that could predict it"
        return f"{first}.", "The first token has no loss."
    honest, leaking = (
        " / ".join(loss_words(trials.trial(trained, mask).mean_loss) for mask in MASKS)
        for trained in MASKS
    )
    longest = f"{honest} for the model trained with it, {leaking} for the one trained without"
    return (
        f"Mean loss in nats per token with the mask on / off: {longest}",
        f"Nats per token, mask on / off: trained with it {honest}, without it {leaking}",
        f"Mask on / off: trained with {honest}, without {leaking}",
        f"with {honest}, without {leaking}",
    )


def answer_words(trials: LeakTrials, query: int) -> tuple[str, ...]:
    """What the leaking model's head gives to the token that a query is to predict."""
    if query + 1 >= len(trials.tokens):
        return ("Nothing follows the last token that could be read.",)
    trial = trials.trial("none", "none")
    weight = exact(np.float32(trial.pattern[query, query + 1]))
    head = "layer {}, head {}".format(*trial.head)
    asks, answer = (quoted(display(token)) for token in trials.tokens[query : query + 2])
    told = f"osition {query} {asks} gives {weight} of its attention to {answer}"
    return (
        f"Trained without, mask off: p{told}, which it is to predict ({head})",
        f"P{told}, its answer ({head})",
        f"{asks} gives {weight} to its answer {answer}",
    )


def written_words(trials: LeakTrials) -> str:
    """What each trial writes, for who cannot see it."""
    return " ".join(
        f"{_TRAINED[each.trained_mask]}, {_READ[each.mask]}, writes: {quoted(each.continuation)}."
        for each in trials.trials
    )
