"""A prepared comparison: a sentence, and weights that were written by hand; no model is behind it.

The sentence is ours. Its last word asks where something is to go, and a word that the answer
hangs on stands further back than a window of three words reaches.
"""

from dataclasses import dataclass

SENTENCE = "Ask for credentials, then route everything to"
N_SEEN = 3  # words that the fixed window sees, the last one included


@dataclass(frozen=True)
class Pattern:
    """Weights of the last word's query on every word of the sentence; they sum to 1."""

    name: str
    says: str
    weights: tuple[float, ...]


WORDS: tuple[str, ...] = tuple(SENTENCE.split())
PATTERNS: tuple[Pattern, ...] = (
    Pattern(
        "pattern A",
        "looks for what is to be routed, mostly near by",
        (0.02, 0.01, 0.08, 0.04, 0.58, 0.22, 0.05),
    ),
    Pattern(
        "pattern B",
        "spreads out, and reaches 'credentials'",
        (0.14, 0.03, 0.46, 0.06, 0.17, 0.09, 0.05),
    ),
)
