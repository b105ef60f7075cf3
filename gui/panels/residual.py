"""Where a prediction comes from: the model's blocks, and what each part added."""

from typing import ClassVar, cast

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication, QKeySequence, QResizeEvent, QShortcut
from PySide6.QtWidgets import QButtonGroup, QHBoxLayout, QPushButton, QVBoxLayout

from engine.answers.residual import Stream, next_token
from engine.reading import Reading
from engine.sampling import Stages
from gui.export.numbers import Table
from gui.export.tables import residual_tables
from gui.panels.absence import absence
from gui.panels.base import AskingPanel, Figure
from gui.state import Followed, OpenedResidual
from gui.theme import Theme
from gui.view import View
from gui.widgets.arithmetic_stages import exact
from gui.widgets.check_line import CheckLine
from gui.widgets.fitting_label import FittingLabel, font_of
from gui.widgets.lettering import quoted
from gui.widgets.stream_columns import Measure
from gui.widgets.stream_table import Row, StreamTable
from gui.widgets.stream_view import StreamView
from gui.widgets.token_search import TokenChoices, TokenSearch
from gui.widgets.token_text import display
from gui.widgets.verdict import verdict_of
from gui.widgets.wrapping_label import WrappingLabel
from gui.wishes import Follow, SelectHead, WantResidual

WAITING = "What each part added is being worked out."
POST_NORM = (
    "This model norms the sum after each part, so nothing that was added reaches the logits as it "
    "was: there are no shares that sum to a logit."
)
CAPPED = (
    "This model bends its logits into ±{cap:g}: the shares are of the logit before that, {total}; "
    "after it {bent}."
)
_MEASURES: dict[Measure, tuple[str, str]] = {
    "length": ("Lengths", "How long each addition is, and its cosine with the final residual."),
    "share": ("Logit", "What each part adds to the logit of one token."),
}
_ALL = ("All layers", "All layers at once, without letters where there is no room for them.")
_LOW = 30  # ems of height below which sentences get one line only


