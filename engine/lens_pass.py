"""Reads the logit lens while a pass runs: a recorder that keeps answers, never residuals."""

import numpy as np
import torch
from torch import Tensor

from engine.cancelling import Cancelled, never
from engine.conditions import Conditions
from engine.errors import CancelledError
from engine.kv_cache import KVCache
from engine.lens import Lens
from engine.model import Transformer
from engine.recorded_heads import head_mixes
from engine.recorder import frozen
from engine.session import Session

# Rows of logits worked out together: a whole text's would be T · V numbers at each depth.
_ROWS = 64


class LensRecorder:
    """Owns the answers of one pass [L+1, T]; `lens` closes it."""

    def __init__(
        self,
        model: Transformer,
        target: Tensor,
        shown: Tensor,
        cancelled: Cancelled,
    ) -> None:
        """`target` [T] are the tokens to follow; `shown` [T, C] are the final hidden states."""
        self._model, self._shown, self._cancelled = model, shown, cancelled
        self._target = target.to(model.device)
        shape = model.config.n_layer + 1, len(target)
        self.top = torch.empty(shape, dtype=torch.int64)
        self.top_probability = torch.empty(shape)
        self.target_probability = torch.empty(shape)
        self.target_rank = torch.empty(shape, dtype=torch.int64)
        self.differences = torch.empty(len(target))

    def keep_qkv(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> None:
        """Not asked."""

    def keep_weights(self, layer: int, rows: slice, weights: Tensor) -> None:
        """Not asked."""

    def keep_residual(self, depth: int, residual: Tensor) -> None:
        """Read what the model would answer from the residual [T, C] at a depth."""
        hidden = self._model.final_norm(residual)
        for at in range(0, len(hidden), _ROWS):
            if self._cancelled():
                raise CancelledError("the lens was given up for something newer.")
            rows = slice(at, at + _ROWS)
            logits = self._model.logits(hidden[rows])  # [rows, V]
            target = self._target[rows, None]
            chosen = logits.gather(-1, target)
            best, self.top[depth, rows] = logits.max(dim=-1)
            total = logits.logsumexp(dim=-1)
            self.top_probability[depth, rows] = (best - total).exp()
            self.target_probability[depth, rows] = (chosen[:, 0] - total).exp()
            self.target_rank[depth, rows] = (logits > chosen).sum(dim=-1)
            if depth == self._model.config.n_layer:
                shown = self._model.logits(self._shown[rows])
                self.differences[rows] = (logits - shown).abs().amax(dim=-1)

    def lens(self, follows: Tensor) -> Lens:
        """The finished, read-only answers; `follows` [T] says which targets stand in the text."""
        return Lens(
            top=frozen(self.top),
            top_probability=frozen(self.top_probability),
            target=frozen(self._target),
            follows=frozen(follows),
            target_probability=frozen(self.target_probability),
            target_rank=frozen(self.target_rank),
            differences=frozen(self.differences),
            has_final_norm=self._model.config.norm_placement != "post",
        )


@torch.inference_mode()
def read_lens(
    model: Transformer,
    session: Session,
    conditions: Conditions,
    next_id: int | None,
    start: int = 0,
    cancelled: Cancelled = never,
) -> Lens:
    """The lens at the positions from `start` on of a session that has at least one more.

    One extra pass over these tokens; the keys and values before them are the session's, which
    must then be true of every longer text (`Conditions.append_only`). `next_id` is the token that
    follows the last one, if any does.

    Raises:
        CancelledError: `cancelled` said so.
    """
    n_tokens = len(session)
    token_ids = torch.from_numpy(session.token_ids[start:].copy())
    shown = torch.from_numpy(np.stack([session.hidden(at) for at in range(start, n_tokens)]))
    last = int(model.logits(shown[-1:]).argmax()) if next_id is None else next_id
    target = torch.cat((token_ids[1:], torch.tensor([last])))
    follows = torch.ones(len(target), dtype=torch.bool)
    follows[-1] = next_id is not None
    recorder = LensRecorder(model, target, shown, cancelled)
    kv_cache = _cache_of(model, session, start, conditions) if start else None
    model.hidden(token_ids, kv_cache, conditions, recorder, cancelled)
    return recorder.lens(follows)


def _cache_of(
    model: Transformer, session: Session, n_tokens: int, conditions: Conditions
) -> KVCache:
    """A cache that holds the first keys and values of a session."""
    known = session.truncate(n_tokens)
    kv_cache = KVCache(model.config, device=model.device)
    for layer in range(model.config.n_layer):
        kv_cache.write(layer, torch.tensor(known.k(layer)), torch.tensor(known.v(layer)))
        off = conditions.off_in(layer)
        if off and conditions.off_by == "mean":
            scoring = model.scoring(layer, conditions)
            mixes = torch.stack([head_mixes(known, layer, head, scoring) for head in off])
            kv_cache.write_mixes(layer, off, mixes)
    kv_cache.advance(n_tokens)
    return kv_cache
