"""One head of a session, worked out from its records by the functions that the pass called."""

from collections.abc import Iterator

import torch
from torch import Tensor

from engine.attention import Scoring, attention_weights, matmul_heads, mean_mixes, query_blocks
from engine.session import Session


def weight_blocks(
    session: Session, layer: int, head: int, scoring: Scoring
) -> Iterator[tuple[slice, Tensor]]:
    """The weights [rows, keys up to the block's end] of a head, some queries after the other.

    `scoring` is the layer's, under the conditions of the session.
    """
    q = torch.tensor(session.q(layer)[head : head + 1])  # [1, S, D]
    k = torch.tensor(session.k(layer)[_group(session, layer, head)][None])
    for rows, n_keys in query_blocks(0, len(session), scoring.conditions):
        weights = attention_weights(q[:, rows], k[:, :n_keys], rows.start, scoring.of_head(head))
        yield rows, weights[0]


def head_mixes(session: Session, layer: int, head: int, scoring: Scoring) -> Tensor:
    """What a head mixed at every position [S, D], whether or not it was replaced."""
    v = torch.tensor(session.v(layer)[_group(session, layer, head)][None])  # [1, S, D]
    mixes = torch.empty(len(session), v.shape[-1])
    for rows, weights in weight_blocks(session, layer, head, scoring):
        mixes[rows] = matmul_heads(weights[None], v[:, : weights.shape[-1]])[0]
    return mixes


def mix_instead(session: Session, layer: int, head: int, rows: slice, scoring: Scoring) -> Tensor:
    """What the pass took in place of the mixes [T, D] of a head that is off."""
    if scoring.conditions.off_by == "zero":
        return torch.zeros(rows.stop - rows.start, session.v(layer).shape[-1])
    mixes = head_mixes(session, layer, head, scoring)
    if scoring.conditions.append_only:
        return mean_mixes(mixes[: rows.stop], rows.start, scoring)
    return mean_mixes(mixes, 0, scoring)[rows]


def _group(session: Session, layer: int, head: int) -> int:
    """Which keys and values a query head shares."""
    n_head, n_group = len(session.q(layer)), len(session.k(layer))
    return head // (n_head // n_group)
