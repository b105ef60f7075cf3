"""A model that expects a token before the text: it is seen in the strip, and never in the text."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtWidgets import QApplication

from gui.export.stamp import stamp_of
from gui.export.tables import prompt_tables
from gui.widgets.token_strip import BEFORE_TEXT, TokenStrip
from gui.wishes import EditText, OpenModel, SetPrefix, Step
from tests.engine.gguf_files import byte_level, write_llama
from tests.gui.whole_window import WholeWindow

TEXT = "the all"
NAME = b"<|end|>"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A toy whose texts begin with such a token."""
    bos = {"tokenizer.ggml.add_bos_token": True, "tokenizer.ggml.bos_token_id": 0}
    path = tmp_path_factory.mktemp("bos") / "toy.gguf"
    return write_llama(path, vocabulary=byte_level() | bos)


@pytest.fixture(scope="module")
def opened(qapp: QApplication, model: Path) -> Iterator[WholeWindow]:  # noqa: ARG001
    """One window for all tests of this file."""
    whole = WholeWindow(model=model, prompt=TEXT).start()
    yield whole
    whole.close()


@pytest.fixture
def whole(opened: WholeWindow) -> WholeWindow:
    """The window, on the same text before every test, with the token."""
    opened.wish(SetPrefix(use=True), EditText(TEXT))
    opened.activate()
    opened.editor.setFocus()
    return opened


def test_the_strip_shows_the_token_and_the_editor_does_not(whole: WholeWindow) -> None:
    """With a word in its tooltip, and for a screen reader, on how it came there."""
    assert whole.editor.text() == TEXT
    assert whole.reading.document.tokens[0] == NAME
    strip = whole.child(TokenStrip)
    assert BEFORE_TEXT in strip.accessibleDescription()
    first, second = strip.describe_place(0), strip.describe_place(1)
    assert first.startswith("<|end|>\nid 0 · position 0")
    assert first.endswith(BEFORE_TEXT)
    assert BEFORE_TEXT not in second
    whole.wish(SetPrefix(use=False))
    assert BEFORE_TEXT not in strip.accessibleDescription()
    assert BEFORE_TEXT not in strip.describe_place(0)


def test_writing_before_and_behind_and_stepping_keep_the_token(whole: WholeWindow) -> None:
    """The text in the editor is the user's and the model's, letter by letter."""
    whole.press("Ctrl+Home")
    whole.type("a ")
    whole.idle()
    assert whole.state.text == whole.editor.text() == f"a {TEXT}"
    assert whole.reading.document.tokens[0] == NAME
    whole.wish(Step(), Step())
    assert whole.editor.text() == whole.reading.document.text
    assert whole.reading.document.text.startswith(f"a {TEXT}")
    whole.press("Ctrl+A")
    whole.press("Del")
    whole.idle()
    assert whole.editor.text() == ""
    assert whole.reading.document.tokens == (NAME,)


def test_a_key_takes_the_token_away_and_brings_it_back(whole: WholeWindow) -> None:
    """The same text is read from the start, and the menu shows the switch."""
    action = whole.action("prefix")
    assert action.isEnabled()
    assert action.isChecked()
    before = whole.reading
    whole.press("Ctrl+B")
    whole.idle()
    assert not action.isChecked()
    assert whole.reading.document.token_ids == before.document.token_ids[1:]
    assert whole.reading.computed == (0, before.n_tokens - 1)
    assert whole.editor.text() == TEXT
    whole.press("Ctrl+B")
    whole.idle()
    assert action.isChecked()
    assert whole.reading.document.token_ids == before.document.token_ids


def test_beyond_the_limit_the_token_stays_and_the_text_is_the_users(whole: WholeWindow) -> None:
    """It has position 0 behind what has fallen out; the editor holds the text and its tokens."""
    whole.wish(EditText("b" * 70))
    strip, reading = whole.child(TokenStrip), whole.reading
    assert (reading.n_fallen, reading.n_tokens, reading.session.token_ids[0]) == (7, 64, 0)
    assert "7 fallen out: the model sees <|end|> and the last 63" in strip.accessibleDescription()
    assert strip.describe_place(7).endswith(BEFORE_TEXT)
    assert "position 0" in strip.describe_place(7)
    assert "fallen out" in strip.describe_place(6)
    whole.press("Ctrl+End")
    whole.type("c")
    whole.idle()
    assert whole.editor.text() == whole.reading.document.text == f"{'b' * 70}c"
    assert (whole.reading.n_fallen, whole.reading.session.token_ids[0]) == (8, 0)
    columns = prompt_tables(whole.reading)[0].columns
    assert np.flatnonzero(columns["before_the_text"]).tolist() == [8]
    assert np.flatnonzero(columns["fallen_out"]).tolist() == list(range(8))
    assert np.isnan(columns["nats"][:9]).all()
    assert not np.isnan(columns["nats"][9:]).any()
    whole.press("Ctrl+B")
    whole.idle()
    assert (whole.reading.n_fallen, whole.reading.document.token_ids[7]) == (7, 1 + ord("b"))
    assert "the model sees the last 64 tokens" in strip.accessibleDescription()


def test_the_switch_stays_as_it_is_when_another_model_is_opened(
    whole: WholeWindow, model: Path, small_model: Path
) -> None:
    """And rests where the model has no such token."""
    whole.wish(SetPrefix(use=False), OpenModel(small_model))
    assert not whole.action("prefix").isEnabled()
    assert whole.reading.document.n_prefix == 0
    whole.wish(OpenModel(model))
    assert whole.action("prefix").isEnabled()
    assert whole.reading.document.n_prefix == 0
    whole.wish(SetPrefix(use=True))
    assert whole.reading.document.tokens[0] == NAME


def test_what_is_exported_says_which_tokens_are_the_texts(whole: WholeWindow) -> None:
    """So that it can be repeated."""
    facts = stamp_of(whole.reading, "One head").facts
    assert (facts["text"], facts["tokens_before_text"]) == (TEXT, 1)
    columns = prompt_tables(whole.reading)[0].columns
    n_tokens = whole.reading.n_tokens
    assert list(columns["before_the_text"]) == [True, *[False] * (n_tokens - 1)]
