"""nanoGPT's checkpoints: `ckpt.pt` with weights and `model_args`, and the vocabulary near it.

The architecture is GPT-2's, with three differences: matrices are stored outputs first, the MLP's
bend is the exact GELU, and biases may be left out everywhere, also in the norms.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from engine.architectures.gpt2 import HAS_BIAS
from engine.checkpoints.beginning import begins_with
from engine.checkpoints.nanogpt_tokens import vocabulary_of
from engine.checkpoints.plain_pickle import shown
from engine.checkpoints.raw import RawCheckpoint
from engine.checkpoints.torch_file import ZIP_MAGIC, StoredTensor, TorchFile, TorchTensors
from engine.errors import CheckpointError

CHECKPOINT_FILE = "ckpt.pt"

_PICKLE_MAGIC = b"\x80"  # what torch wrote before 1.6, and any bare pickle since Python 2.3
_COMPILED = "_orig_mod."  # what torch.compile puts before each name
_SIZES = ("n_layer", "n_head", "n_embd", "block_size", "vocab_size")
_ARGUMENTS = {*_SIZES, "bias", "dropout"}
_DEEPEST = 4096

_EMBEDDING, _OUTPUT = "transformer.wte.weight", "lm_head.weight"
_MATRICES = {  # outputs and inputs, in n_embd
    "attn.c_attn": (3, 1),
    "attn.c_proj": (1, 1),
    "mlp.c_fc": (4, 1),
    "mlp.c_proj": (1, 4),
}
_NORMS = ("ln_1", "ln_2")


def is_nanogpt(path: Path) -> bool:
    """Whether there is a file of torch's or a pickle, or a folder whose only model is `ckpt.pt`."""
    try:
        if path.is_dir():
            return (path / CHECKPOINT_FILE).is_file() and not (path / "config.json").exists()
    except (OSError, ValueError):  # ValueError: not allowed in a path
        return False
    return begins_with(path, ZIP_MAGIC, _PICKLE_MAGIC)


def read(path: Path) -> RawCheckpoint:
    """What a checkpoint (or a folder's `ckpt.pt`) holds; no weight is read before it is asked for.

    Raises:
        CheckpointError: a file is missing, cut off, damaged, or holds more than plain values; or
            it is none of nanoGPT's, or its vocabulary is missing or does not belong to it.
    """
    if path.is_dir():
        path /= CHECKPOINT_FILE
    file = TorchFile(path)
    arguments, stored = _parts(file)
    _check_arguments(arguments, path)
    _check_tensors(stored, arguments, file)
    tensors = _HuggingFaceNames(TorchTensors(file, stored))
    settings = {
        "model_type": "gpt2",
        "n_layer": arguments["n_layer"],
        "n_head": arguments["n_head"],
        "n_embd": arguments["n_embd"],
        "n_positions": arguments["block_size"],
        "vocab_size": arguments["vocab_size"],
        "layer_norm_epsilon": 1e-5,
        # nanoGPT took GPT-2's approximation until months after it began to store `bias`.
        "activation_function": "gelu" if "bias" in arguments else "gelu_new",
        "tie_word_embeddings": _is_tied(stored, tensors),
        HAS_BIAS: arguments.get("bias", True),
    }
    tokenizer = vocabulary_of(path, file.value.get("config"), arguments["vocab_size"])
    name = path.parent.name if path.name == CHECKPOINT_FILE else path.stem
    return RawCheckpoint(settings, tensors, tokenizer, name, path)


