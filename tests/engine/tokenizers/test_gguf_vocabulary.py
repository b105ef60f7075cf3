"""Vocabularies of GGUF files tokenize as their models were trained to, and lose no text."""

import heapq
import json
import re
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokenizers
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, models, normalizers, pre_tokenizers

from engine.errors import TokenizerError
from engine.tokenizers import GgufVocabulary, load_tokenizer
from tests.engine.gguf_files import (
    CONTROL,
    NORMAL,
    USER_DEFINED,
    byte_level,
    byte_symbols,
)

HOSTILE = {
    "empty": "",
    "one space": " ",
    "spaces": "  two   three ",
    "NUL": "a\0b\0",
    "a lone surrogate": "a\ud800b",
    "two halves that are a pair elsewhere": "\ud83d\ude00",
    "emoji with joiners": "👩‍👩‍👧‍👦 🏳️‍🌈",
    "right to left": "שָׁלוֹם עליכם مرحبا",
    "combining marks": "e\u0301 Z\u0351\u036b\u0343",
    "the replacement character": "\ufffd",
    "the last code point": "\U0010ffff",
    "line ends of all kinds": "a\r\nb\rc\u2028d\x85e\n\n\n",
    "SentencePiece's space": "a▁b ▁ c▁",
    "special tokens": "<|end|><s></s><0x41>",
    "digits": "1234567890 ١٢٣ Ⅷ",
    "contractions": "It's WE'LL they'd 'tis",
    "code": "def f(x):\n\treturn  x  # ok\n",
}

# A small SentencePiece vocabulary: rare, long pieces score low, as its training leaves them.
PIECES = [*"▁abcehlnot", "▁a", "he", "ll", "▁t", "an", "▁the", "hell", "ello", "▁hello", "nn"]
PIECES += ["▁▁", "▁▁▁▁", "é", "ann", "nna", "anna"]
BYTE, UNKNOWN = 6, 2


def sentence_piece(**more: Any) -> dict[str, Any]:
    """The metadata of a small SentencePiece vocabulary."""
    names = [f"<0x{byte:02X}>" for byte in range(256)]
    return {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": ["<unk>", "<s>", "</s>", *names, *PIECES, "<tool>", "   "],
        "tokenizer.ggml.token_type": [
            *(UNKNOWN, CONTROL, CONTROL),
            *[BYTE] * 256,
            *[NORMAL] * len(PIECES),
            *(USER_DEFINED, USER_DEFINED),
        ],
        "tokenizer.ggml.scores": [
            *[0.0] * 259,
            *(-float(rank) for rank in range(len(PIECES))),
            *(0.0, 0.0),
        ],
        **more,
    }


# A byte-level vocabulary that lacks bytes, as SmolLM2's does.
LACKING = {0x04, 0xC0, 0xC1, 0xF1, 0xF2, *range(0xF5, 0x100)}


def lacking_bytes() -> dict[str, Any]:
    """The metadata of a byte-level vocabulary that cannot spell every character."""
    metadata = byte_level("smollm")
    gone = {byte_symbols()[byte] for byte in LACKING}
    kept = [token for token in metadata["tokenizer.ggml.tokens"] if token not in gone]
    metadata["tokenizer.ggml.tokens"] = kept
    metadata["tokenizer.ggml.token_type"] = [CONTROL] + [NORMAL] * (len(kept) - 1)
    return metadata


VOCABULARIES = {
    "byte-level": GgufVocabulary.from_metadata(byte_level()),
    "byte-level, words whole": GgufVocabulary.from_metadata(byte_level("llama-bpe")),
    "SentencePiece": GgufVocabulary.from_metadata(sentence_piece()),
    "SentencePiece without its space": GgufVocabulary.from_metadata(
        sentence_piece(**{"tokenizer.ggml.add_space_prefix": False})
    ),
}
WITHOUT_SPACE = VOCABULARIES["SentencePiece without its space"]
LACKING_BYTES = GgufVocabulary.from_metadata(lacking_bytes())
anything = st.text(st.characters(exclude_categories=()))
mostly_words = st.lists(
    st.sampled_from([*" aehlnot▁\ud800é1\n<>s", "the", "hello", " anna", "</s>"])
).map("".join)


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("name", VOCABULARIES)
def test_hostile_text_comes_back_unchanged(name: str, text: str) -> None:
    """Hostile text comes back unchanged."""
    vocabulary = VOCABULARIES[name]
    assert vocabulary.decode(vocabulary.encode(text)) == text


