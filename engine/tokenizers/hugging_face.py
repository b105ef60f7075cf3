"""Vocabularies as Hugging Face's folders hold them: byte-level and SentencePiece-like BPE.

The `tokenizers` library does the merging. From its settings is taken whatever would keep a text
from coming back as it was: normalisation to NFC, spaces that special tokens swallow, truncation.
A space that belongs before a text is put there by `Spaced`, which can tell it from the text's own;
before a text that begins with spaces it comes as well, where the library leaves it out. What the
library would put before a text is told apart from it, as `prefix_ids`, and nothing is put behind
it; a special token that is written out in a text is that token. What the library could not give
back is kept from it and spelled in single-byte tokens: lone surrogates and, where it stands for a
space, the letter ▁.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tokenizers

from engine.checkpoints.lfs_pointer import NOT_FETCHED, is_lfs_pointer
from engine.errors import TokenizerError, quoted
from engine.tokenizers.byte_bpe import _BYTE_OF_SYMBOL
from engine.tokenizers.gguf_vocabulary import _bytes_of, _unspellable
from engine.tokenizers.library_failures import damaged, library_failures
from engine.tokenizers.merged import MergedVocabulary
from engine.tokenizers.spaced import Spaced
from engine.tokenizers.utf8 import to_bytes

_SPACE = "▁"
_SPACES = (_SPACE, "Ġ")  # as SentencePiece and as byte-level vocabularies spell it
_SURROGATES = r"\ud800-\udfff"
_BYTE_NAMES = {f"<0x{byte:02X}>": byte for byte in range(256)}
_GPT2_CLASSES = ("GPT2Tokenizer", "GPT2TokenizerFast")

Json = dict[str, Any]


class HuggingFaceVocabulary(MergedVocabulary):
    """Owns the library's tokenizer and, for each token id, the bytes it stands for.

    A character for whose bytes a byte-level vocabulary has no tokens is read as U+FFFD; every
    other text comes back unchanged.
    """

    def __init__(
        self,
        library: tokenizers.Tokenizer,
        token_bytes: Sequence[bytes],
        byte_ids: Mapping[int, int],
        kept_away: str,
        beginning: "_Beginning",
    ) -> None:
        prefix_ids = beginning.prefix_ids
        n_tokens = len(token_bytes)
        if not all(type(token_id) is int and 0 <= token_id < n_tokens for token_id in prefix_ids):
            raise TokenizerError("what it puts before a text is none of its tokens.")
        spelled = re.compile(f"([{kept_away}]+)")
        unspellable, spaced = _unspellable(byte_ids), beginning.spaced
        if spaced is not None:  # it finds the tokens that stand apart
            library = _without_added(library)
        super().__init__(library, token_bytes, byte_ids, spelled, unspellable, prefix_ids, spaced)
        self._said = beginning.said

    def save(self, folder: Path) -> None:
        """Write `tokenizer.json` into the folder, in the library's own format."""
        data = {**json.loads(self._library.to_str()), **self._said}
        (folder / "tokenizer.json").write_text(json.dumps(data), encoding="utf-8")


def read_vocabulary(folder: Path) -> HuggingFaceVocabulary:
    """The tokenizer of a folder: its tokenizer.json, else its vocab.json and merges.txt.

    Raises:
        TokenizerError: the files are missing, damaged, or of a kind that is not read.
    """
    path = folder / "tokenizer.json"
    if path.exists():
        data = _read_json(path)
    elif (folder / "vocab.json").exists() and (folder / "merges.txt").exists():
        path = folder / "vocab.json"
        data = _from_older_files(folder)
    elif (folder / "tokenizer.model").exists():
        raise TokenizerError(
            f"{folder} has its vocabulary in tokenizer.model only, which is not read; "
            "save the tokenizer again to have a tokenizer.json."
        )
    else:
        raise TokenizerError(f"{path} does not exist; it should hold the vocabulary.")
    try:
        return vocabulary_from(data)
    except TokenizerError as error:
        raise TokenizerError(f"{path}: {error}") from error
    except RecursionError as error:
        raise TokenizerError(f"{path}: its steps are nested too deeply.") from error


