"""The window as a whole: looks, panels, layout, any text, and its end at any moment."""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QMimeData, QPointF, Qt
from PySide6.QtGui import QColor, QImage
from PySide6.QtGui import Qt as QtOfGui
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractSlider,
    QApplication,
    QComboBox,
    QDockWidget,
    QLabel,
    QLineEdit,
    QSplitter,
    QToolButton,
    QWidget,
)
from pytestqt.qtbot import QtBot

import engine.loading
from engine.errors import CancelledError
from gui.panels.base import Panel
from gui.panels.table import PANELS
from gui.theme import THEMES
from gui.view import View, resolve
from gui.widgets.matrix_view import MatrixView
from gui.widgets.token_strip import TokenStrip
from gui.wishes import (
    EditText,
    OpenModel,
    Play,
    SelectPosition,
    SetDisplay,
    SetMask,
    SetSpeed,
    Step,
    StepBack,
)
from tests.gui.picture_facts import drag, is_all_painted, point_at
from tests.gui.whole_window import WholeWindow, wait_until

TEXT = "To be, or not to be"
FAMILY = "👩\u200d👩\u200d👧\u200d👦"
HOSTILE = {
    "empty": "",
    "one space": " ",
    "newlines": "\n\n\n",
    "lone surrogate": "\ud800x\udfff",
    "NUL": "a\0b",
    "joined emoji": f"{FAMILY} ok",
    "combining": "\u0301\u0301e\u0301",
    "right to left": "שלום \u202eעולם",
    "markup": "<b>x</b>&amp;<img src='x'><script>",
    "controls": "\r\n\t\x07\x1b[31m\u2028\ufeff",
}


@pytest.fixture(scope="module")
def opened(qapp: QApplication, small_model: Path) -> Iterator[WholeWindow]:  # noqa: ARG001
    """One window for the tests that leave it open."""
    whole = WholeWindow(model=small_model, prompt=TEXT).start()
    whole.visit_all_panels()
    yield whole
    whole.close()


@pytest.fixture
def whole(opened: WholeWindow) -> WholeWindow:
    """The window with its usual text and look."""
    opened.wish(EditText(TEXT), SetMask({"mask": "causal"}))
    opened.wish(SetDisplay({"theme": THEMES["light"], "zoom": 1.0}))
    opened.window.message_bar.hide()
    opened.activate()
    return opened


@pytest.fixture
def open_window(qapp: QApplication) -> Iterator[Callable[..., WholeWindow]]:  # noqa: ARG001
    """Opens windows as `WholeWindow` does, and sees that they are closed."""
    windows: list[WholeWindow] = []

    def make(*settings: Path, **options: Any) -> WholeWindow:
        windows.append(WholeWindow(*settings, **options))
        return windows[-1]

    yield make
    for window in windows:
        window.close()


def share(image: QImage, colour: str) -> float:
    """How much of a picture has exactly this colour."""
    wanted = QColor(colour).rgb()
    small = image.scaled(160, 90, Qt.AspectRatioMode.IgnoreAspectRatio)
    pixels = [small.pixel(x, y) for x in range(160) for y in range(90)]
    return sum(pixel == wanted for pixel in pixels) / len(pixels)


# Looks


def test_a_theme_reaches_every_surface(whole: WholeWindow) -> None:
    """The dark one leaves nothing light, and the light one comes back."""
    for name, other in (("dark", "light"), ("light", "dark")):
        whole.wish(SetDisplay({"theme": THEMES[name]}))
        image = whole.window.grab().toImage()
        theme = THEMES[name]
        mine = share(image, theme.surface) + share(image, theme.background)
        theirs = share(image, THEMES[other].surface) + share(image, THEMES[other].background)
        assert mine > 0.3
        assert theirs < 0.01


