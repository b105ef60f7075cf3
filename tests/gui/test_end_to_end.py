"""One sitting from start to end, by keys and clicks alone, and what the command line promises."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QImage, QTextCursor
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QFileDialog

from gui.widgets.candidate_bars import CandidateBars
from gui.widgets.matrix_view import MatrixView
from tests.gui.whole_window import WholeWindow, wait_until

ROOT = Path(__file__).parents[2]
PROMPT = "To be, or not to be"


def loss_of(whole: WholeWindow) -> float:
    """The mean loss of the text on screen."""
    return float(np.nanmean(whole.reading.session.loss))


def test_one_sitting_from_the_first_key_to_closing_while_it_plays(  # noqa: PLR0915 - one sitting
    qapp: QApplication,  # noqa: ARG001
    small_model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Start, type, edit, step, go back, branch, mask, window, picture, close while it plays."""
    whole = WholeWindow(model=small_model, prompt=PROMPT).start()
    try:
        n_prompt = whole.reading.n_tokens

        whole.type("!")
        whole.idle()
        assert whole.reading.document.text == f"{PROMPT}!"
        assert whole.reading.computed == (n_prompt, n_prompt + 1), "only the new token was computed"

        caret = whole.editor.textCursor()
        caret.setPosition(3)
        whole.editor.setTextCursor(caret)
        whole.type("x")
        whole.idle()
        assert whole.reading.document.text == "To xbe, or not to be!"
        first, last = whole.reading.computed
        assert first > 0, "what stands before the edit was kept"
        assert last == whole.reading.n_tokens
        whole.editor.moveCursor(QTextCursor.MoveOperation.End)

        before = whole.reading.n_tokens
        for _ in range(20):
            QTest.keyClick(whole.editor, Qt.Key.Key_PageDown)
        whole.idle()
        assert whole.reading.n_tokens == before + 20
        written = whole.editor.text()
        assert written == whole.state.text == whole.reading.document.text

        for _ in range(5):
            QTest.keyClick(whole.editor, Qt.Key.Key_PageUp)
        whole.idle()
        assert whole.reading.n_tokens == before + 15
        assert whole.editor.text() == written, "going back forgets nothing"

        kept = whole.reading.document.token_ids[: before + 15]
        known = whole.reading.document.token_ids[before + 15]
        bars = whole.child(CandidateBars)
        assert whole.reading.stages is not None
        other = next(int(each) for each in whole.reading.stages.order if each != known)
        bars.setFocus()
        QTest.keyClick(bars, Qt.Key.Key_Home)
        for _ in range(list(whole.reading.stages.order).index(other)):
            QTest.keyClick(bars, Qt.Key.Key_Down)
        QTest.keyClick(bars, Qt.Key.Key_Return)
        whole.idle()
        assert whole.reading.document.token_ids == (*kept, other)

        causal = loss_of(whole)
        whole.press("Ctrl+M")
        whole.idle()
        assert whole.reading.conditions.mask == "none"
        assert whole.reading.computed == (0, whole.reading.n_tokens), "nothing could be reused"
        assert np.triu(whole.reading.focus.weights, 1).max() > 0, "the upper triangle fills"
        assert loss_of(whole) != causal
        whole.press("Ctrl+M")
        whole.idle()
        assert np.triu(whole.reading.focus.weights, 1).max() == 0
        assert loss_of(whole) == pytest.approx(causal, abs=1e-5)

        whole.press("Ctrl+Shift+M")
        whole.idle()
        assert whole.reading.conditions.mask == "window"
        assert whole.reading.checks.masked_weight == 0

        path = tmp_path / "window.png"
        monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(path), ""))
        whole.press("Ctrl+Shift+S")
        wait_until(path.exists, "the picture")
        assert QImage(str(path)).size() == whole.window.size() * whole.window.devicePixelRatio()

        whole.press("F5")
        wait_until(lambda: whole.state.playing, "it to play")
    finally:
        whole.close()
    assert not whole.app.controller or not whole.app.controller._engine.isRunning()


def test_a_click_on_a_cell_selects_its_query_and_key(
    qapp: QApplication,  # noqa: ARG001
    small_model: Path,
) -> None:
    """The heatmap, the token strip and the state point at the same cell."""
    whole = WholeWindow(model=small_model, prompt=PROMPT).start()
    try:
        matrix = whole.child(MatrixView)
        place: QPoint = matrix.cell_rect(5, 2).center().toPoint()
        QTest.mouseClick(matrix, Qt.MouseButton.LeftButton, pos=place)
        whole.idle()
        assert (whole.state.selection.query, whole.state.selection.key) == (5, 2)
    finally:
        whole.close()


@pytest.mark.parametrize(("size", "scale"), [("1280x720", "1"), ("2560x1440", "2")])
def test_a_snapshot_has_exactly_the_pixels_that_were_asked_for(
    small_model: Path, tmp_path: Path, size: str, scale: str
) -> None:
    """`--snapshot` renders without a screen, writes the PNG and ends well."""
    path = tmp_path / "window.png"
    arguments = ["--model", str(small_model), "--prompt", PROMPT, "--steps", "2"]
    arguments += ["--snapshot", str(path), "--size", size, "--scale", scale]
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "main.py", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    image = QImage(str(path))
    assert f"{image.width()}x{image.height()}" == size


def test_a_folder_without_a_model_ends_a_snapshot_with_one_sentence(tmp_path: Path) -> None:
    """Exit status 1, one sentence that names the folder, no traceback."""
    missing = tmp_path / "nothing here"
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "main.py", "--model", str(missing), "--snapshot", str(tmp_path / "a.png")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert str(missing) in done.stderr
