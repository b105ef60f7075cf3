"""Vocabularies of Hugging Face's folders: every text comes back, and bad files are named."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, trainers

from engine.errors import TokenizerError
from engine.tokenizers.hugging_face import (
    HuggingFaceVocabulary,
    read_vocabulary,
    vocabulary_from,
)

SAMPLE = ["to be, or not to be: that is the question", "  whether 'tis nobler\n\tin the mind"] * 3
BYTE_NAMES = [f"<0x{byte:02X}>" for byte in range(256)]
HOSTILE = [
    "",
    " to be",
    "to  be ",
    "e\u0301 is not \u00e9",  # the same letter, two ways
    "▁to▁be▁",
    "<0x41>",
    "  <|end|>  to",
    "<s>to</s>",
    "\ud800x\udfff",
    "👩‍👩‍👧 שלום \x00\r\n",
]


def _byte_level() -> dict[str, Any]:
    """A small one with everything that such a file may do to a text."""
    merges = [
        ("b", "e"),
        ("t", "o"),
        ("Ġ", "to"),
        ("Ġ", "be"),
        ("t", "h"),
        ("th", "e"),
        ("Ġ", "the"),
    ]
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokens = [*alphabet, *("".join(merge) for merge in merges)]
    vocabulary = {token: token_id for token_id, token in enumerate(tokens)}
    library = tokenizers.Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    library.normalizer = normalizers.NFC()
    library.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.Split(Regex(r"\d+"), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=True),
        ]
    )
    library.decoder = decoders.ByteLevel()
    special = tokenizers.AddedToken("<|end|>", lstrip=True, rstrip=True, special=True)
    library.add_special_tokens([special])
    library.enable_truncation(4)
    library.enable_padding(length=9)
    return dict(json.loads(library.to_str()))


def _sentence_piece(*, metaspace: bool) -> dict[str, Any]:
    """A small one as Llama 2 has it, in its older or its newer way of writing ▁."""
    vocabulary = {token: i for i, token in enumerate(["<unk>", "<s>", "</s>", *BYTE_NAMES])}
    merges = [("t", "o"), ("▁", "to"), ("b", "e"), ("▁", "be")]
    for token in [*"▁tobe, rnht", *("".join(merge) for merge in merges)]:
        vocabulary.setdefault(token, len(vocabulary))
    library = tokenizers.Tokenizer(
        models.BPE(
            vocab=vocabulary,
            merges=merges,
            unk_token="<unk>",  # noqa: S106 - a token of text
            fuse_unk=True,
            byte_fallback=True,
        )
    )
    if metaspace:
        library.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    else:
        library.normalizer = normalizers.Sequence(
            [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
        )
    library.add_special_tokens(["<s>", "</s>"])
    return dict(json.loads(library.to_str()))


KINDS: dict[str, dict[str, Any]] = {
    "byte level": _byte_level(),
    "SentencePiece, older": _sentence_piece(metaspace=False),
    "SentencePiece, newer": _sentence_piece(metaspace=True),
}


def _hostile_examples(test: Any) -> Any:
    for text in HOSTILE:
        test = example(text)(test)
    return test


@pytest.fixture(scope="module", params=KINDS)
def vocabulary(request: pytest.FixtureRequest) -> HuggingFaceVocabulary:
    """One of each kind."""
    return vocabulary_from(KINDS[request.param])


@_hostile_examples
@settings(max_examples=60, deadline=None)
@given(text=st.text(st.characters() | st.sampled_from(" ▁\nto be<s>\ud800"), max_size=40))
def test_every_text_comes_back_and_is_its_tokens_bytes(
    vocabulary: HuggingFaceVocabulary, text: str
) -> None:
    """Spaces, letters that stand for spaces, special tokens, lone surrogates and all."""
    token_ids = vocabulary.encode(text)
    assert vocabulary.decode(token_ids) == text
    spelled = vocabulary.spell(token_ids)
    assert len(spelled) == len(token_ids)
    assert b"".join(spelled) == text.encode("utf-8", "surrogatepass")


def _library(data: dict[str, Any]) -> tokenizers.Tokenizer:
    """The library's own pipeline of a file."""
    library = tokenizers.Tokenizer.from_str(json.dumps(data))
    library.no_truncation()
    library.no_padding()
    return library


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_of_tokens_is_encoded_as_the_library_does(kind: str) -> None:
    """The first word too, which gets the space that such words begin with."""
    text, ours = "to be, or not to be", vocabulary_from(KINDS[kind])
    expected = _library(KINDS[kind]).encode(text, add_special_tokens=False).ids
    token_ids = ours.encode(text)
    assert token_ids == expected
    assert ours.token_bytes(token_ids[0]) == b" to"
    assert ours.spell(token_ids)[0] == b"to"


