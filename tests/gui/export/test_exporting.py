"""What leaves the program: every panel's picture and numbers, by menu, key and right click."""

import csv
import errno
import gc
import io
import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from PySide6.QtCore import QBuffer, QEvent, QPoint, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import (
    QAction,
    QContextMenuEvent,
    QGuiApplication,
    QImage,
    QKeySequence,
    QPainter,
)
from PySide6.QtSvg import QSvgGenerator, QSvgRenderer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QFileDialog, QMenu, QWidget

import engine
from engine.document import Document
from engine.formats import Consequence
from engine.loss import LossSummary
from gui.export import numbers, tables
from gui.export.numbers import Table
from gui.export.stamp import one_line, stamp_of
from gui.panels.base import Panel
from gui.panels.cache import CachePanel
from gui.panels.checks import ChecksPanel
from gui.panels.format import FormatPanel
from gui.panels.head import HeadPanel
from gui.panels.heads import HeadsPanel
from gui.panels.loss import LossPanel, summary_of
from gui.panels.mask import MaskPanel
from gui.panels.table import PANELS
from gui.theme import THEMES
from gui.widgets import matrix_view
from gui.widgets.candidate_bars import CandidateBars
from gui.widgets.cell_drawing import _diagonals
from gui.widgets.column_page import ColumnPage
from gui.widgets.head_atlas import HeadAtlas
from gui.widgets.legend import draw_hatched
from gui.widgets.lens_grid import LensGrid
from gui.widgets.loss_rows import LossRows
from gui.widgets.matrix_view import MatrixView
from gui.widgets.pixels import packed
from gui.widgets.token_strip import TokenStrip
from gui.wishes import (
    Compare,
    EditText,
    MeasureCost,
    PointAt,
    SelectHead,
    SelectPosition,
    SetDisplay,
    SetFormat,
    SetMask,
    SetSampling,
)
from tests.gui.picture_facts import colours, point_at, turn_wheel
from tests.gui.tiny_scope import tiny_scope
from tests.gui.whole_window import WholeWindow, wait_until

TEXT = 'To "be",\n=1+1,\x01<&>\té'  # quotes, a formula, a control character, markup, two bytes
NAMES = [row.name for row in PANELS]
# What the screenless platform says of a menu that pops up.
menus = pytest.mark.qt_log_ignore("does not support (raise|grabbing the keyboard)")
SVG = "{http://www.w3.org/2000/svg}"


def _read_both_ways(whole: WholeWindow) -> None:
    """What the panel shows has to be asked for."""
    for what in ("one by one", "both ways"):
        whole.wish(MeasureCost(what))
        wait_until(lambda: not whole.state.costs.running, "the end of the experiment")
        whole.idle()


@pytest.fixture(scope="module")
def opened(qapp: QApplication, small_model: Path) -> Iterator[WholeWindow]:  # noqa: ARG001
    """One window for all tests of this file."""
    whole = WholeWindow(model=small_model, prompt=TEXT).start()
    _read_both_ways(whole)
    whole.visit_all_panels()
    yield whole
    whole.close()


@pytest.fixture
def whole(opened: WholeWindow) -> WholeWindow:
    """The window, on the same text and head before every test."""
    if opened.state.text != TEXT:
        opened.wish(EditText(TEXT))
    opened.wish(SetMask({"mask": "causal"}), SelectHead(1, 2), SelectPosition(None))
    opened.wish(SetDisplay({"drawing": "heatmap", "theme": THEMES["light"]}))
    opened.activate()
    return opened


@pytest.fixture
def export(
    whole: WholeWindow, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[..., Path]:
    """`export("head", "a.csv")` goes to the panel, presses the key and gives the file that is due.

    `chosen` is the kind that the dialog was left on.
    """

    def do(name: str, file: str, chosen: str = "") -> Path:
        whole.window.go_to_panel(name)
        whole.idle()
        ready = {"lens", "residual", "cell", "code", "leak", "schemes"}
        if name in ready:
            wait_until(lambda: getattr(whole.state, name) is not None, name)
            whole.idle()
        if name == "compare":
            wait_until(lambda: _is_compared(whole), name)
        if name == "windows":
            wait_until(lambda: whole.state.windows.answer(name) is not None, name)
        answer = (str(tmp_path / file) if file else "", chosen)
        monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: answer)
        whole.press("Ctrl+Shift+E", whole.window)
        return tmp_path / file

    return do


def _is_compared(whole: WholeWindow) -> bool:
    """Whether the comparison that is wanted now is there."""
    opened, choice = whole.state.comparison, whole.state.compare
    wanted = choice.wanted(whole.reading, whole.state.formats)
    return opened is not None and opened.answers(whole.reading, wanted)


def _csv(path: Path) -> tuple[dict[str, Any], dict[str, dict[str, list[str]]]]:
    """The facts on top of a file, and its tables: name → column → values."""
    lines = path.read_bytes().decode("utf-8").split("\r\n")
    n_facts = next(at for at, line in enumerate(lines) if line.startswith("# table: "))
    facts = {}
    for line in lines[:n_facts]:
        name, value = line.removeprefix("# ").split(": ", 1)
        facts[name] = json.loads(value)
    found: dict[str, dict[str, list[str]]] = {}
    for part in "\r\n".join(lines[n_facts:]).split("# table: ")[1:]:
        name, _end, body = part.partition("\r\n")
        rows = [row for row in csv.reader(io.StringIO(body, newline=""), strict=True) if row]
        assert len({len(row) for row in rows}) == 1  # well-formed
        columns = zip(*rows[1:], strict=True) if rows[1:] else [()] * len(rows[0])
        found[json.loads(name)] = dict(zip(rows[0], map(list, columns), strict=True))
    return facts, found


def _xml(data: bytes) -> ET.Element:
    """Parsed, which what is not well-formed is not."""
    return ET.fromstring(data)  # noqa: S314 - our own


# Numbers


