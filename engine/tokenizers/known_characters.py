"""One token per known character and none for any other, as nanoGPT's character models have them.

Such a model has no ids for bytes, so a character that it never saw cannot be spelled. It is read
as a known one that stands for it, a question mark where there is one, and the tokens show that.
Every other text comes back unchanged.
"""

import json
from collections.abc import Sequence
from pathlib import Path

from engine.errors import TokenizerError
from engine.tokenizers.characters import Characters

KIND = "known characters"

_STAND_INS = "? \n"  # the first that is known; where none is, the vocabulary's first character


class KnownCharacters(Characters):
    """Owns the list of known characters, whose ids are their places in it.

    Raises:
        TokenizerError: there is no character, one is listed twice, or an entry is not one.
    """

    def __init__(self, characters: Sequence[str]) -> None:
        if not characters:
            raise TokenizerError("the vocabulary lists no characters; it should hold at least one.")
        super().__init__(characters)
        del self._bytes[len(characters) :]
        stand_in = next((c for c in _STAND_INS if c in self._ids), characters[0])
        self._unknown = self._ids[stand_in]

    def save(self, folder: Path) -> None:
        """Write `tokenizer.json` into the folder."""
        data = {"kind": KIND, "characters": list(self._characters)}
        (folder / "tokenizer.json").write_text(json.dumps(data), encoding="utf-8")

    @property
    def vocab_size(self) -> int:
        """The known characters."""
        return len(self._characters)

    def encode(self, text: str) -> list[int]:
        """One id per character."""
        ids, unknown = self._ids, self._unknown
        return [ids.get(character, unknown) for character in text]
