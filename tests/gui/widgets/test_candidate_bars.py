"""The list of candidates: the whole vocabulary, honest numbers, keys and clicks."""

import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from PySide6.QtCore import QPoint, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont
from pytestqt.qtbot import QtBot

from engine.sampling import Sampling, stages
from gui.theme import THEMES, Theme
from gui.widgets.candidate_bars import CandidateBars, Columns
from gui.widgets.candidate_text import (
    Candidates,
    cross_entropy,
    number,
    percent,
    probability,
)
from gui.widgets.lettering import Lettering, with_runs_counted
from gui.widgets.token_text import display
from tests.gui.picture_facts import colours

LEFT = Qt.MouseButton.LeftButton
BIG = 50_000
HOSTILE = [
    b"",
    b" ",
    b"\n\n\n",
    b"\x00",
    b"\xed\xa0\x80",
    b"\xe2\x82",
    "👨\u200d👩\u200d👧".encode(),
    "שלום".encode(),
    "\u202eabc".encode(),
    "\u0301".encode(),
    b"<b>bold</b>&amp;<img src=x>",
    b"x" * 10_000,
]


def candidates(
    logits: NDArray[np.floating], vocabulary: list[bytes] | None = None, **fields: object
) -> Candidates:
    """These logits under the sampling fields; the rest goes to `Candidates`."""
    names = {"temperature", "top_k", "top_p", "seed"}
    sampling = Sampling(**{name: fields.pop(name) for name in names & fields.keys()})  # type: ignore[arg-type]
    words = [f"w{i}".encode() for i in range(len(logits))] if vocabulary is None else vocabulary
    return Candidates(stages(logits, sampling), sampling, words, **fields)  # type: ignore[arg-type]


def softmax(logits: NDArray[np.floating]) -> NDArray[np.float64]:
    """The textbook's, good enough for small logits."""
    powers = np.exp(np.asarray(logits, np.float64))
    return np.asarray(powers / powers.sum())


def assert_right(said: str, value: float) -> None:
    """A percentage is right to the last digit that it shows."""
    shown = float(said.strip("<> %"))
    if said[0] == "<":
        assert 100 * value <= shown
    elif said[0] == ">":
        assert 100 * value > shown
    else:
        last = 0.1 if 100 * value >= 0.1 else 10 ** np.floor(np.log10(shown or 1))
        assert abs(shown - 100 * value) <= 0.501 * last


def centre(bars: CandidateBars, row: int) -> QPoint:
    """The middle of a row."""
    return bars.row_place(row).center().toPoint()


@pytest.fixture
def logits() -> NDArray[np.float64]:
    """Fifty thousand random ones."""
    return np.random.default_rng(0).normal(0, 3, BIG)


@pytest.fixture
def bars(qtbot: QtBot) -> CandidateBars:
    """A shown list with the keys."""
    widget = CandidateBars()
    qtbot.addWidget(widget)
    widget.resize(360, 260)
    widget.show()
    widget.setFocus()
    return widget


@pytest.fixture
def chosen(bars: CandidateBars) -> list[int]:
    """What the list told of, in order."""
    told: list[int] = []
    bars.chosen.connect(told.append)
    return told


def test_rows_say_rank_token_probability_and_id(
    bars: CandidateBars, logits: NDArray[np.float64]
) -> None:
    """Every tenth rank of the first thousand, against a softmax written here."""
    bars.set_candidates(candidates(logits, temperature=0.5))
    probs = softmax(logits / 0.5)
    by_rank = sorted(range(BIG), key=lambda token_id: -probs[token_id])
    for row in range(0, 1000, 10):
        token_id = by_rank[row]
        rank, token, remark, share, shown_id = bars.texts(row)
        assert (rank, token, remark) == (f"{row + 1:,}", f"w{token_id}", "")
        assert shown_id == str(token_id)
        assert_right(share, float(probs[token_id]))


