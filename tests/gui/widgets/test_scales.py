"""From weights to indices and colours, against arithmetic done by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from gui.theme import THEMES, Theme, lookup_table
from gui.widgets.scales import (
    MASKED,
    NOT_FINITE,
    SENTENCES,
    Extent,
    WeightScale,
    colour_table,
    difference_levels,
    difference_reach,
    difference_table,
    difference_ticks,
    exact,
    fraction,
    levels,
    round_top,
    sentence,
    signed,
    ticks,
    tone_table,
)

PINK, RED = 0xFFFF00FF, 0xFFFF0000
MAPS = sorted({theme.weights_map for theme in THEMES.values()})
SCALES: list[WeightScale] = ["linear", "log", "row"]
weight = st.floats(0, 1, width=32)


def seen(
    *rows: list[float], first_out: bool = False, scale: WeightScale = "linear"
) -> NDArray[np.uint8]:
    """The levels of unmasked rows."""
    weights = np.array(rows, np.float32)
    top = Extent.of(weights).top(scale, leave_first_out=first_out)
    visible = np.ones(weights.shape, bool)
    return levels(weights, visible, scale, top=top, leave_first_out=first_out)


@pytest.mark.parametrize("name", MAPS)
def test_weight_0_and_1_have_the_two_ends_of_the_map(name: str) -> None:
    colours = lookup_table(name)
    shown = colour_table(colours, PINK, RED)[seen([0.0, 1.0])]
    assert shown.tolist() == [[colours[0], colours[255]]]


@given(weight)
def test_a_linear_weight_has_the_colour_at_its_place_in_the_map(value: float) -> None:
    grey = np.arange(256, dtype=np.uint32)
    shown = int(colour_table(grey, 999, 999)[seen([value])][0, 0])
    assert abs(shown - value * 255) <= 1.01


@given(weight, weight)
def test_a_larger_weight_never_has_a_smaller_index(one: float, other: float) -> None:
    low, high = sorted((one, other))
    for scale in ("linear", "log"):
        index = seen([low, high], scale=scale)[0]
        assert MASKED < index[0] <= index[1] < NOT_FINITE


def test_only_masked_cells_look_masked() -> None:
    weights = np.array([[1, 0], [0.0, 1]], np.float32)
    visible = np.array([[True, False], [True, True]])
    for scale in SCALES:
        index = levels(weights, visible, scale)
        assert (index == MASKED).tolist() == [[False, True], [False, False]]


def test_a_weight_above_the_mask_is_shown_and_not_hidden() -> None:
    index = levels(np.array([[0.5]], np.float32), np.array([[False]]), "linear")
    assert index[0, 0] == seen([0.5])[0, 0]


def test_the_logarithmic_scale_gives_each_decade_the_same_room() -> None:
    index = seen([0.0, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0], scale="log")[0].astype(int)
    assert index[0] == index[1] == index[2]
    assert np.ptp(np.diff(index[2:])) <= 1
    assert index[-1] == seen([1.0])[0, 0]


def test_by_row_each_row_s_largest_is_at_the_top() -> None:
    index = seen([0.1, 0.2, 0.0], [0.9, 0.05, 0.05], [0.0, 0.0, 0.0], scale="row")
    top = seen([1.0])[0, 0]
    assert index[0, 1] == index[1, 0] == top
    assert index[0, 0] == seen([0.5])[0, 0]
    assert (index[2] == seen([0.0])[0, 0]).all()


def test_without_the_first_token_the_rest_fills_the_scale_up_to_a_round_number() -> None:
    row = [0.9, 0.06, 0.04]
    top = Extent.of(np.array([row], np.float32)).top("linear", leave_first_out=True)
    assert top == 0.1
    assert seen(row, first_out=True)[0, 1] == seen([0.6])[0, 0]
    assert seen([0.9, 0.06], scale="row", first_out=True)[0, 1] == seen([1.0])[0, 0]


@given(st.floats(1e-6, 1))
def test_a_round_top_is_above_and_less_than_2_5_times_as_large(largest: float) -> None:
    top = round_top(largest)
    assert largest <= top * (1 + 1e-5)
    assert top <= max(largest * 2.5001, 1e-6)
    assert f"{top:.0e}"[0] in "125"


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_weight_that_is_no_number_is_shown_as_such(scale: WeightScale, bad: float) -> None:
    index = seen([0.5, bad], scale=scale)[0]
    assert index[1] == NOT_FINITE
    assert index[0] != NOT_FINITE


@pytest.mark.parametrize("shape", [(0, 0), (0, 5), (1, 1)])
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("first_out", [False, True])
def test_any_number_of_tokens_has_levels(
    shape: tuple[int, int], scale: WeightScale, *, first_out: bool
) -> None:
    weights = np.zeros(shape, np.float32)
    assert 0 < Extent.of(weights).top(scale, leave_first_out=first_out) <= 1
    made = levels(weights, np.ones(shape, bool), scale, leave_first_out=first_out)
    assert made.shape == shape


@given(weight)
def test_a_thumbnail_s_value_has_the_colour_of_its_weight(value: float) -> None:
    grey = np.arange(256, dtype=np.uint32)
    stored = max(1, round(255 * value**0.5))
    assert abs(int(tone_table(grey, "linear", 999)[stored]) - value * 255) <= 1.6
    place = (max(np.log10(max(value, 1e-4)), -4) + 4) / 4 * 255
    # a step of the stored value is 2·0.434/stored decades
    assert abs(int(tone_table(grey, "log", 999)[stored]) - place) <= 1 + 64 / stored


def test_a_thumbnail_s_value_0_is_masked_and_1_is_weight_0() -> None:
    colours = lookup_table(MAPS[0])
    for scale in SCALES:
        table = tone_table(colours, scale, PINK)
        assert table[0] == PINK
        assert table[1] == colours[0]
        assert table[255] == colours[255]


@given(weight)
def test_an_exact_weight_reads_back_as_the_same_float32(value: float) -> None:
    assert np.float32(exact(np.float32(value))) == np.float32(value)


def test_the_legend_names_the_scale_and_its_numbers_lie_where_their_weights_do() -> None:
    assert len({sentence(scale) for scale in SENTENCES}) == len(SENTENCES)
    assert "first token left out" in sentence("log", leave_first_out=True)
    assert "0.2" in sentence("linear", leave_first_out=True, top=0.2)
    for scale, top in (("linear", 1.0), ("linear", 0.2), ("log", 1.0)):
        for place, number in ticks(scale, top):
            value = np.array([float(number.removeprefix("≤ "))], np.float32)
            assert fraction(value, scale, top)[0] == pytest.approx(place, abs=1e-6)


# Differences

both = st.floats(-1, 1, width=32)


def apart(*differences: float, reach: float = 1.0) -> NDArray[np.uint8]:
    """The levels of differences that are all there."""
    values = np.array([differences], np.float32)
    return difference_levels(values, np.ones(values.shape, bool), reach)[0]


@given(both, both)
def test_of_two_differences_the_larger_one_has_the_larger_index(one: float, other: float) -> None:
    """Whatever their signs, but for what 127 steps cannot tell apart."""
    first, second = apart(one, other)
    if abs(abs(one) - abs(other)) > 1 / 126:
        assert (first > second) == (abs(one) > abs(other))
    if abs(one) > 1 / 126:
        assert apart(one)[0] != apart(-one)[0]


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_the_colour_of_a_difference_is_where_it_lies_on_the_map(theme: Theme) -> None:
    """0 in the middle, the reach at either end, and whatever goes beyond there too."""
    colours = lookup_table(theme.difference_map)
    table = difference_table(colours, PINK, RED)
    for share in np.linspace(-1, 1, 41):
        (index,) = apart(0.5 * share, reach=0.5)
        nearest = np.abs(np.arange(256) - 127.5 * (1 + share)).argsort()[:4]
        assert table[index] in colours[nearest]
    assert list(table[apart(-3, -1, 0, 1, 3)]) == [colours[at] for at in (0, 0, 128, 255, 255)]


def test_no_difference_is_not_a_difference_of_0() -> None:
    """It has the index that is hatched; what is no number has its own."""
    values = np.array([[0, 0, np.nan]], np.float32)
    there = np.array([[True, False, True]])
    index = difference_levels(values, there, 1.0)[0]
    assert index[1] == MASKED
    assert index[0] not in {MASKED, NOT_FINITE}
    assert index[2] == NOT_FINITE


@pytest.mark.parametrize(
    ("largest", "reach"), [(0, 0.01), (3e-8, 0.01), (0.011, 0.02), (-0.3, 0.5), (1, 1)]
)
def test_the_scale_of_differences_ends_at_a_round_number(largest: float, reach: float) -> None:
    """But no earlier than 0.01, so that rounding is not drawn as if it were something."""
    values = np.array([[0, largest, np.nan]], np.float32)
    assert difference_reach(values) == reach


def test_the_legend_of_differences_goes_from_minus_to_plus_with_0_between() -> None:
    assert [text for _part, text in difference_ticks(0.5)] == [
        "−0.5",
        "−0.25",
        "0",
        "+0.25",
        "+0.5",
    ]
    assert [part for part, _text in difference_ticks(0.5)] == [0, 0.25, 0.5, 0.75, 1]
    assert [signed(text) for text in ("-0.000", "0", "1e-07", "-2")] == [
        "0.000",
        "0",
        "+1e-07",
        "−2",
    ]
