"""Reads a text once more with the weights in float32, and compares what comes out.

The model in force has lost them, so they are read from its file again, beside it.
"""

from pathlib import Path

import numpy as np
import torch

from engine.cancelling import Cancelled, never
from engine.conditions import Conditions
from engine.errors import EngineError
from engine.formats import Consequence
from engine.loading import load
from engine.logit_rows import N_TOGETHER, top
from engine.memory import available_bytes
from engine.model import Transformer
from engine.reading import ModelInfo
from engine.session import Session
from engine.sizes import bytes_said
from engine.weight_room import peak_bytes


def float32_model(info: ModelInfo, cancelled: Cancelled) -> Transformer:
    """The same model from its file, in float32 on the processor.

    Raises:
        EngineError: there is not enough memory, or the file is no longer what it was.
        CancelledError: `cancelled` said so between two tensors.
    """
    with torch.device("meta"):  # only shapes
        needed = peak_bytes(Transformer(info.config), "float32")
    there = available_bytes()
    if there is not None and needed > there:
        raise EngineError(
            f"Not compared with float32: its weights need {bytes_said(needed)} more, and "
            f"{bytes_said(there)} are free."
        )
    model = load(Path(info.path), cancelled=cancelled).model
    if model.config != info.config:
        raise EngineError(f"Not compared with float32: {info.path} now holds another model.")
    return model.requires_grad_(requires_grad=False)


@torch.inference_mode()
def compare(
    model: Transformer,
    reference: Transformer,
    session: Session,
    conditions: Conditions,
    cancelled: Cancelled = never,
) -> Consequence:
    """How far a session's predictions are from those of the same model in float32.

    Raises:
        CancelledError: `cancelled` said so between two layers.
    """
    token_ids = torch.from_numpy(session.token_ids.copy())
    n_tokens = len(token_ids)
    shown = torch.from_numpy(np.stack([session.hidden(at) for at in range(n_tokens)]))
    exact = reference.hidden(token_ids, None, conditions, None, cancelled)
    worst, n_top_changed, losses = (-1.0, 0, 0, 0.0, 0.0), 0, [0.0, 0.0]
    for at in range(0, n_tokens, N_TOGETHER):
        rows = slice(at, at + N_TOGETHER)
        logs = [
            torch.log_softmax(each.logits(hidden[rows]).cpu(), dim=-1)  # [rows, V]
            for each, hidden in ((model, shown), (reference, exact))
        ]
        n_top_changed += int((top(logs[0]) != top(logs[1])).sum())
        following = token_ids[at + 1 : at + 1 + N_TOGETHER, None]
        losses = [
            total - float(log[: len(following)].gather(-1, following).sum())
            for total, log in zip(losses, logs, strict=True)
        ]
        held, wanted = logs[0].exp(), logs[1].exp()
        apart = (held - wanted).abs()
        row, token = divmod(int(apart.argmax()), apart.shape[-1])
        here = float(apart[row, token]), at + row, token
        worst = max(worst, (*here, float(held[row, token]), float(wanted[row, token])))
    per_token = [total / (n_tokens - 1) if n_tokens > 1 else float("nan") for total in losses]
    return Consequence(n_tokens, *worst, n_top_changed, *per_token)
