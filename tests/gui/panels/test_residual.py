"""Where it goes on screen: numbers read off, clicked, reached by keys; hidden, it costs nothing."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QColor, QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

import engine.scope
from engine.answers.residual import Stream, next_token, top_token
from engine.conditions import Conditions
from engine.reading import Look, Reading
from engine.scope import Scope
from engine.tokenizers import Characters
from gui.panels.residual import POST_NORM, WAITING, ResidualPanel
from gui.state import Display, OpenedResidual, Selection
from gui.theme import THEMES, Theme
from gui.widgets.arithmetic_stages import exact
from gui.widgets.stream_table import length_text, signed
from gui.wishes import (
    EditText,
    Follow,
    GoTo,
    OpenModel,
    SelectHead,
    SelectPosition,
    SetMask,
    WantResidual,
    Wish,
)
from tests.gui.picture_facts import colours, middle, point_at
from tests.gui.tiny_scope import house, view_of
from tests.gui.whole_window import WholeWindow, wait_until

LEFT = Qt.MouseButton.LeftButton
TEXT = "to be or not"
LETTERS = "abcdefghijklmnopqrstuvwxyz "
WIDE, NARROW = (1000, 700), (350, 700)


@pytest.fixture
def make_scope(lettered: Callable[..., Scope]) -> Callable[..., Scope]:
    """`make_scope(norm_placement="post")` has a small random model open on TEXT."""

    def make(**sizes: Any) -> Scope:
        return lettered(TEXT, named=True, **{"n_layer": 3, **sizes})

    return make


@pytest.fixture
def scope(make_scope: Callable[..., Scope]) -> Scope:
    """A model of three layers with four heads on TEXT."""
    return make_scope()


@pytest.fixture
def panel(window: QWidget) -> ResidualPanel:
    """A shown panel with room for both kinds of bars."""
    widget = ResidualPanel()
    house(window, widget, *WIDE)
    return widget


def opened_at(scope: Scope, reading: Reading, token_id: int | None = None) -> OpenedResidual:
    """What the controller asks for: the token that follows, or else the most probable."""
    if token_id is None:
        token_id = next_token(reading)
        token_id = top_token(reading) if token_id is None else token_id
    assert token_id is not None
    stream, attribution = scope.residual(reading, token_id) or (None, None)
    return OpenedResidual(reading, token_id, stream, attribution)


def show(panel: ResidualPanel, scope: Scope, look: Look | None = None, **fields: Any) -> Stream:
    """What the window does once the answer is there."""
    look = look or Look(layer=1, head=2)
    reading = scope.look(look)
    opened = fields.pop("residual", None) or opened_at(scope, reading, fields.get("followed"))
    selection = Selection(look.layer, look.head, look.query)
    panel.show_view(
        view_of(
            reading,
            residual=opened,
            wanted=frozenset({WantResidual}),
            selection=selection,
            **fields,
        )
    )
    QApplication.processEvents()
    assert opened.stream is not None
    return opened.stream


def by_hand(scope: Scope, position: int, token_id: int) -> SimpleNamespace:
    """Lengths and shares of a pre-norm LayerNorm model, from what torch's hooks catch."""
    model, caught = scope._run.model, []
    hooks = []
    for block in model.blocks:
        hooks += [
            block.attention.output.register_forward_pre_hook(
                lambda _module, operands: caught.append(operands[0][position].double())
            ),
            block.attention.register_forward_hook(
                lambda _module, _in, out: caught.append(out[position].double())
            ),
            block.mlp.register_forward_hook(
                lambda _module, _in, out: caught.append(out[position].double())
            ),
            block.register_forward_hook(
                lambda _module, _in, out: caught.append(out[position].double())
            ),
        ]
    ids = torch.from_numpy(scope.look(Look()).session.token_ids.copy())
    with torch.no_grad():
        logits = model(ids)[position].double()
    for hook in hooks:
        hook.remove()
    config, end = model.config, caught[-1]
    weight, bias = (
        model.get_parameter(f"final_norm.{name}").double() for name in ("weight", "bias")
    )
    row = model.embedding.weight[token_id].double()
    scale = (end.var(unbiased=False) + config.norm_eps).sqrt()

    def share(part: torch.Tensor) -> float:
        return float((part - part.mean()) / scale * weight @ row)

    hand = SimpleNamespace(attention=[], heads=[], mlp=[], logits=logits.numpy())
    hand.norm_bias = float(bias @ row)
    for layer, block in enumerate(model.blocks):
        mix, attention, mlp, _after = caught[4 * layer : 4 * layer + 4]
        matrix = block.attention.output.weight.double()
        size = config.head_dim
        heads = [
            matrix[:, head * size : (head + 1) * size] @ mix[head * size : (head + 1) * size]
            for head in range(config.n_head)
        ]
        hand.attention.append((float(attention.norm()), share(attention)))
        hand.heads.append([(float(head.norm()), share(head)) for head in heads])
        hand.mlp.append((float(mlp.norm()), share(mlp)))
    return hand


