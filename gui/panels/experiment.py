"""What the panels on small models have in common: when they ask, and the lines around heatmaps."""

from abc import abstractmethod
from typing import ClassVar, Generic

from PySide6.QtWidgets import QWidget

from gui.export.numbers import Table
from gui.export.stamp import Fact
from gui.panels.absence import absence
from gui.panels.base import AskingPanel
from gui.state import Experiment, OpenedExperiment, State
from gui.theme import Theme
from gui.view import View
from gui.widgets.fitting_label import FittingLabel
from gui.widgets.legend_line import LegendLine
from gui.widgets.sentence_page import SentencePage
from gui.widgets.wrapping_label import WrappingLabel


class ExperimentPanel(AskingPanel, Generic[Experiment]):
    """Shows what small models make of the text; owns all but the heatmaps and their figures.

    Subclasses set `models` and `waiting`, put the lines where they belong, and show an answer.
    """

    models: ClassVar[tuple[str, ...]]
    waiting: ClassVar[str]  # what is said until the first answer

    def __init__(self, content: QWidget, told: str) -> None:
        """`content` gives way to a sentence while there is no answer; `told` names the line."""
        super().__init__()
        self.told = FittingLabel(name=told, fills=True)
        self.left_out = WrappingLabel()
        self.legend = LegendLine((1,))
        self.page = SentencePage(content)
        self._shown: Experiment | None = None

    @abstractmethod
    def _opened(self, state: State) -> OpenedExperiment[Experiment] | None:
        """The latest answer."""

    @abstractmethod
    def _tables(self, answer: Experiment) -> tuple[Table, ...]:
        """The answer as numbers."""

    @abstractmethod
    def _show_answer(self, answer: Experiment) -> None:
        """Draw one on a text that is not empty."""

    @abstractmethod
    def _show_none(self) -> None:
        """Leave everything empty."""

    @abstractmethod
    def _set_stale(self, *, is_stale: bool) -> None:
        """Dim what is drawn while the next answer is on its way."""

    def draw(self, view: View, _previous: View | None) -> None:
        """Show the answer that the view has; dimmed while the wanted one is late."""
        missing = absence(view, "what each model makes of it")
        opened = self._opened(view.state)
        answer = None if missing or opened is None else opened.answer
        if opened is None or answer is None or not answer.tokens:
            obstacle = "" if opened is None else opened.obstacle
            self._show_nothing(missing or obstacle or self.waiting)
            return
        self.page.show_content()
        if answer is not self._shown:
            self._shown = answer
            self.left_out.say(left_out_words(answer.n_left_out, len(answer.tokens)))
            self._show_answer(answer)
        text = "" if view.reading is None else view.reading.document.text
        is_answered = opened.is_of(text, view.state.experiment)
        self._set_stale(is_stale=self.is_stale(view, is_answered=is_answered))

    def numbers(self, view: View) -> tuple[Table, ...]:
        """What is drawn, as tables."""
        opened = self._opened(view.state)
        return () if opened is None or opened.answer is None else self._tables(opened.answer)

    def more_facts(self, view: View) -> dict[str, Fact]:  # noqa: ARG002 - as with all panels
        """Whose numbers these are: the model that is open has no part in them."""
        return {"small_models": ", ".join(self.models)}

    def _show_nothing(self, sentence: str) -> None:
        self._shown = None
        self.told.set_wordings("")
        self.left_out.say("")
        self.legend.set_legends()
        self._show_none()
        self.page.show_sentence(sentence)
        self._describe(sentence)

    def _describe(self, *sentences: str) -> None:
        """Say it all to who cannot see it."""
        self.setAccessibleDescription(" ".join(filter(None, (self.help, *sentences))))

    def _dress(self, theme: Theme) -> None:
        self.told.set_look(theme, theme.text)
        self.left_out.set_look(theme.font_axis, theme.text_dim)
        self.page.set_theme(theme)
        self.legend.set_theme(theme)


def left_out_words(n_left_out: int, n_read: int) -> str:
    """How much of a long text is read."""
    if not n_left_out:
        return ""
    return (
        f"Read are the last {n_read:,} of the text's {n_read + n_left_out:,} tokens: these models "
        "see no more."
    )
