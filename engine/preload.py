"""Brings torch into a process that has other things to do meanwhile."""

import ctypes
import importlib
import os
import sys
from importlib.util import find_spec
from pathlib import Path

# The system loads one library at a time: what a window imports while torch's is mapped is there by
# then. None of these is of the engine: two threads that import modules of one package at once may
# each find one of the other's half done.
_BEFORE = ("numpy", "tokenizers", "csv", "unicodedata")


def preload() -> None:
    """Import torch, which is most of what opening a first model takes.

    Raises:
        ImportError: torch is not installed, or cannot be used here.
    """
    for module in _BEFORE:
        importlib.import_module(module)
    _map_library()
    importlib.import_module("torch")


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
