"""The composition root: builds everything once, in the order that keeps the window alive.

First paint, then the engine's thread imports torch and opens the model, while the panels that
are seen are made; after the first answer the other panels, then pyqtgraph for the curves. Nothing
here runs at import, and what the first paint does without is imported where it is needed.
"""

import importlib
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Generator
from math import ceil
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from PySide6.QtCore import QSettings, QTimer
from PySide6.QtWidgets import QApplication

from gui import quick_start
from gui.collector import Collector
from gui.command_line import Options
from gui.main_window import MainWindow
from gui.messages import Messages
from gui.settings import Settings
from gui.theme import THEMES

if TYPE_CHECKING:
    from engine.cancelling import Cancelled
    from gui.controller import Controller
    from gui.export.exporting import Exporting
    from gui.library.doors import ModelDoors
    from gui.panels.base import Panel
    from gui.panels.table import PanelRow
    from gui.state import State, Store
    from gui.training.window import TrainingLab
    from gui.worker import EngineThread

# Asked for on Qt's command line: `setStyle` hands back the style, and to make its class for Python
# takes as long as the first paint.
STYLE = ("-style", "Fusion")
_SEEN_SECONDS = 1.0  # within which an answer is painted, if any came
_SNAPSHOT_PAUSE_MS = 500  # flashes are over, docks have their sizes, curves are drawn