@settings(max_examples=300, deadline=None)
@given(text=anything | mostly_words)
@pytest.mark.parametrize("name", VOCABULARIES)
def test_any_text_comes_back_unchanged(name: str, text: str) -> None:
    """And is the bytes of its tokens, none of which is a special one."""
    vocabulary = VOCABULARIES[name]
    token_ids = vocabulary.encode(text)
    assert vocabulary.decode(token_ids) == text
    assert b"".join(vocabulary.spell(token_ids)) == text.encode("utf-8", "surrogatepass")
    special = {0, 1, 2} if name.startswith("SentencePiece") else {0}
    assert not special & set(token_ids)


def test_the_name_of_a_special_token_is_only_text() -> None:
    """The name of a special token is only text."""
    for vocabulary, name, token_id in (
        (VOCABULARIES["byte-level"], "<|end|>", 0),
        (VOCABULARIES["byte-level, words whole"], "<|end|>", 0),
        (WITHOUT_SPACE, "</s>", 2),
        (WITHOUT_SPACE, "<0x41>", 3 + 0x41),
    ):
        token_ids = vocabulary.encode(name)
        assert len(token_ids) == len(name)
        assert token_id not in token_ids


def test_even_a_special_token_that_is_a_word_cannot_be_typed() -> None:
    """A word that is a token is not taken apart by some models; a special one is."""
    metadata = byte_level("llama-bpe")
    tokens = metadata["tokenizer.ggml.tokens"]
    tokens[tokens.index("the")], tokens[0] = "zzz", "the"
    vocabulary = GgufVocabulary.from_metadata(metadata)
    assert 0 not in vocabulary.encode("the")
    assert vocabulary.token_bytes(0) == b"the"


def test_a_tokens_bytes_can_be_shown_whatever_its_kind() -> None:
    """A token's bytes can be shown, whatever its kind."""
    byte_pairs = VOCABULARIES["byte-level"]
    assert byte_pairs.token_bytes(0) == b"<|end|>"
    assert [byte_pairs.token_bytes(1 + byte) for byte in range(256)] == [
        bytes([byte]) for byte in range(256)
    ]
    assert byte_pairs.token_bytes(byte_pairs.vocab_size - 1) == b"o a"
    pieces = VOCABULARIES["SentencePiece"]
    assert pieces.token_bytes(1) == b"<s>"
    assert pieces.token_bytes(3 + 0xE9) == b"\xe9"
    assert pieces.token_bytes(259) == b" "
    for vocabulary in VOCABULARIES.values():
        for token_id in (-1, vocabulary.vocab_size):
            with pytest.raises(TokenizerError, match=f"token {token_id} is outside"):
                vocabulary.token_bytes(token_id)


def test_tokens_that_a_user_defined_are_taken_from_the_text_as_it_is() -> None:
    """The longest first, before anything is merged."""
    vocabulary = VOCABULARIES["SentencePiece"]
    tool, spaces = vocabulary.vocab_size - 2, vocabulary.vocab_size - 1
    assert vocabulary.encode("<tool>") == [tool]
    assert vocabulary.encode("   ") == [spaces]
    assert vocabulary.token_bytes(spaces) == b"   "
    metadata = byte_level()
    metadata["tokenizer.ggml.tokens"].append("< tool >")
    metadata["tokenizer.ggml.token_type"].append(USER_DEFINED)
    vocabulary = GgufVocabulary.from_metadata(metadata)
    assert vocabulary.encode("< tool >") == [vocabulary.vocab_size - 1]
    assert vocabulary.token_bytes(vocabulary.vocab_size - 1) == b"< tool >"


# Byte-level


