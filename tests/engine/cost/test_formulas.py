"""The arithmetic of a pass, against torch's own counter and the tensors that take part."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from engine.conditions import Conditions
from engine.config import QUERY_BLOCK, ModelConfig
from engine.cost.formulas import ATTENTION, PARTS, crossing, n_kept, n_visible, pass_cost, total
from engine.formats import FORMATS, FormatName, Held
from engine.matrices import Matrix, PackedHalf, PackedInt8, has_packed, prepare
from engine.model import Transformer
from engine.sliding_cache import new_cache

KINDS: dict[str, dict[str, Any]] = {
    "as GPT-2": {"positions": "learned"},
    "as Llama": {"positions": "rotary", "n_kv_head": 2, "mlp": "gated", "norm": "rms"},
    "wide heads": {"positions": "rotary", "head_dim": 10, "n_kv_head": 1},
    "windows": {"positions": "rotary", "windows": (0, 5, 9), "qk_norm": "head"},
    "wide windows": {"positions": "alibi", "windows": (150, 0, 20), "n_kv_head": 2},
    "alibi, untied": {"positions": "alibi", "tied_output": False},
    "parallel, capped": {"positions": "rotary", "parallel_residual": True, "score_cap": 5.0},
    "sinusoidal, post": {"positions": "sinusoidal", "norm_placement": "post"},
}
OFF = frozenset({(0, 1), (0, 3), (2, 0)})
PASSES = {
    "a prompt": (0, 300, Conditions()),
    "one token": (130, 1, Conditions()),
    "an edit": (5, QUERY_BLOCK + 1, Conditions()),
    "a window": (40, 2 * QUERY_BLOCK, Conditions(mask="window", window=9, sinks=3)),
    "no mask": (0, 140, Conditions(mask="none")),
    "heads off": (6, 150, Conditions(heads_off=OFF)),
    "heads off by their means": (6, 150, Conditions(heads_off=OFF, off_by="mean")),
}
every_kind = pytest.mark.parametrize("sizes", KINDS.values(), ids=KINDS)
every_pass = pytest.mark.parametrize("asked", PASSES.values(), ids=PASSES)


def config_of(sizes: dict[str, Any]) -> ModelConfig:
    """A toy whose sizes all differ, so that none can stand for another."""
    usual = {"vocab_size": 37, "n_layer": 3, "n_head": 4, "d_model": 24, "d_ff": 50}
    return ModelConfig(**{**usual, "max_seq_len": 320, **sizes})


class Operands(TorchDispatchMode):
    """Adds up what all matrix products read and write, in bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.n_bytes = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> object:
        """Run the operation, and measure its tensors if it is a product."""
        result = func(*args, **(kwargs or {}))
        if func.overloadpacket.__name__ in {"mm", "addmm", "bmm", "baddbmm"}:
            tensors = [each for each in (*args, result) if isinstance(each, Tensor)]
            self.n_bytes += sum(each.numel() * each.element_size() for each in tensors)
        return result


def a_pass(config: ModelConfig, asked: tuple[int, int, Conditions]) -> Callable[[], Tensor]:
    """A pass of a model after so many tokens, ready to run."""
    start, n_new, conditions = asked
    model = Transformer(config).eval().requires_grad_(requires_grad=False)
    token_ids = torch.arange(start + n_new) % config.vocab_size
    kv_cache = new_cache(config, conditions=conditions) if conditions.append_only else None
    if start:
        model.hidden(token_ids[:start], kv_cache, conditions)
    return lambda: model(token_ids[start:], kv_cache, conditions)


@every_kind
@every_pass
def test_multiply_adds_are_those_that_torch_counts(
    sizes: dict[str, Any], asked: tuple[int, int, Conditions]
) -> None:
    """Torch counts two operations for each."""
    config = config_of(sizes)
    run = a_pass(config, asked)
    with FlopCounterMode(display=False) as counter:
        run()
    start, n_new, conditions = asked
    cost = pass_cost(config, n_new, start, conditions)
    assert 2 * total(cost).multiply_adds == counter.get_total_flops()


@every_kind
@every_pass
def test_bytes_are_those_of_the_operands_and_results(
    sizes: dict[str, Any], asked: tuple[int, int, Conditions]
) -> None:
    config = config_of(sizes)
    run = a_pass(config, asked)
    with Operands() as operands:
        run()
    start, n_new, conditions = asked
    cost = pass_cost(config, n_new, start, conditions)
    assert total(cost, PARTS[1:]).n_bytes == operands.n_bytes


