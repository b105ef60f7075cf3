"""Times the prompt editor and the token strip: `python tests/benchmarks/bench_prompt.py`.

Variants are interleaved in one run and reported as medians; the ratios are what to trust.
"""

import os
import re
import statistics
import time
from collections.abc import Callable

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import numpy as np
from PySide6.QtCore import QMimeData, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QPlainTextEdit

from gui.widgets.prompt_edit import PromptEdit
from gui.widgets.token_strip import TokenStrip

FRAME_MS = 1000 / 60
ROUNDS = 30
LINE = "Now is the winter of our discontent made glorious summer by this sun of York;\n"
TOKEN = re.compile(r" ?\w+| ?[^\s\w]+|\s")


def milliseconds(action: Callable[[], None]) -> float:
    """How long one call takes."""
    start = time.perf_counter()
    action()
    return 1000 * (time.perf_counter() - start)


def text_of(n_tokens: int, *, one_paragraph: bool) -> str:
    """A text of about that many tokens."""
    text = LINE * (n_tokens // 16)
    return text.replace("\n", " ") if one_paragraph else text


def key(edit: QPlainTextEdit) -> None:
    """A keystroke at the end, tokenised again where there are tokens, and painted."""
    QTest.keyClick(edit, Qt.Key.Key_A)
    if isinstance(edit, PromptEdit):
        spans = np.array([found.span() for found in TOKEN.finditer(edit.text())])
        edit.set_tokens(spans)
    edit.viewport().repaint()


def bench_editor(n_tokens: int, *, one_paragraph: bool) -> None:
    """Keystroke → painted, with chips and without."""
    text = text_of(n_tokens, one_paragraph=one_paragraph)
    chips, plain = PromptEdit(), QPlainTextEdit()
    chips.show_text(text)
    plain.setPlainText(text)
    plain.setFont(chips.font())
    times: dict[QPlainTextEdit, list[float]] = {chips: [], plain: []}
    for edit in times:
        edit.resize(1200, 400)
        edit.show()
        QApplication.processEvents()
        edit.moveCursor(edit.textCursor().MoveOperation.End)
        key(edit)
    for _ in range(ROUNDS):
        for edit, taken in times.items():
            taken.append(milliseconds(lambda edit=edit: key(edit)))  # type: ignore[misc]
    ours, floor = (statistics.median(times[edit]) for edit in (chips, plain))
    shape = "one paragraph" if one_paragraph else "lines"
    print(f"key, {n_tokens} tokens, {shape:13}  {ours:7.2f} ms  plain {floor:6.2f} ms", end="  ")
    print(f"{ours / floor:.2f} × plain, {ours / FRAME_MS:.2f} frame")


def bench_strip(n_tokens: int) -> None:
    """One more token, the row of its head, and everything painted."""
    tokens = [found.group().encode() for found in TOKEN.finditer(LINE * (n_tokens // 15))]
    tokens = (tokens * 2)[:n_tokens]
    ids = np.arange(n_tokens + ROUNDS)
    strip = TokenStrip()
    strip.resize(1200, 200)
    strip.show()
    QApplication.processEvents()
    first = milliseconds(lambda: strip.set_tokens(tokens, ids[:n_tokens]))
    weights = np.full(n_tokens + ROUNDS, 0.3, np.float32)
    strip.set_losses(np.linspace(0, 8, n_tokens + ROUNDS))
    steps, paints = [], []

    def step() -> None:
        tokens.append(b" more")
        strip.set_tokens(tokens, ids[: len(tokens)])
        strip.set_selected(len(tokens) - 1)
        strip.set_row(weights[: len(tokens)])
        strip.viewport().repaint()

    for _ in range(ROUNDS):
        steps.append(milliseconds(step))
        paints.append(milliseconds(strip.viewport().repaint))
    median = statistics.median(steps)
    print(
        f"strip, {n_tokens:7} tokens: first {first:7.2f} ms, step → painted {median:6.2f} ms "
        f"(paint {statistics.median(paints):.2f} ms), {median / FRAME_MS:.2f} frame"
    )


def bench_paste() -> None:
    """A million characters pasted and painted."""
    for name, text in (("one word", "x" * 1_000_000), ("lines", LINE * 12_800)):
        edit = PromptEdit()
        edit.resize(1200, 400)
        edit.show()
        QApplication.processEvents()
        data = QMimeData()
        data.setText(text)
        pasted = milliseconds(lambda edit=edit, data=data: edit.insertFromMimeData(data))  # type: ignore[misc]
        painted = milliseconds(edit.viewport().repaint)
        typed = milliseconds(lambda edit=edit: key(edit))  # type: ignore[misc]
        print(f"paste 1 MB, {name:8}: {pasted:6.0f} ms, paint {painted:.1f} ms, key {typed:.0f} ms")


if __name__ == "__main__":
    app = QApplication([])
    for size in (50, 500, 2000):
        for is_one in (False, True):
            bench_editor(size, one_paragraph=is_one)
    for size in (200, 2_000, 400_000):
        bench_strip(size)
    bench_paste()
