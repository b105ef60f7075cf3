"""A text with all heads on beside the same text as it is shown; pure, without Qt."""

from dataclasses import dataclass

import numpy as np

from engine.answers.ablation import divergence, log_probabilities
from engine.answers.residual import next_token
from engine.readouts import Floats
from gui.state import OpenedIntact
from gui.widgets.candidate_text import token_label
from gui.widgets.pair_rows import Pairs
from gui.widgets.token_text import speak

_N_NAMED = 20  # of the most probable tokens on either side
ALL_ON, NOW = "all heads on", "now"


@dataclass(frozen=True, eq=False)
class WithAndWithout:
    """What switching heads off changed; losses are mean nats per token, NaN for one token."""

    loss_on: float
    loss_now: float
    moved: float  # Σ p · ln(p ÷ q) in nats: p with all heads on, q now
    pairs: Pairs

    @classmethod
    def of(cls, opened: OpenedIntact) -> "WithAndWithout | None":
        """From what the engine answered; None where it had nothing to compare."""
        reading, intact = opened.reading, opened.intact
        if intact is None or reading.stages is None:
            return None
        p, q = log_probabilities(intact.logits), log_probabilities(reading.stages.logits)
        before, now = np.exp(p), np.exp(q)
        first = {int(at) for each in (before, now) for at in np.argsort(-each)[:_N_NAMED]}
        largest = np.maximum(before, now)
        token_ids = np.array(sorted(first, key=lambda at: (-largest[at], at)), np.int64)
        vocabulary = reading.info.vocabulary
        pairs = Pairs(
            titles=(ALL_ON, NOW),
            token_ids=token_ids,
            labels=tuple(token_label(vocabulary, int(at)) for at in token_ids),
            spoken=tuple(_spoken(vocabulary, int(at)) for at in token_ids),
            before=before[token_ids],
            now=now[token_ids],
            follows=next_token(reading),
        )
        losses = _mean(intact.loss), _mean(reading.session.loss)
        return cls(*losses, divergence(p, q), pairs)


def _mean(loss: Floats) -> float:
    counted = np.asarray(loss[1:], np.float64)
    return float(counted.mean()) if len(counted) else float("nan")


def _spoken(vocabulary: tuple[bytes, ...], token_id: int) -> str:
    return speak(vocabulary[token_id]) if token_id < len(vocabulary) else f"token {token_id}"
