"""Times the parts of a real pass while it runs, by watching where it goes from one to the next.

At each moment one part is being timed; a module that is called, the record of q, k and v, and the
two products of attention end it and begin another. So the parts together are the whole pass.
Scores include writing into the cache, the mask and softmax.

Watching must not take what it measures: torch's own hooks, or a mode that sees every function,
take a fifth of a short pass. What is called is therefore wrapped for as long as the pass lasts, so
that each change of part costs two calls and one look at the clock.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise

import torch
from torch import Tensor

from engine import attention
from engine.cancelling import Cancelled, give_up_if, never
from engine.clock import clock_of
from engine.conditions import Conditions
from engine.config import QUERY_BLOCK
from engine.cost.measurements import TIMED_PARTS, Seconds, TimedPart
from engine.cost.slices import Slices, put
from engine.errors import CancelledError
from engine.kv_cache import KVCache
from engine.model import CAUSAL, Transformer


class PartClock(attention.Recorder):
    """Times passes of one model; owns when the latest went from part to part."""

    def __init__(self, model: Transformer) -> None:
        self._model = model
        self._now = clock_of(model.device)
        self._entered: list[tuple[TimedPart, float]] = []  # which part, and when
        self._parts: list[tuple[torch.nn.Module, TimedPart]] = [(model.embedding, "embedding")]
        for layer in range(model.config.n_layer):
            inner = model.attention(layer)
            self._parts += [(inner.qkv, "projections"), (inner.output, "projections")]
            self._parts += [(model.get_submodule(f"blocks.{layer}.mlp"), "MLP")]
        self._slices = Slices(model)
        self._n_products = 0  # of this layer's attention so far
        self._cancelled: Cancelled = never  # asked before each part of a layer

    def timed_pass(
        self,
        token_ids: Tensor,
        kv_cache: KVCache,
        conditions: Conditions = CAUSAL,
        cancelled: Cancelled = never,
    ) -> Seconds:
        """One pass over a block of tokens with all its logits; seconds of each part.

        Raises:
            ValueError: there are more tokens than one block of queries holds, whose scores and
                mixes would alternate.
            CancelledError: `cancelled` said so before a part of a layer, before the logits, or
                between slices of either (`engine.cost.slices`); the cache is as before.
        """
        if len(token_ids) > QUERY_BLOCK:
            raise ValueError(f"{len(token_ids)} tokens are more than a block of {QUERY_BLOCK}.")
        self._entered, self._cancelled, start = [], cancelled, kv_cache.length
        with self._slices.of_pass(len(token_ids), cancelled), self._watched():
            self._enter("rest")
            hidden = self._model.hidden(token_ids, kv_cache, conditions, self, cancelled)
            self._enter("output")
            try:
                give_up_if(cancelled)
                self._model.logits(hidden)
            except CancelledError:
                kv_cache.rewind(start)
                raise
            self._enter("rest")
        seconds: dict[TimedPart, float] = dict.fromkeys(TIMED_PARTS, 0.0)
        for (part, began), (_next, ended) in pairwise(self._entered):
            seconds[part] += ended - began
        return seconds

    def _enter(self, part: TimedPart) -> None:
        self._entered.append((part, self._now()))

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Wrap all modules whose work is a part, and the products of attention; undone after."""
        with ExitStack() as undo:
            for module, part in self._parts:
                put(undo, module, "forward", self._timed(part, module.forward))
            put(undo, attention, "matmul_heads", self._told(attention.matmul_heads))
            yield

    def _timed(self, part: TimedPart, work: Callable[[Tensor], Tensor]) -> Callable[..., Tensor]:
        def timed(x: Tensor) -> Tensor:
            give_up_if(self._cancelled)
            self._enter(part)
            result = work(x)
            self._enter("rest")
            return result

        return timed

    def _told(self, product: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Tensor]:
        """The second product after q, k and v are known is where scores end and mixing begins."""

        def told(left: Tensor, right: Tensor) -> Tensor:
            self._n_products += 1
            if self._n_products == 2:
                give_up_if(self._cancelled)
                self._enter("mix")
            return product(left, right)

        return told

    # What a pass tells a recorder

    def keep_qkv(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> None:  # noqa: ARG002
        """Attention begins."""
        self._n_products = 0
        self._enter("scores")
