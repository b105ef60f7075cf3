"""The table of commands, and each of its keys pressed in the real window."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QAction, QGuiApplication, QKeySequence
from PySide6.QtWidgets import (
    QApplication,
    QDockWidget,
    QFileDialog,
    QMenu,
    QMessageBox,
    QTableWidget,
    QWidget,
)

import resources
from engine.answers.ablation_pass import EffectSweep
from engine.sampling import Sampling
from gui.commands import COMMANDS, PANEL_COMMAND, ZOOM_STEPS, Command
from gui.controller import Controller
from gui.library.recent import RecentMenu
from gui.library.window import LibraryWindow
from gui.panels.base import Panel
from gui.shortcut_list import ShortcutList
from gui.state import Selection, State
from gui.view import resolve
from gui.wishes import (
    Choose,
    EditText,
    GoTo,
    OpenModel,
    Play,
    SelectHead,
    SelectPosition,
    SetCache,
    SetDisplay,
    SetHeadsOff,
    SetMask,
    SetSampling,
    SetSpeed,
    Step,
)
from tests.gui.tiny_scope import tiny_scope
from tests.gui.whole_window import WholeWindow, wait_until

BY_ID = {command.id: command for command in COMMANDS}
TEXT = "To be, or not to be"


@pytest.fixture(scope="module")
def opened(qapp: QApplication, small_model: Path) -> Iterator[WholeWindow]:  # noqa: ARG001
    """One window for all tests of this file."""
    whole = WholeWindow(model=small_model, prompt=TEXT).start()
    whole.visit_all_panels()
    yield whole
    whole.close()


USUAL = State(selection=Selection(1, 1), steps_per_second=100.0)


@pytest.fixture
def whole(opened: WholeWindow) -> WholeWindow:
    """The window, on the same text and settings before every test."""
    opened.wish(Play(""))
    state, reading = opened.state, opened.reading
    if (reading.document.text, reading.document.n_prompt, reading.cursor) != (TEXT, *[19] * 2):
        opened.wish(EditText(TEXT))
    for now, usual, wish in (
        (state.mask, USUAL.mask, SetMask(vars(USUAL.mask))),
        (state.heads_off, USUAL.heads_off, SetHeadsOff(vars(USUAL.heads_off))),
        (state.use_cache, USUAL.use_cache, SetCache(use=True)),
        (state.sampling, USUAL.sampling, SetSampling(USUAL.sampling)),
        (state.steps_per_second, USUAL.steps_per_second, SetSpeed(USUAL.steps_per_second)),
        (state.selection, USUAL.selection, SelectHead(1, 1)),
        (state.selection, USUAL.selection, SelectPosition(None)),
        (state.display, USUAL.display, SetDisplay(vars(USUAL.display))),
    ):
        if now != usual:
            opened.wish(wish)
    opened.activate()
    opened.editor.setFocus()
    return opened


# The table


def test_no_two_commands_have_one_id_or_one_title() -> None:
    """Each can be told from every other."""
    assert len(BY_ID) == len(COMMANDS)
    assert len({command.title for command in COMMANDS}) == len(COMMANDS)


def test_no_two_commands_share_a_key(qapp: QApplication) -> None:  # noqa: ARG001
    """Written in whatever way, and every key is one that Qt knows."""
    keys = [QKeySequence(each).toString() for command in COMMANDS for each in command.shortcuts]
    assert all(keys)
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.id)
def test_a_command_explains_itself(command: Command) -> None:
    """A title without a stop, help in whole sentences."""
    assert command.menu
    assert command.title
    assert not command.title.endswith(".")
    assert command.help[0].isupper()
    assert command.help.endswith(".")


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.id)
def test_a_command_can_be_asked_at_any_time(command: Command) -> None:
    """Before a model, without a text, and with one, its wish is one that the controller knows."""
    scope = tiny_scope()
    dispatch = Controller.__dict__["fulfil"].dispatcher.dispatch
    unknown = dispatch(object)
    for state in (State(), State(reading=scope.edit("")), State(reading=scope.edit("abc"))):
        assert command.enabled(state) in {True, False}
        assert command.checked is None or command.checked(state) in {True, False}
        wish = command.wish(state) if command.wish else None
        assert wish is None or dispatch(type(wish)) is not unknown


def test_without_a_text_there_is_nowhere_to_step_to() -> None:
    """The commands that need one are grey."""
    empty = State(reading=tiny_scope().edit(""))
    one = State(reading=tiny_scope().edit("a"))
    for name in ("step", "play", "play_sentence", "to_end", "head_left", "query_left"):
        assert not BY_ID[name].enabled(empty)
        assert not BY_ID[name].enabled(State())
        assert BY_ID[name].enabled(one)
    assert not BY_ID["back"].enabled(one)


def test_heads_are_counted_from_the_model_that_is_open() -> None:
    """A selection left from a larger one counts as its last head."""
    state = State(reading=tiny_scope().edit("abc"), selection=Selection(layer=7, head=9))
    wanted = {
        "head_left": SelectHead(1, 2),
        "head_right": SelectHead(1, 0),
        "layer_up": SelectHead(0, 3),
        "layer_down": SelectHead(0, 3),
    }
    assert {name: BY_ID[name].wish(state) for name in wanted} == wanted  # type: ignore[misc]


def test_an_example_is_put_into_the_prompt(whole: WholeWindow) -> None:
    """Whole, and undone like anything else that was written."""
    example = next(each for each in resources.examples() if "pattern" in each.title)
    action = next(a for a in whole.window.findChildren(QAction) if a.text() == example.title)
    assert action.statusTip() == example.help
    action.trigger()
    whole.idle()
    assert whole.reading.document.text == whole.editor.text() == example.text


# Each key

Before = Any
Says = Callable[[WholeWindow, State], object]

# What is different after a key: of the window, compared with the state before.
SAYS: dict[str, Says] = {
    "back": lambda whole, was: whole.reading.cursor == was.reading.cursor - 1,  # type: ignore[union-attr]
    "step": lambda whole, was: len(whole.state.text) == len(was.text) + 1,
    "to_prompt": lambda whole, _: whole.reading.cursor == len(TEXT),
    "to_end": lambda whole, _: whole.reading.at_end,
    "greedy": lambda whole, _: whole.state.sampling.temperature == 0,
    "mask": lambda whole, _: whole.reading.conditions.mask == "none",
    "window": lambda whole, _: whole.reading.conditions.window == 16,
    "cache": lambda whole, _: not whole.reading.use_cache,
    "head_off": lambda whole, _: whole.reading.conditions.heads_off == {(1, 1)},
    "layer_off": lambda whole, _: whole.reading.conditions.heads_off == {(1, h) for h in range(4)},
    "heads_on": lambda whole, _: not whole.reading.conditions.heads_off,
    "head_left": lambda whole, _: (whole.reading.focus.layer, whole.reading.focus.head) == (1, 0),
    "head_right": lambda whole, _: (whole.reading.focus.layer, whole.reading.focus.head) == (1, 2),
    "layer_up": lambda whole, _: (whole.reading.focus.layer, whole.reading.focus.head) == (0, 1),
    "layer_down": lambda whole, _: (whole.reading.focus.layer, whole.reading.focus.head) == (0, 1),
    "query_left": lambda whole, _: whole.reading.position == len(TEXT) - 2,
    "query_right": lambda whole, _: whole.state.selection.query == len(TEXT) - 1,
    "query_last": lambda whole, _: whole.state.selection.query is None,
    "heatmap": lambda whole, _: whole.state.display.drawing == "heatmap",
    "arcs": lambda whole, _: whole.state.display.drawing == "arcs",
    "scale_linear": lambda whole, _: whole.state.display.scale == "linear",
    "scale_log": lambda whole, _: whole.state.display.scale == "log",
    "scale_row": lambda whole, _: whole.state.display.scale == "row",
    "leave_first_out": lambda whole, _: whole.state.display.leave_first_out,
    "show_loss": lambda whole, _: whole.state.display.show_loss,
    "show_pass": lambda whole, _: whole.state.display.show_pass,
    "theme_light": lambda whole, _: whole.state.display.theme.name == "light",
    "theme_dark": lambda whole, _: whole.state.display.theme.name == "dark",
    "theme_projector": lambda whole, _: whole.state.display.theme.name == "projector",
    "zoom_in": lambda whole, _: whole.state.display.zoom == 1.1,
    "zoom_out": lambda whole, _: whole.state.display.zoom == 0.9,
    "zoom_reset": lambda whole, _: whole.state.display.zoom == 1.0,
}
# What has to be so before, for the key to change anything.
FIRST: dict[str, list[object]] = {
    "to_prompt": [Step(), Step()],
    "to_end": [GoTo(3)],
    "heads_on": [SetHeadsOff({"heads": frozenset({(0, 2), (1, 0)})})],
    "query_last": [SelectPosition(2)],
    "heatmap": [SetDisplay({"drawing": "arcs"})],
    "scale_linear": [SetDisplay({"scale": "log"})],
    "zoom_reset": [SetDisplay({"zoom": 2.0})],
    "query_right": [SelectPosition(len(TEXT) - 2)],
    "theme_light": [SetDisplay({"show_loss": True})],
}
TO_PANELS = [command for command in COMMANDS if command.id.startswith(PANEL_COMMAND)]
OTHERWISE = {"library", "open", "save_picture", "quit", "play", "play_sentence", "full_screen"}
OTHERWISE |= {"shortcuts", "head_alone", "export_panel", "stop_opening", "download"}
OTHERWISE |= {"measure_effects", "training_lab", "prefix"}
KEYS = [(command, keys) for command in COMMANDS for keys in command.shortcuts]


def test_every_key_is_pressed_in_some_test() -> None:
    """Here, below, in other tests of this folder, or in those of the whole program."""
    keyed = {command.id for command, _keys in KEYS if command not in TO_PANELS}
    assert keyed == set(SAYS) | OTHERWISE


@pytest.mark.parametrize(
    ("command", "keys"),
    [pair for pair in KEYS if pair[0].id in SAYS],
    ids=lambda value: value if isinstance(value, str) else value.id,
)
def test_a_key_does_what_its_command_says(whole: WholeWindow, command: Command, keys: str) -> None:
    """Pressed where one writes; the text is not touched by it."""
    whole.wish(*FIRST.get(command.id, []))
    before = whole.state
    whole.press(keys)
    whole.idle()
    assert SAYS[command.id](whole, before)
    assert whole.editor.text() == whole.state.text
    assert whole.state.text.startswith(TEXT)
    action = whole.action(command.id)
    assert action.isCheckable() == (command.checked is not None)
    assert not action.isCheckable() or action.isChecked() == command.checked(whole.state)  # type: ignore[misc]


@pytest.mark.parametrize("command", TO_PANELS, ids=lambda command: command.id)
def test_a_key_goes_to_a_panel(whole: WholeWindow, command: Command) -> None:
    """It is brought to the front, and takes the keyboard if anything in it takes keys."""
    panel = whole.panel(command.id.removeprefix(PANEL_COMMAND))
    dock = panel.parentWidget()
    for hidden in (False, True):
        if hidden and isinstance(dock, QDockWidget):
            dock.hide()
        whole.editor.setFocus()
        whole.press(command.shortcuts[0])
        whole.idle()
        assert panel.isVisible()
        assert not panel.visibleRegion().isEmpty()
        takes_keys = [
            each
            for each in (panel, *panel.findChildren(QWidget))
            if each.focusPolicy() != Qt.FocusPolicy.NoFocus and each.isEnabledTo(panel)
        ]
        focus = QApplication.focusWidget()
        assert not takes_keys or (focus is panel or panel.isAncestorOf(focus))


@pytest.mark.parametrize(
    "name",
    ["greedy", "mask", "window", "cache", "show_loss", "show_pass", "head_off", "layer_off"],
)
def test_a_switch_switches_back(whole: WholeWindow, name: str) -> None:
    """The same key twice is as before."""
    before = whole.action(name).isChecked()
    for _ in range(2):
        whole.press(BY_ID[name].shortcuts[0])
        whole.idle()
    assert whole.action(name).isChecked() == before
    assert whole.reading.conditions == State().conditions
    assert whole.state.sampling == Sampling()


def test_f7_measures_what_moves_the_answer_most_and_esc_stops_it(
    whole: WholeWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was measured by then stays."""
    step, go_on = EffectSweep.step, threading.Event()

    def slow(sweep: EffectSweep, *more: Any) -> Any:
        effects = step(sweep, *more)
        assert effects.n_measured < 3 or go_on.wait(60)
        return effects

    monkeypatch.setattr(EffectSweep, "step", slow)
    whole.press("F7")
    wait_until(lambda: whole.state.effects and whole.state.effects.effects.n_measured == 2)
    assert not whole.action("measure_effects").isEnabled()
    assert whole.action("stop_opening").isEnabled()
    assert resolve(whole.state).status == "Measured 2 of 8 heads … (Esc stops)"
    whole.press("Esc")
    go_on.set()
    whole.idle()
    assert not whole.state.measuring
    assert whole.state.effects is not None
    assert whole.state.effects.effects.n_measured == 2
    assert not whole.action("stop_opening").isEnabled()
    assert whole.state.display.shade == "answer"


