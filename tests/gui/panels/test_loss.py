"""The loss of each token of the text: rows, summary, the worst, and what a click selects."""

import math
from itertools import pairwise

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QRectF, Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from engine.conditions import Conditions
from engine.reading import Reading
from engine.scope import Scope
from gui.panels.loss import CEILING, MASK_OFF, ONLY_FIRST, LossPanel
from gui.state import Display, Selection
from gui.theme import THEMES, Theme, lookup_table
from gui.widgets.loss_rows import NO_LOSS
from gui.wishes import SelectPosition, Wish
from tests.gui.tiny_scope import house, picture, tiny_scope, view_of

LEFT = Qt.MouseButton.LeftButton
TEXT = "to be or not to be that is"


@pytest.fixture
def scope() -> Scope:
    """A small model on TEXT."""
    scope = tiny_scope()
    scope.edit(TEXT)
    return scope


@pytest.fixture
def panel(window: QWidget) -> LossPanel:
    """A shown panel as a column of a window."""
    widget = LossPanel()
    house(window, widget, 400, 380)
    return widget


def losses_of(scope: Scope, reading: Reading) -> list[tuple[float, float, int]]:
    """Nats, probability and rank from 1 of each token but the first, by a softmax made here."""
    rows = []
    for position, token_id in enumerate(reading.session.token_ids[1:]):
        logits = scope._run.logits(reading.session, position).astype(np.float64)
        probs = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
        p = float(probs[token_id])
        rows.append((-math.log(p), p, int((probs > p).sum()) + 1))
    return rows


def show(panel: LossPanel, reading: Reading, **fields: object) -> None:
    """What the window does with an answer."""
    panel.show_view(view_of(reading, **fields))
    picture(panel)


def click(qtbot: QtBot, panel: LossPanel, row: int) -> None:
    """A click on the middle of a row, scrolled into sight."""
    bar = panel.rows.verticalScrollBar()
    bar.setValue(bar.value() + int(panel.rows.row_place(row).top()) - 60)
    place = panel.rows.row_place(row).center().toPoint()
    qtbot.mouseClick(panel.rows.viewport(), LEFT, pos=place)


def test_each_row_has_nats_bits_probability_and_rank(panel: LossPanel, scope: Scope) -> None:
    """Read off all rows, against the model's logits."""
    reading = scope.go_to(len(TEXT))
    show(panel, reading)
    assert panel.rows.header()[2:] == ["nats", "bits", "prob.", "rank"]
    for position, (nats, p, rank) in enumerate(losses_of(scope, reading), start=1):
        at, token, *numbers = panel.rows.texts(position)
        assert (at, token) == (str(position), TEXT[position].replace(" ", "␣"))
        assert float(numbers[0]) == pytest.approx(nats, abs=0.006)
        assert float(numbers[1]) == pytest.approx(nats / math.log(2), abs=0.006)
        if 0.001 <= p <= 0.999:
            assert float(numbers[2].rstrip(" %")) == pytest.approx(100 * p, abs=0.051)
        assert numbers[3] == str(rank)


def test_the_first_token_says_that_it_has_no_loss(
    qtbot: QtBot, panel: LossPanel, scope: Scope, wishes: list[Wish]
) -> None:
    """In its row, in its tooltip; and a click on it selects nothing."""
    show(panel, scope.go_to(len(TEXT)))
    assert panel.rows.texts(0) == ["0", "t", NO_LOSS]
    panel.rows.verticalScrollBar().setValue(0)
    assert NO_LOSS in panel.rows.tooltip_at(panel.rows.row_place(0).center())
    click(qtbot, panel, 0)
    assert wishes == []


def test_the_summary_is_the_mean_over_all_tokens_but_the_first(
    panel: LossPanel, scope: Scope
) -> None:
    """Here a token is a character, so both means are the same number."""
    reading = scope.go_to(len(TEXT))
    show(panel, reading)
    nats = [row[0] for row in losses_of(scope, reading)]
    mean = sum(nats) / len(nats)
    assert len(nats) == 25
    said = f"{mean:.3f} nats = {mean / math.log(2):.3f} bits per"
    assert panel.per_token.text() == f"Mean {said} token"
    assert panel.per_character.text() == f"{said} character, over 25 characters"
    assert f"Perplexity {math.exp(mean):,.1f} over 25 tokens" in panel.count.text()
    assert "the first has no loss" in panel.count.text()


def test_only_what_is_shown_counts(panel: LossPanel, scope: Scope) -> None:
    """After stepping back the later tokens are neither listed nor counted."""
    reading = scope.go_to(5)
    show(panel, reading)
    assert [panel.rows.texts(row)[0] for row in range(5)] == ["0", "1", "2", "3", "4"]
    assert "over 4 tokens" in panel.count.text()
    assert list(panel.rows.rows_in_sight())[-1] == 4