_WORDS = st.lists(st.sampled_from([*" rnht,é\n€", "to", " to", "be", " be", "<s>", "</s>"]))
PIPELINES = {
    "SentencePiece, older": KINDS["SentencePiece, older"],
    "SentencePiece, newer": KINDS["SentencePiece, newer"],
    "a space before all": {
        **KINDS["SentencePiece, newer"],
        "pre_tokenizer": {
            "type": "Metaspace",
            "replacement": "▁",
            "prepend_scheme": "always",
            "split": True,
        },
    },
    "no space": {
        **KINDS["SentencePiece, newer"],
        "pre_tokenizer": {
            "type": "Metaspace",
            "replacement": "▁",
            "prepend_scheme": "never",
            "split": False,
        },
    },
}


@pytest.mark.parametrize("name", PIPELINES)
@settings(max_examples=150, deadline=None)
@given(words=_WORDS)
@example(words=["to", "</s>", "to", " be", "<s>", " be"])
def test_ids_are_those_of_the_librarys_own_pipeline(name: str, words: list[str]) -> None:
    """Before the text and behind special tokens, wherever the file has a space put.

    `Metaspace` puts none before a space, so that two texts would be one: there alone ours does.
    """
    text = "".join(words)
    parts = re.split("(</?s>)", text)
    if name != "SentencePiece, older":
        everywhere = name == "a space before all"
        with_space = [not i % 2 and (i == 0 or everywhere) for i in range(len(parts))]
        parts = [
            part.lstrip(" ") if is_spaced else part
            for part, is_spaced in zip(parts, with_space, strict=True)
        ]
        text = "".join(parts)
    ours = vocabulary_from(PIPELINES[name])
    token_ids = ours.encode(text)
    assert token_ids == _library(PIPELINES[name]).encode(text, add_special_tokens=False).ids
    assert ours.decode(token_ids) == text


def test_a_text_that_begins_with_spaces_keeps_them() -> None:
    """It has one token more, or a longer one; without a word there is only the space put in."""
    for kind in ("SentencePiece, older", "SentencePiece, newer"):
        ours = vocabulary_from(KINDS[kind])
        said = {text: [*map(ours.token_bytes, ours.encode(text))] for text in ("to", " to", "\n")}
        assert said == {"to": [b" to"], " to": [b" ", b" to"], "\n": [b" ", b"\n"]}
        assert ours.spell(ours.encode(" to")) == (b"", b" to")
        assert ours.spell(ours.encode("\n")) == (b"", b"\n")


