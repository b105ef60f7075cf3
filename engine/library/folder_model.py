"""What a folder with a config.json says of its model: Hugging Face's kind, and this program's."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.config import ModelConfig
from engine.errors import CheckpointError, ConfigError, quoted
from engine.library import families
from engine.library.files import read_json, size_of
from engine.library.found import Description
from engine.library.safetensors_header import read_contents
from engine.library.tokenizer_kind import check_tokenizer

CONFIG_FILE = "config.json"
_TOKENIZER_FILE = "tokenizer.json"
_INDEX_FILE = "model.safetensors.index.json"
_WEIGHTS_FILE = "model.safetensors"
_WEIGHTS = ".safetensors"
_PICKLES = (".bin", ".pt", ".pth")
_OWN_FORMAT, _OWN_VERSION = "attention-scope", 1
_MOST_CONFIG = 4 << 20  # bytes

Json = dict[str, Any]


def describe_folder(folder: Path, names: tuple[str, ...]) -> Description | None:
    """What the headers say of the model in a folder that holds files of these names.

    None where the folder does not claim to hold one: other programs have a config.json as well.
    """
    try:
        settings = read_json(folder / CONFIG_FILE, _MOST_CONFIG)
    except CheckpointError:
        return None
    if settings.get("format") == _OWN_FORMAT:
        return _described(folder, names, *_own_sizes(settings))
    if not isinstance(settings.get("model_type"), str):
        return None
    n_layer, n_head = families.layers_and_heads(settings)
    shape = Description(
        n_bytes=0,
        architecture=families.called(settings["model_type"]),
        n_layer=n_layer,
        n_head=n_head,
    )
    try:
        families.check_family(settings)
        check_foreign(settings, names)
        if _TOKENIZER_FILE in names:
            check_tokenizer(folder / _TOKENIZER_FILE)
    except CheckpointError as error:
        return _described(folder, names, shape, str(error))
    return _described(folder, names, shape, "")


def _own_sizes(settings: Json) -> tuple[Description, str]:
    empty = Description(n_bytes=0, architecture=_OWN_FORMAT)
    if settings.get("version") != _OWN_VERSION:
        version = settings.get("version")
        return empty, f"{CONFIG_FILE} has version {quoted(version)}; {_OWN_VERSION} is read."
    if not isinstance(settings.get("model"), dict):
        return empty, f"{CONFIG_FILE} has no section named 'model'."
    try:
        config = ModelConfig.from_dict(settings["model"])
    except ConfigError as error:
        return empty, f"{CONFIG_FILE}: {error}"
    return replace(empty, n_layer=config.n_layer, n_head=config.n_head), ""


def _described(
    folder: Path, names: tuple[str, ...], shape: Description, reason: str
) -> Description:
    """The shape with what the files of weights add to it, and the first reason against it."""
    try:
        files = _weight_files(folder, names)
        contents = [read_contents(folder / name) for name in files]
    except CheckpointError as error:
        return replace(shape, n_bytes=_bytes_of_weights(folder, names), reason=reason or str(error))
    sentences = [reason, *(each.unreadable for each in contents)]
    return replace(
        shape,
        n_bytes=sum(each.n_bytes for each in contents),
        n_parameters=sum(each.n_parameters for each in contents),
        reason=next(filter(None, sentences), ""),
    )


def check_foreign(settings: Mapping[str, Any], names: tuple[str, ...]) -> None:
    """See that weights and vocabulary are of the kinds that are read from Hugging Face's folders.

    `names` are those of the files beside config.json.

    Raises:
        CheckpointError: they are not.
    """
    quantised = settings.get("quantization_config")
    if quantised is not None:
        method = quantised.get("quant_method") if isinstance(quantised, dict) else quantised
        raise CheckpointError(
            f"Its weights are quantised by {families.called(method)!r}; only float32, float16 and "
            "bfloat16 are read from such folders."
        )
    if _TOKENIZER_FILE in names or {"vocab.json", "merges.txt"} <= set(names):
        return
    if "tokenizer.model" in names:
        raise CheckpointError(
            "Its vocabulary is in tokenizer.model only, which is not read; save the tokenizer "
            "again to have a tokenizer.json."
        )
    raise CheckpointError("It holds no vocabulary; there should be a tokenizer.json.")


def _weight_files(folder: Path, names: tuple[str, ...]) -> list[str]:
    """The files that hold the weights: those of the index, the one, or all there are.

    Raises:
        CheckpointError: there are none that can be read, or the index is damaged.
    """
    if _INDEX_FILE in names:
        weight_map = read_json(folder / _INDEX_FILE).get("weight_map")
        named = list(weight_map.values()) if isinstance(weight_map, dict) else []
        if not named or not all(isinstance(n, str) and Path(n).name == n for n in named):
            raise CheckpointError(f"{_INDEX_FILE} names no files of this folder.")
        listed = set(named)
        for name in sorted(listed - set(names)):
            raise CheckpointError(f"{families.called(name)} is missing; it should hold weights.")
        return sorted(listed)
    if _WEIGHTS_FILE in names:
        return [_WEIGHTS_FILE]
    found = [name for name in names if name.endswith(_WEIGHTS)]
    if found:
        return found
    for name in names:
        if name.endswith(_PICKLES):
            raise CheckpointError(
                f"Its weights are in {families.called(name)} only, a pickle, which may run "
                "programs when it is opened; save the model again as safetensors."
            )
    raise CheckpointError(f"It holds no weights; there should be a {_WEIGHTS_FILE}.")


def _bytes_of_weights(folder: Path, names: tuple[str, ...]) -> int:
    total = 0
    for name in names:
        if name.endswith((_WEIGHTS, *_PICKLES)):
            try:
                total += size_of(folder / name)
            except CheckpointError:
                continue
    return total
