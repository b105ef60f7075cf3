from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from engine.attention import (
    QUERY_BLOCK,
    Attention,
    Scoring,
    attend,
    attention_weights,
    query_blocks,
)
from engine.conditions import Conditions
from engine.config import ModelConfig
from engine.kv_cache import KVCache
from engine.positions import alibi_slopes

CONDITIONS = {
    "causal": Conditions(),
    "window": Conditions(mask="window", window=3),
    "window of one": Conditions(mask="window", window=1),
    "window and first": Conditions(mask="window", window=2, sinks=2),
    "none": Conditions(mask="none"),
}


def _qkv(n_head: int, n_group: int, n_new: int, n_keys: int) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(n_head + n_group + n_new)
    return (
        torch.randn(n_head, n_new, 6, generator=generator),
        torch.randn(n_group, n_keys, 6, generator=generator),
        torch.randn(n_group, n_keys, 6, generator=generator),
    )


def _allowed(conditions: Conditions, start: int, n_new: int, n_keys: int) -> Tensor:
    """The mask once more, cell by cell."""
    allowed = torch.zeros(n_new, n_keys, dtype=torch.bool)
    for row in range(n_new):
        for key in range(n_keys):
            past = key <= start + row
            near = start + row - key < conditions.window or key < conditions.sinks
            allowed[row, key] = {"causal": past, "window": past and near, "none": True}[
                conditions.mask
            ]
    return allowed


@pytest.mark.parametrize("conditions", CONDITIONS.values(), ids=CONDITIONS)
@pytest.mark.parametrize(("n_head", "n_group"), [(4, 4), (4, 2), (4, 1), (1, 1)])
@pytest.mark.parametrize("start", [0, 5])
def test_weights_and_mix_are_those_of_torchs_own_attention(
    conditions: Conditions, n_head: int, n_group: int, start: int
) -> None:
    """Many heads, grouped heads, one key for all; at the start of a text and behind a cache."""
    q, k, v = _qkv(n_head, n_group, 4, start + 4)
    repeat = n_head // n_group
    expected = F.scaled_dot_product_attention(
        q,
        k.repeat_interleave(repeat, 0),
        v.repeat_interleave(repeat, 0),
        attn_mask=_allowed(conditions, start, 4, start + 4),
    )
    scoring = Scoring(conditions, 6**-0.5)
    weights, mix = attend(q, k, v, start, scoring)
    torch.testing.assert_close(mix, expected, atol=1e-5, rtol=0)
    assert torch.equal(attention_weights(q, k, start, scoring), weights)
    torch.testing.assert_close(weights.sum(-1), torch.ones(n_head, 4), atol=1e-6, rtol=0)
    assert not weights[:, ~_allowed(conditions, start, 4, start + 4)].any()


