"""One token per known character; any other character is spelled in its UTF-8 bytes."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

from engine.errors import TokenizerError
from engine.tokenizers.by_bytes import ByBytes
from engine.tokenizers.utf8 import to_bytes
from engine.whole_file import write_whole

KIND = "characters"


class Characters(ByBytes):
    """Owns the list of known characters: their ids come first, then 256 ids for single bytes.

    Raises:
        TokenizerError: a character is listed twice, or an entry is not one character.
    """

    kind: ClassVar[str] = KIND  # by which `load_tokenizer` knows it

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
        super().__init__(self._spelled(characters))

    @staticmethod
    def _spelled(characters: Sequence[str]) -> list[bytes]:
        return [to_bytes(c) for c in characters] + [bytes([b]) for b in range(256)]

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
        """Write `tokenizer.json` into the folder, whole or not at all."""
        data = {"kind": self.kind, "characters": list(self._characters)}
        write_whole(folder / "tokenizer.json", json.dumps(data).encode())

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