SPLIT = {
    "gpt-2": ["It", "'s", " WE", "'", "LL", " 12345", ",", " x", "  ", "\n\n", " y"],
    "smollm": ["It", "'s", " WE", "'", "LL", " ", *"12345", ",", " x", "  ", "\n\n", " y"],
    "llama-bpe": ["It", "'s", " WE", "'LL", " ", "123", "45", ",", " x", "  \n\n", " y"],
    "qwen2": ["It", "'s", " WE", "'LL", " ", *"12345", ",", " x", "  \n\n", " y"],
}


@pytest.mark.parametrize("pre", SPLIT)
def test_words_are_cut_as_the_file_says(pre: str) -> None:
    """Every two neighbours here could be merged, so only the cuts keep them apart."""
    text = "It's WE'LL 12345, x  \n\n y"
    spelled = text.replace(" ", "Ġ").replace("\n", "Ċ")
    merges, tokens = [], byte_symbols()
    for begin in range(len(spelled)):
        for end in range(begin + 2, len(spelled) + 1):
            merge = f"{spelled[begin : end - 1]} {spelled[end - 1]}"
            if merge not in merges:
                merges.append(merge)
                tokens.append(merge.replace(" ", ""))
    tokens = list(dict.fromkeys(tokens))
    # Merged from the left, a word grows letter by letter.
    merges.sort(key=len)
    vocabulary = GgufVocabulary.from_metadata(
        {
            "tokenizer.ggml.model": "gpt2",
            "tokenizer.ggml.pre": pre,
            "tokenizer.ggml.tokens": tokens,
            "tokenizer.ggml.merges": merges,
        }
    )
    pieces = [vocabulary.token_bytes(i).decode() for i in vocabulary.encode(text)]
    ends = {sum(map(len, pieces[: i + 1])) for i in range(len(pieces))}
    cuts = {sum(map(len, SPLIT[pre][: i + 1])) for i in range(len(SPLIT[pre]))}
    assert cuts <= ends
    assert len(pieces) < len(text)


@pytest.mark.parametrize(
    ("architecture", "pre"), [("gpt2", "gpt-2"), ("llama", "llama-bpe"), ("qwen2", "qwen2")]
)
def test_an_old_file_that_does_not_say_how_it_cuts_has_its_familys_way(
    architecture: str, pre: str
) -> None:
    """An old file that does not say how it cuts has its family's way."""
    unsaid = byte_level(**{"general.architecture": architecture})
    del unsaid["tokenizer.ggml.pre"]
    text = "The 12345's the\n\n  all"
    expected = GgufVocabulary.from_metadata(byte_level(pre)).encode(text)
    assert GgufVocabulary.from_metadata(unsaid).encode(text) == expected


def _library(metadata: dict[str, Any]) -> tokenizers.Tokenizer:
    """The library's own byte-level BPE of the same vocabulary, cut as SmolLM2 is."""
    tokens = metadata["tokenizer.ggml.tokens"]
    merges = [tuple(merge.split(" ")) for merge in metadata["tokenizer.ggml.merges"]]
    ids = {token: token_id for token_id, token in enumerate(tokens)}
    library = tokenizers.Tokenizer(models.BPE(ids, merges))
    library.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )
    return library


SMALL = byte_level("smollm")
SMALL_LIBRARY, SMALL_VOCABULARY = _library(SMALL), GgufVocabulary.from_metadata(SMALL)


@settings(max_examples=300, deadline=None)
@given(text=st.text() | mostly_words.filter(lambda text: "\ud800" not in text))
def test_ids_are_those_of_the_library(text: str) -> None:
    """On every text that the library accepts."""
    assert SMALL_VOCABULARY.encode(text) == SMALL_LIBRARY.encode(text).ids


@settings(max_examples=300, deadline=None)
@given(text=anything | st.text(st.sampled_from("ab\x04\ud800\U00040000\U000bffff\U000c0000")))
def test_only_characters_that_the_vocabulary_cannot_spell_are_replaced(text: str) -> None:
    """Each by one U+FFFD, so that all others keep their place."""
    back = LACKING_BYTES.decode(LACKING_BYTES.encode(text))
    assert len(back) == len(text)
    for before, after in zip(text, back, strict=True):
        spelled = before.encode("utf-8", "surrogatepass")
        assert after == ("\ufffd" if LACKING & set(spelled) else before)


# SentencePiece


