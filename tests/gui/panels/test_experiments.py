"""The leak pair and the position schemes: the bundled small models on what is typed."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication, QPalette
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

import resources
from engine.experiments.records import Change, LeakTrials, SchemeReadings
from engine.experiments.small_models import SmallModels
from gui.panels import schemes
from gui.panels.leak import LeakPanel
from gui.panels.schemes import SCHEMES, SchemesPanel
from gui.questions.experimenting import LEAK_MODELS, SCHEME_MODELS
from gui.theme import THEMES
from gui.widgets.fitting_label import FittingLabel
from gui.widgets.number_field import NumberField
from gui.widgets.scheme_charts import smoothed
from gui.widgets.wrapping_label import WrappingLabel
from gui.wishes import EditText, WantLeak
from tests.gui.picture_facts import colours, point_at
from tests.gui.whole_window import WholeWindow, wait_until

LEFT = Qt.MouseButton.LeftButton
TEXT = "the king is dead and the queen is gone"


@pytest.fixture
def whole(qapp: QApplication, small_model: Path) -> Iterator[WholeWindow]:  # noqa: ARG001
    """The program with a small model of letters."""
    window = WholeWindow(model=small_model, prompt=TEXT).start()
    yield window
    window.close()


def leak_of(whole: WholeWindow) -> tuple[LeakPanel, LeakTrials]:
    """The panel in front, with the trials of the present text."""
    panel = whole.panel("leak")
    assert isinstance(panel, LeakPanel)
    whole.window.go_to_panel("leak")

    def is_there() -> bool:
        opened, reading = whole.state.leak, whole.state.reading
        is_shown = opened is not None and panel._shown is opened.answer
        return is_shown and reading is not None and opened.text == reading.document.text

    wait_until(is_there, "the trials")
    assert panel._shown is not None
    return panel, panel._shown


def schemes_of(whole: WholeWindow) -> tuple[SchemesPanel, SchemeReadings]:
    """The panel in front, with the readings of what is wanted now."""
    panel = whole.panel("schemes")
    assert isinstance(panel, SchemesPanel)
    whole.window.go_to_panel("schemes")

    def is_there() -> bool:
        opened, state = whole.state.schemes, whole.state
        if opened is None or state.reading is None or panel._shown is not opened.answer:
            return False
        wanted = state.reading.document.text, state.experiment
        return (opened.text, opened.choice) == wanted

    wait_until(is_there, "the readings")
    assert panel._shown is not None
    return panel, panel._shown


def test_the_panel_shows_the_four_losses_that_the_models_give(whole: WholeWindow) -> None:
    """And what each writes, as the same models opened by hand do."""
    panel, _trials = leak_of(whole)
    by_hand = SmallModels([resources.model_folder(name) for name in LEAK_MODELS]).leak(TEXT)
    for (trained, mask), view in panel.views.items():
        trial = by_hand.trial(trained, mask)
        said = float(view.loss.text().split(": ")[1].split()[0])
        assert said == pytest.approx(trial.mean_loss, rel=0.01, abs=0.006)
        assert view.written.toPlainText() == trial.continuation.strip("\n")
        assert view.written.isReadOnly()


def test_the_model_trained_without_the_mask_reads_the_answer_and_is_lost_with_it(
    whole: WholeWindow,
) -> None:
    _panel, trials = leak_of(whole)
    assert trials.trial("none", "none").mean_loss < 0.1
    assert trials.trial("none", "none").answer_weight > 0.9
    assert trials.trial("none", "causal").mean_loss > trials.trial("causal", "causal").mean_loss + 2


def test_the_answer_is_framed_and_moves_with_the_keys(whole: WholeWindow) -> None:
    """Up goes to the query before; its answer is the token right of the diagonal."""
    panel, trials = leak_of(whole)
    last = len(trials.tokens) - 2
    assert panel.query == last
    matrix = panel.views["none", "none"].matrix
    assert (matrix._query, matrix._key) == (last, last + 1)
    matrix.setFocus()
    QTest.keyClick(matrix, Qt.Key.Key_Up)
    assert panel.query == last - 1
    assert (matrix._query, matrix._key) == (last - 1, last)
    weight = trials.trial("none", "none").pattern[last - 1, last]
    assert repr(float(f"{weight:.8g}"))[:6] in panel.told.text()


def test_typing_reads_the_new_text_with_both_models(whole: WholeWindow) -> None:
    leak_of(whole)
    whole.type("!")
    wait_until(lambda: whole.reading.document.text != TEXT, "the longer text")
    _panel, trials = leak_of(whole)
    assert b"".join(trials.tokens).decode() == whole.editor.toPlainText()
    assert len(whole.editor.toPlainText()) == len(TEXT) + 1


def test_an_empty_text_asks_to_type_something(whole: WholeWindow) -> None:
    panel, _trials = leak_of(whole)
    whole.editor.setFocus()
    QTest.keyClick(whole.editor, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
    QTest.keyClick(whole.editor, Qt.Key.Key_Delete)
    wait_until(lambda: panel._shown is None, "the sentence")
    assert "Type something" in panel.accessibleDescription()
    assert not any(view.written.toPlainText() for view in panel.views.values())


def test_a_hidden_panel_asks_for_nothing(whole: WholeWindow) -> None:
    leak_of(whole)
    whole.window.go_to_panel("head")
    wait_until(lambda: WantLeak not in whole.state.wanted, "that nobody looks")
    before = whole.state.leak
    whole.type("?")
    whole.idle()
    assert whole.state.leak is before


def test_without_positions_the_first_layer_is_not_moved_by_another_order(
    whole: WholeWindow,
) -> None:
    """Beyond rounding, as it is with positions; and the panel says so, and that layer 1 is."""
    panel, readings = schemes_of(whole)
    assert readings.change == Change(shuffle_seed=1)
    bare = next(each for each in readings.readings if each.positions == "none")
    others = [each.moved[1] for each in readings.readings if each.positions != "none"]
    assert bare.moved[1] < 1e-6  # of numbers with 24 bits: 6e-8 is one step
    assert min(others) > 1000 * bare.moved[1]
    assert bare.moved[2] > 1000 * bare.moved[1]
    said = panel.told.text()
    assert f"moves by {bare.moved[1]:.0e} in layer 0, which sees no order" in said
    assert f"(the other four: {min(others):.3f} to {max(others):.3f})" in said
    assert f"and by {bare.moved[2]:.3f} in layer 1" in said


def test_the_figures_are_those_of_the_models_opened_by_hand(whole: WholeWindow) -> None:
    panel, _readings = schemes_of(whole)
    models = SmallModels([resources.model_folder(name) for name in SCHEME_MODELS])
    by_hand = models.schemes(TEXT, Change(shuffle_seed=1), 0, 0)
    for column, each in enumerate(by_hand.readings):
        shown = [row[column].text() for row in panel._cells._values]
        assert shown[0] == f"{each.mean_loss:.2f}"
        assert shown[1] == f"{each.changed_mean_loss:.2f}"
        assert float(shown[2]) == pytest.approx(each.probability_change, abs=0.0006)
    assert tuple(each.positions for each in by_hand.readings) == SCHEMES


def test_moving_the_text_on_is_seen_only_where_positions_are_absolute(whole: WholeWindow) -> None:
    """By a click on the choice, and a number typed into its field."""
    panel, _readings = schemes_of(whole)
    QTest.mouseClick(panel.changes.button(2), LEFT)
    _panel, readings = schemes_of(whole)
    assert readings.change == Change(shift=32)
    panel.shift.setFocus()
    panel.shift.selectAll()
    QTest.keyClicks(panel.shift, "100")
    QTest.keyClick(panel.shift, Qt.Key.Key_Return)
    _panel, readings = schemes_of(whole)
    assert readings.change == Change(shift=100)
    for each in readings.readings:
        is_absolute = each.positions in {"learned", "sinusoidal"}
        assert (each.probability_change > 1e-3) == is_absolute, each.positions


def test_the_fields_end_where_the_bundled_models_do() -> None:
    """The panel knows their sizes before it has opened them."""
    models = SmallModels([resources.model_folder(name) for name in SCHEME_MODELS])
    config = models.config
    sizes = config.max_seq_len, config.n_layer, config.n_head
    assert sizes == (schemes._CONTEXT, schemes._LAYERS, schemes._HEADS)


@pytest.mark.parametrize("name", THEMES)
def test_numbers_are_written_in_the_themes_own_colour(whole: WholeWindow, name: str) -> None:
    """The panel dresses once before it knows the theme, and its fields must not stay with that."""
    panel, _readings = schemes_of(whole)
    whole.action(f"theme_{name}").trigger()
    wait_until(lambda: whole.state.display.theme.name == name, "the theme")
    wanted = whole.state.display.theme.text.lower()
    for field in (panel.layer_field, panel.head_field, panel.seed):
        wait_until(lambda field=field: _ink(field) == wanted, "the colour")  # type: ignore[misc]


@pytest.mark.usefixtures("qapp")
@pytest.mark.parametrize("name", THEMES)
def test_what_is_said_instead_is_written_in_the_themes_own_colour(
    small_model: Path, name: str
) -> None:
    """In that of what stands back, as in every other panel, from the first theme on."""
    whole = WholeWindow(model=small_model, prompt="", theme=name).start()
    wanted = THEMES[name].text_dim.lower()
    for panel_name in ("leak", "schemes"):
        panel = whole.panel(panel_name)
        assert isinstance(panel, LeakPanel | SchemesPanel)
        whole.window.go_to_panel(panel_name)
        wait_until(lambda panel=panel: "Type something" in panel.page.sentence, "the sentence")
        label = panel.page._label
        assert label.palette().color(label.foregroundRole()).name() == wanted, panel_name
    whole.close()


def _ink(field: NumberField) -> str:
    return field.lineEdit().palette().color(QPalette.ColorRole.Text).name()


def test_another_head_is_looked_at_by_its_numbers(whole: WholeWindow) -> None:
    panel, before = schemes_of(whole)
    panel.layer_field.setFocus()
    QTest.keyClick(panel.layer_field, Qt.Key.Key_Up)
    _panel, after = schemes_of(whole)
    assert whole.state.experiment.layer == 1
    pairs = zip(before.readings, after.readings, strict=True)
    assert not any(np.array_equal(one.pattern, other.pattern) for one, other in pairs)


@pytest.mark.parametrize(
    ("field", "typed", "right"),
    [("layer_field", "9", "use 0 to 3"), ("shift", "900", "use 0 to 255"), ("seed", "x", "use 1")],
)
def test_a_number_that_is_not_possible_gets_a_sentence(
    whole: WholeWindow, field: str, typed: str, right: str
) -> None:
    panel, readings = schemes_of(whole)
    if field == "shift":
        QTest.mouseClick(panel.changes.button(2), LEFT)
        _panel, readings = schemes_of(whole)
    box = getattr(panel, field)
    box.setFocus()
    box.selectAll()
    QTest.keyClicks(box, typed)
    QTest.keyClick(box, Qt.Key.Key_Return)
    assert right in panel.complaint.text()
    assert panel.complaint.isVisible()
    assert panel._shown is readings


def test_a_long_passage_goes_beyond_the_trained_length(whole: WholeWindow) -> None:
    """It is put into the prompt, and the loss page marks where the models were trained to."""
    panel, _readings = schemes_of(whole)
    QTest.mouseClick(panel.changes.button(0), LEFT)
    QTest.mouseClick(panel.long, LEFT)
    wait_until(lambda: whole.state.text == resources.long_passage(), "the passage")
    _panel, readings = schemes_of(whole)
    assert len(readings.tokens) > readings.trained_length == 128
    QTest.mouseClick(panel.pages.button(2), LEFT)
    assert "128 tokens" in panel.told.text()
    assert panel.losses.isVisible()


def test_all_losses_are_on_one_chart_whose_legend_has_their_means(whole: WholeWindow) -> None:
    """Each with a look of its own, told apart without hue; the chart says them when hovered."""
    panel, readings = schemes_of(whole)
    QTest.mouseClick(panel.pages.button(2), LEFT)
    wait_until(lambda: panel.losses.chart.is_drawn, "the curves")
    for each, row in zip(readings.readings, panel.losses.legend.rows, strict=True):
        assert row[1:] == (f"{each.mean_loss:.2f}", f"{each.changed_mean_loss:.2f}")
    looks = panel.losses.chart.series[:5]
    assert len({(look.colour, look.mark) for look in looks}) == 5
    for colour in {look.colour for look in looks}:
        marks = [look.mark for look in looks if look.colour == colour]
        assert len(set(marks)) == len(marks)
    curves, x, y = panel.losses.chart._latest or ((), None, None)
    assert x is not None
    assert y is not None
    for each, (xs, ys) in zip(readings.readings, curves, strict=False):
        assert xs.tolist() == list(range(1, len(readings.tokens)))
        loss = each.changed_loss[1:].astype(float)
        means = [loss[max(0, end - 16) : end].mean() for end in range(1, len(loss) + 1)]
        np.testing.assert_allclose(ys, means, rtol=1e-6)
        assert y.low <= min(means) <= max(means) <= y.high
    tip = panel.losses.chart.tip_at(panel.losses.chart.place_at(4.0))
    assert "Position 4" in tip
    assert all(name in tip for name in ("learned", "sinusoidal", "rotary", "ALiBi", "none"))


def test_a_moved_text_is_drawn_at_the_positions_at_which_it_stands(whole: WholeWindow) -> None:
    panel, _readings = schemes_of(whole)
    QTest.mouseClick(panel.changes.button(2), LEFT)
    _panel, readings = schemes_of(whole)
    QTest.mouseClick(panel.pages.button(2), LEFT)
    assert panel.losses.chart._latest is not None
    (xs, _ys), *_others = panel.losses.chart._latest[0]
    assert xs.tolist() == list(range(33, 32 + len(readings.tokens)))
    assert "position 32" in panel.told.text()


def test_words_are_shuffled_alike_for_all_models_and_the_panel_says_so(whole: WholeWindow) -> None:
    panel, readings = schemes_of(whole)
    changed = b"".join(readings.changed_tokens).decode()
    assert changed != TEXT
    assert changed.endswith(" gone")
    assert "Words shuffled by seed 1, alike for all five" in panel.told.text()


def test_words_that_have_no_other_order_are_said_to_have_none(whole: WholeWindow) -> None:
    """With two words, of which the last stays, there is no other order."""
    whole.editor.setFocus()
    QTest.keyClick(whole.editor, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
    whole.type("so be")
    wait_until(lambda: whole.state.text == "so be", "the short text")
    panel, _readings = schemes_of(whole)
    assert "These words have no other order: the last one stays" in panel.told.text()


def test_in_a_low_place_heatmaps_and_figures_have_a_page_each(whole: WholeWindow) -> None:
    """So that both can be read; in a tall one they stand together."""
    panel, _readings = schemes_of(whole)
    figures, heatmap = panel.pages.button(1), panel.matrices["rotary"]
    whole.window.resize(1280, 640)
    wait_until(figures.isVisible, "the page of figures")
    assert heatmap.isVisible()
    assert panel.plain["rotary"].isVisible()
    assert not panel._cells._values[0][0].isVisible()
    QTest.mouseClick(figures, LEFT)
    assert not heatmap.isVisible()
    assert panel._cells._values[0][0].isVisible()
    whole.window.resize(1600, 1400)
    wait_until(lambda: not figures.isVisible(), "room for all")
    assert heatmap.isVisible()
    assert panel._cells._values[0][0].isVisible()


def test_in_a_tall_place_heatmaps_and_figures_take_the_room_that_names_leave(
    whole: WholeWindow,
) -> None:
    """Each row is named beside its heatmaps, not below them; figures are as large as other text."""
    panel, readings = schemes_of(whole)
    whole.window.resize(1920, 1080)
    whole.idle()
    value = panel._cells._values[0][0]
    wait_until(lambda: value.letter == panel.told.letter, "large figures")
    n_tokens = len(readings.tokens)
    for maps, name in zip((panel.plain, panel.matrices), panel._row_names, strict=True):
        for heatmap in maps.values():
            cells = heatmap.cell_rect(0, 0).united(heatmap.cell_rect(n_tokens - 1, n_tokens - 1))
            assert cells.width() > 0.135 * panel.width()
            middle = name.geometry().center().y() - heatmap.y()
            assert cells.top() < middle < cells.bottom()


def test_pointing_at_a_cell_reads_it_in_all_schemes(whole: WholeWindow) -> None:
    panel, readings = schemes_of(whole)
    matrix = panel.matrices["rotary"]
    cell = len(readings.tokens) - 1, 1
    wait_until(lambda: matrix.cell_rect(*cell).width() > 0, "the heatmap")
    place = matrix.cell_rect(*cell).center()
    QTest.mouseMove(matrix, QPoint(round(place.x()), round(place.y())))
    wait_until(lambda: "rotary" in panel.told.text() and "key" in panel.told.text(), "the words")
    for each in readings.readings:
        assert str(each.changed_pattern[cell]) in panel.told.text()
    matrix.setFocus()
    whole.press("Ctrl+C", matrix)
    copied = QGuiApplication.clipboard().text()
    (rotary,) = [each for each in readings.readings if each.positions == "rotary"]
    assert copied == str(rotary.changed_pattern[cell])
    names = [figure.name for figure in panel.figures()]
    others = ("learned", "sinusoidal", "ALiBi", "none")
    assert names[:5] == ["weight, rotary", *(f"weight, {name}" for name in others)]


def test_the_leaks_weight_is_copied_with_all_digits(whole: WholeWindow) -> None:
    """Of the heatmap that has the keyboard: the answer's, or the one that is pointed at."""
    panel, trials = leak_of(whole)
    matrix = panel.views["none", "none"].matrix
    matrix.setFocus()
    whole.press("Ctrl+C", matrix)
    query = len(trials.tokens) - 2
    pattern = trials.trial("none", "none").pattern
    assert QGuiApplication.clipboard().text() == str(pattern[query, query + 1])
    point_at(matrix, matrix.cell_rect(3, 1).center())
    whole.press("Ctrl+C", matrix)
    assert QGuiApplication.clipboard().text() == str(pattern[3, 1])


