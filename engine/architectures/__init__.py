"""The families of models that can be opened, and how a checkpoint of one becomes a model.

A family is one file here and one row of ARCHITECTURES.
"""

import re
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from engine.architectures import (
    gemma,
    gemma2,
    gemma3,
    gpt2,
    gpt_neo,
    gpt_neox,
    llama,
    mistral,
    olmo2,
    phi3,
    qwen2,
    qwen3,
)
from engine.architectures._architecture import Architecture, Settings
from engine.cancelling import Cancelled, never
from engine.checkpoints.finite import all_finite
from engine.checkpoints.raw import RawCheckpoint
from engine.config import ModelConfig
from engine.errors import CheckpointError, ConfigError, quoted
from engine.formats import FLOAT32, FormatChoice
from engine.matrices import Read, decide, prepare
from engine.memory import available_bytes
from engine.model import Transformer
from engine.weight_room import WeightRoom

ARCHITECTURES: tuple[Architecture, ...] = (
    gpt2.ARCHITECTURE,
    llama.ARCHITECTURE,
    mistral.ARCHITECTURE,
    qwen2.ARCHITECTURE,
    qwen3.ARCHITECTURE,
    gpt_neox.ARCHITECTURE,
    gpt_neo.ARCHITECTURE,
    olmo2.ARCHITECTURE,
    phi3.ARCHITECTURE,
    gemma.ARCHITECTURE,
    gemma2.ARCHITECTURE,
    gemma3.ARCHITECTURE,
)

_LAYER = re.compile(r"^blocks\.(\d+)\.")
_READABLE = (torch.float32, torch.float16, torch.bfloat16)

Told = Callable[[float], None]  # how much of the weights has been read, 0 to 1


def build(
    raw: RawCheckpoint,
    choice: FormatChoice = FLOAT32,
    cancelled: Cancelled = never,
    told: Told = lambda _share: None,
) -> Transformer:
    """The model of a checkpoint in the format that was chosen, ready to run; see `fill`.

    `told` hears after each tensor how much of the weights has been read, 0 to 1.

    Raises:
        CheckpointError: the family is unknown, its settings are impossible, a tensor is
            missing, unexpected, misshaped, of an unreadable kind, or not finite, or the memory
            that is available is too small.
        EngineError: there is no such device.
        CancelledError: `cancelled` said so between two tensors.
    """
    architecture = _architecture_of(raw)
    try:
        config = architecture.config_from(Settings(raw.settings))
    except ConfigError as error:
        raise CheckpointError(f"{raw.path}: {error}") from error
    if raw.tokenizer.vocab_size > config.vocab_size:
        raise CheckpointError(
            f"{raw.path}: the tokenizer has {raw.tokenizer.vocab_size} tokens, the model only "
            f"{config.vocab_size}; they do not belong together."
        )
    weights = _Weights(raw, architecture, config)
    weights.check_depth()
    with torch.device("meta"):  # only names and shapes, before anything is read
        model = Transformer(config)
    wanted = dict(model.state_dict())
    weights.check_unexpected(wanted)
    fill(model, weights.read, raw.path, choice, cancelled, told)
    return model.eval()


def fill(
    model: Transformer,
    read: Read,
    path: Path,
    choice: FormatChoice = FLOAT32,
    cancelled: Cancelled = never,
    told: Told = lambda _share: None,
) -> None:
    """Read all weights of a model that has no memory yet, in the format that was chosen.

    It can be used then, and is quicker after `matrices.pack`.

    Where "automatic" is, that is the most exact one that there is room for.

    `told` hears after each tensor how much of the weights has been read, 0 to 1; `path` only
    names the model in errors.

    Raises:
        CheckpointError: the memory that is available is too small, or `read` says so.
        EngineError: there is no such device.
        CancelledError: `cancelled` said so between two tensors.
    """
    total, done = model.n_weights, 0
    held = decide(choice, total)
    room = WeightRoom.of(model, held.device, available_bytes())
    held = room.settle(held, choice, total, path)

    def read_and_tell(name: str, shape: torch.Size) -> Tensor:
        nonlocal done
        tensor = read(name, shape)
        done += tensor.numel()
        told(done / total)
        return tensor

    prepare(model, held, read_and_tell, cancelled, packs_later=True)


