"""The checks: five answers about the tensors that are shown, each with a shape and a figure."""

from dataclasses import replace

import pytest
from PySide6.QtCore import QEvent, QObject
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from engine.conditions import Conditions
from engine.reading import CacheCheck, Reading
from engine.readouts import Checks
from gui.panels.checks import ChecksPanel
from gui.state import Display
from gui.theme import THEMES, Theme
from tests.gui.picture_facts import is_all_painted
from tests.gui.tiny_scope import house, picture, tiny_scope, view_of


@pytest.fixture
def panel(window: QWidget) -> ChecksPanel:
    """A shown panel in its usual place, low and narrow."""
    widget = ChecksPanel()
    house(window, widget, 300, 170)
    return widget


@pytest.fixture
def reading() -> Reading:
    """Eleven tokens."""
    return tiny_scope().edit("to be or no")


class LayoutWatch(QObject):
    """Counts how often a widget is to lay out what is in it."""

    def __init__(self, widget: QWidget) -> None:
        super().__init__(widget)
        self.n_requests = 0
        widget.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Count, and let the event pass."""
        self.n_requests += event.type() == QEvent.Type.LayoutRequest
        return super().eventFilter(watched, event)


def texts(panel: ChecksPanel) -> list[str]:
    """What can be read, line by line."""
    return [line.text() for line in panel.lines if line.isVisible()]


def test_a_sound_reading_passes_every_check(panel: ChecksPanel, reading: Reading) -> None:
    """The figures are those of the measured weights, worked out here from the shown head."""
    panel.show_view(view_of(reading, cache_check=CacheCheck(11, 2.5e-6, 0.0)))
    assert [text[0] for text in texts(panel)] == ["✓"] * 5
    rows, mask, finite, logits, weights = texts(panel)
    assert rows.startswith("✓ rows sum to 1: ± ")
    error = float(rows.split("± ")[1])
    shown_head = abs(reading.focus.weights.sum(axis=1, dtype="float64") - 1).max()
    assert shown_head * 0.94 <= error < 1e-5
    assert mask == "✓ weight above the mask is 0: 0"
    assert finite == "✓ all numbers finite: yes"
    assert logits == "✓ cached = full pass: logits: 2.5e-06"
    assert weights == "✓ cached = full pass: weights: 0"


@pytest.mark.parametrize(
    ("wrong", "line", "figure"),
    [
        (Checks(3e-3, 0.0, all_finite=True), 0, "3.0e-03"),
        (Checks(0.0, 1e-9, all_finite=True), 1, "1.0e-09"),
        (Checks(0.0, 0.0, all_finite=False), 2, "no"),
        (Checks(float("nan"), 0.0, all_finite=True), 0, "nan"),
    ],
)
def test_a_wrong_number_is_shown_and_crossed(
    panel: ChecksPanel, reading: Reading, wrong: Checks, line: int, figure: str
) -> None:
    """Only the line that fails is crossed, and it carries the wrong number."""
    panel.show_view(view_of(replace(reading, checks=wrong)))
    glyphs = [text[0] for text in texts(panel)]
    assert [at for at, glyph in enumerate(glyphs) if glyph == "✗"] == [line]
    assert texts(panel)[line].endswith(figure)


@pytest.mark.parametrize("broken", [CacheCheck(11, 0.5, 0.0), CacheCheck(11, float("nan"), 0.0)])
def test_a_cached_pass_that_differs_is_crossed(
    panel: ChecksPanel, reading: Reading, broken: CacheCheck
) -> None:
    """Also when the difference is no number."""
    panel.show_view(view_of(reading, cache_check=broken))
    assert texts(panel)[3].startswith("✗ cached = full pass: logits")
    assert texts(panel)[4].startswith("✓")


@pytest.mark.parametrize("check", [None, CacheCheck(10, 0.0, 0.0)], ids=["none", "older text"])
def test_a_comparison_that_is_not_there_yet_is_awaited(
    panel: ChecksPanel, reading: Reading, check: CacheCheck | None
) -> None:
    """The comparison of another text is not shown as this one's."""
    panel.show_view(view_of(reading, cache_check=check))
    assert texts(panel)[3] == "… cached = full pass: logits: checking…"


def test_the_real_comparison_of_cached_and_full_pass_holds(panel: ChecksPanel) -> None:
    """Prompt, steps and an edit in the middle, then the engine's own comparison."""
    scope = tiny_scope()
    scope.edit("to be or no")
    scope.step()
    reading = scope.edit("to be and no")
    panel.show_view(view_of(reading, cache_check=scope.check_cache()))
    assert [text[0] for text in texts(panel)] == ["✓"] * 5


def test_without_a_mask_there_is_nothing_above_it(panel: ChecksPanel) -> None:
    """The two questions that make no sense then are marked as not asked."""
    scope = tiny_scope()
    scope.edit("to be")
    panel.show_view(view_of(scope.set_conditions(Conditions(mask="none"))))
    assert [text[0] for text in texts(panel)] == ["✓", "–", "✓", "–", "–"]
    assert texts(panel)[1].endswith("no mask")
    assert "mask" in panel.lines[3].toolTip()


def test_with_a_window_the_mask_has_two_sides(panel: ChecksPanel) -> None:
    """The words say outside instead of above."""
    scope = tiny_scope()
    scope.edit("to be or not")
    panel.show_view(view_of(scope.set_conditions(Conditions(mask="window", window=3))))
    assert texts(panel)[1] == "✓ weight outside the mask is 0: 0"


