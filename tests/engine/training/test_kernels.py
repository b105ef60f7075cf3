"""What a training computes with is what the model computes, forward and backward."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from engine.conditions import Conditions
from engine.config import ModelConfig
from engine.model import Transformer
from engine.readouts import head_roles
from engine.run import Run
from engine.training.kernels import FusedAttention, FusedRmsNorm, summed_loss, use_training_kernels
from engine.training.trainer import new_model

N_TOKENS = 150  # more than a block of queries
KINDS: dict[str, dict[str, Any]] = {
    "rotary": {},
    "ALiBi": {"positions": "alibi"},
    "learned, LayerNorm": {"positions": "learned", "norm": "layer"},
    "no positions, an output of its own": {"positions": "none", "tied_output": False},
    "grouped heads": {"n_kv_head": 2},
    "normed q and k": {"qk_norm": "head"},
    "norms after": {"norm_placement": "post"},
    "capped scores and logits": {"score_cap": 20.0, "logit_cap": 30.0},
}


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Sums are taken in the same order only on the same number of threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def _pair(kind: dict[str, Any]) -> tuple[Transformer, Transformer]:
    """A model as it is, and its twin that computes as in training."""
    sizes = {"vocab_size": 50, "n_layer": 2, "n_head": 4, "d_model": 32, "max_seq_len": 160}
    config = ModelConfig(**(sizes | {"positions": "rotary", "norm": "rms"} | kind))
    plain, twin = new_model(config, 1), new_model(config, 1)
    use_training_kernels(twin)
    return plain, twin


def _windows() -> Tensor:
    return torch.randint(50, (3, N_TOKENS + 1), generator=torch.Generator().manual_seed(1))


def _plain_loss(model: Transformer, windows: Tensor, conditions: Conditions) -> Tensor:
    logits = model.batch_logits(windows[:, :-1], conditions)
    return F.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten(), reduction="sum")


def _loss(model: Transformer, windows: Tensor, conditions: Conditions) -> Tensor:
    hidden = model.hidden(windows[:, :-1], conditions=conditions)
    return summed_loss(model, hidden.flatten(0, 1), windows[:, 1:].flatten())


@pytest.mark.parametrize("mask", ["causal", "none"])
@pytest.mark.parametrize("kind", KINDS)
def test_loss_and_gradients_are_those_of_the_model_as_it_is(kind: str, mask: Any) -> None:
    """Torch's own derivatives of the explicit attention, norm and loss are the reference."""
    plain, twin = _pair(KINDS[kind])
    windows, conditions = _windows(), Conditions(mask=mask)
    wanted, found = _plain_loss(plain, windows, conditions), _loss(twin, windows, conditions)
    wanted.backward()
    (found / 3).backward()
    assert found.item() == pytest.approx(wanted.item(), rel=1e-6)
    for (name, one), (same, other) in zip(
        plain.named_parameters(), twin.named_parameters(), strict=True
    ):
        assert name == same
        assert one.grad is not None
        assert other.grad is not None
        scale = float(one.grad.abs().max())
        torch.testing.assert_close(3 * other.grad, one.grad, rtol=0, atol=1e-5 * scale, msg=name)


def test_without_gradients_the_loss_is_the_same() -> None:
    """So that training and held-out losses can be compared."""
    plain, twin = _pair({})
    with torch.no_grad():
        wanted = _plain_loss(plain, _windows(), Conditions())
        assert _loss(twin, _windows(), Conditions()).item() == pytest.approx(wanted.item(), 1e-6)


def test_in_bfloat16_loss_and_gradients_stay_near() -> None:
    """Eight bits of precision are two to three digits."""
    plain, twin = _pair({})
    wanted = _plain_loss(plain, _windows(), Conditions())
    wanted.backward()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = _loss(twin, _windows(), Conditions())
    found.backward()
    assert found.item() == pytest.approx(wanted.item(), rel=0.005)
    for one, other in zip(plain.parameters(), twin.parameters(), strict=True):
        assert one.grad is not None
        assert other.grad is not None
        assert F.cosine_similarity(one.grad.flatten(), other.grad.flatten(), 0) > 0.995


def test_what_is_shown_of_such_a_model_is_what_its_twin_shows() -> None:
    """With a record the explicit attention runs, to the bit."""
    plain, twin = _pair({})
    assert sum(isinstance(each, FusedAttention) for each in twin.modules()) == 2
    assert sum(isinstance(each, FusedRmsNorm) for each in twin.modules()) == 5
    text = _windows()[0].tolist()
    shown = [Run(model).read(text) for model in (plain, twin)]
    roles = [head_roles(session).scores["induction"] for session in shown]
    assert (roles[0] == roles[1]).all()
    assert (shown[0].loss[1:] == shown[1].loss[1:]).all()


def test_the_weights_of_a_model_keep_their_names() -> None:
    """A checkpoint of such a model opens as any other."""
    plain, twin = _pair({"n_kv_head": 2})
    stored = plain.state_dict()
    assert list(twin.state_dict()) == list(stored)
    assert all(torch.equal(value, stored[name]) for name, value in twin.state_dict().items())
