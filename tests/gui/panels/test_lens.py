"""The logit lens on screen: cells read off, clicked, reached by keys; hidden, it costs nothing."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QColor
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

import engine.scope
from engine.answers.lens import Lens
from engine.conditions import Conditions
from engine.reading import Look, Reading
from engine.scope import Scope
from gui.panels.lens import POST_NORM, WAITING, LensPanel
from gui.state import Display, OpenedLens, Selection
from gui.theme import THEMES, Theme
from gui.widgets.lens_grid import ink_on
from gui.widgets.token_text import display
from gui.wishes import EditText, GoTo, SelectPosition, SetMask, WantLens, Wish
from tests.gui.picture_facts import colours, middle, point_at
from tests.gui.tiny_scope import house, view_of
from tests.gui.whole_window import WholeWindow, wait_until

LEFT = Qt.MouseButton.LeftButton
TEXT = "to be or not"
LETTERS = "abcdefghijklmnopqrstuvwxyz "
OPEN, CLOSE = "'\u2068", "\u2069'"


@pytest.fixture
def make_scope(lettered: Callable[..., Scope]) -> Callable[..., Scope]:
    """`make_scope(norm_placement="post")` has a small random model open on TEXT."""

    def make(text: str = TEXT, **sizes: Any) -> Scope:
        return lettered(text, named=True, narrower=0.6, **{"n_layer": 3, **sizes})

    return make


@pytest.fixture
def scope(make_scope: Callable[..., Scope]) -> Scope:
    """A model of three layers on TEXT."""
    return make_scope()


@pytest.fixture
def in_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """One position at a time, and each is shown."""
    monkeypatch.setattr("engine.answers.lens_pass._NUMBERS", 1)


@pytest.fixture
def panel(window: QWidget) -> LensPanel:
    """A shown panel, wide enough for all of TEXT."""
    widget = LensPanel()
    house(window, widget, 900, 380)
    return widget


def show(panel: LensPanel, scope: Scope, reading: Reading, **fields: Any) -> Lens:
    """What the window does once the lens is there."""
    lens = scope.lens(reading)
    assert lens is not None
    opened = fields.pop("lens", OpenedLens(reading, lens))
    panel.show_view(view_of(reading, lens=opened, wanted=frozenset({WantLens}), **fields))
    QApplication.processEvents()
    return lens


def by_hand(scope: Scope, token_ids: list[int]) -> np.ndarray:
    """Probabilities [L+1, S, V] from residuals caught by torch's hooks, normed here."""
    model, caught = scope._run.model, []
    hooks = [
        next(iter(model.blocks)).register_forward_pre_hook(
            lambda _block, operands: caught.append(operands[0])
        ),
        *(
            block.register_forward_hook(lambda _block, _in, x: caught.append(x))
            for block in model.blocks
        ),
    ]
    with torch.no_grad():
        model(torch.tensor(token_ids))
    for hook in hooks:
        hook.remove()
    x = torch.stack(caught).double()
    if model.config.norm_placement == "pre":
        weight, bias = (model.get_parameter(f"final_norm.{n}").double() for n in ("weight", "bias"))
        x = torch.nn.functional.layer_norm(x, x.shape[-1:], weight, bias, model.config.norm_eps)
    logits = x @ model.embedding.weight.double().T
    return np.asarray(logits.softmax(dim=-1).detach().numpy())


def is_written(shown: str, wanted: str) -> bool:
    """Whether a cell shows a token, whole or as much of it as there is room for."""
    return shown == wanted or (shown.endswith("…") and wanted.startswith(shown[:-1]))


@pytest.fixture
def hand(scope: Scope) -> np.ndarray:
    """TEXT's probabilities; the model has a LayerNorm and a tied output."""
    config = scope.info.config
    assert (config.norm, config.tied_output) == ("layer", True)
    return by_hand(scope, scope.look(Look()).session.token_ids.tolist())


# Numbers


