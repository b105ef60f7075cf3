"""The way out of the program for what a panel shows: asks where to, and writes it there."""

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QFileDialog, QWidget

from engine.whole_file import write_whole
from gui.export import numbers, panel_picture
from gui.export.numbers import Table
from gui.export.stamp import Stamp, stamp_of
from gui.messages import Messages
from gui.panels.base import Panel
from gui.theme import Theme

_PICTURES: dict[str, tuple[str, Callable[[QWidget, Stamp, Theme], bytes]]] = {
    ".png": ("Picture, PNG", panel_picture.to_png),
    ".svg": ("Drawing, SVG", panel_picture.to_svg),
    ".pdf": ("Page, PDF", panel_picture.to_pdf),
}
_NUMBERS: dict[str, tuple[str, Callable[[numbers.Facts, tuple[Table, ...]], bytes]]] = {
    ".csv": ("Numbers, CSV", numbers.to_csv),
    ".npz": ("Numbers for numpy, NPZ", numbers.to_npz),
}
_LONG = 500_000  # values from which on writing takes so long that it is done beside the window


@dataclass(frozen=True)
class _Job:
    """What to write, and where."""

    path: Path
    make: Callable[[], bytes]
    what: str

    def run(self) -> str:
        """Write it, or leave what was there as it was; returns what went wrong."""
        try:
            write_whole(self.path, self.make())
        except OSError as error:
            why = error.strerror or error
            return f"{self.path} cannot be written ({why}); choose another folder or name."
        return ""


class Exporting(QObject):
    """Owns the dialog and what is being written; tells the user how it went."""

    _done = Signal(object, str)  # _Job, what went wrong

    def __init__(self, window: QWidget, messages: Messages) -> None:
        super().__init__(window)
        self._window, self._messages = window, messages
        self._done.connect(self._tell)

    def ask(self, panel: Panel) -> None:
        """Ask for a file and write into it what the panel shows."""
        view = panel.drawn
        reading = None if view is None else panel.reading_of(view)
        if view is None or reading is None:
            self._messages.warning(f"{panel.title} shows nothing yet that could be exported.")
            return
        stamp = stamp_of(reading, panel.title)
        stamp = replace(stamp, facts={**stamp.facts, **panel.more_facts(view)})
        tables = panel.numbers(view) if reading.n_tokens or not panel.is_of_text else ()
        kinds = {suffix: title for suffix, (title, _make) in _PICTURES.items()}
        if tables:
            kinds |= {suffix: title for suffix, (title, _make) in _NUMBERS.items()}
        filters = {f"{title} (*{suffix})": suffix for suffix, title in kinds.items()}
        name, chosen = QFileDialog.getSaveFileName(
            self._window,
            f"Export {panel.title}",
            f"{_plain_name(f'{reading.info.name} {panel.title}')}.png",
            ";;".join(filters),
        )
        if name:
            path = self._settled(Path(name), filters.get(chosen, ".png"), tuple(kinds), panel)
            if path is not None:
                self._write(path, panel, stamp, tables, view.theme)

    def _settled(
        self, path: Path, wanted: str, kinds: tuple[str, ...], panel: Panel
    ) -> Path | None:
        """The file to write, with the ending that was chosen if it had none."""
        if not path.suffix:
            path = path.with_name(f"{path.name}{wanted}")
            if path.exists():  # nobody has been asked whether to replace that
                self._messages.error(f"{path} exists; choose it in the list to replace it.")
                return None
        suffix = path.suffix.lower()
        if suffix not in kinds:
            known = f"{', '.join(kinds[:-1])} or {kinds[-1]}"
            self._messages.error(f"{panel.title} cannot be written as {suffix}; use {known}.")
            return None
        return path

    def _write(
        self, path: Path, panel: Panel, stamp: Stamp, tables: tuple[Table, ...], theme: Theme
    ) -> None:
        suffix = path.suffix.lower()
        if suffix in _PICTURES:
            draw = _PICTURES[suffix][1]
            job = _Job(path, lambda: draw(panel, stamp, theme), f"The picture of {panel.title}")
        else:
            note = _NUMBERS[suffix][1]
            job = _Job(path, lambda: note(stamp.facts, tables), f"The numbers of {panel.title}")
            if sum(table.size for table in tables) > _LONG:
                self._messages.info(f"{job.what} are being written.")
                threading.Thread(target=lambda: self._done.emit(job, job.run())).start()
                return
        self._tell(job, job.run())

    def _tell(self, job: _Job, failure: str) -> None:
        if failure:
            self._messages.error(failure)
        else:
            verb = "is" if job.path.suffix.lower() in _PICTURES else "are"
            self._messages.info(f"{job.what} {verb} in {job.path}.")


def _plain_name(text: str) -> str:
    """Letters, digits and hyphens: a file's name on any system."""
    return re.sub(r"[^\w.]+", "-", text).strip("-.").lower() or "panel"
