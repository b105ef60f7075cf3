"""The prompt editor keeps what is written to the letter, and draws tokens under it."""

import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PySide6.QtCore import QMimeData, Qt
from PySide6.QtGui import QColor, QInputMethodEvent, QTextCursor
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from gui.theme import LIGHT, THEMES, Theme
from gui.widgets.held_text import Places, held, told
from gui.widgets.prompt_edit import PLACEHOLDER, PromptEdit, TokenState
from tests.gui.picture_facts import PaintWatch, is_all_painted

HOSTILE = [
    "",
    " ",
    "\n\n\n",
    "a\x00b",
    "\ud800 lone \udfff\ud800",
    "\ud83d\ude00",
    "👨\u200d👩\u200d👧 🏳️\u200d🌈",
    "שלום hello مرحبا",
    "e\u0301\u0301 \u0301",
    "a\u00a0b\u2028c\u2029d\rE\r\nf",
    "\ufeffbom\ufdd0\ufdd1",
    "<b>bold</b> &amp; <img src=x>",
    "\tA\tB\x1b\x7f\x85",
    "x" * 10_000,
    ("word " * 3_000) + "\n" + "😀" * 5_000,
]


@pytest.fixture
def edit(qtbot: QtBot) -> PromptEdit:
    """A shown editor with the caret in it."""
    widget = PromptEdit()
    qtbot.addWidget(widget)
    widget.resize(600, 120)
    widget.show()
    widget.setFocus()
    return widget


@pytest.fixture
def edits(edit: PromptEdit) -> list[str]:
    """What the editor told of, in order."""
    told_of: list[str] = []
    edit.text_edited.connect(told_of.append)
    return told_of


def compose(edit: PromptEdit, preedit: str, commit: str = "") -> None:
    """What an input method sends."""
    event = QInputMethodEvent(preedit, [])
    event.setCommitString(commit)
    QApplication.sendEvent(edit, event)


def paste(edit: PromptEdit, text: str) -> None:
    """Ctrl+V without a clipboard."""
    data = QMimeData()
    data.setText(text)
    data.setHtml("<b>not this</b>")
    edit.insertFromMimeData(data)


def caret_to(edit: PromptEdit, position: int) -> None:
    """Put the caret at a UTF-16 position."""
    cursor = edit.textCursor()
    cursor.setPosition(position)
    edit.setTextCursor(cursor)


def test_each_key_tells_the_whole_text(qtbot: QtBot, edit: PromptEdit, edits: list[str]) -> None:
    """Three keys, three texts."""
    qtbot.keyClicks(edit, "To ")
    assert edits == ["T", "To", "To "]
    assert edit.text() == "To "


def test_showing_a_text_is_not_an_edit(edit: PromptEdit, edits: list[str]) -> None:
    """What the program shows does not come back as a wish."""
    edit.show_text("To be")
    edit.show_text("To be or")
    edit.show_text("")
    assert edits == []


@pytest.mark.parametrize("text", HOSTILE)
def test_every_text_comes_back_to_the_letter(edit: PromptEdit, text: str) -> None:
    """Shown, then shown over another, then read."""
    edit.show_text(text)
    assert edit.text() == text
    edit.show_text(text[: len(text) // 2])
    edit.show_text("before " + text)
    edit.viewport().repaint()
    assert edit.text() == "before " + text


@given(text=st.text(st.characters(max_codepoint=0xFFFFF), max_size=60))
def test_a_document_can_hold_every_text(text: str) -> None:
    """The way into a document and out again loses nothing (the last plane is the way's own)."""
    assert told(held(text).replace("\n", "\u2029")) == text
    assert told(held(text * 200)) == text * 200


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.text("ab😀\n\ud800\r\u00a0é", max_size=8), max_size=6))
def test_any_row_of_texts_is_shown(edit: PromptEdit, texts: list[str]) -> None:
    """Replacing only the difference always ends at the text asked for."""
    for text in texts:
        edit.show_text(text)
        assert edit.text() == text


