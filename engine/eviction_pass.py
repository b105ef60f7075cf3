"""Reads a text token by token under a budget for the cache, goes on writing, and compares."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from engine.attention import Recorder
from engine.cancelling import Cancelled, never
from engine.conditions import Conditions
from engine.evicting_cache import EvictingCache
from engine.eviction import Budget, Continuation, Eviction
from engine.kv_cache import KVCache
from engine.model import Transformer
from engine.recorder import frozen
from engine.sampling import Sampling, draw, stages
from engine.windows_pass import token_losses

Told = Callable[[float], None]  # how much is done, 0 to 1


@dataclass(frozen=True)
class Writing:
    """How a text goes on: as steps of the program would, so many tokens at most."""

    sampling: Sampling
    n_tokens: int
    first: int  # how many tokens stand before the first one drawn, for the seed
    token_bytes: Callable[[int], bytes]


@torch.inference_mode()
def evict(
    model: Transformer,
    token_ids: Sequence[int],
    conditions: Conditions,
    budget: Budget,
    writing: Writing,
    cancelled: Cancelled = never,
    told: Told = lambda _share: None,
) -> Eviction:
    """A text of at least one token, read and gone on with under a budget and with all keys.

    The text is decoded, one token a pass, because only then is a key gone when the next query
    looks. With all keys, one pass gives the same. Both draw with the same seed at the same places.

    Raises:
        ContextFullError: there are more tokens than the context holds.
        CancelledError: `cancelled` said so.
    """
    wanted = torch.tensor(token_ids, dtype=torch.int64)
    room = model.config.max_seq_len - conditions.first_position - len(wanted)
    n_more = max(0, min(writing.n_tokens, room))
    full_cache = KVCache(model.config, device=model.device)
    full = model.hidden(wanted, full_cache, conditions, None, cancelled)  # [S, C]
    full_loss = token_losses(model, full, wanted, cancelled)
    full_bytes = full_cache.used_bytes

    cache = EvictingCache(model.config, budget, device=model.device)
    rows = []
    for at in range(len(wanted)):
        rows.append(model.hidden(wanted[at : at + 1], cache, conditions, cache, cancelled))
        told((at + 1) / (len(wanted) + n_more))
    hidden = torch.cat(rows)  # [S, C]
    held_bytes = cache.used_bytes

    def go_on(last: Tensor, kv_cache: KVCache, record: Recorder | None) -> Continuation:
        drawn: list[int] = []
        for at in range(n_more):
            probs = stages(_logits(model, last), writing.sampling).probs
            drawn.append(draw(probs, writing.sampling.seed, writing.first + at))
            if at + 1 < n_more:
                token = torch.tensor(drawn[-1:])
                last = model.hidden(token, kv_cache, conditions, record, cancelled)[0]
        return Continuation(tuple(drawn), tuple(map(writing.token_bytes, drawn)))

    continuation = go_on(hidden[-1], cache, cache)
    return Eviction(
        budget=budget,
        loss=frozen(token_losses(model, hidden, wanted, cancelled)),
        full_loss=frozen(full_loss),
        continuation=continuation,
        full_continuation=go_on(full[-1], full_cache, None),
        dropped_at=frozen(cache.dropped_at[:, :, : cache.length].clone()),
        held_bytes=held_bytes,
        full_bytes=full_bytes,
    )


def _logits(model: Transformer, hidden: Tensor) -> np.ndarray:
    """The scores of what follows one row [C]: [V]."""
    return frozen(model.logits(hidden[None])[0])