def test_the_whole_vocabulary_can_be_scrolled(
    qtbot: QtBot, bars: CandidateBars, logits: NDArray[np.float64]
) -> None:
    """End shows the least probable of 50,000 tokens, Home the most probable; few rows are drawn."""
    bars.set_candidates(candidates(logits))
    qtbot.keyClick(bars, Qt.Key.Key_End)
    assert bars.current_id == int(logits.argmin())
    assert bars.rows_in_sight()[-1] == BIG - 1
    assert len(bars.rows_in_sight()) < 20
    bars.grab()
    qtbot.keyClick(bars, Qt.Key.Key_Home)
    assert bars.current_id == int(logits.argmax())
    assert bars.rows_in_sight()[0] == 0
    for step in range(0, bars.verticalScrollBar().maximum(), 40_009):
        bars.verticalScrollBar().setValue(step)
        bars.grab()


def test_keys_move_and_enter_chooses(
    qtbot: QtBot, bars: CandidateBars, logits: NDArray[np.float64], chosen: list[int]
) -> None:
    """Down twice, Up once, a page down and up again, Enter: the second most probable token."""
    bars.set_candidates(candidates(logits))
    for key in (Qt.Key.Key_Down, Qt.Key.Key_Down, Qt.Key.Key_Up):
        qtbot.keyClick(bars, key)
    qtbot.keyClick(bars, Qt.Key.Key_PageDown)
    assert bars.texts(0)[4] != str(bars.current_id)
    qtbot.keyClick(bars, Qt.Key.Key_PageUp)
    assert chosen == []
    qtbot.keyClick(bars, Qt.Key.Key_Return)
    assert chosen == [int(np.argsort(-logits)[1])]


def test_moving_beyond_the_ends_stays_there(
    qtbot: QtBot, bars: CandidateBars, logits: NDArray[np.float64]
) -> None:
    """Up at the top and Down at the bottom change nothing."""
    bars.set_candidates(candidates(logits))
    qtbot.keyClick(bars, Qt.Key.Key_Up)
    assert bars.current_id == int(logits.argmax())
    qtbot.keyClick(bars, Qt.Key.Key_End)
    qtbot.keyClick(bars, Qt.Key.Key_Down)
    assert bars.current_id == int(logits.argmin())


@pytest.mark.parametrize("columns", ["bars", "stages"])
def test_a_click_chooses_the_row_under_it(
    qtbot: QtBot,
    bars: CandidateBars,
    logits: NDArray[np.float64],
    chosen: list[int],
    columns: Columns,
) -> None:
    """The fourth row, after scrolling three rows down, is rank 7 to the click and to numpy."""
    bars.set_candidates(candidates(logits))
    bars.set_columns(columns)
    bars.verticalScrollBar().setValue(3 * bars.verticalScrollBar().singleStep())
    qtbot.mouseClick(bars.viewport(), LEFT, pos=centre(bars, 6))
    assert chosen == [int(np.argsort(-logits)[6])]


def test_a_press_that_ends_elsewhere_chooses_nothing(
    qtbot: QtBot, bars: CandidateBars, logits: NDArray[np.float64], chosen: list[int]
) -> None:
    """Dragging off a row takes the click back; the header is no row."""
    bars.set_candidates(candidates(logits))
    qtbot.mousePress(bars.viewport(), LEFT, pos=centre(bars, 0))
    qtbot.mouseRelease(bars.viewport(), LEFT, pos=centre(bars, 2))
    qtbot.mouseClick(bars.viewport(), LEFT, pos=QPoint(20, 2))
    qtbot.mouseClick(bars.viewport(), Qt.MouseButton.RightButton, pos=centre(bars, 2))
    assert chosen == []


def test_hovering_explains_without_moving_the_keyboard(
    qtbot: QtBot, bars: CandidateBars, logits: NDArray[np.float64]
) -> None:
    """The row under the pointer is pointed at; Enter still means the current one."""
    bars.set_candidates(candidates(logits))
    order = np.argsort(-logits)
    with qtbot.waitSignal(bars.pointed) as pointed:
        qtbot.mouseMove(bars.viewport(), centre(bars, 3))
    assert pointed.args == [int(order[3])]
    assert (bars.pointed_id, bars.current_id) == (int(order[3]), int(order[0]))


