"""The training lab, driven by keys and clicks: filling in, training, scrubbing, keeping."""

import json
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QSettings, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QFileDialog, QMessageBox, QPushButton, QWidget
from pytestqt.qtbot import QtBot
from safetensors.numpy import save_file

from engine.training.plan import TrainingPlan, multiply_adds, n_parameters
from engine.training.recipes import RECIPES
from engine.training.record import HeldOutLoss, Moment, TrainingRecord, load_record, save_record
from gui import graphs, style
from gui.messages import Messages
from gui.settings import Settings
from gui.theme import THEMES, Theme
from gui.training.run import TrainingRun
from gui.training.runs import TrainingRuns
from gui.training.shelf import TrainingData, make_training, model_facts, n_steps_saved
from gui.training.window import TrainingLab
from tests.engine.training_process import Child
from tests.gui.whole_window import WholeWindow, wait_until

VERSE = "Full fathom five thy father lies;\nOf his bones are coral made;\n"
TOKENS = tuple(bytes([letter]) for letter in b"abcdabcd")
N_LOOKS, L, H, T = 5, 2, 2, len(TOKENS)
TINY = TrainingPlan(n_layer=1, n_head=2, d_model=16, context=16, batch=2, copy_steps=0, steps=150)


def a_record(seed: int = 0, *, is_masked: bool = True) -> TrainingRecord:
    """Looks at steps 0, 10, 20 …: all numbers drawn at random, to be found again on screen."""
    random = np.random.default_rng(seed)
    moments = []
    for index in range(N_LOOKS):
        patterns = random.random((L, H, T, T))
        patterns *= np.tri(T) if is_masked else 1
        patterns /= patterns.sum(axis=-1, keepdims=True)
        moments.append(
            Moment(
                step=10 * index,
                tokens=1000 * index,
                held_out=HeldOutLoss(per_token=5.0 - index, per_character=2.5 - index / 2),
                roles=random.random((2, L, H)).astype(np.float32),
                patterns=patterns.astype(np.float16).astype(np.float32),
                repeat_loss=(4.0 - index / 2, 3.0 - index / 2),
                sample=f"look {index}\nwrites <b>this</b>",
            )
        )
    losses = np.linspace(5, 1, 10 * (N_LOOKS - 1), dtype=np.float32)
    return TrainingRecord(tuple(range(T)), TOKENS, losses, tuple(moments))


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """A folder of a model that has a record beside it."""
    folder = tmp_path / "bundled" / "two <i>layers"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text('{"model": {"n_layer": 2}, "training": {}}')
    save_record(folder / "record.safetensors", a_record())
    return folder


@pytest.fixture
def plays(tmp_path: Path) -> TrainingData:
    """Two little plays, the second of them held out."""
    for name, n_verses in (("a", 40), ("b", 5)):
        (tmp_path / f"{name}.txt").write_text(VERSE * n_verses, encoding="utf-8")
    return TrainingData("Two plays", (tmp_path / "a.txt", tmp_path / "b.txt"), ("b",))


Show = Callable[[], TrainingLab]


@pytest.fixture
def show(qtbot: QtBot, tmp_path: Path, plays: TrainingData, recorded: Path) -> Iterator[Show]:
    """`show()` is the lab as a start of the program finds it."""
    labs: list[TrainingLab] = []
    settings = Settings(QSettings(str(tmp_path / "scope.ini"), QSettings.Format.IniFormat))

    def make() -> TrainingLab:
        runs = TrainingRuns(tmp_path / "data", plays, [recorded], settings, n_threads=1)
        lab = TrainingLab(runs, Messages())
        runs.setParent(lab)
        labs.append(lab)
        qtbot.addWidget(lab)
        lab.set_theme(THEMES["light"])
        lab.resize(1280, 720)
        lab.show()
        lab.activateWindow()
        wait_until(lab.isActiveWindow)
        return lab

    yield make
    for lab in labs:
        lab.let_go()
        for run in lab._runs.trainings:
            run.kill()
        lab.close()


