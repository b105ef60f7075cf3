"""One token per known character; any other character is spelled in its UTF-8 bytes."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Self

from engine.errors import TokenizerError
from engine.tokenizers.utf8 import to_bytes, to_text

KIND = "characters"


class Characters:
    """Owns the list of known characters: their ids come first, then 256 ids for single bytes.

    Raises:
        TokenizerError: a character is listed twice, or an entry is not one character.
    """

    def __init__(self, characters: Sequence[str]) -> None:
        for character in characters:
            if not isinstance(character, str) or len(character) != 1:
                raise TokenizerError(
                    f"the vocabulary lists {character!r}; each entry must be one character."
                )
        if len(set(characters)) != len(characters):
            twice = next(c for i, c in enumerate(characters) if c in characters[:i])
            raise TokenizerError(f"the vocabulary lists {twice!r} twice; once is right.")
        self._characters = tuple(characters)
        self._ids = {character: i for i, character in enumerate(characters)}
        self._bytes = [to_bytes(c) for c in characters] + [bytes([b]) for b in range(256)]

    @classmethod
    def train(cls, texts: Iterable[str]) -> Self:
        """A vocabulary of all characters that occur in `texts`, in code point order."""
        return cls(sorted(set().union(*texts)))

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The tokenizer that `save` wrote.

        Raises:
            TokenizerError: the list of characters is missing or damaged.
        """
        characters = data.get("characters")
        if not isinstance(characters, list):
            raise TokenizerError("the vocabulary has no list named 'characters'.")
        return cls(characters)

    def save(self, folder: Path) -> None:
        """Write `tokenizer.json` into the folder."""
        data = {"kind": KIND, "characters": list(self._characters)}
        (folder / "tokenizer.json").write_text(json.dumps(data), encoding="utf-8")

    @property
    def vocab_size(self) -> int:
        """The known characters and the 256 bytes."""
        return len(self._bytes)

    def encode(self, text: str) -> list[int]:
        """One id per known character, one per UTF-8 byte of any other."""
        ids, first_byte = self._ids, len(self._characters)
        token_ids: list[int] = []
        for character in text:
            token_id = ids.get(character)
            if token_id is not None:
                token_ids.append(token_id)
            else:
                token_ids.extend(first_byte + byte for byte in to_bytes(character))
        return token_ids

    def decode(self, token_ids: Iterable[int]) -> str:
        """The text; bytes that form no character become U+FFFD.

        Raises:
            TokenizerError: an id is outside the vocabulary.
        """
        return to_text(b"".join(map(self.token_bytes, token_ids)))

    def token_bytes(self, token_id: int) -> bytes:
        """The UTF-8 bytes one token stands for, possibly a part of a character.

        Raises:
            TokenizerError: the id is outside the vocabulary.
        """
        if not 0 <= token_id < len(self._bytes):
            raise TokenizerError(
                f"token {token_id} is outside the vocabulary of 0 to {len(self._bytes) - 1}."
            )
        return self._bytes[token_id]