@pytest.mark.parametrize("width", [320, 700])
@pytest.mark.parametrize("theme", THEMES.values(), ids=lambda theme: theme.name)
def test_a_bar_is_as_long_as_its_probability(bars: CandidateBars, theme: Theme, width: int) -> None:
    """Counted in pixels: the bar is what is drawn from, the line at its foot plain softmax."""
    bars.set_theme(theme)
    bars.resize(width, 260)
    logits = np.log([0.4, 0.3, 0.2, 0.1])
    bars.set_candidates(candidates(logits, [b"."] * 4, temperature=0.5))
    drawn = np.square([0.4, 0.3, 0.2, 0.1]) / 0.3
    assert bars.scale_top == 1.0
    picture = colours(bars.viewport())
    surface = QColor(theme.surface).rgb()
    for row in (1, 2, 3):  # row 0 is framed
        box = bars.bar_place(row)
        line = picture[int(box.top()) + 1, int(box.left()) : int(box.right())]
        length = np.count_nonzero(line != surface)
        assert length == pytest.approx(drawn[row] * box.width(), abs=1.5)
        foot = picture[int(box.bottom()) - 1, int(box.left()) : int(box.right())]
        plain = np.count_nonzero(foot == QColor(theme.text).rgb())
        assert plain == pytest.approx(np.exp(logits[row]) * box.width(), abs=2)


def test_the_scale_is_said_and_round(bars: CandidateBars) -> None:
    """A largest probability of 0.004 is drawn on a scale to 0.5 %."""
    bars.set_candidates(candidates(np.concatenate((np.zeros(299), [0.2]))))
    assert bars.scale_top == 0.005
    assert "0.5 %" in bars.header()


def test_stages_can_be_followed_for_each_candidate(bars: CandidateBars) -> None:
    """Five tokens, T = 0.5, top-k 4, top-p 0.9, each number worked out by hand."""
    bars.resize(520, 260)
    logits = np.log([0.4, 0.3, 0.2, 0.06, 0.04])
    bars.set_candidates(candidates(logits, temperature=0.5, top_k=4, top_p=0.9))
    bars.set_columns("stages")
    assert bars.header() == ["token", "logit", "÷ 0.5", "top-k", "top-p", "p"]
    # Squares 0.16, 0.09, 0.04, 0.0036, 0.0016 of 0.2952; without the last, of 0.2936: 0.545,
    # 0.307, 0.136 reach 0.9 with the third; those three are drawn from 0.29.
    assert bars.texts(0) == ["w0", "−0.92", "0.542", "✓", "✓", "0.552"]
    assert bars.texts(1) == ["w1", "−1.20", "0.305", "✓", "✓", "0.310"]
    assert bars.texts(2) == ["w2", "−1.61", "0.136", "✓", "✓", "0.138"]
    assert bars.texts(3) == ["w3", "−2.81", "0.0122", "✓", "✗", "0"]
    assert bars.texts(4) == ["w4", "−3.22", "0.00542", "✗", "·", "0"]
    bars.set_columns("bars")
    assert [bars.texts(row)[2] for row in range(5)] == ["", "", "", "top-p", "top-k"]
    bars.resize(230, 260)
    bars.set_columns("stages")
    assert bars.header() == ["token", "logit", "÷ 0.5", "kept", "p"]
    assert [bars.texts(row)[3] for row in range(5)] == ["✓", "✓", "✓", "✗ p", "✗ k"]


