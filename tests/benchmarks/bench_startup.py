"""Times the start: `python tests/benchmarks/bench_startup.py [--model FOLDER] [--rounds N]`.

Each figure comes from a fresh process, counted from the moment in which it was asked for; the
kinds are interleaved, so that all suffer alike from what else runs, and medians are compared:

- first paint, against a bare PySide6 window's
- first heatmap, against what importing torch alone takes
- the longest stall of the event loop until the first heatmap, and until the curves are there
- how late a 5 ms timer comes afterwards, while the engine prefills and decodes: p99 and worst
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gui.app import App

ROOT = Path(__file__).parents[2]
FRAME_MS = 1000 / 60
BEAT_MS = 5
WORK_MS = 6000
PROMPT = "To be, or not to be, that is the question: " * 12

BARE = """
import sys, time
from PySide6.QtWidgets import QApplication, QMainWindow
class Window(QMainWindow):
    def paintEvent(self, event):
        super().paintEvent(event)
        print(time.time() - float(sys.argv[1]), flush=True)
        QApplication.quit()
application = QApplication([])
window = Window()
window.resize(1280, 720)
window.show()
application.exec()
"""

TORCH = """
import sys, time
import torch
print(time.time() - float(sys.argv[1]), flush=True)
"""


def measure(code: str, *arguments: str) -> str:
    """What a fresh process prints; its first argument is the moment it was asked for."""
    done = subprocess.run(  # noqa: S603 - our own code
        [sys.executable, "-c", code, str(time.time()), *arguments],
        cwd=ROOT,
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen"},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def own(folder: Path) -> dict[str, float]:
    """All figures of one start of the program."""
    code = "from tests.benchmarks.bench_startup import start; start()"
    return dict(json.loads(measure(code, str(folder)).splitlines()[-1]))


def start() -> None:
    """Run the program in this process as `gui.app.run` does, and print what was seen."""
    from PySide6.QtWidgets import QApplication  # noqa: PLC0415

    from gui.app import App, begin_quick_start  # noqa: PLC0415
    from gui.command_line import Options  # noqa: PLC0415
    from gui.settings import Settings  # noqa: PLC0415

    begin_quick_start()
    application = QApplication([])
    application.setStyle("Fusion")
    app = App(Options(model=Path(sys.argv[2]), prompt=PROMPT), Settings(None))
    watch = Watch(app, asked=float(sys.argv[1]))
    app.show()
    application.exec()
    print(json.dumps(watch.seen))


class Watch:
    """An eye on one start, and on how late a timer comes."""

    def __init__(self, app: "App", asked: float) -> None:
        from PySide6.QtCore import Qt, QTimer  # noqa: PLC0415

        self._app, self._asked = app, asked
        self.seen: dict[str, float] = {}
        self._late: list[float] = []
        self._due = 0.0
        app.window.painted.connect(lambda: self._note("paint"))
        self._timer = QTimer(interval=BEAT_MS, timerType=Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._beat)
        self._timer.start()

    def _note(self, name: str) -> None:
        self.seen.setdefault(name, time.time() - self._asked)

    def _beat(self) -> None:
        now = time.perf_counter()
        if self._due:
            self._late.append(1000 * (now - self._due))
        self._due = now + BEAT_MS / 1000
        if "working" in self.seen:
            self._finish()
        elif "curves" in self.seen:
            self._work()
        elif "heatmap" in self.seen:
            self._wait_for_curves()
        elif self._app._is_furnished and self._app.store.state.reading is not None:
            self._app.window.repaint()
            self._note("heatmap")
            self.seen["stall to heatmap"] = max(self._late)

    def _wait_for_curves(self) -> None:
        from gui import graphs  # noqa: PLC0415

        if graphs.loader().module is not None and self._app._is_settled:
            self._note("curves")
            self.seen["stall"] = max(self._late)
            self._late.clear()

    def _work(self) -> None:
        """Whole passes, and then token by token."""
        from gui.wishes import Play, SetMask, SetSpeed  # noqa: PLC0415

        self._note("working")
        assert self._app.controller is not None
        for wish in (SetMask({"mask": "none"}), SetMask({"mask": "causal"}), SetSpeed(200.0)):
            self._app.controller.fulfil(wish)
        self._app.controller.fulfil(Play("play"))

    def _finish(self) -> None:
        if len(self._late) * BEAT_MS > WORK_MS or not self._app.store.state.playing:
            self._timer.stop()
            ordered = sorted(self._late)
            self.seen["p99"], self.seen["worst"] = ordered[int(0.99 * len(ordered))], ordered[-1]
            self._app.window.close()


def model(folder: Path) -> Path:
    """The program's own model, or one of its size with random weights."""
    import resources  # noqa: PLC0415

    if resources.model_folders():
        return resources.model_folders()[0]
    code = (
        "import sys, pathlib; from tests.benchmarks import bench_window as bench\n"
        "bench.bundled_model(pathlib.Path(sys.argv[2]))"
    )
    measure(code, str(folder))
    return folder / "random"


def main() -> None:
    """Measure and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, help="the bundled one if left out")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    bare, torch, ours = [], [], []
    with tempfile.TemporaryDirectory() as name:
        folder = arguments.model or model(Path(name))
        for _ in range(arguments.rounds):
            bare.append(float(measure(BARE)))
            torch.append(float(measure(TORCH)))
            ours.append(own(folder))

    def median(key: str) -> float:
        return statistics.median(each[key] for each in ours)

    floor, alone = statistics.median(bare), statistics.median(torch)
    paint, heatmap = median("paint"), median("heatmap")
    print(f"first paint    {paint:6.2f} s, bare window {floor:6.2f} s: {paint / floor:.2f} ×")
    print(f"first heatmap  {heatmap:6.2f} s, torch alone {alone:6.2f} s: {heatmap / alone:.2f} ×")
    print(f"curves are there after {median('curves'):.2f} s")
    print(f"longest stall  {median('stall to heatmap') / 1000:6.2f} s until the heatmap, ", end="")
    print(f"{median('stall') / 1000:.2f} s until all is there")
    for key in ("p99", "worst"):
        print(f"lateness {key:5} {median(key):6.1f} ms = {median(key) / FRAME_MS:.2f} frames")


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main()
