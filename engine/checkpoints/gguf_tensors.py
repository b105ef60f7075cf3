"""The tensors of one GGUF file or several, each made from its bytes only when it is asked for."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from mmap import mmap
from pathlib import Path

import numpy as np
import torch
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, quants
from numpy.typing import NDArray
from torch import Tensor

from engine.checkpoints.gguf_header import TensorPlace
from engine.errors import CheckpointError

# So many weights are dequantised at a time: what lies between two steps then stays in the
# processor's cache, and numpy's cost per call is spread. The package's own 16 rows take twice
# as long.
_CHUNK = 1 << 17

_PLAIN = {
    GGMLQuantizationType.F32: torch.float32,
    GGMLQuantizationType.F16: torch.float16,
    GGMLQuantizationType.BF16: torch.bfloat16,
}


class GgufTensors(Mapping[str, Tensor]):
    """Owns the mapped files; gives each tensor by its name, in memory of its own.

    What lies there as float32, float16 or bfloat16 comes as that, all else as float32.
    `undo` names, for some tensors, what has to be undone in them.
    """

    def __init__(
        self,
        parts: Sequence[mmap],
        places: Mapping[str, TensorPlace],
        undo: Mapping[str, Callable[[Tensor], Tensor]],
    ) -> None:
        self._parts = parts
        self._places = places
        self._undo = undo

    def __getitem__(self, name: str) -> Tensor:
        place = self._places[name]
        storage = GGMLQuantizationType(place.storage)
        raw = np.frombuffer(self._parts[place.part], np.uint8, _n_bytes(place), place.start)
        plain = _PLAIN.get(storage)
        if plain is None:
            tensor = torch.from_numpy(_dequantised(raw, storage))
        else:
            tensor = torch.from_numpy(raw.copy()).view(plain)
        tensor = tensor.view(place.shape)
        return self._undo[name](tensor) if name in self._undo else tensor

    def __contains__(self, name: object) -> bool:
        return name in self._places  # a Mapping would read the tensor to find out

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


def check_places(places: Mapping[str, TensorPlace], n_bytes: int, path: Path) -> None:
    """Make sure that every tensor can be read from a file of so many bytes.

    Raises:
        CheckpointError: a tensor reaches beyond the file, or is stored in a way that is not read.
    """
    readable = {storage for storage in {p.storage for p in places.values()} if _is_read(storage)}
    for name, place in places.items():
        if place.storage not in readable:
            raise CheckpointError(
                f"{path}: {name!r} is stored as {_storage_name(place.storage)}, which is not read; "
                "choose a file in another quantisation, Q8_0 for one."
            )
        block, _ = GGML_QUANT_SIZES[GGMLQuantizationType(place.storage)]
        if place.shape[-1] % block:
            raise CheckpointError(
                f"{path} is damaged: {name!r} has rows of {place.shape[-1]} numbers, stored in "
                f"blocks of {block}."
            )
        if place.start + _n_bytes(place) > n_bytes:
            raise CheckpointError(
                f"{path} is cut off: {name!r} takes {_n_bytes(place)} bytes from byte "
                f"{place.start} on, the file has {n_bytes} in all."
            )


def _n_bytes(place: TensorPlace) -> int:
    block, block_bytes = GGML_QUANT_SIZES[GGMLQuantizationType(place.storage)]
    return math.prod(place.shape) // block * block_bytes


def _is_read(storage: int) -> bool:
    """Whether the package can dequantise this kind: it does so with one block of zeros."""
    try:
        kind = GGMLQuantizationType(storage)
        if kind not in _PLAIN:
            quants.dequantize(np.zeros((1, GGML_QUANT_SIZES[kind][1]), np.uint8), kind)
    except (ValueError, NotImplementedError):
        return False
    return True


def _storage_name(storage: int) -> str:
    try:
        return GGMLQuantizationType(storage).name
    except ValueError:
        return f"number {storage}"


def _dequantised(raw: NDArray[np.uint8], storage: GGMLQuantizationType) -> NDArray[np.float32]:
    block, block_bytes = GGML_QUANT_SIZES[storage]
    n_blocks = len(raw) // block_bytes
    numbers = np.empty(n_blocks * block, np.float32)
    step = _CHUNK // block
    with np.errstate(invalid="ignore", over="ignore"):  # damaged scales; found when it is built
        for first in range(0, n_blocks, step):
            last = min(first + step, n_blocks)
            chunk = raw[first * block_bytes : last * block_bytes]
            numbers[first * block : last * block] = quants.dequantize(chunk[None], storage)[0]
    return numbers
