"""From a folder to a model that can run, or to one sentence."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import engine.architectures
from engine.checkpoints.folder import save_checkpoint
from engine.errors import CancelledError, CheckpointError
from engine.formats import FormatChoice
from engine.loading import load, use_threads
from engine.tokenizers import Characters
from tests.engine.gguf_files import write_llama, write_llama_parts


@pytest.fixture
def folder(tiny: Callable[..., Any], tmp_path: Path) -> Path:
    """A model of two characters and the bytes."""
    model = tiny("rotary", vocab_size=258).model
    save_checkpoint(tmp_path / "two letters", model, Characters("ab"))
    return tmp_path / "two letters"


def test_a_saved_model_comes_back_with_what_is_known_of_it(folder: Path) -> None:
    """Name, place, size and vocabulary."""
    loaded = load(folder)
    info = loaded.info
    assert (info.name, info.path) == ("two letters", str(folder))
    sizes = [tensor.numel() for tensor in loaded.model.state_dict().values()]
    assert info.n_parameters == sum(sizes)
    assert info.vocabulary[:2] == (b"a", b"b")
    assert info.vocabulary[2:] == tuple(bytes([byte]) for byte in range(256))
    assert info.load_seconds > 0
    assert loaded.tokenizer.encode("ab") == [0, 1]


def test_opening_a_model_does_not_wait_for_torch_s_compiler(folder: Path) -> None:
    """Importing it takes longer than importing torch."""
    code = (
        "import sys, pathlib; from engine.loading import load; load(pathlib.Path(sys.argv[1])); "
        "print([name for name in ('torch._dynamo', 'sympy') if name in sys.modules])"
    )
    done = subprocess.run(  # noqa: S603 - our own interpreter and code
        [sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
def test_what_has_no_end_is_not_waited_for(folder: Path, name: str) -> None:
    """A pipe in a file's place would keep a reader for ever."""
    (folder / name).unlink()
    os.mkfifo(folder / name)
    with pytest.raises(CheckpointError, match=f"{name} in it is a pipe, a socket or a device"):
        load(folder)


