"""What positions are for: one text through five models that differ in nothing else."""

from math import ceil
from typing import ClassVar

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QButtonGroup,
    QGridLayout,
    QHBoxLayout,
    QPushButton,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

import resources
from engine.errors import ConfigError
from engine.experiments.records import Change, SchemeReading, SchemeReadings
from gui.export.numbers import Table
from gui.export.stamp import Fact
from gui.export.tables import scheme_tables
from gui.panels.base import Figure
from gui.panels.experiment import ExperimentPanel
from gui.questions.experimenting import SCHEME_MODELS
from gui.state import ExperimentChoice, OpenedExperiment, State
from gui.theme import LIGHT, Theme
from gui.view import View
from gui.widgets.fitting_label import FittingLabel, font_of
from gui.widgets.lettering import Lettering, quoted
from gui.widgets.number_field import Number, NumberField, NumberKind
from gui.widgets.scales import exact
from gui.widgets.scheme_charts import SchemeLosses, neighbours
from gui.widgets.token_text import display
from gui.widgets.trial_view import BareMatrix, loss_words
from gui.widgets.wrapping_label import WrappingLabel
from gui.wishes import ChangeExperiment, EditText, WantSchemes
from gui.words.quantities import counted

SCHEMES = tuple(name.removeprefix("positions-") for name in SCHEME_MODELS)
_TITLES = {"alibi": "ALiBi"}
_SHORT = {"sinusoidal": "sines"}  # where a column is narrow
_CHANGES = {
    "As it is": "The text as it is.",
    "Shuffled": "Its words in another order, which a seed decides, the same for all five models; "
    "punctuation and the last word stay where they are.",
    "Moved on": "The same text at later positions, with nothing before it.",
}
_PAGES = {
    "Heads": "One head of each model.",
    "Figures": "What the change of the text did to losses, probabilities and the last residual.",
    "Loss": "The loss of each token by its position, averaged over its neighbours.",
}
_HEADS_PAGE, _FIGURES_PAGE, _LOSS_PAGE = range(3)
_CONTEXT, _LAYERS, _HEADS = 256, 4, 4  # of the bundled models; a test compares them
_FIRST_SHIFT = 32
_TALL = 40  # ems of height from which on figures have room below both texts' heatmaps
_ROOMY = 32  # and from which on they have it below one
# Shares of the width: a heatmap, and what names the rows, of figures too or of heatmaps alone.
_MAP, _WIDE_NAMES, _NARROW_NAMES, _LEAST_NAMES = 4, 6, 4, 3
_MOST = 100  # of the height that is left: all but a hundredth is the heatmaps'


