"""From a path to a model that can run: weights, tokenizer and what is known about both."""

import time
from dataclasses import dataclass
from pathlib import Path

import torch

from engine.checkpoints.folder import load_checkpoint
from engine.errors import CheckpointError
from engine.model import Transformer
from engine.reading import ModelInfo
from engine.tokenizers import Tokenizer


@dataclass(frozen=True)
class Loaded:
    """A model in memory and the tokenizer that belongs to it."""

    model: Transformer
    tokenizer: Tokenizer
    info: ModelInfo


def load(path: Path) -> Loaded:
    """The model of a checkpoint folder.

    Raises:
        CheckpointError: there is no such folder, or it holds no model that can be read.
    """
    try:
        path, is_folder = path.resolve(), path.is_dir()
    except (OSError, ValueError):  # too long for a path, or not allowed in one
        is_folder = False
    if not is_folder:
        raise CheckpointError(f"{path} is no folder; open one that holds a model's config.json.")
    began = time.perf_counter()
    checkpoint = load_checkpoint(path)
    model, tokenizer = checkpoint.model, checkpoint.tokenizer
    info = ModelInfo(
        name=path.name,
        path=str(path),
        config=model.config,
        n_parameters=sum(parameter.numel() for parameter in model.parameters()),
        load_seconds=time.perf_counter() - began,
        vocabulary=tuple(map(tokenizer.token_bytes, range(tokenizer.vocab_size))),
    )
    return Loaded(model, tokenizer, info)


def use_threads(n_threads: int) -> None:
    """Let torch compute with so many threads, here and in all passes that follow."""
    torch.set_num_threads(n_threads)
