"""The text under the causal mask, a window, and the first tokens with a window, side by side."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from engine.conditions import Conditions
from engine.errors import ConfigError
from engine.windows.masks import antecedent, three_masks
from gui.panels.absence import absence
from gui.theme import Theme
from gui.view import View
from gui.widgets.fitting_label import FittingLabel
from gui.widgets.number_field import Number
from gui.widgets.size_control import SizeControl
from gui.widgets.strip_table import StripTable
from gui.widgets.token_text import display
from gui.widgets.wrapping_label import WrappingLabel
from gui.windows_state import Answer, asked_by
from gui.wishes import ChooseWindows, SelectPosition
from gui.words.window_strips import (
    antecedent_said,
    fixed_window_said,
    fixed_window_strip,
    mask_strips,
    reach_said,
)

WAITING = "The text is being read under three masks."


class WindowsPage(QWidget):
    """Controls above the strips; what is measured of the antecedent below."""

    wished = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self._longest, self._query = 1, 0
        self.window_size = SizeControl(
            "window n", 1, "How many positions a query sees, its own included.", self._check_window
        )
        self.sinks = SizeControl(
            "first k", 0, "How many first positions stay visible to every query.", self._check_sinks
        )
        self.complaint, self.obstacle = WrappingLabel(), WrappingLabel()
        self.table = StripTable("Losses under three masks")
        self.told = FittingLabel(name="The antecedent", fills=True)
        self.told.set_max_lines(2)
        self.note = FittingLabel(name="What the fixed window knows", fills=True)
        self.complaint.hide()
        self.obstacle.hide()
        self._place()
        self.setFocusProxy(self.table)
        self.window_size.chosen.connect(lambda n: self.wished.emit(ChooseWindows({"window": n})))
        self.sinks.chosen.connect(lambda k: self.wished.emit(ChooseWindows({"sinks": k})))
        for control in (self.window_size, self.sinks):
            control.complained.connect(self.complaint.say)
        self.table.chosen.connect(lambda at: self.wished.emit(SelectPosition(at)))
        self.table.marked.connect(lambda at: self.wished.emit(SelectPosition(self._query, at)))

    def show_view(self, view: View) -> None:
        """Show what is known of the view's text, dimmed where it is of another."""
        state, reading = view.state.windows, view.reading
        choice = state.choice
        if reading is not None:
            self._longest = reading.info.config.max_seq_len
        self.window_size.show_value(choice.window, view.n_tokens, self._longest)
        self.sinks.show_value(choice.sinks, view.n_tokens, self._longest)
        missing = absence(view, "what a window does to its loss")
        answer = state.answer("windows")
        if missing or reading is None or answer is None or answer.windows is None:
            self._show_nothing(missing or (answer.obstacle if answer else "") or WAITING)
            return
        wanted = asked_by(reading, choice)
        is_fresh = answer.asked in wanted
        self.table.set_stale(view.state.stale or not is_fresh)
        self._show_answer(view, answer)

    def _show_nothing(self, sentence: str) -> None:
        self.table.set_empty(sentence)
        self.told.set_wordings("")
        self.note.set_wordings("")
        self.obstacle.say("")

    def _show_answer(self, view: View, answer: Answer) -> None:
        windows, info = answer.windows, answer.reading.info
        assert windows is not None  # noqa: S101 - asked before
        labels = tuple(map(display, answer.tokens))
        token_ids = answer.token_ids
        last = windows.n_tokens - 1
        query = self._query = windows.query
        is_same_text = view.reading is not None and view.n_tokens == windows.n_tokens
        key = view.key if view.key is not None and view.key <= last else None
        if key is None or not is_same_text:
            key = antecedent(token_ids, query)
        strips = mask_strips(windows, info.config, query, key)
        fixed = view.state.windows.answer("fixed window")
        notes = reach = reach_said(windows, info.config)
        obstacle = ""
        if fixed is not None and fixed.fixed_window is not None:
            if fixed.token_ids == token_ids:
                strips.append(fixed_window_strip(fixed.fixed_window, query))
            notes = fixed_window_said(fixed.fixed_window)
        elif fixed is not None:
            obstacle = f"There is no n-gram model beside it: {fixed.obstacle}"
        elif view.state.windows.progress is not None:
            share = view.state.windows.progress
            notes = (f"The plays are being cut into this model's tokens, {share:.0%}.",)
        self.obstacle.say(obstacle)
        self.table.set_strips(labels, answer.tokens, strips)
        self.table.set_columns(query, key)
        self.told.set_wordings(*antecedent_said(windows, labels, key, info.vocabulary))
        self.note.set_wordings(*notes)
        self.note.setToolTip(f"<span>{reach[0]}</span>")

    def sentence(self) -> str:
        """The page in words."""
        headings = (strip.wordings[0] for strip in self.table.strips)
        parts = (*headings, self.told.text(), self.note.text(), self.obstacle.text())
        return " ".join(filter(None, parts)) or self.table.accessibleDescription()

    # Checks

    def _check_window(self, value: Number) -> None:
        three_masks(Conditions(), int(value), 0)
        self._check_length("window", value, 1)

    def _check_sinks(self, value: Number) -> None:
        three_masks(Conditions(), 1, int(value))
        self._check_length("first k", value, 0)

    def _check_length(self, name: str, value: Number, least: int) -> None:
        if value > self._longest:
            raise ConfigError(
                f"{name} = {value} reaches beyond the {self._longest:,} positions that this model "
                f"sees; use {least} to {self._longest}."
            )

    # Look

    def set_theme(self, theme: Theme) -> None:
        """Draw in another look."""
        unit = theme.unit
        for control in (self.window_size, self.sinks):
            control.set_theme(theme)
        self.table.set_theme(theme)
        self.complaint.set_look(theme.font_axis, theme.bad)
        self.obstacle.set_look(theme.font_axis, theme.text)
        self.told.set_look(theme, theme.text)
        self.note.set_look(theme, theme.text_dim, small=True)
        self._column.setSpacing(unit)
        self._sizes.setSpacing(3 * unit)

    def _place(self) -> None:
        self._sizes = QHBoxLayout()
        self._sizes.addWidget(self.window_size, 1)
        self._sizes.addWidget(self.sinks, 1)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.addLayout(self._sizes)
        self._column.addWidget(self.complaint)
        self._column.addWidget(self.table, 1)
        for label in (self.told, self.note, self.obstacle):
            self._column.addWidget(label)
