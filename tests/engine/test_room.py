"""Lengths that do not fit into memory are refused with both figures, before they are tried."""

import pytest

from engine import room
from engine.config import ModelConfig
from engine.errors import EngineError
from engine.room import check_room, longest_that_fits, working_bytes

CONFIG = ModelConfig(vocab_size=100, n_layer=2, n_head=4, n_kv_head=2, d_model=16, max_seq_len=32)
MATRICES = 2**28


def test_the_cache_and_the_scores_of_a_block_grow_with_the_length() -> None:
    """One token more: 2 · 2 layers · 2 heads · 4 numbers, and 4 squares · 4 heads · 128 rows."""
    more = working_bytes(CONFIG, 100_001) - working_bytes(CONFIG, 100_000)
    assert more == 4 * (2 * 2 * 2 * 4 + 4 * 4 * 128)


def test_the_longest_that_fits_fits_exactly() -> None:
    n_bytes = MATRICES + 100_000_000
    longest = longest_that_fits(CONFIG, n_bytes)
    assert working_bytes(CONFIG, longest) <= n_bytes < working_bytes(CONFIG, longest + 1)
    assert longest_that_fits(CONFIG, 1000) == 0


def test_what_does_not_fit_is_refused_with_the_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "available_bytes", lambda: 1_500_000_000)
    check_room(CONFIG, 1000)
    with pytest.raises(
        EngineError,
        match=r"Timing 1,000,000 tokens needs about 8\.6 GB of memory, and 1\.5 GB are free; "
        r"1\d\d,\d\d\d tokens would fit\.",
    ):
        check_room(CONFIG, 1_000_000)


def test_where_nobody_can_tell_it_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "available_bytes", lambda: None)
    check_room(CONFIG, 10**7)
