"""A prepared comparison, labelled so, and the same sentence through the loaded model beside it."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from engine.conditions import Conditions
from engine.errors import ConfigError
from engine.windows.masks import three_masks
from gui.panels.absence import absence
from gui.theme import Theme
from gui.view import View
from gui.widgets.fitting_label import FittingLabel, font_of
from gui.widgets.number_field import Number
from gui.widgets.size_control import SizeControl
from gui.widgets.strip_table import StripTable
from gui.widgets.token_text import display
from gui.windows_state import asked_by
from gui.wishes import ChooseWindows, EditText
from gui.words.names import plain
from gui.words.prepared import SENTENCE, WORDS
from gui.words.window_strips import live_strips, prepared_strips

PREPARED = "Prepared, not computed: weights written by hand for the last word, 'to'"
WAITING = "The sentence is being read under three masks."
_LAST = len(WORDS) - 1
_TARGET = next(at for at, word in enumerate(WORDS) if "credentials" in word)


class PreparedPage(QWidget):
    """What was prepared above, what is live below; a mark shows where 'credentials' stands."""

    wished = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self._longest = 1
        self.label = FittingLabel()
        self.label.set_wordings(PREPARED, "Prepared, not computed")
        self.prepared = StripTable("Prepared weights, not computed", moves_mark=True)
        self.prepared.set_strips(WORDS, tuple(map(str.encode, WORDS)), prepared_strips())
        self.prepared.set_columns(_LAST, _TARGET)
        self.live_label = FittingLabel()
        self.window_size = SizeControl(
            "window n", 1, "How many tokens the query sees, its own included.", self._check
        )
        self.into_prompt = QPushButton("To prompt")
        self.into_prompt.setToolTip("Make this sentence the text that everything shows.")
        self.live = StripTable("The same sentence through the model", moves_mark=True)
        self._place()
        self.setFocusProxy(self.live)
        self.window_size.chosen.connect(
            lambda n: self.wished.emit(ChooseWindows({"sentence_window": n}))
        )
        for table in (self.prepared, self.live):
            table.marked.connect(lambda at, table=table: table.set_columns(table.query, at))
        self.into_prompt.clicked.connect(lambda: self.wished.emit(EditText(SENTENCE)))

    def show_view(self, view: View) -> None:
        """Show the model's own weights on the sentence, in the selected head."""
        state, reading = view.state.windows, view.reading
        if reading is not None:
            self._longest = reading.info.config.max_seq_len
        answer = state.answer("sentence")
        n_tokens = 0 if answer is None else len(answer.tokens)
        self.window_size.show_value(state.choice.sentence_window, n_tokens, self._longest)
        missing = absence(view, "a model's own weights beside the prepared ones")
        if missing or reading is None or answer is None or answer.windows is None:
            self.live_label.set_wordings("Live")
            self.live.set_empty(missing or (answer.obstacle if answer else "") or WAITING)
            return
        info, windows = answer.reading.info, answer.windows
        name = plain(info.name)
        is_fresh = answer.asked in asked_by(reading, state.choice)
        self.live.set_stale(view.state.stale or not is_fresh)
        at = min(view.layer, info.config.n_layer - 1), min(view.head, info.config.n_head - 1)
        self.live_label.set_wordings(
            f"Live: {name}, layer {at[0]}, head {at[1]}, the last token's weights",
            f"Live: {name}, L{at[0]} H{at[1]}",
            f"Live, L{at[0]} H{at[1]}",
            "Live",
        )
        labels = tuple(map(display, answer.tokens))
        is_other = self.live.query is None
        self.live.set_strips(
            labels, answer.tokens, live_strips(windows, info.config, at, info.vocabulary)
        )
        if is_other:
            self.live.set_columns(windows.query, first_of(answer.tokens, b"credentials"))

    def sentence(self) -> str:
        """The page in words."""
        headings = (strip.wordings[0] for strip in (*self.prepared.strips, *self.live.strips))
        return " ".join((PREPARED, SENTENCE, *headings))

    def _check(self, value: Number) -> None:
        three_masks(Conditions(), int(value), 0)
        if value > self._longest:
            raise ConfigError(
                f"window = {value} reaches beyond the {self._longest:,} positions that this model "
                f"sees; use 1 to {self._longest}."
            )

    def set_theme(self, theme: Theme) -> None:
        """Draw in another look."""
        for table in (self.prepared, self.live):
            table.set_theme(theme)
        self.window_size.set_theme(theme)
        self.label.set_look(theme, theme.bad, bold=True)
        self.live_label.set_look(theme, theme.text, bold=True)
        self.into_prompt.setFont(font_of(self, theme.font_axis))
        self._column.setSpacing(theme.unit)
        self._controls.setSpacing(2 * theme.unit)

    def _place(self) -> None:
        self._controls = QHBoxLayout()
        self._controls.addWidget(self.live_label, 1)
        self._controls.addWidget(self.window_size, 1)
        self._controls.addWidget(self.into_prompt)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.addWidget(self.label)
        self._column.addWidget(self.prepared, 1)
        self._column.addLayout(self._controls)
        self._column.addWidget(self.live, 1)


def first_of(tokens: tuple[bytes, ...], word: bytes) -> int | None:
    """The token in which a word begins, if the tokens spell it."""
    at, begins = b"".join(tokens).find(word), 0
    for position, token in enumerate(tokens):
        begins += len(token)
        if 0 <= at < begins:
            return position
    return None
