"""What may be seen, and what a limited sight costs, live; a prepared comparison beside it."""

from typing import ClassVar

import numpy as np
from PySide6.QtWidgets import QButtonGroup, QHBoxLayout, QPushButton, QStackedWidget, QVBoxLayout

from engine.reading import Reading
from engine.windows.visibility import Visibility
from gui.export.numbers import Table
from gui.export.window_tables import (
    eviction_tables,
    prepared_tables,
    visible_tables,
    windows_tables,
)
from gui.panels.base import AskingPanel, Figure, Lead
from gui.panels.eviction_page import EvictionPage
from gui.panels.prepared_page import PreparedPage
from gui.panels.visible_page import ONE_BY_ONE, VisiblePage
from gui.panels.windows_page import WindowsPage
from gui.theme import Theme
from gui.view import View
from gui.widgets.arithmetic_stages import exact
from gui.widgets.fitting_label import font_of
from gui.widgets.strip_table import StripTable
from gui.windows_state import PAGES, STATES, Page
from gui.wishes import ChooseWindows, WantWindows

_TITLES: dict[Page, tuple[str, str]] = {
    "windows": ("Windows", "This text under the causal mask, a window, and first k + window."),
    "visible": ("Visible", "What may be seen to predict token 3, token 8, and in training."),
    "prepared": ("Prepared", "A prepared comparison, and the same sentence through the model."),
    "eviction": ("Eviction", "A budget for the cache: what is given up, and what that costs."),
}
_KINDS: dict[Page, str] = {
    "windows": "windows",
    "visible": "visible",
    "prepared": "sentence",
    "eviction": "eviction",
}


class WindowsPanel(AskingPanel):
    """Four pages; only the open one is worked out, and only while it can be seen."""

    name: ClassVar[str] = "windows"
    wants = WantWindows

    def __init__(self) -> None:
        super().__init__()
        self.pages = QButtonGroup(self)
        self.windows, self.visible = WindowsPage(), VisiblePage()
        self.prepared, self.eviction = PreparedPage(), EvictionPage()
        self._in_turn = (self.windows, self.visible, self.prepared, self.eviction)
        self._stack = QStackedWidget()
        self.whole = QPushButton("All tokens")
        self.whole.setCheckable(True)
        self.whole.setToolTip(
            "Show all tokens at once, however narrow; off, so that they can be read."
        )
        self.whole.setAccessibleDescription(self.whole.toolTip())
        self._place()
        self.pages.idClicked.connect(lambda at: self.wish(ChooseWindows({"page": PAGES[at]})))
        self.whole.toggled.connect(self._set_whole)
        for page in self._in_turn:
            page.wished.connect(self.wish)
        self.visible.led.connect(self.lead)
        for table in self.findChildren(StripTable):
            self.copy_by_key(table)

    def draw(self, view: View, _previous: View | None) -> None:
        """Show the open page."""
        at = PAGES.index(view.state.windows.choice.page)
        self.pages.button(at).setChecked(True)
        self._stack.setCurrentIndex(at)
        page = self._in_turn[at]
        self.setFocusProxy(page)
        page.show_view(view)
        self.setAccessibleDescription(f"{self.help} {page.sentence()}")

    def reading_of(self, view: View) -> Reading | None:
        """The reading that the open page's answer is of, which may be older."""
        answer = view.state.windows.answer(_KINDS[view.state.windows.choice.page])
        return view.reading if answer is None else answer.reading

    def numbers(self, view: View) -> tuple[Table, ...]:
        """What the open page shows."""
        state = view.state.windows
        answer = state.answer(_KINDS[state.choice.page])
        prepared = prepared_tables() if state.choice.page == "prepared" else ()
        if answer is None:
            return prepared
        token_ids = answer.token_ids
        if answer.visibility is not None:
            return visible_tables(token_ids, answer.tokens, answer.visibility)
        if answer.eviction is not None:
            return eviction_tables(token_ids, answer.tokens, answer.eviction)
        if answer.windows is None:
            return prepared
        fixed = state.answer("fixed window")
        is_of_text = fixed is not None and fixed.token_ids == token_ids
        loss = fixed.fixed_window if fixed is not None and is_of_text else None
        prefix = "live_" if prepared else ""
        tables = windows_tables(token_ids, answer.tokens, answer.windows, loss, prefix)
        return (*prepared, *tables)

    def figures(self) -> tuple[Figure, ...]:
        """The losses or weights of the query's column."""
        view = self._drawn
        if view is None:
            return ()
        state = view.state.windows
        answer = state.answer(_KINDS[state.choice.page])
        if answer is None:
            return ()
        if answer.visibility is not None:
            return _visible_figures(answer.visibility, STATES[state.choice.state])
        if answer.eviction is not None and view.query is not None:
            at = min(view.query, answer.eviction.n_tokens - 1)
            return (
                Figure("loss under the budget", exact(answer.eviction.loss[at])),
                Figure("loss without a budget", exact(answer.eviction.full_loss[at])),
            )
        if answer.windows is None:
            return ()
        at = answer.windows.query
        return tuple(
            Figure(f"loss under {name}", exact(under.loss[at]))
            for name, under in zip(
                ("the causal mask", "the window", "first k + window"),
                answer.windows.masks,
                strict=True,
            )
        )

    def leads(self) -> tuple[Lead, ...]:
        """From what may be seen to both ways of reading."""
        view = self._drawn
        is_visible = view is not None and view.state.windows.choice.page == "visible"
        return (ONE_BY_ONE,) if is_visible else ()

    def _set_whole(self, is_whole: bool) -> None:  # noqa: FBT001 - a button's signal
        for table in self.findChildren(StripTable):
            table.set_whole(is_whole)

    def _dress(self, theme: Theme) -> None:
        unit = theme.unit
        for page in self._in_turn:
            page.set_theme(theme)
        for button in (*self.pages.buttons(), self.whole):
            button.setFont(font_of(self, theme.font_axis))
        self._column.setContentsMargins(2 * unit, unit, 2 * unit, unit)
        self._column.setSpacing(unit)
        self._head.setSpacing(unit)

    def _place(self) -> None:
        self._head = QHBoxLayout()
        for index, page in enumerate(PAGES):
            title, tip = _TITLES[page]
            button = QPushButton(title)
            button.setCheckable(True)
            button.setToolTip(tip)
            button.setAccessibleDescription(tip)
            self.pages.addButton(button, index)
            self._head.addWidget(button)
        self._head.addStretch(1)
        self._head.addWidget(self.whole)
        for each in self._in_turn:
            self._stack.addWidget(each)
        self._column = QVBoxLayout(self)
        self._column.addLayout(self._head)
        self._column.addWidget(self._stack, 1)


def _visible_figures(visibility: Visibility, number: int | None) -> tuple[Figure, ...]:
    """The loss of the token that is predicted; in training, the mean."""
    found = None if number is None else visibility.prediction(number)
    if found is None:
        return (Figure("mean loss in nats", exact(visibility.mean)),)
    return (
        Figure(f"loss of token {number}", exact(np.float32(found.loss))),
        Figure("largest difference of a logit", exact(np.float32(found.apart))),
    )
