"""Number formats and devices, chosen in the menu; what they do is shown, and only while seen."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from math import nan
from pathlib import Path
from typing import Any

import pytest
import torch
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QMenu, QWidget
from pytestqt.qtbot import QtBot

import engine.architectures
import engine.loading
import engine.matrices
from engine.formats import Consequence, FormatChoice, Held
from engine.reading import Reading
from engine.sizes import bytes_said
from engine.weight_room import peak_bytes
from gui.panels.format import ITSELF, WAITING, FormatPanel, caption, rest
from gui.state import OpenedConsequence
from gui.theme import THEMES
from gui.wishes import EditText, OpenModel, WantConsequence
from tests.gui.tiny_scope import house, tiny_scope, view_of
from tests.gui.whole_window import WholeWindow, wait_until

# What the plugin that draws without a screen says of every menu.
pytestmark = pytest.mark.qt_log_ignore(
    r"does not support (raise\(\)|grabbing the keyboard)", extend=True
)

LEFT = Qt.MouseButton.LeftButton
TEXT = "to be or not"
FOUND = Consequence(
    n_tokens=12,
    difference=0.0123,
    position=4,
    token_id=1,
    probability=0.3423,
    in_float32=0.33,
    n_top_changed=0,
    loss=2.5,
    loss_in_float32=2.25,
)


@pytest.fixture
def whole(qapp: QApplication, small_model: Path, tmp_path: Path) -> Iterator[WholeWindow]:  # noqa: ARG001
    """The program with a small model, open on TEXT."""
    window = WholeWindow(tmp_path / "scope.ini", model=small_model, prompt=TEXT).start()
    yield window
    window.close()


def click(whole: WholeWindow, command: str) -> None:
    """Open the Model menu with the mouse and click one of its rows."""
    bar = whole.window.menuBar()
    title = next(action for action in bar.actions() if action.text() == "Model")
    menu = title.menu()
    assert isinstance(menu, QMenu)
    QTest.mouseClick(bar, LEFT, pos=bar.actionGeometry(title).center())
    wait_until(menu.isVisible, "the menu")
    row = whole.action(command)
    assert row in menu.actions()
    QTest.mouseClick(menu, LEFT, pos=menu.actionGeometry(row).center())
    wait_until(lambda: not menu.isVisible(), "the menu to close")


def held(whole: WholeWindow) -> Held:
    """How the model on the window is held."""
    return whole.reading.info.held


def told(whole: WholeWindow) -> str:
    """The messages above the panels."""
    labels = whole.window.message_bar.findChildren(QLabel)
    return " ".join(label.text() for label in labels)


# The menu


@pytest.mark.parametrize("number_format", ["bfloat16", "float16", "int8"])
def test_a_click_opens_the_model_again_in_that_format(
    whole: WholeWindow, number_format: str
) -> None:
    """The text is run again and stays; the tick, the status line and a message follow."""
    assert held(whole).number_format == "float32"
    assert whole.action("format_automatic").isChecked()
    before = whole.reading
    click(whole, f"format_{number_format}")
    whole.idle()
    assert held(whole).number_format == number_format
    assert whole.reading.info is not before.info
    assert whole.reading.document.text == TEXT
    assert whole.action(f"format_{number_format}").isChecked()
    assert not whole.action("format_automatic").isChecked()
    assert f"M weights in {number_format} ·" in whole.window._status.text()
    assert f"opened again in {number_format}" in told(whole)
    click(whole, "format_float32")
    whole.idle()
    assert held(whole).number_format == "float32"
    for old, new in zip(before.session.traces, whole.reading.session.traces, strict=True):
        assert (old.q == new.q).all()


def test_the_old_model_runs_until_the_new_one_is_ready(
    whole: WholeWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the weights are read, what is on the window stays."""
    begun, go = threading.Event(), threading.Event()
    load = engine.loading.load

    def slow_load(*given: Any, **how: Any) -> Any:
        begun.set()
        assert go.wait(60)
        return load(*given, **how)

    monkeypatch.setattr(engine.loading, "load", slow_load)
    before = whole.reading
    click(whole, "format_int8")
    wait_until(begun.is_set)
    assert whole.reading is before
    assert whole.state.phase == "loading"
    go.set()
    whole.idle()
    assert held(whole).number_format == "int8"


def test_the_choice_in_force_opens_nothing_again(whole: WholeWindow) -> None:
    before = whole.reading
    click(whole, "format_automatic")
    click(whole, "device_cpu")
    whole.idle()
    assert whole.reading.info is before.info
    assert whole.action("format_automatic").isChecked()
    assert whole.action("device_cpu").isChecked()