def test_the_weights_of_a_head_come_back_to_the_last_bit(
    whole: WholeWindow, export: Callable[..., Path]
) -> None:
    """From CSV and from NPZ, with the mask beside them."""
    focus = whole.reading.focus
    _facts, read = _csv(export("head", "a.csv"))
    n_tokens = whole.reading.n_tokens
    for query in range(n_tokens):
        row = [read["weights"][f"weight on key {key}"][query] for key in range(n_tokens)]
        assert np.array_equal(np.array(row, np.float32), focus.weights[query])
    with np.load(export("head", "a.npz"), allow_pickle=False) as arrays:
        assert np.array_equal(arrays["weights.weight"], focus.weights)
        assert arrays["weights.weight"].dtype == np.float32
        assert np.array_equal(arrays["mask.visible"], focus.visible)
        assert json.loads(str(arrays["stamp"]))["text"] == TEXT


def test_tokens_of_any_text_stand_in_a_well_formed_csv(
    whole: WholeWindow, export: Callable[..., Path]
) -> None:
    """Quotes, commas, newlines, formulas and bytes come back as they were; nothing is added."""
    _facts, read = _csv(export("prompt", "a.csv"))
    column = read["tokens"]
    assert b"".join(map(bytes.fromhex, column["token_hex"])) == TEXT.encode()
    assert list(map(int, column["token_id"])) == list(whole.reading.document.token_ids)
    assert "".join(column["token"][:17]) == TEXT[:17]
    assert {'"', ",", "\n", "="} <= set(column["token"])
    assert column["token"][-2:] == ["\\xc3", "\\xa9"]


def test_facts_say_how_to_repeat_it(whole: WholeWindow, export: Callable[..., Path]) -> None:
    """Model, text, conditions, sampling, seed, version: those of the reading."""
    before = whole.state.sampling
    sampling = type(before)(temperature=0.5, top_k=7, top_p=0.75, seed=42)
    whole.wish(SetMask({"mask": "window", "window": 5, "sinks": 2}), SetSampling(sampling))
    facts, _read = _csv(export("head", "a.csv"))
    whole.wish(SetSampling(before))
    assert facts == {
        "program": f"Attention Scope {engine.__version__}",
        "panel": "One head",
        "model": "small",
        "number_format": "float32",
        "text": TEXT,
        "tokens_before_text": 0,
        "tokens": len(TEXT.encode()),
        "tokens_fallen_out": 0,
        "layer": 1,
        "head": 2,
        "query": len(TEXT.encode()) - 1,
        "conditions": "first 2 + window of 5",
        "kv_cache": True,
        "temperature": 0.5,
        "top_k": 7,
        "top_p": 0.75,
        "seed": 42,
    }


def test_each_number_is_the_one_of_the_reading(
    whole: WholeWindow, export: Callable[..., Path]
) -> None:
    """Candidates, losses, roles, passes: compared with the arrays that the engine gave."""
    reading = whole.reading
    stages = reading.stages
    assert stages is not None
    with np.load(export("next_token", "a.npz")) as arrays:
        ids = arrays["candidates.token_id"]
        assert np.array_equal(ids, np.argsort(-stages.logits, kind="stable"))
        assert np.array_equal(arrays["candidates.logit"], stages.logits[ids])
        assert np.array_equal(arrays["candidates.probability"], stages.probs[ids])
    with np.load(export("loss", "b.npz")) as arrays:
        assert np.array_equal(arrays["tokens.nats"], reading.session.loss, equal_nan=True)
        mean = reading.session.loss[1:].astype(np.float64).mean()
        assert arrays["text.nats_per_token"] == pytest.approx(mean)
        assert np.array_equal(arrays["tokens.rank"][1:], reading.session.rank[1:] + 1)
        assert arrays["tokens.rank"][0] == 0
    with np.load(export("heads", "c.npz")) as arrays:
        assert arrays["roles.previous token"].reshape(2, 4).tolist() == (
            reading.roles.scores["previous token"].tolist()
        )
        peaks = arrays["thumbnails.peak"].reshape(reading.thumbnails.peaks.shape)
        assert np.array_equal(peaks[..., 1:], reading.thumbnails.peaks[..., 1:])
        weights = reading.focus.weights
        assert np.array_equal(peaks[1, 2], np.round(255 * np.sqrt(weights)).astype(np.uint8))
    with np.load(export("cache", "d.npz")) as arrays:
        assert arrays["passes.rows_computed"].tolist() == [s.n_computed for s in reading.stats]


def test_what_the_engine_was_asked_for_is_exported_with_its_own_reading(
    whole: WholeWindow, export: Callable[..., Path]
) -> None:
    """Lens, residual and cell: parts that sum to the logit, a weight that is the heatmap's."""
    whole.wish(SelectPosition(7, 3))
    with np.load(export("cell", "a.npz")) as arrays:
        wait_until(lambda: whole.state.cell is not None)
        assert arrays["features.product"].sum() == pytest.approx(float(arrays["cell.dot"][0]))
        assert int(arrays["cell.query"][0]) == json.loads(str(arrays["stamp"]))["query"]
        assert arrays["row.v"].shape[0] == whole.reading.n_tokens
        shown = arrays["row.weight_shown"]
        assert np.abs(arrays["row.weight"] - shown).max() < 1e-5
    with np.load(export("residual", "b.npz")) as arrays:
        part, share = arrays["parts.part"], arrays["parts.share_of_logit"]
        counted = np.isin(part, ["token", "position", "attention", "mlp", "final norm bias"])
        assert share[counted].sum() == pytest.approx(float(arrays["logit.logit"][0]), abs=1e-3)
    with np.load(export("lens", "c.npz")) as arrays:
        lens = whole.state.lens
        assert lens is not None
        assert lens.lens is not None
        assert np.array_equal(arrays["lens.top_id"].T, lens.lens.top)
        assert np.array_equal(arrays["lens.target_probability"].T, lens.lens.target_probability)


def test_the_losses_under_every_mask_that_was_tried_are_exported(
    whole: WholeWindow, export: Callable[..., Path]
) -> None:
    """The one in force last."""
    whole.wish(SetMask({"mask": "none"}))
    _facts, read = _csv(export("mask", "a.csv"))
    assert read["mean_loss"]["conditions"][-1] == "no mask"
    assert "causal mask" in read["mean_loss"]["conditions"]
    loss = whole.reading.session.loss[1:].astype(np.float64).mean()
    assert float(read["mean_loss"]["nats_per_token"][-1]) == pytest.approx(loss)