def reference_pieces(text: str) -> list[str]:
    """SentencePiece's merging, as its paper and its source have it: a queue of best neighbours."""
    rank = {piece: i for i, piece in enumerate(PIECES)}
    parts: list[str | None] = list(text.replace(" ", "▁"))
    following = {i: i + 1 for i in range(len(parts) - 1)}
    preceding = {i + 1: i for i in range(len(parts) - 1)}
    queue: list[tuple[int, int, int, str]] = []

    def consider(left: int | None, right: int | None) -> None:
        if left is None or right is None:
            return
        joined = f"{parts[left]}{parts[right]}"
        if joined in rank:
            heapq.heappush(queue, (rank[joined], left, right, joined))

    for i in range(len(parts) - 1):
        consider(i, i + 1)
    while queue:
        _, left, right, joined = heapq.heappop(queue)
        if following.get(left) != right or parts[left] is None or parts[right] is None:
            continue
        if f"{parts[left]}{parts[right]}" != joined:
            continue
        parts[left], parts[right] = joined, None
        after = following.pop(right, None)
        following.pop(left)
        if after is not None:
            following[left], preceding[after] = after, left
        consider(preceding.get(left), left)
        consider(left, after)
    return [part for part in parts if part is not None]


@settings(max_examples=300, deadline=None)
@given(words=st.lists(st.sampled_from([*" aehlnotbc", "the", " hello", "anna", "nn", "é"])))
def test_pieces_are_joined_by_their_scores(words: list[str]) -> None:
    """As SentencePiece joins them, the best neighbours of the whole text first."""
    text = re.sub(" {3,}", "  ", "".join(words))  # three are a user's token, taken out before
    for vocabulary, whole in (
        (WITHOUT_SPACE, text),
        (VOCABULARIES["SentencePiece"], f" {text}" if text else ""),
    ):
        found = [vocabulary.token_bytes(token_id).decode() for token_id in vocabulary.encode(text)]
        assert found == [piece.replace("▁", " ") for piece in reference_pieces(whole)]


def spaced_library() -> tokenizers.Tokenizer:
    """The library's own pipeline of the same SentencePiece vocabulary, as Llama 2's file has it."""
    metadata = sentence_piece()
    tokens = metadata["tokenizer.ggml.tokens"]
    ids = {token: token_id for token_id, token in enumerate(tokens)}
    merges = [
        (piece[:cut], piece[cut:])
        for piece in PIECES
        for cut in range(1, len(piece))
        if {piece[:cut], piece[cut:]} <= set(PIECES)
    ]
    library = tokenizers.Tokenizer(models.BPE(ids, merges, byte_fallback=True))
    library.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    library.add_tokens([AddedToken(each, normalized=False) for each in ("<tool>", "   ")])
    return library


SPACED_LIBRARY = spaced_library()


@settings(max_examples=300, deadline=None)
@given(
    words=st.lists(st.sampled_from([*" aehlnotbc€\n", "the", " hello", "anna", "<tool>", "   "]))
)
@example(words=["the", "<tool>", "the", "<tool>", "   ", "the"])
def test_a_space_stands_before_the_text_and_behind_tokens_of_users(words: list[str]) -> None:
    """As in llama.cpp, and as the library's normaliser for such files puts it."""
    text, vocabulary = "".join(words), VOCABULARIES["SentencePiece"]
    token_ids = vocabulary.encode(text)
    assert token_ids == SPACED_LIBRARY.encode(text).ids
    assert vocabulary.decode(token_ids) == text


def test_the_space_before_a_text_is_its_first_tokens_and_not_the_texts() -> None:
    """The first word is the token that it is within a text."""
    vocabulary = VOCABULARIES["SentencePiece"]
    (first,), (within,) = vocabulary.encode("the"), WITHOUT_SPACE.encode(" the")
    assert first == within
    assert vocabulary.token_bytes(first) == b" the"
    assert vocabulary.spell([first, first]) == (b"the", b" the")
    assert vocabulary.decode([first, first]) == "the the"
    assert vocabulary.encode("") == []


def test_whether_a_space_is_put_is_true_or_false() -> None:
    with pytest.raises(TokenizerError, match="add_space_prefix should be true or false"):
        GgufVocabulary.from_metadata(sentence_piece(**{"tokenizer.ggml.add_space_prefix": 1}))


