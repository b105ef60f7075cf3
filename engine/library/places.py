"""Where models are kept on this computer: the stores of other programs, and added folders."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True)
class Place:
    """One place to look into; what is missing there is said only of an `is_added` one."""

    title: str
    path: Path
    kind: Literal["folder", "hub", "ollama", "packages"] = "folder"
    is_added: bool = False


def added_place(path: Path) -> Place:
    """A folder that the user named."""
    return Place(str(path), path, is_added=True)


def standard_places(
    environment: Mapping[str, str] | None = None,
    home: Path | None = None,
    platform: str = sys.platform,
) -> tuple[Place, ...]:
    """The stores of the programs that are known here, whether or not they exist."""
    named = os.environ if environment is None else environment
    home = _home() if home is None else home
    cache = _folder(named, "XDG_CACHE_HOME", home) or home / ".cache"
    ollama = _folder(named, "OLLAMA_MODELS", home)
    return (
        Place("Hugging Face cache", _hub(named, home, cache), "hub"),
        Place("LM Studio", home / ".lmstudio" / "models"),
        Place("LM Studio", home / ".cache" / "lm-studio" / "models"),
        Place("llama.cpp", _llama_cpp(named, home, cache, platform)),
        Place("Ollama", ollama or home / ".ollama" / "models", "ollama"),
        *([] if ollama else [Place("Ollama", _OLLAMA_SERVICE, "ollama")]),
        Place("Python packages", Path(sys.prefix), "packages"),
    )


# Where its installer for Linux puts what the service downloads.
_OLLAMA_SERVICE = Path("/usr/share/ollama/.ollama/models")


def _hub(named: Mapping[str, str], home: Path, cache: Path) -> Path:
    """As `huggingface_hub` finds it."""
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if named.get(name):
            return _expanded(named[name], named, home)
    base = named.get("HF_HOME")
    return (_expanded(base, named, home) if base else cache / "huggingface") / "hub"


def _llama_cpp(named: Mapping[str, str], home: Path, cache: Path, platform: str) -> Path:
    own = _folder(named, "LLAMA_CACHE", home)
    if own:
        return own
    if platform == "darwin":
        return home / "Library" / "Caches" / "llama.cpp"
    if platform == "win32" and named.get("LOCALAPPDATA"):
        return Path(named["LOCALAPPDATA"]) / "llama.cpp"
    return cache / "llama.cpp"


def _folder(named: Mapping[str, str], name: str, home: Path) -> Path | None:
    return _expanded(named[name], named, home) if named.get(name) else None


def _expanded(text: str, named: Mapping[str, str], home: Path) -> Path:
    """With ~ and $NAME written out."""
    path = Path(os.path.expandvars(text) if named is os.environ else text)
    return home.joinpath(*path.parts[1:]) if path.parts[:1] == ("~",) else path


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:  # an account without one
        return Path(os.sep)
