"""How many weights a safetensors file holds, and in which kind, from its header alone."""

import math
import re
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.checkpoints.lfs_pointer import NOT_FETCHED, is_lfs_pointer
from engine.errors import CheckpointError
from engine.library.families import called
from engine.library.files import parse_json, size_of, unreadable

READABLE = ("F32", "F16", "BF16")
_LENGTH = struct.Struct("<Q")
_MOST_HEADER = 32 << 20  # bytes
_MOST_SIDES, _LONGEST_SIDE = 8, 1 << 40
# What files hold besides weights: masks, and the speeds of rotary positions.
_NO_WEIGHT = re.compile(r".*\.(attn|attention)\.(masked_)?bias|.*\.rotary_emb\.inv_freq")


def is_weight(name: str) -> bool:
    """Whether a tensor of this name is learnt, not a table that files carry along."""
    return _NO_WEIGHT.fullmatch(name) is None


def is_shape(sides: object) -> bool:
    """Whether these can be the sides of a tensor, and are soon multiplied."""
    return (
        isinstance(sides, list | tuple)
        and len(sides) <= _MOST_SIDES
        and all(type(side) is int and 0 <= side <= _LONGEST_SIDE for side in sides)
    )


@dataclass(frozen=True)
class Contents:
    """One file: its bytes, its weights, and the first tensor of a kind that is not read."""

    n_bytes: int
    n_parameters: int
    unreadable: str  # a sentence; "" if all can be read


def read_contents(path: Path) -> Contents:
    """What the header promises, held against the length of the file.

    Raises:
        CheckpointError: the file is missing, cut off, damaged, or no safetensors file.
    """
    n_bytes = size_of(path)
    stored = _header_bytes(path, n_bytes)
    header = parse_json(stored, f"the header of {path.name}")
    header.pop("__metadata__", None)
    n_parameters, end, sentence = 0, 0, ""
    for name, entry in header.items():
        kind, shape, stop = _parts(path, name, entry)
        end = max(end, stop)
        if not is_weight(name):
            continue
        n_parameters += math.prod(shape)
        if kind not in READABLE:
            sentence = sentence or (
                f"{called(name)!r} is stored as {called(kind)}; only float32, float16 and "
                "bfloat16 are read."
            )
    promised = _LENGTH.size + len(stored) + end
    if promised != n_bytes:
        raise CheckpointError(
            f"{path.name} is cut off or damaged: its header promises {promised} bytes, "
            f"it has {n_bytes}."
        )
    return Contents(n_bytes, n_parameters, sentence)


def _parts(path: Path, name: str, entry: Any) -> tuple[str, list[int], int]:  # noqa: ANN401 - JSON
    """A tensor's kind, its shape, and where it ends among the tensors."""
    match entry:
        case {"dtype": str(kind), "shape": [*shape], "data_offsets": [int(start), int(stop)]} if (
            0 <= start <= stop and is_shape(shape)
        ):
            return kind, shape, stop
    raise CheckpointError(f"{path.name} is damaged: {called(name)!r} has no place in it.")


def _header_bytes(path: Path, n_bytes: int) -> bytes:
    try:
        with path.open("rb") as file:
            start = file.read(_LENGTH.size)
            length = int(_LENGTH.unpack(start)[0]) if len(start) == _LENGTH.size else n_bytes
            if length > min(n_bytes - _LENGTH.size, _MOST_HEADER):
                if is_lfs_pointer(path):
                    raise CheckpointError(f"{path.name} {NOT_FETCHED}")
                raise CheckpointError(f"{path.name} is cut off, damaged or no safetensors file.")
            return file.read(length)
    except OSError as error:
        raise unreadable(path, error) from error
