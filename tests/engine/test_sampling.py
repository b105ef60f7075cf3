import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import ConfigError
from engine.sampling import Sampling, draw, softmax, stages

LOGITS = np.log([0.1, 0.4, 0.2, 0.3]).astype(np.float32)


def test_softmax_is_that_of_the_formula_and_never_overflows() -> None:
    scores = np.array([[1.0, 2.0, -1.0], [1e4, 1e4, -1e4]])
    shares = np.exp(scores[0]) / np.exp(scores[0]).sum()
    np.testing.assert_allclose(softmax(scores), [shares, [0.5, 0.5, 0]])


def test_every_stage_by_hand() -> None:
    """Halving the temperature squares the ratios; then 3 tokens stay; then 0.7 of what is left."""
    result = stages(LOGITS, Sampling(temperature=0.5, top_k=3, top_p=0.7))
    assert result.order.tolist() == [1, 3, 2, 0]
    np.testing.assert_allclose(result.logits, LOGITS)
    np.testing.assert_allclose(result.plain_probs, [0.1, 0.4, 0.2, 0.3], rtol=1e-6)
    np.testing.assert_allclose(result.scaled, LOGITS * 2.0, rtol=1e-6)
    np.testing.assert_allclose(result.scaled_probs, np.array([1, 16, 4, 9]) / 30, rtol=1e-5)
    assert result.in_top_k.tolist() == [False, True, True, True]
    # Of 29 thirtieths: 16/29 = 0.55, then 25/29 = 0.86, which reaches 0.7.
    assert result.in_top_p.tolist() == [False, True, False, True]
    np.testing.assert_allclose(result.probs, [0, 16 / 25, 0, 9 / 25], rtol=1e-5)


def test_untouched_settings_draw_from_the_models_own_distribution() -> None:
    result = stages(LOGITS, Sampling(temperature=1))
    np.testing.assert_allclose(result.probs, [0.1, 0.4, 0.2, 0.3], rtol=1e-6)
    assert result.in_top_k.all()
    assert result.in_top_p.all()


@pytest.mark.parametrize("temperature", [0, 1e-4, 1e-30, 5e-324])
def test_no_and_next_to_no_temperature_take_the_most_probable_token(temperature: float) -> None:
    for sampling in (
        Sampling(temperature=temperature),
        Sampling(temperature=temperature, top_k=2, top_p=0.5),
    ):
        assert stages(LOGITS, sampling).probs.tolist() == [0, 1, 0, 0]


def test_greedy_takes_the_smaller_id_of_two_equals() -> None:
    assert stages(np.array([1.0, 3.0, 3.0]), Sampling(temperature=0)).probs.tolist() == [0, 1, 0]
    warm = stages(np.array([1.0, 3.0, 3.0]), Sampling(temperature=1e-30))
    assert warm.probs.tolist() == [0, 0.5, 0.5]


def test_a_very_high_temperature_makes_all_tokens_equal() -> None:
    np.testing.assert_allclose(stages(LOGITS, Sampling(temperature=1e30)).probs, [0.25] * 4)


def test_temperature_0_shows_the_logits_unscaled() -> None:
    np.testing.assert_array_equal(stages(LOGITS, Sampling(temperature=0)).scaled, LOGITS)


@pytest.mark.parametrize(("top_k", "left"), [(0, 4), (1, 1), (3, 3), (4, 4), (99, 4)])
def test_top_k_leaves_so_many_tokens(top_k: int, left: int) -> None:
    result = stages(LOGITS, Sampling(temperature=1, top_k=top_k))
    assert result.in_top_k.sum() == left
    assert (result.probs > 0).tolist() == result.in_top_k.tolist()


def test_ties_at_the_border_go_to_the_smaller_id() -> None:
    equal = np.zeros(8)
    for sampling in (
        Sampling(temperature=1, top_k=3),
        Sampling(temperature=1, top_p=0.375),
        Sampling(temperature=1, top_p=0.3),
    ):
        assert np.flatnonzero(stages(equal, sampling).probs).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("top_p", "left"), [(1e-9, 1), (0.4, 1), (0.41, 2), (0.7, 2), (0.71, 3), (0.9, 3), (0.91, 4)]
)
def test_top_p_leaves_the_smallest_set_that_reaches_it(top_p: float, left: int) -> None:
    """Of 0.4, 0.3, 0.2 and 0.1, and exactly reaching it is enough."""
    logits = np.log(np.array([4, 3, 2, 1]) / 10)
    assert stages(logits, Sampling(temperature=1, top_p=top_p)).in_top_p.sum() == left