def click(button: QPushButton) -> None:
    assert button.isVisible()
    assert button.isEnabled(), button.text()
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)


def write(lab: TrainingLab, name: str, text: str) -> None:
    """Type a number into a field of the form, and leave it."""
    field = lab.form.numbers[name]
    field.setFocus(Qt.FocusReason.TabFocusReason)
    field.selectAll()
    QTest.keyClicks(field, text)
    QTest.keyClick(field, Qt.Key.Key_Return)


def choose_file(lab: TrainingLab, path: Path) -> None:
    """By keys: the other kind of data, then a path."""
    form = lab.form
    form.data.setFocus()
    QTest.keyClick(form.data, Qt.Key.Key_Down)
    form.path.setFocus()
    form.path.selectAll()
    QTest.keyClicks(form.path, str(path))


def fill_in(lab: TrainingLab, plan: TrainingPlan) -> None:
    for name in ("n_layer", "n_head", "d_model", "context", "batch", "copy_steps", "steps"):
        write(lab, name, str(getattr(plan, name)))


def ready(lab: TrainingLab) -> str:
    """Wait until the form says what the training would be, or why it cannot be."""
    form = lab.form
    wait_until(lambda: form.complaint.text() or form.start_button.isEnabled(), "an answer")
    return form.complaint.text() or form.facts.text()


def begin(lab: TrainingLab) -> TrainingRun:
    """Press "Start" and wait for the run's page."""
    assert ready(lab)
    click(lab.form.start_button)
    wait_until(lambda: lab.shown is not None, "the run's page")
    assert lab.shown is not None
    return lab.shown


def rows(lab: TrainingLab) -> list[str]:
    return [lab.list.item(row).text() for row in range(lab.list.count())]


# The form


def test_the_form_says_what_the_training_would_be(show: Show) -> None:
    """Characters, weights and tokens, by arithmetic on the data and the first values."""
    lab = show()
    plan = TrainingPlan()
    words = ready(lab)
    assert f"{40 * len(VERSE):,} characters to learn from" in words
    assert f"{5 * len(VERSE):,} held out" in words
    weights = n_parameters(plan.config(len(set(VERSE)) + 256))
    assert f"{weights:,} weights" in words
    assert f"{plan.steps * plan.batch * plan.context:,} tokens in all" in words
    assert "known once a first training has run here" in words
    assert lab.form.wanted[0] == plan


def test_a_recipe_fills_in_the_form_by_a_key_and_says_what_it_came_to(show: Show) -> None:
    """And what is changed after that is a plan of one's own, until it is as it was."""
    lab = show()
    form = lab.form
    assert form.recipe.currentText() == "A quick look"
    write(lab, "seed", "nonsense")
    assert form.recipe.currentText() == "A plan of your own"
    assert not form.recipe_words.isVisible()
    form.recipe.setFocus()
    QTest.keyClick(form.recipe, Qt.Key.Key_Up)
    copying = RECIPES[1]
    assert form.recipe.currentText() == copying.name == "Two layers that learn to copy"
    assert form.wanted[0] == copying.plan
    assert form.recipe_words.text() == copying.sentence
    assert form.numbers["vocab_size"].isEnabled()
    assert form.complaint.text() == ""
    write(lab, "n_layer", "1")
    assert form.recipe.currentText() == "A plan of your own"
    write(lab, "n_layer", "2")
    assert form.recipe.currentText() == copying.name
    form.recipe.setFocus()
    QTest.keyClick(form.recipe, Qt.Key.Key_Down)
    assert form.wanted[0] == copying.plan  # which one's own begins with