class SchemesPanel(ExperimentPanel[SchemeReadings]):
    """Five schemes side by side: a head, losses, and how far the last token's residual moved."""

    name: ClassVar[str] = "schemes"
    wants = WantSchemes
    models = SCHEME_MODELS
    waiting = "All five models are reading the text."

    def __init__(self) -> None:
        stack = QStackedWidget()
        super().__init__(stack, told="What the change did")
        self._stack = stack
        self.changes, self.pages = QButtonGroup(self), QButtonGroup(self)
        self.seed = _field("shuffle seed", 1, 9999)
        self.shift = _field("first position", 0, _CONTEXT - 1)
        self.layer_field = _field("layer", 0, _LAYERS - 1)
        self.head_field = _field("head", 0, _HEADS - 1)
        self.long = QPushButton("Long passage")
        self.long.setToolTip(
            "Put a held-out passage into the prompt that is longer than the models were trained on."
        )
        self.told.set_max_lines(2)
        self.complaint = WrappingLabel()
        self.matrices = {name: BareMatrix() for name in SCHEMES}  # of the changed text
        self.plain = {name: BareMatrix() for name in SCHEMES}  # of the text as it is
        for widget in (self.complaint, self.left_out, self.seed, self.shift, *self.plain.values()):
            widget.hide()
        self.losses = SchemeLosses(SCHEMES)
        self._titles, self._cells = [FittingLabel(fills=True) for _ in SCHEMES], _Rows()
        self._labels = (FittingLabel(), FittingLabel())
        self._row_names = (FittingLabel(fills=True), FittingLabel(fills=True))
        self._em = 11
        self._page = _HEADS_PAGE
        self._pointed: tuple[tuple[str, str], ...] = ()  # scheme and weight, with all digits
        self._place()
        self._dress(LIGHT)  # or its labels are larger than in any theme, and so is the window
        self.setFocusProxy(self.changes.buttons()[1])
        for what, matrices in (("changed", self.matrices), ("as it is", self.plain)):
            for name, matrix in matrices.items():
                matrix.setAccessibleName(f"Heatmap, {_title(name)}, {what}")
                is_changed = matrices is self.matrices
                matrix.cell_hovered.connect(
                    lambda *cell, is_changed=is_changed: self._point(cell, is_changed=is_changed)
                )
                matrix.hover_left.connect(lambda: self._point(None, is_changed=True))
                self.copy_by_key(matrix)
        self.changes.idClicked.connect(lambda _index: self._wish_change())
        self.pages.idClicked.connect(self._turn)
        self.seed.committed.connect(lambda _n: self._wish_change())
        self.shift.committed.connect(lambda _n: self._wish_change())
        self.layer_field.committed.connect(lambda n: self.wish(ChangeExperiment({"layer": n})))
        self.head_field.committed.connect(lambda n: self.wish(ChangeExperiment({"head": n})))
        self.long.clicked.connect(lambda: self.wish(EditText(resources.long_passage())))

    def draw(self, view: View, previous: View | None) -> None:
        """Show what is chosen, and the readings."""
        self._show_choice(view.state.experiment)
        super().draw(view, previous)

    def _opened(self, state: State) -> OpenedExperiment[SchemeReadings] | None:
        return state.schemes

    def _tables(self, answer: SchemeReadings) -> tuple[Table, ...]:
        """A row for each token, and one for each scheme."""
        return scheme_tables(answer)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Heatmaps and figures together where there is room for them."""
        super().resizeEvent(event)
        self._share_room()

    def _share_room(self) -> None:
        """Show what is on this page, large enough to be read."""
        is_roomy = self.height() > _ROOMY * self._em
        is_tall = self.height() > _TALL * self._em
        figures = self.pages.button(_FIGURES_PAGE)
        figures.setVisible(not is_roomy)
        if is_roomy and self._page == _FIGURES_PAGE:
            self.pages.button(_HEADS_PAGE).setChecked(True)
            self._page = _HEADS_PAGE
        has_figures = is_roomy or self._page == _FIGURES_PAGE
        has_maps = self._page != _FIGURES_PAGE
        is_changed = self._shown is None or not self._shown.change.is_none
        has_both = has_maps and is_changed and (is_tall or not is_roomy)
        for each in (*self.plain.values(), self._row_names[0]):
            each.setVisible(has_both)
        for each in (*self.matrices.values(), self._row_names[1]):
            each.setVisible(has_maps)
        self.legend.setVisible(has_maps)
        self._cells.set_visible(visible=has_figures)
        n_maps = int(has_maps) + int(has_both)
        self._grid.setRowStretch(1, _MOST * has_both)
        self._grid.setRowStretch(2, _MOST * has_maps)
        self._share_page(n_maps, has_figures=has_figures)

    def _share_page(self, n_maps: int, *, has_figures: bool) -> None:
        """Where only the width bounds the heatmaps, names give some, and figures take the rest."""
        room = self._stack.height() - self._titles[0].sizeHint().height()
        high = max(1, room - (self._cells.height(is_large=False) if has_figures else 0))
        names = _WIDE_NAMES if has_figures else _LEAST_NAMES
        if has_figures and n_maps * self._map_height(names) < high:
            names = _NARROW_NAMES
        self._grid.setColumnStretch(0, names)
        most = self._map_height(names)
        for each in (*self.matrices.values(), *self.plain.values()):
            each.setMaximumHeight(most)
        rest = room - n_maps * most
        self._cells.set_large(is_large=rest >= self._cells.height(is_large=True))

    def _map_height(self, names: int) -> int:
        """How high a heatmap is that takes all its column's width."""
        share = _MAP / (names + len(SCHEMES) * _MAP)
        return round(share * self._stack.width() + 1.5 * self._em)

    def more_facts(self, view: View) -> dict[str, Fact]:
        """Whose numbers these are, of which head, and what was done to the text."""
        opened = view.state.schemes
        choice = (opened and opened.choice) or view.state.experiment
        return {
            **super().more_facts(view),
            "small_layer": choice.layer,
            "small_head": choice.head,
            "shuffle_seed": choice.change.shuffle_seed,
            "first_position": choice.change.shift,
        }

    def figures(self) -> tuple[Figure, ...]:
        """The weights that are pointed at; how far the change moved each scheme's predictions.

        The weight of the heatmap that has the keyboard comes first.
        """
        in_use = [
            _title(name)
            for name in SCHEMES
            if self.matrices[name].hasFocus() or self.plain[name].hasFocus()
        ]
        pointed = sorted(self._pointed, key=lambda each: each[0] not in in_use)
        weights = (Figure(f"weight, {name}", digits) for name, digits in pointed)
        moves = (
            Figure(
                f"largest change of a probability, {_title(each.positions)}",
                repr(each.probability_change),
            )
            for each in (() if self._shown is None else self._shown.readings)
        )
        return *weights, *moves

    @property
    def _fields(self) -> tuple[NumberField, ...]:
        return self.seed, self.shift, self.layer_field, self.head_field

    def _turn(self, page: int) -> None:
        self._page = page
        self._stack.setCurrentIndex(int(page == _LOSS_PAGE))
        self._share_room()
        self._tell()

    # Choices

    def _show_choice(self, choice: ExperimentChoice) -> None:
        change = choice.change
        index = 1 if change.shuffle_seed else 2 if change.shift else 0
        self.changes.button(index).setChecked(True)
        if change.shuffle_seed:
            self.seed.show_value(change.shuffle_seed)
        if change.shift:
            self.shift.show_value(change.shift)
        self.layer_field.show_value(choice.layer)
        self.head_field.show_value(choice.head)
        self.seed.setVisible(index == 1)
        self.shift.setVisible(index == 2)

    def _wish_change(self) -> None:
        index = self.changes.checkedId()
        seed = int(self.seed.value) if index == 1 else 0
        shift = int(self.shift.value) if index == 2 else 0
        self.wish(ChangeExperiment({"change": Change(shuffle_seed=seed, shift=shift)}))

    def _complain(self) -> None:
        self.complaint.say(next((each.complaint for each in self._fields if each.complaint), ""))

    # Drawing

    def _show_none(self) -> None:
        self._pointed = ()
        for matrix in (*self.matrices.values(), *self.plain.values()):
            matrix.set_empty("")
        self.losses.show_nothing()
        for label in self._titles:
            label.set_wordings("")
        self._cells.show_nothing()

    def _set_stale(self, *, is_stale: bool) -> None:
        for matrix in (*self.matrices.values(), *self.plain.values()):
            matrix.set_stale(is_stale)

    def _show_answer(self, answer: SchemeReadings) -> None:
        n_tokens = len(answer.changed_tokens)
        labels = ("",) * n_tokens  # there is no room for any; the line above tells the tokens
        visible = np.tri(n_tokens, dtype=np.bool_)
        for label, each in zip(self._titles, answer.readings, strict=True):
            title = _title(each.positions)
            label.set_wordings(title, _SHORT.get(each.positions, title))
            for matrices, pattern in (
                (self.plain, each.pattern),
                (self.matrices, each.changed_pattern),
            ):
                matrix = matrices[each.positions]
                matrix.set_absent(np.zeros(n_tokens, np.bool_), ())
                matrix.set_matrix(pattern, visible, labels, labels)
        self.losses.show_readings(answer)
        for label, wordings in zip(self._row_names, _texts(answer.change), strict=True):
            label.set_wordings(*wordings)
        self._share_room()
        self.legend.set_legends(self.matrices["learned"].legend)
        self._cells.show_readings(answer)
        self._tell()
        rows = " ".join(scheme_words(each, answer.change) for each in answer.readings)
        self._describe(self.left_out.text(), self.told.text(), rows)

    def _point(self, cell: tuple[int, int] | None, *, is_changed: bool) -> None:
        for matrix in (self.matrices if is_changed else self.plain).values():
            matrix.show_pointed(cell)
        if self._shown is None:
            return
        if cell is None:
            self._pointed = ()
            self._tell()
            return
        readings = self._shown
        found = [
            (each.positions, (each.changed_pattern if is_changed else each.pattern)[cell])
            for each in readings.readings
        ]
        self._pointed = tuple((_title(name), exact(weight)) for name, weight in found)
        all_digits = " · ".join(f"{name} {digits}" for name, digits in self._pointed)
        few = " · ".join(f"{_title(name)} {weight:.3f}" for name, weight in found)
        tokens = readings.changed_tokens if is_changed else readings.tokens
        query, key = (quoted(display(tokens[at])) for at in cell)
        named = f"query {query} → key {key}"
        self.told.set_wordings(f"{named}: {all_digits}", all_digits, f"{named}: {few}", few)

    def _tell(self) -> None:
        if self._shown is None:
            return
        is_loss = self._page == _LOSS_PAGE
        self.told.set_wordings(*(curve_words if is_loss else order_words)(self._shown))

    # Layout

    def _place(self) -> None:
        self._rows, self._line, self._last = QVBoxLayout(self), QHBoxLayout(), QHBoxLayout()
        for group, names in ((self.changes, _CHANGES), (self.pages, _PAGES)):
            for index, (name, tip) in enumerate(names.items()):
                button = QPushButton(name)
                button.setCheckable(True)
                button.setToolTip(tip)
                group.addButton(button, index)
        self.pages.button(0).setChecked(True)
        for each in self.changes.buttons():
            self._line.addWidget(each)
        self._line.addWidget(self.seed)
        self._line.addWidget(self.shift)
        self._line.addStretch(1)
        for each in self.pages.buttons():
            self._line.addWidget(each)
        for field in self._fields:
            field.complained.connect(lambda _sentence: self._complain())
        for label, name in zip(self._labels, ("layer", "head"), strict=True):
            label.set_wordings(name)
        self._last.addWidget(self.legend, 1)
        for label, field in zip(self._labels, self._fields[2:], strict=True):
            self._last.addWidget(label)
            self._last.addWidget(field)
        self._last.addWidget(self.long)
        page, self._grid = QWidget(), QGridLayout()
        page.setLayout(self._grid)
        self._grid.setContentsMargins(0, 0, 0, 0)
        for at, (title, name) in enumerate(zip(self._titles, SCHEMES, strict=True), start=1):
            self._grid.addWidget(title, 0, at)
            self._grid.addWidget(self.plain[name], 1, at)
            self._grid.addWidget(self.matrices[name], 2, at)
            self._grid.setColumnStretch(at, _MAP)
        for row, label in enumerate(self._row_names, start=1):
            self._grid.addWidget(label, row, 0)
        self._grid.setRowStretch(self._cells.place(self._grid, 3), 1)
        self._stack.addWidget(page)
        self._stack.addWidget(self.losses)
        self._rows.addLayout(self._line)
        self._rows.addWidget(self.complaint)
        self._rows.addWidget(self.told)
        self._rows.addWidget(self.left_out)
        self._rows.addWidget(self.page, 1)
        self._rows.addLayout(self._last)

    def _dress(self, theme: Theme) -> None:
        unit = theme.unit
        super()._dress(theme)
        self.complaint.set_look(theme.font_body, theme.bad)
        for label in self._labels:
            label.set_look(theme, theme.text_dim, small=True)
            width = Lettering(label.font(), theme.font_axis).width(label.text())
            label.setFixedWidth(ceil(width) + 1)  # a label asks for more, which the legend needs
        for label in self._row_names:
            label.set_look(theme, theme.text_dim, small=True)
        for title in self._titles:
            title.set_look(theme, theme.text, bold=True)
        for button in (*self.changes.buttons(), *self.pages.buttons(), self.long):
            button.setFont(font_of(self, theme.font_axis))
        for field in self._fields:
            field.set_theme(theme)
        for name in SCHEMES:
            self.matrices[name].set_theme(theme)
            self.plain[name].set_theme(theme)
        self.losses.set_theme(theme)
        self._cells.set_theme(theme)
        self._rows.setContentsMargins(2 * unit, unit, 2 * unit, unit)
        for layout in (self._rows, self._line, self._last):
            layout.setSpacing(unit)
        self._grid.setHorizontalSpacing(unit)
        self._grid.setVerticalSpacing(0)
        self._em = theme.font_axis
        self._share_room()


