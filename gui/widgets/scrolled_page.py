"""A page of widgets that is scrolled up and down where there is too little room for it."""

from PySide6.QtCore import QPoint, QRect, Qt
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


def keep_in_sight(widget: QWidget, part: QRect) -> None:
    """Scroll the page that a widget stands on, if any, until this part of the widget is seen."""
    page: QWidget | None = widget.parentWidget()
    while page is not None and not isinstance(page, ScrolledPage):
        page = page.parentWidget()
    content = page.widget() if page is not None else None
    if page is not None and content is not None:
        at = part.translated(widget.mapTo(content, QPoint()))
        page.ensureVisible(at.center().x(), at.center().y(), 0, at.height())
