"""A first word is read as a word within a text, and the text on screen is the user's own."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.answers.comparison import Wanted
from engine.answers.second_run import SecondRun
from engine.loading import load
from engine.scope import Scope
from engine.tokenizers import GgufVocabulary, load_tokenizer
from engine.tokenizers.padded import Padded
from engine.tokenizers.spaced import Spaced
from tests.engine.gguf_files import LLAMA, llama_weights, write_llama
from tests.engine.tokenizers.test_gguf_vocabulary import sentence_piece

N_TOKENS = len(sentence_piece()["tokenizer.ggml.tokens"])
BOS = 1


def _file(path: Path, **more: Any) -> Path:
    """The toy model with a SentencePiece vocabulary, and a row of the embedding to spare."""
    weights = llama_weights()
    rows = np.random.default_rng(1).normal(0, 0.3, (N_TOKENS + 1, 32)).astype(np.float32)
    weights["token_embd.weight"] = rows
    return write_llama(path, metadata=LLAMA, weights=weights, vocabulary=sentence_piece(**more))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Such a file."""
    return _file(tmp_path_factory.mktemp("spaced") / "toy.gguf")


@pytest.fixture
def scope(path: Path) -> Scope:
    """A scope on its model."""
    return Scope(load(path))


def the(scope: Scope) -> int:
    """The id of ▁the."""
    return next(i for i, data in enumerate(scope.info.vocabulary) if data == b" the")


def test_the_space_is_the_tokens_and_not_the_texts(scope: Scope) -> None:
    """The model reads ▁the twice; spans and text hold what was typed."""
    document = scope.edit("the the").document
    assert document.text == "the the"
    assert document.token_ids == (BOS, the(scope), the(scope))
    assert document.tokens == (b"<s>", b" the", b" the")
    assert document.spelled == (b"", b"the", b" the")
    assert document.spans.tolist() == [[0, 0], [0, 3], [3, 7]]
    assert document.replaced == ()


def test_a_text_that_begins_with_a_space_keeps_it(scope: Scope) -> None:
    """Then a token stands before its own, and has no character."""
    document = scope.edit(" the").document
    assert document.text == " the"
    assert document.tokens == (b"<s>", b" ", b" the")
    assert document.spans.tolist() == [[0, 0], [0, 0], [0, 4]]
    assert scope.edit("").document.tokens == (b"<s>",)


def test_a_branch_and_the_switch_keep_text_and_spans_together(scope: Scope) -> None:
    """A first word that is chosen loses its space; behind others it has it."""
    scope.edit("")
    assert scope.choose(1, the(scope)).document.text == "the"
    document = scope.choose(2, the(scope)).document
    assert (document.text, document.spans.tolist()) == ("the the", [[0, 0], [0, 3], [3, 7]])
    without = scope.set_prefix(use=False).document
    assert (without.text, without.spans.tolist()) == ("the the", [[0, 3], [3, 7]])
    assert scope.edit("the the").document.token_ids == without.token_ids


def test_a_second_run_reads_the_same_text(scope: Scope, tmp_path: Path) -> None:
    """On the same model; and token by token on one of this vocabulary that puts no space."""
    reading = scope.edit("the ann")
    same = SecondRun().compare(scope, reading, Wanted())
    assert same is not None
    assert same.b.document.text == "the ann"
    assert same.b.document.spans.tolist() == reading.document.spans.tolist()
    other = _file(tmp_path / "other.gguf", **{"tokenizer.ggml.add_space_prefix": False})
    apart = SecondRun().compare(scope, reading, Wanted(path=other))
    assert apart is not None
    assert apart.b.document.text == "the ann"
    assert apart.b.document.token_ids == reading.document.token_ids
    assert apart.b.document.spans.tolist() == reading.document.spans.tolist()


def test_ids_that_have_no_token_spell_nothing_and_leave_the_first_word_first(path: Path) -> None:
    """A model may draw a row of its embedding that stands for no token."""
    loaded = load(path)
    assert isinstance(loaded.tokenizer, Padded)
    word = the(Scope(loaded))
    assert loaded.tokenizer.spell([N_TOKENS, word, N_TOKENS, word]) == (b"", b"the", b"", b" the")
    assert loaded.tokenizer.decode([N_TOKENS, word, word]) == "the the"


def test_a_saved_vocabulary_keeps_its_space(tmp_path: Path) -> None:
    """And one without keeps having none."""
    for more in ({}, {"tokenizer.ggml.add_space_prefix": False}):
        vocabulary = GgufVocabulary.from_metadata(sentence_piece(**more))
        vocabulary.save(tmp_path)
        assert load_tokenizer(tmp_path).encode("the the") == vocabulary.encode("the the")


def test_the_longest_of_the_tokens_that_stand_apart_is_found() -> None:
    """And what is left between them is to be merged, with a space where it belongs."""
    apart = {"<a>": 7, "<a><b>": 8, "  ": 9}
    everywhere = Spaced(apart, everywhere=True)
    assert list(everywhere.pieces("x<a><b>y<a>  z")) == [" x", 8, " y", 7, 9, " z"]
    assert list(everywhere.pieces("<a> x")) == [7, "  x"]
    first = Spaced(apart, everywhere=False)
    assert list(first.pieces("x<a>y")) == [" x", 7, "y"]
    assert list(first.pieces("<a>y")) == [7, "y"]
    assert list(Spaced({}, everywhere=True).pieces("")) == []
    assert first.spell([9, 1], [b"  ", b" y"]) == (b"  ", b" y")
    assert everywhere.spell([9, 1], [b"  ", b" y"]) == (b"  ", b"y")
