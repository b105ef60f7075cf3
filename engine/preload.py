"""Brings torch into a process that has other things to do meanwhile."""

import ctypes
import importlib
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

# The system loads one library at a time: what a window imports while torch's is mapped is there by
# then. None of these is of the engine: two threads that import modules of one package at once may
# each find one of the other's half done.
_BEFORE = ("numpy", "tokenizers", "csv", "unicodedata")


# What torch imports last is for its compiler: which shapes come out of each operation. It takes a
# quarter of the whole import, and what opens a model and reads a text does without.
_LAST = "_meta_registrations"


def preload() -> None:
    """Import torch, which is most of what opening a first model takes, but for a part of it.

    Models can be opened and texts be read then; for all else `complete` is to come first.

    Raises:
        ImportError: torch is not installed, or cannot be used here.
    """
    for module in _BEFORE:
        importlib.import_module(module)
    if "torch" in sys.modules:
        return
    _map_library()
    last = f"torch.{_LAST}"
    sys.modules[last] = ModuleType(last)  # for the moment, so that it is not looked for
    try:
        torch = importlib.import_module("torch")
    finally:
        del sys.modules[last]
    vars(torch).pop(_LAST, None)


def complete() -> None:
    """Import what `preload` has left out: torch is then as it is wherever it is imported."""
    importlib.import_module(f"torch.{_LAST}")


def _map_library() -> None:
    """Have the largest of torch's libraries in memory before Python asks for it.

    Python's import would keep the interpreter for as long as that takes, a fifth of the whole
    import; called like this the loader leaves it to other threads. Where it cannot be done, the
    import does it.
    """
    torch = find_spec("torch")
    if sys.platform != "linux" or torch is None or torch.origin is None:
        return
    library = Path(torch.origin).parent / "lib" / "libtorch_cpu.so"
    load = ctypes.CDLL(None).dlopen
    load.argtypes, load.restype = (ctypes.c_char_p, ctypes.c_int), ctypes.c_void_p
    load(os.fsencode(library), os.RTLD_NOW)
