"""What windows do, in words that fit a narrow page and still mislead nobody."""

import numpy as np
import pytest
from pytestqt.qtbot import QtBot

from engine.windows.fixed_window_loss import FixedWindowLoss
from gui.theme import THEMES, Theme
from gui.widgets.fitting_label import FittingLabel
from gui.words.window_strips import fixed_window_said


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_the_n_gram_model_is_never_praised_for_texts_that_it_has_counted(
    qtbot: QtBot, theme: Theme
) -> None:
    """However narrow: on plays that it has not counted it costs more, and how much."""
    losses = np.array([np.nan, 1.0, 2.0], dtype=np.float32)
    loss = FixedWindowLoss(4, losses, n_counted=1_430_000, n_texts=35, held_out_mean=4.306)
    label = FittingLabel()
    qtbot.addWidget(label)
    label.set_look(theme, theme.text, small=True)
    label.set_wordings(*fixed_window_said(loss))
    for width in (1200, 900, 540, 400):
        label.resize(width, 20)
        assert "4.31 nats" in label.shown()
        assert "less on" in label.shown()
