"""Reads the residual at one position, and what each head and each MLP added to it.

Each head goes through the output matrix by itself, in a row that is 0 at all the others.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from engine.answers.recorded_rows import RecordedRows
from engine.answers.residual import Added, FinalNorm, Stream
from engine.cancelling import Cancelled, never
from engine.conditions import Conditions
from engine.model import Block, Transformer
from engine.recorder import frozen
from engine.session import Session


@dataclass(frozen=True)
class _Linear:
    """A norm as the linear map that it is at one vector: (x − mean) · gain, + bias once."""

    centres: bool
    gain: Tensor  # [C]
    bias: Tensor | None  # [C]

    @classmethod
    def of(cls, norm: nn.Module, at: Tensor) -> "_Linear | None":
        """A norm at a vector [C]; None if the module is none."""
        if isinstance(norm, nn.LayerNorm):
            scale = (at.var(unbiased=False) + norm.eps).sqrt()
            return cls(centres=True, gain=norm.weight / scale, bias=norm.bias)
        if isinstance(norm, nn.RMSNorm):
            scale = (at.square().mean() + (norm.eps or 0.0)).sqrt()
            return cls(centres=False, gain=norm.weight / scale, bias=None)
        return None

    def __call__(self, parts: Tensor) -> Tensor:
        """Vectors [..., C] through it, without the bias."""
        if self.centres:
            parts = parts - parts.mean(dim=-1, keepdim=True)
        return parts * self.gain


@dataclass
class _Layer:
    """What one layer added, all [C] but `heads` [H, C]."""

    heads: Tensor
    bias: Tensor | None
    mlp: Tensor
    residual: Tensor  # after the layer


@torch.inference_mode()
def read_stream(
    model: Transformer,
    session: Session,
    position: int,
    conditions: Conditions,
    cancelled: Cancelled = never,
) -> Stream:
    """The residual at a position of a session that the model has read under the conditions.

    Raises:
        CancelledError: `cancelled` said so.
    """
    rows = RecordedRows(model, session, conditions)
    at = slice(position, position + 1)
    first = rows.embedded(at)[0]  # [C]
    token_ids = torch.tensor([int(session.token_ids[position])], device=model.device)
    token = model.embedding(token_ids)[0] * model.config.embedding_scale
    layers: list[_Layer] = []
    x = first
    for block, mix, mlp in rows.layers(at, cancelled):
        layers.append(_read_layer(block, x, mix[:, 0], mlp[0]))
        x = layers[-1].residual
    return _stream(model, session, position, (token, first - token), first, layers)


def _read_layer(block: Block, x: Tensor, mix: Tensor, mlp: Tensor) -> _Layer:
    """What a block adds to the residual [C], given its heads' mixes [H, D] and its MLP's row."""
    output = block.attention.output
    alone = torch.diag_embed(mix.T).permute(1, 2, 0)  # [H, H, D]: each head, and 0 at the others
    heads = output.product(alone.flatten(1))  # [H, C]
    bias: Tensor | None = output.bias
    mixed = heads.sum(dim=0) if bias is None else heads.sum(dim=0) + bias
    residual = block.add_mlp(block.add_attention(x, mixed), mlp)
    norm = _Linear.of(block.attention_output_norm, mixed)
    if norm is not None:
        heads = norm(heads)
        bias = None if bias is None else norm(bias)
        if norm.bias is not None:
            bias = norm.bias if bias is None else bias + norm.bias
    return _Layer(heads, bias, block.mlp_output_norm(mlp), residual)


def _stream(
    model: Transformer,
    session: Session,
    position: int,
    start: tuple[Tensor, Tensor],
    first: Tensor,
    layers: list[_Layer],
) -> Stream:
    """Measure what was added, and prove that it adds up."""
    residuals = torch.stack((first, *(layer.residual for layer in layers)))  # [L+1, C]
    last = residuals[-1]
    final = last.cpu().double().numpy()

    def added(vectors: Tensor) -> Added:
        return Added.along(frozen(vectors.contiguous()), final)

    token, place = start
    heads = torch.stack([layer.heads for layer in layers])  # [L, H, C]
    mlp = torch.stack([layer.mlp for layer in layers])  # [L, C]
    biases = [layer.bias for layer in layers if layer.bias is not None]
    bias = torch.stack(biases) if biases else None
    attention = heads.sum(dim=1) if bias is None else heads.sum(dim=1) + bias
    norm = _Linear.of(model.final_norm, last)
    if norm is None:
        hidden = model.final_norm(last)
    else:
        parts = (token, place, attention.sum(dim=0), mlp.sum(dim=0))
        hidden = torch.stack([norm(part) for part in parts]).sum(dim=0)
        hidden = hidden if norm.bias is None else hidden + norm.bias
    shown = torch.tensor(session.hidden(position))
    from_parts, logits = model.logits(torch.stack((hidden, shown)))
    return Stream(
        position=position,
        token=added(token),
        place=added(place) if bool(place.any()) else None,
        heads=added(heads),
        bias=None if bias is None else added(bias),
        attention=added(attention),
        mlp=added(mlp),
        residual=added(residuals),
        norm=None if norm is None else _final(norm),
        cap=model.config.logit_cap,
        logits=frozen(logits.clone()),
        difference=float((from_parts - logits).abs().max()),
    )


def _final(norm: _Linear) -> FinalNorm:
    def doubles(tensor: Tensor) -> np.ndarray:
        return np.asarray(frozen(tensor.cpu().double()))

    return FinalNorm(
        centres=norm.centres,
        gain=doubles(norm.gain),
        bias=None if norm.bias is None else doubles(norm.bias),
    )