def test_what_fell_out_of_the_context_does_not_count(panel: LossPanel) -> None:
    """Of 14 characters a model that sees 8 counts 7: the first of the 8 has no loss."""
    reading = tiny_scope(max_seq_len=8).edit("abcdefghijklmn")
    show(panel, reading)
    assert panel.rows.texts(0) == ["0", "g", NO_LOSS]
    assert "over 7 tokens" in panel.count.text()
    assert panel.per_character.text().endswith("over 7 characters")


def test_clicking_a_token_selects_the_position_that_predicts_it(
    qtbot: QtBot, panel: LossPanel, scope: Scope, wishes: list[Wish]
) -> None:
    """Token 7's loss is the prediction at position 6."""
    show(panel, scope.go_to(len(TEXT)))
    click(qtbot, panel, 7)
    assert wishes == [SelectPosition(6)]


def test_enter_selects_for_the_row_that_keys_moved_to(
    qtbot: QtBot, panel: LossPanel, scope: Scope, wishes: list[Wish]
) -> None:
    """Home, Down, Down, Up, Enter; End, Enter."""
    show(panel, scope.go_to(len(TEXT)))
    panel.setFocus()
    down, up = Qt.Key.Key_Down, Qt.Key.Key_Up
    for key in (Qt.Key.Key_Home, down, down, down, up, Qt.Key.Key_Return):
        qtbot.keyClick(panel.rows, key)
    for key in (Qt.Key.Key_End, Qt.Key.Key_Enter):
        qtbot.keyClick(panel.rows, key)
    assert wishes == [SelectPosition(1), SelectPosition(24)]
    assert panel.rows.row_place(25).bottom() <= panel.rows.viewport().height()


def test_the_selected_position_marks_the_token_it_predicts(panel: LossPanel, scope: Scope) -> None:
    """Selected elsewhere, the row comes into sight and is current; its number is in the words."""
    reading = scope.go_to(len(TEXT))
    show(panel, reading)
    assert 2 not in panel.rows.rows_in_sight()
    show(panel, reading, selection=Selection(query=1))
    assert panel.rows.current_position == 2
    assert 2 in panel.rows.rows_in_sight()
    assert "space at position 2" in panel.rows.accessibleDescription()


def test_worst_first_puts_the_largest_loss_on_top_and_back(
    qtbot: QtBot, panel: LossPanel, scope: Scope, wishes: list[Wish]
) -> None:
    """All rows fall; the first token comes last; the words name the worst; a click still works."""
    reading = scope.go_to(len(TEXT))
    show(panel, reading)
    nats = [math.nan, *(row[0] for row in losses_of(scope, reading))]
    expected = sorted(range(1, len(nats)), key=lambda at: -nats[at])
    qtbot.mouseClick(panel.orders.button(1), LEFT)
    shown = [int(panel.rows.texts(row)[0]) for row in range(len(nats))]
    assert [nats[at] for at in shown[:-1]] == pytest.approx([nats[at] for at in expected])
    assert shown[-1] == 0
    assert 0 in panel.rows.rows_in_sight()
    assert f"at position {shown[0]}:" in panel.accessibleDescription()
    click(qtbot, panel, 0)
    assert wishes == [SelectPosition(shown[0] - 1)]
    qtbot.mouseClick(panel.orders.button(0), LEFT)
    assert [panel.rows.texts(row)[0] for row in range(3)] == ["0", "1", "2"]
    assert panel.rows.current_position == shown[0]


@pytest.mark.parametrize("theme", THEMES.values(), ids=lambda theme: theme.name)
def test_a_bar_is_as_long_and_as_coloured_as_its_loss(
    window: QWidget, panel: LossPanel, scope: Scope, theme: Theme
) -> None:
    """Read off the picture: the colour inside, and the ground right after its end."""
    reading = scope.go_to(len(TEXT))
    house(window, panel, 620, 380)
    show(panel, reading, display=Display(theme=theme))
    panel.rows.set_predicted(None)
    image = panel.rows.viewport().grab().toImage()
    rows = panel.rows
    checked = 0
    for row in list(rows.rows_in_sight())[1:-1]:
        nats = float(reading.session.loss[row])
        box = rows.bar_place(row)
        end = box.left() + box.width() * nats / rows.scale_top
        assert rows.bar_width(row) == pytest.approx(end - box.left(), abs=0.01)
        if end - box.left() < 6 or box.right() - end < 4:
            continue
        wanted = int(lookup_table(theme.loss_map)[round(255 * min(nats / CEILING, 1))])
        middle = round(box.center().y())
        inside = image.pixelColor(round(box.left()) + 3, middle)
        assert inside.name() == QColor.fromRgb(wanted).name()
        assert image.pixelColor(round(end) + 3, middle).name() == QColor(theme.surface).name()
        checked += 1
    assert checked > 5


