"""Times the start: `python tests/benchmarks/bench_startup.py [--model FOLDER] [--rounds N]`.

Each figure comes from a fresh process, counted from the moment in which it was asked for; the
kinds are interleaved, so that all suffer alike from what else runs, and medians are compared. A
round before the first leaves all files in memory and all modules compiled, as any start but the
very first finds them:

- first paint, against a bare PySide6 window's
- first heatmap, against what importing torch alone takes; also of SmolLM2-135M, where the package
  that carries it is installed
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

Environment = dict[str, str]

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


def quick_environment(folder: Path) -> Environment:
    """Variables of a process that keeps compiled modules in a folder, whatever is set here."""
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen", "PYTHONPYCACHEPREFIX": str(folder)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return environment


def measure(code: str, environment: Environment, *arguments: str) -> str:
    """What a fresh process prints; its first argument is the moment it was asked for."""
    done = subprocess.run(  # noqa: S603 - our own code
        [sys.executable, "-c", code, str(time.time()), *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def own(model: Path, environment: Environment, until: str) -> dict[str, float]:
    """All figures of one start of the program."""
    code = (
        "import sys; from tests.benchmarks.one_start import start\n"
        "start(float(sys.argv[1]), *sys.argv[2:])"
    )
    return dict(json.loads(measure(code, environment, str(model), until).splitlines()[-1]))


def bundled(folder: Path, environment: Environment) -> Path:
    """The program's own model, or one of its size with random weights."""
    import resources  # noqa: PLC0415

    if resources.model_folders():
        return resources.model_folders()[0]
    code = (
        "import sys, pathlib; from tests.benchmarks import bench_window as bench\n"
        "bench.bundled_model(pathlib.Path(sys.argv[2]))"
    )
    measure(code, environment, str(folder))
    return folder / "random"


def main() -> None:
    """Measure and compare."""
    from tests.engine.gguf_files import real_file  # noqa: PLC0415 - found from the root only

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, help="the bundled one if left out")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    bare, torch, ours, foreign = [], [], [], []
    with tempfile.TemporaryDirectory() as name:
        environment = quick_environment(Path(name) / "compiled")
        model = arguments.model or bundled(Path(name), environment)
        smollm2 = real_file()
        for _ in range(1 + arguments.rounds):
            bare.append(float(measure(BARE, environment)))
            torch.append(float(measure(TORCH, environment)))
            ours.append(own(model, environment, "end"))
            if smollm2 is not None:
                foreign.append(own(smollm2, environment, "heatmap")["heatmap"])

    def median(key: str) -> float:
        return statistics.median(each[key] for each in ours[1:])

    floor, alone = statistics.median(bare[1:]), statistics.median(torch[1:])
    paint, heatmap = median("paint"), median("heatmap")
    print(f"first paint    {paint:6.2f} s, bare window {floor:6.2f} s: {paint / floor:.2f} ×")
    print(f"first heatmap  {heatmap:6.2f} s, torch alone {alone:6.2f} s: {heatmap / alone:.2f} ×")
    if foreign:
        theirs = statistics.median(foreign[1:])
        print(f"of SmolLM2     {theirs:6.2f} s, {theirs - alone:.2f} s more than torch alone")
    print(f"curves are there after {median('curves'):.2f} s")
    print(f"longest stall  {median('stall to heatmap') / 1000:6.2f} s until the heatmap, ", end="")
    print(f"{median('stall') / 1000:.2f} s until all is there")
    for key in ("p99", "worst"):
        print(f"lateness {key:5} {median(key):6.1f} ms = {median(key) / FRAME_MS:.2f} frames")


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main()
