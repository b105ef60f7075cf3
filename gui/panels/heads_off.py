"""Which heads are switched off, what that did, and what each head would do."""

from typing import ClassVar

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QButtonGroup,
    QHBoxLayout,
    QPushButton,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from engine.answers.ablation import MEASURE_FORMULAS, MEASURES, Measure
from engine.conditions import OffBy
from engine.reading import Reading
from gui.export.numbers import Table
from gui.export.tables import effect_tables, intact_tables, switched_table
from gui.panels.absence import absence
from gui.panels.base import AskingPanel, Figure
from gui.state import OpenedEffects, OpenedIntact, Shade
from gui.theme import Theme
from gui.view import View, measuring_sentence
from gui.widgets.candidate_text import token_label
from gui.widgets.effect_rows import EffectLines, EffectRows
from gui.widgets.fitting_label import FittingLabel, font_of
from gui.widgets.lettering import quoted
from gui.widgets.pair_rows import PairRows
from gui.wishes import (
    MeasureEffects,
    SelectHead,
    SetDisplay,
    SetHeadsOff,
    StopMeasuring,
    WantIntact,
    Wish,
)
from gui.words.head_effects import OFF_BY_TITLES, all_on, heads_said, nats
from gui.words.with_and_without import WithAndWithout

HINT = (
    "All heads are on. Switch one off with Ctrl+H, its whole layer with Ctrl+Shift+H, or by a "
    "right click on it in All heads; loss and prediction then stand here, with it and without."
)
NOT_MEASURED = (
    "Not measured on this text yet. “What moves the answer most” switches each head off in turn."
)
WAITING = "The text is being run with all heads on, to compare with."
_PAGES = {
    "Side by side": "Loss and prediction with all heads on, and as they are now.",
    "Each head": "What each head does, by switching it off in turn.",
}
_MEASURES: dict[Measure, str] = {"answer": "by the answer", "loss": "by the loss"}
_OFF_BY: dict[OffBy, tuple[str, str]] = {
    "zero": ("zero", "A head that is off adds nothing to the residual."),
    "mean": (
        "mean",
        "A head that is off adds the mean of what it mixed at all positions that the query sees.",
    ),
}


