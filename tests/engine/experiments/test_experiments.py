"""Small models side by side: what each reads and writes, and what a change of the text does."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from engine.checkpoints.folder import save_checkpoint
from engine.conditions import Conditions
from engine.config import ModelConfig, Positions
from engine.errors import (
    CancelledError,
    CheckpointError,
    ConfigError,
    ContextFullError,
    EngineError,
)
from engine.experiments.records import Change
from engine.experiments.small_models import SmallModels
from engine.model import Transformer
from engine.run import Run
from engine.tokenizers import Characters
from engine.training.trainer import new_model

TEXT = "the quick fox jumps"
SCHEMES: tuple[Positions, ...] = ("learned", "sinusoidal", "rotary", "alibi", "none")
CONTEXT = 32


def _model(positions: Positions, seed: int = 1, n_layer: int = 3) -> Transformer:
    config = ModelConfig(
        vocab_size=283,
        n_layer=n_layer,
        n_head=2,
        d_model=16,
        max_seq_len=CONTEXT,
        positions=positions,
    )
    model = new_model(config, seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(8 if parameter.dim() > 1 else 1)  # far from uniform
    return model.eval()


def _saved(folder: Path, model: Transformer, mask: str = "causal") -> Path:
    tokenizer = Characters("abcdefghijklmnopqrstuvwxyz ")
    facts = {"settings": {"seq_len": 16, "mask": mask}}
    save_checkpoint(folder, model, tokenizer, facts=facts)
    return folder


@pytest.fixture
def schemes(tmp_path: Path) -> SmallModels:
    """One model for each position scheme."""
    return SmallModels([_saved(tmp_path / name, _model(name)) for name in SCHEMES])


@pytest.fixture
def pair(tmp_path: Path) -> SmallModels:
    """Two models of which the second says that it was trained without the mask."""
    folders = [
        _saved(tmp_path / mask, _model("learned", seed), mask)
        for seed, mask in ((1, "causal"), (2, "none"))
    ]
    return SmallModels(folders)


def test_each_of_four_trials_has_the_loss_of_a_plain_pass_under_its_mask(pair: SmallModels) -> None:
    trials = pair.leak(TEXT)
    ids = torch.tensor(pair.tokenizer.encode(TEXT))
    for seed, trained in ((1, "causal"), (2, "none")):
        for mask in ("causal", "none"):
            with torch.no_grad():
                logits = _model("learned", seed)(ids, conditions=Conditions(mask=mask))  # type: ignore[arg-type]
            expected = F.cross_entropy(logits[:-1], ids[1:], reduction="none")
            trial = trials.trial(trained, mask)  # type: ignore[arg-type]
            np.testing.assert_allclose(trial.loss[1:], expected, atol=1e-5)
            assert trial.mean_loss == pytest.approx(float(expected.mean()), abs=1e-5)


def test_the_head_that_is_shown_is_the_one_that_looks_most_at_the_next_position(
    pair: SmallModels,
) -> None:
    trial = pair.leak(TEXT).trial("none", "none")
    model = _model("learned", 2)
    run = Run(model)
    run.set_conditions(Conditions(mask="none"))
    session = run.read(pair.tokenizer.encode(TEXT))
    weights = {
        (layer, head): np.diagonal(run.pattern(session, layer, head), offset=1).mean()
        for layer in range(3)
        for head in range(2)
    }
    assert trial.head == max(weights, key=lambda at: float(weights[at]))
    assert trial.answer_weight == pytest.approx(max(weights.values()), abs=1e-6)


def test_under_the_causal_mask_nothing_is_given_to_the_answer(pair: SmallModels) -> None:
    trials = pair.leak(TEXT)
    assert trials.trial("none", "causal").answer_weight == 0
    assert not np.triu(trials.trial("causal", "causal").pattern, k=1).any()


def test_a_continuation_stops_at_the_end_of_the_context(pair: SmallModels) -> None:
    full, nearly = ("ab" * CONTEXT)[:CONTEXT], ("ab" * CONTEXT)[: CONTEXT - 1]
    assert pair.leak(full).trial("causal", "causal").continuation == ""
    tokens = {pair.tokenizer.decode([token_id]) for token_id in range(pair.config.vocab_size)}
    assert pair.leak(nearly).trial("causal", "causal").continuation in tokens - {""}


def test_of_a_long_text_the_end_is_read(pair: SmallModels) -> None:
    trials = pair.leak("ab " * 20)
    assert b"".join(trials.tokens).decode() == ("ab " * 20)[-CONTEXT:]
    assert trials.n_left_out == 60 - CONTEXT


@pytest.mark.parametrize("text", ["", "a"], ids=["empty", "one token"])
def test_hardly_any_text_has_no_loss_and_no_answer(pair: SmallModels, text: str) -> None:
    trial = pair.leak(text).trial("none", "none")
    assert np.isnan(trial.mean_loss)
    assert trial.answer_weight == 0


def test_shuffling_keeps_the_tokens_and_the_last_one_in_its_place(schemes: SmallModels) -> None:
    readings = schemes.schemes(TEXT, Change(shuffle_seed=3), 0, 0)
    assert readings.changed_tokens != readings.tokens
    assert Counter(readings.changed_tokens) == Counter(readings.tokens)
    assert readings.changed_tokens[-1] == readings.tokens[-1]


def test_without_positions_the_first_layer_does_not_see_the_order_but_deeper_ones_do(
    schemes: SmallModels,
) -> None:
    """What stands behind fewer tokens mixes fewer of them, and that the second layer can see."""
    by_scheme = {
        each.positions: each
        for each in schemes.schemes(TEXT, Change(shuffle_seed=3), 0, 0).readings
    }
    moved = by_scheme["none"].moved
    assert moved[0] == 0
    assert moved[1] < 1e-6
    assert moved[2] > 1e-3
    for name in ("learned", "sinusoidal", "rotary", "alibi"):
        assert by_scheme[name].moved[1] > 1e-3, name


def test_a_scheme_is_read_as_a_run_of_its_model_reads_it(schemes: SmallModels) -> None:
    """The loss of every token, and the head that was asked for, of both texts."""
    readings = schemes.schemes(TEXT, Change(shuffle_seed=3), 2, 1)
    for each in readings.readings:
        for tokens, loss, pattern in (
            (readings.tokens, each.loss, each.pattern),
            (readings.changed_tokens, each.changed_loss, each.changed_pattern),
        ):
            run = Run(_model(each.positions))
            session = run.read(schemes.tokenizer.encode(b"".join(tokens).decode()))
            np.testing.assert_allclose(loss, session.loss, atol=1e-5)
            np.testing.assert_allclose(pattern, run.pattern(session, 2, 1), atol=1e-6)


@pytest.mark.parametrize(
    ("change", "passes"), [(Change(), 1), (Change(shuffle_seed=3), 2), (Change(shift=5), 2)]
)
def test_a_scheme_takes_one_pass_for_each_text(
    schemes: SmallModels, monkeypatch: pytest.MonkeyPatch, change: Change, passes: int
) -> None:
    """And the text as it is is not read again to be compared with itself."""
    made: list[Transformer] = []
    hidden = Transformer.hidden

    def counted(model: Transformer, *args: Any, **more: Any) -> torch.Tensor:
        made.append(model)
        return hidden(model, *args, **more)

    monkeypatch.setattr(Transformer, "hidden", counted)
    schemes.schemes(TEXT, change, 0, 0)
    assert list(Counter(map(id, made)).values()) == [passes] * len(SCHEMES)


def test_a_model_of_one_layer_without_positions_answers_the_same_in_any_order(
    tmp_path: Path,
) -> None:
    models = SmallModels([_saved(tmp_path / "one", _model("none", n_layer=1))])
    for seed in range(1, 6):
        (reading,) = models.schemes(TEXT, Change(shuffle_seed=seed), 0, 0).readings
        assert reading.probability_change < 1e-6


def test_moving_the_text_changes_nothing_where_only_distances_count(schemes: SmallModels) -> None:
    readings = schemes.schemes(TEXT, Change(shift=9), 1, 1)
    for each in readings.readings:
        is_relative = each.positions in {"rotary", "alibi", "none"}
        difference = np.abs(each.changed_pattern - each.pattern).max()
        assert (difference < 1e-4) == is_relative, each.positions
        assert (each.probability_change < 1e-4) == is_relative, each.positions
    assert readings.changed_tokens == readings.tokens


def test_a_moved_text_has_the_learned_vectors_of_where_it_stands() -> None:
    """The same as a model whose table of positions begins further on."""
    model, further = _model("learned"), _model("learned")
    assert further.position_embedding is not None
    with torch.no_grad():
        further.position_embedding.weight[:-5] = model.position_embedding.weight[5:]  # type: ignore[union-attr]
        ids = torch.arange(10)
        moved = model(ids, conditions=Conditions(first_position=5))
        torch.testing.assert_close(moved, further(ids))


def test_a_moved_text_is_read_step_by_step_as_in_one_pass() -> None:
    for positions in SCHEMES:
        conditions = Conditions(first_position=4)
        whole, steps = Run(_model(positions)), Run(_model(positions))
        whole.set_conditions(conditions)
        steps.set_conditions(conditions)
        ids = list(range(12))
        whole.read(ids)
        for length in range(1, 13):
            steps.read(ids[:length])
        np.testing.assert_allclose(
            steps.logits(steps.session, 11), whole.logits(whole.session, 11), atol=1e-4
        )


def test_a_text_is_not_moved_beyond_the_context(schemes: SmallModels) -> None:
    with pytest.raises(EngineError, match=r"cannot begin at position 32: .* 32 positions"):
        schemes.schemes(TEXT, Change(shift=CONTEXT), 0, 0)
    readings = schemes.schemes(TEXT, Change(shift=CONTEXT - 5), 0, 0)
    assert (len(readings.tokens), readings.n_left_out) == (5, len(TEXT) - 5)
    with pytest.raises(ContextFullError, match="10 tokens from position 30 on do not fit"):
        _model("rotary")(torch.arange(10), conditions=Conditions(first_position=30))
    with pytest.raises(ConfigError, match="cannot begin at position -1"):
        Conditions(first_position=-1)


def test_an_experiment_can_be_given_up(pair: SmallModels, schemes: SmallModels) -> None:
    with pytest.raises(CancelledError):
        pair.leak(TEXT, lambda: True)
    with pytest.raises(CancelledError):
        schemes.schemes(TEXT, Change(), 0, 0, lambda: True)


def test_an_empty_text_is_read_by_every_scheme(schemes: SmallModels) -> None:
    for reading in schemes.schemes("", Change(shuffle_seed=1), 0, 0).readings:
        assert len(reading.loss) == len(reading.moved) == 0
        assert reading.probability_change == 0


def test_models_of_different_sizes_are_no_experiment(tmp_path: Path) -> None:
    folders = [
        _saved(tmp_path / "three", _model("none")),
        _saved(tmp_path / "two", _model("none", n_layer=2)),
    ]
    with pytest.raises(EngineError, match="two does not belong to this experiment"):
        SmallModels(folders)
    with pytest.raises(CheckpointError):
        SmallModels([tmp_path / "nothing"])


def test_a_text_as_it_is_differs_in_nothing_from_itself(schemes: SmallModels) -> None:
    readings = schemes.schemes(TEXT, Change(), 2, 1)
    assert readings.change.is_none
    assert readings.trained_length == 16
    for each in readings.readings:
        assert not each.moved.any()
        assert each.probability_change == 0
        assert replace(readings.change, shift=1).is_none is False
