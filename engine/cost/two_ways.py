"""The same work done in two ways and compared: with and without the cache, at once and in turn.

Each way is the model's own pass. Both are generators that yield what is known so far after each
piece of work, so that other work can go on in between.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import torch
from torch import Tensor

from engine.cancelling import Cancelled, give_up_if, never
from engine.clock import finished
from engine.conditions import Conditions
from engine.config import QUERY_BLOCK
from engine.cost.formulas import pass_cost, total
from engine.cost.measurements import TOLERANCE, BothWays, DecodeStep, OneByOne
from engine.cost.patience import GivingWay, patiently
from engine.cost.slices import Slices
from engine.errors import CancelledError, ContextFullError, EngineError
from engine.kv_cache import KVCache
from engine.model import CAUSAL, Transformer
from engine.sampling import Sampling, draw, stages
from engine.sliding_cache import new_cache


@torch.inference_mode()
def with_and_without(
    model: Transformer,
    token_ids: Sequence[int],
    n_steps: int,
    sampling: Sampling = Sampling(),  # noqa: B008 - frozen
    conditions: Conditions = CAUSAL,
    waited_for: Cancelled = never,
) -> Iterator[BothWays]:
    """Decode some tokens after a text, each once with the cache and once without it.

    Both ways get the token that is drawn with the cache, so that a step of the one can be held
    against the same step of the other. `waited_for` says that something else is wanted; the pass
    is then given up within a layer, and made again when this goes on.

    Raises:
        EngineError: there is no text, or the mask lets no row stay true.
        ContextFullError: the context holds no further token.
    """
    _check(token_ids, conditions)
    room = model.config.max_seq_len - len(token_ids)
    if room < 1:
        raise ContextFullError(
            f"The context is full: this model sees at most {model.config.max_seq_len} tokens, so "
            "nothing can be decoded after them; shorten the text."
        )
    ids = list(token_ids)
    n_rows = len(ids) + min(n_steps, room)
    kv_cache = new_cache(model.config, model.device, n_rows, conditions)
    found = BothWays(len(ids), min(n_steps, room), 0.0)
    logits, slices = None, Slices(model)
    for took in _passes(model, ids, kv_cache, conditions, waited_for, slices):
        if took is None:
            yield found
        else:
            logits, seconds = took
            found = replace(found, prompt_seconds=seconds)
    assert logits is not None  # noqa: S101 - the last that a patient pass gives
    for _step in range(found.n_wanted):
        ids.append(_drawn(logits, sampling, len(ids)))
        both = []
        for new_ids, cache in ((ids[-1:], kv_cache), (ids, None)):
            for took in _passes(model, new_ids, cache, conditions, waited_for, slices):
                if took is None:
                    yield found
                else:
                    both.append(took)
        logits = both[0][0]
        yield found  # what comes now takes as long as a part of a pass
        step = _step_of(model, ids, both, sampling, conditions)
        found = replace(found, steps=(*found.steps, step))
        yield found


def _step_of(
    model: Transformer,
    ids: list[int],
    both: list[tuple[Tensor, float]],
    sampling: Sampling,
    conditions: Conditions,
) -> DecodeStep:
    """What came of one token, both ways."""
    n_tokens = len(ids)
    (cached, seconds_with), (whole, seconds_without) = both
    return DecodeStep(
        n_tokens=n_tokens,
        token_id=ids[-1],
        rows_with=1,
        rows_without=n_tokens,
        multiply_adds_with=_multiply_adds(model, 1, n_tokens - 1, conditions),
        multiply_adds_without=_multiply_adds(model, n_tokens, 0, conditions),
        seconds_with=seconds_with,
        seconds_without=seconds_without,
        difference=float((cached - whole).abs().max()),
        same_draw=_drawn(cached, sampling, n_tokens) == _drawn(whole, sampling, n_tokens),
    )


def _multiply_adds(
    model: Transformer, n_new: int, start: int, conditions: Conditions, n_logits: int = 1
) -> int:
    return total(pass_cost(model.config, n_new, start, conditions, n_logits=n_logits)).multiply_adds


def _check(token_ids: Sequence[int], conditions: Conditions) -> None:
    if not token_ids:
        raise EngineError("There is no text to go on from; type something first.")
    if not conditions.append_only:
        raise EngineError(
            "Without the mask each further token changes every earlier row, so nothing can be "
            "kept in the cache; switch the mask on to compare."
        )


def _drawn(logits: Tensor, sampling: Sampling, position: int) -> int:
    """What is drawn from a row of logits [V] for a position."""
    return draw(stages(np.asarray(logits.cpu().numpy()), sampling).probs, sampling.seed, position)


def _passes(
    model: Transformer,
    token_ids: Sequence[int],
    kv_cache: KVCache | None,
    conditions: Conditions,
    waited_for: Cancelled,
    slices: Slices,
) -> Iterator[tuple[Tensor, float] | None]:
    """One pass: the last row's logits [V] and its seconds; None for each time it was given up."""

    def work() -> tuple[Tensor, float]:
        began = finished(model.device)
        new_ids = torch.tensor(token_ids, dtype=torch.int64)
        record = GivingWay(waited_for)
        with slices.of_pass(len(new_ids), waited_for):
            hidden = model.hidden(new_ids, kv_cache, conditions, record, waited_for)
        logits = _patient_logits(model, hidden[-1:], slices, waited_for, kv_cache, len(new_ids))
        return logits, finished(model.device) - began

    return patiently(work)


