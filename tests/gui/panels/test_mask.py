"""The mask: its controls, its drawing, and what it did to the loss and the prediction."""

from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from engine.conditions import Conditions, Mask
from engine.reading import Look, Reading
from engine.scope import Scope
from gui.panels.mask import CHOICES, MaskPanel
from gui.state import Display, MaskChoice
from gui.style import apply_theme
from gui.theme import THEMES, Theme
from gui.widgets.number_field import NumberField
from gui.widgets.token_text import display
from gui.wishes import SetMask, Wish
from tests.gui.picture_facts import colours, middle
from tests.gui.tiny_scope import house, named_scope, view_of

LEFT = Qt.MouseButton.LeftButton
NONE = Conditions(mask="none")


@pytest.fixture
def scope() -> Scope:
    """A small model on "to be or"."""
    return named_scope("to be or", narrower=0.4)


@pytest.fixture
def panel(window: QWidget) -> MaskPanel:
    """A shown panel as a column of a window."""
    widget = MaskPanel()
    house(window, widget, 400, 600)
    return widget


def show(panel: MaskPanel, reading: Reading, mask: MaskChoice | None = None) -> None:
    """What the window does with an answer."""
    conditions = reading.conditions
    if mask is None:
        mask = MaskChoice(conditions.mask, conditions.window or 16, conditions.sinks)
    panel.show_view(view_of(reading, mask=mask))


def mean_of_losses(reading: Reading, scope: Scope) -> float:
    """From the logits before each token, one by one."""
    run, token_ids = scope._run, reading.session.token_ids
    losses = []
    for position in range(1, len(token_ids)):
        logits = run.logits(reading.session, position - 1).astype(np.float64)
        powers = np.exp(logits)
        losses.append(-np.log(powers[token_ids[position]] / powers.sum()))
    return float(np.mean(losses))


def type_into(qtbot: QtBot, field: NumberField, text: str) -> None:
    """Replace what the field holds and press Enter."""
    field.setFocus()
    field.selectAll()
    qtbot.keyClicks(field, text)
    qtbot.keyClick(field, Qt.Key.Key_Return)


def shown_cells(panel: MaskPanel, theme: Theme) -> np.ndarray:
    """Which cells of the schema are filled, read off the picture."""
    picture = colours(panel.schema)
    filled = QColor(theme.text_dim).rgb()
    return np.array(
        [
            [picture[middle(panel.schema.cell_place(query, key))] == filled for key in range(12)]
            for query in range(12)
        ]
    )


@pytest.mark.parametrize(
    ("choice", "changes"),
    [
        ("none", {"mask": "none"}),
        ("window", {"mask": "window", "window": 16, "sinks": 0}),
        ("first k + window", {"mask": "window", "window": 16, "sinks": 4}),
    ],
)
def test_a_click_on_a_choice_wishes_for_it(
    qtbot: QtBot,
    panel: MaskPanel,
    scope: Scope,
    wishes: list[Wish],
    choice: str,
    changes: dict[str, object],
) -> None:
    """With the sizes that its controls show."""
    show(panel, scope.look(Look()))
    button = panel.choices.button(CHOICES.index(choice))  # type: ignore[arg-type]
    qtbot.mouseClick(button, LEFT, pos=button.rect().center() / 4)
    assert wishes == [SetMask(changes)]
    assert MaskChoice(**changes).conditions.mask == changes["mask"]  # type: ignore[arg-type]


def test_arrow_keys_choose_too(
    qtbot: QtBot, panel: MaskPanel, scope: Scope, wishes: list[Wish]
) -> None:
    """Down from causal is none."""
    show(panel, scope.look(Look()))
    panel.choices.button(0).setFocus()
    qtbot.keyClick(panel.choices.button(0), Qt.Key.Key_Down)
    assert wishes == [SetMask({"mask": "none"})]


