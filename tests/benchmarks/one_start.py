"""One start of the program, for `bench_startup`, which counts from the moment it asked for it.

Apart, so that nothing but the program itself is imported before its first paint.
"""

import json
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gui.app import App

BEAT_MS = 5
WORK_MS = 6000
PROMPT = "To be, or not to be, that is the question: " * 12


def start(asked: float, model: str, until: str) -> None:
    """Run the program in this process as `main.py` does, and print what was seen.

    `until` is "heatmap", or "end" to see how it fares when it works.
    """
    from gui import quick_start  # noqa: PLC0415
    from gui.command_line import parse  # noqa: PLC0415

    options = parse(["--model", model, "--prompt", PROMPT])
    quick_start.begin()
    from PySide6.QtWidgets import QApplication  # noqa: PLC0415

    from gui.app import STYLE, App  # noqa: PLC0415
    from gui.settings import Settings  # noqa: PLC0415

    quick_start.forgo_features()
    application = QApplication([sys.argv[0], *STYLE])
    app = App(options, Settings(None))
    watch = Watch(app, asked, until)
    app.show()
    application.exec()
    print(json.dumps(watch.seen))


class Watch:
    """An eye on one start, and on how late a timer comes."""

    def __init__(self, app: "App", asked: float, until: str) -> None:
        self._app, self._asked, self._until = app, asked, until
        self.seen: dict[str, float] = {}
        self._late: list[float] = []
        self._due = 0.0
        app.window.painted.connect(self._begin)

    def _begin(self) -> None:
        self._note("paint")
        # After it, because naming `Qt` takes half as long as a bare window's first paint.
        from PySide6.QtCore import Qt, QTimer  # noqa: PLC0415

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
        elif self._is_answered and self._app.window.is_drawn:
            self._app.window.repaint()
            self._note("heatmap")
            self.seen["stall to heatmap"] = max(self._late)
            if self._until == "heatmap":
                self._close()

    @property
    def _is_answered(self) -> bool:
        return self._app._is_furnished and self._app.store.state.reading is not None

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
            ordered = sorted(self._late)
            self.seen["p99"], self.seen["worst"] = ordered[int(0.99 * len(ordered))], ordered[-1]
            self._close()

    def _close(self) -> None:
        self._timer.stop()
        self._app.window.close()