def test_a_smoothed_loss_is_the_mean_with_what_stands_before_it() -> None:
    loss = np.array([np.nan, *range(1, 31)], np.float32)
    curve = smoothed(loss)
    assert len(curve) == 30
    assert curve[0] == 1
    assert curve[2] == pytest.approx(2)
    assert curve[29] == pytest.approx(np.mean(range(15, 31)))


def test_closing_while_the_models_read_ends_at_once(qapp: QApplication, small_model: Path) -> None:  # noqa: ARG001
    window = WholeWindow(model=small_model, prompt=TEXT * 6).start()
    window.window.go_to_panel("leak")
    wait_until(lambda: WantLeak in window.state.wanted, "the panel")
    window.close()


def test_what_is_exported_says_whose_numbers_they_are(whole: WholeWindow) -> None:
    """The small models', not those of the model that is open."""
    leak, trials = leak_of(whole)
    assert leak.drawn is not None
    assert leak.more_facts(leak.drawn) == {"small_models": "positions-rotary, leak"}
    tokens, rows = leak.numbers(leak.drawn)
    assert list(rows.columns["nats_per_token"]) == [each.mean_loss for each in trials.trials]
    assert list(tokens.columns["token"]) == [token.decode() for token in trials.tokens]
    panel, _readings = schemes_of(whole)
    assert panel.drawn is not None
    facts = panel.more_facts(panel.drawn)
    assert (facts["shuffle_seed"], facts["first_position"]) == (1, 0)
    assert "positions-none" in str(facts["small_models"])


