"""Windows, the prepared comparison and evictions on screen, with the engine's own numbers."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

import engine.scope
import resources
from engine.conditions import Conditions
from engine.reading import Look, Reading
from engine.scope import Scope
from engine.sizes import bytes_said
from engine.windows.eviction import POLICIES, Budget
from engine.windows.fixed_window_loss import FixedWindowLoss
from engine.windows.ngram import NGram
from gui.panels.eviction_page import WAITING as DECODING
from gui.panels.prepared_page import PREPARED, first_of
from gui.panels.visible_page import WAITING as PREDICTING
from gui.panels.windows import WindowsPanel
from gui.panels.windows_page import WAITING
from gui.state import Display, Selection
from gui.theme import THEMES
from gui.widgets.token_text import display
from gui.windows_state import Answer, Asked, WindowsChoice, WindowsState, asked_by
from gui.wishes import ChooseWindows, EditText, SelectPosition, SetMask, WantWindows, Wish
from gui.words.prepared import N_SEEN, PATTERNS, SENTENCE, WORDS
from tests.gui.picture_facts import middle
from tests.gui.tiny_scope import BYTES_PER_TOKEN, house, named_scope, view_of
from tests.gui.whole_window import WholeWindow, wait_until

pytestmark = pytest.mark.qt_log_ignore(
    r"does not support (raise\(\)|grabbing the keyboard)", extend=True
)

LEFT = Qt.MouseButton.LeftButton
TEXT = "the cat saw the cat sit"
# 17 is the last "a"; the one before it stands at 9, and a "w" follows that.
QUERY, ANTECEDENT = 17, 10


@pytest.fixture
def scope() -> Scope:
    """A small model on TEXT."""
    return named_scope(TEXT)


@pytest.fixture
def panel(window: QWidget) -> WindowsPanel:
    """A shown panel with room for everything."""
    widget = WindowsPanel()
    house(window, widget, 900, 390)
    return widget


def answers(scope: Scope, reading: Reading, choice: WindowsChoice) -> tuple[Answer, ...]:
    """What the engine answers to everything that the open page asks."""
    tokens = reading.document.tokens[reading.n_fallen : reading.cursor]
    given = []
    for asked in asked_by(reading, choice):
        answer = Answer(asked, reading, asked.token_ids, tokens)
        if asked.what == "fixed window":
            loss = NGram([np.arange(27).repeat(3)], 283, 2).losses(asked.token_ids)
            fixed = FixedWindowLoss(2, loss, 81, 1, 3.25)
            given.append(replace(answer, fixed_window=fixed))
        elif asked.what == "visible":
            given.append(replace(answer, visibility=scope.visibility(reading)))
        elif asked.what == "eviction":
            assert asked.budget is not None
            given.append(replace(answer, eviction=scope.eviction(reading, asked.budget, 8)))
        else:
            token_ids, query = asked.token_ids, asked.query
            if asked.what == "sentence":
                token_ids = tuple(scope.tokenizer.encode("ask for credentials"))
                tokens = tuple(map(scope.tokenizer.token_bytes, token_ids))
                answer = replace(answer, token_ids=token_ids, tokens=tokens)
                query = len(token_ids) - 1
            assert asked.conditions is not None
            sizes = asked.sizes[0], asked.sizes[1]
            windows = scope.windows(token_ids, asked.conditions, sizes, query)
            given.append(replace(answer, windows=windows))
    return tuple(given)


def show(
    panel: WindowsPanel, scope: Scope, query: int | None = QUERY, **fields: Any
) -> tuple[Reading, WindowsState]:
    """What the window does once the engine has answered."""
    choice = WindowsChoice(**fields)
    reading = scope.look(Look(query=query))
    state = WindowsState(choice=choice, answers=answers(scope, reading, choice))
    panel.show_view(view_of(reading, windows=state, selection=Selection(query=query)))
    QApplication.processEvents()
    return reading, state


def click(panel: WindowsPanel, page: str) -> None:
    """Press one of the buttons above the pages."""
    button = next(each for each in panel.pages.buttons() if each.text() == page)
    QTest.mouseClick(button, LEFT)


# Windows


def test_strips_show_the_losses_and_means_of_each_mask(panel: WindowsPanel, scope: Scope) -> None:
    """Against a fresh model that reads the text under that mask as its main run."""
    show(panel, scope, window=4, sinks=1)
    strips = panel.windows.table.strips
    for strip, mask in zip(
        strips,
        (
            Conditions(),
            Conditions(mask="window", window=4),
            Conditions(mask="window", window=4, sinks=1),
        ),
        strict=False,
    ):
        session = named_scope(TEXT).set_conditions(mask).session
        wanted = ["", *(f"{each:.2f}" for each in session.loss[1:])]
        assert list(strip.texts) == wanted
        assert f"mean {session.loss[1:].mean():.2f}" in strip.wordings[0]
    assert strips[1].wordings[0].startswith("window of 4")
    assert strips[2].wordings[0].startswith("first 1 + window of 4")


def test_bytes_are_those_of_min_of_tokens_and_window(panel: WindowsPanel, scope: Scope) -> None:
    show(panel, scope, window=4, sinks=1)
    for strip, n_keys in zip(panel.windows.table.strips, (len(TEXT), 4, 5), strict=False):
        assert f"cache {bytes_said(n_keys * BYTES_PER_TOKEN)}" in strip.wordings[0]
        assert f"{n_keys} of {len(TEXT)} keys" in strip.wordings[0]


def test_lanes_show_what_the_query_sees(panel: WindowsPanel, scope: Scope) -> None:
    show(panel, scope, window=4, sinks=1)
    causal, window, first, counts = (strip.held for strip in panel.windows.table.strips)
    assert causal is not None
    assert window is not None
    assert first is not None
    assert counts is not None
    assert np.isnan(causal[QUERY + 1 :]).all()
    assert causal[: QUERY + 1].tolist() == [1] * 18
    assert np.flatnonzero(window == 1).tolist() == [14, 15, 16, 17]
    assert np.flatnonzero(first == 1).tolist() == [0, 14, 15, 16, 17]
    assert np.flatnonzero(counts == 1).tolist() == [16, 17]


def test_the_antecedent_lies_beyond_the_window(panel: WindowsPanel, scope: Scope) -> None:
    """It is marked, its weight is told under each mask, and so is what follows."""
    _reading, state = show(panel, scope, window=4, sinks=1)
    answer = state.answer("windows")
    assert answer is not None
    assert answer.windows is not None
    assert panel.windows.table.mark == ANTECEDENT
    assert panel.windows.table.query == QUERY
    under = answer.windows.masks
    row = under[0].row[:, :, ANTECEDENT]
    layer, head = np.unravel_index(row.argmax(), row.shape)
    told = panel.windows.told.text()
    assert f"layer {layer}, head {head} weighs it {row.max():.2f} → 0.00 → 0.00" in told
    costs = " → ".join(f"{each.loss[QUERY + 1]:.2f}" for each in under)
    assert f"costs {costs} nats" in told
    strips = panel.windows.table.strips
    assert f"on the antecedent {row.max():.2f}" in strips[0].wordings[0]
    assert "antecedent out of sight" in strips[1].wordings[0]


def test_a_query_whose_token_never_stood_before_has_no_antecedent(
    panel: WindowsPanel, scope: Scope
) -> None:
    show(panel, scope, query=1)
    assert panel.windows.table.mark is None
    assert "it never stood before" in panel.windows.told.text()


def test_at_the_end_of_the_text_the_most_probable_tokens_are_told(
    panel: WindowsPanel, scope: Scope
) -> None:
    show(panel, scope, query=None)
    assert "Most probable next: " in panel.windows.told.text()


def test_the_n_gram_model_stands_beside_with_what_it_counted(
    panel: WindowsPanel, scope: Scope
) -> None:
    _reading, state = show(panel, scope)
    fixed = state.answer("fixed window")
    assert fixed is not None
    assert fixed.fixed_window is not None
    strip = panel.windows.table.strips[3]
    assert list(strip.texts[1:]) == [f"{each:.2f}" for each in fixed.fixed_window.loss[1:]]
    assert "2 previous tokens" in strip.wordings[0]
    note = panel.windows.note.text()
    assert "81 tokens of 1 plays" in note
    assert "3.25 nats per token" in note


def test_without_an_n_gram_model_a_sentence_says_why(panel: WindowsPanel, scope: Scope) -> None:
    reading, state = show(panel, scope)
    fixed = state.answer("fixed window")
    assert fixed is not None
    state = state.with_answer(replace(fixed, fixed_window=None, obstacle="no plays."))
    panel.show_view(view_of(reading, windows=state))
    assert panel.windows.obstacle.text() == "There is no n-gram model beside it: no plays."
    assert len(panel.windows.table.strips) == 3


def test_sizes_are_moved_by_the_keyboard(
    panel: WindowsPanel, scope: Scope, wishes: list[Wish]
) -> None:
    show(panel, scope, window=4, sinks=1)
    QTest.keyClick(panel.windows.window_size.slider, Qt.Key.Key_Right)
    QTest.keyClick(panel.windows.sinks.slider, Qt.Key.Key_Left)
    QTest.keyClick(panel.windows.window_size.field, Qt.Key.Key_Up)
    assert wishes == [
        ChooseWindows({"window": 5}),
        ChooseWindows({"sinks": 0}),
        ChooseWindows({"window": 5}),
    ]


def test_a_size_that_cannot_be_is_told_in_a_sentence(
    panel: WindowsPanel, scope: Scope, wishes: list[Wish]
) -> None:
    show(panel, scope, window=4)
    field = panel.windows.window_size.field
    for typed, sentence in (
        ("0", "a window of 0 positions with 0 first ones is not possible; "),
        ("99", "window = 99 reaches beyond the 32 positions that this model sees; use 1 to 32."),
    ):
        field.lineEdit().selectAll()
        QTest.keyClicks(field, typed)
        QTest.keyClick(field, Qt.Key.Key_Return)
        assert panel.windows.complaint.text().startswith(sentence)
    assert wishes == []


def test_keys_and_clicks_on_the_strips_choose_query_and_antecedent(
    panel: WindowsPanel, scope: Scope, wishes: list[Wish]
) -> None:
    show(panel, scope)
    table = panel.windows.table
    QTest.keyClick(table, Qt.Key.Key_Left)
    QTest.keyClick(table, Qt.Key.Key_Right, Qt.KeyboardModifier.ShiftModifier)
    y, x = middle(table.cell_place(0, QUERY))
    QTest.mouseClick(table.viewport(), LEFT, pos=QPoint(x, y))
    assert wishes == [
        SelectPosition(QUERY - 1),
        SelectPosition(QUERY, ANTECEDENT + 1),
        SelectPosition(QUERY),
    ]


def test_an_answer_to_another_text_is_dimmed(panel: WindowsPanel, scope: Scope) -> None:
    _reading, state = show(panel, scope)
    assert not panel.windows.table.is_stale
    longer = scope.edit(f"{TEXT} on")
    panel.show_view(view_of(longer, windows=state))
    assert panel.windows.table.is_stale
    assert len(panel.windows.table.strips[0].texts) == len(TEXT)


# Without much to show


@pytest.mark.parametrize("page", ["windows", "visible", "prepared", "eviction"])
def test_each_page_says_what_it_waits_for(panel: WindowsPanel, page: Any) -> None:
    state = WindowsState(choice=WindowsChoice(page=page))
    panel.show_view(view_of(None, windows=state))
    assert "The model is being loaded." in _sentences(panel)
    panel.show_view(view_of(named_scope("").look(Look()), windows=state))
    assert any(each.startswith("There is no text yet.") for each in _sentences(panel))
    waiting = {
        "windows": WAITING,
        "visible": PREDICTING,
        "prepared": "The sentence is being read",
        "eviction": DECODING,
    }[page]
    panel.show_view(view_of(named_scope(TEXT).look(Look()), windows=state))
    assert any(each.startswith(waiting) for each in _sentences(panel))


def _sentences(panel: WindowsPanel) -> list[str]:
    pages = panel.windows, panel.visible, panel.eviction
    tables = (panel.prepared.live, *(page.table for page in pages))
    return [table.accessibleDescription() for table in tables]


@pytest.mark.parametrize("text", ["a", "abcdefghijklmnopqrstuvwxyz abcd"])
@pytest.mark.parametrize("page", ["windows", "visible", "prepared", "eviction"])
@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_one_token_and_a_full_context_are_drawn(
    panel: WindowsPanel, text: str, page: Any, theme: Any
) -> None:
    scope = named_scope(text)
    choice = WindowsChoice(page=page)
    reading = scope.look(Look())
    state = WindowsState(choice=choice, answers=answers(scope, reading, choice))
    panel.show_view(view_of(reading, windows=state, display=Display(theme=theme)))
    panel.whole.click()
    assert not panel.grab().isNull()
    table = {
        "windows": panel.windows.table,
        "visible": panel.visible.table,
        "prepared": panel.prepared.live,
        "eviction": panel.eviction.table,
    }[page]
    said = " ".join(strip.wordings[0] for strip in table.strips)
    assert "nan" not in said
    is_lossy = page in {"windows", "eviction"}
    assert ("no loss yet" in said) == (len(text) == 1 and is_lossy)


# Prepared


def test_the_prepared_comparison_says_that_it_is_prepared(
    panel: WindowsPanel, scope: Scope
) -> None:
    show(panel, scope, page="prepared")
    assert "Prepared, not computed" in panel.prepared.label.text()
    assert PREPARED in panel.accessibleDescription()
    (table,) = (each for each in panel.numbers(panel.drawn) if each.name.startswith("prepared"))  # type: ignore[arg-type]
    assert table.name == "prepared_not_computed"


def test_the_sentence_has_the_lessons_words_and_hides_one_from_three() -> None:
    words = [word.strip(",.") for word in WORDS]
    assert {"route", "to", "credentials"} <= set(words)
    assert "route" in words[-N_SEEN:]
    assert "credentials" not in words[-N_SEEN:]
    for pattern in PATTERNS:
        assert len(pattern.weights) == len(WORDS)
        assert sum(pattern.weights) == pytest.approx(1)
        assert min(pattern.weights) >= 0


def test_the_live_weights_beside_it_are_the_selected_heads(
    panel: WindowsPanel, scope: Scope
) -> None:
    """Of the sentence's last token, under each mask."""
    _reading, state = show(panel, scope, page="prepared", sentence_window=3)
    answer = state.answer("sentence")
    assert answer is not None
    assert answer.windows is not None
    strips = panel.prepared.live.strips
    for strip, under in zip(strips, answer.windows.masks, strict=True):
        assert list(strip.texts) == [f"{each:.2f}" for each in under.row[0, 0]]
    assert strips[1].held is not None
    assert np.flatnonzero(strips[1].held).tolist() == [16, 17, 18]
    assert panel.prepared.live.mark == len("ask for ")
    QTest.keyClick(panel.prepared.live, Qt.Key.Key_Left)
    assert panel.prepared.live.mark == len("ask for ") - 1


