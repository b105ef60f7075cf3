"""Checks: what must hold for every row of every head, measured on the tensors that are shown."""

from dataclasses import dataclass
from typing import ClassVar

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QGridLayout, QLabel

from engine.reading import CacheCheck, Reading
from engine.readouts import Checks
from gui.export.numbers import Table
from gui.export.tables import check_tables
from gui.panels.absence import absence
from gui.panels.base import Figure, Panel
from gui.theme import Theme
from gui.view import View
from gui.widgets.arithmetic_stages import exact
from gui.widgets.check_line import CheckLine
from gui.widgets.fitting_label import font_of, tint
from gui.widgets.verdict import Verdict, verdict_of


@dataclass(frozen=True)
class Answer:
    """One line of the panel."""

    verdict: Verdict
    wordings: tuple[str, ...]  # the longest first
    figure: str
    reason: str
    digits: str = ""  # of the figure, all of them


class ChecksPanel(Panel):
    """Five answers with a shape, words and a figure each; in columns where it is low."""

    name: ClassVar[str] = "checks"

    def __init__(self) -> None:
        super().__init__()
        self.lines = tuple(CheckLine() for _ in range(5))
        for line in self.lines:
            line.setFocusPolicy(Qt.FocusPolicy.TabFocus)
            self.copy_by_key(line)
        self.sentence = QLabel()
        self.sentence.setTextFormat(Qt.TextFormat.PlainText)
        self.sentence.setWordWrap(True)
        self._grid = QGridLayout(self)
        self._n_columns = 0
        self._arrange()

    def draw(self, view: View, _previous: View | None) -> None:
        """Show what was measured, or why nothing was."""
        missing = absence(view, "whether its numbers hold")
        self.sentence.setText(missing)
        self.sentence.setVisible(bool(missing))
        given = () if view.reading is None or missing else answers(view)
        for line in self.lines:
            line.setVisible(bool(given))
        for line, answer in zip(self.lines, given, strict=False):
            line.show_check(
                answer.verdict,
                answer.wordings,
                answer.figure,
                f"{answer.digits}. {answer.reason}" if answer.digits else answer.reason,
                stale=view.state.stale,
            )
        self.setAccessibleDescription(missing or "; ".join(line.text() for line in self.lines))

    def numbers(self, view: View) -> tuple[Table, ...]:
        """What was measured."""
        reading = view.reading
        return () if reading is None else check_tables(reading, view.state.cache_check)

    def figures(self) -> tuple[Figure, ...]:
        """What was measured, with all digits: the line that is pointed at or has the keys first."""
        view = self._drawn
        if view is None or not view.n_tokens:
            return ()
        known = [
            (not (line.underMouse() or line.hasFocus()), at, answer)
            for at, (line, answer) in enumerate(zip(self.lines, answers(view), strict=False))
            if answer.digits
        ]
        return tuple(
            Figure(answer.wordings[0], answer.digits)
            for _rest, _at, answer in sorted(known, key=lambda each: each[:2])
        )

    def _dress(self, theme: Theme) -> None:
        unit = theme.unit
        self._grid.setContentsMargins(2 * unit, unit, 2 * unit, unit)
        self._grid.setVerticalSpacing(unit // 2)
        self._grid.setHorizontalSpacing(4 * unit)
        self.sentence.setFont(font_of(self, theme.font_body))
        tint(self.sentence, theme.text_dim)
        for line in self.lines:
            line.set_theme(theme)
        self._arrange()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Use more columns where one does not fit."""
        super().resizeEvent(event)
        self._arrange()
        self.updateGeometry()  # how low it can be depends on how wide it is

    def minimumSizeHint(self) -> QSize:
        """Two columns, or three where there is room for three."""
        return QSize(self._width(2), self._height(self._n_rows(self._most_columns())))

    def sizeHint(self) -> QSize:
        """As low as it can be: what it says is short."""
        return self.minimumSizeHint()

    def _height(self, n_rows: int) -> int:
        margins, gap = self._grid.contentsMargins(), self._grid.verticalSpacing()
        lines = n_rows * (self.lines[0].sizeHint().height() + gap) - gap
        return margins.top() + lines + margins.bottom()

    def _width(self, n_columns: int) -> int:
        margins, gap = self._grid.contentsMargins(), self._grid.horizontalSpacing()
        widest = max(line.minimumSizeHint().width() for line in self.lines)
        return margins.left() + n_columns * (widest + gap) - gap + margins.right()

    def _n_rows(self, n_columns: int) -> int:
        return -(-len(self.lines) // n_columns)

    def _most_columns(self) -> int:
        return 3 if self._width(3) <= self.width() else 2

    def _arrange(self) -> None:
        """As few columns as the height allows; they are read down, then across."""
        n_columns = 1
        while n_columns < self._most_columns() and (
            self._height(self._n_rows(n_columns)) > self.height()
        ):
            n_columns += 1
        if n_columns == self._n_columns:
            return
        self._n_columns = n_columns
        n_rows = self._n_rows(n_columns)
        for at, line in enumerate(self.lines):
            self._grid.addWidget(line, at % n_rows, at // n_rows)
        self._grid.addWidget(self.sentence, 0, 0, 1, len(self.lines))
        for at in range(len(self.lines) + 1):
            self._grid.setColumnStretch(at, int(at < n_columns))
            self._grid.setRowStretch(at, int(at == n_rows))


def answers(view: View) -> tuple[Answer, ...]:
    """What was measured on the reading that is shown, in words and figures."""
    reading = view.reading
    if reading is None:
        return ()
    return (
        _row_sums(reading.checks),
        _masked(reading),
        _finite(reading.checks),
        *_cache(reading, view.state.cache_check),
    )


def figure(value: float) -> str:
    """A difference in two digits; an exact 0 is told from a small one."""
    return "0" if value == 0 else f"{value:.1e}"


def _row_sums(checks: Checks) -> Answer:
    return Answer(
        verdict_of(checks.row_sum_error <= Checks.TOLERANCE),
        ("rows sum to 1", "row sums 1", "Σ = 1"),
        f"± {figure(checks.row_sum_error)}",
        "The largest |sum of a row's weights − 1| over all heads and rows; "
        f"at most {Checks.TOLERANCE:g} is right.",
        exact(checks.row_sum_error),
    )


def _masked(reading: Reading) -> Answer:
    if reading.conditions.mask == "none":
        reason = "The mask is off, so every query may look at every key."
        return Answer(
            "idle", ("weight above the mask is 0", "masked weight 0", "masked 0"), "no mask", reason
        )
    weight = reading.checks.masked_weight
    side = "above" if reading.conditions.mask == "causal" else "outside"
    return Answer(
        verdict_of(weight == 0),
        (f"weight {side} the mask is 0", "masked weight 0", "masked 0"),
        figure(weight),
        "The largest weight on a key that the mask forbids, over all heads and rows; "
        "only exactly 0 is right.",
        exact(weight),
    )


def _finite(checks: Checks) -> Answer:
    return Answer(
        verdict_of(checks.all_finite),
        ("all numbers finite", "all finite"),
        "yes" if checks.all_finite else "no",
        "No NaN and no infinity in q, k, v, the weights and the final hidden states.",
    )


def _cache(reading: Reading, check: CacheCheck | None) -> tuple[Answer, Answer]:
    what = "The same text once more in one pass without the cache; the largest difference of "
    logits, weights = "the last row's logits", "any weight in the last row of any head"
    return (
        _cached(reading, check, "logits", f"{what}{logits}"),
        _cached(reading, check, "weights", f"{what}{weights}"),
    )


def _cached(reading: Reading, check: CacheCheck | None, part: str, reason: str) -> Answer:
    long = f"cached = full pass: {part}", f"cached = full: {part}"
    words = *long, f"= full: {part}", f"Δ {part}", part
    if not reading.use_cache:
        return Answer("idle", words, "not cached", "The cache is off: a full pass is shown.")
    if not reading.conditions.append_only:
        reason = "Without the mask nothing can be cached: a full pass is shown."
        return Answer("idle", words, "not cached", reason)
    reason = f"{reason}; at most {CacheCheck.TOLERANCE:g} is right."
    if check is None or check.n_tokens != reading.n_tokens:
        return Answer("waiting", words, "checking…", reason)
    value = check.logits if part == "logits" else check.weights
    verdict = verdict_of(value <= CacheCheck.TOLERANCE)
    return Answer(verdict, words, figure(value), reason, exact(value))
