"""This program's own kind of model on disk: a folder of three files, none of them pickled.

- `config.json`: the model's configuration, the format's version, and facts about its training;
- `model.safetensors`: the weights by their names in `engine.model`, in float32 or float16;
- `tokenizer.json`: the vocabulary.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import safetensors
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from engine.config import ModelConfig
from engine.errors import CheckpointError, ConfigError, TokenizerError
from engine.model import Transformer
from engine.tokenizers import Tokenizer, load_tokenizer

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
        temporary = folder / f"{CONFIG_FILE}.tmp"
        temporary.write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
        temporary.replace(folder / CONFIG_FILE)
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
    temporary.replace(path)


def load_checkpoint(folder: Path) -> Checkpoint:
    """The model, its tokenizer and its facts.

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
    with torch.device("meta"):  # only names and shapes
        model = Transformer(config)
    path = folder / WEIGHTS_FILE
    tensors = read_tensors(path)
    check_tensors(path, tensors, dict(model.state_dict()))
    model.load_state_dict(tensors, assign=True)
    model.eval()
    return Checkpoint(model, tokenizer, stored["training"])


def read_tensors(path: Path) -> dict[str, Tensor]:
    """All tensors of a safetensors file by name, as float32.

    Raises:
        CheckpointError: the file is missing, cut off, or no safetensors file.
    """
    try:
        tensors = load_file(path)
    except FileNotFoundError:
        raise CheckpointError(f"{path} does not exist; it should hold the weights.") from None
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror or error}.") from error
    except safetensors.SafetensorError as error:
        raise CheckpointError(f"{path} is damaged or cut off ({error}).") from error
    return {name: tensor.to(torch.float32) for name, tensor in tensors.items()}


def check_tensors(path: Path, found: dict[str, Tensor], wanted: dict[str, Tensor]) -> None:
    """Compare names, shapes and finiteness with what a model needs.

    Raises:
        CheckpointError: a tensor is missing, unexpected, misshaped, or not finite.
    """
    for name, tensor in wanted.items():
        if name not in found:
            raise CheckpointError(f"{path} lacks the tensor {name!r}.")
        if found[name].shape != tensor.shape:
            raise CheckpointError(
                f"{path}: {name!r} has the shape {list(found[name].shape)}; "
                f"the configuration asks for {list(tensor.shape)}."
            )
        if not torch.isfinite(found[name]).all():
            raise CheckpointError(f"{path}: {name!r} holds values that are not finite.")
    for name in found:
        if name not in wanted:
            raise CheckpointError(
                f"{path} holds {name!r}, which the configured model has no place for."
            )


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
        raise CheckpointError(f"{path} was not written by this program: no format {FORMAT!r}.")
    if stored.get("version") != VERSION:
        raise CheckpointError(
            f"{path} has version {stored.get('version')!r}; this program reads {VERSION}."
        )
    for name in ("model", "training"):
        if not isinstance(stored.get(name), dict):
            raise CheckpointError(f"{path} has no section named {name!r}.")
    return stored
