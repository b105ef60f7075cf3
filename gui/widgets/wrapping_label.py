"""Plain text over as many lines as it needs."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QPalette
from PySide6.QtWidgets import QLabel

from gui.widgets.fitting_label import font_of


class WrappingLabel(QLabel):
    """A paragraph that is never taken for markup; hidden while it has nothing to say."""

    def __init__(self, text: str = "") -> None:
        super().__init__(text)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setWordWrap(True)
        # Or it writes in the colour that Qt thinks fit for a panel's ground.
        self.setForegroundRole(QPalette.ColorRole.WindowText)
        self._look: tuple[int, str, bool] | None = None
        self.setAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop)

    def set_look(self, pixels: int, colour: str, *, bold: bool = False) -> None:
        """Write in this size and colour; by palette, for a style sheet would undo the size."""
        if (pixels, colour, bold) == self._look:
            return
        self._look = pixels, colour, bold
        self.setFont(font_of(self, pixels, bold=bold))
        palette = QPalette(self.palette())
        palette.setColor(QPalette.ColorRole.WindowText, QColor(colour))
        self.setPalette(palette)

    def say(self, text: str) -> None:
        """Show a text; nothing takes no place."""
        if text != self.text():
            self.setText(text)
        self.setVisible(bool(text))
