"""One head in full: as a square of weights, or as links from the selected query."""

from math import ceil
from typing import ClassVar

from PySide6.QtCore import QSize
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QBoxLayout,
    QButtonGroup,
    QCheckBox,
    QComboBox,
    QHBoxLayout,
    QPushButton,
    QSizePolicy,
    QStackedWidget,
    QVBoxLayout,
)

from engine.readouts import CARRIED, n_carrying
from gui.export.numbers import Table
from gui.export.tables import head_tables
from gui.panels.absence import absence
from gui.panels.base import Figure, Lead, Panel
from gui.state import Scale
from gui.theme import Theme
from gui.view import View
from gui.widgets.arc_view import ArcView
from gui.widgets.fitting_label import FittingLabel
from gui.widgets.head_view import HeadView
from gui.widgets.lettering import Lettering
from gui.widgets.matrix_view import MatrixView
from gui.widgets.scales import exact
from gui.wishes import PointAt, SelectPosition, SetDisplay, Wish
from gui.words.head_effects import switched
from gui.words.quantities import counted

_SCALES: tuple[tuple[Scale, str], ...] = (
    ("linear", "0 to 1"),
    ("log", "logarithmic"),
    ("row", "per row"),
)


class HeadPanel(Panel):
    """The selected head, with its scale and its drawing as choices."""

    name: ClassVar[str] = "head"

    def __init__(self) -> None:
        super().__init__()
        self.heading = FittingLabel()
        self.heading.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self.row_text = FittingLabel(name="The selected row in words", fills=True)
        self.views: dict[str, HeadView] = {"heatmap": MatrixView(), "arcs": ArcView()}
        self.views["heatmap"].setAccessibleName("Heatmap of the selected head")
        self.views["arcs"].setAccessibleName("Links of the selected query")
        self.stack = QStackedWidget()
        for head_view in self.views.values():
            self.stack.addWidget(head_view)
            head_view.cell_clicked.connect(self._select)
            head_view.cell_requested.connect(self._select)
            head_view.opened.connect(lambda: self.lead(Lead("", "cell")))
            head_view.cell_hovered.connect(lambda *cell: self.wish(PointAt(cell)))
            head_view.hover_left.connect(lambda: self.wish(PointAt(None)))
            self.copy_by_key(head_view)
        self.drawings = QButtonGroup(self)
        words = self._words = QHBoxLayout()
        words.addWidget(self.heading)
        words.addWidget(self.row_text, 1)
        self.is_on = QCheckBox("on")
        self.is_on.setAccessibleName("This head is on")
        self.is_on.setToolTip("Off: the model runs without what this head mixes.")
        self.is_on.clicked.connect(lambda _on: self._switch())
        words.addWidget(self.is_on)
        controls = self._controls = QHBoxLayout()
        for drawing, text, tip in (
            ("heatmap", "Heatmap", "The head as a square, a row for each query."),
            ("arcs", "Links", "The head as links from the selected query."),
        ):
            button = QPushButton(text)
            button.setToolTip(tip)
            button.setAccessibleDescription(tip)
            button.setCheckable(True)
            button.clicked.connect(
                lambda _on=False, drawing=drawing: self.wish(SetDisplay({"drawing": drawing}))
            )
            self.drawings.addButton(button)
            button.setObjectName(drawing)
            controls.addWidget(button)
        self.scale = QComboBox()
        self.scale.addItems([text for _scale, text in _SCALES])
        self.scale.setAccessibleName("Scale of the colours")
        self.scale.setToolTip("How a weight becomes a colour.")
        self.scale.activated.connect(lambda row: self.wish(SetDisplay({"scale": _SCALES[row][0]})))
        controls.addWidget(self.scale)
        self.leave_first_out = QCheckBox("without first token")
        self.leave_first_out.setToolTip(
            "Do not colour the weight on the first key, which often takes nearly all."
        )
        self.leave_first_out.clicked.connect(
            lambda on: self.wish(SetDisplay({"leave_first_out": on}))
        )
        controls.addWidget(self.leave_first_out)
        controls.addStretch(1)
        self._top = QBoxLayout(QBoxLayout.Direction.TopToBottom)
        self._top.addLayout(words, 1)
        self._top.addLayout(controls)
        self._layout = QVBoxLayout(self)
        self._layout.addLayout(self._top)
        self._layout.addWidget(self.stack, 1)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Put words and controls side by side where that leaves most of the width to words."""
        super().resizeEvent(event)
        is_wide = self.width() > 2 * self._controls.sizeHint().width()
        way = QBoxLayout.Direction
        self._top.setDirection(way.LeftToRight if is_wide else way.TopToBottom)

    def minimumSizeHint(self) -> QSize:
        """As narrow as with words above controls, however wide it is now."""
        lines = (self._words.minimumSize(), self._controls.minimumSize())
        return self._narrowest(self._layout, *lines, self.stack.minimumSizeHint())

    def draw(self, view: View, previous: View | None) -> None:
        """The head in the drawing that is chosen; the other one rests."""
        display = view.state.display
        for button in self.drawings.buttons():
            button.setChecked(button.objectName() == display.drawing)
        self.scale.setCurrentIndex([scale for scale, _text in _SCALES].index(display.scale))
        self.leave_first_out.setChecked(display.leave_first_out)
        chosen = view.state.heads_off.heads
        self.is_on.setChecked((view.layer, view.head) not in chosen)
        self.is_on.setEnabled(view.n_tokens > 0)
        shown = self.views[display.drawing]
        has_moved_in = previous is None or previous.state.display.drawing != display.drawing
        self.stack.setCurrentWidget(shown)
        self.setFocusProxy(shown)
        shown.set_scale(display.scale, display.leave_first_out)
        shown.set_stale(view.state.stale and view.state.phase == "loading")
        focus = view.focus
        if focus is None or view.query is None:
            shown.set_empty(absence(view, "where each token looks"))
            self.heading.set_wordings("")
            self.row_text.set_wordings("")
            return
        if has_moved_in or previous is None or focus is not previous.focus:
            n_same = 0 if has_moved_in else _n_same(view, previous)
            shown.set_matrix(focus.weights, focus.visible, view.labels, view.labels, n_same)
        shown.set_cell(view.query, view.key)
        shown.setAccessibleDescription(view.row_sentence)
        name = f"Layer {view.layer}, head {view.head}"
        role: str = view.role or "mixed"
        short = f"L{view.layer} H{view.head}"
        if (view.layer, view.head) in view.off:
            role = f"off · {role}"
        self.heading.set_wordings(f"{name} · {role}", f"{short} · {role}", short)
        carried = carried_said(view)
        at_least = carried_shortly(int(n_carrying(view.row)), int(view.row_visible.sum()))
        self.row_text.set_wordings(f"{view.row_sentence} {carried[0]}", *carried, at_least, "")

    def numbers(self, view: View) -> tuple[Table, ...]:
        """Every weight of the head."""
        return head_tables(view.reading) if view.reading is not None else ()

    def figures(self) -> tuple[Figure, ...]:
        """The weight under the pointer, else the selected one; and how many keys carry a row."""
        view = self._drawn
        shown = self.views[view.state.display.drawing].shown_cell if view else None
        if view is None or view.focus is None or shown is None:
            return ()
        carrying = str(n_carrying(view.focus.weights[shown[0]]))
        return (
            Figure("weight", exact(view.focus.weights[shown])),
            Figure(f"number of positions that carry {100 * CARRIED:.0f} %", carrying),
        )

    def offers(self) -> tuple[tuple[str, Wish], ...]:
        """Switch the head off or on."""
        view = self._drawn
        if view is None or not view.n_tokens:
            return ()
        at = view.layer, view.head
        onto = "on" if at in view.state.heads_off.heads else "off"
        return ((f"Switch {onto} layer {at[0]}, head {at[1]}", switched(view.state, at)),)

    def leads(self) -> tuple[Lead, ...]:
        """To the arithmetic of the weight under the pointer, or else of the selected one."""
        view = self._drawn
        if view is None or view.query is None:
            return ()
        shown = self.views[view.state.display.drawing].shown_cell
        if shown is None:
            return (Lead("Open the arithmetic of the largest weight", "cell"),)
        title = f"Open the arithmetic of query {shown[0]}, key {shown[1]}"
        return (Lead(title, "cell", before=SelectPosition(*shown)),)

    def _switch(self) -> None:
        view = self._drawn
        if view is not None:
            self.wish(switched(view.state, (view.layer, view.head)))

    def _dress(self, theme: Theme) -> None:
        unit = theme.unit
        self._layout.setContentsMargins(unit * 2, unit, unit * 2, unit)
        self._layout.setSpacing(unit)
        self.heading.set_look(theme, theme.text, bold=True)
        self.row_text.set_look(theme, theme.text)
        # The heading says itself in fewer words rather than push this out.
        room = Lettering(self.font(), theme.font_body).width(carried_shortly(888, 888))
        self.row_text.setMinimumWidth(ceil(room))
        for head_view in self.views.values():
            head_view.set_theme(theme)

    def _select(self, query: int, key: int) -> None:
        self.wish(SelectPosition(query, key))


def carried_said(view: View) -> tuple[str, ...]:
    """On how many positions nearly all of the selected row's weight lies, in fewer words."""
    n_keys, n_seen = int(n_carrying(view.row)), int(view.row_visible.sum())
    carry, share = "carry" if n_keys > 1 else "carries", f"{100 * CARRIED:.0f} %"
    few = f"{n_keys:,} of {n_seen:,} {carry} {share}"
    of_all = counted(n_seen, "position")
    return f"{n_keys:,} of {of_all} {carry} {share} of the weight.", f"{few}.", few


def carried_shortly(n_keys: int, n_seen: int) -> str:
    """The same in hardly any words."""
    return f"{100 * CARRIED:.0f} % on {n_keys:,} of {n_seen:,}"


def _n_same(view: View, previous: View | None) -> int:
    """How many tokens, from the first on, the head surely looks at as it did in the last view."""
    if previous is None or view.reading is None or previous.reading is None:
        return 0
    new, old = view.reading.focus, previous.reading.focus
    is_same_head = (new.layer, new.head) == (old.layer, old.head)
    return view.reading.session.n_shared(previous.reading.session) if is_same_head else 0
