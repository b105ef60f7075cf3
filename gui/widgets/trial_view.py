"""One trial of the leak pair: a head's heatmap, the mean loss, and what the model writes."""

from math import isnan

import numpy as np
from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QFrame, QPlainTextEdit, QVBoxLayout, QWidget

from engine.experiments.records import Trial
from gui.theme import Theme
from gui.widgets.fitting_label import FittingLabel, font_of
from gui.widgets.head_view import Cell
from gui.widgets.pair_matrix import PairMatrix

_TALL = 0.7  # times the width
NO_ROOM = "The text fills all that this model sees: there is no room to go on."
_WRITTEN_EMS = 13  # of width that the continuation needs


def loss_words(nats: float) -> str:
    """A mean loss as it is read out: 3.24, 0.0001 where it is next to nothing, — without one."""
    if isnan(nats):
        return "—"
    return f"{nats:.2f}" if not nats < 0.01 else f"{nats:.1g}"


class BareMatrix(PairMatrix):
    """A heatmap whose title and numbers stand elsewhere."""

    def minimumSizeHint(self) -> QSize:
        """Small enough for five in a row, above their figures."""
        return QSize(6, 5) * self._theme.font_axis

    def _header(self) -> QRectF:
        return QRectF(0, 0, self.width(), self._axis.line / 2)  # of the first label

    def _headline(self, cell: Cell | None) -> str:  # noqa: ARG002
        return ""


class TrialView(QWidget):
    """Owns the heatmap of the head that looks most at the next position, and its words.

    `titles` say which trial it is, in fewer and fewer words.
    """

    def __init__(self, *titles: str) -> None:
        super().__init__()
        self._titles, title = titles, titles[0]
        self.matrix = BareMatrix()
        self.matrix.setAccessibleName(f"Heatmap, {title}")
        self.loss = FittingLabel(name=f"Loss, {title}", fills=True)
        self.written = QPlainTextEdit(readOnly=True)
        self.written.setAccessibleName(f"What is written, {title}")
        self.written.setFrameShape(QFrame.Shape.NoFrame)
        self.written.setTabChangesFocus(True)
        self.written.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._rows = QVBoxLayout(self)
        self._row = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self._rows.setContentsMargins(0, 0, 0, 0)
        self._rows.addWidget(self.loss)
        self._rows.addLayout(self._row, 1)
        self._row.addWidget(self.matrix, 1)
        self._row.addWidget(self.written, 1)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """The words beside the heatmap, or below it in a tall place."""
        super().resizeEvent(event)
        direction = QBoxLayout.Direction
        is_tall = self.height() > _TALL * self.width()
        self._row.setDirection(direction.TopToBottom if is_tall else direction.LeftToRight)
        self._row.setStretch(0, 2 if is_tall else 1)

    def set_theme(self, theme: Theme) -> None:
        """Draw in another look."""
        self.matrix.set_theme(theme)
        self.loss.set_look(theme, theme.text, bold=True)
        self.written.setFont(font_of(self.written, theme.font_body))
        self.written.setMinimumWidth(_WRITTEN_EMS * theme.font_axis // 2)
        self._row.setSpacing(theme.unit)
        self._rows.setSpacing(0)

    def set_trial(self, trial: Trial, labels: tuple[str, ...]) -> None:
        """Show a trial of at least one token."""
        n_tokens = len(labels)
        position = np.arange(n_tokens)
        is_causal = trial.mask == "causal"
        visible = (position[:, None] >= position) if is_causal else np.ones((n_tokens,) * 2, bool)
        self.matrix.set_absent(np.zeros(n_tokens, np.bool_), ())
        self.matrix.set_matrix(trial.pattern, visible, labels, labels)
        nats = loss_words(trial.mean_loss)
        long, short = self._titles[0], self._titles[-1]
        self.written.setPlaceholderText("" if trial.continuation else NO_ROOM)
        self.loss.set_wordings(
            f"{long}: {nats} nats per token", f"{long}: {nats} nats", f"{short}: {nats}"
        )
        self.written.setPlainText(trial.continuation.strip("\n"))

    def set_empty(self, sentence: str) -> None:
        """Show a sentence instead."""
        self.matrix.set_empty(sentence)
        self.loss.set_wordings("")
        self.written.setPlainText("")
        self.written.setPlaceholderText("")

    def set_stale(self, is_stale: bool) -> None:  # noqa: FBT001 - as the heatmap's
        """Dim what is shown while the next is on its way."""
        self.matrix.set_stale(is_stale)
        self.written.setEnabled(not is_stale)