class App:
    """Owns every long-lived object of the program and connects them."""

    def __init__(self, options: Options, settings: Settings) -> None:
        self._options = options
        self._settings = settings
        self.exit_status = 0
        self.messages = Messages()
        self.theme = THEMES[options.theme or settings.read("theme")]
        self.window = MainWindow(self.theme.scaled(settings.read("zoom")))
        self.window.painted.connect(lambda: QTimer.singleShot(0, self.furnish))
        self.window.closing.connect(self.close)
        self.store: Store
        self._engine: EngineThread | None = None
        self.controller: Controller | None = None
        self._steps_left = options.steps
        self._doors: ModelDoors | None = None
        self._lab: TrainingLab | None = None
        self._exporting: Exporting | None = None
        self._remembered = ""  # the path of the model that was remembered last
        self._bundled: Path | None = None  # what to open if the first model cannot be
        self._collector = Collector()
        self._is_furnished = False
        self._unmade: dict[str, PanelRow] = {}  # panels that nobody has seen yet
        self._furnishing = self._pieces()
        self._is_settled = False
        self._is_seen = threading.Event()  # the first answer, by whoever looks
        self._is_closed = False

    def show(self) -> None:
        """Put the window on screen; everything else follows from its first paint."""
        if self._options.snapshot is None:
            self.window.restore_layout(self._settings.read("geometry"), None)
        else:
            self.window.resize(*(ceil(side / self._options.scale) for side in self._options.size))
        self.window.show()

    def furnish(self) -> None:
        """Do what the first paint did not wait for, in pieces, so that the window stays alive."""
        for _piece in self._furnishing:
            QTimer.singleShot(0, self.furnish)
            return

    def _pieces(self) -> Generator[None, None, None]:
        """Start the engine first, make the panels that will be seen, connect everything."""
        from gui.worker import EngineThread, Job  # noqa: PLC0415

        self._engine = engine = EngineThread()
        engine.start()
        engine.submit(Job("preload", _preload))
        yield
        # All this after the first paint, and no import in one go that takes long.
        for module in ("numpy", "gui.wishes", "gui.state"):
            importlib.import_module(module)
            yield
        import resources  # noqa: PLC0415
        from gui.controller import Controller  # noqa: PLC0415
        from gui.state import Store  # noqa: PLC0415

        yield
        self.store = Store(self._first_state())
        self.controller = Controller(self.store, engine, self.messages)
        self.controller.settled.connect(self._on_settled)
        folders = resources.model_folders()
        self._open_model(self._first_model(folders))
        engine.submit(Job("complete", self._complete_torch))  # before all that is asked later
        yield
        from gui.panels.table import PANELS  # noqa: PLC0415

        for module in ("gui.view", "gui.panels.base"):
            importlib.import_module(module)
            yield
        panels = []
        for row in PANELS:
            if row.is_in_front:
                row.load()
                yield
                panels.append(row.make())
                panels[-1].setParent(self.window)  # goes with it, should it close before the end
                yield
            else:
                self._unmade[row.name] = row
        from gui.commands import COMMANDS  # noqa: PLC0415
        from gui.view import resolve  # noqa: PLC0415

        yield
        models = [(folder.name, folder) for folder in folders]
        self.window.panel_wanted.connect(self._make_panel)  # by the layout that is brought back
        self.window.furnish(PANELS, panels, COMMANDS, models)
        self.messages.listen(self.window.message_bar.show_message)
        yield
        self.window.share_room()
        self.window.restore_layout(None, self._settings.read("layout"))
        yield
        self.window.wished.connect(self.controller.fulfil)
        self.window.command_wanted.connect(self._do)
        self.window.export_wanted.connect(self._export)
        self.store.changed.connect(self._on_change)
        self.window.show_view(resolve(self.store.state))
        self._note_answer()
        self._is_furnished = True
        self._rest()

    def _complete_torch(self, void: "Cancelled") -> None:
        """On the engine's thread, import what the first model did without, once it is seen."""
        from engine.preload import complete  # noqa: PLC0415 - torch, on that thread only

        self._is_seen.wait(_SEEN_SECONDS)
        if not void():
            complete()

    def _make_panel(self, name: str) -> None:
        row = self._unmade.pop(name, None)
        if row is not None and not self._is_closed:
            self.window.add_panel(row.make())

    def _first_state(self) -> "State":
        import resources  # noqa: PLC0415
        from engine.formats import FormatChoice  # noqa: PLC0415
        from gui.state import Display, State  # noqa: PLC0415

        read = self._settings.read
        text = self._options.prompt
        if text is None:
            text = read("text") or resources.default_prompt()
        return State(
            text=text,
            formats=FormatChoice(read("number_format"), read("device")),
            display=Display(
                theme=self.theme,
                zoom=read("zoom"),
                scale=read("scale"),
                leave_first_out=read("leave_first_out"),
                drawing=read("drawing"),
                show_loss=read("show_loss"),
                show_pass=read("show_pass"),
                motion=read("motion"),
            ),
        )

    def _first_model(self, folders: list[Path]) -> Path:
        if self._options.model is not None:
            return self._options.model
        bundled = folders[0] if folders else Path("resources/models/shakespeare")
        last = self._settings.read("model")
        if last and os.path.exists(last):  # noqa: PTH110 - never raises
            self._bundled = bundled
            return Path(last)
        return bundled

    # Commands that only the application can do

    def _do(self, command: str) -> None:
        from gui.commands import PANEL_COMMAND  # noqa: PLC0415
        from gui.export import picture  # noqa: PLC0415

        actions: dict[str, Callable[[], object]] = {
            "library": self.doors.show_library,
            "download": self.doors.show_download,
            "open": self.doors.ask_for_folder,
            "open_file": self.doors.ask_for_file,
            "training_lab": self._show_lab,
            "save_picture": self._save_picture,
            "copy_picture": lambda: picture.copy(self.window),
            "export_panel": lambda: self._export(self.window.panel_in_use),
            "quit": self.window.close,
            "full_screen": self.window.toggle_full_screen,
            "head_alone": self.window.toggle_center_alone,
            "reset_layout": self.window.reset_layout,
            "shortcuts": self.window.show_shortcuts,
            "about": self.window.show_about,
        }
        name = command.removeprefix(PANEL_COMMAND)
        if name != command:
            self.window.go_to_panel(name)
        else:
            actions[command]()

    def _show_lab(self) -> None:
        from gui.training.window import make_lab  # noqa: PLC0415 - hardly any start needs it
        from gui.view import resolve  # noqa: PLC0415

        if self._lab is None:
            self._lab = make_lab(self._settings, self.messages, self.window)
            self._lab.open_wanted.connect(self._open_model)
            self._lab.kept.connect(self.doors.remember)
        self._lab.set_theme(resolve(self.store.state).theme)
        self._lab.show()
        self._lab.activateWindow()

    def _export(self, panel: "Panel | None") -> None:
        from gui.export.exporting import Exporting  # noqa: PLC0415

        if self._exporting is None:
            self._exporting = Exporting(self.window, self.messages)
        if panel is not None:
            self._exporting.ask(panel)

    @property
    def doors(self) -> "ModelDoors":
        """All ways to another model; made late, for nothing of it is needed for the first."""
        from gui.library.doors import ModelDoors  # noqa: PLC0415

        if self._doors is None:
            self._doors = ModelDoors(
                self.window, self._settings, self.messages, lambda: self.store.state.formats
            )
            self._doors.chosen.connect(self._open_model)
        return self._doors

    def _open_model(self, path: Path) -> None:
        from gui.wishes import OpenModel  # noqa: PLC0415

        if self.controller is not None:
            self.controller.fulfil(OpenModel(path))

    def _on_change(self, state: "State", names: frozenset[str]) -> None:
        from gui.view import resolve  # noqa: PLC0415

        view = resolve(state)
        self.window.show_view(view)
        self._note_answer()
        if self._lab is not None and "display" in names:
            self._lab.set_theme(view.theme)
        if self._is_settled and "reading" in names and state.phase == "ready":
            self._remember_model()
        elif "phase" in names and state.phase == "failed" and self._bundled is not None:
            # The last model is gone or damaged; the message about it stays.
            bundled, self._bundled = self._bundled, None
            QTimer.singleShot(0, lambda: self._open_model(bundled))

    def _note_answer(self) -> None:
        state = self.store.state
        is_answered = state.reading is not None or state.phase == "failed"
        if is_answered and not self._is_seen.is_set():
            QTimer.singleShot(0, self._note_seen)

    def _note_seen(self) -> None:
        if self.window.is_drawn:
            QTimer.singleShot(0, self._is_seen.set)  # painted by then
        else:
            QTimer.singleShot(0, self._note_seen)

    def _remember_model(self) -> None:
        reading = self.store.state.reading
        if reading is not None and reading.info.path != self._remembered:
            self._remembered = reading.info.path
            self.doors.remember(Path(reading.info.path))

    def _save_picture(self) -> None:
        from PySide6.QtWidgets import QFileDialog  # noqa: PLC0415

        name, _filter = QFileDialog.getSaveFileName(
            self.window, "Save the window as a picture", "attention-scope.png", "PNG (*.png)"
        )
        if name:
            self._save_to(Path(name))

    def _save_to(self, path: Path) -> None:
        from gui.export import picture  # noqa: PLC0415

        path = path if path.suffix.lower() == ".png" else path.with_name(f"{path.name}.png")
        try:
            picture.save_png(self.window, path)
        except OSError as error:
            self.messages.error(str(error))
        else:
            self.messages.info(f"The picture is in {path}.")

    # Start and end

    def _on_settled(self) -> None:
        from gui.wishes import Step  # noqa: PLC0415

        steps, self._steps_left = self._steps_left, 0
        if steps and self.store.state.phase == "ready" and self.controller is not None:
            for _ in range(steps):
                self.controller.fulfil(Step())
        else:
            self._is_settled = True
            self._rest()

    def _rest(self) -> None:
        """See to what waits until the first answer is shown."""
        from gui import graphs  # noqa: PLC0415

        if not (self._is_settled and self._is_furnished) or self._is_closed:
            return
        if self._unmade:
            self._make_panel(next(iter(self._unmade)))
            QTimer.singleShot(0, self._rest)
            return
        graphs.start_import()
        self._remember_model()
        self._collector.start()
        if self._options.snapshot is not None:
            if self.store.state.phase == "failed":
                sys.stderr.write(f"{self.store.state.notice}\n")
                self.exit_status = 1
            QTimer.singleShot(_SNAPSHOT_PAUSE_MS, self._take_snapshot)

    def _take_snapshot(self) -> None:
        from gui import graphs  # noqa: PLC0415

        if self._options.snapshot is None or self._is_closed:
            return
        if graphs.loader().module is None and not graphs.loader().failure:
            QTimer.singleShot(_SNAPSHOT_PAUSE_MS, self._take_snapshot)
        else:
            # The charts are built one after another as soon as they can be.
            QTimer.singleShot(_SNAPSHOT_PAUSE_MS, self._save_snapshot)

    def _save_snapshot(self) -> None:
        from gui.export import picture  # noqa: PLC0415

        if self._options.snapshot is None or self._is_closed:
            return
        try:
            self._check_fit()
            picture.save_png(self.window, self._options.snapshot, self._options.size)
        except OSError as error:
            sys.stderr.write(f"{error}\n")
            self.exit_status = 1
        self.window.close()

    def _check_fit(self) -> None:
        """See that the window did not need more room than the snapshot has."""
        scale, (width, height) = self._options.scale, self._options.size
        needed = self.window.width(), self.window.height()
        if needed != (ceil(width / scale), ceil(height / scale)):
            least = "x".join(str(ceil(side * scale)) for side in needed)
            raise OSError(
                f"The window does not fit into {width}x{height} pixels at scale {scale:g}; "
                f"use --size {least} or more."
            )

    def close(self) -> None:
        """Keep the settings, end the engine's thread."""
        self._is_closed = True
        self._is_seen.set()
        self._furnishing.close()
        self._collector.stop()
        if self.controller is None:
            if self._engine is not None:
                self._engine.close()
            return
        if self._lab is not None:
            self._lab.let_go()
        self.controller.close()
        state = self.store.state
        geometry, layout = self.window.save_layout()
        if self._is_furnished:
            self._settings.write("layout", layout)
        if state.reading is not None:
            self._settings.write("model", state.reading.info.path)
        for name, value in {
            "text": state.text,
            "number_format": state.formats.number_format,
            "device": state.formats.device,
            "theme": state.display.theme.name,
            "zoom": state.display.zoom,
            "scale": state.display.scale,
            "leave_first_out": state.display.leave_first_out,
            "drawing": state.display.drawing,
            "show_loss": state.display.show_loss,
            "show_pass": state.display.show_pass,
            "motion": state.display.motion,
            "geometry": geometry,
        }.items():
            self._settings.write(name, value)


