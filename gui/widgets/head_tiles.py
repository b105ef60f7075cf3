"""What is drawn over thumbnails: a cross on a head that is off, a tile with a number on a shade."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen

from gui.theme import Theme, lookup_table
from gui.widgets.legend import draw_hatched
from gui.widgets.lettering import CENTRE, Lettering

Head = tuple[int, int]  # layer, head

_LIGHT = 140  # of 255: how bright a tile is from which on its number is dark


@dataclass(frozen=True, eq=False)
class Tiles:
    """A colour for each head instead of its weights: numbers [L, H] on a map centred on 0.

    ± `largest` have the map's ends; NaN is hatched. `texts` are written where they fit.
    """

    scores: NDArray[np.float64]
    largest: float
    texts: dict[Head, str] = field(default_factory=dict)

    def colour(self, head: Head, theme: Theme) -> QColor | None:
        """The tile's colour; None for a head that has no number."""
        score = float(self.scores[head])
        if np.isnan(score):
            return None
        share = score / self.largest if self.largest else 0.0
        index = round(127.5 + 127.5 * max(-1.0, min(1.0, share)))
        return QColor.fromRgb(int(lookup_table(theme.difference_map)[index]))


def draw_tile(
    painter: QPainter, place: QRectF, tiles: Tiles, head: Head, theme: Theme, axis: Lettering
) -> None:
    """Fill a head's place with its shade, and write its number there if it fits."""
    colour = tiles.colour(head, theme)
    if colour is None:
        draw_hatched(painter, place, theme)
        return
    painter.fillRect(place, colour)
    text = tiles.texts.get(head, "")
    if text and axis.line <= place.height() and axis.width(text) <= int(place.width()):
        light = 0.299 * colour.red() + 0.587 * colour.green() + 0.114 * colour.blue()
        painter.setPen(QColor("#000000" if light > _LIGHT else "#FFFFFF"))
        axis.draw(painter, place, text, CENTRE)


def draw_off(painter: QPainter, place: QRectF, theme: Theme) -> None:
    """Veil a head's place and cross it out."""
    veil = QColor(theme.surface)
    veil.setAlphaF(0.6)
    painter.fillRect(place, veil)
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    cross = place.adjusted(*(theme.stroke * side for side in (1, 1, -1, -1)))
    for colour, width in ((theme.surface, 3.0), (theme.text, 1.4)):
        pen = QPen(QColor(colour), width * theme.stroke)
        pen.setCapStyle(Qt.PenCapStyle.FlatCap)
        painter.setPen(pen)
        painter.drawLine(cross.topLeft(), cross.bottomRight())
        painter.drawLine(cross.bottomLeft(), cross.topRight())
    painter.restore()
