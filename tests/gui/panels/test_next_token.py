"""The next token: what could follow a position, how it came to be so, and how to go on."""

from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from engine.reading import Look, Reading
from engine.sampling import Sampling
from engine.scope import Scope
from gui.panels.next_token import NextTokenPanel
from gui.state import Display
from gui.style import apply_theme
from gui.theme import THEMES, Theme
from gui.widgets.number_field import NumberField
from gui.wishes import Choose, SetSampling, Wish
from tests.gui.tiny_scope import house, named_scope, view_of

LEFT = Qt.MouseButton.LeftButton
PLAIN = Sampling(temperature=1.0)


@pytest.fixture
def scope() -> Scope:
    """A small model that knows what its tokens are called, on "to be or"."""
    scope = named_scope("to be or", narrower=0.4)  # so that more than one token counts
    scope.set_sampling(PLAIN)
    return scope


@pytest.fixture
def panel(window: QWidget) -> NextTokenPanel:
    """A shown panel as a column of a window."""
    widget = NextTokenPanel()
    house(window, widget, 400, 480)
    return widget


def show(panel: NextTokenPanel, reading: Reading, **fields: object) -> None:
    """What the window does with an answer."""
    panel.show_view(view_of(reading, sampling=reading.sampling, **fields))


def softmax(reading: Reading) -> np.ndarray:
    """Of the reading's logits, worked out here."""
    assert reading.stages is not None
    powers = np.exp(np.asarray(reading.stages.logits, np.float64))
    return np.asarray(powers / powers.sum())


def type_into(qtbot: QtBot, field: NumberField, text: str) -> None:
    """Replace what the field holds, without finishing."""
    field.setFocus()
    field.selectAll()
    qtbot.keyClicks(field, text)


def test_the_bars_are_the_models_own_probabilities(panel: NextTokenPanel, scope: Scope) -> None:
    """All rows in sight, against a softmax of the model's logits for the last position."""
    reading = scope.look(Look())
    show(panel, reading)
    run = scope._run
    powers = np.exp(run.logits(run.session, 7).astype(np.float64))
    probs = powers / powers.sum()
    order = np.argsort(-probs, kind="stable")
    for row in panel.bars.rows_in_sight():
        token_id = int(order[row])
        rank, _, _, share, shown_id = panel.bars.texts(row)
        assert (rank, shown_id) == (str(row + 1), str(token_id))
        assert float(share.rstrip(" %")) == pytest.approx(100 * probs[token_id], abs=0.051)
    assert "position 7" in panel.heading.text()
    assert "'\u2068r\u2069'" in panel.heading.text()


def test_clicking_a_candidate_goes_on_with_it(
    qtbot: QtBot, panel: NextTokenPanel, scope: Scope, wishes: list[Wish]
) -> None:
    """The wish names position and token; fulfilled, that very token stands there."""
    reading = scope.look(Look(query=3))
    show(panel, reading)
    place = panel.bars.row_place(2).center().toPoint()
    qtbot.mouseClick(panel.bars.viewport(), LEFT, pos=place)
    token_id = int(np.argsort(-softmax(reading), kind="stable")[2])
    assert wishes == [Choose(3, token_id)]
    after = scope.choose(3 + 1 + reading.n_fallen, token_id)
    assert list(after.session.token_ids) == [*reading.session.token_ids[:4], token_id]


def test_enter_goes_on_with_the_row_that_keys_moved_to(
    qtbot: QtBot, panel: NextTokenPanel, scope: Scope, wishes: list[Wish]
) -> None:
    """Down, Enter: the second most probable token."""
    reading = scope.look(Look())
    show(panel, reading)
    panel.bars.setFocus()
    qtbot.keyClick(panel.bars, Qt.Key.Key_Down)
    qtbot.keyClick(panel.bars, Qt.Key.Key_Return)
    assert wishes == [Choose(7, int(np.argsort(-softmax(reading), kind="stable")[1]))]


