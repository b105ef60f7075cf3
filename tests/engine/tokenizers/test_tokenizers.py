"""Every text survives tokenizing, and every token can be shown."""

import errno
import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import TokenizerError
from engine.tokenizers import ByteBpe, Characters, Tokenizer, load_tokenizer

SAMPLE = (
    "ROMEO:\nBut, soft! what light through yonder window breaks?\n"
    "It is the east, and Juliet is the sun!\n\nJULIET:\nO Romeo, Romeo! wherefore art thou Romeo?\n"
) * 20

TOKENIZERS: dict[str, Tokenizer] = {
    "characters": Characters.train([SAMPLE]),
    "byte-bpe": ByteBpe.train([SAMPLE], 300),
}

HOSTILE = {
    "empty": "",
    "one space": " ",
    "only newlines": "\n\n\n",
    "NUL": "a\0b\0",
    "a lone surrogate": "a\ud800b",
    "two halves that are a pair elsewhere": "\ud83d\ude00",
    "surrogates the wrong way round": "\udc00\ud800",
    "emoji with joiners": "👩‍👩‍👧‍👦 🏳️‍🌈",
    "right to left": "שָׁלוֹם עליכם مرحبا",
    "combining marks": "e\u0301 Z\u0351\u036b\u0343",
    "the replacement character": "\ufffd",
    "the last code point": "\U0010ffff",
    "line ends of all kinds": "a\r\nb\rc\u2028d\x85e",
    "trailing spaces": "word   \n   word\t ",
    "markup": "<b>bold</b> &amp; <|endoftext|>",
}


@pytest.fixture(params=TOKENIZERS)
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    """Each tokenizer in turn."""
    return TOKENIZERS[request.param]


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_comes_back_unchanged(tokenizer: Tokenizer, text: str) -> None:
    """Hostile text comes back unchanged."""
    assert tokenizer.decode(tokenizer.encode(text)) == text


@settings(max_examples=300, deadline=None)
@given(text=st.text(st.characters(exclude_categories=())))
@pytest.mark.parametrize("name", TOKENIZERS)
def test_any_text_comes_back_unchanged(name: str, text: str) -> None:
    """Any text comes back unchanged."""
    tokenizer = TOKENIZERS[name]
    token_ids = tokenizer.encode(text)
    assert tokenizer.decode(token_ids) == text
    spelled = b"".join(tokenizer.token_bytes(token_id) for token_id in token_ids)
    assert spelled == text.encode("utf-8", "surrogatepass")


@settings(max_examples=300, deadline=None)
@given(data=st.data())
@pytest.mark.parametrize("name", TOKENIZERS)
def test_any_token_ids_decode_to_some_text(name: str, data: st.DataObject) -> None:
    """Halves of characters become U+FFFD exactly as Python replaces them, never an error."""
    tokenizer = TOKENIZERS[name]
    token_ids = data.draw(st.lists(st.integers(0, tokenizer.vocab_size - 1)))
    text = tokenizer.decode(token_ids)
    spelled = b"".join(tokenizer.token_bytes(token_id) for token_id in token_ids)
    try:
        assert text == spelled.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        assert "\ufffd" in text


def test_half_a_character_shows_as_one_replacement_character(tokenizer: Tokenizer) -> None:
    """Half a character shows as one replacement character."""
    token_ids = tokenizer.encode("é")
    assert len(token_ids) == 2
    assert tokenizer.decode(token_ids[:1]) == "\ufffd"


@pytest.mark.parametrize("token_id", [-1, 10_000_000])
def test_an_id_outside_the_vocabulary_is_refused_by_name(
    tokenizer: Tokenizer, token_id: int
) -> None:
    """An id outside the vocabulary is refused by name."""
    with pytest.raises(TokenizerError, match=f"token {token_id} is outside the vocabulary of 0"):
        tokenizer.decode([token_id])


def test_every_id_below_vocab_size_has_bytes(tokenizer: Tokenizer) -> None:
    """Every id below vocab size has bytes."""
    spelled = [tokenizer.token_bytes(token_id) for token_id in range(tokenizer.vocab_size)]
    assert {bytes([byte]) for byte in range(256)} <= set(spelled)
    assert all(spelled)


def test_a_known_character_is_one_token_and_an_unknown_one_is_its_bytes() -> None:
    """A known character is one token and an unknown one is its bytes."""
    tokenizer = Characters(["a", "é"])
    assert tokenizer.encode("aéa") == [0, 1, 0]
    assert tokenizer.encode("€") == [2 + byte for byte in "€".encode()]
    assert tokenizer.vocab_size == 2 + 256


def test_byte_pairs_make_frequent_words_one_token() -> None:
    """Byte pairs make frequent words one token."""
    tokenizer = ByteBpe.train(["the cat " * 50], 300)
    assert [tokenizer.token_bytes(i) for i in tokenizer.encode(" the cat")] == [b" the", b" cat"]