def test_showing_a_mask_is_no_wish(panel: MaskPanel, scope: Scope, wishes: list[Wish]) -> None:
    """Each choice is checked when it is in force, with its sizes and no others."""
    for mask, choice in (
        (MaskChoice("causal"), "causal"),
        (MaskChoice("none", 5, 2), "none"),
        (MaskChoice("window", 5, 0), "window"),
        (MaskChoice("window", 5, 2), "first k + window"),
    ):
        show(panel, scope.set_conditions(mask.conditions), mask)
        assert panel.choices.checkedButton().text() == choice
        assert panel.window_field.isVisible() == (mask.mask == "window")
        assert panel.sinks_field.isVisible() == (choice == "first k + window")
    assert (panel.window_field.text(), panel.sinks_field.text()) == ("5", "2")
    assert (panel.window_slider.value(), panel.sinks_slider.value()) == (5, 2)
    assert wishes == []


def test_sizes_are_set_by_slider_field_and_key(
    qtbot: QtBot, panel: MaskPanel, scope: Scope, wishes: list[Wish]
) -> None:
    """Every way ends in a wish for that one size."""
    show(panel, scope.set_conditions(Conditions(mask="window", window=4, sinks=2)))
    qtbot.keyClick(panel.window_slider, Qt.Key.Key_Right)
    qtbot.keyClick(panel.sinks_slider, Qt.Key.Key_Left)
    type_into(qtbot, panel.window_field, "9")
    type_into(qtbot, panel.sinks_field, "0")
    qtbot.keyClick(panel.window_field, Qt.Key.Key_Up)
    assert wishes == [
        SetMask({"window": 5}),
        SetMask({"sinks": 1}),
        SetMask({"window": 9}),
        SetMask({"sinks": 0}),
        SetMask({"window": 10}),
    ]


def test_no_first_ones_is_a_plain_window_and_back(
    qtbot: QtBot, panel: MaskPanel, scope: Scope, wishes: list[Wish]
) -> None:
    """After k = 0 the choice of first ones offers some again."""
    show(panel, scope.set_conditions(Conditions(mask="window", window=4, sinks=1)))
    qtbot.keyClick(panel.sinks_field, Qt.Key.Key_Down)
    assert wishes == [SetMask({"sinks": 0})]
    show(panel, scope.set_conditions(Conditions(mask="window", window=4)))
    assert panel.choices.checkedButton().text() == "window"
    panel.choices.button(CHOICES.index("first k + window")).click()
    assert wishes[1:] == [SetMask({"mask": "window", "window": 4, "sinks": 4})]


@pytest.mark.parametrize(
    ("which", "text", "part"),
    [
        ("window", "0", "a window of 0 positions"),
        ("window", "-5", "a window of -5 positions"),
        ("window", "33", "window = 33 reaches beyond the 32 positions"),
        ("window", "wide", "window = 'wide' is no whole number; use 1 or more."),
        ("sinks", "-1", "with -1 first ones is not possible"),
        ("sinks", "99", "first k = 99 reaches beyond the 32 positions"),
        ("sinks", "1.5", "first k = '1.5' is no whole number; use 0 or more."),
    ],
)
def test_an_impossible_size_is_one_sentence_and_no_wish(
    qtbot: QtBot,
    panel: MaskPanel,
    scope: Scope,
    wishes: list[Wish],
    which: str,
    text: str,
    part: str,
) -> None:
    """Beside the field, until a possible one is typed."""
    show(panel, scope.set_conditions(Conditions(mask="window", window=4, sinks=2)))
    field = panel.window_field if which == "window" else panel.sinks_field
    type_into(qtbot, field, text)
    assert part in panel.complaint.text()
    assert panel.complaint.isVisible()
    assert wishes == []
    type_into(qtbot, field, "3")
    assert not panel.complaint.isVisible()
    assert wishes == [SetMask({which: 3})]


