"""What stands around the cells of a matrix: a frame, the labels of both axes, their names."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPolygonF

from gui.theme import Theme
from gui.widgets.axis_labels import AxisLabels
from gui.widgets.head_view import KEY_AXIS, QUERY_AXIS
from gui.widgets.lettering import CENTRE, RIGHT, Lettering

_WIDEST_LABEL = 10  # in ems


@dataclass(frozen=True)
class Margins:
    """What the axes take beside the cells, in logical pixels."""

    labels_left: float
    labels_below: float
    gutter: float
    names: float  # for what the axes are called; 0 where they are not named


@dataclass(frozen=True)
class MatrixAxes:
    """Both axes of one layout, in logical pixels; `room` is what is framed."""

    theme: Theme
    letters: Lettering
    margins: Margins
    room: QRectF
    rows: AxisLabels
    columns: AxisLabels  # for a painter turned by −90°

    @classmethod
    def around(
        cls,
        room: QRectF,
        margins: Margins,
        labels: tuple[Sequence[str], Sequence[str]],
        cells: tuple[float, float, float],
        look: tuple[Theme, Lettering],
    ) -> "MatrixAxes":
        """The axes around a room.

        `labels` are those of the rows and of the columns; `cells` says where the first row
        begins, where the first column does, and how large a cell is.
        """
        theme, letters = look
        top, left, cell = cells
        low = room.left() - margins.gutter
        rows = AxisLabels(
            labels[0],
            letters,
            top,
            cell,
            room.top(),
            room.bottom(),
            low - margins.labels_left,
            low,
        )
        below = -(room.bottom() + margins.gutter)
        columns = AxisLabels(
            labels[1],
            letters,
            left,
            cell,
            room.left(),
            room.right(),
            below - margins.labels_below,
            below,
        )
        return cls(theme, letters, margins, room, rows, columns)

    def lit(self, letters: Lettering) -> tuple[AxisLabels, AxisLabels]:
        """The labels of rows and columns as they are lit."""
        return replace(self.rows, lettering=letters), replace(self.columns, lettering=letters)

    def draw_labels(self, painter: QPainter, first: int) -> None:
        """Draw the labels from one on, and lines to them where not all have one."""
        rows, columns, room = self.rows, self.columns, self.room
        rows.draw(painter, self.theme.text, first)
        painter.setPen(QColor(self.theme.line))
        if rows.step > 1:
            for index in rows.shown(first):
                at = rows.middle(index)
                painter.drawLine(QPointF(rows.right + 2, at), QPointF(room.left() - 2, at))
        if columns.step > 1:
            for index in columns.shown(first):
                at = columns.middle(index)
                painter.drawLine(QPointF(at, room.bottom() + 2), QPointF(at, -columns.right - 2))
        painter.rotate(-90)
        columns.draw(painter, self.theme.text, first)
        painter.resetTransform()

    def blank_labels(self, painter: QPainter, first: int) -> None:
        """Clear the places of the labels from one on, and of the lines to them."""
        paper = QColor(self.theme.surface)
        for axis in (self.rows, self.columns):
            half = axis.lettering.line / 2
            top = axis.middle(first + -first % axis.step) - half
            wide = axis.right - axis.left + self.margins.gutter - 1.5
            painter.fillRect(QRectF(axis.left, top, wide, axis.high + half - top), paper)
            painter.rotate(-90)
        painter.resetTransform()

    def draw_frame(self, painter: QPainter) -> None:
        """Draw the frame, and the names of the axes if they are named."""
        theme, letters, room = self.theme, self.letters, self.room
        painter.setPen(QColor(theme.line))
        painter.drawRect(room.adjusted(-1, -1, 0, 0))
        if not self.margins.names:
            return
        painter.setPen(QColor(theme.text_dim))
        self._draw_key_name(painter)
        painter.rotate(-90)
        beside = self.rows.left - theme.unit - letters.line
        wide = max(room.height(), letters.width(QUERY_AXIS) + 2)
        name = QRectF(-(room.center().y() + wide / 2), beside, wide, letters.line)
        if name.right() > -theme.unit:
            name.moveRight(-theme.unit)
        letters.draw(painter, name, QUERY_AXIS, CENTRE)
        painter.resetTransform()

    def _draw_key_name(self, painter: QPainter) -> None:
        """Name the keys in the corner, before their labels, where it takes no room from cells."""
        letters, room = self.letters, self.room
        right = room.left() - self.margins.gutter
        left = self.theme.unit
        fits = letters.width(KEY_AXIS) < right - left
        lines = [KEY_AXIS] if fits else KEY_AXIS.split(" ", 1)
        # Below the last query's label, half of which may hang over.
        place = QRectF(left, room.bottom() + letters.line, right - left, letters.line)
        for line in lines:
            letters.draw(painter, place, line, RIGHT)
            place.translate(0, letters.line)

    def draw_last_row_marker(self, painter: QPainter) -> None:
        """A triangle at the last query, which is the one that predicts."""
        last = len(self.rows.labels) - 1
        if not self.rows.is_within(last):
            return
        half = self.theme.unit * 0.9
        tip = QPointF(self.room.left() - 1, self.rows.middle(last))
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(self.theme.query))
        back = tip - QPointF(1.7 * half, 0)
        painter.drawPolygon(QPolygonF([tip, back - QPointF(0, half), back + QPointF(0, half)]))
        painter.restore()


def label_room(letters: Lettering, widest: float, most: float, least: int = 3) -> float:
    """Room for labels, in whole ems, so many at least: a token more must not move the picture.

    None for labels without a letter.
    """
    if not widest:
        return 0.0
    wanted = -(-widest // letters.em) * letters.em
    return min(max(wanted, least * letters.em), _WIDEST_LABEL * letters.em, most)