def _parts(file: TorchFile) -> tuple[dict[str, Any], dict[str, StoredTensor]]:
    """The arguments that made the model, and its tensors by their names before compilation."""
    value = file.value
    if not isinstance(value, dict) or not value:
        raise CheckpointError(
            f"{file.path} holds no checkpoint; one of nanoGPT's has 'model' and 'model_args'."
        )
    if all(isinstance(each, StoredTensor) for each in value.values()):
        raise CheckpointError(
            f"{file.path} holds weights alone, which do not say what model they belong to; one of "
            "nanoGPT's checkpoints has 'model_args' beside them."
        )
    for name in ("model", "model_args"):
        if not isinstance(value.get(name), dict):
            raise CheckpointError(
                f"{file.path} lacks {name!r}; one of nanoGPT's checkpoints has 'model' and "
                "'model_args'."
            )
    stored: dict[str, StoredTensor] = {}
    for name, tensor in value["model"].items():
        if not isinstance(name, str) or not isinstance(tensor, StoredTensor):
            raise CheckpointError(
                f"{file.path}: {shown(name)} in 'model' is no tensor with a name."
            )
        bare = name.removeprefix(_COMPILED)
        if bare in stored:
            raise CheckpointError(f"{file.path} is damaged: it holds {bare!r} under two names.")
        stored[bare] = tensor
    return value["model_args"], stored


def _check_arguments(arguments: dict[str, Any], path: Path) -> None:
    for name in _SIZES:
        value = arguments.get(name)
        if name not in arguments:
            raise CheckpointError(f"{path} lacks {name!r} in its model_args.")
        if type(value) is not int or value < 1:
            raise CheckpointError(
                f"{path}: {name} = {shown(value)} in model_args should be 1 or more, and whole."
            )
    if arguments["n_layer"] > _DEEPEST:
        raise CheckpointError(
            f"{path}: n_layer = {arguments['n_layer']} is not possible; {_DEEPEST} is the most."
        )
    if type(arguments.get("bias", True)) is not bool:
        raise CheckpointError(
            f"{path}: bias = {shown(arguments['bias'])} in model_args should be True or False."
        )
    for name in arguments:
        if name not in _ARGUMENTS:
            raise CheckpointError(
                f"{path} has {shown(name)} in its model_args, which nanoGPT does not know; a model "
                "that computes something else is not read."
            )


def _check_tensors(
    stored: dict[str, StoredTensor], arguments: dict[str, Any], file: TorchFile
) -> None:
    """What only this kind of file can have wrong; the rest shows when the model is built."""
    n_bytes = sum(tensor.n_bytes for name, tensor in stored.items() if name != _OUTPUT)
    if n_bytes > file.n_bytes:
        raise CheckpointError(
            f"{file.path} is damaged: its tensors take {n_bytes} bytes, the file has "
            f"{file.n_bytes} in all."
        )
    width = arguments["n_embd"]
    for name, tensor in stored.items():
        module, _, part = name.rpartition(".")
        if part == "bias" and _has_bias(module) and not arguments.get("bias", True):
            raise CheckpointError(f"{file.path} holds {name!r}, but says bias = False.")
        if part == "weight" and _short(module) in _MATRICES:
            shape = [n * width for n in _MATRICES[_short(module)]]
            if list(tensor.shape) != shape:
                raise CheckpointError(
                    f"{file.path}: {name!r} has the shape {list(tensor.shape)}; n_embd = {width} "
                    f"asks for {shape}."
                )


def _short(module: str) -> str:
    """A module's name inside of its layer: attn.c_attn."""
    return ".".join(module.split(".")[3:])


def _has_bias(module: str) -> bool:
    return module == "transformer.ln_f" or _short(module) in (*_MATRICES, *_NORMS)


def _is_tied(stored: dict[str, StoredTensor], tensors: Mapping[str, Tensor]) -> bool:
    """Whether the output matrix is the embedding, as nanoGPT makes it."""
    embedding, output = stored.get(_EMBEDDING), stored.get(_OUTPUT)
    if embedding is None or output is None or embedding == output:
        return True
    return torch.equal(tensors[_EMBEDDING].float(), tensors[_OUTPUT].float())


class _HuggingFaceNames(Mapping[str, Tensor]):
    """The tensors as Hugging Face's GPT-2 has them: matrices inputs first."""

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        self._tensors = tensors

    def __getitem__(self, name: str) -> Tensor:
        tensor = self._tensors[name]
        is_matrix = name.endswith(".weight") and _short(name.removesuffix(".weight")) in _MATRICES
        return tensor.mT if is_matrix else tensor

    def __contains__(self, name: object) -> bool:
        return name in self._tensors

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)
