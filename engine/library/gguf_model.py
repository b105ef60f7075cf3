"""What a GGUF file's header says of its model."""

import math
import mmap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from engine.checkpoints.gguf_header import MAGIC, Header, TensorPlace, read_header
from engine.checkpoints.gguf_parts import joined, part_paths
from engine.checkpoints.gguf_settings import ROPE_FACTORS, family_of, settings_of
from engine.checkpoints.lfs_pointer import NOT_FETCHED, is_lfs_pointer
from engine.errors import CheckpointError, TokenizerError
from engine.library import families
from engine.library.files import size_of, unreadable
from engine.library.found import Description

VOCABULARIES = ("gpt2", "llama")  # a test holds them against what `engine.tokenizers` reads
# A vocabulary of 262,144 tokens takes 20 million bytes; whoever promises more is not believed.
_MOST_HEADER = 64 << 20
_WARMED = 16 << 20  # bytes that are read before they are mapped
_FLOAT32 = 0  # the format's number
_PLAIN = ("F32", "F16", "BF16")


def describe_gguf(path: Path, label: Path) -> Description:
    """What the header says; `label` names the file in the reason, where there is one.

    A model in several files is described by any one of them.
    """
    try:
        n_bytes = size_of(path)
    except CheckpointError as error:
        return Description(n_bytes=0, reason=str(error))
    try:
        opened = _Opened.at(path, label)
        paths = part_paths(path, opened.header.metadata, label)
    except CheckpointError as error:
        return Description(n_bytes=n_bytes, reason=str(error))
    parts, header = [opened], opened.header
    if len(paths) > 1:
        try:
            parts = [_Opened.at(each, label.with_name(each.name)) for each in paths]
            header = joined([part.header for part in parts], [part.label for part in parts])
        except CheckpointError as error:
            return replace(_shape(header), n_bytes=n_bytes, n_parameters=0, reason=str(error))
    description = replace(_shape(header), n_bytes=sum(part.n_bytes for part in parts))
    try:
        _check(header, parts, label)
    except (CheckpointError, TokenizerError) as error:
        return replace(description, reason=str(error))
    return description


@dataclass(frozen=True)
class _Opened:
    """One file, its beginning mapped, and what it is called in a reason."""

    data: mmap.mmap
    header: Header
    n_bytes: int
    label: Path

    @classmethod
    def at(cls, path: Path, label: Path) -> Self:
        n_bytes = size_of(path)
        data = _mapped(path, n_bytes)
        try:
            return cls(data, read_header(data, label), n_bytes, label)
        except CheckpointError as error:
            if n_bytes <= _MOST_HEADER:
                raise
            what = "the header is damaged, or longer than any that is looked at"
            raise CheckpointError(f"{label}: {what}.") from error


def _mapped(path: Path, n_bytes: int) -> mmap.mmap:
    try:
        with path.open("rb") as file:
            if file.read(len(MAGIC)) != MAGIC:
                if is_lfs_pointer(path):
                    raise CheckpointError(f"{path.name} {NOT_FETCHED}")
                raise CheckpointError("It is no GGUF file; one begins with the letters GGUF.")
            # Waiting for a slow disk here lets others run; waiting for a mapped page does not.
            file.read(_WARMED)
            return mmap.mmap(file.fileno(), min(n_bytes, _MOST_HEADER), access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:  # ValueError: it has become empty
        raise unreadable(path, error) from error


def _shape(header: Header) -> Description:
    metadata = header.metadata
    name = families.called(metadata.get("general.architecture"))
    weights = (tensor for key, tensor in header.tensors.items() if key not in ROPE_FACTORS)
    return Description(
        n_bytes=0,
        architecture=name,
        n_layer=families.size(metadata.get(f"{name}.block_count")),
        n_head=families.size(metadata.get(f"{name}.attention.head_count")),
        n_parameters=sum(math.prod(tensor.shape) for tensor in weights),
    )


def _check(header: Header, parts: Sequence[_Opened], label: Path) -> None:
    name, family = family_of(header, label)
    families.check_family({"model_type": family.model_type})
    for part in parts:
        _check_places(part.header.tensors, part.n_bytes, part.label)

    def numbers(tensor: str) -> NDArray[np.float32]:
        place = header.tensors[tensor]
        data, end = parts[place.part].data, place.start + 4 * math.prod(place.shape)
        if place.storage != _FLOAT32 or end > len(data):
            raise CheckpointError(f"{label}: {tensor!r} is not stored as it should be.")
        return np.frombuffer(data[place.start : end], "<f4")

    families.check_family(settings_of(header, name, family, numbers, label))
    _check_vocabulary(header, label)


def _check_vocabulary(header: Header, label: Path) -> None:
    from engine.tokenizers.gguf_splitting import splitting_of  # noqa: PLC0415 - loads a library

    kind = header.metadata.get("tokenizer.ggml.model")
    if kind not in VOCABULARIES:
        raise CheckpointError(
            f"{label}: its vocabulary is of the kind {families.called(kind)!r}, which is not read; "
            f"known: {', '.join(VOCABULARIES)}."
        )
    if kind == "gpt2":
        pre = header.metadata.get("tokenizer.ggml.pre")
        splitting_of(pre, header.metadata["general.architecture"])


def _check_places(places: Mapping[str, TensorPlace], n_bytes: int, label: Path) -> None:
    """See that every tensor lies within the file, in a quantisation that is read."""
    # Here, because importing it takes a tenth of a second.
    from gguf import GGML_QUANT_SIZES, GGMLQuantizationType  # noqa: PLC0415

    for name, place in places.items():
        try:
            storage = GGMLQuantizationType(place.storage)
        except ValueError:
            storage = None
        if storage is None or not _is_read(storage):
            kind = f"number {place.storage}" if storage is None else storage.name
            raise CheckpointError(
                f"{label}: {families.called(name)!r} is stored as {kind}, which is not read; "
                "choose a file in another quantisation, Q8_0 for one."
            )
        block, block_bytes = GGML_QUANT_SIZES[storage]
        end = place.start + math.prod(place.shape) // block * block_bytes
        if end > n_bytes:
            raise CheckpointError(
                f"{label} is cut off: {families.called(name)!r} ends at byte {end}, the file has "
                f"{n_bytes} in all."
            )


@cache
def _is_read(storage: Any) -> bool:  # noqa: ANN401 - the package is not loaded before it is needed
    """Whether the package can dequantise this kind: it does so with one block of zeros."""
    from gguf import GGML_QUANT_SIZES, quants  # noqa: PLC0415 - as above

    if storage.name in _PLAIN:
        return True
    try:
        quants.dequantize(np.zeros((1, GGML_QUANT_SIZES[storage][1]), np.uint8), storage)
    except NotImplementedError:
        return False
    return True