@pytest.mark.parametrize("device", ["cuda", "mps"])
def test_a_device_that_is_not_there_is_refused_and_nothing_changes(
    whole: WholeWindow, monkeypatch: pytest.MonkeyPatch, device: str
) -> None:
    """One sentence; the tick stays where it was, and so does the model."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    before = whole.reading
    click(whole, f"device_{device}")
    whole.idle()
    assert f"torch finds no '{device}' device here" in told(whole)
    assert whole.reading.info is before.info
    assert whole.state.phase == "ready"
    assert whole.action("device_cpu").isChecked()
    assert not whole.action(f"device_{device}").isChecked()
    click(whole, "format_int8")  # asked of the processor, not of what was refused
    whole.idle()
    assert (held(whole).number_format, held(whole).device) == ("int8", "cpu")


def test_another_model_is_opened_in_the_chosen_format(
    whole: WholeWindow, make_model: Callable[..., Path]
) -> None:
    click(whole, "format_bfloat16")
    whole.idle()
    whole.wish(OpenModel(make_model("other", n_layer=1)))
    assert whole.reading.info.name == "other"
    assert held(whole).number_format == "bfloat16"


def test_the_choice_comes_back_at_the_next_start(
    whole: WholeWindow, small_model: Path, tmp_path: Path
) -> None:
    click(whole, "format_int8")
    whole.idle()
    whole.close()
    again = WholeWindow(tmp_path / "scope.ini", model=small_model).start()
    assert held(again).number_format == "int8"
    assert again.action("format_int8").isChecked()
    again.close()


def test_a_remembered_device_that_is_gone_does_not_keep_the_program_from_starting(
    qapp: QApplication,  # noqa: ARG001
    small_model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It starts on the processor and says so."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    settings = tmp_path / "scope.ini"
    settings.write_text("[General]\ndevice=cuda\n", encoding="utf-8")
    window = WholeWindow(settings, model=small_model, prompt=TEXT).start()
    assert held(window).device == "cpu"
    assert window.action("device_cpu").isChecked()
    assert "no 'cuda' device here" in told(window)
    window.close()


# What it does


def test_the_panel_compares_with_float32_while_it_is_seen(
    whole: WholeWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The weights are read once more when it comes to the front, and kept as long."""
    loads: list[Path] = []
    load = engine.loading.load

    def counting_load(path: Path, *more: Any, **named: Any) -> Any:
        loads.append(path)
        return load(path, *more, **named)

    monkeypatch.setattr("engine.answers.format_pass.load", counting_load)
    click(whole, "format_int8")
    whole.idle()
    assert whole.state.consequence is None
    assert not loads
    panel = whole.panel("format")
    assert isinstance(panel, FormatPanel)
    whole.window.go_to_panel("format")
    wait_until(panel.figure.text, "the figure")
    assert len(loads) == 1
    opened = whole.state.consequence
    assert opened is not None
    assert opened.consequence is not None
    assert opened.consequence.n_tokens == len(TEXT)
    assert panel.figure.text() == f"{100 * opened.consequence.difference:.2g} percentage points"
    assert "int8" in panel.heading.text()
    whole.type("!")
    wait_until(
        lambda: whole.state.consequence and whole.state.consequence.reading is whole.reading,
        "the figure of the new text",
    )
    assert len(loads) == 1
    whole.window.go_to_panel("heads")
    wait_until(lambda: WantConsequence not in whole.state.wanted, "nobody to look")
    whole.wish(EditText(f"{TEXT}?"))
    whole.window.go_to_panel("format")
    wait_until(lambda: len(loads) == 2, "the weights once more")


def test_in_float32_there_is_nothing_to_compare(whole: WholeWindow) -> None:
    """And the panel says so, with no figure."""
    whole.window.go_to_panel("format")
    whole.idle()
    panel = whole.panel("format")
    assert isinstance(panel, FormatPanel)
    wait_until(lambda: panel.caption.text() == ITSELF)
    assert panel.figure.isHidden()


