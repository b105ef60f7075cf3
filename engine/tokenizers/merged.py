"""What all vocabularies share whose merging the `tokenizers` library does."""

import re
from collections.abc import Iterable, Mapping, Sequence

import tokenizers

from engine.errors import TokenizerError
from engine.tokenizers.utf8 import to_bytes, to_text


class MergedVocabulary:
    """Owns the library's tokenizer and, for each token id, the bytes it stands for.

    What matches `spelled`, a pattern of one group, is kept from the library and spelled in
    single-byte tokens; what matches `unspellable` has none and is read as U+FFFD.
    """

    def __init__(
        self,
        library: tokenizers.Tokenizer,
        token_bytes: Sequence[bytes],
        byte_ids: Mapping[int, int],
        spelled: re.Pattern[str],
        unspellable: re.Pattern[str] | None = None,
    ) -> None:
        self._library = library
        self._bytes = token_bytes
        self._byte_ids = byte_ids
        self._spelled = spelled
        self._unspellable = unspellable

    @property
    def vocab_size(self) -> int:
        """The number of token ids, special and added ones included."""
        return len(self._bytes)

    def encode(self, text: str) -> list[int]:
        """The token ids of any str; nothing is added or dropped."""
        if self._unspellable is not None:
            text = self._unspellable.sub("\ufffd", text)
        token_ids: list[int] = []
        for i, piece in enumerate(self._spelled.split(text)):
            if i % 2:
                token_ids.extend(self._byte_ids[byte] for byte in to_bytes(piece))
            elif piece:
                token_ids.extend(self._library.encode(piece, add_special_tokens=False).ids)
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
