"""The strip of tokens: one chip a token, in their order, each with its state."""

import sys
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QColor, QHelpEvent, QMouseEvent
from PySide6.QtWidgets import QApplication, QToolTip
from pytestqt.qtbot import QtBot

from gui.theme import LIGHT, THEMES, Theme, lookup_table
from gui.widgets.chips import black_or_white, contrast
from gui.widgets.strip_layer import Face, StripLayer
from gui.widgets.token_flow import TokenFlow
from gui.widgets.token_strip import BEFORE_TEXT, EMPTY, TokenStrip
from tests.gui.picture_facts import PaintWatch, is_all_painted

WORDS = [b"To", b" be", b" or", b" not", b" to", b" be"]


@pytest.fixture
def strip(qtbot: QtBot) -> TokenStrip:
    """A shown, empty strip."""
    widget = TokenStrip()
    qtbot.addWidget(widget)
    widget.resize(400, 150)
    widget.show()
    return widget


@pytest.fixture
def clicked(strip: TokenStrip) -> list[int]:
    """The positions that the user wished for."""
    wishes: list[int] = []
    strip.position_clicked.connect(wishes.append)
    return wishes


def show(strip: TokenStrip, tokens: list[bytes], n_fallen_out: int = 0, limit: int = 512) -> None:
    """Show tokens whose ids are ten times their place."""
    strip.set_tokens(tokens, [10 * i for i in range(len(tokens))], n_fallen_out, limit)


def obey(strip: TokenStrip) -> None:
    """Let each wish become the selection, as the program does."""
    strip.position_clicked.connect(strip.set_selected)


def colour_at(strip: TokenStrip, point: QPoint) -> str:
    """The colour of one pixel as #RRGGBB."""
    return strip.viewport().grab().toImage().pixelColor(point).name().upper()


def ground(strip: TokenStrip, position: int) -> str:
    """The colour of a chip, just inside its left edge where no letter is."""
    chip = strip.rect_of(position)
    return colour_at(strip, QPoint(chip.left() + 3, chip.center().y()))


def colours_of(strip: TokenStrip, position: int) -> set[str]:
    """All colours in a chip."""
    chip = strip.rect_of(position)
    picture = strip.viewport().grab(chip).toImage()
    size = [(x, y) for x in range(picture.width()) for y in range(picture.height())]
    return {picture.pixelColor(x, y).name().upper() for x, y in size}


def move_mouse(strip: TokenStrip, point: QPoint) -> None:
    """Move without a button."""
    view = strip.viewport()
    no_button = Qt.MouseButton.NoButton
    where = QPointF(point)
    kind = QMouseEvent.Type.MouseMove
    place = QPointF(view.mapToGlobal(point))
    event = QMouseEvent(kind, where, place, no_button, no_button, Qt.KeyboardModifier.NoModifier)
    QApplication.sendEvent(view, event)


def test_a_click_wishes_for_the_position_under_it(
    qtbot: QtBot, strip: TokenStrip, clicked: list[int]
) -> None:
    """The same word twice is two positions."""
    show(strip, WORDS)
    for position in (5, 1):
        centre = strip.rect_of(position).center()
        qtbot.mouseClick(strip.viewport(), Qt.MouseButton.LeftButton, pos=centre)
    assert clicked == [5, 1]


def test_chips_stand_in_token_order(strip: TokenStrip) -> None:
    """Left to right, then down, also for right-to-left words."""
    tokens = [w.encode() for w in [" שלום", " עולם", " abc", " مرحبا"]] * 6
    show(strip, tokens)
    corners = [strip.rect_of(i).topLeft() for i in range(len(tokens))]
    order = sorted(range(len(tokens)), key=lambda i: (corners[i].y(), corners[i].x()))
    assert order == list(range(len(tokens)))
    assert len({corner.y() for corner in corners}) > 1
    assert all(strip.rect_of(i).right() < 400 for i in range(len(tokens)))


