"""Wishes and what becomes of them, with the engine's thread and a real small model."""

import json
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from pytestqt.qtbot import QtBot

import engine.scope
from engine.answers.ablation_pass import EffectSweep
from engine.conditions import Conditions
from engine.loading import load
from engine.reading import Look, Reading
from engine.sampling import Sampling
from engine.scope import Scope
from gui import wishes
from gui.controller import Controller
from gui.messages import Message, Messages
from gui.state import Display, HeadsOff, MaskChoice, State, Store
from gui.wishes import (
    Choose,
    EditText,
    GoTo,
    MeasureEffects,
    OpenModel,
    Play,
    SelectHead,
    SelectPosition,
    SetCache,
    SetDisplay,
    SetFormat,
    SetHeadsOff,
    SetMask,
    SetSampling,
    SetSpeed,
    Step,
    StepBack,
    WantIntact,
    WantResidual,
)
from gui.worker import EngineThread, Job
from tests.engine.gguf_files import N_TOKENS, llama_weights, write_llama
from tests.engine.hf_files import write_golden

PATIENCE = 10.0  # seconds; what should happen happens at once


class WatchedScope(Scope):
    """A scope that can be held up, made to draw given tokens, or made to fail."""

    gate = threading.Event()  # closed: edits and steps wait
    begun = threading.Event()  # an edit or a step waits or runs
    done = threading.Event()  # a step has been worked out
    script: Iterator[int] = iter(())  # ids of the tokens that steps "draw"
    calls: ClassVar[list[str]]
    bug: Exception | None = None

    def _enter(self, call: str) -> None:
        type(self).calls.append(call)
        self.begun.set()
        assert self.gate.wait(PATIENCE)
        if self.bug is not None:
            raise self.bug

    def edit(self, text: str, *more: Any) -> Reading:
        """As ever, once the gate is open."""
        self._enter("edit")
        return super().edit(text, *more)

    def step(self, *more: Any) -> Reading:
        """The script's next token, or as ever."""
        self._enter("step")
        token_id = next(self.script, None)
        reading = (
            super().step(*more) if token_id is None else self.choose(self._cursor, token_id, *more)
        )
        self.done.set()
        return reading

    def check_cache(self, *more: Any) -> Any:
        """Counted."""
        self._enter("check")
        return super().check_cache(*more)


@pytest.fixture
def scopes(monkeypatch: pytest.MonkeyPatch) -> type[WatchedScope]:
    """The class of all scopes of this test; its gate is open."""

    class Watched(WatchedScope):
        gate, begun, done = threading.Event(), threading.Event(), threading.Event()
        calls: ClassVar[list[str]] = []

    Watched.gate.set()
    monkeypatch.setattr(engine.scope, "Scope", Watched)
    monkeypatch.setattr("gui.controller._SETTLE_MS", 20)  # be quicker about it
    return Watched


class Desk:
    """A controller with its store and everything that it told."""

    def __init__(self, qtbot: QtBot, text: str) -> None:
        self.qtbot = qtbot
        self.store = Store(State(text=text, steps_per_second=200.0))
        self.engine = EngineThread()
        self.messages = Messages()
        self.told: list[Message] = []
        self.messages.listen(self.told.append)
        self.states: list[State] = []
        self.store.changed.connect(lambda state, _names: self.states.append(state))
        self.controller = Controller(self.store, self.engine, self.messages)
        self.engine.start()

    @property
    def state(self) -> State:
        """Now."""
        return self.store.state

    @property
    def reading(self) -> Reading:
        """What is shown."""
        assert self.state.reading is not None
        return self.state.reading

    @property
    def shown(self) -> str:
        """The text that the model has read."""
        return self.reading.document.text

    def wish(self, *wanted: object) -> None:
        """One wish after the other, without waiting."""
        for each in wanted:
            self.controller.fulfil(each)

    def settle(self, *wanted: object) -> None:
        """Wishes, and then until nothing more is being worked on."""
        with self.qtbot.waitSignal(self.controller.settled, timeout=20_000):
            self.wish(*wanted)
        assert not self.state.stale
        assert not self.controller.is_busy


@pytest.fixture
def desk(qtbot: QtBot, scopes: type[WatchedScope], small_model: Path) -> Iterator[Desk]:
    """A small model is open on "To be"."""
    desk = Desk(qtbot, "To be")
    desk.settle(OpenModel(small_model))
    yield desk
    scopes.gate.set()
    desk.controller.close()


@pytest.fixture
def early(qtbot: QtBot, scopes: type[WatchedScope]) -> Iterator[Desk]:
    """No model is open yet."""
    desk = Desk(qtbot, "To be")
    yield desk
    scopes.gate.set()
    desk.controller.close()


# Opening


def test_a_model_is_opened_on_the_text_that_is_there(early: Desk, small_model: Path) -> None:
    """First "starting" with a notice, then a reading and the comparison with the full pass."""
    early.wish(OpenModel(small_model))
    assert (early.state.phase, early.state.notice) == ("starting", "Opening small …")
    early.settle()
    assert (early.state.phase, early.state.notice) == ("ready", "")
    assert early.shown == "To be"
    assert early.reading.info.name == "small"
    assert early.state.cache_check is not None
    assert early.state.cache_check.n_tokens == 5


