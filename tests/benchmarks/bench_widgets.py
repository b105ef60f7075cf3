"""How the pictures of heads compare with pyqtgraph's way, interleaved in one run.

    python -m tests.benchmarks.bench_widgets

Medians of the processor time of the window's thread, which is what a busy machine distorts
least; the time on the clock stands beside it. A frame is 16.7 ms.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import numpy as np
import pyqtgraph as pg
from numpy.typing import NDArray
from PySide6.QtCore import QPointF
from PySide6.QtWidgets import QApplication, QWidget

from gui import quick_start
from gui.theme import LIGHT
from gui.widgets.head_atlas import HeadAtlas
from gui.widgets.matrix_view import MatrixView
from tests.gui.picture_facts import point_at

FRAME = 16.7
ROUNDS = 24
Step = Callable[[], None]

_SHOWN: list[QWidget] = []  # on screen until their table is printed


def weights(n: int, seed: int = 0) -> NDArray[np.float32]:
    """Causal rows that sum to 1."""
    square = np.random.default_rng((n, seed)).random((n, n), dtype=np.float32) ** 8
    square *= np.tri(n, dtype=np.float32)
    return square / square.sum(axis=1, keepdims=True)


def painted(widget: QWidget) -> Step:
    """What repaints a widget's update region, its children's too, and returns when done."""
    _SHOWN.append(widget)
    widget.show()
    QApplication.processEvents()
    return QApplication.processEvents


def atlas_step(n_layer: int, n_head: int, n: int, size: tuple[int, int]) -> Step:
    """One decoded token: a row of bins of every head changes, then the picture is painted."""
    atlas = HeadAtlas()
    atlas.resize(*size)
    atlas.set_grid(n_layer, n_head)
    n_bins = n
    while n_bins > 64:
        n_bins = (n_bins + 1) // 2
    rng = np.random.default_rng(0)
    peaks = rng.integers(0, 256, (n_layer, n_head, n_bins, n_bins)).astype(np.uint8)
    peaks *= np.tri(n_bins, dtype=np.uint8)
    atlas.set_thumbnails(peaks, np.tri(n_bins, dtype=bool))
    atlas.set_selected(0, 0)
    paint = painted(atlas)
    visible = np.tri(n_bins, dtype=bool)

    def step() -> None:
        atlas.set_thumbnails(peaks, visible, (n_bins - 1, n_bins))
        paint()

    return step


def atlas_whole(n_layer: int, n_head: int, n_bins: int, size: tuple[int, int]) -> Step:
    """Another text: every pixel of every thumbnail changes."""
    atlas = HeadAtlas()
    atlas.resize(*size)
    atlas.set_grid(n_layer, n_head)
    peaks = np.random.default_rng(0).integers(0, 256, (n_layer, n_head, n_bins, n_bins))
    peaks = peaks.astype(np.uint8)
    visible = np.tri(n_bins, dtype=bool)
    atlas.set_thumbnails(peaks, visible)
    paint = painted(atlas)

    def step() -> None:
        atlas.set_thumbnails(peaks, visible)
        paint()

    return step


def plot_items(n_layer: int, n_head: int, n: int, size: tuple[int, int]) -> Step:
    """One pyqtgraph PlotItem with an ImageItem for every head."""
    grid = pg.GraphicsLayoutWidget()
    grid.resize(*size)
    square = weights(n)
    images = []
    for layer in range(n_layer):
        for head in range(n_head):
            plot = grid.addPlot(layer, head)
            images.append(pg.ImageItem(square, axisOrder="row-major", levels=(0, 1)))
            plot.addItem(images[-1])
    paint = painted(grid)

    def step() -> None:
        for image in images:
            image.setImage(square, autoLevels=False, levels=(0, 1))
        paint()

    return step


def matrix(n: int) -> tuple[Step, Step]:
    """Another head in the large heatmap, and the pointer moving over it."""
    view = MatrixView()
    view.resize(980, 980)
    view.set_theme(LIGHT)
    squares, visible = [weights(n), weights(n, 1)], np.tri(n, dtype=bool)
    labels = tuple(f"word{i % 97}" for i in range(n))
    view.set_matrix(squares[0], visible, labels, labels)
    view.set_cell(n - 1, 0)
    paint = painted(view)
    at = [0]

    def update() -> None:
        squares.reverse()
        view.set_matrix(squares[0], visible, labels, labels)
        paint()

    def hover() -> None:
        at[0] = (at[0] + 5) % n  # a few pixels
        point_at(view, view.cell_rect(at[0], at[0] // 2).center())
        paint()

    return update, hover


def matrix_growing(n: int) -> Step:
    """A token more, then a token less, in the large heatmap, as in stepping and going back."""
    view = MatrixView()
    view.resize(980, 980)
    view.set_theme(LIGHT)
    square, visible = weights(n), np.tri(n, dtype=bool)
    sizes = [(square[:each, :each], visible[:each, :each]) for each in (n, n - 1)]
    labels = tuple(f"word{i % 97}" for i in range(n))
    view.set_matrix(*sizes[0], labels, labels)
    view.set_cell(n - 2, 0)
    paint = painted(view)

    def step() -> None:
        sizes.reverse()
        shown = labels[: len(sizes[0][0])]
        view.set_matrix(*sizes[0], shown, shown)
        paint()

    return step


def matrix_by_pyqtgraph(n: int) -> tuple[Step, Step]:
    """The same with an ImageItem, a tick for every token, a TextItem and a crosshair."""
    plot = pg.PlotWidget()
    plot.resize(980, 980)
    squares = [weights(n), weights(n, 1)]
    square = squares[0]
    image = pg.ImageItem(square, axisOrder="row-major", levels=(0, 1))
    plot.addItem(image)
    plot.invertY(True)
    ticks = [(i + 0.5, f"word{i % 97}") for i in range(n)]
    for side in ("left", "bottom"):
        plot.getAxis(side).setTicks([ticks])
    text = pg.TextItem("0.1234", border="k", fill="w")
    plot.addItem(text)
    lines = [pg.InfiniteLine(angle=angle, pen="k") for angle in (0, 90)]
    for line in lines:
        plot.addItem(line)
    paint = painted(plot)
    at = [0]

    def update() -> None:
        squares.reverse()
        image.setImage(squares[0], autoLevels=False, levels=(0, 1))
        for side in ("left", "bottom"):
            plot.getAxis(side).setTicks([ticks])
        paint()

    view_box = plot.getPlotItem().vb

    def pointed(place: QPointF) -> None:  # as in pyqtgraph's example of a crosshair
        at_data = view_box.mapSceneToView(place)
        query, key = int(at_data.y()), int(at_data.x())
        text.setText(f"{square[query, key]} = weight of key {key} 'word' for query {query} 'word'")
        text.setPos(key, query)
        lines[0].setPos(query)
        lines[1].setPos(key)

    plot.scene().sigMouseMoved.connect(pointed)

    def hover() -> None:
        at[0] = (at[0] + 5) % n
        place = view_box.mapViewToScene(QPointF(at[0] // 2 + 0.5, at[0] + 0.5))
        point_at(plot.viewport(), place)
        paint()

    return update, hover


def interleaved(steps: dict[str, Step], in_a_row: int) -> dict[str, tuple[float, float]]:
    """The median milliseconds of each, taken in turns: of the thread, and on the clock.

    Each is done so often in its turn; what comes again and again in use, as moves of the
    pointer do, finds the processor's caches warm from the second time on.
    """
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in steps}
    for step in steps.values():
        step()
    for _ in range(ROUNDS):
        for name, step in steps.items():
            for _ in range(in_a_row):
                start = time.thread_time(), time.perf_counter()
                step()
                taken[name].append((time.thread_time() - start[0], time.perf_counter() - start[1]))
    return {
        name: (median(each[0] for each in times) * 1e3, median(each[1] for each in times) * 1e3)
        for name, times in taken.items()
    }


def report(title: str, steps: dict[str, Step], goal: str, in_a_row: int = 1) -> None:
    """Print the medians of each and how many times the last takes of the first."""
    times = interleaved(steps, in_a_row)
    print(f"\n{title}   (goal: {goal})")
    for name, (own, clock) in times.items():
        print(f"  {name:40} {own:8.2f} ms {own / FRAME:7.3f} frame   (clock {clock:.2f} ms)")
    first, *_, last = times.values()
    print(f"  ratio {last[0] / first[0]:42.1f} ×   (clock {last[1] / first[1]:.1f} ×)")
    while _SHOWN:
        _SHOWN.pop().close()


def main() -> None:
    """Print all tables, at one device pixel a point and then at two."""
    if "--here" not in sys.argv:
        for ratio in ("1", "2"):
            print(f"\n=== {ratio} device pixel(s) a point ===", flush=True)
            command = [sys.executable, "-m", "tests.benchmarks.bench_widgets", "--here"]
            subprocess.run(command, check=True, env={**os.environ, "QT_SCALE_FACTOR": ratio})  # noqa: S603
        return
    quick_start.begin()
    app = QApplication([])
    size, tall = (640, 640), (420, 640)
    report(
        "All heads, one step, 12 × 12 heads, 128 tokens",
        {
            "head atlas": atlas_step(12, 12, 128, size),
            "one PlotItem per head": plot_items(12, 12, 128, size),
        },
        "50 ×, 30 × at two pixels a point",
    )
    report(
        "All heads, one step, 30 × 9 heads",
        {
            "128 tokens": atlas_step(30, 9, 128, tall),
            "1,024 tokens": atlas_step(30, 9, 1024, tall),
        },
        "a quarter frame, half at two pixels a point; ratio at most 2",
    )
    report(
        "All heads, another text, every pixel",
        {
            "12 × 12 heads, 64 bins": atlas_whole(12, 12, 64, size),
            "30 × 9 heads, 64 bins": atlas_whole(30, 9, 64, tall),
        },
        "one frame",
    )
    report(
        "One head, another pattern, 512 tokens",
        {"matrix view": matrix(512)[0], "ImageItem and axis ticks": matrix_by_pyqtgraph(512)[0]},
        "4 ×",
    )
    report(
        "One head, pointer moves, 512 tokens",
        {
            "matrix view": matrix(512)[1],
            "moving a TextItem and a crosshair": matrix_by_pyqtgraph(512)[1],
        },
        "25 ×, a tenth of a frame",
        in_a_row=8,
    )
    report(
        "One head, one more token or one less",
        {"200 tokens": matrix_growing(200), "1,024 tokens": matrix_growing(1024)},
        "half a frame at 200",
    )
    app.closeAllWindows()


if __name__ == "__main__":
    main()
