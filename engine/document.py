"""The text as tokens: what the prompt gave, what was generated, and where each token stands."""

import codecs
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from engine.sampling import Sampling


@dataclass(frozen=True, eq=False)
class Document:
    """One text and its tokens; the first `n_prompt` came from the prompt.

    `origins` says, for each generated token, the sampling it was drawn with, or None where the
    user chose it.
    """

    text: str = ""
    token_ids: tuple[int, ...] = ()
    tokens: tuple[bytes, ...] = ()
    n_prompt: int = 0
    origins: tuple[Sampling | None, ...] = ()

    def __len__(self) -> int:
        """How many tokens."""
        return len(self.token_ids)

    @cached_property
    def spans(self) -> NDArray[np.int64]:
        """Where each token's characters begin and end in the text [tokens, 2].

        Tokens that share one character all span the whole of it.
        """
        return token_spans(self.text, self.tokens)

    def origin(self, position: int) -> Sampling | None:
        """The sampling that drew the token at a generated position; None if it was chosen."""
        return self.origins[position - self.n_prompt]


def token_spans(text: str, tokens: Sequence[bytes]) -> NDArray[np.int64]:
    """Begin and end of each token in the characters of the text [tokens, 2]."""
    ends = np.cumsum([len(token) for token in tokens], dtype=np.int64)
    starts = ends - np.array([len(token) for token in tokens], dtype=np.int64)
    encoded = text.encode("utf-8", "surrogatepass")
    if not tokens or ends[-1] != len(encoded):
        return _spans_by_decoding(tokens)
    # A character starts at every byte that is not a UTF-8 continuation (10xxxxxx).
    is_start = (np.frombuffer(encoded, np.uint8) & 0xC0) != 0x80
    begun = np.concatenate(([0], np.cumsum(is_start)))  # characters begun before each byte
    return np.stack((begun[starts + 1] - 1, begun[ends]), axis=1)


def _spans_by_decoding(tokens: Sequence[bytes]) -> NDArray[np.int64]:
    """The same for bytes that are no valid UTF-8, as a sampled continuation may contain."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    spans = np.zeros((len(tokens), 2), dtype=np.int64)
    n_characters = 0
    for row, token in enumerate(tokens):
        begin = n_characters
        n_characters += len(decoder.decode(token))
        waiting = bool(decoder.getstate()[0])
        spans[row] = begin, max(n_characters + waiting, begin)
    return spans