def test_each_cell_is_its_top_token(panel: LensPanel, scope: Scope, hand: np.ndarray) -> None:
    """All depths and positions read off, against hooks and a norm done here."""
    show(panel, scope, scope.look(Look()))
    best = hand.argmax(axis=-1)
    second = np.sort(hand, axis=-1)[..., -2]
    for depth in range(4):
        for position in range(len(TEXT)):
            if hand[depth, position].max() - second[depth, position] > 1e-5:
                wanted = display(scope.info.vocabulary[best[depth, position]])
                assert is_written(panel.grid.cell_text(depth, position), wanted)
    assert panel.grid.positions_in_sight() == range(len(TEXT))
    assert panel.grid.depths_in_sight() == range(4)


def test_pointing_at_a_cell_tells_token_probability_and_the_rank_of_what_follows(
    panel: LensPanel, scope: Scope, hand: np.ndarray
) -> None:
    """Numbers in the sentence, against those worked out here; leaving goes back."""
    reading = scope.look(Look())
    show(panel, scope, reading)
    at_rest = panel.told.text()
    assert at_rest.startswith("After layer 2 = output, position 11 ")
    for depth, name in ((0, "Embedding"), (1, "After layer 0"), (3, "After layer 2 = output")):
        position = 6
        probs = hand[depth, position]
        target = int(reading.session.token_ids[position + 1])
        rank = int((probs > probs[target]).sum()) + 1
        point_at(panel.grid.viewport(), panel.grid.cell_place(depth, position).center())
        said = panel.told.text()
        assert said.startswith(f"{name}, position 6 {OPEN}o{CLOSE}: ")
        told = said.partition("; ")[0].rpartition(" ")[2]
        assert float(told) == pytest.approx(probs.max(), rel=1e-4)
        assert f"{OPEN}{TEXT[7]}{CLOSE}, which follows, has rank {rank}, " in said
        assert float(said.rpartition(", ")[2]) == pytest.approx(probs[target], rel=1e-4)
    point_at(panel.grid.viewport(), QPointF(2, 2))
    assert panel.told.text() == at_rest


def test_at_the_end_of_the_text_the_final_answer_is_followed(
    panel: LensPanel, scope: Scope
) -> None:
    """Nothing follows there, and nothing is said to."""
    lens = show(panel, scope, scope.look(Look()))
    point_at(panel.grid.viewport(), panel.grid.cell_place(0, 11).center())
    assert ", the final answer, has rank " in panel.told.text()
    assert "which follows" not in panel.told.text()
    assert is_written(panel.grid.cell_text(3, 11), display(scope.info.vocabulary[lens.target[11]]))


@pytest.mark.parametrize("theme", THEMES.values(), ids=lambda theme: theme.name)
def test_a_cell_is_shaded_by_its_probability(
    panel: LensPanel, scope: Scope, hand: np.ndarray, theme: Theme
) -> None:
    """Between the ground at 0 and the residual's hue at 1, read off the picture near a corner."""
    show(panel, scope, scope.look(Look(query=0)), display=Display(theme=theme))
    picture = colours(panel.grid.viewport())
    ground, hue = QColor(theme.surface), QColor(theme.residual)
    for depth in range(4):
        for position in range(1, 11):
            place = panel.grid.cell_place(depth, position)
            seen = QColor.fromRgb(int(picture[int(place.top()) + 4, int(place.left()) + 4]))
            share = hand[depth, position].max()
            for part in ("red", "green", "blue"):
                low, high = getattr(ground, part)(), getattr(hue, part)()
                assert getattr(seen, part)() == pytest.approx(low + share * (high - low), abs=2)


def test_letters_stand_out_on_every_shade() -> None:
    """At least 4.5 to 1, the norm for text."""

    def luminance(colour: QColor) -> float:
        parts = [
            p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4
            for p in (colour.redF(), colour.greenF(), colour.blueF())
        ]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    for grey in range(256):
        for ground in (QColor(grey, grey, grey), QColor(grey, 70, 124), QColor(grey, 121, 200)):
            lights = sorted((luminance(ground), luminance(QColor(ink_on(ground)))))
            assert (lights[1] + 0.05) / (lights[0] + 0.05) >= 4.5


