"""GGUF files: settings, vocabulary and weights, mostly quantised, in one file or in several."""

import mmap
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from torch import Tensor

from engine.checkpoints.beginning import begins_with
from engine.checkpoints.gguf_families import Change, Family
from engine.checkpoints.gguf_header import MAGIC, Header, TensorPlace, read_header
from engine.checkpoints.gguf_parts import joined, part_name, part_paths
from engine.checkpoints.gguf_settings import ROPE_FACTORS, family_of, settings_of
from engine.checkpoints.raw import RawCheckpoint
from engine.errors import CheckpointError, TokenizerError
from engine.tokenizers.gguf_vocabulary import GgufVocabulary

Undo = Callable[[Tensor], Tensor]

_LAYER = re.compile(r"^blk\.(\d+)\.")
_THEIR_LAYER = re.compile(r"\.(\d+)\.")


def is_gguf(path: Path) -> bool:
    """Whether the file begins as a GGUF file does; False where there is none to be read."""
    return begins_with(path, MAGIC)


def read(path: Path) -> RawCheckpoint:
    """What a GGUF file holds, by Hugging Face's names; no weight is read before it is asked for.

    Of a model in several files, any one of them stands for all.

    Raises:
        CheckpointError: the file cannot be read, is cut off or damaged, is of an unknown family,
            or holds weights or a vocabulary of a kind that is not read; or a part is missing.
    """
    # Here, because who opens no GGUF file need not wait for the `gguf` package.
    from engine.checkpoints.gguf_tensors import GgufTensors, check_places  # noqa: PLC0415

    data = _mapped(path)
    header = read_header(data, path)
    paths, parts = part_paths(path, header.metadata, path), [data]
    headers = [header]
    if len(paths) > 1:
        parts = [_mapped(each) for each in paths]
        headers = [read_header(*each) for each in zip(parts, paths, strict=True)]
        header = joined(headers, paths)
    architecture, family = family_of(header, path)
    for each, part, its_path in zip(headers, parts, paths, strict=True):
        check_places(each.tensors, len(part), its_path)
    stored = GgufTensors(parts, header.tensors, {})
    settings = settings_of(
        header, architecture, family, lambda name: stored[name].float().numpy(), path
    )
    try:
        tokenizer = GgufVocabulary.from_metadata(header.metadata)
    except TokenizerError as error:
        raise CheckpointError(f"{path}: {error}") from error
    places, undo = _by_their_names(header, family, settings, path)
    tensors = GgufTensors(parts, places, undo)
    name = part_name(path.name)
    called = path.stem if name is None or len(paths) == 1 else name.stem
    own_name = partial(_own_name, family=family)
    return RawCheckpoint(settings, tensors, tokenizer, called, path, own_name, has_own_memory=True)


def _mapped(path: Path) -> mmap.mmap:
    try:
        with path.open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}.") from error
    except ValueError:  # an empty file cannot be mapped
        raise CheckpointError(f"{path} is empty; it should hold a model.") from None


def _by_their_names(
    header: Header, family: Family, settings: dict[str, Any], path: Path
) -> tuple[dict[str, TensorPlace], dict[str, Undo]]:
    """Each tensor's place, and what is to be undone in some, by Hugging Face's names."""
    places: dict[str, TensorPlace] = {}
    undo: dict[str, Undo] = {}
    n_head = settings.get("num_attention_heads", 1)
    n_heads: dict[str, int] = {
        "blk.layer.attn_q": n_head,
        "blk.layer.attn_k": settings.get("num_key_value_heads", n_head),
    }
    for name, place in header.tensors.items():
        if name in ROPE_FACTORS:
            continue
        template, theirs = _names(name, family)
        if theirs in places:
            raise CheckpointError(f"{path} is damaged: it holds {theirs!r} under two names.")
        places[theirs] = place
        change = family.changes.get(template)
        if change == "permuted":
            undo[theirs] = partial(_unpermuted, n_head=n_heads[template])
            if place.shape[0] % (2 * n_heads[template]):
                raise CheckpointError(
                    f"{path}: {name!r} has {place.shape[0]} rows; its {n_heads[template]} heads "
                    "need a multiple of twice their number."
                )
        elif change is not None:
            undo[theirs] = _UNDO[change]
    return places, undo


def _names(name: str, family: Family) -> tuple[str, str]:
    """A tensor's module without its layer's number, and Hugging Face's name of the tensor.

    A tensor that the family does not have keeps its own name, to be named when it is in the way.
    """
    module, _, part = name.rpartition(".")
    layer = _LAYER.match(module)
    template = _LAYER.sub("blk.layer.", module)
    theirs = family.modules.get(template)
    if theirs is None:
        return template, name
    number = layer[1] if layer else ""
    return template, f"{theirs.replace('.layer.', f'.{number}.')}.{part}"


def _own_name(theirs: str, family: Family) -> str:
    """The file's name of a tensor that Hugging Face calls by this one; the reverse of `_names`."""
    module, _, part = theirs.rpartition(".")
    layer = _THEIR_LAYER.search(module)
    template = _THEIR_LAYER.sub(".layer.", module)
    for ours, named in family.modules.items():
        if named == template:
            return f"{ours.replace('.layer.', f'.{layer[1]}.') if layer else ours}.{part}"
    return theirs


def _unpermuted(tensor: Tensor, n_head: int) -> Tensor:
    """Rows of q or k in the order of Hugging Face's rotation, which turns halves of a head.

    Such files hold them in the order of a rotation that turns neighbours.
    """
    by_pair = tensor.view(n_head, -1, 2, *tensor.shape[1:])  # [H, D/2, 2, ...]
    return by_pair.transpose(1, 2).reshape(tensor.shape)


def _transposed(tensor: Tensor) -> Tensor:
    return tensor.t() if tensor.dim() == 2 else tensor


def _one_less(tensor: Tensor) -> Tensor:
    return tensor.float() - 1


_UNDO: Mapping[Change, Undo] = {"transposed": _transposed, "one added": _one_less}
