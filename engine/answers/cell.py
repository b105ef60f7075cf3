"""One weight taken apart, from the stored q and k to what its head adds to the residual.

Each stage is worked out once more, in float64, from the stage before it, and the first ones are
the q, k and v that the pass stored. What comes out is compared with the weights that are shown,
which the pass's own function made in float32.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.reading import Reading

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class HeadWeights:
    """What the model itself holds of one head and its positions."""

    output: Floats  # [C, D], the head's columns of W_O
    scale: float  # of q · k
    cap: float  # scores are bent into ± this; 0: they are not
    slope: float | None  # ALiBi's
    rotary: Floats | None  # cosines and sines [2, positions, ≤ D/2]


@dataclass(frozen=True, eq=False)
class Turn:
    """What rotary positions did to one q or k: of P pairs, feature i and i + P turn together.

    Angles are in radians from −π to π; whole turns are left out. Features from 2 P on, where
    there are any, do not turn.
    """

    before: Doubles  # [D], by turning back
    angles: Doubles  # [P]


@dataclass(frozen=True, eq=False)
class CellArithmetic:
    """How one query's weight on one key came about, and what the head made of the whole row.

    Rows are over all S keys; where the mask hides a key its score is −∞ and its weight 0.
    """

    layer: int
    head: int
    query: int
    key: int
    sharing: tuple[int, ...]  # the query heads that share these keys and values, this one included
    q: Floats  # [D], after the position scheme
    keys: Floats  # [S, D], after the position scheme
    values: Floats  # [S, D]
    turns: tuple[Turn, Turn] | None  # of q and k; None without rotary positions
    scale: float  # of q · k: 1/√D, unless the model has another
    cap: float  # scores are bent into ± this; 0: they are not
    slope: float | None  # ALiBi's; None without it
    visible: Bools  # [S], what the mask lets the query see
    shown: Floats  # the row of weights on screen [S]
    output: Floats  # [C, D], the head's columns of W_O
    instead: Floats | None  # [D], what the pass took in place of the mix; None: the head is on
    hidden: Floats  # [C], the final hidden state at the query

    TOLERANCE = 1e-5

    @property
    def is_off(self) -> bool:
        """Whether the head is switched off."""
        return self.instead is not None

    # Score

    @property
    def k(self) -> Floats:
        """The key [D], after the position scheme."""
        row: Floats = self.keys[self.key]
        return row

    @cached_property
    def products(self) -> Doubles:
        """The products q · k of each feature [D]."""
        return self.q.astype(np.float64) * self.k

    @cached_property
    def dot(self) -> float:
        """The products' sum."""
        return float(self.products.sum())

    @property
    def scaled(self) -> float:
        """The dot product, scaled."""
        return self.dot * self.scale

    @property
    def bent(self) -> float:
        """The scaled dot product after the cap: cap · tanh(scaled ÷ cap); itself without one."""
        return float(_bend(self.scaled, self.cap))

    @property
    def distance(self) -> int:
        """Positions from the key to the query, in either direction."""
        return abs(self.query - self.key)

    @property
    def lowering(self) -> float:
        """What ALiBi takes off the score: slope · distance; 0 without it."""
        return (self.slope or 0.0) * self.distance

    @property
    def is_visible(self) -> bool:
        """Whether the mask lets the query see the key."""
        return bool(self.visible[self.key])

    @property
    def score_before_mask(self) -> float:
        """Scaled, bent, and lowered by ALiBi."""
        return self.bent - self.lowering

    @property
    def score(self) -> float:
        """What enters the softmax: −∞ if the mask hides the key."""
        return self.score_before_mask if self.is_visible else -np.inf

    # The row

    @cached_property
    def scores(self) -> Doubles:
        """The query's scores [S]; −∞ on hidden keys."""
        dots = self.keys.astype(np.float64) @ self.q.astype(np.float64)
        scores = np.asarray(_bend(dots * self.scale, self.cap))
        if self.slope is not None:
            scores = scores - self.slope * np.abs(self.query - np.arange(len(scores)))
        return np.where(self.visible, scores, -np.inf)

    @property
    def row_maximum(self) -> float:
        """The largest score."""
        return float(self.scores.max())

    @cached_property
    def exponentials(self) -> Doubles:
        """exp(score − row maximum) [S]; 0 on hidden keys."""
        powers: Doubles = np.exp(self.scores - self.row_maximum)
        return powers

    @cached_property
    def row_sum(self) -> float:
        """The exponentials' sum."""
        return float(self.exponentials.sum())

    @cached_property
    def weights(self) -> Doubles:
        """Each exponential ÷ row sum [S]."""
        return self.exponentials / self.row_sum

    @property
    def weight(self) -> float:
        """This cell's."""
        return float(self.weights[self.key])

    @cached_property
    def difference(self) -> float:
        """The largest |weight worked out here − weight shown| of the row."""
        return float(np.abs(self.weights - self.shown).max())

    # Values

    def weighted(self, keys: Iterable[int]) -> Doubles:
        """The products weight · v [keys, D] of some keys."""
        rows = list(keys)
        return self.weights[rows, None] * self.values[rows]

    @cached_property
    def mix(self) -> Doubles:
        """The head's output [D]: all values, weighted and summed."""
        return self.weights @ self.values.astype(np.float64)

    # The residual

    @cached_property
    def contribution(self) -> Doubles:
        """W_O's columns of this head · mix [C], or what stands in its place: what is added.

        W_O's bias, where there is one, is added once for all heads together and not here; and a
        model that norms what attention puts out norms the sum of all heads.
        """
        mix = self.mix if self.instead is None else self.instead.astype(np.float64)
        return self.output.astype(np.float64) @ mix

    @cached_property
    def length(self) -> float:
        """The contribution's length."""
        return float(np.linalg.norm(self.contribution))

    @cached_property
    def cosine(self) -> float | None:
        """The contribution's cosine with the final hidden state; None if one of them is 0."""
        lengths = self.length * float(np.linalg.norm(self.hidden.astype(np.float64)))
        return float(self.contribution @ self.hidden / lengths) if lengths else None

    def work_out(self) -> "CellArithmetic":
        """Itself, with every stage computed, so that nobody waits for one later."""
        _ = self.products, self.difference, self.mix, self.length, self.cosine
        return self


