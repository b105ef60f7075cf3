"""What nanoGPT's ckpt.pt says of its model; the pickle in it is never run."""

import math
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.checkpoints.plain_pickle import MOST_BYTES, StandIns, read_pickle
from engine.errors import CheckpointError, TokenizerError
from engine.library.families import size
from engine.library.files import size_of, unreadable
from engine.library.found import Description
from engine.library.safetensors_header import is_shape, is_weight

FILE = "ckpt.pt"
ARCHITECTURE = "nanoGPT"
_ARGUMENTS = ("n_layer", "n_head", "n_embd", "block_size", "vocab_size")
_STORAGES = ("Float", "Double", "Half", "BFloat16", "Long", "Int", "Short", "Char", "Byte", "Bool")


def _tensor(storage: object, _first: int, shape: tuple[int, ...], *_more: object) -> object:
    if not is_shape(shape):
        raise ValueError(shape)
    return storage, math.prod(shape)


def _parameter(tensor: object, *_more: object) -> object:
    return tensor


# A tensor becomes what it says of itself: its storage and how many numbers it has.
_TENSORS = StandIns(
    constants={f"torch {kind}Storage": kind for kind in _STORAGES},
    functions={
        "torch._utils _rebuild_tensor_v2": _tensor,
        "torch._utils _rebuild_parameter": _parameter,
        "collections OrderedDict": dict,
    },
    reference=lambda place: place,
)


def describe_nanogpt(path: Path) -> Description:
    """What the file says of its model, from the names and sizes in it."""
    try:
        n_bytes = size_of(path)
    except CheckpointError as error:
        return Description(n_bytes=0, reason=str(error))
    description = Description(n_bytes=n_bytes, architecture=ARCHITECTURE)
    try:
        checkpoint = _checkpoint(path)
    except CheckpointError as error:
        return replace(description, reason=str(error))
    arguments = checkpoint["model_args"]
    description = replace(
        description,
        n_layer=size(arguments.get("n_layer")),
        n_head=size(arguments.get("n_head")),
        n_parameters=_n_parameters(checkpoint["model"]),
    )
    try:
        _check(arguments, checkpoint.get("config"), path)
    except (CheckpointError, TokenizerError) as error:
        return replace(description, reason=str(error))
    return description


def _check(arguments: Mapping[str, Any], config: object, path: Path) -> None:
    from engine.checkpoints.nanogpt_tokens import vocabulary_of  # noqa: PLC0415 - loads a library

    for name in _ARGUMENTS:
        if not size(arguments.get(name)):
            raise CheckpointError(f"{path.name} gives no {name} among its model_args.")
    vocabulary_of(path, config, arguments["vocab_size"])


def _checkpoint(path: Path) -> Mapping[str, Any]:
    """What was saved, with the sizes and the named tensors in it."""
    value = read_pickle(_pickled(path), Path(path.name), _TENSORS)
    match value:
        case {"model_args": dict(), "model": dict()}:
            return dict(value)
    raise CheckpointError(f"{path.name} holds no 'model_args' and 'model', as nanoGPT writes them.")


def _pickled(path: Path) -> bytes:
    try:
        with zipfile.ZipFile(path) as archive:
            for entry in archive.infolist():
                if entry.filename.partition("/")[2] == "data.pkl":
                    if entry.compress_type != zipfile.ZIP_STORED or entry.file_size > MOST_BYTES:
                        break
                    return archive.read(entry)
    except OSError as error:
        raise unreadable(path, error) from error
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, ValueError) as error:
        raise CheckpointError(
            f"{path.name} is cut off, or no file of torch.save since torch 1.6."
        ) from error
    raise CheckpointError(f"{path.name} holds no list of tensors that could be read.")


def _n_parameters(model: Mapping[str, Any]) -> int:
    """How many numbers there are; tensors that share a storage, as tied weights do, count once."""
    by_storage: dict[str, int] = {}
    for name, tensor in model.items():
        match tensor:
            case (storage, int(n)) if is_weight(str(name)):
                key = repr(storage)[:200]
                by_storage[key] = max(n, by_storage.get(key, 0))
    return sum(by_storage.values())