# Numbers


def test_each_row_says_what_its_part_added(panel: ResidualPanel, scope: Scope) -> None:
    """All layers, the open one's heads, against hooks and a norm done here."""
    reading = scope.look(Look(query=5))
    token_id = next_token(reading)
    assert token_id is not None
    hand = by_hand(scope, 5, token_id)
    for opened in range(3):
        show(panel, scope, Look(opened, 2, 5))
        rows = {row.key: row for row in panel.view.rows()}
        for layer in range(3):
            wanted = {("attention", layer, -1): hand.attention[layer]}
            wanted[("mlp", layer, -1)] = hand.mlp[layer]
            if layer == opened:
                wanted |= {("head", layer, h): hand.heads[layer][h] for h in range(4)}
            for key, (length, share) in wanted.items():
                assert rows[key].length == pytest.approx(length, rel=1e-4)
                assert rows[key].share == pytest.approx(share, abs=1e-4)
        assert rows["final norm", -1, -1].share == pytest.approx(hand.norm_bias, abs=1e-5)
        assert rows["logit", -1, -1].share == pytest.approx(hand.logits[token_id], abs=1e-4)
        assert ("head", (opened + 1) % 3, 0) not in rows


def test_bars_are_as_long_as_their_numbers_say(panel: ResidualPanel, scope: Scope) -> None:
    """Lengths on one scale from the left, shares on one to both sides of the middle."""
    show(panel, scope)
    rows = [row for row in panel.view.rows() if row.length is not None and row.kind != "after"]
    lengths = {row.key: panel.view.length_bar(row.key) for row in rows}
    longest = max(rows, key=lambda row: row.length or 0)
    for row in rows:
        share = (row.length or 0) / (longest.length or 1)
        assert lengths[row.key].width() == pytest.approx(share * lengths[longest.key].width())
        assert lengths[row.key].left() == lengths[longest.key].left()
    per_unit = {panel.view.share_bar(row.key).width() / abs(row.share) for row in rows if row.share}
    assert max(per_unit) == pytest.approx(min(per_unit))
    rights = {round(panel.view.share_bar(r.key).left(), 3) for r in rows if (r.share or 0) > 0}
    lefts = {round(panel.view.share_bar(r.key).right(), 3) for r in rows if (r.share or 0) < 0}
    assert rights == lefts
    assert len(rights) == 1


@pytest.mark.parametrize("theme", THEMES.values(), ids=lambda theme: theme.name)
def test_bars_are_drawn_in_the_residuals_hue_and_in_two_hues_by_sign(
    panel: ResidualPanel, scope: Scope, theme: Theme
) -> None:
    """Read off the picture; what is for the logit is warmer than what is against it."""
    show(panel, scope, display=Display(theme=theme))
    picture = colours(panel.view.viewport())
    signs: dict[bool, list[int]] = {True: [], False: []}
    for row in panel.view.rows():
        if row.layer >= 0 and row.length is not None and row.kind != "after":
            bar = panel.view.length_bar(row.key)
            if bar.bottom() < panel.view.viewport().height() and bar.width() > 6:
                assert picture[middle(bar)] == QColor(theme.residual).rgb()
            share = panel.view.share_bar(row.key)
            if share.bottom() < panel.view.viewport().height() and share.width() > 6:
                colour = QColor.fromRgb(int(picture[middle(share)]))
                signs[(row.share or 0) > 0].append(colour.red() - colour.blue())
    assert signs[True]
    assert signs[False]
    assert min(signs[True]) > 0 > max(signs[False])


def test_the_heading_tells_rank_logit_and_probability(panel: ResidualPanel, scope: Scope) -> None:
    """Of the token that follows, of the most probable, and of one that was chosen."""
    reading = scope.look(Look(query=5))
    follows = next_token(reading)
    assert follows is not None
    logits = by_hand(scope, 5, follows).logits
    probs = np.exp(logits) / np.exp(logits).sum()
    for followed, token_id, why in (
        ("next", follows, "follows in the text"),
        ("top", int(logits.argmax()), "most probable"),
        (7, 7, "chosen"),
    ):
        show(
            panel,
            scope,
            Look(1, 2, 5),
            residual=opened_at(scope, reading, token_id),
            followed=followed,
        )
        said = panel.heading.text()
        rank = int((logits > logits[token_id]).sum()) + 1
        assert said.startswith("After '\u2068␣\u2069' at position 5: ")
        assert f"rank {rank} · logit {logits[token_id]:.2f}".replace("-", "−") in said
        assert f"{100 * probs[token_id]:.1f} %" in said or probs[token_id] < 0.001
        assert said.endswith(why)