def _architecture_of(raw: RawCheckpoint) -> Architecture:
    model_type = raw.settings.get("model_type")
    for architecture in ARCHITECTURES:
        if model_type in architecture.model_types:
            return architecture
    known = [name for architecture in ARCHITECTURES for name in architecture.model_types]
    raise CheckpointError(
        f"{raw.path} is of the family {quoted(model_type)}, which is not known here; "
        f"known: {', '.join(known)}."
    )


class _Weights:
    """One checkpoint's tensors, asked for by our names."""

    def __init__(self, raw: RawCheckpoint, architecture: Architecture, config: ModelConfig) -> None:
        self.raw = raw
        self.architecture = architecture
        self.config = config

    def check_depth(self) -> None:
        """Stop before a model is made that has more layers than the file can hold."""
        last = self.config.n_layer - 1
        for name in self._theirs(f"blocks.{last}.attention.output.weight"):
            self._tensor(name)

    def check_unexpected(self, wanted: dict[str, Tensor]) -> None:
        """Name a tensor that none of ours is made of."""
        used = {self._stored(theirs) for ours in wanted for theirs in self._theirs(ours)}
        if self.config.tied_output:
            used.update(map(self._stored, self._theirs("output.weight")))
        ignored = [re.compile(pattern) for pattern in self.architecture.ignored]
        for name in self.raw.tensors:
            if name not in used and not any(pattern.fullmatch(name) for pattern in ignored):
                raise CheckpointError(
                    f"{self.raw.path} holds {self._called(name)}, which a model of these settings "
                    "has no place for."
                )

    def read(self, ours: str, shape: torch.Size) -> Tensor:
        """One of our tensors, in memory of its own, as float32."""
        names = self._theirs(ours)
        parts = [self._tensor(name) for name in names]
        for name, part in zip(names, parts, strict=True):
            if not all_finite(part):
                raise CheckpointError(
                    f"{self.raw.path}: {self._called(name)} holds values that are not finite."
                )
        reshape = self.architecture.reshape.get(_split(ours)[0])
        try:
            tensor = torch.cat(parts) if len(parts) > 1 else parts[0]
            if reshape is not None:
                tensor = reshape(tensor, self.config)
        except (RuntimeError, IndexError):  # parts that do not fit together
            tensor = torch.empty(0)
        if tensor.shape != shape:
            named = " with ".join(map(self._called, names))
            shapes = " with ".join(str(list(part.shape)) for part in parts)
            raise CheckpointError(
                f"{self.raw.path}: {named} has the shape {shapes}, which does not give the "
                f"{list(shape)} that the settings ask for."
            )
        # A part of a larger tensor would keep all of that in memory.
        is_own = self.raw.has_own_memory and tensor.untyped_storage().nbytes() == tensor.nbytes
        return tensor.to(torch.float32, copy=not is_own, memory_format=torch.contiguous_format)

    def _theirs(self, ours: str) -> tuple[str, ...]:
        template, layer = _split(ours)
        names = self.architecture.weight_names[template]
        names = (names,) if isinstance(names, str) else names
        return tuple(name.replace("{layer}", layer) for name in names)

    def _called(self, theirs: str) -> str:
        return repr(self.raw.name_in_file(theirs))

    def _stored(self, theirs: str) -> str:
        if theirs in self.raw.tensors:
            return theirs
        bare = theirs.removeprefix(self.architecture.prefix)
        return bare if bare in self.raw.tensors else theirs

    def _tensor(self, theirs: str) -> Tensor:
        name = self._stored(theirs)
        if name not in self.raw.tensors:
            raise CheckpointError(f"{self.raw.path} lacks the tensor {self._called(theirs)}.")
        tensor = self.raw.tensors[name]
        if tensor.dtype not in _READABLE:
            kind = str(tensor.dtype).removeprefix("torch.")
            raise CheckpointError(
                f"{self.raw.path}: {self._called(name)} is stored as {kind}; "
                "only float32, float16 and bfloat16 are read."
            )
        return tensor


def _split(ours: str) -> tuple[str, str]:
    """A name of ours as its template and the number of its layer."""
    found = _LAYER.match(ours)
    if found is None:
        return ours, ""
    return f"blocks.{{layer}}.{ours[found.end() :]}", found[1]


__all__ = ["ARCHITECTURES", "Architecture", "Told", "build", "fill"]