def test_the_first_head_shown_is_a_telling_one(early: Desk, small_model: Path) -> None:
    """The one that copies most, where the text repeats itself."""
    early.wish(EditText("abcabcabc"))
    early.settle(OpenModel(small_model))
    scores = early.reading.roles.scores["induction"]
    selection = early.state.selection
    assert scores[selection.layer, selection.head] == scores.max()
    focus = early.reading.focus
    assert (focus.layer, focus.head) == (selection.layer, selection.head)


def test_what_is_wished_before_the_model_is_there_holds_when_it_is(
    early: Desk, small_model: Path
) -> None:
    """Text, mask, cache, sampling and position."""
    early.wish(OpenModel(small_model), EditText("abcd"), SetMask({"mask": "none"}))
    early.wish(SetCache(use=False), SetSampling(Sampling(seed=9)), SelectPosition(1))
    early.settle(Step())
    reading = early.reading
    assert reading.document.text[:4] == "abcd"
    assert len(reading.document) == 5
    assert reading.conditions.mask == "none"
    assert not reading.use_cache
    assert reading.sampling == Sampling(seed=9)
    assert reading.position == 1


def test_a_folder_without_a_model_gives_one_sentence(early: Desk, tmp_path: Path) -> None:
    """The window says so, keeps the text, and another model can be opened."""
    early.settle(OpenModel(tmp_path / "nothing"))
    assert early.state.phase == "failed"
    assert [message.level for message in early.told] == ["error"]
    sentence = early.told[0].sentence
    assert sentence.startswith(f"{tmp_path / 'nothing'} does not exist; open a folder")
    assert sentence.endswith(".")
    assert early.state.notice == sentence
    assert early.told[0].details == ""


def test_after_a_failed_start_everything_waits_for_a_model(
    early: Desk, tmp_path: Path, small_model: Path
) -> None:
    """Wishes are kept where they are settings or text, and do no harm where they are not."""
    early.settle(OpenModel(tmp_path))
    early.wish(Step(), StepBack(), Play("play"), GoTo(3), Choose(0, 1), SelectHead(1, 2))
    early.wish(EditText("abc"), SetMask({"mask": "window", "window": 2}))
    assert not early.controller.is_busy
    early.settle(OpenModel(small_model))
    assert early.shown == "abc"
    assert early.reading.conditions.window == 2
    assert len(early.told) == 1


def test_wishes_that_wait_for_a_model_that_does_not_come_are_forgotten(
    early: Desk, tmp_path: Path
) -> None:
    """Nothing is waited for in vain."""
    early.settle(OpenModel(tmp_path), EditText("abc"), Step())
    assert early.state.text == "abc"
    assert not early.controller.is_busy
    assert len(early.told) == 1


def test_a_model_that_cannot_be_opened_leaves_the_old_one_running(
    desk: Desk, tmp_path: Path
) -> None:
    """With a sentence, and with steps as before."""
    desk.settle(OpenModel(tmp_path))
    assert [message.level for message in desk.told] == ["error"]
    assert "holds no model; open a folder" in desk.told[0].sentence
    assert (desk.state.phase, desk.reading.info.name) == ("ready", "small")
    desk.settle(Step())
    assert len(desk.reading.document) == 6
    assert desk.state.notice == ""


@pytest.mark.parametrize(("n_rows", "n_told"), [(2 * N_TOKENS, 0), (2 * N_TOKENS + 1, 1)])
def test_a_vocabulary_that_may_be_another_models_is_opened_with_a_warning(
    desk: Desk, tmp_path: Path, n_rows: int, n_told: int
) -> None:
    """Once, by a name that cannot turn it round; vocabularies are hardly ever half empty."""
    path = tmp_path / "wide\u202e.gguf"
    rows = np.random.default_rng(0).normal(0, 0.3, (n_rows, 32)).astype(np.float32)
    weights = llama_weights() | {"token_embd.weight": rows}
    desk.settle(OpenModel(write_llama(path, weights=weights)))
    assert desk.reading.info.name == "wide\u202e"
    assert [message.level for message in desk.told] == ["warning"] * n_told
    for message in desk.told:
        assert message.sentence == (
            f"wide\ufffd has {n_rows:,} token ids, its tokenizer only {N_TOKENS:,} tokens: "
            "if they do not belong together, what it reads is not the text."
        )
    desk.settle(OpenModel(path))
    assert len(desk.told) == n_told