def test_a_narrow_heading_leaves_the_rank_out_and_cuts_no_number(
    panel: ResidualPanel, scope: Scope
) -> None:
    """The logit is what the parts below add up to."""
    reading = scope.look(Look(query=5))
    top = int(by_hand(scope, 5, 0).logits.argmax())
    show(panel, scope, Look(1, 2, 5), residual=opened_at(scope, reading, top), followed="top")
    panel.heading.setFixedWidth(panel.heading.fontMetrics().horizontalAdvance("n" * 26))
    said = panel.heading.shown()
    assert "rank" not in said
    assert re.search(r" · logit −?\d+\.\d+ · [\d.]+ %$", said)


def test_the_sum_is_proven_to_be_the_models_logit(panel: ResidualPanel, scope: Scope) -> None:
    """Both are said, and the largest difference; it fails if the shown pass said another."""
    stream = show(panel, scope)
    reading = scope.look(Look(1, 2))
    opened = opened_at(scope, reading)
    assert opened.attribution is not None
    logit = f"{by_hand(scope, 11, opened.token_id).logits[opened.token_id]:.4f}"
    assert panel.check.verdict == "holds"
    assert panel.check.text().startswith(
        f"✓ parts sum to {logit}, the model's logit is {logit}, largest difference: "
    )
    wrong = replace(opened, stream=replace(stream, difference=0.25))
    show(panel, scope, residual=wrong)
    assert panel.check.verdict == "fails"
    assert panel.check.text().endswith(": ≤ 2e-01")
    show(panel, scope, residual=replace(opened, stream=replace(stream, difference=np.nan)))
    assert panel.check.verdict == "fails"


def test_pointing_at_a_row_tells_all_digits(panel: ResidualPanel, scope: Scope) -> None:
    """Of length, cosine and share; leaving goes back to the current row."""
    reading = scope.look(Look(1, 2))
    opened = opened_at(scope, reading)
    stream, shares = opened.stream, opened.attribution
    assert stream is not None
    assert shares is not None
    show(panel, scope, residual=opened)
    at_rest = panel.told.text()
    assert at_rest.startswith("Head 2 of layer 1: ")
    point_at(panel.view.viewport(), panel.view.row_place(("mlp", 2, -1)).center())
    said = panel.told.text()
    assert said.startswith(f"The MLP of layer 2: length {exact(stream.mlp.lengths[2])}, ")
    assert f"cosine {exact(stream.mlp.cosines[2])} with the final residual" in said
    assert f"adds {exact(shares.mlp[2])} to the logit of '" in said
    point_at(panel.view.viewport(), QPointF(2, 2))
    assert panel.told.text() == at_rest


def test_the_residuals_length_is_told_after_every_layer(panel: ResidualPanel, scope: Scope) -> None:
    """Where a layer is open, in a row of its own."""
    for layer in range(3):
        stream = show(panel, scope, Look(layer, 0))
        (row,) = [row for row in panel.view.rows() if row.kind == "after"]
        assert row.layer == layer
        assert row.length == stream.residual.lengths[layer + 1]
        mlp = next(each for each in panel.view.rows() if each.key == ("mlp", layer, -1))
        assert (mlp.before, mlp.after) == tuple(stream.residual.lengths[layer : layer + 2])


def test_the_largest_shares_are_named(panel: ResidualPanel, scope: Scope) -> None:
    """The three parts that matter most for this logit, each head by itself."""
    reading = scope.look(Look(query=5))
    token_id = next_token(reading)
    assert token_id is not None
    hand = by_hand(scope, 5, token_id)
    show(panel, scope, Look(1, 2, 5))
    parts = {f"L{i} MLP": hand.mlp[i][1] for i in range(3)}
    parts |= {f"L{i} head {h}": hand.heads[i][h][1] for i in range(3) for h in range(4)}
    named = re.findall(r"(L\d (?:head \d|MLP)) ([+−][\d.]+)", panel.most.text())
    assert named
    for name, number in named:
        assert number == signed(parts[name])
    smallest = min(abs(parts[name]) for name, _ in named)
    others = [share for name, share in parts.items() if name not in dict(named)]
    assert smallest >= max(map(abs, others)) or len(named) < 3


def test_the_same_is_said_in_words(panel: ResidualPanel, scope: Scope) -> None:
    stream = show(panel, scope)
    said = panel.accessibleDescription()
    assert said.startswith(panel.heading.text())
    lengths = [length_text(float(stream.residual.lengths[at])) for at in (0, -1)]
    assert f"The residual's length goes from {lengths[0]} to {lengths[1]}" in said
    assert panel.check.text() in said
    assert panel.view.accessibleDescription() == panel.told.text()


