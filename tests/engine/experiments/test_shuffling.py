"""Words change places, everything else stays, and no token is lost."""

import pytest

from engine.experiments.shuffling import shuffled_words

VERSE = "O Romeo, Romeo! wherefore art thou Romeo?\nDeny thy father, and refuse thy name"


def _letters(text: str) -> list[bytes]:
    return [letter.encode() for letter in text]


def _shuffled(tokens: list[bytes], seed: int) -> str:
    return b"".join(tokens[index] for index in shuffled_words(tokens, seed)).decode()


def _words(text: str) -> list[str]:
    return sorted("".join(each if each.isalpha() else " " for each in text).split())


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_no_token_is_lost_whatever_words_are_cut_into(size: int) -> None:
    tokens = [VERSE[at : at + size].encode() for at in range(0, len(VERSE), size)]
    order = shuffled_words(tokens, 1)
    assert sorted(order) == list(range(len(tokens)))
    assert order != sorted(order) or size > 2  # where tokens across words may leave no choice


def test_each_word_comes_again_whole_letter_by_letter() -> None:
    """Here no word lacks a space in front of it, which would make it one with the word before."""
    text = VERSE.replace("\nDeny", "\n Deny").replace("O Romeo", " O Romeo")
    changed = _shuffled(_letters(text), 1)
    assert changed != text
    assert _words(changed) == _words(text)


def test_punctuation_keeps_its_place_between_the_words() -> None:
    """The words with their spaces are one, two, three, four; the marks are never moved."""
    tokens = [b"One", b",", b" two", b" three", b"!", b" four", b" end"]
    seen = set()
    for seed in range(1, 30):
        order = shuffled_words(tokens, seed)
        assert [order[1], order[4], order[6]] == [1, 4, 6]
        assert sorted(order) == list(range(7))
        seen.add(tuple(order))
    assert len(seen) > 10


def test_the_last_word_stays_whole_at_the_end() -> None:
    """All its tokens, not only the last one."""
    tokens = _letters("to be or not to bend")
    for seed in range(1, 10):
        assert _shuffled(tokens, seed).endswith(" bend")


def test_a_mark_at_the_end_leaves_all_words_to_be_moved() -> None:
    tokens = [b"to", b" be", b" or", b" not", b"."]
    assert {shuffled_words(tokens, seed)[3] for seed in range(1, 40)} == {0, 1, 2, 3}
    assert {shuffled_words(tokens, seed)[4] for seed in range(1, 40)} == {4}


@pytest.mark.parametrize("word", ["o'er", "don’t", "naïve", "über"])
def test_apostrophes_and_letters_beyond_ascii_belong_to_their_word(word: str) -> None:
    """Byte by byte, in which no letter beyond ASCII is whole."""
    text = f"one {word} three four five"
    tokens = [bytes([byte]) for byte in text.encode()]
    for seed in range(1, 8):
        assert word in _shuffled(tokens, seed)


def test_a_token_across_two_words_keeps_them_together() -> None:
    tokens = [b"a", b"b c", b" d", b" e", b"."]
    for seed in range(1, 20):
        assert "ab c" in _shuffled(tokens, seed)


def test_every_seed_changes_the_order_where_there_is_another() -> None:
    """Of two words there is one, and a word in another's place that is spelled alike is none."""
    for seed in range(1, 30):
        assert _shuffled([b" dog", b" bites", b" person"], seed) == " bites dog person"
        assert _shuffled([b" so", b" so", b" it", b" is"], seed) != " so so it is"
        assert _shuffled([b" so", b" so", b" so", b" is"], seed) == " so so so is"


def test_the_seed_decides_and_0_leaves_all_as_it_is() -> None:
    tokens = [word.encode() for word in VERSE.split()]
    assert shuffled_words(tokens, 0) == list(range(len(tokens)))
    assert shuffled_words(tokens, 5) == shuffled_words(tokens, 5)
    assert shuffled_words(tokens, 5) != shuffled_words(tokens, 6)


@pytest.mark.parametrize("tokens", [[], [b"a"], [b"\xff", b"\x80"], [b"", b" a", b""]])
def test_hardly_any_text_and_broken_bytes_stay_what_they_are(tokens: list[bytes]) -> None:
    assert shuffled_words(tokens, 1) == list(range(len(tokens)))
