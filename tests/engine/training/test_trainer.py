"""The trainer learns, repeats itself to the bit, and can be taken up again."""

import dataclasses
import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from engine.config import ModelConfig
from engine.errors import CheckpointError, TrainingError
from engine.model import Transformer
from engine.tokenizers import Characters
from engine.training.data import Texts, TrainingData
from engine.training.settings import TrainingSettings
from engine.training.trainer import Trainer, new_model

VERSE = "Full fathom five thy father lies;\nOf his bones are coral made;\n"
TEXTS = Texts((VERSE * 40,), (VERSE * 8,))
TOKENIZER = Characters.train(TEXTS.training)
SETTINGS = TrainingSettings(
    steps=12,
    batch=4,
    seq_len=16,
    long_seq_len=32,
    learning_rate=1e-2,
    warmup_steps=3,
    dtype="float32",
    evaluate_every=6,
)


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Sums are taken in the same order only on the same number of threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def _trainer(settings: TrainingSettings = SETTINGS, texts: Texts = TEXTS) -> Trainer:
    config = ModelConfig(
        vocab_size=TOKENIZER.vocab_size, n_layer=1, n_head=2, d_model=16, max_seq_len=32
    )
    data = TrainingData(texts, TOKENIZER, settings.longest)
    return Trainer(new_model(config, settings.seed), data, settings)


def _run(trainer: Trainer, steps: int | None = None) -> list[float]:
    """The losses of that many steps, or of all that are left."""
    losses = []
    for progress in trainer.run():
        losses.append(progress.loss)
        if len(losses) == steps:
            break
    return losses


