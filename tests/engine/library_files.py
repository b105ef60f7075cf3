"""Stores of other programs in miniature, laid out as those programs do."""

import hashlib
import json
from pathlib import Path
from typing import Any

MAIN = "a" * 40


def put_in_hub(hub: Path, repository: str, files: Path, revision: str = MAIN) -> Path:
    """Copy a folder's files into a cache as `huggingface_hub` does; the snapshot's folder."""
    home = hub / f"models--{repository.replace('/', '--')}"
    snapshot = home / "snapshots" / revision
    (home / "blobs").mkdir(parents=True, exist_ok=True)
    snapshot.mkdir(parents=True, exist_ok=True)
    for path in filter(Path.is_file, files.rglob("*")):
        content = path.read_bytes()
        blob = home / "blobs" / hashlib.sha256(content).hexdigest()
        blob.write_bytes(content)
        link = snapshot / path.relative_to(files)
        link.parent.mkdir(parents=True, exist_ok=True)
        up = "../" * (2 + len(path.relative_to(files).parts) - 1)
        link.symlink_to(f"{up}blobs/{blob.name}")
    if revision == MAIN:
        (home / "refs").mkdir(exist_ok=True)
        (home / "refs" / "main").write_text(MAIN)
    return snapshot


def put_in_ollama(
    store: Path, name: str, content: bytes, host: str = "registry.ollama.ai", **changes: Any
) -> Path:
    """Add a model as `ollama pull namespace/model:tag` does; the blob's path."""
    digest = hashlib.sha256(content).hexdigest()
    blob = store / "blobs" / f"sha256-{digest}"
    blob.parent.mkdir(parents=True, exist_ok=True)
    blob.write_bytes(content)
    model, tag = name.split(":")
    manifest = store / "manifests" / host / model / tag
    manifest.parent.mkdir(parents=True, exist_ok=True)
    layer = {
        "mediaType": "application/vnd.ollama.image.model",
        "digest": f"sha256:{digest}",
        "size": len(content),
    }
    others = [
        {"mediaType": "application/vnd.ollama.image.license", "digest": "sha256:" + "0" * 64},
        {"mediaType": "application/vnd.ollama.image.params", "digest": "sha256:" + "1" * 64},
    ]
    manifest.write_text(
        json.dumps({"schemaVersion": 2, "layers": [others[0], layer | changes, others[1]]})
    )
    return blob
