"""pyqtgraph comes in the background, and not while PySide could make classes on two threads."""

import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from gui import graphs

ROOT = Path(__file__).parents[2]


def test_the_import_begins_when_all_classes_are_made(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pause by pause, with the window alive in between."""
    order: list[str] = []

    def make() -> Iterator[None]:
        for number in range(3):
            order.append(f"made {number}")
            yield

    def note(name: str) -> object:
        order.append(name)
        return sys

    monkeypatch.setattr(graphs, "_make_qt_classes", make)
    monkeypatch.delitem(sys.modules, "pyqtgraph", raising=False)
    monkeypatch.setattr(importlib, "import_module", note)
    loader = graphs.GraphLoader()
    with qtbot.waitSignal(loader.ready):
        loader.start_import()
        assert order == ["made 0"]
    assert order == ["made 0", "made 1", "made 2", "pyqtgraph"]


def test_no_class_of_qt_is_left_to_be_made_by_the_import() -> None:
    """In a fresh process, where PySide has made none yet but those it needs itself."""
    code = (
        "from PySide6 import QtCore, QtGui, QtWidgets\n"
        "from gui.graphs import _make_qt_classes\n"
        "assert 'QCalendarWidget' not in vars(QtWidgets)\n"
        "assert len(list(_make_qt_classes())) > 3\n"
        "for module in (QtCore, QtGui, QtWidgets):\n"
        "    assert not set(dir(module)) - set(vars(module)), module\n"
        "assert 'QCalendarWidget' in vars(QtWidgets)\n"
    )
    done = subprocess.run(  # noqa: S603 - our own line
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
