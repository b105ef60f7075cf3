"""The models that were found as rows and columns, and which of them a filter lets through."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import (
    QAbstractTableModel,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QSortFilterProxyModel,
    Qt,
)
from PySide6.QtGui import QBrush, QFont, QGuiApplication, QPalette

from engine.formats import FLOAT32, FormatChoice, FormatName
from engine.library import Found
from engine.sizes import bytes_said
from gui.widgets.fitting_label import plain_tip
from gui.words.names import plain

Index = QModelIndex | QPersistentModelIndex
FOUND_ROLE = int(Qt.ItemDataRole.UserRole)
SORT_ROLE = FOUND_ROLE + 1
# Room between a number at the right of its column and the text after it; a flat head.
TABLE_STYLE = """
    QTableView::item { padding: 0 6px; }
    QHeaderView::section {
        background: palette(button); color: palette(window-text); padding: 3px 6px;
        border: none; border-bottom: 1px solid palette(mid);
    }
"""

_BY_PRECISION: tuple[FormatName, ...] = ("float32", "float16", "int8")
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


@dataclass(frozen=True)
class Memory:
    """What is free for a model, in bytes; None where nobody can tell. And how it would be held."""

    available: int | None
    choice: FormatChoice = FLOAT32

    def _format(self, found: Found) -> FormatName:
        """The format to count with; "automatic" comes to the most exact one that fits."""
        chosen, free = self.choice.number_format, self._free
        if chosen != "automatic":
            return chosen
        if free is None:
            return "float32"
        fitting = (name for name in _BY_PRECISION if found.needed_bytes(name) <= free)
        return next(fitting, _BY_PRECISION[-1])

    @property
    def _free(self) -> int | None:
        """What another device has free, only torch could tell."""
        return self.available if self.choice.device == "cpu" else None

    def holds(self, found: Found) -> bool | None:
        """Whether its weights fit in the chosen format; None where that is not known."""
        needed = found.needed_bytes(self._format(found))
        return None if self._free is None or not needed else needed <= self._free

    def verdict(self, found: Found) -> str:
        """In a few words, for a cell of the table."""
        if not found.is_readable:
            return f"— {found.reason}"
        name = self._format(found)
        n_bytes = found.needed_bytes(name)
        needed = bytes_said(n_bytes) if n_bytes else "unknown"
        if name != "float32" and self.choice.number_format == "automatic":
            needed += f" as {name}"
        mark = {True: "✓ fits", False: "✗ too large", None: "? needs"}[self.holds(found)]
        free = "" if self._free is None else f" of {bytes_said(self._free)}"
        return f"{mark}: {needed}{free}"

    def sentences(self, found: Found) -> str:
        """The same at length."""
        if not found.is_readable:
            return f"It cannot be opened. {found.reason}"
        name = self._format(found)
        n_bytes = found.needed_bytes(name)
        if not n_bytes:
            return "How much memory it needs is not known."
        needed = f"{found.n_parameters:,} weights take {bytes_said(n_bytes)} as {name}"
        if self._free is None:
            return f"Its {needed}; how much memory is free is not known."
        free = f"{bytes_said(self._free)} of memory are free"
        if self.holds(found):
            return f"It fits: its {needed}, and {free}."
        return f"It does not fit: its {needed}, and only {free}.{self._way_out(found, self._free)}"

    def _way_out(self, found: Found, free: int) -> str:
        """The most exact smaller format in which it would fit, if there is one."""
        for name in _BY_PRECISION:
            n_bytes = found.needed_bytes(name)
            if n_bytes <= free and n_bytes < found.needed_bytes(self._format(found)):
                return f" It would fit as {name}, in {bytes_said(n_bytes)}: see the Model menu."
        return ""


def _shape_text(found: Found) -> str:
    return f"{found.n_layer} × {found.n_head}" if found.n_layer and found.n_head else "—"


@dataclass(frozen=True)
class _Column:
    title: str
    text: Callable[[Found, Memory], str]
    sort: Callable[[Found], Any]
    align: Qt.AlignmentFlag = _LEFT


COLUMNS: tuple[_Column, ...] = (
    _Column(
        "Name",
        lambda found, _memory: plain(found.name),
        lambda found: f"{int(not found.is_readable)}{found.name.lower()}",
    ),
    _Column(
        "Architecture",
        lambda found, _memory: plain(found.architecture) or "—",
        lambda found: found.architecture.lower(),
    ),
    _Column(
        "Layers × heads",
        lambda found, _memory: _shape_text(found),
        lambda found: float(found.n_layer * found.n_head),
        _RIGHT,
    ),
    _Column(
        "On disk",
        lambda found, _memory: bytes_said(found.n_bytes),
        lambda found: float(found.n_bytes),
        _RIGHT,
    ),
    _Column("Where", lambda found, _memory: plain(found.place), lambda found: found.place.lower()),
    _Column(
        "Fits in memory?",
        lambda found, memory: plain(memory.verdict(found)),
        lambda found: float(found.n_parameters) if found.is_readable else float("inf"),
    ),
)


def _spoken(found: Found, column: _Column, memory: Memory) -> str:
    text = f"{column.title}: {column.text(found, memory)}"
    return text if found.is_readable else f"{text} (cannot be opened)"


def _letters(found: Found, _column: _Column, _memory: Memory) -> QBrush | None:
    """Dimmed, in whatever the theme of the moment has for that, where it cannot be opened."""
    palette = QGuiApplication.palette()
    return None if found.is_readable else palette.brush(QPalette.ColorRole.PlaceholderText)


def _font(found: Found, _column: _Column, _memory: Memory) -> QFont | None:
    """Slanted beside the dimming, which not every theme and not every eye shows."""
    if found.is_readable:
        return None
    font = QFont(QGuiApplication.font())
    font.setItalic(True)
    return font


def _tip(found: Found, _column: _Column, memory: Memory) -> str:
    return plain_tip(plain(f"{found.path}: {memory.sentences(found)}"))


# What a cell is asked for by Qt, and what answers.
_ANSWERS: Mapping[int, Callable[[Found, _Column, Memory], Any]] = {
    int(Qt.ItemDataRole.DisplayRole): lambda found, column, memory: column.text(found, memory),
    int(Qt.ItemDataRole.ToolTipRole): _tip,
    int(Qt.ItemDataRole.AccessibleTextRole): _spoken,
    int(Qt.ItemDataRole.ForegroundRole): _letters,
    int(Qt.ItemDataRole.FontRole): _font,
    int(Qt.ItemDataRole.TextAlignmentRole): lambda _found, column, _memory: column.align,
    FOUND_ROLE: lambda found, _column, _memory: found,
    SORT_ROLE: lambda found, column, _memory: column.sort(found),
}


class LibraryTable(QAbstractTableModel):
    """Owns the rows, in the order in which they were found."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rows: list[Found] = []
        self.memory = Memory(None)

    def begin(self, memory: Memory) -> None:
        """Forget all rows; those to come are held against this much memory."""
        self.beginResetModel()
        self._rows, self.memory = [], memory
        self.endResetModel()

    def add(self, rows: Sequence[Found]) -> None:
        """Put rows at the end."""
        first = len(self._rows)
        self.beginInsertRows(QModelIndex(), first, first + len(rows) - 1)
        self._rows.extend(rows)
        self.endInsertRows()

    @property
    def rows(self) -> Sequence[Found]:
        """All that were found."""
        return tuple(self._rows)

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's own default
        """A row for each model; nothing lies below one."""
        return 0 if parent.isValid() else len(self._rows)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - as above
        """The same for all."""
        return 0 if parent.isValid() else len(COLUMNS)

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:  # noqa: ANN401 - each role has its own type
        """A column's title."""
        if orientation != Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return COLUMNS[section].title
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return COLUMNS[section].align
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:  # noqa: ANN401 - as above
        """A cell: its text, and how it is drawn, sorted and read out."""
        answer = _ANSWERS.get(role)
        if answer is None:
            return None
        return answer(self._rows[index.row()], COLUMNS[index.column()], self.memory)


class LibraryFilter(QSortFilterProxyModel):
    """Lets through the rows that have all words of a text, and sorts by what the cells mean."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._words: list[str] = []
        self._only_readable = False
        self.setSortRole(SORT_ROLE)

    def set_text(self, text: str) -> None:
        """Ask for these words, in any order, anywhere in a model's name, family, place or path."""
        self._words = text.lower().split()
        self.invalidate()

    def set_only_readable(self, only: bool) -> None:  # noqa: FBT001 - a checkbox's slot
        """Leave out what cannot be opened, or no longer."""
        self._only_readable = only
        self.invalidate()

    def filterAcceptsRow(self, source_row: int, source_parent: Index) -> bool:
        """Whether a row is shown."""
        source = self.sourceModel()
        found: Found = source.data(source.index(source_row, 0, source_parent), FOUND_ROLE)
        if self._only_readable and not found.is_readable:
            return False
        text = f"{found.name} {found.architecture} {found.place} {found.path}".lower()
        return all(word in text for word in self._words)