def test_f5_plays_and_pauses(whole: WholeWindow) -> None:
    """The same key both ways."""
    whole.press("F5")
    assert whole.state.playing == "play"
    wait_until(lambda: len(whole.reading.document) >= len(TEXT) + 2)
    assert whole.action("play").isChecked()
    whole.press("F5")
    assert whole.state.playing == ""
    whole.idle()
    assert not whole.action("play").isChecked()


def test_f6_plays_to_the_end_of_the_sentence(whole: WholeWindow) -> None:
    """Or until the context is full, whatever comes first."""
    prompt = "To be, or not to be, " * 3
    whole.wish(EditText(prompt[:58]))
    whole.press("F6")
    assert whole.state.playing == "sentence"
    whole.idle()
    generated = whole.state.text[58:]
    assert generated[-1] in ".!?" or whole.reading.full
    assert not set(".!?") & set(generated[:-1])


def test_f11_fills_the_screen_and_leaves_it(whole: WholeWindow) -> None:
    """Panels stay where they are."""
    whole.press("F11")
    assert whole.window.isFullScreen()
    whole.press("F11")
    assert not whole.window.isFullScreen()


def test_f9_gives_one_head_the_room_of_the_panels_around_it(whole: WholeWindow) -> None:
    """Again, or going to one of those, brings them back; what is kept at the end has them all."""
    head = whole.panel("head")
    whole.window.go_to_panel("head")
    seen = {panel.name for panel in whole.window.findChildren(Panel) if panel.is_seen}
    room = head.width() * head.height()
    _geometry, layout = whole.window.save_layout()
    for bring_back in ("F9", "Alt+3"):
        whole.press("F9")
        QApplication.processEvents()
        alone = {panel.name for panel in whole.window.findChildren(Panel) if panel.is_seen}
        assert alone == {"prompt", "head"}
        assert head.width() * head.height() > 2 * room
        assert whole.window.save_layout()[1] == layout
        whole.press(bring_back)
        QApplication.processEvents()
        back = {panel.name for panel in whole.window.findChildren(Panel) if panel.is_seen}
        assert len(back) == len(seen)