@pytest.mark.usefixtures("in_bits")
def test_the_residuals_are_proven_to_end_in_the_output(panel: LensPanel, scope: Scope) -> None:
    """A check with its figure; it fails if the shown pass said something else."""
    reading = scope.look(Look())
    lens = show(panel, scope, reading)
    assert panel.check.verdict == "holds"
    ending = "residuals end in the model's output"
    assert panel.check.text() == f"✓ {ending}: ± {lens.difference:.1g}"
    assert 0 < lens.difference < 1e-5
    wrong = replace(lens, differences=np.full(len(lens), 0.25, np.float32))
    show(panel, scope, reading, lens=OpenedLens(reading, wrong))
    assert panel.check.verdict == "fails"
    assert panel.check.text() == f"✗ {ending}: ± 0.2"
    lost = replace(lens, differences=np.full(len(lens), np.nan, np.float32))
    show(panel, scope, reading, lens=OpenedLens(reading, lost))
    assert panel.check.verdict == "fails"


def test_the_heading_says_from_where_on_the_answer_leads(
    panel: LensPanel, scope: Scope, hand: np.ndarray
) -> None:
    """Against a search from the last depth upwards."""
    best = hand.argmax(axis=-1)
    for position in range(len(TEXT)):
        show(panel, scope, scope.look(Look(query=position)), selection=Selection(query=position))
        depth = 3
        while depth and best[depth - 1, position] == best[3, position]:
            depth -= 1
        froms = [f"from {name} on" for name in ("the embedding", "layer 0", "layer 1")]
        since = [*froms, "only in the output"]
        assert panel.heading.text().startswith(f"After {OPEN}{letter_of(position)}{CLOSE} at pos")
        assert panel.heading.text().endswith(f" leads {since[depth]}")


def letter_of(position: int) -> str:
    """TEXT's, as it is drawn."""
    return TEXT[position].replace(" ", "␣")


def test_the_same_is_said_in_words(panel: LensPanel, scope: Scope, hand: np.ndarray) -> None:
    """All depths of the selected position, for those who do not see the grid."""
    show(panel, scope, scope.look(Look(query=2)), selection=Selection(query=2))
    said = panel.accessibleDescription()
    assert said.startswith("The top token at position 2, space, by depth: embedding: ")
    for depth, name in enumerate(("embedding", "layer 0", "layer 1", "layer 2 = output")):
        share = f"{100 * hand[depth, 2].max():.1f} %"
        (part,) = [each for each in said.split("; ") if f"{name}: " in each]
        assert share in part
    assert panel.check.text() in said


def test_a_model_without_final_norm_says_what_that_means(
    panel: LensPanel, make_scope: Callable[..., Scope]
) -> None:
    """And its cells are those of the bare residual."""
    scope = make_scope(norm_placement="post")
    reading = scope.look(Look())
    lens = show(panel, scope, reading)
    assert panel.note.isVisible()
    assert panel.note.text() == POST_NORM
    hand = by_hand(scope, reading.session.token_ids.tolist())
    assert lens.top_probability == pytest.approx(hand.max(axis=-1), abs=1e-5)
    assert panel.check.verdict == "holds"


# Pointer and keys


def wished_by(panel: LensPanel) -> list[Wish]:
    """What the panel wishes for from now on, but for being answered at all."""
    wished: list[Wish] = []

    def hear(wish: Wish) -> None:
        if not isinstance(wish, WantLens):
            wished.append(wish)

    panel.wished.connect(hear)
    return wished


