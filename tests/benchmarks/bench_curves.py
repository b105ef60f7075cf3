"""Times a curve's update against pyqtgraph's own plot: `python tests/benchmarks/bench_curves.py`.

Variants are interleaved in one run; medians are reported, and the ratio of the shortest times,
which a busy neighbour disturbs least. Exits with 1 if the chart is not at least four times as
quick at 10,000 points.
"""

import os
import statistics
import sys
import time
from collections.abc import Callable

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import numpy as np
import pyqtgraph
from PySide6.QtWidgets import QApplication, QWidget

from engine.reading import PassStats
from gui.theme import LIGHT
from gui.widgets.axis_ticks import linear_ticks
from gui.widgets.curves import Axis, CurveChart, Points, Series
from gui.words.cache_figures import PassColumns

WIDTH, HEIGHT, ROUNDS, GOAL = 600, 220, 40, 4.0
FRAME_MS = 1000 / 60

Maker = Callable[[int], tuple[QWidget, Callable[[Points], None]]]


def milliseconds(action: Callable[[], None]) -> float:
    """How long one call takes."""
    start = time.perf_counter()
    action()
    return 1000 * (time.perf_counter() - start)


def points(n_points: int, seed: int) -> Points:
    """A noisy curve between 0 and 1."""
    noise = np.random.default_rng(seed).normal(0, 0.02, n_points)
    return np.arange(float(n_points)), np.clip(np.linspace(0.9, 0.2, n_points) + noise, 0, 1)


def make_chart(n_points: int) -> tuple[QWidget, Callable[[Points], None]]:
    """The program's chart, and what gives it new points."""
    chart = CurveChart(("loss in nats", "nats"), "step", (Series("train", "text", "line"),))
    x_axis = Axis(0, n_points, tuple(linear_ticks(0, n_points, 4)))
    y_axis = Axis(0, 1, tuple(linear_ticks(0, 1, 4)))
    chart.set_theme(LIGHT)

    def update(new: Points) -> None:
        chart.show_points([new], x_axis, y_axis, "a curve")

    return chart, update


def make_plot_widget(n_points: int) -> tuple[QWidget, Callable[[Points], None]]:
    """A PlotWidget of pyqtgraph as it comes."""
    plot = pyqtgraph.PlotWidget()
    curve = plot.plot(*points(n_points, 0))

    def update(new: Points) -> None:
        curve.setData(*new)

    return plot, update


MAKERS = {"chart": make_chart, "PlotWidget": make_plot_widget}


def settle(application: QApplication) -> None:
    """Leave nothing over for the next one's time."""
    for _ in range(4):
        application.processEvents()


def bench_update(application: QApplication, n_points: int) -> float:
    """New data → painted, the chart against the PlotWidget; returns how many times quicker."""
    times: dict[str, list[float]] = {name: [] for name in MAKERS}
    made = {name: make(n_points) for name, make in MAKERS.items()}
    for widget, update in made.values():
        widget.resize(WIDTH, HEIGHT)
        widget.show()
        update(points(n_points, 0))
        settle(application)
    for seed in range(1, ROUNDS):
        new = points(n_points, seed)
        for name, (_widget, update) in made.items():

            def act(update: Callable[[Points], None] = update, new: Points = new) -> None:
                update(new)
                application.processEvents()

            times[name].append(milliseconds(act))
            settle(application)
    for widget, _update in made.values():
        widget.close()
    chart, plot = (statistics.median(times[name]) for name in MAKERS)
    ratio = min(times["PlotWidget"]) / min(times["chart"])
    print(
        f"{n_points:>6} points: chart {chart:6.2f} ms ({chart / FRAME_MS:.2f} frame), "
        f"PlotWidget {plot:6.2f} ms, {ratio:4.1f} x"
    )
    return ratio


def bench_building(application: QApplication) -> None:
    """From nothing to the first paint."""
    times: dict[str, list[float]] = {name: [] for name in MAKERS}
    for seed in range(8):
        for name, make in MAKERS.items():

            def act(make: Maker = make, seed: int = seed) -> None:
                widget, update = make(100)
                widget.resize(WIDTH, HEIGHT)
                widget.show()
                update(points(100, seed))
                settle(application)
                widget.close()

            times[name].append(milliseconds(act))
    chart, plot = (statistics.median(times[name]) for name in MAKERS)
    print(f"build and first paint: chart {chart:.0f} ms, PlotWidget {plot:.0f} ms")


def bench_columns() -> None:
    """One more pass in a list of 10,000, against making the columns anew."""
    stats = tuple(PassStats(n, 1, n - 1, 0.004, n, True, "grown") for n in range(10_000))
    columns = PassColumns()
    columns.update(stats[:-1])
    grown = milliseconds(lambda: columns.update(stats))
    anew = milliseconds(lambda: PassColumns().update(stats))
    print(f"10,000 passes: one more {grown:.3f} ms, all anew {anew:.1f} ms")


def main() -> int:
    """Run all; 1 if the goal is missed."""
    application = QApplication([])
    bench_building(application)
    ratios = {n_points: bench_update(application, n_points) for n_points in (100, 1_000, 10_000)}
    bench_columns()
    if ratios[10_000] < GOAL:
        print(f"10,000 points: the goal is {GOAL:g} x")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