def vocabulary_from(data: Json) -> HuggingFaceVocabulary:
    """The tokenizer that a tokenizer.json describes.

    Raises:
        TokenizerError: it is damaged, of a kind that is not read, or cannot spell every text.
    """
    check_kind(data)
    model, pre_tokenizer = data["model"], _splitting(data.get("pre_tokenizer"))
    cleaned = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": _added(data.get("added_tokens")),
        "normalizer": _normalisation(data.get("normalizer")),
        "pre_tokenizer": pre_tokenizer,
        "post_processor": None,
        "decoder": None,
        "model": {**model, "type": "BPE", "dropout": None},
    }
    with library_failures(damaged):
        library = tokenizers.Tokenizer.from_str(json.dumps(cleaned))
    beginning = _beginning(data, library)
    if "ByteLevel" in _kinds(pre_tokenizer):
        return _byte_level(library, beginning)
    return _sentence_piece(library, beginning)


def check_kind(data: Json) -> None:
    """See that what a tokenizer.json holds is of a kind that is read; its tokens are not asked.

    Raises:
        TokenizerError: it is not.
    """
    model = data.get("model")
    if not isinstance(model, dict) or model.get("type", "BPE") != "BPE":
        kind = model.get("type") if isinstance(model, dict) else None
        raise TokenizerError(f"its vocabulary is of the kind {quoted(kind)}; only BPE is read.")
    if model.get("continuing_subword_prefix") or model.get("end_of_word_suffix"):
        raise TokenizerError("its vocabulary marks parts of words; only BPE over bytes is read.")
    _normalisation(data.get("normalizer"))
    in_bytes = "ByteLevel" in _kinds(_splitting(data.get("pre_tokenizer")))
    if not in_bytes and model.get("byte_fallback") is not True:
        raise TokenizerError("its vocabulary is not spelled in bytes and has no tokens for them.")


@dataclass(frozen=True)
class _Beginning:
    """What belongs before every text, and the parts of the file that say so."""

    prefix_ids: tuple[Any, ...]  # as the file has them
    spaced: Spaced | None
    said: Json


def _beginning(data: Json, library: tokenizers.Tokenizer) -> _Beginning:
    names = ("added_tokens", "normalizer", "pre_tokenizer", "post_processor")
    said = {name: data.get(name) for name in names}
    space = _space(data.get("normalizer")) | _space(data.get("pre_tokenizer"))
    vocabulary, added = _ids_of(library)
    spaced = None
    if space and not vocabulary.keys().isdisjoint(_SPACES):
        # In a text, what is no space keeps its letter ▁; no token with that one is found there.
        apart = {token: token_id for token, token_id in added.items() if _SPACE not in token}
        words = {token["content"] for token in _added(said["added_tokens"]) if _is_word(token)}
        everywhere = "always" in space
        spaced = Spaced(apart, everywhere=everywhere, single_words=frozenset(words))
    return _Beginning(_prefix_ids(said["post_processor"]), spaced, said)


def _is_word(token: Json) -> bool:
    return token.get("single_word") is True


def _space(step: Any) -> set[str]:  # noqa: ANN401 - JSON
    """When a step that is known here puts a space before a text: "first", "always", or never."""
    match step:
        case {"normalizers": [*steps]} | {"pretokenizers": [*steps]}:
            return set[str]().union(*map(_space, steps))
        case {"type": "Prepend"} | {"type": "ByteLevel", "add_prefix_space": True}:
            return {"always"}
        case {"type": "Metaspace", "prepend_scheme": "first" | "never" as scheme}:
            return {str(scheme)} - {"never"}
        case {"type": "Metaspace", "add_prefix_space": False}:
            return set()
        case {"type": "Metaspace"}:
            return {"always"}
    return set()


def _without_added(library: tokenizers.Tokenizer) -> tokenizers.Tokenizer:
    """The same merging, with no tokens that are found before it."""
    bare = tokenizers.Tokenizer(library.model)
    if library.normalizer is not None:
        bare.normalizer = library.normalizer
    if library.pre_tokenizer is not None:
        bare.pre_tokenizer = library.pre_tokenizer
    return bare


