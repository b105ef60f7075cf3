"""Predicts a token out of the whole text's pass, and again from what stands before it alone."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from engine.cancelling import Cancelled, never
from engine.conditions import Conditions
from engine.config import ModelConfig
from engine.logit_rows import most_probable
from engine.model import Transformer
from engine.session import Session
from engine.windows.masks import visible_keys
from engine.windows.masks_pass import N_TOP
from engine.windows.visibility import NUMBERS, Floats, Prediction, Visibility


@torch.inference_mode()
def read_visibility(
    model: Transformer,
    session: Session,
    conditions: Conditions,
    numbers: Sequence[int] = NUMBERS,
    cancelled: Cancelled = never,
) -> Visibility:
    """What a session that ran under the conditions says of some of its tokens.

    Each is predicted once more by a pass of its own over the tokens before it.

    Raises:
        CancelledError: `cancelled` said so between two layers.
    """
    token_ids = torch.from_numpy(session.token_ids.copy())
    predictions = []
    for number in numbers:
        n_before = number - 1
        if n_before > len(session):
            continue
        row = torch.tensor(session.hidden(n_before - 1))  # [C]
        within = model.logits(row[None])[0]  # [V]
        alone = model.hidden(token_ids[:n_before], None, conditions, None, cancelled)
        apart = (within - model.logits(alone[-1:])[0]).abs().max()
        predictions.append(
            Prediction(
                number=number,
                seen=_seen(conditions, model.config, n_before - 1, len(session)),
                top=most_probable(within, N_TOP),
                loss=float(session.loss[n_before]) if n_before < len(session) else float("nan"),
                apart=float(apart),
            )
        )
    n_seen = _n_seen(conditions, model.config, len(session))
    return Visibility(conditions, session.loss, n_seen, tuple(predictions))


def _n_seen(conditions: Conditions, config: ModelConfig, n_tokens: int) -> NDArray[np.int64]:
    """How many keys the query before each token may see, in the layers that see most [S]."""
    n_seen = np.zeros(n_tokens, np.int64)
    for window in {config.window(layer) for layer in range(config.n_layer)}:
        for query in range(n_tokens - 1):
            n_keys = np.count_nonzero(visible_keys(conditions, query, n_tokens, window))
            n_seen[query + 1] = max(n_seen[query + 1], n_keys)
    return n_seen


def _seen(conditions: Conditions, config: ModelConfig, query: int, n_tokens: int) -> Floats:
    """In which share of the layers a query may see each key [S]."""
    windows = (config.window(layer) for layer in range(config.n_layer))
    layers = [visible_keys(conditions, query, n_tokens, window) for window in windows]
    return np.asarray(np.mean(layers, axis=0), np.float32)
