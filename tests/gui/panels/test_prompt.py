"""The prompt's panel: what stands there besides the editor and the strip."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from engine.conditions import Conditions
from engine.document import Document
from engine.reading import Look, Reading
from gui.panels.prompt import PromptPanel
from gui.state import Display
from gui.theme import LIGHT, PROJECTOR, Theme
from gui.view import View
from tests.gui.tiny_scope import house, tiny_scope, view_of


@pytest.fixture
def panel(qtbot: QtBot) -> Iterator[PromptPanel]:
    """The panel at a size that it has in the program."""
    window = QWidget()
    qtbot.addWidget(window)
    panel = PromptPanel()
    house(window, panel, 900, 300)
    yield panel
    window.close()


def view_with(text: str, *, known: bool) -> View:
    """A text that the model reads as it is, or as question marks."""
    reading = tiny_scope().edit(text)
    if not known:
        stand_ins = (b"?",) * len(text)
        document = Document(text, tuple(range(len(text))), stand_ins, len(text))
        reading = replace(reading, document=document)
    return view_of(reading, text=text)


def test_what_the_model_cannot_read_is_said_under_the_tokens_as_long_as_it_is_so(
    panel: PromptPanel,
) -> None:
    """Plain text, read out as well; without it there is no room taken."""
    panel.show_view(view_with("abc", known=True))
    assert not panel.replaced.isVisible()
    height = panel.editor.height() + panel.strip.height()
    panel.show_view(view_with("xyz", known=False))
    assert panel.replaced.isVisible()
    sentence = "⚠ This model's vocabulary lacks x y z; it reads ? for each of them."
    assert panel.replaced.text() == panel.replaced.accessibleDescription() == sentence
    assert panel.replaced.textFormat() == Qt.TextFormat.PlainText
    panel.show_view(view_with("abc", known=True))
    assert not panel.replaced.isVisible()
    assert panel.editor.height() + panel.strip.height() == height


@pytest.mark.parametrize("theme", [LIGHT, PROJECTOR, PROJECTOR.scaled(1.5)])
def test_the_sentence_leaves_the_tokens_whole_rows(
    qtbot: QtBot, panel: PromptPanel, theme: Theme
) -> None:
    """At every size of the letters."""
    view = replace(view_with("xyz", known=False), theme=theme)
    panel.show_view(view)
    label = panel.replaced
    qtbot.waitUntil(lambda: label.height() >= label.heightForWidth(label.width()) > 0)
    heights = [panel.strip.height_of(rows) for rows in range(1, 10)]
    assert panel.strip.height() in heights
    bottom = panel.replaced.geometry().bottom()
    assert bottom <= panel.height()


def marked_view(reading: Reading) -> View:
    """As the window shows it where the latest pass is marked."""
    return view_of(reading, display=Display(show_pass=True, motion=False))


def test_what_the_latest_pass_did_is_still_seen_after_looking_around(panel: PromptPanel) -> None:
    """An edit of "be or" to "be in": 6 tokens kept, 2 computed, 2 of 8 thrown away."""
    scope = tiny_scope()
    panel.show_view(marked_view(scope.edit("to be or")))
    assert "kept 0 rows and computed 8: positions 0 to 7." in panel.strip.accessibleDescription()
    reading = scope.edit("to be in")
    for shown in (reading, scope.look(Look(1, 2)), scope.look(Look(0, 0, query=3))):
        panel.show_view(marked_view(shown))
        said = panel.strip.accessibleDescription()
        assert "kept 6 rows and computed 2: positions 6 to 7, and threw 2 rows away." in said
        assert "kept" in panel.strip.describe_place(5)
        assert "computed" in panel.strip.describe_place(6)
    panel.show_view(marked_view(scope.go_to(7)))  # before the last token
    assert "kept 6 rows and computed 1: position 6" in panel.strip.accessibleDescription()
    panel.show_view(marked_view(scope.edit("to b")))
    said = panel.strip.accessibleDescription()
    assert "kept 4 rows and computed 0, and threw 4 rows away." in said


def test_with_the_cache_or_the_mask_off_every_token_is_computed(panel: PromptPanel) -> None:
    scope = tiny_scope()
    scope.edit("to be or")
    for reading in (scope.set_cache(use=False), scope.edit("to be or not")):
        panel.show_view(marked_view(reading))
        said = (
            f"kept 0 rows and computed {reading.n_tokens}: positions 0 to {reading.n_tokens - 1}."
        )
        assert said in panel.strip.accessibleDescription()
    panel.show_view(marked_view(scope.set_conditions(Conditions(mask="none"))))
    assert "kept 0 rows and computed 12" in panel.strip.accessibleDescription()


@pytest.mark.parametrize("theme", [LIGHT, PROJECTOR, PROJECTOR.scaled(1.5)])
def test_the_legend_leaves_the_tokens_whole_rows(panel: PromptPanel, theme: Theme) -> None:
    """The strip gets its room from the editor, and gives it back."""
    reading = tiny_scope().edit("to be or not")
    panel.show_view(replace(view_of(reading), theme=theme))
    before, bare = panel.strip.height(), panel.strip.height_of(1)
    panel.show_view(replace(marked_view(reading), theme=theme))
    assert panel.strip.height_of(1) > bare
    assert panel.strip.height() in [panel.strip.height_of(rows) for rows in range(1, 10)]
    panel.show_view(replace(view_of(reading), theme=theme))
    assert panel.strip.height() == before
