"""What may be seen to predict a token: against passes over what stands before it alone."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch

from engine.conditions import Conditions
from engine.loading import Loaded
from engine.reading import ModelInfo
from engine.run import Run
from engine.scope import Scope
from engine.tokenizers import Characters
from engine.windows.visibility import NUMBERS, Prediction
from engine.windows.visibility_pass import read_visibility

TOKENS = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8]
CAUSAL = Conditions()

Tiny = Callable[..., Run]


def prediction(run: Run, number: int, conditions: Conditions = CAUSAL) -> Prediction:
    """Of one token of TOKENS, read under the conditions."""
    run.set_conditions(conditions)
    found = read_visibility(run.model, run.read(TOKENS), conditions).prediction(number)
    assert found is not None
    return found


@pytest.mark.parametrize("positions", ["rotary", "learned", "alibi", "none"])
@pytest.mark.parametrize("number", NUMBERS)
def test_a_token_is_predicted_from_those_before_it_and_nothing_else(
    tiny: Tiny, positions: str, number: int
) -> None:
    """Its loss and the candidates are those of a model that was given nothing else."""
    run = tiny(positions)
    found = prediction(run, number)
    with torch.no_grad():
        logits = run.model(torch.tensor(TOKENS[: number - 1]))[-1].double().numpy()
    probs = np.exp(logits - logits.max())
    probs /= probs.sum()
    assert found.loss == pytest.approx(-np.log(probs[TOKENS[number - 1]]), abs=1e-5)
    for token_id, share in found.top:
        assert share == pytest.approx(probs[token_id], abs=1e-6)
    assert found.top[0][0] == probs.argmax()
    assert not found.is_apart
    assert found.seen.tolist() == [1] * (number - 1) + [0] * (len(TOKENS) - number + 1)


def test_without_the_mask_what_follows_makes_a_difference(tiny: Tiny) -> None:
    """By hand: the row out of twelve tokens, less the last row out of two."""
    run, no_mask = tiny("rotary"), Conditions(mask="none")
    found = prediction(run, 3, no_mask)
    with torch.no_grad():
        within = run.model(torch.tensor(TOKENS), conditions=no_mask)[1]
        alone = run.model(torch.tensor(TOKENS[:2]), conditions=no_mask)[-1]
    assert found.apart == pytest.approx(float((within - alone).abs().max()), rel=1e-4)
    assert found.is_apart
    assert found.seen.tolist() == [1] * len(TOKENS)


def test_windows_take_from_what_may_be_seen(tiny: Tiny) -> None:
    """Two layers, of which the first sees three positions by itself; then a mask of two."""
    run = tiny("rotary", windows=(3, 0))
    found = prediction(run, 8)
    assert found.seen[:8].tolist() == [0.5, 0.5, 0.5, 0.5, 1, 1, 1, 0]
    narrow = Conditions(mask="window", window=2, sinks=1)
    assert prediction(run, 8, narrow).seen[:8].tolist() == [0.5, 0, 0, 0, 0, 1, 1, 0]
    run.set_conditions(narrow)
    visibility = read_visibility(run.model, run.read(TOKENS), narrow)
    assert visibility.n_seen.tolist() == [0, 1, 2, *[3] * 9]


def test_in_training_every_position_predicts_at_once(tiny: Tiny) -> None:
    run = tiny("rotary")
    session = run.read(TOKENS)
    visibility = read_visibility(run.model, session, CAUSAL)
    np.testing.assert_array_equal(visibility.loss, session.loss)
    assert visibility.mean == pytest.approx(float(session.loss[1:].mean()))
    assert visibility.n_seen.tolist() == list(range(len(TOKENS)))
    assert [each.number for each in visibility.predictions] == [3, 8]
    assert [each.query for each in visibility.predictions] == [1, 6]


@pytest.mark.parametrize(("n_tokens", "numbers"), [(1, []), (2, [3]), (6, [3]), (7, [3, 8])])
def test_a_token_needs_all_that_stand_before_it(
    tiny: Tiny, n_tokens: int, numbers: list[int]
) -> None:
    """The one behind the last token has no loss yet."""
    run = tiny("rotary")
    visibility = read_visibility(run.model, run.read(TOKENS[:n_tokens]), CAUSAL)
    assert [each.number for each in visibility.predictions] == numbers
    for each in visibility.predictions:
        assert np.isnan(each.loss) == (each.number > n_tokens)
    assert np.isnan(visibility.mean) == (n_tokens == 1)


def test_another_models_reading_has_none(tiny: Tiny) -> None:
    scopes = []
    for seed in (1, 2):
        tokenizer = Characters("ab")
        model = tiny("rotary", seed=seed, vocab_size=tokenizer.vocab_size).model
        scopes.append(Scope(Loaded(model, tokenizer, ModelInfo("tiny", "", model.config, 1, 0.0))))
    reading = scopes[0].edit("abba")
    assert scopes[0].visibility(reading) is not None
    assert scopes[1].visibility(reading) is None
    assert scopes[0].visibility(replace(reading, conditions=Conditions(mask="none"))) is None
    assert scopes[0].visibility(scopes[0].edit("")) is None