def test_a_click_selects_the_position(qtbot: QtBot, panel: LensPanel, scope: Scope) -> None:
    """And stays at the depth that was clicked."""
    wished = wished_by(panel)
    show(panel, scope, scope.look(Look()))
    place = panel.grid.cell_place(1, 4).center().toPoint()
    qtbot.mouseClick(panel.grid.viewport(), LEFT, pos=place)
    assert wished == [SelectPosition(4)]
    show(panel, scope, scope.look(Look(query=4)), selection=Selection(query=4))
    assert panel.grid.cell == (1, 4)


def test_keys_move_position_and_depth(qtbot: QtBot, panel: LensPanel, scope: Scope) -> None:
    """Left and right ask, up and down tell another depth, and nothing goes over an edge."""
    wished = wished_by(panel)
    show(panel, scope, scope.look(Look(query=5)), selection=Selection(query=5))
    panel.setFocus()
    for key in (Qt.Key.Key_Left, Qt.Key.Key_Right, Qt.Key.Key_Home, Qt.Key.Key_End):
        qtbot.keyClick(panel.grid, key)
    assert wished == [SelectPosition(at) for at in (4, 6, 0, 11)]
    for key, name in (
        (Qt.Key.Key_Down, "After layer 2 = output,"),
        (Qt.Key.Key_Up, "After layer 1,"),
        (Qt.Key.Key_Up, "After layer 0,"),
        (Qt.Key.Key_Up, "Embedding,"),
        (Qt.Key.Key_Up, "Embedding,"),
        (Qt.Key.Key_Down, "After layer 0,"),
    ):
        qtbot.keyClick(panel.grid, key)
        assert panel.told.text().startswith(f"{name} position 5 ")
    wished.clear()
    show(panel, scope, scope.look(Look(query=0)), selection=Selection(query=0))
    qtbot.keyClick(panel.grid, Qt.Key.Key_Left)
    assert wished == []


@pytest.mark.parametrize("theme", THEMES.values(), ids=lambda theme: theme.name)
def test_the_selected_column_is_framed(panel: LensPanel, scope: Scope, theme: Theme) -> None:
    """In the colour of the selection, at its left edge, and its token is lit."""
    show(
        panel,
        scope,
        scope.look(Look(query=4)),
        selection=Selection(query=4),
        display=Display(theme=theme),
    )
    picture = colours(panel.grid.viewport())
    accent = QColor(theme.accent).rgb()
    for depth in range(4):
        y, _ = middle(panel.grid.cell_place(depth, 4))
        edge = int(panel.grid.cell_place(depth, 4).left())
        assert accent in picture[y, edge - 2 : edge + 3]
        other = int(panel.grid.cell_place(depth, 8).left())
        assert accent not in picture[y, other - 2 : other + 3]
    assert (picture[4, edge + 3 : edge + 9] == accent).all()


# Many positions


@pytest.fixture
def long_scope(make_scope: Callable[..., Scope]) -> Scope:
    """500 positions in a column of a window."""
    text = ("to be or not to be that is the question " * 13)[:500]
    return make_scope(text, max_seq_len=512)


def test_five_hundred_positions_scroll_and_the_selected_one_is_in_sight(
    window: QWidget, panel: LensPanel, long_scope: Scope
) -> None:
    """At first the end; then wherever the selection goes."""
    house(window, panel, 346, 340)
    show(panel, long_scope, long_scope.look(Look()))
    assert 499 in panel.grid.positions_in_sight()
    assert 3 <= len(panel.grid.positions_in_sight()) < 12
    for query in (250, 0, 471):
        show(panel, long_scope, long_scope.look(Look()), selection=Selection(query=query))
        place = panel.grid.cell_place(3, query)
        assert panel.grid.cell_place(0, 0).width() == place.width()
        assert place.left() > 0
        assert place.right() <= panel.grid.viewport().width()
        assert panel.grid.cell_text(3, query)


