"""What every test stands on: no screen, one thread, no settings of the person who runs them."""

import gc
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

# Before Qt and torch are imported by anyone.
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", "1")

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QSettings, QThread

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

    from engine.model import Transformer
    from engine.run import Run
    from engine.scope import Scope


def _leftover_widgets(known: set[int]) -> "list[QWidget]":
    """Windows that the test made and neither closed nor dropped; a popup goes with its owner."""
    from PySide6.QtWidgets import QApplication  # noqa: PLC0415 - engine tests do without widgets

    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    windows = [widget for widget in QApplication.topLevelWidgets() if widget.parent() is None]
    return [window for window in windows if _address(window) not in known]


def _address(widget: "QWidget") -> int:
    """Which widget of Qt's it is; Python may make a new object for the same one."""
    from shiboken6 import getCppPointer  # noqa: PLC0415 - as above

    return int(getCppPointer(widget)[0])


@pytest.fixture(autouse=True)
def _nothing_left_behind(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """A test leaves no widget and no running QThread; an engine test not even an application."""
    settings = tmp_path / "settings"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(settings))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    for form in (QSettings.Format.NativeFormat, QSettings.Format.IniFormat):
        QSettings.setPath(form, QSettings.Scope.UserScope, str(settings))
    started: list[QThread] = []
    start = QThread.start

    def start_watched(thread: QThread, *priority: QThread.Priority) -> None:
        started.append(thread)
        start(thread, *priority)

    monkeypatch.setattr(QThread, "start", start_watched)
    had_application = QCoreApplication.instance() is not None
    known: set[int] = set()
    if had_application:
        known = {_address(widget) for widget in _leftover_widgets(set())}
    yield
    if QCoreApplication.instance() is None:
        return
    in_engine = Path(__file__).parent / "engine" in request.path.parents
    assert had_application or not in_engine, "an engine test created an application"
    running = [thread for thread in started if _is_running(thread)]
    assert not running, f"still running: {running}"
    if _leftover_widgets(known):
        gc.collect()
    assert not _leftover_widgets(known), f"left behind: {_leftover_widgets(known)}"


def _is_running(thread: QThread) -> bool:
    try:
        return thread.isRunning()
    except RuntimeError:  # its C++ side is gone, so it has ended
        return False


def _randomise(model: "Transformer", seed: int) -> None:
    """Weights wide enough for attention to be far from even, and biases that are not 0."""
    import torch  # noqa: PLC0415 - tests of the window must not load it

    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            middle = 1.0 if "norm" in name and name.endswith("weight") else 0.0
            parameter.normal_(middle, 0.3, generator=generator)


@pytest.fixture(scope="session")
def tiny() -> "Callable[..., Run]":
    """Makes runs of small random models.

    `tiny("alibi", n_layer=1, seed=3)` is a run; its model is `run.model`.
    """
    from engine.config import ModelConfig  # noqa: PLC0415 - as above
    from engine.model import Transformer  # noqa: PLC0415
    from engine.run import Run  # noqa: PLC0415

    def make(positions: str = "rotary", *, seed: int = 0, **sizes: Any) -> Run:
        wanted = {
            "vocab_size": 11,
            "n_layer": 2,
            "n_head": 4,
            "n_kv_head": 2,
            "d_model": 16,
            "max_seq_len": 32,
            **sizes,
        }
        model = Transformer(ModelConfig(positions=positions, **wanted))
        _randomise(model, seed)
        return Run(model)

    return make


@pytest.fixture(scope="session")
def lettered(tiny: "Callable[..., Run]") -> "Callable[..., Scope]":
    """Opens small random models whose tokens are letters on a text.

    `lettered("to be", "alibi", n_layer=3)` is a scope. With `named` it knows what its tokens are
    called; a `narrower` below 1 brings all weights nearer to 0, and so what they give nearer to
    even.
    """
    import torch  # noqa: PLC0415 - as above

    from engine.loading import Loaded  # noqa: PLC0415
    from engine.reading import ModelInfo  # noqa: PLC0415
    from engine.scope import Scope  # noqa: PLC0415
    from engine.tokenizers import Characters  # noqa: PLC0415

    def make(
        text: str,
        positions: str = "rotary",
        *,
        letters: str = "abcdefghijklmnopqrstuvwxyz ",
        named: bool = False,
        narrower: float = 1.0,
        **sizes: Any,
    ) -> Scope:
        tokenizer = Characters(letters)
        model = tiny(positions, **{"vocab_size": tokenizer.vocab_size, **sizes}).model
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(narrower)
        names = tuple(map(tokenizer.token_bytes, range(tokenizer.vocab_size))) if named else ()
        scope = Scope(Loaded(model, tokenizer, ModelInfo("tiny", "", model.config, 1, 0.0, names)))
        scope.edit(text)
        return scope

    return make