def test_f1_lists_every_command_with_its_keys(whole: WholeWindow) -> None:
    """In the order of the table, as plain text."""
    whole.press("F1")
    (shown,) = whole.window.findChildren(ShortcutList)
    assert shown.isVisible()
    (table,) = shown.findChildren(QTableWidget)
    rows = [
        tuple(table.item(row, column).text() for column in range(4))
        for row in range(table.rowCount())
    ]
    assert [(menu, title, said) for menu, title, _keys, said in rows] == [
        (command.menu, command.title, command.help) for command in COMMANDS
    ]
    by_title = {title: keys for _menu, title, keys, _help in rows}
    assert by_title["Larger"] == "Ctrl++, Ctrl+="
    assert by_title["Step"] == "PgDown"
    assert by_title["Copy picture"] == ""
    metrics, wide = table.fontMetrics(), table.columnWidth(3)
    for row, (_menu, _title, _keys, said) in enumerate(rows):
        room = QRect(0, 0, wide - 8, 1000)
        needed = metrics.boundingRect(room, Qt.TextFlag.TextWordWrap, said).height()
        assert needed <= table.rowHeight(row) < needed + 2 * metrics.height(), said
    whole.press("Esc", shown)
    wait_until(lambda: not whole.window.findChildren(ShortcutList))


