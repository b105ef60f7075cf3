"""The header of a GGUF file: its metadata, and where each tensor lies.

No number in it is trusted: each count and length is held against what is left of the file before
anything is made of it, so a damaged header costs no more memory than the file has bytes. (The
`gguf` package's own reader does not check, and makes an array of each of a vocabulary's strings:
five seconds for 49,152 tokens and their merges, where this takes a tenth of one.)
"""

import math
import struct
from dataclasses import dataclass
from mmap import mmap
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.errors import CheckpointError

MAGIC = b"GGUF"
VERSIONS = (2, 3)
_FLOAT32, _BOOL, _STRING, _ARRAY = 6, 7, 8, 9
_SCALARS = {  # the format's number of a type → how it is stored
    0: "<u1",
    1: "<i1",
    2: "<u2",
    3: "<i2",
    4: "<u4",
    5: "<i4",
    _FLOAT32: "<f4",
    _BOOL: "|b1",
    10: "<u8",
    11: "<i8",
    12: "<f8",
}
_SMALLEST_ENTRY = 8 + 4 + 1  # bytes: a name's length, a type, a value
_SMALLEST_TENSOR = 8 + 4 + 8 + 4 + 8  # a name's length, a rank, one size, a type, an offset
_MOST_DIMENSIONS = 4
_LENGTH = struct.Struct("<Q")


@dataclass(frozen=True)
class TensorPlace:
    """Where one tensor lies in the file, and how it is stored."""

    shape: tuple[int, ...]  # outermost axis first
    storage: int  # the format's number of a quantisation
    start: int  # its first byte
    part: int = 0  # of a model in several files, the one that it lies in, from 0


@dataclass(frozen=True)
class Header:
    """What a GGUF file says of itself; lists of texts are lists, lists of numbers are arrays."""

    metadata: dict[str, Any]
    tensors: dict[str, TensorPlace]


