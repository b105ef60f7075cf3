"""Tabs: all of them are seen, by shorter names and in smaller letters if need be."""

from collections.abc import Iterator

import pytest
from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QApplication, QTabBar, QWidget
from pytestqt.qtbot import QtBot

from gui.panels.base import Panel
from gui.panels.table import PANELS
from gui.style import apply_theme
from gui.theme import LIGHT, PROJECTOR, THEMES, Theme
from gui.widgets.fitting_tabs import FittingTabs
from tests.gui.whole_window import WholeWindow

NAMES = (("One head", "Head"), ("Compare", "Compare"), ("Cache designs", "Designs"))
DIRECTLY = Qt.FindChildOption.FindDirectChildrenOnly


@pytest.fixture(autouse=True)
def look() -> Iterator[None]:
    """Leave the application as it was found."""
    app = application()
    font, palette = app.font(), app.palette()
    yield
    app.setStyleSheet("")
    app.setPalette(palette)
    app.setFont(font)


def application() -> QApplication:
    """The one."""
    app = QApplication.instance()
    assert isinstance(app, QApplication)
    return app


@pytest.fixture
def tabs(qtbot: QtBot) -> FittingTabs:
    """Three pages, shown."""
    apply_theme(application(), LIGHT)
    tabs = FittingTabs()
    qtbot.addWidget(tabs)
    tabs.set_theme(LIGHT)
    for names in NAMES:
        tabs.add_page(QWidget(), names, f"All about <b>{names[0]}</b>")
    tabs.show()
    return tabs


def said(bar: QTabBar) -> list[str]:
    """What the tabs are called."""
    return [bar.tabText(at) for at in range(bar.count())]


class Tall(QWidget):
    """A page that would like to be high."""

    def minimumSizeHint(self) -> QSize:
        """900 pixels."""
        return QSize(10, 900)


def test_only_the_page_in_front_keeps_the_window_high(tabs: FittingTabs) -> None:
    """A page that is behind, or that takes a place behind, does not."""
    low = 100  # the tabs, and nothing for a page
    tabs.add_page(Tall(), ("Tall", "Tall"), "")
    tabs.replace_page(tabs.widget(1), Tall())
    assert tabs.minimumSizeHint().height() < low
    tabs.setCurrentIndex(1)
    assert tabs.minimumSizeHint().height() >= 900
    tabs.setCurrentIndex(0)
    assert tabs.minimumSizeHint().height() < low


def test_names_are_as_long_as_the_width_allows(tabs: FittingTabs) -> None:
    """From wide to narrow and back."""
    long, short = ([names[level] for names in NAMES] for level in (0, 1))
    tabs.resize(600, 100)
    assert said(tabs.tabBar()) == long
    width = tabs.tabBar().sizeHint().width()
    tabs.resize(width, 100)
    assert said(tabs.tabBar()) == long
    tabs.resize(width - 1, 100)
    assert said(tabs.tabBar()) == short
    assert tabs.tabBar().font().pixelSize() == LIGHT.font_body
    tabs.resize(tabs.tabBar().sizeHint().width() - 1, 100)
    assert said(tabs.tabBar()) == short
    assert tabs.tabBar().font().pixelSize() == LIGHT.font_axis
    tabs.resize(600, 100)
    assert said(tabs.tabBar()) == long
    assert tabs.tabBar().font().pixelSize() == LIGHT.font_body


def test_a_theme_with_larger_letters_shortens_names(tabs: FittingTabs) -> None:
    """At once, not at the next change of the width."""
    tabs.resize(600, 100)
    tabs.resize(tabs.tabBar().sizeHint().width(), 100)
    assert said(tabs.tabBar())[0] == "One head"
    apply_theme(application(), PROJECTOR)
    tabs.set_theme(PROJECTOR)
    assert said(tabs.tabBar())[0] == "Head"


def test_a_tip_says_the_whole_name_as_plain_text(tabs: FittingTabs) -> None:
    """Whatever Qt would make of it."""
    assert tabs.tabToolTip(2) == "<span>All about &lt;b&gt;Cache designs&lt;/b&gt;</span>"


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_in_a_small_window_no_tab_in_the_middle_is_out_of_sight(
    qtbot: QtBot,  # noqa: ARG001 - makes the application
    theme: Theme,
) -> None:
    """1280 × 720 logical pixels, as on many a projector."""
    whole = WholeWindow(theme=theme.name, prompt="a").start()
    try:
        whole.window.resize(1280, 720)
        whole.idle()
        tabs = whole.window.findChild(FittingTabs)
        room = tabs.width()
        for name in ("compare", "schemes", "windows", "head"):  # the widest
            whole.window.go_to_panel(name)
            whole.idle()
            assert tabs.width() == room, f"{name} takes the room of its neighbours"
        bar = tabs.tabBar()
        assert bar.count() == sum(row.place.startswith("center") for row in PANELS)
        assert bar.tabRect(bar.count() - 1).right() < bar.width()
        metrics = bar.fontMetrics()
        for at in range(bar.count()):
            assert metrics.horizontalAdvance(bar.tabText(at)) < bar.tabRect(at).width()
    finally:
        whole.close()


def test_the_tabs_of_docks_are_read_whole_in_larger_letters_too(qtbot: QtBot) -> None:  # noqa: ARG001
    """Where all of them are too wide, the letters are the smaller ones; none is cut to 'L…'."""
    whole = WholeWindow(theme="projector", prompt="a").start()
    try:
        whole.window.resize(1280, 720)
        for keys in ("Ctrl+0", "Ctrl++", "Ctrl+0"):
            whole.press(keys, whole.window)
            whole.idle()
            bars = whole.window.findChildren(QTabBar, options=DIRECTLY)
            assert len(bars) == 2, "one at the left, one at the right"
            for bar in bars:
                assert bar.sizeHint().width() <= bar.width()
                metrics = bar.fontMetrics()
                for at in range(bar.count()):
                    assert metrics.horizontalAdvance(bar.tabText(at)) < bar.tabRect(at).width()
    finally:
        whole.close()


@pytest.mark.parametrize("name", ["head", "compare"])
def test_the_middle_alone_gives_everybody_their_room_back(qtbot: QtBot, name: str) -> None:  # noqa: ARG001
    """At the lecturer's size the window stays as wide as it was, and so does each panel."""
    whole = WholeWindow(theme="projector", prompt="To be, or not to be").start()
    try:
        whole.window.resize(1280, 720)
        whole.window.go_to_panel(name)
        whole.idle()
        before = {panel.name: panel.width() for panel in seen_panels(whole)}
        for _ in ("alone", "back"):
            whole.press("F9", whole.window)
            QApplication.processEvents()
        assert whole.window.width() == 1280
        assert {panel.name: panel.width() for panel in seen_panels(whole)} == before
    finally:
        whole.close()


def seen_panels(whole: WholeWindow) -> list[Panel]:
    """Those in front of all others."""
    return [panel for panel in whole.window.findChildren(Panel) if panel.is_seen]
