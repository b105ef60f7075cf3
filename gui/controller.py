"""Fulfils wishes: by a change of the store, or by a job for the engine and then a change."""

import traceback
from collections.abc import Callable
from dataclasses import replace
from functools import singledispatchmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from PySide6.QtCore import QObject, Qt, QTimer, Signal

from engine.answers.ablation import Effects
from engine.cancelling import Cancelled, give_up_if
from engine.conditions import Conditions
from engine.errors import CancelledError, ConfigError, ContextFullError, EngineError
from engine.reading import CacheCheck, Look, Reading
from gui import wishes
from gui.messages import Messages
from gui.opening import Opening, doubt_about_vocabulary, open_model, told_of_format
from gui.questions import asides, comparing, costing, experimenting, windowing
from gui.questions.asking import IDLE, Asking
from gui.questions.costing import Costing
from gui.questions.measuring import Measuring
from gui.state import HeadsOff, Selection, Store
from gui.words.names import plain
from gui.worker import EngineThread, Job

if TYPE_CHECKING:
    from engine.scope import Scope

# Jobs that go on from wherever the text stands; those before them must be done first.
_RELATIVE = frozenset({"step", "back"})
# Questions on what is shown: anything that changes it makes them void.
_CHECK = (
    frozenset({"check", "effects", comparing.KIND, windowing.KIND})
    | asides.KINDS
    | experimenting.KINDS
)
_EDIT = _CHECK | {"edit", "step", "back", "go"}
_SETTLE_MS = 250  # how long nothing must happen before the full pass is worth its time
_STALE_MS = 150  # after which what is shown is said to be old
_SENTENCE_ENDS = (b".", b"!", b"?")

_Answer = TypeVar("_Answer")


def _how_far(reading: Reading) -> str:
    n_all = len(reading.document) - reading.n_fallen
    return f"Reading … {reading.n_tokens:,} of {n_all:,} tokens"


