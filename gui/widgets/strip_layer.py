"""The picture of the chips in view: what looks as before is not drawn again."""

from collections.abc import Sequence
from math import ceil
from typing import NamedTuple

from PySide6.QtCore import QPointF, QRect, QRectF, QSize, QSizeF, Qt
from PySide6.QtGui import QColor, QPainter, QPen, QPixmap

from gui.theme import Theme
from gui.widgets.chips import ChipFonts, ChipPictures, Label, Look, black_or_white, contrast
from gui.widgets.pixels import keeps_lines


class Face(NamedTuple):
    """Everything that one chip shows by itself, and where: selection and weights lie over it."""

    x: int
    top: int  # of its row
    label: Label
    look: Look
    number: int | None  # the position over it; None where it has no room or something else is
    is_generated: bool = False
    is_flashed: bool = False
    is_prefix: bool = False  # put before the text
    is_marked: bool = False  # computed by the latest pass


class StripLayer:
    """Owns the picture and what is drawn on it."""

    def __init__(self, fonts: ChipFonts, theme: Theme) -> None:
        self._fonts, self._theme = fonts, theme
        self._pictures = ChipPictures(fonts, theme)
        self._generated_line = QPen(QColor(theme.text_dim), theme.stroke, Qt.PenStyle.DotLine)
        self._prefix_line = QPen(QColor(theme.text_dim), theme.stroke, Qt.PenStyle.DashLine)
        self._flashed_line = QPen(QColor(theme.text), 2 * theme.stroke)
        self._picture = QPixmap()
        self._faces: list[Face] = []

    def show(
        self, painter: QPainter, size: QSize, ratio: float, faces: Sequence[Face], clip: QRect
    ) -> None:
        """Paint the chips with these faces, in a place of this size, as far as the clip goes.

        Where lines and letters stay sharp, they are drawn as such.
        """
        if keeps_lines(painter):
            for face in faces:
                self._draw_sharp(painter, face)
            return
        wanted = QSize(ceil(size.width() * ratio), ceil(size.height() * ratio))
        if wanted != self._picture.size() or ratio != self._picture.devicePixelRatio():
            self._picture = QPixmap(wanted)
            self._picture.setDevicePixelRatio(ratio)
            self._pictures.set_ratio(ratio)
            self._picture.fill(QColor(self._theme.surface))
            self._faces = []
        if faces != self._faces:
            self._draw_changes(faces)
            self._faces = list(faces)
        corner, extent = QPointF(clip.topLeft()) * ratio, QSizeF(clip.size()) * ratio
        painter.drawPixmap(QRectF(clip), self._picture, QRectF(corner, extent))

    def number_width(self, number: int) -> int:
        """How wide a position's number is."""
        return self._pictures.number_width(number)

    def _draw_changes(self, after: Sequence[Face]) -> None:
        before = self._faces
        with QPainter(self._picture) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            # Which faces are the very same is told sooner than which are alike.
            known, wanted = set(map(id, before)), set(map(id, after))
            paper = QColor(self._theme.surface)
            for face in before:
                if id(face) not in wanted:
                    painter.fillRect(self._place(face), paper)
            for face in after:
                if id(face) not in known:
                    self._draw(painter, face)

    def _place(self, face: Face) -> QRectF:
        """Where a chip and its number are; a number may be a little wider than its chip."""
        left = 0 if face.look.joins_previous else self._fonts.gap // 2
        right = 0 if face.look.joins_next else self._fonts.gap // 2
        beyond = ceil(self._flashed_line.widthF() / 2)  # half of a line at a chip's lower edge
        height = self._fonts.lane + self._fonts.chip + beyond
        return QRectF(face.x - left, face.top, left + face.label.width + right, height)

    def _draw(self, painter: QPainter, face: Face) -> None:
        top, width = face.top + self._fonts.lane, face.label.width
        painter.drawPixmap(face.x, top, self._pictures.chip(face.label, face.look))
        self._draw_mark(painter, face)
        if face.number is not None:
            number = self._pictures.number(face.number)
            indent = (width - number.deviceIndependentSize().width()) / 2
            painter.drawPixmap(round(face.x + indent), face.top, number)
        self._draw_line(painter, face)

    def _draw_sharp(self, painter: QPainter, face: Face) -> None:
        painter.save()
        painter.translate(face.x, face.top + self._fonts.lane)
        self._pictures.draw_chip(painter, face.label, face.look)
        painter.restore()
        self._draw_mark(painter, face)
        if face.number is not None:
            painter.save()
            indent = (face.label.width - self.number_width(face.number)) / 2
            painter.translate(round(face.x + indent), face.top)
            self._pictures.draw_number(painter, face.number)
            painter.restore()
        self._draw_line(painter, face)

    def _draw_mark(self, painter: QPainter, face: Face) -> None:
        """A bar in the upper edge of a chip that the latest pass computed."""
        if face.is_marked:
            top = face.top + self._fonts.lane
            chip = QRectF(face.x, top, face.label.width, self._fonts.chip)
            draw_pass_mark(painter, chip, QColor.fromRgb(face.look.ground), self._theme)

    def _draw_line(self, painter: QPainter, face: Face) -> None:
        """Under a chip that the model wrote, that no text spells, or that was just computed."""
        fonts, top, width = self._fonts, face.top + self._fonts.lane, face.label.width
        if face.is_generated or face.is_flashed or face.is_prefix:
            calm = self._prefix_line if face.is_prefix else self._generated_line
            painter.setPen(self._flashed_line if face.is_flashed else calm)
            radius, y = self._theme.unit, top + fonts.chip - 1
            painter.drawLine(QPointF(face.x + radius, y), QPointF(face.x + width - radius, y))


def draw_pass_mark(painter: QPainter, chip: QRectF, ground: QColor, theme: Theme) -> None:
    """The bar in the upper edge of a chip, thick enough to be seen below a selected one's frame."""
    text, indent = QColor(theme.text), round(1.5 * theme.unit)
    top, thick = chip.top() + round(theme.stroke), round(1.5 * theme.stroke)  # whole pixels: sharp
    place = QRectF(chip.left() + indent, top, chip.width() - 2 * indent, thick)
    painter.fillRect(place, text if contrast(text, ground) >= 4.5 else black_or_white(ground))
