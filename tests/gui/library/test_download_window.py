"""The window "Download a model", driven by keys and clicks over a server in this process."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import QApplication, QPushButton, QToolButton, QWidget
from pytestqt.qtbot import QtBot

from engine.hub import Client
from gui import style
from gui.library.download_window import DownloadWindow
from gui.library.pace import Pace, duration_text
from gui.messages import Message, Messages
from gui.theme import THEMES, Theme
from tests.engine.gguf_files import KINDS, write_llama
from tests.engine.hub_server import COMMIT, PIECE, HubServer, serving
from tests.gui.whole_window import WholeWindow, wait_until

ROOT = Path(__file__).parents[3]
NAME = "owner/toy-GGUF"
FILE = "toy-Q8_0.gguf"


@pytest.fixture(scope="module")
def gguf(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A GGUF file that can be opened."""
    path = tmp_path_factory.mktemp("gguf") / "toy.gguf"
    write_llama(path, KINDS.Q8_0)
    return path.read_bytes()


@pytest.fixture
def hub(gguf: bytes) -> Iterator[HubServer]:
    """A server with one repository of two models."""
    with serving() as server:
        server.put(NAME, {FILE: gguf, "toy-f16.gguf": gguf + bytes(2 * PIECE), "README.md": b"#"})
        yield server


@pytest.fixture
def told() -> list[Message]:
    """What the main window is told."""
    return []


@pytest.fixture
def window(
    qtbot: QtBot, hub: HubServer, tmp_path: Path, told: list[Message]
) -> Iterator[DownloadWindow]:
    """The window as it is shown first."""
    messages = Messages()
    messages.listen(told.append)
    window = DownloadWindow(messages, None, Client(hub.address), tmp_path / "hub")
    qtbot.addWidget(window)
    window.resize(900, 500)
    window.show()
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    yield window
    window.stop()
    window.close()


def press(qtbot: QtBot, button: QPushButton) -> None:
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)


def write(qtbot: QtBot, window: DownloadWindow, text: str = NAME) -> None:
    """Type a name where the caret is, and Enter; wait for the answer."""
    window.repository.clear()
    qtbot.keyClicks(window.repository, text)
    qtbot.keyClick(window.repository, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: not window._downloading.is_running)


def end(qtbot: QtBot, window: DownloadWindow) -> None:
    qtbot.waitUntil(lambda: not window._downloading.is_running, timeout=20_000)


def start_halfway(qtbot: QtBot, window: DownloadWindow, hub: HubServer, n_pieces: int = 5) -> None:
    """Begin a download that comes to a halt after a few pieces."""
    write(qtbot, window)
    hub.gate = threading.Semaphore(n_pieces)
    press(qtbot, window.download_button)
    qtbot.waitUntil(lambda: window._done == n_pieces * PIECE)


def rows(window: DownloadWindow) -> list[tuple[str, ...]]:
    table = window.files
    cells = [[table.item(row, column) for column in (0, 1)] for row in range(table.rowCount())]
    return [tuple(cell.text() if cell else "" for cell in row) for row in cells]


# From a name to a model


def test_a_name_and_three_times_enter_open_a_model(
    qtbot: QtBot, window: DownloadWindow, gguf: bytes, tmp_path: Path
) -> None:
    """Without the mouse: look up, download, open."""
    assert window.repository.hasFocus()
    write(qtbot, window)
    assert window.commit.text() == COMMIT
    assert rows(window) == [(FILE, f"{len(gguf) / 1024:.3g} KiB")]
    assert window.summary.text().startswith(f"1 file, {len(gguf) / 1024:.3g} KiB; they go to ")
    assert window.figures.text() == ""
    assert str(tmp_path / "hub") in window.summary.text()
    assert window.download_button.hasFocus()
    qtbot.keyClick(window.download_button, Qt.Key.Key_Return)
    end(qtbot, window)
    assert window.open_button.hasFocus()
    assert window.status.text() == f"{NAME} is here, and every byte was checked."
    assert window.progress.value() == window.progress.maximum()
    with qtbot.waitSignal(window.chosen) as chosen:
        qtbot.keyClick(window.open_button, Qt.Key.Key_Return)
    (path,) = chosen.args
    assert path.name == FILE
    assert path.read_bytes() == gguf
    assert not window.isVisible()


def test_nothing_is_asked_before_the_user_asks(window: DownloadWindow, hub: HubServer) -> None:
    """And the window says so."""
    assert window.status.text() == "Nothing goes to the network until you look a repository up."
    assert hub.requests == []
    assert not window.download_button.isEnabled()
    assert not window.stop_button.isEnabled()
    assert not window.open_button.isEnabled()