@given(
    logits=st.lists(st.floats(-20, 20), min_size=1, max_size=300),
    top_p=st.floats(0.01, 1),
    top_k=st.integers(0, 20),
    temperature=st.sampled_from([0, 0.01, 0.7, 1, 5]),
)
def test_any_settings_leave_a_distribution_that_keeps_the_order(
    logits: list[float], top_p: float, top_k: int, temperature: float
) -> None:
    """Over the whole vocabulary, and top-p's set is the smallest of its kind."""
    sampling = Sampling(temperature=temperature, top_k=top_k, top_p=top_p)
    result = stages(np.array(logits), sampling)
    assert result.probs.sum() == pytest.approx(1)
    assert (result.probs >= 0).all()
    assert not (result.in_top_p & ~result.in_top_k).any()
    assert np.all(np.diff(np.array(logits)[result.order]) <= 0)
    kept = np.where(result.in_top_k, result.scaled_probs, 0)
    kept = kept / kept.sum()
    chosen = kept[result.in_top_p]
    assert chosen.sum() >= top_p - 1e-9
    if top_p < 1:
        assert chosen.sum() - chosen.min() < top_p + 1e-9


def test_the_same_seed_and_position_draw_the_same_token() -> None:
    probs = np.full(1000, 1 / 1000)
    drawn = [draw(probs, seed, position) for seed in range(20) for position in range(20)]
    again = [draw(probs, seed, position) for seed in range(20) for position in range(20)]
    assert drawn == again
    assert len(set(drawn)) > 250


def test_draws_follow_the_distribution() -> None:
    """Chi-square over 5,000 positions: below the 0.999 quantile for 4 degrees of freedom."""
    probs = np.array([0.5, 0.0, 0.25, 0.15, 0.07, 0.03])
    drawn = [draw(probs, 7, position) for position in range(5000)]
    counts = np.bincount(drawn, minlength=6)
    assert counts[1] == 0
    possible = probs > 0
    expected = 5000 * probs[possible]
    assert ((counts[possible] - expected) ** 2 / expected).sum() < 18.47


@given(st.integers(0, 2**64 - 1), st.integers(0, 10_000))
def test_a_token_of_probability_0_is_never_drawn(seed: int, position: int) -> None:
    assert draw(np.array([0, 0.3, 0, 0.7, 0]), seed, position) in (1, 3)
    assert draw(np.array([0, 0, 1.0]), seed, position) == 2


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"temperature": -0.1}, "temperature = -0.1 is not possible; use 0 or more."),
        ({"temperature": np.inf}, "temperature = inf is not possible; use 0 or more."),
        ({"temperature": np.nan}, "temperature = nan is not possible; use 0 or more."),
        ({"top_k": -1}, "top_k = -1 is not possible; use 0 (all tokens) or more."),
        ({"top_p": 0.0}, "top_p = 0.0 is not possible; use more than 0, at most 1."),
        ({"top_p": 1.1}, "top_p = 1.1 is not possible; use more than 0, at most 1."),
        ({"seed": -1}, "seed = -1 is not possible; use 0 to 2⁶⁴ − 1."),
        ({"seed": 2**64}, f"seed = {2**64} is not possible; use 0 to 2⁶⁴ − 1."),
    ],
)
def test_impossible_settings_are_refused_in_one_sentence(
    change: dict[str, float], sentence: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        Sampling(**change)  # type: ignore[arg-type]
    assert str(caught.value) == sentence


@given(
    values=st.lists(st.sampled_from([-np.inf, -1.5, 0.0, 0.25, 3.0]), min_size=1, max_size=400),
    nudge=st.integers(0, 399),
)
def test_equal_logits_stand_in_the_order_of_their_ids(values: list[float], nudge: int) -> None:
    """As Python's own sorting, which keeps what is equal in its place, has them."""
    logits = np.array(values)
    logits[nudge % len(values)] = 5.0  # at least one is possible
    expected = sorted(range(len(values)), key=lambda token: -logits[token])
    assert stages(logits, Sampling(temperature=1)).order.tolist() == expected
