"""Files as torch.save writes them: a zip archive of one pickle and of the tensors' bytes.

The pickle is read as plain values and never run; a tensor's bytes are read when it is asked for.
Sizes are held against the file before anything is made of them. (torch.load would refuse most
programs too, but makes room for whatever a damaged file promises.)
"""

import math
import mmap
import struct
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from engine.checkpoints.plain_pickle import MOST_BYTES, StandIns, read_pickle
from engine.errors import CheckpointError

ZIP_MAGIC = b"PK\x03\x04"
_LOCAL_HEADER = struct.Struct("<4s22xHH")  # letters, and the lengths of a name and of extras
_PICKLE = "data.pkl"
_LARGEST = 1 << 40  # of a tensor's sizes and steps; torch counts in 64 bits


@dataclass(frozen=True)
class _Storage:
    """A run of numbers: the record that holds it, and how many there are."""

    key: str
    dtype: torch.dtype
    n_numbers: int


@dataclass(frozen=True)
class StoredTensor:
    """Where one tensor lies among the numbers of a storage."""

    storage: _Storage
    first: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def n_bytes(self) -> int:
        """What its numbers take in the file."""
        return math.prod(self.shape) * self.storage.dtype.itemsize


@dataclass(frozen=True)
class _Record:
    start: int
    n_bytes: int


class TorchFile:
    """Owns a mapped file; `value` is what was saved, with a `StoredTensor` for each tensor.

    Raises:
        CheckpointError: the file cannot be read, is cut off or damaged, was not written by
            torch.save, or holds more than tensors and plain values.
    """

    value: Any  # plain values of any kind

    def __init__(self, path: Path) -> None:
        self.path = path
        self._data = _mapped(path)
        self._records = _records(self._data, path)
        pickled = self._records.get(_PICKLE)
        if pickled is None:
            raise CheckpointError(f"{path} is a zip archive, but not one that torch.save wrote.")
        order = self._records.get("byteorder")
        if order is not None and self._begin(order, 6) != b"little":
            raise CheckpointError(
                f"{path} stores numbers most significant byte first, which is not read."
            )
        self.value = read_pickle(self._begin(pickled, MOST_BYTES + 1), path, TENSORS)

    @property
    def n_bytes(self) -> int:
        """The size of the file."""
        return len(self._data)

    def check(self, name: str, stored: StoredTensor) -> None:
        """Make sure that a tensor can be read.

        Raises:
            CheckpointError: its numbers are not all in the file, or do not lie side by side.
        """
        storage, record = stored.storage, self._records.get(f"data/{stored.storage.key}")
        if record is None:
            raise CheckpointError(f"{self.path} is damaged: the numbers of {name!r} are missing.")
        n_numbers = math.prod(stored.shape)
        reach = sum((n - 1) * step for n, step in zip(stored.shape, stored.strides, strict=True))
        is_dense = n_numbers and reach + 1 == n_numbers
        there = min(storage.n_numbers, record.n_bytes // storage.dtype.itemsize)
        if not is_dense or stored.first + n_numbers > there:
            raise CheckpointError(
                f"{self.path} is damaged: {name!r} of the shape {list(stored.shape)} does not fit "
                f"the {there} numbers stored for it."
            )

    def tensor(self, stored: StoredTensor) -> Tensor:
        """A tensor that was checked, in memory of its own."""
        start = self._records[f"data/{stored.storage.key}"].start
        start += stored.first * stored.storage.dtype.itemsize
        raw = bytearray(self._data[start : start + stored.n_bytes])
        return torch.frombuffer(raw, dtype=stored.storage.dtype).as_strided(
            stored.shape, stored.strides
        )

    def _begin(self, record: _Record, most: int) -> bytes:
        return self._data[record.start : record.start + min(record.n_bytes, most)]


class TorchTensors(Mapping[str, Tensor]):
    """Gives the tensors of a file by name, each read when it is asked for."""

    def __init__(self, file: TorchFile, stored: Mapping[str, StoredTensor]) -> None:
        for name, place in stored.items():
            file.check(name, place)
        self._file = file
        self._stored = stored

    def __getitem__(self, name: str) -> Tensor:
        return self._file.tensor(self._stored[name])

    def __contains__(self, name: object) -> bool:
        return name in self._stored  # a Mapping would read the tensor to find out

    def __iter__(self) -> Iterator[str]:
        return iter(self._stored)

    def __len__(self) -> int:
        return len(self._stored)


def _mapped(path: Path) -> mmap.mmap:
    try:
        with path.open("rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}.") from error
    except ValueError:  # an empty file cannot be mapped
        raise CheckpointError(f"{path} is empty; it should hold a model.") from None
    if data[: len(ZIP_MAGIC)] != ZIP_MAGIC:
        raise CheckpointError(
            f"{path} is no file of torch.save, or one from before torch 1.6; save it again with "
            "a newer torch."
        )
    return data


def _records(data: mmap.mmap, path: Path) -> dict[str, _Record]:
    """What the archive holds, by its names inside of the archive's one folder."""
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError, struct.error) as error:
        raise CheckpointError(
            f"{path} is cut off or damaged: its table of contents cannot be read."
        ) from error
    return {entry.filename.partition("/")[2]: _record(entry, data, path) for entry in entries}