def test_the_arithmetic_of_one_candidate_is_one_line() -> None:
    """The same five tokens as above, each in a sentence."""
    logits = np.log([0.4, 0.3, 0.2, 0.06, 0.04])
    shown = candidates(logits, temperature=0.5, top_k=4, top_p=0.9)
    assert shown.arithmetic(0) == (
        "logit −0.92 ÷ 0.5 → p 0.542 → top-k keeps 4 of 5 → top-p 0.9 keeps 3 → 0.552"
    )
    assert shown.arithmetic(3) == (
        "logit −2.81 ÷ 0.5 → p 0.0122 → top-k keeps 4 of 5 → top-p 0.9 keeps 3, not this one → 0"
    )
    assert shown.arithmetic(4) == (
        "logit −3.22 ÷ 0.5 → p 0.00542 → top-k keeps 4 of 5, not this one → 0"
    )
    plain = candidates(logits, temperature=1.0)
    assert plain.arithmetic(1) == "logit −1.20 ÷ 1 → p 0.300 → top-k off → top-p off → 0.300"


def test_greedy_takes_the_first_and_removes_the_rest(bars: CandidateBars) -> None:
    """Temperature 0: probability 1 and 0, and the reason is named."""
    shown = candidates(np.array([1.0, 3.0, 2.0]), temperature=0.0, top_p=0.5, top_k=2)
    bars.set_candidates(shown)
    assert [bars.texts(row)[2:4] for row in range(3)] == [
        ["", "100 %"],
        ["greedy", "0 %"],
        ["greedy", "0 %"],
    ]
    assert shown.arithmetic(1) == "logit 3.00 → the largest: greedy takes it → 1"
    assert shown.arithmetic(0) == "logit 1.00 → not the largest: greedy → 0"
    bars.set_columns("stages")
    assert bars.header()[2] == "greedy"


def test_a_temperature_of_one_ten_thousandth_works(bars: CandidateBars) -> None:
    """Nothing overflows, and what is left is certain to every digit shown."""
    bars.set_candidates(candidates(np.array([50.0, 90.0, -70.0]), temperature=0.0001))
    assert bars.texts(0)[1:4] == ["w1", "", "100 %"]
    assert bars.texts(1)[2:4] == ["", "0 %"]
    bars.grab()


def test_what_follows_in_the_text_is_marked(bars: CandidateBars) -> None:
    """With words in its row and, on hovering, with its loss."""
    shown = candidates(np.log([0.5, 0.3, 0.2]), follows=2, loss=-np.log(0.2), temperature=1.0)
    bars.set_candidates(shown)
    assert "in the text" in bars.texts(2)[2]
    assert "follows in the text, loss 1.6094 nats" in shown.tooltip(2)
    assert shown.sentence() == (
        "Most probable: w0 50.0 %, w1 30.0 %, w2 20.0 %. "
        "In the text follows w2 20.0 %, rank 3, loss 1.61 nats."
    )
    assert cross_entropy(np.array([1.0, 2.0, 3.0]), 0) == pytest.approx(
        -np.log(softmax(np.array([1.0, 2.0, 3.0]))[0])
    )


def test_revealing_a_token_scrolls_to_it(bars: CandidateBars, logits: NDArray[np.float64]) -> None:
    """However far down it stands, its row is wholly in sight and current."""
    bars.set_candidates(candidates(logits))
    token_id = int(np.argsort(-logits)[31_415])
    bars.reveal(token_id)
    assert bars.current_id == token_id
    whole = QRectF(bars.viewport().rect())
    assert whole.contains(bars.row_place(31_415).adjusted(0, 0, -1, 0))


def test_other_sampling_keeps_the_place_and_another_text_does_not(
    qtbot: QtBot, bars: CandidateBars, logits: NDArray[np.float64]
) -> None:
    """With equal logits the list stays where it was scrolled to; else it begins at the top."""
    bars.set_candidates(candidates(logits))
    for _ in range(40):
        qtbot.keyClick(bars, Qt.Key.Key_Down)
    place, current = bars.verticalScrollBar().value(), bars.current_id
    assert place > 0
    bars.set_candidates(candidates(logits.copy(), temperature=0.1, top_k=5))
    assert (bars.verticalScrollBar().value(), bars.current_id) == (place, current)
    bars.set_candidates(candidates(-logits))
    assert bars.verticalScrollBar().value() == 0
    assert bars.current_id == int(logits.argmin())


