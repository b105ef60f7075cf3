"""The runs that are offered to be compared are possible, and say what they are."""

from typing import get_args

from engine.answers.alignment import Way
from engine.conditions import Conditions, Mask
from resources import pairs


def test_the_words_in_two_orders_come_first() -> None:
    """Three words, the same ones, compared position by position."""
    first = pairs()[0]
    assert (first.a, first.b, first.way) == ("dog bites person", "person bites dog", "position")


def test_every_pair_differs_in_something_that_can_be_run() -> None:
    """And no two share a name."""
    ways = {*get_args(Way), "automatic"}
    assert len({pair.title for pair in pairs()}) == len(pairs())
    for pair in pairs():
        assert pair.way in ways
        assert pair.mask in {"", *get_args(Mask)}
        under = Conditions(mask=pair.mask or "causal", window=pair.window, positions=pair.positions)
        assert pair.b != pair.a or under != Conditions()
