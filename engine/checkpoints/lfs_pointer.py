"""A pointer of Git LFS: a few lines of text that stand where a large file was not fetched."""

from pathlib import Path

_BEGINNING = b"version https://git-lfs.github.com/spec/"
NOT_FETCHED = (
    "is only a pointer of Git LFS to a file that was not fetched; run 'git lfs pull' in its "
    "folder, or download the file."
)


def is_lfs_pointer(path: Path) -> bool:
    """Whether a file is such a pointer; False where it cannot be read."""
    try:
        if not path.is_file():  # a pipe would never answer
            return False
        with path.open("rb") as file:
            return file.read(len(_BEGINNING)) == _BEGINNING
    except (OSError, ValueError):  # ValueError: not allowed in a path
        return False