def test_training_twice_gives_the_same_vocabulary(tmp_path: Path) -> None:
    """Training twice gives the same vocabulary."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        ByteBpe.train([SAMPLE], 290).save(tmp_path / name)
    files = [(tmp_path / name / "tokenizer.json").read_bytes() for name in ("one", "two")]
    assert files[0] == files[1]


@pytest.mark.parametrize("name", TOKENIZERS)
def test_a_tokenizer_that_cannot_be_written_leaves_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A training writes its own again and again, and may end at any moment."""
    TOKENIZERS[name].save(tmp_path)
    before = (tmp_path / "tokenizer.json").read_bytes()

    def full(_file: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("engine.whole_file.os.fsync", full)
    others: dict[str, Tokenizer] = {
        "characters": Characters("ab"),
        "byte-bpe": ByteBpe.train(["ab" * 9], 257),
    }
    with pytest.raises(OSError, match="No space left"):
        others[name].save(tmp_path)
    assert (tmp_path / "tokenizer.json").read_bytes() == before


def test_a_saved_tokenizer_loads_as_the_same(tokenizer: Tokenizer, tmp_path: Path) -> None:
    """A saved tokenizer loads as the same."""
    tokenizer.save(tmp_path)
    loaded = load_tokenizer(tmp_path)
    assert type(loaded) is type(tokenizer)
    assert loaded.vocab_size == tokenizer.vocab_size
    text = "O Romeo! 👩‍👧 \ud800\0"
    assert loaded.encode(text) == tokenizer.encode(text)


def test_known_surrogates_survive_saving(tmp_path: Path) -> None:
    """Two neighbours in the list must not be joined into one character by JSON."""
    tokenizer = Characters(["\ud83d", "\ude00"])
    tokenizer.save(tmp_path)
    assert load_tokenizer(tmp_path).encode("\ud83d\ude00") == [0, 1]


def _without_bytes(data: dict[str, object]) -> object:
    return {**data, "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}}


DAMAGED: dict[str, tuple[Callable[[dict[str, object]], object], str]] = {
    "a list": (lambda _: [1, 2], "no vocabulary of a known kind"),
    "an unknown kind": (lambda _: {"kind": "words"}, "no vocabulary of a known kind"),
    "no characters": (lambda _: {"kind": "characters"}, "no list named 'characters'"),
    "two characters in one entry": (
        lambda _: {"kind": "characters", "characters": ["ab"]},
        "'ab'; each entry must be one character",
    ),
    "a number as a character": (
        lambda _: {"kind": "characters", "characters": [7]},
        "7; each entry must be one character",
    ),
    "a character twice": (
        lambda _: {"kind": "characters", "characters": ["a", "b", "a"]},
        "'a' twice",
    ),
    "missing bytes": (_without_bytes, "lacks a token for byte 0"),
    "an unknown model": (lambda data: {**data, "model": {"type": "Magic"}}, "damaged"),
    "a normalizer": (lambda data: {**data, "normalizer": {"type": "NFC"}}, r"rewrites text .*NFC"),
    "a vocabulary in characters": (
        lambda data: {**data, "model": {"type": "BPE", "vocab": {"▁a": 0}, "merges": []}},
        "'▁a' is not spelled in bytes",
    ),
}


@pytest.mark.parametrize(("damage", "sentence"), DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_vocabulary_is_refused_with_the_reason(
    tmp_path: Path, damage: Callable[[dict[str, object]], object], sentence: str
) -> None:
    """A damaged vocabulary is refused, with the reason."""
    TOKENIZERS["byte-bpe"].save(tmp_path)
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(damage(json.loads(path.read_bytes()))))
    with pytest.raises(TokenizerError, match=sentence) as caught:
        load_tokenizer(tmp_path)
    assert str(path) in str(caught.value)


def test_a_missing_cut_off_or_binary_file_is_refused(tmp_path: Path) -> None:
    """A missing cut off or binary file is refused."""
    with pytest.raises(TokenizerError, match="does not exist"):
        load_tokenizer(tmp_path)
    TOKENIZERS["byte-bpe"].save(tmp_path)
    path = tmp_path / "tokenizer.json"
    for content in (path.read_bytes()[:100], b"\xff\xfe\0"):
        path.write_bytes(content)
        with pytest.raises(TokenizerError, match="is not JSON"):
            load_tokenizer(tmp_path)


def test_too_small_a_vocabulary_is_refused() -> None:
    """Too small a vocabulary is refused."""
    with pytest.raises(TokenizerError, match="100 cannot hold the 256 single bytes"):
        ByteBpe.train([SAMPLE], 100)


MEGABYTES = {
    "one letter": "a" * 1_000_000,
    "spaces": " " * 1_000_000,
    "newlines": "\n" * 1_000_000,
    "prose": (SAMPLE * 300)[:1_000_000],
    "emoji": "👩‍👧" * 60_000,
    "surrogates between letters": "a\ud800" * 250_000,
}


@pytest.mark.parametrize("text", MEGABYTES.values(), ids=MEGABYTES)
def test_a_megabyte_is_tokenized_in_seconds(tokenizer: Tokenizer, text: str) -> None:
    """A megabyte is tokenized in seconds."""
    started = time.process_time()
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert time.process_time() - started < 10
