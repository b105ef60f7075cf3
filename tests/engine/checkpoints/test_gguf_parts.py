"""A model in several GGUF files opens from any of them, or the one that is missing is named."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from engine.checkpoints.gguf import read
from engine.checkpoints.gguf_parts import one_of_each, part_name
from engine.errors import CheckpointError
from engine.loading import load
from tests.engine.gguf_files import write_llama, write_llama_parts

TOKENS = torch.tensor([5, 200, 17, 90, 3])


@pytest.fixture
def parts(tmp_path: Path) -> list[Path]:
    """A whole model in three files, as the package writes them."""
    return write_llama_parts(tmp_path / "toy.gguf")


def test_a_model_opens_from_any_of_its_files(tmp_path: Path, parts: list[Path]) -> None:
    """And computes what it does from one file."""
    assert [path.name for path in parts] == [f"toy-0000{n}-of-00003.gguf" for n in (1, 2, 3)]
    with torch.inference_mode():
        expected = load(write_llama(tmp_path / "whole.gguf")).model(TOKENS)
        for path in parts:
            loaded = load(path)
            assert torch.equal(loaded.model(TOKENS), expected)
            assert loaded.info.name == "toy"


def test_the_first_file_may_hold_no_tensor(tmp_path: Path) -> None:
    """Settings and vocabulary alone, so that they need not be sent anew with the weights."""
    parts = write_llama_parts(tmp_path / "toy.gguf", small_first_shard=True, split_max_tensors=12)
    sizes = [path.stat().st_size for path in parts]
    assert len(parts) == 3
    whole = load(write_llama(tmp_path / "whole.gguf")).model
    with torch.inference_mode():
        assert torch.equal(load(parts[0]).model(TOKENS), whole(TOKENS))
    assert sizes[0] < min(sizes[1:])


@pytest.mark.parametrize("missing", [0, 1, 2])
def test_a_missing_file_is_named(parts: list[Path], missing: int) -> None:
    """From whichever of the others the model is opened."""
    parts[missing].unlink()
    for path in parts:
        if path.exists():
            with pytest.raises(CheckpointError) as caught:
                load(path)
            assert str(caught.value) == (
                f"{path} is one of 3 files of one model, and toy-0000{missing + 1}-of-00003.gguf "
                "is missing beside it."
            )


def _renamed(parts: list[Path]) -> Path:
    return parts[1].rename(parts[1].with_name("second.gguf"))


def _swapped(parts: list[Path]) -> Path:
    second, third = (path.read_bytes() for path in parts[1:])
    parts[1].write_bytes(third)
    parts[2].write_bytes(second)
    return parts[0]


def _first_twice(parts: list[Path]) -> Path:
    shutil.copy(parts[0], parts[1])
    return parts[1]


def _cut(parts: list[Path]) -> Path:
    os.truncate(parts[2], parts[2].stat().st_size - 1)
    return parts[0]


def _whole_instead(parts: list[Path]) -> Path:
    write_llama(parts[1])
    return parts[0]


def _other_model(parts: list[Path]) -> Path:
    other = write_llama_parts(parts[0].parent / "other.gguf", split_max_tensors=7)
    other[2].rename(parts[2])
    return parts[0]


def _no_number(parts: list[Path]) -> Path:
    sound = parts[0].read_bytes()
    parts[0].write_bytes(sound.replace(b"split.no", b"split.on"))
    return parts[0]


def _words(parts: list[Path]) -> Path:
    return write_llama(parts[0], metadata={"split.count": "three"})


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (_renamed, r"second.gguf is part 2 of a model in 3 files, and its name does not say so"),
        (_swapped, r"00002-of-00003.gguf is called part 2 of 3, but says that it is part 3 of 3"),
        (_first_twice, r"00002-of-00003.gguf is part 1 of a model in 3 files, and its name does"),
        (_cut, r"toy-00003-of-00003.gguf is cut off: '.*' takes \d+ bytes"),
        (_whole_instead, r"part 2 of 3, but says that it is part of no number of None"),
        (_other_model, r"toy-00003-of-00003.gguf holds 'blk.*', and so does toy-00002-of-00003"),
        (_no_number, r"00001-of-00003.gguf is part of no number of a model in 3 files"),
        (_words, r"00001-of-00003.gguf is damaged: split.count is no whole number"),
    ],
)
def test_files_that_do_not_belong_together_are_told_in_one_sentence(
    parts: list[Path], damage: Callable[[list[Path]], Path], sentence: str
) -> None:
    """None is taken for what its name says if it says something else itself."""
    with pytest.raises(CheckpointError, match=sentence) as caught:
        read(damage(parts))
    assert "\n" not in str(caught.value)


def test_a_part_of_another_writing_with_fewer_tensors_is_noticed(
    tmp_path: Path, parts: list[Path]
) -> None:
    """All files are there and no tensor twice, and yet not all tensors."""
    fewer = write_llama_parts(tmp_path / "fewer.gguf", split_max_tensors=9)
    assert len(fewer) == 3
    fewer[2].rename(parts[2])
    with pytest.raises(CheckpointError, match=r"promises 20 tensors in 3 files, which hold 18; th"):
        read(parts[0])


def test_names_of_parts_are_told_from_others() -> None:
    """By their five digits; what looks alike but is none of them stands for itself."""
    part = part_name("a-b-00002-of-00012.GGUF")
    assert part is not None
    assert (part.stem, part.number, part.count) == ("a-b", 2, 12)
    assert part.beside(3) == "a-b-00003-of-00012.GGUF"
    for name in ("a.gguf", "a-2-of-3.gguf", "a-00001-of-00002.safetensors", "-00001-of-00002.gguf"):
        assert part_name(name) is None
    names = ["m-00003-of-00003.gguf", "m-00002-of-00003.gguf", "n.gguf", "m-00002-of-00002.gguf"]
    assert one_of_each(names) == ["m-00002-of-00002.gguf", "m-00002-of-00003.gguf", "n.gguf"]