def test_all_positions_fit_side_by_side_as_shades(
    qtbot: QtBot, window: QWidget, panel: LensPanel, long_scope: Scope
) -> None:
    """No scrolling; where positions share a pixel the most probable shows; pointing still tells."""
    house(window, panel, 346, 340)
    lens = show(panel, long_scope, long_scope.look(Look()), selection=Selection(query=0))
    qtbot.mouseClick(panel.widths.button(1), LEFT)
    grid = panel.grid
    assert grid.positions_in_sight() == range(500)
    assert grid.horizontalScrollBar().maximum() == 0
    assert grid.cell_text(3, 250) == ""
    assert grid.cell_place(0, 499).right() <= grid.viewport().width()
    picture = colours(grid.viewport())
    theme = THEMES["light"]
    low, high = QColor(theme.surface).green(), QColor(theme.residual).green()
    left, wide = grid.cell_place(0, 0).left(), grid.cell_place(0, 0).width()
    for depth in range(4):
        y, _ = middle(grid.cell_place(depth, 0))
        for pixel in range(20, 250, 7):
            share = (QColor.fromRgb(int(picture[y, int(left) + pixel])).green() - low) / (
                high - low
            )
            around = slice(int((pixel - 1) / wide), int((pixel + 2) / wide) + 1)
            near = lens.top_probability[depth, around]
            assert near.min() - 0.02 <= share <= near.max() + 0.02
    wished = wished_by(panel)
    qtbot.mouseClick(grid.viewport(), LEFT, pos=grid.cell_place(2, 300).center().toPoint())
    (wish,) = wished
    assert isinstance(wish, SelectPosition)
    assert wish.query == pytest.approx(300, abs=2)


def test_many_layers_scroll_too(
    window: QWidget, panel: LensPanel, make_scope: Callable[..., Scope]
) -> None:
    """Thirty rows in a low place: the output at first, the embedding by keys."""
    scope = make_scope(n_layer=30)
    house(window, panel, 346, 300)
    show(panel, scope, scope.look(Look()))
    assert 30 in panel.grid.depths_in_sight()
    assert 0 not in panel.grid.depths_in_sight()
    for _ in range(30):
        QTest.keyClick(panel.grid, Qt.Key.Key_Up)
    assert 0 in panel.grid.depths_in_sight()
    assert panel.told.text().startswith("Embedding, position 11 ")


# States


def test_until_the_answer_comes_the_panel_says_so(panel: LensPanel, scope: Scope) -> None:
    """And before there is a text or a model, that."""
    panel.show_view(view_of(None, phase="starting"))
    assert panel.accessibleDescription().endswith("The model is being loaded.")
    reading = scope.look(Look())
    panel.show_view(view_of(reading, wanted=frozenset({WantLens})))
    assert panel.accessibleDescription().endswith(WAITING)
    assert panel.check.isVisible()
    assert "not read yet" in panel.check.text()
    show(panel, scope, reading)
    assert "± " in panel.check.text()
    panel.show_view(view_of(scope.edit(""), wanted=frozenset({WantLens})))
    assert "There is no text yet." in panel.accessibleDescription()
    assert panel.check.isHidden()


def test_what_answers_for_another_text_is_dimmed_until_the_new_comes(
    panel: LensPanel, scope: Scope
) -> None:
    """A longer text, another mask; but not another head or position."""
    reading = scope.look(Look())
    lens = scope.lens(reading)
    opened = OpenedLens(reading, lens)
    show(panel, scope, reading)
    fresh = colours(panel.grid.viewport())
    show(panel, scope, scope.look(Look(1, 2, 11)), lens=opened)
    assert (colours(panel.grid.viewport()) == fresh).all()
    for other in (scope.edit(TEXT + " "), scope.set_conditions(Conditions(mask="none"))):
        panel.show_view(view_of(other, lens=opened, wanted=frozenset({WantLens})))
        place = panel.grid.cell_place(0, 2)
        y, x = int(place.top()) + 4, int(place.left()) + 4
        wait_until(lambda: bool((colours(panel.grid.viewport()) != fresh).any()))
        dimmed = colours(panel.grid.viewport())
        ground = QColor(THEMES["light"].surface).green()
        before, after = (QColor.fromRgb(int(each[y, x])).green() for each in (fresh, dimmed))
        assert before < after < ground


