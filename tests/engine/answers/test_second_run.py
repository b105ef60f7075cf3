"""A second run beside the first: each is what its text gives by itself, the rest subtraction."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from engine.answers.alignment import ABSENT
from engine.answers.comparison import Comparison, Wanted, seen_tokens
from engine.answers.second_run import LONGEST, SecondRun
from engine.checkpoints.folder import save_checkpoint
from engine.conditions import Conditions
from engine.errors import CancelledError, CheckpointError, EngineError
from engine.loading import Loaded, load
from engine.model import Transformer
from engine.reading import Look, Reading
from engine.sampling import Sampling
from engine.scope import Scope
from engine.tokenizers import Characters

LETTERS = "abcdefghij "
NO_MASK = Conditions(mask="none")
Reference = Callable[..., tuple[np.ndarray, np.ndarray]]


@pytest.fixture(scope="module")
def make_folder(
    tiny: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Path]:
    """`make_folder("name", letters, seed=1)` is the folder of a random character model."""

    def make(name: str, letters: str = LETTERS, **sizes: Any) -> Path:
        tokenizer = Characters(letters)
        model = tiny("rotary", **{"vocab_size": tokenizer.vocab_size, **sizes}).model
        folder = tmp_path_factory.mktemp("models") / name
        save_checkpoint(folder, model, tokenizer)
        return folder

    return make


@pytest.fixture(scope="module")
def loaded(make_folder: Callable[..., Path]) -> Loaded:
    """The model on screen: two layers of four heads, 32 positions."""
    return load(make_folder("first"))


@pytest.fixture
def scope(loaded: Loaded) -> Scope:
    """It, on no text."""
    return Scope(loaded)


@pytest.fixture
def second() -> SecondRun:
    """The other run."""
    return SecondRun()


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows each pass of any model computes."""
    counts: list[int] = []
    hidden = Transformer.hidden

    def counting(model: Transformer, token_ids: torch.Tensor, *more: Any) -> torch.Tensor:
        counts.append(len(token_ids))
        return hidden(model, token_ids, *more)

    monkeypatch.setattr(Transformer, "hidden", counting)
    return counts


def compared(second: SecondRun, scope: Scope, reading: Reading, **wanted: Any) -> Comparison:
    """What must be there."""
    comparison = second.compare(scope, reading, Wanted(**wanted))
    assert comparison is not None
    return comparison


# Two texts


def test_each_square_is_that_texts_own_and_the_difference_is_b_minus_a(
    scope: Scope, loaded: Loaded, second: SecondRun, reference: Reference
) -> None:
    """Every cell against the transformer in numpy, told from the slots by loops."""
    scope.look(Look(1, 2))
    text_a, text_b = "bad cab fed", "bad egg cab"
    comparison = compared(second, scope, scope.edit(text_a), text=text_b, way="token")
    weights = []
    for text in (text_a, text_b):
        ids = loaded.tokenizer.encode(text)
        weights.append(reference(loaded.model, ids)[1][1, 2])
    a, b = comparison.alignment.a, comparison.alignment.b
    assert len(comparison) == len(text_a) + len(text_b) - len(comparison.alignment.pairs)
    n_there = 0
    for row in range(len(comparison)):
        for column in range(len(comparison)):
            cells = []
            for own, slots, shown in (
                (weights[0], a, comparison.weights_a),
                (weights[1], b, comparison.weights_b),
            ):
                at = slots[row], slots[column]
                cell = own[at] if ABSENT not in at else 0.0
                assert shown[row, column] == pytest.approx(cell, abs=1e-5)
                cells.append(cell)
            is_there = ABSENT not in (a[row], a[column], b[row], b[column])
            is_there &= bool(a[column] <= a[row])
            assert comparison.exists[row, column] == is_there
            wanted = cells[1] - cells[0] if is_there else 0.0
            assert comparison.difference[row, column] == pytest.approx(wanted, abs=2e-5)
            n_there += is_there
    assert 0 < n_there == comparison.exists.sum()


def test_the_same_text_twice_differs_in_nothing(scope: Scope, second: SecondRun) -> None:
    """Bit for bit, as typed and as followed."""
    reading = scope.edit("a bad cab")
    for wanted in ({}, {"text": "a bad cab"}):
        comparison = compared(second, scope, reading, **wanted)
        assert comparison.alignment.both.all()
        assert (comparison.difference == 0).all()
        assert comparison.exists.sum() == 9 * 10 / 2
        tokens = comparison.next_tokens
        assert tokens is not None
        assert (tokens.difference == 0).all()
        assert comparison.losses[0] == comparison.losses[1]


