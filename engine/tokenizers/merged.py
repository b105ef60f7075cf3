"""What all vocabularies share whose merging the `tokenizers` library does."""

import re
from collections.abc import Mapping, Sequence

import tokenizers

from engine.tokenizers.by_bytes import ByBytes
from engine.tokenizers.utf8 import to_bytes


class MergedVocabulary(ByBytes):
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
        prefix_ids: tuple[int, ...] = (),
    ) -> None:
        super().__init__(token_bytes, prefix_ids)
        self._library = library
        self._byte_ids = byte_ids
        self._spelled = spelled
        self._unspellable = unspellable

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