def _preload(_void: "Cancelled") -> None:
    """Let the engine's thread import torch, which the first model waits for longest."""
    from engine.preload import preload  # noqa: PLC0415 - torch, on that thread only

    preload()


def catch_everything(messages: Messages) -> None:
    """Whatever nobody expected becomes a message with its traceback, in every thread."""

    def tell(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        details = "".join(traceback.format_exception(kind, error, trace))
        sys.stderr.write(details)
        messages.error(f"This is a bug: {kind.__name__}: {error}", details)

    def tell_of_thread(arguments: threading.ExceptHookArgs) -> None:
        error = arguments.exc_value or arguments.exc_type()
        tell(arguments.exc_type, error, arguments.exc_traceback)

    sys.excepthook = tell
    threading.excepthook = tell_of_thread


def run(options: Options) -> int:
    """Open the window, or take a snapshot of it; returns the exit status."""
    if options.snapshot is not None:
        os.environ["QT_QPA_PLATFORM"] = "offscreen"
        os.environ["QT_SCALE_FACTOR"] = str(options.scale)
    quick_start.forgo_features()
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Python's own handler waits while Qt does
    application = QApplication([sys.argv[0], *STYLE])
    application.setOrganizationName("Attention Scope")
    application.setApplicationName("Attention Scope")
    settings = Settings(None if options.snapshot is not None else QSettings())
    app = App(options, settings)
    catch_everything(app.messages)
    app.show()
    return application.exec() or app.exit_status
