"""What Python itself does during a start, in fresh processes."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

_IMPORT = """
import linecache
from PySide6 import QtCore
from gui import quick_start
quick_start.forgo_features()
from engine import config
"""


def _printed(code: str) -> list[str]:
    """The lines that a fresh process prints."""
    done = subprocess.run(  # noqa: S603 - our own interpreter and code
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert not done.returncode, done.stderr
    return done.stdout.splitlines()


def test_an_import_after_qts_does_not_read_the_source_of_what_it_imports() -> None:
    """PySide would, for each of torch's thousand modules; `linecache` would then hold it."""
    assert _printed(f"{_IMPORT}print([n for n in linecache.cache if 'engine' in n])") == ["[]"]


def test_everything_of_qt_can_still_be_imported() -> None:
    """Further modules, and all names of one, which PySide makes only then."""
    code = (
        f"{_IMPORT}from PySide6 import QtSvg\nfrom PySide6.QtGui import *\n"
        "print(QtSvg.QSvgRenderer.__name__, QPainterPath.__name__)"
    )
    assert _printed(code) == ["QSvgRenderer QPainterPath"]


def test_without_qt_there_is_nothing_to_forgo() -> None:
    code = (
        "import builtins\nplain = builtins.__import__\n"
        "from gui import quick_start\nquick_start.forgo_features()\n"
        "print(builtins.__import__ is plain)"
    )
    assert _printed(code) == ["True"]


@pytest.mark.parametrize(
    ("asked", "answer"), [("gc.isenabled()", "False"), ("sys.getswitchinterval()", "0.0005")]
)
def test_a_start_collects_no_garbage_and_lets_the_window_in_soon(asked: str, answer: str) -> None:
    code = f"import gc, sys\nfrom gui import quick_start\nquick_start.begin()\nprint({asked})"
    assert _printed(code) == [answer]