def test_a_token_that_is_no_part_of_a_word_is_left_within_one() -> None:
    """As the library leaves it, beside letters and digits."""
    data = json.loads(json.dumps(KINDS["SentencePiece, older"]))
    data["added_tokens"][0]["single_word"] = True
    ours, library = vocabulary_from(data), _library(data)
    token = data["added_tokens"][0]["content"]
    for text in (f"to{token}be", f"to {token} be", f"{token}", f"to{token}", f",{token},"):
        assert ours.encode(text) == library.encode(text, add_special_tokens=False).ids
        assert ours.decode(ours.encode(text)) == text


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_vocabulary_is_read_as_the_same(kind: str, tmp_path: Path) -> None:
    """With its space, its special tokens and what belongs before a text."""
    step = _template(_BEGIN, _TEXT) if kind != "byte level" else None
    ours = vocabulary_from({**KINDS[kind], "post_processor": step})
    ours.save(tmp_path)
    again = read_vocabulary(tmp_path)
    assert (again.vocab_size, again.prefix_ids) == (ours.vocab_size, ours.prefix_ids)
    for text in HOSTILE:
        assert again.encode(text) == ours.encode(text)


def test_a_vocabulary_without_a_token_for_the_space_gets_none() -> None:
    """There is nothing that could stand for it, and words come back all the same."""
    data = json.loads(json.dumps(KINDS["SentencePiece, older"]))
    vocabulary = data["model"]["vocab"]
    vocabulary["?"] = vocabulary.pop("▁")
    data["model"]["merges"] = [pair for pair in data["model"]["merges"] if "▁" not in pair]
    ours = vocabulary_from(data)
    assert ours.decode(ours.encode("to")) == "to"


def test_special_tokens_are_one_token_and_spaces_around_them_stay() -> None:
    ours = vocabulary_from(KINDS["byte level"])
    end = json.loads(json.dumps(KINDS["byte level"]))["added_tokens"][0]["id"]
    token_ids = ours.encode("to <|end|> be")
    assert token_ids.count(end) == 1
    assert ours.token_bytes(end) == b"<|end|>"
    assert ours.decode(token_ids) == "to <|end|> be"


def test_a_byte_of_a_sentence_piece_vocabulary_is_that_byte() -> None:
    ours = vocabulary_from(KINDS["SentencePiece, older"])
    token_ids = ours.encode("é\n")
    pieces = [ours.token_bytes(token_id) for token_id in token_ids]
    assert pieces == [b" ", b"\xc3", b"\xa9", b"\n"]


def test_a_byte_that_has_no_token_is_read_as_the_replacement_character() -> None:
    """Some published vocabularies lack a few control characters."""
    data = json.loads(json.dumps(KINDS["byte level"]))
    symbol = pre_tokenizers.ByteLevel(add_prefix_space=False).pre_tokenize_str("\x01")[0][0]
    spare = data["model"]["vocab"].pop(symbol)
    data["model"]["vocab"]["Ġspare"] = spare
    ours = vocabulary_from(data)
    assert ours.decode(ours.encode("a\x01b")) == "a\ufffdb"
    assert ours.decode(ours.encode("to be\x02")) == "to be\x02"


def test_the_older_files_give_what_the_newer_one_gives(tmp_path: Path) -> None:
    """vocab.json and merges.txt, as GPT-2's first folders have them."""
    library = tokenizers.Tokenizer(models.BPE())
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=["<|endoftext|>"],
        show_progress=False,
    )
    library.train_from_iterator(SAMPLE, trainer)
    model = json.loads(library.to_str())["model"]
    (tmp_path / "vocab.json").write_text(json.dumps(model["vocab"]), encoding="utf-8")
    merges = "\n".join(" ".join(pair) for pair in model["merges"])
    (tmp_path / "merges.txt").write_text(f"#version: 0.2\n{merges}\n", encoding="utf-8")
    ours = read_vocabulary(tmp_path)
    text = "to be, or not<|endoftext|> to be"
    assert ours.encode(text) == library.encode(text).ids
    for said, before in (
        ('{"add_bos_token": true}', (0,)),
        ('{"add_bos_token": true, "bos_token": {"content": "<|endoftext|>"}}', (0,)),
        ('{"add_bos_token": true, "bos_token": ["<|endoftext|>"]}', ()),
        ('{"add_bos_token": false}', ()),
        ("{}", ()),
    ):
        (tmp_path / "tokenizer_config.json").write_text(said)
        assert read_vocabulary(tmp_path).prefix_ids == before
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "Qwen2Tokenizer"}')
    with pytest.raises(TokenizerError, match="do not say how a 'Qwen2Tokenizer' splits text"):
        read_vocabulary(tmp_path)