def test_the_sentence_can_be_put_into_the_prompt(
    panel: WindowsPanel, scope: Scope, wishes: list[Wish]
) -> None:
    show(panel, scope, page="prepared")
    QTest.mouseClick(panel.prepared.into_prompt, LEFT)
    QTest.keyClick(panel.prepared.window_size.slider, Qt.Key.Key_Right)
    assert wishes == [EditText(SENTENCE), ChooseWindows({"sentence_window": 4})]


def test_the_token_in_which_a_word_begins() -> None:
    assert first_of((b"As", b"k c", b"red", b"o"), b"cred") == 1
    assert first_of((b"As", b"k"), b"cred") is None


# Eviction


def test_the_strips_show_both_losses_and_their_difference(
    panel: WindowsPanel, scope: Scope
) -> None:
    _reading, state = show(panel, scope, page="eviction", n_keys=5)
    answer = state.answer("eviction")
    assert answer is not None
    eviction = answer.eviction
    assert eviction is not None
    _held, full, under, change = panel.eviction.table.strips
    assert list(full.texts[1:]) == [f"{each:.2f}" for each in eviction.full_loss[1:]]
    assert list(under.texts[1:]) == [f"{each:.2f}" for each in eviction.loss[1:]]
    by = eviction.loss - eviction.full_loss
    assert list(change.texts[1:]) == [f"{each:+.2f}" for each in by[1:]]
    assert f"cache {bytes_said(5 * BYTES_PER_TOKEN)}" in under.wordings[0]
    assert f"cache {bytes_said(len(TEXT) * BYTES_PER_TOKEN)}" in full.wordings[0]


