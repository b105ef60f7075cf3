"""A field for one number: what is seen of it. What is typed is tested with the panels."""

from collections.abc import Iterator

import numpy as np
import pytest
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from gui.style import apply_theme
from gui.theme import DARK, LIGHT, PROJECTOR, Theme
from gui.widgets.number_field import NumberField, NumberKind
from gui.widgets.pixels import packed
from tests.gui.picture_facts import colours

KIND = NumberKind(name="layer", least=0, most=99, step=1, use="use 0 to 99")


@pytest.fixture(autouse=True)
def look() -> Iterator[None]:
    """Leave the application as it was found."""
    app = QApplication.instance()
    assert isinstance(app, QApplication)
    font, palette = app.font(), app.palette()
    yield
    app.setStyleSheet("")
    app.setPalette(palette)
    app.setFont(font)


@pytest.mark.parametrize(
    ("first", "then"), [(LIGHT, DARK), (DARK, LIGHT), (DARK, PROJECTOR), (LIGHT, LIGHT)]
)
def test_its_digits_stand_out_in_the_theme_that_is_chosen_later(
    qtbot: QtBot, first: Theme, then: Theme
) -> None:
    """A panel is built in one theme and shown in another."""
    app = QApplication.instance()
    assert isinstance(app, QApplication)
    apply_theme(app, then)
    window, panel = QWidget(), QWidget()
    qtbot.addWidget(window)
    window.show()
    field = NumberField(KIND, lambda _value: None, panel)
    field.set_theme(first)
    panel.setParent(window)
    panel.show()
    field.show_value(88)
    field.set_theme(then)
    field.resize(80, 30)
    inside = colours(field)[6:-6, 4:40]
    assert np.sum(inside == packed(then.surface)) > inside.size / 2
    assert np.sum(inside == packed(then.text)) > 5