@pytest.mark.parametrize("theme", THEMES.values(), ids=lambda theme: theme.name)
def test_the_schema_is_the_mask(panel: MaskPanel, scope: Scope, theme: Theme) -> None:
    """Filled cells, read off the picture, against the definition of each mask."""
    reading = scope.look(Look())
    cells = [(query, key) for query in range(12) for key in range(12)]
    for mask, sees in (
        (MaskChoice("causal"), lambda query, key: key <= query),
        (MaskChoice("none"), lambda _query, _key: True),
        (MaskChoice("window", 3), lambda query, key: query - 3 < key <= query),
        (
            MaskChoice("window", 2, 4),
            lambda query, key: key <= query and (key < 4 or query - key < 2),
        ),
    ):
        panel.show_view(view_of(reading, mask=mask, display=Display(theme=theme)))
        filled = shown_cells(panel, theme)
        assert all(filled[query, key] == sees(query, key) for query, key in cells)
    assert "schema" in panel.schema.accessibleName().lower()
    assert "12 positions" in panel.schema.accessibleDescription()


@pytest.mark.parametrize(
    ("windows", "sentence"),
    [
        ((0, 5), "In 1 of 2 layers of this model a query never sees more than the last 5"),
        ((5, 5), "In every layer of this model a query never sees more than the last 5"),
        ((5, 9), "In every layer of this model a query never sees more than the last 5 to 9"),
    ],
)
def test_a_models_own_windows_are_told_beside_the_mask(
    panel: MaskPanel, scope: Scope, windows: tuple[int, ...], sentence: str
) -> None:
    """Until the mask is off, which lifts them too."""
    reading = scope.go_to(1)
    assert "of this model" not in _told(panel, reading)
    config = replace(reading.info.config, windows=windows)
    sliding = replace(reading, info=replace(reading.info, config=config))
    assert sentence in _told(panel, sliding)
    assert "of this model" not in _told(panel, sliding, mask="none")


def _told(panel: MaskPanel, reading: Reading, mask: Mask = "causal") -> str:
    show(panel, reading, MaskChoice(mask=mask))
    return panel.explanation.text()


def test_flipping_the_mask_shows_both_losses(panel: MaskPanel, scope: Scope) -> None:
    """Worked out from the logits; and back again, what was measured without stays named."""
    causal = scope.look(Look())
    with_mask = mean_of_losses(causal, scope)
    show(panel, causal)
    assert panel.loss.text() == f"{with_mask:.2f} nats"
    assert "over 7 tokens: causal mask" in panel.loss_caption.text()
    none = scope.set_conditions(NONE)
    without = mean_of_losses(none, scope)
    show(panel, none)
    assert panel.loss.text() == f"{with_mask:.2f} → {without:.2f} nats"
    assert "causal mask → no mask" in panel.loss_caption.text()
    show(panel, scope.set_conditions(Conditions()))
    assert panel.loss.text() == f"{with_mask:.2f} nats"
    assert panel.others.text() == f"Measured before on this text: no mask {without:.2f}."


def test_a_loss_that_was_not_measured_is_not_shown(panel: MaskPanel, scope: Scope) -> None:
    """Neither for a text that was never read under the causal mask nor for another model."""
    none = scope.set_conditions(NONE)
    show(panel, none)
    assert panel.loss.text() == f"{mean_of_losses(none, scope):.2f} nats"
    assert "was not measured on this text; switch it on once" in panel.loss_caption.text()
    show(panel, scope.set_conditions(Conditions()))
    scope.set_conditions(NONE)
    show(panel, scope.edit("to be ox"))
    assert "→" not in panel.loss.text()
    other = named_scope("to be or", narrower=0.4)
    other.info = replace(other.info, path="elsewhere")
    show(panel, other.set_conditions(NONE))
    assert "→" not in panel.loss.text()
    show(panel, scope.edit("to be or"))
    assert "→" in panel.loss.text()


def test_it_remembers_what_was_measured_while_nobody_looked(panel: MaskPanel, scope: Scope) -> None:
    """A tab that is behind another learns the causal loss all the same."""
    panel.hide()
    show(panel, scope.look(Look()))
    show(panel, scope.set_conditions(NONE))
    assert panel.loss.text() == ""
    panel.show()
    assert "→" in panel.loss.text()


