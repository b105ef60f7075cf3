"""The engine's own lines behind the selected row, and the same from torch's fused kernel."""

from typing import ClassVar

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication, QKeySequence, QShortcut
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout

from engine.answers.code_lines import EngineCode, Fused
from engine.reading import Reading
from gui.export.numbers import Table
from gui.export.tables import code_tables
from gui.panels.absence import absence
from gui.panels.base import AskingPanel, Figure, Lead
from gui.state import OpenedCode
from gui.theme import Theme
from gui.view import View
from gui.widgets.check_line import CheckLine
from gui.widgets.code_spans import Part
from gui.widgets.code_view import CodeView
from gui.widgets.fitting_label import FittingLabel, font_of
from gui.widgets.scales import exact
from gui.widgets.verdict import verdict_of
from gui.wishes import WantCode
from gui.words.cell_places import CellPlace
from gui.words.code_parts import code_text, heading, parts_of

WAITING = "The lines are being read and run."


class CodePanel(AskingPanel):
    """Shows text that was read from the engine's files, never a copy of it."""

    name: ClassVar[str] = "code"
    wants = WantCode

    def __init__(self) -> None:
        super().__init__()
        self.heading = FittingLabel()
        self.view = CodeView()
        self.view.setAccessibleName("Lines of the engine")
        self.view.copy_wanted.connect(self._copy)
        self.view.followed.connect(lambda place: self.lead(_lead(place)))
        self.check = CheckLine()
        self.copy_button = QPushButton("Copy")
        self.copy_button.setToolTip("Copy the four lines with their shapes (Ctrl+C).")
        self.copy_button.setAccessibleName("Copy the four lines")
        self.copy_button.clicked.connect(self._copy)
        shortcut = QShortcut(QKeySequence.StandardKey.Copy, self)
        shortcut.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        shortcut.activated.connect(self._copy)
        self.setFocusProxy(self.view)
        self._code: EngineCode | None = None
        self._head = QHBoxLayout()
        self._head.addWidget(self.heading, 1)
        self._head.addWidget(self.copy_button)
        self._foot = QVBoxLayout()
        self._foot.addWidget(self.check)
        self._layout = QVBoxLayout(self)
        self._layout.addLayout(self._head)
        self._layout.addWidget(self.view, 1)
        self._layout.addLayout(self._foot)

    def draw(self, view: View, _previous: View | None) -> None:
        """Show the lines that the view has; dimmed while they are not the selected row's."""
        opened = view.state.code
        missing = absence(view, "the lines of the engine that computed a row")
        code = None if opened is None or missing else opened.code
        self._code = code
        if opened is None or code is None:
            self._show_nothing(missing or (opened.obstacle if opened else "") or WAITING)
            return
        stale = self.is_stale(view, is_answered=opened.answers(view.reading))
        self._show_code(opened, code, stale=stale)

    def reading_of(self, view: View) -> Reading | None:
        """The reading that the lines were run on, which may be older."""
        return None if view.state.code is None else view.state.code.reading

    def numbers(self, view: View) -> tuple[Table, ...]:
        """Every line with its shapes, and the comparison."""
        opened = view.state.code
        code = None if opened is None else opened.code
        return () if code is None else code_tables(code)

    def figures(self) -> tuple[Figure, ...]:
        """The largest difference, and the two numbers that it lies between."""
        fused = None if self._code is None else self._code.fused
        if fused is None:
            return ()
        return (
            Figure("largest difference", exact(fused.difference)),
            Figure("mix by the lines", exact(fused.mix)),
            Figure("mix by the kernel", exact(fused.fused)),
        )

    def leads(self) -> tuple[Lead, ...]:
        """To what the line under the pointer computes, or else that of the caret."""
        place = self.view.lead_now()
        return (_lead(place),) if isinstance(place, CellPlace) else ()

    # Drawing

    def _show_nothing(self, sentence: str) -> None:
        for widget in (self.heading, self.check, self.copy_button):
            widget.hide()
        self.view.show_parts((Part("sentence", sentence),))
        self.setAccessibleDescription(f"{self.help} {sentence}")

    def _show_code(self, opened: OpenedCode, code: EngineCode, *, stale: bool) -> None:
        self.heading.set_wordings(*heading(code))
        self.view.show_parts(parts_of(code, opened.reading.focus.head), stale=stale)
        self._show_check(code.fused, code.obstacle, stale=stale)
        for widget in (self.heading, self.check, self.copy_button):
            widget.show()
        self.setAccessibleDescription(f"{code_text(code)}\n{self.check.text()}")

    def _show_check(self, fused: Fused | None, obstacle: str, *, stale: bool) -> None:
        wordings = (
            "these lines = torch's fused kernel, largest difference",
            "= torch's fused kernel",
            "= fused kernel",
        )
        if fused is None:
            self.check.show_check("idle", wordings, "not compared", obstacle, stale=stale)
            return
        self.check.show_check(
            verdict_of(fused.agrees),
            wordings,
            f"{fused.difference:.1e}" if fused.difference else "0",
            f"Over all heads and positions of the layer: {exact(fused.mix)} and "
            f"{exact(fused.fused)} in head {fused.head} at position {fused.position}. At most "
            f"{Fused.TOLERANCE:g} of the largest |v|, {fused.most:.2g}, is right.",
            stale=stale,
        )

    def _dress(self, theme: Theme) -> None:
        unit = theme.unit
        self._layout.setContentsMargins(0, unit, 0, unit)
        self._layout.setSpacing(unit)
        for row in (self._head, self._foot):
            row.setContentsMargins(2 * unit, 0, 2 * unit, 0)
        self.heading.set_look(theme, theme.text, bold=True)
        self.copy_button.setFont(font_of(self, theme.font_axis))
        self.view.set_theme(theme)
        self.check.set_theme(theme)

    def _copy(self) -> None:
        if self._code is not None:
            QGuiApplication.clipboard().setText(code_text(self._code))


def _lead(place: CellPlace) -> Lead:
    return Lead(f"Open “{place.stage}” in Cell", "cell", place)
