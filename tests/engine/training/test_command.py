"""The trainer's command line: trains, saves, goes on, and says what is wrong with the data."""

import dataclasses
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from engine.checkpoints.folder import load_checkpoint
from engine.training.command import SETTING_HELP, main
from engine.training.record import RECORD_FILE, load_record
from engine.training.settings import TrainingSettings
from engine.training.trainer import read_facts

ROOT = Path(__file__).parents[3]
# Has Ctrl-C come in the moment in which torch begins to be imported.
_SIGNALLED = """
import signal, sys, engine.training.command
class Signalling:
    def find_spec(self, name, *_):
        if name == "torch":
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Signalling())
sys.exit(engine.training.command.main(sys.argv[1:]))
"""
VERSE = "Full fathom five thy father lies;\nOf his bones are coral made;\n"


@pytest.fixture(autouse=True)
def _threads_as_before() -> Iterator[None]:
    """The command line sets torch's threads for the whole process."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def _write(folder: Path, **texts: str | bytes) -> Path:
    for name, text in texts.items():
        data = text if isinstance(text, bytes) else text.encode()
        (folder / f"{name}.txt").write_bytes(data)
    return folder


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
    on_control_c = signal.getsignal(signal.SIGINT)
    assert main(_command(folder, "--steps", "4")) == 0
    assert "nats per character over the whole held-out text" in capsys.readouterr().out
    assert main(_command(folder, "--steps", "4")) == 1
    assert "already holds a training; add --resume" in capsys.readouterr().err
    assert main(_command(folder, "--steps", "6", "--resume")) == 0
    loaded = load_checkpoint(folder / "out" / "last")
    assert loaded.facts["step"] == 6
    assert loaded.facts["held_out_texts"] == ["b"]
    assert loaded.tokenizer.decode(loaded.tokenizer.encode("five")) == "five"
    record = load_record(folder / "out" / "last" / RECORD_FILE)
    assert [moment.step for moment in record.moments] == [0, 2, 4, 6]
    assert len(record.losses) == 6
    assert signal.getsignal(signal.SIGINT) is on_control_c
    assert load_checkpoint(folder / "out" / "best").facts["step"] in {2, 4, 6}


def test_bad_data_on_the_command_line_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Bad data on the command line is one sentence."""
    assert main(_command(tmp_path)) == 1
    assert capsys.readouterr().err.startswith("Error: ")


def test_compiling_without_a_compiler_is_one_sentence_before_anything_is_written(
    tmp_path: Path,
) -> None:
    folder, cache = _write(tmp_path, a=VERSE * 9, b=VERSE * 2), str(tmp_path / "cache")
    done = subprocess.run(  # noqa: S603 - our own interpreter and module
        [sys.executable, "-m", "engine.training", *_command(folder, "--compile")],
        cwd=ROOT,
        env={**os.environ, "PATH": "", "CXX": "no-such-compiler", "TORCHINDUCTOR_CACHE_DIR": cache},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert re.fullmatch(
        r"Error: the arithmetic cannot be compiled here \(.*no-such-compiler.*\); install a C\+\+ "
        r"compiler such as g\+\+, or leave out --compile\.\n",
        done.stderr,
    )
    assert not list((folder / "out").glob("*.safetensors"))


def test_control_c_before_the_first_step_is_heard_without_torch(tmp_path: Path) -> None:
    """As soon as the process can hear it, in the middle of its imports; nothing is begun then."""
    folder = _write(tmp_path, a=VERSE * 9, b=VERSE * 2)
    with subprocess.Popen(  # noqa: S603 - as above
        [sys.executable, "-c", _SIGNALLED, *_command(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        text=True,
    ) as process:
        said, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")
    assert said == "It was stopped before the first step.\n"
    assert not list((folder / "out").glob("*.safetensors"))


def test_help_and_mistakes_are_told_without_torch() -> None:
    code = (
        "import sys, engine.training.command as t;"
        "t.command_line().format_help(); print(*sys.modules)"
    )
    loaded = subprocess.run(  # noqa: S603 - as above
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    assert "engine.training.command" in loaded
    assert "torch" not in loaded


def test_control_c_saves_the_state_and_ends_cleanly(tmp_path: Path) -> None:
    """Ctrl-C in the middle of a training finishes the step, saves, and is no failure."""
    folder = _write(tmp_path, a=VERSE * 9, b=VERSE * 2)
    words = _command(folder, "--steps", "100000", "--report-steps", "1")
    with subprocess.Popen(  # noqa: S603 - our own interpreter and module
        [sys.executable, "-m", "engine.training", *words],
        stdout=subprocess.PIPE,
        cwd=ROOT,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("step 1/")
            process.send_signal(signal.SIGINT)
            rest, _ = process.communicate(timeout=60)
        finally:
            process.kill()  # or a failure would wait for all its steps
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
