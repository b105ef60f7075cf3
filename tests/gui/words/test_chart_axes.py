import numpy as np
import pytest

from gui.words.chart_axes import from_zero, powers_of_ten, powers_of_two, up_to


def test_an_axis_from_zero_ends_at_a_round_number_above() -> None:
    axis = from_zero(37)
    assert (axis.low, [tick.text for tick in axis.ticks]) == (0, ["0", "20", "40"])
    assert axis.high > 40


def test_an_axis_of_lengths_ends_exactly_at_the_longest() -> None:
    assert (up_to(512).low, up_to(512).high) == (0, 512)
    assert up_to(0).high == 1


def test_large_powers_of_ten_have_a_prefix() -> None:
    """From 8 × 10⁴ to 7 × 10⁹, every power that has room."""
    axis = powers_of_ten(8e4, 7e9)
    assert axis.low < 4
    assert axis.high > 10
    assert [tick.text for tick in axis.ticks][:3] == ["10k", "100k", "1M"]


def test_small_powers_of_ten_are_written_out() -> None:
    assert [tick.text for tick in powers_of_ten(0.02, 3).ticks] == ["0.01", "0.1", "1", "10"]


def test_one_value_still_has_an_axis() -> None:
    axis = powers_of_ten(100, 100)
    assert axis.high > axis.low


@pytest.mark.parametrize("longest", [128, 4096, 1_000_000])
def test_lengths_are_marked_at_powers_of_two(longest: int) -> None:
    axis = powers_of_two(8, longest)
    for tick in axis.ticks:
        length = int(tick.text.replace(",", ""))
        assert length & (length - 1) == 0
        assert tick.at == pytest.approx(np.log10(length))
    assert len(axis.ticks) <= 8