@pytest.mark.parametrize("text", ["plain", "😀a\ud800b\n😀", "a" * 9_000 + "😀b"])
def test_places_point_at_the_characters_in_the_document(edit: PromptEdit, text: str) -> None:
    """Qt counts UTF-16 units: selecting by a converted place gives that very character."""
    edit.show_text(text)
    places = Places.of(edit.document().toRawText())
    for index in {0, 1, len(text) // 2, len(text) - 1}:
        start, stop = places([index, index + 1])
        cursor = QTextCursor(edit.document())
        cursor.setPosition(int(start))
        cursor.setPosition(int(stop), QTextCursor.MoveMode.KeepAnchor)
        assert told(cursor.selectedText()) == text[index]


def test_nothing_is_told_while_an_input_method_composes(edit: PromptEdit, edits: list[str]) -> None:
    """Only the committed text counts."""
    edit.show_text("a")
    compose(edit, "ni")
    compose(edit, "nih")
    assert edits == []
    assert edit.text() == "a"
    compose(edit, "", "你好")
    assert edits == ["a你好"]
    compose(edit, "x")
    compose(edit, "")
    assert edits == ["a你好"]


def test_undo_and_redo_are_edits(qtbot: QtBot, edit: PromptEdit, edits: list[str]) -> None:
    """Ctrl+Z takes back what was typed, Ctrl+Shift+Z brings it again."""
    qtbot.keyClicks(edit, "abc")
    qtbot.keyClick(edit, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert edit.text() == ""
    edit.redo()
    assert edit.text() == "abc"
    assert edits[-2:] == ["", "abc"]


def test_undo_survives_generated_text(qtbot: QtBot, edit: PromptEdit) -> None:
    """The model's text goes first, then one's own."""
    qtbot.keyClicks(edit, "To")
    edit.show_text("To be")
    edit.undo()
    assert edit.text() == "To"
    edit.undo()
    assert edit.text() == ""


@pytest.mark.parametrize(
    ("caret", "shown", "expected"),
    [
        (3, "abc def ghi", 3),  # grown behind the caret
        (7, "abc def ghi", 11),  # at the end it stays at the end
        (5, "Xabc def", 6),  # grown before it
        (5, "abc d", 5),  # shortened behind it
        (6, "abc", 3),  # shortened under it
        (0, "", 0),
    ],
)
def test_the_caret_stays_by_its_text(
    edit: PromptEdit, caret: int, shown: str, expected: int
) -> None:
    """Showing another text moves the caret only with the characters around it."""
    edit.show_text("abc def")
    caret_to(edit, caret)
    edit.show_text(shown)
    assert edit.textCursor().position() == expected


def test_a_selection_and_the_scroll_stay_when_text_grows(edit: PromptEdit) -> None:
    """Reading at the top is not disturbed by what is generated at the end."""
    edit.show_text("line\n" * 100)
    cursor = edit.textCursor()
    cursor.setPosition(2)
    cursor.setPosition(8, QTextCursor.MoveMode.KeepAnchor)
    edit.setTextCursor(cursor)
    edit.verticalScrollBar().setValue(3)
    edit.show_text("line\n" * 101)
    assert (edit.textCursor().anchor(), edit.textCursor().position()) == (2, 8)
    assert edit.verticalScrollBar().value() == 3


def test_paste_is_plain_text_with_newlines(edit: PromptEdit, edits: list[str]) -> None:
    """No markup is interpreted, Windows line ends become newlines, tabs stay."""
    paste(edit, "<b>a</b>\r\nb\rc\td")
    assert edit.text() == "<b>a</b>\nb\nc\td"
    assert edits == ["<b>a</b>\nb\nc\td"]


@pytest.mark.parametrize(
    "text",
    ["x" * 1_000_000, "word " * 200_000, "word word\n" * 100_000],
    ids=["one word", "one line", "lines"],
)
def test_a_megabyte_can_be_pasted_and_edited(
    qtbot: QtBot, edit: PromptEdit, edits: list[str], text: str
) -> None:
    """A million characters, even without a space, come in whole and can be typed after."""
    paste(edit, text)
    qtbot.keyClicks(edit, "a")
    edit.set_tokens([(i, i + 4) for i in range(0, 1_000_000, 4)])
    edit.viewport().repaint()
    assert edits == [text, text + "a"]
    block, longest = edit.document().firstBlock(), 0
    while block.isValid():
        longest, block = max(longest, block.length()), block.next()
    assert longest < 5_000  # Qt lays out a paragraph of a million letters in half a minute


def test_copying_takes_the_characters_themselves(edit: PromptEdit) -> None:
    """No-break spaces and lone surrogates are not replaced on the way to the clipboard."""
    edit.show_text("a\u00a0b\nc")
    edit.selectAll()
    assert edit.createMimeDataFromSelection().text() == "a\u00a0b\nc"


def test_tab_moves_on_to_the_next_widget(qtbot: QtBot) -> None:
    """The keyboard is not caught in the editor."""
    window = QWidget()
    qtbot.addWidget(window)
    first, second = PromptEdit(window), PromptEdit(window)
    window.show()
    first.setFocus()
    qtbot.keyClick(first, Qt.Key.Key_Tab)
    assert window.focusWidget() is second
    assert first.text() == ""


def test_an_empty_prompt_says_what_to_do(edit: PromptEdit) -> None:
    """Placeholder and accessible name."""
    assert edit.placeholderText() == PLACEHOLDER
    assert edit.accessibleName() == "Prompt"


def colours(edit: PromptEdit) -> set[str]:
    """Every colour in the picture."""
    picture = edit.viewport().grab().toImage()
    return {
        picture.pixelColor(x, y).name().upper() for x in range(picture.width()) for y in range(40)
    }


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_chips_are_drawn_in_the_colour_of_their_state(edit: PromptEdit, theme: Theme) -> None:
    """Prompt tokens raised, fallen ones grey, the selected one underlined."""
    edit.set_theme(theme)
    edit.show_text("aaaaaaaa bbbbbbbb")
    assert QColor(theme.raised).name().upper() not in colours(edit)
    edit.set_tokens([(0, 8), (8, 17)], [TokenState.FALLEN_OUT, TokenState.PROMPT])
    edit.set_selected(1)
    seen = colours(edit)
    for colour in (theme.raised, theme.fallen, theme.accent):
        assert QColor(colour).name().upper() in seen


def test_a_chip_behind_an_emoji_stands_under_its_own_letters(edit: PromptEdit) -> None:
    """An emoji is two of Qt's units, so a chip counted in characters must be moved."""
    edit.set_theme(LIGHT)
    edit.show_text("😀😀😀😀")
    edit.show_text("😀😀😀😀     ")
    edit.set_tokens([(4, 9)], colours=np.array([0xFF0000FF], np.uint32))
    picture = edit.viewport().grab().toImage()
    cursor = edit.textCursor()
    cursor.setPosition(8)
    start = edit.cursorRect(cursor).left()
    blue = [x for x in range(picture.width()) if picture.pixelColor(x, 20).name() == "#aaaaff"]
    assert abs(min(blue) - start) <= 3


def test_chips_stay_by_their_letters_until_new_ones_come(qtbot: QtBot, edit: PromptEdit) -> None:
    """Typing in front of a token moves its chip along, deleting brings it back."""
    edit.set_theme(LIGHT)
    edit.show_text("          ")
    edit.set_tokens([(5, 10)], colours=np.array([0xFF0000FF], np.uint32))

    def chip() -> tuple[int, int]:
        picture = edit.viewport().grab().toImage()
        blue = [x for x in range(picture.width()) if picture.pixelColor(x, 20).name() == "#aaaaff"]
        return min(blue), max(blue)

    left, right = chip()
    caret_to(edit, 0)
    qtbot.keyClicks(edit, "  ")
    step = edit.fontMetrics().horizontalAdvance("  ")
    assert chip() == pytest.approx((left + step, right + step), abs=1)
    qtbot.keyClick(edit, Qt.Key.Key_Backspace)
    qtbot.keyClick(edit, Qt.Key.Key_Backspace)
    assert chip() == (left, right)


def test_repainting_does_not_use_up_none(edit: PromptEdit) -> None:
    """PySide6 6.12 drops a reference to None per call and dies in the end; this must not."""
    edit.show_text("to be or not to be " * 5)
    edit.set_tokens([(i, i + 3) for i in range(0, 90, 3)])
    before = sys.getrefcount(None)
    for _ in range(2_000):
        edit.viewport().repaint()
    assert before - sys.getrefcount(None) < 500


def show_words(edit: PromptEdit, words: list[str], selected: int, n_generated: int = 0) -> None:
    """Show words as tokens, the last of them written by the model."""
    edit.show_text("".join(words))
    stops = np.cumsum([len(word) for word in words])
    spans = np.stack([np.concatenate(([0], stops[:-1])), stops], axis=1)
    states = np.full(len(words), TokenState.PROMPT)
    states[len(words) - n_generated :] = TokenState.GENERATED
    edit.set_tokens(spans, states)
    edit.set_selected(selected)


WORD_LISTS = st.lists(st.sampled_from(["king", " the", " sea\n", "\n", " שלום", " a"]), min_size=1)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.tuples(WORD_LISTS, st.integers(0, 9)), min_size=2, max_size=5))
def test_what_is_painted_again_is_all_that_looks_different(
    edit: PromptEdit, shown: list[tuple[list[str], int]]
) -> None:
    edit.setCursorWidth(0)  # it blinks
    edit.clearFocus()
    for words, n_generated in shown:
        show_words(edit, words, len(words) - 1, min(n_generated, len(words)))
        assert is_all_painted(edit)


def test_another_token_paints_only_the_last_paragraph_anew(edit: PromptEdit) -> None:
    words = ["king", " the\n"] * 4 + ["sea"]
    show_words(edit, words, 8)
    QApplication.processEvents()
    watch = PaintWatch(edit.viewport())
    show_words(edit, [*words, " king"], 9, 1)
    QApplication.processEvents()
    whole = edit.viewport().width() * edit.viewport().height()
    assert 0 < watch.area < whole / 2