def said_on(panel: QWidget) -> str:
    """Everything that its labels and fields show, and what is said of it."""
    labels = [each.text() for each in panel.findChildren(FittingLabel)]
    labels += [each.text() for each in panel.findChildren(WrappingLabel)]
    return "\n".join((*labels, panel.accessibleDescription()))


@pytest.mark.parametrize("name", ["leak", "schemes"])
def test_without_a_text_a_sentence_has_the_whole_width(whole: WholeWindow, name: str) -> None:
    """And the pictures come back with the first letter."""
    panel = whole.panel(name)
    assert isinstance(panel, LeakPanel | SchemesPanel)
    whole.wish(EditText(""))
    whole.window.go_to_panel(name)
    wait_until(lambda: "Type something" in panel.page.sentence, "the sentence")
    label = panel.page.currentWidget()
    assert isinstance(label, WrappingLabel)
    assert label.width() > 0.9 * panel.width()
    assert label.isVisible()
    whole.wish(EditText("ab"))
    wait_until(lambda: panel._shown is not None and not panel.page.sentence, "the pictures")


@pytest.mark.parametrize("name", ["leak", "schemes"])
def test_a_loss_that_there_is_none_of_is_a_dash(whole: WholeWindow, name: str) -> None:
    """The first token has no loss: there is no number to show, and none is."""
    panel = whole.panel(name)
    assert isinstance(panel, LeakPanel | SchemesPanel)
    whole.wish(EditText("a"))
    whole.window.go_to_panel(name)
    wait_until(lambda: panel._shown is not None, "the models")
    assert "—" in said_on(panel)
    assert "nan" not in said_on(panel)
    if isinstance(panel, LeakPanel):
        assert panel.heading.text().startswith("The first token has no loss")


