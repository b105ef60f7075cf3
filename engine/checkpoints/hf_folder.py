"""Folders as Hugging Face's library writes them: config.json, safetensors files, a vocabulary.

Weights are read from safetensors only: a pickle could run whatever it likes.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import safetensors
from torch import Tensor

from engine.checkpoints.lfs_pointer import NOT_FETCHED, is_lfs_pointer
from engine.checkpoints.raw import RawCheckpoint
from engine.errors import CheckpointError, TokenizerError, quoted
from engine.tokenizers.hugging_face import read_vocabulary

CONFIG_FILE = "config.json"
WEIGHTS_FILE = "model.safetensors"
INDEX_FILE = "model.safetensors.index.json"

Json = dict[str, Any]


class _Shards(Mapping[str, Tensor]):
    """Owns the open files; a tensor is read when it is asked for."""

    def __init__(self, paths: list[Path]) -> None:
        self._places: dict[str, tuple[Path, Any]] = {}
        for path in paths:
            file = _opened(path)
            for name in file.keys():  # noqa: SIM118 - the library's file is no mapping
                if name in self._places:
                    other = self._places[name][0].name
                    raise CheckpointError(f"{path} holds {name!r}, and so does {other}.")
                self._places[name] = (path, file)

    def __getitem__(self, name: str) -> Tensor:
        path, file = self._places[name]
        try:
            tensor: Tensor = file.get_tensor(name)
        except (OSError, safetensors.SafetensorError) as error:
            raise CheckpointError(f"{path} is damaged or cut off ({error}).") from error
        return tensor

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, name: object) -> bool:
        return name in self._places


def is_hf_folder(path: Path) -> bool:
    """Whether there is a folder whose config.json names a family of models."""
    try:
        settings = json.loads((path / CONFIG_FILE).read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(settings, dict) and "model_type" in settings


def read(folder: Path) -> RawCheckpoint:
    """What a folder holds; no weight is read before it is asked for.

    Raises:
        CheckpointError: a file is missing or damaged, or the weights are of a kind that is not
            read.
    """
    settings = _read_json(folder / CONFIG_FILE)
    if settings.get("quantization_config") is not None:
        method = settings["quantization_config"]
        method = method.get("quant_method") if isinstance(method, dict) else method
        raise CheckpointError(
            f"{folder} holds weights quantised by {quoted(method)}; "
            "only float32, float16 and bfloat16 are read from such folders."
        )
    tensors = _Shards(_weight_files(folder))
    try:
        tokenizer = read_vocabulary(folder)
    except TokenizerError as error:
        raise CheckpointError(str(error)) from error
    return RawCheckpoint(settings, tensors, tokenizer, _name_of(folder), folder)


def _weight_files(folder: Path) -> list[Path]:
    """The files that hold the weights: those of the index, the one, or all there are."""
    index = folder / INDEX_FILE
    if index.exists():
        return _indexed_files(folder, _read_json(index))
    if (folder / WEIGHTS_FILE).exists():
        return [folder / WEIGHTS_FILE]
    found = sorted(folder.glob("*.safetensors"))
    if found:
        return found
    for pickled in sorted([*folder.glob("*.bin"), *folder.glob("*.pt"), *folder.glob("*.pth")]):
        raise CheckpointError(
            f"{folder} has its weights in {pickled.name} only, a pickle, which may run programs "
            "when it is opened; save the model again as safetensors."
        )
    raise CheckpointError(f"{folder} holds no weights; there should be a {WEIGHTS_FILE}.")


def _indexed_files(folder: Path, index: Json) -> list[Path]:
    weight_map = index.get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise CheckpointError(f"{folder / INDEX_FILE} has no section named 'weight_map'.")
    for name in weight_map.values():
        if not isinstance(name, str) or Path(name).name != name or not name.isprintable():
            raise CheckpointError(
                f"{folder / INDEX_FILE} names {quoted(name)}, which is no file of this folder."
            )
    return [folder / name for name in sorted(set(weight_map.values()))]


def _opened(path: Path) -> Any:  # noqa: ANN401 - the library has no types
    try:
        return safetensors.safe_open(path, framework="pt")
    except FileNotFoundError:
        raise CheckpointError(f"{path} does not exist; it should hold weights.") from None
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror or error}.") from error
    except safetensors.SafetensorError as error:
        if is_lfs_pointer(path):
            raise CheckpointError(f"{path} {NOT_FETCHED}") from None
        raise CheckpointError(f"{path} is damaged or cut off ({error}).") from error


def _name_of(folder: Path) -> str:
    """The repository's name where the folder is of Hugging Face's cache, else the folder's."""
    above = folder.parent
    kind, *parts = above.parent.name.split("--")
    if above.name == "snapshots" and kind == "models" and parts:
        return "/".join(parts)
    return folder.name


def _read_json(path: Path) -> Json:
    try:
        data = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise CheckpointError(f"{path} does not exist; a model's folder holds one.") from None
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:  # not UTF-8, not JSON, too deep
        raise CheckpointError(f"{path} is not JSON ({error}).") from error
    if not isinstance(data, dict):
        raise CheckpointError(f"{path} holds no settings by name.")
    return data