def test_the_projector_is_large_enough_for_the_back_of_a_room(whole: WholeWindow) -> None:
    """At 720 lines: a 45th of the height for what is read, and every panel stays in the window."""
    whole.wish(SetDisplay({"theme": THEMES["projector"]}))
    assert whole.window.fontInfo().pixelSize() * 45 >= 720
    assert (whole.window.width(), whole.window.height()) == (1280, 720)
    for panel in whole.window.findChildren(Panel):
        if panel.is_seen:
            corner = panel.mapTo(whole.window, panel.rect().bottomRight())
            assert whole.window.rect().contains(corner)


def test_zoom_makes_every_letter_larger(whole: WholeWindow) -> None:
    """Text that is drawn and text of ordinary widgets."""
    before = {
        label: label.fontInfo().pixelSize()
        for panel in whole.window.findChildren(Panel)
        for label in panel.findChildren(QLabel)
        if panel.is_seen
    }
    editor = whole.editor.fontInfo().pixelSize()
    whole.wish(SetDisplay({"zoom": 1.5}))
    assert whole.editor.fontInfo().pixelSize() >= 1.4 * editor
    shown = [label for label in before if label.isVisible() and label.text()]
    assert shown
    for label in shown:
        assert label.fontInfo().pixelSize() >= 1.3 * before[label], label.text()


# Panels


def test_every_panel_of_the_table_is_on_the_window(whole: WholeWindow) -> None:
    """Each can be brought to the front."""
    panels = whole.window.findChildren(Panel)
    assert {panel.name for panel in panels} == {row.name for row in PANELS}
    for panel in panels:
        whole.window.go_to_panel(panel.name)
        QApplication.processEvents()
        assert panel.is_seen
        assert panel.width() > 50
        assert panel.height() > 20


def test_every_panel_has_a_name_and_a_sentence_for_a_screen_reader(whole: WholeWindow) -> None:
    """No two share the name."""
    panels = whole.window.findChildren(Panel)
    assert len({panel.accessibleName() for panel in panels}) == len(panels)
    for panel in panels:
        assert panel.accessibleName() == panel.title
        assert panel.accessibleDescription()
        assert panel.help.endswith(".")


def test_whatever_takes_the_keyboard_has_a_name(whole: WholeWindow) -> None:
    """By its own text, or by an accessible name."""
    nameless = [
        widget
        for kind in (QAbstractButton, QAbstractSlider, QComboBox, QLineEdit)
        for widget in whole.window.findChildren(kind)
        if widget.isVisible()
        and widget.focusPolicy() & Qt.FocusPolicy.TabFocus
        and not (widget.accessibleName() or getattr(widget, "text", str)())
    ]
    assert nameless == []


def test_every_label_is_plain_text(whole: WholeWindow) -> None:
    """Qt guesses markup where it is not told that there is none."""
    rich = [
        label
        for label in whole.window.findChildren(QLabel)
        if label.textFormat() != Qt.TextFormat.PlainText
    ]
    assert rich == []


def test_the_model_is_chosen_from_those_that_come_with_the_program(whole: WholeWindow) -> None:
    """The button names the open one."""
    (button,) = [
        each
        for each in whole.window.findChildren(QToolButton)
        if each.accessibleName().startswith("Model")
    ]
    assert button.text() == "Model: small"
    assert button.menu() is not None


# Any text


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_any_text_is_shown_in_every_panel(whole: WholeWindow, text: str) -> None:
    """Exactly in the editor, plainly everywhere else, and one can go on from it."""
    whole.wish(EditText(text))
    assert whole.editor.text() == text
    assert whole.reading.document.text == text
    for panel in whole.window.findChildren(Panel):
        whole.window.go_to_panel(panel.name)
        QApplication.processEvents()
        assert not panel.grab().isNull()
    for widget in whole.window.findChildren(QWidget):
        tip = widget.toolTip()
        assert "<script" not in tip or not QtOfGui.mightBeRichText(tip)
    if text:
        whole.wish(Step())
        assert whole.editor.text().startswith(text)
        assert whole.editor.text() == whole.state.text
    test_every_label_is_plain_text(whole)


