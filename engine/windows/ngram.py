"""A model with a fixed window and no attention: counts of n-grams, interpolated.

Interpolated Kneser–Ney (Kneser and Ney 1995; in this form Chen and Goodman 1998) with one
discount D = 0.75. After a history h of m tokens

    P_m(w | h) = (max(c(h w) − D, 0) + D · N(h ·) · P_{m−1}(w | h')) / c(h)

where h' is h without its first token, N(h ·) how many different tokens followed h, and P_m is
P_{m−1} where h was never seen. At the longest history c counts occurrences, below it how many
different tokens stood before; beneath all stands 1 / V.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.errors import ConfigError

IntArray = NDArray[np.int64]
Doubles = NDArray[np.float64]

DISCOUNT = 0.75
_LONGEST = 5  # tokens of history; longer ones hardly ever come twice in a few plays


def longest_history(vocab_size: int) -> int:
    """How many previous tokens can be counted with: with the next one they fit into 63 bits.

    At most 5; a vocabulary of 3,072 allows 4, one of 50,257 3. At least 1, for a vocabulary of
    less than 2³¹ tokens.
    """
    longest = 1
    while longest < _LONGEST and vocab_size ** (longest + 2) <= 2**63:
        longest += 1
    return longest


@dataclass(frozen=True)
class _Level:
    """All that was counted after histories of one length; keys are tokens packed in base V."""

    grams: IntArray  # sorted: history and next token
    counts: IntArray  # of each
    histories: IntArray  # sorted
    totals: IntArray  # Σ counts after each
    kinds: IntArray  # how many different tokens followed each


class NGram:
    """Owns the counts of some texts; sees `n_previous` tokens and nothing before them.

    Raises:
        ConfigError: such a history is shorter than 1, or too long to be counted.
    """

    def __init__(self, texts: Sequence[IntArray], vocab_size: int, n_previous: int) -> None:
        """`texts` are token ids; no n-gram reaches from one text into the next."""
        longest = longest_history(vocab_size)
        if not 1 <= n_previous <= longest:
            raise ConfigError(
                f"a history of {n_previous} tokens cannot be counted; use 1 to {longest}."
            )
        self.vocab_size, self.n_previous = vocab_size, n_previous
        parts = [_packed(text, n_previous + 1, vocab_size) for text in texts]
        packed = np.concatenate(parts) if parts else np.empty(0, np.int64)
        grams, counts = np.unique(packed, return_counts=True)
        self._levels: list[_Level] = []  # from the longest history down to none
        for n_history in range(n_previous, -1, -1):
            self._levels.append(_level(grams, counts, vocab_size))
            if n_history:  # each kind of n-gram counts once for those without its first token
                grams, counts = np.unique(grams % vocab_size**n_history, return_counts=True)

    def probabilities(self, token_ids: Sequence[int] | IntArray) -> Doubles:
        """The probability of each token of a text after the ones before it [S].

        The first tokens have shorter histories; the very first has none.
        """
        wanted = np.asarray(token_ids, np.int64)
        probs = np.full(len(wanted), 1 / self.vocab_size)
        for n_history, level in enumerate(reversed(self._levels)):
            grams = _packed(wanted, n_history + 1, self.vocab_size)  # of positions ≥ n_history
            if len(grams) and len(level.histories):
                lower = probs[n_history:]
                probs[n_history:] = _interpolated(level, grams, lower, self.vocab_size)
        return probs

    def losses(self, token_ids: Sequence[int] | IntArray) -> NDArray[np.float32]:
        """−ln of these in nats [S]; NaN for the first, as for a model that starts there."""
        loss = -np.log(self.probabilities(token_ids)).astype(np.float32)
        loss[:1] = np.nan
        return loss


def _interpolated(level: _Level, grams: IntArray, lower: Doubles, vocab_size: int) -> Doubles:
    histories = grams // vocab_size
    at, is_known = _find(level.histories, histories)
    found, is_counted = _find(level.grams, grams)
    counts = np.where(is_counted, level.counts[found], 0)
    kept = np.maximum(counts - DISCOUNT, 0)
    probs = (kept + DISCOUNT * level.kinds[at] * lower) / level.totals[at]
    return np.where(is_known, probs, lower)


def _find(known: IntArray, wanted: IntArray) -> tuple[IntArray, NDArray[np.bool_]]:
    """Where each wanted key stands among the sorted ones, and whether it does."""
    at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    return at, known[at] == wanted


def _level(grams: IntArray, counts: IntArray, vocab_size: int) -> _Level:
    histories, first, kinds = np.unique(grams // vocab_size, return_index=True, return_counts=True)
    totals = np.add.reduceat(counts, first) if len(first) else counts
    return _Level(grams, counts, histories, totals, kinds)


def _packed(token_ids: IntArray, n: int, vocab_size: int) -> IntArray:
    """Every n tokens in a row as one number in base V [S − n + 1]."""
    n_grams = max(0, len(token_ids) - n + 1)
    packed = np.zeros(n_grams, np.int64)
    for at in range(n):
        packed = packed * vocab_size + token_ids[at : at + n_grams]
    return packed
