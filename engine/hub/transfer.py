"""Fetching the files of a choice: in pieces, with what is there already, and checked at the end."""

import errno
import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from io import BufferedWriter
from pathlib import Path
from typing import TYPE_CHECKING

from engine.cancelling import Cancelled, never
from engine.errors import CancelledError, DownloadError
from engine.hub.cache import Cache, usual_cache
from engine.hub.client import BrokenConnectionError, Client
from engine.hub.offers import Choice, Offer, RemoteFile
from engine.hub.repository import Repository

if TYPE_CHECKING:
    from hashlib import _Hash

_PIECE = 1 << 20  # bytes that are read from the disk at once
_SPARE = 64 << 20  # bytes that a disk should keep free
# Seconds to wait after each connection that broke, while anything comes in between.
PAUSES = (0.5, 2.0, 5.0)
_LOCK_SECONDS = 15.0  # longer than one that was stopped may wait for its server
_LOCK_STEP = 0.1


@dataclass(frozen=True)
class Progress:
    """How many bytes of a choice are on this computer, of how many; the file that is coming."""

    n_done: int
    n_total: int
    file: str


Told = Callable[[Progress], None]


def lacking_bytes(offer: Offer, choice: Choice, root: Path | None = None) -> int:
    """How many bytes of a choice are still to be fetched."""
    cache = Cache(root or usual_cache(), offer)
    return choice.n_bytes - sum(map(cache.n_there, choice.files))


def free_bytes(root: Path | None = None) -> int | None:
    """How many bytes the disk of a cache has room for; None where nobody can tell."""
    folder = root or usual_cache()
    for place in (folder, *folder.parents):
        try:
            return shutil.disk_usage(place).free
        except OSError:  # is not there yet
            continue
    return None


def download(
    client: Client,
    offer: Offer,
    choice: Choice,
    root: Path | None = None,
    cancelled: Cancelled = never,
    told: Told = lambda _progress: None,
    pauses: Sequence[float] = PAUSES,
) -> Path:
    """Fetch what a choice lacks into a cache, Hugging Face's own if no `root` is given.

    Whatever came stays there, so that the next call goes on from it. Returns what to open.

    Raises:
        DownloadError: the network, the server or the disk does not let us; one sentence.
        CancelledError: `cancelled` said so between two pieces.
    """
    root = root or usual_cache()
    cache = Cache(root, offer)
    _check_room(offer, choice, root)
    fetching = _Fetching(client, offer, choice, cache, cancelled, told, pauses)
    with _disk_in_sentences(root):
        for file in choice.files:
            fetching.fetch(file)
        return cache.make_snapshot(choice)


def _check_room(offer: Offer, choice: Choice, root: Path) -> None:
    """See that the disk has room for what is to come.

    Raises:
        DownloadError: it has not.
    """
    lacking, free = lacking_bytes(offer, choice, root), free_bytes(root)
    if free is not None and lacking and lacking + _SPARE > free:
        raise DownloadError(
            f"{lacking:,} bytes are still to come, and the disk of {root} has room for only "
            f"{free:,}; {_SPARE:,} should stay free."
        )


