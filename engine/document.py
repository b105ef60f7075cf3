"""The text as tokens: what the prompt gave, what was generated, and where each token stands."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from engine.sampling import Sampling


@dataclass(frozen=True, eq=False)
class Document:
    """One text and its tokens; the first `n_prompt` came from the prompt.

    Of those, the first `n_prefix` were put before the text because the model expects them there:
    they have names among `tokens`, and spell nothing. `origins` says, for each generated token,
    the sampling it was drawn with, or None where the user chose it. `in_text` is what the tokens
    behind the first `n_prefix` stand for in the text, where that is not always all their bytes.
    """

    text: str = ""
    token_ids: tuple[int, ...] = ()
    tokens: tuple[bytes, ...] = ()
    n_prompt: int = 0
    origins: tuple[Sampling | None, ...] = ()
    n_prefix: int = 0
    in_text: tuple[bytes, ...] | None = None

    def __len__(self) -> int:
        """How many tokens."""
        return len(self.token_ids)

    @cached_property
    def spelled(self) -> tuple[bytes, ...]:
        """What each token stands for in the text: its bytes; none for those before it.

        A first word's token may begin with a space that the vocabulary put there; the text has
        none.
        """
        in_text = self.tokens[self.n_prefix :] if self.in_text is None else self.in_text
        return (b"",) * self.n_prefix + in_text

    @cached_property
    def spans(self) -> NDArray[np.int64]:
        """Where each token's characters begin and end in the text [tokens, 2].

        Tokens that share one character all span the whole of it; those before the text have no
        character.
        """
        return token_spans(self.text, self.spelled)

    @cached_property
    def replaced(self) -> tuple[tuple[str, bytes], ...]:
        """What the vocabulary cannot spell, and the token that the model reads in its place.

        Each piece of the text once, in the order in which they first occur.
        """
        encoded = self.text.encode("utf-8", "surrogatepass")
        if encoded == b"".join(self.spelled):
            return ()
        pairs: dict[tuple[str, bytes], None] = {}
        for token, (begin, end) in zip(self.spelled, self.spans.tolist(), strict=True):
            piece = self.text[begin:end]
            # A replacement character is how a text shows bytes that form no character.
            if "\ufffd" not in piece and token not in piece.encode("utf-8", "surrogatepass"):
                pairs[piece, token] = None
        return tuple(pairs)

    def origin(self, position: int) -> Sampling | None:
        """The sampling that drew the token at a generated position; None if it was chosen."""
        return self.origins[position - self.n_prompt]


def token_spans(text: str, tokens: Sequence[bytes]) -> NDArray[np.int64]:
    """Begin and end of each token in the characters of the text [tokens, 2].

    `text` is what `engine.tokenizers.utf8.to_text` makes of all the tokens' bytes.
    """
    lengths = np.fromiter(map(len, tokens), np.int64, len(tokens))
    ends = np.cumsum(lengths)
    starts = ends - lengths
    encoded = text.encode("utf-8", "surrogatepass")
    if len(encoded) == lengths.sum():
        # A character starts at every byte that is not a UTF-8 continuation (10xxxxxx).
        is_start = (np.frombuffer(encoded, np.uint8) & 0xC0) != 0x80
    else:
        is_start = _character_starts(b"".join(tokens))
    begun = np.concatenate(([0], np.cumsum(is_start)))  # characters begun before each byte
    first_byte_taken = begun[np.minimum(starts + 1, len(is_start))]
    return np.stack((np.where(lengths, first_byte_taken - 1, begun[ends]), begun[ends]), axis=1)


# One character, or as much of one as there is before a byte that cannot go on with it: what a
# decoder replaces by one U+FFFD (the Unicode Standard, table 3-7). Lone surrogates are whole.
_CHARACTER = re.compile(
    rb"[\x00-\x7f]"
    rb"|[\xc2-\xdf][\x80-\xbf]?"
    rb"|\xe0(?:[\xa0-\xbf][\x80-\xbf]?)?"
    rb"|\xed(?:[\x80-\x9f][\x80-\xbf]?|[\xa0-\xbf][\x80-\xbf])?"
    rb"|[\xe1-\xef][\x80-\xbf]{0,2}"
    rb"|\xf0(?:[\x90-\xbf][\x80-\xbf]{0,2})?"
    rb"|[\xf1-\xf3][\x80-\xbf]{0,3}"
    rb"|\xf4(?:[\x80-\x8f][\x80-\xbf]{0,2})?"
    rb"|[\x80-\xff]"
)


def _character_starts(encoded: bytes) -> NDArray[np.bool_]:
    """Where a character of any bytes, as a sampled continuation may hold, begins [bytes]."""
    is_start = np.zeros(len(encoded), dtype=np.bool_)
    is_start[[found.start() for found in _CHARACTER.finditer(encoded)]] = True
    return is_start