class HeadsOffPanel(AskingPanel):
    """Says which heads are off and brings them back; compares, measures, ranks.

    What all heads would make of the text is asked of the engine only while the panel is seen.
    """

    name: ClassVar[str] = "heads_off"
    wants = WantIntact

    def __init__(self) -> None:
        super().__init__()
        self.which = FittingLabel(name="Heads that are off", fills=True)
        self.restore = QPushButton("All on")
        self.restore.setToolTip("Switch on whatever is off.")
        self.by, self.pages, self.orders = (QButtonGroup(self) for _ in range(3))
        self.loss, self.moved = FittingLabel(fills=True), FittingLabel(fills=True)
        self.pairs, self.rows = PairRows(), EffectRows()
        self.measure = QPushButton("What moves the answer most")
        self.state_of_it = FittingLabel(name="How far measuring is", fills=True)
        self.stack = QStackedWidget()
        self._compared: tuple[OpenedIntact, WithAndWithout | None] | None = None
        self._ranked: tuple[OpenedEffects, Measure, EffectLines] | None = None
        self._measure_shown: Measure = "answer"
        self._place()
        self.setFocusProxy(self.pages.button(0))
        for rows in (self.pairs, self.rows):
            self.copy_by_key(rows)
        self.restore.clicked.connect(lambda: self.wish(all_on()))
        self.by.idClicked.connect(lambda at: self.wish(SetHeadsOff({"by": list(_OFF_BY)[at]})))
        self.pages.idClicked.connect(self.stack.setCurrentIndex)
        self.orders.idClicked.connect(self._order_by)
        self.measure.clicked.connect(self._measure_or_stop)
        self.rows.chosen.connect(self._select)

    def draw(self, view: View, previous: View | None) -> None:
        """Show which heads are off, and what is known of them."""
        has_begun = view.state.measuring and not (previous and previous.state.measuring)
        if has_begun:
            self._turn_to(1)
        elif previous is not None and view.off and view.off != previous.off:
            self._turn_to(0)
        self._draw_choice(view)
        self._draw_side_by_side(view)
        self._draw_effects(view)
        labels = (self.loss, self.moved) if self.stack.currentIndex() == 0 else (self.state_of_it,)
        said = " ".join(label.text() for label in (self.which, *labels) if label.text())
        self.setAccessibleDescription(f"{self.help} {said}")

    def numbers(self, view: View) -> tuple[Table, ...]:
        """Which heads are off; both distributions and losses, and what each head does, if true."""
        reading = view.reading
        if reading is None:
            return ()
        tables: tuple[Table, ...] = (switched_table(reading),)
        opened, effects = view.state.intact, view.state.effects
        if opened is not None and opened.answers(reading) and opened.intact is not None:
            tables = (*tables, *intact_tables(reading, opened.intact))
        if effects is not None and effects.answers(reading):
            tables = (*tables, *effect_tables(effects.effects))
        return tables

    def figures(self) -> tuple[Figure, ...]:
        """The numbers of the row under the pointer, else of the current one, if there are any."""
        if self._drawn is None or self._drawn.reading is None:
            return ()
        n_off = Figure("number of heads that are off", str(len(self._drawn.off)))
        if self.stack.currentIndex() == 0:
            pairs, row = self.pairs.pairs, self.pairs.pointed_row
            if pairs is None or row is None:
                return (n_off,)
            return (
                Figure("probability now", repr(float(pairs.now[row]))),
                Figure("probability with all heads on", repr(float(pairs.before[row]))),
            )
        lines, row = self.rows.lines, self.rows.pointed_row
        if lines is None or row is None:
            return (n_off,)
        figures = [
            Figure("effect on the answer in nats", repr(float(lines.answer[row]))),
            Figure("effect on the loss in nats", repr(float(lines.loss[row]))),
            Figure("change of the probability", repr(float(lines.probability[row]))),
            Figure("change of the logit", repr(float(lines.logit[row]))),
        ]
        return tuple(figures[1::-1] + figures[2:] if lines.is_by_loss else figures)

    def offers(self) -> tuple[tuple[str, Wish], ...]:
        """Switch all heads on."""
        has_any = self._drawn is not None and bool(self._drawn.state.heads_off.heads)
        return (("Switch all heads on", all_on()),) if has_any else ()

    # Drawing

    def _draw_choice(self, view: View) -> None:
        chosen, reading = view.state.heads_off, view.reading
        for at, by in enumerate(_OFF_BY):
            self.by.button(at).setChecked(by == chosen.by)
        self.restore.setEnabled(bool(chosen.heads))
        if reading is None or not chosen.heads:
            self.which.set_wordings("No head is off" if reading is not None else "")
            return
        n_off = len(chosen.heads)
        said = heads_said(chosen.heads, reading.info.config.n_head)
        self.which.set_wordings(f"Off: {said}", f"{n_off} off: {said}", f"{n_off} heads off")

    def _draw_side_by_side(self, view: View) -> None:
        opened, reading = view.state.intact, view.reading
        missing = absence(view, "what switching heads off does")
        if missing or reading is None:
            self._say_nothing_compared(missing)
            return
        if not view.off:
            self._say_nothing_compared(HINT)
            return
        if opened is None or opened.reading.info is not reading.info:
            self._say_nothing_compared(WAITING)
            return
        if self._compared is None or self._compared[0] is not opened:
            self._compared = opened, WithAndWithout.of(opened)
        compared = self._compared[1]
        if compared is None:
            self._say_nothing_compared(WAITING)
            return
        is_stale = view.state.stale or not opened.answers(reading)
        colour = view.theme.text_dim if is_stale else view.theme.text
        self.loss.set_look(view.theme, colour, bold=True)
        self.moved.set_look(view.theme, colour, small=True)
        self.loss.set_wordings(*loss_said(compared))
        self.moved.set_wordings(*moved_said(compared, opened.reading))
        self.pairs.set_pairs(compared.pairs)
        self.pairs.set_stale(is_stale)
        self.pairs.set_empty("")

    def _say_nothing_compared(self, sentence: str) -> None:
        self.loss.set_wordings("")
        self.moved.set_wordings("")
        self.pairs.set_pairs(None)
        self.pairs.set_empty(sentence)

    def _draw_effects(self, view: View) -> None:
        state, reading = view.state, view.reading
        self.measure.setText("Stop measuring" if state.measuring else "What moves the answer most")
        self.measure.setEnabled(view.n_tokens > 0)
        self._choose_order(view)
        opened = state.effects
        missing = absence(view, "which head moves the answer most")
        is_known = opened is not None and reading is not None
        if missing or opened is None or not is_known or reading is None:
            self._say_nothing_measured(view, missing)
            return
        if opened.reading.info is not reading.info or not opened.effects.n_measured:
            self._say_nothing_measured(view, "")
            return
        measure = self._measure_shown
        if self._ranked is None or self._ranked[:2] != (opened, measure):
            self._ranked = opened, measure, lines_of(opened, measure)
        is_stale = state.stale or not opened.answers(reading, measure)
        self.rows.set_lines(self._ranked[2])
        self.rows.set_selected(view.layer, view.head)
        self.rows.set_stale(is_stale)
        self.rows.set_empty("")
        self.state_of_it.set_look(view.theme, view.theme.text, small=True)
        self.state_of_it.set_wordings(*measured_said(view, opened, measure))

    def _say_nothing_measured(self, view: View, sentence: str) -> None:
        self.rows.set_lines(None)
        self.rows.set_empty(sentence or NOT_MEASURED)
        self.state_of_it.set_wordings(
            measuring_sentence(view.state) if view.state.measuring else ""
        )

    def _choose_order(self, view: View) -> None:
        """The list follows the overview, where that is shaded by an effect."""
        shade = view.state.display.shade
        for measure in MEASURES:
            if shade == measure:
                self._measure_shown = measure
        self.orders.button(MEASURES.index(self._measure_shown)).setChecked(True)

    def _turn_to(self, page: int) -> None:
        self.pages.button(page).setChecked(True)
        self.stack.setCurrentIndex(page)

    def _dress(self, theme: Theme) -> None:
        unit = theme.unit
        self.pairs.set_theme(theme)
        self.rows.set_theme(theme)
        self.which.set_look(theme, theme.text, bold=True)
        for group in (self.by, self.pages, self.orders):
            for button in group.buttons():
                button.setFont(font_of(self, theme.font_axis))
        for button in (self.restore, self.measure):
            button.setFont(font_of(self, theme.font_axis))
        self.by_title.set_look(theme, theme.text_dim, small=True)
        self._rows.setContentsMargins(2 * unit, unit, 2 * unit, unit)
        for layout in self._layouts:
            layout.setSpacing(unit)

    # Wishes

    def _measure_or_stop(self) -> None:
        is_measuring = self._drawn is not None and self._drawn.state.measuring
        self.wish(StopMeasuring() if is_measuring else MeasureEffects())

    def _order_by(self, index: int) -> None:
        self._measure_shown = MEASURES[index]
        shade: Shade = MEASURES[index]
        self.wish(SetDisplay({"shade": shade}))

    def _select(self, row: int) -> None:
        if self.rows.lines is not None:
            self.wish(SelectHead(*self.rows.lines.heads[row]))

    # Layout

    def _place(self) -> None:
        top, choice, pages, order = (QHBoxLayout() for _ in range(4))
        self.by_title = FittingLabel(fills=True)
        self.by_title.set_wordings("Off heads give", "Off: give", "Give")
        top.addWidget(self.which, 1)
        top.addWidget(self.restore)
        choice.addWidget(self.by_title, 1)
        for at, (by, (text, tip)) in enumerate(_OFF_BY.items()):
            button = _toggle(text, tip)
            button.setAccessibleName(f"Replace heads that are off by {OFF_BY_TITLES[by]}")
            self.by.addButton(button, at)
            choice.addWidget(button)
        for at, (text, tip) in enumerate(_PAGES.items()):
            button = _toggle(text, tip)
            button.setChecked(at == 0)
            self.pages.addButton(button, at)
            pages.addWidget(button, 1)
        order.addWidget(self.state_of_it, 1)
        for at, measure in enumerate(MEASURES):
            button = _toggle(measure, f"Sort {_MEASURES[measure]}: {MEASURE_FORMULAS[measure]}.")
            button.setAccessibleName(f"Sort {_MEASURES[measure]}")
            self.orders.addButton(button, at)
            order.addWidget(button)
        side_by_side, each_head = QVBoxLayout(), QVBoxLayout()
        side_by_side.addWidget(self.loss)
        side_by_side.addWidget(self.moved)
        side_by_side.addWidget(self.pairs, 1)
        each_head.addWidget(self.measure)
        each_head.addLayout(order)
        each_head.addWidget(self.rows, 1)
        for page in (side_by_side, each_head):
            page.setContentsMargins(0, 0, 0, 0)
            holder = QWidget()
            holder.setLayout(page)
            self.stack.addWidget(holder)
        self._rows = QVBoxLayout(self)
        self._rows.addLayout(top)
        self._rows.addLayout(choice)
        self._rows.addLayout(pages)
        self._rows.addWidget(self.stack, 1)
        self._layouts = (self._rows, top, choice, pages, order, side_by_side, each_head)


