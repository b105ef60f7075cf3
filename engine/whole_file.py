"""Files that are on disk whole or not at all, even after a power cut."""

import os
from contextlib import suppress
from pathlib import Path


def put_in_place(temporary: Path, path: Path) -> None:
    """Give a finished file its name, in place of what had it; both lie in one folder.

    The disk has the new contents before it has the new name: a power cut leaves the old file or
    the new one.

    Raises:
        OSError: the file cannot be written.
    """
    with temporary.open("rb+") as file:
        os.fsync(file.fileno())
    temporary.replace(path)
    _keep_names(path.parent)


def write_whole(path: Path, contents: bytes) -> None:
    """Write a file whole or not at all.

    Raises:
        OSError: the file cannot be written; nothing of it is left.
    """
    temporary = path.with_name(f"{path.name}.tmp")
    try:
        temporary.write_bytes(contents)
        put_in_place(temporary, path)
    except OSError:
        with suppress(OSError):  # what is told is why it could not be written
            temporary.unlink(missing_ok=True)
        raise


def _keep_names(folder: Path) -> None:
    if os.name == "nt":  # a folder cannot be opened there, and its names are journalled
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
