"""From a path to a model that can run: weights, tokenizer and what is known about both."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from engine.architectures import Told, build, fill
from engine.cancelling import Cancelled, never
from engine.checkpoints import gguf, hf_folder, nanogpt
from engine.checkpoints.folder import CONFIG_FILE, open_checkpoint
from engine.checkpoints.pointed_at import meant, no_model
from engine.checkpoints.raw import RawCheckpoint
from engine.config import ModelConfig
from engine.formats import FLOAT32, FormatChoice
from engine.matrices import pack
from engine.model import Transformer
from engine.reading import ModelInfo
from engine.tokenizers import Tokenizer
from engine.tokenizers.padded import Padded

Parts = tuple[Transformer, Tokenizer, str]  # and the model's name


@dataclass(frozen=True)
class Loaded:
    """A model in memory and the tokenizer that belongs to it."""

    model: Transformer
    tokenizer: Tokenizer
    info: ModelInfo


@dataclass(frozen=True)
class Reader:
    """One kind of model on disk, known by what is in it and never by its name."""

    recognises: Callable[[Path], bool]
    read: Callable[[Path, FormatChoice, Cancelled, Told], Parts]


def _own(path: Path, choice: FormatChoice, cancelled: Cancelled, told: Told) -> Parts:
    opened = open_checkpoint(path)
    fill(opened.model, opened.weights.read, path, choice, cancelled, told)
    return opened.model, opened.tokenizer, path.name


def _foreign(
    read: Callable[[Path], RawCheckpoint],
) -> Callable[[Path, FormatChoice, Cancelled, Told], Parts]:
    def read_and_build(path: Path, choice: FormatChoice, cancelled: Cancelled, told: Told) -> Parts:
        raw = read(path)
        return build(raw, choice, cancelled, told), raw.tokenizer, raw.name

    return read_and_build


def _is_own(path: Path) -> bool:
    return (path / CONFIG_FILE).exists()


# The first that recognises a path reads it; any other settings may be damaged ones of our own.
READERS: tuple[Reader, ...] = (
    Reader(gguf.is_gguf, _foreign(gguf.read)),
    Reader(hf_folder.is_hf_folder, _foreign(hf_folder.read)),
    Reader(nanogpt.is_nanogpt, _foreign(nanogpt.read)),
    Reader(_is_own, _own),
)


def load(
    path: Path,
    choice: FormatChoice = FLOAT32,
    cancelled: Cancelled = never,
    told: Told = lambda _share: None,
    *,
    packs_later: bool = False,
) -> Loaded:
    """The model of a folder (this program's own, or Hugging Face's), a GGUF file or a `ckpt.pt`.

    A file of a folder stands for it, and a folder for the one GGUF file in it.

    `told` hears how far reading has come, where it takes long enough to ask. With `packs_later` a
    large model comes sooner, and is quicker after `matrices.pack`.

    Raises:
        CheckpointError: there is nothing at the path, or no model that can be read.
        EngineError: there is no device of the kind that was chosen.
        CancelledError: `cancelled` said so between two tensors.
    """
    try:
        # Links stay: what they lead to in a cache is called by its checksum.
        path = meant(Path(os.path.abspath(path)))  # noqa: PTH100 - `absolute` keeps the dots
        reader = next((each for each in READERS if each.recognises(path)), None)
    except (OSError, ValueError):  # too long for a path, or not allowed in one
        reader = None
    if reader is None:
        raise no_model(path)
    began = time.perf_counter()
    model, tokenizer, name = reader.read(path, choice, cancelled, told)
    if not packs_later:
        pack(model, cancelled)
    info = ModelInfo(
        name=name,
        path=str(path),
        config=model.config,
        n_parameters=n_weights(model.config),
        load_seconds=time.perf_counter() - began,
        vocabulary=tuple(map(tokenizer.token_bytes, range(tokenizer.vocab_size))),
        held=model.held,
        prefix_ids=tokenizer.prefix_ids,
    )
    if tokenizer.vocab_size < model.config.vocab_size:
        tokenizer = Padded(tokenizer, model.config.vocab_size)
    return Loaded(model, tokenizer, info)


def n_weights(config: ModelConfig) -> int:
    """How many weights a model has, in whichever format."""
    with torch.device("meta"):  # only shapes
        return sum(parameter.numel() for parameter in Transformer(config).parameters())


def use_threads(n_threads: int) -> None:
    """Let torch compute with so many threads, here and in all passes that follow."""
    torch.set_num_threads(n_threads)