def test_a_megabyte_can_be_pasted(whole: WholeWindow) -> None:
    """All of it is in the editor; the model sees its end, and the status says so."""
    text = "To be, or not to be, that is the question.\n" * 24_000
    whole.wish(EditText(""))
    data = QMimeData()
    data.setText(text)
    whole.editor.insertFromMimeData(data)
    whole.idle()
    assert len(text) > 1_000_000
    assert whole.editor.text() == text
    reading = whole.reading
    assert (reading.document.text, reading.n_tokens) == (text, 64)
    assert reading.n_fallen == len(text) - 64
    whole.type("x")
    whole.idle()
    assert whole.editor.text() == whole.reading.document.text == f"{text}x"
    whole.wish(EditText(TEXT))
    assert whole.editor.text() == TEXT


def test_a_failure_is_told_above_the_panels(whole: WholeWindow, tmp_path: Path) -> None:
    """As plain text; information goes with the next answer, an error stays."""
    bar = whole.window.message_bar
    whole.wish(OpenModel(tmp_path / "<b>none</b>"))
    assert bar.isVisible()
    assert bar.sentence.startswith(f"{tmp_path}/<b>none</b> does not exist")
    whole.wish(EditText("a"))
    assert bar.isVisible()
    whole.wish(EditText("a" * 64), Step())
    assert bar.sentence.startswith("The context is full")
    whole.wish(EditText("abc"))
    assert bar.isHidden()


# Layout


def test_a_layout_can_be_put_back(whole: WholeWindow) -> None:
    """Panels that were hidden or moved are where they were at first."""
    window = whole.window
    docks = {dock.objectName(): dock for dock in window.findChildren(QDockWidget)}
    first = {name: window.dockWidgetArea(dock) for name, dock in docks.items()}
    docks["dock_heads"].hide()
    window.addDockWidget(Qt.DockWidgetArea.BottomDockWidgetArea, docks["dock_mask"])
    whole.action("reset_layout").trigger()
    assert {name: window.dockWidgetArea(dock) for name, dock in docks.items()} == first
    assert all(dock.isVisible() for dock in docks.values())


def test_everything_comes_back_at_the_next_start(
    open_window: Callable[..., WholeWindow], tmp_path: Path, small_model: Path
) -> None:
    """Prompt, model, theme, zoom, choices of the picture, panels and size."""
    settings = tmp_path / "scope.ini"
    first = open_window(settings, model=small_model, prompt=TEXT).start()
    first.wish(
        EditText("abc, abc <b>"),
        SetDisplay({"theme": THEMES["dark"], "zoom": 1.1, "scale": "log", "drawing": "arcs"}),
        SetDisplay({"leave_first_out": True, "show_loss": True, "motion": False}),
        SetDisplay({"show_pass": True}),
    )
    first.window.findChild(QDockWidget, "dock_heads").hide()
    first.window.resize(first.window.width(), 640)
    wait_until(lambda: first.window.height() == 640)
    first.close()

    second = open_window(settings).start()
    assert second.editor.text() == "abc, abc <b>"
    assert second.reading.document.text == "abc, abc <b>"
    assert second.reading.info.path == str(small_model)
    display = second.state.display
    assert (display.theme.name, display.zoom, display.scale) == ("dark", 1.1, "log")
    assert (display.drawing, display.leave_first_out) == ("arcs", True)
    assert (display.show_loss, display.show_pass, display.motion) == (True, True, False)
    assert second.window.findChild(QDockWidget, "dock_heads").isHidden()
    assert not second.window.findChild(QDockWidget, "dock_time").isHidden()
    assert second.window.height() == 640
    second.close()