def test_the_words_in_two_orders_are_compared_position_by_position(
    scope: Scope, second: SecondRun
) -> None:
    """By itself, as no pair is lost; by token when wanted."""
    reading = scope.edit("a b c")
    comparison = compared(second, scope, reading, text="c b a")
    assert comparison.way == "position"
    assert comparison.alignment.pairs.tolist() == [[at, at] for at in range(5)]
    comparison = compared(second, scope, reading, text="c b a", way="token")
    assert comparison.way == "token"
    assert comparison.alignment.pairs.tolist() == [[1, 1], [2, 2], [3, 3]]


def test_the_model_is_shared_and_the_first_run_is_left_as_it_was(
    scope: Scope, second: SecondRun
) -> None:
    """Another text and mask beside it; then the first goes on as if alone."""
    reading = scope.edit("a bad cab")
    comparison = compared(second, scope, reading, text="fed", conditions=NO_MASK)
    assert comparison.b.info is reading.info
    assert scope.look(Look()).session.n_shared(reading.session) == 9
    grown = scope.edit("a bad cabi")
    assert grown.computed == (9, 10)
    assert grown.conditions == Conditions()


def test_what_the_first_run_has_read_is_not_read_again(
    scope: Scope, second: SecondRun, passes: list[int]
) -> None:
    """Neither the text nor the beginning of another one; and each goes its own way from there."""
    reading = scope.edit("bad cab fed")
    passes.clear()
    assert (compared(second, scope, reading).difference == 0).all()
    assert passes == []
    compared(second, scope, reading, text="bad cab a bag")
    assert passes == [len("a bag")]
    again = scope.edit("bad cab fee")
    assert passes == [len("a bag"), 1]
    fresh = Scope(Loaded(scope._run.model, scope.tokenizer, scope.info)).edit("bad cab fee")
    assert again.focus.weights == pytest.approx(fresh.focus.weights, abs=1e-6)
    assert again.session.loss[1:] == pytest.approx(fresh.session.loss[1:], abs=1e-5)


@pytest.mark.parametrize("wanted", [{}, {"text": "bad egg cab"}, {"conditions": NO_MASK}])
def test_looking_elsewhere_shows_the_second_run_once_more_and_reads_nothing(
    scope: Scope, second: SecondRun, monkeypatch: pytest.MonkeyPatch, wanted: dict[str, Any]
) -> None:
    """One reading of B for each place, as a comparison that was just begun has it."""
    scope.edit("bad cab fed")
    compared(second, scope, scope.look(Look(0, 1, 9)), **wanted)
    made: list[int] = []
    reading_of = Scope._reading_of
    monkeypatch.setattr(
        Scope, "_reading_of", lambda self, *more: made.append(1) or reading_of(self, *more)
    )
    for look in (Look(1, 2, 4), Look(1, 3, 4)):
        reading = scope.look(look)
        made.clear()
        comparison = compared(second, scope, reading, **wanted)
        assert made == [1]
        fresh = compared(SecondRun(), scope, reading, **wanted)
        np.testing.assert_array_equal(comparison.weights_b, fresh.weights_b)
        np.testing.assert_array_equal(comparison.next_tokens.prob_b, fresh.next_tokens.prob_b)
    scope.edit("bad cab fad")
    again = compared(second, scope, scope.look(Look(1, 3, 4)), **wanted)
    assert again.a.document.text == "bad cab fad"
    assert again.b.document.text == wanted.get("text", "bad cab fad")


def test_another_text_under_another_mask_takes_one_pass(
    scope: Scope, second: SecondRun, passes: list[int]
) -> None:
    """The text that was there before is not read under the new mask first."""
    reading = scope.edit("bad cab fed")
    compared(second, scope, reading)
    passes.clear()
    compared(second, scope, reading, text="a bag", conditions=Conditions(mask="none"))
    assert passes == [len("a bag")]


