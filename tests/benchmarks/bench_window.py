"""Times the window: `python tests/benchmarks/bench_window.py [--model FOLDER]`.

From a keystroke to everything painted, with the engine and alone; and the window's share of a
step of a model in SmolLM2's shape, at two lengths and two densities of pixels, each in a process
of its own. A share is the processor time of the window's thread, so that what else runs on the
machine counts little; medians.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
sys.path.insert(0, str(Path(__file__).parents[2]))

import torch
from PySide6.QtCore import QEventLoop, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

import resources
from engine.checkpoints.folder import save_checkpoint
from engine.config import ModelConfig
from engine.loading import Loaded
from engine.model import Transformer
from engine.reading import ModelInfo, Reading
from engine.scope import Scope
from engine.tokenizers import ByteBpe
from gui import quick_start
from gui.app import App
from gui.command_line import Options
from gui.main_window import MainWindow
from gui.panels.base import Panel
from gui.panels.prompt import PromptPanel
from gui.settings import Settings
from gui.view import View, resolve

FRAME_MS = 1000 / 60
ROUNDS = 25
LINE = "To be, or not to be, that is the question: whether 'tis nobler in the mind to suffer\n"


def bundled_shape(tokenizer: ByteBpe) -> ModelConfig:
    """The size of the model that comes with the program."""
    return ModelConfig(
        vocab_size=max(3072, tokenizer.vocab_size),
        n_layer=6,
        n_head=8,
        d_model=256,
        max_seq_len=512,
        positions="rotary",
    )


def smollm2_shape(vocab_size: int) -> ModelConfig:
    """SmolLM2-135M: 30 layers of 9 heads on 3 key/value heads; a context that long is enough."""
    return ModelConfig(
        vocab_size=vocab_size,
        n_layer=30,
        n_head=9,
        n_kv_head=3,
        d_model=576,
        d_ff=1536,
        max_seq_len=2048,
        positions="rotary",
        norm="rms",
        mlp="gated",
        activation="silu",
    )


def open_app(folder: Path, prompt: str) -> App:
    """The program on a model, once everything is painted."""
    app = App(Options(model=folder, prompt=prompt), Settings(None))
    app.show()
    while app._unmade or not (app._is_furnished and app.store.state.reading):
        let_live(0.01)
    let_live(1.5)  # the comparison with the full pass, the import of the curves
    return app


def let_live(seconds: float) -> None:
    """Let the window and the engine live so long; QTest.qWait would keep the engine waiting."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        QApplication.processEvents()
        time.sleep(0.001)


def until_idle(app: App) -> None:
    """Let the window live until the engine has answered and all is painted."""
    assert app.controller is not None
    while app.controller.is_busy or not app.window.is_drawn:
        QApplication.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents)
    QApplication.processEvents()


def show(window: MainWindow, view: View) -> None:
    """Draw a view and paint it, in as many turns of the event loop as that takes."""
    window.show_view(view)
    QApplication.processEvents()
    while not window.is_drawn:
        QApplication.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents)
    QApplication.processEvents()


def bench_keystroke(folder: Path) -> None:
    """One more letter at the end of 200 tokens."""
    app = open_app(folder, LINE * 7)
    assert app.controller is not None
    tokenizer_tokens = app.store.state.reading
    assert tokenizer_tokens is not None
    text = tokenizer_tokens.document.text
    # As many characters as 200 tokens take.
    spans = tokenizer_tokens.document.spans
    editor = app.window.findChild(PromptPanel).editor
    editor.selectAll()
    editor.insertPlainText(text[: int(spans[min(199, len(spans) - 1), 1])])
    until_idle(app)
    took, share = [], []
    for _ in range(ROUNDS):
        let_live(0.4)  # the comparison with the full pass belongs to the keystroke before
        began, cpu = time.perf_counter(), time.thread_time()
        QTest.keyClick(editor, Qt.Key.Key_A)
        until_idle(app)
        took.append(1000 * (time.perf_counter() - began))
        share.append(1000 * (time.thread_time() - cpu))
    reading = app.store.state.reading
    assert reading is not None
    print(f"keystroke → everything painted, {reading.n_tokens} tokens, {reading.info.name}")
    told("  all of it", took)
    told("  the window's share", share)
    app.window.close()


def told(what: str, times: list[float]) -> None:
    """One line: median and range, in milliseconds and frames."""
    median = statistics.median(times)
    low, high = min(times), max(times)
    print(f"{what:34} {median:7.2f} ms = {median / FRAME_MS:5.2f} frames ({low:.1f} to {high:.1f})")


