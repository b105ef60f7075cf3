import numpy as np
import pytest

from engine.conditions import Conditions
from engine.errors import ConfigError

N = 6
QUERY, KEY = np.arange(N)[:, None], np.arange(N)


def test_the_causal_mask_shows_each_query_itself_and_the_past() -> None:
    np.testing.assert_array_equal(Conditions().visible(QUERY, KEY), np.tri(N, dtype=bool))


def test_without_a_mask_everyone_sees_everyone() -> None:
    assert Conditions(mask="none").visible(QUERY, KEY).all()
    assert Conditions(mask="none").visible(QUERY, KEY).shape == (N, N)


@pytest.mark.parametrize("window", range(1, N + 3))
@pytest.mark.parametrize("sinks", range(4))
def test_a_window_shows_the_nearest_and_the_first(window: int, sinks: int) -> None:
    visible = Conditions(mask="window", window=window, sinks=sinks).visible(QUERY, KEY)
    for query in range(N):
        seen = set(range(query + 1)[-window:]) | set(range(min(sinks, query + 1)))
        assert set(np.flatnonzero(visible[query])) == seen


@pytest.mark.parametrize("own", range(1, N + 3))
def test_a_layers_own_window_is_narrowed_by_the_mask_and_lifted_without_one(own: int) -> None:
    """A model with a window never sees beyond it, sinks or not, until there is no mask at all."""
    causal = Conditions().visible(QUERY, KEY, own)
    for query in range(N):
        assert set(np.flatnonzero(causal[query])) == set(range(query + 1)[-own:])
    mask = Conditions(mask="window", window=2, sinks=1)
    np.testing.assert_array_equal(mask.visible(QUERY, KEY, own), causal & mask.visible(QUERY, KEY))
    assert Conditions(mask="none").visible(QUERY, KEY, own).all()


@pytest.mark.parametrize("mask", ["causal", "window", "none"])
def test_no_query_is_left_without_a_key(mask: str) -> None:
    """A softmax over nothing would be NaN."""
    visible = Conditions(mask=mask, window=1).visible(QUERY, KEY)
    assert np.diagonal(visible).all()


def test_window_and_sinks_count_only_under_the_window_mask() -> None:
    """So that moving an idle slider does not run everything again."""
    assert Conditions(window=3, sinks=2) == Conditions()
    assert hash(Conditions(mask="none", window=3)) == hash(Conditions(mask="none"))
    assert Conditions(mask="window", window=3) != Conditions(mask="window", window=4)


def test_only_without_a_mask_do_old_rows_change_when_the_text_grows() -> None:
    assert Conditions().append_only
    assert Conditions(mask="window", window=2).append_only
    assert not Conditions(mask="none").append_only


@pytest.mark.parametrize(("window", "sinks"), [(0, 0), (-1, 2), (3, -1)])
def test_an_impossible_window_is_refused_in_one_sentence(window: int, sinks: int) -> None:
    with pytest.raises(ConfigError) as caught:
        Conditions(mask="window", window=window, sinks=sinks)
    assert str(caught.value) == (
        f"a window of {window} positions with {sinks} first ones is not possible; "
        "the window must be 1 or more and the first ones 0 or more."
    )


def test_an_unknown_mask_is_refused_by_name() -> None:
    with pytest.raises(ConfigError) as caught:
        Conditions(mask="diagonal")  # type: ignore[arg-type]
    assert str(caught.value) == "the mask 'diagonal' is unknown; use one of causal, window, none."
