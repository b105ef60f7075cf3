"""Times the parts of a real pass while it runs, by watching where it goes from one to the next.

At each moment one part is being timed; a hook of a module, the record of q, k and v, and softmax
end it and begin another. So the parts together are the whole pass. Scores include writing into
the cache, the mask and softmax.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from engine.cancelling import Cancelled, never
from engine.clock import finished
from engine.conditions import Conditions
from engine.config import QUERY_BLOCK
from engine.kv_cache import KVCache
from engine.measurements import TIMED_PARTS, Seconds, TimedPart
from engine.model import CAUSAL, Transformer


class _Softmax(TorchFunctionMode):
    """Tells when softmax is done, which is where scores end and mixing begins."""

    def __init__(self, tell: Callable[[], None]) -> None:
        super().__init__()
        self._tell = tell

    def __torch_function__(
        self,
        func: Any,  # noqa: ANN401 - whatever torch calls
        types: Any,  # noqa: ANN401
        args: Any = (),  # noqa: ANN401
        kwargs: Any = None,  # noqa: ANN401
    ) -> Any:  # noqa: ANN401
        result = func(*args, **(kwargs or {}))
        if func is torch.softmax:
            self._tell()
        return result


class PartClock:
    """Owns the seconds of each part of the passes that it has timed since `start`."""

    def __init__(self, model: Transformer) -> None:
        self._model = model
        self._seconds: dict[TimedPart, float] = dict.fromkeys(TIMED_PARTS, 0.0)
        self._part: TimedPart = "rest"
        self._since = 0.0
        self._attending = ExitStack()

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
            CancelledError: `cancelled` said so between two layers.
        """
        if len(token_ids) > QUERY_BLOCK:
            raise ValueError(f"{len(token_ids)} tokens are more than a block of {QUERY_BLOCK}.")
        self._seconds = dict.fromkeys(TIMED_PARTS, 0.0)
        with self._watched():
            self._part, self._since = "rest", finished(self._model.device)
            hidden = self._model.hidden(token_ids, kv_cache, conditions, self, cancelled)
            self._enter("output")
            self._model.logits(hidden)
            self._enter("rest")
        return self._seconds

    def _enter(self, part: TimedPart) -> None:
        now = finished(self._model.device)
        self._seconds[self._part] += now - self._since
        self._part, self._since = part, now

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Hooks on all modules whose work is a part; gone again afterwards."""
        model = self._model
        watched: list[tuple[torch.nn.Module, TimedPart]] = [(model.embedding, "embedding")]
        for layer in range(model.config.n_layer):
            attention = model.attention(layer)
            watched += [(attention.qkv, "projections"), (attention.output, "projections")]
            watched += [(model.get_submodule(f"blocks.{layer}.mlp"), "MLP")]
        with ExitStack() as hooks, self._attending:
            for module, part in watched:
                before = module.register_forward_pre_hook(self._beginning(part))
                after = module.register_forward_hook(lambda *_: self._enter("rest"))
                hooks.callback(before.remove)
                hooks.callback(after.remove)
            yield

    def _beginning(self, part: TimedPart) -> Callable[..., None]:
        def begin(*_: object) -> None:
            self._attending.close()
            self._enter(part)

        return begin

    # What a pass tells a recorder

    def keep_qkv(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> None:  # noqa: ARG002
        """Attention begins; until its output is projected, softmax is watched for."""
        self._enter("scores")
        self._attending.enter_context(_Softmax(lambda: self._enter("mix")))

    def keep_weights(self, layer: int, rows: slice, weights: Tensor) -> None:
        """Nothing: softmax has told already."""

    def keep_residual(self, depth: int, residual: Tensor) -> None:
        """Nothing."""
