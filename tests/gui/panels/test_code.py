"""The engine's own lines on screen: read off, copied, checked; hidden, they cost nothing."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QGuiApplication, QTextBlock, QTextCursor
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

import engine.attention
import engine.scope
from engine.answers.code_lines import EngineCode
from engine.conditions import Conditions
from engine.errors import EngineError
from engine.reading import Look, Reading
from engine.scope import Scope
from gui.panels.code import WAITING, CodePanel
from gui.state import Display, OpenedCode
from gui.theme import THEMES
from gui.widgets.code_spans import spans
from gui.widgets.code_view import CodeView
from gui.wishes import EditText, SelectHead, SelectPosition, WantCode
from gui.words.code_parts import HINT
from tests.gui.picture_facts import colours
from tests.gui.tiny_scope import house, picture, view_of
from tests.gui.whole_window import WholeWindow, wait_until

TEXT = "to be or not"
LETTERS = "abcdefghijklmnopqrstuvwxyz "
LINES = Path(str(engine.attention.__file__)).read_text(encoding="utf-8").splitlines()


@pytest.fixture
def make_scope(lettered: Callable[..., Scope]) -> Callable[..., Scope]:
    """`make_scope(score_cap=2.0)` has a small random model open on TEXT."""

    def make(text: str = TEXT, **sizes: Any) -> Scope:
        return lettered(text, **sizes)

    return make


@pytest.fixture
def panel(window: QWidget) -> CodePanel:
    """A shown panel."""
    widget = CodePanel()
    house(window, widget, 900, 380)
    return widget


def show(panel: CodePanel, scope: Scope, look: Look | None = None, **fields: Any) -> EngineCode:
    """What the window does once the lines are there."""
    reading = scope.look(look or Look(1, 2, None))
    code = scope.code(reading)
    assert code is not None
    opened = fields.pop("code", OpenedCode(reading, code))
    panel.show_view(view_of(reading, code=opened, wanted=frozenset({WantCode}), **fields))
    QApplication.processEvents()
    return code


def of(panel: CodePanel, kind: str) -> list[str]:
    """The text of all parts of one kind, with plain spaces."""
    return [p.text.replace("\u00a0", " ") for p in panel.view.parts() if p.kind == kind]


# What is shown


def test_the_lines_are_those_of_the_file_with_the_shapes_of_the_tensors(
    panel: CodePanel, make_scope: Callable[..., Scope]
) -> None:
    """Twelve tokens, four heads on two keys, of four features."""
    show(panel, make_scope())
    four = of(panel, "code")[:4]
    first = next(at for at, line in enumerate(LINES) if line.strip() == four[0])
    assert [line.strip() for line in LINES[first : first + 4]] == four
    assert f"attention.py {first + 1}–{first + 4}" in panel.heading.text()
    assert of(panel, "shapes")[:4] == [
        "q [H 4, T 12, D 4] · scoring.scale = 0.5 · k [G 2, S 12, D 4] → scores [H 4, T 12, S 12]",
        "scores [H 4, T 12, S 12] · start = 0 → scores [H 4, T 12, S 12]",
        "scores [H 4, T 12, S 12] → weights [H 4, T 12, S 12]",
        "weights [H 4, T 12, S 12] · v [G 2, S 12, D 4] → mix [H 4, T 12, D 4]",
    ]
    assert f"Selected: row 11 of T (position 11), row 2 of H. {HINT}" in of(panel, "note")
    shown = panel.view.toPlainText()
    for text in (*four, *of(panel, "shapes"), *of(panel, "note"), *of(panel, "title")):
        assert text in shown


def test_a_step_shows_its_one_query(panel: CodePanel, make_scope: Callable[..., Scope]) -> None:
    scope = make_scope()
    scope.step()
    show(panel, scope)
    assert of(panel, "shapes")[2] == "scores [H 4, T 1, S 13] → weights [H 4, T 1, S 13]"
    assert f"Selected: row 0 of T (position 12), row 2 of H. {HINT}" in of(panel, "note")
    assert "The call for position 12. H heads," in of(panel, "note")[1]
    show(panel, scope, Look(0, 3, 5))
    assert of(panel, "shapes")[2] == "scores [H 4, T 12, S 12] → weights [H 4, T 12, S 12]"
    assert f"Selected: row 5 of T (position 5), row 3 of H. {HINT}" in of(panel, "note")
    assert panel.heading.text().startswith("Layer 0:")


def test_the_caller_and_what_is_called_stand_below(
    panel: CodePanel, make_scope: Callable[..., Scope]
) -> None:
    """Every line of them as in the file, with the recorded tensors of the pass."""
    show(panel, make_scope())
    in_file = {line.strip() for line in LINES}
    around = [text for text in of(panel, "code")[4:] if "F.scaled" not in text][1:]
    assert len(around) == 4
    for text in around:
        assert {line.strip() for line in text.splitlines()} <= in_file
    assert "recorded: q [H 4, T 12, D 4] · k [G 2, T 12, D 4] · v [G 2, T 12, D 4]" in of(
        panel, "shapes"
    )
    titles = " ".join(of(panel, "title"))
    for name in (
        "Attention.forward",
        "Attention.project",
        "matmul_heads",
        "Scoring.masked",
        "fused_mix",
    ):
        assert name in titles


# The second opinion


def test_the_largest_difference_is_told_with_its_place_and_can_fail(
    panel: CodePanel, make_scope: Callable[..., Scope]
) -> None:
    """A glyph, a word and a figure; all digits in the sentence."""
    scope = make_scope()
    code = show(panel, scope)
    fused = code.fused
    assert fused is not None
    assert panel.check.verdict == "holds"
    figure = panel.check.text().rpartition(": ")[2]
    assert float(figure) == pytest.approx(float(fused.difference), rel=0.06)
    told = next(text for text in of(panel, "note") if "largest difference" in text)
    for number in (fused.difference, fused.mix, fused.fused):
        assert str(number) in told
    assert f"head {fused.head} at position {fused.position}, feature {fused.feature}" in told
    assert "scaled_dot_product_attention" in of(panel, "code")[5]
    for wrong in (np.float32(2 * fused.most), np.float32("nan")):
        reading = scope.look(Look(1, 2, None))
        off = replace(code, fused=replace(fused, difference=wrong))
        show(panel, scope, code=OpenedCode(reading, off))
        assert panel.check.verdict == "fails"
        assert panel.check.text().startswith("✗")


def test_capped_scores_are_not_compared_and_a_sentence_says_why(
    panel: CodePanel, make_scope: Callable[..., Scope]
) -> None:
    show(panel, make_scope(score_cap=2.0))
    assert panel.check.verdict == "idle"
    assert panel.check.text().endswith("not compared")
    assert any("cannot cap scores, as this layer does at ± 2" in n for n in of(panel, "note"))
    assert panel.figures() == ()
    assert len(of(panel, "code")) == 4 + 4


def test_heads_that_are_off_are_named(panel: CodePanel, make_scope: Callable[..., Scope]) -> None:
    scope = make_scope()
    scope.set_conditions(Conditions(heads_off=frozenset({(1, 0), (1, 3), (0, 1)})))
    show(panel, scope)
    (note,) = [text for text in of(panel, "note") if "off" in text]
    assert note.startswith("Heads 0, 3 of this layer are off: what they mixed here is replaced")
    show(panel, scope, Look(0, 0, None))
    (note,) = [text for text in of(panel, "note") if "off" in text]
    assert note.startswith("Head 1 of this layer is off: what it mixed here is replaced")


# Nothing, waiting, old


def test_without_a_text_or_a_model_a_sentence_says_so(
    panel: CodePanel, make_scope: Callable[..., Scope]
) -> None:
    reading = make_scope("").edit("")
    panel.show_view(view_of(reading, code=OpenedCode(reading, None), wanted=frozenset({WantCode})))
    assert of(panel, "sentence")[0].startswith("There is no text yet.")
    panel.show_view(view_of(None, phase="starting"))
    assert of(panel, "sentence") == ["The model is being loaded."]
    assert panel.check.isHidden()


def test_what_keeps_the_lines_from_being_shown_stands_in_their_place(
    panel: CodePanel, make_scope: Callable[..., Scope]
) -> None:
    reading = make_scope().look(Look())
    panel.show_view(view_of(reading, wanted=frozenset({WantCode})))
    assert of(panel, "sentence") == [WAITING]
    obstacle = "attend was changed since the program started; start it again."
    panel.show_view(
        view_of(reading, code=OpenedCode(reading, None, obstacle), wanted=frozenset({WantCode}))
    )
    assert of(panel, "sentence") == [obstacle]
    assert panel.view.toPlainText() == obstacle


def test_old_lines_are_dimmed_until_the_new_ones_come(
    panel: CodePanel, make_scope: Callable[..., Scope]
) -> None:
    scope = make_scope()
    reading = scope.look(Look(1, 2, None))
    opened = OpenedCode(reading, scope.code(reading))
    theme = THEMES["light"]
    query = QColor(theme.query).rgb()
    panel.show_view(view_of(reading, code=opened, wanted=frozenset({WantCode})))
    assert (colours(panel.view) == query).any()
    panel.show_view(
        view_of(scope.look(Look(0, 1, None)), code=opened, wanted=frozenset({WantCode}))
    )
    wait_until(lambda: not (colours(panel.view) == query).any())
    panel.show_view(view_of(reading, code=opened, wanted=frozenset({WantCode})))
    assert (colours(panel.view) == query).any()


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_q_k_and_v_have_their_hues_in_every_theme(
    panel: CodePanel, make_scope: Callable[..., Scope], theme: Any
) -> None:
    """And everything reads as plain text, whatever it looks like."""
    show(panel, make_scope(), display=Display(theme=theme))
    shown = colours(panel.view)
    for colour in (theme.query, theme.key, theme.text):
        assert (shown == QColor(colour).rgb()).any()
    assert not picture(panel).isNull()
    assert "<" not in panel.heading.text()


def test_pythons_own_tokenizer_tells_what_is_what() -> None:
    code = "if q:  # if k\n    x = [\n        v, 1.5]"
    found = {code[span.start : span.stop]: span.kind for span in spans(code)}
    assert found == {
        "if": "keyword",
        "q": "query",
        "# if k": "comment",
        "v": "value",
        "1.5": "number",
    }


# Keys, copying, numbers


def test_the_key_for_copying_copies_the_lines_or_what_is_selected(
    panel: CodePanel, make_scope: Callable[..., Scope]
) -> None:
    """As code, with shapes as comments, that Python still reads."""
    show(panel, make_scope())
    panel.view.setFocus()
    QTest.keyClick(panel.view, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    copied = QGuiApplication.clipboard().text()
    compile(copied, "<copied>", "exec")
    assert of(panel, "code")[0] in copied
    assert "#   scores [H 4, T 12, S 12] → weights [H 4, T 12, S 12]" in copied
    cursor = panel.view.textCursor()
    cursor.setPosition(panel.view.toPlainText().index("mix = matmul"))
    cursor.movePosition(QTextCursor.MoveOperation.Down, QTextCursor.MoveMode.KeepAnchor)
    cursor.movePosition(QTextCursor.MoveOperation.EndOfBlock, QTextCursor.MoveMode.KeepAnchor)
    panel.view.setTextCursor(cursor)
    QTest.keyClick(panel.view, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    mime = QGuiApplication.clipboard().mimeData()
    assert mime.text() == f"{of(panel, 'code')[3]}\n{of(panel, 'shapes')[3]}"
    assert mime.formats() == ["text/plain"]
    QGuiApplication.clipboard().setText("before")
    QTest.mouseClick(panel.copy_button, Qt.MouseButton.LeftButton)
    assert QGuiApplication.clipboard().text() == copied


def test_the_caret_goes_through_the_lines_and_nothing_can_be_typed(
    panel: CodePanel, make_scope: Callable[..., Scope]
) -> None:
    show(panel, make_scope())
    before = panel.view.toPlainText()
    panel.view.setFocus()
    QTest.keyClick(panel.view, Qt.Key.Key_Down)
    assert panel.view.textCursor().block().text() == of(panel, "code")[0]
    QTest.keyClicks(panel.view, "x")
    assert panel.view.toPlainText() == before


def test_another_row_writes_only_what_it_says_otherwise(
    panel: CodePanel, make_scope: Callable[..., Scope]
) -> None:
    """Every line as if all were written anew, and a selection of code stays."""
    scope = make_scope()
    show(panel, scope, Look(0, 1, 3))
    cursor = panel.view.textCursor()
    at = panel.view.toPlainText().index("self.qkv(x)")
    cursor.setPosition(at)
    cursor.setPosition(at + len("self.qkv(x)"), QTextCursor.MoveMode.KeepAnchor)
    panel.view.setTextCursor(cursor)
    show(panel, scope, Look(1, 2, 11))
    assert panel.view.textCursor().selectedText() == "self.qkv(x)"
    lines = [pieces(line) for line in blocks(panel)]
    looks = [line.blockFormat() for line in blocks(panel)]
    panel.view.set_theme(THEMES["light"])  # which writes all of it
    assert lines == [pieces(line) for line in blocks(panel)]
    assert looks == [line.blockFormat() for line in blocks(panel)]


def blocks(panel: CodePanel) -> list[QTextBlock]:
    """All lines, from top to bottom."""
    document = panel.view.document()
    return [document.findBlockByNumber(at) for at in range(document.blockCount())]


def pieces(block: QTextBlock) -> list[tuple[str, str, bool]]:
    """The letters of a line with their colour and weight."""
    found = []
    for place in block:
        letters = place.fragment().charFormat()
        look = letters.foreground().color().name(), letters.font().bold()
        found.append((place.fragment().text(), *look))
    return found


def test_digits_of_the_difference_can_be_copied_one_by_one(
    panel: CodePanel, make_scope: Callable[..., Scope]
) -> None:
    fused = show(panel, make_scope()).fused
    assert fused is not None
    figures = {figure.name: np.float32(figure.digits) for figure in panel.figures()}
    assert figures == {
        "largest difference": fused.difference,
        "mix by the lines": fused.mix,
        "mix by the kernel": fused.fused,
    }


def test_lines_shapes_and_the_comparison_are_numbers_to_export(
    panel: CodePanel, make_scope: Callable[..., Scope]
) -> None:
    code = show(panel, make_scope())
    assert panel.drawn is not None
    lines, call, fused = panel.numbers(panel.drawn)
    assert list(lines.columns["text"])[:4] == of(panel, "code")[:4]
    assert list(lines.columns["shapes"])[:4] == of(panel, "shapes")[:4]
    numbers = lines.columns["line"]
    assert [LINES[int(number) - 1].strip() for number in numbers[:4]] == of(panel, "code")[:4]
    assert call.columns["queries"][0] == 12
    assert code.fused is not None
    assert fused.columns["difference"] == code.fused.difference
    assert panel.reading_of(panel.drawn) is panel.drawn.reading


def test_what_is_shown_is_told_to_those_who_do_not_see_it(
    panel: CodePanel, make_scope: Callable[..., Scope]
) -> None:
    show(panel, make_scope())
    said = panel.accessibleDescription()
    assert of(panel, "code")[2] in said
    assert "weights [H 4, T 12, S 12]" in said
    assert panel.check.text() in said
    assert panel.view.accessibleName() == "Lines of the engine"


# In the whole program


@pytest.fixture
def whole(qapp: QApplication, small_model: Path) -> Iterator[WholeWindow]:  # noqa: ARG001
    """The program with a small model, open on TEXT."""
    window = WholeWindow(model=small_model, prompt=TEXT).start()
    yield window
    window.close()


def shown(whole: WholeWindow) -> Reading | None:
    """The reading whose lines are known."""
    return None if whole.state.code is None else whole.state.code.reading


def test_hidden_it_asks_for_nothing_and_seen_it_follows(
    whole: WholeWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A keystroke, another head, another query: each time the lines of that row."""
    asked: list[Reading] = []
    code = Scope.code

    def counting(scope: Scope, reading: Reading, *more: Any) -> Any:
        asked.append(reading)
        return code(scope, reading, *more)

    monkeypatch.setattr(engine.scope.Scope, "code", counting)
    whole.type("!")
    whole.idle()
    assert not asked
    whole.window.go_to_panel("code")
    wait_until(lambda: shown(whole) is whole.reading, "the lines")
    panel = whole.panel("code")
    assert isinstance(panel, CodePanel)
    assert f"T {len(TEXT)}" in of(panel, "shapes")[0] or "T 1," in of(panel, "shapes")[0]
    whole.wish(SelectHead(0, 3), SelectPosition(4))
    wait_until(lambda: shown(whole) is whole.reading, "the lines of that row")
    assert any("(position 4), row 3 of H" in note for note in of(panel, "note"))
    assert panel.heading.text().startswith("Layer 0")
    whole.wish(EditText("other text"))
    wait_until(lambda: shown(whole) is whole.reading, "the lines of the new text")
    n_asked = len(asked)
    whole.window.go_to_panel("heads")
    wait_until(lambda: WantCode not in whole.state.wanted, "nobody to look")
    whole.wish(EditText("another text"))
    assert len(asked) == n_asked