def test_being_seen_is_told(qtbot: QtBot, panel: LensPanel) -> None:
    """After the fact; a panel behind another's tab is not seen."""
    wished: list[Wish] = []
    panel.wished.connect(wished.append)
    panel.hide()
    qtbot.waitUntil(lambda: wished[-1:] == [WantLens(False)])
    panel.show()
    qtbot.waitUntil(lambda: wished[-1:] == [WantLens(True)])
    panel.set_in_front(False)
    qtbot.waitUntil(lambda: wished[-1:] == [WantLens(False)])
    assert len(wished) <= 4


@pytest.mark.usefixtures("in_bits")
def test_positions_that_are_not_read_yet_are_blank_and_say_so(
    panel: LensPanel, scope: Scope
) -> None:
    """Nor are they exported; the selected one is there at once."""
    reading = scope.look(Look(query=4))
    lens = scope.lens(reading, only_some=True)
    assert lens is not None
    opened = OpenedLens(reading, lens)
    show(panel, scope, reading, lens=opened, selection=Selection(query=4))
    assert panel.grid.cell_text(2, 4)
    assert not any(panel.grid.cell_text(2, at) for at in range(12) if at != 4)
    blank = QColor(THEMES["light"].raised).rgb()
    picture = colours(panel.grid.viewport())
    is_blank = [picture[middle(panel.grid.cell_place(1, at))] == blank for at in range(12)]
    assert is_blank == [at != 4 for at in range(12)]
    assert " 1 of 12 positions read; they end in the output: ± " in panel.check.text()
    point_at(panel.grid.viewport(), panel.grid.cell_place(1, 7).center())
    assert panel.told.text() == "Position 7 is being read."
    (table,) = panel.numbers(view_of(reading, lens=opened))
    assert np.asarray(table.columns["position"]).tolist() == [4]
    show(panel, scope, reading, lens=opened, selection=Selection(query=5))
    assert panel.heading.text() == "Position 5 is being read."


# The whole window


class CountedScope(Scope):
    """Counts the lenses it was asked for."""

    count = 0

    def lens(self, *operands: Any, **options: Any) -> Lens | None:
        """As ever."""
        type(self).count += 1
        return super().lens(*operands, **options)


@pytest.fixture(scope="module")
def one_window(qapp: QApplication, small_model: Path) -> Iterator[WholeWindow]:  # noqa: ARG001
    """A window for the tests below."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine.scope, "Scope", CountedScope)
        whole = WholeWindow(model=small_model, prompt=TEXT).start()
        yield whole
        whole.close()


@pytest.fixture
def whole(one_window: WholeWindow) -> WholeWindow:
    """The window on TEXT before every test, with another panel in front."""
    one_window.wish(EditText(TEXT), SetMask({"mask": "causal"}), SelectPosition(None))
    one_window.action("panel_next_token").trigger()
    wait_until(lambda: WantLens not in one_window.state.wanted)
    CountedScope.count = 0
    return one_window


def wait_for_lens(whole: WholeWindow) -> Lens:
    """Until the shown text's lens is there."""
    wait_until(
        lambda: whole.state.lens is not None and whole.state.lens.answers(whole.reading), "the lens"
    )
    QApplication.processEvents()
    assert whole.state.lens is not None
    assert whole.state.lens.lens is not None
    return whole.state.lens.lens


def opened_panel(whole: WholeWindow) -> LensPanel:
    """The panel, once it is seen and has been answered."""
    whole.action("panel_lens").trigger()
    panel = whole.panel("lens")
    assert isinstance(panel, LensPanel)
    wait_until(lambda: panel.is_seen)
    wait_for_lens(whole)
    return panel


