"""The search itself: place after place, model after model, each told as soon as it is known."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from engine.cancelling import Cancelled, never
from engine.errors import CheckpointError
from engine.library.files import size_of
from engine.library.folder_model import describe_folder
from engine.library.found import Description, Found, Looking, Note
from engine.library.gguf_model import describe_gguf
from engine.library.nanogpt_model import describe_nanogpt
from engine.library.places import Place
from engine.library.stores import Candidate, in_folder, in_hub_cache, in_ollama, in_packages
from engine.library.walk import Walker

MOST_MODELS = 2000  # in one place

_STORES: Mapping[str, Callable[[Path, Walker], Iterator[Candidate]]] = {
    "folder": in_folder,
    "hub": in_hub_cache,
    "ollama": in_ollama,
    "packages": in_packages,
}


def search(
    places: Iterable[Place],
    is_cancelled: Cancelled = never,
    make_walker: Callable[[Cancelled], Walker] = Walker,
) -> Iterator[Found | Looking | Note]:
    """Every model in these places, once, however many links and places lead to it.

    Reads headers only, each place within the bounds of a walker of its own, and stops soon after
    `is_cancelled` says so. Nothing on a disk makes it raise.
    """
    places = tuple(places)
    seen: set[str] = set()
    for n_done, place in enumerate(places):
        if is_cancelled():
            return
        yield Looking(place.title, n_done, len(places))
        yield from _in_place(place, make_walker(is_cancelled), seen)


def _in_place(place: Place, walker: Walker, seen: set[str]) -> Iterator[Found | Note]:
    problem = _problem(place) if place.is_added else ""
    if problem:
        yield Note(problem)
        return
    n_found = 0
    for candidate in _STORES[place.kind](place.path, walker):
        if walker.is_cancelled():
            return
        real = os.path.realpath(candidate.path)
        if real in seen:
            continue
        description = _describe(candidate)
        if description is None:
            continue
        seen.add(real)
        n_found += 1
        if n_found > MOST_MODELS:
            yield Note(f"{place.title} holds more than {MOST_MODELS} models; the rest is left out.")
            return
        yield Found(
            name=candidate.name,
            path=str(candidate.path),
            place=place.title,
            **vars(description),
        )
    if walker.is_cut:
        yield Note(
            f"{place.title} was not looked through whole: it holds more than "
            f"{walker.most_entries} files, or folders nested too deeply; add a folder nearer to "
            "the models."
        )


def _problem(place: Place) -> str:
    """Why an added folder cannot be looked into; "" if it can."""
    try:
        with os.scandir(place.path):
            return ""
    except (OSError, ValueError) as error:  # ValueError: not allowed in a path
        why = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
        return f"The folder {place.path} cannot be looked into: {why}."


def _describe(candidate: Candidate) -> Description | None:
    """What is known of a candidate; None if it is no model after all."""
    if candidate.kind == "gguf":
        return describe_gguf(candidate.path, Path(candidate.name))
    if candidate.kind == "nanogpt":
        return describe_nanogpt(candidate.path)
    description = describe_folder(candidate.path, candidate.names)
    if description is None and candidate.is_certain:
        return Description(
            n_bytes=_total(candidate),
            reason="It holds neither a config.json that names a family of models nor a GGUF file.",
        )
    return description


def _total(candidate: Candidate) -> int:
    total = 0
    for name in candidate.names:
        try:
            total += size_of(candidate.path / name)
        except CheckpointError:
            continue
    return total
