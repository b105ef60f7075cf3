"""One model in several GGUF files: which belong together, and what they hold together.

`llama-gguf-split` cuts a large file into NAME-00001-of-00003.gguf and so on. The first has the
settings and the vocabulary, and perhaps no tensor; each says which part of how many it is.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from engine.checkpoints.gguf_header import Header, TensorPlace
from engine.errors import CheckpointError

_NAME = re.compile(r"(.+)-([0-9]{5})-of-([0-9]{5})(\.gguf)", re.IGNORECASE | re.DOTALL)

_NUMBER = "split.no"  # counted from 0
_COUNT = "split.count"
_N_TENSORS = "split.tensors.count"  # of all parts


@dataclass(frozen=True)
class PartName:
    """What a file's name says of the model that it is a part of."""

    stem: str
    number: int  # from 1
    count: int
    suffix: str

    def beside(self, number: int) -> str:
        """The name of another part."""
        return f"{self.stem}-{number:05}-of-{self.count:05}{self.suffix}"


def part_name(name: str) -> PartName | None:
    """What a file's name says, None where it is not the name of a part."""
    found = _NAME.fullmatch(name)
    return PartName(found[1], int(found[2]), int(found[3]), found[4]) if found else None


def one_of_each(names: Iterable[str]) -> list[str]:
    """Names of files without the later parts of a model; the first that is there stands for it."""
    first: dict[tuple[str, int], str] = {}
    for name in sorted(names):
        part = part_name(name)
        first.setdefault((part.stem, part.count) if part else (name, 0), name)
    return list(first.values())


def part_paths(path: Path, metadata: Mapping[str, Any], label: Path) -> tuple[Path, ...]:
    """All files of the model that a file is or is a part of, in order; `label` names it in errors.

    Raises:
        CheckpointError: one is missing, or the name does not say what the others are called.
    """
    count, number = (_whole(metadata, each, label) for each in (_COUNT, _NUMBER))
    if count in (None, 0, 1):
        return (path,)
    name = part_name(path.name)
    if name is None or (name.number - 1, name.count) != (number, count):
        raise CheckpointError(
            f"{label} is part {_from_1(number)} of a model in {count} files, and its name does "
            "not say so; call all of them by names such as NAME-00001-of-00003.gguf."
        )
    paths = tuple(path.with_name(name.beside(each)) for each in range(1, name.count + 1))
    for each in paths:
        if not each.is_file():
            raise CheckpointError(
                f"{label} is one of {count} files of one model, and {each.name} is missing beside "
                "it."
            )
    return paths


def joined(headers: Sequence[Header], paths: Sequence[Path]) -> Header:
    """What the parts of a model hold together; each tensor's place says in which part it lies.

    Raises:
        CheckpointError: a part is not what its name says, or tensors are missing or there twice.
    """
    metadata = headers[0].metadata
    places: dict[str, TensorPlace] = {}
    for part, (header, path) in enumerate(zip(headers, paths, strict=True)):
        number, count = (_whole(header.metadata, each, path) for each in (_NUMBER, _COUNT))
        if (number, count) != (part, len(paths)):
            raise CheckpointError(
                f"{path} is called part {part + 1} of {len(paths)}, but says that it is part "
                f"{_from_1(number)} of {count}."
            )
        for name, place in header.tensors.items():
            if name in places:
                other = paths[places[name].part].name
                raise CheckpointError(f"{path} holds {name!r}, and so does {other}.")
            places[name] = replace(place, part=part)
    n_tensors = _whole(metadata, _N_TENSORS, paths[0])
    if n_tensors not in (None, len(places)):
        raise CheckpointError(
            f"{paths[0]} promises {n_tensors} tensors in {len(paths)} files, which hold "
            f"{len(places)}; they do not belong together."
        )
    return Header(metadata, places)


def _whole(metadata: Mapping[str, Any], name: str, label: Path) -> int | None:
    value = metadata.get(name)
    if value is not None and type(value) is not int:
        raise CheckpointError(f"{label} is damaged: {name} is no whole number.")
    return value


def _from_1(number: int | None) -> str:
    return "of no number" if number is None else str(number + 1)