# What belongs before a text

_BEGIN = {"SpecialToken": {"id": "<s>", "type_id": 0}}
_END = {"SpecialToken": {"id": "</s>", "type_id": 0}}
_TEXT, _SECOND = ({"Sequence": {"id": name, "type_id": 0}} for name in "AB")


def _template(*pieces: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "TemplateProcessing",
        "single": list(pieces),
        "pair": [*pieces, _SECOND],
        "special_tokens": {
            token: {"id": token, "ids": [token_id], "tokens": [token]}
            for token, token_id in (("<s>", 1), ("</s>", 2))
        },
    }


_BYTES_STEP = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False}
POST_PROCESSORS: dict[str, tuple[Any, list[int]]] = {
    "none": (None, []),
    "one that only counts bytes": (_BYTES_STEP, []),
    "before": (_template(_BEGIN, _TEXT), [1]),
    "before, twice": (_template(_BEGIN, _END, _TEXT), [1, 2]),
    "behind": (_template(_TEXT, _END), []),
    "around": (_template(_BEGIN, _TEXT, _END), [1]),
    "as Llama 3 has it": (
        {"type": "Sequence", "processors": [_BYTES_STEP, _template(_BEGIN, _TEXT)]},
        [1],
    ),
    "as RoBERTa has it": (
        {
            "type": "RobertaProcessing",
            "sep": ["</s>", 2],
            "cls": ["<s>", 1],
            "trim_offsets": True,
            "add_prefix_space": False,
        },
        [1],
    ),
}


@pytest.mark.parametrize(("step", "before"), POST_PROCESSORS.values(), ids=POST_PROCESSORS)
def test_what_the_library_puts_before_a_text_is_told_apart_from_it(
    step: Any, before: list[int]
) -> None:
    """The library's own ids begin with it; a text's do not, and it comes back as it was."""
    data = {**KINDS["SentencePiece, newer"], "post_processor": step}
    ours = vocabulary_from(data)
    assert list(ours.prefix_ids) == before
    library = tokenizers.Tokenizer.from_str(json.dumps(data))
    whole, bare = (library.encode("to be", add_special_tokens=each).ids for each in (True, False))
    assert whole[: len(before) + len(bare)] == before + bare
    assert ours.decode(ours.encode(" to be")) == " to be"


@pytest.mark.parametrize("post_processor", ["none", "before"])
@pytest.mark.parametrize("adds", [None, True, False])
def test_a_tokenizer_json_has_the_last_word(
    tmp_path: Path,
    adds: bool | None,  # noqa: FBT001
    post_processor: str,
) -> None:
    """As `transformers` 5.24 decides, with each of eight classes of tokenizers."""
    step, before = POST_PROCESSORS[post_processor]
    data = {**KINDS["SentencePiece, newer"], "post_processor": step}
    (tmp_path / "tokenizer.json").write_text(json.dumps(data), encoding="utf-8")
    config = {"tokenizer_class": "LlamaTokenizer", "bos_token": "<s>"}
    config |= {} if adds is None else {"add_bos_token": adds}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    assert list(read_vocabulary(tmp_path).prefix_ids) == before


@pytest.mark.parametrize("token_ids", [[10**6], [-1], ["1"], [True], [None], [[1]]], ids=repr)
def test_a_beginning_that_is_no_token_is_refused(token_ids: list[Any]) -> None:
    step = _template(_BEGIN, _TEXT)
    step["special_tokens"]["<s>"]["ids"] = token_ids
    with pytest.raises(TokenizerError, match="puts before a text is none of its tokens"):
        vocabulary_from({**KINDS["SentencePiece, newer"], "post_processor": step})


def _changed(**changes: Any) -> dict[str, Any]:
    return {**KINDS["byte level"], **changes}


