"""A label says as much as its width allows, and asks for room in steps."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PySide6.QtGui import QFontMetricsF
from pytestqt.qtbot import QtBot

from gui.theme import LIGHT, PROJECTOR, Theme
from gui.widgets.fitting_label import FittingLabel

WORDINGS = (
    "In the text follows 'king': rank 1,024, plain softmax 12.3 %, loss 4.56 nats",
    "In the text: 'king', rank 1,024, loss 4.56 nats",
    "'king' rank 1,024",
)


@pytest.fixture
def label(qtbot: QtBot) -> FittingLabel:
    """A label on one line."""
    widget = FittingLabel()
    qtbot.addWidget(widget)
    return widget


@pytest.mark.parametrize("theme", [LIGHT, PROJECTOR])
def test_the_longest_wording_that_fits_is_shown_to_the_pixel(
    label: FittingLabel, theme: Theme
) -> None:
    label.set_look(theme, theme.text)
    label.set_wordings(*WORDINGS)
    font = label.font()
    font.setPixelSize(theme.font_body)
    measured = QFontMetricsF(font)
    for width in range(20, 1200, 3):
        label.resize(width, 20)
        fitting = [each for each in WORDINGS if measured.horizontalAdvance(each) <= width]
        assert label.shown() == fitting[0] if fitting else label.shown().endswith("…")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.text(st.sampled_from("a1 WÅé'\u2068␣א日."), max_size=60))
def test_a_label_as_wide_as_it_asks_for_shows_all(label: FittingLabel, text: str) -> None:
    label.set_wordings(text)
    label.resize(label.sizeHint())
    assert label.shown() == text
