"""A pass in slices computes what any pass does, and can be given up in the midst of a product."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from engine import attention, matrices
from engine.conditions import Conditions
from engine.cost import slices
from engine.cost.part_clock import PartClock
from engine.cost.slices import Slices
from engine.errors import CancelledError
from engine.formats import FORMATS, FormatName, Held
from engine.kv_cache import KVCache
from engine.matrices import has_packed, prepare
from engine.model import Transformer
from engine.run import Run

IDS = torch.arange(100) % 11
Tiny = Callable[..., Run]

KINDS: dict[str, dict[str, Any]] = {
    "tied": {},
    "untied, with biases": {"tied_output": False, "qkv_bias": True, "mlp_bias": True},
    "gated": {"mlp": "gated", "attention_output_bias": True},
}


@pytest.fixture
def thin(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slices of a few rows of a toy's matrices."""
    small = {"_MOST": 6400, "_EVEN": 1, "_FEW": 1, "_PACKED_ROWS": 8, "_PACKED_EVEN": 1}
    for name, value in small.items():
        monkeypatch.setattr(slices, name, value)
    monkeypatch.setattr(matrices, "_CHUNK", 64)


class Products(TorchDispatchMode):
    """Adds up multiply-adds of products with weights since it was asked last."""

    def __init__(self) -> None:
        super().__init__()
        self.since, self.most, self.n_asked = 0, 0, 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> object:
        """Run the operation, and count it if it is such a product."""
        result = func(*args, **(kwargs or {}))
        if func.overloadpacket.__name__ in {"mm", "addmm"}:
            left = args[-2]
            self.since += left.numel() * result.shape[-1]
        return result

    def asked(self) -> bool:
        """Nothing else is wanted."""
        self.most, self.n_asked = max(self.most, self.since), self.n_asked + 1
        self.since = 0
        return False


def logits(model: Transformer) -> Tensor:
    """Of a whole pass."""
    return model.logits(model.hidden(IDS))


@pytest.mark.usefixtures("thin")
@pytest.mark.parametrize("sizes", KINDS.values(), ids=KINDS)
def test_every_number_is_the_same_and_no_slice_is_large(tiny: Tiny, sizes: dict[str, Any]) -> None:
    """Slices of 6,400: W_qkv is 100 · 16 · 32 in 8, W_O in 4, the MLP's two in 16 each; V in 3."""
    model = tiny("learned", max_seq_len=100, **sizes).model
    expected = logits(model)
    products = Products()
    with Slices(model).of_pass(100, products.asked), products:
        found = logits(model)
    products.asked()
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)
    assert products.most <= 6400
    assert products.n_asked >= 2 * (8 + 4 + 2 * 16) + 3


@pytest.mark.usefixtures("thin")
@pytest.mark.parametrize("number_format", FORMATS)
def test_so_it_is_in_every_format(tiny: Tiny, number_format: FormatName) -> None:
    model = tiny("rotary", max_seq_len=100).model
    prepare(model, Held(number_format))
    expected = logits(model)
    products = Products()
    with Slices(model).of_pass(100, products.asked), products:
        torch.testing.assert_close(logits(model), expected, rtol=0, atol=1e-5)
    products.asked()
    assert products.most <= 6400  # of what torch itself multiplies
    is_packed = has_packed(number_format)  # whose rows go some after another: 12, 25, 8, 8; 36
    n_slices = 2 * (9 + 4 + 2 * 13) + 3 if is_packed else 2 * (8 + 4 + 2 * 16) + 3
    assert products.n_asked >= n_slices


def test_what_is_small_is_left_as_it_is(tiny: Tiny) -> None:
    """A toy's matrices are far smaller than a slice; only attention asks."""
    model = tiny("rotary", max_seq_len=100).model
    with Slices(model).of_pass(100, lambda: False):
        assert not any("forward" in vars(module) for module in model.modules())
        assert torch.equal(logits(model), logits(model))


@pytest.mark.usefixtures("thin")
@pytest.mark.parametrize("at", [0, 1, 5, 40, 90])
def test_it_is_given_up_wherever_it_asks_and_nothing_is_left_behind(tiny: Tiny, at: int) -> None:
    model = tiny("rotary", max_seq_len=100, mlp="gated").model
    before = [set(vars(module)) for module in model.modules()]
    answers = iter([False] * at + [True])
    with pytest.raises(CancelledError), Slices(model).of_pass(100, lambda: next(answers)):
        logits(model)
    assert [set(vars(module)) for module in model.modules()] == before
    assert isinstance(model.embedding, nn.Module)
    assert list(answers) == []


@pytest.mark.usefixtures("thin")
def test_a_timed_pass_that_is_given_up_in_its_logits_leaves_the_cache_as_it_was(
    tiny: Tiny,
) -> None:
    """11 · 16 weights for 100 rows are three slices; it is the last of them that is not made."""
    model = tiny("rotary", max_seq_len=200).model
    kv_cache, asked = KVCache(model.config), []

    def count() -> bool:
        asked.append(0)
        return False

    PartClock(model).timed_pass(IDS, kv_cache, cancelled=count)
    kept = kv_cache.k[:, :, :100].clone()
    n_times = len(asked)
    answers = iter([False] * (n_times - 1) + [True])
    product = attention.matmul_heads
    with pytest.raises(CancelledError):
        PartClock(model).timed_pass(IDS, kv_cache, cancelled=lambda: next(answers))
    assert kv_cache.length == 100
    assert torch.equal(kv_cache.k[:, :, :100], kept)
    assert attention.matmul_heads is product
    seconds = PartClock(model).timed_pass(IDS, kv_cache, Conditions())
    assert seconds["output"] > 0
    assert kv_cache.length == 200
