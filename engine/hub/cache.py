"""Hugging Face's cache, as its own library lays it out, so that every program finds a model there.

    models--OWNER--NAME/blobs/DIGEST              the bytes of a file
                        snapshots/COMMIT/FILE     a link to them
                        refs/REVISION             the commit that a branch or a tag was
    .locks/models--OWNER--NAME/DIGEST.lock        held while the bytes come

Hugging Face describes it at https://huggingface.co/docs/huggingface_hub/guides/manage-cache.
"""

import os
import shutil
from pathlib import Path

from engine.hub.offers import Choice, Offer, RemoteFile
from engine.library.places import standard_places

_PARTIAL = ".incomplete"  # as that library calls what has not come whole


def usual_cache() -> Path:
    """The cache that the search for models looks into as well."""
    return next(place.path for place in standard_places() if place.kind == "hub")


class Cache:
    """The part of a cache that holds one repository; makes folders when they are needed."""

    def __init__(self, root: Path, offer: Offer) -> None:
        self.root = root
        self._offer = offer
        self._folder = f"models--{offer.repository.replace('/', '--')}"
        self.home = root / self._folder
        self.snapshot = self.home / "snapshots" / offer.commit

    def blob(self, file: RemoteFile) -> Path:
        """Where the bytes of a file belong."""
        return self.home / "blobs" / file.digest

    def partial(self, file: RemoteFile) -> Path:
        """Where they are until they are all there."""
        return self.home / "blobs" / f"{file.digest}{_PARTIAL}"

    def lock(self, file: RemoteFile) -> Path:
        """What whoever fetches them locks."""
        return self.root / ".locks" / self._folder / f"{file.digest}.lock"

    def n_there(self, file: RemoteFile) -> int:
        """How many bytes of a file need not be fetched any more."""
        if self.has(file):
            return file.n_bytes
        n_bytes = _size(self.partial(file)) or 0
        return n_bytes if n_bytes <= file.n_bytes else 0

    def has(self, file: RemoteFile) -> bool:
        """Whether a file is there whole."""
        # Where there are no links, other programs leave the file itself in the snapshot.
        return file.n_bytes in {_size(self.blob(file)), _size(self.snapshot / file.name)}

    def make_snapshot(self, choice: Choice) -> Path:
        """Give the files, which are all there, their names; returns what to open.

        Raises:
            OSError: the disk does not let us.
        """
        for file in choice.files:
            link = self.snapshot / file.name
            if _size(link) != file.n_bytes:
                link.parent.mkdir(parents=True, exist_ok=True)
                link.unlink(missing_ok=True)
                _link(self.blob(file), link)
        if self._offer.revision != self._offer.commit:
            reference = self.home.joinpath("refs", *self._offer.revision.split("/"))
            reference.parent.mkdir(parents=True, exist_ok=True)
            written = reference.with_name(f"{reference.name}.tmp")
            written.write_text(self._offer.commit, encoding="ascii")
            written.replace(reference)
        return self.snapshot / choice.opens


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


def _link(blob: Path, link: Path) -> None:
    """Let two names lead to the same bytes; Windows has no symbolic links for everybody."""
    try:
        link.symlink_to(os.path.relpath(blob, link.parent))
    except (OSError, NotImplementedError):
        try:
            link.hardlink_to(blob)
        except (OSError, NotImplementedError):
            shutil.copyfile(blob, link)