def test_how_the_top_candidate_moved(panel: MaskPanel, scope: Scope) -> None:
    """Token and plain probability at the same position, before and after."""

    def best(reading: Reading) -> str:
        logits = scope._run.logits(reading.session, reading.position).astype(np.float64)
        powers = np.exp(logits)
        token_id = int(logits.argmax())
        token = display(scope._tokenizer.token_bytes(token_id))
        return f"'\u2068{token}\u2069'\u00a0{100 * powers[token_id] / powers.sum():.1f}\u00a0%"

    causal = scope.look(Look(query=3))
    before = best(causal)
    show(panel, causal)
    assert panel.top.text().endswith(f"after position 3, by the plain softmax: {before}")
    none = scope.set_conditions(NONE)
    show(panel, none)
    assert panel.top.text().endswith(f": {before} → {best(none)}")
    elsewhere = scope.look(Look(query=5))
    show(panel, elsewhere)
    assert panel.top.text().endswith(f"after position 5, by the plain softmax: {best(elsewhere)}")


def test_the_note_says_why_nothing_was_reused(panel: MaskPanel, scope: Scope) -> None:
    """With the mask off all rows are computed again at each keystroke; with it only one."""
    show(panel, scope.edit("to be or "))
    assert "1 row was computed, 8 reused" in panel.note.text()
    scope.set_conditions(NONE)
    show(panel, scope.edit("to be or n"))
    assert "changes every earlier row" in panel.note.text()
    assert "10 rows were recomputed, 0 reused" in panel.note.text()
    scope.set_conditions(Conditions())
    show(panel, scope.set_cache(use=False))
    assert panel.note.text() == "The cache is off: 10 rows were recomputed."


def test_one_token_has_no_loss(panel: MaskPanel, scope: Scope) -> None:
    """And no number is made up for it."""
    show(panel, scope.edit("t"))
    assert panel.loss.text() == "no loss yet"
    assert "a loss needs two" in panel.loss_caption.text()


def test_without_a_text_one_sentence_stands_there(panel: MaskPanel, scope: Scope) -> None:
    """And the controls work all the same."""
    panel.show_view(view_of(None, phase="loading"))
    assert panel.note.text() == "The model is being loaded."
    show(panel, scope.edit(""))
    assert panel.note.text().startswith("There is no text yet.")
    for label in (panel.loss, panel.loss_caption, panel.top, panel.others):
        assert not label.isVisible()
    panel.grab()


def test_the_panel_says_in_words_what_it_shows(panel: MaskPanel, scope: Scope) -> None:
    """The mask and the loss, for those who do not see them."""
    show(panel, scope.set_conditions(Conditions(mask="window", window=4, sinks=1)))
    said = panel.accessibleDescription()
    assert "the last 4 positions, its own included, and always the first 1" in said
    assert panel.loss.text() in said


@pytest.mark.parametrize("text", ["\x00\x00", "\ud800", "<b>x</b>", "שלום", "\n\n", "👨\u200d👩"])
def test_hostile_text_is_plain_text(panel: MaskPanel, scope: Scope, text: str) -> None:
    """Whatever the most probable token is, its label is one line of plain text."""
    show(panel, scope.edit(text))
    assert panel.top.textFormat() == Qt.TextFormat.PlainText
    assert "\n" not in panel.top.text()
    panel.grab()


@pytest.mark.parametrize("name", THEMES)
def test_it_fits_a_narrow_column_in_every_theme(
    panel: MaskPanel, scope: Scope, name: str, qapp: QApplication
) -> None:
    """At 330 × 300 nothing is cut off at the side; what does not fit below is scrolled to."""
    before = qapp.palette(), qapp.font(), qapp.styleSheet()
    try:
        apply_theme(qapp, THEMES[name])
        panel.resize(330, 300)
        reading = scope.set_conditions(Conditions(mask="window", window=4, sinks=1))
        mask = MaskChoice("window", 4, 1)
        panel.show_view(view_of(reading, mask=mask, display=Display(theme=THEMES[name])))
        QApplication.processEvents()
        content = panel.schema.parentWidget()
        assert content.width() <= 330
        assert content.minimumSizeHint().width() <= content.width()
        assert panel.loss.geometry().bottom() < 300
        assert panel.minimumSizeHint().height() <= 300
    finally:
        qapp.setPalette(before[0])
        qapp.setFont(before[1])
        qapp.setStyleSheet(before[2])
