"""One line of plain text that says as much as its width allows."""

from functools import lru_cache
from html import escape
from math import ceil

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPaintEvent, QPalette
from PySide6.QtWidgets import QSizePolicy, QWidget

from gui.theme import LIGHT, Theme

_LEAST_EMS = 6
_STEP_EMS = 3  # by which the wanted width grows: a digit more must not lay out the window anew
_WORDS = 256  # whose widths a label remembers
_ZEROS = str.maketrans("123456789", "000000000")
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter


def plain_tip(text: str) -> str:
    """A tooltip that shows this text to the letter, whatever Qt takes it for."""
    return f"<span>{escape(text)}</span>" if text else ""


def font_of(widget: QWidget, pixels: int, *, bold: bool = False) -> QFont:
    """The widget's typeface at this size."""
    font = QFont(widget.font())
    font.setPixelSize(pixels)
    font.setBold(bold)
    return font


def tint(widget: QWidget, colour: str) -> None:
    """Write the widget's text in this colour."""
    palette = widget.palette()
    palette.setColor(QPalette.ColorRole.WindowText, QColor(colour))
    widget.setPalette(palette)


class FittingLabel(QWidget):
    """Shows the first of several wordings that fits, the last one cut if none does; on one line.

    The whole wording is its `text()`, what is read out, and its tooltip. One that `fills` takes
    the room that is left to it and asks for none, so that other words cost a repaint and no
    layout. Not a QLabel, which has the window laid out anew at each other text.
    """

    def __init__(
        self, align: Qt.AlignmentFlag = _LEFT, *, name: str = "", fills: bool = False
    ) -> None:
        super().__init__()
        across = QSizePolicy.Policy.Ignored if fills else QSizePolicy.Policy.Preferred
        self.setSizePolicy(across, QSizePolicy.Policy.Fixed)
        self.setAutoFillBackground(True)  # opaque: what is below need not be painted
        self.setAccessibleName(name)
        self._name = name
        self._align, self._n_lines = align, 1
        self._flags = align | Qt.TextFlag.TextSingleLine
        self._wordings: tuple[str, ...] = ("",)
        self._tip = ""
        self._colour, self._ground = LIGHT.text, ""
        self._use_font(font_of(self, LIGHT.font_body))
        self._hint = self._wanted()
        self._shown: tuple[int, str] | None = None  # at which width, what

    def _use_font(self, font: QFont) -> None:
        self._letters, self._metrics = font, QFontMetricsF(font)
        self._word = lru_cache(_WORDS)(self._metrics.horizontalAdvance)
        self._line, self._em = ceil(self._metrics.height()), font.pixelSize()
        self._space = self._word(" ")

    @property
    def letter(self) -> float:
        """The width of an average letter, in logical pixels."""
        return self._metrics.averageCharWidth()

    def text(self) -> str:
        """The whole wording, whether it fits or not."""
        return self._wordings[0]

    def set_look(
        self,
        theme: Theme,
        colour: str,
        *,
        bold: bool = False,
        small: bool = False,
        ground: str = "",
    ) -> None:
        """Set body type, or the axes' smaller one, in this colour, over this ground if any."""
        font = font_of(self, theme.font_axis if small else theme.font_body, bold=bold)
        look = (font, colour, ground)
        if look == (self._letters, self._colour, self._ground):
            return
        if font != self._letters:
            self._use_font(font)
            self._take_room()
        self._colour, self._ground, self._shown = colour, ground, None
        self.update()

    def set_wordings(self, *wordings: str) -> None:
        """Show the first of these that fits; the longest comes first."""
        if wordings != self._wordings:
            self._wordings, self._shown = wordings, None
            if self._name:
                self.setAccessibleDescription(wordings[0])
            else:
                self.setAccessibleName(wordings[0])
            self.setToolTip(plain_tip(self._tip or wordings[0]))
            self._take_room()
            self.update()

    def set_tip(self, text: str) -> None:
        """Tell this to whoever points here, instead of the whole wording."""
        if text != self._tip:
            self._tip = text
            self.setToolTip(plain_tip(text or self._wordings[0]))

    def set_max_lines(self, n_lines: int) -> None:
        """Let a wording that is too long for one line take so many, and keep room for them."""
        if n_lines != self._n_lines:
            self._n_lines, self._shown = n_lines, None
            one, more = Qt.TextFlag.TextSingleLine, Qt.TextFlag.TextWordWrap
            self._flags = self._align | (one if n_lines == 1 else more)
            self._take_room()
            self.update()

    def _take_room(self) -> None:
        wanted = self._wanted()
        if wanted != self._hint:
            self._hint = wanted
            self.updateGeometry()

    def _wanted(self) -> QSize:
        height = self._n_lines * self._line
        if self.sizePolicy().horizontalPolicy() == QSizePolicy.Policy.Ignored:
            return QSize(0, height)
        step = _STEP_EMS * self._em
        roughly = self._roughly(self.text())
        width = ceil(self._wide(self.text(), roughly, round(roughly / step) * step)) + 1
        return QSize(-(-width // step) * step if self.text() else 0, height)

    def _fits(self, wording: str) -> bool:
        width = self.width()
        fits = self._wide(wording, self._roughly(wording), width) <= width
        if fits or self._n_lines == 1:
            return fits
        height = self._n_lines * self._line
        wrapped = self._metrics.boundingRect(
            QRectF(0, 0, width, height), Qt.TextFlag.TextWordWrap, wording
        )
        return wrapped.width() <= width and wrapped.height() <= height

    def _wide(self, text: str, roughly: float, limit: float) -> float:
        """How wide a text is; about how wide, if that is clearly on one side of a limit."""
        is_near = abs(roughly - limit) < self._em
        return self._metrics.horizontalAdvance(text) if is_near else roughly

    def _roughly(self, text: str) -> float:
        """What its words take, which are as in most texts before but for their numbers."""
        words = text.translate(_ZEROS).split(" ")
        return sum(map(self._word, words)) + self._space * (len(words) - 1)

    def shown(self) -> str:
        """What can be read at the present width."""
        if self._shown is None or self._shown[0] != self.width():
            self._shown = self.width(), self._fitting()
        return self._shown[1]

    def _fitting(self) -> str:
        for wording in self._wordings:
            if self._fits(wording):
                return wording
        return self._metrics.elidedText(
            self._wordings[-1], Qt.TextElideMode.ElideRight, self.width()
        )

    def sizeHint(self) -> QSize:
        """Room for the longest wording."""
        return self._hint

    def minimumSizeHint(self) -> QSize:
        """A few letters: a long sentence must not hold a window open."""
        least = min(self._hint.width(), _LEAST_EMS * self._em)
        return QSize(least, self._hint.height())

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw the wording that fits."""
        with QPainter(self) as painter:
            if self._ground and self.text():
                painter.fillRect(self.rect(), QColor(self._ground))
            painter.setFont(self._letters)
            painter.setPen(QColor(self._colour))
            painter.drawText(self.rect(), self._flags, self.shown())