def test_another_model_of_the_repository_can_be_chosen(
    qtbot: QtBot, window: DownloadWindow, gguf: bytes
) -> None:
    """With its files and figures."""
    assert not window.model.isVisible()
    write(qtbot, window)
    assert [window.model.itemText(n).split(",")[0] for n in range(2)] == [FILE, "toy-f16.gguf"]
    qtbot.keyClick(window.model, Qt.Key.Key_Down)
    assert rows(window)[0][0] == "toy-f16.gguf"
    press(qtbot, window.download_button)
    end(qtbot, window)
    with qtbot.waitSignal(window.chosen) as chosen:
        press(qtbot, window.open_button)
    assert chosen.args[0].read_bytes() == gguf + bytes(2 * PIECE)


def test_a_revision_is_asked_for_and_its_commit_shown(
    qtbot: QtBot, window: DownloadWindow, hub: HubServer
) -> None:
    hub.repositories[NAME].commits = {"v1": "b" * 40}
    qtbot.keyClicks(window.revision, "v1")
    write(qtbot, window)
    assert window.commit.text() == "b" * 40


def test_writing_another_name_forgets_the_offer(qtbot: QtBot, window: DownloadWindow) -> None:
    """Nothing can be fetched that is not what is written."""
    write(qtbot, window)
    qtbot.keyClicks(window.repository, "x")
    assert window.commit.text() == ""
    assert rows(window) == []
    assert not window.download_button.isEnabled()


# What goes wrong


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "Write the name of a repository, such as owner/name."),
        ("no name", "'no name' is no name of a repository; write owner/name"),
        ("owner/nobody", "has no repository owner/nobody, or it is private"),
    ],
)
def test_what_cannot_be_had_is_one_sentence_and_another_try_is_free(
    qtbot: QtBot, window: DownloadWindow, told: list[Message], text: str, sentence: str
) -> None:
    write(qtbot, window, text)
    assert sentence in window.status.text()
    assert window.status.accessibleDescription() == window.status.text()
    assert window.repository.hasFocus()
    assert not told  # it stands where the user looks
    write(qtbot, window)
    assert window.download_button.isEnabled()


def test_text_of_the_user_is_shown_to_the_letter(qtbot: QtBot, window: DownloadWindow) -> None:
    write(qtbot, window, "<b>x</b>")
    assert "'<b>x</b>' is no name" in window.status.text()
    assert window.status.textFormat() == Qt.TextFormat.PlainText


def test_a_server_that_stops_answering_is_one_sentence_and_download_goes_on(
    qtbot: QtBot, window: DownloadWindow, hub: HubServer
) -> None:
    write(qtbot, window)
    hub.refusal = (503, "")
    press(qtbot, window.download_button)
    end(qtbot, window)
    assert "could not answer (503); try again later" in window.status.text()
    assert window.download_button.hasFocus()
    hub.refusal = None
    qtbot.keyClick(window.download_button, Qt.Key.Key_Return)
    end(qtbot, window)
    assert window.open_button.isEnabled()


# While it comes


def test_progress_is_shown_in_bytes_with_pace_and_time_left(
    qtbot: QtBot, window: DownloadWindow, hub: HubServer, gguf: bytes
) -> None:
    start_halfway(qtbot, window, hub)
    assert hub.gate is not None
    share = window.progress.maximum() * 5 * PIECE // len(gguf)
    assert window.progress.value() == share
    qtbot.waitUntil(lambda: "B/s" in window.figures.text())
    hub.gate.release()  # one piece more, so that there is a pace
    total = f"{len(gguf) / 1024:.3g} KiB"
    done = f"{6 * PIECE / 1024:.3g} KiB"
    qtbot.waitUntil(lambda: window.figures.text().startswith(f"{done} of {total} · "))
    assert window.figures.text().endswith(" left")
    assert FILE in window.status.text()
    hub.gate.release(1000)
    end(qtbot, window)


def test_the_window_lives_while_bytes_come_and_while_none_do(
    qtbot: QtBot, window: DownloadWindow, hub: HubServer
) -> None:
    start_halfway(qtbot, window, hub)
    ticks: list[float] = []
    timer = QTimer(interval=5)
    timer.timeout.connect(lambda: ticks.append(time.perf_counter()))
    timer.start()
    qtbot.waitUntil(lambda: len(ticks) > 40)
    assert max(b - a for a, b in pairwise(ticks)) < 0.5
    timer.stop()


def test_stop_answers_at_once_and_download_goes_on_from_there(
    qtbot: QtBot, window: DownloadWindow, hub: HubServer, gguf: bytes
) -> None:
    """Although the server says nothing; and what came is not asked for again."""
    start_halfway(qtbot, window, hub)
    began = time.perf_counter()
    press(qtbot, window.stop_button)
    assert time.perf_counter() - began < 1
    assert window.status.text().startswith("Stopped. What came is kept;")
    assert window.download_button.hasFocus()
    assert hub.gate is not None
    hub.gate.release(1000)
    qtbot.keyClick(window.download_button, Qt.Key.Key_Return)
    end(qtbot, window)
    assert window.open_button.isEnabled()
    starts = hub.transfers(FILE)
    assert starts[0] is None
    assert starts[1] is not None
    assert starts[1] >= 4 * PIECE  # what had been written when it was stopped
    assert window._path is not None
    assert window._path.read_bytes() == gguf


