"""The bytes of a cache under other designs, against the tensors of a real one and by hand."""

from typing import Any

import pytest

from engine.conditions import Conditions
from engine.config import ModelConfig
from engine.cost.cache import CacheDesign, designs, grouped_heads
from engine.errors import ConfigError, EngineError
from engine.kv_cache import KVCache


def config_of(**sizes: Any) -> ModelConfig:
    """A toy."""
    usual = {"vocab_size": 9, "n_layer": 3, "n_head": 6, "d_model": 24, "max_seq_len": 64}
    return ModelConfig(**{**usual, **sizes})


@pytest.mark.parametrize(
    "sizes",
    [{}, {"n_kv_head": 2}, {"head_dim": 10, "n_kv_head": 3}, {"mlp": "gated", "n_kv_head": 1}],
    ids=["multi-head", "grouped", "wide heads", "gated, multi-query"],
)
def test_a_models_own_design_is_what_its_tensors_hold(sizes: dict[str, Any]) -> None:
    config = config_of(**sizes)
    kv_cache = KVCache(config)
    kv_cache.advance(17)
    design = CacheDesign.of(config)
    assert design.n_bytes(17, kv_cache.k.element_size()) == kv_cache.used_bytes
    assert design.layer_bytes(17) == list(kv_cache.layer_bytes)
    assert sum(kv_cache.layer_bytes) == kv_cache.used_bytes


@pytest.mark.parametrize(("n_tokens", "kept"), [(0, 0), (7, 7), (8, 8), (9, 8), (64, 8)])
def test_a_layer_with_a_window_stays_flat_from_there_on(n_tokens: int, kept: int) -> None:
    """A window of 8: one below, at it, one above."""
    design = CacheDesign.of(config_of(windows=(8, 0, 8)))
    assert design.rows(n_tokens) == [kept, n_tokens, kept]
    assert design.n_bytes(n_tokens, 4) == 2 * 6 * 4 * (2 * kept + n_tokens) * 4


@pytest.mark.parametrize(("n_tokens", "kept"), [(4, 4), (5, 5), (6, 5), (60, 5)])
def test_a_window_with_first_positions_holds_both(n_tokens: int, kept: int) -> None:
    both = Conditions(mask="window", window=3, sinks=2)
    assert CacheDesign.of(config_of(), conditions=both).rows(n_tokens) == [kept] * 3


def test_first_positions_leave_a_layers_own_window_in_the_end() -> None:
    """A window of its own of 5 hides them from the sixth token on."""
    both = Conditions(mask="window", window=2, sinks=2)
    design = CacheDesign.of(config_of(windows=(5, 5, 5)), conditions=both)
    assert [design.rows(n)[0] for n in (1, 2, 3, 4, 5, 6, 7)] == [1, 2, 3, 4, 4, 3, 2]


def test_designs_differ_in_heads_or_rows_alone() -> None:
    """6 heads of 4: 2 · 6 · 4, 2 · 2 · 4 and 2 · 1 · 4 numbers per token and layer."""
    found = {each.name: each for each in designs(config_of(n_kv_head=2), 8, 2)}
    assert {name: each.numbers for name, each in found.items()} == {
        "multi-head": 48,
        "grouped": 16,
        "multi-query": 8,
        "window": 16,
        "first + window": 16,
    }
    assert found["multi-head"].n_bytes(20, 2) == 48 * 3 * 20 * 2
    assert found["window"].n_bytes(20, 1) == 16 * 3 * 8
    assert found["first + window"].n_bytes(20, 1) == 16 * 3 * 10


@pytest.mark.parametrize(
    ("sizes", "wanted"),
    [({}, 2), ({"n_kv_head": 3}, 3), ({"n_head": 8}, 2), ({"n_head": 1}, 0), ({"n_head": 3}, 0)],
)
def test_grouped_heads_lie_between_one_and_all(sizes: dict[str, Any], wanted: int) -> None:
    """The model's own if it has some, else the divisor nearest to the root; a prime has none."""
    assert grouped_heads(config_of(**sizes)) == wanted


def test_heads_that_cannot_be_shared_out_are_refused() -> None:
    with pytest.raises(EngineError, match="6 query heads cannot share 4 key/value heads"):
        CacheDesign.of(config_of(), n_kv_head=4)


def test_an_impossible_window_is_refused() -> None:
    with pytest.raises(ConfigError, match="window of 0 positions"):
        designs(config_of(), 0, 0)