def test_ctrl_o_lists_the_models_of_this_computer(whole: WholeWindow) -> None:
    """In a window of its own, once however often it is asked for."""
    for _ in range(2):
        whole.press("Ctrl+O", whole.editor)
        lists = [
            each
            for each in QApplication.topLevelWidgets()
            if isinstance(each, LibraryWindow) and each.isVisible()
        ]
        assert len(lists) == 1
    lists[0].close()
    whole.activate()


def test_ctrl_shift_o_opens_the_folder_that_was_chosen(
    whole: WholeWindow,
    monkeypatch: pytest.MonkeyPatch,
    make_model: Callable[..., Path],
    small_model: Path,
) -> None:
    """Nothing happens if none was."""
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: "")
    before = whole.reading
    whole.press("Ctrl+Shift+O")
    assert whole.reading is before
    other = make_model("chosen")
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: str(other))
    whole.press("Ctrl+Shift+O")
    wait_until(lambda: whole.reading.info.name == "chosen")
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: str(small_model))
    whole.press("Ctrl+Shift+O")
    wait_until(lambda: whole.reading.info.name == "small")
    (recent,) = whole.window.findChildren(RecentMenu)
    recent.aboutToShow.emit()
    assert [action.text()[4:] for action in recent.actions()[:2]] == ["small", "chosen"]
    recent.actions()[1].trigger()
    wait_until(lambda: whole.reading.info.name == "chosen")
    whole.wish(OpenModel(small_model))
    wait_until(lambda: whole.reading.info.name == "small")


