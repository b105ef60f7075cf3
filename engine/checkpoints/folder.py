"""This program's own kind of model on disk: a folder of three files, none of them pickled.

- `config.json`: the model's configuration, the format's version, and facts about its training;
- `model.safetensors`: the weights by their names in `engine.model`, in float32 or float16;
- `tokenizer.json`: the vocabulary.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import safetensors
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from engine.checkpoints.finite import all_finite
from engine.config import ModelConfig
from engine.errors import CheckpointError, ConfigError, TokenizerError, quoted
from engine.model import Transformer
from engine.tokenizers import Tokenizer, load_tokenizer
from engine.whole_file import put_in_place, write_whole

FORMAT = "attention-scope"
VERSION = 1
CONFIG_FILE = "config.json"
WEIGHTS_FILE = "model.safetensors"

DiskDtype = Literal["float32", "float16"]


@dataclass(frozen=True)
class Checkpoint:
    """A model in float32, ready to run, with its tokenizer and the facts stored beside it."""

    model: Transformer
    tokenizer: Tokenizer
    facts: dict[str, Any] = field(default_factory=dict)


def save_checkpoint(
    folder: Path,
    model: Transformer,
    tokenizer: Tokenizer,
    dtype: DiskDtype = "float32",
    facts: dict[str, Any] | None = None,
) -> None:
    """Write the three files; a folder that is already there is never left half written.

    Raises:
        CheckpointError: the folder cannot be written.
    """
    disk_dtype = {"float32": torch.float32, "float16": torch.float16}[dtype]
    tensors = {
        name: tensor.detach().to(disk_dtype).contiguous()
        for name, tensor in model.state_dict().items()
    }
    config = {
        "format": FORMAT,
        "version": VERSION,
        "model": model.config.to_dict(),
        "training": facts or {},
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tokenizer.save(folder)
        write_tensors(folder / WEIGHTS_FILE, tensors)
        write_whole(folder / CONFIG_FILE, (json.dumps(config, indent=2) + "\n").encode())
    except OSError as error:
        raise CheckpointError(f"{folder} cannot be written: {error.strerror}.") from error


def write_tensors(
    path: Path, tensors: dict[str, Tensor], metadata: dict[str, str] | None = None
) -> None:
    """Write a safetensors file whole or not at all.

    Raises:
        OSError: the file cannot be written.
    """
    temporary = path.with_name(f"{path.name}.tmp")
    try:
        save_file(tensors, temporary, metadata=metadata)
    except safetensors.SafetensorError as error:
        raise OSError(None, str(error)) from error
    put_in_place(temporary, path)


class Weights:
    """Owns the open file of a model's weights; a tensor is read when it is asked for."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with _file_in_sentences(path):
            self._file: Any = safetensors.safe_open(path, framework="pt")

    def check(self, wanted: dict[str, Tensor]) -> None:
        """See that the names and shapes are those of a model's tensors, before any is read.

        Raises:
            CheckpointError: a tensor is missing, unexpected or misshaped.
        """
        names: list[str] = self._file.keys()
        there = {name: list(self._file.get_slice(name).get_shape()) for name in names}
        _check_shapes(self._path, there, {name: list(each.shape) for name, each in wanted.items()})

    def read(self, name: str, _shape: torch.Size) -> Tensor:
        """One tensor as float32, in memory of its own.

        Raises:
            CheckpointError: the file cannot be read, or the tensor is not finite.
        """
        with _file_in_sentences(self._path):
            tensor: Tensor = self._file.get_tensor(name)
        tensor = tensor.to(torch.float32)
        _check_finite(self._path, name, tensor)
        return tensor


@dataclass(frozen=True)
class Opened:
    """A checkpoint whose weights are still to be read into its model, which has no memory yet."""

    model: Transformer
    weights: Weights
    tokenizer: Tokenizer
    facts: dict[str, Any]


