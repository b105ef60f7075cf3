"""Rows of a session computed once more, any of them, without those before them.

The scores and the mix are worked out by the function that the pass called, from the q, k and v
that it recorded, and what the MLP made of a row is recorded too. So no row before is computed
again, no mask is asked twice, and few of the weights have to be read.
"""

from collections.abc import Iterator
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.answers.recorded_heads import mix_instead
from engine.attention import attend
from engine.cancelling import Cancelled, give_up_if, never
from engine.conditions import Conditions
from engine.model import Block, Transformer
from engine.session import Session

Floats = NDArray[np.float32]


class RecordedRows:
    """A session that a model has read under some conditions; owns its records in one piece."""

    def __init__(self, model: Transformer, session: Session, conditions: Conditions) -> None:
        self.model, self.session, self.conditions = model, session, conditions

    def __len__(self) -> int:
        """How many there are."""
        return len(self.session)

    # All layers in one go: a text that was typed has a trace a token.

    @cached_property
    def _k(self) -> Floats:  # [L, G, S, D]
        return _joined([trace.k for trace in self.session.traces])

    @cached_property
    def _v(self) -> Floats:  # [L, G, S, D]
        return _joined([trace.v for trace in self.session.traces])

    def embedded(self, rows: slice) -> Tensor:
        """The residual before the first block [T, C]."""
        token_ids = torch.tensor(self.session.token_ids[rows], device=self.model.device)
        return self.model.embed(token_ids, rows.start, self.conditions)

    def mixes(self, rows: slice) -> Iterator[Tensor]:
        """Each layer's mixes [H, T, D], as they went to W_O."""
        n_keys = rows.stop if self.conditions.append_only else len(self)
        device = self.model.device
        queries = torch.tensor(self.session.queries(rows), device=device)  # [L, H, T, D]
        for layer, q in enumerate(queries):
            k, v = (
                torch.tensor(all_[layer][:, :n_keys], device=device) for all_ in (self._k, self._v)
            )
            scoring = self.model.scoring(layer, self.conditions)
            _weights, mix = attend(q, k, v, rows.start, scoring)
            for head in self.conditions.off_in(layer):
                mix[head] = mix_instead(self.session, layer, head, rows, scoring)
            yield mix

    def layers(
        self, rows: slice, cancelled: Cancelled = never
    ) -> Iterator[tuple[Block, Tensor, Tensor]]:
        """Each layer, its mixes [H, T, D], and what its MLP put out [T, C], before any norm of it.

        Raises:
            CancelledError: `cancelled` said so between two layers.
        """
        mlps = torch.tensor(self.session.mlp(rows), device=self.model.device)  # [L, T, C]
        for block, mix, mlp in zip(self.model.blocks, self.mixes(rows), mlps, strict=True):
            give_up_if(cancelled)
            assert isinstance(block, Block)  # noqa: S101 - which a ModuleList does not know
            yield block, mix, mlp

    def residuals(self, rows: slice, cancelled: Cancelled = never) -> Iterator[Tensor]:
        """The residual [T, C] at each depth, from the embedding to the last layer.

        Raises:
            CancelledError: `cancelled` said so between two layers.
        """
        x = self.embedded(rows)
        yield x
        for block, mix, mlp in self.layers(rows, cancelled):
            attended = block.attention.output(mix.transpose(0, 1).flatten(1))
            x = block.add_mlp(block.add_attention(x, attended), mlp)
            yield x


def _joined(parts: list[Floats]) -> Floats:
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=2)
