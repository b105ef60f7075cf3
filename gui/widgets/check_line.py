"""One thing that must hold: a glyph, the words, and the figure that was measured."""

from math import ceil

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPaintEvent
from PySide6.QtWidgets import QLabel, QSizePolicy

from gui.theme import LIGHT, Theme
from gui.widgets.fitting_label import font_of, plain_tip
from gui.widgets.verdict import GLYPHS, Verdict, verdict_colour

_MIDDLE = Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine


class CheckLine(QLabel):
    """Read out as one text; the figure is never cut, the words are if they must be."""

    def __init__(self) -> None:
        super().__init__()
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.verdict: Verdict = "idle"
        self._figure = ""
        self._wordings: tuple[str, ...] = ("",)
        self._stale = False
        self._told: tuple[object, ...] = ()
        self.set_theme(LIGHT)

    def set_theme(self, theme: Theme) -> None:
        """Take over colours and sizes."""
        self._theme = theme
        self._plain = font_of(self, theme.font_body)
        self._bold = font_of(self, theme.font_body, bold=True)
        self.updateGeometry()
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
        self.setText(f"{GLYPHS[verdict]} {wordings[0]}: {figure}")
        self.setToolTip(plain_tip(f"{self.text()}. {reason}"))
        self.setAccessibleDescription(reason)
        self.verdict, self._wordings, self._figure, self._stale = verdict, wordings, figure, stale
        self.updateGeometry()
        self.update()

    def _width(self, font: QFont, text: str) -> int:
        return ceil(QFontMetricsF(font).horizontalAdvance(text))

    def _widths(self) -> tuple[int, int, int]:
        em = self._plain.pixelSize()
        return (
            round(1.4 * em),
            self._width(self._plain, self._wordings[0]) + em,
            self._width(self._bold, self._figure),
        )

    def sizeHint(self) -> QSize:
        """Room for all three parts on one line."""
        height = ceil(QFontMetricsF(self._bold).height())
        return QSize(sum(self._widths()), height + self._theme.unit // 2)

    def minimumSizeHint(self) -> QSize:
        """The glyph, some of the words, and the figure."""
        glyph, _, figure = self._widths()
        return QSize(glyph + figure + 4 * self._plain.pixelSize(), self.sizeHint().height())

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw the glyph in its colour, the words, and the figure at the right."""
        theme, area = self._theme, QRectF(self.rect())
        glyph = self._widths()[0]
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
            room = area.adjusted(glyph, 0, 0, 0)
            painter.drawText(room, _MIDDLE, self.shown())
            if self.hasFocus():
                painter.setPen(QColor(theme.accent))
                painter.drawRect(self.rect().adjusted(0, 0, -1, -1))

    def shown(self) -> str:
        """The words that can be read at the present width."""
        glyph, _, figure = self._widths()
        room = self.width() - glyph - figure - self._theme.unit
        metrics = QFontMetricsF(self._plain)
        for wording in self._wordings:
            if metrics.horizontalAdvance(wording) <= room:
                return wording
        return metrics.elidedText(self._wordings[-1], Qt.TextElideMode.ElideRight, room)