def test_a_clickers_keys_still_step_while_the_code_has_the_keyboard(whole: WholeWindow) -> None:
    whole.window.go_to_panel("code")
    wait_until(lambda: shown(whole) is not None, "the lines")
    view = whole.child(CodeView)
    assert view.hasFocus()
    n_tokens = whole.reading.n_tokens
    whole.press("PgDown", view)
    wait_until(lambda: whole.reading.n_tokens == n_tokens + 1, "a step")
    whole.press("PgUp", view)
    wait_until(lambda: whole.reading.n_tokens == n_tokens, "the step back")


def test_why_the_lines_cannot_be_read_is_said_where_they_would_be(
    whole: WholeWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what comes after is shown again."""

    def changed(_scope: Scope, _reading: Reading, *_more: Any) -> Any:
        raise EngineError("attend was changed since the program started; start it again.")

    with monkeypatch.context() as patch:
        patch.setattr(engine.scope.Scope, "code", changed)
        whole.window.go_to_panel("code")
        panel = whole.panel("code")
        assert isinstance(panel, CodePanel)
        wait_until(lambda: "was changed" in panel.view.toPlainText(), "the sentence")
    assert not whole.window.message_bar.isVisible()
    whole.wish(EditText("more"))
    wait_until(lambda: len(of(panel, "code")) > 4, "the lines")


def test_the_panel_asks_when_it_is_seen_and_tells_when_it_is_not(
    qtbot: QtBot, panel: CodePanel
) -> None:
    wishes: list[object] = []
    panel.wished.connect(wishes.append)
    panel.hide()
    qtbot.waitUntil(lambda: wishes[-1:] == [WantCode(wanted=False)])
    panel.show()
    qtbot.waitUntil(lambda: wishes[-1] == WantCode(wanted=True))