class _Rows:
    """The figures under the heatmaps: a row for each, a column for each scheme."""

    def __init__(self) -> None:
        n_rows = 3 + _LAYERS + 1
        self._theme, self._is_large = LIGHT, False
        self._names = [FittingLabel(fills=True) for _ in range(n_rows)]
        self._values = [[FittingLabel(fills=True) for _ in SCHEMES] for _ in range(n_rows)]

    def place(self, grid: QGridLayout, first: int) -> int:
        """Put them into a grid, from a row on; returns the row below them."""
        for row, (name, values) in enumerate(zip(self._names, self._values, strict=True)):
            grid.addWidget(name, first + row, 0, Qt.AlignmentFlag.AlignVCenter)
            for column, value in enumerate(values):
                grid.addWidget(value, first + row, column + 1)
        return first + len(self._names)

    def set_theme(self, theme: Theme) -> None:
        """Take over colours and sizes."""
        self._theme = theme
        for name, values in zip(self._names, self._values, strict=True):
            name.set_look(theme, theme.text_dim, small=True)
            for value in values:
                value.set_look(theme, theme.text, small=not self._is_large)

    def set_large(self, *, is_large: bool) -> None:
        """Write in the size of other text, or of axes."""
        if is_large != self._is_large:
            self._is_large = is_large
            self.set_theme(self._theme)

    def height(self, *, is_large: bool) -> int:
        """Logical pixels of all rows in that size."""
        size = self._theme.font_body if is_large else self._theme.font_axis
        return len(self._names) * Lettering(self._names[0].font(), size).line

    def set_visible(self, *, visible: bool) -> None:
        """Show all rows or none."""
        for name, values in zip(self._names, self._values, strict=True):
            for label in (name, *values):
                label.setVisible(visible)

    def show_nothing(self) -> None:
        """Leave all empty."""
        for labels in (self._names, *self._values):
            for label in labels:
                label.set_wordings("")

    def show_readings(self, readings: SchemeReadings) -> None:
        """Losses, the largest change of a probability, and the residual's change by depth."""
        named = [
            ("nats per token, as it is", "nats, as it is", "as it is"),
            ("nats per token, changed", "nats, changed", "changed"),
            ("largest change of a probability", "most Δ probability", "Δ p"),
            ("last residual moved: embedding", "moved: embedding", "Δ embedding", "Δ emb."),
            *(
                (f"last residual moved: layer {layer}", f"moved: layer {layer}", f"Δ layer {layer}")
                for layer in range(_LAYERS)
            ),
        ]
        for label, wordings in zip(self._names, named, strict=True):
            label.set_wordings(*wordings)
        for column, each in enumerate(readings.readings):
            figures = (
                loss_words(each.mean_loss),
                loss_words(each.changed_mean_loss),
                _small(each.probability_change),
                *(f"{_small(share)}" for share in each.moved.tolist()),
            )
            for row, figure in enumerate(figures):
                self._values[row][column].set_wordings(figure)


