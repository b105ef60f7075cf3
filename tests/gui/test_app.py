"""The whole program: once from start to end by keys, and as others start it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QFileDialog, QTabBar
from pytestqt.qtbot import QtBot

from engine.checkpoints.folder import save_checkpoint
from engine.config import ModelConfig
from engine.model import Transformer
from engine.tokenizers import ByteBpe
from gui.app import catch_everything
from gui.messages import Message, Messages
from gui.panels.base import Panel
from gui.panels.next_token import NextTokenPanel
from gui.panels.table import PANELS
from gui.wishes import Choose, SetMask, SetSpeed
from tests.gui.whole_window import WholeWindow, wait_until

ROOT = Path(__file__).parents[2]
PROMPT = "To be, or not to be"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A byte-level model with random weights, as a training would write it."""
    tokenizer = ByteBpe.train(["to be or not to be that is the question " * 20], vocab_size=280)
    config = ModelConfig(
        vocab_size=tokenizer.vocab_size,
        n_layer=2,
        n_head=4,
        n_kv_head=2,
        d_model=32,
        max_seq_len=128,
        positions="rotary",
        norm="rms",
        mlp="gated",
        activation="silu",
    )
    folder = tmp_path_factory.mktemp("models") / "little"
    save_checkpoint(folder, Transformer(config), tokenizer)
    return folder


