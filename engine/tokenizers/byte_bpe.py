"""Byte-level byte-pair encoding, through the `tokenizers` library.

The library refuses lone surrogates, so those are spelled here in single-byte tokens; and decoding
is done here from each token's bytes, so that half a character can be shown as what it is.
"""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

import tokenizers
from tokenizers import decoders, models, pre_tokenizers, trainers

from engine.errors import TokenizerError
from engine.tokenizers.library_failures import damaged, library_failures
from engine.tokenizers.merged import MergedVocabulary
from engine.tokenizers.utf8 import to_bytes
from engine.whole_file import write_whole

_SURROGATES = re.compile(r"([\ud800-\udfff]+)")


def _byte_symbols() -> dict[str, int]:
    """GPT-2's printable stand-in for each byte: itself where printable, else U+0100 and on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(b): b for b in printable} | {chr(0x100 + i): b for i, b in enumerate(others)}


_BYTE_OF_SYMBOL = _byte_symbols()


class ByteBpe(MergedVocabulary):
    """Owns the library's tokenizer and, for each token id, the bytes it stands for.

    Raises:
        TokenizerError: the vocabulary is not byte-level, or has holes in its ids.
    """

    def __init__(self, library_tokenizer: tokenizers.Tokenizer) -> None:
        added = library_tokenizer.get_added_tokens_decoder()
        vocabulary = library_tokenizer.get_vocab(with_added_tokens=True)
        found: dict[int, bytes] = {}
        for symbols, token_id in vocabulary.items():
            whole = token_id in added
            found[token_id] = to_bytes(symbols) if whole else _bytes_of(symbols)
        token_bytes = [found.get(token_id, b"") for token_id in range(max(found, default=-1) + 1)]
        ids = {data: token_id for token_id, data in found.items() if token_id not in added}
        missing = [byte for byte in range(256) if bytes([byte]) not in ids]
        if missing:
            raise TokenizerError(
                f"the vocabulary lacks a token for byte {missing[0]}; "
                "a byte-level one has all 256 single bytes."
            )
        byte_ids = {byte: ids[bytes([byte])] for byte in range(256)}
        super().__init__(library_tokenizer, token_bytes, byte_ids, _SURROGATES)

    @classmethod
    def train(cls, texts: Iterable[str], vocab_size: int) -> Self:
        """A vocabulary of the 256 bytes and the merges that shorten `texts` most.

        Raises:
            TokenizerError: `vocab_size` is too small for the bytes.
        """
        if vocab_size < 256:
            raise TokenizerError(f"a vocabulary of {vocab_size} cannot hold the 256 single bytes.")
        library = tokenizers.Tokenizer(models.BPE())
        library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        library.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=vocab_size,
            initial_alphabet=sorted(_BYTE_OF_SYMBOL),
            show_progress=False,
        )
        library.train_from_iterator([_SURROGATES.sub("", text) for text in texts], trainer)
        return cls(library)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The tokenizer that the library (or `save`) wrote as `tokenizer.json`.

        Raises:
            TokenizerError: the library cannot read it, or it is not byte-level.
        """
        if data.get("normalizer") is not None:
            raise TokenizerError(
                f"the vocabulary rewrites text first ({data['normalizer'].get('type')}); "
                "only byte-level ones that keep every character are read."
            )
        with library_failures(damaged):
            return cls(tokenizers.Tokenizer.from_str(json.dumps(data)))

    def save(self, folder: Path) -> None:
        """Write `tokenizer.json`, in the library's own format, whole or not at all."""
        write_whole(folder / "tokenizer.json", self._library.to_str(pretty=False).encode())


def _bytes_of(symbols: str) -> bytes:
    try:
        return bytes(_BYTE_OF_SYMBOL[symbol] for symbol in symbols)
    except KeyError:
        raise TokenizerError(
            f"the vocabulary's token {symbols!r} is not spelled in bytes; "
            "only byte-level vocabularies are read."
        ) from None
