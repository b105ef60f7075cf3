"""Text to token ids and back, for every text: `decode(encode(text)) == text`."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from engine.errors import TokenizerError
from engine.tokenizers import characters, gguf_vocabulary
from engine.tokenizers.byte_bpe import ByteBpe
from engine.tokenizers.characters import Characters
from engine.tokenizers.gguf_vocabulary import GgufVocabulary


class Tokenizer(Protocol):
    """What every tokenizer can do; none that is in order ever refuses a text."""

    @property
    def vocab_size(self) -> int:
        """The number of token ids; they run from 0 to one less."""

    @property
    def prefix_ids(self) -> tuple[int, ...]:
        """What a model of this vocabulary expects before every text, as a rule one token or none.

        Such a token (BOS, "beginning of sequence") spells nothing of the text, and `encode` does
        not give it.
        """

    def encode(self, text: str) -> list[int]:
        """The token ids of any str, without those that belong before it.

        A vocabulary may put a space before the text, so that its first word is the token that it
        is within a text.
        """

    def decode(self, token_ids: Iterable[int]) -> str:
        """The text; bytes that form no character become U+FFFD.

        Raises:
            TokenizerError: an id is outside the vocabulary.
        """

    def spell(self, token_ids: Iterable[int]) -> tuple[bytes, ...]:
        """What each token stands for in the text of just these; joined, that text's bytes.

        Its bytes, but for a space that `encode` puts in and the text does not have.

        Raises:
            TokenizerError: an id is outside the vocabulary.
        """

    def token_bytes(self, token_id: int) -> bytes:
        """The UTF-8 bytes one token stands for, possibly a part of a character.

        Raises:
            TokenizerError: the id is outside the vocabulary.
        """

    def save(self, folder: Path) -> None:
        """Write `tokenizer.json` into the folder."""


def load_tokenizer(folder: Path) -> Tokenizer:
    """The tokenizer whose `tokenizer.json` is in the folder.

    Raises:
        TokenizerError: the file is missing, damaged, or of a kind that is not known here.
    """
    path = folder / "tokenizer.json"
    try:
        data = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise TokenizerError(f"{path} does not exist; a model's folder holds one.") from None
    except OSError as error:
        raise TokenizerError(f"{path} cannot be read: {error.strerror}.") from error
    except ValueError as error:  # not UTF-8, not JSON
        raise TokenizerError(f"{path} is not JSON ({error}).") from error
    try:
        if isinstance(data, dict) and data.get("kind") == characters.KIND:
            return Characters.from_dict(data)
        if isinstance(data, dict) and data.get("kind") == gguf_vocabulary.KIND:
            return GgufVocabulary.from_dict(data)
        if isinstance(data, dict) and isinstance(data.get("model"), dict):
            return ByteBpe.from_dict(data)
    except TokenizerError as error:
        raise TokenizerError(f"{path}: {error}") from error
    raise TokenizerError(
        f"{path} holds no vocabulary of a known kind (characters, byte BPE, GGUF)."
    )


__all__ = ["ByteBpe", "Characters", "GgufVocabulary", "Tokenizer", "load_tokenizer"]
