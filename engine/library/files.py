"""Reading a part of a file that nobody vouches for: only regular files, only so many bytes."""

import json
import os
import stat
from pathlib import Path
from typing import Any

from engine.errors import CheckpointError

_MOST_JSON = 32 << 20  # bytes; a header of 60,000 tensors has eight million


def size_of(path: Path) -> int:
    """Bytes of a regular file, symbolic links followed.

    Raises:
        CheckpointError: there is none, or it cannot be asked.
    """
    try:
        found = path.stat()
    except (OSError, ValueError) as error:  # ValueError: not allowed in a path
        raise unreadable(path, error) from error
    if not stat.S_ISREG(found.st_mode):  # a pipe would never answer
        raise CheckpointError(f"{path.name} is no file.")
    return found.st_size


def read_whole(path: Path, most: int) -> bytes:
    """All bytes of a small file.

    Raises:
        CheckpointError: it cannot be read, or has more than `most` bytes.
    """
    if size_of(path) > most:
        raise CheckpointError(f"{path.name} has {size_of(path)} bytes; {most} are the most it may.")
    return read_beginning(path, most)


def read_beginning(path: Path, most: int) -> bytes:
    """The first bytes of a file, no more than `most`.

    Raises:
        CheckpointError: it cannot be read.
    """
    size_of(path)
    try:
        with path.open("rb") as file:
            return file.read(most)
    except OSError as error:
        raise unreadable(path, error) from error


def read_json(path: Path, most: int = _MOST_JSON) -> dict[str, Any]:
    """What a JSON file holds by name.

    Raises:
        CheckpointError: it cannot be read, is too large, or is no JSON object.
    """
    return parse_json(read_whole(path, most), path.name)


def parse_json(data: bytes, name: str) -> dict[str, Any]:
    """What JSON holds by name; `name` only names it in errors.

    Raises:
        CheckpointError: it is no JSON object.
    """
    try:
        values = json.loads(data)
    except (ValueError, RecursionError) as error:  # not UTF-8, not JSON, too deep
        raise CheckpointError(f"{name} is not JSON ({error}).") from error
    if not isinstance(values, dict):
        raise CheckpointError(f"{name} holds no settings by name.")
    return values


def unreadable(path: Path, error: Exception) -> CheckpointError:
    """What to raise about a file that the system does not give."""
    why = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
    return CheckpointError(f"{path.name} cannot be read: {why}.")
