"""Which tokens of two texts belong together: pairs in order, and one axis for both; pure numpy.

Pairs never cross, so both texts can be drawn along one axis of slots: each slot holds a pair, or a
token that only one of the two has.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Way = Literal["position", "token"]
Places = NDArray[np.int64]

ABSENT = -1
# Runs that tokenizers cut within and hardly ever across; where one does, its parts still pair.
_WORD = re.compile(r"\s+|\w+|[^\w\s]+")


@dataclass(frozen=True, eq=False)
class Alignment:
    """Two texts of n and m tokens along one axis of M slots.

    `a` [M] and `b` [M] are the position that stands in each slot, ABSENT where that text has
    none; each text's positions all occur, in order.
    """

    a: Places
    b: Places

    def __len__(self) -> int:
        """M."""
        return len(self.a)

    @cached_property
    def both(self) -> NDArray[np.bool_]:
        """Which slots hold a pair [M]."""
        both: NDArray[np.bool_] = (self.a != ABSENT) & (self.b != ABSENT)
        return both

    @property
    def pairs(self) -> Places:
        """The pairs in order [pairs, 2], as positions in a and in b."""
        return np.stack((self.a[self.both], self.b[self.both]), axis=1)

    def slot_of_a(self, position: int) -> int:
        """In which slot a position of a stands."""
        return int(np.flatnonzero(self.a == position)[0])

    def slot_of_b(self, position: int) -> int:
        """In which slot a position of b stands."""
        return int(np.flatnonzero(self.b == position)[0])


def by_position(n_a: int, n_b: int) -> Alignment:
    """Position i beside position i; what one text has more stands alone at the end."""
    place = np.arange(max(n_a, n_b))
    return Alignment(np.where(place < n_a, place, ABSENT), np.where(place < n_b, place, ABSENT))


def by_token(ids_a: Sequence[int], ids_b: Sequence[int]) -> Alignment:
    """As many equal tokens beside each other as can be without crossing."""
    return _slots(len(ids_a), len(ids_b), common(ids_a, ids_b))


def by_span(
    text_a: str, spans_a: Places, text_b: str, spans_b: Places, n_before: int = 0
) -> Alignment:
    """For tokens of two vocabularies: those that spell the same characters of a common word.

    `spans` [tokens, 2] are where tokens begin and end in their text (`engine.document`). Of tokens
    that share a character, the first ones pair first. The first `n_before` of each stand before
    its text, and pair with one another.
    """
    there = _same_characters(text_a, text_b)
    waiting: dict[tuple[int, int], list[int]] = {}
    for at, (start, stop) in enumerate(spans_b.tolist()):
        waiting.setdefault((start, stop), []).append(at)
    pairs, last = [(at, at) for at in range(n_before)], n_before - 1
    for at, (start, stop) in enumerate(spans_a.tolist()):
        to = there[start:stop]
        if not len(to) or to[0] < 0 or (np.diff(to) != 1).any():
            continue
        for other in waiting.get((int(to[0]), int(to[-1]) + 1), ()):
            if other > last:
                pairs.append((at, other))
                last = other
                break
    return _slots(len(spans_a), len(spans_b), pairs)


def likelier(tokens_a: Sequence[bytes], tokens_b: Sequence[bytes], aligned: Alignment) -> Way:
    """Whether position by position loses nothing against an alignment by token.

    It does not where both texts have one length and as many equal tokens stand at the same
    position as were aligned: words in another order, or one in another's place.
    """
    if len(tokens_a) != len(tokens_b):
        return "token"
    n_same = sum(one == other for one, other in zip(tokens_a, tokens_b, strict=True))
    return "position" if n_same >= int(aligned.both.sum()) else "token"


def common(a: Sequence[Any], b: Sequence[Any]) -> list[tuple[int, int]]:
    """A longest common subsequence, as pairs of places in order.

    The textbook table of lengths, a row at once: in row i, cell j is the largest so far of the
    cell above and, where the items are equal, of the one above to the left plus 1.
    """
    head = 0
    while head < min(len(a), len(b)) and a[head] == b[head]:
        head += 1
    tail = 0
    while tail < min(len(a), len(b)) - head and a[-1 - tail] == b[-1 - tail]:
        tail += 1
    pairs = [(at, at) for at in range(head)]
    pairs += _by_table(a[head : len(a) - tail], b[head : len(b) - tail], head)
    return pairs + [(len(a) - at, len(b) - at) for at in range(tail, 0, -1)]


def _by_table(a: Sequence[Any], b: Sequence[Any], offset: int) -> list[tuple[int, int]]:
    names: dict[Any, int] = {}
    one, other = (
        np.array([names.setdefault(item, len(names)) for item in items], np.int64)
        for items in (a, b)
    )
    lengths = np.zeros((len(a) + 1, len(b) + 1), np.int32)
    for row, item in enumerate(one, start=1):
        longer = np.maximum(lengths[row - 1, 1:], lengths[row - 1, :-1] + (other == item))
        np.maximum.accumulate(longer, out=lengths[row, 1:])
    pairs, i, j = [], len(a), len(b)
    while i and j:
        if lengths[i, j] == lengths[i - 1, j]:
            i -= 1
        elif lengths[i, j] == lengths[i, j - 1]:
            j -= 1
        else:
            i, j = i - 1, j - 1
            pairs.append((i + offset, j + offset))
    return pairs[::-1]


def _same_characters(text_a: str, text_b: str) -> Places:
    """For each character of a the place in b of the same one in a common word, or ABSENT."""
    words = [[found.span() for found in _WORD.finditer(text)] for text in (text_a, text_b)]
    spelled = [
        [text[start:stop] for start, stop in spans]
        for text, spans in zip((text_a, text_b), words, strict=True)
    ]
    there = np.full(len(text_a), ABSENT, np.int64)
    for one, other in common(*spelled):
        start, stop = words[0][one]
        begin = words[1][other][0]
        there[start:stop] = np.arange(begin, begin + stop - start)
    return there


def _slots(n_a: int, n_b: int, pairs: Sequence[tuple[int, int]]) -> Alignment:
    """Between two pairs, what only a has comes before what only b has."""
    a, b, at_a, at_b = [], [], 0, 0
    for i, j in (*pairs, (n_a, n_b)):
        alone_a, alone_b = range(at_a, i), range(at_b, j)
        a += [*alone_a, *[ABSENT] * len(alone_b), i]
        b += [*[ABSENT] * len(alone_a), *alone_b, j]
        at_a, at_b = i + 1, j + 1
    return Alignment(np.array(a[:-1], np.int64), np.array(b[:-1], np.int64))
