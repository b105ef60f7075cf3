"""Three states to step through: what may be seen to predict token 3, token 8, and in training."""

from collections.abc import Iterator
from math import exp
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QPushButton, QWidget

from engine.conditions import Conditions
from engine.reading import Look
from engine.scope import Scope
from gui.panels.base import Lead
from gui.panels.windows import WindowsPanel
from gui.state import Selection
from gui.widgets.candidate_text import percent
from gui.windows_state import STATES, Answer, WindowsChoice, WindowsState, asked_by
from gui.wishes import ChooseWindows, EditText, SelectPosition, SetMask, Wish
from tests.gui.picture_facts import middle
from tests.gui.tiny_scope import house, named_scope, view_of
from tests.gui.whole_window import WholeWindow, wait_until

pytestmark = pytest.mark.qt_log_ignore(
    r"does not support (raise\(\)|grabbing the keyboard)", extend=True
)

TEXT = "the cat saw it"
LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
def panel(window: QWidget) -> WindowsPanel:
    """A shown panel with room for everything."""
    widget = WindowsPanel()
    house(window, widget, 900, 390)
    return widget


def show(panel: WindowsPanel, scope: Scope, at: int = 0, look: Look = Look()) -> Any:  # noqa: B008
    """What the window does once the engine has answered, in one of the states."""
    choice, reading = WindowsChoice(page="visible", state=at), scope.look(look)
    (asked,) = asked_by(reading, choice)
    found = scope.visibility(reading)
    answer = Answer(asked, reading, asked.token_ids, reading.document.tokens, visibility=found)
    state = WindowsState(choice=choice, answers=(answer,))
    selection = Selection(layer=look.layer, head=look.head)
    panel.show_view(view_of(reading, windows=state, selection=selection))
    QApplication.processEvents()
    return found


def button(panel: WindowsPanel, title: str) -> QPushButton:
    """One of the page's buttons."""
    (found,) = (each for each in panel.findChildren(QPushButton) if each.text() == title)
    return found


@pytest.mark.parametrize(("at", "number"), [(0, 3), (1, 8)])
def test_only_what_stands_before_a_token_can_be_seen(
    panel: WindowsPanel, at: int, number: int
) -> None:
    show(panel, named_scope(TEXT), at)
    table = panel.visible.table
    seen, cost, weights = table.strips
    assert seen.held is not None
    assert seen.held.tolist() == [1] * (number - 1) + [0] * (len(TEXT) - number + 1)
    said = f"predict token {number}: tokens 1 to {number - 1} can be seen, nothing after"
    assert seen.wordings[0] == said
    assert list(seen.texts) == ["may be seen"] * (number - 1) + ["hidden"] * (
        len(TEXT) - number + 1
    )
    assert (table.query, table.mark) == (number - 2, number - 1)
    assert [at for at, text in enumerate(cost.texts) if text] == [number - 1]
    assert all(weights.texts[: number - 1])
    assert not any(weights.texts[number - 1 :])


def test_the_prediction_and_the_weights_are_the_models_own(panel: WindowsPanel) -> None:
    """Against a scope that looks from that position."""
    show(panel, named_scope(TEXT), 1, Look(1, 2))
    looking = named_scope(TEXT).look(Look(1, 2, 6))
    loss = float(looking.session.loss[7])
    _seen, cost, weights = panel.visible.table.strips
    assert cost.texts[7] == f"{loss:.2f}"
    assert weights.wordings[0].startswith("layer 1, head 2: where token 7 looks")
    assert list(weights.texts[:7]) == [f"{each:.2f}" for each in looking.focus.weights[6, :7]]
    logits = looking.stages.logits.astype(float)
    probs = np.exp(logits - logits.max())
    probs /= probs.sum()
    told = panel.visible.told.text()
    assert f"{percent(float(probs.max()))}, " in told
    assert "as token 8, at position 7." in told
    assert f"stands there: {percent(exp(-loss))}, {loss:.2f} nats." in told


def test_that_nothing_after_was_used_is_measured(panel: WindowsPanel) -> None:
    """And with the mask off it is said that it was."""
    scope = named_scope(TEXT)
    found = show(panel, scope)
    said = panel.visible.proof.text()
    assert said.startswith("✓ A pass over tokens 1 to 2 alone predicts the same")
    assert f"by more than {found.predictions[0].apart:.1e}." in said
    assert said in panel.accessibleDescription()
    scope.set_conditions(Conditions(mask="none"))
    found = show(panel, scope)
    said = panel.visible.proof.text()
    assert said.startswith("✗ A pass over tokens 1 to 2 alone predicts something else")
    assert f"by up to {found.predictions[0].apart:.2g}. What stands from token 3 on" in said
    assert "all 14 can be seen" in panel.visible.table.strips[0].wordings[0]
    show(panel, scope, 2)
    assert "the answer leaks" in panel.visible.told.text()
    assert panel.visible.proof.text().startswith("✗ ")