def test_a_picture_is_saved_where_it_was_asked_for(
    whole: WholeWindow, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As a PNG, whatever its name ends in; the window says where it is."""
    for asked, name in (("a.png", "a.png"), ("b", "b.png"), ("c.v2", "c.v2.png"), ("", "")):
        answer = str(tmp_path / asked) if asked else ""
        monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_, answer=answer: (answer, ""))
        whole.press("Ctrl+Shift+S")
        if name:
            assert (tmp_path / name).read_bytes().startswith(b"\x89PNG\r\n")
            assert whole.window.message_bar.sentence == f"The picture is in {tmp_path / name}."
    assert len(list(tmp_path.glob("*.png"))) == 3


def test_a_picture_that_cannot_be_saved_is_said_in_one_sentence(
    whole: WholeWindow, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The program goes on, and will end as if nothing had happened."""
    path = tmp_path / "missing" / "a.png"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(path), ""))
    whole.press("Ctrl+Shift+S")
    assert whole.window.message_bar.sentence == (
        f"{path} cannot be written; choose a folder that exists and can be written."
    )
    assert whole.app.exit_status == 0


# Commands without a key


def test_the_picture_can_be_copied(whole: WholeWindow) -> None:
    """The clipboard then holds the whole window."""
    whole.action("copy_picture").trigger()
    image = QGuiApplication.clipboard().image()
    ratio = whole.window.devicePixelRatioF()
    assert (image.width(), image.height()) == (
        round(whole.window.width() * ratio),
        round(whole.window.height() * ratio),
    )


def test_motion_can_be_switched_off(whole: WholeWindow) -> None:
    """For those whom flashes disturb."""
    whole.action("motion").trigger()
    assert not whole.state.display.motion
    assert not whole.action("motion").isChecked()


def test_about_says_what_this_is(whole: WholeWindow, monkeypatch: pytest.MonkeyPatch) -> None:
    """In plain words."""
    said: list[str] = []
    monkeypatch.setattr(QMessageBox, "about", lambda _parent, *texts: said.extend(texts))
    whole.action("about").trigger()
    assert said[0] == "About Attention Scope"
    assert "MIT" in said[1]


# Menus and zoom


def test_every_command_is_in_its_menu(whole: WholeWindow) -> None:
    """In the order of the table."""
    menus = {
        menu.title(): [action.text() for action in menu.actions() if action.menu() is None]
        for menu in whole.window.menuBar().findChildren(QMenu)
    } | {
        action.text(): [each.text() for each in action.menu().actions() if each.menu() is None]
        for action in whole.window.menuBar().actions()
    }
    for title in dict.fromkeys(command.menu for command in COMMANDS):
        wanted = [command.title for command in COMMANDS if command.menu == title]
        assert [text for text in menus[title] if text] == wanted


def test_zoom_goes_through_its_steps_and_stays_within(whole: WholeWindow) -> None:
    """At either end it stays."""
    for first, keys, seen in (
        (ZOOM_STEPS[-2], "Ctrl++", ZOOM_STEPS[-1]),
        (ZOOM_STEPS[-1], "Ctrl++", ZOOM_STEPS[-1]),
        (ZOOM_STEPS[0], "Ctrl+-", ZOOM_STEPS[0]),
        (1.1, "Ctrl+-", 1.0),
    ):
        whole.wish(SetDisplay({"zoom": first}))
        whole.press(keys)
        assert whole.state.display.zoom == seen


def test_a_branch_and_keys_work_together(whole: WholeWindow) -> None:
    """Steps, back, a branch, steps: as a lecturer does it."""
    for keys in ["PgDown"] * 3 + ["PgUp"] * 2:
        whole.press(keys)
    whole.idle()
    assert (whole.reading.cursor, len(whole.reading.document)) == (len(TEXT) + 1, len(TEXT) + 3)
    whole.wish(Choose(whole.reading.position, 4))
    for keys in ["PgDown"] * 2:
        whole.press(keys)
    whole.idle()
    assert whole.editor.text() == whole.reading.document.text
    assert len(whole.reading.document) == len(TEXT) + 4