def test_a_letter_more_costs_the_second_run_one_row(scope: Scope, second: SecondRun) -> None:
    reading = scope.edit("a bad cab")
    compared(second, scope, reading, text="fed a bee")
    comparison = compared(second, scope, reading, text="fed a beef")
    assert comparison.b.computed == (9, 10)
    again = compared(second, scope, scope.edit("a bad cabi"), text="fed a beef")
    assert again.b.stats == comparison.b.stats


def test_generated_tokens_are_followed_as_they_are(scope: Scope, second: SecondRun) -> None:
    """Bytes that spell no text among them, and also what was shown before."""
    scope.edit("a bad cab")
    for token_id in (200, 255, 11):
        scope.choose(len(scope.look(Look()).document), token_id)
    for reading in (scope.go_to(11), scope.go_to(5), scope.go_to(12)):
        comparison = compared(second, scope, reading)
        assert comparison.tokens_a == comparison.tokens_b == seen_tokens(reading)
        assert comparison.difference == pytest.approx(0, abs=1e-6)  # one pass, and several
        assert len(comparison) == reading.n_tokens


def test_what_has_fallen_out_of_the_context_is_not_compared(
    scope: Scope, second: SecondRun
) -> None:
    """Positions count from the first token that is seen, in both."""
    scope.edit("abcdefghij" * 3 + "abcd")
    for reading in (scope.go_to(34), scope.go_to(33)):
        comparison = compared(second, scope, reading)
        assert reading.n_fallen == 2
        assert comparison.tokens_a == comparison.tokens_b == seen_tokens(reading)
        assert (comparison.difference == 0).all()


# Two conditions


def test_without_the_mask_the_masked_half_differs_by_all_of_its_weight(
    scope: Scope, loaded: Loaded, second: SecondRun, reference: Reference
) -> None:
    """The first run's weights there are exactly 0, and so count."""
    text = "a bad cab"
    comparison = compared(second, scope, scope.edit(text), conditions=NO_MASK)
    ids = loaded.tokenizer.encode(text)
    masked = reference(loaded.model, ids)[1][0, 0]
    free = reference(loaded.model, ids, NO_MASK)[1][0, 0]
    assert comparison.exists.all()
    assert comparison.difference == pytest.approx(free - masked, abs=1e-5)
    upper = np.triu_indices(len(text), 1)
    assert (comparison.difference[upper] == comparison.weights_b[upper]).all()
    assert not comparison.visible_a[upper].any()


def test_conditions_go_back_to_those_of_the_first_run(scope: Scope, second: SecondRun) -> None:
    reading = scope.edit("a bad cab")
    compared(second, scope, reading, conditions=NO_MASK)
    assert (compared(second, scope, reading).difference == 0).all()


def test_what_the_mask_hides_from_both_has_no_difference(scope: Scope, second: SecondRun) -> None:
    """Two windows: only what one of them lets through can differ."""
    scope.set_conditions(Conditions(mask="window", window=2))
    reading = scope.edit("a bad cab")
    wider = Conditions(mask="window", window=4)
    comparison = compared(second, scope, reading, conditions=wider)
    place = np.arange(9)
    apart = place[:, None] - place
    assert (comparison.exists == ((apart >= 0) & (apart < 4))).all()


# Two models


def test_another_model_is_opened_and_looks_at_the_nearest_head(
    scope: Scope, second: SecondRun, make_folder: Callable[..., Path], reference: Reference
) -> None:
    """One layer of two heads, of the same letters."""
    path = make_folder("smaller", n_layer=1, n_head=2, seed=4)
    scope.look(Look(1, 3))
    comparison = compared(second, scope, scope.edit("a bad cab"), path=path)
    focus = comparison.b.focus
    assert (focus.layer, focus.head) == (0, 1)
    other = load(path)
    weights = reference(other.model, other.tokenizer.encode("a bad cab"))[1][0, 1]
    assert comparison.weights_b == pytest.approx(weights, abs=1e-5)
    assert comparison.b.info.name == "smaller"


