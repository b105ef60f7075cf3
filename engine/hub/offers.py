"""Which files of a repository make a model that can be opened here; never a pickle."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.checkpoints.gguf_parts import part_name
from engine.errors import CheckpointError, DownloadError
from engine.library.families import check_family
from engine.library.folder_model import check_foreign

CONFIG_FILE = "config.json"
INDEX_FILE = "model.safetensors.index.json"
WEIGHTS_FILE = "model.safetensors"
# What a vocabulary is read from; which of these there must be, `check_foreign` says.
VOCABULARY_FILES = ("tokenizer.json", "tokenizer_config.json", "vocab.json", "merges.txt")

_GGUF, _WEIGHTS = ".gguf", ".safetensors"
_PICKLES = (".bin", ".pt", ".pth", ".pkl", ".ckpt")
_NO_MODELS = ("mmproj", "imatrix")  # GGUF files that go with a model
_USUAL_KIND = re.compile(r"q8_0", re.IGNORECASE)  # whose predictions hardly differ


@dataclass(frozen=True)
class RemoteFile:
    """One file of a repository at one commit."""

    name: str  # with the folders that it lies in, parted by /
    n_bytes: int
    digest: str  # SHA-256 of its bytes [64 hex digits], or SHA-1 as git takes it [40]


@dataclass(frozen=True)
class Choice:
    """The files that make one model, and what to open when they are there."""

    title: str
    files: tuple[RemoteFile, ...]
    opens: str = ""  # one of the files; "": the folder that they lie in

    @property
    def n_bytes(self) -> int:
        """Of all files."""
        return sum(file.n_bytes for file in self.files)


@dataclass(frozen=True)
class Offer:
    """What a repository offers at a commit; `choices` are of at least one model."""

    repository: str
    revision: str  # as it was asked for
    commit: str  # what that was when it was asked for: 40 hex digits
    choices: tuple[Choice, ...]
    usual: int = 0  # the choice to begin with


def choose(
    repository: str,
    files: Sequence[RemoteFile],
    settings: Mapping[str, Any] | None,
    index: Mapping[str, Any] | None,
) -> tuple[Choice, ...]:
    """The models in a repository's files: its folder's first, then those of GGUF files by size.

    `settings` are those of its config.json and `index` those of the index of its weights, None
    where it has no such file.

    Raises:
        DownloadError: there is none that could be opened.
    """
    by_name = {file.name: file for file in files}
    ggufs = [file for file in files if _is_model(file.name)]
    single = sorted(_gguf_choices(ggufs), key=lambda choice: (choice.n_bytes, choice.title))
    try:
        folder = _folder_choice(by_name, settings, index)
    except CheckpointError as error:
        if single:
            return tuple(single)
        if ggufs:
            raise DownloadError(
                f"{repository} has its model in several GGUF files that belong together "
                f"({min(file.name for file in ggufs)}, …), and not all of them are there."
            ) from error
        raise DownloadError(f"{repository} could not be opened. {error}") from error
    return (folder, *single)


def usual_choice(choices: Sequence[Choice], file: str = "") -> int:
    """Where to begin: what was pointed at, else a folder, else eight bits, else the smallest."""
    for number, choice in enumerate(choices):
        if choice.opens and any(each.name == file for each in choice.files):
            return number
    if not choices[0].opens:
        return 0
    eight = (n for n, choice in enumerate(choices) if _USUAL_KIND.search(choice.opens))
    return next(eight, 0)


def _gguf_choices(files: Sequence[RemoteFile]) -> Iterator[Choice]:
    """Each GGUF file, and each model in several if all its parts are there."""
    models: dict[tuple[str, int], dict[int, RemoteFile]] = {}
    for file in files:
        part = part_name(file.name)
        if part is None:
            yield Choice(file.name, (file,), file.name)
        else:
            models.setdefault((part.stem, part.count), {})[part.number] = file
    for (stem, count), parts in models.items():
        if sorted(parts) == list(range(1, count + 1)):
            kept = tuple(parts[number] for number in sorted(parts))
            yield Choice(f"{stem}.gguf ({count} files)", kept, kept[0].name)


def _is_model(name: str) -> bool:
    stem = name.rpartition("/")[2].lower()
    return stem.endswith(_GGUF) and not any(word in stem for word in _NO_MODELS)


def _folder_choice(
    files: Mapping[str, RemoteFile],
    settings: Mapping[str, Any] | None,
    index: Mapping[str, Any] | None,
) -> Choice:
    """The model of the files at the top.

    Raises:
        CheckpointError: there is none that could be opened.
    """
    weights = _weight_names(files, index)
    if settings is None:
        raise CheckpointError(f"It holds no {CONFIG_FILE} that says how its model is built.")
    check_family(settings)
    check_foreign(settings, tuple(files))
    named = (CONFIG_FILE, *VOCABULARY_FILES, INDEX_FILE if index is not None else "", *weights)
    kept = tuple(files[name] for name in named if name in files)
    n = len(weights)
    return Choice(f"safetensors ({n} {'file' if n == 1 else 'files'} of weights)", kept)


def _weight_names(files: Mapping[str, RemoteFile], index: Mapping[str, Any] | None) -> list[str]:
    """As the folder's reader finds them: those of the index, the one, or all there are.

    Raises:
        CheckpointError: there are none, or not all, or only pickles.
    """
    if index is not None:
        return _indexed_names(files, index)
    if WEIGHTS_FILE in files:
        return [WEIGHTS_FILE]
    found = sorted(filter(_is_weights, files))
    if found:
        return found
    for name in sorted(files):
        if name.endswith(_PICKLES):
            raise CheckpointError(
                f"Its weights are in {name} only, a pickle, which may run programs when it is "
                "opened; look for a repository with safetensors or GGUF files."
            )
    raise CheckpointError("It holds neither safetensors nor GGUF files.")


def _indexed_names(files: Mapping[str, RemoteFile], index: Mapping[str, Any]) -> list[str]:
    weight_map = index.get("weight_map")
    listed = weight_map.values() if isinstance(weight_map, dict) else ()
    names = sorted({str(name) for name in listed})
    wrong = [name for name in names if name not in files or not _is_weights(name)]
    if not names or wrong:
        raise CheckpointError(
            f"Its {INDEX_FILE} names {wrong[0] if wrong else 'no files'}; it should name the "
            "safetensors files beside it."
        )
    return names


def _is_weights(name: str) -> bool:
    """Whether it is a safetensors file at the top, where a model's folder has them."""
    return name.endswith(_WEIGHTS) and "/" not in name
