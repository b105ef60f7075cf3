"""What makes a start quick: how Python behaves while Qt and torch are imported. No Qt here."""

import builtins
import gc
import os
import sys

# A thread that holds the interpreter gives it back after this long; the default of 5 ms makes
# the window stutter while the engine runs Python code.
_SWITCH_SECONDS = 0.0005


def begin() -> None:
    """Favour the window's thread, and leave the collection of garbage for later.

    A start makes a million objects that stay; looking through them again and again takes a
    sixth of the time that importing torch takes.

    Qt paints what has many lines of pixels on several threads and waits for them. While the engine
    has the other cores, waiting takes longer than painting.
    """
    sys.setswitchinterval(_SWITCH_SECONDS)
    os.environ.setdefault("QT_NO_GUI_THREADPOOL", "1")
    gc.disable()


def forgo_features() -> None:
    """Have `import` no longer look for features of PySide's, once PySide is imported.

    For the sake of `from __feature__ import …`, which nobody here uses, PySide has it read the
    source of every module in search of PySide's name. For the thousand modules of torch that takes
    a sixth of the time as well.
    """
    builtins.__import__ = getattr(builtins, "__orig_import__", builtins.__import__)
