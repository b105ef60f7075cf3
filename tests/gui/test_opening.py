"""A model that is opened on a long text: what is seen of it before all has been read."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

import engine.scope
from engine.errors import CancelledError, EngineError
from engine.loading import load
from engine.matrices import PackedHalf, has_packed
from engine.run import Run
from engine.scope import Scope
from gui.library.recent import RecentModels
from gui.widgets.fitting_label import FittingLabel
from gui.widgets.head_atlas import HeadAtlas
from gui.wishes import Follow, OpenModel, SelectHead, SetFormat, SetHeadsOff
from tests.gui.whole_window import WholeWindow, wait_until

PROMPT = "to be, or not to be, that is it!"  # 32 tokens
PATIENCE = 30.0


class Passes:
    """Passes of the model of 3 layers, held up after the first one until they may go on."""

    def __init__(self) -> None:
        self.n_begun = 0
        self.go_on = threading.Event()
        self.failure: Exception | None = None

    def do(self, run: Run, *rest: Any) -> Any:
        """A pass as ever, now or later, or its failure."""
        if run.config.n_layer == 3 and not self.go_on.is_set():
            self.n_begun += 1
            if self.n_begun > 1:
                assert self.go_on.wait(PATIENCE)
                if self.failure is not None:
                    raise self.failure
        return _pass(run, *rest)


_pass = Run._pass


@pytest.fixture
def tall(make_model: Callable[..., Path]) -> Path:
    """Another model than the small one, of 3 layers."""
    return make_model("tall", n_layer=3, seed=5)


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Passes]:
    """Those of the tall model; every model reads 4 rows at a time."""
    held = Passes()

    def held_up(run: Run, *rest: Any) -> Any:
        return held.do(run, *rest)

    monkeypatch.setattr(Run, "_pass", held_up)
    monkeypatch.setattr(engine.scope, "_LEAST_ROWS", 4)
    monkeypatch.setattr(engine.scope, "_PIECE", 0)
    monkeypatch.setattr("gui.controller._SETTLE_MS", 20)
    yield held
    held.go_on.set()


@pytest.fixture
def whole(qapp: object, small_model: Path, tmp_path: Path) -> Iterator[WholeWindow]:  # noqa: ARG001
    """The program with the small model open."""
    whole = WholeWindow(tmp_path / "scope.ini", model=small_model, prompt=PROMPT).start()
    wait_until(lambda: whole.app._is_settled, "the comparison with the full pass")
    yield whole
    whole.close()


def open_until_seen(whole: WholeWindow, path: Path, n_tokens: int = 4) -> None:
    """Ask for a model and wait until a part of its text is on screen."""
    whole.window.wished.emit(OpenModel(path))
    wait_until(lambda: is_seen(whole, path.name, n_tokens), "the first part")


def is_seen(whole: WholeWindow, name: str, n_tokens: int) -> bool:
    """Whether so many tokens of a model's text are on screen."""
    reading = whole.state.reading
    if reading is None or not whole.window.is_drawn:
        return False
    return (reading.info.name, reading.n_tokens) == (name, n_tokens)


def status(whole: WholeWindow) -> str:
    """The line below the panels."""
    (label,) = (
        each
        for each in whole.window.statusBar().findChildren(FittingLabel)
        if each.accessibleName().startswith("State of the model")
    )
    return label.text()


def atlas_of(whole: WholeWindow) -> HeadAtlas:
    """The overview; panels behind others may not be there yet."""
    atlas = whole.panel("heads").findChild(HeadAtlas)
    assert isinstance(atlas, HeadAtlas)
    return atlas


def n_heads(whole: WholeWindow) -> int:
    """How many heads the overview shows."""
    return atlas_of(whole)._count