def test_the_lane_shows_what_is_held_at_the_selected_step(
    panel: WindowsPanel, scope: Scope
) -> None:
    show(panel, scope, page="eviction", policy="first + window", n_keys=5, sinks=2)
    held = panel.eviction.table.strips[0].held
    assert held is not None
    assert np.flatnonzero(held == 1).tolist() == [0, 1, 15, 16, 17]
    assert np.flatnonzero(held == 0).tolist() == list(range(2, 15))
    assert "5 of 18" in panel.eviction.table.heading(0)
    assert "gave up" in panel.eviction.told.text()
    assert "(14)" in panel.eviction.told.text()


def test_both_continuations_stand_there_up_to_where_they_part(
    panel: WindowsPanel, scope: Scope
) -> None:
    _reading, state = show(panel, scope, page="eviction", n_keys=2)
    answer = state.answer("eviction")
    assert answer is not None
    assert answer.eviction is not None
    full = "".join(map(display, answer.eviction.full_continuation.tokens))
    under = "".join(map(display, answer.eviction.continuation.tokens))
    said = [
        label.text().split(": ")[1].replace("\u200b", "").replace(" ‖ ", "")
        for label in (panel.eviction.full, panel.eviction.under)
    ]
    assert said == [full, under]
    common = answer.eviction.continuation.n_common(answer.eviction.full_continuation)
    assert f"agree for {common} of 8 tokens" in panel.eviction.agreement.text()


