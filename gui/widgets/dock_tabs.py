"""The tabs of docks that share a place: in smaller letters where it is too narrow for all."""

from PySide6.QtCore import QEvent, QObject
from PySide6.QtGui import QFontMetricsF
from PySide6.QtWidgets import QTabBar

from gui.theme import LIGHT, Theme
from gui.widgets.fitting_label import font_of

TABS_NAME = "Panels in this place"
_MAY_NOT_FIT = frozenset({QEvent.Type.Resize, QEvent.Type.Show, QEvent.Type.StyleChange})


class DockTabs(QObject):
    """Owns the letters of a main window's own tab bars, which Qt would rather cut to 'L…'."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._bars: list[QTabBar] = []
        self._theme = LIGHT

    def take(self, bar: QTabBar) -> None:
        """See to a bar from now on."""
        bar.setAccessibleName(TABS_NAME)
        self._bars.append(bar)
        bar.destroyed.connect(lambda: self._bars.remove(bar))
        bar.installEventFilter(self)
        self._fit(bar)

    def set_theme(self, theme: Theme) -> None:
        """Take on a theme's sizes."""
        self._theme = theme
        for bar in self._bars:
            self._fit(bar)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Choose letters for a new width."""
        if event.type() in _MAY_NOT_FIT and isinstance(watched, QTabBar):
            self._fit(watched)
        return False

    def _fit(self, bar: QTabBar) -> None:
        usual, small = self._theme.font_body, self._theme.font_axis
        around = bar.sizeHint().width() - _width(bar, bar.font().pixelSize())
        size = usual if around + _width(bar, usual) <= bar.width() else small
        if size != bar.font().pixelSize():
            bar.setFont(font_of(bar, size))


def _width(bar: QTabBar, pixels: int) -> float:
    """How wide all names are in letters of this size."""
    metrics = QFontMetricsF(font_of(bar, pixels))
    return sum(metrics.horizontalAdvance(bar.tabText(at)) for at in range(bar.count()))
