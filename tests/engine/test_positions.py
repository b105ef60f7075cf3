import math

import numpy as np
import pytest
import torch

from engine.config import RopeScaling
from engine.positions import (
    alibi_slopes,
    rotary_frequencies,
    rotary_table,
    rotate,
    sinusoidal_table,
)


@pytest.mark.parametrize("d_model", [6, 7])
def test_the_sinusoidal_table_follows_the_formula(d_model: int) -> None:
    """PE(t, 2i) = sin(t / 10000^(2i/C)) and PE(t, 2i + 1) = cos of the same; C may be odd."""
    expected = [
        [
            (math.cos if i % 2 else math.sin)(t / 10_000 ** ((i - i % 2) / d_model))
            for i in range(d_model)
        ]
        for t in range(50)
    ]
    np.testing.assert_allclose(sinusoidal_table(50, d_model), expected, atol=1e-5)


def test_turning_keeps_lengths_and_position_0_turns_nothing() -> None:
    x = torch.randn(3, 20, 8, generator=torch.Generator().manual_seed(1))
    turned = rotate(x, rotary_table(rotary_frequencies(8, 10_000.0), 0, 20))
    torch.testing.assert_close(turned.norm(dim=-1), x.norm(dim=-1))
    torch.testing.assert_close(turned[:, 0], x[:, 0])


def test_turned_products_depend_on_the_distance_only() -> None:
    """What makes rotary positions relative, for one q and one k at all pairs of positions."""
    generator = torch.Generator().manual_seed(2)
    q, k = torch.randn(2, 1, 8, generator=generator).double()
    table = rotary_table(rotary_frequencies(8, 100.0), 0, 40).double()
    products = rotate(q.expand(40, 8), table) @ rotate(k.expand(40, 8), table).T
    for distance in range(-39, 40):
        diagonal = torch.diagonal(products, distance)
        torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal), atol=1e-5, rtol=0)
    assert (products[0, 0] - products[0, 3]).abs() > 0.1


def test_feature_i_is_paired_with_the_one_half_a_head_later() -> None:
    """Turned as complex numbers, each pair at its own speed."""
    head_dim, theta = 6, 50.0
    x = np.arange(1, 7) / 7
    turned = rotate(
        torch.tensor(x).expand(9, 6), rotary_table(rotary_frequencies(head_dim, theta), 0, 9)
    ).numpy()
    for t in range(9):
        for i in range(3):
            number = complex(x[i], x[i + 3]) * np.exp(1j * t * theta ** (-2 * i / head_dim))
            np.testing.assert_allclose(
                (turned[t, i], turned[t, i + 3]), (number.real, number.imag), atol=1e-5
            )


def test_features_beyond_the_table_are_not_turned() -> None:
    x = torch.randn(3, 8, generator=torch.Generator().manual_seed(3))
    turned = rotate(x, rotary_table(rotary_frequencies(4, 10.0), 5, 3))
    assert torch.equal(turned[:, 4:], x[:, 4:])
    assert not torch.allclose(turned[:, :4], x[:, :4])


def test_a_table_may_begin_anywhere() -> None:
    frequencies = rotary_frequencies(8, 1000.0)
    torch.testing.assert_close(
        rotary_table(frequencies, 7, 3), rotary_table(frequencies, 0, 10)[:, 7:]
    )


def test_a_linear_scaling_slows_every_pair() -> None:
    """As if positions stood closer together."""
    scaled = rotary_frequencies(8, 1000.0, RopeScaling(kind="linear", factor=4.0))
    torch.testing.assert_close(scaled * 4, rotary_frequencies(8, 1000.0))


def test_the_scaling_of_llama_3_slows_slow_pairs_only() -> None:
    """A pair of frequency f turns 100 · f / 2 π times in a first context of 100."""
    scaling = RopeScaling(
        kind="llama3", factor=8.0, low_turns=1.0, high_turns=4.0, first_context=100
    )
    plain_ones = rotary_frequencies(16, 1000.0).tolist()
    scaled_ones = rotary_frequencies(16, 1000.0, scaling).tolist()
    for plain, scaled in zip(plain_ones, scaled_ones, strict=True):
        turns = 100 * plain / (2 * math.pi)
        share = min(1.0, max(0.0, (turns - 1) / 3))
        assert scaled == pytest.approx(share * plain + (1 - share) * plain / 8, rel=1e-5)


