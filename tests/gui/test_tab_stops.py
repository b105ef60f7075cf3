"""The Tab key reaches every control that can be seen, and none that cannot."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtWidgets import (
    QApplication,
    QCheckBox,
    QComboBox,
    QLineEdit,
    QPushButton,
    QScrollArea,
    QTabBar,
    QWidget,
)

from gui.panels.base import Panel
from gui.wishes import EditText
from tests.gui.whole_window import WholeWindow

MOST = 120  # presses, far more than a round takes


@pytest.fixture(scope="module")
def whole(qapp: QApplication, small_model: Path) -> Iterator[WholeWindow]:  # noqa: ARG001
    """A window with a short text."""
    window = WholeWindow(model=small_model, prompt="To be, or not to be").start()
    yield window
    window.close()


def once_around(whole: WholeWindow, keys: str) -> list[QWidget]:
    """Everything that has the keyboard in turn, from the editor until there again."""
    whole.editor.setFocus(Qt.FocusReason.OtherFocusReason)
    passed: list[QWidget] = []
    for _ in range(MOST):
        whole.press(keys)
        now = QApplication.focusWidget()
        assert now is not None
        passed.append(now)
        if now is whole.editor:
            return passed
    raise AssertionError("the round never ends")


def panel_around(widget: QWidget) -> Panel | None:
    """The panel that a widget is in."""
    around: QWidget | None = widget
    while around is not None and not isinstance(around, Panel):
        around = around.parentWidget()
    return around


@pytest.mark.parametrize(
    "names",
    [("heads", "next_token"), ("residual", "loss"), ("cell", "heads_off"), ("code", "mask")],
)
def test_a_round_of_tabs_comes_to_every_control_that_is_seen(
    whole: WholeWindow, names: tuple[str, str]
) -> None:
    """Of a choice between several buttons one stop is enough: arrows go to the others."""
    for name in names:
        whole.window.go_to_panel(name)
    whole.idle()
    passed = once_around(whole, "Tab")
    for panel in whole.window.findChildren(Panel):
        for kind in (QPushButton, QCheckBox, QComboBox, QLineEdit):
            for control in panel.findChildren(kind):
                is_there = control.isVisible() and control.isEnabled() and panel.is_seen
                if not is_there or control.focusProxy() or not control.focusPolicy().value:
                    continue
                group = control.group() if isinstance(control, QPushButton) else None
                others = group.buttons() if group is not None and group.exclusive() else []
                assert control in passed or set(others) & set(passed), control
    for widget in passed:
        panel = panel_around(widget)
        assert widget.isVisible()
        assert panel is None or panel.is_seen


def test_tab_goes_from_place_to_place_and_shift_tab_back(whole: WholeWindow) -> None:
    """The text, left, middle, right, below; the tabs of a place after what they show."""
    for name in ("heads", "head", "next_token"):
        whole.window.go_to_panel(name)
    whole.idle()
    passed = once_around(whole, "Tab")
    places = []
    for widget in passed[:-1]:
        panel = panel_around(widget)
        place = panel.name if panel else "tabs" if isinstance(widget, QTabBar) else "rest"
        if not places or places[-1] != place:
            places.append(place)
    of_a_place = ["heads", "tabs", "head", "tabs", "next_token", "tabs"]
    assert places == ["prompt", *of_a_place, "time", "checks", "rest"]
    back = once_around(whole, "Shift+Tab")
    assert back[:-1] == passed[-2::-1]


def test_what_tab_comes_to_is_scrolled_into_sight(whole: WholeWindow) -> None:
    """In a page that is longer than its place."""
    whole.window.resize(1280, 640)
    whole.window.go_to_panel("two_ways")
    whole.idle()
    panel = whole.panel("two_ways")
    (page,) = panel.findChildren(QScrollArea)
    whole.editor.setFocus(Qt.FocusReason.OtherFocusReason)
    page.verticalScrollBar().setValue(page.verticalScrollBar().maximum())
    first = panel.findChildren(QPushButton)[0]
    while QApplication.focusWidget() is not first:
        whole.press("Tab")
    place = QRect(first.mapTo(page.viewport(), QPoint(0, 0)), first.size())
    assert page.viewport().rect().contains(place)


@pytest.mark.parametrize("names", [("cell", "loss"), ("residual", "heads_off"), ("heads", "lens")])
def test_what_has_the_keyboard_looks_so(whole: WholeWindow, names: tuple[str, str]) -> None:
    """Also a list whose current row is out of sight, and one that is empty."""
    whole.wish(EditText("To be, or not to be: that is the question. " * 4))
    for name in names:
        whole.window.go_to_panel(name)
    whole.idle()
    whole.editor.setFocus(Qt.FocusReason.OtherFocusReason)
    before = whole.window.grab().toImage()
    for _ in once_around(whole, "Tab")[:-1]:
        whole.press("Tab")
        widget, after = QApplication.focusWidget(), whole.window.grab().toImage()
        assert widget is not None
        place = QRect(widget.mapTo(whole.window, QPoint(0, 0)), widget.size())
        assert before.copy(place) != after.copy(place), widget
        before = after
