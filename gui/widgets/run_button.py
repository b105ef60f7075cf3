"""A button that begins a measurement and, while that runs, ends it; how far it is stands beside."""

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from gui.theme import Theme
from gui.widgets.fitting_label import FittingLabel, font_of
from gui.widgets.wrapping_label import WrappingLabel


class RunButton(QWidget):
    """Owns a button, what stands before it, a line of words, and why it could not be done."""

    run_wanted = Signal()
    stop_wanted = Signal()

    def __init__(self, title: str, tip: str, before: Sequence[QWidget] = ()) -> None:
        super().__init__()
        self._title, self._tip = title, tip
        self._is_running = False
        self.button = QPushButton(title)
        self.button.setAutoDefault(False)
        self.button.clicked.connect(self._tell)
        self.said = FittingLabel(fills=True)
        self.obstacle = WrappingLabel()
        self._down = QVBoxLayout(self)
        self._down.setContentsMargins(0, 0, 0, 0)
        self._across = QHBoxLayout()
        for widget in (*before, self.button):
            self._across.addWidget(widget)
        self._across.addWidget(self.said, 1)
        self._down.addLayout(self._across)
        self._down.addWidget(self.obstacle)
        self.obstacle.say("")
        self._name()

    def set_theme(self, theme: Theme) -> None:
        """Take over colours and sizes."""
        self.button.setFont(font_of(self, theme.font_body))
        self.said.set_look(theme, theme.text_dim)
        self.obstacle.set_look(theme.font_body, theme.bad)
        self._across.setSpacing(2 * theme.unit)
        self._down.setSpacing(theme.unit)

    def show_progress(
        self,
        *,
        is_running: bool,
        wordings: Sequence[str],
        obstacle: str = "",
        can_run: bool = True,
    ) -> None:
        """Show whether it runs, how far it is (the first wording that fits), or what hinders it."""
        if is_running != self._is_running:
            self._is_running = is_running
            self._name()
        self.button.setEnabled(is_running or can_run)
        self.said.set_wordings(*(wordings or ("",)))
        self.obstacle.say(obstacle)

    def _name(self) -> None:
        text = "Stop" if self._is_running else self._title
        tip = "End this; what was measured stays" if self._is_running else self._tip
        self.button.setText(text)
        self.button.setAccessibleName(text)
        self.button.setToolTip(tip)
        self.button.setAccessibleDescription(tip)

    def _tell(self) -> None:
        (self.stop_wanted if self._is_running else self.run_wanted).emit()
