"""The window: paints at once, is furnished with panels and commands after its first paint.

The first paint waits for nothing that it does without. That is true of Qt's classes too: PySide
makes each when it is first named, so those that come later are named by their module, as in
`QtCore.Qt`, whose enumerations take longest of all.
"""

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6 import QtCore, QtGui, QtWidgets
from PySide6.QtCore import QByteArray, QSize, QTimer, Signal
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QApplication, QHBoxLayout, QLabel, QMainWindow, QVBoxLayout, QWidget

import engine
from gui import style
from gui.theme import Theme

if TYPE_CHECKING:
    from gui.command_menus import CommandMenus
    from gui.commands import Command
    from gui.message_bar import MessageBar
    from gui.panels.base import Lead, Panel
    from gui.panels.table import PanelRow
    from gui.view import View
    from gui.widgets.dock_tabs import DockTabs
    from gui.widgets.fitting_label import FittingLabel
    from gui.widgets.fitting_tabs import FittingTabs

# Raised when panels are renamed or moved by us, so that an old layout does not hide new ones.
_LAYOUT_VERSION = 4
_LOW = 850  # up to this height panels at the right share one place as tabs

# Another reading is drawn in three turns of the event loop, all within a frame as a rule, so that
# keys, clicks and timers need not wait for the whole: the text, then heads, then what follows.
_TURNS = (("top",), ("center", "left"), ("right", "bottom"))


# In which Tab goes from place to place.
_TAB_ORDER = ("top", "left", "center", "right", "bottom")