def test_models_of_two_vocabularies_are_aligned_by_their_characters(
    scope: Scope, second: SecondRun, make_folder: Callable[..., Path]
) -> None:
    """The second knows no 'c', which takes it a byte, so that ids differ; characters do not."""
    path = make_folder("others", "jihgfedba ", seed=2)
    reading = scope.edit("a bad cab")
    comparison = compared(second, scope, reading, path=path, way="token")
    assert comparison.alignment.pairs.tolist() == [[at, at] for at in range(9)]
    assert comparison.tokens_b == comparison.tokens_a
    assert (comparison.a.session.token_ids != comparison.b.session.token_ids).any()
    tokens = comparison.next_tokens
    assert tokens is not None
    assert reading.stages is not None
    assert comparison.b.stages is not None
    for name, id_a, id_b, p_a, p_b in zip(
        tokens.tokens, tokens.id_a, tokens.id_b, tokens.prob_a, tokens.prob_b, strict=True
    ):
        if id_a != ABSENT:
            assert name == reading.info.vocabulary[id_a]
            assert p_a == reading.stages.plain_probs[id_a]
        if id_b != ABSENT:
            assert name == comparison.b.info.vocabulary[id_b]
            assert p_b == comparison.b.stages.plain_probs[id_b]
    assert np.nansum(tokens.prob_a) == pytest.approx(1)
    assert np.nansum(tokens.prob_b) == pytest.approx(1)
    (c,) = np.flatnonzero(tokens.id_a == scope.info.vocabulary.index(b"c"))
    assert tokens.id_b[c] == comparison.b.info.vocabulary.index(b"c")
    assert tokens.difference[c] == tokens.prob_b[c] - tokens.prob_a[c]
    assert len(tokens.tokens) == sum(ids.max() + 1 for ids in (tokens.id_a, tokens.id_b)) - (
        np.count_nonzero((tokens.id_a != ABSENT) & (tokens.id_b != ABSENT))
    )