def test_each_part_by_hand() -> None:
    """3 layers, 4 heads on 2, 10 wide, 24 wide residual, 50 wide gated MLP; tokens 5 to 7."""
    config = config_of({"head_dim": 10, "n_kv_head": 2, "mlp": "gated", "positions": "rotary"})
    cost = pass_cost(config, 3, 5)
    assert cost["embedding"].multiply_adds == 0
    assert cost["embedding"].weight_bytes == 3 * 24 * 4
    assert cost["projections"].multiply_adds == 3 * 3 * (24 * (40 + 40) + 40 * 24)
    assert cost["scores"].multiply_adds == 3 * 4 * 10 * (3 * 8)
    assert cost["scores"].needed == 3 * 4 * 10 * (6 + 7 + 8)
    assert cost["mix"].cache_bytes == 3 * 2 * 10 * 8 * 4
    assert cost["MLP"].multiply_adds == 3 * 3 * 24 * 50 * 3
    assert cost["output"].multiply_adds == 3 * 24 * 37


def test_a_step_can_ask_for_one_row_of_logits() -> None:
    config = config_of({})
    assert pass_cost(config, 9, n_logits=1)["output"].multiply_adds == 24 * 37
    assert pass_cost(config, 9, n_logits=0)["output"].n_bytes == 0


@every_kind
@pytest.mark.parametrize("number_format", FORMATS)
def test_weight_bytes_are_those_of_the_tensors(
    sizes: dict[str, Any], number_format: FormatName
) -> None:
    """In every format; a pass of no rows aside, each matrix is read once."""
    config = config_of(sizes)
    model = Transformer(config)
    prepare(model, Held(number_format))
    cost = pass_cost(config, 1, number_format=number_format)
    attention = [model.attention(layer) for layer in range(config.n_layer)]
    mlps = [model.get_submodule(f"blocks.{layer}.mlp") for layer in range(config.n_layer)]
    projections = [part for each in attention for part in (each.qkv, each.output)]
    matrices = [part for mlp in mlps for part in mlp.children()]
    assert cost["projections"].weight_bytes == sum(map(held_bytes, projections))
    assert cost["MLP"].weight_bytes == sum(map(held_bytes, matrices))
    output = model.output
    if output is None:
        output = getattr(model.embedding, "product", model.embedding)
    assert cost["output"].weight_bytes == held_bytes(output)


def held_bytes(module: torch.nn.Module) -> int:
    """What one matrix takes, counted on its tensors; fbgemm's own are counted in numbers."""
    own = [*module.parameters(recurse=False), *module.buffers(recurse=False)]
    packed = module.packed_bytes if isinstance(module, PackedHalf | PackedInt8) else 0
    return sum(each.nbytes for each in own) + packed


def test_both_ways_to_hold_a_small_format_are_counted() -> None:
    """What the test above stands on: a packed matrix says how many bytes it holds."""
    if has_packed("int8"):
        packed = PackedInt8(torch.ones(6, 8), None)
        assert held_bytes(packed) == held_bytes(Matrix(torch.ones(6, 8), None, "int8"))


@pytest.mark.parametrize(
    "conditions",
    [
        Conditions(),
        Conditions(mask="window", window=4),
        Conditions(mask="window", window=3, sinks=2),
    ],
    ids=["causal", "window", "first + window"],
)
@pytest.mark.parametrize("window", [0, 1, 3, 5, 50])
def test_visible_cells_are_those_of_the_mask(conditions: Conditions, window: int) -> None:
    """Counted on the square that the pass uses."""
    config = config_of({"windows": (window, window, window)})
    start, n_new = 3, 20
    query, key = torch.arange(start, start + n_new)[:, None], torch.arange(start + n_new)
    square = conditions.visible(query, key, window)
    assert n_visible(config, 0, n_new, start, conditions) == int(square.sum())
    for at in range(n_new):
        seen = n_kept(torch.tensor([start + at + 1]).numpy(), window, conditions)
        assert seen.tolist() == [int(square[at].sum())]


def test_without_a_mask_every_cell_is_needed() -> None:
    cost = pass_cost(config_of({}), 7, conditions=Conditions(mask="none"))
    assert cost["scores"].needed == cost["scores"].multiply_adds == 3 * 24 * 7 * 7


def test_attention_overtakes_the_rest_exactly_at_the_crossing() -> None:
    config = config_of({"d_ff": 400, "vocab_size": 200})
    at = crossing(config)
    assert at > 1
    for n_tokens, is_beyond in ((at - 1, False), (at, True)):
        cost = pass_cost(config, n_tokens)
        attention = total(cost, ATTENTION).multiply_adds
        assert (attention > total(cost).multiply_adds - attention) is is_beyond


def test_where_attention_never_overtakes_there_is_no_crossing() -> None:
    config = config_of({"d_ff": 4000})
    assert crossing(config, most=500) == 0