def test_a_tokenizer_that_is_lost_on_a_text_leaves_the_rest_going_on(
    desk: Desk, tmp_path: Path
) -> None:
    """With a sentence; what was read before is still there, and the next text is read."""
    golden = write_golden(tmp_path / "llama", "llama")
    assert len(golden)
    path = tmp_path / "llama" / "tokenizer.json"
    data = json.loads(path.read_text(encoding="utf-8"))
    lost = {
        "type": "Split",
        "pattern": {"Regex": "(a+)+$"},
        "behavior": "Isolated",
        "invert": False,
    }
    steps = [lost, {**data["pre_tokenizer"], "use_regex": False}]
    data["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": steps}
    path.write_text(json.dumps(data), encoding="utf-8")
    desk.settle(OpenModel(tmp_path / "llama"))
    assert desk.told == []
    desk.settle(EditText(f"{'a' * 60}!"))
    assert [message.level for message in desk.told] == ["error"]
    assert "cannot cut this text into tokens" in desk.told[0].sentence
    desk.settle(EditText("To be or"))
    assert desk.shown == "To be or"


def test_another_model_takes_over_text_mask_and_head(
    desk: Desk, make_model: Callable[..., Path]
) -> None:
    """What is pointed at stays within the new model's size."""
    desk.settle(SetMask({"mask": "window", "window": 3}), SelectHead(1, 3))
    desk.settle(OpenModel(make_model("narrow", n_layer=1, n_head=2, n_kv_head=2)))
    assert desk.shown == "To be"
    assert desk.reading.conditions.window == 3
    assert (desk.reading.focus.layer, desk.reading.focus.head) == (0, 1)


def test_while_another_model_is_loaded_wishes_are_kept_for_it(
    desk: Desk, make_model: Callable[..., Path], scopes: type[WatchedScope]
) -> None:
    """The old model's answer never comes after the new one's."""
    other = make_model("other", seed=3)
    scopes.gate.clear()
    scopes.begun.clear()
    desk.wish(OpenModel(other))
    assert (desk.state.phase, desk.state.notice) == ("loading", "Opening other …")
    assert desk.reading.info.name == "small"
    assert scopes.begun.wait(PATIENCE)
    desk.wish(SetMask({"mask": "none"}), EditText("abc"), SelectHead(0, 2))
    desk.states.clear()
    scopes.gate.set()
    desk.settle()
    names = [state.reading.info.name for state in desk.states if state.reading]
    assert names == sorted(names, key=["small", "other"].index)
    assert desk.reading.info.name == "other"
    assert desk.reading.conditions.mask == "none"
    assert desk.shown == "abc"
    assert desk.reading.focus.head == 2


def test_the_last_model_that_was_asked_for_is_the_one_opened(
    desk: Desk, make_model: Callable[..., Path]
) -> None:
    """However quickly one is chosen after the other."""
    desk.settle(OpenModel(make_model("first")), OpenModel(make_model("second")))
    assert desk.reading.info.name == "second"
    assert desk.told == []


# Typing


def test_typing_fast_ends_with_the_last_text(desk: Desk) -> None:
    """Whatever was given up on the way."""
    text = "To be, or not to be, that is the question"
    desk.settle(*(EditText(text[:end]) for end in range(6, len(text) + 1)))
    assert desk.shown == desk.state.text == text


def test_a_keystroke_makes_the_pass_before_it_void(desk: Desk, scopes: type[WatchedScope]) -> None:
    """While one is held up, of ten more only the last is run."""
    scopes.calls.clear()
    scopes.gate.clear()
    scopes.begun.clear()
    desk.wish(EditText("a"))
    assert scopes.begun.wait(PATIENCE)
    desk.wish(*(EditText("a" * count) for count in range(2, 12)))
    scopes.gate.set()
    desk.settle()
    assert desk.shown == "a" * 11
    assert [call for call in scopes.calls if call == "edit"] == ["edit", "edit"]


