"""One process at a time works in a folder; a process that dies lets go of it."""

import sys
import time
from io import BufferedRandom
from pathlib import Path
from typing import Self

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

_LOCK_FILE = "lock"
_PAUSE_SECONDS = 0.1


class FolderLock:
    """While entered, nobody else can enter one for the same folder.

    Entering waits `patience` seconds for another process that is just ending.

    Raises:
        BlockingIOError: the other process still works there.
        OSError: the folder cannot be written.
    """

    def __init__(self, folder: Path, patience: float) -> None:
        self._path = folder / _LOCK_FILE
        self._patience = patience
        self._file: BufferedRandom | None = None

    def __enter__(self) -> Self:
        file = self._path.open("ab+")
        until = time.monotonic() + self._patience
        while not _is_locked(file):
            if time.monotonic() > until:
                file.close()
                raise BlockingIOError(f"{self._path} is held by another process.")
            time.sleep(_PAUSE_SECONDS)
        self._file = file
        return self

    def __exit__(self, *_error: object) -> None:
        if self._file is not None:
            self._file.close()  # and unlocked by that


def _is_locked(file: BufferedRandom) -> bool:
    """Whether the file is ours now."""
    try:
        if sys.platform == "win32":
            file.seek(0)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