def cell_arithmetic(
    reading: Reading, key: int | None, weights: HeadWeights, instead: Floats | None = None
) -> CellArithmetic:
    """The weight of the reading's query on a key, in the head in focus; the text is not empty.

    Without a key it is the one with the row's largest weight; one beyond the text is its last.
    `instead` [D] stands in place of the mix of a head that is off.
    """
    session, focus, conditions = reading.session, reading.focus, reading.conditions
    config, layer, query = reading.info.config, focus.layer, reading.position
    shared = config.n_head // config.n_kv_head
    group = focus.head // shared
    shown = focus.weights[query]
    key = int(shown.argmax()) if key is None else max(0, min(key, len(session) - 1))
    q = session.q(layer)[focus.head, query].copy()
    keys = session.k(layer)[group].copy()  # not to keep alive those of the other heads
    turns = None
    if weights.rotary is not None and conditions.positions:
        table = weights.rotary
        turns = _turn(q, table[:, query]), _turn(keys[key], table[:, key])
    return CellArithmetic(
        layer=layer,
        head=focus.head,
        query=query,
        key=key,
        sharing=tuple(range(group * shared, (group + 1) * shared)),
        q=q,
        keys=keys,
        values=session.v(layer)[group].copy(),
        turns=turns,
        scale=weights.scale,
        cap=weights.cap,
        slope=weights.slope if conditions.positions else None,
        visible=focus.visible[query],
        shown=shown,
        output=weights.output,
        instead=instead,
        hidden=session.hidden(query),
    ).work_out()


def _bend(scores: Any, cap: float) -> Any:  # noqa: ANN401 - one or many
    return np.tanh(scores / cap) * cap if cap else scores


def _turn(turned: Floats, table: Floats) -> Turn:
    """Turn a row [D] back by the cosines and sines of its position [2, P]."""
    cos, sin = table.astype(np.float64)
    n_pairs = len(cos)
    first, second, rest = np.split(turned.astype(np.float64), (n_pairs, 2 * n_pairs))
    size = cos**2 + sin**2
    back = ((first * cos + second * sin) / size, (second * cos - first * sin) / size)
    return Turn(before=np.concatenate((*back, rest)), angles=np.arctan2(sin, cos))