@pytest.mark.parametrize("columns", ["bars", "stages"])
def test_hostile_tokens_are_plain_visible_text(bars: CandidateBars, columns: Columns) -> None:
    """Each is written as `display` writes it, cut to 40 pieces, and can be painted."""
    bars.set_candidates(candidates(np.arange(len(HOSTILE))[::-1] / 2, HOSTILE))
    bars.set_columns(columns)
    at = 1 if columns == "bars" else 0
    for row, token in enumerate(HOSTILE):
        assert bars.texts(row)[at] == display(token, 40)
        assert "\n" not in bars.texts(row)[at]
        assert bars.texts(row)[at].strip()
    bars.grab()


def test_an_id_without_a_text_is_named(bars: CandidateBars) -> None:
    """A model may know more ids than its tokenizer has texts."""
    shown = candidates(np.array([1.0, 2.0]), [b"a"])
    bars.set_candidates(shown)
    assert bars.texts(0)[1] == "‹id 1›"
    assert "has no text" in shown.tooltip(1)
    assert shown.spoken(1).startswith("token 1 ")
    bars.grab()


def test_hovering_tells_every_digit(bars: CandidateBars) -> None:
    """The numbers in the tooltip are the float64 numbers themselves."""
    logits = np.array([0.1, 0.7, -1.3])
    shown = candidates(logits, temperature=0.3)
    bars.set_candidates(shown)
    tip = bars.tooltip_at(QPointF(centre(bars, 0)))
    assert tip == shown.tooltip(1)
    (drawn,) = re.findall(r"drawn with probability (\S+)", tip)
    assert float(drawn) == pytest.approx(softmax(logits / 0.3)[1], rel=1e-12)
    (plain,) = re.findall(r"plain softmax (\S+)", tip)
    assert float(plain) == pytest.approx(softmax(logits)[1], rel=1e-12)
    assert "rank 1 of 3" in tip
    assert "plain softmax" in bars.tooltip_at(QPointF(20, 2))
    assert bars.tooltip_at(QPointF(20, 250)) == ""


@pytest.mark.parametrize("columns", ["bars", "stages"])
@pytest.mark.parametrize("theme", THEMES.values(), ids=lambda theme: theme.name)
def test_columns_never_overlap(
    bars: CandidateBars, logits: NDArray[np.float64], theme: Theme, columns: Columns
) -> None:
    """From 300 to 1,200 pixels; only a remark lies in the bar's place, beside the token's text."""
    bars.set_theme(theme)
    bars.set_columns(columns)
    bars.set_candidates(candidates(logits, top_k=3, follows=7))
    for width in range(300, 1200, 37):
        bars.resize(width, 260)
        cells = [cell for cell in bars.cells(5) if cell.text not in {"", "top-k"}]
        for cell, following in pairwise(cells):
            assert cell.span.right <= following.span.left + 0.01
        assert cells[-1].span.right <= bars.viewport().width()
        assert cells[0].span.width > 0


def test_an_empty_list_says_why(qtbot: QtBot, bars: CandidateBars, chosen: list[int]) -> None:
    """One sentence, also for a screen reader; keys and clicks do nothing."""
    bars.set_empty("There is no text yet.")
    for key in (Qt.Key.Key_Return, Qt.Key.Key_Down, Qt.Key.Key_End):
        qtbot.keyClick(bars, key)
    qtbot.mouseClick(bars.viewport(), LEFT, pos=QPoint(100, 100))
    bars.grab()
    assert chosen == []
    assert bars.accessibleDescription() == "There is no text yet."
    assert bars.current_id is None


def test_the_list_is_said_in_words(qtbot: QtBot, bars: CandidateBars) -> None:
    """The three most probable tokens, then the current row, in words."""
    bars.set_candidates(
        candidates(np.log([0.5, 0.3, 0.2]), [b" king", b"\n", b"!"], temperature=1.0)
    )
    qtbot.keyClick(bars, Qt.Key.Key_Down)
    assert bars.accessibleDescription() == (
        "Most probable: space king 50.0 %, newline 30.0 %, exclamation mark 20.0 %. "
        "Current row 2: newline 30.0 %."
    )


