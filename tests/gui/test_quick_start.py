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


_PAINT = """
import os
os.environ.pop("QT_NO_GUI_THREADPOOL", None)
from PySide6.QtCore import QRect
from PySide6.QtGui import QGuiApplication, QImage, QPainter, QRegion
from gui import quick_start
{begin}
application = QGuiApplication([])
before = len(os.listdir("/proc/self/task"))
picture, paper = (QImage(400, 400, QImage.Format.Format_RGB32) for _ in range(2))
with QPainter(paper) as painter:
    painter.setClipRegion(QRegion(QRect(0, 0, 50, 300)) + QRect(100, 50, 200, 300))
    painter.drawImage(0, 0, picture)
print(len(os.listdir("/proc/self/task")) > before)
"""


@pytest.mark.parametrize(("begin", "has_more"), [("", "True"), ("quick_start.begin()", "False")])
def test_painting_waits_for_no_other_threads(begin: str, has_more: str) -> None:
    """Qt of itself starts some for a picture under a clip of several places."""
    assert _printed(_PAINT.format(begin=begin)) == [has_more]
