"""A tokenizer for a model whose embedding has more rows than there are tokens."""

from collections.abc import Iterable
from pathlib import Path

from engine.tokenizers import Tokenizer
from engine.tokenizers.utf8 import to_text


class Padded:
    """Owns nothing but the model's vocabulary size: ids that have no token stand for no bytes.

    Embeddings are often made a little larger than the vocabulary, to a round number. A model
    can draw such an id, however improbable it is.
    """

    def __init__(self, inner: Tokenizer, vocab_size: int) -> None:
        self._inner = inner
        self._vocab_size = vocab_size

    @property
    def vocab_size(self) -> int:
        """As many as the model has."""
        return self._vocab_size

    @property
    def prefix_ids(self) -> tuple[int, ...]:
        """What belongs before every text."""
        return self._inner.prefix_ids

    def encode(self, text: str) -> list[int]:
        """The token ids of any str."""
        return self._inner.encode(text)

    def decode(self, token_ids: Iterable[int]) -> str:
        """The text; bytes that form no character become U+FFFD.

        Raises:
            TokenizerError: an id is outside the model's vocabulary.
        """
        return to_text(b"".join(self.spell(token_ids)))

    def spell(self, token_ids: Iterable[int]) -> tuple[bytes, ...]:
        """What each token stands for in the text of just these; none where there is no token.

        Raises:
            TokenizerError: an id is outside the model's vocabulary.
        """
        token_ids = tuple(token_ids)
        known = [token_id for token_id in token_ids if not self._is_spare(token_id)]
        spelled = iter(self._inner.spell(known))
        return tuple(b"" if self._is_spare(token_id) else next(spelled) for token_id in token_ids)

    def token_bytes(self, token_id: int) -> bytes:
        """The UTF-8 bytes one token stands for; none where there is no token.

        Raises:
            TokenizerError: the id is outside the model's vocabulary.
        """
        return b"" if self._is_spare(token_id) else self._inner.token_bytes(token_id)

    def save(self, folder: Path) -> None:
        """Write `tokenizer.json` into the folder."""
        self._inner.save(folder)

    def _is_spare(self, token_id: int) -> bool:
        return self._inner.vocab_size <= token_id < self._vocab_size
