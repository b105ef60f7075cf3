"""Real readings of a small random model, and a place to show panels in, for their tests."""

from dataclasses import replace
from typing import Any

import torch
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication, QWidget

from engine.config import ModelConfig
from engine.loading import Loaded
from engine.model import Transformer
from engine.reading import ModelInfo, Reading
from engine.scope import Scope
from engine.tokenizers import Characters
from gui.state import State
from gui.view import View, resolve

N_LAYER, N_KV_HEAD, HEAD_DIM, BYTES = 2, 2, 4, 4
BYTES_PER_TOKEN = 2 * N_LAYER * N_KV_HEAD * HEAD_DIM * BYTES


def tiny_scope(max_seq_len: int = 32, windows: tuple[int, ...] = ()) -> Scope:
    """A model of two layers with four heads on two key/value heads; a token is a character."""
    tokenizer = Characters("abcdefghijklmnopqrstuvwxyz ")
    config = ModelConfig(
        vocab_size=tokenizer.vocab_size,
        n_layer=N_LAYER,
        n_head=4,
        n_kv_head=N_KV_HEAD,
        d_model=4 * HEAD_DIM,
        max_seq_len=max_seq_len,
        windows=windows,
    )
    torch.manual_seed(0)
    model = Transformer(config)
    return Scope(Loaded(model, tokenizer, ModelInfo("tiny", "", config, 1, 0.0)))


def named_scope(text: str, narrower: float = 1.0) -> Scope:
    """The same model on a text, knowing what its tokens are called.

    Weights that are `narrower` give probabilities nearer to even.
    """
    scope = tiny_scope()
    names = tuple(map(scope.tokenizer.token_bytes, range(scope.info.config.vocab_size)))
    scope.info = replace(scope.info, vocabulary=names)
    with torch.no_grad():
        for parameter in scope._run.model.parameters():
            parameter.mul_(narrower)
    scope.edit(text)
    return scope


def view_of(reading: Reading | None, **fields: Any) -> View:
    """What the window shows of this reading."""
    return resolve(State(reading=reading, **{"phase": "ready", **fields}))


def house(window: QWidget, panel: QWidget, width: int, height: int) -> None:
    """Show a panel in this size inside a window that leaves it room."""
    window.resize(1400, 400)
    panel.setParent(window)
    panel.resize(width, height)
    window.show()


def picture(panel: QWidget) -> QImage:
    """What a panel looks like once everything has its place, whoever has the keyboard."""
    QApplication.processEvents()
    if focused := QApplication.focusWidget():
        focused.clearFocus()
    return panel.grab().toImage()
