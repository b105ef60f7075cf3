"""What all panels have in common: a name, a draw method, wishes out, and rest while hidden."""

from abc import abstractmethod
from typing import ClassVar

from PySide6.QtCore import QTimer, Signal
from PySide6.QtGui import QHideEvent, QPalette, QShowEvent
from PySide6.QtWidgets import QWidget

from gui.view import View
from gui.wishes import WantCell, WantConsequence, WantLens, WantResidual, Wish


class Panel(QWidget):
    """Draws a View and emits wishes; holds no state of its own beyond what it last drew.

    Subclasses set `name` (settings, tests), `title` (on the window) and `help` (one sentence,
    tooltip and accessible description), and implement `draw`. `draw` is only called while
    the panel is visible, with `previous` None the first time; compare fields of the two views
    with `is` and leave alone what did not change.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    tab: ClassVar[str] = ""  # a shorter title, for where panels share one place as tabs
    help: ClassVar[str]

    wished = Signal(object)  # Wish

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName(self.name)
        # On the theme's surface, and opaque: nothing below is painted when the panel is.
        self.setBackgroundRole(QPalette.ColorRole.Base)
        self.setAutoFillBackground(True)
        self.setAccessibleName(self.title)
        self.setAccessibleDescription(self.help)
        self._drawn: View | None = None
        self._waiting: View | None = None
        self._is_behind = False

    @property
    def is_seen(self) -> bool:
        """Whether the panel is on the window and not behind another one's tab."""
        return self.isVisible() and not self._is_behind

    def set_in_front(self, is_in_front: bool) -> None:  # noqa: FBT001 - a dock's signal
        """Take up the word of the dock: for Qt a panel behind another's tab is visible too."""
        self._is_behind = not is_in_front
        self._catch_up()

    def show_view(self, view: View) -> None:
        """Draw now if the panel can be seen, else when it next can."""
        if not self.is_seen:
            self._waiting = view
            return
        self._waiting = None
        if view is not self._drawn:
            previous, self._drawn = self._drawn, view
            self.draw(view, previous)

    def showEvent(self, event: QShowEvent) -> None:
        """Catch up on what happened while the panel was hidden."""
        super().showEvent(event)
        self._catch_up()

    def _catch_up(self) -> None:
        if self._waiting is not None and self.is_seen:
            self.show_view(self._waiting)

    @abstractmethod
    def draw(self, view: View, previous: View | None) -> None:
        """Draw the view; `previous` is what is drawn at present."""

    def wish(self, wish: Wish) -> None:
        """Ask for something; the controller decides."""
        self.wished.emit(wish)


class AskingPanel(Panel):
    """A panel whose content the engine works out only while somebody can see it.

    Subclasses set `wants`, the wish that says whether it is seen.
    """

    wants: ClassVar[type[WantCell | WantLens | WantResidual | WantConsequence]]

    def __init__(self) -> None:
        super().__init__()
        # Later, for a panel may be shown or hidden while the store is telling.
        self._tell_soon = QTimer(self, singleShot=True, interval=0)
        self._tell_soon.timeout.connect(lambda: self.wish(self.wants(self.is_seen)))

    def showEvent(self, event: QShowEvent) -> None:
        """Ask."""
        super().showEvent(event)
        self._tell_soon.start()

    def hideEvent(self, event: QHideEvent) -> None:
        """Nobody looks any more."""
        super().hideEvent(event)
        self._tell_soon.start()

    def set_in_front(self, is_in_front: bool) -> None:  # noqa: FBT001
        """The same, where panels share a place."""
        super().set_in_front(is_in_front)
        self._tell_soon.start()