def test_a_budget_is_given_in_keys_or_in_mebibytes(
    panel: WindowsPanel, scope: Scope, wishes: list[Wish]
) -> None:
    """One key takes 128 bytes in all layers, so 0.001 MiB (1,048.6 bytes) holds 8."""
    assert BYTES_PER_TOKEN == 128
    show(panel, scope, page="eviction", n_keys=5)
    field = panel.eviction.mebibytes
    assert field.text() == "0.0006104"  # 640 / 2**20
    for typed in ("0.001", "0.00001"):
        field.lineEdit().selectAll()
        QTest.keyClicks(field, typed)
        QTest.keyClick(field, Qt.Key.Key_Return)
    QTest.keyClick(panel.eviction.budget.slider, Qt.Key.Key_Right)
    assert wishes == [ChooseWindows({"n_keys": 8}), ChooseWindows({"n_keys": 6})]
    assert panel.eviction.complaint.text() == (
        "1e-05 MiB holds no key; one takes 0.00012207 MiB in all layers together."
    )


def test_the_policy_is_chosen_by_the_keyboard(
    panel: WindowsPanel, scope: Scope, wishes: list[Wish]
) -> None:
    show(panel, scope, page="eviction")
    assert panel.eviction.sinks.isHidden()
    QTest.keyClick(panel.eviction.policy, Qt.Key.Key_Down)
    assert wishes == [ChooseWindows({"policy": POLICIES[1]})]


