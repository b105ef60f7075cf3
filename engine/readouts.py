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
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from engine.session import Session
from engine.trace import (
    ENTROPY,
    FIRST_TOKEN,
    INDUCTION,
    MASKED,
    PREVIOUS_TOKEN,
    ROW_SUM,
    SAME_TOKEN,
    has_earlier_twin,
)

Floats = NDArray[np.float32]
Role = Literal["previous token", "first token", "same token", "induction", "entropy"]
ROLES: tuple[Role, ...] = get_args(Role)

# A role names a head only when it takes at least this share of the weight.
ROLE_THRESHOLD = 0.4


@dataclass(frozen=True)
class HeadRoles:
    """Each role's score [L, H] on this text; NaN where no query of the text can be asked."""

    scores: dict[Role, Floats]

    def name(self, layer: int, head: int) -> Role | None:
        """The strongest role of a head if it reaches ROLE_THRESHOLD, else None (mixed)."""
        asked: list[Role] = [role for role in ROLES if role != "entropy"]
        best = max(asked, key=lambda role: np.nan_to_num(self.scores[role][layer, head]))
        return best if self.scores[best][layer, head] >= ROLE_THRESHOLD else None


def head_roles(session: Session) -> HeadRoles:
    """All roles of all heads over all rows of the session."""
    features = session.features  # [L, H, S, N_FEATURES]
    later = np.arange(len(session)) >= 1
    twin = has_earlier_twin(session.token_ids.tolist())
    everyone = np.ones(len(session), dtype=np.bool_)
    asked: dict[Role, tuple[int, NDArray[np.bool_]]] = {
        "previous token": (PREVIOUS_TOKEN, later),
        "first token": (FIRST_TOKEN, later),
        "same token": (SAME_TOKEN, twin),
        "induction": (INDUCTION, twin),
        "entropy": (ENTROPY, everyone),
    }
    scores: dict[Role, Floats] = {}
    for role, (column, rows) in asked.items():
        if rows.any():
            scores[role] = features[:, :, rows, column].mean(axis=2)
        else:
            scores[role] = np.full(features.shape[:2], np.nan, dtype=np.float32)
    return HeadRoles(scores)


@dataclass(frozen=True)
class Checks:
    """What must hold for every row of every head, as measured on the records."""

    row_sum_error: float  # largest |Σ weights − 1|
    masked_weight: float  # largest weight on keys that the mask forbids
    all_finite: bool

    TOLERANCE = 1e-5


def checks(session: Session) -> Checks:
    """Measured over all heads and rows of the session."""
    features = session.features
    return Checks(
        row_sum_error=float(np.abs(features[..., ROW_SUM] - 1).max(initial=0.0)),
        masked_weight=float(features[..., MASKED].max(initial=0.0)),
        all_finite=all(
            bool(np.isfinite(part).all())
            for trace in session.traces
            for part in (trace.q, trace.k, trace.v, trace.hidden, trace.features)
        ),
    )