def _patient_logits(
    model: Transformer,
    hidden: Tensor,
    slices: Slices,
    waited_for: Cancelled,
    kv_cache: KVCache | None = None,
    n_new: int = 0,
) -> Tensor:
    """The logits [V] of one row [1, C]; given up, the cache forgets the new rows of its pass."""
    try:
        give_up_if(waited_for)
        with slices.of_pass(1, waited_for):
            return model.logits(hidden)[0]
    except CancelledError:
        if kv_cache is not None:
            kv_cache.rewind(kv_cache.length - n_new)
        raise


@torch.inference_mode()
def parallel_and_serial(
    model: Transformer,
    token_ids: Sequence[int],
    conditions: Conditions = CAUSAL,
    waited_for: Cancelled = never,
) -> Iterator[OneByOne]:
    """Read a text in one pass, then one token at a time with the cache, and compare all rows.

    Both give the logits behind every position. Raises as `with_and_without` does, a full context
    aside.
    """
    _check(token_ids, conditions)
    n_tokens = len(token_ids)
    ids = torch.tensor(token_ids, dtype=torch.int64)
    at_once, slices = _Rows(waited_for), Slices(model)
    in_turn = new_cache(model.config, model.device, n_tokens, conditions)

    def whole() -> tuple[Tensor, float]:
        began = finished(model.device)
        with slices.of_pass(n_tokens, waited_for):
            hidden = model.hidden(ids, None, conditions, at_once, waited_for)
            for rows in torch.split(hidden, QUERY_BLOCK):
                give_up_if(waited_for)
                model.logits(rows)
        return hidden, finished(model.device) - began

    def one(at: int) -> tuple[Tensor, float]:
        began = finished(model.device)
        hidden = model.hidden(ids[at : at + 1], in_turn, conditions, None, waited_for)
        logits = _patient_logits(model, hidden, slices, waited_for, in_turn, 1)
        return logits, finished(model.device) - began

    multiply_adds = _multiply_adds(model, n_tokens, 0, conditions, n_tokens)
    found = OneByOne(n_tokens, 0.0, multiply_adds)
    hidden = None
    for took in patiently(whole):
        if took is not None:
            hidden, seconds = took
            found = replace(found, parallel_seconds=seconds)
        yield found
    assert hidden is not None  # noqa: S101 - the last that a patient pass gives
    for at in range(n_tokens):
        took = None
        for each in patiently(partial(one, at)):
            took = each
            yield found
        assert took is not None  # noqa: S101 - the last that a patient pass gives
        wanted = partial(_patient_logits, model, hidden[at : at + 1], slices, waited_for)
        for whole_logits in patiently(wanted):
            if whole_logits is not None:
                apart = float((took[0] - whole_logits).abs().max())
                found = _one_more(found, took[1], apart, _apart(at_once, in_turn, at))
                more = _multiply_adds(model, 1, at, conditions)
                found = replace(found, serial_multiply_adds=found.serial_multiply_adds + more)
            yield found


@dataclass(frozen=True)
class _Rows(GivingWay):
    """It keeps each layer's keys and values [G, S, D], as a cache does that lets none go."""

    layers: dict[int, tuple[Tensor, Tensor]] = field(default_factory=dict)

    def keep_qkv(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> None:
        """Attention begins."""
        super().keep_qkv(layer, q, k, v)
        self.layers[layer] = k.clone(), v.clone()


def _apart(at_once: _Rows, in_turn: KVCache, at: int) -> float:
    """The largest difference of any layer's key or value at the position that was read last."""
    differences = [
        (whole[:, at] - one[:, -1]).abs().max()
        for layer, both in at_once.layers.items()
        for whole, one in zip(both, in_turn.rows_in_use(layer), strict=True)
    ]
    return float(torch.stack(differences).max())


def _one_more(found: OneByOne, seconds: float, logits: float, rows: float) -> OneByOne:
    """What is known after one more token."""
    return replace(
        found,
        serial_seconds=(*found.serial_seconds, seconds),
        logits_difference=max(found.logits_difference, logits),
        rows_difference=max(found.rows_difference, rows),
        n_equal=found.n_equal + (max(logits, rows) <= TOLERANCE),
    )
