"""The transport: where the text stands, and the wishes that its buttons and sliders emit."""

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QColor
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton, QWidget
from pytestqt.qtbot import QtBot

from engine.reading import Reading
from engine.sampling import Sampling
from engine.scope import Scope
from gui.panels.time import SPEEDS, TimePanel
from gui.state import Display
from gui.theme import THEMES, Theme
from gui.widgets.user_slider import UserSlider
from gui.wishes import GoTo, Play, SetSpeed, Step, StepBack, Wish
from tests.gui.picture_facts import PaintWatch, is_all_painted, on_screen
from tests.gui.tiny_scope import house, picture, tiny_scope, view_of

LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
def panel(window: QWidget) -> TimePanel:
    """A shown panel as the strip that it is."""
    widget = TimePanel()
    house(window, widget, 1000, 64)
    return widget


@pytest.fixture
def scope() -> Scope:
    """Five prompt tokens and three generated ones."""
    scope = tiny_scope()
    scope.edit("to be")
    for _ in range(3):
        scope.step()
    return scope


@pytest.fixture
def reading(scope: Scope) -> Reading:
    """The text with its first seven tokens."""
    return scope.go_to(7)


def buttons(panel: TimePanel) -> list[QPushButton]:
    """In the order of the strip."""
    return [panel.back, panel.step, panel.play, panel.sentence]


def test_the_label_says_where_the_text_stands(panel: TimePanel, reading: Reading) -> None:
    """Cursor, length, and how the length came about."""
    panel.show_view(view_of(reading))
    assert panel.where.text() == "token 7 of 8 (5 prompt, 3 generated)"
    assert panel.context.text() == "context: 7 of 32 tokens"
    assert panel.sampling.text() == "temperature 0.8, seed 1"


def test_clicks_and_keys_on_the_buttons_are_wishes(
    qtbot: QtBot, panel: TimePanel, wishes: list[Wish], reading: Reading
) -> None:
    """Each button has one wish, by mouse as by keyboard."""
    panel.show_view(view_of(reading))
    for button in buttons(panel):
        qtbot.mouseClick(button, LEFT)
    expected = [StepBack(), Step(), Play("play"), Play("sentence")]
    assert wishes == expected
    wishes.clear()
    for button in buttons(panel):
        button.setFocus()
        qtbot.keyClick(button, Qt.Key.Key_Space)
    assert wishes == expected


@pytest.mark.parametrize("mode", ["play", "sentence"])
def test_while_playing_the_play_button_stops(
    qtbot: QtBot, panel: TimePanel, wishes: list[Wish], reading: Reading, mode: str
) -> None:
    """Its text and its name say so."""
    panel.show_view(view_of(reading, playing=mode))
    assert (panel.play.text(), panel.play.accessibleName()) == ("Pause", "Pause")
    assert panel.sentence.isEnabled() == (mode == "play")
    qtbot.mouseClick(panel.play, LEFT)
    assert wishes == [Play("")]
    panel.show_view(view_of(reading))
    assert panel.play.text() == "Play"


def test_the_slider_covers_the_text_and_shows_the_cursor(
    panel: TimePanel, reading: Reading, wishes: list[Wish]
) -> None:
    """From one token to all; showing a reading wishes for nothing."""
    panel.show_view(view_of(reading))
    slider = panel.slider
    assert (slider.minimum(), slider.value(), slider.maximum()) == (1, 7, 8)
    assert wishes == []


def test_keys_on_the_slider_go_to_a_moment(
    qtbot: QtBot, panel: TimePanel, wishes: list[Wish], reading: Reading
) -> None:
    """Arrows by one token, Home and End to the ends."""
    panel.show_view(view_of(reading))
    panel.slider.setFocus()
    for key in (Qt.Key.Key_Left, Qt.Key.Key_Home, Qt.Key.Key_End):
        qtbot.keyClick(panel.slider, key)
    assert wishes == [GoTo(6), GoTo(1), GoTo(8)]