def _toggle(text: str, tip: str) -> QPushButton:
    button = QPushButton(text)
    button.setCheckable(True)
    button.setToolTip(tip)
    button.setAccessibleDescription(tip)
    button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    return button


def lines_of(opened: OpenedEffects, measure: Measure) -> EffectLines:
    """The measured heads in the order of an effect."""
    effects, reading = opened.effects, opened.reading
    heads = effects.ranked(measure)
    at = tuple(zip(*heads, strict=True)) if heads else ((), ())
    layer, head = (list(each) for each in at)
    return EffectLines(
        heads=heads,
        answer=effects.scores("answer")[layer, head],
        loss=effects.scores("loss")[layer, head],
        probability=(effects.probability - effects.shown.probability)[layer, head],
        logit=(effects.logit - effects.shown.logit)[layer, head],
        is_by_loss=measure == "loss",
        token=quoted(token_label(reading.info.vocabulary, effects.token_id)),
    )


def loss_said(compared: WithAndWithout) -> tuple[str, ...]:
    """Both losses and their difference, in fewer and fewer words."""
    if compared.loss_on != compared.loss_on:
        return ("One token has no loss; a loss needs two.", "no loss yet")
    change = nats(compared.loss_now - compared.loss_on)
    both = f"{compared.loss_on:.3f} → {compared.loss_now:.3f} nats ({change})"
    return (f"Mean loss, all on → now: {both}", f"Loss {both}", both)


