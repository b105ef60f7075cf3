"""Matrices that stand side by side on one axis: two of weights, and what is different in them."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QSize
from PySide6.QtWidgets import QWidget

from gui.theme import Theme, lookup_table
from gui.widgets.head_view import Cell
from gui.widgets.legend import Legend
from gui.widgets.matrix_view import MatrixView
from gui.widgets.pixels import hatched, packed
from gui.widgets.scales import (
    difference_levels,
    difference_reach,
    difference_table,
    difference_ticks,
    exact,
    signed,
)

_ROOM_FOR_NAMES = 22  # ems of width and height from which on the axes are named


class PairMatrix(MatrixView):
    """One of two runs' weights; slots in which this run has no token are hatched.

    Its title stands on top, its legend elsewhere. What is pointed at in one of the matrices is
    to be shown in the others (`show_pointed`).
    """

    _has_legend = False

    def __init__(self, parent: QWidget | None = None) -> None:
        self._titles: tuple[str, ...] = ("",)
        self._absent: NDArray[np.bool_] = np.zeros(0, np.bool_)
        super().__init__(parent)

    def set_titles(self, *titles: str) -> None:
        """What stands on top: the first of these that fits."""
        if titles != self._titles:
            self._titles = titles
            self.update()

    def set_absent(self, absent: NDArray[np.bool_], more_labels: Sequence[str]) -> None:
        """Which slots have no token here [M], and labels for which there must be room as well.

        To be told before the matrix.
        """
        self._absent = absent
        if more_labels != self._more_labels:
            self._more_labels = more_labels
            self._redraw(layout=True)

    @property
    def legend(self) -> Legend:
        """What the colours mean."""
        return self._legend()

    def minimumSizeHint(self) -> QSize:
        """Small enough for three in a row."""
        return QSize(8, 7) * self._theme.font_axis

    def _legend(self) -> Legend:
        what = "masked, no token" if self._absent.any() else "masked"
        return replace(super()._legend(), hatched=what)

    def _headline(self, cell: Cell | None) -> str:  # noqa: ARG002 - the number stands elsewhere
        width = self._header().width()
        fitting = (title for title in self._titles if self._body.fits(title, width))
        return next(fitting, self._titles[-1])

    def _told(self, query: int, key: int) -> str:
        if len(self._absent) and (self._absent[query] or self._absent[key]):
            return "no token"
        return super()._told(query, key)

    def _names_axes(self) -> bool:
        return min(self.width(), self.height()) > _ROOM_FOR_NAMES * self._axis.em


class DifferenceMatrix(PairMatrix):
    """B − A on a diverging scale centred on 0; hatched where there is no difference to tell."""

    def _take_theme(self, theme: Theme) -> None:
        super()._take_theme(theme)
        colours = lookup_table(theme.difference_map)
        table = difference_table(colours, packed(theme.masked), packed(theme.bad))
        self._table = hatched(table, packed(theme.hatch))

    def _top(self) -> float:
        return difference_reach(self._weights)

    def _levels(self, first: int, last: int) -> NDArray[np.uint8]:
        rows = slice(first, last)
        return difference_levels(self._weights[rows], self._visible[rows], self._top())

    def _legend(self) -> Legend:
        has_bad = not self._current_extent().is_finite.all()
        return DifferenceLegend(self._theme, "linear", False, self._top(), has_bad, "none")

    def _told(self, query: int, key: int) -> str:
        if not self._visible[query, key]:
            return "none"
        return signed(exact(self._weights[query, key]))

    def _rounded(self, weight: np.float32) -> str:
        return signed(f"{weight:.2f}")


class DifferenceLegend(Legend):
    """The legend of a difference: its numbers go from minus to plus, with 0 in the middle."""

    def _sentence(self) -> str:
        return "B − A"

    def _ticks(self) -> list[tuple[float, str]]:
        return difference_ticks(self.top)

    def _map(self) -> str:
        return self.theme.difference_map

    def _ends(self) -> list[tuple[float, str]]:
        return self._ticks()[::2]