def test_a_long_text_is_shown_while_it_is_read(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """The window says how far reading has come, and what it shows is not called old."""
    n_parameters = desk.reading.info.n_parameters
    monkeypatch.setattr("engine.scope._PIECE", 4 * n_parameters)
    monkeypatch.setattr("engine.scope._LEAST_ROWS", 1)
    desk.states.clear()
    desk.settle(EditText("To be, or not"))
    shown = [(each.reading.n_tokens, each.notice) for each in desk.states if each.reading]
    told = [each for each in dict.fromkeys(shown) if "Reading" in each[1]]
    assert told == [(9, "Reading … 9 of 13 tokens")]
    assert {each.stale for each in desk.states if "Reading" in each.notice} == {False}
    assert (desk.shown, desk.reading.n_tokens) == ("To be, or not", 13)
    assert not desk.state.notice


def test_a_piece_of_a_text_that_was_typed_over_is_not_shown(
    desk: Desk, scopes: type[WatchedScope], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first piece of one text is told when the next text is typed already."""
    monkeypatch.setattr("engine.scope._PIECE", 4 * desk.reading.info.n_parameters)
    monkeypatch.setattr("engine.scope._LEAST_ROWS", 1)
    scopes.gate.clear()
    desk.wish(EditText("Who is there?"))
    first = desk.reading
    scopes.gate.set()
    desk.states.clear()
    desk.settle(EditText("To be, or not"))
    texts = {each.reading.document.text for each in desk.states if each.reading}
    assert texts <= {first.document.text, "To be, or not"}


def test_a_late_answer_never_overwrites_newer_typing(
    desk: Desk, scopes: type[WatchedScope]
) -> None:
    """A step was worked out, but its answer is heard only after the next keystroke."""
    desk.wish(Step())
    assert scopes.done.wait(PATIENCE)
    desk.states.clear()
    desk.settle(EditText("To be,"))
    assert {state.text for state in desk.states} == {"To be,"}
    assert desk.shown == "To be,"
    assert desk.reading.document.n_prompt == 6


def test_steps_while_an_edit_is_under_way_go_on_from_the_edited_text(desk: Desk) -> None:
    """In the order in which they were wished."""
    desk.settle(EditText("abc"), Step(), Step())
    assert desk.state.text == desk.shown
    assert desk.shown[:3] == "abc"
    assert (desk.reading.document.n_prompt, len(desk.reading.document)) == (3, 5)


def test_an_edit_after_steps_is_the_text(desk: Desk) -> None:
    """Steps that are still to come are given up."""
    desk.settle(*[Step()] * 5, EditText("abc"))
    assert desk.shown == desk.state.text == "abc"


def test_a_candidate_of_an_outdated_picture_is_not_chosen(desk: Desk) -> None:
    """A click on what followed an older text would cut the newer one."""
    desk.settle(EditText("To be, or"), Choose(2, 5))
    assert desk.shown == desk.state.text == "To be, or"


def test_any_text_is_taken(desk: Desk) -> None:
    """Empty, one space, surrogates, NUL, emoji, right-to-left, markup."""
    for text in ("", " ", "\n\n", "\ud800", "a\0b", "👩\u200d👩\u200d👧", "שלום", "<b>&amp;"):
        desk.settle(EditText(text))
        assert desk.shown == desk.state.text == text
    assert desk.told == []


def test_only_what_is_awaited_for_long_makes_the_picture_old(
    qtbot: QtBot, desk: Desk, scopes: type[WatchedScope]
) -> None:
    """A quick answer comes without a flicker; a slow one dims what it will replace."""
    desk.controller._stale_soon.setInterval(60_000)  # any answer comes sooner
    desk.states.clear()
    desk.settle(EditText("To be,"))
    assert not any(state.stale for state in desk.states)
    desk.controller._stale_soon.setInterval(10)
    scopes.gate.clear()
    desk.wish(EditText("To be, or"))
    qtbot.waitUntil(lambda: desk.state.stale)
    assert desk.shown == "To be,"
    scopes.gate.set()
    desk.settle()
    assert desk.shown == "To be, or"
    assert not desk.state.stale


# Steps


def test_every_press_of_a_key_counts_however_fast(desk: Desk) -> None:
    """Five steps on and five back, without waiting: back where it began, nothing forgotten."""
    desk.settle(*[Step()] * 5, *[StepBack()] * 5)
    assert (desk.reading.cursor, len(desk.reading.document)) == (5, 10)
    desk.settle(StepBack(), Step(), Step(), StepBack())
    assert desk.reading.cursor == 5


def test_the_slider_goes_to_its_last_place(desk: Desk) -> None:
    """What it passed on the way need not be shown."""
    desk.settle(*[Step()] * 4)
    desk.settle(GoTo(3), GoTo(8), GoTo(6))
    assert desk.reading.cursor == 6
    assert desk.state.text == desk.shown


def test_a_branch_puts_a_token_after_a_position(desk: Desk) -> None:
    """What followed is dropped, in the editor as well."""
    desk.settle(*[Step()] * 4)
    desk.settle(Choose(5, 0))
    assert desk.state.text == desk.shown
    assert desk.reading.document.token_ids[6] == 0
    assert len(desk.reading.document) == 7


def test_a_branch_counts_from_the_first_token_the_model_sees(desk: Desk) -> None:
    """Positions have an offset when tokens have fallen out."""
    desk.settle(EditText("abcdefgh" * 10))
    assert desk.reading.n_fallen == 16
    desk.settle(Choose(3, 0))
    assert desk.shown[:-1] == ("abcdefgh" * 10)[:20]
    assert len(desk.reading.document) == 21


def test_a_full_context_is_information_not_an_error(desk: Desk) -> None:
    """The status says the same sentence; going back and typing still work."""
    desk.settle(EditText("a" * 64))
    desk.settle(Step())
    assert [message.level for message in desk.told] == ["info"]
    assert desk.told[0].sentence.startswith("The context is full: this model sees at most 64")
    assert desk.state.notice == desk.told[0].sentence
    assert desk.state.phase == "ready"
    desk.settle(StepBack())
    assert (desk.reading.cursor, desk.state.notice) == (63, "")


def test_there_is_nothing_to_go_on_from_without_a_text(desk: Desk) -> None:
    """One sentence."""
    desk.settle(EditText(""))
    desk.settle(Step())
    assert [message.level for message in desk.told] == ["error"]
    assert desk.told[0].sentence == "There is no text to go on from; type something first."


def test_the_same_seed_gives_the_same_text_after_stepping_back(desk: Desk) -> None:
    """Also after another seed in between."""
    seeds = [SetSampling(Sampling(temperature=2.0, seed=seed)) for seed in (1, 2)]
    texts = []
    for seed in (seeds[0], seeds[1], seeds[0]):
        desk.settle(GoTo(5), seed, *[Step()] * 12)
        texts.append(desk.shown)
    assert texts[0] == texts[2] != texts[1]


# Playing


def test_playing_goes_on_until_it_is_stopped(qtbot: QtBot, desk: Desk) -> None:
    """Each token asks for the next; stopping settles."""
    desk.wish(Play("play"))
    assert desk.state.playing == "play"
    qtbot.waitUntil(lambda: len(desk.reading.document) >= 9, timeout=20_000)
    assert desk.state.text == desk.shown
    desk.settle(Play(""))
    assert desk.state.playing == ""
    assert desk.state.cache_check is not None


def test_playing_stops_where_the_context_is_full(qtbot: QtBot, desk: Desk) -> None:
    """With the sentence that says so, once."""
    desk.settle(EditText("a" * 60))
    desk.wish(Play("play"))
    qtbot.waitUntil(lambda: not desk.state.playing, timeout=20_000)
    assert len(desk.reading.document) == 64
    assert [message.level for message in desk.told] == ["info"]


def test_playing_to_the_end_of_the_sentence_stops_behind_its_mark(
    desk: Desk, scopes: type[WatchedScope]
) -> None:
    """A full stop, then nothing more; and the checks are made."""
    letters = "\n !,.?abc"
    scopes.script = iter([letters.index(letter) for letter in "ab.cc"])
    desk.settle(Play("sentence"))
    assert desk.shown == "To beab."
    assert desk.state.playing == ""
    assert desk.state.cache_check is not None


@pytest.mark.parametrize(
    "wish", [EditText("abc"), Step(), StepBack(), GoTo(2), Choose(3, 1), Play("")]
)
def test_whoever_does_something_else_stops_playing(desk: Desk, wish: object) -> None:
    """The text does not run away under their hands."""
    desk.settle(Play("play"), wish)
    assert desk.state.playing == ""


def test_playing_has_one_token_under_way_at_a_time(
    qtbot: QtBot, desk: Desk, scopes: type[WatchedScope]
) -> None:
    """Asking for the end of the sentence while playing does not make it twice as fast."""
    scopes.calls.clear()
    scopes.gate.clear()
    desk.wish(SetSpeed(0.1), Play("play"), Play("sentence"), Play("play"))
    scopes.gate.set()
    qtbot.waitUntil(lambda: len(desk.reading.document) == 6)
    look = (desk.reading.focus.layer + 1) % 2
    desk.wish(SelectHead(look, 0))  # answered behind whatever else was asked
    qtbot.waitUntil(lambda: desk.reading.focus.layer == look)
    assert scopes.calls.count("step") == 1


# Settings


def test_the_mask_is_read_anew_and_its_sizes_are_kept(desk: Desk) -> None:
    """Off and on again; the window remembers its number."""
    desk.settle(SetMask({"mask": "window", "window": 4}))
    assert (desk.reading.conditions.window, desk.reading.conditions.sinks) == (4, 0)
    desk.settle(SetMask({"mask": "none"}))
    assert desk.reading.reason == "mask off"
    assert desk.reading.focus.weights[0, 4] > 0
    desk.settle(SetMask({"mask": "window"}))
    assert desk.reading.conditions.window == 4


def test_sizes_of_a_window_that_rests_cost_no_pass(desk: Desk) -> None:
    """Under the causal mask they change nothing."""
    before = desk.reading
    desk.wish(SetMask({"window": 7}))
    assert desk.state.mask == MaskChoice(window=7)
    assert desk.reading is before
    assert not desk.controller.is_busy


@pytest.mark.parametrize("mask", ["causal", "window"])
def test_an_impossible_window_is_refused_in_one_sentence(desk: Desk, mask: str) -> None:
    """Whether it is in force or rests."""
    desk.settle(SetMask({"mask": mask, "window": 3}), SelectPosition(0))
    desk.wish(SetMask({"window": 0}))
    assert desk.state.mask.window == 3
    assert [message.level for message in desk.told] == ["warning"]
    assert desk.told[0].sentence.startswith("a window of 0 positions")


def test_the_cache_can_be_switched_off_and_on(desk: Desk) -> None:
    """Off, every step computes all rows."""
    desk.settle(SetCache(use=False), Step())
    assert desk.reading.stats[-1].n_computed == 6
    assert not desk.state.use_cache
    desk.settle(SetCache(use=True), Step())
    assert desk.reading.stats[-1].n_computed == 1


def test_display_changes_ask_the_engine_for_nothing(desk: Desk) -> None:
    """They are only drawn."""
    before = desk.reading
    desk.wish(SetDisplay({"scale": "log", "zoom": 1.5}))
    assert desk.state.display == Display(scale="log", zoom=1.5)
    assert desk.reading is before
    assert not desk.controller.is_busy


def test_pointing_at_a_key_or_a_cell_asks_for_nothing(desk: Desk) -> None:
    """The row that it lies in is on screen already."""
    desk.settle(SelectPosition(3))
    before = desk.reading
    desk.wish(SelectPosition(3, 1), wishes.PointAt((2, 1)))
    assert desk.reading is before
    assert not desk.controller.is_busy
    assert (desk.state.selection.key, desk.state.pointed) == (1, (2, 1))


def test_looking_around_repeats_no_comparison(desk: Desk, scopes: type[WatchedScope]) -> None:
    """The full pass is worth its time once for each text."""
    scopes.calls.clear()
    desk.settle(SelectHead(1, 1))
    desk.settle(SelectPosition(2))
    assert scopes.calls == []
    assert desk.state.cache_check is not None
    desk.settle(Step())
    assert scopes.calls == ["step", "check"]


def test_the_selected_head_is_the_engines_own_pattern(desk: Desk, small_model: Path) -> None:
    """What is shown after all detours is what a new scope computes."""
    desk.settle(SelectHead(1, 2), EditText("abcabc"), SetMask({"mask": "none"}), StepBack())
    plain = Scope(load(small_model))
    plain.set_conditions(desk.state.mask.conditions)
    plain.look(Look(1, 2))
    plain.edit("abcabc")
    np.testing.assert_allclose(
        desk.reading.focus.weights, plain.go_to(5).focus.weights, rtol=0, atol=1e-6
    )


# Heads off


def test_a_head_that_is_switched_off_is_off_from_the_first_position_on(
    desk: Desk, small_model: Path
) -> None:
    """As if the text had been read without it from the start; and so it is under a window."""
    heads = frozenset({(0, 1), (1, 3)})
    for mask in ({"mask": "causal"}, {"mask": "window", "window": 3}):
        desk.settle(SetHeadsOff({"heads": heads, "by": "mean"}), SetMask(mask))
        plain = Scope(load(small_model))
        plain.set_conditions(desk.state.conditions)
        expected = plain.edit("To be")
        assert desk.reading.conditions == expected.conditions
        assert desk.reading.conditions.heads_off == heads
        assert desk.reading.conditions.off_by == "mean"
        np.testing.assert_allclose(
            desk.reading.session.loss, expected.session.loss, rtol=0, atol=1e-5
        )
    desk.settle(SetHeadsOff({"heads": frozenset()}))
    assert desk.reading.conditions == desk.state.mask.conditions


def test_another_model_has_all_its_heads(
    desk: Desk, make_model: Callable[..., Path], small_model: Path, tmp_path: Path
) -> None:
    """One that cannot be opened changes nothing, and the same one again keeps them off."""
    heads = frozenset({(1, 2)})
    desk.settle(SetHeadsOff({"heads": heads, "by": "mean"}))
    desk.settle(OpenModel(tmp_path))
    assert desk.state.heads_off == HeadsOff(heads, "mean")
    assert desk.reading.conditions.heads_off == heads
    desk.settle(SetMask({"mask": "none"}))
    assert desk.reading.conditions.heads_off == heads
    desk.settle(SetMask({"mask": "causal"}), SetFormat({"number_format": "bfloat16"}))
    assert desk.reading.info.held.number_format == "bfloat16"
    assert desk.reading.conditions.heads_off == heads
    desk.settle(OpenModel(make_model("tall", n_layer=3)))
    assert desk.state.heads_off == HeadsOff(by="mean")
    assert desk.reading.conditions == Conditions()
    desk.settle(SetHeadsOff({"heads": frozenset({(2, 3)})}), OpenModel(small_model))
    assert desk.reading.conditions == Conditions()


def test_what_is_wished_while_a_model_fails_to_open_holds_with_the_heads_that_were_off(
    desk: Desk, tmp_path: Path
) -> None:
    """The mask is the new one, the heads are the old ones; heads cannot be wished meanwhile."""
    heads = frozenset({(1, 2)})
    desk.settle(SetHeadsOff({"heads": heads}))
    desk.wish(OpenModel(tmp_path), SetHeadsOff({"heads": frozenset({(0, 0)})}))
    desk.settle(SetMask({"mask": "window", "window": 2}))
    assert desk.state.heads_off == HeadsOff(heads)
    assert desk.reading.conditions == Conditions(mask="window", window=2, heads_off=heads)
    desk.wish(OpenModel(tmp_path), SetMask({"mask": "none"}))
    desk.settle(SetMask({"mask": "window"}))
    assert desk.reading.conditions == Conditions(mask="window", window=2, heads_off=heads)


def test_what_a_selection_asks_for_does_not_wait_until_its_reading_is_drawn(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The question goes to the engine with the look; its answer is about the reading of the latest.

    A selection that changes nothing of an answer asks nothing.
    """
    desk.settle(WantResidual(wanted=True))
    asked: list[str] = []
    submit = desk.engine.submit

    def noting(job: Job) -> int:
        asked.append(job.kind)
        return submit(job)

    monkeypatch.setattr(desk.engine, "submit", noting)
    desk.wish(SelectPosition(1))
    assert asked == ["look", "residual"]
    desk.settle(SelectPosition(3), SelectPosition(2))
    assert asked[:6] == ["look", "residual"] * 3
    assert asked.count("residual") == 3
    opened = desk.state.residual
    assert opened is not None
    assert opened.stream is not None
    assert opened.stream.position == desk.reading.position == 2
    asked.clear()
    desk.settle(SelectHead(1 - desk.state.selection.layer, 2))
    assert "residual" not in asked


def test_a_model_at_the_same_path_that_has_other_heads_has_them_all_on(
    desk: Desk, make_model: Callable[..., Path]
) -> None:
    """Whoever trains on may open the folder again."""
    folder, other = make_model("grows"), make_model("smaller", n_layer=1)
    desk.settle(OpenModel(folder))
    desk.settle(SetHeadsOff({"heads": frozenset({(1, 2)})}))
    for file in other.iterdir():
        shutil.copy(file, folder / file.name)
    desk.settle(OpenModel(folder))
    assert desk.reading.info.config.n_layer == 1
    assert (desk.state.heads_off, desk.reading.conditions) == (HeadsOff(), Conditions())
    desk.settle(SetHeadsOff({"heads": frozenset({(0, 2)})}))
    assert desk.reading.conditions.heads_off == {(0, 2)}


def test_what_all_heads_would_make_of_a_text_is_asked_only_while_somebody_looks(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And only where a head is off; it follows the text and the position."""
    asked: list[Reading] = []
    intact = Scope.intact

    def count(scope: Scope, reading: Reading, *more: Any) -> Any:
        asked.append(reading)
        return intact(scope, reading, *more)

    monkeypatch.setattr(Scope, "intact", count)
    desk.settle(SetHeadsOff({"heads": frozenset({(0, 1)})}))
    assert asked == []
    desk.settle(WantIntact(wanted=True))
    assert asked == [desk.reading]
    assert desk.state.intact is not None
    assert desk.state.intact.answers(desk.reading)
    desk.settle(SelectHead(0, 2))
    assert len(asked) == 1
    desk.settle(SelectPosition(2))
    assert desk.state.intact.answers(desk.reading)
    desk.settle(EditText("To be or"))
    assert desk.state.intact.answers(desk.reading)
    assert len(asked) == 3
    desk.settle(SetHeadsOff({"heads": frozenset()}))
    desk.settle(WantIntact(wanted=False), SetHeadsOff({"heads": frozenset({(0, 1)})}))
    assert len(asked) == 3


def test_every_head_is_measured_one_after_the_other(desk: Desk, small_model: Path) -> None:
    """Each as the engine would by itself, told as they come; the overview is shaded by them."""
    desk.states.clear()
    desk.settle(MeasureEffects())
    assert not desk.state.measuring
    assert desk.state.display.shade == "answer"
    opened = desk.state.effects
    assert opened is not None
    assert opened.answers(desk.reading)
    told = [state.effects.effects.n_measured for state in desk.states if state.effects]
    assert list(dict.fromkeys(told)) == list(range(9))
    plain = Scope(load(small_model))
    sweep = plain.effects(plain.edit("To be"), desk.state.followed_id or 0, "zero")
    assert sweep is not None
    effects = sweep.step()
    while not effects.is_whole:
        effects = sweep.step()
    assert np.array_equal(opened.effects.divergence, effects.divergence)
    assert np.array_equal(opened.effects.loss, effects.loss)
    assert desk.state.cache_check is not None  # which had to wait


class Steps:
    """Holds the sweep up before a step."""

    def __init__(self, patch: pytest.MonkeyPatch, at: int) -> None:
        self.begun, self.gate = threading.Event(), threading.Event()
        self.n_steps = 0
        self.bug: Exception | None = None
        real = EffectSweep.step

        def step(sweep: EffectSweep, cancelled: Callable[[], bool]) -> Any:
            self.n_steps += 1
            if self.n_steps == at:
                self.begun.set()
                assert self.gate.wait(PATIENCE)
                if self.bug is not None:
                    raise self.bug
            return real(sweep, cancelled)

        patch.setattr(EffectSweep, "step", step)


def test_looking_at_another_head_does_not_end_measuring(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes in between, before the head that is being measured is done."""
    steps = Steps(monkeypatch, 4)
    desk.wish(MeasureEffects())
    desk.qtbot.waitUntil(steps.begun.is_set, timeout=20_000)
    desk.wish(SelectHead(1, 3))
    steps.gate.set()
    desk.settle()
    shown = next(state for state in desk.states if state.reading and state.reading.focus.head == 3)
    assert shown.measuring  # the other heads may be done before anybody looks
    assert desk.state.effects is not None
    assert desk.state.effects.effects.is_whole
    assert steps.n_steps == 10  # the one that was given up, once more


def test_another_position_leaves_what_is_measured_true_of_the_old_one(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The losses are those of the text wherever one looks."""
    steps = Steps(monkeypatch, 4)
    desk.wish(MeasureEffects())
    desk.qtbot.waitUntil(steps.begun.is_set, timeout=20_000)
    desk.wish(SelectPosition(1))
    steps.gate.set()
    desk.settle()
    opened = desk.state.effects
    assert opened is not None
    assert opened.effects.is_whole
    assert opened.effects.position == 4
    assert not opened.answers(desk.reading, "answer")
    assert opened.answers(desk.reading, "loss")
    desk.settle(SelectPosition(4))
    assert opened.answers(desk.reading, "answer")


@pytest.mark.parametrize(
    "wish",
    [EditText("To bed"), SetHeadsOff({"heads": frozenset({(0, 0)})}), SetMask({"mask": "none"})],
)
def test_whatever_changes_the_text_or_how_it_is_read_ends_measuring(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, wish: object
) -> None:
    """What was measured is kept, and known not to be true of what is shown."""
    steps = Steps(monkeypatch, 4)
    desk.wish(MeasureEffects())
    desk.qtbot.waitUntil(steps.begun.is_set, timeout=20_000)
    desk.wish(wish)
    steps.gate.set()
    desk.settle()
    assert not desk.state.measuring
    opened = desk.state.effects
    assert opened is not None
    assert opened.effects.n_measured == 2
    assert not opened.answers(desk.reading, "loss")
    assert steps.n_steps == 4


def test_a_model_that_is_opened_ends_measuring(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, make_model: Callable[..., Path]
) -> None:
    steps = Steps(monkeypatch, 4)
    desk.wish(MeasureEffects())
    desk.qtbot.waitUntil(steps.begun.is_set, timeout=20_000)
    desk.wish(OpenModel(make_model("other")), MeasureEffects())
    steps.gate.set()
    desk.settle()
    assert desk.reading.info.name == "other"
    assert not desk.state.measuring
    assert steps.n_steps == 4


def test_measuring_that_is_wished_while_typing_is_of_what_was_typed(desk: Desk) -> None:
    desk.settle(EditText("abc"), MeasureEffects())
    assert desk.state.effects is not None
    assert desk.state.effects.effects.is_whole
    assert desk.state.effects.answers(desk.reading)
    assert desk.shown == "abc"


def test_a_bug_while_measuring_ends_it(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told once."""
    steps = Steps(monkeypatch, 4)
    steps.bug = ZeroDivisionError("oops")
    steps.gate.set()
    desk.settle(MeasureEffects())
    assert [message.sentence for message in desk.told] == ["This is a bug: ZeroDivisionError: oops"]
    assert not desk.state.measuring


def test_an_empty_text_has_nothing_to_measure(desk: Desk) -> None:
    desk.settle(EditText(""), MeasureEffects())
    assert not desk.state.measuring
    assert desk.state.effects is None


# What goes wrong, and the end


def test_a_bug_is_shown_with_its_traceback_and_the_rest_goes_on(
    desk: Desk, scopes: type[WatchedScope]
) -> None:
    """The old picture stays."""
    scopes.bug = ZeroDivisionError("oops")
    desk.settle(Step())
    message = desk.told[0]
    assert (message.level, message.sentence) == (
        "error",
        "This is a bug: ZeroDivisionError: oops",
    )
    assert "raise self.bug\nZeroDivisionError: oops" in message.details.replace("    ", "")
    assert desk.shown == "To be"
    scopes.bug = None
    desk.settle(Step())
    assert len(desk.reading.document) == 6


def test_a_bug_while_opening_is_the_end_of_the_start(
    early: Desk, scopes: type[WatchedScope], small_model: Path
) -> None:
    """Nobody waits for ever."""
    scopes.bug = RuntimeError("broken")
    early.settle(OpenModel(small_model))
    assert early.state.phase == "failed"
    assert early.told[0].sentence == "This is a bug: RuntimeError: broken"


def test_a_bug_in_the_comparison_is_told_once(desk: Desk, scopes: type[WatchedScope]) -> None:
    """It is not tried again and again."""
    desk.wish(Step())
    assert scopes.done.wait(PATIENCE)
    scopes.bug = ValueError("no")
    desk.settle()
    assert len(desk.told) == 1
    assert desk.state.cache_check is None


def test_an_unknown_wish_is_a_mistake_of_ours(desk: Desk) -> None:
    """It is named."""
    with pytest.raises(TypeError, match="'x' is no wish"):
        desk.controller.fulfil("x")


@pytest.mark.parametrize("wish", [Step(), EditText("abcdef"), Play("play")])
def test_closing_waits_for_what_runs_and_shows_nothing_more(
    qtbot: QtBot, desk: Desk, scopes: type[WatchedScope], wish: object
) -> None:
    """The thread has ended when `close` returns."""
    scopes.gate.clear()
    scopes.begun.clear()
    desk.wish(wish)
    assert scopes.begun.wait(PATIENCE)
    threading.Timer(0.05, scopes.gate.set).start()
    desk.controller.close()
    assert desk.engine.isFinished()
    desk.states.clear()
    with qtbot.waitSignal(desk.engine.dropped):
        pass
    assert desk.states == []


def test_closing_while_a_model_is_loaded_waits_for_it(
    early: Desk, scopes: type[WatchedScope], small_model: Path
) -> None:
    """An import or a file cannot be left half-way."""
    scopes.gate.clear()
    early.wish(OpenModel(small_model))
    assert scopes.begun.wait(PATIENCE)
    threading.Timer(0.05, scopes.gate.set).start()
    early.controller.close()
    assert early.engine.isFinished()
    assert early.state.reading is None