def test_in_training_all_positions_predict_at_once(panel: WindowsPanel) -> None:
    scope = named_scope(TEXT)
    show(panel, scope, STATES.index(None))
    losses, counts = panel.visible.table.strips
    session = named_scope(TEXT).look(Look()).session
    assert list(losses.texts[1:]) == [f"{each:.2f}" for each in session.loss[1:]]
    assert losses.wordings[0].startswith("training: 13 predictions in one pass")
    assert losses.sight is not None
    np.testing.assert_array_equal(losses.sight.seen, np.tri(14, dtype=bool))
    assert list(counts.texts) == ["", *map(str, range(1, 14))]
    mean = f"{float(session.loss[1:].mean()):.3f} nats per token"
    assert mean in panel.visible.told.text()
    assert "tokens 3 and 8 alone predict the same" in panel.visible.proof.text()
    assert [figure.name for figure in panel.figures()] == ["mean loss in nats"]


def test_states_are_stepped_through_by_the_keyboard(
    panel: WindowsPanel, wishes: list[Wish]
) -> None:
    """The whole window looks from the position that predicts; in training, from the end again."""
    for at in range(3):
        show(panel, named_scope(TEXT), at)
        QTest.keyClick(panel.visible.following, Qt.Key.Key_Space)
    assert wishes == [
        ChooseWindows({"state": 1}),
        SelectPosition(6),
        ChooseWindows({"state": 2}),
        SelectPosition(None),
        ChooseWindows({"state": 0}),
        SelectPosition(1),
    ]
    wishes.clear()
    QTest.mouseClick(button(panel, "Predict token 8"), LEFT)
    y, x = middle(panel.visible.table.cell_place(1, 4))
    QTest.mouseClick(panel.visible.table.viewport(), LEFT, pos=QPoint(x, y))
    assert wishes == [ChooseWindows({"state": 1}), SelectPosition(6), SelectPosition(4)]


def test_a_text_that_is_too_short_says_how_many_tokens_it_needs(
    panel: WindowsPanel, wishes: list[Wish]
) -> None:
    show(panel, named_scope("the"), 1)
    sentence = "The text has 3 tokens; token 8 needs 7 before it. Type some more."
    assert panel.visible.table.accessibleDescription() == sentence
    assert sentence in panel.accessibleDescription()
    QTest.mouseClick(button(panel, "Predict token 8"), LEFT)
    assert wishes == [ChooseWindows({"state": 1})]
    show(panel, named_scope("t"), 2)
    assert "there is nothing to predict yet" in panel.visible.told.text()


def test_the_token_behind_the_text_is_predicted_too(panel: WindowsPanel) -> None:
    show(panel, named_scope("th"))
    assert panel.visible.table.mark is None
    assert "Token 3 is not written yet." in panel.visible.told.text()
    assert "nan" not in panel.accessibleDescription()


def test_the_page_leads_to_reading_one_by_one(panel: WindowsPanel) -> None:
    show(panel, named_scope(TEXT), 2)
    led: list[Lead] = []
    panel.lead_wanted.connect(led.append)
    QTest.keyClick(button(panel, "One by one …"), Qt.Key.Key_Space)
    assert [lead.panel for lead in led] == ["two_ways"]
    assert panel.leads() == tuple(led)


def test_its_numbers_are_those_that_were_measured(panel: WindowsPanel) -> None:
    found = show(panel, named_scope(TEXT))
    assert panel.drawn is not None
    tables = {table.name: table.columns for table in panel.numbers(panel.drawn)}
    np.testing.assert_array_equal(np.asarray(tables["tokens"]["nats"]), found.loss)
    seen = np.asarray(tables["tokens"]["seen"])
    np.testing.assert_array_equal(seen.sum(axis=0), [2, 7])
    losses = np.asarray(tables["predictions"]["nats"])
    np.testing.assert_array_equal(losses, found.loss[[2, 7]])
    assert [figure.digits for figure in panel.figures()] == [
        str(found.loss[2]),
        str(np.float32(found.predictions[0].apart)),
    ]


# The whole window


@pytest.fixture
def whole(qapp: QApplication, small_model: Path) -> Iterator[WholeWindow]:  # noqa: ARG001
    """The program with a small model, open on TEXT."""
    window = WholeWindow(model=small_model, prompt=TEXT).start()
    yield window
    window.close()


def test_stepping_moves_the_whole_window_and_follows_text_and_mask(whole: WholeWindow) -> None:
    """The next token's panel is that of the position that predicts."""
    whole.window.go_to_panel("windows")
    panel = whole.panel("windows")
    assert isinstance(panel, WindowsPanel)
    QTest.mouseClick(button(panel, "Visible"), LEFT)
    wait_until(lambda: panel.visible.table.strips, "strips")
    assert panel.visible.table.query == 1
    QTest.mouseClick(panel.visible.following, LEFT)
    wait_until(lambda: whole.reading.position == 6, "the window to look from token 7")
    wait_until(lambda: panel.visible.table.query == 6, "the state")
    QTest.mouseClick(panel.visible.following, LEFT)
    wait_until(lambda: whole.reading.position == len(TEXT) - 1, "the end of the text")
    whole.wish(SetMask({"mask": "none"}))
    wait_until(lambda: panel.visible.proof.text().startswith("✗"), "what the mask did")
    whole.wish(SetMask({"mask": "causal"}), EditText(f"{TEXT} on"))
    wait_until(lambda: panel.visible.proof.text().startswith("✓"), "the mask again")
    wait_until(lambda: len(panel.visible.table.strips[0].texts) == len(TEXT) + 3, "the longer text")
