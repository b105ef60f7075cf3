"""Two runs side by side: the same head of both along one axis, and what is different.

The difference is B − A. It is known only where both texts have the query and the key; where one
of them has not, there is none, which is not the same as 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from engine.answers.alignment import (
    ABSENT,
    Alignment,
    Places,
    Way,
    by_position,
    by_span,
    by_token,
    likelier,
)
from engine.conditions import Conditions
from engine.document import token_spans
from engine.formats import FLOAT32, FormatChoice
from engine.loss import LossSummary
from engine.reading import Reading
from engine.sampling import descending
from engine.tokenizers.utf8 import to_text

Floats = NDArray[np.float32]
Bools = NDArray[np.bool_]

WayWanted = Way | Literal["automatic"]
Kind = TypeVar("Kind", bound=np.generic)


@dataclass(frozen=True)
class Wanted:
    """In what the second run differs from the one on screen; None: in nothing."""

    text: str | None = None
    conditions: Conditions | None = None
    path: Path | None = None  # of another model
    formats: FormatChoice = FLOAT32  # that it is opened in
    way: WayWanted = "automatic"  # which tokens are compared with which
    at: tuple[int, int] | None = None  # B's layer and head; None: A's, or the last that B has


@dataclass(frozen=True, eq=False)
class NextTokens:
    """What could follow in both runs, by the plain softmax, from the most probable in either on.

    `tokens` and the arrays are of all N tokens of both vocabularies together; an id is ABSENT and
    a probability NaN where a vocabulary has no such token.
    """

    tokens: tuple[bytes, ...]
    id_a: Places  # [N]
    id_b: Places  # [N]
    prob_a: NDArray[np.float64]  # [N]
    prob_b: NDArray[np.float64]  # [N]

    @property
    def difference(self) -> NDArray[np.float64]:
        """B − A [N]."""
        return self.prob_b - self.prob_a


@dataclass(frozen=True, eq=False)
class Comparison:
    """One head of two readings along the M slots of their alignment.

    `position_b` is B's position whose prediction is compared with that of A's, None if it has
    none that belongs to A's.
    """

    a: Reading
    b: Reading
    alignment: Alignment
    way: Way
    position_b: int | None

    def __len__(self) -> int:
        """M."""
        return len(self.alignment)

    @cached_property
    def weights_a(self) -> Floats:
        """A's weights [M, M]; 0 where A lacks query or key."""
        return _spread(self.a.focus.weights, self.alignment.a)

    @cached_property
    def weights_b(self) -> Floats:
        """B's weights [M, M]; 0 where B lacks query or key."""
        return _spread(self.b.focus.weights, self.alignment.b)

    @cached_property
    def visible_a(self) -> Bools:
        """What A has and its mask lets through [M, M]."""
        return _spread(self.a.focus.visible, self.alignment.a)

    @cached_property
    def visible_b(self) -> Bools:
        """What B has and its mask lets through [M, M]."""
        return _spread(self.b.focus.visible, self.alignment.b)

    @cached_property
    def exists(self) -> Bools:
        """Where there is a difference [M, M]: both have the cell, and not both mask it."""
        both = self.alignment.both
        exists: Bools = both[:, None] & both & (self.visible_a | self.visible_b)
        return exists

    @cached_property
    def difference(self) -> Floats:
        """B − A [M, M]; 0 where there is none, which `exists` tells apart."""
        return np.where(self.exists, self.weights_b - self.weights_a, np.float32(0))

    @cached_property
    def tokens_a(self) -> tuple[bytes, ...]:
        """The tokens that A's model sees."""
        return seen_tokens(self.a)

    @cached_property
    def tokens_b(self) -> tuple[bytes, ...]:
        """The tokens that B's model sees."""
        return seen_tokens(self.b)

    @cached_property
    def losses(self) -> tuple[LossSummary, LossSummary]:
        """What A's text cost A, and B's B."""
        first, second = (
            LossSummary.of(each.session.loss, each.document.spans[each.n_fallen : each.cursor])
            for each in (self.a, self.b)
        )
        return first, second

    @cached_property
    def next_tokens(self) -> NextTokens | None:
        """What could follow A's position and B's; None if either has no such position."""
        if self.position_b is None or self.a.stages is None or self.b.stages is None:
            return None
        ids_a, ids_b, tokens = _both_vocabularies(_names(self.a), _names(self.b))
        prob_a, prob_b = (
            np.where(ids == ABSENT, np.nan, reading.plain_probs[ids])
            for ids, reading in ((ids_a, self.a.stages), (ids_b, self.b.stages))
        )
        largest = np.fmax(prob_a, prob_b)
        order = descending(largest)
        return NextTokens(
            tuple(tokens[order].tolist()),
            ids_a[order],
            ids_b[order],
            prob_a[order],
            prob_b[order],
        )