class _Fetching:
    """Owns how far one call has come."""

    def __init__(
        self,
        client: Client,
        offer: Offer,
        choice: Choice,
        cache: Cache,
        cancelled: Cancelled,
        told: Told,
        pauses: Sequence[float],
    ) -> None:
        self._client = client
        self._pinned = Repository(offer.repository, offer.commit)
        self._cache = cache
        self._cancelled = cancelled
        self._told = told
        self._pauses = pauses
        self._n_total = choice.n_bytes
        self._n_there = {file: cache.n_there(file) for file in choice.files}
        self._has_received = False

    def fetch(self, file: RemoteFile) -> None:
        """See to it that a file is in the cache, whole and as the server has it."""
        self._check_cancelled()
        if self._cache.has(file):
            self._tell(file, file.n_bytes)
            return
        lock = self._cache.lock(file)
        lock.parent.mkdir(parents=True, exist_ok=True)
        self._cache.blob(file).parent.mkdir(parents=True, exist_ok=True)
        with ExitStack() as held:
            self._take(lock, held)
            if not self._cache.has(file):  # another program may have been quicker
                self._fetch_locked(file)
        self._tell(file, file.n_bytes)

    def _take(self, lock: Path, held: ExitStack) -> None:
        """Wait for a lock, which somebody who was stopped may hold a little longer."""
        until = time.monotonic() + _LOCK_SECONDS
        while True:
            self._check_cancelled()
            try:
                held.enter_context(self._client.lock(lock, _LOCK_STEP))
            except TimeoutError:
                if time.monotonic() > until:
                    raise DownloadError(
                        "Another program is fetching the same file; wait until it is done, and "
                        "try again."
                    ) from None
            else:
                return

    def _fetch_locked(self, file: RemoteFile) -> None:
        partial = self._cache.partial(file)
        waits = iter(self._pauses)
        while True:
            n_before = self._n_there[file]
            try:
                self._receive(file, partial)
                break
            except BrokenConnectionError as error:
                if self._n_there[file] > n_before:
                    waits = iter(self._pauses)
                pause = next(waits, None)
                # Where nothing has ever come, waiting only hides that this computer is offline.
                if not self._has_received:
                    raise self._client.unreachable(error) from error
                if pause is None:
                    raise DownloadError(
                        f"The connection to {self._client.host} broke off after "
                        f"{sum(self._n_there.values()):,} of {self._n_total:,} bytes ({error}); "
                        "what came is kept, and another try goes on from there."
                    ) from error
                self._wait(pause)
        os.replace(partial, self._cache.blob(file))  # noqa: PTH105 - replaces on Windows as well

    def _receive(self, file: RemoteFile, partial: Path) -> None:
        """Bring a partial file to its end, and check it."""
        with partial.open("ab") as written:
            start = written.tell()
            if start > file.n_bytes:
                written.truncate(start := 0)
            digest = self._digest_of(file, partial, start)
            if start < file.n_bytes:
                digest = self._append(file, written, start, digest)
        if digest.hexdigest() != file.digest:
            partial.unlink()
            self._tell(file, 0)
            raise DownloadError(
                f"{file.name} did not come as {self._client.host} has it (its checksum differs), "
                "and was thrown away; another try fetches it again."
            )

    def _append(
        self, file: RemoteFile, written: BufferedWriter, start: int, digest: "_Hash"
    ) -> "_Hash":
        with self._client.body(self._pinned, file.name, start) as (first, chunks):
            if first not in {0, start}:
                raise BrokenConnectionError("it sends another part than was asked for")
            if first != start:  # it sends no parts: all once more
                written.truncate(start := 0)
                digest = _new_digest(file)
            self._tell(file, start)
            for chunk in chunks:
                self._check_cancelled()
                start += len(chunk)
                if start > file.n_bytes:
                    written.truncate(0)
                    raise DownloadError(
                        f"{self._client.host} sends more than the {file.n_bytes:,} bytes of "
                        f"{file.name} that it lists."
                    )
                written.write(chunk)
                digest.update(chunk)
                self._has_received = True
                self._tell(file, start)
        if start < file.n_bytes:
            raise BrokenConnectionError("it sent less than it had promised")
        return digest

    def _digest_of(self, file: RemoteFile, partial: Path, n_bytes: int) -> "_Hash":
        """The checksum so far: of what came with an earlier call."""
        digest = _new_digest(file)
        if n_bytes:
            with partial.open("rb") as kept:
                while piece := kept.read(_PIECE):
                    self._check_cancelled()
                    digest.update(piece)
        return digest

    def _tell(self, file: RemoteFile, n_there: int) -> None:
        self._n_there[file] = n_there
        self._told(Progress(sum(self._n_there.values()), self._n_total, file.name))

    def _wait(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self._check_cancelled()
            time.sleep(0.02)

    def _check_cancelled(self) -> None:
        if self._cancelled():
            raise CancelledError("The download was stopped; what came is kept.")


def _new_digest(file: RemoteFile) -> "_Hash":
    """Of the kind that the server gives: SHA-256 of the bytes, or git's own of its small files."""
    if len(file.digest) == 64:
        return hashlib.sha256()
    # A checksum against accidents, as git has always taken it: https://git-scm.com/book/en/v2/
    # Git-Internals-Git-Objects.
    return hashlib.sha1(b"blob %d\0" % file.n_bytes, usedforsecurity=False)


@contextmanager
def _disk_in_sentences(root: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise DownloadError(
                f"The disk of {root} is full ({free_bytes(root) or 0:,} bytes are free); make "
                "room, and another try goes on from what came."
            ) from error
        raise DownloadError(
            f"{error.filename or root} cannot be written: {error.strerror or error}."
        ) from error
