"""Makes what takes long in a pass in slices, between which the pass can be given up.

A matrix is a stack of its rows, so its product with x is the products of some rows after another:
the same numbers, to the last bit, in the same time, as long as each slice is still large. What is
widened for each product is so already. What fbgemm has packed cannot be cut so; there some rows of
x go after another, so many that it takes little longer: for SmolLM2's logits in float16, 24 rows
take a twenty-fifth more for each than 128 do, and 12 a seventh. Attention is asked about between
its scores, the mask and softmax.

Like the clock of parts, it puts itself in the place of what is called, for as long as a pass lasts.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Self

import torch
from torch import Tensor, nn

from engine.attention import Scoring
from engine.cancelling import Cancelled, give_up_if, never
from engine.conditions import Conditions
from engine.layers import TokenEmbedding
from engine.matrices import Matrix, PackedHalf, PackedInt8
from engine.model import Transformer

# Multiply-adds of a slice, some ten milliseconds of one thread.
_MOST = 2**29
_FEW = 32  # rows of x below which a product takes nearly as long as with so many
_EVEN = 64  # slices begin at multiples, as the arithmetic's own blocks do
_PACKED_ROWS = 24  # of x at least, below which fbgemm takes much longer for each
_PACKED_EVEN = 12  # as many rows as its inner loop has

_Work = Callable[[Tensor], Tensor]


def put(undo: ExitStack, owner: object, name: str, work: object) -> None:
    """Put something in the place of what an object or its class has by that name, until undone."""
    if name in vars(owner):
        undo.callback(setattr, owner, name, vars(owner)[name])
    else:
        undo.callback(delattr, owner, name)
    setattr(owner, name, work)


class Slices:
    """Owns the list of a model's matrices."""

    def __init__(self, model: Transformer) -> None:
        self._model = model
        self._matrices: list[tuple[nn.Module, str, int]] = []  # whose, the product's name, weights
        for module in model.modules():
            if isinstance(module, nn.Linear):
                self._matrices.append((module, "forward", module.weight.numel()))
            elif isinstance(module, TokenEmbedding) and model.output is None:
                self._matrices.append((module, "unembed", module.weight.numel()))
            elif isinstance(module, PackedHalf | PackedInt8):
                n_bytes, is_half = module.packed_bytes, isinstance(module, PackedHalf)
                n_weights = n_bytes // 2 if is_half else 3 * n_bytes  # int8 has three rows for one
                self._matrices.append((module, "forward", n_weights))
            elif isinstance(module, Matrix):
                self._matrices.append((module, "product", module.stored.numel()))

    @contextmanager
    def of_pass(self, n_rows: int, cancelled: Cancelled) -> Iterator[None]:
        """Until it ends, a pass over so many rows asks between slices whether to go on.

        It raises CancelledError then, as it does between its layers.
        """
        with ExitStack() as undo:
            for module, name, n_weights in self._matrices:
                if max(n_rows, _FEW) * n_weights > _MOST:
                    product = getattr(module, name)
                    put(undo, module, name, _sliced(module, product, n_weights, cancelled))
            plain = self._model.scoring
            put(undo, self._model, "scoring", partial(_AskingScoring.like, plain, cancelled))
            yield


@dataclass(frozen=True)
class _AskingScoring(Scoring):
    """Asks before and after the scores are masked."""

    cancelled: Cancelled = never

    @classmethod
    def like(
        cls,
        plain: Callable[[int, Conditions], Scoring],
        cancelled: Cancelled,
        layer: int,
        conditions: Conditions,
    ) -> Self:
        """What a model says of a layer, with the question."""
        return cls(**vars(plain(layer, conditions)), cancelled=cancelled)

    def masked(self, scores: Tensor, start: int) -> Tensor:
        """As ever."""
        give_up_if(self.cancelled)
        masked = super().masked(scores, start)
        give_up_if(self.cancelled)
        return masked


def _sliced(module: nn.Module, product: _Work, n_weights: int, cancelled: Cancelled) -> _Work:
    if isinstance(module, Matrix):
        return partial(module.product, cancelled=cancelled)
    if isinstance(module, PackedHalf | PackedInt8):
        n_rows = max(_PACKED_ROWS, _MOST // n_weights // _PACKED_EVEN * _PACKED_EVEN)
        return partial(_rows_after_another, product, n_rows, cancelled)
    own = dict(module.named_parameters(recurse=False))
    return partial(_outputs_after_another, own["weight"], own.get("bias"), cancelled)


def _outputs_after_another(
    weight: Tensor, bias: Tensor | None, cancelled: Cancelled, x: Tensor
) -> Tensor:
    """[..., K] → [..., N] by weights [N, K] and a bias [N]."""
    n_out, flat = len(weight), x.reshape(-1, x.shape[-1])
    n_slices = -(-max(len(flat), _FEW) * weight.numel() // _MOST)
    step = -(-n_out // (n_slices * _EVEN)) * _EVEN
    y = flat.new_empty(len(flat), n_out)
    for at in range(0, n_out, step):
        give_up_if(cancelled)
        part = slice(at, at + step)
        if bias is None:
            torch.mm(flat, weight[part].T, out=y[:, part])
        else:
            torch.addmm(bias[part], flat, weight[part].T, out=y[:, part])
    return y.view(*x.shape[:-1], n_out)


def _rows_after_another(product: _Work, n_rows: int, cancelled: Cancelled, x: Tensor) -> Tensor:
    """[T, K] → [T, N]."""
    parts = []
    for rows in torch.split(x, n_rows, dim=-2):
        give_up_if(cancelled)
        parts.append(product(rows))
    return torch.cat(parts, dim=-2)