def test_the_command_line_is_stronger_than_what_was_kept(
    open_window: Callable[..., WholeWindow], tmp_path: Path, small_model: Path
) -> None:
    """And settings that make no sense do no harm."""
    settings = tmp_path / "scope.ini"
    settings.write_text(
        "[General]\ntheme=pink\nzoom=many\ntext=old\nmodel=/nowhere\ngeometry=x\nlayout=y\n",
        encoding="utf-8",
    )
    whole = open_window(settings, model=small_model, prompt="new", theme="projector").start()
    assert whole.editor.text() == "new"
    assert whole.state.display.theme.name == "projector"
    assert whole.state.display.zoom == 1.0
    whole.close()


# The end


@pytest.mark.parametrize("moment", ["before", "after"])
def test_closing_around_the_first_paint_starts_nothing(
    qtbot: QtBot,
    open_window: Callable[..., WholeWindow],
    tmp_path: Path,
    small_model: Path,
    moment: str,
) -> None:
    """No engine, and no settings are overwritten."""
    settings = tmp_path / "scope.ini"
    whole = open_window(settings, model=small_model)
    if moment == "after":
        with qtbot.waitSignal(whole.window.painted):
            pass
    whole.window.close()
    for _ in range(5):
        QApplication.processEvents()
    assert whole.app.controller is None
    whole.close()
    assert not settings.exists()


