"""Reads a text under a budget for the cache, goes on writing, and compares with all keys kept."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from engine.attention import Recorder
from engine.cancelling import Cancelled, never
from engine.conditions import Conditions
from engine.config import QUERY_BLOCK
from engine.errors import EngineError
from engine.kv_cache import KVCache
from engine.logit_rows import token_losses
from engine.model import Transformer
from engine.recorder import frozen
from engine.sampling import Sampling, draw, stages
from engine.sliding_cache import new_cache
from engine.windows.evicting_cache import EvictingCache
from engine.windows.eviction import Budget, Continuation, Eviction

Told = Callable[[float], None]  # how much is done, 0 to 1

# What one more token of a pass takes, next to the pass itself: for telling how far it has come.
_SHARE_OF_A_PASS = 0.1

_NOTHING = Continuation((), ())


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
    known: Eviction | None = None,
    so_far: Callable[[Eviction], None] = lambda _found: None,
) -> Eviction:
    """A text of at least one token, read and gone on with under a budget and with all keys.

    The text is read a block of queries at a time (`EvictingCache`), what follows one by one. Both
    draw with the same seed at the same places. `known` is what came of another budget and nothing
    else that differs; what all keys give is taken from it. `so_far` is told what is known before
    the continuations are written.

    Raises:
        EngineError: the mask lets no row stay true, so that there is no cache to give up from.
        ContextFullError: there are more tokens than the context holds.
        CancelledError: `cancelled` said so.
    """
    if not conditions.append_only:
        raise EngineError(
            "Without the mask each further token changes every earlier row, so no cache can be "
            "kept and none of it given up; switch the mask on to try a budget."
        )
    wanted = torch.tensor(token_ids, dtype=torch.int64)
    room = model.config.max_seq_len - conditions.first_position - len(wanted)
    n_more = max(0, min(writing.n_tokens, room))
    scorings = [model.scoring(layer, conditions) for layer in range(model.config.n_layer)]
    cache = EvictingCache(model.config, budget, device=model.device, scorings=scorings)
    reading = _passes(cache, len(wanted))
    steps = [1.0] * max(0, n_more - 1)  # of each continuation; the last token is not read
    progress = _Progress(
        told, [_work(n) for n in reading] + steps + ([] if known else [_work(len(wanted)), *steps])
    )
    writer = _Writer(model, conditions, writing, n_more, cancelled, progress)
    full_cache = new_cache(model.config, model.device, conditions=conditions)
    if known is None:
        full = model.hidden(wanted, full_cache, conditions, None, cancelled)  # [S, C]
        progress.advance()
        full_loss = frozen(token_losses(model, full, wanted, cancelled))
        full_bytes, full_continuation = full_cache.used_bytes, _NOTHING
    else:
        full_loss, full_bytes = known.full_loss, known.full_bytes
        full_continuation = known.full_continuation
    rows, at = [], 0
    for n_tokens in reading:
        new_ids = wanted[at : at + n_tokens]
        rows.append(model.hidden(new_ids, cache, conditions, cache, cancelled))
        at += n_tokens
        progress.advance()
    hidden = torch.cat(rows)  # [S, C]
    found = Eviction(
        budget=budget,
        conditions=conditions,
        loss=frozen(token_losses(model, hidden, wanted, cancelled)),
        full_loss=full_loss,
        n_more=n_more,
        continuation=_NOTHING,
        full_continuation=full_continuation,
        dropped_at=frozen(cache.dropped_at[:, :, : cache.length].clone()),
        held_bytes=cache.used_bytes,
        full_bytes=full_bytes,
    )
    so_far(found)
    if known is None:
        full_continuation = writer.go_on(full[-1], full_cache, None)
    continuation = writer.go_on(hidden[-1], cache, cache)
    return replace(
        found,
        continuation=continuation,
        full_continuation=full_continuation,
        dropped_at=frozen(cache.dropped_at[:, :, : cache.length].clone()),
    )


def _passes(cache: EvictingCache, n_tokens: int) -> list[int]:
    """How many tokens each pass over a text reads: a block of queries, or as many as can be."""
    n_first = cache.n_at_once(n_tokens)
    full, rest = divmod(n_first, QUERY_BLOCK)
    return [QUERY_BLOCK] * full + [rest] * (rest > 0) + [1] * (n_tokens - n_first)


def _work(n_tokens: int) -> float:
    """What a pass takes, next to that of one token."""
    return 1 + _SHARE_OF_A_PASS * (n_tokens - 1)


class _Progress:
    """Tells after each pass how much of all of them is done."""

    def __init__(self, told: Told, passes: list[float]) -> None:
        self._told, self._left, self._all = told, list(reversed(passes)), sum(passes)

    def advance(self) -> None:
        """One more pass is done."""
        self._left.pop()
        self._told(1 - sum(self._left) / self._all)


@dataclass(frozen=True)
class _Writer:
    """Goes on after a text, with one cache and then with another."""

    model: Transformer
    conditions: Conditions
    writing: Writing
    n_more: int
    cancelled: Cancelled
    progress: _Progress

    def go_on(self, last: Tensor, kv_cache: KVCache, record: Recorder | None) -> Continuation:
        """What is drawn after the last hidden state [C] of a text that the cache has read."""
        writing = self.writing
        drawn: list[int] = []
        for at in range(self.n_more):
            logits: np.ndarray = frozen(self.model.logits(last[None])[0])  # [V]
            probs = stages(logits, writing.sampling).probs
            drawn.append(draw(probs, writing.sampling.seed, writing.first + at))
            if at + 1 < self.n_more:
                how = (kv_cache, self.conditions, record, self.cancelled)
                last = self.model.hidden(torch.tensor(drawn[-1:]), *how)[0]
                self.progress.advance()
        return Continuation(tuple(drawn), tuple(map(writing.token_bytes, drawn)))
