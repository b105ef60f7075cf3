"""Vocabularies as GGUF files hold them: byte-level BPE with merges, SentencePiece with scores.

The `tokenizers` library does the merging. What it could not give back is kept from it and spelled
in single-byte tokens: lone surrogates and, where it stands for a space, the letter ▁. Special
tokens are not told to it, so no text can become one. SentencePiece's space is put before a text
where the file does not deny it, as llama.cpp does; the token that many models expect there is told
apart from it, as `prefix_ids`.
"""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import tokenizers
from tokenizers import AddedToken, Regex, models, normalizers, pre_tokenizers

from engine.errors import TokenizerError, quoted
from engine.tokenizers.byte_bpe import _BYTE_OF_SYMBOL
from engine.tokenizers.gguf_splitting import splitting_of
from engine.tokenizers.library_failures import damaged, library_failures
from engine.tokenizers.merged import MergedVocabulary
from engine.tokenizers.spaced import Spaced
from engine.tokenizers.utf8 import to_bytes

KIND = "gguf"

_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED, _UNUSED, _BYTE = range(1, 7)
_SPACE = "▁"
_LONGEST_PIECE = 512  # characters; each is cut in two at every place

_MODEL = "tokenizer.ggml.model"
_PRE = "tokenizer.ggml.pre"
_TOKENS = "tokenizer.ggml.tokens"
_TYPES = "tokenizer.ggml.token_type"
_SCORES = "tokenizer.ggml.scores"
_MERGES = "tokenizer.ggml.merges"
_ADD_BOS = "tokenizer.ggml.add_bos_token"
_BOS = "tokenizer.ggml.bos_token_id"
_ADD_SPACE = "tokenizer.ggml.add_space_prefix"
_ARCHITECTURE = "general.architecture"
_KEPT = (
    *(_ARCHITECTURE, _MODEL, _PRE, _TOKENS, _TYPES, _SCORES, _MERGES),
    *(_ADD_BOS, _BOS, _ADD_SPACE),
)
_USUAL_BOS = 1  # where SentencePiece has it


