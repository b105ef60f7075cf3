"""What a training may be asked for, and what it will cost, without building it."""

import argparse
from dataclasses import replace

import pytest
import torch

from engine.config import ModelConfig
from engine.errors import EngineError, TrainingError
from engine.model import Transformer
from engine.training.command import command_line
from engine.training.plan import (
    LIMITS,
    TrainingPlan,
    memory_bytes,
    multiply_adds,
    n_parameters,
)
from engine.training.session import model_config

PLAN = TrainingPlan()


def _parsed(plan: TrainingPlan) -> argparse.Namespace:
    return command_line().parse_args(
        [*plan.words(), "--data", "a", "--held-out-share=0.1", "--out", "out"]
    )


@pytest.mark.parametrize(
    "plan",
    [
        PLAN,
        TrainingPlan(
            tokenizer="byte-bpe", vocab_size=700, n_layer=3, n_head=2, d_model=32, context=128,
            positions="learned", mask="none", steps=50, batch=3, learning_rate=2e-4, copy_steps=0,
            seed=9,
        ),
    ],
    ids=["usual", "other"],
)  # fmt: skip
def test_the_command_line_understands_a_plan_as_it_is_meant(plan: TrainingPlan) -> None:
    """Every setting and every size arrives."""
    arguments = _parsed(plan)
    for name in ("steps", "batch", "learning_rate", "copy_steps", "seed", "mask"):
        assert getattr(arguments, name) == getattr(plan, name)
    assert (arguments.seq_len, arguments.max_seq_len) == (plan.context, plan.context)
    assert (arguments.tokenizer, arguments.vocab_size) == (plan.tokenizer, plan.vocab_size)
    assert model_config(arguments, 300) == plan.config(300)


def test_a_training_that_goes_on_keeps_what_it_was_begun_with() -> None:
    """What the plan says, and what it leaves to the version; a damaged note counts for nothing."""
    begun = {"activation": "gelu_tanh", "dtype": "auto", "batch": "many", "beta9": 1.0}
    words = PLAN.words(begun)
    assert {"--activation=gelu_tanh", "--dtype=auto", f"--batch={PLAN.batch}"} < set(words)
    changed = {"--activation=gelu", "--dtype=float32"}
    assert set(PLAN.words()) - set(words) == changed
    assert len(words) == len(PLAN.words())


@pytest.mark.parametrize("name", LIMITS)
def test_a_number_out_of_its_limits_is_refused_in_one_sentence(name: str) -> None:
    title, least, most = LIMITS[name]
    for value in (least - 1, most + 1):
        with pytest.raises(TrainingError, match=f"{title} = .* is not possible; use"):
            replace(PLAN, **{name: value})


def test_sizes_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(EngineError, match="not divisible by n_head = 5"):
        replace(PLAN, n_head=5)
    with pytest.raises(EngineError, match="rotary positions turn pairs"):
        replace(PLAN, d_model=12)
    with pytest.raises(TrainingError, match="positions = 'spiral' is unknown"):
        replace(PLAN, positions="spiral")


def test_a_plan_comes_back_from_what_it_wrote() -> None:
    plan = replace(PLAN, mask="none", seed=7)
    assert TrainingPlan.from_dict(plan.to_dict()) == plan
    for damaged in (
        {},
        {**plan.to_dict(), "n_layer": "2"},
        {**plan.to_dict(), "more": 1},
        {**plan.to_dict(), "n_layer": 0},
    ):
        with pytest.raises(TrainingError):
            TrainingPlan.from_dict(damaged)


@pytest.mark.parametrize(
    "sizes",
    [
        {},
        {"positions": "learned"},
        {"norm": "layer", "tied_output": False},
        {"mlp": "gated", "d_ff": 100, "n_kv_head": 2},
        {"qkv_bias": False, "mlp_bias": False, "attention_output_bias": False},
    ],
)
def test_weights_are_counted_as_a_built_model_has_them(sizes: dict[str, object]) -> None:
    config = ModelConfig(
        vocab_size=301, n_layer=3, n_head=4, d_model=32, max_seq_len=48, **{"norm": "rms", **sizes}
    )
    assert n_parameters(config) == sum(each.numel() for each in Transformer(config).parameters())


def test_training_costs_three_times_the_products_of_one_pass() -> None:
    """Counted by hand for one layer: the matrices of 4 d² and 8 d², the output's, the scores."""
    config = replace(PLAN, n_layer=1, d_model=8, n_head=2, context=16).config(260)
    matrices = 12 * 8 * 8 + 260 * 8
    scores_and_mix = 2 * 16 * 8
    assert multiply_adds(config) == 3 * (matrices + scores_and_mix)


def test_memory_grows_with_the_weights_and_with_the_context() -> None:
    """Seven copies of the weights in float32, at the least."""
    small, wide = PLAN.config(300), replace(PLAN, d_model=1024, n_head=16).config(300)
    long = replace(PLAN, context=2048).config(300)
    with torch.device("meta"):  # only shapes
        n_weights = Transformer(wide).n_weights
    assert memory_bytes(wide) > 4 * 7 * n_weights
    assert memory_bytes(small) < memory_bytes(long) < memory_bytes(wide)


def test_a_plan_s_title_says_what_tells_it_from_others() -> None:
    assert PLAN.title == "2 × 4 heads, width 64, rotary"
    assert replace(PLAN, mask="none").title.endswith("rotary, no mask")


def test_copying_ends_with_the_training() -> None:
    """Fewer steps than copy steps is no contradiction."""
    assert replace(PLAN, steps=10).settings.copy_steps == 10
