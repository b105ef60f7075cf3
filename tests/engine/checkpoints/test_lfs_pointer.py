"""A repository that was cloned without Git LFS holds pointers where its large files should be."""

from pathlib import Path

import pytest

from engine.checkpoints.lfs_pointer import is_lfs_pointer
from engine.errors import CheckpointError
from engine.library import Found, added_place, search
from engine.loading import load
from tests.engine.gguf_files import write_llama
from tests.engine.hf_files import write_golden

POINTER = (
    b"version https://git-lfs.github.com/spec/v1\n"
    b"oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"
)
SENTENCE = "is only a pointer of Git LFS to a file that was not fetched; run 'git lfs pull'"


def reasons(folder: Path) -> list[str]:
    """Why the models of a folder cannot be opened, as the list of what is there says."""
    return [each.reason for each in search([added_place(folder)]) if isinstance(each, Found)]


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json"])
def test_a_folder_with_a_pointer_is_told_from_a_damaged_one(tmp_path: Path, name: str) -> None:
    """With what would fetch the file."""
    write_golden(tmp_path / "llama", "llama")
    (tmp_path / "llama" / name).write_bytes(POINTER)
    with pytest.raises(CheckpointError, match=f"{name} {SENTENCE}"):
        load(tmp_path / "llama")


def test_a_gguf_file_that_was_not_fetched_says_so(tmp_path: Path) -> None:
    path = tmp_path / "toy.gguf"
    path.write_bytes(POINTER)
    with pytest.raises(CheckpointError, match=rf"toy\.gguf {SENTENCE}"):
        load(path)
    write_llama(path)
    assert not is_lfs_pointer(path)
    assert load(path)


def test_the_list_of_models_says_so_too(tmp_path: Path) -> None:
    """Without opening them."""
    write_golden(tmp_path / "llama", "llama")
    assert reasons(tmp_path) == [""]
    (tmp_path / "llama" / "model.safetensors").write_bytes(POINTER)
    (tmp_path / "toy.gguf").write_bytes(POINTER)
    assert [reason.partition(" ")[2].startswith(SENTENCE) for reason in reasons(tmp_path)] == [
        True,
        True,
    ]


def test_what_is_no_file_is_no_pointer(tmp_path: Path) -> None:
    """Nor what is shorter, missing, or not allowed in a path."""
    (tmp_path / "short").write_bytes(POINTER[:10])
    for path in (tmp_path, tmp_path / "short", tmp_path / "gone", tmp_path / "\0"):
        assert not is_lfs_pointer(path)
