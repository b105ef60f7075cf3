"""The window "On this computer", driven by keys and clicks over files that the tests make."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QEvent, QItemSelectionModel, QPoint, QSettings, Qt, QTimer
from PySide6.QtGui import QColor, QImage
from PySide6.QtWidgets import QApplication, QFileDialog, QPushButton, QWidget
from pytestqt.qtbot import QtBot

import engine.library.searching
from engine.formats import FLOAT32, FormatChoice
from engine.library import Place, added_place
from gui import style
from gui.library.table import COLUMNS
from gui.library.window import LibraryWindow, usual_places
from gui.settings import Settings
from gui.theme import THEMES, Theme
from tests.engine.gguf_files import LLAMA, write_llama

N_WEIGHTS = sum(
    # Embedding, output norm, and in each of 2 layers: norms, q, k, v, output, and the MLP.
    (263 * 32, 32, 2 * (32 + 32 + 32 * 32 + 2 * 16 * 32 + 32 * 32 + 3 * 64 * 32))
)
PLENTY = 10**12
Open = Callable[..., LibraryWindow]


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """Three that open and one that does not."""
    folder = tmp_path / "models"
    folder.mkdir()
    for name in ("alpha", "beta", "gamma"):
        write_llama(folder / f"{name}.gguf")
    write_llama(folder / "aaa-experts.gguf", metadata={**LLAMA, "llama.expert_count": 8})
    return folder


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """As a start of the program finds them."""
    return Settings(QSettings(str(tmp_path / "scope.ini"), QSettings.Format.IniFormat))


@pytest.fixture
def show(qtbot: QtBot, models: Path, settings: Settings) -> Iterator[Open]:
    """`show()` is the window over the models, once it has looked at everything."""
    windows: list[LibraryWindow] = []

    def make(
        places: Sequence[Place] | None = None,
        available: int | None = PLENTY,
        choice: FormatChoice = FLOAT32,
        *,
        wait: bool = True,
    ) -> LibraryWindow:
        wanted = (Place("Store", models),) if places is None else tuple(places)
        window = LibraryWindow(settings, None, lambda: wanted, lambda: available, lambda: choice)
        windows.append(window)
        qtbot.addWidget(window)
        window.resize(1280, 720)
        window.show()
        if wait:
            finish(qtbot, window)
        return window

    yield make
    for window in windows:
        window.close()


def finish(qtbot: QtBot, window: LibraryWindow) -> None:
    """Wait until everything has been looked at."""
    qtbot.waitUntil(lambda: not window._search.is_running)


def cells(window: LibraryWindow, column: str = "Name") -> list[str]:
    """What a column shows, from top to bottom."""
    number = [each.title for each in COLUMNS].index(column)
    shown = window.table.model()
    return [shown.index(row, number).data() for row in range(shown.rowCount())]


def row_of(window: LibraryWindow, name: str) -> int:
    return cells(window).index(name)


def click_row(qtbot: QtBot, window: LibraryWindow, name: str, *, twice: bool = False) -> None:
    table = window.table
    place = table.visualRect(table.model().index(row_of(window, name), 0)).center()
    qtbot.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=place)
    if twice:
        qtbot.mouseDClick(table.viewport(), Qt.MouseButton.LeftButton, pos=place)


def press(qtbot: QtBot, button: QPushButton) -> None:
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)


# What is listed


def test_each_model_is_a_row_of_facts(show: Open, models: Path) -> None:
    """Those that open first; sizes by arithmetic on the file that was written."""
    window = show(available=3 * 2**30)
    assert cells(window) == ["alpha", "beta", "gamma", "aaa-experts"]
    assert cells(window, "Architecture") == ["llama"] * 4
    assert cells(window, "Layers × heads") == ["2 × 4"] * 4
    n_bytes = (models / "alpha.gguf").stat().st_size
    assert cells(window, "On disk")[0] == f"{n_bytes / 1024:.3g} KiB"
    assert cells(window, "Where") == ["Store"] * 4
    needed = f"{4 * N_WEIGHTS / 1024:.3g} KiB"
    assert cells(window, "Fits in memory?")[0] == f"✓ fits: {needed} of 3 GiB"
    assert window.status.text() == "4 models, 3 can be opened."


def test_what_cannot_be_opened_is_dimmed_and_says_why(
    qtbot: QtBot, show: Open, models: Path
) -> None:
    """In its row, at length below it, and to those who listen."""
    window = show()
    reason = "aaa-experts is a mixture of 8 experts; "
    assert cells(window, "Fits in memory?")[3].startswith(f"— {reason}")
    click_row(qtbot, window, "aaa-experts")
    assert window.path.text() == str(models / "aaa-experts.gguf")
    assert f"It cannot be opened. {reason}" in window.details.text()
    assert window.details.accessibleDescription() == window.details.text()
    assert not window.open_button.isEnabled()
    index = window.table.currentIndex()
    spoken = index.data(Qt.ItemDataRole.AccessibleTextRole)
    assert spoken == "Name: aaa-experts (cannot be opened)"
    colours = [
        window.table.model().index(row, 0).data(Qt.ItemDataRole.ForegroundRole) for row in (0, 3)
    ]
    assert colours[0] is None
    assert colours[1].color() == QApplication.palette().placeholderText().color()


def test_what_does_not_fit_says_so_with_the_figures(qtbot: QtBot, show: Open) -> None:
    """And can be opened all the same, by a button that says what that is."""
    window = show(available=1000)
    click_row(qtbot, window, "beta")
    assert cells(window, "Fits in memory?")[1].startswith("✗ too large: ")
    assert f"its {N_WEIGHTS:,} weights take" in window.details.text()
    assert "only 1,000 B of memory are free" in window.details.text()
    assert window.open_button.text() == "Open anyway"
    assert window.open_button.isEnabled()


@pytest.mark.parametrize(("chosen", "n_bytes"), [("float32", 4), ("bfloat16", 2), ("int8", 1)])
def test_memory_is_counted_in_the_format_that_is_chosen(
    show: Open, chosen: Any, n_bytes: int
) -> None:
    """Just enough of it fits; a byte less does not."""
    needed = n_bytes * N_WEIGHTS
    window = show(available=needed, choice=FormatChoice(chosen))
    text = f"{needed / 1024:.3g} KiB"
    assert cells(window, "Fits in memory?")[0] == f"✓ fits: {text} of {text}"
    assert f"its {N_WEIGHTS:,} weights take {text} as {chosen}" in window.details.text()
    tight = show(available=needed - 1, choice=FormatChoice(chosen))
    assert cells(tight, "Fits in memory?")[0].startswith("✗ too large")


def test_the_format_that_suits_is_the_most_exact_that_fits(show: Open) -> None:
    """As opening decides; only what fits in none is too large."""
    for available, width, name in (
        (4 * N_WEIGHTS, 4, "float32"),
        (4 * N_WEIGHTS - 1, 2, "float16"),
        (2 * N_WEIGHTS - 1, 1, "int8"),
        (N_WEIGHTS - 1, 1, "int8"),
    ):
        window = show(available=available, choice=FormatChoice("automatic"))
        text, verdict = f"{width * N_WEIGHTS / 1024:.3g} KiB", cells(window, "Fits in memory?")[0]
        said = text if name == "float32" else f"{text} as {name}"
        fits = available >= width * N_WEIGHTS
        assert verdict.startswith(f"{'✓ fits' if fits else '✗ too large'}: {said} of ")
        assert f"weights take {text} as {name}" in window.details.text()
        assert "would fit" not in window.details.text()


def test_what_would_fit_in_a_smaller_format_says_in_which(show: Open) -> None:
    """The most exact one; nothing where none is small enough."""
    half, eighth = 2 * N_WEIGHTS, N_WEIGHTS
    sizes = {half: f"as float16, in {half / 1024:.3g} KiB", eighth: "as int8, in "}
    for available, said in sizes.items():
        text = show(available=available).details.text()
        assert f"It would fit {said}" in text
    assert "would fit" not in show(available=eighth - 1).details.text()
    assert "would fit" not in show(available=10, choice=FormatChoice("int8")).details.text()


def test_of_another_devices_memory_nothing_is_claimed(show: Open) -> None:
    """What the processor has free says nothing about it."""
    window = show(available=PLENTY, choice=FormatChoice("float16", "cuda"))
    assert cells(window, "Fits in memory?")[0].startswith("? needs: ")


def test_where_memory_is_not_known_nothing_is_claimed(show: Open) -> None:
    window = show(available=None)
    assert cells(window, "Fits in memory?")[0].startswith("? needs: ")
    assert "how much memory is free is not known" in window.details.text()


def test_a_column_sorts_by_what_it_means(qtbot: QtBot, show: Open, models: Path) -> None:
    """Not by its letters: 9 KiB is less than 10."""
    sizes = {"nine.gguf": 9 * 1024, "ten.gguf": 10 * 1024, "tiny.gguf": 100}
    for name, size in sizes.items():
        (models / name).write_bytes(bytes(size))
    window = show()
    header = window.table.horizontalHeader()
    place = QPoint(header.sectionViewportPosition(3) + 10, header.height() // 2)
    qtbot.mouseClick(header.viewport(), Qt.MouseButton.LeftButton, pos=place)
    on_disk = cells(window)
    if on_disk[0] != "tiny":  # the first click may sort downwards
        qtbot.mouseClick(header.viewport(), Qt.MouseButton.LeftButton, pos=place)
        on_disk = cells(window)
    assert on_disk[:3] == ["tiny", "nine", "ten"]


def test_names_from_a_disk_are_shown_to_the_letter_on_one_line(show: Open, models: Path) -> None:
    """Neither markup nor what turns a line round or breaks it."""
    for name in ("<b>bold</b>", "two\nlines", "turned\u202egpj", "lone\udce9"):
        write_llama(models / f"{name.replace('/', '∕')}.gguf")
    names = cells(show())
    assert {"<b>bold<∕b>", "two�lines", "turned�gpj", "lone�"} <= set(names)


def test_nothing_found_says_what_to_do(show: Open, tmp_path: Path) -> None:
    window = show([Place("Store", tmp_path / "nobody")])
    assert window.status.text().startswith("No models were found; open a file")
    assert not window.open_button.isEnabled()


# Filter and keys


def test_typing_filters_and_enter_opens(qtbot: QtBot, show: Open, models: Path) -> None:
    """Without the mouse, from the moment in which the window stands there."""
    window = show()
    assert window.filter.hasFocus()
    qtbot.keyClicks(window.filter, "STORE bet")
    assert cells(window) == ["beta"]
    with qtbot.waitSignal(window.chosen) as told:
        qtbot.keyClick(window.filter, Qt.Key.Key_Return)
    assert told.args == [models / "beta.gguf"]
    assert not window.isVisible()


def test_the_arrow_keys_lead_from_the_filter_through_the_rows(
    qtbot: QtBot, show: Open, models: Path
) -> None:
    window = show()
    qtbot.keyClick(window.filter, Qt.Key.Key_Down)
    assert window.table.hasFocus()
    qtbot.keyClick(window.table, Qt.Key.Key_Down)
    qtbot.keyClick(window.table, Qt.Key.Key_Down)
    assert window.path.text() == str(models / "gamma.gguf")
    chosen: list[Path] = []
    window.chosen.connect(chosen.append)
    qtbot.keyClick(window.table, Qt.Key.Key_Return)
    assert chosen == [models / "gamma.gguf"]  # once


def test_enter_on_what_cannot_be_opened_does_nothing(qtbot: QtBot, show: Open) -> None:
    window = show()
    qtbot.keyClicks(window.filter, "experts")
    with qtbot.assertNotEmitted(window.chosen):
        qtbot.keyClick(window.filter, Qt.Key.Key_Return)
        click_row(qtbot, window, "aaa-experts", twice=True)
    assert window.isVisible()


def test_tab_reaches_everything_and_escape_closes(qtbot: QtBot, show: Open) -> None:
    """Each stop has a name or a text to be read out."""
    window = show()
    stops: list[QWidget] = []
    while QApplication.focusWidget() not in stops:
        stop = QApplication.focusWidget()
        assert stop is not None
        stops.append(stop)
        qtbot.keyClick(stop, Qt.Key.Key_Tab)
    wanted = [window.filter, window.only_readable, window.table, window.path, window.open_button]
    wanted += [window.file_button, window.folder_button, window.add_button, window.again_button]
    assert set(stops) >= {*wanted, window.close_button}
    for stop in stops:
        text = stop.text() if hasattr(stop, "text") else ""
        assert stop.accessibleName() or text
    qtbot.keyClick(window.table, Qt.Key.Key_Escape)
    assert not window.isVisible()


def test_only_what_can_be_opened_hides_the_rest(qtbot: QtBot, show: Open) -> None:
    window = show()
    qtbot.mouseClick(window.only_readable, Qt.MouseButton.LeftButton, pos=QPoint(8, 8))
    assert cells(window) == ["alpha", "beta", "gamma"]
    qtbot.mouseClick(window.only_readable, Qt.MouseButton.LeftButton, pos=QPoint(8, 8))
    assert len(cells(window)) == 4


def test_a_double_click_opens(qtbot: QtBot, show: Open, models: Path) -> None:
    window = show()
    with qtbot.waitSignal(window.chosen) as told:
        click_row(qtbot, window, "gamma", twice=True)
    assert told.args == [models / "gamma.gguf"]


def test_a_file_or_a_folder_that_is_not_listed_can_be_opened(
    qtbot: QtBot, show: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the system's own dialogs, which may be left without an answer."""
    window = show()
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: ("", ""))
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: "")
    with qtbot.assertNotEmitted(window.chosen):
        press(qtbot, window.file_button)
        press(qtbot, window.folder_button)
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: ("/m/x.gguf", ""))
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: "/m/x")
    with qtbot.waitSignal(window.chosen) as told:
        press(qtbot, window.file_button)
    assert told.args == [Path("/m/x.gguf")]
    window.show()
    with qtbot.waitSignal(window.chosen) as told:
        press(qtbot, window.folder_button)
    assert told.args == [Path("/m/x")]


