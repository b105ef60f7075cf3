"""The whole vocabulary as a list of bars, or as a table of the stages behind them."""

from typing import Literal, NamedTuple

import numpy as np
from PySide6.QtCore import QRectF, Signal
from PySide6.QtGui import QColor, QPainter

from gui.theme import Theme
from gui.widgets.candidate_columns import bar_columns, stage_columns
from gui.widgets.candidate_text import Candidates, number, percent, probability
from gui.widgets.lettering import CENTRE, LEFT, RIGHT, Lettering
from gui.widgets.row_list import Cell, RowList
from gui.widgets.scales import round_top

Columns = Literal["bars", "stages"]
_MOST_ROWS = 256  # that are kept as they are shown


class _Row(NamedTuple):
    """A candidate as it is shown."""

    token_id: int
    removed: str  # by which stage; "" if by none
    drawn: float  # the probability that is drawn from
    plain: float  # that of the plain softmax
    cells: list[Cell]
    written: list[tuple[Lettering, QColor, Cell]]  # those that have a text, and how


_NO_ROW = _Row(-1, "", 0.0, 0.0, [], [])

FOLLOWS = ("◂ in the text", "◂")  # the shorter one where both the token and this have no room
KEPT, REMOVED, BEFORE = "✓", "✗", "·"  # what a stage did: BEFORE, it had nothing left to do


