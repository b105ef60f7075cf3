"""The whole program in this process, for tests that drive it by keys and clicks."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from PySide6.QtCore import QCoreApplication, QDeadlineTimer, QEvent, QSettings, Qt
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget
from shiboken6 import isValid

from engine.reading import Reading
from gui import graphs
from gui.app import App
from gui.command_line import Options
from gui.panels.base import Panel
from gui.settings import Settings
from gui.state import State
from gui.widgets.prompt_edit import PromptEdit

PATIENCE_MS = 60_000  # what should happen happens at once, on a busy machine a little later

_Widget = TypeVar("_Widget", bound=QWidget)


def wait_until(holds: Callable[[], object], what: str = "") -> None:
    """Let the window live until something holds."""
    patience = QDeadlineTimer(PATIENCE_MS)
    while not holds():
        assert not patience.hasExpired(), f"never came about: {what or holds}"
        QApplication.processEvents()
        # Not QTest.qWait, which keeps the interpreter from the engine's thread while it waits.
        time.sleep(0.001)


class WholeWindow:
    """An App that was started as `main.py` starts it, and short ways to what is on its window."""

    def __init__(self, settings: Path | None = None, **options: Any) -> None:
        form = QSettings.Format.IniFormat
        self._settings = QSettings(str(settings), form) if settings else None
        self.app = App(Options(**options), Settings(self._settings))
        self.window = self.app.window
        self.app.show()

    def start(self) -> "WholeWindow":
        """Wait until all panels are there and the first answer is shown."""
        wait_until(lambda: self.app._is_furnished, "the panels that are seen")
        wait_until(lambda: self.state.phase not in {"starting", "loading"}, "a model")
        self.idle()
        wait_until(lambda: not self.app._unmade, "the panels behind those")
        self.activate()
        return self

    def visit_all_panels(self) -> None:
        """Bring every tab to the front once, so that what is made late has been made."""
        wait_until(lambda: graphs.loader().module, "the curves")
        for panel in self.window.findChildren(Panel):
            self.window.go_to_panel(panel.name)
            self.idle()

    def activate(self) -> None:
        """Let the window have the keyboard, as a click on it would."""
        self.window.activateWindow()
        wait_until(self.window.isActiveWindow, "the window to be active")

    @property
    def state(self) -> State:
        """What the window knows now."""
        return self.app.store.state

    @property
    def reading(self) -> Reading:
        """What it shows."""
        assert self.state.reading is not None
        return self.state.reading

    @property
    def editor(self) -> PromptEdit:
        """Where the text is written."""
        return self.child(PromptEdit)

    def child(self, kind: type[_Widget]) -> _Widget:
        """The one widget of this kind, but for those of panels that show several runs."""
        others = [self.panel(name) for name in ("compare", "leak", "schemes")]
        found = self.window.findChildren(kind)
        (widget,) = [
            each for each in found if not any(panel.isAncestorOf(each) for panel in others)
        ]
        return widget

    def panel(self, name: str) -> Panel:
        """A panel by its name."""
        panel = self.window.findChild(Panel, name)
        assert isinstance(panel, Panel)
        return panel

    def action(self, command: str) -> QAction:
        """A command's action."""
        action = self.window.findChild(QAction, command)
        assert isinstance(action, QAction)
        return action

    def wish(self, *wanted: object) -> None:
        """What a panel would wish for, and its answer."""
        assert self.app.controller is not None
        for each in wanted:
            self.app.controller.fulfil(each)
        self.idle()

    def press(self, keys: str, on: QWidget | None = None) -> None:
        """A key with its modifiers, such as "Ctrl+M", sent to where the focus is."""
        combination = QKeySequence(keys)[0]
        target = on or QApplication.focusWidget() or self.window
        QTest.keyClick(target, combination.key(), combination.keyboardModifiers())

    def type(self, text: str) -> None:
        """ASCII text, key by key, into the editor."""
        self.editor.setFocus(Qt.FocusReason.OtherFocusReason)
        QTest.keyClicks(self.editor, text)

    def idle(self) -> None:
        """Wait until the engine has answered everything, and all is painted."""
        controller = self.app.controller
        assert controller is not None
        wait_until(lambda: not controller.is_busy and not self.state.playing, "rest")
        wait_until(lambda: self.window.is_drawn, "the last turn of drawing")
        QApplication.processEvents()

    def close(self) -> None:
        """As the user closes it; once more is nothing."""
        if isValid(self.window):
            self.window.close()
            self.window.deleteLater()
            for widget in vars(self.window).values():
                if isinstance(widget, QWidget) and isValid(widget):
                    widget.deleteLater()  # which may not have found its place yet
            QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
            if self._settings is not None:
                self._settings.sync()