def test_the_format_that_suits_is_a_smaller_one_where_there_is_no_room(
    whole: WholeWindow, make_model: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which, and why, is told over the panels and in this one, with the figures."""
    deep = make_model("deep", n_layer=6)  # far more than the two matrices that are at hand at once
    whole.wish(OpenModel(deep))
    whole.idle()
    assert whole.reading.info.path == str(deep)
    needed = peak_bytes(engine.loading.load(Path(whole.reading.info.path)).model, "float32")
    monkeypatch.setattr(engine.matrices, "has_packed", lambda _format: False)
    monkeypatch.setattr(engine.architectures, "available_bytes", lambda: needed - 1)
    click(whole, "format_float32")
    whole.idle()
    assert f"needs about {bytes_said(needed)} of memory as float32" in told(whole)
    assert held(whole).number_format == "float32"  # the model before still runs
    whole.wish(OpenModel(Path(whole.reading.info.path)))
    click(whole, "format_automatic")
    whole.idle()
    assert held(whole).number_format == "float16"
    why = f"the most exact that fits; float32 needs about {bytes_said(needed)} of memory"
    assert f"was opened in float16, {why}, and" in told(whole)
    whole.window.go_to_panel("format")
    whole.idle()
    panel = whole.panel("format")
    assert isinstance(panel, FormatPanel)
    assert f"Automatic: {why}" in panel.held.text()


# The panel by itself


@pytest.fixture
def panel(window: QWidget) -> FormatPanel:
    """Shown in a window."""
    widget = FormatPanel()
    house(window, widget, 500, 300)
    return widget


def reading_in(number_format: Any, n_bytes: int = 1_000_000) -> Reading:
    """A reading of a model of 1 M weights that is held like this."""
    scope = tiny_scope()
    reading = scope.edit(TEXT)
    info = replace(
        reading.info,
        n_parameters=1_000_000,
        held=Held(number_format, "cpu", "packed", "chosen in the menu", n_bytes),
        vocabulary=(b"a", b"<b>", b"c"),
    )
    return replace(reading, info=info)


def test_sizes_and_the_reason_are_told(panel: FormatPanel) -> None:
    """Against what float32 would take: 4 bytes a weight."""
    panel.show_view(view_of(reading_in("int8")))
    assert panel.heading.text() == "int8 (packed), on the processor"
    told = "977 KiB of weights; float32 would take 3.81 MiB. Chosen in the menu."
    assert panel.held.text() == told
    assert panel.caption.text() == WAITING


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_the_figure_is_told_with_its_place_and_in_words(panel: FormatPanel, theme: Any) -> None:
    """The token's text is plain text, whatever it looks like."""
    reading = reading_in("int8")
    opened = OpenedConsequence(reading, FOUND)
    view = view_of(reading, consequence=opened)
    panel.show_view(replace(view, theme=theme))
    assert panel.figure.text() == "1.2 percentage points"
    assert "34.2 % instead of 33.0 %" in panel.caption.text()
    assert "<b>" in panel.caption.text()
    assert panel.caption.textFormat() == Qt.TextFormat.PlainText
    assert "is the same at all 12 positions" in panel.rest.text()
    assert "2.5000 nats per token, 2.2500 in float32" in panel.rest.text()
    for label in (panel.figure, panel.caption, panel.rest):
        assert label.text() in panel.accessibleDescription()


def test_why_nothing_was_compared_stands_where_the_figure_would(panel: FormatPanel) -> None:
    reading = reading_in("int8")
    opened = OpenedConsequence(reading, None, "Not compared: no memory.")
    panel.show_view(view_of(reading, consequence=opened))
    assert panel.caption.text() == "Not compared: no memory."
    assert panel.figure.isHidden()


def test_before_a_model_is_there_the_panel_says_so(panel: FormatPanel) -> None:
    panel.show_view(view_of(None, phase="starting"))
    assert panel.heading.text() == "The model is being loaded."


def test_probabilities_have_so_many_digits_that_they_differ() -> None:
    """However small the difference is."""
    close = replace(FOUND, difference=2e-6, probability=0.330002, in_float32=0.33)
    assert "33.00020 % instead of 33.00000 %" in caption(close, ())
    assert "token 1 " in caption(close, ())


def test_a_single_token_has_no_loss() -> None:
    alone = replace(FOUND, n_tokens=1, n_top_changed=1, loss=nan, loss_in_float32=nan)
    assert rest(alone) == "The most probable token is another one at 1 of 1 position."


def test_the_panel_asks_when_it_is_seen_and_tells_when_it_is_not(
    qtbot: QtBot, panel: FormatPanel
) -> None:
    wishes: list[object] = []
    panel.wished.connect(wishes.append)
    panel.hide()
    qtbot.waitUntil(lambda: wishes[-1:] == [WantConsequence(wanted=False)])
    panel.show()
    qtbot.waitUntil(lambda: wishes[-1] == WantConsequence(wanted=True))


def test_choices_are_values() -> None:
    """So that the same choice twice is no change."""
    assert replace(FormatChoice(), device="cuda") == FormatChoice("float32", "cuda")
