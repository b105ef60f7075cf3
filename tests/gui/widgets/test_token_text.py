"""A token's text is visible, literal, and told in words."""

import math
import re
import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gui.widgets.token_text import begun_character, describe, display, group, speak


def spelled(text: str) -> bytes:
    """The bytes a tokenizer would give, lone surrogates included."""
    return text.encode("utf-8", "surrogatepass")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (" king", "␣king"),
        ("\n", "⏎"),
        ("\t", "⇥"),
        ("\x00\x1b", "‹NUL›‹ESC›"),
        ("\r\n", "‹CR›⏎"),
        ("\u00a0", "‹NBSP›"),
        ("\ud800", "\\uD800"),
        ("e\u0301", "e\u0301"),
        ("\u0301", "◌\u0301"),
        (" \u0301", "␣◌\u0301"),
        ("👨\u200d👩", "👨‹ZWJ›👩"),
        ("a\u202eb", "a‹RLO›b"),
        (" שלום", "␣\u2068שלום\u2069"),
        ("\ufeff\u2029", "‹BOM›‹PS›"),
        ("\U000e0067", "‹U+E0067›"),
        ("<b>x</b> &amp;", "<b>x</b>␣&amp;"),
        ("", "‹empty›"),
    ],
)
def test_each_character_is_shown_as_agreed(text: str, shown: str) -> None:
    """What has no shape gets one; what has one is left alone."""
    assert display(spelled(text)) == shown


def test_bytes_that_are_no_character_are_hexadecimal() -> None:
    """Half a euro sign, then letters, then a byte that never occurs."""
    assert display(b"\xe2\x82") == "‹E2 82›"
    assert display(b"\x82ab\xff") == "‹82›ab‹FF›"


def test_a_long_token_is_cut_with_an_ellipsis() -> None:
    """The limit counts characters."""
    assert display(b"a" * 500, 3) == "aaa…"
    assert display(b"aaa", 3) == "aaa"


@given(st.binary(max_size=40))
def test_any_bytes_are_shown_on_one_visible_line(token: bytes) -> None:
    """No control, no newline, nothing that reorders text except our own isolates, in pairs."""
    shown = display(token)
    assert shown
    assert shown.count("\u2068") == shown.count("\u2069")
    for char in shown.replace("\u2068", "").replace("\u2069", ""):
        assert unicodedata.category(char) not in {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
    assert " " not in re.sub("‹[^›]*›", "", shown)


@given(st.text(st.characters(categories=["L", "N", "P", "Sm"]), min_size=1, max_size=20))
def test_letters_and_markup_stay_as_they_are(text: str) -> None:
    """Taken out of their isolates, the characters are the very ones that came in."""
    hidden = {"\u115f", "\u1160", "\u3164", "\uffa0"}  # letters without a shape
    if not hidden & set(text):
        assert display(spelled(text)).strip("\u2068\u2069") == text


@given(st.lists(st.binary(max_size=5), max_size=12))
def test_groups_partition_the_tokens(tokens: list[bytes]) -> None:
    """Every token is in exactly one run, in order."""
    runs = group(tokens)
    assert [place for start, stop in runs for place in range(start, stop)] == [*range(len(tokens))]


@given(st.text("aé€😀\ud800", max_size=8), st.data())
def test_a_group_is_exactly_what_shares_a_character(text: str, data: st.DataObject) -> None:
    """However a text is cut into tokens, the cuts inside characters are the joined ones."""
    whole = spelled(text)
    cuts = sorted(data.draw(st.sets(st.integers(1, max(len(whole) - 1, 1)))))
    cuts = [cut for cut in cuts if cut < len(whole)]
    edges = [0, *cuts, len(whole)]
    tokens = [whole[a:b] for a, b in pairwise(edges)]
    between = {len(spelled(text[:i])) for i in range(len(text) + 1)}
    starts = [0] + [i + 1 for i, cut in enumerate(cuts) if cut in between]
    assert [start for start, _ in group(tokens)] == starts


def test_bytes_that_never_become_a_character_are_not_joined() -> None:
    """An emoji's beginning followed by a letter is two tokens on their own."""
    assert group([b"\xf0\x9f", b"a"]) == [(0, 1), (1, 2)]
    assert group([b"a\xf0", b"\x9f", b"\x98\x80b", b"c"]) == [(0, 3), (3, 4)]


def test_the_token_that_begins_a_character_knows_it() -> None:
    """The others of the group do not."""
    tokens = [b" \xf0\x9f", b"\x98", b"\x80"]
    assert [begun_character(tokens, i) for i in range(3)] == ["😀", "", ""]


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        (" king", "space king"),
        ("\n", "newline"),
        ("\n\n", "2 newlines"),
        (",", "comma"),
        ("'s", "'s"),
        ("\u0301", "combining acute accent"),
        ("\ud800", "lone surrogate D800"),
        ("👨\u200d👩", "man zero width joiner woman"),
        ("", "empty token"),
    ],
)
def test_tokens_are_spoken_in_words(text: str, spoken: str) -> None:
    """A screen reader gets names for what has no sound."""
    assert speak(spelled(text)) == spoken


@given(st.binary(max_size=30))
def test_any_bytes_can_be_spoken(token: bytes) -> None:
    """Always something, never an exception."""
    assert speak(token).strip()


def test_a_description_tells_all_that_is_known() -> None:
    """One nat is 1.44 bits and a probability of 1 / e."""
    told = describe(b" king", 812, 3, loss=1.0, notes=["written by the model"])
    assert told.splitlines() == [
        "␣king",
        "id 812 · position 3",
        "bytes 20 6B 69 6E 67",
        "loss 1.0 nats · 1.4426950408889634 bits · probability 0.36787944117144233",
        "written by the model",
    ]


def test_what_is_not_known_is_not_said() -> None:
    """No loss for the first token, no position for a fallen one."""
    told = describe(b"a", 1, None, loss=math.nan)
    assert "loss" not in told
    assert "position" not in told