class CandidateBars(RowList):
    """Every token of the vocabulary, the most probable first; `chosen` tells its id."""

    AIR = 1
    HAS_PAGES = True
    HAS_HAND = True

    pointed = Signal(int)  # token id of the row that is explained now; −1 without rows

    def __init__(self) -> None:
        self._candidates: Candidates | None = None
        self._columns: Columns = "bars"
        self._top = 1.0
        self._rows: dict[int, _Row] = {}  # those that have been in sight
        super().__init__()
        self.setAccessibleName("Candidates for the next token")

    # What to show

    def set_columns(self, columns: Columns) -> None:
        """Draw bars, or the stages as a table."""
        self._columns = columns
        self._lay_out()

    def set_empty(self, sentence: str) -> None:
        """Show a sentence instead of candidates."""
        self._candidates, self._sentence = None, sentence
        self._rows.clear()
        self._rearrange()

    def set_candidates(self, candidates: Candidates) -> None:
        """Show these; the place in the list stays while the logits are the same."""
        before, current_id = self._candidates, self.current_id
        self._candidates, self._sentence = candidates, ""
        self._rows.clear()
        self._top = round_top(candidates.largest)
        stays = before is not None and np.array_equal(
            before.stages.logits, candidates.stages.logits
        )
        self._current = candidates.row(current_id) if stays and current_id is not None else 0
        if not stays:
            self.verticalScrollBar().setValue(0)
        self._rearrange()

    def reveal(self, token_id: int) -> None:
        """Make a token current and scroll to it."""
        if self._candidates is not None:
            self.go_to(self._candidates.row(token_id))

    # What is shown

    @property
    def n_rows(self) -> int:
        """V."""
        return len(self._candidates) if self._candidates is not None else 0

    @property
    def current_id(self) -> int | None:
        """The token id that Enter would choose."""
        row = self.current_row
        return None if row is None else self.told(row)

    @property
    def pointed_id(self) -> int | None:
        """The token id under the pointer, else the current one."""
        row = self.pointed_row
        return None if row is None else self.told(row)

    def bar_place(self, row: int) -> QRectF:
        """The box that a probability at the top of the scale would fill in a row."""
        return self._bar_within(self.row_place(row))

    @property
    def scale_top(self) -> float:
        """The probability at the right end of the bars: a round number."""
        return self._top

    def told(self, row: int) -> int:
        """The token's id."""
        return self._candidates.token_id(row) if self._candidates is not None else -1

    def is_marked(self, row: int) -> bool:
        """The token that follows in the text is."""
        candidates = self._candidates
        return candidates is not None and self._row(row).token_id == candidates.follows

    def _row(self, row: int) -> "_Row":
        """What is written and drawn in a row."""
        known = self._rows.get(row)
        if known is None:
            if len(self._rows) >= _MOST_ROWS:
                self._rows.clear()
            known = self._rows[row] = self._made(row)
        return known

    def _made(self, row: int) -> "_Row":
        candidates = self._candidates
        if candidates is None:
            return _NO_ROW
        token_id = candidates.token_id(row)
        removed = candidates.removed_by(token_id)
        stages = candidates.stages
        drawn, plain = float(stages.probs[token_id]), float(stages.plain_probs[token_id])
        if self._columns == "stages":
            cells = self._stage_cells(candidates, token_id, removed)
        else:
            cells = self._bar_cells(candidates, row, token_id, removed)
        written = self._written(cells, follows=token_id == candidates.follows, removed=removed)
        return _Row(token_id, removed, drawn, plain, cells, written)

    # Texts

    def header_cells(self) -> list[Cell]:
        """Rank, token, the ends of the scale, probability, id; or the stages."""
        candidates = self._candidates
        if candidates is None:
            return []
        if self._columns == "stages":
            temperature = candidates.sampling.temperature
            second = f"÷ {temperature:.12g}" if temperature else "greedy"
            return self._as_stages(["token", "logit", second, "top-k", "top-p", "p"], "kept")
        columns = self._bars
        top = f"{100 * self._top:.12g} %"
        return [
            Cell("rank", columns.rank.inside(-2, -self._theme.unit)),
            *([] if columns.is_on_bar else [Cell("token", columns.token)]),
            Cell("0", columns.bar),
            Cell(top, columns.bar, RIGHT),
            Cell("drawn", columns.share, RIGHT),
            Cell("id", columns.last, RIGHT),
        ]

    def cells(self, row: int) -> list[Cell]:
        """Rank, token, remark, probability, id; or the stages."""
        return self._row(row).cells

    def _bar_cells(
        self, candidates: Candidates, row: int, token_id: int, removed: str
    ) -> list[Cell]:
        columns, inset = self._bars, self._bar_inset
        text, (token, bar) = candidates.text(token_id), self._within_bar
        remark, wide = "", 0.0
        for follows in FOLLOWS if token_id == candidates.follows else ("",):
            remark = " · ".join(filter(None, (follows, removed)))
            wide = self._axis.width(remark) + inset if remark and columns.is_on_bar else 0
            if wide + self._bold.width(text) <= token.width:
                break
        return [
            Cell(f"{row + 1:,}", columns.rank, RIGHT),
            Cell(text, token.inside(0, wide) if wide else token),
            Cell(remark, bar, RIGHT),
            Cell(percent(float(candidates.stages.probs[token_id])), columns.share, RIGHT),
            Cell(str(token_id), columns.last, RIGHT),
        ]

    def _stage_cells(self, candidates: Candidates, token_id: int, removed: str) -> list[Cell]:
        stages = candidates.stages
        by_k = {"greedy": BEFORE, "top-k": REMOVED}.get(removed, KEPT)
        by_p = {"greedy": BEFORE, "top-k": BEFORE, "top-p": REMOVED}.get(removed, KEPT)
        kept = {"greedy": BEFORE, "": KEPT}.get(removed, f"{REMOVED} {removed[-1:]}")
        digits = 2 if self._stages.is_short else 3
        texts = [
            candidates.text(token_id),
            number(stages.logits[token_id]),
            probability(float(stages.scaled_probs[token_id]), digits),
            by_k,
            by_p,
            probability(float(stages.probs[token_id]), digits),
        ]
        return self._as_stages(texts, kept)

    def _as_stages(self, texts: list[str], kept: str) -> list[Cell]:
        """Six texts in their columns; where there are five, `kept` stands for two of them."""
        if self._stages.is_short:
            texts = [*texts[:3], kept, texts[5]]
        middle = [CENTRE] * (len(texts) - 4)
        aligns = [LEFT, RIGHT, RIGHT, *middle, RIGHT]
        return [Cell(*each) for each in zip(texts, self._stages.spans, aligns, strict=True)]

    def spoken(self, row: int) -> str:
        """A candidate in words."""
        return self._candidates.spoken(self.told(row)) if self._candidates is not None else ""

    def described(self, row: int) -> str:
        """The most probable candidates in words, and the current row."""
        said = self._candidates.sentence() if self._candidates is not None else ""
        return f"{said} Current row {row + 1:,}: {self.spoken(row)}."

    def help(self) -> str:
        """What the columns mean."""
        return _HELP[self._columns]

    def tooltip(self, row: int) -> str:
        """A candidate's exact numbers."""
        return self._candidates.tooltip(self.told(row)) if self._candidates is not None else ""

    # Pointing

    def _hover(self, row: int | None) -> None:
        if row != self._hovered:
            super()._hover(row)
            self._say_pointed()

    def _tell(self) -> None:
        super()._tell()
        self._say_pointed()

    def _say_pointed(self) -> None:
        pointed = self.pointed_id
        self.pointed.emit(-1 if pointed is None else pointed)

    # Places

    def foot(self, theme: Theme) -> int:
        """For the line at a bar's foot."""
        return round(theme.stroke)

    def _take_theme(self, theme: Theme) -> None:
        super()._take_theme(theme)
        self._bold = Lettering(self.font(), theme.font_body, bold=True)
        self._struck = Lettering(self.font(), theme.font_body)
        self._struck.font.setStrikeOut(True)
        self._good, self._bad = QColor(theme.good), QColor(theme.bad)
        self._fill = QColor(theme.text_dim)
        self._fill.setAlphaF(0.38)
        self._mark = self._ink
        self._inset = max(2.0, theme.unit / 2)  # of a bar in its row
        self._thick = max(2.0, theme.stroke)  # the line at its foot

    def place_columns(self, width: float) -> None:
        """Those of the bars, and those of the stages."""
        self._rows.clear()
        self._bars = bar_columns(width, self._theme, self._axis, self._body, self.n_rows)
        self._stages = stage_columns(width, self._theme, self._axis, self._body)
        inset = self._bar_inset = self._theme.unit if self._bars.is_on_bar else 0
        # Off the line at the bar's foot, which would be taken for the foot of a ␣.
        is_above = self._columns == "bars" and self._bars.is_on_bar
        self._rise = self._thick if is_above else 0.0
        self._within_bar = self._bars.token.inside(inset, inset), self._bars.bar.inside(0, inset)

    def _bar_within(self, place: QRectF) -> QRectF:
        bar, inset = self._bars.bar, self._inset
        return QRectF(bar.left, place.top() + inset, bar.width, place.height() - 2 * inset)

    # Drawing

    def _written(
        self, cells: list[Cell], *, follows: bool, removed: str
    ) -> list[tuple[Lettering, QColor, Cell]]:
        """Token and probability stand out, unless a stage removed them."""
        has_bars = self._columns == "bars"
        token_at, final_at = (1, 3) if has_bars else (0, len(cells) - 1)
        letters, inks = [self._axis] * len(cells), [self._dim] * len(cells)
        letters[token_at] = self._bold if follows else self._body
        if has_bars:
            letters[final_at] = self._body
        if removed:
            letters[token_at] = self._struck
        else:
            inks[token_at] = inks[final_at] = self._ink
        if not has_bars:
            for column, cell in enumerate(cells):
                if cell.align == CENTRE and cell.text != BEFORE:
                    inks[column] = self._good if cell.text == KEPT else self._bad
        return [each for each in zip(letters, inks, cells, strict=True) if each[2].text]

    def paint_texts(self, painter: QPainter, row: int, place: QRectF) -> None:
        """Write what was found out once."""
        middle = place.center().y() - self._rise
        for letters, ink, (text, (left, width), align) in self._row(row).written:
            painter.setPen(ink)
            letters.draw_across(painter, left, width, middle, text, align)

    def paint_bars(self, painter: QPainter, row: int, place: QRectF) -> None:
        """What is drawn from as a bar, the plain softmax as a line at its foot."""
        if self._columns == "stages":
            return
        shown, (left, width) = self._row(row), self._bars.bar
        top, height = place.top() + self._inset, place.height() - 2 * self._inset
        drawn, plain = shown.drawn / self._top * width, shown.plain / self._top * width
        painter.fillRect(QRectF(left, top, drawn, height), self._fill)
        thick, bottom = self._thick, top + height
        painter.fillRect(QRectF(left, bottom - thick, plain, thick), self._ink)
        if plain >= 1 and not self._bars.is_on_bar:
            tick = QRectF(left + plain - 1, top + height / 2, 1, height / 2)
            painter.fillRect(tick, self._ink)


_HELP: dict[Columns, str] = {
    "bars": (
        "Bar: the probability that is drawn from.\n"
        "Line at its foot: the plain softmax of the logits, before temperature, top-k and top-p.\n"
        "Click a row, or press Enter on it, to go on with that token."
    ),
    "stages": (
        "logit: the model's score\n"
        "÷: softmax of the logits divided by the temperature\n"
        "top-k, top-p: ✓ kept, ✗ removed here, · removed before\n"
        "p: what is drawn from, adding up to 1 again"
    ),
}