def test_arrow_keys_walk_the_tokens(qtbot: QtBot, strip: TokenStrip, clicked: list[int]) -> None:
    """Right, left, home and end, stopping at both ends."""
    obey(strip)
    show(strip, WORDS)
    for key in ("Home", "Left", "Right", "Right", "Left", "End", "Right"):
        qtbot.keyClick(strip, getattr(Qt.Key, f"Key_{key}"))
    assert clicked == [0, 0, 1, 2, 1, 5, 5]


def test_up_and_down_go_to_the_row_above_and_below(qtbot: QtBot, strip: TokenStrip) -> None:
    """Down and up again is where one was, when rows are alike."""
    obey(strip)
    show(strip, [b" word"] * 60)
    strip.set_selected(3)
    below = next(
        i
        for i in range(60)
        if strip.rect_of(i).top() > strip.rect_of(3).top()
        and strip.rect_of(i).left() == strip.rect_of(3).left()
    )
    wishes: list[int] = []
    strip.position_clicked.connect(wishes.append)
    qtbot.keyClick(strip, Qt.Key.Key_Down)
    qtbot.keyClick(strip, Qt.Key.Key_Up)
    qtbot.keyClick(strip, Qt.Key.Key_Up)
    assert wishes == [below, 3, 3]


def test_other_keys_are_left_to_the_window(qtbot: QtBot, strip: TokenStrip) -> None:
    """A clicker's Page Down steps the model; it does not scroll the strip."""
    show(strip, WORDS * 100)
    strip.verticalScrollBar().setValue(0)
    qtbot.keyClick(strip, Qt.Key.Key_PageDown)
    assert strip.verticalScrollBar().value() == 0


def test_hovering_tells_the_position_once_and_leaving_too(strip: TokenStrip) -> None:
    """Moving within a chip says nothing new."""
    seen: list[int] = []
    left: list[bool] = []
    strip.position_hovered.connect(seen.append)
    strip.hover_left.connect(lambda: left.append(True))
    show(strip, WORDS)
    move_mouse(strip, strip.rect_of(2).center())
    move_mouse(strip, strip.rect_of(2).center() + QPoint(2, 0))
    move_mouse(strip, strip.rect_of(3).center())
    assert (seen, left) == ([2, 3], [])
    assert strip.viewport().cursor().shape() == Qt.CursorShape.PointingHandCursor
    move_mouse(strip, QPoint(390, 145))
    assert (seen, left) == ([2, 3], [True])
    assert strip.viewport().cursor().shape() == Qt.CursorShape.ArrowCursor


