"""The arithmetic of a training, where nobody looks on: the same in fewer passes over memory.

`use_training_kernels` puts these in place of a model's own parts. Parameters keep their names and
values. What they differ in is rounding alone:

- Attention by torch's fused kernel (flash attention, Dao et al. 2022), which keeps no weights.
  Whoever looks at a model in training (`engine.training.watcher`) has a copy that shows them.
- Rotary positions for q and k at once, and RMSNorm, with their derivatives written down: what the
  two keep for the way back is less than what torch would keep of each of their steps.
- Output matrix, softmax and loss in blocks of rows that stay in the processor's cache. There the
  derivative is p − 1 at the target and p elsewhere, so no block is visited twice.
"""

from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from engine.answers.fused import fused_mask
from engine.attention import Attention, Recorder, Scoring
from engine.kv_cache import KVCache
from engine.model import Block, Transformer

_Module = TypeVar("_Module", bound=nn.Module)
_LOGITS = 1 << 19  # that are in memory at once


def use_training_kernels(model: Transformer) -> None:
    """Have these parts compute instead of the model's own; a pass with a record is as before."""
    config = model.config
    for layer, block in enumerate(model.blocks):
        assert isinstance(block, Block)  # noqa: S101 - which a list of modules does not know
        if not config.score_cap:  # which the kernel cannot do
            block.attention = _in_place_of(block.attention, FusedAttention(config, layer))
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if type(child) is nn.RMSNorm:
                shape = list(child.normalized_shape)
                setattr(parent, name, _in_place_of(child, FusedRmsNorm(shape, eps=child.eps)))


def _in_place_of(old: nn.Module, new: _Module) -> _Module:
    new.load_state_dict(old.state_dict())
    return new


def summed_loss(model: Transformer, hidden: Tensor, targets: Tensor) -> Tensor:
    """−log p summed over the targets [N], from the normed residual [N, C] after the last block."""
    if model.config.logit_cap or not torch.is_grad_enabled():
        logits = model.logits(hidden)  # [N, V]
        return F.cross_entropy(logits.float(), targets, reduction="sum")
    matrix = model.embedding if model.output is None else model.output
    narrow = torch.is_autocast_enabled("cpu")
    dtype = torch.get_autocast_dtype("cpu") if narrow else hidden.dtype
    return torch.as_tensor(_applied(_OutputLoss, hidden, matrix.weight, targets, dtype))


def _applied(function: type[torch.autograd.Function], *operands: object) -> Any:  # noqa: ANN401
    return function.apply(*operands)  # type: ignore[no-untyped-call]


