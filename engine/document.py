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
    """One text and its tokens; `n_prompt` of them came from the prompt.

    Among those, `n_prefix` were put there because the model expects them before every text: they
    have names among `tokens`, and spell nothing. They stand before what the model sees of the text,
    which is behind its first `n_fallen` tokens where they have fallen out of the context.
    `origins` says, for each generated token, the sampling it was drawn with, or None where the user
    chose it. `in_text` is what the text's own tokens stand for in it, where that is not always all
    their bytes.
    """

    text: str = ""
    token_ids: tuple[int, ...] = ()
    tokens: tuple[bytes, ...] = ()
    n_prompt: int = 0
    origins: tuple[Sampling | None, ...] = ()
    n_prefix: int = 0
    n_fallen: int = 0
    in_text: tuple[bytes, ...] | None = None

    def __len__(self) -> int:
        """How many tokens."""
        return len(self.token_ids)

    @property
    def prefix(self) -> slice:
        """Where those stand that were put before the text."""
        return slice(self.n_fallen, self.n_fallen + self.n_prefix)

    @property
    def prefix_ids(self) -> tuple[int, ...]:
        """The ids of those that were put before the text."""
        return self.token_ids[self.prefix]

    @property
    def text_ids(self) -> tuple[int, ...]:
        """The ids of the text's own tokens."""
        return self.token_ids[: self.n_fallen] + self.token_ids[self.prefix.stop :]

    def n_of_text(self, cursor: int) -> int:
        """How many of the first `cursor` tokens are the text's own."""
        return cursor - max(0, min(self.n_prefix, cursor - self.n_fallen))

    @cached_property
    def spelled(self) -> tuple[bytes, ...]:
        """What each token stands for in the text: its bytes; none for those before it.

        A first word's token may begin with a space that the vocabulary put there; the text has
        none.
        """
        within = self.in_text
        if within is None:
            within = self.tokens[: self.n_fallen] + self.tokens[self.prefix.stop :]
        return within[: self.n_fallen] + (b"",) * self.n_prefix + within[self.n_fallen :]

    @cached_property
    def spans(self) -> NDArray[np.int64]:
        """Where each token's characters begin and end in the text [tokens, 2].

        Tokens that share one character all span the whole of it; those that were put before the
        text have no character.
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

    @property
    def generated_from(self) -> int:
        """Where the first token behind the prompt stands; behind all of them if there is none."""
        n_prompt = self.n_prompt - self.n_prefix
        return n_prompt if n_prompt < self.n_fallen else self.n_prompt

    @cached_property
    def generated(self) -> NDArray[np.bool_]:
        """Which tokens the model wrote, or the user chose, behind the prompt [tokens]."""
        generated = np.zeros(len(self), np.bool_)
        generated[self.generated_from :] = True
        generated[self.prefix] = False
        return generated

    def origin(self, place: int) -> Sampling | None:
        """The sampling that drew a generated token; None if it was chosen."""
        return self.origins[self.n_of_text(place) - (self.n_prompt - self.n_prefix)]


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
