"""Losses per token and per character, by arithmetic done another way."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.document import token_spans
from engine.loss import LossSummary, bits, probabilities, worst_first

NAN = float("nan")


def summary(loss: list[float], text: str, tokens: list[bytes]) -> LossSummary:
    """Of tokens that spell a text."""
    return LossSummary.of(np.array(loss, np.float32), token_spans(text, tokens))


def test_a_text_whose_probabilities_are_powers_of_two_has_round_numbers() -> None:
    """Probabilities 1/2, 1/8 and 1/4 are 1, 3 and 2 bits: 6 in all, 2 per token, perplexity 2²."""
    loss = [NAN, math.log(2), 3 * math.log(2), 2 * math.log(2)]
    found = summary(loss, "To be or", [b"To", b" be", b" o", b"r"])
    assert (found.n_tokens, found.n_characters) == (3, 6)
    assert found.nats == pytest.approx(6 * math.log(2))
    assert found.mean == pytest.approx(2 * math.log(2))
    assert found.bits_per_token == pytest.approx(2)
    assert found.perplexity == pytest.approx(4)
    assert found.bits_per_character == pytest.approx(1)
    assert found.nats_per_character == pytest.approx(math.log(2))


def test_bits_and_probabilities_of_a_token_are_those_of_its_loss() -> None:
    nats = np.array([NAN, 0.0, math.log(2), math.log(1000)], np.float32)
    assert bits(nats)[1:] == pytest.approx([0, 1, math.log2(1000)], rel=1e-6)
    assert probabilities(nats)[1:] == pytest.approx([1, 0.5, 0.001], rel=1e-6)
    assert np.isnan(bits(nats)[0])
    assert np.isnan(probabilities(nats)[0])


@pytest.mark.parametrize("n_tokens", [0, 1])
def test_without_a_predicted_token_there_is_no_mean(n_tokens: int) -> None:
    """The first token's loss is none; a mean over nothing is no number, not 0."""
    found = summary([NAN] * n_tokens, "a" * n_tokens, [b"a"] * n_tokens)
    assert (found.n_tokens, found.n_characters, found.nats) == (0, 0, 0)
    for mean in (found.mean, found.perplexity, found.bits_per_token, found.bits_per_character):
        assert math.isnan(mean)


def test_characters_are_code_points_not_bytes() -> None:
    """The text "né €" has 4 characters in 7 bytes; the first token takes one of them."""
    found = summary([NAN, 1.0, 2.0], "né €", [b"n", "é ".encode(), "€".encode()])
    assert found.n_characters == 3
    assert found.nats_per_character == pytest.approx(1.0)


def test_a_character_that_the_first_token_only_begins_is_counted_in_full() -> None:
    """€ is E2 82 AC: the first token has a byte of it, counted tokens the other two and "a"."""
    found = summary([NAN, 1.0, 1.0], "€a", [b"\xe2", b"\x82\xac", b"a"])
    assert found.n_characters == 2


def test_a_token_that_spells_nothing_has_nats_but_no_characters() -> None:
    """Nothing is divided by 0."""
    found = summary([NAN, 1.0], "a", [b"a", b""])
    assert (found.n_tokens, found.n_characters) == (1, 0)
    assert found.mean == 1
    assert math.isnan(found.nats_per_character)


@pytest.mark.parametrize("loss", [NAN, float("inf")])
def test_a_loss_that_is_not_finite_is_not_hidden_in_the_mean(loss: float) -> None:
    found = summary([NAN, 1.0, loss], "abc", [b"a", b"b", b"c"])
    assert not math.isfinite(found.mean)
    assert not math.isfinite(found.perplexity)


def test_a_huge_mean_has_an_infinite_perplexity() -> None:
    assert summary([NAN, 2000.0], "ab", [b"a", b"b"]).perplexity == math.inf


def test_losses_and_spans_of_different_texts_are_refused() -> None:
    with pytest.raises(ValueError, match="3 losses and 2 spans"):
        LossSummary.of(np.zeros(3, np.float32), token_spans("ab", [b"a", b"b"]))


@given(st.lists(st.floats(0, 20, width=32), max_size=30))
def test_worst_first_is_a_permutation_in_falling_order_with_the_first_token_last(
    later: list[float],
) -> None:
    loss = np.array([NAN, *later], np.float32)
    order = worst_first(loss).tolist()
    assert sorted(order) == list(range(len(loss)))
    assert order[-1] == 0
    expected = sorted(range(1, len(loss)), key=lambda at: (-loss[at], at))
    assert order[:-1] == expected


@given(st.lists(st.integers(0, 16), min_size=1, max_size=20), st.integers(1, 4))
def test_means_are_exact_fractions_of_the_sum(sixteenths: list[int], width: int) -> None:
    """Losses in sixteenths of a nat, tokens of the same width, against exact fractions."""
    tokens = [b"x" * width] * (len(sixteenths) + 1)
    found = summary([NAN, *(n / 16 for n in sixteenths)], b"".join(tokens).decode(), tokens)
    total = Fraction(sum(sixteenths), 16)
    assert found.mean == pytest.approx(float(total / len(sixteenths)))
    assert found.nats_per_character == pytest.approx(float(total / (width * len(sixteenths))))


def test_recorded_losses_are_those_of_the_reference(
    tiny: Callable[..., Any], reference: Callable[..., Any]
) -> None:
    """A real session's mean, against a softmax in float64 of the model computed once more."""
    run = tiny("rotary")
    token_ids = [3, 1, 4, 1, 5, 9, 2, 6]
    logits, _weights = reference(run.model, token_ids)
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    probs = powers / powers.sum(axis=-1, keepdims=True)
    expected = [-math.log(probs[at, token]) for at, token in enumerate(token_ids[1:])]
    tokens = [b"ab"] * len(token_ids)
    found = LossSummary.of(run.read(token_ids).loss, token_spans("ab" * 8, tokens))
    assert found.mean == pytest.approx(sum(expected) / 7, abs=1e-4)
    assert found.bits_per_character == pytest.approx(sum(expected) / 14 / math.log(2), abs=1e-4)