def test_closing_while_the_model_is_loaded_waits_and_keeps_the_settings(
    open_window: Callable[..., WholeWindow],
    tmp_path: Path,
    small_model: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The model and layout that were kept before are still there."""
    settings = tmp_path / "scope.ini"
    settings.write_text(f"[General]\nmodel={small_model}\nlayout=kept\n", encoding="utf-8")
    begun, go = threading.Event(), threading.Event()
    load = engine.loading.load

    def slow_load(path: Path, *more: Any, **how: Any) -> Any:
        begun.set()
        assert go.wait(60)
        return load(path, *more, **how)

    monkeypatch.setattr(engine.loading, "load", slow_load)
    whole = open_window(settings, prompt="<typed>")
    wait_until(begun.is_set)
    threading.Timer(0.05, go.set).start()
    whole.window.close()
    assert whole.app.controller is not None
    assert whole.app.controller._engine.isFinished()
    whole.close()
    kept = settings.read_text(encoding="utf-8")
    assert str(small_model) in kept
    assert "text=<typed>" in kept


def test_closing_while_playing_waits_for_the_pass(
    open_window: Callable[..., WholeWindow], small_model: Path
) -> None:
    """Nothing is left running."""
    whole = open_window(model=small_model, prompt=TEXT).start()
    assert whole.app.controller is not None
    whole.app.controller.fulfil(SetSpeed(1000.0))
    whole.app.controller.fulfil(Play("play"))
    wait_until(lambda: len(whole.state.text) > len(TEXT))
    assert whole.state.playing
    whole.window.close()
    assert whole.app.controller._engine.isFinished()
    whole.close()


def test_ctrl_q_quits(open_window: Callable[..., WholeWindow], small_model: Path) -> None:
    """From where one writes."""
    whole = open_window(model=small_model, prompt=TEXT).start()
    whole.editor.setFocus()
    whole.press("Ctrl+Q")
    wait_until(whole.window.isHidden)
    whole.close()


def test_the_strip_shows_whole_rows_and_the_editor_keeps_two_lines(whole: WholeWindow) -> None:
    """At 720 lines two rows of tokens, until the user moves the border between the two."""
    editor, strip = whole.editor, whole.child(TokenStrip)
    whole.window.resize(1280, 720)
    whole.window.reset_layout()
    QApplication.processEvents()
    assert whole.window.height() == 720
    assert strip.height_of(2) <= strip.height() < strip.height_of(3)
    assert editor.height() >= editor.height_of(2)
    splitter = strip.parentWidget()
    assert isinstance(splitter, QSplitter)
    handle = splitter.handle(1)
    drag(handle, QPointF(5, 2), QPointF(5, -13))
    moved = editor.height()
    assert moved < editor.height_of(2)
    whole.window.resize(1280, 760)
    QApplication.processEvents()
    whole.window.resize(1280, 720)
    QApplication.processEvents()
    assert abs(editor.height() - moved) <= 2


def test_esc_stops_opening_and_the_model_that_is_open_stays(
    whole: WholeWindow, small_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until then the status says how far it has come; what is open goes on being used."""
    before = whole.reading.info

    def endless_load(_path: Path, _choice: Any, cancelled: Any, told: Any, **_how: Any) -> Any:
        while not cancelled():
            told(0.4321)
            time.sleep(0.01)
        raise CancelledError("no longer wanted")

    monkeypatch.setattr(engine.loading, "load", endless_load)
    assert whole.app.controller is not None
    whole.app.controller.fulfil(OpenModel(small_model))
    wait_until(lambda: "43%" in whole.state.notice)
    assert whole.state.phase == "loading"
    whole.press("Esc")
    wait_until(lambda: whole.state.phase == "ready")
    assert whole.reading.info is before
    assert whole.state.notice == ""
    (message,) = whole.window.message_bar.findChildren(QLabel)
    assert message.text().endswith("Opening the model was stopped.")
    whole.wish(EditText(f"{TEXT}!"))
    assert whole.reading.document.text == f"{TEXT}!"


def test_what_is_painted_again_at_a_step_is_all_that_looks_different(whole: WholeWindow) -> None:
    """After each of these nothing on the window is left of what it showed before."""
    window = whole.window
    for name in ("head", "heads", "next_token"):
        window.go_to_panel(name)
    heatmap = whole.panel("head").findChild(MatrixView)
    assert isinstance(heatmap, MatrixView)
    heatmap.setFocus()  # a caret would blink
    whole.wish(SetDisplay({"motion": False}))
    for wish in (
        Step(),
        Step(),
        StepBack(),
        EditText(f"{TEXT}, that"),
        Step(),
        SelectPosition(2, 1),
        SetDisplay({"show_loss": True}),
        Step(),
        SetDisplay({"show_loss": False, "sort": "induction"}),
        Step(),
        SetDisplay({"sort": None}),
    ):
        whole.wish(wish)
        assert is_all_painted(window), wish
    for query in (3, 5):
        point_at(heatmap, heatmap.cell_rect(query, 1).center())
        assert is_all_painted(window), query
    whole.wish(Step())
    assert is_all_painted(window)
    point_at(heatmap, QPointF(-9, -9))
    whole.wish(SetDisplay({"motion": True}))


def test_another_reading_is_drawn_in_turns_and_none_of_them_is_left_out(whole: WholeWindow) -> None:
    """The text first; what waits when the next one comes is drawn before what was drawn last."""
    window, older = whole.window, resolve(whole.state)
    whole.wish(Step())
    newer = resolve(whole.state)
    assert newer.reading is not older.reading
    seen = {panel.name: panel for panel in window.findChildren(Panel) if panel.is_seen}

    def drawn(view: View) -> set[str]:
        return {name for name, panel in seen.items() if panel.drawn is view}

    window.show_view(older)
    assert drawn(older) == {"prompt"}
    assert not window.is_drawn
    window.show_view(newer)
    assert {"head", "heads"} <= drawn(newer)
    assert "prompt" not in drawn(newer)
    wait_until(lambda: window.is_drawn)
    assert drawn(newer) == set(seen)


def test_what_is_no_other_reading_is_drawn_at_once(whole: WholeWindow) -> None:
    seen = [panel for panel in whole.window.findChildren(Panel) if panel.is_seen]
    view = resolve(replace(whole.state, pointed=(1, 0)))
    whole.window.show_view(view)
    assert all(panel.drawn is view for panel in seen)
    assert whole.window.is_drawn
