"""Where each kind of place keeps its models: a walk through it, model by model."""

import csv
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Literal

from engine.checkpoints.gguf_parts import one_of_each, part_name
from engine.errors import CheckpointError
from engine.library.files import read_json, read_whole
from engine.library.folder_model import CONFIG_FILE
from engine.library.nanogpt_model import FILE as NANOGPT_FILE
from engine.library.walk import Listing, Walker

_GGUF = ".gguf"
_REVISION = re.compile(r"[0-9a-f]{40}")
_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
_OLLAMA_MODEL = "application/vnd.ollama.image.model"
_OLLAMA_DEFAULTS = ("registry.ollama.ai", "library")
_MOST_MANIFEST = 1 << 20  # bytes


@dataclass(frozen=True)
class Candidate:
    """Something that may be a model. `is_certain`: its place says that it is one."""

    name: str
    path: Path
    kind: Literal["folder", "gguf", "nanogpt"]
    names: tuple[str, ...] = ()  # of the files in it, if it is a folder
    is_certain: bool = False


def in_folder(top: Path, walker: Walker) -> Iterator[Candidate]:
    """All kinds, in a folder and all folders below it."""
    for listing in walker.folders_below(top):
        ggufs = _gguf_names(listing)
        # With GGUF files and no others, a config.json only tells more of those.
        if CONFIG_FILE in listing.files and (not ggufs or _has_other_weights(listing)):
            yield Candidate(model_name(listing.path), listing.path, "folder", listing.files)
        for name in ggufs:
            yield Candidate(model_name(listing.path / name), listing.path / name, "gguf")
        if NANOGPT_FILE in listing.files:
            path = listing.path / NANOGPT_FILE
            yield Candidate(model_name(path), path, "nanogpt")


def in_hub_cache(top: Path, walker: Walker) -> Iterator[Candidate]:
    """Hugging Face's cache: models--OWNER--NAME/snapshots/REVISION, the main revision first."""
    listing = walker.list_folder(top)
    for name in listing.folders if listing else ():
        kind, _, repository = name.partition("--")
        if kind != "models" or not repository:
            continue
        snapshots = top / name / "snapshots"
        listed = walker.list_folder(snapshots)
        main = _main_revision(top / name)
        revisions = listed.folders if listed else ()
        for revision in sorted(revisions, key=lambda revision: (revision != main, revision)):
            called = repository.replace("--", "/")
            if revision != main and len(revisions) > 1:
                called = f"{called} @ {revision[:7]}"
            yield from _in_snapshot(called, snapshots / revision, walker)


def _in_snapshot(called: str, snapshot: Path, walker: Walker) -> Iterator[Candidate]:
    has_gguf, top = False, None
    for listing in walker.folders_below(snapshot):
        top = top or listing
        for name in _gguf_names(listing):
            has_gguf = True
            full = f"{called}: {_without_suffix(name)}"
            yield Candidate(full, listing.path / name, "gguf")
    if top is not None and (not has_gguf or _has_other_weights(top)):
        yield Candidate(called, snapshot, "folder", top.files, is_certain=True)


def _main_revision(repository: Path) -> str:
    try:
        revision = read_whole(repository / "refs" / "main", 100).decode("ascii", "replace").strip()
    except CheckpointError:
        return ""
    return revision if _REVISION.fullmatch(revision) else ""


def in_ollama(top: Path, walker: Walker) -> Iterator[Candidate]:
    """Ollama's store: manifests/HOST/NAMESPACE/MODEL/TAG, each with the hash of a GGUF file."""
    manifests = top / "manifests"
    for listing in walker.folders_below(manifests):
        parts = listing.path.relative_to(manifests).parts
        if len(parts) != 3:
            continue
        for tag in listing.files:
            digest = _model_digest(listing.path / tag)
            if digest is not None:
                blob = top / "blobs" / f"sha256-{digest}"
                yield Candidate(_ollama_name(*parts, tag), blob, "gguf", is_certain=True)


def _ollama_name(host: str, namespace: str, model: str, tag: str) -> str:
    """As `ollama list` calls it, which leaves out what is usual."""
    usual_host, usual_namespace = _OLLAMA_DEFAULTS
    if host != usual_host:
        return f"{host}/{namespace}/{model}:{tag}"
    return f"{model}:{tag}" if namespace == usual_namespace else f"{namespace}/{model}:{tag}"


def _model_digest(manifest: Path) -> str | None:
    """The hash of the model that a manifest names; None where it names none."""
    try:
        layers = read_json(manifest, _MOST_MANIFEST).get("layers")
    except CheckpointError:
        return None
    for layer in layers if isinstance(layers, list) else ():
        if isinstance(layer, Mapping) and layer.get("mediaType") == _OLLAMA_MODEL:
            # Nothing but a hash, so that a manifest cannot lead out of the store.
            found = _DIGEST.fullmatch(str(layer.get("digest")))
            return found[1] if found else None
    return None


def in_packages(_top: Path, walker: Walker) -> Iterator[Candidate]:
    """GGUF files that installed Python packages brought along, by the lists of their files."""
    for package in metadata.distributions():
        if walker.is_cancelled():
            return
        try:
            record = package.read_text("RECORD") or ""
        except (OSError, ValueError):  # not to be read, or not UTF-8
            continue
        # Not `package.files`, which takes 25 times as long.
        lines = [line for line in record.splitlines() if _GGUF in line]
        for row in csv.reader(lines):
            if row and row[0].endswith(_GGUF):
                path = Path(str(package.locate_file(row[0])))
                yield Candidate(path.stem, path, "gguf", is_certain=True)


def _gguf_names(listing: Listing) -> list[str]:
    """Names of GGUF files; of a model in several parts, the first."""
    return one_of_each(name for name in listing.files if name.lower().endswith(_GGUF))


def _without_suffix(name: str) -> str:
    """What the model in a GGUF file of this name is called."""
    part = part_name(name)
    return part.stem if part is not None else name[: -len(_GGUF)]


def _has_other_weights(listing: Listing) -> bool:
    return any(name.endswith((".safetensors", ".bin", ".pt", ".pth")) for name in listing.files)


def model_name(path: Path) -> str:
    """What to call the model at a path: a repository's name if it is in Hugging Face's cache."""
    is_file = path.suffix.lower() == _GGUF
    stem = _without_suffix(path.name) if is_file else path.name
    for part in path.parts:
        kind, _, repository = part.partition("--")
        if kind == "models" and repository:
            called = repository.replace("--", "/")
            return f"{called}: {stem}" if is_file else called
    if path.name.startswith("sha256-"):
        return f"Ollama {stem[:14]}…"
    if path.name == NANOGPT_FILE:
        return path.parent.name
    return stem or str(path)