def test_the_time_is_estimated_from_the_last_training_and_said_to_be(show: Show) -> None:
    """Ten minutes at a speed that makes it ten minutes."""
    plan = TrainingPlan()
    n_tokens = plan.steps * plan.batch * plan.context
    lab = show()
    speed = n_tokens * multiply_adds(plan.config(len(set(VERSE)) + 256)) / 600
    lab._runs._settings.write("training_speed", speed)
    write(lab, "seed", "5")
    assert "Estimated from the speed of the last training here: about 10 min." in ready(lab)


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("n_layer", "0", "layers = 0 is not possible; use 1 to 24."),
        ("d_model", "abc", "width = 'abc' is no whole number; use 4 to 2,048."),
        ("n_head", "5", "d_model = 64 is not divisible by n_head = 5; choose a multiple"),
        ("learning_rate", "7", "learning rate = 7 is not possible; use 0.000001 to 1."),
        ("context", "4000", "context = 4,000 is not possible; use 16 to 2,048."),
        ("context", "1024", "is too short: it has 315 tokens held out"),
    ],
)
def test_what_is_not_possible_is_said_in_one_sentence(
    show: Show, name: str, text: str, sentence: str
) -> None:
    """And cannot be started; what is possible again can be."""
    lab = show()
    ready(lab)
    write(lab, name, text)
    wait_until(lambda: lab.form.complaint.text() != "", "a complaint")
    assert sentence in lab.form.complaint.text()
    assert lab.form.complaint.isVisible()
    assert not lab.form.start_button.isEnabled()
    write(lab, name, str(getattr(TrainingPlan(), name)))
    assert "characters to learn from" in ready(lab)


@pytest.mark.parametrize(
    ("contents", "sentence"),
    [
        (None, "does not exist; choose a text file."),
        (b"", "is empty; choose a file with text in it."),
        (b"short", "is too short"),
        (b"\xff\xfe\x00", "is not text in UTF-8"),
    ],
)
def test_a_bad_file_is_said_in_one_sentence_before_anything_starts(
    show: Show, tmp_path: Path, contents: bytes | None, sentence: str
) -> None:
    lab, path = show(), tmp_path / "mine.txt"
    if contents is not None:
        path.write_bytes(contents)
    choose_file(lab, path)
    wait_until(lambda: sentence in lab.form.complaint.text(), sentence)
    assert str(path) in lab.form.complaint.text()
    assert not lab.form.start_button.isEnabled()
    assert not (tmp_path / "data" / "trainings").exists()


def test_a_file_is_found_by_the_system_s_dialog(
    show: Show, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "mine.txt"
    path.write_text(VERSE * 30, encoding="utf-8")
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(path), ""))
    lab = show()
    lab.form.data.setFocus()
    QTest.keyClick(lab.form.data, Qt.Key.Key_Down)
    click(lab.form.choose_button)
    assert f"{30 * len(VERSE) - 3 * len(VERSE):,} characters to learn from" in ready(lab)
    assert lab.form.wanted[1].paths == (path,)


def test_without_a_file_the_form_asks_for_one(show: Show) -> None:
    lab = show()
    lab.form.data.setFocus()
    QTest.keyClick(lab.form.data, Qt.Key.Key_Down)
    assert "No text file is chosen yet" in lab.form.complaint.text()


def test_the_field_with_the_keyboard_is_explained(show: Show) -> None:
    lab = show()
    lab.form.numbers["d_model"].setFocus(Qt.FocusReason.TabFocusReason)
    assert lab.form.help.text() == "Numbers that stand for each position."


# A recorded run


def open_recorded(lab: TrainingLab) -> TrainingRecord:
    """By keys, from the list."""
    lab.list.setFocus()
    QTest.keyClick(lab.list, Qt.Key.Key_End)
    assert lab.shown is not None
    assert lab.shown.phase == "recorded"
    return a_record()