def test_a_click_on_the_slider_goes_to_the_place_clicked(
    qtbot: QtBot, panel: TimePanel, wishes: list[Wish], reading: Reading
) -> None:
    """The middle of eight tokens is the fourth or fifth."""
    panel.show_view(view_of(reading))
    middle = panel.slider.rect().center()
    qtbot.mouseClick(panel.slider, LEFT, pos=middle)
    assert wishes in ([GoTo(4)], [GoTo(5)])


def test_a_drag_is_not_disturbed_by_answers(
    panel: TimePanel, wishes: list[Wish], scope: Scope
) -> None:
    """Late readings leave the handle under the pointer; once let go, it shows the last one."""
    panel.show_view(view_of(scope.go_to(8)))
    slider = panel.slider
    height = slider.height() // 2
    QTest.mousePress(slider, LEFT, pos=QPoint(slider.width() // 2, height))
    first = slider.value()
    panel.show_view(view_of(scope.go_to(7)))
    assert slider.value() == first
    QTest.mouseMove(slider, QPoint(0, height))
    assert slider.value() == 1
    assert wishes[-1] == GoTo(1)
    told = len(wishes)
    panel.show_view(view_of(scope.go_to(3)))
    QTest.mouseRelease(slider, LEFT, pos=QPoint(0, height))
    assert slider.value() == 3
    assert len(wishes) == told


def test_speed_is_a_wish(
    qtbot: QtBot, panel: TimePanel, wishes: list[Wish], reading: Reading
) -> None:
    """The slider's places are round speeds; a speed between two is said as it is."""
    panel.show_view(view_of(reading, steps_per_second=4.0))
    assert panel.speed_text.text() == "4 per second"
    qtbot.keyClick(panel.speed, Qt.Key.Key_Right)
    assert wishes == [SetSpeed(8.0)]
    wishes.clear()
    panel.show_view(view_of(reading, steps_per_second=5.0))
    assert panel.speed_text.text() == "5 per second"
    assert SPEEDS[panel.speed.value()] == 4.0
    assert wishes == []


def test_at_the_start_there_is_no_way_back(panel: TimePanel, scope: Scope) -> None:
    """One token is the least that can be shown."""
    panel.show_view(view_of(scope.go_to(1)))
    assert [button.isEnabled() for button in buttons(panel)] == [False, True, True, True]


def test_one_token_can_be_stepped_from(panel: TimePanel) -> None:
    """The slider then has one place."""
    panel.show_view(view_of(tiny_scope().edit("a")))
    assert panel.where.text() == "token 1 of 1 (1 prompt, 0 generated)"
    assert (panel.slider.minimum(), panel.slider.maximum()) == (1, 1)
    assert panel.step.isEnabled()


@pytest.mark.parametrize("loaded", [True, False])
def test_without_a_text_everything_rests(panel: TimePanel, *, loaded: bool) -> None:
    """And a sentence says what to do, or what is going on."""
    panel.show_view(view_of(tiny_scope().edit("") if loaded else None, phase="loading"))
    assert not any(button.isEnabled() for button in buttons(panel))
    assert not panel.slider.isEnabled()
    assert panel.slider.mark_x() is None
    begins = "There is no text yet." if loaded else "The model is being loaded."
    assert panel.where.text().startswith(begins)


def test_a_full_context_is_a_state_of_its_own(panel: TimePanel) -> None:
    """Nothing can be added, so nothing offers to; going back stays possible."""
    scope = tiny_scope(max_seq_len=8)
    panel.show_view(view_of(scope.edit("to be or")))
    assert panel.context.text() == "■ context full: 8 of 8 tokens"
    assert [button.isEnabled() for button in buttons(panel)] == [True, False, False, False]
    panel.show_view(view_of(scope.go_to(7)))
    assert panel.context.text() == "context: 7 of 8 tokens"
    assert panel.step.isEnabled()


def test_what_has_fallen_out_is_counted_and_out_of_reach(panel: TimePanel) -> None:
    """Twelve tokens in a context of eight: the first four have no moment."""
    panel.show_view(view_of(tiny_scope(max_seq_len=8).edit("to be or not")))
    assert "the first 4 have fallen out" in panel.context.text()
    assert panel.slider.minimum() == 5
    assert panel.where.text() == "token 12 of 12 (12 prompt, 0 generated)"


@pytest.mark.parametrize(
    ("sampling", "words"),
    [
        (Sampling(temperature=0), "greedy (temperature 0)"),
        (Sampling(temperature=0.0001, seed=7), "temperature 0.0001, seed 7"),
        (
            Sampling(temperature=1, top_k=40, top_p=0.9, seed=3),
            "temperature 1, top_k 40, top_p 0.9, seed 3",
        ),
    ],
)
def test_the_sampling_is_said_in_short(
    panel: TimePanel, reading: Reading, sampling: Sampling, words: str
) -> None:
    """Only what is in force."""
    panel.show_view(view_of(reading, sampling=sampling))
    assert panel.sampling.text() == words


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_the_end_of_the_prompt_is_marked_on_the_slider(
    panel: TimePanel, scope: Scope, theme: Theme
) -> None:
    """Five of the tokens 1 to 8 are the prompt, so the mark stands at four sevenths."""
    panel.show_view(view_of(scope.go_to(8), display=Display(theme=theme)))
    x = panel.slider.mark_x()
    assert x is not None
    inner = panel.slider.width() - 2 * min(x, panel.slider.width() - x)
    assert inner >= 0
    assert x / panel.slider.width() == pytest.approx(4 / 7, abs=0.03)
    image = panel.slider.grab().toImage()
    column = {image.pixelColor(round(x), y).name() for y in range(image.height())}
    assert QColor(theme.text).name() in column
    assert "end of the prompt, 5 tokens" in panel.slider.toolTip()


def test_everything_has_a_name_and_a_tip(panel: TimePanel, reading: Reading) -> None:
    """For those who do not see it, and for those who wonder."""
    panel.show_view(view_of(reading))
    for widget in (*buttons(panel), panel.slider, panel.speed):
        assert widget.accessibleName()
        assert widget.toolTip()
        assert widget.focusPolicy() & Qt.FocusPolicy.TabFocus


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
@pytest.mark.parametrize("width", [640, 1280])
def test_the_strip_stays_low(panel: TimePanel, reading: Reading, theme: Theme, width: int) -> None:
    """Two rows of the theme's type, and the width it is given."""
    panel.show_view(view_of(reading, display=Display(theme=theme)))
    panel.resize(width, panel.minimumSizeHint().height())
    assert panel.width() == width
    assert panel.minimumSizeHint().height() <= 5 * theme.font_body


def test_drawing_twice_gives_the_same_picture(panel: TimePanel, reading: Reading) -> None:
    """Nothing is left over from what was shown before."""
    view = view_of(reading, playing="play")
    panel.show_view(view)
    first = picture(panel)
    panel.show_view(view_of(None, phase="loading"))
    panel.show_view(view_of(reading, playing="play"))
    assert picture(panel) == first


def test_a_slider_is_painted_again_only_where_it_looks_different(qtbot: QtBot) -> None:
    slider = UserSlider()
    qtbot.addWidget(slider)
    slider.resize(200, 24)
    slider.show_value(650, 1, 1000)
    slider.set_mark(500, "#000000")
    with qtbot.waitExposed(slider):
        slider.show()
    assert is_all_painted(slider)
    watch = PaintWatch(slider)
    slider.show_value(651, 1, 1001)
    on_screen(slider)
    assert watch.area == 0
    assert slider.value() == 651
    for value, highest in ((300, 1001), (300, 3000)):
        watch.area = 0
        slider.show_value(value, 1, highest)
        on_screen(slider)
        assert watch.area > 0
        assert is_all_painted(slider)
