"""Where each token stands in the text, against a decoder that is asked byte by byte."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.document import Document, token_spans
from engine.sampling import Sampling
from engine.tokenizers.utf8 import to_bytes, to_text

FAMILY = "👩\u200d👩\u200d👧"  # three people and two joiners: five characters, 18 bytes
CAFE = "cafe\u0301"  # an e and a combining accent


def owners(encoded: bytes) -> list[int]:
    """Which character of `to_text(encoded)` each byte belongs to.

    A character takes as many bytes as decode to it alone and leave the rest of the text to the
    rest of the bytes.
    """
    owner, at = [], 0
    for index, character in enumerate(to_text(encoded)):
        size = next(
            size
            for size in range(1, 5)
            if to_text(encoded[at : at + size]) == character
            and to_text(encoded[at:]) == character + to_text(encoded[at + size :])
        )
        owner += [index] * size
        at += size
    assert at == len(encoded)
    return owner


def slow_spans(tokens: list[bytes]) -> list[tuple[int, int]]:
    """From the character of a token's first byte to behind that of its last."""
    owner = owners(b"".join(tokens))
    spans, at = [], 0
    for token in tokens:
        mine = owner[at : at + len(token)]
        at += len(token)
        behind = owner[at - 1] + 1 if at else 0
        spans.append((mine[0], mine[-1] + 1) if mine else (behind, behind))
    return spans


def spans(tokens: list[bytes]) -> list[tuple[int, int]]:
    """As `token_spans` has them for the text of these tokens."""
    return [(int(a), int(b)) for a, b in token_spans(to_text(b"".join(tokens)), tokens)]


def test_words_stand_where_they_are_written() -> None:
    """The plain case, by counting letters."""
    assert spans([b"To", b" be", b",", b" or"]) == [(0, 2), (2, 5), (5, 6), (6, 9)]


def test_an_empty_text_has_no_spans() -> None:
    """The shape stays [tokens, 2]."""
    assert token_spans("", ()).shape == (0, 2)
    assert Document().spans.shape == (0, 2)


def test_tokens_that_share_a_character_span_the_whole_of_it() -> None:
    """The four bytes of an emoji, each a token, lie on one character."""
    tokens = [b"a", *(bytes([byte]) for byte in "😀".encode()), b"b"]
    assert spans(tokens) == [(0, 1), (1, 2), (1, 2), (1, 2), (1, 2), (2, 3)]


def test_joined_emoji_and_combining_marks_are_characters_of_their_own() -> None:
    """Spans count the characters of a str, not what looks like one."""
    assert spans([FAMILY.encode(), b"!"]) == [(0, 5), (5, 6)]
    assert spans([b"cafe", "\u0301".encode()]) == [(0, 4), (4, 5)]
    assert len(CAFE) == 5


def test_a_lone_surrogate_is_one_character() -> None:
    """Its three bytes may come as one token or as three."""
    encoded = to_bytes("\ud800")
    assert spans([b"x", encoded, b"y"]) == [(0, 1), (1, 2), (2, 3)]
    assert spans([b"x", *(bytes([each]) for each in encoded)]) == [(0, 1)] + [(1, 2)] * 3


def test_a_surrogate_behind_broken_bytes_is_still_one_character() -> None:
    """What is sampled can hold both."""
    assert to_text(b"\xff" + to_bytes("\udfff") + b"a") == "\ufffd\udfffa"
    assert spans([b"\xff", to_bytes("\udfff"), b"a"]) == [(0, 1), (1, 2), (2, 3)]


def test_a_character_that_never_ends_is_not_shared_with_the_next() -> None:
    """Two of the euro sign's three bytes, then a letter: U+FFFD and the letter."""
    assert to_text(b"\xe2\x82a") == "\ufffda"
    assert spans([b"\xe2", b"\x82", b"a"]) == [(0, 1), (0, 1), (1, 2)]
    assert spans([b"\xe2\x82"]) == [(0, 1)]


def test_a_token_of_no_bytes_spans_nothing() -> None:
    """Wherever it stands, last as well; broken bytes before it or not."""
    assert spans([b"a", b"", b"b", b""]) == [(0, 1), (1, 1), (1, 2), (2, 2)]
    assert spans([b"", b"\xff", b""]) == [(0, 0), (0, 1), (1, 1)]
    assert spans([b""]) == [(0, 0)]


@pytest.mark.parametrize(
    "encoded",
    [
        b"\xc0\x80",  # overlong
        b"\xe0\x80\x80",
        b"\xed\xa0",  # half a surrogate
        b"\xed\xa0\xed\xa0\x80",
        b"\xf0\x80\x80\x80",
        b"\xf0\x9f\x98",  # an emoji without its end
        b"\xf4\x90\x80\x80",  # beyond U+10FFFF
        b"\xf5\xff\x80",
        b"\xf1\x80\x80\xe1\x80\xc3",
    ],
)
def test_broken_bytes_stand_on_their_replacement_characters(encoded: bytes) -> None:
    """Byte by byte, as the decoder itself groups them."""
    tokens = [bytes([byte]) for byte in encoded] + [b"z"]
    assert spans(tokens) == slow_spans(tokens)


Bytes = st.one_of(
    st.binary(max_size=3),
    st.sampled_from([b"a", b" ", b"\xed\xa0\x80", b"\xed", b"\xe2\x82", b"\xac", b"\xf0\x9f"]),
    st.text(max_size=2).map(to_bytes),
)


@given(st.lists(Bytes, max_size=5))
def test_spans_are_those_of_a_decoder_asked_byte_by_byte(tokens: list[bytes]) -> None:
    """Any bytes, cut anywhere."""
    assert spans(tokens) == slow_spans(tokens)


@given(st.text(alphabet=st.characters(exclude_categories=()), max_size=8), st.data())
def test_any_text_cut_anywhere_is_covered_from_end_to_end(text: str, data: st.DataObject) -> None:
    """No character is left without a token, and none comes before its turn."""
    encoded = to_bytes(text)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(encoded)), max_size=6)))
    edges = [0, *cuts, len(encoded)]
    tokens = [encoded[a:b] for a, b in pairwise(edges) if b > a]
    found = token_spans(text, tokens).tolist()
    assert found == [list(span) for span in slow_spans(tokens)]
    covered = {at for begin, end in found for at in range(begin, end)}
    assert covered == set(range(len(text)))


def test_the_origin_of_a_generated_token_is_found_by_its_position() -> None:
    """Two prompt tokens, one drawn, one chosen."""
    sampling = Sampling(seed=7)
    document = Document("abcd", (0, 1, 2, 3), (b"a", b"b", b"c", b"d"), 2, (sampling, None))
    assert (document.origin(2), document.origin(3)) == (sampling, None)
    assert len(document) == 4


@given(st.text(), st.integers(0, 3))
def test_a_text_that_is_spelled_in_full_has_nothing_replaced(text: str, cut: int) -> None:
    """However its bytes are shared out, also where they form no characters."""
    encoded = to_bytes(text)
    pieces = tuple(encoded[i : i + cut + 1] for i in range(0, len(encoded), cut + 1))
    assert Document(text, tuple(range(len(pieces))), pieces).replaced == ()
    torn = (b"\xff", *pieces)
    assert Document(to_text(b"".join(torn)), tuple(range(len(torn))), torn).replaced == ()


def test_a_piece_that_another_token_stands_for_is_named_once_for_each() -> None:
    document = Document("aébéc\ud800", (0, 1, 2, 1, 0, 3), (b"a", b"?", b"b", b"?", b"c", b"!"))
    assert document.replaced == (("é", b"?"), ("\ud800", b"!"))
