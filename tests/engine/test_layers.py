from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from engine.config import ModelConfig
from engine.layers import MLP, make_norm


def _config(**changes: Any) -> ModelConfig:
    sizes = {"vocab_size": 5, "n_layer": 1, "n_head": 1, "d_model": 6, "max_seq_len": 4}
    return ModelConfig(**{**sizes, **changes})


def _drawn(module: nn.Module) -> nn.Module:
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(generator=generator)
    return module


X = torch.randn(4, 6, generator=torch.Generator().manual_seed(4))


def test_layer_norm_subtracts_the_mean_and_divides_by_the_deviation() -> None:
    norm = _drawn(make_norm(_config(norm="layer", norm_eps=0.1)))
    x = X.double().numpy()
    middle, spread = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    weight, bias = (part.detach().numpy() for part in norm.parameters())
    expected = (x - middle) / np.sqrt(spread + 0.1) * weight + bias
    np.testing.assert_allclose(norm(X).detach(), expected, atol=1e-5)


def test_rms_norm_divides_by_the_root_mean_square_only() -> None:
    norm = _drawn(make_norm(_config(norm="rms", norm_eps=0.1)))
    x = X.double().numpy()
    (weight,) = (part.detach().numpy() for part in norm.parameters())
    expected = x / np.sqrt((x**2).mean(-1, keepdims=True) + 0.1) * weight
    np.testing.assert_allclose(norm(X).detach(), expected, atol=1e-5)


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


BENDS = {
    "relu": lambda x: np.maximum(x, 0),
    "silu": lambda x: x * _sigmoid(x),
    "gelu_tanh": lambda x: x * _sigmoid(2 * np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)),
    "gelu": lambda x: x * (1 + torch.erf(torch.tensor(x / np.sqrt(2))).numpy()) / 2,
}


@pytest.mark.parametrize("activation", BENDS)
@pytest.mark.parametrize("bias", [True, False])
def test_the_plain_mlp_goes_up_bends_and_comes_down(activation: str, bias: bool) -> None:  # noqa: FBT001
    mlp = _drawn(MLP(_config(activation=activation, d_ff=9, mlp_bias=bias)))
    weights = {name: part.detach().double().numpy() for name, part in mlp.named_parameters()}
    assert ("up.bias" in weights) == bias
    inner = X.double().numpy() @ weights["up.weight"].T + weights.get("up.bias", 0)
    expected = BENDS[activation](inner) @ weights["down.weight"].T + weights.get("down.bias", 0)
    np.testing.assert_allclose(mlp(X).detach(), expected, atol=1e-4)


@pytest.mark.parametrize("activation", BENDS)
def test_the_gated_mlp_multiplies_by_a_bent_gate(activation: str) -> None:
    mlp = _drawn(MLP(_config(activation=activation, d_ff=9, mlp="gated", mlp_bias=False)))
    weights = {name: part.detach().double().numpy() for name, part in mlp.named_parameters()}
    x = X.double().numpy()
    gate = BENDS[activation](x @ weights["gate.weight"].T)
    expected = (gate * (x @ weights["up.weight"].T)) @ weights["down.weight"].T
    np.testing.assert_allclose(mlp(X).detach(), expected, atol=1e-4)