class Controller(QObject):
    """Owns the engine's thread and the order in which things are asked of it."""

    _opening = Signal(str, float)  # from the engine's thread: a model's name, how much is read
    _part = Signal(object)  # from there too: the Reading of the first part of a long text
    _part_opened = Signal(object, object)  # the same of a model that is opened: which, a Reading
    settled = Signal()  # an answer is shown and nothing more is being worked on

    def __init__(self, store: Store, engine: EngineThread, messages: Messages) -> None:
        super().__init__()
        self._store = store
        self._engine = engine
        self._messages = messages
        self._scope: Scope | None = None  # set and used on the engine's thread alone
        self._tickets: dict[int, tuple[str, Callable[[Any], None]]] = {}  # kind, what shows it
        self._is_closed = False
        self._measuring = Measuring(store)
        self._asked_conditions: Conditions | None = store.state.conditions
        self._asked_formats = store.state.formats
        self._opened: Opening | None = None  # the model that was asked for last
        asking = Asking(self._ask_aside, self._awaits, self._awaits_more_than, self._settle)
        self._asides = asides.Asides(store, asking, _CHECK)
        self._comparing = comparing.Comparing(store, messages, asking)
        self._experimenting = experimenting.Experimenting(store, asking)
        self._windowing = windowing.Windowing(store, messages, asking)
        self._costing = Costing(store, engine, self._on_scope)
        self._opening.connect(self._show_opening)
        self._part.connect(self._show_part)
        self._part_opened.connect(self._show_part_opened)
        engine.answered.connect(self._on_answer)
        engine.failed.connect(self._on_failure)
        engine.crashed.connect(self._on_crash)
        # Late, so that what replaced a job is known before the job is forgotten.
        engine.dropped.connect(self._on_drop, Qt.ConnectionType.QueuedConnection)
        self._next_step = QTimer(self, singleShot=True)
        self._next_step.timeout.connect(self._play_on)
        # Most answers come sooner; dimming the window for each of them would only make it flicker.
        self._stale_soon = QTimer(self, singleShot=True, interval=_STALE_MS)
        self._stale_soon.timeout.connect(self._grow_stale)
        self._check_soon = QTimer(self, singleShot=True, interval=_SETTLE_MS)
        self._check_soon.timeout.connect(self._check_cache)

    # Wishes

    @singledispatchmethod
    def fulfil(self, wish: object) -> None:
        """Do what a wish of `gui.wishes` asks for, now or as soon as the engine can.

        Raises:
            TypeError: there is no such wish.
        """
        raise TypeError(f"{wish!r} is no wish that the controller knows.")

    @fulfil.register
    def _(self, wish: wishes.OpenModel) -> None:
        self._open(wish.path)

    @fulfil.register
    def _(self, _wish: wishes.StopOpening) -> None:
        self._engine.give_up("open")

    @fulfil.register
    def _(self, wish: wishes.EditText) -> None:
        self._stop_playing()
        self._store.update(text=wish.text)
        self._ask("edit", lambda scope, void: scope.edit(wish.text, void, self._part.emit), _EDIT)

    @fulfil.register
    def _(self, wish: wishes.SelectHead) -> None:
        selection = replace(self._store.state.selection, layer=wish.layer, head=wish.head)
        self._point_at(selection)

    @fulfil.register
    def _(self, wish: wishes.SelectPosition) -> None:
        selection = replace(self._store.state.selection, query=wish.query, key=wish.key)
        self._point_at(selection)

    def _point_at(self, selection: Selection) -> None:
        before = self._store.state.selection
        self._store.update(selection=selection)
        if replace(before, key=None) == replace(selection, key=None):
            self._asides.open()
            return
        look, coming = Look(selection.layer, selection.head, selection.query), asides.Coming()

        def work(scope: "Scope", _void: Cancelled) -> Reading:
            coming.reading = scope.look(look)
            return coming.reading

        self._ask("look", work, _CHECK | {"look"})
        names = ("layer", "head", "query")
        moved = {name for name in names if getattr(before, name) != getattr(selection, name)}
        self._asides.open_behind(coming, frozenset(moved))

    @fulfil.register
    def _(self, wish: wishes.PointAt) -> None:
        self._store.update(pointed=wish.cell)

    @fulfil.register
    def _(self, wish: wishes.Want) -> None:
        self._asides.want(wish)

    @fulfil.register
    def _(self, wish: wishes.WantComparison) -> None:
        self._comparing.want(wish)

    @fulfil.register
    def _(self, wish: wishes.Compare) -> None:
        self._comparing.change(wish.changes)

    @fulfil.register
    def _(self, wish: wishes.SetHeadsOff) -> None:
        # A head of the model that is open is none of the one that is awaited.
        if self._store.state.reading is not None and not self._is_opening:
            self._store.update(heads_off=replace(self._store.state.heads_off, **wish.changes))
            self._ask_conditions()

    @fulfil.register
    def _(self, _wish: wishes.MeasureEffects) -> None:
        if self._store.state.reading is not None and not self._is_opening:
            self._measuring.begin()
            self._measure_on()

    @fulfil.register
    def _(self, _wish: wishes.StopMeasuring) -> None:
        self._measuring.stop()
        self._engine.give_up("effects")

    @fulfil.register
    def _(self, wish: wishes.WantLeak) -> None:
        self._experimenting.want(wish)

    @fulfil.register
    def _(self, wish: wishes.WantSchemes) -> None:
        self._experimenting.want(wish)

    @fulfil.register
    def _(self, wish: wishes.ChangeExperiment) -> None:
        self._experimenting.change(wish.changes)

    @fulfil.register
    def _(self, wish: wishes.WantWindows) -> None:
        self._windowing.want(wish)

    @fulfil.register
    def _(self, wish: wishes.ChooseWindows) -> None:
        self._windowing.choose(wish.changes)

    @fulfil.register
    def _(self, wish: wishes.Follow) -> None:
        self._store.update(followed=wish.token)
        self._asides.open()

    @fulfil.register
    def _(self, _wish: wishes.Step) -> None:
        self._stop_playing()
        self._step()

    @fulfil.register
    def _(self, wish: wishes.GoTo) -> None:
        self._stop_playing()
        self._ask("go", lambda scope, _void: scope.go_to(wish.cursor), _CHECK | {"go"})

    @fulfil.register
    def _(self, _wish: wishes.StepBack) -> None:
        self._stop_playing()
        self._ask("back", lambda scope, _void: scope.back(), _CHECK)

    @fulfil.register
    def _(self, wish: wishes.Choose) -> None:
        self._stop_playing()
        state = self._store.state
        reading = state.reading
        # A click on the candidates of another text or model than the one that is awaited.
        if reading is None or reading.document.text != state.text or self._is_opening:
            return
        cursor = wish.position + 1 + reading.n_fallen
        self._ask("step", lambda scope, void: scope.choose(cursor, wish.token_id, void), _CHECK)

    @fulfil.register
    def _(self, wish: wishes.Play) -> None:
        state = self._store.state
        if not wish.mode:
            self._stop_playing()
        elif state.reading is not None:
            self._store.update(playing=wish.mode)
            if not state.playing:
                self._step()

    @fulfil.register
    def _(self, wish: wishes.SetSpeed) -> None:
        self._store.update(steps_per_second=wish.steps_per_second)

    @fulfil.register
    def _(self, wish: wishes.SetSampling) -> None:
        sampling = wish.sampling
        self._store.update(sampling=sampling)
        replaced = _CHECK | {"sampling"}
        self._ask("sampling", lambda scope, _void: scope.set_sampling(sampling), replaced)

    @fulfil.register
    def _(self, wish: wishes.SetMask) -> None:
        try:
            mask = replace(self._store.state.mask, **wish.changes)
            for each in (mask, replace(mask, mask="window")):  # its sizes, even where they rest
                _ = each.conditions
        except ConfigError as error:
            self._messages.warning(str(error))
            return
        self._store.update(mask=mask)
        self._ask_conditions()

    def _ask_conditions(self) -> None:
        """Run the text under the conditions that are chosen, unless that is under way."""
        conditions = self._store.state.conditions
        if conditions != self._asked_conditions:
            self._asked_conditions = conditions
            self._ask(
                "conditions",
                lambda scope, void: scope.set_conditions(conditions, void, self._part.emit),
                _CHECK | {"conditions"},
            )

    @fulfil.register
    def _(self, wish: wishes.SetCache) -> None:
        self._store.update(use_cache=wish.use)
        self._ask(
            "cache",
            lambda scope, void: scope.set_cache(use=wish.use, cancelled=void),
            _CHECK | {"cache"},
        )

    @fulfil.register
    def _(self, wish: wishes.SetPrefix) -> None:
        self._store.update(use_prefix=wish.use)
        self._ask(
            "prefix",
            lambda scope, void: scope.set_prefix(use=wish.use, cancelled=void),
            _CHECK | {"prefix"},
        )

    @fulfil.register
    def _(self, wish: wishes.SetFormat) -> None:
        formats = replace(self._asked_formats, **wish.changes)
        reading = self._store.state.reading
        if formats == self._asked_formats:
            return
        self._asked_formats = formats
        if self._is_opening and self._opened is not None:
            self._open(self._opened.path)
        elif reading is not None:
            self._open(Path(reading.info.path))

    @fulfil.register
    def _(self, wish: wishes.MeasureCost) -> None:
        self._costing.begin(wish.what)

    @fulfil.register
    def _(self, _wish: wishes.StopMeasuringCost) -> None:
        self._costing.stop()

    @fulfil.register
    def _(self, wish: wishes.SetCosts) -> None:
        self._costing.change(wish.changes)

    @fulfil.register
    def _(self, wish: wishes.SetDisplay) -> None:
        self._store.update(display=replace(self._store.state.display, **wish.changes))

    # Playing

    def _step(self) -> None:
        self._ask("step", lambda scope, void: scope.step(void), _CHECK)

    def _play_on(self) -> None:
        if self._store.state.playing:
            self._step()

    def _stop_playing(self) -> None:
        if self._store.state.playing:
            self._next_step.stop()
            self._store.update(playing="")
            self._settle()

    def _continue_or_stop(self, reading: Reading) -> None:
        playing = self._store.state.playing
        ended = reading.document.tokens[reading.cursor - 1 : reading.cursor]
        at_sentence_end = bool(ended) and ended[0].strip().endswith(_SENTENCE_ENDS)
        if playing == "sentence" and at_sentence_end:
            self._stop_playing()
        elif playing:
            self._next_step.start(round(1000 / self._store.state.steps_per_second))

    # The engine

    def _open(self, path: Path) -> None:
        self._stop_playing()
        self._take_back_part()
        phase = "loading" if self._store.state.reading else "starting"
        self._store.update(phase=phase, notice=f"Opening {plain(path.name)} …")
        self._measuring.stop()
        self._keep_heads_of(path)
        state = self._store.state
        self._asked_conditions = state.conditions
        self._opened = opening = Opening(path, self._asked_formats, state)

        def work(void: Cancelled) -> Reading:
            told = self._opening.emit, self._part_opened.emit
            scope, reading = open_model(opening, lambda: self._store.state.text, void, *told)
            give_up_if(void)  # from here on it cannot be taken back
            before, self._scope = self._scope, scope  # what was asked meanwhile is asked of this
            if before is not None:
                before.close()
            scope.pack_meanwhile()
            return reading

        job = Job("open", work, _CHECK | {"open", costing.KIND}, is_final=True)
        self._submit(job, lambda reading: self._show_opened(opening, reading))

    def _keep_heads_of(self, path: Path) -> None:
        """Heads that are off stay so if the same model is opened once more; another has others."""
        reading = self._store.state.reading
        if reading is not None and Path(reading.info.path) != path:
            self._store.update(heads_off=HeadsOff(by=self._store.state.heads_off.by))

    def _keep_model(self) -> None:
        """No other model came: its heads are off as before, under the mask that is chosen now."""
        self._asked_formats = self._store.state.formats
        opening = self._opened
        self._take_back_part()
        state = self._store.state
        if state.reading is None or self._is_closed:
            return
        conditions = state.reading.conditions
        self._store.update(heads_off=replace(state.heads_off, heads=conditions.heads_off))
        is_as_it_was = opening is not None and self._asked_conditions == opening.before.conditions
        is_as_it_was = is_as_it_was and not self._awaits_kind("conditions")
        # Whatever was asked meanwhile was asked without these heads.
        self._asked_conditions = conditions if is_as_it_was else None
        self._ask_conditions()

    def _show_opening(self, name: str, share: float) -> None:
        if self._is_opening:
            self._store.update(notice=f"Opening {plain(name)} … {share:.0%} (Esc stops)")

    @property
    def _is_opening(self) -> bool:
        return self._awaits_kind("open")

    def _awaits_kind(self, wanted: str) -> bool:
        return any(kind == wanted for kind, _show in self._tickets.values())

    def _show_part_opened(self, opening: Opening, reading: Reading) -> None:
        """So much of the text has been read by a model that is being opened."""
        if self._is_opening and opening is self._opened and self._is_wanted(reading):
            notice = f"{_how_far(reading)} (Esc stops)"
            seen = self._first_seen(opening, reading)
            shown = {"reading": reading, "cache_check": None, **seen}
            self._store.update(stale=False, notice=notice, **shown)

    def _first_seen(self, opening: Opening, reading: Reading) -> dict[str, Any]:
        """What else changes when a model is seen for the first time, by its name in the state."""
        state, changes = self._store.state, dict[str, Any]()
        if not opening.is_shown and isinstance(state.followed, int):
            changes["followed"] = "next"  # an id means another token in another model
        if not opening.is_shown and opening.is_first:
            focus = reading.focus
            changes["selection"] = replace(state.selection, layer=focus.layer, head=focus.head)
        opening.is_shown = True
        return changes

    def _show_opened(self, opening: Opening, reading: Reading) -> None:
        before = opening.before.reading
        told = told_of_format(before, reading)
        formats, device = opening.formats, reading.info.held.device
        if device != formats.device:
            told = f"There is no {formats.device!r} device here; the processor computes."
            formats = replace(formats, device=device)
        heads = reading.conditions.heads_off
        heads_off = replace(self._store.state.heads_off, heads=heads)
        if heads_off != self._store.state.heads_off:
            self._asked_conditions = None  # the model at this path has other heads now
        self._store.update(formats=formats, heads_off=heads_off)
        self._show(reading, **self._first_seen(opening, reading))
        newer = self._opened
        if newer is opening:
            self._opened, self._asked_formats = None, formats
        elif newer is not None:
            newer.before = self._store.state  # what stays if that one does not come
        if opening.is_first and self._awaits_kind("look"):
            self._point_at(self._store.state.selection)  # they know nothing of the chosen head
        if told:
            self._messages.info(told)
        doubt = doubt_about_vocabulary(reading)
        if doubt and (before is None or before.info.path != reading.info.path):
            self._messages.warning(doubt)

    def _take_back_part(self) -> None:
        """The model that was asked for last will not come: show again what was there before."""
        opening, self._opened = self._opened, None
        if opening is not None and opening.is_shown:
            before = opening.before
            shown = {"reading": before.reading, "cache_check": before.cache_check}
            self._store.update(followed=before.followed, **shown)

    def _ask(
        self,
        kind: str,
        work: Callable[["Scope", Cancelled], Reading],
        replaces: frozenset[str] = frozenset(),
    ) -> None:
        if self._store.state.reading is None and not self._is_opening:
            return
        self._check_soon.stop()
        show = self._show_step if kind == "step" else self._show
        self._submit(Job(kind, self._on_scope(work), replaces, kind in _RELATIVE), show)
        if not self._stale_soon.isActive():
            self._stale_soon.start()

    def _grow_stale(self) -> None:
        self._store.update(stale=self.is_busy)

    @property
    def is_busy(self) -> bool:
        """Whether an answer is awaited that will change what is shown."""
        return self._awaits_more_than(_CHECK)

    @property
    def _is_still_stale(self) -> bool:
        return self._store.state.stale and self.is_busy

    def _on_scope(self, work: Callable[["Scope", Cancelled], _Answer]) -> Callable[..., _Answer]:
        """Work for the engine's thread, on the scope that is there by then."""

        def work_on_scope(void: Cancelled) -> _Answer:
            if self._scope is None:
                raise CancelledError("There is no model to ask.")
            return work(self._scope, void)

        return work_on_scope

    def _submit(self, job: Job, show: Callable[[Any], None]) -> int:
        number = self._engine.submit(job)
        self._tickets[number] = job.kind, show
        return number

    def _show_step(self, reading: Reading) -> None:
        # An edit makes earlier steps void, so the text of a step is never older than the editor's.
        self._show(reading, text=reading.document.text)
        self._continue_or_stop(reading)

    def _show_part(self, reading: Reading) -> None:
        """So much of the text that is awaited has been read."""
        if self.is_busy and not self._is_opening and self._is_wanted(reading):
            notice = _how_far(reading)
            self._store.update(reading=reading, stale=False, cache_check=None, notice=notice)

    def _is_wanted(self, reading: Reading) -> bool:
        """Whether a reading is of the text and the conditions that are wished for now."""
        state = self._store.state
        return reading.document.text == state.text and reading.conditions == state.conditions

    def _show(self, reading: Reading, **more: Any) -> None:  # noqa: ANN401 - the fields of State
        """An answer has come: it is what the window shows now."""
        check = self._store.state.cache_check
        if reading.reason != "looked" or (check and check.n_tokens != reading.n_tokens):
            check = None
        if not self._is_opening:
            more = {"phase": "ready", "notice": "", **more}
        self._store.update(reading=reading, stale=self._is_still_stale, cache_check=check, **more)
        self._settle()

    def _settle(self) -> None:
        """See to what comes when nothing else is to be done."""
        if not self._is_still_stale:
            self._store.update(stale=False)
        self._asides.open()
        self._comparing.open()
        self._experimenting.open()
        self._windowing.open()
        self._measure_on()
        state = self._store.state
        if self._tickets or state.playing:
            return
        if state.reading is None or state.cache_check is not None:
            self.settled.emit()
        else:
            self._check_soon.start()

    def _awaits(self, number: int) -> bool:
        """Whether the answer to that job may still come."""
        return number in self._tickets

    def _awaits_more_than(self, kinds: frozenset[str]) -> bool:
        return any(kind not in kinds for kind, _show in self._tickets.values())

    def _ask_aside(
        self,
        kind: str,
        work: Callable[["Scope", Cancelled], _Answer],
        show: Callable[[Any], None],
        replaces: frozenset[str] = IDLE,
    ) -> int:
        """Ask what changes nothing that is shown, before the cached pass is compared.

        Returns the job's number, for `_awaits`.
        """
        self._check_soon.stop()
        return self._submit(Job(kind, self._on_scope(work), replaces), show)

    def _measure_on(self) -> None:
        """Ask for the effect of one more head, if that is wanted and nothing else is."""
        if self._awaits_more_than(frozenset({"check"})) or self._store.state.playing:
            return
        work = self._measuring.next_work()
        if work is not None:
            self._ask_aside("effects", work, self._show_effects)

    def _show_effects(self, effects: Effects | None) -> None:
        self._measuring.take(effects)
        self._settle()

    def _check_cache(self) -> None:
        if not self._tickets:
            work = self._on_scope(lambda scope, void: scope.check_cache(void))
            self._submit(Job("check", work), self._show_check)

    def _show_check(self, check: CacheCheck | None) -> None:
        self._store.update(cache_check=check)
        if not self._tickets:
            self.settled.emit()

    def _on_answer(self, number: int, answer: object) -> None:
        if number in self._tickets and not self._is_closed:  # else it is what is being measured
            _kind, show = self._tickets.pop(number)
            show(answer)

    def _on_drop(self, number: int) -> None:
        if number not in self._tickets:
            return
        kind, _show = self._tickets.pop(number)
        if self._is_closed:
            return
        if kind == "open" and not self._is_opening:  # nothing newer took its place
            self._keep_model()
            is_open = self._store.state.reading is not None
            notice = "" if is_open else "No model is open; choose one in the File menu."
            self._store.update(phase="ready" if is_open else "failed", notice=notice)
            self._messages.info("Opening the model was stopped.")
        if not self._tickets:
            self._store.update(stale=False)
            self._settle()

    def _on_failure(self, number: int, error: EngineError) -> None:
        if number not in self._tickets:
            return
        self._tell_of_end(number, str(error))
        if isinstance(error, ContextFullError):
            self._messages.info(str(error))
        else:
            self._messages.error(str(error))

    def _on_crash(self, number: int, error: Exception) -> None:
        if self._is_closed:
            return
        if number in self._tickets:
            self._tell_of_end(number, "The program met a bug; see the message.")
        details = "".join(traceback.format_exception(error))
        self._messages.error(f"This is a bug: {type(error).__name__}: {error}", details)

    def _tell_of_end(self, number: int, notice: str) -> None:
        """A job ended without an answer; what was shown before stays."""
        kind, _show = self._tickets.pop(number)
        if kind == "effects":
            self._measuring.stop()
        if kind == "open" and not self._is_opening:
            self._keep_model()
            if self._store.state.reading is not None:
                notice = ""  # the message says it, and the model that is open goes on
        phase = "failed" if self._store.state.reading is None else "ready"
        if self._is_opening:
            phase = self._store.state.phase
        self._store.update(phase=phase, notice=notice, stale=self._is_still_stale)
        self._stop_playing()
        if kind not in _CHECK:
            self._settle()
        elif not self._tickets:
            self.settled.emit()

    def close(self) -> None:
        """Give up what runs and end the engine's thread; nothing is shown any more."""
        self._is_closed = True
        self._next_step.stop()
        self._stale_soon.stop()
        self._check_soon.stop()
        self._costing.close()
        self._engine.close()
        if self._scope is not None:
            self._scope.close()
