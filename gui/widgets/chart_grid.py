"""Several charts in whatever place there is: a row, a column, or as many as fit."""

from collections.abc import Sequence

from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QGridLayout, QWidget

from gui.widgets.curves import CurveChart


class ChartGrid(QWidget):
    """Owns the charts' arrangement; holds no window open, and leaves out the last ones first."""

    def __init__(self, charts: Sequence[CurveChart]) -> None:
        super().__init__()
        self._charts = tuple(charts)
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._arrangement = (0, 0)
        self.setMinimumSize(1, 1)
        for chart in self._charts:
            chart.setParent(self)
            chart.hide()

    def set_spacing(self, pixels: int) -> None:
        """Leave so much between charts."""
        self._grid.setSpacing(pixels)
        self._arrange()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Arrange the charts for the new size."""
        super().resizeEvent(event)
        self._arrange()

    def _arrange(self) -> None:
        least, gap = self._charts[0].minimumSizeHint(), self._grid.spacing()
        arrangement = arranged(
            len(self._charts),
            (self.width() + gap) // (least.width() + gap),
            (self.height() + gap) // (least.height() + gap),
        )
        if arrangement == self._arrangement:
            return
        self._arrangement = arrangement
        n_columns, n_shown = arrangement
        for at, chart in enumerate(self._charts):
            self._grid.removeWidget(chart)
            if at < n_shown:
                is_last = at == n_shown - 1
                span = n_columns - at % n_columns if is_last else 1
                self._grid.addWidget(chart, at // n_columns, at % n_columns, 1, span)
            chart.setVisible(at < n_shown)
        for column in range(len(self._charts)):
            self._grid.setColumnStretch(column, int(column < n_columns))


def arranged(n_charts: int, most_columns: int, most_rows: int) -> tuple[int, int]:
    """In how many columns to show how many of some charts, given what fits."""
    most_columns = max(1, min(most_columns, n_charts))
    if most_rows < 1:
        return 1, 0
    if most_columns == n_charts:
        return n_charts, n_charts
    if most_rows >= n_charts:
        return 1, n_charts
    return most_columns, min(n_charts, most_columns * most_rows)
