"""What all vocabularies share whose merging the `tokenizers` library does."""

import re
from collections.abc import Iterable, Mapping, Sequence

import tokenizers

from engine.tokenizers.by_bytes import ByBytes
from engine.tokenizers.library_failures import library_failures
from engine.tokenizers.spaced import Spaced
from engine.tokenizers.utf8 import to_bytes


class MergedVocabulary(ByBytes):
    """Owns the library's tokenizer and, for each token id, the bytes it stands for.

    What matches `spelled`, a pattern of one group, is kept from the library and spelled in
    single-byte tokens; what matches `unspellable` has none and is read as U+FFFD. Where texts
    begin with a space that is not theirs, `spaced` knows it, and the tokens that the library
    would otherwise find before it merges.
    """

    def __init__(
        self,
        library: tokenizers.Tokenizer,
        token_bytes: Sequence[bytes],
        byte_ids: Mapping[int, int],
        spelled: re.Pattern[str],
        unspellable: re.Pattern[str] | None = None,
        prefix_ids: tuple[int, ...] = (),
        spaced: Spaced | None = None,
    ) -> None:
        super().__init__(token_bytes, prefix_ids)
        self._library = library
        self._byte_ids = byte_ids
        self._spelled = spelled
        self._unspellable = unspellable
        self._spaced = spaced

    def encode(self, text: str) -> list[int]:
        """The token ids of any str; nothing is dropped, and at most such a space is added.

        Raises:
            TokenizerError: how the vocabulary cuts a text is a pattern that does not come to an
                end on this one.
        """
        if self._unspellable is not None:
            text = self._unspellable.sub("\ufffd", text)
        if self._spaced is None:
            return self._merged(text)
        token_ids: list[int] = []
        for piece in self._spaced.pieces(text):
            token_ids += [piece] if isinstance(piece, int) else self._merged(piece)
        return token_ids

    def spell(self, token_ids: Iterable[int]) -> tuple[bytes, ...]:
        """What each token stands for in the text of just these; joined, that text's bytes.

        Raises:
            TokenizerError: an id is outside the vocabulary.
        """
        token_ids = tuple(token_ids)
        token_bytes = super().spell(token_ids)
        return token_bytes if self._spaced is None else self._spaced.spell(token_ids, token_bytes)

    def _merged(self, text: str) -> list[int]:
        token_ids: list[int] = []
        for i, piece in enumerate(self._spelled.split(text)):
            if i % 2:
                token_ids.extend(self._byte_ids[byte] for byte in to_bytes(piece))
            elif piece:
                token_ids.extend(_ids_by(self._library, piece))
        return token_ids


def _ids_by(library: tokenizers.Tokenizer, text: str) -> list[int]:
    with library_failures(_uncut):
        return library.encode(text, add_special_tokens=False).ids


def _uncut(error: BaseException) -> str:
    return (
        f"the vocabulary cannot cut this text into tokens ({error}); open a model whose tokenizer "
        "is in order."
    )