@pytest.mark.parametrize("whole_pairs", [True, False])
def test_yarn_slows_pairs_by_their_number_from_fast_to_slow(*, whole_pairs: bool) -> None:
    """From the pair that turns 32 times at first to the one that turns once, found by trying.

    Pair i turns 500 · 1000^(−i/8) / 2 π times.
    """

    def turns(pair: float) -> float:
        return float(500 * 1000 ** (-pair / 8) / (2 * math.pi))

    fast, slow = (
        min((pair / 10_000 for pair in range(80_000)), key=lambda pair: abs(turns(pair) - times))
        for times in (32, 1)
    )
    assert turns(fast) == pytest.approx(32, rel=1e-3)
    assert turns(slow) == pytest.approx(1, rel=1e-3)
    if whole_pairs:
        fast, slow = math.floor(fast), math.ceil(slow)
    scaling = RopeScaling(
        kind="yarn",
        factor=4.0,
        low_turns=1.0,
        high_turns=32.0,
        first_context=500,
        whole_pairs=whole_pairs,
    )
    plain = rotary_frequencies(16, 1000.0).tolist()
    for pair, scaled in enumerate(rotary_frequencies(16, 1000.0, scaling).tolist()):
        slowed = min(1.0, max(0.0, (pair - fast) / (slow - fast)))
        expected = plain[pair] * (1 - slowed) + plain[pair] / 4 * slowed
        assert scaled == pytest.approx(expected, rel=1e-3)


def test_longrope_slows_each_pair_by_its_own_divisor() -> None:
    scaling = RopeScaling(kind="longrope", factor=4.0, divisors=(1.0, 1.5, 2.0, 8.0))
    scaled = rotary_frequencies(8, 1000.0, scaling)
    torch.testing.assert_close(
        scaled * torch.tensor([1.0, 1.5, 2.0, 8.0]), rotary_frequencies(8, 1000.0)
    )


def test_a_factor_lengthens_what_is_turned_and_nothing_else() -> None:
    """By as much, at each position; features that do not turn stay."""
    x = torch.arange(30, dtype=torch.float32).reshape(5, 6)
    frequencies = rotary_frequencies(4, 10.0)
    plain = rotate(x, rotary_table(frequencies, 3, 5))
    longer = rotate(x, rotary_table(frequencies, 3, 5, 1.25))
    torch.testing.assert_close(longer[:, :4], 1.25 * plain[:, :4])
    torch.testing.assert_close(longer[:, 4:], x[:, 4:])


def test_half_precision_stays_half_precision() -> None:
    x = torch.ones(2, 4, dtype=torch.bfloat16)
    assert rotate(x, rotary_table(rotary_frequencies(4, 10.0), 0, 2)).dtype == torch.bfloat16


# As printed by `get_slopes` in the code that the ALiBi paper published.
PUBLISHED = {
    8: [0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125, 0.00390625],
    12: [
        0.5,
        0.25,
        0.125,
        0.0625,
        0.03125,
        0.015625,
        0.0078125,
        0.00390625,
        0.7071067811865476,
        0.35355339059327384,
        0.17677669529663692,
        0.08838834764831849,
    ],
    1: [0.00390625],
}


@pytest.mark.parametrize("n_head", PUBLISHED)
def test_alibi_slopes_are_the_published_ones(n_head: int) -> None:
    np.testing.assert_allclose(alibi_slopes(n_head), PUBLISHED[n_head], rtol=1e-6)


@pytest.mark.parametrize("n_head", range(1, 40))
def test_every_head_count_gets_as_many_different_slopes(n_head: int) -> None:
    slopes = alibi_slopes(n_head).tolist()
    assert len(set(slopes)) == n_head
    assert all(0 < slope < 1 for slope in slopes)