def test_what_was_not_checked_is_no_number(whole: WholeWindow, export: Callable[..., Path]) -> None:
    """Without the mask there is nothing cached to compare; what was measured is there."""
    whole.wish(SetMask({"mask": "none"}))
    _facts, read = _csv(export("checks", "a.csv"))
    checks = {name: values[0] for name, values in read["checks"].items()}
    assert checks["cached_minus_full_logits"] == "nan"
    assert checks["all_finite"] == "1"
    assert float(checks["row_sum_error"]) == whole.reading.checks.row_sum_error


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("suffix", [".csv", ".npz"])
def test_every_panel_exports_its_numbers(
    whole: WholeWindow, export: Callable[..., Path], name: str, suffix: str
) -> None:
    path = export(name, f"a{suffix}")
    said = whole.window.message_bar.sentence
    title = whole.panel(name).title
    assert said == f"The numbers of {title} are in {path}."
    assert path.stat().st_size > 300


def test_a_head_of_512_tokens_is_written_row_by_row() -> None:
    """With its mask: two tables of 512 rows, each with its name and its head line."""
    weights = np.tril(np.random.default_rng(0).random((512, 512), np.float32))
    keys = [f"on key {key}" for key in range(512)]
    both = (
        Table("weights", {"weight": weights}, {"weight": keys}),
        Table("mask", {"visible": weights > 0}, {"visible": keys}),
    )
    written = numbers.to_csv({}, both)
    assert written.count(b"\r\n") == 2 * (512 + 2) + 1
    last = written.split(b"\r\n")[512 + 1].split(b",")
    assert [float(weight) for weight in last] == pytest.approx(weights[511].tolist(), rel=1e-6)