def read_header(data: mmap | bytes, path: Path) -> Header:
    """The header at the beginning of `data`, the whole file; `path` only names it in errors.

    Raises:
        CheckpointError: it is no GGUF file, of a version that is not read, cut off or damaged.
    """
    cursor = _Cursor(data, path)
    if data[: len(MAGIC)] != MAGIC:
        raise CheckpointError(f"{path} is no GGUF file; one begins with the letters GGUF.")
    cursor.skip(len(MAGIC))
    version = cursor.whole("<u4")
    if version not in VERSIONS:
        swapped = int.from_bytes(version.to_bytes(4, "little"), "big")
        what = "is stored most significant byte first" if swapped in VERSIONS else "has the version"
        shown = "" if swapped in VERSIONS else f" {version}"
        raise CheckpointError(
            f"{path} {what}{shown}; only GGUF versions 2 and 3 in the usual byte order are read."
        )
    n_tensors = cursor.count(_SMALLEST_TENSOR, "tensors", "<u8")
    n_entries = cursor.count(_SMALLEST_ENTRY, "entries of metadata", "<u8")
    metadata = _metadata(cursor, n_entries)
    places = _places(cursor, n_tensors)
    alignment = metadata.get("general.alignment", 32)
    if type(alignment) is not int or alignment < 1 or alignment & (alignment - 1):
        raise cursor.damaged(f"general.alignment = {alignment!r} is no power of two")
    begin = -(-cursor.at // alignment) * alignment
    return Header(
        metadata,
        {
            name: TensorPlace(place.shape, place.storage, begin + place.start)
            for name, place in places.items()
        },
    )


def _metadata(cursor: "_Cursor", n_entries: int) -> dict[str, Any]:
    metadata: dict[str, Any] = {}
    for _ in range(n_entries):
        name = cursor.text()
        if name in metadata:
            raise cursor.damaged(f"the entry {name!r} is there twice")
        metadata[name] = cursor.value(name, cursor.whole("<u4"))
    return metadata


def _places(cursor: "_Cursor", n_tensors: int) -> dict[str, TensorPlace]:
    """Each tensor's place by its name, counted from where the tensors begin."""
    places: dict[str, TensorPlace] = {}
    for _ in range(n_tensors):
        name = cursor.text()
        n_dimensions = cursor.whole("<u4")
        if not 1 <= n_dimensions <= _MOST_DIMENSIONS:
            raise cursor.damaged(f"the tensor {name!r} has {n_dimensions} axes")
        sizes = tuple(cursor.numbers("<u8", n_dimensions).tolist())
        if not math.prod(sizes):
            raise cursor.damaged(f"the tensor {name!r} has the sizes {list(sizes)}")
        if name in places:
            raise cursor.damaged(f"the tensor {name!r} is there twice")
        storage, start = cursor.whole("<u4"), cursor.whole("<u8")
        places[name] = TensorPlace(sizes[::-1], storage, start)
    return places


class _Cursor:
    """Walks through the bytes of a file; every read is held against the file's end."""

    def __init__(self, data: mmap | bytes, path: Path) -> None:
        self._data = data
        self._end = len(data)
        self._path = path
        self.at = 0

    def damaged(self, what: str) -> CheckpointError:
        return CheckpointError(f"{self._path} is damaged: {what} (near byte {self.at}).")

    def skip(self, n_bytes: int) -> int:
        """Step over so many bytes; where they began."""
        start = self.at
        if n_bytes > self._end - start:
            raise CheckpointError(
                f"{self._path} is cut off or damaged: its header needs {n_bytes} bytes from byte "
                f"{start} on, the file has {self._end} in all."
            )
        self.at += n_bytes
        return start

    def numbers(self, dtype: str, n: int) -> NDArray[Any]:
        stored = np.dtype(dtype)
        return np.frombuffer(self._data, stored, n, self.skip(n * stored.itemsize)).copy()

    def whole(self, dtype: str) -> int:
        return int(self.numbers(dtype, 1)[0])

    def count(self, smallest: int, what: str, dtype: str) -> int:
        """A number of things, each of which takes at least `smallest` bytes from here on."""
        n = self.whole(dtype)
        if n > (self._end - self.at) // smallest:
            raise CheckpointError(
                f"{self._path} is cut off or damaged: its header promises {n} {what}, more than "
                f"fit into its {self._end} bytes."
            )
        return n

    def text(self) -> str:
        return self.texts(1)[0]

    def texts(self, n: int) -> list[str]:
        # The loop over a whole vocabulary: kept free of calls.
        data, at, end, unpack = self._data, self.at, self._end, _LENGTH.unpack_from
        texts = []
        try:
            for _ in range(n):
                start = at + _LENGTH.size
                at = start + unpack(data, at)[0]
                if at > end:
                    self.skip(at - self.at)
                texts.append(data[start:at].decode("utf-8"))
        except struct.error:
            self.skip(end - self.at + 1)
        except UnicodeDecodeError:
            self.at = start
            raise self.damaged("a text is not UTF-8") from None
        self.at = at
        return texts

    def value(self, name: str, kind: int) -> Any:  # noqa: ANN401 - metadata is of any kind
        if kind == _STRING:
            return self.text()
        if kind == _FLOAT32:
            return float(str(self.numbers("<f4", 1)[0]))  # 1e-05 as 1e-05, not 9.999999747e-06
        if kind in _SCALARS:
            return self.numbers(_SCALARS[kind], 1).tolist()[0]
        if kind != _ARRAY:
            raise self.damaged(f"the entry {name!r} is of the unknown kind {kind}")
        item_kind = self.whole("<u4")
        if item_kind == _STRING:
            return self.texts(self.count(_LENGTH.size, f"texts in {name!r}", "<u8"))
        if item_kind not in _SCALARS:
            raise self.damaged(f"the list {name!r} is of the unknown kind {item_kind}")
        dtype = _SCALARS[item_kind]
        n = self.count(np.dtype(dtype).itemsize, f"numbers in {name!r}", "<u8")
        return self.numbers(dtype, n)
