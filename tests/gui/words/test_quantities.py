import pytest

from gui.words.quantities import count_said, counted, power_said, time_said, times_said


@pytest.mark.parametrize(
    ("number", "said"),
    [(0, "0"), (999, "999"), (1000, "1 k"), (3_360_000_000, "3.36 G"), (999_960, "1 M")],
)
def test_counts_have_three_digits_and_a_prefix(number: float, said: str) -> None:
    assert count_said(number) == said


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.00123, "1.23 ms"), (0.9999, "1 s"), (71, "71 s"), (1234, "1,234 s"), (float("nan"), "—")],
)
def test_times_are_in_milliseconds_below_a_second(seconds: float, said: str) -> None:
    assert time_said(seconds) == said


def test_ratios_and_powers_are_said_shortly() -> None:
    assert times_said(17.04) == "17 ×"
    assert times_said(1240) == "1,240 ×"
    assert power_said(1.0249) == "n^1.02"


@pytest.mark.parametrize(
    ("number", "said"), [(0, "0 keys"), (1, "1 key"), (2, "2 keys"), (8192, "8,192 keys")]
)
def test_one_of_a_thing_is_not_called_many(number: int, said: str) -> None:
    """And thousands are set apart."""
    assert counted(number, "key") == said
    assert counted(number, "pass", "passes").endswith("pass" if number == 1 else "passes")
