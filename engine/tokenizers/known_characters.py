"""One token per known character and none for any other, as nanoGPT's character models have them.

Such a model has no ids for bytes, so a character that it never saw cannot be spelled. It is read
as a known one that stands for it, a question mark where there is one, and the tokens show that.
Every other text comes back unchanged.
"""

from collections.abc import Sequence
from typing import ClassVar

from engine.errors import TokenizerError
from engine.tokenizers.characters import Characters
from engine.tokenizers.utf8 import to_bytes

KIND = "known characters"

_STAND_INS = "? \n"  # the first that is known; where none is, the vocabulary's first character


class KnownCharacters(Characters):
    """Owns the list of known characters, whose ids are their places in it.

    Raises:
        TokenizerError: there is no character, one is listed twice, or an entry is not one.
    """

    kind: ClassVar[str] = KIND

    def __init__(self, characters: Sequence[str]) -> None:
        if not characters:
            raise TokenizerError("the vocabulary lists no characters; it should hold at least one.")
        super().__init__(characters)
        stand_in = next((c for c in _STAND_INS if c in self._ids), characters[0])
        self._unknown = self._ids[stand_in]

    @staticmethod
    def _spelled(characters: Sequence[str]) -> list[bytes]:
        return [to_bytes(character) for character in characters]

    def encode(self, text: str) -> list[int]:
        """One id per character."""
        ids, unknown = self._ids, self._unknown
        return [ids.get(character, unknown) for character in text]
