"""A pointer of Git LFS: a few lines of text that stand where a large file was not fetched."""

from pathlib import Path

from engine.checkpoints.beginning import begins_with

_BEGINNING = b"version https://git-lfs.github.com/spec/"
NOT_FETCHED = (
    "is only a pointer of Git LFS to a file that was not fetched; run 'git lfs pull' in its "
    "folder, or download the file."
)


def is_lfs_pointer(path: Path) -> bool:
    """Whether a file is such a pointer; False where it cannot be read."""
    return begins_with(path, _BEGINNING)