def test_the_first_part_of_a_text_is_seen_while_the_rest_is_read(
    whole: WholeWindow, tall: Path, passes: Passes
) -> None:
    """All panels show so much of the new model, which is not yet called opened."""
    assert n_heads(whole) == 2 * 4
    open_until_seen(whole, tall)
    assert (whole.state.phase, whole.state.stale) == ("loading", False)
    assert status(whole) == f"Reading … 4 of {len(PROMPT)} tokens (Esc stops)"
    assert n_heads(whole) == 3 * 4
    assert whole.action("stop_opening").isEnabled()
    assert RecentModels(whole.app._settings).paths()[0].name == "small"
    part = whole.reading
    passes.go_on.set()
    whole.idle()
    reading = whole.reading
    assert (whole.state.phase, reading.n_tokens) == ("ready", len(PROMPT))
    assert [trace.n_tokens for trace in reading.session.traces] == [4] * 8
    assert np.allclose(reading.focus.weights[:4, :4], part.focus.weights, atol=1e-6)
    assert (part.focus.layer, part.focus.head) == (reading.focus.layer, reading.focus.head)
    assert RecentModels(whole.app._settings).paths()[0].name == "tall"


def test_the_end_is_what_a_model_shows_that_reads_the_text_at_once(
    whole: WholeWindow, tall: Path, passes: Passes
) -> None:
    """Every head's weights, and the losses."""
    passes.go_on.set()
    whole.wish(OpenModel(tall))
    reading = whole.reading
    assert len(reading.session.traces) > 1
    run = Run(load(tall).model)
    session = run.read(reading.document.token_ids)
    assert len(session.traces) == 1
    for layer in range(3):
        for head in range(4):
            whole.wish(SelectHead(layer, head))
            expected = run.pattern(session, layer, head)
            assert np.allclose(whole.reading.focus.weights, expected, atol=1e-6)
    assert np.allclose(reading.session.loss[1:], session.loss[1:], atol=1e-5)


def test_escape_brings_the_old_model_back_as_it_was(
    whole: WholeWindow, tall: Path, passes: Passes
) -> None:
    """With what had been found out about it; it goes on where it stood."""
    heads = frozenset({(1, 2)})
    whole.wish(SetHeadsOff({"heads": heads}), Follow(3))
    wait_until(lambda: whole.state.cache_check is not None, "the comparison with the full pass")
    before = whole.reading
    open_until_seen(whole, tall)
    assert whole.state.followed == "next"
    whole.press("Esc", whole.window)
    passes.go_on.set()
    whole.idle()
    assert whole.state.phase == "ready"
    assert whole.reading.session == before.session
    assert whole.reading.info is before.info
    assert whole.state.heads_off.heads == before.conditions.heads_off == heads
    assert whole.state.followed == 3
    assert n_heads(whole) == 2 * 4
    assert status(whole).startswith("small: 2 layers × 4 heads")
    assert whole.window.message_bar.sentence == "Opening the model was stopped."
    assert whole.window.message_bar.isVisible()
    assert RecentModels(whole.app._settings).paths()[0].name == "small"
    whole.press("PgDown", whole.editor)
    whole.idle()
    assert (whole.reading.info, whole.reading.n_tokens) == (before.info, before.n_tokens + 1)


@pytest.mark.parametrize("failure", [EngineError("It is lost."), ZeroDivisionError("oops")])
def test_a_text_that_cannot_be_read_to_its_end_leaves_the_old_model(
    whole: WholeWindow, tall: Path, passes: Passes, failure: Exception
) -> None:
    """With a sentence, whoever is to blame."""
    before = whole.reading
    open_until_seen(whole, tall)
    passes.failure = failure
    passes.go_on.set()
    whole.idle()
    assert whole.reading.session == before.session
    assert n_heads(whole) == 2 * 4
    assert whole.state.phase == "ready"
    assert str(failure) in whole.window.message_bar.sentence
    assert status(whole).startswith("small: 2 layers × 4 heads")
    whole.press("PgDown", whole.editor)
    whole.idle()
    assert (whole.reading.info, whole.reading.n_tokens) == (before.info, before.n_tokens + 1)


