"""A budget for the cache: what is given up, what that costs, and how the text goes on."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from engine.config import ModelConfig
from engine.errors import ConfigError
from engine.sampling import Sampling
from engine.windows.eviction import POLICIES, Budget, Continuation, Eviction, Policy
from engine.windows.masks import bytes_per_row
from gui.panels.absence import absence
from gui.theme import Theme
from gui.view import View
from gui.widgets.fitting_label import FittingLabel, font_of
from gui.widgets.number_field import Number, NumberField, NumberKind
from gui.widgets.size_control import SizeControl
from gui.widgets.strip_table import StripTable
from gui.widgets.token_text import display
from gui.widgets.wrapping_label import WrappingLabel
from gui.windows_state import Answer, asked_by
from gui.wishes import ChooseWindows, SelectPosition
from gui.words.window_strips import budget_said, continuation_said, eviction_strips, step_said

WAITING = "The text is being read under the budget."
WRITING = "The continuations are being written."
MEBI = 2**20
_DIGITS = 7  # less than the thousandth part of any key
_ROOMY = 24  # lines from which on a continuation may take two
_MAY_BREAK = "\u200b"  # between tokens: visible spaces give a line no place to end
_TITLES: dict[Policy, tuple[str, str]] = {
    "window": ("Window", "The last keys stay; the oldest goes."),
    "first + window": ("First + window", "The first k stay for ever, and the last ones."),
    "most attended": (
        "Most attended",
        "Half of the budget for the last keys, half for those that got the most weight so far.",
    ),
}


class EvictionPage(QWidget):
    """Policy and budget, the strips, and both continuations."""

    wished = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self._config: ModelConfig | None = None
        self._longest = 1
        self._sinks = 0
        self.policy = QComboBox()
        self.budget = SizeControl("keys", 1, "How many keys each layer may hold.", self._check_keys)
        kind = NumberKind(
            name="MiB", least=0.0, most=1e6, step=0.01, use="use more than 0", room_for="0.0000000"
        )
        self.mebibytes = NumberField(kind, self._check_mebibytes, self)
        self.mebibytes_label = QLabel("MiB")
        self.mebibytes_label.setTextFormat(Qt.TextFormat.PlainText)
        self.sinks = SizeControl("first k", 0, "How many first keys stay.", self._check_sinks)
        self.complaint = WrappingLabel()
        self.complaint.hide()
        self.table = StripTable("What the cache holds, and losses")
        self.told = FittingLabel(name="What a step gave up", fills=True)
        self.agreement = FittingLabel(name="How far the continuations agree", fills=True)
        self.full = FittingLabel(name="Continuation without a budget", fills=True)
        self.under = FittingLabel(name="Continuation under the budget", fills=True)
        self._place()
        self.setFocusProxy(self.table)
        self.policy.activated.connect(lambda at: self._choose(policy=POLICIES[at]))
        self.budget.chosen.connect(lambda n: self._choose(n_keys=n))
        self.sinks.chosen.connect(lambda k: self._choose(sinks=k))
        self.mebibytes.committed.connect(self._choose_mebibytes)
        for control in (self.budget, self.sinks, self.mebibytes):
            control.complained.connect(self.complaint.say)
        self.table.chosen.connect(lambda at: self.wished.emit(SelectPosition(at)))

    def _choose(self, **changes: object) -> None:
        self.wished.emit(ChooseWindows(changes))

    def show_view(self, view: View) -> None:
        """Show what came of the budget, dimmed where it was another or of another text."""
        state, reading = view.state.windows, view.reading
        choice = state.choice
        if reading is not None:
            self._config = reading.info.config
            self._longest = self._config.max_seq_len
        self._sinks = choice.sinks
        self.policy.setCurrentIndex(POLICIES.index(choice.policy))
        self.budget.show_value(choice.n_keys, view.n_tokens, self._longest)
        self.sinks.show_value(choice.sinks, view.n_tokens, self._longest)
        self.sinks.setVisible(choice.policy == "first + window")
        self.mebibytes.show_value(round(choice.n_keys * self._bytes_per_key() / MEBI, _DIGITS))
        missing = absence(view, "what a budget for the cache costs")
        answer = state.answer("eviction")
        if missing or reading is None or answer is None:
            self._show_nothing(missing or self._waiting(view))
            return
        is_fresh = answer.asked in asked_by(reading, choice)
        if answer.eviction is None:
            self._show_nothing(answer.obstacle if is_fresh else self._waiting(view))
            return
        self.table.set_stale(view.state.stale or not is_fresh)
        self._show_answer(view, answer, answer.eviction, is_fresh=is_fresh)

    def _waiting(self, view: View, what: str = WAITING) -> str:
        progress = view.state.windows.progress
        return what if progress is None else f"{what[:-1]}, {progress:.0%}."

    def _show_nothing(self, sentence: str) -> None:
        self.table.set_empty(sentence)
        for label in (self.told, self.agreement, self.full, self.under):
            label.set_wordings("")

    def _show_answer(
        self, view: View, answer: Answer, eviction: Eviction, *, is_fresh: bool
    ) -> None:
        labels = tuple(map(display, answer.tokens))
        step = None if view.query is None else min(view.query, eviction.n_tokens - 1)
        self.table.set_strips(labels, answer.tokens, eviction_strips(eviction, step))
        self.table.set_columns(step, None)
        self.told.set_wordings(step_said(eviction, step, labels))
        if not eviction.is_whole:
            self.agreement.set_wordings(self._waiting(view, WRITING))
            for label in (self.full, self.under):
                label.set_wordings("")
            return
        how = _drawn(answer.reading.sampling)
        agreement = continuation_said(eviction)
        progress = "" if is_fresh else f"{self._waiting(view)} "
        self.agreement.set_wordings(f"{progress}{agreement} ({how})", f"{progress}{agreement}")
        common = eviction.continuation.n_common(eviction.full_continuation)
        self.full.set_wordings(*_written("No budget", eviction.full_continuation, common))
        name = budget_said(eviction.budget)
        self.under.set_wordings(*_written(name, eviction.continuation, common))

    def sentence(self) -> str:
        """The page in words."""
        headings = (strip.wordings[0] for strip in self.table.strips)
        said = (self.told, self.agreement, self.full, self.under)
        words = " ".join(filter(None, (*headings, *(label.text() for label in said))))
        return words or self.table.accessibleDescription()

    # Checks

    def _bytes_per_key(self) -> int:
        """Bytes of one key and its value in all layers."""
        config = self._config
        return 1 if config is None else config.n_layer * bytes_per_row(config)

    def _check_keys(self, value: Number) -> None:
        Budget(n_keys=int(value))
        if value > self._longest:
            raise ConfigError(
                f"a budget of {value} keys is more than the {self._longest:,} positions that this "
                f"model sees; use 1 to {self._longest}."
            )

    def _check_sinks(self, value: Number) -> None:
        if not 0 <= value <= self._longest:
            raise ConfigError(f"first k = {value} is not possible; use 0 to {self._longest}.")

    def _check_mebibytes(self, value: Number) -> None:
        each = self._bytes_per_key()
        if value * MEBI < each:
            raise ConfigError(
                f"{value:g} MiB holds no key; one takes {each / MEBI:g} MiB in all layers together."
            )
        self._check_keys(self._keys_in(value))

    def _choose_mebibytes(self, value: Number) -> None:
        self._choose(n_keys=self._keys_in(value))

    def _keys_in(self, mebibytes: Number) -> int:
        """How many keys that holds; what the field itself shows of a number of them holds them."""
        return int(mebibytes * MEBI / self._bytes_per_key() + 1e-3)

    # Look

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Give the continuations as many lines as there is room for."""
        super().resizeEvent(event)
        n_lines = 1 if self.height() < _ROOMY * self.told.sizeHint().height() else 2
        for label in (self.full, self.under):
            label.set_max_lines(n_lines)

    def set_theme(self, theme: Theme) -> None:
        """Draw in another look."""
        for control in (self.budget, self.sinks):
            control.set_theme(theme)
        self.mebibytes.set_theme(theme)
        self.table.set_theme(theme)
        self.mebibytes_label.setFont(font_of(self, theme.font_axis))
        self.policy.setFont(font_of(self, theme.font_body))
        self.complaint.set_look(theme.font_axis, theme.bad)
        self.told.set_look(theme, theme.text)
        self.agreement.set_look(theme, theme.text, bold=True)
        for label in (self.full, self.under):
            label.set_look(theme, theme.text)
        for layout in (self._column, self._sizes):
            layout.setSpacing(theme.unit)

    def _place(self) -> None:
        self._sizes = QHBoxLayout()
        self.policy.setAccessibleName("Which keys stay")
        for title, tip in _TITLES.values():
            self.policy.addItem(title)
            self.policy.setItemData(self.policy.count() - 1, tip, Qt.ItemDataRole.ToolTipRole)
        self._sizes.addWidget(self.policy)
        self.mebibytes_label.setBuddy(self.mebibytes)
        for widget, stretch in (
            (self.budget, 1),
            (self.mebibytes, 0),
            (self.mebibytes_label, 0),
        ):
            self._sizes.addWidget(widget, stretch)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.addLayout(self._sizes)
        self._column.addWidget(self.sinks)
        self._column.addWidget(self.complaint)
        self._column.addWidget(self.table, 1)
        for label in (self.told, self.agreement, self.full, self.under):
            self._column.addWidget(label)


def _drawn(sampling: Sampling) -> str:
    if sampling.temperature == 0:
        return "greedy"
    return f"temperature {sampling.temperature:g}, seed {sampling.seed}"


def _written(name: str, continuation: Continuation, n_common: int) -> tuple[str, ...]:
    """Tokens as visible text, in fewer and fewer of them; where two part, a bar."""
    words = list(map(display, continuation.tokens))
    if 0 < n_common < len(words):
        words.insert(n_common, " ‖ ")
    shorter = [words, *((*words[:n], "…") for n in range(len(words) - 2, 2, -2))]
    return tuple(f"{name}: {_MAY_BREAK.join(each)}" for each in shorter)
