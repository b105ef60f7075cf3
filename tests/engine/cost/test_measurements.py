"""Fits, crossings and roofs, on numbers whose answers are known beforehand."""

import numpy as np
import pytest

from engine.cost.measurements import (
    BothWays,
    DecodeStep,
    Fit,
    Lab,
    Machine,
    OneByOne,
    Worked,
    crossing_of,
    fit_power,
    fits_at_both_ends,
)

LENGTHS = 2.0 ** np.arange(3, 13)


def test_a_power_is_found_again() -> None:
    fit = fit_power(LENGTHS, 3e-5 * LENGTHS**1.5)
    assert fit is not None
    assert fit.exponent == pytest.approx(1.5)
    assert fit.factor == pytest.approx(3e-5)
    assert (fit.low, fit.high) == (8, 4096)
    np.testing.assert_allclose(fit.at(np.array([4.0])), 3e-5 * 8)


def test_noise_moves_a_fitted_power_little() -> None:
    noisy = LENGTHS**2 * np.exp(np.random.default_rng(1).normal(0, 0.05, len(LENGTHS)))
    fit = fit_power(LENGTHS, noisy)
    assert fit is not None
    assert fit.exponent == pytest.approx(2, abs=0.05)


@pytest.mark.parametrize(
    ("x", "y"), [([], []), ([8.0], [1.0]), ([8.0, 8.0], [1.0, 2.0]), ([8.0, 16.0], [0.0, 1.0])]
)
def test_what_has_no_power_has_no_fit(x: list[float], y: list[float]) -> None:
    assert fit_power(np.array(x), np.array(y)) is None


def test_a_bend_shows_as_two_powers() -> None:
    """Linear below, quadratic above: 1000 n + n², far below and far above n = 1000."""
    n = 10.0 ** np.arange(0, 7)
    short, long = fits_at_both_ends(n, 1000 * n + n**2)
    assert short is not None
    assert long is not None
    assert short.exponent == pytest.approx(1, abs=0.05)
    assert long.exponent == pytest.approx(2, abs=0.05)
    assert short.high < 1000 < long.low


def test_without_points_there_is_nothing_to_fit() -> None:
    assert fits_at_both_ends(np.array([]), np.array([])) == (None, None)


def test_curves_cross_where_they_are_equal() -> None:
    """n² = 300 n at 300, between the measured 256 and 512; powers are straight there."""
    at = crossing_of(LENGTHS, LENGTHS**2, 300 * LENGTHS)
    assert at == pytest.approx(300)


@pytest.mark.parametrize("factor", [1.0, 1e9], ids=["above from the start", "never reached"])
def test_curves_that_do_not_cross_have_no_crossing(factor: float) -> None:
    assert crossing_of(LENGTHS, LENGTHS**2, factor * LENGTHS) is None


def test_the_last_of_several_crossings_counts() -> None:
    """A single noisy point above is not yet the end of the matter."""
    rising = np.array([2.0, 0.5, 0.5, 4.0])
    at = crossing_of(np.array([1.0, 2.0, 4.0, 8.0]), rising, np.ones(4))
    assert at == pytest.approx(4 * 2 ** (1 / 3))


def test_the_roof_slopes_up_to_the_ridge_and_is_flat_beyond() -> None:
    machine = Machine(80e9, 10e9, 1, "cpu")
    assert machine.best(None) is machine
    assert machine.best(Machine(70e9, 12e9, 1, "cpu")) == Machine(80e9, 12e9, 1, "cpu")
    assert machine.ridge == 8
    assert machine.roof(0.25) == 2.5e9
    assert machine.roof(8) == machine.roof(100) == 80e9


def test_a_pass_has_a_place_under_the_roof() -> None:
    worked = Worked(n_new=1, start=9, multiply_adds=2000, n_bytes=8000, seconds=0.001)
    assert (worked.per_byte, worked.per_second) == (0.25, 2e6)


def _step(n_tokens: int, difference: float, *, same: bool) -> DecodeStep:
    return DecodeStep(n_tokens, 1, 1, n_tokens, 10, 10 * n_tokens, 0.1, 0.2, difference, same)


def test_both_ways_are_summed_over_their_steps() -> None:
    """Of 4 + 5 + 6 + 7 rows without the cache, the first two steps made 9."""
    steps = (_step(4, 1e-6, same=True), _step(5, 3e-6, same=False))
    both = BothWays(3, 4, 0.1, steps)
    assert both.difference == 3e-6
    assert both.n_same == 1
    assert both.column("rows_without").tolist() == [4, 5]
    assert both.share == pytest.approx(9 / 22)
    assert not both.is_done


def test_what_has_not_begun_has_no_difference() -> None:
    both, one = BothWays(3, 4, 0.1), OneByOne(5, 0.1, 10)
    assert (both.difference, both.share) == (0, 0)
    assert (one.n_done, one.is_done) == (0, False)


def test_a_lab_that_has_not_begun_has_no_points() -> None:
    lab = Lab(512)
    assert len(lab.lengths) == 0
    assert lab.share == 0
    assert Fit(1, 2).at(np.array([3.0])).tolist() == [6]