def test_a_recorded_run_is_scrubbed_by_keys(show: Show) -> None:
    """Losses, sample and map are those of the look; nothing is trained."""
    lab = show()
    record = open_recorded(lab)
    view = lab.page.view
    assert rows(lab) == ["New training…", "Recorded: two <i>layers"]
    view.slider.setFocus()
    for key, index in ((Qt.Key.Key_Home, 0), (Qt.Key.Key_Right, 1), (Qt.Key.Key_End, 4)):
        QTest.keyClick(view.slider, key)
        moment = record.moments[index]
        assert view.where.text() == f"look {index + 1} of 5: step {10 * index}"
        assert view.sample.toPlainText() == moment.sample
        assert f"held out {5 - index:.2f} ({2.5 - index / 2:.2f} per character)" in (
            view.losses.text()
        )
        assert f"first time {4 - index / 2:.2f}, the second time {3 - index / 2:.2f}" in (
            view.losses.text()
        )
        at = np.unravel_index(moment.roles[1].argmax(), (L, H))  # the strongest at induction
        assert view.shown_head == at
        np.testing.assert_array_equal(view.map._weights, moment.patterns[at])
        assert f"induction {moment.roles[1].max():.2f}" in view.heading.text()


def test_a_head_is_chosen_by_keys(show: Show) -> None:
    """The two strongest come first, then all heads."""
    lab = show()
    record = open_recorded(lab)
    view = lab.page.view
    view.head.setFocus()
    QTest.keyClick(view.head, Qt.Key.Key_Down)
    at = np.unravel_index(record.moments[-1].roles[0].argmax(), (L, H))
    assert view.shown_head == at
    QTest.keyClick(view.head, Qt.Key.Key_End)
    assert view.shown_head == (1, 1)
    np.testing.assert_array_equal(view.map._weights, record.moments[-1].patterns[1, 1])
    assert not view.map._visible[0, 1:].any()
    view.map.setFocus()
    QTest.keyClick(view.map, Qt.Key.Key_Home)
    assert view.map.shown_cell is not None


def test_without_a_mask_every_key_can_be_seen(show: Show, recorded: Path) -> None:
    save_record(recorded / "record.safetensors", a_record(is_masked=False))
    lab = show()
    open_recorded(lab)
    assert lab.page.view.map._visible.all()


def test_the_curves_are_the_record_s(show: Show) -> None:
    """Each step's loss, the held-out looks, the strongest head's score, and where one stands."""
    lab = show()
    record = open_recorded(lab)
    points, x, _y = lab.page.view.loss_chart._latest or pytest.fail("no curve")
    assert points[0][1].tolist() == record.losses.tolist()
    assert points[1][1][-1] == pytest.approx(record.losses[-1:].mean())
    assert points[2][0].tolist() == [0, 10, 20, 30, 40]
    assert points[2][1].tolist() == [5, 4, 3, 2, 1]
    assert (x.low, x.high) == (0, 40)
    assert points[3][0].tolist() == [40, 40]
    roles = lab.page.view.role_chart._latest or pytest.fail("no curve")
    strongest = [moment.roles[1].max() for moment in record.moments]
    assert roles[0][0][1].tolist() == pytest.approx(strongest)


def test_a_recorded_run_opens_as_a_model(qtbot: QtBot, show: Show, recorded: Path) -> None:
    lab = show()
    open_recorded(lab)
    for button in (lab.page.keep_button, lab.page.discard_button, lab.page.resume_button):
        assert not button.isVisible()
    with qtbot.waitSignal(lab.open_wanted) as told:
        click(lab.page.open_button)
    assert told.args == [recorded]
    assert not lab.isVisible()  # the window where the model is seen lies behind it


def test_a_record_that_is_damaged_is_not_offered(show: Show, recorded: Path) -> None:
    (recorded / "record.safetensors").write_bytes(b"damaged")
    assert rows(show()) == ["New training…"]


# Training