def test_a_character_that_is_no_piece_is_spelled_in_bytes() -> None:
    """A character that is no piece is spelled in bytes."""
    vocabulary = VOCABULARIES["SentencePiece"]
    space = 259 + PIECES.index("▁")
    assert vocabulary.encode("€") == [space, *(3 + byte for byte in "€".encode())]
    assert vocabulary.encode("é") == [space, 259 + PIECES.index("é")]


# Files


@pytest.mark.parametrize("name", VOCABULARIES)
def test_a_saved_vocabulary_loads_as_the_same(name: str, tmp_path: Path) -> None:
    """A saved vocabulary loads as the same."""
    vocabulary = VOCABULARIES[name]
    vocabulary.save(tmp_path)
    loaded = load_tokenizer(tmp_path)
    assert isinstance(loaded, GgufVocabulary)
    assert loaded.vocab_size == vocabulary.vocab_size
    for text in HOSTILE.values():
        assert loaded.encode(text) == vocabulary.encode(text)


def _short(name: str, metadata: dict[str, Any]) -> dict[str, Any]:
    key = f"tokenizer.ggml.{name}"
    return {**metadata, key: metadata[key][:-1]}


DAMAGED: dict[str, tuple[dict[str, Any], str]] = {
    "no kind": ({}, "holds no vocabulary"),
    "an unknown kind": (
        {"tokenizer.ggml.model": "t5", "tokenizer.ggml.tokens": ["a"]},
        "of the kind 't5', which is not read; known: gpt2, llama",
    ),
    "an unknown way to cut": (byte_level("magic"), "splits text in the way 'magic'"),
    "tokens that are numbers": (
        byte_level(**{"tokenizer.ggml.tokens": [1, 2]}),
        "tokens is no list of texts",
    ),
    "a kind too few": (
        _short("token_type", byte_level()),
        "token_type should be a list of 263 numbers, one for each token",
    ),
    "kinds in words": (
        byte_level(**{"tokenizer.ggml.token_type": ["normal"] * 263}),
        "token_type should be a list of 263 numbers",
    ),
    "no merges": (
        {name: value for name, value in byte_level().items() if "merges" not in name},
        "has no list of merges",
    ),
    "a merge of no tokens": (
        byte_level(**{"tokenizer.ggml.merges": ["th zz"]}),
        "no tokens for the merge 'th zz'",
    ),
    "a merge of one": (
        byte_level(**{"tokenizer.ggml.merges": ["th"]}),
        "no tokens for the merge 'th'",
    ),
    "no scores": (
        {name: value for name, value in sentence_piece().items() if "scores" not in name},
        "has no tokenizer.ggml.scores",
    ),
    "a score too few": (_short("scores", sentence_piece()), "scores should be a list of"),
    "no bytes in pieces": (
        sentence_piece(**{"tokenizer.ggml.token_type": [NORMAL] * (261 + len(PIECES))}),
        "lacks a token for byte 0",
    ),
    "no bytes": (
        {
            "tokenizer.ggml.model": "gpt2",
            "tokenizer.ggml.tokens": ["a"],
            "tokenizer.ggml.merges": [],
        },
        "lacks a token for byte 0",
    ),
    "an endless piece": (
        sentence_piece(
            **{
                "tokenizer.ggml.tokens": [
                    *sentence_piece()["tokenizer.ggml.tokens"][:-3],
                    *("a" * 100_000, "<tool>", "   "),
                ]
            }
        ),
        "a token of 100000 characters; at most 512 are read",
    ),
}