def _title(name: str) -> str:
    return _TITLES.get(name, name)


def _small(value: float) -> str:
    """A share: 0 where it is just that, 4e-07 where rounding alone is left."""
    if value == 0:
        return "0"
    return f"{value:.3f}" if value >= 0.0005 else f"{value:.0e}"


def _field(name: str, least: int, most: int) -> NumberField:
    def check(value: Number) -> None:
        if not least <= value <= most:
            raise ConfigError(f"{name} = {value} is not possible; use {least} to {most}.")

    kind = NumberKind(name=name, least=least, most=most, step=1, use=f"use {least} to {most}")
    field = NumberField(kind, check)
    field.setToolTip(name.capitalize())
    if name == "first position":
        field.show_value(_FIRST_SHIFT)
    return field


def order_words(readings: SchemeReadings) -> tuple[str, ...]:
    """What the change did to the model without positions, layer by layer."""
    bare = next(each for each in readings.readings if each.positions == "none")
    if readings.change.is_none:
        longer = len(readings.tokens) > readings.trained_length
        n_tokens = counted(len(readings.tokens), "token")
        told = f"{n_tokens}; trained on windows of {readings.trained_length}"
        return (f"{told}, so the end is new ground" if longer else told, told)
    if readings.change.shift:
        begins = f"The text begins at position {readings.change.shift}"
        return f"{begins}; schemes that count distances see no difference", begins
    seed = readings.change.shuffle_seed
    if readings.changed_tokens == readings.tokens:
        told = "These words have no other order: the last one stays at the end"
        return f"{told}; type a longer text", told
    if len(bare.moved) < 3:
        return ("",)
    first, deeper = _small(float(bare.moved[1])), _small(float(bare.moved[2]))
    moved = sorted(float(each.moved[1]) for each in readings.readings if each is not bare)
    others = f"the other four: {_small(moved[0])} to {_small(moved[-1])}"
    shuffled = f"Words shuffled by seed {seed}, alike for all five"
    moves = "Without positions the last token's residual moves by"
    return (
        (
            f"{shuffled}. {moves} {first} in layer 0, which sees no order ({others}), and by "
            f"{deeper} in layer 1, which reads what others had seen before them"
        ),
        f"{shuffled}. {moves} {first} in layer 0 ({others}) and by {deeper} in layer 1",
        (
            f"{shuffled}. Without positions the last residual moves by {first} in layer 0, "
            f"{deeper} in layer 1"
        ),
        f"{shuffled}. None: moved {first} in layer 0, {deeper} in layer 1",
        f"Words shuffled. None: {first} in layer 0, {deeper} in layer 1",
    )


