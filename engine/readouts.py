"""Questions put to the records: what a head does on this text, and whether the numbers hold.

Roles are measured, never assumed; each is an average over the queries of this text for which
the question makes sense, and each is a number between 0 and 1 (entropy aside, in nats):

- previous token: weight on the key right before the query (queries from position 1 on).
- first token: weight on key 0 (queries from position 1 on).
- same token: weight on earlier occurrences of the query's own token (queries that have one).
- induction: weight on the keys that came right after an earlier occurrence of the query's token
  (queries that have one), the pattern that copies a repeated passage (Olsson et al. 2022).
- entropy: −Σ w · ln w of a row; 0 looks at one key, ln n spreads evenly over n.

A weight is a computation, not a promise of meaning: a role says where a head looks on this text,
not what it is for.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from engine.session import Session
from engine.trace import (
    ENTROPY,
    FIRST_TOKEN,
    INDUCTION,
    N_FEATURES,
    PREVIOUS_TOKEN,
    SAME_TOKEN,
)

Floats = NDArray[np.float32]
Role = Literal["previous token", "first token", "same token", "induction", "entropy"]
ROLES: tuple[Role, ...] = get_args(Role)
ROLE_FORMULAS: dict[Role, str] = {
    "previous token": "mean over queries t ≥ 1 of the weight on key t − 1",
    "first token": "mean over queries t ≥ 1 of the weight on key 0",
    "same token": "mean over queries whose token stood before of Σ weight on its earlier places",
    "induction": "mean over queries whose token stood before of Σ weight right after those places",
    "entropy": "mean over queries of −Σ w · ln w, in nats: 0 looks at one key, ln n at n alike",
}

# A role names a head only when it takes at least this share of the weight.
ROLE_THRESHOLD = 0.4


@dataclass(frozen=True, eq=False)
class HeadRoles:
    """Each role's score [L, H] on this text; NaN where no query of the text can be asked."""

    scores: dict[Role, Floats]

    @cached_property
    def names(self) -> tuple[tuple[Role | None, ...], ...]:
        """Each head's strongest role [L][H] where it reaches ROLE_THRESHOLD, else None (mixed)."""
        asked: list[Role] = [role for role in ROLES if role != "entropy"]
        scores = np.nan_to_num(np.stack([self.scores[role] for role in asked]))
        best, reached = scores.argmax(axis=0).tolist(), scores.max(axis=0) >= ROLE_THRESHOLD
        return tuple(
            tuple(asked[i] if is_named else None for i, is_named in zip(*row, strict=True))
            for row in zip(best, reached.tolist(), strict=True)
        )

    def name(self, layer: int, head: int) -> Role | None:
        """One head's strongest role, or None."""
        return self.names[layer][head]


CARRIED = 0.9


def n_carrying(weights: Floats, share: float = CARRIED) -> NDArray[np.int64]:
    """The least number of keys that together carry a share of each row's weight [...].

    `weights` [..., S] are rows that sum to 1; a sum that reaches the share up to rounding (1e-6)
    has reached it.
    """
    largest_first = -np.sort(-weights.astype(np.float64), axis=-1)
    falls_short = np.cumsum(largest_first, axis=-1) < share - 1e-6
    n_keys: NDArray[np.int64] = falls_short.sum(axis=-1) + 1
    return n_keys


def head_roles(session: Session) -> HeadRoles:
    """All roles of all heads over all rows of the session."""
    summaries = [trace.summary for trace in session.traces]
    n_later = sum(summary.n_later for summary in summaries)
    n_twin = sum(summary.n_twin for summary in summaries)
    asked: dict[Role, tuple[int, int]] = {
        "previous token": (PREVIOUS_TOKEN, n_later),
        "first token": (FIRST_TOKEN, n_later),
        "same token": (SAME_TOKEN, n_twin),
        "induction": (INDUCTION, n_twin),
        "entropy": (ENTROPY, len(session)),
    }
    shape = session.traces[0].first.shape[:2] if session.traces else (0, 0)
    sums = np.zeros((*shape, N_FEATURES))
    for summary in summaries:
        sums += summary.sums
    scores = {
        role: (sums[..., column] / n_rows if n_rows else np.full(shape, np.nan))
        for role, (column, n_rows) in asked.items()
    }
    return HeadRoles({role: score.astype(np.float32) for role, score in scores.items()})


@dataclass(frozen=True)
class Checks:
    """What must hold for every row of every head, as measured on the records."""

    row_sum_error: float  # largest |Σ weights − 1|
    masked_weight: float  # largest weight on keys that the mask forbids
    all_finite: bool

    TOLERANCE = 1e-5


def checks(session: Session) -> Checks:
    """Measured over all heads and rows of the session."""
    summaries = [trace.summary for trace in session.traces]
    # numpy's maximum, unlike Python's, never loses a NaN.
    return Checks(
        row_sum_error=float(np.max([each.row_sum_error for each in summaries], initial=0.0)),
        masked_weight=float(np.max([each.masked_weight for each in summaries], initial=0.0)),
        all_finite=all(summary.all_finite for summary in summaries),
    )