def _same_weights(one: Transformer, other: Transformer) -> bool:
    pairs = zip(one.state_dict().values(), other.state_dict().values(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


def test_the_loss_starts_at_guessing_and_falls() -> None:
    """The loss starts at guessing and falls."""
    trainer = _trainer(dataclasses.replace(SETTINGS, steps=60))
    before = trainer.held_out_loss().per_token
    losses = _run(trainer)
    assert losses[0] == pytest.approx(math.log(TOKENIZER.vocab_size), rel=0.02)
    assert before == pytest.approx(math.log(TOKENIZER.vocab_size), rel=0.02)
    assert losses[-1] < losses[0] / 2
    assert trainer.held_out_loss().per_token < before / 2


def test_two_trainings_with_one_seed_agree_to_the_bit() -> None:
    """Two trainings with one seed agree to the bit."""
    one, other = _trainer(), _trainer()
    assert _run(one) == _run(other)
    assert _same_weights(one.model, other.model)


def test_another_seed_is_another_training() -> None:
    """Another seed is another training."""
    assert _run(_trainer(), 3) != _run(_trainer(dataclasses.replace(SETTINGS, seed=2)), 3)


@pytest.mark.parametrize("steps", [1, 5, 11])
def test_interrupted_and_resumed_equals_uninterrupted(tmp_path: Path, steps: int) -> None:
    """Interrupted and resumed equals uninterrupted."""
    whole = _trainer()
    losses = _run(whole)
    first, second = _trainer(), _trainer()
    early = _run(first, steps)
    first.save_state(tmp_path / "state")
    second.load_state(tmp_path / "state")
    assert second.step == steps
    assert early + _run(second) == losses
    assert _same_weights(second.model, whole.model)


def test_a_state_saved_before_the_first_step_resumes(tmp_path: Path) -> None:
    """A state saved before the first step resumes."""
    first, second = _trainer(), _trainer()
    first.save_state(tmp_path / "state")
    second.load_state(tmp_path / "state")
    assert _run(second) == _run(first)


def test_progress_counts_steps_tokens_and_time_left() -> None:
    """Progress counts steps, tokens and time left."""
    records = list(_trainer().run())
    assert [record.step for record in records] == list(range(1, 13))
    assert records[-1].tokens == 12 * 4 * 16  # long windows are fewer, never more tokens
    assert [record.step for record in records if record.held_out] == [6, 12]
    assert records[-1].seconds_left == 0
    assert records[0].seconds_left > 0
    with pytest.raises(dataclasses.FrozenInstanceError):
        records[0].step = 5  # type: ignore[misc]


def test_the_learning_rate_rises_linearly_and_falls_as_a_cosine() -> None:
    """The learning rate rises linearly and falls as a cosine."""
    settings = TrainingSettings(
        steps=110, warmup_steps=10, learning_rate=1.0, final_learning_rate=0.2
    )
    assert settings.rate(0) == pytest.approx(0.1)
    assert settings.rate(9) == pytest.approx(1.0)
    assert settings.rate(60) == pytest.approx(0.6)  # half way down
    assert settings.rate(110) == pytest.approx(0.2)


def test_gradients_do_not_depend_on_how_many_windows_are_computed_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Gradients do not depend on how many windows are computed at once."""
    whole, parts = _trainer(), _trainer()
    losses = _run(whole, 3)
    monkeypatch.setattr("engine.training.trainer.TOKENS_AT_ONCE", 16)
    assert _run(parts, 3) == pytest.approx(losses, rel=1e-4)


@pytest.mark.filterwarnings("ignore:.torch.jit.script_method:DeprecationWarning")  # torch's own
def test_compiled_steps_learn_the_same_or_are_refused_before_the_first() -> None:
    """Without a C++ compiler they are refused; with one, losses are the same but for rounding."""
    settings = dataclasses.replace(SETTINGS, long_seq_len=0, steps=3)
    losses = _run(_trainer(settings))
    try:
        trainer = _trainer(dataclasses.replace(settings, compile=True))
    except TrainingError as error:
        assert "No working C++ compiler found" in str(error)  # noqa: PT017 - what happens is this
        return
    assert _run(trainer) == pytest.approx(losses, rel=1e-5)


def test_only_matrices_are_pulled_towards_zero() -> None:
    """With a gradient of zero, decay alone moves a parameter."""
    trainer = _trainer()
    before = {name: p.detach().clone() for name, p in trainer.model.named_parameters()}
    for parameter in trainer.model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    trainer._optimizer.step()
    shrink = 1 - SETTINGS.learning_rate * SETTINGS.weight_decay
    for name, parameter in trainer.model.named_parameters():
        factor = shrink if before[name].dim() >= 2 else 1.0
        assert torch.allclose(parameter, before[name] * factor), name


def test_held_out_loss_per_character_is_that_of_the_text_not_of_its_bytes() -> None:
    """'é' is two byte tokens and one character: per character costs twice per token."""
    texts = Texts((VERSE * 10,), ("é" * 100,))
    loss = _trainer(texts=texts).held_out_loss()
    assert loss.per_character == pytest.approx(2 * loss.per_token, rel=0.02)


def test_held_out_loss_is_the_mean_of_minus_log_p() -> None:
    """Held out loss is the mean of −log p."""
    trainer = _trainer()
    windows = list(trainer.data.held_out_windows(32))
    nats = []
    for window in windows:
        logits = trainer.model(torch.from_numpy(window[:-1])).detach().double().numpy()
        probs = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
        nats.append(-np.log(probs[np.arange(32), window[1:]]))
    assert trainer.held_out_loss().per_token == pytest.approx(np.mean(nats), rel=1e-5)


def test_a_training_can_be_made_longer_but_not_otherwise_changed(tmp_path: Path) -> None:
    """A training can be made longer but not otherwise changed."""
    trainer = _trainer()
    _run(trainer)
    trainer.save_state(tmp_path / "state")
    longer = _trainer(dataclasses.replace(SETTINGS, steps=14))
    longer.load_state(tmp_path / "state")
    assert len(_run(longer)) == 2
    other = _trainer(dataclasses.replace(SETTINGS, learning_rate=5.0))
    with pytest.raises(TrainingError, match=r"learning_rate = 0\.01, not 5\.0"):
        other.load_state(tmp_path / "state")
    other = _trainer(texts=Texts((VERSE * 41,), TEXTS.held_out))
    with pytest.raises(TrainingError, match="was trained on other texts"):
        other.load_state(tmp_path / "state")


def test_a_training_that_another_version_began_otherwise_is_refused_by_what_it_had(
    tmp_path: Path,
) -> None:
    trainer = _trainer()
    trainer.save_state(tmp_path / "state")
    with safe_open(tmp_path / "state", framework="pt") as file:
        facts = json.loads(file.metadata()["training"])
    facts["settings"]["dropout"] = 0.1
    tensors = load_file(tmp_path / "state")
    save_file(tensors, tmp_path / "state", {"training": json.dumps(facts)})
    with pytest.raises(TrainingError, match=r"another version .* in which dropout = 0\.1 could be"):
        trainer.load_state(tmp_path / "state")


def test_a_damaged_state_is_refused(tmp_path: Path) -> None:
    """A damaged state is refused."""
    trainer = _trainer()
    path = tmp_path / "state"
    with pytest.raises(TrainingError, match="does not exist"):
        trainer.load_state(path)
    trainer.save_state(path)
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises((TrainingError, CheckpointError), match="damaged"):
        trainer.load_state(path)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"steps": 0}, "steps = 0 is not possible"),
        ({"copy_seq_len": 4}, "copy_seq_len = 4 is not possible"),
        ({"learning_rate": 0.0}, "learning_rate = 0.0 must be more than 0"),
        ({"repeat_share": 1.5}, "repeat_share = 1.5 must be"),
        ({"dtype": "float64"}, "dtype = 'float64' is unknown"),
    ],
)
def test_impossible_settings_are_named(change: dict[str, object], sentence: str) -> None:
    """Impossible settings are named."""
    with pytest.raises(TrainingError, match=sentence):
        TrainingSettings(**change)  # type: ignore[arg-type]


def test_windows_longer_than_the_context_are_refused() -> None:
    """Windows longer than the context are refused."""
    with pytest.raises(TrainingError, match="windows of 64 tokens do not fit"):
        _trainer(dataclasses.replace(SETTINGS, long_seq_len=64))


def test_a_loss_that_is_no_number_ends_the_training_with_advice() -> None:
    """A loss that is no number ends the training with advice."""
    trainer = _trainer()
    torch.nn.init.constant_(trainer.model.embedding.weight, torch.nan)
    with pytest.raises(TrainingError, match="the loss became nan at step 1; lower"):
        _run(trainer)


def test_the_first_steps_may_be_for_copying_alone() -> None:
    """They are as many tokens as others, and a passage known from before comes to cost little."""
    settings = replace(SETTINGS, steps=150, copy_steps=150, copy_seq_len=16, evaluate_every=150)
    trainer = _trainer(settings)
    _run(trainer)
    assert trainer.tokens == 150 * settings.batch * settings.seq_len
    passage = torch.tensor(trainer.data.held_out[:8]).repeat(2)[None]
    log_probs = trainer.model.batch_logits(passage)[0, :-1].log_softmax(-1)
    losses = -log_probs.gather(1, passage[0, 1:, None])[:, 0]
    assert losses[9:].mean() < losses[:7].mean()
