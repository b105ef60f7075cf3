"""The trainer learns, repeats itself to the bit, can be taken up again, and refuses bad data."""

import dataclasses
import math
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from engine.checkpoints.folder import load_checkpoint
from engine.config import ModelConfig
from engine.errors import CheckpointError, TrainingError
from engine.model import Transformer
from engine.tokenizers import Characters
from engine.training import SETTING_HELP, Trainer, TrainingSettings, main, new_model, read_facts
from engine.training_data import Texts, TrainingData, read_texts

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
    monkeypatch.setattr("engine.training.TOKENS_AT_ONCE", 16)
    assert _run(parts, 3) == pytest.approx(losses, rel=1e-4)


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


def test_a_share_of_the_windows_repeats_a_passage() -> None:
    """Without it, a random text has no passage of 8 tokens twice; with it, each window does."""
    random = np.random.default_rng(0)
    data = TrainingData(TEXTS, TOKENIZER, 32)
    data.training = random.integers(0, 10**6, size=5000)

    def repeats(window: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> bool:
        passages = [tuple(window[i : i + 8]) for i in range(len(window) - 7)]
        return len(set(passages)) < len(passages)

    none = data.windows(seed=1, step=0, count=50, length=64, repeat_share=0.0)
    some = data.windows(seed=1, step=0, count=50, length=64, repeat_share=0.5)
    assert not any(map(repeats, none))
    assert 10 < sum(map(repeats, some)) < 40
    assert np.array_equal(some, data.windows(1, 0, 50, 64, 0.5))
    assert not np.array_equal(some, data.windows(1, 1, 50, 64, 0.5))


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


def _write(folder: Path, **texts: str | bytes) -> Path:
    for name, text in texts.items():
        data = text if isinstance(text, bytes) else text.encode()
        (folder / f"{name}.txt").write_bytes(data)
    return folder


def test_whole_files_are_held_out_by_name(tmp_path: Path) -> None:
    """Whole files are held out by name."""
    folder = _write(tmp_path, a="one", b="two", c="three")
    assert read_texts([folder], ["b"]) == Texts(("one", "three"), ("two",))


def test_unusable_data_is_refused_in_one_sentence(tmp_path: Path) -> None:
    """Unusable data is refused in one sentence."""
    with pytest.raises(TrainingError, match=r"holds no \.txt file"):
        read_texts([tmp_path], ["b"])
    with pytest.raises(TrainingError, match="nowhere does not exist"):
        read_texts([tmp_path / "nowhere"], ["b"])
    folder = _write(tmp_path, a="", b=VERSE)
    with pytest.raises(TrainingError, match="'z' is not among the data"):
        read_texts([folder], ["z"])
    with pytest.raises(TrainingError, match="the data is empty"):
        read_texts([folder], ["b"])
    with pytest.raises(TrainingError, match="no text is held out"):
        read_texts([folder], [])
    with pytest.raises(TrainingError, match=r"c\.txt is not text in UTF-8 \(byte 2 is not\)"):
        read_texts([_write(tmp_path, c=b"ab\xff\xfe")], ["b"])
    with pytest.raises(TrainingError, match="the data has 5 tokens; windows of 16"):
        TrainingData(Texts(("short",), (VERSE,)), TOKENIZER, 16)
    with pytest.raises(TrainingError, match="the held-out text has 5 tokens"):
        TrainingData(Texts((VERSE,), ("short",)), TOKENIZER, 16)


def _command(folder: Path, *more: str) -> list[str]:
    sizes = "--n-layer 1 --n-head 2 --d-model 16 --max-seq-len 16 --batch 2 --seq-len 16"
    return [
        *("--data", str(folder), "--held-out", "b", "--out", str(folder / "out")),
        *sizes.split(),
        *("--tokenizer", "characters", "--dtype", "float32", "--threads", "1"),
        *("--evaluate-every", "2", *more),
    ]


def test_the_command_line_trains_resumes_and_leaves_a_model_that_loads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command line trains, resumes and leaves a model that loads."""
    folder = _write(tmp_path, a=VERSE * 9, b=VERSE * 2)
    assert main(_command(folder, "--steps", "4")) == 0
    assert "nats per character over the whole held-out text" in capsys.readouterr().out
    assert main(_command(folder, "--steps", "4")) == 1
    assert "already holds a training; add --resume" in capsys.readouterr().err
    assert main(_command(folder, "--steps", "6", "--resume")) == 0
    loaded = load_checkpoint(folder / "out" / "last")
    assert loaded.facts["step"] == 6
    assert loaded.facts["held_out_texts"] == ["b"]
    assert loaded.tokenizer.decode(loaded.tokenizer.encode("five")) == "five"
    assert load_checkpoint(folder / "out" / "best").facts["step"] in {2, 4, 6}


def test_bad_data_on_the_command_line_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Bad data on the command line is one sentence."""
    assert main(_command(tmp_path)) == 1
    assert capsys.readouterr().err.startswith("Error: ")


def test_control_c_saves_the_state_and_ends_cleanly(tmp_path: Path) -> None:
    """Ctrl-C in the middle of a training finishes the step, saves, and is no failure."""
    folder = _write(tmp_path, a=VERSE * 9, b=VERSE * 2)
    words = _command(folder, "--steps", "100000", "--report-steps", "1")
    with subprocess.Popen(  # noqa: S603 - our own interpreter and module
        [sys.executable, "-m", "engine.training", *words],
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("step 1/")
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
    assert process.returncode == 0
    assert "Stopped and saved" in rest
    assert 1 <= read_facts(folder / "out" / "state.safetensors")["step"] < 100_000


def test_every_setting_is_explained_on_the_command_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    words = capsys.readouterr().out
    for field in dataclasses.fields(TrainingSettings):
        assert f"--{field.name.replace('_', '-')}" in words
        assert SETTING_HELP[field.name].split()[0] in words
