"""What all vocabularies share that know the bytes of each of their tokens."""

from collections.abc import Iterable, Sequence

from engine.errors import TokenizerError
from engine.tokenizers.utf8 import to_text


class ByBytes:
    """Owns the bytes that each token id stands for, and the ids that belong before every text."""

    def __init__(self, token_bytes: Sequence[bytes], prefix_ids: tuple[int, ...] = ()) -> None:
        self._bytes = token_bytes
        self.prefix_ids = prefix_ids

    @property
    def vocab_size(self) -> int:
        """The number of token ids."""
        return len(self._bytes)

    def decode(self, token_ids: Iterable[int]) -> str:
        """The text; bytes that form no character become U+FFFD.

        Raises:
            TokenizerError: an id is outside the vocabulary.
        """
        return to_text(b"".join(self.spell(token_ids)))

    def spell(self, token_ids: Iterable[int]) -> tuple[bytes, ...]:
        """What each token stands for in the text of just these; joined, that text's bytes.

        Raises:
            TokenizerError: an id is outside the vocabulary.
        """
        return tuple(map(self.token_bytes, token_ids))

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