def test_a_training_is_paused_killed_resumed_finished_and_discarded(
    show: Show,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a file of the user's, which may be changed meanwhile: the training has its own copy."""
    text = tmp_path / "mine.txt"
    text.write_text(VERSE * 30, encoding="utf-8")
    lab = show()
    choose_file(lab, text)
    fill_in(lab, TINY)
    run = begin(lab)
    text.write_text("changed", encoding="utf-8")
    wait_until(lambda: run.record is not None and len(run.record.moments) > 1, "a second look")
    assert run.record is not None
    assert lab.page.view.moment is run.record.moments[-1]
    assert rows(lab)[1].startswith("mine.txt: 1 × 2 heads, width 16, rotary (running ")
    assert "tokens per second" in lab.page.state.text()
    assert lab.page.state.text().endswith(" left.")
    click(lab.page.pause_button)
    wait_until(lambda: run.phase == "paused", "a pause")
    assert n_steps_saved(run.folder) == run.step == len(run.record.losses)
    assert "saved; it can go on" in lab.page.state.text()

    assert run.process is not None
    os.kill(run.process.number, signal.SIGKILL)
    wait_until(lambda: run.phase == "failed", "its end")
    assert "was ended by signal 9" in lab.page.state.text()
    assert f"It can go on from step {run.n_saved}, its last save." in lab.page.state.text()

    click(lab.page.resume_button)
    wait_until(lambda: run.phase == "running", "the step after")
    for share in (1 / 3, 2 / 3, 1):  # each as patiently as one thing is waited for
        wait_until(lambda share=share: run.step >= share * TINY.steps, f"{share:.0%}")
    wait_until(lambda: run.phase == "finished" and not run.is_busy, "its end")
    facts = model_facts(run.folder / "last")
    assert f"{facts['held_out_nats_per_token']:.3f} nats per token" in lab.page.state.text()
    record = load_record(run.folder / "last" / "record.safetensors")
    assert run.record is not None
    assert run.record.losses.tolist() == record.losses.tolist()
    assert len(record.losses) == TINY.steps
    assert lab._runs.speed > 0

    again = show()
    assert rows(again)[1] == "mine.txt: 1 × 2 heads, width 16, rotary (finished)"
    monkeypatch.setattr(QMessageBox, "exec", lambda _box: QMessageBox.StandardButton.No)
    click(lab.page.discard_button)
    assert run.folder.exists()
    monkeypatch.setattr(QMessageBox, "exec", lambda _box: QMessageBox.StandardButton.Yes)
    click(lab.page.discard_button)
    assert not run.folder.exists()
    assert rows(lab) == ["New training…", "Recorded: two <i>layers"]


def test_the_name_of_a_text_is_asked_about_to_the_letter(
    show: Show, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And Enter alone removes nothing."""
    data = TrainingData("<i>mine.txt", (tmp_path / "a.txt",))
    make_training(tmp_path / "data" / "trainings", TINY, data)
    lab = show()
    lab.list.setCurrentRow(1)
    asked: list[QMessageBox] = []

    def press_enter(box: QMessageBox) -> int:
        asked.append(box)
        box.show()
        assert box.textFormat() == Qt.TextFormat.PlainText
        assert "“<i>mine.txt: 1 × 2 heads" in box.text()
        QTest.keyClick(box, Qt.Key.Key_Return)
        return box.result()

    monkeypatch.setattr(QMessageBox, "exec", press_enter)
    click(lab.page.discard_button)
    assert len(asked) == 1
    assert rows(lab)[1].startswith("<i>mine.txt")


def test_a_training_that_an_earlier_version_began_goes_on(show: Show, tmp_path: Path) -> None:
    """With that version's arithmetic, which the plan does not name."""
    text, plan = tmp_path / "mine.txt", replace(TINY, steps=100_000)
    text.write_text(VERSE * 30, encoding="utf-8")
    shelf = tmp_path / "data" / "trainings"
    folder = make_training(shelf, plan, TrainingData("mine.txt", (text,)))
    earlier = Child(folder, text, "--activation=gelu_tanh", "--dtype=auto", plan=plan)
    earlier.until_kind("steps")
    earlier.say("stop")
    assert earlier.end() == 0
    lab = show()
    lab.list.setCurrentRow(1)
    run = lab.shown
    assert run is not None
    stopped = run.step
    click(lab.page.resume_button)
    wait_until(lambda: run.step > stopped or run.phase == "failed", "a step more")
    assert run.phase == "running", run.sentence
    click(lab.page.stop_button)
    wait_until(lambda: run.phase == "stopped", "its end")
    assert model_facts(folder / "last", "model")["activation"] == "gelu_tanh"
    assert model_facts(folder / "last")["settings"]["dtype"] == "auto"


def made(tmp_path: Path, plays: TrainingData, plan: TrainingPlan = TINY) -> Path:
    """A training that stopped after 30 of its steps, as its process leaves it."""
    folder = make_training(tmp_path / "data" / "trainings", plan, plays)
    record = a_record().until(30)
    save_record(folder / "record.safetensors", record)
    facts = {"training": json.dumps({"step": 30})}
    save_file({"weights": np.zeros(1)}, folder / "state.safetensors", facts)
    model = folder / "last"
    model.mkdir()
    (model / "config.json").write_text(json.dumps({"training": {"step": 30}}))
    for name in ("model.safetensors", "tokenizer.json"):
        (model / name).write_bytes(b"as it was")
    save_record(model / "record.safetensors", record)
    return folder


def test_a_model_is_kept_under_a_name(
    qtbot: QtBot, show: Show, tmp_path: Path, plays: TrainingData
) -> None:
    """It is copied whole, becomes a recorded run, and opens."""
    made(tmp_path, plays)
    lab = show()
    lab.list.setCurrentRow(1)
    name = lab.page.name
    name.setFocus()
    name.selectAll()
    QTest.keyClicks(name, "My model")
    with qtbot.waitSignal(lab.kept) as told:
        QTest.keyClick(name, Qt.Key.Key_Return)
    folder = tmp_path / "data" / "models" / "My model"
    assert told.args == [folder]
    assert {path.name for path in folder.iterdir()} == {
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "record.safetensors",
    }
    assert "Recorded: My model" in rows(lab)
    assert "Kept as “My model”" in lab.page.note.text()
    with qtbot.waitSignal(lab.open_wanted) as told:
        click(lab.page.open_button)
    assert told.args == [folder]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("", "A model needs a name; type one."),
        ("a/b", "A model cannot be named 'a/b', with '/'; leave that out."),
        ("..", "with a dot at its beginning or end; leave that out."),
        ("x" * 81, "The name has 81 letters; use at most 80."),
        ("taken", "There is a model named 'taken' already; choose another name."),
    ],
)
def test_a_name_that_will_not_do_is_said(
    show: Show, tmp_path: Path, plays: TrainingData, name: str, sentence: str
) -> None:
    made(tmp_path, plays)
    (tmp_path / "data" / "models" / "taken").mkdir(parents=True)
    lab = show()
    lab.list.setCurrentRow(1)
    lab.page.name.setFocus()
    lab.page.name.selectAll()
    QTest.keyClick(lab.page.name, Qt.Key.Key_Delete)
    QTest.keyClicks(lab.page.name, name)
    click(lab.page.keep_button)
    assert sentence in lab.page.note.text()
    assert len(list((tmp_path / "data" / "models").iterdir())) == 1


