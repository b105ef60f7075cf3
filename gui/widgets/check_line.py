"""One thing that must hold: a glyph, the words, and the figure that was measured."""

from math import ceil

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from gui.theme import LIGHT, Theme
from gui.widgets.fitting_label import font_of, plain_tip
from gui.widgets.verdict import GLYPHS, Verdict, verdict_colour

_MIDDLE = Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine


class CheckLine(QWidget):
    """Read out as one text; the figure is never cut, the words are if they must be.

    A figure that has become shorter keeps its room, for with each keystroke it gives way to
    "checking…" and comes back. Not a QLabel, which has the window laid out anew each time.
    """

    def __init__(self) -> None:
        super().__init__()
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.setAutoFillBackground(True)  # opaque: what is below need not be painted
        self.verdict: Verdict = "idle"
        self._text = self._figure = ""
        self._wordings: tuple[str, ...] = ("",)
        self._stale = False
        self._told: tuple[object, ...] = ()
        self.set_theme(LIGHT)

    def set_theme(self, theme: Theme) -> None:
        """Take over colours and sizes."""
        self._theme = theme
        self._plain = font_of(self, theme.font_body)
        self._bold = font_of(self, theme.font_body, bold=True)
        self._height = ceil(QFontMetricsF(self._bold).height()) + theme.unit // 2
        self._room = (0, 0)
        self._take_room()
        self.update()

    def show_check(
        self,
        verdict: Verdict,
        wordings: tuple[str, ...],
        figure: str,
        reason: str,
        *,
        stale: bool = False,
    ) -> None:
        """Show one answer: the first wording that fits, the longest first, and a figure.

        `reason` says in a sentence what is asked and how exactly.
        """
        told = verdict, wordings, figure, reason, stale
        if told == self._told:
            return
        self._told = told
        self._text = f"{GLYPHS[verdict]} {wordings[0]}: {figure}"
        self.setToolTip(plain_tip(f"{self._text}. {reason}"))
        self.setAccessibleName(self._text)
        self.setAccessibleDescription(reason)
        self.verdict, self._wordings, self._figure, self._stale = verdict, wordings, figure, stale
        self._take_room()
        self.update()

    def text(self) -> str:
        """All that is said, whether it fits or not."""
        return self._text

    def _take_room(self) -> None:
        words, figure = self._widths()
        room = words, max(figure, self._room[1])
        if room != self._room:
            self._room = room
            self.updateGeometry()

    def _width(self, font: QFont, text: str) -> int:
        return ceil(QFontMetricsF(font).horizontalAdvance(text))

    def _glyph(self) -> int:
        return round(1.4 * self._plain.pixelSize())

    def _widths(self) -> tuple[int, int]:
        """Of the words, and of the figure."""
        words = self._width(self._plain, self._wordings[0]) + self._plain.pixelSize()
        return words, self._width(self._bold, self._figure)

    def sizeHint(self) -> QSize:
        """Room for all three parts on one line."""
        return QSize(self._glyph() + sum(self._room), self._height)

    def minimumSizeHint(self) -> QSize:
        """The glyph, some of the words, and the figure."""
        em = self._plain.pixelSize()
        return QSize(self._glyph() + self._room[1] + 4 * em, self._height)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw the glyph in its colour, the words, and the figure at the right."""
        theme, area = self._theme, QRectF(self.rect())
        colour = verdict_colour(theme, self.verdict)
        fails = self.verdict == "fails"
        with QPainter(self) as painter:
            painter.setFont(self._bold)
            painter.setPen(QColor(colour))
            painter.drawText(area, _MIDDLE, GLYPHS[self.verdict])
            dim = theme.text_dim if self._stale or self.verdict == "idle" else theme.text
            painter.setPen(QColor(colour if fails else dim))
            painter.setFont(self._bold if fails else self._plain)
            painter.drawText(area, _MIDDLE | Qt.AlignmentFlag.AlignRight, self._figure)
            painter.setFont(self._plain)
            room = area.adjusted(self._glyph(), 0, 0, 0)
            painter.drawText(room, _MIDDLE, self.shown())
            if self.hasFocus():
                painter.setPen(QColor(theme.accent))
                painter.drawRect(self.rect().adjusted(0, 0, -1, -1))

    def shown(self) -> str:
        """The words that can be read at the present width."""
        figure = self._widths()[1]
        room = self.width() - self._glyph() - figure - self._theme.unit
        metrics = QFontMetricsF(self._plain)
        for wording in self._wordings:
            if metrics.horizontalAdvance(wording) <= room:
                return wording
        return metrics.elidedText(self._wordings[-1], Qt.TextElideMode.ElideRight, room)