def test_a_text_that_is_too_long_is_said_to_be_read_from_its_end(whole: WholeWindow) -> None:
    """How much of it, in both panels; and why nothing is written behind it."""
    text = "so " * 300
    whole.wish(EditText(text))
    panel, trials = leak_of(whole)
    most = SmallModels([resources.model_folder(name) for name in LEAK_MODELS]).config.max_seq_len
    n_all = trials.n_left_out + len(trials.tokens)
    assert (len(trials.tokens), trials.n_left_out > 0) == (most, True)
    said = f"Read are the last {most} of the text's {n_all} tokens: these models see no more."
    assert panel.left_out.text() == said
    assert panel.left_out.isVisible()
    for view in panel.views.values():
        assert not view.written.toPlainText()
        assert "there is no room to go on" in view.written.placeholderText()
    positions, readings = schemes_of(whole)
    assert readings.n_left_out > 0
    assert positions.left_out.text() == said
    whole.wish(EditText("so"))
    panel, _trials = leak_of(whole)
    assert panel.left_out.isHidden()
    assert not any(view.written.placeholderText() for view in panel.views.values())


@pytest.mark.parametrize("theme", ["light", "projector"])
def test_in_a_small_window_the_schemes_are_named_and_their_pictures_fill_their_columns(
    qapp: QApplication,  # noqa: ARG001
    small_model: Path,
    theme: str,
) -> None:
    """No name is cut, the legend keeps its bar, and cells take most of what there is."""
    window = WholeWindow(model=small_model, prompt=TEXT, theme=theme).start()
    try:
        window.window.resize(1280, 720)
        panel, readings = schemes_of(window)
        window.idle()
        for label in panel._titles:
            assert "…" not in label.shown()
        n_tokens = len(readings.changed_tokens)
        for matrix in panel.matrices.values():
            first, last = matrix.cell_rect(0, 0), matrix.cell_rect(n_tokens - 1, n_tokens - 1)
            side = min(matrix.width(), matrix.height())
            assert last.right() - first.left() > 0.6 * side
        red, _green, blue = (colours(panel.legend) >> shift & 255 for shift in (16, 8, 0))
        is_bright = np.abs(red.astype(np.int64) - blue) > 60  # neither letters nor ground
        assert is_bright.any(axis=0).sum() > THEMES[theme].font_axis
    finally:
        window.close()
