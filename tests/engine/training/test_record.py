"""What is kept of a training: true of the model, without effect on it, and safe on disk."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from engine.conditions import Conditions
from engine.config import ModelConfig
from engine.errors import TrainingError
from engine.tokenizers import Characters
from engine.training.data import Texts, TrainingData
from engine.training.record import (
    WATCHED_ROLES,
    HeldOutLoss,
    Moment,
    TrainingRecord,
    load_record,
    save_record,
)
from engine.training.settings import TrainingSettings
from engine.training.trainer import Trainer, new_model
from engine.training.watcher import Watcher

LETTERS = "abcdefghijklmnop"
RANDOM = "".join(np.random.default_rng(3).choice(list(LETTERS), 4000))
TEXTS = Texts((RANDOM,), (RANDOM[::-1][:800],))
TOKENIZER = Characters.train(TEXTS.training)
SETTINGS = TrainingSettings(
    steps=6, batch=8, seq_len=16, repeat_share=0.0, learning_rate=1e-2, warmup_steps=2,
    dtype="float32", evaluate_every=3,
)  # fmt: skip
HELD_OUT = HeldOutLoss(per_token=2.0, per_character=2.0)


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Sums are taken in the same order only on the same number of threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def _trainer(settings: TrainingSettings = SETTINGS, n_layer: int = 2) -> Trainer:
    config = ModelConfig(
        vocab_size=TOKENIZER.vocab_size,
        n_layer=n_layer,
        n_head=2,
        d_model=32,
        max_seq_len=40,
        positions="rotary",
    )
    data = TrainingData(TEXTS, TOKENIZER, settings.longest)
    return Trainer(new_model(config, settings.seed), data, settings)


def _watcher(trainer: Trainer) -> Watcher:
    return Watcher(trainer.model, trainer.data.held_out, TOKENIZER)


def _look(trainer: Trainer, watcher: Watcher | None = None) -> Moment:
    watcher = watcher or _watcher(trainer)
    return watcher.look(
        trainer.model, trainer.step, trainer.tokens, HELD_OUT, trainer.settings.conditions
    )


def test_the_watched_text_is_a_held_out_passage_and_the_same_again() -> None:
    trainer = _trainer()
    record = _watcher(trainer).new_record()
    half = len(record.token_ids) // 2
    passage = b"".join(record.tokens[:half]).decode()
    assert record.token_ids[:half] == record.token_ids[half:]
    assert passage in TEXTS.held_out[0]
    assert len(passage) == half == 16


def test_looking_does_not_change_a_training() -> None:
    watched, alone = _trainer(), _trainer()
    watcher = _watcher(watched)
    for _progress in watched.run():
        _look(watched, watcher)
    for _progress in alone.run():
        pass
    for one, other in zip(watched.model.parameters(), alone.model.parameters(), strict=True):
        assert torch.equal(one, other)
        assert one.requires_grad


def test_a_moment_tells_the_losses_of_the_passage_as_a_plain_pass_gives_them() -> None:
    trainer = _trainer()
    moment = _look(trainer)
    ids = torch.tensor(_watcher(trainer).token_ids)
    with torch.no_grad():
        logits = trainer.model(ids)
    nats = F.cross_entropy(logits[:-1], ids[1:], reduction="none")  # of tokens 1 to T - 1
    assert moment.repeat_loss[0] == pytest.approx(float(nats[:15].mean()), abs=1e-5)
    assert moment.repeat_loss[1] == pytest.approx(float(nats[16:].mean()), abs=1e-5)


def test_a_moment_s_roles_are_averages_of_its_own_patterns() -> None:
    trainer = _trainer()
    moment = _look(trainer)
    ids = _watcher(trainer).token_ids
    previous = np.diagonal(moment.patterns, offset=-1, axis1=2, axis2=3).mean(axis=-1)
    np.testing.assert_allclose(moment.roles[0], previous, atol=1e-5)
    rows = [
        moment.patterns[:, :, query, [key + 1 for key in range(query) if ids[key] == ids[query]]]
        for query in range(len(ids))
        if ids[query] in ids[:query]
    ]
    copied = np.mean([row.sum(axis=-1) for row in rows], axis=0)
    np.testing.assert_allclose(moment.roles[1], copied, atol=1e-5)
    assert WATCHED_ROLES == ("previous token", "induction")


def test_without_the_mask_a_model_learns_to_read_what_nobody_could_predict() -> None:
    """Letters drawn at random cannot be predicted, only read one place further on."""
    settings = replace(SETTINGS, steps=200, learning_rate=2e-2)
    honest, leaking = _trainer(settings, 1), _trainer(replace(settings, mask="none"), 1)
    for trainer in (honest, leaking):
        for _progress in trainer.run():
            pass
    chance = np.log(len(LETTERS))
    assert honest.held_out_loss().per_token > 0.95 * chance
    assert leaking.held_out_loss().per_token < 0.3 * chance
    above = np.triu_indices(32, k=1)
    assert not _look(honest).patterns[:, :, *above].any()
    assert _look(leaking).patterns[:, :, *above].max() > 0.5


def test_an_unknown_mask_is_refused() -> None:
    with pytest.raises(TrainingError, match="mask = 'half' is unknown; use one of causal, none"):
        replace(SETTINGS, mask="half")  # type: ignore[arg-type]


def _recorded() -> tuple[Trainer, TrainingRecord]:
    trainer = _trainer()
    watcher = _watcher(trainer)
    record = watcher.new_record().with_moment(_look(trainer, watcher))
    for progress in trainer.run():
        record = record.with_losses([progress.loss])
        if progress.held_out is not None:
            record = record.with_moment(_look(trainer, watcher))
    return trainer, record


def test_a_record_comes_back_from_disk(tmp_path: Path) -> None:
    _trainer, record = _recorded()
    save_record(tmp_path / "record", record)
    back = load_record(tmp_path / "record")
    assert (back.token_ids, back.tokens) == (record.token_ids, record.tokens)
    assert back.losses.tolist() == record.losses.tolist()
    assert [moment.step for moment in back.moments] == [0, 3, 6]
    for one, other in zip(back.moments, record.moments, strict=True):
        assert (one.tokens, one.sample) == (other.tokens, other.sample)
        assert (one.held_out, one.repeat_loss) == (other.held_out, other.repeat_loss)
        np.testing.assert_array_equal(one.roles, other.roles)
        np.testing.assert_allclose(one.patterns, other.patterns, atol=2**-11)


def test_an_empty_record_comes_back_empty(tmp_path: Path) -> None:
    save_record(tmp_path / "record", _watcher(_trainer()).new_record())
    back = load_record(tmp_path / "record")
    assert (len(back.losses), back.moments) == (0, ())


def test_a_damaged_record_is_refused_in_one_sentence(tmp_path: Path) -> None:
    _trainer, record = _recorded()
    path = tmp_path / "record"
    save_record(path, record)
    whole = path.read_bytes()
    for length in (0, 7, 8, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(TrainingError, match="is no record of a training, or damaged"):
            load_record(path)
    with pytest.raises(TrainingError, match="does not exist"):
        load_record(tmp_path / "nothing")


def test_a_training_that_goes_on_from_a_step_forgets_what_came_after() -> None:
    _trainer, record = _recorded()
    earlier = record.until(4)
    assert earlier.losses.tolist() == record.losses[:4].tolist()
    assert [moment.step for moment in earlier.moments] == [0, 3]


def test_conditions_follow_the_mask_that_is_trained_with() -> None:
    assert replace(SETTINGS, mask="none").conditions == Conditions(mask="none")
    assert SETTINGS.conditions == Conditions()