@pytest.mark.parametrize("place", ["shown", "beyond the cursor"])
def test_what_really_follows_is_named_with_rank_and_loss(
    qtbot: QtBot, panel: NextTokenPanel, scope: Scope, place: str
) -> None:
    """Position 4 ("e"): a space follows, whether it is shown already or was stepped back from."""
    reading = scope.go_to(5) if place == "beyond the cursor" else scope.look(Look(query=4))
    show(panel, reading)
    probs = softmax(reading)
    space = scope._tokenizer.encode(" ")[0]
    rank = int(np.count_nonzero(probs > probs[space])) + 1
    for label in (panel.follows, panel.note):  # at last few words, but none of them cut
        label.setFixedWidth(label.fontMetrics().horizontalAdvance("n" * 20))
        assert "…" not in label.shown()
        label.setMaximumWidth(1000)
    assert panel.follows.text() == (
        f"In the text follows '\u2068␣\u2069': rank {rank}, "
        f"plain softmax {100 * probs[space]:.1f} %, loss {-np.log(probs[space]):.2f} nats"
    )
    assert "◂ in the text" in panel.bars.texts(rank - 1)[2]
    qtbot.mouseClick(panel.reveal, LEFT)
    assert panel.bars.current_id == space


def test_nothing_follows_the_end(panel: NextTokenPanel, scope: Scope) -> None:
    """At the last token no mark is made up."""
    show(panel, scope.look(Look(query=3)))
    assert panel.follows.isVisible()
    show(panel, scope.look(Look()))
    assert not panel.follows.isVisible()
    assert not panel.reveal.isVisible()


def test_the_stages_of_a_candidate_are_one_line(
    qtbot: QtBot, panel: NextTokenPanel, scope: Scope
) -> None:
    """For the third row, with numbers worked out here from the logits."""
    sampling = Sampling(temperature=0.5, top_k=40, top_p=0.6)
    reading = scope.set_sampling(sampling)
    assert reading.stages is not None
    show(panel, reading)
    qtbot.mouseClick(panel.columns.button(1), LEFT)
    panel.bars.setFocus()
    for _ in range(2):
        qtbot.keyClick(panel.bars, Qt.Key.Key_Down)
    logits = np.asarray(reading.stages.logits, np.float64)
    order = sorted(range(len(logits)), key=lambda token_id: -logits[token_id])
    scaled = np.exp(logits / 0.5)
    scaled /= scaled.sum()
    top = scaled[order[:40]] / scaled[order[:40]].sum()
    n_kept = next(n for n in range(1, 41) if top[:n].sum() >= 0.6)
    final = top[2] / top[:n_kept].sum()
    assert n_kept > 3
    said = panel.arithmetic.text()
    assert f"logit {logits[order[2]]:.2f} ÷ 0.5 → p {scaled[order[2]]:#.3g}" in said
    assert said.endswith(
        f"→ top-k keeps 40 of {len(logits)} → top-p 0.6 keeps {n_kept} → {final:#.3g}"
    )
    assert panel.arithmetic.isVisible()
    assert panel.bars.header()[0] == "token"
    assert f"{n_kept} of {len(logits)}" in panel.note.text()


def test_fields_show_the_sampling_and_tell_nobody(
    panel: NextTokenPanel, scope: Scope, wishes: list[Wish]
) -> None:
    """What the program shows does not come back as a wish."""
    show(panel, scope.set_sampling(Sampling(temperature=0.0001, top_k=7, top_p=0.25, seed=99)))
    fields = panel.sampling.fields
    assert [field.text() for field in fields.values()] == ["0.0001", "7", "0.25", "99"]
    show(panel, scope.set_sampling(Sampling()))
    assert [field.text() for field in fields.values()] == ["0.8", "0", "1", "1"]
    assert wishes == []


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("temperature", "0.0001", 0.0001),
        ("temperature", "0", 0.0),
        ("temperature", "1,5", 1.5),
        ("top_k", "40", 40),
        ("top_k", "999999999999", 999_999_999_999),
        ("top_p", "0.9", 0.9),
        ("seed", str(2**64 - 1), 2**64 - 1),
    ],
)
def test_a_typed_value_is_wished_for_once_it_is_finished(
    qtbot: QtBot,
    panel: NextTokenPanel,
    scope: Scope,
    wishes: list[Wish],
    name: str,
    text: str,
    value: float,
) -> None:
    """Not at any half-typed value; and the engine can draw under it."""
    show(panel, scope.look(Look()))
    field = panel.sampling.fields[name]
    type_into(qtbot, field, text)
    assert wishes == []
    qtbot.keyClick(field, Qt.Key.Key_Return)
    assert wishes == [SetSampling(replace(PLAIN, **{name: value}))]
    scope.set_sampling(wishes[0].sampling)  # type: ignore[union-attr]
    show(panel, scope.step())
    assert len(wishes) == 1
    assert panel.bars.texts(0)[0] == "1"