class GgufVocabulary(MergedVocabulary):
    """Owns the library's tokenizer and, for each token id, the bytes it stands for.

    A character for whose bytes a byte-level vocabulary has no tokens (SmolLM2's lacks a few
    control characters and rare planes) is read as U+FFFD; every other text comes back unchanged.
    """

    def __init__(
        self,
        library: tokenizers.Tokenizer,
        token_bytes: Sequence[bytes],
        byte_ids: Mapping[int, int],
        kept_away: str,
        spaced: Spaced | None,
        source: Mapping[str, Any],
        prefix_ids: tuple[int, ...] = (),
    ) -> None:
        spelled = re.compile(f"([{kept_away}]+)")
        unspellable = _unspellable(byte_ids)
        super().__init__(library, token_bytes, byte_ids, spelled, unspellable, prefix_ids, spaced)
        self._source = source

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, Any]) -> Self:
        """The tokenizer that a file's metadata describes.

        Raises:
            TokenizerError: there is no vocabulary, it is damaged, or of a kind that is not read.
        """
        source = {name: metadata[name] for name in _KEPT if name in metadata}
        kind = source.get(_MODEL)
        if kind is None or _TOKENS not in source:
            raise TokenizerError(f"it holds no vocabulary ({_MODEL} and {_TOKENS}).")
        if kind not in _KINDS:
            raise TokenizerError(
                f"its vocabulary is of the kind {quoted(kind)}, which is not read; "
                f"known: {', '.join(_KINDS)}."
            )
        tokens = source[_TOKENS]
        if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
            raise TokenizerError(f"{_TOKENS} is no list of texts.")
        types = _numbers(source, _TYPES, len(tokens), "iu")
        with library_failures(damaged):
            parts = _KINDS[kind](tokens, types, source)
            return cls(*parts, source, _prefix_ids(source, types or [_NORMAL] * len(tokens)))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The tokenizer that `save` wrote.

        Raises:
            TokenizerError: the vocabulary is missing or damaged.
        """
        metadata = data.get("metadata")
        if not isinstance(metadata, dict):
            raise TokenizerError("the vocabulary has no part named 'metadata'.")
        return cls.from_metadata(metadata)

    def save(self, folder: Path) -> None:
        """Write `tokenizer.json` into the folder."""
        metadata = {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in self._source.items()
        }
        data = {"kind": KIND, "metadata": metadata}
        (folder / "tokenizer.json").write_text(json.dumps(data), encoding="utf-8")


def _prefix_ids(source: Mapping[str, Any], types: list[int]) -> tuple[int, ...]:
    """The token that llama.cpp puts before a text, where it puts one."""
    is_sentence_piece = source[_MODEL] == "llama"
    usual = is_sentence_piece or splitting_of(source.get(_PRE), source.get(_ARCHITECTURE)).begins
    adds = _flag(source, _ADD_BOS, usual=usual)
    has_usual = is_sentence_piece and types[_USUAL_BOS : _USUAL_BOS + 1] == [_CONTROL]
    bos = source.get(_BOS, _USUAL_BOS if has_usual else None)
    if not adds or bos is None:
        return ()
    if type(bos) is not int or not 0 <= bos < len(types):
        raise TokenizerError(f"{_BOS} should be one of its {len(types)} tokens.")
    return (bos,)


def _flag(source: Mapping[str, Any], name: str, *, usual: bool) -> bool:
    value = source.get(name, usual)
    if type(value) is not bool:
        raise TokenizerError(f"{name} should be true or false.")
    return value


def _numbers(source: Mapping[str, Any], name: str, n: int, kinds: str) -> list[Any] | None:
    """One number for each token; None where the file has no such list."""
    if name not in source:
        return None
    numbers = np.asarray(source[name])
    if numbers.shape != (n,) or numbers.dtype.kind not in kinds:
        raise TokenizerError(f"{name} should be a list of {n} numbers, one for each token.")
    listed: list[Any] = numbers.tolist()
    return listed


_Parts = tuple[tokenizers.Tokenizer, list[bytes], dict[int, int], str, Spaced | None]


def _byte_level(tokens: list[str], types: list[int] | None, source: Mapping[str, Any]) -> _Parts:
    """Byte-level BPE: tokens are spelled in GPT-2's letters for bytes, and merged by a list."""
    splitting = splitting_of(source.get(_PRE), source.get(_ARCHITECTURE))
    types = types or [_NORMAL] * len(tokens)
    seen = {_NORMAL, _UNUSED, _USER_DEFINED}
    vocabulary = _ids(tokens, types, seen)
    library = tokenizers.Tokenizer(
        models.BPE(
            vocab=vocabulary,
            merges=_merges(source, tokens, vocabulary),
            ignore_merges=splitting.whole_words,
        )
    )
    library.pre_tokenizer = pre_tokenizers.Sequence(
        [
            *(
                pre_tokenizers.Split(Regex(pattern), behavior="isolated")
                for pattern in splitting.patterns
            ),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    _add_user_defined(library, tokens, types)
    token_bytes = [
        _bytes_of(token) if kind in (_NORMAL, _UNUSED) else to_bytes(token)
        for token, kind in zip(tokens, types, strict=True)
    ]
    byte_ids = {
        byte: vocabulary[symbol] for symbol, byte in _BYTE_OF_SYMBOL.items() if symbol in vocabulary
    }
    return library, token_bytes, byte_ids, r"\ud800-\udfff", None


def _sentence_piece(
    tokens: list[str], types: list[int] | None, source: Mapping[str, Any]
) -> _Parts:
    """SentencePiece BPE: of all neighbours, those are joined first that score highest joined."""
    bytes_of_names = {f"<0x{byte:02X}>": byte for byte in range(256)}
    if types is None:
        types = [_BYTE if token in bytes_of_names else _NORMAL for token in tokens]
    scores = _numbers(source, _SCORES, len(tokens), "iuf")
    if scores is None:
        raise TokenizerError(f"its vocabulary has no {_SCORES}.")
    byte_ids = {
        bytes_of_names[token]: token_id
        for token_id, token in enumerate(tokens)
        if types[token_id] == _BYTE and token in bytes_of_names
    }
    if len(byte_ids) < 256:
        lacking = next(byte for byte in range(256) if byte not in byte_ids)
        raise TokenizerError(
            f"its vocabulary lacks a token for byte {lacking}; it should have all 256."
        )
    # A user's token is matched in the text as it is, before spaces are written as ▁.
    tokens = [
        token.replace(_SPACE, " ") if kind == _USER_DEFINED else token
        for token, kind in zip(tokens, types, strict=True)
    ]
    pieces, users = (_ids(tokens, types, {kind}) for kind in (_NORMAL, _USER_DEFINED))
    spaced = None
    if _flag(source, _ADD_SPACE, usual=True) and _SPACE in pieces:
        spaced = Spaced(users, everywhere=True)
    library = tokenizers.Tokenizer(
        models.BPE(
            vocab=_ids(tokens, types, {_NORMAL, _BYTE, _USER_DEFINED}),
            merges=_merges_by_score(pieces, scores),
            byte_fallback=True,
        )
    )
    library.normalizer = normalizers.Replace(" ", _SPACE)
    if spaced is None:
        _add_user_defined(library, tokens, types)
    token_bytes = [
        bytes([bytes_of_names[token]])
        if kind == _BYTE and token in bytes_of_names
        else to_bytes(token.replace(_SPACE, " "))
        for token, kind in zip(tokens, types, strict=True)
    ]
    return library, token_bytes, byte_ids, rf"\ud800-\udfff{_SPACE}", spaced


_KINDS = {"gpt2": _byte_level, "llama": _sentence_piece}


def _ids(tokens: list[str], types: list[int], kinds: set[int]) -> dict[str, int]:
    """The ids of the tokens of some kinds; of two that are alike, the first one's."""
    ids: dict[str, int] = {}
    for token_id, token in enumerate(tokens):
        if types[token_id] in kinds and token:
            ids.setdefault(token, token_id)
    return ids


def _add_user_defined(library: tokenizers.Tokenizer, tokens: list[str], types: list[int]) -> None:
    library.add_tokens(
        [
            AddedToken(token, normalized=False, special=False)
            for token, kind in zip(tokens, types, strict=True)
            if kind == _USER_DEFINED and token
        ]
    )


def _merges(
    source: Mapping[str, Any], tokens: list[str], vocabulary: Mapping[str, int]
) -> list[tuple[str, str]]:
    """The pairs to merge, first ones first; none that would give a special token."""
    listed = source.get(_MERGES)
    if not isinstance(listed, list) or not all(isinstance(merge, str) for merge in listed):
        raise TokenizerError(f"its vocabulary has no list of merges ({_MERGES}).")
    known = set(tokens)
    merges = []
    for merge in listed:
        left, _, right = merge.partition(" ")
        if left in vocabulary and right in vocabulary and left + right in vocabulary:
            merges.append((left, right))
        elif not {left, right, left + right} <= known or not left or not right:
            raise TokenizerError(
                f"its vocabulary is damaged: no tokens for the merge {quoted(merge)}."
            )
    return merges


def _merges_by_score(pieces: Mapping[str, int], scores: list[float]) -> list[tuple[str, str]]:
    """Every way to join two pieces to a third, the third's score deciding what comes first."""
    merges = []
    for piece, _ in sorted(pieces.items(), key=lambda item: (-scores[item[1]], item[1])):
        if len(piece) > _LONGEST_PIECE:
            raise TokenizerError(
                f"its vocabulary has a token of {len(piece)} characters; "
                f"at most {_LONGEST_PIECE} are read."
            )
        merges += [
            (piece[:cut], piece[cut:])
            for cut in range(len(piece) - 1, 0, -1)
            if piece[:cut] in pieces and piece[cut:] in pieces
        ]
    return merges


# Latin-1 spells a byte by the letter of the same number; what is no symbol must not pass for one.
_LATIN_1 = dict.fromkeys(range(256), "\uffff") | {
    ord(symbol): chr(byte) for symbol, byte in _BYTE_OF_SYMBOL.items()
}


def _bytes_of(token: str) -> bytes:
    try:
        return token.translate(_LATIN_1).encode("latin-1")
    except UnicodeEncodeError:  # not spelled in symbols
        return to_bytes(token)


def _unspellable(byte_ids: Mapping[int, int]) -> "re.Pattern[str] | None":
    """What matches a character with a byte that has no token; None if all can be spelled.

    Raises:
        TokenizerError: so much is missing that not even U+FFFD could stand for the rest.
    """
    lacking = [byte for byte in range(256) if byte not in byte_ids]
    needed = {*range(0x80, 0xC0), 0xEF}  # U+FFFD, and whatever follows a first byte
    if needed & set(lacking):
        raise TokenizerError(
            f"its vocabulary lacks a token for byte {lacking[0]}; a byte-level one has them."
        )
    ranges = []
    for byte in lacking:
        first, last = _first_characters(byte)
        if first <= last:
            ranges.append(f"{re.escape(chr(first))}-{re.escape(chr(last))}")
    return re.compile(f"[{''.join(ranges)}]") if ranges else None


def _first_characters(byte: int) -> tuple[int, int]:
    """The first and the last character whose UTF-8 begins with the byte; (1, 0) if none does."""
    if byte < 0x80:
        return byte, byte
    if 0xC2 <= byte < 0xE0:
        return (byte & 0x1F) << 6, ((byte & 0x1F) << 6) | 0x3F
    if 0xE0 <= byte < 0xF0:
        return max((byte & 0xF) << 12, 0x800), ((byte & 0xF) << 12) | 0xFFF
    if 0xF0 <= byte < 0xF5:
        begin = (byte & 7) << 18
        return max(begin, 0x10000), min(begin | 0x3FFFF, 0x10FFFF)
    return 1, 0