def test_what_is_typed_meanwhile_is_read_instead(
    whole: WholeWindow, tall: Path, passes: Passes
) -> None:
    """By the new model, which keeps what it has read of the old text and reads no more of it."""
    open_until_seen(whole, tall)
    whole.editor.moveCursor(whole.editor.textCursor().MoveOperation.End)
    whole.type("!!")
    passes.go_on.set()
    whole.idle()
    reading = whole.reading
    assert (reading.info.name, reading.document.text) == ("tall", f"{PROMPT}!!")
    assert whole.state.text == whole.editor.text() == f"{PROMPT}!!"
    assert reading.n_tokens == len(PROMPT) + 2
    assert reading.stats[0].n_kept in {4, 8}


def test_another_model_that_is_asked_for_meanwhile_comes_instead(
    whole: WholeWindow, tall: Path, passes: Passes, make_model: Callable[..., Path]
) -> None:
    """The part that was on screen goes at once; the model before it waits for the other."""
    before = whole.reading
    open_until_seen(whole, tall)
    whole.window.wished.emit(OpenModel(make_model("other", seed=2)))
    assert whole.reading is before
    passes.go_on.set()
    whole.idle()
    assert whole.reading.info.name == "other"
    assert status(whole).startswith("other: ")


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set by the engine when another model has taken the place of the old one."""
    done, pack = threading.Event(), Scope.pack_meanwhile

    def note(scope: Scope) -> None:
        pack(scope)
        done.set()

    monkeypatch.setattr(Scope, "pack_meanwhile", note)
    return done


def open_unheard(whole: WholeWindow, path: Path, opened: threading.Event) -> None:
    """A model that the engine has opened, while the window has not heard of it yet."""
    whole.window.wished.emit(OpenModel(path))
    assert opened.wait(PATIENCE)
    assert whole.reading.info.name == "small"


def test_escape_that_comes_too_late_stops_nothing(
    whole: WholeWindow, tall: Path, opened: threading.Event
) -> None:
    """What is shown is the engine's model, and what is typed goes to that one."""
    open_unheard(whole, tall, opened)
    whole.press("Esc", whole.window)
    whole.idle()
    assert whole.reading.info.name == "tall"
    assert n_heads(whole) == 3 * 4
    assert status(whole).startswith("tall: 3 layers × 4 heads")
    whole.press("PgDown", whole.editor)
    whole.idle()
    assert (whole.reading.info.name, whole.reading.n_tokens) == ("tall", len(PROMPT) + 1)


def test_a_model_that_was_replaced_too_late_stays_if_the_other_does_not_come(
    whole: WholeWindow, tall: Path, opened: threading.Event, tmp_path: Path
) -> None:
    """Not the one before it, which the engine no longer has; nor the other's format."""
    open_unheard(whole, tall, opened)
    missing = tmp_path / "nothing"
    whole.window.wished.emit(OpenModel(missing))
    whole.idle()
    assert str(missing) in whole.window.message_bar.sentence
    assert whole.reading.info.name == "tall"
    assert n_heads(whole) == 3 * 4
    assert whole.state.phase == "ready"
    whole.press("PgDown", whole.editor)
    whole.idle()
    assert (whole.reading.info.name, whole.reading.n_tokens) == ("tall", len(PROMPT) + 1)


