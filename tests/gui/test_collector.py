"""Garbage is collected on the window's thread alone."""

import gc
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtWidgets import QApplication

from gui.collector import Collector
from tests.gui.whole_window import WholeWindow, wait_until


class Knot:
    """Refers to itself, so that only the collector finds it."""

    def __init__(self) -> None:
        self.itself = self


def knots(count: int) -> "list[weakref.ref[Knot]]":
    """Make as many and lose them."""
    return [weakref.ref(Knot()) for _ in range(count)]


@pytest.fixture
def collecting() -> Iterator[set[int]]:
    """Which threads have begun a collection."""
    threads: set[int] = set()

    def note(phase: str, _info: dict[str, Any]) -> None:
        if phase == "start":
            threads.add(threading.get_ident())

    gc.callbacks.append(note)
    yield threads
    gc.callbacks.remove(note)


@pytest.mark.usefixtures("qapp")
def test_what_another_thread_loses_is_collected_on_this_one(collecting: set[int]) -> None:
    """However much that thread makes."""
    gc.enable()
    collector = Collector()
    collector.start()
    lost: list[weakref.ref[Knot]] = []
    there = threading.Thread(target=lambda: lost.extend(knots(5000)))
    there.start()
    there.join()
    assert not collecting
    assert all(knot() is not None for knot in lost)
    wait_until(lambda: all(knot() is None for knot in lost), "the collection")
    assert collecting == {threading.get_ident()}
    collector.stop()
    assert gc.isenabled()
    gc.disable()


def test_older_garbage_is_found_as_well(qapp: QApplication) -> None:  # noqa: ARG001
    """What has survived younger collections and is lost then."""
    collector = Collector()
    collector.start()
    knot = Knot()
    for _ in range(3):
        gc.collect(0)
        gc.collect(1)
    lost = weakref.ref(knot)
    del knot
    for _ in range(500):
        made = knots(1000)
        collector.collect()
        if lost() is None:
            break
    assert lost() is None
    assert made
    collector.stop()


def test_the_window_collects_from_its_first_answer_on_until_it_is_closed(small_model: Path) -> None:
    gc.enable()
    whole = WholeWindow(model=small_model, prompt="To be").start()
    wait_until(lambda: not gc.isenabled(), "the collector")
    whole.close()
    assert gc.isenabled()
    gc.disable()
