"""What all panels have in common: a name, a draw method, wishes out, and rest while hidden."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from PySide6.QtCore import QSize, Qt, QTimer, Signal
from PySide6.QtGui import (
    QContextMenuEvent,
    QGuiApplication,
    QHideEvent,
    QKeySequence,
    QPalette,
    QShortcut,
    QShowEvent,
)
from PySide6.QtWidgets import QLayout, QMenu, QWidget

from engine.reading import Reading
from gui.export.numbers import Table
from gui.export.stamp import Fact
from gui.panels.table import ROWS
from gui.theme import Theme
from gui.view import View
from gui.wishes import Want, Wish

LATE_MS = 150  # after which an answer that is still awaited is said to be


@dataclass(frozen=True)
class Figure:
    """One number that is pointed at: what it is called, and all its digits."""

    name: str
    digits: str


@dataclass(frozen=True)
class Lead:
    """A way to another panel: where it goes, and what must be wished for before."""

    title: str  # "Open its arithmetic in Cell"
    panel: str  # a name
    place: object = None  # in that panel, as it knows it
    before: Wish | None = None


class Panel(QWidget):
    """Draws a View and emits wishes; holds no state of its own beyond what it last drew.

    Subclasses set `name`, which is that of their row in `gui.panels.table`, and implement `draw`.
    `draw` is only called while the panel is visible, with `previous` None the first time; compare
    fields of the two views with `is` and leave alone what did not change. What it shows as
    numbers, and which of them are pointed at, it tells by `numbers` and `figures`.
    """

    name: ClassVar[str]
    is_of_text: ClassVar[bool] = True  # whether its numbers are the text's: an empty one has none

    wished = Signal(object)  # Wish
    export_wanted = Signal()
    lead_wanted = Signal(object)  # Lead
    _wished_in_drawing = Signal(object)  # Wish

    def __init__(self) -> None:
        super().__init__()
        self._wished_in_drawing.connect(self.wished, Qt.ConnectionType.QueuedConnection)
        row = ROWS[self.name]
        self.title, self.help = row.title, row.help
        self.setObjectName(self.name)
        # On the theme's surface, and opaque: nothing below is painted when the panel is.
        self.setBackgroundRole(QPalette.ColorRole.Base)
        self.setAutoFillBackground(True)
        self.setAccessibleName(self.title)
        self.setAccessibleDescription(self.help)
        self._drawn: View | None = None
        self._waiting: View | None = None
        self._is_behind = False
        self._is_drawing = False

    @property
    def is_seen(self) -> bool:
        """Whether the panel is on the window and not behind another one's tab."""
        return not self._is_behind and self.isVisible()

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
            if previous is None or view.theme is not previous.theme:
                self._dress(view.theme)
            self._is_drawing = True
            try:
                self.draw(view, previous)
            finally:
                self._is_drawing = False

    def _dress(self, theme: Theme) -> None:
        """Take on a theme; what is shown is drawn after."""

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
        """Ask for something; the controller decides.

        Not before the panel is drawn: Qt tells a widget that drawing hides that the pointer has
        left it, and whoever is being told of a change must not ask for another.
        """
        (self._wished_in_drawing if self._is_drawing else self.wished).emit(wish)

    def lead(self, lead: Lead) -> None:
        """Ask for another panel, and for what is to be seen there."""
        if lead.before is not None:
            self.wish(lead.before)
        self.lead_wanted.emit(lead)

    def show_place(self, place: object) -> None:
        """Show a place that a lead led to, once it is there."""

    def _narrowest(self, layout: QLayout, *parts: QSize) -> QSize:
        """As narrow as the widest of some parts of its layout, and as high as it asks to be.

        For a panel that puts more side by side where it is wide: else one that was wide once
        would not give its room back to those beside it.
        """
        margins = layout.contentsMargins()
        width = max(part.width() for part in parts) + margins.left() + margins.right()
        return QSize(width, super().minimumSizeHint().height())

    # What leaves the program

    @property
    def drawn(self) -> View | None:
        """What is drawn at present."""
        return self._drawn

    def reading_of(self, view: View) -> Reading | None:
        """The reading that the panel's numbers are from."""
        return view.reading

    def more_facts(self, view: View) -> dict[str, Fact]:  # noqa: ARG002 - as with numbers
        """What must be known of what the panel shows besides that reading."""
        return {}

    def numbers(self, view: View) -> tuple[Table, ...]:  # noqa: ARG002 - what a panel may tell
        """What the panel shows of a view, as numbers; nothing where it shows none."""
        return ()

    def figures(self) -> tuple[Figure, ...]:
        """The numbers that are pointed at, or else selected, the most telling first."""
        return ()

    def offers(self) -> tuple[tuple[str, Wish], ...]:
        """What a right click offers to do, and the wish for it."""
        return ()

    def leads(self) -> tuple[Lead, ...]:
        """Where a right click offers to go."""
        return ()

    def copy_by_key(self, widget: QWidget) -> None:
        """Let the key for copying, pressed in a widget, copy the first of the figures."""
        shortcut = QShortcut(QKeySequence.StandardKey.Copy, widget)
        shortcut.setContext(Qt.ShortcutContext.WidgetShortcut)
        shortcut.activated.connect(lambda: _copy_first(self.figures()))

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """Offer what can be done here, to copy what is pointed at, and to export the panel."""
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        for title, wish in self.offers():
            menu.addAction(title).triggered.connect(lambda _on=False, wish=wish: self.wish(wish))
        for lead in self.leads():
            action = menu.addAction(lead.title)
            action.triggered.connect(lambda _on=False, lead=lead: self.lead(lead))
        menu.addSeparator()
        for figure in self.figures():
            action = menu.addAction(f"Copy {figure.name}")
            action.triggered.connect(lambda _on=False, figure=figure: _copy_first((figure,)))
        menu.addSeparator()
        menu.addAction("Export…").triggered.connect(self.export_wanted)
        menu.popup(event.globalPos())