def test_leaving_a_field_finishes_it(
    qtbot: QtBot, panel: NextTokenPanel, scope: Scope, wishes: list[Wish]
) -> None:
    """Tab moves on and the value counts; a field left as it was is no wish."""
    show(panel, scope.look(Look()))
    panel.activateWindow()
    field = panel.sampling.fields["top_k"]
    type_into(qtbot, field, "5")
    panel.sampling.fields["top_p"].setFocus()
    panel.sampling.fields["seed"].setFocus()
    assert wishes == [SetSampling(replace(PLAIN, top_k=5))]


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("temperature", "-1", "temperature = -1.0 is not possible; use 0 or more."),
        ("temperature", "inf", "temperature = inf is not possible; use 0 or more."),
        ("temperature", "nan", "temperature = nan is not possible; use 0 or more."),
        ("temperature", "warm", "temperature = 'warm' is no number; use 0 or more."),
        ("temperature", "", "temperature = '' is no number; use 0 or more."),
        ("top_k", "-3", "top_k = -3 is not possible; use 0 (all tokens) or more."),
        ("top_k", "2.5", "top_k = '2.5' is no whole number; use 0 (all tokens) or more."),
        ("top_p", "0", "top_p = 0.0 is not possible; use more than 0, at most 1."),
        ("top_p", "1.5", "top_p = 1.5 is not possible; use more than 0, at most 1."),
        ("seed", "-1", "seed = -1 is not possible; use 0 to 2⁶⁴ − 1."),
        ("seed", "1" * 25, f"seed = {'1' * 25} is not possible; use 0 to 2⁶⁴ − 1."),
        ("seed", "<b>x</b>", "seed = '<b>x</b>' is no whole number; use 0 or more."),
    ],
)
def test_an_impossible_value_is_one_sentence_and_no_wish(
    qtbot: QtBot,
    panel: NextTokenPanel,
    scope: Scope,
    wishes: list[Wish],
    name: str,
    text: str,
    sentence: str,
) -> None:
    """It stays as typed beside its sentence, through new answers too; Escape brings back."""
    show(panel, scope.look(Look()))
    field = panel.sampling.fields[name]
    before = field.text()
    type_into(qtbot, field, text or "x")
    if not text:
        field.clear()
    qtbot.keyClick(field, Qt.Key.Key_Return)
    assert panel.sampling.complaint.text() == sentence
    assert panel.sampling.complaint.isVisible()
    assert field.accessibleDescription() == sentence
    show(panel, scope.step())
    assert (field.text(), panel.sampling.complaint.text()) == (text, sentence)
    qtbot.keyClick(field, Qt.Key.Key_Escape)
    assert field.text() == before
    assert not panel.sampling.complaint.isVisible()
    assert wishes == []


def test_a_right_value_after_a_wrong_one_clears_the_sentence(
    qtbot: QtBot, panel: NextTokenPanel, scope: Scope, wishes: list[Wish]
) -> None:
    """Also if it is the value that was in force all the time, which is no wish."""
    show(panel, scope.look(Look()))
    field = panel.sampling.fields["temperature"]
    for text in ("-1", "1"):
        type_into(qtbot, field, text)
        qtbot.keyClick(field, Qt.Key.Key_Return)
    assert not panel.sampling.complaint.isVisible()
    assert wishes == []


def test_arrow_keys_step_and_stop_at_the_ends(
    qtbot: QtBot, panel: NextTokenPanel, scope: Scope, wishes: list[Wish]
) -> None:
    """Temperature by tenths, top-p by twentieths up to 1, top-k and seed by one."""
    show(panel, scope.look(Look()))
    fields = panel.sampling.fields
    qtbot.keyClick(fields["temperature"], Qt.Key.Key_Up)
    qtbot.keyClick(fields["top_p"], Qt.Key.Key_Up)
    qtbot.keyClick(fields["top_p"], Qt.Key.Key_Down)
    qtbot.keyClick(fields["top_k"], Qt.Key.Key_Down)
    qtbot.keyClick(fields["seed"], Qt.Key.Key_Up)
    assert [wish.sampling for wish in wishes] == [  # type: ignore[union-attr]
        Sampling(temperature=1.1),
        Sampling(temperature=1.1, top_p=0.95),
        Sampling(temperature=1.1, top_p=0.95, seed=2),
    ]