def test_a_relative_path_is_known_by_its_full_name(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is remembered must be found from anywhere, and "." is no name."""
    monkeypatch.chdir(folder)
    info = load(Path()).info
    assert (info.name, info.path) == ("two letters", str(folder))


def test_a_file_of_a_cache_is_called_by_the_name_that_leads_to_it(tmp_path: Path) -> None:
    """Not by the checksum under which the cache keeps it; also to find it again."""
    write_llama(tmp_path / "llama.gguf")
    (tmp_path / "llama.gguf").rename(tmp_path / "5891b5b522d5")
    (tmp_path / "toy.gguf").symlink_to("5891b5b522d5")
    info = load(tmp_path / "elsewhere" / ".." / "toy.gguf").info
    assert (info.name, info.path) == ("toy", str(tmp_path / "toy.gguf"))


@pytest.mark.parametrize("name", ["missing", "x" * 5000, "a\0b"], ids=["missing", "long", "NUL"])
def test_what_is_not_there_is_said_in_one_sentence(tmp_path: Path, name: str) -> None:
    """It names the path and what would be right."""
    with pytest.raises(CheckpointError, match="does not exist; open a folder that holds") as caught:
        load(tmp_path / name)
    assert name in str(caught.value)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_file_of_a_model_s_folder_stands_for_it(folder: Path, name: str) -> None:
    """It is what one sees there, and drops on the window."""
    info = load(folder / name).info
    assert (info.name, info.path) == ("two letters", str(folder))


def test_the_one_gguf_file_of_a_folder_is_what_it_is_opened_for(tmp_path: Path) -> None:
    """Also if it is in several parts; of several models, they are named."""
    parts = write_llama_parts(tmp_path / "big.gguf")
    assert load(tmp_path).info.path == str(parts[0])
    for name in "abcd":
        write_llama(tmp_path / f"{name}.gguf")
    sentence = r"holds 5 models, a.gguf, b.gguf, big-00001-of-00003.gguf, …; open one of these"
    with pytest.raises(CheckpointError, match=sentence):
        load(tmp_path)
    (tmp_path / "config.json").write_text("{}")  # then it is a folder's model that is meant
    with pytest.raises(CheckpointError, match="names no family of models"):
        load(tmp_path)


NO_MODELS: dict[str, tuple[dict[str, bytes], str, str]] = {
    "an empty folder": ({}, "", "holds no model; open a folder that holds"),
    "a folder of pickles": (
        {"pytorch_model.bin": b"x"},
        "",
        "holds no config.json, and weights in pytorch_model.bin only, a pickle, which may run",
    ),
    "an adapter": (
        {"adapter_config.json": b"{}", "adapter_model.safetensors": b"x"},
        "",
        "holds only an adapter (adapter_config.json), which changes another model's weights; open",
    ),
    "a pickle": (
        {"pytorch_model.bin": b"x"},
        "pytorch_model.bin",
        "is no checkpoint of nanoGPT's, and others of this kind are not opened because they may",
    ),
    "another file": ({"cat.png": b"\x89PNG"}, "cat.png", "is no model; open a folder that holds"),
    "weights without settings": (
        {"a.safetensors": b"x"},
        "a.safetensors",
        "is no model; open a folder that holds",
    ),
    "the beginning of a download": (
        {"a.gguf": b""},
        "a.gguf",
        "is no GGUF file, which begins with the letters GGUF; it may not have been copied",
    ),
}


@pytest.mark.parametrize(("files", "name", "sentence"), NO_MODELS.values(), ids=NO_MODELS)
def test_what_is_no_model_is_said_in_one_sentence(
    tmp_path: Path, files: dict[str, bytes], name: str, sentence: str
) -> None:
    """Which says what it is, as far as that can be told, and what would be right."""
    for each, content in files.items():
        (tmp_path / each).write_bytes(content)
    with pytest.raises(CheckpointError) as caught:
        load(tmp_path / name)
    assert str(caught.value).startswith(f"{tmp_path / name} {sentence}")
    assert "\n" not in str(caught.value)


def test_a_folder_that_may_not_be_read_is_not_said_to_be_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is there."""

    def refuse(_folder: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", refuse)
    with pytest.raises(CheckpointError, match="cannot be read: Permission denied"):
        load(tmp_path)


def test_torch_computes_with_as_many_threads_as_it_is_told() -> None:
    """One core is left to the window."""
    before = torch.get_num_threads()
    try:
        use_threads(1)
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)


@pytest.fixture
def gguf(tmp_path: Path) -> Path:
    """A small GGUF file."""
    write_llama(tmp_path / "model.gguf")
    return tmp_path / "model.gguf"


@pytest.mark.parametrize("kind", ["gguf", "folder"])
@pytest.mark.parametrize("chosen", ["float32", "float16"])
def test_reading_tells_how_far_it_has_come_and_stops_when_asked(
    request: pytest.FixtureRequest, kind: str, chosen: Any
) -> None:
    """From the first tensor to the last, never backwards; our own kind as any other."""
    path, choice = request.getfixturevalue(kind), FormatChoice(chosen)
    told: list[float] = []
    load(path, choice, told=told.append)
    assert told == sorted(told)
    assert 0 < told[0] < 1
    assert told[-1] == 1
    n_tensors = len(told)
    told.clear()
    with pytest.raises(CancelledError):
        load(path, choice, cancelled=lambda: len(told) > n_tensors // 2, told=told.append)
    assert n_tensors // 2 < len(told) < n_tensors


@pytest.mark.parametrize("kind", ["gguf", "folder"])
def test_a_model_that_is_too_large_is_refused_before_it_is_read(
    request: pytest.FixtureRequest, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what it needs, what there is, and what to do."""
    path = request.getfixturevalue(kind)
    told: list[float] = []
    needed = 4 * load(path).info.n_parameters
    monkeypatch.setattr(engine.architectures, "available_bytes", lambda: needed - 1)
    with pytest.raises(CheckpointError, match=r"iB of memory as float32, and .*iB are available"):
        load(path, told=told.append)
    assert told == []
    monkeypatch.setattr(engine.architectures, "available_bytes", lambda: None)  # nobody can tell
    load(path)