def test_the_tooltip_is_plain_text_about_the_token(
    strip: TokenStrip, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Markup in a token is escaped; id, bytes, position, loss and weight are said."""
    shown: list[str] = []
    monkeypatch.setattr(QToolTip, "showText", lambda _pos, text, *_rest: shown.append(text))
    show(strip, [b"a", b"<b>"])
    strip.set_losses([np.nan, 1.0])
    strip.set_row([0.25, 0.75])
    point = strip.rect_of(1).center()
    event = QHelpEvent(QHelpEvent.Type.ToolTip, point, strip.viewport().mapToGlobal(point))
    QApplication.sendEvent(strip.viewport(), event)
    for part in ("&lt;b&gt;", "id 10", "position 1", "3C 62 3E", "0.367879441", "weight 0.75"):
        assert part in shown[0]
    assert "<b>" not in shown[0]


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_loss_colours_the_chips_and_letters_stay_legible(strip: TokenStrip, theme: Theme) -> None:
    """The map's two ends stand under the chips, no loss is no colour, contrast is kept."""
    strip.set_theme(theme)
    show(strip, WORDS[:3])
    strip.set_losses([np.nan, 0.0, 8.0])
    table = lookup_table(theme.loss_map)
    ends = [QColor.fromRgb(int(table[i])) for i in (0, 255)]
    assert ground(strip, 0) == QColor(theme.raised).name().upper()
    assert [ground(strip, i) for i in (1, 2)] == [end.name().upper() for end in ends]
    for colour in (QColor.fromRgb(int(each)) for each in table):
        assert contrast(QColor(black_or_white(colour)), colour) >= 4.5
    strip.set_losses(None)
    assert ground(strip, 2) == QColor(theme.raised).name().upper()


def test_a_weight_stands_as_a_bar_of_its_height(strip: TokenStrip) -> None:
    """Weight 1 is the whole bar, weight ½ half of it, weight 0 nothing."""
    show(strip, WORDS[:3])
    strip.set_row([1.0, 0.5, 0.0])
    picture = strip.viewport().grab().toImage()
    heights = []
    for position in range(3):
        chip = strip.rect_of(position)
        column = range(chip.bottom() + 1, picture.height())
        colours = [picture.pixelColor(chip.center().x(), y).name().upper() for y in column]
        heights.append(colours.count(LIGHT.key))
    assert heights[0] == 2 * heights[1] > 0
    assert heights[2] == 0


def test_what_the_query_may_not_see_is_dimmed(strip: TokenStrip) -> None:
    """Masked keys, and all behind the query, lose their ground."""
    show(strip, WORDS)
    strip.set_selected(3)
    strip.set_row([0, 0.2, 0.3, 0.5], [False, True, True, True])
    assert [ground(strip, i) == LIGHT.raised for i in (0, 1, 2, 4, 5)] == [0, 1, 1, 0, 0]
    assert "may not see" in strip.describe_place(0)
    strip.set_row(None)
    assert ground(strip, 5) == LIGHT.raised


def test_recomputed_chips_flash_and_calm_down(qtbot: QtBot, strip: TokenStrip) -> None:
    """Only the new ones, in the colour and underlined, for a fifth of a second."""
    show(strip, WORDS)
    strip.set_recomputed(4, 6)
    assert ground(strip, 4) == LIGHT.recomputed
    assert LIGHT.text in colours_of(strip, 4)
    assert ground(strip, 3) == LIGHT.raised
    qtbot.waitUntil(lambda: not strip.is_flashing(), timeout=2_000)
    assert ground(strip, 4) == LIGHT.raised


@pytest.mark.parametrize("theme", THEMES.values(), ids=lambda theme: theme.name)
def test_a_flash_leaves_nothing_behind(qtbot: QtBot, strip: TokenStrip, theme: Theme) -> None:
    """Not even half a pixel of the line under a chip, nor where a chip has gone."""
    strip.set_theme(theme)
    show(strip, WORDS[:3])
    short = strip.viewport().grab().toImage()
    show(strip, WORDS)
    whole = strip.viewport().grab().toImage()
    strip.set_recomputed(0, 6)
    assert strip.viewport().grab().toImage() != whole
    qtbot.waitUntil(lambda: not strip.is_flashing(), timeout=2_000)
    assert strip.viewport().grab().toImage() == whole
    show(strip, WORDS[:3])
    assert strip.viewport().grab().toImage() == short


@pytest.mark.parametrize("theme", THEMES.values(), ids=lambda theme: theme.name)
def test_what_the_latest_pass_computed_stays_marked(strip: TokenStrip, theme: Theme) -> None:
    """In colour and by a bar in the upper edge; a legend and the text equivalent say how many."""
    strip.set_theme(theme)
    show(strip, WORDS)
    plain = strip.viewport().grab().toImage()
    strip.set_pass(range(4, 6), 3, marked=False)
    assert strip.viewport().grab().toImage() == plain
    assert "computed by the latest pass" in strip.describe_place(4)
    assert "kept by the latest pass" in strip.describe_place(3)
    strip.set_pass(range(4, 6), 3, marked=True)
    assert [ground(strip, at) == theme.recomputed.upper() for at in range(6)] == [0] * 4 + [1] * 2
    bars = [bar_colour(strip, at, theme) for at in range(6)]
    assert bars == [theme.raised.upper()] * 4 + [theme.text.upper()] * 2
    said = "The latest pass kept 4 rows and computed 2: positions 4 to 5, and threw 3 rows away."
    assert said in strip.accessibleDescription()
    assert [text for *_drawn, text in strip._legend()] == ["computed 2", "kept 4", "thrown away 3"]
    strip.set_pass(range(4, 6), 3, marked=False)
    assert strip.viewport().grab().toImage() == plain
    assert "latest pass" not in strip.accessibleDescription()


def bar_colour(strip: TokenStrip, position: int, theme: Theme) -> str:
    """The colour where a chip's bar is, or would be."""
    chip = strip.rect_of(position)
    return colour_at(strip, QPoint(chip.center().x(), chip.top() + round(theme.stroke) + 1))


@pytest.mark.parametrize("theme", THEMES.values(), ids=lambda theme: theme.name)
@pytest.mark.parametrize("loss", [0.0, 4.0, 8.0])
def test_marks_stand_out_from_the_colours_of_losses(
    strip: TokenStrip, theme: Theme, loss: float
) -> None:
    """The colour is the loss's then, and the bar says what was computed."""
    strip.set_theme(theme)
    show(strip, WORDS)
    strip.set_losses(np.full(6, loss, np.float32))
    before = ground(strip, 5)
    strip.set_pass(range(5, 6), 0, marked=True)
    assert ground(strip, 5) == before == ground(strip, 4)
    bar = QColor(bar_colour(strip, 5, theme))
    assert contrast(bar, QColor(before)) >= 4.5
    assert bar_colour(strip, 4, theme) == before


def test_marks_are_those_of_what_the_model_sees(strip: TokenStrip) -> None:
    """Of six tokens two have fallen out; the pass computed from position 1 on."""
    strip.set_pass(range(1, 9), 0, marked=True)
    show(strip, WORDS, n_fallen_out=2, limit=4)
    assert ground(strip, 0) == LIGHT.raised
    assert [ground(strip, at) for at in (1, 2, 3)] == [LIGHT.recomputed] * 3
    assert "latest pass" not in strip.describe_place(1)
    legend = [text for *_drawn, text in strip._legend()]
    assert legend == ["computed 3", "kept 1", "2 fallen out: the model sees the last 4 tokens"]
    assert "kept 1 rows and computed 3: positions 1 to 3." in strip.accessibleDescription()


def test_a_pass_that_only_cut_the_text_marks_nothing(strip: TokenStrip) -> None:
    show(strip, WORDS[:4])
    strip.set_pass(range(4, 4), 2, marked=True)
    assert [ground(strip, at) for at in range(4)] == [LIGHT.raised] * 4
    said = "The latest pass kept 4 rows and computed 0, and threw 2 rows away."
    assert said in strip.accessibleDescription()


def test_the_legend_leaves_the_last_row_in_reach(strip: TokenStrip) -> None:
    show(strip, WORDS * 20)
    strip.set_pass(range(100, 120), 0, marked=True)
    strip.verticalScrollBar().setValue(strip.verticalScrollBar().maximum())
    assert strip.rect_of(119).bottom() < strip.viewport().height()


def test_an_empty_strip_has_no_legend(strip: TokenStrip) -> None:
    height = strip.height_of(1)
    strip.set_pass(range(0), 7, marked=True)
    assert strip.height_of(1) == height
    assert strip.accessibleDescription() == EMPTY


def test_reduced_motion_does_not_flash(strip: TokenStrip) -> None:
    """Also when it is switched off in the middle of a flash."""
    show(strip, WORDS)
    strip.set_recomputed(0, 6)
    strip.set_motion(False)
    assert not strip.is_flashing()
    strip.set_recomputed(0, 6)
    assert ground(strip, 4) == LIGHT.raised


def test_generated_tokens_differ_in_shape(strip: TokenStrip) -> None:
    """A dotted line stands under them, and the tooltip says it."""
    show(strip, WORDS)
    before = strip.viewport().grab(strip.rect_of(3)).toImage()
    strip.set_generated_from(3)
    assert strip.viewport().grab(strip.rect_of(3)).toImage() != before
    assert "written by the model" in strip.describe_place(3)
    assert "written" not in strip.describe_place(2)


def test_query_and_key_are_framed_differently(strip: TokenStrip) -> None:
    """Accent and key colour; the text equivalent names both."""
    show(strip, WORDS)
    strip.set_selected(3, 1)
    assert LIGHT.accent in colours_of(strip, 3)
    assert LIGHT.key in colours_of(strip, 1)
    said = strip.accessibleDescription()
    assert "The query is position 3: space not." in said
    assert "The key is position 1: space be." in said


def test_fallen_tokens_are_marked_counted_and_cannot_be_chosen(
    qtbot: QtBot, strip: TokenStrip, clicked: list[int]
) -> None:
    """Positions count from the first token that the model sees; the limit is said."""
    show(strip, WORDS, n_fallen_out=2, limit=4)
    assert LIGHT.fallen in colours_of(strip, -1)
    assert "2 fallen out: the model sees the last 4 tokens" in strip.accessibleDescription()
    assert "fallen out" in strip.describe_place(1)
    assert "position 0" in strip.describe_place(2)
    for position in (-1, 0):
        centre = strip.rect_of(position).center()
        qtbot.mouseClick(strip.viewport(), Qt.MouseButton.LeftButton, pos=centre)
    qtbot.keyClick(strip, Qt.Key.Key_Home)
    assert clicked == [0, 0]


def test_what_was_put_before_the_text_is_named_where_the_text_has_fallen_out(
    strip: TokenStrip,
) -> None:
    """It stands before what the model still sees, and takes one of the places."""
    show(strip, [*WORDS[:2], b"<s>", *WORDS[2:]], n_fallen_out=2, limit=5)
    strip.set_prefix(1)
    said = strip.accessibleDescription()
    assert "2 fallen out: the model sees <s> and the last 4 tokens" in said
    assert strip.describe_place(2).endswith(BEFORE_TEXT)
    assert "fallen out: the model sees <s> and the last 4 tokens" in strip.describe_place(1)
    strip.set_generated_from(-2)  # all of the text
    assert "written by the model" not in strip.describe_place(2)
    assert "written by the model" in strip.describe_place(3)


def test_the_line_about_fallen_tokens_leaves_the_last_row_in_reach(strip: TokenStrip) -> None:
    """When the limit alone changes, there is room for the line and for every row."""
    show(strip, WORDS * 20)
    show(strip, WORDS * 20, n_fallen_out=3, limit=117)
    strip.verticalScrollBar().setValue(strip.verticalScrollBar().maximum())
    assert strip.rect_of(116).bottom() < strip.viewport().height()


def test_tokens_of_one_character_touch(strip: TokenStrip) -> None:
    """An emoji in three tokens is one joined chip with three positions."""
    show(strip, [b"a", b"\xf0\x9f", b"\x98", b"\x80", b"b"])
    gaps = [strip.rect_of(i + 1).left() - strip.rect_of(i).right() - 1 for i in range(4)]
    assert gaps[1:3] == [0, 0]
    assert gaps[0] == gaps[3] > 0
    assert "part of 😀" in strip.describe_place(2)


def test_a_character_completed_later_is_joined_then(strip: TokenStrip) -> None:
    """Bytes that stood alone become part of the chip when their rest arrives."""
    show(strip, [b"a", b"\xf0\x9f"])
    assert "part of" not in strip.describe_place(1)
    show(strip, [b"a", b"\xf0\x9f", b"\x98\x80"])
    assert "part of 😀" in strip.describe_place(1)
    show(strip, [b"a", b"\xf0\x9f", b"x"])
    assert "part of" not in strip.describe_place(1)


def test_the_last_token_stays_in_view_as_the_text_grows(strip: TokenStrip) -> None:
    """And so does the selected one when it moves."""
    tokens = WORDS * 50
    show(strip, tokens)
    height = strip.viewport().height()
    for _ in range(30):
        tokens = [*tokens, b" more"]
        show(strip, tokens)
        assert 0 <= strip.rect_of(len(tokens) - 1).top() < height
    strip.set_selected(0)
    assert 0 <= strip.rect_of(0).top() < height


words = st.sampled_from([b"a", b" bb", b" cccccc", b"\xf0\x9f", b"\x98\x80", b"\xe2", b"\n", b""])


@given(st.lists(st.lists(words, max_size=80), min_size=1, max_size=5))
def test_showing_texts_in_turn_is_showing_the_last(qapp: QApplication, texts: list) -> None:  # type: ignore[type-arg]
    """Reusing the common beginning never shows: all chips stand as in a fresh strip."""
    assert qapp is not None
    reused, fresh = TokenStrip(), TokenStrip()
    for strip in (reused, fresh):
        strip.resize(300, 150)
    for text in texts:
        show(reused, text)
    show(fresh, texts[-1])
    last = range(len(texts[-1]))
    fresh.verticalScrollBar().setValue(0)
    reused.verticalScrollBar().setValue(0)
    assert [reused.rect_of(i) for i in last] == [fresh.rect_of(i) for i in last]
    assert [reused.describe_place(i) for i in last] == [fresh.describe_place(i) for i in last]
    for strip in (reused, fresh):
        strip.deleteLater()


@given(
    st.lists(st.tuples(st.integers(1, 60), st.booleans()), min_size=1, max_size=60),
    st.integers(30, 200),
)
def test_rows_hold_all_tokens_and_only_lone_runs_are_too_wide(
    chips: list[tuple[int, bool]], limit: int
) -> None:
    """A greedy paragraph: whoever begins a row would not have fitted into the one before."""
    widths = np.array([width for width, _ in chips])
    joined = np.array([is_joined for _, is_joined in chips])
    joined[0] = False
    flow = TokenFlow()
    flow.lay_out(widths, joined, limit, 4)
    rows = [flow.row(i) for i in range(len(flow))]
    assert [t for start, stop in rows for t in range(start, stop)] == [*range(len(chips))]
    for start, stop in rows:
        ends = [flow.x(t) + int(widths[t]) for t in range(start, stop)]
        one_run = not any(not joined[t] for t in range(start + 1, stop))
        assert ends[-1] <= limit or one_run


@pytest.mark.parametrize(
    "tokens",
    [
        [],
        [b""],
        [b" "],
        [b"\n"] * 40,
        [b"\x00", b"\xed\xa0\x80", b"\xff\xfe", b"\x80"],
        [
            f" {word}".encode()
            for word in ("<b>", "&amp;", "👨\u200d👩\u200d👧", "שלום", "e\u0301" * 50)
        ],
        [b"x" * 100_000, b"\xf0\x9f\x98\x80" * 1_000],
    ],
    ids=["none", "empty", "space", "newlines", "broken", "markup", "huge"],
)
@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_hostile_tokens_are_drawn(strip: TokenStrip, tokens: list[bytes], theme: Theme) -> None:
    """Every text gives a picture and a description; nothing complains."""
    strip.set_theme(theme)
    show(strip, tokens)
    strip.set_row(np.full(len(tokens), 0.5))
    strip.viewport().repaint()
    assert all(strip.describe_place(i) for i in range(len(tokens)))


def test_an_empty_strip_says_so(strip: TokenStrip) -> None:
    """In the picture and to a screen reader."""
    show(strip, [])
    assert strip.accessibleName() == "Tokens"
    assert strip.accessibleDescription() == EMPTY
    picture = strip.viewport().grab().toImage()
    middle = range(picture.height() // 2 - 12, picture.height() // 2 + 12)
    colours = {picture.pixelColor(x, y).name() for x in range(picture.width()) for y in middle}
    assert len(colours) > 2


def test_four_hundred_thousand_tokens_can_be_walked(
    qtbot: QtBot, strip: TokenStrip, clicked: list[int]
) -> None:
    """A pasted megabyte: end, one more token, home."""
    obey(strip)
    tokens = WORDS * 66_667
    show(strip, tokens)
    qtbot.keyClick(strip, Qt.Key.Key_End)
    show(strip, [*tokens, b" more"])
    assert 0 <= strip.rect_of(len(tokens)).top() < strip.viewport().height()
    qtbot.keyClick(strip, Qt.Key.Key_Home)
    assert clicked == [len(tokens) - 1, 0]


def test_only_what_is_in_view_is_painted(
    strip: TokenStrip, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cost of a paint does not grow with the text."""
    painted: list[Face] = []
    paint: Callable[..., None] = StripLayer._draw

    def counted(self: StripLayer, painter: object, face: Face) -> None:
        painted.append(face)
        paint(self, painter, face)

    monkeypatch.setattr(StripLayer, "_draw", counted)
    show(strip, WORDS * 1_000)
    strip.viewport().repaint()
    assert 0 < len(painted) < 100
    painted.clear()
    strip.set_row(np.linspace(0, 1, 5_000))
    strip.viewport().repaint()
    assert painted == []  # bars lie over the chips


def test_repainting_does_not_use_up_none(strip: TokenStrip) -> None:
    """PySide6 6.12 drops a reference to None per call and dies in the end; this must not."""
    show(strip, WORDS, n_fallen_out=1)
    strip.set_selected(3, 2)
    strip.set_row(np.full(5, 0.5))
    before = sys.getrefcount(None)
    for _ in range(2_000):
        strip.viewport().repaint()
    assert before - sys.getrefcount(None) < 500


def test_nothing_of_a_row_that_is_scrolled_away_is_seen(strip: TokenStrip) -> None:
    """Its bars end where the first row in view begins."""
    tokens = WORDS * 40
    show(strip, tokens)
    strip.set_row(np.ones(len(tokens)))
    strip.set_selected(len(tokens) - 1)
    image = strip.viewport().grab().toImage()
    inside = range(3, strip.viewport().width() - 3, 3)  # not the frame of what has the keys
    assert strip.verticalScrollBar().value() > 0
    seen = {image.pixel(x, y) for x in inside for y in range(8)}
    assert QColor(LIGHT.key).rgb() not in seen


@pytest.mark.parametrize("n_before", [6, 60])
def test_while_a_flash_fades_only_its_rows_are_painted_again(
    strip: TokenStrip, qtbot: QtBot, n_before: int
) -> None:
    words = (WORDS * 11)[:n_before]
    show(strip, words)
    strip.set_selected(len(words) - 1)
    show(strip, [*words, b" king"])
    strip.set_row(np.full(len(words) + 1, 0.5, np.float32))
    strip.set_selected(len(words), 2)
    strip.set_recomputed(len(words), len(words) + 1)
    assert is_all_painted(strip)
    watch = PaintWatch(strip.viewport())
    qtbot.waitUntil(lambda: not strip.is_flashing())
    assert is_all_painted(strip)
    row = strip.height_of(2) - strip.height_of(1)
    whole = strip.viewport().width() * strip.viewport().height()
    assert 0 < watch.area <= whole + 4 * row * strip.viewport().width()


TEXTS = st.lists(
    st.sampled_from([b"To", b" be", b" or", "é".encode()[:1], "é".encode()[1:], b"\n"]), min_size=1
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.tuples(TEXTS, st.integers(0, 5), st.integers(0, 30)), min_size=2, max_size=5))
def test_chips_that_are_kept_look_as_if_they_were_drawn_afresh(
    strip: TokenStrip, qtbot: QtBot, shown: list[tuple[list[bytes], int, int]]
) -> None:
    strip.set_motion(False)
    fresh = TokenStrip()
    qtbot.addWidget(fresh)
    fresh.resize(strip.size())
    fresh.set_motion(False)
    fresh.show()
    strip.clearFocus()
    fresh.clearFocus()
    for tokens, n_fallen, generated_from in shown:
        for each in (strip, fresh):
            n_out = min(n_fallen, len(tokens) - 1)
            show(each, tokens, n_out)
            each.set_losses(np.linspace(0, 8, len(tokens) - n_out))
            each.set_generated_from(generated_from)
            computed = range(generated_from // 2, generated_from)
            each.set_pass(computed, n_fallen, marked=n_fallen % 2 == 0)
            each.set_selected(len(tokens) - n_out - 1)
            if each is strip:
                each.grab()
    fresh.verticalScrollBar().setValue(strip.verticalScrollBar().value())
    assert strip.grab().toImage() == fresh.grab().toImage()
