"""A model with a fixed window: counted again here in dictionaries, by the formula."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

import resources
from engine.errors import CancelledError, ConfigError, TrainingError
from engine.tokenizers import Characters
from engine.windows.fixed_window import FixedWindow
from engine.windows.ngram import DISCOUNT, NGram, longest_history

V = 5
RANDOM = np.random.default_rng(4)
TEXTS = [np.minimum(RANDOM.geometric(0.4, n), V) - 1 for n in (200, 90, 3)]
TEXT = [0, 1, 0, 0, 2, 1, 0, 3, 4, 4, 1, 0, 0]


def by_dictionaries(texts: Iterable[Iterable[int]], n_previous: int) -> object:
    """P(token | history) for any history, by the formula in the module's docstring."""
    counts: list[Counter[tuple[int, ...]]] = [Counter() for _ in range(n_previous + 1)]
    for text in texts:
        ids = tuple(map(int, text))
        for at in range(len(ids) - n_previous):
            counts[n_previous][ids[at : at + n_previous + 1]] += 1
    for n_history in range(n_previous - 1, -1, -1):
        for gram in counts[n_history + 1]:
            counts[n_history][gram[1:]] += 1
    after: list[dict[tuple[int, ...], list[int]]] = []
    for level in counts:
        following: dict[tuple[int, ...], list[int]] = defaultdict(list)
        for gram, count in level.items():
            following[gram[:-1]].append(count)
        after.append(following)

    def probability(token: int, history: tuple[int, ...]) -> float:
        lower = probability(token, history[1:]) if history else 1 / V
        known = after[len(history)].get(history)
        if known is None:
            return lower
        count = counts[len(history)][(*history, token)]
        return (max(count - DISCOUNT, 0) + DISCOUNT * len(known) * lower) / sum(known)

    return probability


@pytest.mark.parametrize("n_previous", [1, 2, 3])
def test_probabilities_are_those_of_the_formula(n_previous: int) -> None:
    model = NGram(TEXTS, V, n_previous)
    probability = by_dictionaries(TEXTS, n_previous)
    wanted = [
        probability(token, tuple(TEXT[max(0, at - n_previous) : at]))  # type: ignore[operator]
        for at, token in enumerate(TEXT)
    ]
    np.testing.assert_allclose(model.probabilities(TEXT), wanted, rtol=1e-12)
    losses = model.losses(TEXT)
    assert np.isnan(losses[0])
    np.testing.assert_allclose(losses[1:], -np.log(wanted[1:]), rtol=1e-6)


@pytest.mark.parametrize("history", [(0, 1, 0), (4, 4, 4), (2,), ()])
def test_what_may_follow_a_history_sums_to_1(history: tuple[int, ...]) -> None:
    model = NGram(TEXTS, V, 3)
    total = sum(model.probabilities([*history, token])[-1] for token in range(V))
    assert total == pytest.approx(1)


def test_what_stands_before_the_window_changes_nothing() -> None:
    """And what stands at its edge does."""
    model = NGram(TEXTS, V, 3)
    plain = model.probabilities(TEXT)[-1]
    before, edge = list(TEXT), list(TEXT)
    before[-5], edge[-4] = 3, 3
    assert model.probabilities(before)[-1] == plain
    assert model.probabilities(edge)[-1] != plain


def test_no_n_gram_reaches_from_one_text_into_the_next() -> None:
    """3 follows 2 nowhere but across the border."""
    apart = NGram([np.array([1, 2] * 9), np.array([3, 1] * 9)], V, 1)
    joined = NGram([np.array([1, 2] * 9 + [3, 1] * 9)], V, 1)
    assert joined.probabilities([2, 3])[1] > 1.5 * apart.probabilities([2, 3])[1]


@pytest.mark.parametrize(("vocab_size", "longest"), [(2, 5), (334, 5), (3072, 4), (50257, 3)])
def test_a_history_and_its_next_token_fit_into_63_bits(vocab_size: int, longest: int) -> None:
    found = longest_history(vocab_size)
    assert found == longest
    assert vocab_size ** (found + 1) <= 2**63


def test_a_history_that_cannot_be_counted_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"a history of 5 tokens .*; use 1 to 4\."):
        NGram([], 3072, 5)


def test_without_texts_all_tokens_are_equally_probable() -> None:
    assert NGram([], V, 2).probabilities(TEXT).tolist() == [1 / V] * len(TEXT)
    assert NGram(TEXTS, V, 2).probabilities([]).tolist() == []


# The plays


class Slow(Characters):
    """Remembers what it was asked to cut."""

    def encode(self, text: str) -> list[int]:
        """Cut, and remember."""
        self.asked = [*getattr(self, "asked", []), text]
        return super().encode(text)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three plays, the last of which alone has a z."""
    for name, text in (("a", "to be or not to be " * 20), ("b", "the bear "), ("c", "zebra " * 9)):
        (tmp_path / f"{name}.txt").write_text(text)
    return tmp_path


def test_texts_kept_out_are_judged_and_not_counted(folder: Path) -> None:
    tokenizer = Characters("abehnortz ")
    fixed = FixedWindow(folder, ["c"], tokenizer)
    read = fixed.read(tokenizer.encode("to ze"), 2)
    assert (read.n_texts, read.n_counted, read.n_previous) == (2, 19 * 20 + 9, 2)
    model = NGram(
        [np.array(tokenizer.encode(text)) for text in ("to be or not to be " * 20, "the bear ")],
        tokenizer.vocab_size,
        2,
    )
    np.testing.assert_array_equal(read.loss, model.losses(tokenizer.encode("to ze")))
    assert read.held_out_mean == pytest.approx(
        float(model.losses(tokenizer.encode("zebra " * 9))[1:].mean()), rel=1e-6
    )
    assert read.mean == pytest.approx(float(read.loss[1:].mean()))


def test_a_window_wider_than_can_be_counted_is_the_widest_that_can(folder: Path) -> None:
    fixed = FixedWindow(folder, ["c"], Characters("abehnortz "))
    assert fixed.read([1, 2], 64).n_previous == longest_history(Characters("abehnortz ").vocab_size)


def test_cutting_goes_on_where_it_was_given_up(folder: Path) -> None:
    tokenizer, told = Slow("abehnortz "), list[float]()
    fixed = FixedWindow(folder, ["c"], tokenizer)
    with pytest.raises(CancelledError):
        fixed.read([1, 2], 2, lambda: len(told) > 0, told.append)
    fixed.read([1, 2], 2, told=told.append)
    fixed.forget_counts()
    fixed.read([1, 2], 2, told=told.append)
    assert len(tokenizer.asked) == 3
    assert told == [1 / 3, 2 / 3, 1]


def test_a_folder_without_plays_is_told_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=r"holds no \.txt file"):
        FixedWindow(tmp_path, [], Characters("ab"))


def test_the_bundled_plays_are_there_and_the_held_out_ones_among_them() -> None:
    folder, held_out = resources.plays()
    assert held_out == ("macbeth", "twelfth_night")
    assert len(list(folder.glob("*.txt"))) == 37
    assert all((folder / f"{name}.txt").is_file() for name in held_out)
