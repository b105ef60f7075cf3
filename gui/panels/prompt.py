"""The text: an editor, and under it the same text as the tokens that the model reads."""

from typing import ClassVar

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSplitter, QVBoxLayout

from gui.export.numbers import Table
from gui.export.tables import prompt_tables
from gui.panels.base import Figure, Panel
from gui.panels.loss import token_figures
from gui.theme import lookup_table
from gui.view import View
from gui.widgets.prompt_edit import PromptEdit, TokenState
from gui.widgets.scales import exact
from gui.widgets.token_strip import TokenStrip
from gui.widgets.wrapping_label import WrappingLabel
from gui.wishes import EditText, SelectPosition
from gui.words.cache_figures import latest_pass

# The loss at which a chip has the full colour: about a guess among 3,000 tokens.
_LOSS_CEILING = 8.0
_LEAST_LINES = 2  # of the editor


class PromptPanel(Panel):
    """Shows state.text in the editor and the reading's tokens in the strip."""

    name: ClassVar[str] = "prompt"

    def __init__(self) -> None:
        super().__init__()
        self.editor = PromptEdit()
        self.strip = TokenStrip()
        self.replaced = WrappingLabel()
        self.replaced.setAccessibleName("Characters that the model cannot read")
        self.replaced.setContentsMargins(8, 0, 8, 0)
        self.replaced.hide()
        self._splitter = QSplitter(Qt.Orientation.Vertical)
        self._splitter.addWidget(self.editor)
        self._splitter.addWidget(self.strip)
        self._splitter.setChildrenCollapsible(False)
        self._splitter.splitterMoved.connect(self._leave_shares)
        self._has_own_shares = True  # until the user moves the border between the two
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self._splitter, 1)
        layout.addWidget(self.replaced)
        self.setFocusProxy(self.editor)
        self.editor.text_edited.connect(lambda text: self.wish(EditText(text)))
        self.strip.position_clicked.connect(lambda at: self.wish(SelectPosition(at)))
        self.copy_by_key(self.strip)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Give the strip as many whole rows as leave the editor some lines."""
        super().resizeEvent(event)
        self._share_height()

    def _share_height(self) -> None:
        if not self._has_own_shares:
            return
        room = self.height() - self._splitter.handleWidth()
        if not self.replaced.isHidden():
            room -= self.replaced.heightForWidth(self.width())
        rows = 1
        while room - self.strip.height_of(rows + 1) >= self.editor.height_of(_LEAST_LINES):
            rows += 1
            if 2 * self.strip.height_of(rows) > room:  # the rest is the editor's
                break
        strip = self.strip.height_of(rows)
        self._splitter.setSizes([room - strip, strip])

    def _leave_shares(self) -> None:
        self._has_own_shares = False

    def numbers(self, view: View) -> tuple[Table, ...]:
        """The tokens of the text."""
        return prompt_tables(view.reading) if view.reading is not None else ()

    def figures(self) -> tuple[Figure, ...]:
        """What the token under the mouse cost, else the selected one, and the weight on it."""
        view, position = self._drawn, self.strip.pointed_position
        reading = None if view is None else view.reading
        if view is None or reading is None or position is None or position >= reading.n_tokens:
            return ()
        weight = []
        query = view.lit[0]
        if query is not None and view.focus is not None:
            weight.append(Figure("weight on it", exact(view.focus.weights[query, position])))
        return (*token_figures(reading, position), *weight)

    def draw(self, view: View, previous: View | None) -> None:
        """Text, tokens, losses, the selected row, and a flash on what was recomputed."""
        if previous is None or view.theme is not previous.theme:
            self.editor.set_theme(view.theme)
            self.strip.set_theme(view.theme)
            self._share_height()
        if (
            previous is None
            or view.replaced != previous.replaced
            or view.theme is not previous.theme
        ):
            self._say_replaced(view)
        self.strip.set_motion(view.state.display.motion)
        self.editor.show_text(view.state.text)
        if view.reading is None:
            return
        if (
            previous is None
            or view.reading is not previous.reading
            or view.state.display.show_loss != previous.state.display.show_loss
            or view.state.display.show_pass != previous.state.display.show_pass
            or view.theme is not previous.theme
        ):
            self._draw_tokens(view)
        is_new = previous is None or view.reading is not previous.reading
        if is_new and view.reading.reason != "looked":
            self.strip.set_recomputed(*view.reading.computed)
        if is_new or (previous is not None and view.lit != previous.lit):
            self._light(view)
        if view.query is not None:
            self.editor.set_selected(view.query + view.reading.n_fallen)

    def _say_replaced(self, view: View) -> None:
        self.replaced.set_look(view.theme.font_body, view.theme.text)
        self.replaced.say(view.replaced)
        self.replaced.setAccessibleDescription(view.replaced)
        layout = self.layout()
        if layout is not None:
            layout.activate()  # the splitter shares out the height that is left now
        self._share_height()

    def _light(self, view: View) -> None:
        """Where the lit query looks: the one under the mouse, or the selected one."""
        query, key = view.lit
        if view.focus is None or query is None:
            self.strip.set_row(None)
        else:
            self.strip.set_row(view.focus.weights[query], view.focus.visible[query])
        self.strip.set_selected(query, key)

    def _draw_tokens(self, view: View) -> None:
        reading, height = view.reading, self.strip.height_of(1)
        if reading is None:
            return
        document, cursor = reading.document, reading.cursor
        self.strip.set_tokens(
            document.tokens[:cursor],
            document.token_ids[:cursor],
            reading.n_fallen,
            reading.info.config.max_seq_len,
        )
        self.strip.set_generated_from(document.generated_from - reading.n_fallen)
        self.strip.set_prefix(reading.n_prefix)
        losses, coloured = reading.session.loss, view.state.display.show_loss
        self.strip.set_losses(losses, ceiling=_LOSS_CEILING, coloured=coloured)
        computed, n_thrown = latest_pass(reading)
        self.strip.set_pass(computed, n_thrown, marked=view.state.display.show_pass)
        if height != self.strip.height_of(1):  # a legend has come or gone
            self._share_height()
        states = np.full(cursor, TokenState.PROMPT, np.uint8)
        states[document.generated[:cursor]] = TokenState.GENERATED
        states[: reading.n_fallen] = TokenState.FALLEN_OUT
        colours = None
        if coloured:
            share = np.clip(np.nan_to_num(losses) / _LOSS_CEILING, 0, 1)
            colours = np.zeros(cursor, np.uint32)
            table = lookup_table(view.theme.loss_map)
            colours[reading.n_fallen :] = table[np.round(share * 255).astype(np.intp)]
            colours[reading.n_fallen :][np.isnan(losses)] = 0
        if view.state.text == document.text:
            self.editor.set_tokens(document.spans[:cursor], states, colours)