def test_a_new_window_goes_on_where_an_old_one_was_stopped(
    qtbot: QtBot, window: DownloadWindow, hub: HubServer, tmp_path: Path
) -> None:
    """As at another start; the figures say how much is here."""
    start_halfway(qtbot, window, hub)
    press(qtbot, window.stop_button)
    assert hub.gate is not None
    hub.gate.release(1000)
    thread = window._downloading._thread
    assert thread is not None
    thread.join(10)
    n_kept = next((tmp_path / "hub").rglob("*.incomplete")).stat().st_size
    again = DownloadWindow(Messages(), None, Client(hub.address), tmp_path / "hub")
    qtbot.addWidget(again)
    again.show()
    again.activateWindow()
    qtbot.waitUntil(again.isActiveWindow)
    write(qtbot, again)
    assert again.figures.text().startswith(f"{n_kept / 1024:.3g} KiB of ")
    press(qtbot, again.download_button)
    end(qtbot, again)
    assert hub.transfers(FILE)[-1] == n_kept
    again.close()


def test_closing_the_window_lets_the_download_go_on(
    qtbot: QtBot, window: DownloadWindow, hub: HubServer, told: list[Message]
) -> None:
    """Its end is told in the main window, and it can be opened when the window is back."""
    start_halfway(qtbot, window, hub)
    qtbot.keyClick(window, Qt.Key.Key_Escape)
    assert not window.isVisible()
    assert hub.gate is not None
    hub.gate.release(1000)
    end(qtbot, window)
    (message,) = told
    assert message.level == "info"
    assert message.sentence == f"{NAME} is downloaded; “Download a model…” opens it."
    window.show()
    with qtbot.waitSignal(window.chosen):
        press(qtbot, window.open_button)


def test_a_failure_behind_a_closed_window_is_told(
    qtbot: QtBot, window: DownloadWindow, hub: HubServer, told: list[Message]
) -> None:
    write(qtbot, window)
    hub.gate = threading.Semaphore(0)
    press(qtbot, window.download_button)
    window.close()
    hub.is_damaged = True
    hub.gate.release(1000)
    end(qtbot, window)
    (message,) = told
    assert message.level == "warning"
    assert f"{FILE} did not come as" in message.sentence