def moved_said(compared: WithAndWithout, reading: Reading) -> tuple[str, ...]:
    """How far the distribution at the position moved."""
    moved = f"{nats(compared.moved, signed=False)} nats"
    return (
        f"After position {reading.position} the distribution moved by {moved} (Σ p · ln(p ÷ q))",
        f"After position {reading.position} it moved by {moved}",
        f"moved by {moved}",
    )


def measured_said(view: View, opened: OpenedEffects, measure: Measure) -> tuple[str, ...]:
    """What was measured, and whether it is of what is shown."""
    effects, reading = opened.effects, opened.reading
    if view.state.measuring and opened.is_of_text(view.reading):
        return (measuring_sentence(view.state),)
    if not opened.is_of_text(view.reading):
        long = "Measured on another text or under other conditions."
        return (long, "Of another text or conditions.", "Not of this run.")
    part = f"{effects.n_measured} of {effects.n_heads}" if not effects.is_whole else "all"
    by = OFF_BY_TITLES[effects.off_by]
    token = quoted(token_label(reading.info.vocabulary, effects.token_id))
    if measure == "answer" and not opened.answers(view.reading):
        return (
            f"Measured after position {effects.position}, which is not the selected one.",
            f"Of position {effects.position}.",
        )
    where = f"after position {effects.position}"
    return (
        f"Replaced by {by}, {part} heads; {where}, probability of {token}",
        f"By {by}, {part} heads, {where}",
        f"{part} heads, {where}",
    )