def _copy_first(figures: tuple[Figure, ...]) -> None:
    for figure in figures[:1]:
        QGuiApplication.clipboard().setText(figure.digits)


class AskingPanel(Panel):
    """A panel whose content the engine works out only while somebody can see it.

    Subclasses set `wants`, the wish that says whether it is seen.
    """

    wants: ClassVar[type[Want]]

    _seen_or_hidden = Signal()

    def __init__(self) -> None:
        super().__init__()
        # Later, for a panel may be shown or hidden while the store is telling; but before it is
        # painted, so that the engine is at work meanwhile.
        self._seen_or_hidden.connect(self._tell_whether_seen, Qt.ConnectionType.QueuedConnection)
        # Most answers come sooner; dimming the panel for each of them would only make it flicker.
        self._late = QTimer(self, singleShot=True, interval=LATE_MS)
        self._late.timeout.connect(self._grow_late)
        self._is_late = False

    def _tell_whether_seen(self) -> None:
        self.wish(self.wants(self.is_seen))

    def show_view(self, view: View) -> None:
        """The same; and whoever does not know that the panel is seen is told again."""
        super().show_view(view)
        if self.is_seen and self.wants not in view.state.wanted:
            self._seen_or_hidden.emit()

    def is_stale(self, view: View, *, is_answered: bool) -> bool:
        """Whether to dim what is shown: the window's answer is awaited, or the panel's for long."""
        if is_answered:
            self._is_late = False
            self._late.stop()
        elif not self._is_late and not self._late.isActive():
            self._late.start()
        return view.state.stale or self._is_late

    def _grow_late(self) -> None:
        self._is_late = True
        if self._drawn is not None and self.is_seen:
            self.draw(self._drawn, self._drawn)

    def showEvent(self, event: QShowEvent) -> None:
        """Ask."""
        super().showEvent(event)
        self._seen_or_hidden.emit()

    def hideEvent(self, event: QHideEvent) -> None:
        """Nobody looks any more."""
        super().hideEvent(event)
        self._seen_or_hidden.emit()

    def set_in_front(self, is_in_front: bool) -> None:  # noqa: FBT001
        """The same, where panels share a place."""
        super().set_in_front(is_in_front)
        self._seen_or_hidden.emit()
