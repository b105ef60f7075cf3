"""Walking through folders that nobody vouches for: no loop, no end that never comes."""

import os
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from engine.cancelling import Cancelled, never

MOST_ENTRIES = 100_000
DEEPEST = 12


@dataclass(frozen=True)
class Listing:
    """The names in one folder, sorted; links count as what they lead to."""

    path: Path
    files: tuple[str, ...]
    folders: tuple[str, ...]


class Walker:
    """Owns the bounds of one walk: entries in all, depth, folders that were seen.

    A folder is listed once, by whatever name it is reached, so that links cannot lead in circles.
    """

    def __init__(
        self,
        is_cancelled: Cancelled = never,
        most_entries: int = MOST_ENTRIES,
        deepest: int = DEEPEST,
    ) -> None:
        self.is_cancelled = is_cancelled
        self.most_entries = most_entries
        self.is_cut = False  # whether more is there than was looked at
        self._deepest = deepest
        self._n_entries = 0
        self._seen: set[tuple[int, int]] = set()

    def list_folder(self, folder: Path) -> Listing | None:
        """What is in a folder; None where it cannot be read, was seen before, or all is spent.

        Raises:
            OSError: never; a folder that cannot be read is as good as none.
        """
        files: list[str] = []
        folders: list[str] = []
        try:
            status = folder.stat()
            identity = status.st_dev, status.st_ino
            if identity in self._seen:
                return None
            self._seen.add(identity)
            with os.scandir(folder) as entries:
                for entry in entries:
                    if self._is_spent():
                        break
                    self._sort(entry, files, folders)
        except (OSError, ValueError):  # ValueError: not allowed in a path
            if not files and not folders:
                return None
        return Listing(folder, tuple(sorted(files)), tuple(sorted(folders)))

    def folders_below(self, top: Path) -> Iterator[Listing]:
        """A folder and those in it, the shallow ones first; hidden ones are left out."""
        waiting = deque([(top, 0)])
        while waiting:
            folder, depth = waiting.popleft()
            listing = self.list_folder(folder)
            if listing is None:
                if self.is_cancelled():
                    return
                continue
            yield listing
            inner = [name for name in listing.folders if not name.startswith(".")]
            if depth < self._deepest:
                waiting.extend((folder / name, depth + 1) for name in inner)
            elif inner:
                self.is_cut = True

    def _is_spent(self) -> bool:
        if self._n_entries >= self.most_entries:
            self.is_cut = True
        self._n_entries += 1
        return self.is_cut or self.is_cancelled()

    @staticmethod
    def _sort(entry: os.DirEntry[str], files: list[str], folders: list[str]) -> None:
        try:
            if entry.is_dir():
                folders.append(entry.name)
            elif entry.is_file():  # neither a pipe nor a device
                files.append(entry.name)
        except OSError:  # a link that leads to itself
            return