class MainWindow(QMainWindow):
    """Owns panels, docks and menus; shows views, passes wishes on."""

    painted = Signal()  # for the first time
    wished = Signal(object)
    command_wanted = Signal(str)  # a command that has no wish: the window's or the app's own
    panel_wanted = Signal(str)  # one that is not made yet would be seen
    export_wanted = Signal(object)  # a panel
    closing = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setWindowTitle("Attention Scope")
        self.resize(QSize(1280, 720))
        self._theme: Theme | None = None
        self._has_painted = False
        self._is_furnished = False
        self._panels: dict[str, Panel] = {}  # those that are made
        self._empty: dict[str, QWidget] = {}  # what takes the place of the others
        self._docks: dict[str, QtWidgets.QDockWidget] = {}
        self._edges: dict[str, str] = {}  # of the panels' usual places
        self._behind: set[str] = set()  # panels whose docks are behind others
        self._view: View | None = None
        self._turns: list[tuple[str, ...]] = []  # those in which the view is still to be drawn
        self._next_turn = QTimer(self, singleShot=True, interval=0)
        self._next_turn.timeout.connect(self._take_turn)
        self._usual_layout = QByteArray()
        self._around = QByteArray()  # the layout to come back to while the center is alone
        self._panel_in_use: Panel | None = None
        self.menus: CommandMenus  # this and the next four come with the furniture
        self.message_bar: MessageBar
        self._dock_tabs: DockTabs
        self._centered: FittingTabs
        self._status: FittingLabel
        welcome = QHBoxLayout()
        welcome.addStretch(1)
        welcome.addWidget(QLabel("Attention Scope is starting …"))
        welcome.addStretch(1)
        center = QWidget()
        center.setLayout(welcome)
        self.setCentralWidget(center)
        self.use_theme(theme)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Tell once that the window is on screen."""
        super().paintEvent(event)
        if not self._has_painted:
            self._has_painted = True
            self.painted.emit()

    def use_theme(self, theme: Theme) -> None:
        """Follow a theme at its scale; nothing happens if it is the present one."""
        if theme == self._theme:
            return
        self._theme = theme
        app = QApplication.instance()
        if isinstance(app, QApplication):
            style.apply_theme(app, theme)
        if self._is_furnished:
            self._dress(theme)

    def _dress(self, theme: Theme) -> None:
        self._status.set_look(theme, theme.text)
        self._centered.set_theme(theme)
        self._dock_tabs.set_theme(theme)

    def childEvent(self, event: "QtCore.QChildEvent") -> None:
        """See to each tab bar that Qt makes for docks that share a place."""
        super().childEvent(event)
        if event.type() == QtCore.QEvent.Type.ChildPolished and self._is_furnished:
            bar = event.child()
            if isinstance(bar, QtWidgets.QTabBar):
                self._dock_tabs.take(bar)

    # Furnishing

    def furnish(
        self,
        rows: Sequence["PanelRow"],
        panels: Sequence["Panel"],
        commands: Sequence["Command"],
        models: Sequence[tuple[str, Path]],
    ) -> None:
        """Put panels into the places of their rows and make menus and toolbar from the commands.

        A place is "center", whose panels are tabs, or an edge and how the panel joins the one
        before it there: "tab", "beside" or "below". "bare" panels have no title, which leaves more
        room for pictures; "low tab" is a tab in a low window and below in a tall one. A panel that
        is not given yet has its place all the same, for `add_panel`.
        """
        self._make_bars()
        self._make_menus(commands, models)
        made = {panel.name: panel for panel in panels}
        last: dict[str, QtWidgets.QDockWidget] = {}
        for row in rows:
            widget = self._empty[row.name] = QWidget(self)
            edge, *how = row.place.split()
            self._edges[row.name] = edge
            if edge == "center":
                self._centered.add_page(widget, row.tab_names, row.title)
            else:
                dock = self._make_dock(row, widget)
                if "bare" in how:
                    dock.setTitleBarWidget(QWidget(dock))
                self._join(dock, last.get(edge), edge, how)
                last[edge] = dock
            if row.name in made:
                self.add_panel(made[row.name])
        center, layout = QWidget(), QVBoxLayout()
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.message_bar)
        layout.addWidget(self._centered, 1)
        center.setLayout(layout)
        self.setCentralWidget(center)
        self._raise_first_tabs(rows)
        app = QApplication.instance()
        if isinstance(app, QApplication):
            app.focusChanged.connect(self._note_panel_in_use)
        self._centered.currentChanged.connect(self._note_center)
        for dock in self._docks.values():
            dock.show()
        self.share_room()

    def _make_bars(self) -> None:
        from gui.message_bar import MessageBar  # noqa: PLC0415 - after the first paint
        from gui.widgets.dock_tabs import DockTabs  # noqa: PLC0415
        from gui.widgets.fitting_label import FittingLabel  # noqa: PLC0415
        from gui.widgets.fitting_tabs import FittingTabs  # noqa: PLC0415

        self.message_bar = MessageBar()
        self._dock_tabs = DockTabs(self)
        self._centered = FittingTabs(self)
        self._status = FittingLabel(name="State of the model", fills=True)
        self.statusBar().addWidget(self._status, 1)
        self.statusBar().setSizeGripEnabled(False)
        self._is_furnished = True
        if self._theme is not None:
            self._dress(self._theme)

    def _make_menus(
        self, commands: Sequence["Command"], models: Sequence[tuple[str, Path]]
    ) -> None:
        from gui.command_menus import CommandMenus  # noqa: PLC0415 - after the first paint

        self.menus = CommandMenus(self, commands, models)
        self.menus.wished.connect(self.wished)
        self.menus.command_wanted.connect(self.command_wanted)

    def add_panel(self, panel: "Panel") -> None:
        """Put a panel into the place that `furnish` kept for it; it draws what the others show."""
        panel.wished.connect(self.wished)
        panel.lead_wanted.connect(self._follow)
        panel.export_wanted.connect(lambda: self.export_wanted.emit(panel))
        self._panels[panel.name] = panel
        empty = self._empty.pop(panel.name)
        dock = self._docks.get(panel.name)
        if dock is not None:
            dock.setWidget(panel)
            dock.visibilityChanged.connect(panel.set_in_front)
            panel.set_in_front(panel.name not in self._behind)
        else:
            self._centered.replace_page(empty, panel)
        empty.deleteLater()
        if self._view is not None:
            panel.show_view(self._view)

    def _note_front(self, name: str, is_in_front: bool) -> None:  # noqa: FBT001 - a dock's signal
        if is_in_front:
            self._behind.discard(name)
            self._want(name)
        else:
            self._behind.add(name)

    def _note_center(self, index: int) -> None:
        current = self._centered.widget(index)
        for name, empty in self._empty.items():
            if empty is current:
                self._want(name)
                return

    def _want(self, name: str) -> None:
        def tell() -> None:
            if name in self._empty:
                self.panel_wanted.emit(name)

        if name in self._empty:
            QTimer.singleShot(0, self, tell)  # Qt is busy with showing the place

    def share_room(self) -> None:
        """Give most of the window to the pictures of heads.

        Once more when Qt has placed what `furnish` brought: how low some are depends on how wide.
        """
        width, height = self.width(), self.height()
        by_edge: dict[QtCore.Qt.DockWidgetArea, QtWidgets.QDockWidget] = {}
        for dock in self._docks.values():
            by_edge.setdefault(self.dockWidgetArea(dock), dock)
        for edge, orientation, size in (
            ("top", QtCore.Qt.Orientation.Vertical, min(round(height * 0.24), 14 * self._em())),
            ("bottom", QtCore.Qt.Orientation.Vertical, 1),  # as low as its panels can be
            ("left", QtCore.Qt.Orientation.Horizontal, round(width * 0.3)),
            ("right", QtCore.Qt.Orientation.Horizontal, round(width * 0.27)),
        ):
            dock_at = by_edge.get(_area(edge))
            if dock_at is not None:
                self.resizeDocks([dock_at], [size], orientation)
        for edge, orientation, size in (
            ("right", QtCore.Qt.Orientation.Vertical, height),
            ("bottom", QtCore.Qt.Orientation.Horizontal, width),
        ):
            docks = [d for d in self._docks.values() if self.dockWidgetArea(d) == _area(edge)]
            shares = [3 if dock is docks[0] else 2 for dock in docks]
            self.resizeDocks(docks, [size * share // 6 for share in shares], orientation)
        self._usual_layout = self.saveState(_LAYOUT_VERSION)

    def _em(self) -> int:
        return self.fontInfo().pixelSize()

    def _make_dock(self, row: "PanelRow", widget: QWidget) -> "QtWidgets.QDockWidget":
        dock = QtWidgets.QDockWidget(row.tab_names[0])
        dock.setObjectName(f"dock_{row.name}")
        dock.setWidget(widget)
        dock.visibilityChanged.connect(partial(self._note_front, row.name))
        self._docks[row.name] = dock
        return dock

    def _join(
        self,
        dock: "QtWidgets.QDockWidget",
        before: "QtWidgets.QDockWidget | None",
        edge: str,
        how: Sequence[str],
    ) -> None:
        if before is None:
            self.addDockWidget(_area(edge), dock)
        elif "tab" in how and not ("low" in how and self.height() > _LOW):
            self.tabifyDockWidget(before, dock)
        else:
            # Not splitDockWidget, which makes a tab of what is split from a tab.
            is_below = "below" in how or "low" in how
            ways = QtCore.Qt.Orientation
            orientation = ways.Vertical if is_below else ways.Horizontal
            self.addDockWidget(_area(edge), dock, orientation)

    def _raise_first_tabs(self, rows: Sequence["PanelRow"]) -> None:
        for row, following in pairwise(rows):
            is_first = row.is_in_front and not following.is_in_front
            if is_first and not following.place.startswith("center"):
                self._docks[row.name].raise_()

    # Showing

    def show_view(self, view: "View") -> None:
        """Draw a view: theme, actions, status, and every panel that can be seen.

        Of another reading, what stands around the center follows a moment later (`_TURNS`).
        """
        is_other = self._view is not None and view.reading is not self._view.reading
        if is_other:
            self.message_bar.forget_info()
        self._view = view
        self.use_theme(view.theme)
        self.menus.show_state(view.state)
        self._status.set_wordings(view.status)
        self.menus.show_model(view.reading.info.name if view.reading is not None else "")
        # What still waits for an older one comes first: nothing waits for ever.
        self._turns += [turn for turn in _TURNS if turn not in self._turns]
        self._take_turn()
        while self._turns and not is_other:
            self._take_turn()

    def _take_turn(self) -> None:
        """Draw the view in some of the panels, and let the event loop turn before the next."""
        edges = self._turns.pop(0)
        for name, panel in self._panels.items():
            if self._view is not None and self._edges[name] in edges:
                panel.show_view(self._view)
        if self._turns:
            self._next_turn.start()
        else:
            self._next_turn.stop()

    @property
    def is_drawn(self) -> bool:
        """Whether all panels that can be seen have drawn the view."""
        return not self._turns

    # Layout

    def save_layout(self) -> tuple[QByteArray, QByteArray]:
        """Geometry and layout, for the settings."""
        return self.saveGeometry(), self._around or self.saveState(_LAYOUT_VERSION)

    def restore_layout(self, geometry: QByteArray | None, layout: QByteArray | None) -> None:
        """Bring back what `save_layout` gave; None or an empty value changes nothing."""
        if geometry:
            self.restoreGeometry(geometry)
        if layout:
            self.restoreState(layout, _LAYOUT_VERSION)

    def reset_layout(self) -> None:
        """Put every panel back where `furnish` had put it."""
        self._around = QByteArray()
        self.restoreState(self._usual_layout, _LAYOUT_VERSION)

    def go_to_panel(self, name: str) -> None:
        """Show a panel, in front of those that share its place, and give it the keyboard."""
        if name in self._empty:
            self.panel_wanted.emit(name)
        panel = self._panels[name]
        self._panel_in_use = panel
        if name in self._docks:
            if self._docks[name].isHidden():
                self._bring_back()
            self._docks[name].show()
            self._docks[name].raise_()
        else:
            self._centered.setCurrentWidget(panel)
        takers = [panel, *panel.findChildren(QWidget)]
        for taker in takers:
            if taker.focusProxy() or taker.focusPolicy() != QtCore.Qt.FocusPolicy.NoFocus:
                taker.setFocus(QtCore.Qt.FocusReason.ShortcutFocusReason)
                return

    def _follow(self, lead: "Lead") -> None:
        self.go_to_panel(lead.panel)
        self._panels[lead.panel].show_place(lead.place)

    @property
    def panel_in_use(self) -> "Panel | None":
        """The panel that has the keyboard or had it last, if it can be seen; else the center's."""
        panel = self._panel_in_use
        if panel is not None and panel.is_seen:
            return panel
        current = self._centered.currentWidget()
        return next((each for each in self._panels.values() if each is current), None)

    def _note_panel_in_use(self, _before: QWidget | None, now: QWidget | None) -> None:
        for panel in self._panels.values():
            if now is not None and (panel is now or panel.isAncestorOf(now)):
                self._panel_in_use = panel

    # Keys

    def focusNextPrevChild(self, forward: bool) -> bool:  # noqa: FBT001 - Qt's
        """Tab and Shift+Tab: from place to place, and through all controls of each."""
        if not self._is_furnished:
            return super().focusNextPrevChild(forward)
        from gui.tab_stops import go_on  # noqa: PLC0415 - after the first paint

        return go_on(self, self._tab_rank, forward=forward)

    def _tab_rank(self, widget: QWidget) -> int | None:
        """When Tab comes to a widget: the text, what stands left, middle, right, below, the rest.

        A place's tabs come after what they show; nothing of what they hide, and nothing of
        another window.
        """
        from gui.panels.base import Panel  # noqa: PLC0415

        around: QWidget | None = widget
        while around is not None and around is not self:
            if isinstance(around, Panel):
                if not around.is_seen or around.window() is not self:
                    return None
                dock = self._docks.get(around.name)
                edge = _edge(self.dockWidgetArea(dock)) if dock else "center"
                return 2 * _TAB_ORDER.index(edge)
            if around is self._centered:
                return 2 * _TAB_ORDER.index("center") + 1
            around = around.parentWidget()
        if isinstance(widget, QtWidgets.QTabBar):
            middle = self._centered.mapTo(self, self._centered.rect().center())
            is_left = widget.geometry().center().x() < middle.x()
            return 2 * _TAB_ORDER.index("left" if is_left else "right") + 1
        return None if widget.window() is not self else 2 * len(_TAB_ORDER)

    def toggle_center_alone(self) -> None:
        """Hide the panels beside and below the one in the center, or bring them back."""
        if self._around:
            self._bring_back()
            return
        self._around = self.saveState(_LAYOUT_VERSION)
        for dock in self._docks.values():
            if self.dockWidgetArea(dock) != _area("top"):
                dock.hide()

    def _bring_back(self) -> None:
        """Show the panels that were hidden for the one in the center."""
        around, self._around = self._around, QByteArray()
        if around:
            self.restoreState(around, _LAYOUT_VERSION)

    def show_shortcuts(self) -> None:
        """List all commands and their keys."""
        from gui.shortcut_list import ShortcutList  # noqa: PLC0415 - hardly any start needs it

        dialog = ShortcutList(self.menus.commands, self)
        dialog.show()

    def show_about(self) -> None:
        """Say what this is."""
        QtWidgets.QMessageBox.about(
            self,
            "About Attention Scope",
            f"Attention Scope {engine.__version__} opens a real transformer up while it "
            "runs.\n\n"
            "MIT License. The bundled models were trained by this program on the plays of "
            "Shakespeare, which are in the public domain.",
        )

    def toggle_full_screen(self) -> None:
        """Use the whole screen, or no longer."""
        self.setWindowState(self.windowState() ^ QtCore.Qt.WindowState.WindowFullScreen)

    def closeEvent(self, event: "QtGui.QCloseEvent") -> None:
        """Tell before the window goes, so that the engine's thread can end."""
        self.closing.emit()
        super().closeEvent(event)


def _areas() -> "dict[str, QtCore.Qt.DockWidgetArea]":
    areas = QtCore.Qt.DockWidgetArea
    return {
        "top": areas.TopDockWidgetArea,
        "left": areas.LeftDockWidgetArea,
        "right": areas.RightDockWidgetArea,
        "bottom": areas.BottomDockWidgetArea,
    }


def _area(edge: str) -> "QtCore.Qt.DockWidgetArea":
    return _areas()[edge]


def _edge(area: "QtCore.Qt.DockWidgetArea") -> str:
    return next((edge for edge, each in _areas().items() if each == area), "bottom")