def test_the_path_of_the_open_model_opens_nothing(
    scope: Scope, second: SecondRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.answers.second_run.load", None)
    comparison = compared(second, scope, scope.edit("bad"), path=Path(scope.info.path))
    assert comparison.b.info is scope.info


def test_another_model_is_read_once_and_given_back(
    scope: Scope, second: SecondRun, make_folder: Callable[..., Path], monkeypatch: Any
) -> None:
    loads: list[Path] = []

    def counting(path: Path, *more: Any) -> Loaded:
        loads.append(path)
        return load(path, *more)

    monkeypatch.setattr("engine.answers.second_run.load", counting)
    path = make_folder("other", seed=9)
    reading = scope.edit("bad")
    for text in ("a", "ab", None):
        compared(second, scope, reading, path=path, text=text)
    assert loads == [path]
    second.forget()
    compared(second, scope, reading, path=path)
    assert loads == [path] * 2


def test_a_model_that_was_closed_takes_its_second_run_with_it(
    scope: Scope, second: SecondRun, make_folder: Callable[..., Path]
) -> None:
    """The next one is compared with itself; a reading of the old one with nothing."""
    old = scope.edit("bad")
    compared(second, scope, old)
    fresh = Scope(load(make_folder("newer", seed=7)))
    assert second.compare(fresh, old, Wanted()) is None
    comparison = compared(second, fresh, fresh.edit("bad"))
    assert comparison.b.info is fresh.info
    assert (comparison.difference == 0).all()


# What follows


def test_the_prediction_beside_is_that_of_the_position_that_belongs_to_the_selected_one(
    scope: Scope, loaded: Loaded, second: SecondRun, reference: Reference
) -> None:
    """'d' at 4 in one text, at 8 in the other; the probabilities are softmaxes done here."""
    scope.edit("a bad cab")
    reading = scope.look(Look(query=4))
    comparison = compared(second, scope, reading, text="egg a bad", way="token")
    assert comparison.position_b == 8
    tokens = comparison.next_tokens
    assert tokens is not None
    for text, at, probs, ids in (
        ("a bad cab", 4, tokens.prob_a, tokens.id_a),
        ("egg a bad", 8, tokens.prob_b, tokens.id_b),
    ):
        logits = reference(loaded.model, loaded.tokenizer.encode(text))[0][at]
        wanted = np.exp(logits) / np.exp(logits).sum()
        assert probs == pytest.approx(wanted[ids], abs=1e-5)
    largest = np.maximum(tokens.prob_a, tokens.prob_b)
    assert (np.diff(largest) <= 0).all()
    assert tokens.difference == pytest.approx(tokens.prob_b - tokens.prob_a)


def test_a_position_without_a_partner_has_no_prediction_beside_it(
    scope: Scope, second: SecondRun
) -> None:
    """But the end of the text always has: that of the other."""
    scope.edit("a bad cab")
    reading = scope.look(Look(query=2))
    comparison = compared(second, scope, reading, text="egg", way="token")
    assert comparison.position_b is None
    assert comparison.next_tokens is None
    comparison = compared(second, scope, scope.look(Look()), text="egg", way="token")
    assert comparison.position_b == 2
    assert comparison.next_tokens is not None


def test_sampling_changes_nothing_that_is_compared(scope: Scope, second: SecondRun) -> None:
    """Plain softmaxes; and the second run samples as the first."""
    scope.edit("bad")
    reading = scope.set_sampling(Sampling(temperature=2.0, top_k=1))
    comparison = compared(second, scope, reading, text="cab")
    assert comparison.b.sampling == reading.sampling
    tokens = comparison.next_tokens
    assert tokens is not None
    assert tokens.prob_b.sum() == pytest.approx(1)
    assert np.count_nonzero(tokens.prob_b) > 1


def test_losses_are_those_of_each_text(
    scope: Scope, loaded: Loaded, second: SecondRun, reference: Reference
) -> None:
    """Means of −ln p, by hand."""
    comparison = compared(second, scope, scope.edit("a bad cab"), text="fed")
    for text, summary in zip(("a bad cab", "fed"), comparison.losses, strict=True):
        ids = loaded.tokenizer.encode(text)
        logits = reference(loaded.model, ids)[0]
        logs = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
        nats = [-logs[at - 1, ids[at]] for at in range(1, len(ids))]
        assert summary.mean == pytest.approx(np.mean(nats), abs=1e-5)


# What can go wrong


@pytest.mark.parametrize(("a", "b"), [("", ""), ("", "bad"), ("bad", ""), ("b", "b")])
def test_empty_texts_and_single_tokens_can_be_compared(
    scope: Scope, second: SecondRun, a: str, b: str
) -> None:
    comparison = compared(second, scope, scope.edit(a), text=b)
    assert comparison.difference.shape == (max(len(a), len(b)),) * 2
    assert (comparison.next_tokens is None) == (not a or not b)
    assert comparison.exists.sum() == min(len(a), len(b))


def test_texts_that_are_too_long_are_refused_in_one_sentence(
    tiny: Callable[..., Any], second: SecondRun, loaded: Loaded
) -> None:
    """Each by its name."""
    model = tiny(
        "rotary",
        vocab_size=loaded.tokenizer.vocab_size,
        n_layer=1,
        n_head=1,
        n_kv_head=1,
        max_seq_len=LONGEST + 8,
    ).model
    info = replace(loaded.info, config=model.config)
    scope = Scope(Loaded(model, loaded.tokenizer, info))
    reading = scope.edit("ab")
    wanted = Wanted(text="a" * (LONGEST + 1))
    with pytest.raises(EngineError, match=r"^Text B has 1,025 tokens; shorten it to 1,024"):
        second.compare(scope, reading, wanted)
    assert second.compare(scope, reading, Wanted(text="a")) is not None
    with pytest.raises(EngineError, match=r"^Text A has 1,025 tokens"):
        second.compare(scope, scope.edit("b" * (LONGEST + 1)), Wanted(text="a"))


def test_a_model_that_cannot_be_opened_is_told_and_the_shared_one_still_works(
    scope: Scope, second: SecondRun, tmp_path: Path
) -> None:
    reading = scope.edit("bad")
    with pytest.raises(CheckpointError, match="does not exist"):
        second.compare(scope, reading, Wanted(path=tmp_path / "none"))
    assert second.compare(scope, reading, Wanted()) is not None


def test_a_second_pass_that_is_given_up_leaves_the_next_one_right(
    scope: Scope, second: SecondRun, reference: Reference, loaded: Loaded
) -> None:
    """Under other conditions, so that they are set again."""
    reading = scope.edit("a bad cab")
    compared(second, scope, reading, text="fed a bee")
    for wanted in (Wanted(text="cab"), Wanted(text="fed a bee", conditions=NO_MASK)):
        with pytest.raises(CancelledError):
            second.compare(scope, reading, wanted, lambda: True)
    comparison = compared(second, scope, reading, text="fed a bee", conditions=NO_MASK)
    weights = reference(loaded.model, loaded.tokenizer.encode("fed a bee"), NO_MASK)[1][0, 0]
    here = comparison.alignment.b != ABSENT
    assert comparison.weights_b[np.ix_(here, here)] == pytest.approx(weights, abs=1e-5)
