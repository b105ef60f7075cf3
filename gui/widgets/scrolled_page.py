"""A page of widgets that is scrolled up and down where there is too little room for it."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QScrollArea, QWidget


class ScrolledPage(QScrollArea):
    """Shows as much of its content as there is room for, as wide as the place that it has."""

    def __init__(self, content: QWidget) -> None:
        super().__init__()
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setWidget(content)
        for widget in (content, self.viewport()):
            widget.setAutoFillBackground(False)
