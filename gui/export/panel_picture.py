"""A panel as PNG, SVG or PDF, with a line under it that says what was read and how.

Where a page fills the panel and scrolls, all of the page is drawn. In SVG and PDF, letters, lines,
frames and the cells of a heatmap are drawn as such and stay sharp at any size. The cells of a large
heatmap, and thumbnails, are embedded as the pixels on screen, a whole number of which make a cell,
or which show the largest of several.
"""

import re
from collections.abc import Callable, Iterator
from xml.sax.saxutils import escape

from PySide6.QtCore import (
    QBuffer,
    QByteArray,
    QIODevice,
    QMarginsF,
    QPoint,
    QRect,
    QRectF,
    QSize,
    QSizeF,
)
from PySide6.QtGui import (
    QColor,
    QImage,
    QImageWriter,
    QPageSize,
    QPainter,
    QPainterPath,
    QPalette,
    QPdfWriter,
    QRegion,
)
from PySide6.QtSvg import QSvgGenerator
from PySide6.QtWidgets import QSlider, QWidget

from gui.export.stamp import PROGRAM, Stamp
from gui.theme import Theme
from gui.widgets.column_page import ColumnPage
from gui.widgets.lettering import Lettering

DOTS_PER_INCH = 96  # that a logical pixel stands for
_LEAST_TEXT = 6  # ems of the text that was read; with less room it is left out
# By Qt's name for it: PySide deletes what `viewport()` gives when a wrapper of its area, made
# only for the call, is collected.
_VIEWPORT = "qt_scrollarea_viewport"
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_png(panel: QWidget, stamp: Stamp, theme: Theme) -> bytes:
    """The panel as it is on screen, in its device pixels; the facts are text chunks."""
    panel = _whole(panel)
    grabbed = _grabbed(panel)
    ratio, caption = grabbed.devicePixelRatio(), _Caption(panel, stamp, theme)
    size = QSize(grabbed.width(), grabbed.height() + round(caption.height * ratio))
    image = QImage(size, QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(ratio)
    with QPainter(image) as painter:
        caption.draw(painter)
        painter.drawImage(QPoint(), grabbed)
    image.setText("Title", _title(stamp))
    image.setText("Software", PROGRAM)
    for name, text in stamp.texts().items():
        image.setText(name, text)
    return _bytes(lambda buffer: QImageWriter(buffer, QByteArray(b"png")).write(image))


def to_svg(panel: QWidget, stamp: Stamp, theme: Theme) -> bytes:
    """The panel as lines and letters; the facts are its description."""
    panel = _whole(panel)
    caption = _Caption(panel, stamp, theme)
    generator = QSvgGenerator()
    generator.setSize(caption.whole)
    generator.setViewBox(QRect(QPoint(), caption.whole))
    generator.setResolution(DOTS_PER_INCH)
    generator.setTitle(_title(stamp))
    generator.setDescription(stamp.description())

    def write(buffer: QBuffer) -> None:
        generator.setOutputDevice(buffer)
        with QPainter(generator) as painter:
            _draw(panel, painter, caption)

    # Qt writes what cannot be written in XML: a control character in the prompt, for one.
    return _NOT_XML.sub("\ufffd", _bytes(write).decode("utf-8", "replace")).encode()


def to_pdf(panel: QWidget, stamp: Stamp, theme: Theme) -> bytes:
    """The panel on a page of its size; the facts are the description in its metadata."""
    panel = _whole(panel)
    caption = _Caption(panel, stamp, theme)

    def write(buffer: QBuffer) -> None:
        writer = QPdfWriter(buffer)
        writer.setResolution(DOTS_PER_INCH)
        points = QSizeF(caption.whole) * 72 / DOTS_PER_INCH
        fuzzy = QPageSize.SizeMatchPolicy.ExactMatch
        writer.setPageSize(QPageSize(points, QPageSize.Unit.Point, "", fuzzy))
        writer.setPageMargins(QMarginsF())
        writer.setTitle(_title(stamp))
        writer.setCreator(PROGRAM)
        writer.setDocumentXmpMetadata(QByteArray(_xmp(stamp).encode()))
        with QPainter(writer) as painter:
            _draw(panel, painter, caption)

    return _bytes(write)


def _whole(panel: QWidget) -> QWidget:
    """The panel, or the page that fills it, of which it may show only the upper part."""
    page = panel.findChild(ColumnPage)
    return page.content if page is not None and page.content.height() > page.height() else panel


def _grabbed(panel: QWidget) -> QImage:
    """Its device pixels; a page has no ground of its own, and Qt would give it that of a window."""
    if panel.autoFillBackground():
        return panel.grab().toImage()
    ratio = panel.devicePixelRatioF()
    image = QImage((QSizeF(panel.size()) * ratio).toSize(), QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(ratio)
    image.fill(panel.palette().color(QPalette.ColorRole.Base))
    with QPainter(image) as painter:
        _render(panel, panel, painter, QWidget.RenderFlag.DrawChildren)
    return image


class _Caption:
    """One line under the picture of a panel."""

    def __init__(self, panel: QWidget, stamp: Stamp, theme: Theme) -> None:
        self._stamp, self._theme = stamp, theme
        self._letters = Lettering(panel.font(), theme.font_axis)
        self._room = QSize(panel.size())
        self.height = self._letters.line + theme.unit

    @property
    def whole(self) -> QSize:
        """Logical pixels of panel and caption."""
        return QSize(self._room.width(), self._room.height() + self.height)

    def draw(self, painter: QPainter) -> None:
        """Draw the line, on a ground of its own."""
        theme, width = self._theme, self._room.width()
        ground = QRect(0, self._room.height(), width, self.height)
        painter.fillRect(ground, QColor(theme.surface))
        painter.setPen(QColor(theme.line))
        painter.drawLine(0, self._room.height(), width, self._room.height())
        painter.setPen(QColor(theme.text_dim))
        place = QRectF(2 * theme.unit, self._room.height(), width - 4 * theme.unit, self.height)
        self._letters.draw_long(painter, place, self._line(place.width()))

    def _line(self, width: float) -> str:
        """The facts, and the text that was read if there is room for some of it."""
        captions, fits = self._stamp.captions, self._letters.fits
        if fits(captions[0], width - _LEAST_TEXT * self._letters.em):
            return f"{captions[0]} · {self._stamp.text}"
        return next((each for each in captions if fits(each, width)), captions[-1])


def _draw(panel: QWidget, painter: QPainter, caption: _Caption) -> None:
    """Draw a panel for a device that may not clip, which SVG as Qt writes it does not.

    What scrolls is drawn first, then the ground around it, then all that does not scroll: so
    whatever reaches beyond its place is covered again.
    """
    around = _place(panel, panel)
    ground = panel.palette().brush(QPalette.ColorRole.Base)
    painter.fillPath(around, ground)
    for viewport in _viewports(panel):
        _render(panel, viewport, painter, QWidget.RenderFlag.DrawChildren)
        around = around.subtracted(_place(panel, viewport))
    painter.fillPath(around, ground)
    caption.draw(painter)
    for widget in _fixed(panel):
        if isinstance(widget, QSlider):  # the style clips what is filled of it
            painter.drawPixmap(widget.mapTo(panel, QPoint()), widget.grab())
        else:
            _render(panel, widget, painter, QWidget.RenderFlag(0))


def _place(panel: QWidget, widget: QWidget) -> QPainterPath:
    path = QPainterPath()
    path.addRect(QRectF(QRect(widget.mapTo(panel, QPoint()), widget.size())))
    return path


def _render(panel: QWidget, widget: QWidget, painter: QPainter, flags: QWidget.RenderFlag) -> None:
    background = QWidget.RenderFlag.DrawWindowBackground
    if widget.autoFillBackground():
        flags |= background
    # QGraphicsView has a `render` of another kind.
    QWidget.render(widget, painter, widget.mapTo(panel, QPoint()), QRegion(), flags)


def _children(widget: QWidget) -> Iterator[QWidget]:
    for child in widget.children():
        if isinstance(child, QWidget) and child.isVisible() and not child.isWindow():
            yield child


def _viewports(widget: QWidget) -> Iterator[QWidget]:
    """What scrolls, or would if there were more of it."""
    for child in _children(widget):
        if child.objectName() == _VIEWPORT:
            yield child
        else:
            yield from _viewports(child)


def _fixed(widget: QWidget) -> Iterator[QWidget]:
    """All else below a widget, what lies deeper later."""
    for child in _children(widget):
        if child.objectName() != _VIEWPORT:
            yield child
            yield from _fixed(child)


def _title(stamp: Stamp) -> str:
    return f"{stamp.facts['panel']} · {stamp.texts()['model']}"


def _xmp(stamp: Stamp) -> str:
    """The description, as PDF has it since it has one."""
    return (
        '<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?>'
        '<x:xmpmeta xmlns:x="adobe:ns:meta/">'
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
        '<rdf:Description rdf:about="" xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f"<dc:title>{_alternative(_title(stamp))}</dc:title>"
        f"<dc:description>{_alternative(stamp.description())}</dc:description>"
        '</rdf:Description></rdf:RDF></x:xmpmeta><?xpacket end="w"?>'
    )


def _alternative(text: str) -> str:
    return f'<rdf:Alt><rdf:li xml:lang="x-default">{escape(text)}</rdf:li></rdf:Alt>'


def _bytes(write: Callable[[QBuffer], object]) -> bytes:
    data = QByteArray()
    buffer = QBuffer(data)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    write(buffer)
    buffer.close()
    return bytes(data.data())