def test_a_hidden_panel_asks_for_nothing(whole: WholeWindow) -> None:
    """Not while typing before it is seen, nor after it was left; a selection never asks anew."""
    whole.wish(EditText("to be"), SelectPosition(3), EditText("to bee"))
    assert WantLens not in whole.state.wanted
    assert CountedScope.count == 0
    opened_panel(whole)
    assert CountedScope.count == 1
    whole.wish(SelectPosition(2), SelectPosition(1))
    wait_for_lens(whole)
    assert CountedScope.count == 1
    whole.action("panel_next_token").trigger()
    wait_until(lambda: WantLens not in whole.state.wanted)
    whole.wish(EditText("to be or"))
    assert CountedScope.count == 1
    opened_panel(whole)
    assert CountedScope.count == 2


def test_the_panel_follows_the_text_the_mask_and_the_cursor(whole: WholeWindow) -> None:
    """Whatever is wished one after the other, what is shown in the end is the last one's."""
    panel = opened_panel(whole)
    assert whole.app.controller is not None
    for wish in (EditText("to be a"), SelectPosition(3), SetMask({"mask": "none"}), GoTo(5)):
        whole.app.controller.fulfil(wish)
    whole.idle()
    lens = wait_for_lens(whole)
    assert len(lens) == 5
    assert lens.follows.all()
    assert panel.check.verdict == "holds"
    assert -np.log(lens.target_probability[-1, :-1]) == pytest.approx(
        whole.reading.session.loss[1:], abs=1e-4
    )
    assert panel.grid.positions_in_sight().stop == 5


def read_positions(whole: WholeWindow) -> list[int]:
    """Which positions of the shown text the lens has."""
    opened = whole.state.lens
    if opened is None or opened.lens is None or not opened.answers(whole.reading):
        return []
    return [int(at) for at in np.flatnonzero(opened.lens.known)]


@pytest.mark.usefixtures("in_bits")
def test_a_long_lens_fills_up_around_what_is_selected(whole: WholeWindow) -> None:
    """Each part is shown; another selection goes before the rest; in the end all is there."""
    whole.wish(EditText("question the is that be to not or be to"), SelectPosition(20))
    seen: list[list[int]] = []
    whole.app.store.changed.connect(lambda *_: seen.append(read_positions(whole)))
    whole.action("panel_lens").trigger()
    wait_until(lambda: len(read_positions(whole)) >= 5)
    first = next(each for each in seen if each)
    assert first == [20]
    assert whole.app.controller is not None
    whole.app.controller.fulfil(SelectPosition(2))
    wait_until(lambda: 2 in read_positions(whole))
    assert 10 not in read_positions(whole)
    wait_until(lambda: read_positions(whole) == list(range(whole.reading.n_tokens)), "the rest")
    assert [len(each) for each in seen] == sorted(len(each) for each in seen)


def test_a_click_moves_the_selection_of_the_window(whole: WholeWindow) -> None:
    """The next-token panel then explains that very position."""
    panel = opened_panel(whole)
    position = panel.grid.positions_in_sight()[1]
    place = panel.grid.cell_place(2, position).center().toPoint()
    QTest.mouseClick(panel.grid.viewport(), LEFT, pos=place)
    whole.idle()
    assert whole.state.selection.query == position
    assert whole.reading.position == position
    lens = wait_for_lens(whole)
    assert whole.reading.stages is not None
    probs = whole.reading.stages.plain_probs
    assert lens.top[-1, position] == probs.argmax()
    assert lens.top_probability[-1, position] == pytest.approx(float(probs.max()), abs=1e-4)


def test_an_empty_text_and_back(whole: WholeWindow) -> None:
    panel = opened_panel(whole)
    whole.wish(EditText(""))
    assert "There is no text yet." in panel.accessibleDescription()
    whole.wish(EditText("to be"))
    wait_for_lens(whole)
    assert panel.check.isVisible()