def readings_of(n_tokens: int, count: int) -> list[Reading]:
    """The readings of successive steps of a model in SmolLM2's shape with random weights."""
    tokenizer = ByteBpe.train([LINE], vocab_size=300)
    config = smollm2_shape(3072)
    torch.manual_seed(0)
    info = ModelInfo("smollm2-shape", "", config, 134_515_008, 0.0, tuple([b" word"] * 3072))
    scope = Scope(Loaded(Transformer(config), tokenizer, info))
    text = LINE * 100
    ids = tokenizer.encode(text)[:n_tokens]
    readings = [scope.edit(tokenizer.decode(ids))]
    readings += [scope.choose(len(ids) + i, 32 + i % 200) for i in range(count)]
    return readings


def bench_step(folder: Path, n_tokens: int) -> None:
    """Draw and paint one more token in all panels that can be seen; nothing is computed."""
    app = open_app(folder, "a")
    window, state = app.window, app.store.state
    assert app.controller is not None
    views = [
        replace(state, reading=reading, text=reading.document.text)
        for reading in readings_of(n_tokens, ROUNDS + 3)
    ]
    for each in views[:3]:
        show(window, resolve(each))
    share: dict[str, list[float]] = {"all": [], "resolve": []}
    for each in views[3:]:
        began = time.thread_time()
        view = resolve(each)
        share["resolve"].append(1000 * (time.thread_time() - began))
        show(window, view)
        share["all"].append(1000 * (time.thread_time() - began))
    ratio = window.devicePixelRatioF()
    print(f"the window's share of a step, 30 × 9 heads, {n_tokens} tokens, scale {ratio:g}")
    told("  all panels that are seen", share["all"])
    told("  of it state → view", share["resolve"])
    seen = [panel for panel in window.findChildren(Panel) if panel.is_seen]
    for panel in seen:
        told(f"  {panel.name}", alone(panel, [resolve(each) for each in views]))
    window.close()


def alone(panel: Panel, views: list[View]) -> list[float]:
    """One panel's share of each step."""
    taken = []
    for view in views:
        taken.append(milliseconds(lambda view=view: panel.show_view(view)))  # type: ignore[misc]
        taken[-1] += milliseconds(QApplication.processEvents)
    return taken[3:]


def milliseconds(action: Callable[[], object]) -> float:
    """Processor time of this thread."""
    began = time.thread_time()
    action()
    return 1000 * (time.thread_time() - began)


def small_model(folder: Path) -> Path:
    """Something that is opened quickly."""
    tokenizer = ByteBpe.train([LINE], vocab_size=300)
    config = ModelConfig(vocab_size=300, n_layer=1, n_head=1, d_model=8, max_seq_len=64)
    save_checkpoint(folder / "small", Transformer(config), tokenizer)
    return folder / "small"


def bundled_model(folder: Path) -> Path:
    """The program's own model, or one of its size with random weights."""
    if resources.model_folders():
        return resources.model_folders()[0]
    texts = [each.read_text(encoding="utf-8") for each in _plays()]
    tokenizer = ByteBpe.train(texts, vocab_size=3072)
    save_checkpoint(folder / "random", Transformer(bundled_shape(tokenizer)), tokenizer)
    return folder / "random"


def _plays() -> list[Path]:
    return sorted((Path(resources.__file__).parent / "corpus" / "plays").glob("*.txt"))[:8]


def main() -> None:
    """Run everything, or the one measurement that a subprocess is for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, help="for the keystroke; the bundled one if left out")
    parser.add_argument("--step", type=int, help="only the share of a step at so many tokens")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    quick_start.begin()
    with tempfile.TemporaryDirectory() as name:
        if arguments.step:
            _application = _start_qt()
            bench_step(small_model(Path(name)), arguments.step)
            return
        for scale in ("1", "2"):
            for n_tokens in (128, 1024):
                subprocess.run(  # noqa: S603 - this very file
                    [sys.executable, __file__, "--step", str(n_tokens)],
                    env={**os.environ, "QT_SCALE_FACTOR": scale},
                    check=True,
                )
        _application = _start_qt()
        bench_keystroke(arguments.model or bundled_model(Path(name)))


def _start_qt() -> QApplication:
    application = QApplication([])
    application.setStyle("Fusion")
    return application


if __name__ == "__main__":
    main()
