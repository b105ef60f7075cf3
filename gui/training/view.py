"""What a run looked like at one look: curves, one head, a sample; and a slider over all looks."""

import numpy as np
from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QComboBox,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QPlainTextEdit,
    QVBoxLayout,
    QWidget,
)

from engine.training.record import WATCHED_ROLES, Moment, TrainingRecord
from gui.theme import Theme
from gui.training.figures import (
    HeadAt,
    from_zero,
    head_wordings,
    head_words,
    loss_points,
    loss_wordings,
    loss_words,
    repeat_points,
    score_points,
    share_axis,
    step_axis,
    strongest,
)
from gui.widgets.curves import Axis, CurveChart, Floats, Points, Series
from gui.widgets.fitting_label import FittingLabel, font_of
from gui.widgets.held_text import held
from gui.widgets.matrix_view import MatrixView
from gui.widgets.token_text import display
from gui.widgets.user_slider import UserSlider

_SAMPLE_LINES = 4
_SHOWN = Series("shown", "accent", "line")
_NO_LOOK = "The first look comes when the model has been built."


class TrainingView(QWidget):
    """Draws a record at the look that the slider stands at; the newest, as long as it does.

    The head is chosen here too: one of the model's, or whichever is strongest in a role.
    """

    moved = Signal()  # another look is shown

    def __init__(self) -> None:
        super().__init__()
        self._record: TrainingRecord | None = None
        self._steps = 1
        self._at: int | None = None  # None: the newest look
        self._grid_of_heads = (0, 0)
        self._drawn: tuple[TrainingRecord, int, HeadAt] | None = None
        losses = (
            Series("each step", "line", "line"),
            Series("training", "text_dim", "line"),
            Series("held out", "text", "dots"),
            _SHOWN,
        )
        roles = (
            Series("induction", "text", "line"),
            Series("previous token", "text_dim", "dashes"),
            _SHOWN,
        )
        repeats = (
            Series("second time", "text", "line"),
            Series("first time", "text_dim", "dashes"),
            _SHOWN,
        )
        self.loss_chart = CurveChart(("loss, nats per token", "loss, nats", "loss"), "step", losses)
        self.role_chart = CurveChart(
            ("share of the weight, strongest head", "strongest head", "role"), "step", roles
        )
        self.repeat_chart = CurveChart(
            ("loss on a passage that comes twice", "a passage twice", "nats"), "step", repeats
        )
        self._charts = (self.loss_chart, self.role_chart, self.repeat_chart)
        self.losses = FittingLabel(name="Losses at this look")
        self.losses.set_max_lines(2)
        self.head = QComboBox()
        self.head.setAccessibleName("Head that is drawn")
        self.head.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self.head.setToolTip("Which head is drawn: one of the model's, or the strongest in a role.")
        self.head.activated.connect(lambda _row: self._draw_head())
        self.heading = FittingLabel(name="The head that is drawn", fills=True)
        self.map = MatrixView()
        self.map.setAccessibleName("Where the head looks, on a held-out passage and its copy")
        self.map.cell_clicked.connect(self.map.set_cell)
        self.map.cell_requested.connect(self.map.set_cell)
        self.sample = QPlainTextEdit(readOnly=True)
        self.sample.setAccessibleName("What the model writes at this look")
        self.sample.setTabChangesFocus(True)
        self._sample_title = QLabel("It writes:")
        self._sample_title.setTextFormat(Qt.TextFormat.PlainText)
        self.slider = UserSlider()
        self.slider.setAccessibleName("Looks at the model during its training")
        self.slider.setPageStep(5)
        self.slider.chosen.connect(self._go_to)
        self.where = FittingLabel(name="The look that is shown")
        self._lay_out()

    def _lay_out(self) -> None:
        self._left, self._right = QVBoxLayout(), QVBoxLayout()
        for chart, share in zip(self._charts, (3, 2, 2), strict=True):
            self._left.addWidget(chart, share)
        self._left.addWidget(self.losses)
        self._choice = QHBoxLayout()
        self._choice.addWidget(self.head)
        self._choice.addStretch(1)
        self._right.addLayout(self._choice)
        self._right.addWidget(self.heading)
        self._right.addWidget(self.map, 1)
        self._right.addWidget(self._sample_title)
        self._right.addWidget(self.sample)
        self._scrub = QHBoxLayout()
        self._scrub.addWidget(self.slider, 1)
        self._scrub.addWidget(self.where)
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.addLayout(self._left, 0, 0)
        self._grid.addLayout(self._right, 0, 1)
        self._grid.addLayout(self._scrub, 1, 0, 1, 2)
        self._grid.setRowStretch(0, 1)
        self._grid.setColumnStretch(0, 1)
        self._grid.setColumnStretch(1, 1)

    def set_theme(self, theme: Theme) -> None:
        """Draw in another look."""
        for chart in self._charts:
            chart.set_theme(theme)
        self.map.set_theme(theme)
        for label in (self.losses, self.where):
            label.set_look(theme, theme.text)
        self.heading.set_look(theme, theme.text, bold=True)
        for widget in (self.sample, self.head, self._sample_title):
            widget.setFont(font_of(self, theme.font_body))
        margins = 2 * self.sample.frameWidth() + 2 * round(self.sample.document().documentMargin())
        lines = _SAMPLE_LINES * self.sample.fontMetrics().lineSpacing()
        self.sample.setFixedHeight(lines + margins)
        for layout in (self._left, self._right, self._choice, self._scrub):
            layout.setSpacing(theme.unit)
        self._grid.setHorizontalSpacing(3 * theme.unit)
        self._grid.setVerticalSpacing(theme.unit)
        self.where.setMinimumWidth(round(16 * theme.font_body))

    # Showing

    def show_record(self, record: TrainingRecord | None, steps: int, *, is_other: bool) -> None:
        """Draw a record of a training of so many steps; `is_other`: not the run shown before."""
        if is_other:
            self._at = None
            self._drawn = None
        self._record, self._steps = record, steps
        self._fill_heads()
        self._draw()

    @property
    def moment(self) -> Moment | None:
        """The look that is shown."""
        if self._record is None or not self._record.moments:
            return None
        return self._record.moments[self._index]

    @property
    def shown_head(self) -> HeadAt | None:
        """The head that is drawn."""
        moment = self.moment
        if moment is None:
            return None
        data: str | HeadAt = self.head.currentData()
        if isinstance(data, str):
            role = [str(each) for each in WATCHED_ROLES].index(data)
            return strongest(moment, role) or (0, 0)
        return data

    @property
    def _index(self) -> int:
        n_moments = len(self._record.moments) if self._record is not None else 0
        return n_moments - 1 if self._at is None else min(self._at, n_moments - 1)

    def _go_to(self, index: int) -> None:
        n_moments = len(self._record.moments) if self._record is not None else 0
        self._at = None if index >= n_moments - 1 else index
        self._draw()
        self.moved.emit()

    def _fill_heads(self) -> None:
        """Offer all heads of the model, keeping the choice where that is possible."""
        moments = self._record.moments if self._record is not None else ()
        n_layer, n_head = moments[0].patterns.shape[:2] if moments else (0, 0)
        if (n_layer, n_head) == self._grid_of_heads:
            return
        self._grid_of_heads = (n_layer, n_head)
        chosen = self.head.currentText()
        self.head.clear()
        if moments:
            for role in reversed(WATCHED_ROLES):
                self.head.addItem(f"Strongest {role}", role)
            for layer in range(n_layer):
                for head in range(n_head):
                    self.head.addItem(f"Layer {layer}, head {head}", (layer, head))
            self.head.setCurrentIndex(max(0, self.head.findText(chosen)))

    def _draw(self) -> None:
        record, moment = self._record, self.moment
        self.head.setEnabled(moment is not None)
        self.slider.setEnabled(moment is not None)
        if record is None or moment is None:
            self._draw_nothing()
            return
        n_moments = len(record.moments)
        self.slider.show_value(self._index, 0, n_moments - 1)
        where = f"look {self._index + 1} of {n_moments}: step {moment.step:,}"
        self.where.set_wordings(where, f"step {moment.step:,}")
        self.slider.setAccessibleDescription(where)
        self.losses.set_wordings(*loss_wordings(record, moment))
        self._draw_charts(record, moment)
        self._draw_head()
        sample = held(moment.sample)
        if self.sample.toPlainText() != sample:
            self.sample.setPlainText(sample)

    def _draw_nothing(self) -> None:
        self.slider.show_value(0, 0, 0)
        self.where.set_wordings("")
        self.losses.set_wordings("")
        self.heading.set_wordings("")
        self.map.set_empty(_NO_LOOK)
        self.sample.setPlainText("")
        nothing = np.empty(0), np.empty(0)
        for chart in self._charts:
            points = (nothing,) * len(chart.series)
            chart.show_points(points, step_axis(self._steps), share_axis(), _NO_LOOK)
        self._drawn = None

    def _draw_charts(self, record: TrainingRecord, moment: Moment) -> None:
        x = step_axis(self._steps)
        each, mean, held_out = loss_points(record)
        y = from_zero((each, mean, held_out))
        shown = (each, mean, held_out, _at(moment.step, y))
        self.loss_chart.show_points(shown, x, y, loss_words(record, moment))
        previous, induction = (score_points(record, role) for role in range(len(WATCHED_ROLES)))
        y = share_axis()
        self.role_chart.show_points(
            (induction, previous, _at(moment.step, y)), x, y, _role_words(moment)
        )
        first, second = repeat_points(record)
        y = from_zero((first, second))
        self.repeat_chart.show_points(
            (second, first, _at(moment.step, y)), x, y, loss_words(record, moment)
        )

    def _draw_head(self) -> None:
        record, moment, at = self._record, self.moment, self.shown_head
        if record is None or moment is None or at is None:
            return
        self.heading.set_wordings(*head_wordings(moment, at))
        drawn = (record, moment.step, at)
        if self._drawn is not None and self._is_same(drawn):
            return
        self._drawn = drawn
        labels = tuple(map(display, record.tokens))
        self.map.set_matrix(moment.patterns[at], record.visible, labels, labels)
        self.map.setAccessibleDescription(head_words(moment, at))

    def _is_same(self, drawn: tuple[TrainingRecord, int, HeadAt]) -> bool:
        """Whether the map shows this already; a record that grew has the same looks."""
        if self._drawn is None or self._drawn[1:] != drawn[1:]:
            return False
        return self._drawn[0].token_ids == drawn[0].token_ids


def _at(step: int, y: Axis) -> Points:
    """An upright line where the look is."""
    x: Floats = np.array([step, step], np.float64)
    return x, np.array([y.low, y.high])


def _role_words(moment: Moment) -> str:
    """The strongest head in each role at a look."""
    parts = []
    for number, role in reversed(list(enumerate(WATCHED_ROLES))):
        at = strongest(moment, number)
        if at is not None:
            score = moment.roles[number][at]
            parts.append(f"{role}: layer {at[0]}, head {at[1]} with {score:.2f}")
    return f"Strongest heads at step {moment.step:,}: {'; '.join(parts) or 'none'}."