# What leaves the program


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("windows", ["losses", "masks", "weights", "n_gram"]),
        ("visible", ["tokens", "predictions", "expected"]),
        ("prepared", ["prepared_not_computed", "live_losses", "live_masks", "live_weights"]),
        ("eviction", ["tokens", "budget", "continuation", "continuation_with_all_keys"]),
    ],
)
def test_numbers_are_the_arrays_that_were_measured(
    panel: WindowsPanel, scope: Scope, page: Any, names: list[str]
) -> None:
    reading, state = show(panel, scope, page=page)
    view = panel.drawn
    assert view is not None
    tables = {table.name: table for table in panel.numbers(view)}
    assert list(tables) == names
    assert panel.reading_of(view) is reading
    if page == "windows":
        answer = state.answer("windows")
        assert answer is not None
        assert answer.windows is not None
        for column, under in enumerate(answer.windows.masks):
            nats = np.asarray(tables["losses"].columns["nats"])
            np.testing.assert_array_equal(nats[:, column], under.loss)
        weights = np.asarray(tables["weights"].columns["weight"])
        np.testing.assert_array_equal(weights[0], answer.windows.masks[0].row[0, 0])
    for table in tables.values():
        assert len({len(np.asarray(column)) for column in table.columns.values()}) == 1


@pytest.mark.parametrize("page", ["windows", "eviction"])
def test_the_key_for_copying_copies_the_querys_loss(
    panel: WindowsPanel, scope: Scope, page: Any
) -> None:
    _reading, state = show(panel, scope, page=page)
    figures = panel.figures()
    if page == "windows":
        answer = state.answer("windows")
        assert answer is not None
        assert answer.windows is not None
        wanted = [str(under.loss[QUERY]) for under in answer.windows.masks]
    else:
        answer = state.answer("eviction")
        assert answer is not None
        assert answer.eviction is not None
        wanted = [str(answer.eviction.loss[QUERY]), str(answer.eviction.full_loss[QUERY])]
    assert [figure.digits for figure in figures] == wanted