def test_a_format_whose_opening_was_stopped_can_be_asked_for_again(
    whole: WholeWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = threading.Event()
    edit = Scope.edit

    def wait(scope: Scope, *rest: Any) -> Any:
        assert gate.wait(PATIENCE)
        return edit(scope, *rest)

    monkeypatch.setattr(Scope, "edit", wait)
    whole.window.wished.emit(SetFormat({"number_format": "int8"}))
    whole.press("Esc", whole.window)
    gate.set()
    whole.idle()
    assert whole.reading.info.held.number_format == "float32"
    whole.wish(SetFormat({"number_format": "int8"}))
    assert whole.reading.info.held.number_format == "int8"


@pytest.mark.usefixtures("qapp")
def test_a_first_model_that_is_stopped_leaves_an_empty_window(
    tall: Path, small_model: Path, passes: Passes
) -> None:
    """What was seen of it goes, and the window waits for another one."""
    whole = WholeWindow(model=tall, prompt=PROMPT)
    try:
        wait_until(lambda: whole.app._is_furnished, "the panels that are seen")
        wait_until(lambda: is_seen(whole, "tall", 4), "the first part")
        assert whole.state.phase == "starting"
        focus, selection = whole.reading.focus, whole.state.selection
        assert (focus.layer, focus.head) == (selection.layer, selection.head)
        whole.activate()
        whole.press("Esc", whole.window)
        passes.go_on.set()
        whole.idle()
        assert (whole.state.phase, whole.state.reading) == ("failed", None)
        assert status(whole) == "No model is open; choose one in the File menu."
        assert atlas_of(whole)._sentence == status(whole)
        whole.wish(OpenModel(small_model))
        assert (whole.reading.info.name, whole.reading.n_tokens) == ("small", len(PROMPT))
        assert n_heads(whole) == 2 * 4
    finally:
        whole.close()


@pytest.mark.usefixtures("qapp")
def test_a_head_that_is_clicked_in_the_first_part_stays_selected(
    tall: Path, passes: Passes
) -> None:
    """The head to begin with is chosen once, by the first part."""
    whole = WholeWindow(model=tall, prompt=PROMPT)
    try:
        wait_until(lambda: whole.app._is_furnished, "the panels that are seen")
        wait_until(lambda: is_seen(whole, "tall", 4), "the first part")
        selection = whole.state.selection
        other = (2 - selection.layer, 3 - selection.head)
        atlas = atlas_of(whole)
        rect = atlas.head_rect(*other)
        assert rect is not None
        at = rect.center().toPoint()
        QTest.mouseClick(atlas.viewport(), Qt.MouseButton.LeftButton, pos=at)
        passes.go_on.set()
        whole.idle()
        assert (whole.reading.focus.layer, whole.reading.focus.head) == other
        assert (whole.state.selection.layer, whole.state.selection.head) == other
    finally:
        whole.close()


@pytest.mark.usefixtures("qapp")
def test_a_window_that_is_closed_while_a_part_is_seen_ends_at_once(
    tall: Path, passes: Passes
) -> None:
    whole = WholeWindow(model=tall, prompt=PROMPT)
    wait_until(lambda: whole.app._is_furnished, "the panels that are seen")
    wait_until(lambda: is_seen(whole, "tall", 4), "the first part")
    passes.failure = CancelledError("given up")
    threading.Timer(0.05, passes.go_on.set).start()
    whole.close()
    assert whole.app._engine is not None
    assert whole.app._engine.isFinished()


def test_what_is_shown_does_not_wait_until_matrices_are_packed(
    whole: WholeWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a window that is closed meanwhile waits for one of them at most."""
    begun, go_on = threading.Event(), threading.Event()
    n_packed: list[PackedHalf] = []
    pack = PackedHalf.pack

    def wait(matrix: PackedHalf) -> None:
        begun.set()
        assert go_on.wait(PATIENCE)
        pack(matrix)
        n_packed.append(matrix)

    monkeypatch.setattr(PackedHalf, "pack", wait)
    whole.wish(SetFormat({"number_format": "float16"}))
    assert whole.reading.info.held.number_format == "float16"
    whole.type("a")
    whole.idle()
    assert whole.reading.document.text == f"{PROMPT}a"
    if has_packed("float16"):
        assert begun.wait(PATIENCE)
    threading.Timer(0.05, go_on.set).start()
    whole.close()
    assert len(n_packed) <= 1
    assert not any(thread.name == "packing" for thread in threading.enumerate())