class ResidualPanel(AskingPanel):
    """The residual stream and its additions at the selected position; asks while it is seen."""

    name: ClassVar[str] = "residual"
    wants = WantResidual

    def __init__(self) -> None:
        super().__init__()
        self.heading = FittingLabel(name="Token whose logit is shown", fills=True)
        self.most = FittingLabel(name="The largest shares", fills=True)
        self.told = FittingLabel(name="The part that is pointed at", fills=True)
        self.search = TokenSearch(self)
        self.note = WrappingLabel()
        self.view = StreamView()
        self.check = CheckLine()
        self.measures = QButtonGroup(self)
        self.all_button = QPushButton(_ALL[0])
        self._table: StreamTable | None = None
        self._shown: OpenedResidual | None = None
        self._place()
        self.setFocusProxy(self.view)
        self.view.chosen.connect(self._choose)
        self.view.pointed.connect(self._explain)
        self.view.widened.connect(lambda _is_wide: self._show_measures())
        self.search.chosen.connect(self._follow)
        self.search.left.connect(self.view.setFocus)
        self.measures.idClicked.connect(self._set_measure)
        self.all_button.toggled.connect(self.view.set_shows_all)
        shortcut = QShortcut(QKeySequence.StandardKey.Copy, self.view)
        shortcut.setContext(Qt.ShortcutContext.WidgetShortcut)
        shortcut.activated.connect(self._copy)
        find = QShortcut(QKeySequence.StandardKey.Find, self)
        find.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        find.activated.connect(lambda: self.search.setFocus(Qt.FocusReason.ShortcutFocusReason))

    def draw(self, view: View, previous: View | None) -> None:
        """Show the stream that the view has; dimmed while it is not the selected position's."""
        opened = view.state.residual
        missing = absence(view, "what each part of the model added")
        if opened is None or opened.stream is None or missing or view.reading is None:
            self._show_nothing(missing or WAITING)
            return
        selected = view.layer, view.head
        is_new = opened is not self._shown or self._table is None
        if is_new:
            self._show_opened(opened, opened.stream)
        if self._table is not None and (
            is_new or previous is None or selected != (previous.layer, previous.head)
        ):
            self.view.set_table(self._table, selected)
        is_asked = opened.answers(view.reading, view.state.followed_id)
        self.view.set_stale(self.is_stale(view, is_answered=is_asked))
        followed = view.state.followed
        if is_asked and (
            is_new
            or previous is None
            or view.reading is not previous.reading
            or followed != previous.state.followed
        ):
            self._show_token(view.reading, opened, followed)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Give the sentences' place to the rows where there is little."""
        super().resizeEvent(event)
        self.told.set_max_lines(1 if self.height() < _LOW * self.fontInfo().pixelSize() else 2)

    def reading_of(self, view: View) -> Reading | None:
        """The reading that the residual was asked for, which may be older."""
        return None if view.state.residual is None else view.state.residual.reading

    def numbers(self, view: View) -> tuple[Table, ...]:
        """What each part of each layer added."""
        opened = view.state.residual
        if opened is None or opened.stream is None:
            return ()
        return residual_tables(opened.stream, opened.attribution)

    def figures(self) -> tuple[Figure, ...]:
        """The numbers of the row under the pointer, else of the current one."""
        row = self.view.pointed_row()
        known = (("length", "length"), ("cosine", "cosine"), ("share", "share of the logit"))
        values = [(said, getattr(row, name, None)) for name, said in known]
        return tuple(Figure(said, exact(value)) for said, value in values if value is not None)

    # Drawing

    def _show_nothing(self, sentence: str) -> None:
        self._table = self._shown = None
        for widget in (self.heading, self.most, self.told, self.note, self.check):
            widget.hide()
        for button in (*self.measures.buttons(), self.all_button):
            button.hide()
        self.search.set_choices(None)
        self.search.hide()
        self.view.set_empty(sentence)
        self.setAccessibleDescription(f"{self.help} {sentence}")

    def _show_opened(self, opened: OpenedResidual, stream: Stream) -> None:
        vocabulary = opened.reading.info.vocabulary
        token = TokenChoices(_stages(opened.reading), vocabulary, None).label(opened.token_id)
        shares = opened.attribution
        self._shown = opened
        self._table = StreamTable(stream, shares, opened.reading.info.config, token)
        if shares is None:
            self.note.say(POST_NORM)
        elif shares.cap:
            total, bent = f"{shares.total:.2f}", f"{shares.bent:.2f}"
            self.note.say(CAPPED.format(cap=shares.cap, total=total, bent=bent))
        else:
            self.note.say("")
        self.most.set_wordings(*self._table.most_said())
        self._show_check(opened, stream)
        for widget in (self.heading, self.told, self.check, self.search, self.all_button):
            widget.show()
        self.most.setVisible(shares is not None)
        self._show_measures()

    def _show_check(self, opened: OpenedResidual, stream: Stream) -> None:
        shares = opened.attribution
        if shares is None:
            wordings: tuple[str, ...] = (
                "the last residual gives the shown logits",
                "residual → logits",
            )
            said = "The residual was worked out once more from the recorded q, k and v. "
        else:
            total, logit = f"{shares.total:.4f}", f"{shares.logit:.4f}"
            if shares.cap:
                total += f", capped {shares.bent:.4f}"
            wordings = (
                f"parts sum to {total}, the model's logit is {logit}, largest difference",
                f"sum {total}, logit {logit}",
                f"sum {total}",
                "sum = logit",
            )
            said = f"Sum {exact(shares.bent)}, the shown pass's logit {exact(shares.logit)}. "
        self.check.show_check(
            verdict_of(stream.difference <= Stream.TOLERANCE),
            wordings,
            f"≤ {stream.difference:.0e}" if stream.difference else "0",
            f"{said}The figure is the largest difference of any token's logit; at most "
            f"{Stream.TOLERANCE:g} is right.",
        )

    def _show_token(self, reading: Reading, opened: OpenedResidual, followed: Followed) -> None:
        following = next_token(reading)
        choices = TokenChoices(_stages(reading), reading.info.vocabulary, following)
        self.search.set_choices(choices)
        token, numbers = choices.label(opened.token_id), choices.numbers(opened.token_id)
        at = reading.n_fallen + reading.position
        after = quoted(display(reading.document.tokens[at], 20))
        why = "Chosen"
        if followed == "next" and following is not None:
            why = "Follows in the text"
        elif not isinstance(followed, int):
            why = "Most probable"
        self.heading.set_wordings(
            f"After {after} at position {reading.position}: {token} · {numbers} · {why.lower()}",
            f"After {after}: {token} · {numbers}",
            f"{token} · {numbers}",
            f"{token} · {choices.logit(opened.token_id)}",
        )
        table = self._table
        said = table.spoken() if table is not None else ""
        parts = (f"{self.heading.text()}.", said, f"{self.check.text()}.", self.note.text())
        self.setAccessibleDescription(" ".join(filter(None, parts)))

    def _show_measures(self) -> None:
        """The choice between bars, where there is one to make."""
        shares = None if self._table is None else self._table.attribution
        for button in self.measures.buttons():
            button.setVisible(shares is not None and not self.view.is_wide)

    def _explain(self, row: Row) -> None:
        if self._table is not None:
            self.told.set_wordings(*self._table.describe(row))

    def _dress(self, theme: Theme) -> None:
        unit = theme.unit
        self.view.set_theme(theme)
        self.check.set_theme(theme)
        self.search.set_theme(theme)
        self.heading.set_look(theme, theme.text, bold=True)
        self.most.set_look(theme, theme.text)
        self.told.set_look(theme, theme.text)
        self.note.set_look(theme.font_axis, theme.text_dim)
        for button in (*self.measures.buttons(), self.all_button):
            button.setFont(font_of(self, theme.font_axis))
        self._column.setContentsMargins(2 * unit, unit, 2 * unit, unit)
        for layout in (self._column, self._head):
            layout.setSpacing(unit)

    # Wishes

    def _choose(self, layer: int, head: int) -> None:
        view = self._drawn
        if view is not None:
            self.wish(SelectHead(layer, view.head if head < 0 else head))

    def _follow(self, choice: object) -> None:
        self.view.setFocus()
        self.wish(Follow(cast("Followed", choice)))

    def _set_measure(self, index: int) -> None:
        self.view.set_measure(list(_MEASURES)[index])

    def text(self) -> str:
        """Everything as text: which token, all parts of all layers, and the comparison."""
        table = self._table
        if table is None:
            return ""
        return f"{self.heading.text()}\n\n{table.text()}\n\n{self.check.text()}"

    def _copy(self) -> None:
        if self._table is not None:
            QGuiApplication.clipboard().setText(self.text())

    # Layout

    def _place(self) -> None:
        self._head = QHBoxLayout()
        self._head.addWidget(self.search, 1)
        for index, (text, tip) in enumerate(_MEASURES.values()):
            button = QPushButton(text)
            button.setCheckable(True)
            button.setChecked(index == 0)
            button.setToolTip(tip)
            button.setAccessibleDescription(tip)
            self.measures.addButton(button, index)
            self._head.addWidget(button)
        self.all_button.setCheckable(True)
        self.all_button.setToolTip(_ALL[1])
        self.all_button.setAccessibleDescription(_ALL[1])
        self._head.addWidget(self.all_button)
        self._column = QVBoxLayout(self)
        self._column.addLayout(self._head)
        self._column.addWidget(self.heading)
        self._column.addWidget(self.most)
        self._column.addWidget(self.view, 1)
        self._column.addWidget(self.told)
        self._column.addWidget(self.note)
        self._column.addWidget(self.check)


def _stages(reading: Reading) -> Stages:
    """A text that has been read has a next token."""
    assert reading.stages is not None  # noqa: S101
    return reading.stages