# The whole window


@pytest.fixture
def plays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two short plays in place of the bundled ones, the second kept out."""
    folder = tmp_path / "plays"
    folder.mkdir()
    (folder / "a.txt").write_text("the cat sat on the mat. " * 20)
    (folder / "b.txt").write_text("the dog sat on the log. " * 5)
    monkeypatch.setattr(resources, "plays", lambda: (folder, ("b",)))
    return folder


@pytest.fixture
def whole(
    qapp: QApplication,  # noqa: ARG001
    small_model: Path,
    plays: Path,  # noqa: ARG001
    tmp_path: Path,
) -> Iterator[WholeWindow]:
    """The program with a small model, open on TEXT."""
    window = WholeWindow(tmp_path / "scope.ini", model=small_model, prompt=TEXT).start()
    yield window
    window.close()


def answer_of(whole: WholeWindow, what: str) -> Answer:
    """Wait until the page's answer is that to what is wanted now."""

    def is_there() -> bool:
        windows = whole.state.windows
        found = windows.answer(what)
        wanted = asked_by(whole.reading, windows.choice)
        return found is not None and found.asked in wanted and found.is_whole

    wait_until(is_there, what)
    answer = whole.state.windows.answer(what)
    assert answer is not None
    return answer


def test_the_panel_is_filled_while_it_is_seen_and_follows_the_text(whole: WholeWindow) -> None:
    """The losses are those that the main run has under these masks."""
    whole.window.go_to_panel("windows")
    answer = answer_of(whole, "windows")
    fixed = answer_of(whole, "fixed window")
    assert answer.windows is not None
    assert fixed.fixed_window is not None
    assert fixed.fixed_window.n_counted == 24 * 20
    whole.wish(SetMask({"mask": "window", "window": 8, "sinks": 0}))
    np.testing.assert_allclose(answer.windows.masks[1].loss, whole.reading.session.loss, atol=2e-6)
    whole.wish(SetMask({"mask": "causal"}))
    whole.wish(EditText(f"{TEXT}s"))
    longer = answer_of(whole, "windows")
    assert len(longer.tokens) == len(TEXT) + 1
    panel = whole.panel("windows")
    assert isinstance(panel, WindowsPanel)
    wait_until(lambda: not panel.windows.table.is_stale, "fresh strips")
    assert len(panel.windows.table.strips) >= 3