def _byte_level(library: tokenizers.Tokenizer, beginning: _Beginning) -> HuggingFaceVocabulary:
    vocabulary, added = _ids_of(library)
    token_bytes = _listed(
        {token_id: _bytes_of(token) for token, token_id in vocabulary.items()}
        | {token_id: to_bytes(token) for token, token_id in added.items()}
    )
    byte_ids = {
        byte: vocabulary[symbol] for symbol, byte in _BYTE_OF_SYMBOL.items() if symbol in vocabulary
    }
    return HuggingFaceVocabulary(library, token_bytes, byte_ids, _SURROGATES, beginning)


def _sentence_piece(library: tokenizers.Tokenizer, beginning: _Beginning) -> HuggingFaceVocabulary:
    vocabulary, added = _ids_of(library)
    byte_ids = {byte: vocabulary[name] for name, byte in _BYTE_NAMES.items() if name in vocabulary}
    lacking = [byte for byte in range(256) if byte not in byte_ids]
    if lacking:
        raise TokenizerError(
            f"its vocabulary lacks a token for byte {lacking[0]}; it should have all 256."
        )
    token_bytes = _listed(
        {
            token_id: to_bytes(token.replace(_SPACE, " "))
            for token, token_id in (vocabulary | added).items()
        }
    )
    for byte, token_id in byte_ids.items():
        token_bytes[token_id] = bytes([byte])
    kept_away = _SURROGATES + _SPACE
    return HuggingFaceVocabulary(library, token_bytes, byte_ids, kept_away, beginning)


def _prefix_ids(step: Any) -> tuple[Any, ...]:  # noqa: ANN401 - JSON
    """What the library puts before a text, as the file has it: the ids, if it is in order."""
    match step:
        case {"type": "Sequence", "processors": [*steps]}:
            before: tuple[Any, ...] = ()
            for each in steps:
                before = (*_prefix_ids(each), *before)
            return before
        case {"type": "TemplateProcessing", "single": [*pieces], "special_tokens": dict(known)}:
            return _template_ids(pieces, known)
        case {"type": "BertProcessing" | "RobertaProcessing", "cls": [_, token_id]}:
            return (token_id,)
    return ()


def _template_ids(pieces: list[Any], known: Json) -> tuple[Any, ...]:
    before: list[Any] = []
    for piece in pieces:
        match piece:
            case {"SpecialToken": {"id": str(name)}}:
                match known.get(name):
                    case {"ids": [*token_ids]}:
                        before += token_ids
                    case _:
                        before.append(None)  # no token
            case _:
                break
    return tuple(before)


def _ids_of(library: tokenizers.Tokenizer) -> tuple[dict[str, int], dict[str, int]]:
    """The ids of the tokens that merging gives, and those of the ones that were added."""
    added = {token.content: i for i, token in library.get_added_tokens_decoder().items()}
    vocabulary = {
        token: token_id
        for token, token_id in library.get_vocab(with_added_tokens=False).items()
        if added.get(token) != token_id
    }
    return vocabulary, added


def _listed(found: Mapping[int, bytes]) -> list[bytes]:
    """The bytes by id; an id that is left out stands for none."""
    size = max(found, default=-1) + 1
    if size > 2 * len(found) + 1024:
        raise TokenizerError(
            f"its vocabulary has {len(found)} tokens but the id {size - 1}; ids should run on."
        )
    return [found.get(token_id, b"") for token_id in range(size)]


def _kinds(step: Json | None) -> set[str]:
    """What a step and those inside it are called."""
    if step is None:
        return set()
    return {step["type"]}.union(*map(_kinds, step.get("pretokenizers", ())))