BAD: list[tuple[dict[str, Any], str]] = [
    ({}, r"of the kind None; only BPE is read"),
    (_changed(model={"type": "Unigram", "vocab": []}), r"of the kind 'Unigram'; only BPE"),
    (_changed(model={"type": "BPE", "vocab": 3, "merges": []}), r"is damaged"),
    (_changed(normalizer={"type": "Lowercase"}), r"rewrites text first \('Lowercase'\)"),
    (
        _changed(normalizer={"type": "Replace", "pattern": {"String": "a"}, "content": "b"}),
        r"rewrites text first \('Replace'\)",
    ),
    (
        _changed(normalizer={"type": "Replace", "pattern": {"String": " "}}),
        r"rewrites text first \('Replace'\)",
    ),
    (
        _changed(normalizer={"type": "Prepend", "prepend": "so "}),
        r"rewrites text first \('Prepend'\)",
    ),
    (
        _changed(pre_tokenizer={"type": "Whitespace"}),
        r"not known to keep all of it \('Whitespace'\)",
    ),
    (
        _changed(
            pre_tokenizer={
                "type": "Split",
                "pattern": {"String": " "},
                "behavior": "Removed",
                "invert": False,
            }
        ),
        r"not known to keep all of it \('Split'\)",
    ),
    (_changed(pre_tokenizer=None), r"is not spelled in bytes and has no tokens for them"),
    (_changed(added_tokens=[3]), r"'added_tokens' is no list of tokens"),
    (
        _changed(model={**KINDS["byte level"]["model"], "end_of_word_suffix": "</w>"}),
        r"marks parts of words",
    ),
    (
        _changed(model={**KINDS["byte level"]["model"], "vocab": {"a": 0}, "merges": []}),
        r"lacks a token for byte",
    ),
    (
        _changed(model={**KINDS["byte level"]["model"], "merges": [["b", "Ġ"]]}),
        r"its vocabulary is damaged: Token `bĠ` out of vocabulary",
    ),
    (  # longer than any token, over which the library panics
        _changed(model={"vocab": {"b": 0, "Ġ": 1}, "merges": [["b", "Ġ"]]}),
        r"its vocabulary is damaged: range end index",
    ),
    (_changed(model={"type": "x" * 400}), r"of the kind 'x{27}\.\.\.x{28}'; only BPE is read"),
    (
        _changed(
            model={
                **KINDS["byte level"]["model"],
                "vocab": {**KINDS["byte level"]["model"]["vocab"], "far": 10**9},
            }
        ),
        r"but the id 1000000000; ids should run on",
    ),
]


@pytest.mark.parametrize(("data", "sentence"), BAD, ids=[sentence for _, sentence in BAD])
def test_what_cannot_be_read_is_one_sentence(data: dict[str, Any], sentence: str) -> None:
    with pytest.raises(TokenizerError, match=sentence):
        vocabulary_from(data)


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+$"])
def test_a_pattern_that_finds_no_end_is_one_sentence(pattern: str) -> None:
    """On the texts that it is lost on; the library's own failure would end the engine's thread."""
    steps = [
        {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False},
        {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False},
    ]
    ours = vocabulary_from(_changed(pre_tokenizer={"type": "Sequence", "pretokenizers": steps}))
    assert ours.decode(ours.encode("to be")) == "to be"
    with pytest.raises(TokenizerError, match=r"cannot cut this text into tokens .*retry-limit"):
        ours.encode(f"{'a' * 60}!")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [(b"{", "is not JSON"), (b"[]", "holds no settings by name"), (b"\xff", "is not UTF-8")],
)
def test_a_damaged_file_is_named(tmp_path: Path, content: bytes, sentence: str) -> None:
    (tmp_path / "tokenizer.json").write_bytes(content)
    with pytest.raises(TokenizerError, match=rf"tokenizer\.json {sentence}"):
        read_vocabulary(tmp_path)
