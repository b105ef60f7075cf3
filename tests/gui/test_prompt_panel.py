"""The prompt's panel: what stands there besides the editor and the strip."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from engine.document import Document
from gui.panels.prompt import PromptPanel
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