@pytest.mark.usefixtures("qapp")
def test_from_start_to_end_by_keys(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Start, type, edit, step, go back, branch, mask, window, picture, play, close."""
    whole = WholeWindow(tmp_path / "scope.ini", model=folder, prompt=PROMPT).start()
    try:
        _drive(whole, tmp_path, monkeypatch)
    finally:
        whole.close()
    again = WholeWindow(tmp_path / "scope.ini").start()
    assert again.editor.text().startswith("To beX, or not to be that")
    assert again.reading.info.name == "little"
    again.close()


@pytest.mark.usefixtures("qapp")
def test_a_panel_that_is_wanted_before_its_time_is_made_at_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Panels behind others wait for the first answer, unless somebody goes to one or clicks it."""
    monkeypatch.setattr("gui.controller._SETTLE_MS", 600_000)
    whole = WholeWindow(model=folder, prompt=PROMPT)
    try:
        wait_until(lambda: whole.app._is_furnished, "the panels that are seen")
        made = {panel.name for panel in whole.window.findChildren(Panel)}
        assert {"prompt", "heads", "head", "next_token", "time"} <= made
        assert not made & {"cell", "compare", "cost", "lens"}

        whole.window.go_to_panel("compare")
        assert whole.panel("compare").is_seen

        (tabs,) = (
            bar
            for bar in whole.window.findChildren(QTabBar)
            if "Cell" in [bar.tabText(index) for index in range(bar.count())]
        )
        cell = [tabs.tabText(index) for index in range(tabs.count())].index("Cell")
        QTest.mouseClick(tabs, Qt.MouseButton.LeftButton, pos=tabs.tabRect(cell).center())
        wait_until(lambda: whole.window.findChild(Panel, "cell") is not None, "the clicked panel")
        assert whole.panel("cell").is_seen

        assert whole.app.controller is not None
        whole.app.controller._check_soon.setInterval(0)
        whole.wish(SetMask({"window": 4}))
        whole.start()
        made = {panel.name for panel in whole.window.findChildren(Panel)}
        assert made == {row.name for row in PANELS}
    finally:
        whole.close()


@pytest.mark.usefixtures("qapp")
def test_a_panel_that_was_in_front_at_the_end_does_not_wait_at_the_next_start(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is made with those that are seen, before the first answer."""
    first = WholeWindow(tmp_path / "scope.ini", model=folder, prompt=PROMPT).start()
    first.window.go_to_panel("cell")
    first.close()
    monkeypatch.setattr("gui.controller._SETTLE_MS", 600_000)
    second = WholeWindow(tmp_path / "scope.ini", model=folder, prompt=PROMPT)
    try:
        wait_until(lambda: second.app._is_furnished, "the panels that are seen")
        assert second.window.findChild(Panel, "cell") is not None
        assert second.window.findChild(Panel, "lens") is None
    finally:
        second.close()


def _drive(whole: WholeWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    editor = whole.editor
    whole.type(" that")
    whole.idle()
    assert whole.reading.document.text == f"{PROMPT} that"

    caret = editor.textCursor()
    caret.setPosition(5)
    editor.setTextCursor(caret)
    whole.type("X")
    whole.idle()
    text = "To beX, or not to be that"
    assert editor.text() == whole.reading.document.text == text
    assert whole.reading.stats[-1].n_kept > 0  # "To", at least, was not computed again
    prompt = len(whole.reading.document)

    for _ in range(20):
        whole.press("PgDown", editor)
    whole.idle()
    assert len(whole.reading.document) == prompt + 20
    assert editor.text() == whole.reading.document.text
    assert whole.reading.stats[-1].n_computed == 1

    for _ in range(5):
        whole.press("PgUp", editor)
    whole.idle()
    assert whole.reading.cursor == prompt + 15
    assert len(whole.reading.document) == prompt + 20

    kept = whole.reading.document.token_ids[: prompt + 15]
    _branch(whole)
    assert whole.reading.document.token_ids[:-1] == kept
    assert len(whole.reading.document) == prompt + 16
    assert editor.text() == whole.reading.document.text

    whole.press("Ctrl+M", editor)
    whole.idle()
    n_tokens = whole.reading.n_tokens
    assert whole.reading.stats[-1].n_computed == n_tokens
    assert whole.reading.focus.weights[0, -1] > 0
    whole.press("Ctrl+M", editor)
    whole.idle()
    assert whole.reading.focus.weights[0, 1:].max() == 0

    whole.wish(SetMask({"window": 4}))
    whole.press("Ctrl+Shift+M", editor)
    whole.idle()
    assert (whole.reading.focus.weights[-1] > 0).sum() <= 4
    assert whole.reading.checks.masked_weight == 0

    _save_and_play(whole, tmp_path / "picture.png", monkeypatch)


def _save_and_play(whole: WholeWindow, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    editor = whole.editor
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(path), ""))
    whole.press("Ctrl+Shift+S", editor)
    assert QImage(str(path)).width() == whole.window.width()

    whole.wish(SetSpeed(200.0))
    length = len(whole.reading.document)
    whole.press("F5", editor)
    wait_until(lambda: len(whole.reading.document) > length + 1)
    assert whole.state.playing
    whole.press("Ctrl+Q", editor)
    wait_until(whole.window.isHidden)
    assert whole.app.controller is not None
    assert whole.app.controller._engine.isFinished()


def _branch(whole: WholeWindow) -> None:
    """Choose the third candidate by the keys of the list."""
    panel = whole.child(NextTokenPanel)
    assert whole.reading.stages is not None
    third = int(whole.reading.stages.order[2])
    before = len(whole.reading.stats)
    bars = panel.bars
    bars.setFocus()
    for key in (Qt.Key.Key_Home, Qt.Key.Key_Down, Qt.Key.Key_Down, Qt.Key.Key_Return):
        QTest.keyClick(bars, key)
    whole.idle()
    if len(whole.reading.stats) == before:  # the list has other keys
        whole.wish(Choose(whole.reading.position, third))
    assert whole.reading.document.token_ids[-1] == third


# As others start it


def run(*arguments: str, code: str = "", size: str = "") -> subprocess.CompletedProcess[str]:
    """`python main.py` with these arguments in a process of its own."""
    command = ["-c", code] if code else ["main.py"]
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen", "OMP_NUM_THREADS": "1"}
    return subprocess.run(  # noqa: S603 - our own program
        [sys.executable, *command, *arguments, *([f"--size={size}"] if size else [])],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )


def said(done: subprocess.CompletedProcess[str]) -> list[str]:
    """What a process wrote to its error stream, but for the line of every screenless window."""
    return [line for line in done.stderr.splitlines() if "propagateSizeHints" not in line]


@pytest.mark.parametrize(
    ("scale", "size"), [("1", (1281, 721)), ("2", (2200, 1501))], ids=["scale 1", "scale 2"]
)
def test_a_snapshot_is_a_picture_of_exactly_that_size(
    folder: Path, tmp_path: Path, scale: str, size: tuple[int, int]
) -> None:
    """Steps done, every panel drawn, status 0, nothing said."""
    path = tmp_path / "shot.png"
    done = run(
        *("--model", str(folder), "--prompt", PROMPT, "--steps", "3", "--theme", "dark"),
        *("--snapshot", str(path), "--scale", scale),
        size="x".join(map(str, size)),
    )
    assert (done.returncode, said(done)) == (0, [])
    image = QImage(str(path))
    assert (image.width(), image.height()) == size
    assert len({image.pixel(x, y) for x in range(0, size[0], 7) for y in range(0, 700, 7)}) > 50


def test_a_folder_without_a_model_ends_a_snapshot_with_one_sentence(tmp_path: Path) -> None:
    """Status 1, no traceback."""
    done = run("--model", str(tmp_path / "none"), "--snapshot", str(tmp_path / "shot.png"))
    assert done.returncode == 1
    (sentence,) = said(done)
    assert sentence.startswith(f"{tmp_path / 'none'} does not exist; open a folder")


@pytest.mark.parametrize(
    ("name", "size", "sentence"),
    [
        ("missing/shot.png", (1280, 720), "/missing/shot.png cannot be written; choose a folder"),
        ("shot.png", (100, 100), "The window does not fit into 100x100 pixels at scale 1; use"),
    ],
)
@pytest.mark.usefixtures("qapp")
def test_a_snapshot_that_cannot_be_taken_says_so(
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    size: tuple[int, int],
    sentence: str,
) -> None:
    """One sentence, status 1, and the program ends."""
    path = tmp_path / name
    whole = WholeWindow(model=folder, prompt="a", snapshot=path, size=size)
    wait_until(whole.window.isVisible)
    wait_until(whole.window.isHidden)
    assert whole.app.exit_status == 1
    assert sentence in capsys.readouterr().err
    assert not path.exists()
    whole.close()


def test_the_window_is_painted_before_anything_heavy_is_imported(folder: Path) -> None:
    """Neither torch nor numpy nor pyqtgraph, no panel, not even all of Qt; then they come.

    So does what torch's compiler needs, but not before the first answer.
    """
    code = f"""
import sys
from pathlib import Path
from PySide6 import QtCore
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication
from gui.app import App
from gui.command_line import Options
from gui.settings import Settings

application = QApplication([])
app = App(Options(model=Path({str(folder)!r}), prompt="abc"), Settings(None))
seen = {{}}

def note():
    heavy = {{"torch", "numpy", "pyqtgraph", "engine.scope", "gui.panels", "json", "resources"}}
    seen["at first paint"] = heavy & set(sys.modules)
    if "Qt" in vars(QtCore):  # PySide's enumerations, made when they are first named
        seen["at first paint"].add("Qt")

def note_answer(state, _names):
    if state.reading:
        is_whole = "torch._meta_registrations" in sys.modules
        seen.setdefault("whole at the first answer", is_whole)

def look():
    if app.controller and "listening" not in seen:
        seen["listening"] = app.store.changed.connect(note_answer) is not None
    last = sys.modules.get("torch._meta_registrations")
    if app.controller and app.store.state.reading and hasattr(last, "meta_index_Tensor"):
        app.window.close()

app.window.painted.connect(note)
timer = QTimer(interval=20)
timer.timeout.connect(look)
timer.start()
app.show()
application.exec()
assert seen["at first paint"] == set(), seen
assert not seen["whole at the first answer"]
assert "torch" in sys.modules
assert app.store.state.reading.document.text == "abc"
print("done")
"""
    done = run(code=code)
    assert (done.returncode, said(done)) == (0, [])
    assert done.stdout == "done\n"


@pytest.mark.usefixtures("qapp")
def test_a_window_that_is_closed_at_once_leaves_no_thread_behind(folder: Path) -> None:
    """Torch is being imported before there is a controller that could end the engine's thread."""
    whole = WholeWindow(model=folder, prompt=PROMPT)
    wait_until(lambda: whole.app._engine is not None, "the engine's thread")
    engine = whole.app._engine
    assert engine is not None
    assert whole.app.controller is None
    assert engine.isRunning()
    whole.window.close()
    assert engine.isFinished()
    assert whole.app.controller is None
    whole.close()


def test_no_module_of_the_window_imports_torch() -> None:
    """All of them in one fresh process."""
    code = (
        "import pkgutil, importlib, sys, gui\n"
        "for module in pkgutil.walk_packages(gui.__path__, 'gui.'):\n"
        "    importlib.import_module(module.name)\n"
        "assert 'gui.panels.prompt' in sys.modules\n"
        "assert 'torch' not in sys.modules and 'pyqtgraph' not in sys.modules\n"
    )
    done = run(code=code)
    assert (done.returncode, said(done)) == (0, [])


def test_what_nobody_expected_is_told_with_its_traceback(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """From the window's thread and from any other."""
    import threading  # noqa: PLC0415

    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    messages, heard = Messages(), []
    messages.listen(heard.append)
    catch_everything(messages)

    def fail() -> None:
        raise ZeroDivisionError("oops")

    try:
        fail()
    except ZeroDivisionError as error:
        sys.excepthook(type(error), error, error.__traceback__)
    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()
    qtbot.waitUntil(lambda: len(heard) == 2)
    for message in heard:
        assert isinstance(message, Message)
        assert (message.level, message.sentence) == (
            "error",
            "This is a bug: ZeroDivisionError: oops",
        )
        assert "in fail" in message.details
    assert capsys.readouterr().err.count("ZeroDivisionError: oops") == 2