def test_the_numbers_are_copied_with_all_digits(panel: ResidualPanel, scope: Scope) -> None:
    """All layers' heads, also of those that are not open; Ctrl+C."""
    opened = opened_at(scope, scope.look(Look(1, 2)))
    show(panel, scope, residual=opened)
    panel.window().activateWindow()
    wait_until(panel.window().isActiveWindow)
    panel.view.setFocus()
    QTest.keyClick(panel.view, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    copied = QGuiApplication.clipboard().text()
    assert opened.stream is not None
    assert opened.attribution is not None
    for layer in range(3):
        for head in range(4):
            numbers = (
                opened.stream.heads.lengths[layer, head],
                opened.stream.heads.cosines[layer, head],
                opened.attribution.heads[layer, head],
            )
            line = "\t".join((f"Head {head} of layer {layer}", *map(exact, numbers)))
            assert line in copied.splitlines()
    assert copied.count("The token's embedding") == 1
    assert f"Sum\t\t\t{exact(opened.attribution.total)}" in copied


# The model as it is


def chains(panel: ResidualPanel) -> list[tuple[str, ...]]:
    """The boxes of the open block, from top to bottom."""
    return [row.boxes[0] for row in panel.view.rows() if row.boxes]


def kinds(panel: ResidualPanel) -> list[str]:
    """What the open block's rows are, heads left out."""
    rows = [row for row in panel.view.rows() if row.layer == 1 and row.kind != "head"]
    return [row.kind for row in rows]


@pytest.mark.parametrize(
    ("sizes", "attention", "mlp"),
    [
        ({}, ("LayerNorm", "attention: {heads}"), ("LayerNorm", "MLP: GELU, 64 wide")),
        (
            {"norm": "rms", "mlp": "gated", "activation": "silu", "norm_placement": "both"},
            ("RMSNorm", "attention: {heads}", "RMSNorm"),
            ("RMSNorm", "gated MLP: SiLU, 64 wide", "RMSNorm"),
        ),
        (
            {"norm": "rms", "norm_placement": "output", "activation": "relu"},
            ("attention: {heads}", "RMSNorm"),
            ("MLP: ReLU, 64 wide", "RMSNorm"),
        ),
        ({"norm_placement": "post"}, ("attention: {heads}",), ("MLP: GELU, 64 wide",)),
    ],
)
def test_the_block_is_drawn_as_the_model_has_it(
    panel: ResidualPanel,
    make_scope: Callable[..., Scope],
    sizes: dict[str, Any],
    attention: tuple[str, ...],
    mlp: tuple[str, ...],
) -> None:
    """Norms before or after a part, or in the stream; what the MLP is."""
    scope = make_scope(**sizes)
    show(panel, scope)
    heads = "4 heads on 2 key/value heads, rotary positions"
    assert chains(panel) == [tuple(text.format(heads=heads) for text in attention), mlp]
    in_stream = {"attention norm", "mlp norm"} & set(kinds(panel))
    is_post = sizes.get("norm_placement") == "post"
    assert bool(in_stream) == is_post
    labels = [row.label for row in panel.view.rows() if row.kind == "final norm"]
    assert labels == ([] if is_post else [f"final {attention[0] if not sizes else 'RMSNorm'}"])


def test_the_parts_stand_in_the_order_in_which_the_model_has_them(
    panel: ResidualPanel, make_scope: Callable[..., Scope]
) -> None:
    """One after the other; in a parallel block both read before either adds."""
    show(panel, make_scope())
    order = ["attention boxes", "attention", "bias", "mlp boxes", "mlp", "after"]
    assert kinds(panel) == order
    show(panel, make_scope(parallel_residual=True))
    assert kinds(panel) == ["attention boxes", "mlp boxes", "attention", "bias", "mlp", "after"]
    show(panel, make_scope(norm_placement="post"))
    assert kinds(panel) == [
        "attention boxes",
        "attention",
        "bias",
        "attention norm",
        "mlp boxes",
        "mlp",
        "mlp norm",
        "after",
    ]


def test_ends_windows_and_positions_are_drawn_as_the_model_has_them(
    panel: ResidualPanel, make_scope: Callable[..., Scope]
) -> None:
    """A position's part only where one is added; tied or not; a layer's own window."""
    show(panel, make_scope(positions="learned", windows=(0, 5, 0)))
    first, second, *_, last = panel.view.rows()
    assert (first.kind, second.kind) == ("token", "place")
    assert last.label == "logits, tied"
    assert chains(panel)[0][1].endswith(", learned positions, window 5")
    show(panel, make_scope(tied_output=False))
    first, second, *_, last = panel.view.rows()
    assert (first.kind, second.kind) == ("token", "attention")
    assert last.label == "logits"
    point_at(panel.view.viewport(), panel.view.row_place(("logit", -1, -1)).center())
    assert "a matrix of its own" in panel.told.text()


def test_a_post_norm_model_shows_no_shares_and_says_why(
    panel: ResidualPanel, make_scope: Callable[..., Scope]
) -> None:
    """Lengths are true there too."""
    show(panel, make_scope(norm_placement="post"))
    assert panel.note.isVisible()
    assert panel.note.text() == POST_NORM
    assert not panel.most.isVisible()
    assert all(row.share is None for row in panel.view.rows())
    assert panel.view.share_bar(("mlp", 1, -1)).isEmpty()
    assert panel.view.length_bar(("mlp", 1, -1)).width() > 1
    assert not any(button.isVisible() for button in panel.measures.buttons())
    assert panel.check.verdict == "holds"
    assert "adds" not in panel.told.text()


def test_a_capped_logit_is_taken_apart_before_the_cap(
    panel: ResidualPanel, make_scope: Callable[..., Scope]
) -> None:
    """And both numbers are said."""
    scope = make_scope(logit_cap=3.0)
    reading = scope.look(Look(1, 2))
    show(panel, scope)
    assert reading.stages is not None
    capped = float(reading.stages.logits.max())
    before = 3 * np.arctanh(capped / 3)
    assert "±3" in panel.note.text()
    assert f"before that, {before:.2f}; after it {capped:.2f}" in panel.note.text()
    assert panel.view.rows()[-1].share == pytest.approx(before, abs=1e-3)
    assert panel.check.verdict == "holds"


# Pointer and keys


def wished_by(panel: ResidualPanel) -> list[Wish]:
    """What the panel wishes for from now on, but for being answered at all."""
    wished: list[Wish] = []

    def hear(wish: Wish) -> None:
        if not isinstance(wish, WantResidual):
            wished.append(wish)

    panel.wished.connect(hear)
    return wished


def click(qtbot: QtBot, panel: ResidualPanel, key: tuple[Any, int, int]) -> None:
    place = panel.view.row_place(key).center().toPoint()
    qtbot.mouseClick(panel.view.viewport(), LEFT, pos=place)


def test_a_click_selects_a_head_or_opens_a_layer(
    qtbot: QtBot, panel: ResidualPanel, scope: Scope
) -> None:
    """The layer with the head of the same number."""
    wished = wished_by(panel)
    show(panel, scope)
    click(qtbot, panel, ("head", 1, 3))
    click(qtbot, panel, ("attention", 0, -1))
    click(qtbot, panel, ("mlp", 2, -1))
    click(qtbot, panel, ("token", -1, -1))
    assert wished == [SelectHead(1, 3), SelectHead(0, 2), SelectHead(2, 2)]


def test_keys_move_among_rows_choose_and_open_layers(
    qtbot: QtBot, panel: ResidualPanel, scope: Scope
) -> None:
    """And stop at both ends; Page Up and Down are the clicker's."""
    wished = wished_by(panel)
    show(panel, scope)
    panel.setFocus()
    view = panel.view
    for key, start in (
        (Qt.Key.Key_Down, "Head 3 of layer 1"),
        (Qt.Key.Key_Down, "Attention's bias of layer 1"),
        (Qt.Key.Key_Up, "Head 3 of layer 1"),
        (Qt.Key.Key_Home, "The token's embedding"),
        (Qt.Key.Key_Up, "The token's embedding"),
        (Qt.Key.Key_Down, "Attention of layer 0, all heads"),
        (Qt.Key.Key_End, "All parts of the logit"),
        (Qt.Key.Key_Down, "All parts of the logit"),
    ):
        qtbot.keyClick(view, key)
        assert panel.told.text().startswith(start)
    qtbot.keyClick(view, Qt.Key.Key_Home)
    qtbot.keyClick(view, Qt.Key.Key_Down)
    qtbot.keyClick(view, Qt.Key.Key_Return)
    qtbot.keyClick(view, Qt.Key.Key_Left)
    qtbot.keyClick(view, Qt.Key.Key_Right)
    assert wished == [SelectHead(0, 2), SelectHead(0, 2), SelectHead(2, 2)]
    wished.clear()
    show(panel, scope, Look(0, 1))
    qtbot.keyClick(view, Qt.Key.Key_Left)
    qtbot.keyClick(view, Qt.Key.Key_PageDown)
    assert wished == []


def test_the_selected_head_is_framed(panel: ResidualPanel, scope: Scope) -> None:
    """In the colour of the selection."""
    show(panel, scope)
    picture = colours(panel.view.viewport())
    accent = QColor(THEMES["light"].accent).rgb()
    for head in range(4):
        place = panel.view.row_place(("head", 1, head))
        lines = picture[int(place.top()) : int(place.top()) + 2, 300]
        assert (accent in lines) == (head == 2)


def test_in_a_narrow_place_the_buttons_choose_which_bars(
    qtbot: QtBot, window: QWidget, panel: ResidualPanel, scope: Scope
) -> None:
    """In a wide one both are there and the choice is not."""
    show(panel, scope)
    key = ("mlp", 1, -1)
    assert panel.view.length_bar(key).width() > 1
    assert panel.view.share_bar(key).width() > 1
    assert not any(button.isVisible() for button in panel.measures.buttons())
    house(window, panel, *NARROW)
    QApplication.processEvents()
    assert all(button.isVisible() for button in panel.measures.buttons())
    assert panel.view.length_bar(key).width() > 1
    assert panel.view.share_bar(key).isEmpty()
    qtbot.mouseClick(panel.measures.button(1), LEFT)
    assert panel.view.length_bar(key).isEmpty()
    assert panel.view.share_bar(key).width() > 1


# Choosing a token


def test_a_token_is_found_by_typing(panel: ResidualPanel, scope: Scope) -> None:
    """Ctrl+F goes to the field; Enter wishes for the token; the rows have the keyboard again."""
    wished = wished_by(panel)
    show(panel, scope)
    panel.window().activateWindow()
    wait_until(panel.window().isActiveWindow)
    panel.view.setFocus()
    QTest.keyClick(panel.view, Qt.Key.Key_F, Qt.KeyboardModifier.ControlModifier)
    assert QApplication.focusWidget() is panel.search
    QTest.keyClicks(panel.search, "q")
    QTest.keyClick(panel.search, Qt.Key.Key_Return)
    (wish,) = wished
    assert isinstance(wish, Follow)
    assert isinstance(wish.token, int)
    q = wish.token
    assert scope.info.vocabulary[q] == b"q"
    assert QApplication.focusWidget() is panel.view
    show(panel, scope, followed=q)
    assert "'\u2068q\u2069'" in panel.heading.text()
    assert panel.view.rows()[-1].share == pytest.approx(by_hand(scope, 11, q).logits[q], abs=1e-4)


def test_what_follows_is_offered_where_something_does(panel: ResidualPanel, scope: Scope) -> None:
    """Down opens the list: first what follows, then the most probable."""
    show(panel, scope, Look(1, 2, 5))
    QTest.keyClick(panel.search, Qt.Key.Key_Down)
    assert panel.search.items()[0].startswith("Follows: '\u2068o\u2069'")
    assert panel.search.items()[1].startswith("Most probable: ")
    assert panel.rect().contains(panel.search.list.geometry())
    QTest.keyClick(panel.search, Qt.Key.Key_Escape)
    show(panel, scope)
    QTest.keyClick(panel.search, Qt.Key.Key_Down)
    assert panel.search.items()[0].startswith("Most probable: ")


@pytest.mark.parametrize("token", [b"<b>x</b>", b"a\nb", b"\xe2\x82", "\u202eabc".encode(), b""])
def test_hostile_tokens_are_plain_visible_text(
    panel: ResidualPanel, scope: Scope, token: bytes
) -> None:
    """In heading, told and list; tooltips are escaped."""
    reading = scope.look(Look(1, 2))
    vocabulary = (token,) * len(reading.info.vocabulary)
    reading = replace(reading, info=replace(reading.info, vocabulary=vocabulary))
    opened = replace(opened_at(scope, scope.look(Look(1, 2))), reading=reading)
    panel.show_view(view_of(reading, residual=opened, wanted=frozenset({WantResidual})))
    for label in (panel.heading, panel.told):
        assert not set(label.text()) & set("\n\u202e")
        assert "<b>" not in label.toolTip()


# Many layers


@pytest.mark.parametrize("theme", THEMES.values(), ids=lambda theme: theme.name)
@pytest.mark.parametrize("sizes", [(30, 9), (6, 8)], ids=["30x9", "6x8"])
def test_rows_are_high_enough_to_be_read_and_all_can_be_reached(
    window: QWidget,
    panel: ResidualPanel,
    make_scope: Callable[..., Scope],
    sizes: tuple[int, int],
    theme: Theme,
) -> None:
    """In the place that the panel has in a window of 1280 × 720."""
    n_layer, n_head = sizes
    scope = make_scope(n_layer=n_layer, n_head=n_head, n_kv_head=n_head, d_model=4 * n_head)
    house(window, panel, 384, 330)
    show(panel, scope, Look(n_layer // 2, 1), display=Display(theme=theme))
    for row in panel.view.rows():
        place = panel.view.row_place(row.key)
        least = theme.font_axis if row.kind in {"head", "bias"} or row.boxes else theme.font_body
        assert place.height() >= 1.15 * least
        if row.length is not None and row.kind != "after":
            assert panel.view.length_bar(row.key).right() <= panel.view.viewport().width()
    place = panel.view.row_place(("head", n_layer // 2, 1))
    assert 0 <= place.top() <= place.bottom() <= panel.view.viewport().height()
    for _ in range(len(panel.view.rows())):
        QTest.keyClick(panel.view, Qt.Key.Key_Up)
    assert panel.told.text().startswith("The token's embedding")
    assert panel.view.row_place(("token", -1, -1)).top() >= 0


def test_all_layers_fit_into_one_sight(
    qtbot: QtBot, window: QWidget, panel: ResidualPanel, make_scope: Callable[..., Scope]
) -> None:
    """No scrolling; a click there selects a layer, pointing still tells."""
    scope = make_scope(n_layer=30)
    house(window, panel, 384, 330)
    show(panel, scope, Look(14, 1))
    assert panel.view.verticalScrollBar().maximum() > 0
    wished = wished_by(panel)
    qtbot.mouseClick(panel.all_button, LEFT)
    view = panel.view
    assert view.verticalScrollBar().maximum() == 0
    assert len(view.rows()) == 1 + 2 * 30 + 2
    assert view.row_place(("logit", -1, -1)).bottom() <= view.viewport().height()
    picture = colours(view.viewport())
    longest = max((r for r in view.rows() if r.layer >= 0), key=lambda row: row.length or 0)
    bar = view.length_bar(longest.key)
    strip = picture[int(bar.top()) : int(bar.bottom()) + 1, int(bar.center().x())]
    ground = QColor(THEMES["light"].surface).rgb()
    assert any(int(pixel) != ground for pixel in strip)
    point_at(view.viewport(), view.row_place(("mlp", 20, -1)).center())
    told = panel.told.text()
    assert re.match(r"The MLP of layer (19|20|21)|Attention of layer (20|21)", told)
    click(qtbot, panel, ("attention", 3, -1))
    (wish,) = wished
    assert isinstance(wish, SelectHead)
    assert wish.layer == pytest.approx(3, abs=1)


# States


def test_until_the_answer_comes_the_panel_says_so(panel: ResidualPanel, scope: Scope) -> None:
    """And before there is a text or a model, that."""
    panel.show_view(view_of(None, phase="starting"))
    assert panel.accessibleDescription().endswith("The model is being loaded.")
    assert panel.search.isHidden()
    reading = scope.look(Look())
    panel.show_view(view_of(reading, wanted=frozenset({WantResidual})))
    assert panel.accessibleDescription().endswith(WAITING)
    assert panel.check.isHidden()
    show(panel, scope)
    assert panel.check.isVisible()
    assert panel.search.isVisible()
    panel.show_view(view_of(scope.edit(""), wanted=frozenset({WantResidual})))
    assert "There is no text yet." in panel.accessibleDescription()
    assert panel.check.isHidden()


def test_what_answers_for_something_else_is_dimmed_until_the_new_comes(
    panel: ResidualPanel, scope: Scope
) -> None:
    """Another position, text, mask or token; but not another head."""
    reading = scope.look(Look(1, 2))
    opened = opened_at(scope, reading)
    selection = Selection(1, 2)

    def bar(shown: Reading, **fields: Any) -> int:
        fields = {"selection": selection, "residual": opened, **fields}
        panel.show_view(view_of(shown, wanted=frozenset({WantResidual}), **fields))
        QApplication.processEvents()
        picture = colours(panel.view.viewport())
        return QColor.fromRgb(int(picture[middle(panel.view.length_bar(("mlp", 0, -1)))])).green()

    fresh = QColor(THEMES["light"].residual).green()
    assert bar(reading) == fresh
    assert bar(scope.look(Look(1, 3)), selection=Selection(1, 3)) == fresh
    for other, fields in (
        (reading, {"followed": 3}),
        (scope.look(Look(1, 2, 4)), {}),
        (scope.edit(TEXT + " "), {}),
        (scope.set_conditions(Conditions(mask="none")), {}),
    ):
        assert bar(other, **fields) == fresh  # an answer that comes soon is waited for in peace
        wait_until(lambda: bar(other, **fields) > fresh)  # noqa: B023
        assert bar(reading) == fresh


def test_being_seen_is_told(qtbot: QtBot, panel: ResidualPanel) -> None:
    """After the fact; a panel behind another's tab is not seen."""
    wished: list[Wish] = []
    panel.wished.connect(wished.append)
    panel.hide()
    qtbot.waitUntil(lambda: wished[-1:] == [WantResidual(False)])
    panel.show()
    qtbot.waitUntil(lambda: wished[-1:] == [WantResidual(True)])
    panel.set_in_front(False)
    qtbot.waitUntil(lambda: wished[-1:] == [WantResidual(False)])
    assert len(wished) <= 4


# The whole window


class CountedScope(Scope):
    """Counts how often it was asked."""

    count = 0

    def residual(self, *operands: Any) -> Any:
        """As ever."""
        type(self).count += 1
        return super().residual(*operands)


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
    one_window.wish(
        EditText(TEXT), SetMask({"mask": "causal"}), SelectPosition(None), Follow("next")
    )
    one_window.action("panel_heads").trigger()
    wait_until(lambda: WantResidual not in one_window.state.wanted)
    CountedScope.count = 0
    return one_window


def wait_for_answer(whole: WholeWindow) -> OpenedResidual:
    """Until what is selected is answered."""

    def answers() -> bool:
        state = whole.state
        return state.residual is not None and state.residual.answers(
            state.reading, state.followed_id
        )

    wait_until(answers, "the residual")
    QApplication.processEvents()
    assert whole.state.residual is not None
    return whole.state.residual


def opened_panel(whole: WholeWindow) -> ResidualPanel:
    """The panel, once it is seen and has been answered."""
    whole.action("panel_residual").trigger()
    panel = whole.panel("residual")
    assert isinstance(panel, ResidualPanel)
    wait_until(lambda: panel.is_seen)
    wait_for_answer(whole)
    return panel


def test_a_hidden_panel_asks_for_nothing(whole: WholeWindow) -> None:
    """Not while typing before it is seen, nor after it was left; a head never asks anew."""
    whole.wish(EditText("to be"), SelectPosition(3), EditText("to bee"), Follow("top"))
    assert WantResidual not in whole.state.wanted
    assert CountedScope.count == 0
    opened_panel(whole)
    assert CountedScope.count == 1
    whole.wish(SelectHead(1, 2), SelectHead(0, 1))
    wait_for_answer(whole)
    assert CountedScope.count == 1
    whole.action("panel_heads").trigger()
    wait_until(lambda: WantResidual not in whole.state.wanted)
    whole.wish(EditText("to be or"))
    assert CountedScope.count == 1
    opened_panel(whole)
    assert CountedScope.count == 2


def test_the_panel_follows_text_mask_cursor_and_token(whole: WholeWindow) -> None:
    """Whatever is wished one after the other, what is shown in the end is the last one's."""
    panel = opened_panel(whole)
    assert whole.app.controller is not None
    b = Characters("\n !,.?abcdefghijklmnopqrstuvwxyzT").encode("b")[0]
    for wish in (
        EditText("to be a"),
        SelectPosition(3),
        SetMask({"mask": "none"}),
        GoTo(5),
        Follow(b),
    ):
        whole.app.controller.fulfil(wish)
    whole.idle()
    opened = wait_for_answer(whole)
    assert opened.stream is not None
    assert opened.attribution is not None
    assert opened.stream.position == 3
    stages = whole.reading.stages
    assert stages is not None
    assert opened.attribution.total == pytest.approx(float(stages.logits[b]), abs=1e-3)
    assert panel.check.verdict == "holds"
    assert panel.view.rows()[-1].share == opened.attribution.total


def test_a_click_on_a_head_shows_it_in_the_window(whole: WholeWindow) -> None:
    """Its heatmap comes, and its row is framed."""
    panel = opened_panel(whole)
    whole.wish(SelectHead(0, 0))
    place = panel.view.row_place(("head", 0, 3)).center().toPoint()
    QTest.mouseClick(panel.view.viewport(), LEFT, pos=place)
    whole.idle()
    focus = whole.reading.focus
    assert (focus.layer, focus.head) == (0, 3)
    QTest.keyClick(panel.view, Qt.Key.Key_Right)
    whole.idle()
    assert (whole.reading.focus.layer, whole.reading.focus.head) == (1, 3)
    assert ("head", 1, 3) in {row.key for row in panel.view.rows()}


def test_a_token_that_is_looked_for_is_taken_apart(whole: WholeWindow) -> None:
    """From the keys that are pressed to the sum that is shown."""
    panel = opened_panel(whole)
    whole.activate()
    panel.search.setFocus(Qt.FocusReason.ShortcutFocusReason)
    QTest.keyClicks(panel.search, "z")
    QTest.keyClick(panel.search, Qt.Key.Key_Return)
    opened = wait_for_answer(whole)
    vocabulary = whole.reading.info.vocabulary
    assert vocabulary[opened.token_id] == b"z"
    assert whole.reading.stages is not None
    logit = float(whole.reading.stages.logits[opened.token_id])
    assert panel.view.rows()[-1].share == pytest.approx(logit, abs=1e-4)
    assert f"logit {logit:.2f}".replace("-", "−") in panel.heading.text()


def test_an_empty_text_and_back(whole: WholeWindow) -> None:
    panel = opened_panel(whole)
    whole.wish(EditText(""))
    assert "There is no text yet." in panel.accessibleDescription()
    whole.wish(EditText("to be"))
    wait_for_answer(whole)
    assert panel.check.isVisible()


def test_another_models_token_is_not_followed(
    whole: WholeWindow, make_model: Callable[..., Path], small_model: Path
) -> None:
    """Its ids are others; a post-norm model then says why it has no shares."""
    panel = opened_panel(whole)
    whole.wish(Follow(5))
    wait_for_answer(whole)
    whole.wish(OpenModel(make_model("post", norm_placement="post")))
    wait_until(lambda: whole.reading.info.name == "post", "the other model")
    wait_for_answer(whole)
    assert whole.state.followed == "next"
    assert panel.note.text() == POST_NORM
    whole.wish(OpenModel(small_model))
    wait_until(lambda: whole.reading.info.name == "small", "the first model")
    wait_for_answer(whole)
    assert not panel.note.isVisible()