def test_a_step_from_between_goes_to_the_next_multiple(
    qtbot: QtBot, panel: NextTokenPanel, scope: Scope, wishes: list[Wish]
) -> None:
    """From 0.0001 up is 0.1, then down is 0."""
    show(panel, scope.set_sampling(Sampling(temperature=0.0001)))
    for key in (Qt.Key.Key_Up, Qt.Key.Key_Down):
        qtbot.keyClick(panel.sampling.fields["temperature"], key)
    temperatures = [wish.sampling.temperature for wish in wishes]  # type: ignore[union-attr]
    assert temperatures == [0.1, 0.0]


def test_greedy_is_temperature_zero_and_back(
    qtbot: QtBot, panel: NextTokenPanel, scope: Scope, wishes: list[Wish]
) -> None:
    """The button says what is in force, and goes back to the temperature before."""
    show(panel, scope.set_sampling(Sampling(temperature=1.3, seed=5)))
    qtbot.mouseClick(panel.sampling.greedy, LEFT)
    assert wishes == [SetSampling(Sampling(temperature=0.0, seed=5))]
    reading = scope.set_sampling(wishes[0].sampling)  # type: ignore[union-attr]
    show(panel, reading)
    assert panel.sampling.greedy.isChecked()
    assert "Greedy" in panel.note.text()
    assert panel.bars.texts(0)[3] == "100 %"
    assert int(panel.bars.texts(0)[4]) == int(softmax(reading).argmax())
    qtbot.mouseClick(panel.sampling.greedy, LEFT)
    assert wishes[1:] == [SetSampling(Sampling(temperature=1.3, seed=5))]


def test_without_a_text_one_sentence_stands_there(
    panel: NextTokenPanel, scope: Scope, wishes: list[Wish]
) -> None:
    """Loading, failed, empty: each has its sentence, and a text makes it go."""
    panel.show_view(view_of(None, phase="loading"))
    assert panel.bars.accessibleDescription() == "The model is being loaded."
    panel.show_view(view_of(None, phase="failed", notice="There is no such folder."))
    assert panel.bars.accessibleDescription() == "There is no such folder."
    show(panel, scope.edit(""))
    assert panel.bars.accessibleDescription().startswith("There is no text yet.")
    for widget in (panel.heading, panel.follows, panel.arithmetic, panel.reveal):
        assert not widget.isVisible()
    panel.grab()
    show(panel, scope.edit("to"))
    assert panel.bars.texts(0)[0] == "1"
    assert panel.heading.isVisible()
    assert wishes == []


def test_the_panel_says_in_words_what_it_shows(panel: NextTokenPanel, scope: Scope) -> None:
    """The most probable tokens, spoken, and what is drawn from."""
    reading = scope.look(Look())
    show(panel, reading)
    probs = softmax(reading)
    first = f"{100 * probs.max():.1f} %"
    said = panel.accessibleDescription()
    assert said.startswith("What follows")
    assert "Most probable:" in said
    assert first in said
    assert f"Drawn from {len(probs)} of {len(probs)} tokens." in said


@pytest.mark.parametrize("text", ["\x00", "\ud800", "<b>", "👨\u200d👩", "שלום", "\n\n", "\t"])
def test_hostile_text_is_shown_as_plain_text(
    panel: NextTokenPanel, scope: Scope, text: str
) -> None:
    """The token before, the token after, and every candidate can be drawn."""
    reading = scope.edit(f"{text}{text}")
    show(panel, replace(reading, position=0, stages=reading.stages))
    panel.grab()
    assert "\n" not in panel.heading.text()
    assert "\x00" not in panel.heading.text() + panel.follows.text()


@pytest.mark.parametrize("name", THEMES)
def test_it_fits_a_narrow_low_column_in_every_theme(
    panel: NextTokenPanel, scope: Scope, name: str, qapp: QApplication
) -> None:
    """330 × 300 with the program's own style; three rows and all controls are in sight."""
    theme: Theme = THEMES[name]
    before = qapp.palette(), qapp.font(), qapp.styleSheet()
    try:
        apply_theme(qapp, theme)
        panel.resize(330, 305)
        for index in (0, 1):
            panel.columns.button(index).click()
            show(panel, scope.look(Look(query=3)), display=Display(theme=theme))
            QApplication.processEvents()
            assert panel.minimumSizeHint().width() <= 330
            assert panel.width() == 330
            assert len(panel.bars.rows_in_sight()) >= 3
            bottom = panel.sampling.greedy.mapTo(panel, QPoint(0, 0)).y()
            assert bottom + panel.sampling.greedy.height() <= panel.height()
    finally:
        qapp.setPalette(before[0])
        qapp.setFont(before[1])
        qapp.setStyleSheet(before[2])