def seen_tokens(reading: Reading) -> tuple[bytes, ...]:
    """The tokens that the model of a reading sees [S]."""
    return reading.document.tokens[reading.n_fallen : reading.cursor]


def align(a: Reading, b: Reading, wanted: WayWanted) -> tuple[Alignment, Way]:
    """Which tokens of two readings are compared, and the way in force."""
    position = by_position(a.n_tokens, b.n_tokens)
    if wanted == "position":
        return position, "position"
    tokens = seen_tokens(a), seen_tokens(b)
    if _names(a) == _names(b):
        aligned = by_token(a.session.token_ids.tolist(), b.session.token_ids.tolist())
    else:
        spelled = [each.document.spelled[each.n_fallen : each.cursor] for each in (a, b)]
        texts = [to_text(b"".join(each)) for each in spelled]
        spans = [token_spans(text, each) for text, each in zip(texts, spelled, strict=True)]
        n_before = min(a.n_prefix, b.n_prefix)
        aligned = by_span(texts[0], spans[0], texts[1], spans[1], n_before)
    if wanted == "automatic" and likelier(*tokens, aligned) == "position":
        return position, "position"
    return aligned, "token"


def counterpart(a: Reading, b: Reading, alignment: Alignment) -> int | None:
    """B's position that belongs to A's: its partner; the last one to the last one.

    None where it has no partner, or one of the texts is empty.
    """
    if not a.n_tokens or not b.n_tokens:
        return None
    if a.position == a.n_tokens - 1:
        return b.n_tokens - 1
    partner = int(alignment.b[alignment.slot_of_a(a.position)])
    return None if partner == ABSENT else partner


def _spread(square: NDArray[Kind], places: Places) -> NDArray[Kind]:
    """A square [S, S] along the slots [M, M]; 0 where a slot is empty."""
    spread = np.zeros((len(places), len(places)), square.dtype)
    here = np.flatnonzero(places != ABSENT)
    spread[np.ix_(here, here)] = square  # the positions in order, all of them
    return spread


def _names(reading: Reading) -> tuple[bytes, ...]:
    """What each id of a model stands for [V]; nothing, where the tokenizer has fewer."""
    known, n_ids = reading.info.vocabulary, reading.info.config.vocab_size
    return known + (b"",) * (n_ids - len(known))


@lru_cache(maxsize=2)
def _both_vocabularies(
    names_a: Sequence[bytes], names_b: Sequence[bytes]
) -> tuple[Places, Places, NDArray[np.object_]]:
    """The tokens of two vocabularies together [N]: ids in each, and their bytes.

    Tokens are the same if their bytes are. A token without bytes, or whose bytes an earlier one
    has, has no counterpart in another vocabulary.
    """
    if names_a == names_b:
        ids = np.arange(len(names_a))
        return ids, ids, np.array(names_a, np.object_)
    first: dict[bytes, int] = {}
    for at, name in enumerate(names_b):
        if name:
            first.setdefault(name, at)
    partner = [first.pop(name, ABSENT) for name in names_a]
    taken = set(partner)
    alone = [at for at in range(len(names_b)) if at not in taken]
    ids_a = np.array([*range(len(names_a)), *[ABSENT] * len(alone)], np.int64)
    ids_b = np.array([*partner, *alone], np.int64)
    tokens = (*names_a, *(names_b[at] for at in alone))
    return ids_a, ids_b, np.array(tokens, np.object_)
