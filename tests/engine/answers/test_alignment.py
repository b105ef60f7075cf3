"""Which tokens of two texts belong together: never crossing, as many as can be, equal ones."""

from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.answers.alignment import (
    ABSENT,
    Alignment,
    by_position,
    by_span,
    by_token,
    common,
    likelier,
)

few = st.lists(st.integers(0, 3), max_size=9)
words = st.text("ab .", max_size=12)


def longest(a: list[int], b: list[int]) -> int:
    """The length of a longest common subsequence, by its definition."""

    @cache
    def of(i: int, j: int) -> int:
        if not i or not j:
            return 0
        if a[i - 1] == b[j - 1]:
            return of(i - 1, j - 1) + 1
        return max(of(i - 1, j), of(i, j - 1))

    return of(len(a), len(b))


def assert_sound(aligned: Alignment, n_a: int, n_b: int) -> None:
    """Every position of each text has one slot, in order; no slot is empty."""
    assert aligned.a[aligned.a != ABSENT].tolist() == list(range(n_a))
    assert aligned.b[aligned.b != ABSENT].tolist() == list(range(n_b))
    assert not ((aligned.a == ABSENT) & (aligned.b == ABSENT)).any()
    assert len(aligned) == n_a + n_b - len(aligned.pairs)
    for one, other in pairwise(aligned.pairs.tolist()):
        assert one[0] < other[0]
        assert one[1] < other[1]


def cut(text: str, at: set[int]) -> np.ndarray:
    """Where pieces of a text begin and end, given the places between them."""
    edges = [0, *sorted(place for place in at if 0 < place < len(text)), len(text)]
    pairs = list(pairwise(edges)) if text else []
    return np.array(pairs, np.int64).reshape(-1, 2)


@given(few, few)
def test_by_token_pairs_as_many_equal_tokens_as_can_be(a: list[int], b: list[int]) -> None:
    aligned = by_token(a, b)
    assert_sound(aligned, len(a), len(b))
    assert all(a[i] == b[j] for i, j in aligned.pairs.tolist())
    assert len(aligned.pairs) == longest(a, b)


@given(few)
def test_a_text_is_aligned_with_itself_position_by_position(a: list[int]) -> None:
    for aligned in (by_token(a, a), by_position(len(a), len(a))):
        assert aligned.a.tolist() == aligned.b.tolist() == list(range(len(a)))
        assert aligned.both.all()


@given(few, few)
def test_the_same_pairs_are_found_from_either_side(a: list[int], b: list[int]) -> None:
    """As many, that is; which of equal tokens pair may depend on the side."""
    assert len(by_token(a, b).pairs) == len(by_token(b, a).pairs)


def test_what_only_one_text_has_stands_alone_in_its_slot() -> None:
    """The first text's before the second's, between two pairs."""
    aligned = by_token([1, 2, 3, 9], [1, 7, 8, 3])
    assert aligned.a.tolist() == [0, 1, ABSENT, ABSENT, 2, 3]
    assert aligned.b.tolist() == [0, ABSENT, 1, 2, 3, ABSENT]
    assert (aligned.slot_of_a(2), aligned.slot_of_b(1)) == (4, 2)


@given(st.integers(0, 9), st.integers(0, 9))
def test_by_position_pairs_equal_positions_and_leaves_the_rest_alone(n_a: int, n_b: int) -> None:
    aligned = by_position(n_a, n_b)
    assert_sound(aligned, n_a, n_b)
    assert aligned.pairs.tolist() == [[at, at] for at in range(min(n_a, n_b))]


@given(words, words, st.sets(st.integers(0, 12)), st.sets(st.integers(0, 12)))
def test_by_span_pairs_tokens_that_spell_the_same(
    text_a: str, text_b: str, at_a: set[int], at_b: set[int]
) -> None:
    spans_a, spans_b = cut(text_a, at_a), cut(text_b, at_b)
    aligned = by_span(text_a, spans_a, text_b, spans_b)
    assert_sound(aligned, len(spans_a), len(spans_b))
    for i, j in aligned.pairs.tolist():
        assert text_a[slice(*spans_a[i])] == text_b[slice(*spans_b[j])]


@given(words, st.sets(st.integers(0, 12)), st.sets(st.integers(0, 12)))
def test_in_one_text_just_the_tokens_with_the_same_characters_pair(
    text: str, at_a: set[int], at_b: set[int]
) -> None:
    spans_a, spans_b = cut(text, at_a), cut(text, at_b)
    aligned = by_span(text, spans_a, text, spans_b)
    paired = {tuple(spans_a[i]) for i, _j in aligned.pairs.tolist()}
    assert paired == set(map(tuple, spans_a)) & set(map(tuple, spans_b))


def test_two_vocabularies_pair_behind_a_word_that_only_one_text_has() -> None:
    """'dog' of a in one token, of b in two; the full stop of both."""
    a, b = "a dog bites.", "a big dog bites."
    spans_a = np.array([[0, 1], [1, 5], [5, 11], [11, 12]])
    spans_b = np.array([[0, 1], [1, 5], [5, 7], [7, 9], [9, 15], [15, 16]])
    assert by_span(a, spans_a, b, spans_b).pairs.tolist() == [[0, 0], [2, 4], [3, 5]]


def test_tokens_that_share_a_character_pair_in_order() -> None:
    """Bytes of one letter: two in a, three in b, so the third stays alone."""
    a = np.array([[0, 1], [0, 1], [1, 2]])
    b = np.array([[0, 1], [0, 1], [0, 1], [1, 2]])
    aligned = by_span("é.", a, "é.", b)
    assert aligned.pairs.tolist() == [[0, 0], [1, 1], [2, 3]]


def test_tokens_of_no_characters_pair_with_nothing() -> None:
    empty = np.array([[0, 0], [0, 1]])
    assert by_span("a", empty, "a", empty).pairs.tolist() == [[1, 1]]


@pytest.mark.parametrize(
    ("a", "b", "way"),
    [
        ("dog bites person", "person bites dog", "position"),  # one pair either way
        ("the cat sat", "the dog sat", "position"),  # and so cat stands beside dog
        ("the cat sat", "the cat sat", "position"),
        ("so the cat sat", "the cat sat down", "token"),  # moved by one
        ("the cat sat", "the old cat sat", "token"),
        ("", "", "position"),
    ],
)
def test_position_by_position_is_chosen_where_it_loses_no_pair(a: str, b: str, way: str) -> None:
    tokens_a, tokens_b = ([word.encode() for word in text.split()] for text in (a, b))
    ids = {word: at for at, word in enumerate({*tokens_a, *tokens_b})}
    aligned = by_token([ids[word] for word in tokens_a], [ids[word] for word in tokens_b])
    assert likelier(tokens_a, tokens_b, aligned) == way


def test_long_texts_that_share_much_are_aligned_whole() -> None:
    """Two thousand tokens, one cut out and one put in."""
    a = [at % 97 for at in range(2000)]
    b = [*a[:700], *a[701:1500], 500, *a[1500:]]
    pairs = common(a, b)
    assert len(pairs) == 1999
    assert all(a[i] == b[j] for i, j in pairs)