def open_checkpoint(folder: Path) -> Opened:
    """What a folder holds; no weight is read.

    Raises:
        CheckpointError: a file is missing or damaged, or the files contradict each other.
    """
    stored = _read_config(folder / CONFIG_FILE)
    try:
        config = ModelConfig.from_dict(stored["model"])
        tokenizer = load_tokenizer(folder)
    except (ConfigError, TokenizerError) as error:
        raise CheckpointError(f"{folder}: {error}") from error
    if tokenizer.vocab_size > config.vocab_size:
        raise CheckpointError(
            f"{folder}: the tokenizer has {tokenizer.vocab_size} tokens, the model only "
            f"{config.vocab_size}; they do not belong together."
        )
    weights = Weights(folder / WEIGHTS_FILE)
    with torch.device("meta"):  # only names and shapes
        model = Transformer(config)
    weights.check(dict(model.state_dict()))
    return Opened(model.eval(), weights, tokenizer, stored["training"])


def load_checkpoint(folder: Path) -> Checkpoint:
    """The model, its tokenizer and its facts.

    Raises:
        CheckpointError: a file is missing or damaged, or the files contradict each other.
    """
    opened = open_checkpoint(folder)
    wanted = opened.model.state_dict()
    tensors = {name: opened.weights.read(name, each.shape) for name, each in wanted.items()}
    opened.model.load_state_dict(tensors, assign=True)
    return Checkpoint(opened.model, opened.tokenizer, opened.facts)


def read_tensors(path: Path) -> dict[str, Tensor]:
    """All tensors of a safetensors file by name, as float32.

    Raises:
        CheckpointError: the file is missing, cut off, or no safetensors file.
    """
    with _file_in_sentences(path):
        tensors = load_file(path)
    return {name: tensor.to(torch.float32) for name, tensor in tensors.items()}


def check_tensors(path: Path, found: dict[str, Tensor], wanted: dict[str, Tensor]) -> None:
    """Compare names, shapes and finiteness with what a model needs.

    Raises:
        CheckpointError: a tensor is missing, unexpected, misshaped, or not finite.
    """
    there = {name: list(tensor.shape) for name, tensor in found.items()}
    _check_shapes(path, there, {name: list(tensor.shape) for name, tensor in wanted.items()})
    for name, tensor in found.items():
        _check_finite(path, name, tensor)


def _check_shapes(path: Path, there: dict[str, list[int]], wanted: dict[str, list[int]]) -> None:
    for name, shape in wanted.items():
        if name not in there:
            raise CheckpointError(f"{path} lacks the tensor {name!r}.")
        if there[name] != shape:
            raise CheckpointError(
                f"{path}: {name!r} has the shape {there[name]}; the configuration asks for {shape}."
            )
    for name in there:
        if name not in wanted:
            raise CheckpointError(
                f"{path} holds {name!r}, which the configured model has no place for."
            )


def _check_finite(path: Path, name: str, tensor: Tensor) -> None:
    if not all_finite(tensor):
        raise CheckpointError(f"{path}: {name!r} holds values that are not finite.")


@contextmanager
def _file_in_sentences(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise CheckpointError(f"{path} does not exist; it should hold the weights.") from None
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror or error}.") from error
    except safetensors.SafetensorError as error:
        raise CheckpointError(f"{path} is damaged or cut off ({error}).") from error


def _read_config(path: Path) -> dict[str, Any]:
    try:
        stored = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise CheckpointError(f"{path} does not exist; a model's folder holds one.") from None
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}.") from error
    except ValueError as error:  # not UTF-8, not JSON
        raise CheckpointError(f"{path} is not JSON ({error}).") from error
    if not isinstance(stored, dict) or stored.get("format") != FORMAT:
        raise CheckpointError(
            f"{path} names no family of models (model_type), nor this program's format."
        )
    if stored.get("version") != VERSION:
        raise CheckpointError(
            f"{path} has version {quoted(stored.get('version'))}; this program reads {VERSION}."
        )
    for name in ("model", "training"):
        if not isinstance(stored.get(name), dict):
            raise CheckpointError(f"{path} has no section named {name!r}.")
    return stored
