"""From a path to a model that can run: weights, tokenizer and what is known about both."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

import torch

from engine.architectures import Told, build, fill
from engine.cancelling import Cancelled, never
from engine.checkpoints import gguf, hf_folder, nanogpt
from engine.checkpoints.folder import CONFIG_FILE, open_checkpoint
from engine.checkpoints.pointed_at import meant, no_model
from engine.checkpoints.raw import RawCheckpoint
from engine.formats import FLOAT32, FormatChoice
from engine.matrices import MANY_WEIGHTS, has_packed, pack, speed_of_packed_half
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
    _try_beside(path, choice)
    model, tokenizer, name = reader.read(path, choice, cancelled, told)
    if not packs_later:
        pack(model, cancelled)
    info = ModelInfo(
        name=name,
        path=str(path),
        config=model.config,
        n_parameters=model.n_weights,
        load_seconds=time.perf_counter() - began,
        vocabulary=tuple(map(tokenizer.token_bytes, range(tokenizer.vocab_size))),
        held=model.held,
        prefix_ids=tokenizer.prefix_ids,
    )
    if tokenizer.vocab_size < model.config.vocab_size:
        tokenizer = Padded(tokenizer, model.config.vocab_size)
    return Loaded(model, tokenizer, info)


def _try_beside(path: Path, choice: FormatChoice) -> None:
    """Let what decides on a large model's format be measured while its vocabulary is read.

    Whether it is large can be told by then from its bytes alone: at least half a one a weight.
    """
    is_open = choice.number_format == "automatic" and choice.device == "cpu"
    if is_open and _n_bytes(path) >= MANY_WEIGHTS // 2 and has_packed("float16"):
        Thread(target=speed_of_packed_half).start()


def _n_bytes(path: Path) -> int:
    """What a file, or all files of a folder, take on the disk; 0 where nobody can tell."""
    try:
        files = path.iterdir() if path.is_dir() else [path]
        return sum(each.stat().st_size for each in files)
    except OSError:
        return 0


def use_threads(n_threads: int) -> None:
    """Let torch compute with so many threads, here and in all passes that follow."""
    torch.set_num_threads(n_threads)