def test_a_bug_is_told_and_leaves_the_window_usable(
    qtbot: QtBot, window: DownloadWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a bug, by the hook for threads."""
    bugs: list[threading.ExceptHookArgs] = []
    monkeypatch.setattr(threading, "excepthook", bugs.append)
    with monkeypatch.context() as patch:
        patch.setattr("engine.hub.client.choose", lambda *_: 1 / 0)
        write(qtbot, window)
    assert "this is a bug" in window.status.text()
    assert [bug.exc_type for bug in bugs] == [ZeroDivisionError]
    write(qtbot, window)
    assert window.download_button.isEnabled()


# Reaching everything


def test_tab_reaches_everything_and_each_stop_has_a_name(
    qtbot: QtBot, window: DownloadWindow
) -> None:
    write(qtbot, window)
    stops: list[QWidget] = []
    while QApplication.focusWidget() not in stops:
        stop = QApplication.focusWidget()
        assert stop is not None
        stops.append(stop)
        qtbot.keyClick(stop, Qt.Key.Key_Tab)
    wanted = {window.repository, window.revision, window.look_up_button, window.model}
    wanted |= {window.commit, window.files, window.download_button, window.close_button}
    assert set(stops) >= wanted
    for stop in stops:
        label = stop.accessibleName() or (stop.text() if isinstance(stop, QPushButton) else "")
        assert label, stop


@pytest.mark.parametrize("theme", list(THEMES.values()), ids=list(THEMES))
def test_texts_have_room_in_every_theme(qtbot: QtBot, window: DownloadWindow, theme: Theme) -> None:
    """Also at twice the size."""
    application = QApplication.instance()
    assert isinstance(application, QApplication)
    before = application.font(), application.palette(), application.styleSheet()
    try:
        for zoom in (1.0, 2.0):
            style.apply_theme(application, theme.scaled(zoom))
            write(qtbot, window)
            for button in window.findChildren(QPushButton):
                assert button.width() >= button.sizeHint().width()
            for label in (window.summary, window.status):
                assert label.height() >= label.heightForWidth(label.width())
    finally:
        application.setFont(before[0])
        application.setPalette(before[1])
        application.setStyleSheet(before[2])


# In the program


@pytest.fixture
def whole(
    qtbot: QtBot,
    hub: HubServer,
    small_model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[WholeWindow]:
    """The program, whose server and cache are the tests' own."""
    assert qtbot
    monkeypatch.setattr(Client, "endpoint", hub.address)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    whole = WholeWindow(model=small_model, prompt="abc").start()
    yield whole
    whole.close()


def test_the_command_downloads_a_model_that_the_program_opens(
    qtbot: QtBot, whole: WholeWindow
) -> None:
    """From the key to the pictures of its heads."""
    whole.press("Ctrl+Shift+D")
    window = whole.child(DownloadWindow)
    wait_until(window.isActiveWindow)
    write(qtbot, window)
    press(qtbot, window.download_button)
    wait_until(window.open_button.isEnabled, "the model")
    press(qtbot, window.open_button)
    wait_until(lambda: whole.reading.info.name == "toy-Q8_0", "the model to be open")
    assert Path(whole.reading.info.path).parent.name == COMMIT


def test_the_list_of_models_leads_to_the_download(qtbot: QtBot, whole: WholeWindow) -> None:
    from gui.library.window import LibraryWindow  # noqa: PLC0415 - as the program does

    whole.action("library").trigger()
    library = whole.child(LibraryWindow)
    press(qtbot, library.download_button)
    assert not library.isVisible()
    assert whole.child(DownloadWindow).isVisible()


def test_the_button_of_the_model_offers_the_download(whole: WholeWindow) -> None:
    (button,) = (b for b in whole.window.findChildren(QToolButton) if b.accessibleName() == "Model")
    menu = button.menu()
    assert menu is not None
    assert whole.action("download") in menu.actions()


def test_the_program_ends_in_the_middle_of_a_download(hub: HubServer, tmp_path: Path) -> None:
    """A process of its own: soon, with status 0, without a word, and what came is kept."""
    hub.gate = threading.Semaphore(5)
    code = (
        "import sys\n"
        "from PySide6.QtCore import QTimer\n"
        "from PySide6.QtWidgets import QApplication\n"
        "from gui.library.download_window import DownloadWindow\n"
        "from gui.messages import Messages\n"
        "app = QApplication([])\n"
        "window = DownloadWindow(Messages())\n"
        "window.show()\n"
        f"window.repository.setText({NAME!r})\n"
        "window.look_up_button.click()\n"
        "def go():\n"
        "    if window.download_button.isEnabled(): window.download_button.click()\n"
        f"    if window._done >= {5 * PIECE}: app.quit()\n"
        "timer = QTimer(interval=10)\n"
        "timer.timeout.connect(go)\n"
        "timer.start()\n"
        "sys.exit(app.exec())\n"
    )
    told = {
        "HF_ENDPOINT": hub.address,
        "HF_HUB_CACHE": str(tmp_path / "hub"),
        "QT_QPA_PLATFORM": "offscreen",
        "HF_HUB_DOWNLOAD_TIMEOUT": "60",  # its server will not answer in time
    }
    done = subprocess.run(  # noqa: S603 - our own interpreter and code
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, **told},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == 0
    lines = [line for line in done.stderr.splitlines() if "propagateSizeHints" not in line]
    assert not lines
    (partial,) = (tmp_path / "hub").rglob("*.incomplete")
    assert partial.exists()


# Figures


def test_a_pace_is_that_of_the_last_seconds() -> None:
    """1,000 bytes a second for a minute, then 100."""
    pace = Pace()
    for second in range(60):
        pace.note(second, 1000 * second)
    assert pace.per_second == pytest.approx(1000)
    for second in range(60, 80):
        pace.note(second, 59_000 + 100 * (second - 59))
    assert pace.per_second == pytest.approx(100)
    assert pace.seconds_left(5000) == pytest.approx(50)


def test_no_pace_is_claimed_before_there_is_one() -> None:
    """Nor a time, where nothing comes."""
    pace = Pace()
    assert pace.per_second is None
    pace.note(0.0, 10)
    pace.note(0.1, 20)
    assert pace.per_second is None
    assert pace.seconds_left(10) is None
    pace.note(2.0, 20)
    pace.note(9.0, 20)
    assert pace.per_second == 0
    assert pace.seconds_left(10) is None


def test_what_is_fetched_anew_begins_a_new_pace() -> None:
    pace = Pace()
    pace.note(0, 5000)
    pace.note(1, 0)
    pace.note(2, 300)
    assert pace.per_second == pytest.approx(300)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.2, "1 s"),
        (59.4, "59 s"),
        (61, "1 min"),
        (3590, "1 h 0 min"),
        (4830, "1 h 20 min"),
        (4e5, "111 h"),
    ],
)
def test_times_are_as_exact_as_they_can_be(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text