def _splitting(step: Any) -> Json | None:  # noqa: ANN401 - JSON
    """How a text is split before merging, with nothing put before it or taken from it."""
    if step is None:
        return None
    kind = step.get("type") if isinstance(step, dict) else None
    if kind == "Sequence" and isinstance(step.get("pretokenizers"), list):
        return {**step, "pretokenizers": [_splitting(each) for each in step["pretokenizers"]]}
    if kind == "ByteLevel":
        return {**step, "add_prefix_space": False}
    if kind == "Metaspace" and step.get("replacement", _SPACE) == _SPACE:
        split = step.get("split", True)
        return {"type": kind, "replacement": _SPACE, "prepend_scheme": "never", "split": split}
    if kind in ("Split", "Digits", "Punctuation") and step.get("behavior") != "Removed":
        return dict(step)
    raise TokenizerError(
        f"its vocabulary splits text in a way that is not known to keep all of it ({quoted(kind)})."
    )


def _normalisation(step: Any) -> Json | None:  # noqa: ANN401 - JSON
    """What rewrites a text before it is split: spaces as ▁, and nothing else."""
    if step is None:
        return None
    kind = step.get("type") if isinstance(step, dict) else None
    if kind == "Sequence" and isinstance(step.get("normalizers"), list):
        steps = [_normalisation(each) for each in step["normalizers"]]
        return {**step, "normalizers": [each for each in steps if each is not None]}
    if kind == "NFC" or (kind == "Prepend" and step.get("prepend") == _SPACE):
        return None
    if (
        kind == "Replace"
        and step.get("pattern") == {"String": " "}
        and step.get("content") == _SPACE
    ):
        return dict(step)
    raise TokenizerError(
        f"its vocabulary rewrites text first ({quoted(kind)}); only those are read that keep every "
        "character."
    )


def _added(tokens: Any) -> list[Json]:  # noqa: ANN401 - JSON
    """Tokens that are found in the text before it is split, without the spaces around them."""
    if tokens is None:
        return []
    if not isinstance(tokens, list) or not all(isinstance(token, dict) for token in tokens):
        raise TokenizerError("its vocabulary's 'added_tokens' is no list of tokens.")
    return [{**token, "lstrip": False, "rstrip": False} for token in tokens if token.get("content")]


def _from_older_files(folder: Path) -> Json:
    """What a tokenizer.json would hold, from vocab.json and merges.txt: GPT-2's own kind."""
    config = folder / "tokenizer_config.json"
    facts = _read_json(config) if config.exists() else {}
    kind = facts.get("tokenizer_class", _GPT2_CLASSES[0])
    if kind not in _GPT2_CLASSES:
        raise TokenizerError(
            f"{folder} has its vocabulary in vocab.json and merges.txt only, which do not say how "
            f"a {quoted(kind)} splits text; save the tokenizer again to have a tokenizer.json."
        )
    vocabulary = _read_json(folder / "vocab.json")
    lines = _read_text(folder / "merges.txt").split("\n")
    merges = [line for line in lines if line and not line.startswith("#version")]
    end = "<|endoftext|>"
    special = [{"id": vocabulary[end], "content": end}] if end in vocabulary else []
    begins, beginning = facts.get("add_bos_token") is True, None
    match facts.get("bos_token", end):
        case str(first) | {"content": str(first)} if begins and first in vocabulary:
            beginning = _beginning_with(first, vocabulary[first])
    kept = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    return {
        "model": {"vocab": vocabulary, "merges": merges},
        "pre_tokenizer": {"type": "ByteLevel", "trim_offsets": True, "use_regex": True},
        "added_tokens": [{**token, **kept, "special": True} for token in special],
        "post_processor": beginning,
    }


def _beginning_with(token: str, token_id: object) -> Json:
    return {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": token}}, {"Sequence": {"id": "A"}}],
        "special_tokens": {token: {"ids": [token_id]}},
    }


def _read_json(path: Path) -> Json:
    try:
        data = json.loads(_read_text(path))
    except (ValueError, RecursionError) as error:
        if is_lfs_pointer(path):
            raise TokenizerError(f"{path} {NOT_FETCHED}") from None
        raise TokenizerError(f"{path} is not JSON ({error}).") from error
    if not isinstance(data, dict):
        raise TokenizerError(f"{path} holds no settings by name.")
    return data


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise TokenizerError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise TokenizerError(f"{path} is not UTF-8 ({error}).") from error