def _record(entry: zipfile.ZipInfo, data: mmap.mmap, path: Path) -> _Record:
    try:
        letters, n_name, n_extra = _LOCAL_HEADER.unpack_from(data, entry.header_offset)
    except struct.error:  # beyond the end
        letters = n_name = n_extra = 0
    start = entry.header_offset + _LOCAL_HEADER.size + n_name + n_extra
    is_plain = entry.compress_type == zipfile.ZIP_STORED and not entry.flag_bits & 1
    if letters != ZIP_MAGIC or not is_plain or start + entry.file_size > len(data):
        raise CheckpointError(
            f"{path} is cut off or damaged: {entry.filename!r} cannot be found in it."
        )
    return _Record(start, entry.file_size)


# What torch's pickles mention: kinds of numbers, where they lie, and how a tensor is made of them.


def _sizes(value: object) -> tuple[int, ...]:
    if type(value) is not tuple or not all(type(n) is int and 0 <= n < _LARGEST for n in value):
        raise ValueError(value)
    return value


def _storage(reference: object) -> _Storage:
    match reference:
        case ("storage", torch.dtype() as dtype, str(key), str(), int(n_numbers)) if n_numbers >= 0:
            return _Storage(key, dtype, n_numbers)
    raise ValueError(reference)


def _tensor(storage: object, first: object, shape: object, strides: object, *_: object) -> object:
    sizes, steps = _sizes(shape), _sizes(strides)
    if type(storage) is not _Storage or type(first) is not int or first < 0:
        raise ValueError(storage)
    if len(sizes) != len(steps):
        raise ValueError(strides)
    return StoredTensor(storage, first, sizes, steps)


def _parameter(tensor: object, *_: object) -> object:
    return tensor


def _empty_dict() -> object:
    return {}


_STORAGES = {
    "Float": torch.float32,
    "Half": torch.float16,
    "BFloat16": torch.bfloat16,
    "Double": torch.float64,
    "Long": torch.int64,
    "Int": torch.int32,
    "Short": torch.int16,
    "Char": torch.int8,
    "Byte": torch.uint8,
    "Bool": torch.bool,
}
TENSORS = StandIns(
    constants={f"torch {kind}Storage": dtype for kind, dtype in _STORAGES.items()},
    functions={
        "collections OrderedDict": _empty_dict,
        "torch._utils _rebuild_tensor_v2": _tensor,
        "torch._utils _rebuild_parameter": _parameter,
    },
    reference=_storage,
)
