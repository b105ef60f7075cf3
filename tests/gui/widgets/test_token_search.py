"""Looking for a token by a part of its text or its id."""

from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from engine.sampling import Sampling, stages
from gui.theme import THEMES
from gui.widgets.token_matches import TokenMatches
from gui.widgets.token_search import TokenChoices, TokenSearch
from tests.gui.widgets.test_prompt_edit import HOSTILE

VOCABULARY = [
    b"the",
    b" king",
    b"King",
    b"thinking",
    b" kin",
    b"\n",
    b"  ",
    b"7",
    b"a7",
    b"\xe2\x82",
]
LOGITS = np.array([2.0, 1.0, 3.0, 5.0, 0.0, 4.0, -1.0, 0.5, 0.25, -2.0])
RANKS = np.argsort(np.argsort(-LOGITS))


def found(text: str, most: int = 50) -> list[int]:
    return TokenMatches(VOCABULARY, 12).find(text, RANKS, most)


def test_what_is_the_text_comes_before_what_begins_with_it_and_what_holds_it() -> None:
    """With or without a space before it, and its own letter case first; then by rank."""
    assert found("king") == [1, 2, 3]
    assert found("King") == [2, 1, 3]
    assert found("KIN") == [4, 2, 1, 3]
    assert found("king", most=2) == [1, 2]


def test_spaces_that_are_looked_for_count() -> None:
    """As they are typed or as they are drawn."""
    assert found(" k") == found("␣k") == [1, 4]
    assert found("⏎") == [5]
    assert found("␣␣") == [6]


def test_a_number_is_an_id_before_it_is_a_text() -> None:
    """Also of an id that has no text, but of none that the model has not."""
    assert found("7") == [7, 8]
    assert found("#3") == [3]
    assert found("11") == [11]
    assert found("12") == []


def test_without_a_text_the_most_probable_come_first() -> None:
    assert found("", most=3) == [3, 5, 2]
    assert found("xyz") == []
    assert found("\ud800") == []


# The field


@pytest.fixture
def over(qtbot: QtBot) -> QWidget:
    """What the list lies over."""
    widget = QWidget()
    qtbot.addWidget(widget)
    widget.resize(500, 300)
    return widget


@pytest.fixture
def field(qtbot: QtBot, over: QWidget) -> TokenSearch:
    """A field with the vocabulary above, that has the keyboard; "king" follows in the text."""
    search = TokenSearch(over)
    search.setParent(over)
    search.setGeometry(10, 10, 200, 24)
    search.set_theme(THEMES["light"])
    search.set_choices(TokenChoices(stages(LOGITS, Sampling()), VOCABULARY, 1))
    over.show()
    over.activateWindow()
    qtbot.waitUntil(over.isActiveWindow)
    search.clearFocus()
    search.setFocus(Qt.FocusReason.ShortcutFocusReason)
    return search


def heard(field: TokenSearch) -> list[Any]:
    chosen: list[Any] = []
    field.chosen.connect(chosen.append)
    return chosen


def test_at_first_it_offers_what_follows_and_the_most_probable(field: TokenSearch) -> None:
    """With rank, logit and probability; then the others by rank."""
    probs = np.exp(LOGITS) / np.exp(LOGITS).sum()
    assert field.list.isVisible()
    follows, top, first, *_ = field.items()
    assert follows.startswith("Follows: ")
    assert "␣king" in follows
    assert f"rank 5 · logit 1.00 · {100 * probs[1]:.1f} % · id 1" in follows
    assert top.startswith("Most probable: ")
    assert "thinking" in top
    assert "thinking" in first
    field.set_choices(TokenChoices(stages(LOGITS, Sampling()), VOCABULARY, None))
    assert field.items()[0].startswith("Most probable: ")