@pytest.mark.parametrize(("metadata", "sentence"), DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_vocabulary_is_refused_with_the_reason(
    metadata: dict[str, Any], sentence: str
) -> None:
    """A damaged vocabulary is refused, with the reason."""
    with pytest.raises(TokenizerError, match=sentence):
        GgufVocabulary.from_metadata(metadata)


def test_a_saved_vocabulary_without_its_metadata_is_refused(tmp_path: Path) -> None:
    """A saved vocabulary without its metadata is refused."""
    (tmp_path / "tokenizer.json").write_text(json.dumps({"kind": "gguf"}))
    with pytest.raises(TokenizerError, match="no part named 'metadata'"):
        load_tokenizer(tmp_path)


LONG = {
    "one letter": "a" * 200_000,
    "spaces": " " * 200_000,
    "prose": "It is the east, and hello\n the hall is a hell. " * 4_000,
    "surrogates between letters": "a\ud800" * 50_000,
}


@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
@pytest.mark.parametrize("name", ["byte-level, words whole", "SentencePiece"])
def test_a_long_text_is_tokenized_in_a_second_or_two(name: str, text: str) -> None:
    """Whatever it repeats, its time grows no faster than its length."""
    vocabulary = VOCABULARIES[name]
    began = time.process_time()
    assert vocabulary.decode(vocabulary.encode(text)) == text
    assert time.process_time() - began < 4


# What belongs before a text

LLAMA_3 = {"general.architecture": "llama"} | byte_level(pre="llama-bpe")
WITH_BOS = {"tokenizer.ggml.bos_token_id": 0}
# As llama.cpp decides: what the file says, else SentencePiece's usual token and Llama 3's own way.
BEGINNINGS: dict[str, tuple[dict[str, Any], tuple[int, ...]]] = {
    "byte-level, said": (byte_level(**WITH_BOS, **{"tokenizer.ggml.add_bos_token": True}), (0,)),
    "byte-level, denied": (byte_level(**WITH_BOS, **{"tokenizer.ggml.add_bos_token": False}), ()),
    "byte-level, not said": (byte_level(**WITH_BOS), ()),
    "byte-level, without a token": (byte_level(**{"tokenizer.ggml.add_bos_token": True}), ()),
    "Llama 3, not said": (LLAMA_3 | WITH_BOS, (0,)),
    "Llama 3, denied": (LLAMA_3 | WITH_BOS | {"tokenizer.ggml.add_bos_token": False}, ()),
    "SentencePiece, not said": (sentence_piece(**{"tokenizer.ggml.bos_token_id": 2}), (2,)),
    "SentencePiece, denied": (sentence_piece(**{"tokenizer.ggml.add_bos_token": False}), ()),
}


@pytest.mark.parametrize(("metadata", "before"), BEGINNINGS.values(), ids=BEGINNINGS)
def test_what_belongs_before_a_text_is_told_apart_from_it(
    metadata: dict[str, Any], before: tuple[int, ...], tmp_path: Path
) -> None:
    """No text is encoded with it, and saving keeps it."""
    vocabulary = GgufVocabulary.from_metadata(metadata)
    assert vocabulary.prefix_ids == before
    assert vocabulary.decode(vocabulary.encode("the hello")) == "the hello"
    vocabulary.save(tmp_path)
    assert load_tokenizer(tmp_path).prefix_ids == before


def test_where_nothing_is_said_sentence_piece_has_its_usual_token() -> None:
    """The second one, if it is a special one."""
    for types, before in (([2, 3, 3], (1,)), ([2, 1, 3], ())):
        metadata = sentence_piece()
        listed = list(metadata["tokenizer.ggml.token_type"])
        metadata["tokenizer.ggml.token_type"] = types + listed[3:]
        assert GgufVocabulary.from_metadata(metadata).prefix_ids == before


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        ({"tokenizer.ggml.bos_token_id": 10**6}, r"bos_token_id should be one of its \d+ tokens"),
        ({"tokenizer.ggml.bos_token_id": -1}, r"bos_token_id should be one of its \d+ tokens"),
        ({"tokenizer.ggml.bos_token_id": "<s>"}, r"bos_token_id should be one of its \d+ tokens"),
        ({"tokenizer.ggml.add_bos_token": 1}, r"add_bos_token should be true or false"),
        ({"tokenizer.ggml.add_bos_token": np.ones(2)}, r"add_bos_token should be true or false"),
    ],
    ids=str,
)
def test_a_beginning_that_cannot_be_is_refused(damage: dict[str, Any], sentence: str) -> None:
    """With the name of the setting."""
    metadata = byte_level(**{"tokenizer.ggml.add_bos_token": True}) | damage
    with pytest.raises(TokenizerError, match=sentence):
        GgufVocabulary.from_metadata(metadata)