class FusedAttention(Attention):
    """`Attention` by torch's fused kernel, as long as there is no cache and nobody keeps a record.

    Its conditions switch no head off.
    """

    def forward(
        self,
        x: Tensor,
        scoring: Scoring,
        rotation: Tensor | None = None,
        kv_cache: KVCache | None = None,
        record: Recorder | None = None,
    ) -> Tensor:
        """[..., T, C] → [..., T, C]."""
        is_watched = kv_cache is not None or record is not None
        if is_watched or x.dim() < 3 or scoring.conditions.off_in(self.layer):
            return super().forward(x, scoring, rotation, kv_cache, record)
        q, k, v = self._projected(x, rotation)  # [B, H or G, T, D]
        mix = self._mix(q, k, v, scoring)  # [B, H, T, D]
        return torch.as_tensor(self.output(mix.transpose(-2, -3).flatten(-2)))

    def _projected(self, x: Tensor, rotation: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        if not isinstance(self.q_norm, nn.Identity):
            return self.project(x, rotation)
        joined = self.qkv(x).unflatten(-1, (-1, self.head_dim))  # [B, T, H+2G, D]
        q, k, v = _applied(_Heads, joined, rotation, self.heads)
        return q, k, v

    def _mix(self, q: Tensor, k: Tensor, v: Tensor, scoring: Scoring) -> Tensor:
        is_plain = scoring.slopes is None and not scoring.window
        is_causal = is_plain and scoring.conditions.mask == "causal"
        sees_all = is_plain and scoring.conditions.mask == "none"
        return F.scaled_dot_product_attention(
            q,
            k,
            v,
            attn_mask=None if is_causal or sees_all else fused_mask(q, k, 0, scoring),
            is_causal=is_causal,
            scale=scoring.scale,
            enable_gqa=q.shape[-3] != k.shape[-3],
        )


class FusedRmsNorm(nn.RMSNorm):
    """`nn.RMSNorm` over one axis."""

    def forward(self, x: Tensor) -> Tensor:
        """[..., C] → [..., C]."""
        if not torch.is_grad_enabled() or self.weight is None or x.dtype != self.weight.dtype:
            return super().forward(x)
        eps = torch.finfo(x.dtype).eps if self.eps is None else self.eps
        return torch.as_tensor(_applied(_RmsNorm, x, self.weight, eps))


class _RmsNorm(torch.autograd.Function):
    """y = w · n, n = x · r, r = 1 / √(mean x² + ε); dx = r · (g·w − n · mean(g·w·n))."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, eps: float) -> Tensor:  # noqa: ANN401 - torch's
        length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)  # [..., 1]
        scale = length.square_().div_(x.shape[-1]).add_(eps).rsqrt_()
        normed = x * scale
        ctx.save_for_backward(normed, scale, weight)
        return torch.as_tensor(normed * weight)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:  # noqa: ANN401
        (gradient,) = gradients
        normed, scale, weight = ctx.saved_tensors
        products = (gradient * normed).flatten(0, -2)  # [N, C]
        means = torch.mv(products, weight).view_as(scale).div_(-weight.numel())
        inwards = torch.addcmul(gradient * weight, normed, means).mul_(scale)
        return inwards, products.sum(0), None


class _Heads(torch.autograd.Function):
    """q, k, v [B, H or G, T, D] out of the joined [B, T, H+2G, D], q and k turned by the table.

    The way back turns them back, into one joined gradient at once.
    """

    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401
        joined: Tensor,
        table: Tensor | None,
        heads: tuple[int, int, int],
    ) -> tuple[Tensor, ...]:
        ctx.table, ctx.heads = table, heads
        if table is not None:
            n_turned = heads[0] + heads[1]
            turned = torch.empty_like(joined)
            turned[..., n_turned:, :] = joined[..., n_turned:, :]
            _turn(joined[..., :n_turned, :], table, 1.0, turned[..., :n_turned, :])
            joined = turned
        return torch.split(joined.transpose(-2, -3), list(heads), dim=-3)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:  # noqa: ANN401
        each = [gradient.transpose(-2, -3) for gradient in gradients]  # [B, T, H or G, D]
        shape = (*each[0].shape[:-2], sum(ctx.heads), each[0].shape[-1])
        joined = each[0].new_empty(shape)
        q, k, v = torch.split(joined, list(ctx.heads), dim=-2)
        v.copy_(each[2])
        for gradient, out in zip(each, (q, k), strict=False):
            if ctx.table is None:
                out.copy_(gradient)
            else:
                _turn(gradient, ctx.table, -1.0, out)
        return joined, None, None


def _turn(x: Tensor, table: Tensor, direction: float, out: Tensor) -> None:
    """`engine.positions.rotate` of x [B, T, H, D], written into `out`."""
    cos, sin = table.to(x.dtype)[:, :, None]  # [T, 1, ≤ D/2]
    half = cos.shape[-1]
    first, second, rest = x.tensor_split((half, 2 * half), dim=-1)
    new_first, new_second, new_rest = out.tensor_split((half, 2 * half), dim=-1)
    torch.mul(first, cos, out=new_first).addcmul_(second, sin, value=-direction)
    torch.mul(second, cos, out=new_second).addcmul_(first, sin, value=direction)
    new_rest.copy_(rest)


class _OutputLoss(torch.autograd.Function):
    """−log p of the targets [N], summed, from hidden [N, C] and the output matrix [V, C]."""

    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401
        hidden: Tensor,
        matrix: Tensor,
        targets: Tensor,
        dtype: torch.dtype,
    ) -> Tensor:
        # Both derivatives are made here, while a block's probabilities are in the cache.
        loss = torch.zeros((), dtype=torch.float64)
        of_hidden, of_matrix = torch.empty_like(hidden), torch.zeros_like(matrix)
        narrow, n_rows = matrix.to(dtype), max(1, _LOGITS // len(matrix))
        with torch.autocast("cpu", enabled=False):
            for rows, out, wanted in zip(
                *(torch.split(each, n_rows) for each in (hidden, of_hidden, targets)), strict=True
            ):
                given = rows.to(dtype)
                probs = (given @ narrow.T).float()  # [rows, V]; logits as yet
                probs -= probs.amax(dim=-1, keepdim=True)
                logits = probs.gather(-1, wanted[:, None])
                sums = probs.exp_().sum(dim=-1, keepdim=True)
                loss += (sums.log() - logits).sum()
                probs /= sums
                probs.scatter_add_(-1, wanted[:, None], torch.full_like(logits, -1.0))
                error = probs.to(dtype)
                out.copy_(error @ narrow)
                of_matrix += error.T @ given
        ctx.save_for_backward(of_hidden, of_matrix)
        return loss.to(torch.float32)

    @staticmethod
    def backward(
        ctx: Any,  # noqa: ANN401
        *gradients: Tensor,
    ) -> tuple[Tensor, Tensor, None, None]:
        of_hidden, of_matrix = ctx.saved_tensors
        return of_hidden * gradients[0], of_matrix * gradients[0], None, None
