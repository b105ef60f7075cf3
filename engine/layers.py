"""Normalisation and the MLP: what a block does to each position by itself.

- LayerNorm subtracts the mean and divides by the standard deviation (Ba et al. 2016); RMSNorm
  only divides by the root mean square (Zhang and Sennrich 2019).
- The plain MLP is down(f(up(x))); the gated one is down(f(gate(x)) * up(x)) (Shazeer 2020).
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from engine.config import Activation, ModelConfig


def _gelu_tanh(x: Tensor) -> Tensor:
    return F.gelu(x, approximate="tanh")


ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    "gelu_tanh": _gelu_tanh,
    "silu": F.silu,
    "relu": F.relu,
}


def make_norm(config: ModelConfig) -> nn.Module:
    """A normalisation over the last axis, C wide."""
    if config.norm == "rms":
        return nn.RMSNorm(config.d_model, eps=config.norm_eps)
    return nn.LayerNorm(config.d_model, eps=config.norm_eps, bias=config.norm_bias)


def make_qk_norm(config: ModelConfig, n_heads: int) -> nn.Module:
    """What q or k goes through before its positions: a norm [D] or [heads · D] wide, or nothing."""
    if config.qk_norm == "none":
        return nn.Identity()
    width = config.head_dim * (n_heads if config.qk_norm == "all" else 1)
    return nn.RMSNorm(width, eps=config.norm_eps)


class Embedding(nn.Embedding):
    """A row for each of so many things."""

    def reset_parameters(self) -> None:
        """Draw weights, unless only their shape is wanted.

        For a draw without memory torch imports its compiler, which takes longer than torch itself.
        """
        if not self.weight.is_meta:
            super().reset_parameters()


class TokenEmbedding(Embedding):
    """A row for each token of the vocabulary [V, C]; tied models score tokens with it too."""

    def rows(self, which: Tensor | int) -> Tensor:
        """Some rows [..., C]."""
        return self.weight[which]

    def unembed(self, hidden: Tensor) -> Tensor:
        """[..., C] → [..., V]."""
        return F.linear(hidden, self.weight)


class Linear(nn.Linear):
    """A matrix whose rows, and the product without its bias, can be asked for.

    Those of `engine.matrices` can do the same.
    """

    def product(self, x: Tensor) -> Tensor:
        """[..., K] → [..., N], without the bias."""
        return F.linear(x, self.weight)

    def rows(self, which: Tensor | int) -> Tensor:
        """Some rows of the weights [..., K]."""
        return self.weight[which]


class MLP(nn.Module):
    """Two (plain) or three (gated) matrices and a bend between them, position by position."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.activation = ACTIVATIONS[config.activation]
        width, inner, bias = config.d_model, config.d_ff, config.mlp_bias
        self.gate = nn.Linear(width, inner, bias=bias) if config.mlp == "gated" else None
        self.up = nn.Linear(width, inner, bias=bias)
        self.down = nn.Linear(inner, width, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        """[..., T, C] → [..., T, C]."""
        up = self.up(x)  # [..., T, F]
        if self.gate is None:
            return torch.as_tensor(self.down(self.activation(up)))
        return torch.as_tensor(self.down(self.activation(self.gate(x)) * up))
