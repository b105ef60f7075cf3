"""Windows and budgets: what a limited sight costs, live, beside a prepared comparison."""

from typing import ClassVar

from PySide6.QtWidgets import QButtonGroup, QHBoxLayout, QPushButton, QStackedWidget, QVBoxLayout

from engine.reading import Reading
from gui.numbers import Table
from gui.panels.base import AskingPanel, Figure
from gui.panels.eviction_page import EvictionPage
from gui.panels.prepared_page import PreparedPage
from gui.panels.windows_page import WindowsPage
from gui.theme import Theme
from gui.view import View
from gui.widgets.arithmetic_stages import exact
from gui.widgets.fitting_label import font_of
from gui.widgets.strip_table import StripTable
from gui.window_tables import eviction_tables, prepared_tables, windows_tables
from gui.windows_state import PAGES, Page
from gui.wishes import ChooseWindows, WantWindows

_TITLES: dict[Page, tuple[str, str]] = {
    "windows": ("Windows", "This text under the causal mask, a window, and first k + window."),
    "prepared": ("Prepared", "A prepared comparison, and the same sentence through the model."),
    "eviction": ("Eviction", "A budget for the cache: what is given up, and what that costs."),
}
_KINDS: dict[Page, str] = {"windows": "windows", "prepared": "sentence", "eviction": "eviction"}


class WindowsPanel(AskingPanel):
    """Three pages; only the open one is worked out, and only while it can be seen."""

    name: ClassVar[str] = "windows"
    wants = WantWindows

    def __init__(self) -> None:
        super().__init__()
        self.pages = QButtonGroup(self)
        self.windows, self.prepared, self.eviction = WindowsPage(), PreparedPage(), EvictionPage()
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
        for page in (self.windows, self.prepared, self.eviction):
            page.wished.connect(self.wish)
        for table in self.findChildren(StripTable):
            self.copy_by_key(table)

    def draw(self, view: View, _previous: View | None) -> None:
        """Show the open page."""
        at = PAGES.index(view.state.windows.choice.page)
        self.pages.button(at).setChecked(True)
        self._stack.setCurrentIndex(at)
        page = (self.windows, self.prepared, self.eviction)[at]
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
        if answer.eviction is not None and view.query is not None:
            at = min(view.query, answer.eviction.n_tokens - 1)
            return (
                Figure("loss under the budget", exact(answer.eviction.loss[at])),
                Figure("loss with all keys", exact(answer.eviction.full_loss[at])),
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

    def _set_whole(self, is_whole: bool) -> None:  # noqa: FBT001 - a button's signal
        for table in self.findChildren(StripTable):
            table.set_whole(is_whole)

    def _dress(self, theme: Theme) -> None:
        unit = theme.unit
        for page in (self.windows, self.prepared, self.eviction):
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
        for each in (self.windows, self.prepared, self.eviction):
            self._stack.addWidget(each)
        self._column = QVBoxLayout(self)
        self._column.addLayout(self._head)
        self._column.addWidget(self._stack, 1)
