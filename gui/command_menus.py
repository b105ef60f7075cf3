"""Menus, toolbar and the button with the models, made from the table of commands."""

from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QMainWindow, QMenu, QToolBar, QToolButton

from gui.commands import Command
from gui.state import State
from gui.widgets.fitting_label import plain_tip
from gui.wishes import OpenModel
from gui.words.names import on_button

_CHOOSE = "Choose a model"
# Commands that the model's button offers too.
_MODEL_DOORS = ("library", "download", "open", "open_file")


class CommandMenus(QObject):
    """Owns a window's actions, in its menus and on its toolbar; says what each of them is for."""

    wished = Signal(object)
    command_wanted = Signal(str)  # a command that has no wish: the window's or the app's own

    def __init__(
        self,
        window: QMainWindow,
        commands: Sequence[Command],
        models: Sequence[tuple[str, Path]],
    ) -> None:
        """`models` are names and places of those that are always there."""
        super().__init__(window)
        self.commands = tuple(commands)
        self._changing = [command for command in commands if command.may_change]
        self._window = window
        self._state: State | None = None
        self._menus: dict[str, QMenu] = {}
        self._actions: dict[str, QAction] = {}  # by command
        self._looks: dict[str, tuple[bool, bool]] = {}  # checked, enabled: by command
        self._models = QToolButton()
        self._models.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self._models.setToolTip(_CHOOSE)
        self._models.setAccessibleName("Model")
        self._models.setText("Model")
        toolbar = QToolBar("Commands")
        toolbar.setObjectName("toolbar")
        toolbar.setMovable(False)
        toolbar.addWidget(self._models)
        for command in commands:
            action = self._actions[command.id] = self._make_action(command)
            self._menu(command.menu).addAction(action)
            if command.on_toolbar:
                toolbar.addAction(action)
        self._models.setMenu(self._make_models_menu(models))
        window.addToolBar(toolbar)

    def show_state(self, state: State) -> None:
        """Check and enable each action as its command says."""
        self._state = state
        for command in self._changing:
            self._show_command(command, state)

    def show_model(self, name: str) -> None:
        """Say which model is running; "" where none is."""
        self._models.setText(f"Model: {on_button(name)}" if name else "Model")
        self._models.setToolTip(plain_tip(f"Choose a model; {name} is open" if name else _CHOOSE))

    def add_menu(self, menu: QMenu, behind: str) -> None:
        """Put a menu of somebody else's behind a command's action, wherever that stands."""
        action = self._actions[behind]
        for place in self._window.findChildren(QMenu):
            actions = place.actions()
            if action in actions[:-1]:
                place.insertMenu(actions[actions.index(action) + 1], menu)
            elif action in actions:
                place.addMenu(menu)

    def _show_command(self, command: Command, state: State) -> None:
        looks = command.checked is not None and command.checked(state), command.enabled(state)
        if looks != self._looks.get(command.id):
            self._looks[command.id] = looks
            self._actions[command.id].setChecked(looks[0])
            self._actions[command.id].setEnabled(looks[1])

    def _make_action(self, command: Command) -> QAction:
        action = QAction(command.title, self._window)
        action.setObjectName(command.id)
        action.setShortcuts([QKeySequence(keys) for keys in command.shortcuts])
        action.setStatusTip(command.help)
        keys = ", ".join(command.shortcuts)
        action.setToolTip(f"{command.help} ({keys})" if keys else command.help)
        action.setCheckable(command.checked is not None)
        action.triggered.connect(self._doer(command))
        return action

    def _doer(self, command: Command) -> Callable[[], None]:
        def do() -> None:
            if command.wish is None:
                self.command_wanted.emit(command.id)
            elif self._state is not None:
                wish = command.wish(self._state)
                if wish is not None:
                    self.wished.emit(wish)
                # The user's click has checked the action already, which its command may not do.
                self._looks.pop(command.id, None)
                self._show_command(command, self._state)

        return do

    def _menu(self, title: str) -> QMenu:
        menu = self._menus.get(title)
        if menu is None:
            menu = self._menus[title] = QMenu(title, self._window)
            menu.setToolTipsVisible(True)
            self._window.menuBar().addMenu(menu)
        return menu

    def _make_models_menu(self, models: Sequence[tuple[str, Path]]) -> QMenu:
        menu = QMenu(self._window)
        for name, path in models:
            action = menu.addAction(name)
            action.setToolTip(str(path))
            action.triggered.connect(lambda _on=False, path=path: self.wished.emit(OpenModel(path)))
        menu.addSeparator()
        menu.addActions([self._actions[door] for door in self._actions if door in _MODEL_DOORS])
        return menu