def test_without_the_cache_nothing_is_compared(panel: ChecksPanel) -> None:
    """What is shown is a full pass already."""
    scope = tiny_scope()
    scope.edit("to be")
    panel.show_view(view_of(scope.set_cache(use=False), cache_check=CacheCheck(5, 0.0, 0.0)))
    assert texts(panel)[3].startswith("– ")
    assert texts(panel)[3].endswith("not cached")


def test_without_a_text_a_sentence_says_so(panel: ChecksPanel) -> None:
    """No ticks for numbers that do not exist."""
    panel.show_view(view_of(tiny_scope().edit("")))
    assert texts(panel) == []
    assert panel.sentence.text().startswith("There is no text yet.")
    panel.show_view(view_of(None, phase="loading"))
    assert panel.sentence.text() == "The model is being loaded."
    panel.show_view(view_of(None, phase="failed", notice="x has no config.json."))
    assert panel.sentence.text() == "x has no config.json."


def test_one_token_passes(panel: ChecksPanel) -> None:
    """Its one weight is 1."""
    panel.show_view(view_of(tiny_scope().edit("a")))
    assert [text[0] for text in texts(panel)] == ["✓", "✓", "✓", "…", "…"]


def test_every_line_tells_its_tolerance(panel: ChecksPanel, reading: Reading) -> None:
    """In the tooltip and to a screen reader."""
    panel.show_view(view_of(reading, cache_check=CacheCheck(11, 0.0, 0.0)))
    for line, tolerance in zip(
        panel.lines, ("1e-05", "exactly 0", "NaN", "0.001", "0.001"), strict=True
    ):
        assert tolerance in line.toolTip()
        assert tolerance in line.accessibleDescription()
    assert panel.accessibleName() == "Checks"
    assert all(text in panel.accessibleDescription() for text in texts(panel))


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_all_five_lines_fit_a_low_panel(
    qtbot: QtBot, panel: ChecksPanel, reading: Reading, theme: Theme
) -> None:
    """In one column where it is high enough, else in two; nothing is pushed out."""
    view = view_of(reading, display=Display(theme=theme))
    for width, height in ((300, 170), (420, panel.minimumSizeHint().height())):
        panel.resize(width, height)
        panel.show_view(view)
        qtbot.waitUntil(lambda: all(panel.rect().contains(line.geometry()) for line in panel.lines))
        places = [line.geometry() for line in panel.lines]
        assert all("…" not in line.shown() for line in panel.lines)
        overlaps = [a.intersects(b) for i, a in enumerate(places) for b in places[:i]]
        assert not any(overlaps)


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_colour_and_shape_tell_the_same(panel: ChecksPanel, reading: Reading, theme: Theme) -> None:
    """A failing line is written in the colour for that, a holding glyph in its own."""
    wrong = replace(reading, checks=Checks(1.0, 0.0, all_finite=True))
    panel.show_view(view_of(wrong, display=Display(theme=theme)))
    picture = [panel.lines[at].grab().toImage() for at in (0, 1)]
    seen = [
        {image.pixelColor(x, y).name() for x in range(image.width()) for y in range(image.height())}
        for image in picture
    ]
    good, bad = QColor(theme.good).name(), QColor(theme.bad).name()
    assert bad in seen[0]
    assert good not in seen[0]
    assert good in seen[1]
    assert bad not in seen[1]


def test_a_comparison_that_comes_and_goes_lays_out_nothing_anew(
    qtbot: QtBot, panel: ChecksPanel, reading: Reading
) -> None:
    """It does with each keystroke, and a window takes long to lay out."""
    awaited = view_of(reading)
    there = view_of(reading, cache_check=CacheCheck(11, 2.5e-6, 1.25e-7))
    for view in (awaited, there, awaited):
        panel.show_view(view)
    QApplication.processEvents()
    watch = LayoutWatch(panel)
    for view, figure in ((there, "2.5e-06"), (awaited, "checking…")):
        panel.show_view(view)
        assert panel.lines[3].text().endswith(figure)
        assert is_all_painted(panel.window())
    assert not watch.n_requests
    wide = replace(reading, checks=Checks(0.0, 1.0, all_finite=True))
    panel.show_view(view_of(wide))  # another figure that has had no room yet
    qtbot.waitUntil(lambda: watch.n_requests > 0)


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_figures_of_every_width_are_painted_whole_in_another_theme(
    panel: ChecksPanel, reading: Reading, theme: Theme
) -> None:
    """What room a figure had in a theme is no room in a larger one."""
    panel.show_view(view_of(reading))
    panel.show_view(view_of(reading, display=Display(theme=theme)))
    check = CacheCheck(11, 2.5e-6, 1.25e-7)
    panel.show_view(view_of(reading, display=Display(theme=theme), cache_check=check))
    fresh = ChecksPanel()
    house(panel.window(), fresh, panel.width(), panel.height())
    fresh.show()
    for view in (view_of(reading, display=Display(theme=theme)), panel.drawn):
        assert view is not None
        fresh.show_view(view)
    assert picture(fresh) == picture(panel)


def test_drawing_twice_gives_the_same_picture(panel: ChecksPanel, reading: Reading) -> None:
    """Nothing is left over from what was shown before."""
    panel.show_view(view_of(reading))
    first = picture(panel)
    panel.show_view(view_of(None, phase="loading"))
    panel.show_view(view_of(reading))
    assert picture(panel) == first
