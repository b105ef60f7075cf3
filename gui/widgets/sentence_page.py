"""A widget, or one sentence across its whole place while there is nothing that it could show."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QStackedWidget, QWidget

from gui.theme import LIGHT, Theme
from gui.widgets.wrapping_label import WrappingLabel


class SentencePage(QStackedWidget):
    """Owns both; the sentence is plain text in the middle."""

    def __init__(self, content: QWidget) -> None:
        super().__init__()
        self._content = content
        self._label = WrappingLabel()
        self._label.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.addWidget(content)
        self.addWidget(self._label)
        self.set_theme(LIGHT)

    def set_theme(self, theme: Theme) -> None:
        """Take over colours and sizes."""
        self._label.set_look(theme.font_body, theme.text_dim)
        self._label.setMargin(4 * theme.unit)

    def show_sentence(self, sentence: str) -> None:
        """Say this instead of the content."""
        self._label.setText(sentence)
        self.setCurrentWidget(self._label)

    def show_content(self) -> None:
        """Bring the content back."""
        self.setCurrentWidget(self._content)

    @property
    def sentence(self) -> str:
        """What is said at present; nothing while the content is shown."""
        return self._label.text() if self.currentWidget() is self._label else ""
