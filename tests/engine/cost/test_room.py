"""Lengths that do not fit into memory are refused with both figures, before they are tried."""

from dataclasses import replace

import pytest
import torch

from engine.conditions import Conditions
from engine.config import ModelConfig
from engine.cost import room
from engine.cost.room import check_room, longest_that_fits, sweep_bytes, two_ways_bytes
from engine.errors import EngineError
from engine.kv_cache import KVCache
from engine.sliding_cache import SlidingCache, new_cache

CONFIG = ModelConfig(
    vocab_size=100, n_layer=2, n_head=4, n_kv_head=2, d_model=16, max_seq_len=32, mlp="plain"
)
MACHINE = 16 * 2048 * 2048 * 4 + 3 * 1024 * 1024 * 4  # its matrices, and three squares
SLACK = 2**26


def test_a_sweep_that_takes_little_takes_what_the_machine_is_measured_with() -> None:
    """And a small cache of 32 numbers a row, which the allocator may have kept."""
    for n_tokens in (1, 8, 4096):
        assert sweep_bytes(CONFIG, n_tokens) == 4 * 32 * (n_tokens + 1) + MACHINE + SLACK


def test_a_large_cache_is_given_back_before_the_machine_is_measured_again() -> None:
    """Keys of 16 MiB for 1,024 tokens and one more; then as much again, and again."""
    wide = replace(CONFIG, head_dim=1024)
    row = 4 * 2 * 2 * 2 * 1024
    assert sweep_bytes(wide, 2047) == row * 2048 + MACHINE + SLACK
    assert sweep_bytes(wide, 2048) == MACHINE + SLACK


def test_a_long_sweep_by_hand() -> None:
    """100,000 tokens in 2 layers of 2 groups, 4 features wide; a block of 128 against all keys.

    The cache: 2 · 2 · 2 · 4 numbers for 100,001 rows. Scores of 4 heads, three times, and the
    mask: 128 · 100,000 · 13. Of 128 rows q, k, v and mixes, 6 · 16 + 4 · 8; the MLP's, four times
    as wide as the model, twice; 100 logits; the residual, 4 · 16.
    """
    numbers = 32 * 100_001 + 128 * 100_000 * 13
    numbers += 128 * (6 * 16 + 4 * 8 + 2 * 64 + 100 + 4 * 16)
    assert 4 * numbers > MACHINE
    assert sweep_bytes(CONFIG, 100_000) == 4 * numbers + SLACK


def test_scores_that_are_capped_or_lowered_lie_there_once_more() -> None:
    """ALiBi's distances are whole numbers of 8 bytes, as they are and without their sign."""
    per_token = 128 * 4 * 4
    grown = {
        name: sweep_bytes(config, 100_001) - sweep_bytes(config, 100_000)
        for name, config in {
            "plain": CONFIG,
            "capped": replace(CONFIG, score_cap=50.0),
            "alibi": replace(CONFIG, positions="alibi"),
        }.items()
    }
    assert grown["plain"] == 4 * (32 + 128 * 13)
    assert grown["capped"] == grown["plain"] + per_token
    assert grown["alibi"] == grown["plain"] + per_token + 128 * 2 * 8


def test_reading_both_ways_by_hand() -> None:
    """20 tokens: two caches of 32 numbers a row, and one pass over them all."""
    numbers = 2 * 32 * 20 + 20 * 20 * 13 + 20 * (6 * 16 + 4 * 8 + 2 * 64 + 100 + 4 * 16)
    assert two_ways_bytes(CONFIG, 20) == 4 * numbers + SLACK


def test_layers_with_windows_take_no_more_than_these_need() -> None:
    """50,000 tokens through windows of 8 and 100.

    Rows for a window and three blocks, twice while they are moved; a block of 128 sees 128 + 99
    keys at most.
    """
    near = replace(CONFIG, max_seq_len=50_000, windows=(8, 100))
    row = 2 * 2 * 4
    caches = row * 2 * (8 + 3 * 128 + 100 + 3 * 128)
    a_block = 128 * (6 * 16 + 4 * 8 + 2 * 64 + 100 + 4 * 16) + 128 * 227 * 13
    assert room._cache_bytes(near, 50_001) == 4 * caches
    assert room._pass_bytes(near, 128, 50_000) == 4 * a_block
    one_is_whole = replace(near, windows=(8, 0))
    whole = 4 * row * (2 * (8 + 3 * 128) + 50_001)
    assert room._cache_bytes(one_is_whole, 50_001) == whole
    assert room._pass_bytes(one_is_whole, 128, 50_000) == room._pass_bytes(CONFIG, 128, 50_000)


@pytest.mark.parametrize(
    "conditions",
    [
        Conditions(),
        Conditions(mask="window", window=200),
        Conditions(mask="window", window=60, sinks=250),
    ],
    ids=["causal", "window", "first + window"],
)
@pytest.mark.parametrize("n_rows", [1, 300, 900, 3000])
def test_a_cache_takes_no_more_than_is_told(n_rows: int, conditions: Conditions) -> None:
    """Read block by block, with the tensors of before still there at the fullest moment."""
    config = replace(CONFIG, max_seq_len=4000, windows=(300, 0))
    cache = new_cache(config, n_rows=n_rows, conditions=conditions)
    most = 0
    for n_new in [128] * (n_rows // 128) + [n_rows % 128]:
        before = {id(part): part.nbytes for part in tensors(cache)}
        for layer in range(2):
            cache.write(layer, torch.zeros(2, n_new, 4), torch.zeros(2, n_new, 4))
        cache.advance(n_new)
        both = before | {id(part): part.nbytes for part in tensors(cache)}
        most = max(most, sum(both.values()))
    assert most <= room._cache_bytes(config, n_rows, conditions)
    assert most >= cache.allocated_bytes


def tensors(cache: KVCache) -> list[torch.Tensor]:
    """All that hold rows."""
    assert isinstance(cache, SlidingCache)
    beside = (*cache._sliding.values(), *cache._first.values())
    return [cache.k, cache.v, *(part for rows in beside for part in (rows.k, rows.v))]


def test_a_pass_in_one_piece_may_take_more_than_one_in_blocks() -> None:
    """With 32,768 positions, 1,024 tokens are read at once; wide rows count more than scores."""
    wide = replace(CONFIG, max_seq_len=32_768, d_model=4096, head_dim=1024, d_ff=65_536)
    row = 2 * 2 * 2 * 1024
    numbers = row * (1025 + 1025) + 128 * 1024 * 13 + 128 * 100
    numbers += 1024 * (6 * 4 * 1024 + 4 * 2 * 1024 + 2 * 65_536 + 4 * 4096)
    assert sweep_bytes(wide, 1024) == 4 * numbers + SLACK


def test_the_longest_that_fits_fits_exactly() -> None:
    n_bytes = 1_000_000_000
    for needed in (sweep_bytes, two_ways_bytes):
        longest = longest_that_fits(CONFIG, n_bytes, needed)
        assert needed(CONFIG, longest) <= n_bytes < needed(CONFIG, longest + 1)
        assert longest_that_fits(CONFIG, 1000, needed) == 0


def test_what_does_not_fit_is_refused_with_the_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "available_bytes", lambda: 1_500_000_000)
    check_room(CONFIG, 1000)
    with pytest.raises(
        EngineError,
        match=r"Timing 1,000,000 tokens needs about 6\.38 GiB of memory, and 1\.4 GiB are free; "
        r"211,\d\d\d tokens would fit\.",
    ):
        check_room(CONFIG, 1_000_000)


def test_where_nobody_can_tell_it_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "available_bytes", lambda: None)
    check_room(CONFIG, 10**7)