def test_a_failure_is_remembered(show: Show, tmp_path: Path, plays: TrainingData) -> None:
    """At the next start the sentence stands there still."""
    folder = made(tmp_path, plays)
    about = json.loads((folder / "training.json").read_text())
    about["failure"] = "the loss became nan at step 31; lower the learning rate."
    (folder / "training.json").write_text(json.dumps(about))
    lab = show()
    lab.list.setCurrentRow(1)
    assert "the loss became nan at step 31" in lab.page.state.text()
    assert "(failed" in rows(lab)[1]


def test_a_damaged_training_is_named_and_the_others_stay(
    show: Show, tmp_path: Path, plays: TrainingData
) -> None:
    damaged = made(tmp_path, plays)
    made(tmp_path, plays, replace(TINY, seed=2))
    (damaged / "training.json").write_text("{}")
    lab = show()
    assert len(rows(lab)) == 3
    assert f"{damaged} holds no training, or one that is damaged" in lab.notes.text()


def test_one_training_at_a_time(
    show: Show, tmp_path: Path, plays: TrainingData, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another one says which it waits for."""
    made(tmp_path, plays)
    made(tmp_path, plays)
    lab = show()
    monkeypatch.setattr(TrainingRun, "is_busy", property(lambda run: run is lab._runs.trainings[0]))
    lab.list.setCurrentRow(2)
    click(lab.page.resume_button)
    assert "is training; pause or stop it first." in lab.page.note.text()


# The window


def test_tab_reaches_every_field_and_each_has_a_name(show: Show) -> None:
    lab = show()
    ready(lab)
    stops: list[QWidget] = []
    while QApplication.focusWidget() not in stops:
        stop = QApplication.focusWidget()
        assert stop is not None
        stops.append(stop)
        QTest.keyClick(stop, Qt.Key.Key_Tab)
    form = lab.form
    wanted = {lab.list, form.recipe, form.data, form.start_button, *form.choices.values()}
    wanted |= {field for field in form.numbers.values() if field.isEnabled()}
    assert wanted <= set(stops)
    for stop in stops:
        text = stop.text() if hasattr(stop, "text") else ""
        assert stop.accessibleName() or text


@pytest.mark.parametrize("theme", THEMES.values(), ids=lambda theme: theme.name)
def test_it_fits_and_follows_the_theme(
    qapp: QApplication, show: Show, tmp_path: Path, plays: TrainingData, theme: Theme
) -> None:
    """At 1280 × 720: every button is whole, and the charts are drawn."""
    made(tmp_path, plays)
    lab = show()
    style.apply_theme(qapp, theme)
    lab.set_theme(theme)
    graphs.start_import()
    lab.list.setCurrentRow(1)
    view = lab.page.view
    charts = (view.loss_chart, view.role_chart, view.repeat_chart)
    wait_until(lambda: all(chart.is_drawn for chart in charts), "the curves")
    QApplication.processEvents()
    assert lab.size().toTuple() == (1280, 720)
    for button in lab.page.findChildren(QPushButton):
        if button.isVisible():
            assert button.width() >= button.sizeHint().width()
            place = button.mapTo(lab, button.rect().topLeft())
            assert lab.rect().contains(button.rect().translated(place))
    assert view.map.height() > 250
    assert view.losses.shown().startswith("Nats per token: training")


# The whole program


@pytest.mark.usefixtures("qapp")
def test_a_trained_model_opens_and_closing_saves_what_trains(
    small_model: Path, tmp_path: Path
) -> None:
    """From the main window by its key; the model that was kept is open at the end."""
    text = tmp_path / "mine.txt"
    text.write_text(VERSE * 30, encoding="utf-8")
    whole = WholeWindow(tmp_path / "scope.ini", model=small_model, prompt="to be").start()
    whole.press("Ctrl+T", whole.editor)
    lab = whole.child(TrainingLab)
    wait_until(lab.isVisible)
    choose_file(lab, text)
    fill_in(lab, replace(TINY, steps=100_000))
    run = begin(lab)
    wait_until(lambda: run.phase == "running" and run.step > 0, "a step")
    click(lab.page.pause_button)
    wait_until(lambda: run.phase == "paused", "a pause")
    lab.page.name.setFocus()
    lab.page.name.selectAll()
    QTest.keyClicks(lab.page.name, "Ariel")
    click(lab.page.open_button)
    wait_until(lambda: whole.reading.info.name == "Ariel", "the model")
    whole.idle()
    assert whole.reading.info.config.n_layer == 1
    assert whole.reading.document.text == "to be"
    assert not lab.isVisible()
    whole.window.activateWindow()
    wait_until(whole.window.isActiveWindow)
    whole.press("Ctrl+T", whole.editor)
    wait_until(lab.isVisible)
    click(lab.page.resume_button)
    paused = run.step
    wait_until(lambda: run.step > paused, "a step after the pause")
    process, folder = run.process, run.folder
    assert process is not None
    whole.close()
    assert process.wait() == 0
    assert n_steps_saved(folder) > paused