def test_with_the_mask_off_a_sentence_says_that_the_answer_can_be_seen(
    panel: LossPanel, scope: Scope
) -> None:
    """And it goes when the mask is back."""
    show(panel, scope.set_conditions(Conditions(mask="none")))
    assert panel.note.isVisible()
    assert panel.note.text() == MASK_OFF
    assert MASK_OFF in panel.accessibleDescription()
    show(panel, scope.set_conditions(Conditions(mask="window", window=3)))
    assert not panel.note.isVisible()


def test_a_single_token_has_no_mean_but_a_sentence(panel: LossPanel, scope: Scope) -> None:
    """No number is made up."""
    show(panel, scope.edit("t"))
    assert panel.note.text() == ONLY_FIRST
    assert not panel.per_token.isVisible()
    assert panel.count.text() == "0 tokens counted"
    assert panel.rows.texts(0) == ["0", "t", NO_LOSS]


def test_an_empty_text_and_a_model_on_its_way_are_one_sentence(
    panel: LossPanel, scope: Scope
) -> None:
    """And a text brings the rows back."""
    panel.show_view(view_of(None, phase="starting"))
    assert panel.accessibleDescription().endswith("The model is being loaded.")
    show(panel, scope.edit(""))
    assert panel.accessibleDescription().endswith("to see what each token cost the model.")
    assert list(panel.rows.rows_in_sight()) == []
    show(panel, scope.edit("to be"))
    assert panel.per_token.isVisible()
    assert len(panel.rows.rows_in_sight()) == 5


def test_a_hidden_panel_is_not_drawn(panel: LossPanel, scope: Scope) -> None:
    """It catches up when it is shown."""
    show(panel, scope.edit("to"))
    panel.hide()
    panel.show_view(view_of(scope.edit("to be")))
    assert list(panel.rows.rows_in_sight()) == [0, 1]
    panel.show()
    assert "over 4 tokens" in panel.count.text()


def test_typing_at_the_end_keeps_the_end_in_sight(panel: LossPanel, scope: Scope) -> None:
    """Whoever scrolled up is left alone."""
    show(panel, scope.go_to(len(TEXT)))
    assert 25 in panel.rows.rows_in_sight()
    show(panel, scope.edit(TEXT + " a"))
    assert 27 in panel.rows.rows_in_sight()
    panel.rows.verticalScrollBar().setValue(0)
    show(panel, scope.edit(TEXT + " at"))
    assert 0 in panel.rows.rows_in_sight()


def test_what_waits_for_a_newer_answer_is_dimmed(panel: LossPanel, scope: Scope) -> None:
    """The text is nearer to the ground's colour, and all of it is still there."""
    reading = scope.go_to(len(TEXT))
    show(panel, reading)
    fresh = picture(panel)
    show(panel, reading, stale=True)
    stale = picture(panel)
    rows = panel.rows
    corner = rows.viewport().mapTo(panel, QPoint(0, 0))

    def darkest(image: object, place: QRectF) -> int:
        area = place.translated(corner).toRect()
        return min(
            image.pixelColor(x, y).lightness()  # type: ignore[attr-defined]
            for x in range(area.left() + 20, area.right() - 20)
            for y in range(area.top() + 2, area.bottom() - 2)
        )

    for row in list(rows.rows_in_sight())[2:5]:
        place = rows.row_place(row)
        assert darkest(stale, place) > darkest(fresh, place) + 40


@pytest.mark.parametrize("width", [240, 300, 346, 430, 900])
@pytest.mark.parametrize("theme", THEMES.values(), ids=lambda theme: theme.name)
def test_columns_never_overlap(
    window: QWidget, panel: LossPanel, scope: Scope, theme: Theme, width: int
) -> None:
    """From left to right, inside the list; nats are always there, the token too."""
    house(window, panel, width, 380)
    show(panel, scope.go_to(len(TEXT)), display=Display(theme=theme))
    cells = panel.rows.cells(5)
    for (_, span, _), (_, following, _) in pairwise(cells):
        assert span.right <= following.left + 0.01
    assert cells[-1][1].right <= panel.rows.viewport().width()
    assert cells[1][1].width > 3 * theme.font_body
    assert "nats" in panel.rows.header()


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
@pytest.mark.parametrize("width", [300, 346, 430, 900])
def test_no_number_is_cut_however_small_a_probability(
    window: QWidget, panel: LossPanel, scope: Scope, theme: Theme, width: int
) -> None:
    """In each column that there is room for."""
    house(window, panel, width, 380)
    show(panel, scope.go_to(len(TEXT)), display=Display(theme=theme))
    letters = {"nats": panel.rows._body, "bits": panel.rows._axis}
    wide = {"nats": "17.82", "bits": "25.71", "prob.": "< 0.001 %", "rank": "49,152"}
    for name, span in panel.rows._columns.numbers:
        assert letters.get(name, panel.rows._axis).fits(wide[name], span.width)