def test_stale_candidates_are_dimmed_not_gone(
    bars: CandidateBars, logits: NDArray[np.float64]
) -> None:
    """Ink stays where it was, and all of it is nearer to the ground."""
    bars.set_candidates(candidates(logits))
    fresh = colours(bars.viewport())
    bars.set_stale(True)
    stale = colours(bars.viewport())
    surface = fresh[-1, 0]
    assert ((stale != surface) <= (fresh != surface)).all()
    assert (stale & 0xFF).min() > (fresh & 0xFF).min()


@given(st.floats(0, 1))
def test_a_percentage_never_claims_to_be_none_or_all(value: float) -> None:
    """0 % and 100 % are said of 0 and 1 alone, and what is said is right to its last digit."""
    said = percent(value)
    assert (said == "0 %") == (value == 0)
    assert (said == "100 %") == (value == 1)
    assert_right(said, value)


@given(st.floats(0, 1), st.sampled_from([2, 3]))
def test_a_probability_never_claims_to_be_none_or_all(value: float, digits: int) -> None:
    """The same for the table's numbers."""
    said = probability(value, digits)
    assert (said == "0") == (value == 0)
    assert (said == "1") == (value == 1)
    if said[0].isdigit():
        assert float(said) == pytest.approx(value, rel=0.051)


def test_a_logit_has_a_real_minus() -> None:
    """Two decimals."""
    assert (number(-3.14159), number(2.0)) == ("−3.14", "2.00")


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_a_space_on_a_bar_stands_clear_of_the_line_below_it(
    bars: CandidateBars, theme: Theme
) -> None:
    """Else the line is taken for the foot of the ␣, and one space for two."""
    bars.set_theme(theme)
    bars.resize(320, 260)
    bars.set_candidates(candidates(np.zeros(2), [b" town", b" rain"]))
    assert "token" not in bars.header(), "tokens lie on their bars"
    box = bars.bar_place(1)
    rows = slice(int(box.top()), int(box.bottom()))
    columns = slice(int(box.left()) + 1, int(box.left() + 0.9 * box.width()))
    lines = colours(bars.viewport())[rows, columns][::-1]  # from below
    line, bar = lines[0, -1], lines[8, -1]
    assert line != bar
    above = lines[np.argmax((lines != line).any(axis=1))]  # the first that is not the line
    assert (above == bar).all(), "letters touch the line"


def test_what_follows_in_the_text_is_named_however_narrow_the_list(bars: CandidateBars) -> None:
    """The remark gives way to the token, not the token to the remark."""
    bars.set_candidates(candidates(np.zeros(2), [b" yonder", b" window"], follows=1))
    for width, remark in ((250, "◂"), (420, "◂ in the text")):
        bars.resize(width, 200)
        row = next(row for row in range(2) if bars.told(row) == 1)
        assert bars.texts(row)[1:3] == ["␣window", remark]
        token = bars.cells(row)[1]
        assert bars._bold.width(token.text) <= token.span.width


@pytest.mark.parametrize(
    ("text", "counted"),
    [
        ("⏎␣␣␣␣␣␣␣", "⏎␣×7"),
        ("␣⏎⏎⏎x", "␣⏎×3x"),
        ("␣␣x␣␣", "␣␣x␣␣"),
        ("aaaa", "aaaa"),
        ("", ""),
    ],
)
def test_a_run_of_spaces_that_has_no_room_is_counted(text: str, counted: str) -> None:
    """Cut to ␣␣… four and seven of them would look alike."""
    letters = Lettering(QFont(), 13)
    assert with_runs_counted(text) == counted
    assert letters.elided(text, letters.width(text) + 1) == text
    if counted != text:
        assert letters.elided(text, letters.width(counted) + 1) == counted