def test_much_is_written_beside_the_window(
    whole: WholeWindow, export: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The window says so, and again when it is done."""
    monkeypatch.setattr("gui.export.exporting._LONG", 10)
    path = export("head", "a.npz")
    done = f"The numbers of One head are in {path}."
    wait_until(lambda: whole.window.message_bar.sentence == done)
    with np.load(path) as arrays:
        assert np.array_equal(arrays["weights.weight"], whole.reading.focus.weights)


def test_an_empty_text_has_pictures_and_no_numbers(
    whole: WholeWindow, export: Callable[..., Path]
) -> None:
    """And says so."""
    whole.wish(EditText(""))
    assert export("head", "a.svg").exists()
    export("head", "a.csv")
    assert whole.window.message_bar.sentence.startswith("One head cannot be written as .csv; use")


@pytest.mark.parametrize("name", ["cost", "designs"])
def test_what_does_not_hang_on_the_text_is_written_without_one(
    whole: WholeWindow, export: Callable[..., Path], name: str
) -> None:
    """The curves that are on screen, a row for each length."""
    whole.wish(EditText(""))
    lines = export(name, "a.csv").read_text().splitlines()
    tokens = next(at for at, line in enumerate(lines) if line.startswith("tokens,"))
    assert int(lines[tokens + 2].split(",")[0]) > int(lines[tokens + 1].split(",")[0])


def test_the_tables_of_an_empty_text_are_empty_and_can_be_written() -> None:
    """Whoever asks for them."""
    reading = tiny_scope().edit("")
    given = (
        *tables.head_tables(reading),
        *tables.pass_tables(reading),
        *tables.prompt_tables(reading),
        *tables.loss_tables(reading, LossSummary.of(reading.session.loss, Document().spans)),
    )
    facts = stamp_of(reading, "x").facts
    assert numbers.to_csv(facts, given)
    assert numbers.to_npz(facts, given)


# Pictures


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("name", NAMES)
def test_every_panel_is_a_png_as_it_is_on_screen(
    whole: WholeWindow, export: Callable[..., Path], name: str, theme: str
) -> None:
    """Above the line that says what was read; the facts are in its text chunks."""
    whole.wish(SetDisplay({"theme": THEMES[theme]}))
    path = export(name, "a.png")
    image, panel = QImage(str(path)), whole.panel(name)
    whole_size = _pictured(panel)
    assert image.width() == whole_size.width()
    assert image.height() > whole_size.height() >= panel.height()
    shown = colours(panel)[:, : image.width()]  # without what scrolls it
    top = image.copy(0, 0, image.width(), panel.height())
    assert (_pixels(top) == shown).mean() > 0.98  # a caret may blink
    caption = _pixels(image)[whole_size.height() + 1 :]
    ground = 0xFF000000 | int(THEMES[theme].surface[1:], 16)
    assert caption[-1, 0] == ground
    assert (caption != ground).any()
    assert image.text("text") == 'To "be",\\n=1+1,\\u0001<&>\\té'
    assert image.text("model") == "small"
    assert image.text("seed") == "1"
    assert image.text("Software") == f"Attention Scope {engine.__version__}"


def _pictured(panel: Panel) -> QSize:
    """How much of a panel a picture shows: of a page that fills it all, seen or not."""
    page = panel.findChild(ColumnPage)
    is_longer = page is not None and page.content.height() > panel.height()
    return page.content.size() if page is not None and is_longer else panel.size()


@pytest.mark.parametrize(
    ("name", "curves"),
    [
        ("cost", {"multiply-adds of a pass", "bytes moved by a pass"}),
        ("designs", {"held", "KiB by layer"}),
        ("two_ways", {"ms per step", "ms since the first token"}),
    ],
)
def test_a_page_that_scrolls_is_drawn_to_its_end(
    whole: WholeWindow, export: Callable[..., Path], name: str, curves: set[str]
) -> None:
    """All curves in letters; and in pixels the end of the page as it is when it is scrolled to."""
    export(name, "")
    panel = whole.panel(name)
    root = _xml(export(name, "a.svg").read_bytes())
    written = {"".join(each.itertext()).strip() for each in root.iter(f"{SVG}text")}
    assert curves <= written
    image, page = QImage(str(export(name, "a.png"))), panel.findChild(ColumnPage)
    assert page is not None
    page.verticalScrollBar().setValue(page.verticalScrollBar().maximum())
    shown = colours(panel)[:, : image.width()]
    page.verticalScrollBar().setValue(0)
    end = _pictured(panel).height()
    drawn = _pixels(image)[end - panel.height() : end]
    assert end > panel.height()
    assert (drawn == shown).mean() > 0.98


def _pixels(image: QImage) -> Any:
    image = image.convertToFormat(QImage.Format.Format_RGB32)
    flat = np.frombuffer(image.constBits(), np.uint32)
    return flat.reshape(image.height(), -1)[:, : image.width()].copy()


@pytest.mark.parametrize("name", NAMES)
def test_every_panel_is_an_svg_with_letters(
    whole: WholeWindow, export: Callable[..., Path], name: str
) -> None:
    """Well-formed whatever the text, with the facts as its description, looking as on screen."""
    path = export(name, "a.svg")
    root = _xml(path.read_bytes())
    panel = whole.panel(name)
    assert root.findtext(f"{SVG}title") == f"{panel.title} · small"
    description = root.findtext(f"{SVG}desc")
    assert description is not None
    assert 'text: To "be",\\n=1+1,\\u0001<&>\\té' in description
    assert "conditions: causal mask" in description
    written = "".join(text for each in root.iter(f"{SVG}text") for text in each.itertext())
    assert "causal mask" in written  # the line under the picture
    renderer = QSvgRenderer(str(path))
    view = renderer.viewBoxF().size().toSize()
    image = QImage(view, QImage.Format.Format_RGB32)
    image.fill(0xFFFF00FF)
    with QPainter(image) as painter:
        renderer.render(painter)
    shown = colours(panel)[:, : image.width()]
    drawn = _pixels(image)[: panel.height()]
    # Letters and edges are smoothed in another way; grounds and pictures are the same.
    assert (_lightness(drawn) - _lightness(shown)).__abs__().mean() < 12


def _lightness(pixels: Any) -> Any:
    return np.asarray(pixels.view(np.uint8).reshape(*pixels.shape, 4)[..., :3], np.float64).mean(2)


def test_a_panel_is_whole_after_it_was_exported(
    whole: WholeWindow, export: Callable[..., Path]
) -> None:
    """Also after Python has collected its garbage: nothing that was drawn is deleted with it."""
    for name in NAMES:
        before = len(whole.panel(name).findChildren(QWidget))
        for suffix in (".svg", ".pdf", ".png"):
            export(name, f"{name}{suffix}")
        gc.collect()
        assert len(whole.panel(name).findChildren(QWidget)) == before


@pytest.mark.parametrize("drawing", ["heatmap", "arcs"])
def test_a_head_keeps_its_labels_as_letters_and_its_frames_as_lines(
    whole: WholeWindow, export: Callable[..., Path], drawing: str
) -> None:
    """And its cells, of which there are few, as rectangles."""
    whole.wish(EditText("Tobe"), SetDisplay({"drawing": drawing}), SelectPosition(2, 1))
    root = _xml(export("head", "a.svg").read_bytes())
    written = ["".join(each.itertext()).strip() for each in root.iter(f"{SVG}text")]
    assert {"query (who looks)", "key (at whom)", "masked"} <= set(written)
    assert set("Tobe") <= set(written)


@pytest.mark.parametrize("zoomed", [False, True])
def test_cells_of_a_heatmap_stay_sharp_at_any_size(
    whole: WholeWindow, export: Callable[..., Path], *, zoomed: bool
) -> None:
    """Eight times as large, each corner of a cell has the colour that it has on screen."""
    whole.wish(EditText("to be or not to be that is"), SelectPosition(25))
    matrix = _settled_matrix(whole)
    if zoomed:
        turn_wheel(matrix, matrix.cell_rect(12, 4).center(), 3)
        assert matrix.is_zoomed
        QApplication.sendEvent(matrix, QEvent(QEvent.Type.Leave))
    on_screen, at = colours(matrix), matrix.mapTo(whole.panel("head"), QPoint())
    cells = [matrix.cell_rect(query, key) for query in range(0, 24, 3) for key in range(query + 1)]
    cells = [place for place in cells if matrix._box.contains(place)]
    assert len(cells) > 20
    path, factor = export("head", "a.svg"), 8
    large = _rendered(path, factor)
    for place in cells:
        wanted = on_screen[int(place.center().y()), int(place.center().x())]
        inner = place.adjusted(0.6, 0.6, -0.6, -0.6).translated(at)
        for corner in (inner.topLeft(), inner.topRight(), inner.bottomLeft()):
            assert large[int(corner.y() * factor), int(corner.x() * factor)] == wanted
    assert matrix.width() not in _images(path)  # a box to choose from may be one
    matrix.reset_view()


def _settled_matrix(whole: WholeWindow) -> MatrixView:
    """The heatmap in its place: a message comes with an export, and takes some of it."""
    whole.window.go_to_panel("head")
    whole.idle()
    matrix = whole.child(MatrixView)
    matrix.reset_view()
    return matrix


def _images(path: Path) -> list[float]:
    """How wide the pictures of pixels in a drawing are."""
    return [float(each.get("width", 0)) for each in _xml(path.read_bytes()).iter(f"{SVG}image")]


def test_what_a_mask_hides_is_hatched_in_files_too(
    whole: WholeWindow, export: Callable[..., Path]
) -> None:
    """With strokes that stay among the masked cells."""
    whole.wish(EditText("to be or not to be that is"), SelectPosition(25))
    matrix, factor = _settled_matrix(whole), 4
    at, theme = matrix.mapTo(whole.panel("head"), QPoint()), THEMES["light"]
    hidden, seen = (
        matrix.cell_rect(first, key).united(matrix.cell_rect(20, key)).translated(at)
        for first, key in ((0, 22), (3, 1))
    )
    drawn = _rendered(export("head", "a.svg"), factor)

    def share(place: QRectF) -> float:
        top, left = int((place.top() + 1) * factor), int((place.left() + 1) * factor)
        bottom, right = int((place.bottom() - 1) * factor), int((place.right() - 1) * factor)
        return float(np.mean(drawn[top:bottom, left:right] == packed(theme.hatch)))

    assert 0.05 < share(hidden) < 0.5
    assert share(seen) == 0


def test_a_heatmap_with_very_many_cells_is_kept_as_the_pixels_on_screen(
    whole: WholeWindow, export: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rectangles would be larger than these."""
    whole.wish(EditText("to be or not to be that is"), SelectPosition(None))
    monkeypatch.setattr(matrix_view, "MOST_RUNS", 100)
    assert whole.child(MatrixView).width() in _images(export("head", "a.svg"))


def _rendered(path: Path, factor: int) -> Any:
    """A drawing so many times as large as on screen: 0xFFRRGGBB [height, width]."""
    renderer = QSvgRenderer(str(path))
    image = QImage(renderer.viewBoxF().size().toSize() * factor, QImage.Format.Format_RGB32)
    with QPainter(image) as painter:
        renderer.render(painter)
    return _pixels(image)


def test_strokes_over_masked_cells_end_at_their_edges() -> None:
    """And go on in the cell below where they left off."""
    origin = QPointF(10, 20)
    upper, lower = QRectF(30, 20, 25, 8), QRectF(30, 28, 25, 8)
    ends = []
    for place in (upper, lower):
        for start, stop in _diagonals(place, origin, 6):
            assert place.adjusted(-1e-9, -1e-9, 1e-9, 1e-9).contains(start)
            assert place.adjusted(-1e-9, -1e-9, 1e-9, 1e-9).contains(stop)
            assert start.x() + start.y() == pytest.approx(stop.x() + stop.y())
            ends += [(round(each.x(), 6), round(each.y(), 6)) for each in (start, stop)]
    through = {x for x, y in ends if y == 28 and 30 < x < 55}
    assert len(through) >= 4
    assert all(ends.count((x, 28)) == 2 for x in through)


def test_thumbnails_keep_the_names_of_layers_and_heads_as_letters(
    export: Callable[..., Path],
) -> None:
    root = _xml(export("heads", "a.svg").read_bytes())
    written = {"".join(each.itertext()).strip() for each in root.iter(f"{SVG}text")}
    assert {"L0", "L1", "H0", "H1", "H2", "H3"} <= written


def test_chips_are_lines_and_letters(whole: WholeWindow, export: Callable[..., Path]) -> None:
    """Tokens, their numbers and their grounds, also those of characters in several tokens."""
    whole.wish(EditText("Tobe é"), SelectPosition(2))
    data = export("prompt", "a.svg").read_bytes()
    assert b"<image" not in data
    written = ["".join(each.itertext()).strip() for each in _xml(data).iter(f"{SVG}text")]
    assert set("Tobe") | {"0", "1", "2", "3"} <= set(written)
    assert b"/Subtype /Image" not in export("prompt", "a.pdf").read_bytes()


def test_the_drawing_of_the_mask_is_lines_and_letters(
    export: Callable[..., Path],
) -> None:
    root = _xml(export("mask", "a.svg").read_bytes())
    written = {"".join(each.itertext()).strip() for each in root.iter(f"{SVG}text")}
    assert {"keys →", "← queries"} <= written


def test_strokes_over_what_is_masked_end_at_its_edges(qapp: QApplication) -> None:  # noqa: ARG001
    """SVG as Qt writes it has no clip, so nothing else would hold them."""
    box, data = QRectF(10, 20, 30, 12), QBuffer()
    data.open(QBuffer.OpenModeFlag.WriteOnly)
    generator = QSvgGenerator()
    generator.setOutputDevice(data)
    with QPainter(generator) as painter:
        draw_hatched(painter, box, THEMES["light"])
    lines = [each.get("points") for each in _xml(bytes(data.data().data())).iter(f"{SVG}polyline")]
    ends = [tuple(map(float, end.split(","))) for line in lines for end in (line or "").split()]
    assert len(ends) >= 10
    assert all(10 <= x <= 40 and 20 <= y <= 32 for x, y in ends)


@pytest.mark.parametrize("name", NAMES)
def test_every_panel_is_one_page_of_pdf_of_its_size(
    whole: WholeWindow, export: Callable[..., Path], name: str
) -> None:
    """With the facts in its metadata."""
    data = export(name, "a.pdf").read_bytes()
    assert data.startswith(b"%PDF-")
    assert data.rstrip().endswith(b"%%EOF")
    assert len(re.findall(rb"/Type\s*/Page\b", data)) == 1
    assert b"/Count 1" in data
    box = re.search(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", data)
    assert box is not None
    assert float(box[1]) == pytest.approx(_pictured(whole.panel(name)).width() * 0.75, abs=1)
    xmp = re.search(rb"<x:xmpmeta.*</x:xmpmeta>", data, re.DOTALL)
    assert xmp is not None
    said = "".join(_xml(xmp[0]).itertext())
    assert 'text: To "be",\\n=1+1,\\u0001<&>\\té' in said
    assert "seed: 1" in said


# The ways there


def test_the_panel_with_the_keyboard_is_the_one_that_is_exported(
    whole: WholeWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also by the menu; the name that is offered says the model and the panel."""
    asked: list[tuple[Any, ...]] = []
    monkeypatch.setattr(
        QFileDialog, "getSaveFileName", lambda *said: asked.append(said) or ("", "")
    )
    for child, title in (
        (MatrixView, "One head"),
        (LossRows, "Loss"),
        (CandidateBars, "Next token"),
    ):
        panel = whole.child(child).parentWidget()
        while not isinstance(panel, Panel):
            assert panel is not None
            panel = panel.parentWidget()
        whole.window.go_to_panel(panel.name)
        whole.idle()
        QTest.mouseClick(whole.child(child), Qt.MouseButton.LeftButton)
        whole.child(child).setFocus()
        whole.action("export_panel").trigger()
        assert asked[-1][1] == f"Export {title}"
        assert asked[-1][2] == f"small-{title.lower().replace(' ', '-')}.png"
        assert asked[-1][3].startswith("Picture, PNG (*.png);;")
    whole.idle()


@menus
@pytest.mark.parametrize("name", NAMES)
def test_a_right_click_offers_to_export_that_panel(
    whole: WholeWindow, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Whatever panel has the keyboard."""
    asked: list[str] = []
    monkeypatch.setattr(
        QFileDialog, "getSaveFileName", lambda _window, title, *_: asked.append(title) or ("", "")
    )
    whole.window.go_to_panel(name)
    whole.idle()
    whole.editor.setFocus()
    wait_until(lambda: whole.panel(name).reading_of(whole.panel(name).drawn))  # type: ignore[arg-type]
    _right_click(whole.panel(name), whole.panel(name), "Export…")
    assert asked == [f"Export {whole.panel(name).title}"]


def _menu(panel: Panel, on: QWidget) -> QMenu:
    """What a right click in the middle of a widget opens."""
    place = on.rect().center()
    event = QContextMenuEvent(QContextMenuEvent.Reason.Mouse, place, on.mapToGlobal(place))
    QApplication.sendEvent(on, event)
    (menu,) = [each for each in panel.findChildren(QMenu) if each.isVisible()]
    return menu


def _right_click(panel: Panel, on: QWidget, entry: str) -> list[str]:
    """Choose an entry by a real click; returns all entries."""
    menu = _menu(panel, on)
    entries = [action.text() for action in menu.actions() if action.text()]
    chosen: list[QAction] = [action for action in menu.actions() if action.text() == entry]
    QTest.mouseClick(menu, Qt.MouseButton.LeftButton, pos=menu.actionGeometry(chosen[0]).center())
    QApplication.processEvents()
    return entries


def test_nothing_is_written_if_no_file_was_chosen(
    export: Callable[..., Path], tmp_path: Path
) -> None:
    export("head", "")
    assert not list(tmp_path.glob("*.*"))


def test_a_name_without_an_ending_gets_that_of_the_chosen_kind(
    whole: WholeWindow, export: Callable[..., Path]
) -> None:
    """And replaces nothing that the dialog had not asked about."""
    path = export("head", "a", "Numbers, CSV (*.csv)")
    written = path.with_suffix(".csv")
    assert written.read_bytes().startswith(b"# program: ")
    written.write_bytes(b"mine")
    export("head", "a", "Numbers, CSV (*.csv)")
    assert written.read_bytes() == b"mine"
    said = whole.window.message_bar.sentence
    assert said == f"{written} exists; choose it in the list to replace it."
    assert export("head", "b.CSV").read_bytes().startswith(b"# program: ")


def test_an_unknown_ending_is_said_in_one_sentence(
    whole: WholeWindow, export: Callable[..., Path]
) -> None:
    path = export("head", "a.docx")
    assert not path.exists()
    assert whole.window.message_bar.sentence == (
        "One head cannot be written as .docx; use .png, .svg, .pdf, .csv or .npz."
    )


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf", ".csv", ".npz"])
def test_a_file_that_cannot_be_written_is_said_in_one_sentence(
    whole: WholeWindow, export: Callable[..., Path], suffix: str
) -> None:
    path = export("head", f"missing/a{suffix}")
    assert whole.window.message_bar.sentence == (
        f"{path} cannot be written ({os.strerror(errno.ENOENT)}); choose another folder or name."
    )


@pytest.mark.parametrize("suffix", [".png", ".npz"])
def test_a_full_disk_is_named_and_costs_nothing_that_was_there(
    whole: WholeWindow, export: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    """The file that was to be replaced stays, and nothing half-written beside it."""
    path = export("head", f"a{suffix}")
    before = path.read_bytes()
    write = Path.write_bytes

    def fill(self: Path, contents: bytes) -> int:
        write(self, contents[: len(contents) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", fill)
    export("head", f"a{suffix}")
    assert path.read_bytes() == before
    assert list(path.parent.glob(f"a{suffix}*")) == [path]
    assert f"({os.strerror(errno.ENOSPC)})" in whole.window.message_bar.sentence


# Copying one number


def _copied() -> str:
    return QGuiApplication.clipboard().text()


@menus
def test_copying_takes_the_weight_that_is_pointed_at_or_else_selected(whole: WholeWindow) -> None:
    """All its digits: the very float32 comes back."""
    head = whole.panel("head")
    assert isinstance(head, HeadPanel)
    whole.window.go_to_panel("head")
    whole.wish(SelectPosition(9, 4))
    view = whole.child(MatrixView)
    view.setFocus()
    whole.press("Ctrl+C", view)
    assert np.float32(_copied()) == whole.reading.focus.weights[9, 4]
    point_at(view, QPointF(view.cell_rect(6, 5).center()))
    whole.press("Ctrl+C", view)
    assert np.float32(_copied()) == whole.reading.focus.weights[6, 5]
    point_at(view, QPointF(view.cell_rect(7, 1).center()))
    entries = _right_click(head, view, "Copy weight")
    assert entries == [
        "Switch off layer 1, head 2",
        "Open the arithmetic of query 7, key 1",
        "Copy weight",
        "Copy number of positions that carry 90 %",
        "Export…",
    ]
    assert np.float32(_copied()) == whole.reading.focus.weights[7, 1]
    whole.wish(SetDisplay({"drawing": "arcs"}))
    whole.activate()
    links = head.views["arcs"]
    links.setFocus()
    whole.press("Ctrl+C", links)
    assert np.float32(_copied()) == whole.reading.focus.weights[9, 4]


@menus
def test_copying_takes_a_candidates_probability_and_on_request_its_logit(
    whole: WholeWindow,
) -> None:
    """Of the row that keys moved to."""
    whole.window.go_to_panel("next_token")
    whole.idle()
    bars, stages = whole.child(CandidateBars), whole.reading.stages
    assert stages is not None
    bars.setFocus()
    for keys in ("Home", "Down", "Down"):
        whole.press(keys, bars)
    third = stages.order[2]
    whole.press("Ctrl+C", bars)
    assert float(_copied()) == stages.probs[third]
    entries = _right_click(whole.panel("next_token"), bars, "Copy logit")
    assert entries == ["Copy probability", "Copy plain softmax", "Copy logit", "Export…"]
    assert float(_copied()) in stages.logits


def test_copying_takes_a_loss_a_lens_cell_and_a_role(whole: WholeWindow) -> None:
    """In their panels, by the same key."""
    whole.window.go_to_panel("loss")
    whole.wish(SelectPosition(5))
    rows = whole.child(LossRows)
    rows.setFocus()
    whole.press("Ctrl+C", rows)
    assert np.float32(_copied()) == whole.reading.session.loss[6]
    QGuiApplication.clipboard().setText("before")
    whole.press("Home", rows)
    whole.press("Ctrl+C", rows)
    assert _copied() == "before"  # the first token has no loss
    whole.window.go_to_panel("lens")
    wait_until(lambda: whole.state.lens is not None)
    whole.idle()
    grid = whole.child(LensGrid)
    grid.setFocus()
    whole.press("Up", grid)
    whole.press("Ctrl+C", grid)
    lens = whole.state.lens
    assert lens is not None
    assert lens.lens is not None
    assert np.float32(_copied()) == lens.lens.top_probability[1, 5]
    whole.window.go_to_panel("heads")
    whole.wish(SetDisplay({"sort": "entropy"}))
    atlas = whole.child(HeadAtlas)
    atlas.setFocus()
    whole.press("Ctrl+C", atlas)
    assert np.float32(_copied()) == whole.reading.roles.scores["entropy"][1, 2]
    whole.wish(SetDisplay({"sort": None}))


@menus
def test_the_numbers_of_a_part_of_the_residual_can_be_copied(whole: WholeWindow) -> None:
    """One by one, where the key copies all of it."""
    whole.window.go_to_panel("residual")
    wait_until(lambda: whole.state.residual is not None)
    whole.idle()
    panel = whole.panel("residual")
    entries = [figure.name for figure in panel.figures()]
    assert entries[:2] == ["length", "cosine"]
    view = panel.focusProxy()
    assert isinstance(view, QWidget)
    whole.press("Home", view)
    wanted = panel.figures()[0].digits
    stream = whole.state.residual.stream  # type: ignore[union-attr]
    assert stream is not None
    assert float(wanted) == float(stream.token.lengths)
    panel_entries = _right_click(panel, view, "Copy length")
    assert panel_entries[0] == "Copy length"


def test_a_token_tells_its_loss_and_the_weight_on_it_with_all_digits(whole: WholeWindow) -> None:
    """On hovering, and by the key for copying; the first token has no loss."""
    whole.wish(SelectPosition(8), PointAt(None))
    strip, panel = whole.child(TokenStrip), whole.panel("prompt")
    loss, weights = whole.reading.session.loss, whole.reading.focus.weights
    strip.setFocus()
    point_at(strip.viewport(), QPointF(1, 1))  # no chip
    whole.press("Ctrl+C", strip)
    assert np.float32(_copied()) == loss[8]
    point_at(strip.viewport(), QPointF(strip.rect_of(3).center()))
    whole.press("Ctrl+C", strip)
    assert np.float32(_copied()) == loss[3]
    digits = {figure.name: figure.digits for figure in panel.figures()}
    assert np.float32(digits["weight on it"]) == weights[8, 3]
    tip = strip.describe_place(3)
    assert f"loss {loss[3]!s} nats" in tip
    assert f"weight {weights[8, 3]!s}" in tip
    point_at(strip.viewport(), QPointF(strip.rect_of(0).center()))
    assert [figure.name for figure in panel.figures()] == ["weight on it"]


def test_a_pass_in_the_cache_charts_tells_its_numbers(whole: WholeWindow) -> None:
    """The one under the pointer, with all digits; else the latest."""
    whole.window.go_to_panel("cache")
    for text in ("To", "Tob", "Tobe"):
        whole.wish(EditText(text))
    panel = whole.panel("cache")
    assert isinstance(panel, CachePanel)
    chart, stats = panel.rows_chart, whole.reading.stats
    wait_until(lambda: chart.is_drawn, "the curves")
    QApplication.processEvents()
    whole.child(CachePanel).switch.setFocus()
    whole.press("Ctrl+C", panel.switch)
    assert _copied() == str(stats[-1].n_computed)
    number = len(stats) - 2
    place = chart.place_at(number)
    wanted = stats[number - 1]
    assert chart.tip_at(place) == (
        f"Pass {number}: rows computed {wanted.n_computed}; rows without the cache "
        f"{wanted.n_tokens}; milliseconds {1000 * wanted.seconds!r}; bytes held "
        f"{wanted.cache_bytes}"
    )
    point_at(chart, QPointF(place))
    assert panel.figures()[2].digits == repr(1000 * wanted.seconds)


def test_a_check_tells_its_figure_with_all_digits(whole: WholeWindow) -> None:
    """By its tooltip, and to the key for copying once Tab has come to it."""
    panel = whole.panel("checks")
    assert isinstance(panel, ChecksPanel)
    error = repr(float(whole.reading.checks.row_sum_error))
    assert error in panel.lines[0].accessibleDescription()
    panel.lines[0].setFocus(Qt.FocusReason.TabFocusReason)
    whole.press("Ctrl+C", panel.lines[0])
    assert _copied() == error
    panel.lines[1].setFocus(Qt.FocusReason.TabFocusReason)
    whole.press("Ctrl+C", panel.lines[1])
    assert _copied() == "0.0"
    assert panel.lines[1].focusPolicy() == Qt.FocusPolicy.TabFocus


def test_the_loss_under_the_mask_is_told_with_all_digits(whole: WholeWindow) -> None:
    whole.window.go_to_panel("mask")
    whole.idle()
    panel = whole.panel("mask")
    assert isinstance(panel, MaskPanel)
    loss = float(whole.reading.session.loss[1:].astype(np.float64).mean())
    button = panel.choices.checkedButton()
    button.setFocus()
    whole.press("Ctrl+C", button)
    assert float(_copied()) == pytest.approx(loss, rel=1e-12)
    assert _copied() in panel.loss.toolTip()


def test_a_head_and_a_summary_tell_all_digits(whole: WholeWindow) -> None:
    """The role's score under the thumbnails, the mean loss over the list of losses."""
    whole.window.go_to_panel("heads")
    whole.wish(SetDisplay({"sort": "previous token"}), SelectHead(0, 1))
    panel = whole.panel("heads")
    assert isinstance(panel, HeadsPanel)
    score = whole.reading.roles.scores["previous token"][0, 1]
    assert f"previous token {score!s}" in panel.named.text()
    whole.wish(SetDisplay({"sort": None}))
    whole.window.go_to_panel("loss")
    whole.idle()
    loss = whole.panel("loss")
    assert isinstance(loss, LossPanel)
    mean = summary_of(whole.reading).mean
    assert repr(float(mean)) in loss.per_token.toolTip()


def test_where_the_text_stands_is_exported(whole: WholeWindow, export: Callable[..., Path]) -> None:
    _facts, read = _csv(export("time", "a.csv"))
    one = {name: values[0] for name, values in read["time"].items()}
    n_tokens = len(TEXT.encode())
    assert one["tokens_shown"] == one["tokens"] == one["prompt"] == str(n_tokens)
    assert (one["generated"], one["context"]) == ("0", "64")
    assert float(one["temperature"]) == whole.state.sampling.temperature


def test_how_the_weights_are_held_is_exported_with_the_comparison(
    whole: WholeWindow, export: Callable[..., Path]
) -> None:
    """In float32 there is nothing to compare; in int8 all of it, to be copied as well."""
    _facts, read = _csv(export("format", "a.csv"))
    assert set(read) == {"held"}
    assert read["held"]["number_format"] == ["float32"]
    info = whole.reading.info
    assert read["held"]["bytes"] == [str(info.held.n_bytes)]
    assert read["held"]["bytes_in_float32"] == [str(4 * info.n_parameters)]
    whole.wish(SetFormat({"number_format": "int8"}))
    whole.window.go_to_panel("format")
    found = _consequence(whole)
    with np.load(export("format", "b.npz")) as arrays:
        assert arrays["against_float32.difference"][0] == found.difference
        assert arrays["against_float32.nats_per_token_in_float32"][0] == found.loss_in_float32
        assert arrays["against_float32.position"][0] == found.position
        assert str(arrays["held.number_format"][0]) == "int8"
    panel = whole.panel("format")
    scroll = panel.focusProxy()
    assert isinstance(scroll, QWidget)
    scroll.setFocus()
    whole.press("Ctrl+C", scroll)
    assert float(_copied()) == found.difference
    assert isinstance(panel, FormatPanel)
    assert repr(found.probability) in panel.figure.toolTip()
    whole.wish(SetFormat({"number_format": "float32"}))


def _consequence(whole: WholeWindow) -> Consequence:
    wait_until(
        lambda: whole.state.consequence and whole.state.consequence.consequence, "the comparison"
    )
    opened = whole.state.consequence
    assert opened is not None
    assert opened.consequence is not None
    whole.idle()
    return opened.consequence


def test_every_panel_with_numbers_of_its_own_has_some_to_copy(whole: WholeWindow) -> None:
    """But for the one that has only counts of tokens, in words."""
    whole.wish(SelectPosition(5, 3))
    wanting = set()
    for name in NAMES:
        whole.window.go_to_panel(name)
        whole.idle()
        panel = whole.panel(name)
        if name in {"lens", "residual", "cell", "code"}:
            wait_until(lambda name=name: getattr(whole.state, name) is not None, name)
            whole.idle()
        if name == "windows":
            wait_until(lambda name=name: whole.state.windows.answer(name) is not None, name)
        if name in {"cell", "loss"}:
            whole.press("End", panel.focusProxy())  # type: ignore[arg-type]
        if not panel.figures():
            wanting.add(name)
    assert wanting == {"time"}


def test_copying_in_the_editor_still_copies_the_text(whole: WholeWindow) -> None:
    whole.editor.setFocus()
    whole.press("Ctrl+A", whole.editor)
    whole.press("Ctrl+C", whole.editor)
    assert _copied().startswith('To "be"')
    assert QKeySequence(QKeySequence.StandardKey.Copy).toString() == "Ctrl+C"


def test_a_value_on_one_line_is_printable_and_can_be_told_apart() -> None:
    """A backslash is escaped too, so that what was escaped can be read back."""
    assert one_line("a\\n\n\u2028\ud800é") == "a\\\\n\\n\\u2028\\ud800é"
    assert json.loads(f'"{one_line(TEXT).replace(chr(34), chr(92) + chr(34))}"') == TEXT
    assert one_line(1.5) == "1.5"


def test_two_runs_are_exported_with_what_is_known_of_both(
    whole: WholeWindow, export: Callable[..., Path]
) -> None:
    """Both squares to the last bit, nan where there is nothing, and B's facts beside A's."""
    b = "be or"
    whole.wish(Compare({"text": b, "way": "token", "differs": frozenset({"text"})}))
    facts, read = _csv(export("compare", "a.csv"))
    opened = whole.state.comparison
    assert opened is not None
    assert opened.comparison is not None
    slots = opened.comparison.alignment
    n_slots = len(slots)
    assert (facts["text"], facts["b_text"]) == (TEXT, b)
    assert facts["b_conditions"] == "causal mask"
    assert facts["compared_by"] == "token"
    assert [int(at) for at in read["slots"]["position_a"]] == slots.a.tolist()
    assert [int(at) for at in read["slots"]["position_b"]] == slots.b.tolist()
    for name, focus, places in (
        ("weight_a", opened.comparison.a.focus, slots.a),
        ("weight_b", opened.comparison.b.focus, slots.b),
    ):
        columns = [read[name][f"{name} on slot {slot}"] for slot in range(n_slots)]
        square = np.array(columns, np.float32).T
        here = places != -1
        assert np.array_equal(square[np.ix_(here, here)], focus.weights)
        assert np.isnan(square[~here]).all()
        assert np.isnan(square[:, ~here]).all()
    with np.load(export("compare", "a.npz"), allow_pickle=False) as arrays:
        apart = arrays["difference.difference"]
        assert np.array_equal(~np.isnan(apart), opened.comparison.exists)
        both = arrays["weight_b.weight_b"] - arrays["weight_a.weight_a"]
        assert np.array_equal(apart[opened.comparison.exists], both[opened.comparison.exists])
        assert arrays["next_token.probability_a"].sum() == pytest.approx(1)
        assert arrays["loss.run"].tolist() == ["a", "b"]
        assert json.loads(str(arrays["stamp"]))["b_text"] == b
    whole.wish(Compare({"text": None, "way": "automatic"}))
