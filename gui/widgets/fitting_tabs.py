"""Tabs that call their pages by shorter names where the room is narrow, so that all are seen."""

from collections.abc import Sequence

from PySide6.QtCore import QEvent
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QStackedWidget, QTabWidget, QWidget

from gui.theme import LIGHT, Theme
from gui.widgets.dock_tabs import TABS_NAME
from gui.widgets.fitting_label import font_of, plain_tip

_ASKS = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)
_ASKS_NOTHING = QSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Ignored)


class FittingTabs(QTabWidget):
    """Pages as tabs below them; all go over to shorter names, and then to smaller letters.

    Where even these are too wide, Qt's arrows scroll them. Only the page in front asks for room:
    the others may not know yet how little they can do with.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setTabPosition(QTabWidget.TabPosition.South)  # where those of docks are
        self.setDocumentMode(True)
        self.tabBar().setAccessibleName(TABS_NAME)
        self._names: list[tuple[str, str]] = []  # long and short
        self._theme = LIGHT
        self.currentChanged.connect(self._let_only_one_ask)

    def add_page(self, page: QWidget, names: Sequence[str], tip: str) -> None:
        """Put a page behind the others; `names` are what its tab may say, the longest first."""
        self._names.append((names[0], names[-1]))
        page.setSizePolicy(_ASKS_NOTHING)
        self.setTabToolTip(self.addTab(page, names[0]), plain_tip(tip))
        self._fit()

    def replace_page(self, old: QWidget, new: QWidget) -> None:
        """Put a page into the place of another, which is no longer one."""
        at = self.indexOf(old)
        new.setSizePolicy(old.sizePolicy())
        tip, was_current = self.tabToolTip(at), self.currentWidget() is old
        self.setTabToolTip(self.insertTab(at, new, self.tabText(at)), tip)
        if was_current:
            self.setCurrentWidget(new)
        self.removeTab(at + 1)

    def _let_only_one_ask(self, index: int) -> None:
        stack = self.findChild(QStackedWidget)
        for page in (self.widget(at) for at in range(self.count())):
            if stack is None or page is None:
                continue
            is_in_front = page is self.widget(index)
            if is_in_front:
                page.resize(stack.size())  # before it is asked what it needs
            page.setSizePolicy(_ASKS if is_in_front else _ASKS_NOTHING)

    def set_theme(self, theme: Theme) -> None:
        """Take on a theme's sizes."""
        self._theme = theme
        self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Choose names for the new width."""
        super().resizeEvent(event)
        self._fit()

    def changeEvent(self, event: QEvent) -> None:
        """Follow the application's look."""
        super().changeEvent(event)
        if event.type() in {QEvent.Type.FontChange, QEvent.Type.StyleChange}:
            self._fit()

    def _fit(self) -> None:
        theme = self._theme
        for size, level in ((theme.font_body, 0), (theme.font_body, 1), (theme.font_axis, 1)):
            self._use(size, level)
            if self.tabBar().sizeHint().width() <= self.width():
                return

    def _use(self, size: int, level: int) -> None:
        bar = self.tabBar()
        if bar.font().pixelSize() != size:
            bar.setFont(font_of(bar, size))
        for at, names in enumerate(self._names):
            if self.tabText(at) != names[level]:
                self.setTabText(at, names[level])