def test_pages_are_worked_out_when_they_are_opened_and_not_before(
    whole: WholeWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    evicted: list[Budget] = []
    evict = engine.scope.Scope.eviction

    def counted(scope: Scope, reading: Reading, budget: Budget, *more: Any) -> Any:
        evicted.append(budget)
        return evict(scope, reading, budget, *more)

    monkeypatch.setattr(engine.scope.Scope, "eviction", counted)
    whole.window.go_to_panel("windows")
    panel = whole.panel("windows")
    assert isinstance(panel, WindowsPanel)
    answer_of(whole, "windows")
    click(panel, "Prepared")
    sentence = answer_of(whole, "sentence")
    assert b"".join(sentence.tokens).decode() == SENTENCE
    assert whole.state.text == TEXT
    assert panel.drawn is not None
    live = {table.name: table for table in panel.numbers(panel.drawn)}["live_losses"]
    assert "".join(live.columns["token"]) == SENTENCE
    assert evicted == []
    click(panel, "Eviction")
    answer_of(whole, "eviction")
    assert evicted == [Budget(n_keys=16)]
    QTest.keyClick(panel.eviction.budget.slider, Qt.Key.Key_Left)
    eviction = answer_of(whole, "eviction").eviction
    assert eviction is not None
    assert eviction.budget == Budget(n_keys=15)
    whole.wish(SelectPosition(5))  # another step of the same answer
    whole.idle()
    assert len(evicted) == 2


def test_a_hidden_panel_costs_nothing(whole: WholeWindow, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[None] = []
    windows: Callable[..., Any] = engine.scope.Scope.windows
    monkeypatch.setattr(
        engine.scope.Scope,
        "windows",
        lambda *operands: (asked.append(None), windows(*operands))[1],
    )
    whole.wish(EditText("the cat"))
    assert asked == []
    whole.window.go_to_panel("windows")
    answer_of(whole, "windows")
    assert len(asked) == 1
    whole.window.go_to_panel("head")
    wait_until(lambda: WantWindows not in whole.state.wanted, "the panel to be hidden")
    whole.wish(EditText("the cat sat"))
    assert len(asked) == 1


def test_what_is_worked_out_here_gives_way_to_other_panels(
    whole: WholeWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An eviction that never ends is given up for the lens, and taken up again.

    What is known before anything is written is shown meanwhile.
    """
    begun: list[None] = []

    evict = engine.scope.Scope.eviction

    def endless(
        scope: Scope, reading: Reading, budget: Budget, n_more: int, void: Any, told: Any, part: Any
    ) -> Any:
        begun.append(None)

        def so_far(found: Any) -> None:
            part(found)
            while not void():
                time.sleep(0.001)

        return evict(scope, reading, budget, n_more, void, told, so_far)

    monkeypatch.setattr(engine.scope.Scope, "eviction", endless)
    whole.wish(ChooseWindows({"page": "eviction"}))
    whole.window.go_to_panel("windows")
    wait_until(lambda: whole.state.windows.answer("eviction") is not None, "the losses")
    panel = whole.panel("windows")
    assert isinstance(panel, WindowsPanel)
    wait_until(lambda: len(panel.eviction.table.strips) == 4, "strips")
    assert panel.eviction.agreement.text().startswith("The continuations are being written")
    assert panel.eviction.full.text() == panel.eviction.under.text() == ""
    whole.window.go_to_panel("lens")
    wait_until(lambda: whole.state.lens is not None, "the lens")
    wait_until(lambda: len(begun) == 2, "the eviction again")


def test_a_budget_goes_with_the_mask_and_says_why_it_cannot_without_one(
    whole: WholeWindow,
) -> None:
    whole.window.go_to_panel("windows")
    panel = whole.panel("windows")
    assert isinstance(panel, WindowsPanel)
    click(panel, "Eviction")
    whole.wish(SetMask({"mask": "none"}))
    answer_of(whole, "eviction")
    table = panel.eviction.table
    wait_until(
        lambda: table.accessibleDescription().startswith("Without the mask each further token"),
        "the sentence",
    )
    assert "switch the mask on to try a budget." in panel.accessibleDescription()
    whole.wish(SetMask({"mask": "window", "window": 3, "sinks": 0}))
    eviction = answer_of(whole, "eviction").eviction
    assert eviction is not None
    np.testing.assert_allclose(eviction.full_loss, whole.reading.session.loss, atol=2e-6)
    wait_until(lambda: bool(table.strips), "strips")
    assert "no budget, window of 3: " in table.strips[1].wordings[0]


def test_an_impossible_choice_is_told_and_not_taken(whole: WholeWindow) -> None:
    before = whole.state.windows.choice
    told: list[str] = []
    whole.app.messages.listen(lambda message: told.append(message.sentence))
    whole.wish(ChooseWindows({"policy": "first + window", "n_keys": 2, "sinks": 2}))
    assert whole.state.windows.choice == before
    assert told == [
        "a budget of 2 keys does not hold the first 2 and the newest; use 0 to 1 first ones."
    ]


def test_missing_plays_are_told_where_the_n_gram_would_be(whole: WholeWindow, plays: Path) -> None:
    for play in plays.glob("*.txt"):
        play.unlink()
    whole.window.go_to_panel("windows")
    answer = answer_of(whole, "fixed window")
    assert "holds no .txt file" in answer.obstacle
    panel = whole.panel("windows")
    assert isinstance(panel, WindowsPanel)
    wait_until(lambda: "no n-gram model" in panel.windows.obstacle.text(), "the sentence")


def test_questions_that_differ_in_anything_are_different() -> None:
    scope = named_scope(TEXT)
    reading = scope.look(Look(query=QUERY))
    choice = WindowsChoice()
    asked = asked_by(reading, choice)
    assert asked == asked_by(scope.look(Look(query=QUERY)), choice)
    assert asked != asked_by(reading, replace(choice, window=9))
    assert asked != asked_by(scope.look(Look(query=3)), choice)
    assert asked != asked_by(scope.edit(f"{TEXT}s"), choice)
    assert asked_by(named_scope("").look(Look()), choice) == ()
    assert isinstance(asked[0], Asked)