@pytest.mark.parametrize("mask", ["causal", "none"])
def test_alibi_lowers_scores_by_slope_times_distance(mask: Any) -> None:
    """Cell by cell in numpy; without a mask the distance counts in both directions."""
    scoring, start = Scoring(Conditions(mask=mask), 6**-0.5, slopes=alibi_slopes(4)), 2
    q, k, _ = _qkv(4, 2, 3, 5)
    weights = attention_weights(q, k, start, scoring).numpy()
    for head in range(4):
        for row in range(3):
            scores = np.full(5, -np.inf)
            for key in range(5):
                if mask == "none" or key <= start + row:
                    product = float(q[head, row] @ k[head // 2, key]) / np.sqrt(6)
                    scores[key] = product - 2.0 ** (-2 * (head + 1)) * abs(start + row - key)
            expected = np.exp(scores - scores.max())
            np.testing.assert_allclose(weights[head, row], expected / expected.sum(), atol=1e-6)


def test_a_cap_bends_scores_and_a_window_hides_far_keys() -> None:
    """Cell by cell in numpy, with a scale of its own."""
    scoring = Scoring(Conditions(), 0.7, window=2, cap=1.5)
    q, k, _ = _qkv(2, 1, 5, 5)
    weights = attention_weights(q, k, 0, scoring).numpy()
    for head in range(2):
        for row in range(5):
            keys = range(max(0, row - 1), row + 1)
            powers = [
                np.exp(1.5 * np.tanh(0.7 * float(q[head, row] @ k[0, key]) / 1.5)) for key in keys
            ]
            expected = np.zeros(5)
            expected[list(keys)] = np.array(powers) / sum(powers)
            np.testing.assert_allclose(weights[head, row], expected, atol=1e-6)


def test_huge_scores_give_no_nan() -> None:
    q, k, _ = _qkv(1, 1, 3, 3)
    weights = attention_weights(q * 1e10, k * 1e10, 0, Scoring(Conditions(), 1.0))
    assert weights.isfinite().all()


@pytest.mark.parametrize("conditions", CONDITIONS.values(), ids=CONDITIONS)
@pytest.mark.parametrize(
    ("start", "n_new"),
    [
        (0, 1),
        (7, 1),
        (0, QUERY_BLOCK - 1),
        (0, QUERY_BLOCK),
        (0, QUERY_BLOCK + 1),
        (9, 3 * QUERY_BLOCK),
    ],
)
def test_blocks_cover_every_row_once_and_every_key_it_may_see(
    conditions: Conditions, start: int, n_new: int
) -> None:
    if not conditions.append_only:
        start = 0
    rows: list[int] = []
    for block, n_keys in query_blocks(start, n_new, conditions):
        rows += range(n_new)[block]
        query = np.arange(start + block.start, start + block.stop)[:, None]
        visible = conditions.visible(query, np.arange(start + n_new))
        assert not visible[:, n_keys:].any()
        assert n_keys <= start + n_new
    assert rows == list(range(n_new))


def test_the_masked_half_is_not_computed() -> None:
    """Ten blocks need little more than half of the square."""
    n = 10 * QUERY_BLOCK
    cells = sum(
        (rows.stop - rows.start) * n_keys for rows, n_keys in query_blocks(0, n, Conditions())
    )
    assert cells == 0.55 * n * n


def _scoring(conditions: Conditions = Conditions()) -> Scoring:  # noqa: B008 - frozen
    """That of `_attention`."""
    return Scoring(conditions, 3**-0.5)


def _attention(n_kv_head: int = 2) -> tuple[Attention, ModelConfig]:
    config = ModelConfig(
        vocab_size=5, n_layer=1, n_head=4, n_kv_head=n_kv_head, d_model=12, max_seq_len=300
    )
    torch.manual_seed(5)
    return Attention(config, 0).requires_grad_(requires_grad=False), config


@pytest.mark.parametrize("conditions", CONDITIONS.values(), ids=CONDITIONS)
def test_cutting_queries_into_blocks_changes_nothing(
    conditions: Conditions, monkeypatch: pytest.MonkeyPatch
) -> None:
    attention, _ = _attention()
    x = torch.randn(20, 12, generator=torch.Generator().manual_seed(6))
    whole = attention(x, _scoring(conditions))
    monkeypatch.setattr("engine.attention.QUERY_BLOCK", 3)
    torch.testing.assert_close(attention(x, _scoring(conditions)), whole, atol=1e-5, rtol=0)


def test_a_batch_is_so_many_texts() -> None:
    attention, _ = _attention()
    x = torch.randn(3, 7, 12, generator=torch.Generator().manual_seed(6))
    one_by_one = torch.stack([attention(text, _scoring()) for text in x])
    torch.testing.assert_close(attention(x, _scoring()), one_by_one, atol=1e-5, rtol=0)


def test_a_head_that_is_off_adds_nothing_to_the_output() -> None:
    """The output is then the sum of the other heads' parts, in this layer only."""
    attention, _ = _attention()
    x = torch.randn(7, 12, generator=torch.Generator().manual_seed(6))
    off = Conditions(heads_off=frozenset({(0, 1), (0, 3), (1, 0)}))
    everything = attention(x, _scoring())
    lost = torch.zeros(7, 12)
    q, k, v = attention.qkv(x).unflatten(-1, (8, 3)).transpose(0, 1).split((4, 2, 2))
    _weights, mix = attend(q, k, v, 0, _scoring())
    for head in (1, 3):
        lost += mix[head] @ attention.output.weight[:, 3 * head : 3 * head + 3].T
    torch.testing.assert_close(attention(x, _scoring(off)), everything - lost, atol=1e-5, rtol=0)


def test_a_cache_is_only_written_not_advanced() -> None:
    """Every layer of a pass writes behind the same length; the transformer advances it."""
    attention, config = _attention()
    cache = KVCache(config)
    attention(torch.randn(4, 12), _scoring(), kv_cache=cache)
    assert cache.length == 0