def test_typing_finds_and_enter_takes_the_first(field: TokenSearch) -> None:
    chosen = heard(field)
    QTest.keyClicks(field, "king")
    assert [item.split("  ")[0].strip("'\u2068\u2069") for item in field.items()] == [
        "␣king",
        "King",
        "thinking",
    ]
    assert "space king, rank 5" in field.accessibleDescription()
    QTest.keyClick(field, Qt.Key.Key_Return)
    assert chosen == [1]
    assert field.text() == ""
    assert not field.list.isVisible()


def test_arrows_move_in_the_list_and_stop_at_its_ends(field: TokenSearch) -> None:
    chosen = heard(field)
    QTest.keyClicks(field, "king")
    for _ in range(5):
        QTest.keyClick(field, Qt.Key.Key_Down)
    assert "thinking" in field.accessibleDescription()
    QTest.keyClick(field, Qt.Key.Key_Up)
    assert "King, rank 3" in field.accessibleDescription()
    QTest.keyClick(field, Qt.Key.Key_Return)
    assert chosen == [2]


def test_what_follows_and_the_most_probable_are_followed_wherever_they_lead(
    field: TokenSearch,
) -> None:
    chosen = heard(field)
    QTest.keyClick(field, Qt.Key.Key_Return)
    QTest.keyClick(field, Qt.Key.Key_Down)  # opens the list again
    QTest.keyClick(field, Qt.Key.Key_Down)
    QTest.keyClick(field, Qt.Key.Key_Return)
    assert chosen == ["next", "top"]


def test_a_click_takes_what_is_clicked(field: TokenSearch) -> None:
    chosen = heard(field)
    QTest.keyClicks(field, "king")
    place = field.list.visualItemRect(field.list.item(1)).center()
    QTest.mouseClick(field.list.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert chosen == [2]
    assert QApplication.focusWidget() is field


def test_escape_leaves_everything_as_it_was(qtbot: QtBot, field: TokenSearch) -> None:
    chosen = heard(field)
    QTest.keyClicks(field, "kin")
    with qtbot.waitSignal(field.left):
        QTest.keyClick(field, Qt.Key.Key_Escape)
    assert chosen == []
    assert (field.text(), field.list.isVisible()) == ("", False)


def test_where_nothing_is_found_nothing_can_be_taken(field: TokenSearch) -> None:
    chosen = heard(field)
    QTest.keyClicks(field, "<b>x</b>")
    assert field.items() == ["No token holds '\u2068<b>x</b>\u2069'."]
    QTest.keyClick(field, Qt.Key.Key_Return)
    assert chosen == []


def test_a_click_on_the_field_lists_again(field: TokenSearch) -> None:
    QTest.keyClick(field, Qt.Key.Key_Escape)
    assert not field.list.isVisible()
    QTest.mouseClick(field, Qt.MouseButton.LeftButton)
    assert field.list.isVisible()


def test_losing_the_keyboard_closes_the_list(field: TokenSearch) -> None:
    field.clearFocus()
    assert not field.list.isVisible()


def test_without_choices_nothing_is_listed(field: TokenSearch) -> None:
    field.set_choices(None)
    assert not field.list.isVisible()
    assert not field.isEnabled()


def test_the_list_stays_inside_what_it_lies_over(over: QWidget, field: TokenSearch) -> None:
    for size in ((500, 300), (220, 120)):
        over.resize(*size)
        QTest.keyClicks(field, "k")
        assert over.rect().contains(field.list.geometry())
        QTest.keyClick(field, Qt.Key.Key_Backspace)


def test_hostile_tokens_are_plain_visible_text(field: TokenSearch) -> None:
    """Neither markup nor control characters reach the list or its tooltips as such."""
    tokens = [text.encode("utf-8", "surrogatepass") for text in HOSTILE]
    field.set_choices(TokenChoices(stages(np.zeros(len(tokens)), Sampling()), tokens, None))
    for row in range(field.list.count()):
        item = field.list.item(row)
        assert not set(item.text()) & set("\n\r\t\0\u202e\u200b")
        assert "<b>" not in item.toolTip()
        assert item.data(Qt.ItemDataRole.AccessibleTextRole)
