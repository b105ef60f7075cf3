"""Small models on disk, which the window opens as it opens any other."""

import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

if TYPE_CHECKING:
    from gui.panels.base import Panel
    from gui.wishes import Wish

LETTERS = "\n !,.?abcdefghijklmnopqrstuvwxyzT"
LIMIT = 64


@pytest.fixture(scope="module", autouse=True)
def _own_look(qapp: QApplication) -> Iterator[None]:
    """A theme that a module's tests put on the application goes with them."""
    font, palette, sheet = qapp.font(), qapp.palette(), qapp.styleSheet()
    yield
    qapp.setFont(font)
    qapp.setPalette(palette)
    qapp.setStyleSheet(sheet)


@pytest.fixture(scope="module", autouse=True)
def _collects_alone() -> Iterator[None]:
    """No other thread looks for garbage, as in the program; see `gui.collector`."""
    gc.disable()
    yield
    gc.collect()
    gc.enable()


@pytest.fixture(scope="session")
def make_model(
    tiny: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Path]:
    """`make_model("name", seed=1)` is the folder of a character model with random weights."""
    from engine.checkpoints.folder import save_checkpoint  # noqa: PLC0415 - torch, on demand
    from engine.tokenizers import Characters  # noqa: PLC0415

    def make(name: str, **sizes: Any) -> Path:
        tokenizer = Characters(LETTERS)
        wanted = {"vocab_size": tokenizer.vocab_size, "max_seq_len": LIMIT, **sizes}
        folder = tmp_path_factory.mktemp("models") / name
        save_checkpoint(folder, tiny("rotary", **wanted).model, tokenizer)
        return folder

    return make


@pytest.fixture(scope="session")
def small_model(make_model: Callable[..., Path]) -> Path:
    """A model of 2 layers × 4 heads that sees 64 characters."""
    return make_model("small")


@pytest.fixture
def wishes(panel: "Panel") -> "list[Wish]":
    """What a test's panel wishes for, in order; whether its answer is looked at apart."""
    from gui.wishes import Want  # noqa: PLC0415 - not before a test wants it

    wished: list[Wish] = []
    panel.wished.connect(lambda wish: None if isinstance(wish, Want) else wished.append(wish))
    return wished


@pytest.fixture
def window(qtbot: QtBot) -> QWidget:
    """What holds a panel, as a dock does; a panel alone would ask the platform for a least size."""
    widget = QWidget()
    qtbot.addWidget(widget)
    return widget
