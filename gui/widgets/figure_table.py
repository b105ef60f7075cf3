"""A small table of figures to read: rows of plain text under headings, all rows shown.

It takes the keyboard (arrow keys, the key for copying takes a row) and can mark rows with the
look of a curve, so that it is a legend as well.
"""

from collections.abc import Sequence
from math import ceil

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import (
    QColor,
    QFontMetricsF,
    QGuiApplication,
    QIcon,
    QKeyEvent,
    QKeySequence,
    QPainter,
    QPalette,
    QPixmap,
    QResizeEvent,
)
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QHeaderView,
    QSizePolicy,
    QTableWidget,
    QTableWidgetItem,
)

from gui.theme import LIGHT, Theme
from gui.widgets.curves import Series, draw_swatch
from gui.widgets.fitting_label import font_of, plain_tip
from gui.widgets.scrolled_page import keep_in_sight

_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_SWATCH_EMS = 2

Row = tuple[str, ...]


class FigureTable(QTableWidget):
    """Texts at the left, figures at the right; as high as its rows, as wide as its place.

    Where it is narrow, the columns in `gives_way` are left out one after another; the first cell
    of a row tells the whole row on hovering.
    """

    def __init__(
        self,
        name: str,
        headings: Sequence[str],
        n_texts: int = 1,
        gives_way: Sequence[int] = (),
    ) -> None:
        super().__init__(0, len(headings))
        self._headings, self._n_texts = tuple(headings), n_texts
        self._gives_way = tuple(gives_way)
        self._theme = LIGHT
        self._rows: tuple[Row, ...] = ()
        self._marks: tuple[Series | None, ...] = ()
        self._dim: frozenset[tuple[int, int]] = frozenset()
        self.setAccessibleName(name)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setShowGrid(False)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWordWrap(False)
        self.setTabKeyNavigation(False)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.verticalHeader().hide()
        self.verticalHeader().setMinimumSectionSize(1)
        header = self.horizontalHeader()
        header.setSectionsClickable(False)
        header.setHighlightSections(False)
        header.setMinimumSectionSize(1)
        self.set_headings(*headings)
        for column in range(len(headings)):
            # Not by Qt's own measure, which keeps room for bold headings and cuts the first column.
            fixed = QHeaderView.ResizeMode.Fixed
            mode = fixed if column else QHeaderView.ResizeMode.Stretch
            header.setSectionResizeMode(column, mode)

    def set_headings(self, *headings: str) -> None:
        """Name the columns in another way."""
        self._headings = headings
        self.setHorizontalHeaderLabels(headings)
        self._align_headings()
        self._leave_out()

    def _align_headings(self) -> None:
        for column in range(len(self._headings)):
            item = self.horizontalHeaderItem(column)
            if item is not None:
                item.setTextAlignment(_LEFT if column < self._n_texts else _RIGHT)

    def set_theme(self, theme: Theme) -> None:
        """Take over colours and sizes."""
        self._theme = theme
        self.setFont(font_of(self, theme.font_axis))
        self.horizontalHeader().setFont(font_of(self, theme.font_axis))
        self.horizontalHeader().setStyleSheet(
            f"QHeaderView::section {{ background: {theme.surface}; color: {theme.text_dim};"
            f" border: none; border-bottom: 1px solid {theme.line}; padding: 0 {theme.unit}px;"
            f" font-size: {theme.font_axis}px; }}"
        )
        palette = QPalette(self.palette())
        palette.setColor(QPalette.ColorRole.Highlight, QColor(theme.raised))
        palette.setColor(QPalette.ColorRole.HighlightedText, QColor(theme.text))
        self.setPalette(palette)
        self.setIconSize(QSize(_SWATCH_EMS * theme.font_axis, theme.font_axis))
        self._write()

    def show_rows(
        self,
        rows: Sequence[Row],
        marks: Sequence[Series | None] = (),
        dim: frozenset[tuple[int, int]] = frozenset(),
    ) -> None:
        """Show these rows, each with the look of a curve or none, some cells dimmed."""
        news = tuple(rows), tuple(marks), dim
        if news != (self._rows, self._marks, self._dim):
            self._rows, self._marks, self._dim = news
            self._write()

    @property
    def rows(self) -> tuple[Row, ...]:
        """What it shows."""
        return self._rows

    def words(self) -> str:
        """The same as a sentence for each row."""
        return " ".join(map(self._sentence, self._rows))

    def _sentence(self, row: Row) -> str:
        pairs = zip(self._headings[1:], row[1:], strict=True)
        return f"{row[0]}: {', '.join(f'{heading} {text}' for heading, text in pairs)}."

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Leave out what has no room."""
        super().resizeEvent(event)
        self._leave_out()

    def _leave_out(self) -> None:
        """Show as many columns as fit, those that give way last."""
        widths = [self._width_of(column) for column in range(len(self._headings))]
        room = self.viewport().width()
        left_out: set[int] = set()
        for column in self._gives_way:
            if sum(widths) - sum(widths[each] for each in left_out) <= room:
                break
            left_out.add(column)
        for column in self._gives_way:
            self.setColumnHidden(column, column in left_out)
        for column, width in enumerate(widths[1:], start=1):
            self.setColumnWidth(column, width)

    def _width_of(self, column: int) -> int:
        """What a column needs, whether it is shown or not."""
        texts = [self._headings[column], *(row[column] for row in self._rows)]
        metrics = QFontMetricsF(font_of(self, self._theme.font_axis))
        swatch = self.iconSize().width() + 2 * self._theme.unit if any(self._marks) else 0
        widest = max(map(metrics.horizontalAdvance, texts))
        return ceil(widest) + 3 * self._theme.unit + (0 if column else swatch)

    def sizeHint(self) -> QSize:
        """All rows and the headings."""
        return QSize(100, self._line() * (len(self._rows) + 1) + 4)

    def minimumSizeHint(self) -> QSize:
        """The same: whoever has less room scrolls around it."""
        return QSize(60, self.sizeHint().height())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Copy the row in use, its cells divided by tabs."""
        at = self.currentRow()
        if event.matches(QKeySequence.StandardKey.Copy) and 0 <= at < len(self._rows):
            QGuiApplication.clipboard().setText("\t".join(self._rows[at]))
            return
        super().keyPressEvent(event)
        keep_in_sight(self.viewport(), self.visualRect(self.currentIndex()))

    def _line(self) -> int:
        return ceil(1.5 * self._theme.font_axis)

    def _write(self) -> None:
        self.setRowCount(len(self._rows))
        self.horizontalHeader().setFixedHeight(self._line())
        for at, row in enumerate(self._rows):
            self.setRowHeight(at, self._line())
            for column, text in enumerate(row):
                item = QTableWidgetItem(text)
                item.setToolTip(plain_tip(text if column else self._sentence(row)))
                item.setTextAlignment(_LEFT if column < self._n_texts else _RIGHT)
                is_dim = (at, column) in self._dim
                item.setForeground(QColor(self._theme.text_dim if is_dim else self._theme.text))
                mark = self._marks[at] if at < len(self._marks) and not column else None
                if mark is not None:
                    item.setIcon(self._swatch(mark))
                self.setItem(at, column, item)
        self.setAccessibleDescription(self.words())
        self._leave_out()
        self.updateGeometry()

    def _swatch(self, series: Series) -> QIcon:
        size, scale = self.iconSize(), self.devicePixelRatioF()
        pixmap = QPixmap(size * scale)
        pixmap.setDevicePixelRatio(scale)
        pixmap.fill(Qt.GlobalColor.transparent)
        with QPainter(pixmap) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            draw_swatch(painter, QRectF(1, 0, size.width() - 2, size.height()), series, self._theme)
        return QIcon(pixmap)