# Added folders


def test_an_added_folder_is_looked_into_now_and_at_the_next_start(
    qtbot: QtBot, show: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until it is removed."""
    more = tmp_path / "more"
    more.mkdir()
    write_llama(more / "delta.gguf")
    window = show()
    assert not window.remove_button.isEnabled()
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: str(more))
    for _ in range(2):  # the second time changes nothing
        press(qtbot, window.add_button)
        finish(qtbot, window)
    assert cells(window) == ["alpha", "beta", "delta", "gamma", "aaa-experts"]
    assert cells(window, "Where")[2] == str(more)
    window.close()
    again = show()
    assert "delta" in cells(again)
    (action,) = again.remove_button.menu().actions()
    assert action.text() == str(more)
    action.trigger()
    finish(qtbot, again)
    assert "delta" not in cells(again)
    assert again.folders == ()
    assert not again.remove_button.isEnabled()


def test_an_added_folder_that_is_gone_is_said_and_can_be_removed(
    qtbot: QtBot, show: Open, settings: Settings, tmp_path: Path
) -> None:
    gone = str(tmp_path / "gone & lost")
    settings.write("library_folders", (gone,))
    window = show()
    assert f"The folder {gone} cannot be looked into" in window.status.text()
    (action,) = window.remove_button.menu().actions()
    assert action.text() == gone.replace("&", "&&")  # not taken for a key
    action.trigger()
    finish(qtbot, window)
    assert "cannot be looked into" not in window.status.text()


def test_looking_again_finds_what_is_new_and_keeps_the_selection(
    qtbot: QtBot, show: Open, models: Path
) -> None:
    window = show()
    click_row(qtbot, window, "beta")
    write_llama(models / "aardvark.gguf")
    press(qtbot, window.again_button)
    finish(qtbot, window)
    assert cells(window)[0] == "aardvark"
    assert window.path.text() == str(models / "beta.gguf")


# While it looks


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Semaphore]:
    """Lets the search describe one model for each `release`."""
    gate = threading.Semaphore(0)
    describe = engine.library.searching.describe_gguf

    def wait(*arguments: Any) -> Any:
        gate.acquire(timeout=20)
        return describe(*arguments)

    monkeypatch.setattr(engine.library.searching, "describe_gguf", wait)
    yield gate
    gate.release(1000)


def test_the_list_fills_while_the_search_goes_on(
    qtbot: QtBot, show: Open, gate: threading.Semaphore
) -> None:
    """And what is there can be chosen already."""
    window = show(wait=False)
    assert window.status.text() == "Looking for models …"
    assert window.progress.isVisible()
    gate.release(2)
    qtbot.waitUntil(lambda: len(cells(window)) == 2)
    assert window.status.text() == "Looking in Store … 2 models so far."
    qtbot.keyClicks(window.filter, "alpha")
    assert window.open_button.isEnabled()
    gate.release(10)
    finish(qtbot, window)
    assert not window.progress.isVisible()
    assert len(cells(window)) == 1
    assert window.status.text() == "4 models, 3 can be opened."


def test_the_window_lives_while_the_disk_does_not_answer(
    qtbot: QtBot, show: Open, gate: threading.Semaphore
) -> None:
    """A timer of the window's thread goes on, and closing waits for nobody for long."""
    window = show(wait=False)
    ticks: list[float] = []
    timer = QTimer(interval=5)
    timer.timeout.connect(lambda: ticks.append(time.perf_counter()))
    timer.start()
    qtbot.waitUntil(lambda: len(ticks) > 40)
    assert max(b - a for a, b in pairwise(ticks)) < 0.5
    began = time.perf_counter()
    window.close()
    assert time.perf_counter() - began < 5
    gate.release(10)
    timer.stop()


def test_closing_gives_the_search_up(qtbot: QtBot, show: Open, gate: threading.Semaphore) -> None:
    """No thread goes on for nobody."""
    window = show(wait=False)
    gate.release(1)
    qtbot.waitUntil(lambda: len(cells(window)) == 1)
    thread = window._search._thread
    assert thread is not None
    gate.release(1)
    window.close()
    thread.join(10)
    assert not thread.is_alive()
    assert not window._search.is_running


def test_a_new_search_hears_nothing_of_the_old_one(
    qtbot: QtBot, show: Open, gate: threading.Semaphore
) -> None:
    """Each model stands there once."""
    window = show(wait=False)
    gate.release(2)
    qtbot.waitUntil(lambda: len(cells(window)) == 2)
    gate.release(1)
    press(qtbot, window.again_button)
    gate.release(10)
    finish(qtbot, window)
    assert sorted(cells(window)) == ["aaa-experts", "alpha", "beta", "gamma"]


def test_a_bug_in_the_search_is_told_and_leaves_the_window_usable(
    qtbot: QtBot, show: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a bug, by the hook for threads; and the list does not pass for whole."""
    bugs: list[threading.ExceptHookArgs] = []
    monkeypatch.setattr(threading, "excepthook", bugs.append)
    describe = engine.library.searching.describe_gguf

    def break_off(path: Path, label: Path) -> Any:
        if label.name == "gamma":
            raise ZeroDivisionError
        return describe(path, label)

    monkeypatch.setattr(engine.library.searching, "describe_gguf", break_off)
    window = show()
    assert cells(window) == ["alpha", "beta", "aaa-experts"]
    assert "The search broke off" in window.status.text()
    assert [bug.exc_type for bug in bugs] == [ZeroDivisionError]
    press(qtbot, window.open_button)
    assert not window.isVisible()


# Looks


@pytest.mark.parametrize("theme", THEMES.values(), ids=lambda theme: theme.name)
@pytest.mark.parametrize("zoom", [1.0, 1.5])
def test_it_fits_and_follows_the_theme(
    qtbot: QtBot, qapp: QApplication, show: Open, theme: Theme, zoom: float
) -> None:
    """At 1280 × 720: every button whole, the ground and a dimmed row in the theme's colours."""
    window = show()
    style.apply_theme(qapp, theme.scaled(zoom))
    qtbot.waitUntil(lambda: window.font().pixelSize() == round(theme.font_body * zoom))
    QApplication.sendPostedEvents(None, QEvent.Type.LayoutRequest)
    assert window.size().toTuple() == (1280, 720)
    for button in window.findChildren(QPushButton):
        assert button.width() >= button.sizeHint().width()
        assert window.rect().contains(button.geometry())
    window.table.selectionModel().setCurrentIndex(
        window.table.model().index(0, 0), QItemSelectionModel.SelectionFlag.Clear
    )
    row = window.table.visualRect(window.table.model().index(3, 0))
    assert row.height() > window.fontMetrics().height()
    picture: QImage = window.table.viewport().grab(row).toImage()
    colours = {
        picture.pixelColor(x, y).name().upper()
        for x in range(picture.width())
        for y in range(picture.height())
    }
    assert QColor(theme.text_dim).name().upper() in colours
    assert QColor(theme.text).name().upper() not in colours
    assert colours & {theme.surface, theme.raised}


def test_the_usual_places_are_the_bundled_models_and_the_stores() -> None:
    titles = [place.title for place in usual_places()]
    assert titles[0] == "Bundled"
    assert {"Hugging Face cache", "Ollama", "LM Studio", "llama.cpp"} <= set(titles)
    assert added_place(Path("/x")).is_added