def curve_words(readings: SchemeReadings) -> tuple[str, ...]:
    """What the lines on the loss page are."""
    change = readings.change
    text = "The text as it is"
    if change.shuffle_seed:
        text = f"Words shuffled by seed {change.shuffle_seed}, alike for all five"
    if change.shift:
        text = f"The text from position {change.shift} on"
    end = len(readings.tokens) + change.shift
    n_mean = neighbours(len(readings.tokens))
    trained = f"trained on windows of {readings.trained_length}"
    if change.shift < readings.trained_length < end:
        trained = f"upright: {readings.trained_length} tokens, the length trained on"
    return (
        (
            f"{text}; each token's loss averaged with those of up to {n_mean - 1} before it; "
            f"{trained}"
        ),
        f"{text}; averaged over {n_mean} tokens; {trained}",
        f"{text}; {trained}",
    )


def _texts(change: Change) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What the two rows of heatmaps are called."""
    as_it_is = "as it is", "as is"
    if change.is_none:
        return as_it_is, as_it_is
    return as_it_is, (
        ("words shuffled", "shuffled") if change.shuffle_seed else ("moved on", "moved")
    )


def scheme_words(reading: SchemeReading, change: Change) -> str:
    """One scheme's figures in a sentence."""
    said = f"{_title(reading.positions)}: {loss_words(reading.mean_loss)} nats per token"
    if change.is_none:
        return f"{said}."
    return (
        f"{said}, changed {loss_words(reading.changed_mean_loss)}, largest change of a "
        f"probability {_small(reading.probability_change)}."
    )
