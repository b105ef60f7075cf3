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

ROOT = Path(__file__).parents[2]
FRAME_MS = 1000 / 60
BEAT_MS = 5
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
    """Run the program in this process, watch it, and print what was seen."""
    asked, folder = float(sys.argv[1]), Path(sys.argv[2])
    # What `gui.app.run` does, with an eye on the event loop.
    from PySide6.QtCore import Qt, QTimer  # noqa: PLC0415
    from PySide6.QtWidgets import QApplication  # noqa: PLC0415

    from gui.app import _SWITCH_SECONDS, App  # noqa: PLC0415
    from gui.command_line import Options  # noqa: PLC0415
    from gui.settings import Settings  # noqa: PLC0415

    sys.setswitchinterval(_SWITCH_SECONDS)
    application = QApplication([])
    application.setStyle("Fusion")
    app = App(Options(model=folder, prompt=PROMPT), Settings(None))
    seen: dict[str, float] = {}
    late: list[float] = []
    due = [0.0]

    def note(name: str) -> None:
        seen.setdefault(name, time.time() - asked)

    def beat() -> None:
        now = time.perf_counter()
        if due[0]:
            late.append(1000 * (now - due[0]))
        due[0] = now + BEAT_MS / 1000
        step()

    def step() -> None:
        if "working" in seen:
            if len(late) > 6000 / BEAT_MS:
                finish()
        elif "curves" in seen and app._is_settled:  # noqa: SLF001
            seen["stall"] = max(late)
            late.clear()
            work()
        elif "heatmap" in seen:
            from gui import graphs  # noqa: PLC0415

            if graphs.loader().module is not None:
                note("curves")
        elif app._is_furnished and app.store.state.reading is not None:  # noqa: SLF001
            app.window.repaint()
            note("heatmap")
            seen["stall to heatmap"] = max(late)

    def work() -> None:
        from gui.wishes import Play, SetMask, SetSpeed  # noqa: PLC0415

        note("working")
        assert app.controller is not None  # noqa: S101
        app.controller.fulfil(SetMask({"mask": "none"}))  # a whole pass each time
        app.controller.fulfil(SetMask({"mask": "causal"}))
        app.controller.fulfil(SetSpeed(200.0))
        app.controller.fulfil(Play("play"))

    def finish() -> None:
        timer.stop()
        ordered = sorted(late)
        seen["p99"], seen["worst"] = ordered[int(0.99 * len(ordered))], ordered[-1]
        app.window.close()

    app.window.painted.connect(lambda: note("paint"))
    timer = QTimer(interval=BEAT_MS, timerType=Qt.TimerType.PreciseTimer)
    timer.timeout.connect(beat)
    timer.start()
    app.show()
    application.exec()
    print(json.dumps(seen))


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
