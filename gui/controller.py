"""Fulfils wishes: by a change of the store, or by a job for the engine and then a change."""

import os
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from functools import singledispatchmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from PySide6.QtCore import QObject, Qt, QTimer, Signal

from engine.answers.ablation import Effects
from engine.cancelling import Cancelled
from engine.conditions import Conditions
from engine.errors import CancelledError, ConfigError, ContextFullError, EngineError
from engine.reading import CacheCheck, Look, Reading
from engine.readouts import ROLE_THRESHOLD, Role
from engine.sizes import bytes_said
from gui import wishes
from gui.messages import Messages
from gui.questions import asides, comparing, costing, experimenting, windowing
from gui.questions.asking import IDLE, Asking
from gui.questions.costing import Costing
from gui.questions.measuring import Measuring
from gui.state import HeadsOff, Selection, Store
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
_NONE: frozenset[tuple[int, int]] = frozenset()
_SETTLE_MS = 250  # how long nothing must happen before the full pass is worth its time
_PROGRESS_SECONDS = 0.2
_STALE_MS = 150  # after which what is shown is said to be old
_SENTENCE_ENDS = (b".", b"!", b"?")

_Answer = TypeVar("_Answer")


def _telling_head(reading: Reading) -> dict[str, int]:
    """The head to open with: the best copier, if any copies, else the one that looks back most."""
    wanted: tuple[tuple[Role, float], ...] = (("induction", ROLE_THRESHOLD), ("previous token", 0))
    for role, least in wanted:
        scores = reading.roles.scores[role]  # [L, H]
        if scores.size and scores.max() >= least:  # NaN is not
            layer, head = np.unravel_index(int(scores.argmax()), scores.shape)
            return {"layer": int(layer), "head": int(head)}
    return {}


def _told_of_format(before: Reading | None, now: Reading) -> str:
    """What to say when a model was opened again in another format or place, or for lack of room."""
    held = now.info.held
    if held.is_for_room and (before is None or before.info != now.info):
        why = held.reason.removeprefix("automatic: ")
        return f"{now.info.name} was opened in {held.number_format}, {why}."
    if before is None or before.info.path != now.info.path or before.info.held == now.info.held:
        return ""
    n_bytes = before.info.held.n_bytes
    return (
        f"{now.info.name} was opened again in {held.title} on {held.device!r}: "
        f"{bytes_said(held.n_bytes)} of weights, {bytes_said(n_bytes)} before. "
        "The text was run again."
    )


def _doubt_about_vocabulary(reading: Reading) -> str:
    """What to say of a vocabulary that may be another model's; "" if nothing.

    Embeddings are rounded up, by a few hundred rows; one that is more than half empty is rare, and
    so is a text that another model's tokenizer cuts right.
    """
    info = reading.info
    n_tokens, n_rows = len(info.vocabulary), info.config.vocab_size
    if not n_tokens or 2 * n_tokens >= n_rows:
        return ""
    return (
        f"{info.name} has {n_rows:,} token ids, its tokenizer only {n_tokens:,} tokens: if they do "
        "not belong together, what it reads is not the text."
    )


class _Hearer:
    """Passes on how far reading has come, a few times a second."""

    def __init__(self, name: str, tell: Callable[[str, float], None]) -> None:
        self._name, self._tell = name, tell
        self._due = time.monotonic() + _PROGRESS_SECONDS

    def __call__(self, share: float) -> None:
        now = time.monotonic()
        if now >= self._due:
            self._due = now + _PROGRESS_SECONDS
            self._tell(self._name, share)


class Controller(QObject):
    """Owns the engine's thread and the order in which things are asked of it."""

    _opening = Signal(str, float)  # from the engine's thread: a model's name, how much is read
    _part = Signal(object)  # from there too: the Reading of the first part of a long text
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
        self._asked_path: Path | None = None
        asking = Asking(self._ask_aside, self._awaits, self._awaits_more_than, self._settle)
        self._asides = asides.Asides(store, asking, _CHECK)
        self._comparing = comparing.Comparing(store, messages, asking)
        self._experimenting = experimenting.Experimenting(store, asking)
        self._windowing = windowing.Windowing(store, messages, asking)
        self._costing = Costing(store, engine, self._on_scope)
        self._opening.connect(self._show_opening)
        self._part.connect(self._show_part)
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
        if self._is_opening and self._asked_path is not None:
            self._open(self._asked_path)
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
        phase = "loading" if self._store.state.reading else "starting"
        self._store.update(phase=phase, notice=f"Opening {path.name} …")
        self._measuring.stop()
        self._keep_heads_of(path)
        state = self._store.state
        look = Look(state.selection.layer, state.selection.head, state.selection.query)
        conditions, use_cache, use_prefix = state.conditions, state.use_cache, state.use_prefix
        known = state.reading.info if state.reading is not None else None
        sampling, text = state.sampling, state.text
        self._asked_conditions = conditions
        self._asked_path, formats, is_first = path, self._asked_formats, state.reading is None

        def work(void: Cancelled) -> Reading:
            from engine.loading import load, use_threads  # noqa: PLC0415 - torch, here only
            from engine.matrices import or_processor  # noqa: PLC0415
            from engine.scope import Scope  # noqa: PLC0415

            # One core stays the window's: two threads for two cores wait for each other.
            use_threads(max(1, (os.cpu_count() or 2) - 1))
            # A device that was remembered may be gone; it must not keep the program from starting.
            chosen = or_processor(formats) if is_first else formats
            loaded = load(path, chosen, void, _Hearer(path.name, self._opening.emit))
            scope = Scope(loaded, use_prefix=use_prefix)
            is_same = known is not None and scope.info.config == known.config
            scope.set_conditions(conditions if is_same else replace(conditions, heads_off=_NONE))
            scope.set_cache(use=use_cache)
            scope.set_sampling(sampling)
            scope.look(look)
            reading = scope.edit(text, void)
            self._scope = scope  # whatever was asked meanwhile is asked of this one
            return reading

        self._submit(Job("open", work, _CHECK | {"open", costing.KIND}), self._show_opened)

    def _keep_heads_of(self, path: Path) -> None:
        """Heads that are off stay so if the same model is opened once more; another has others."""
        reading = self._store.state.reading
        if reading is not None and Path(reading.info.path) != path:
            self._store.update(heads_off=HeadsOff(by=self._store.state.heads_off.by))

    def _keep_model(self) -> None:
        """No other model came: its heads are off as before, under the mask that is chosen now."""
        state = self._store.state
        if state.reading is not None and not self._is_closed:
            heads = state.reading.conditions.heads_off
            self._store.update(heads_off=replace(state.heads_off, heads=heads))
            self._asked_conditions = None  # whatever was asked meanwhile was asked without them
            self._ask_conditions()

    def _show_opening(self, name: str, share: float) -> None:
        if self._is_opening:
            self._store.update(notice=f"Opening {name} … {share:.0%} (Esc stops)")

    @property
    def _is_opening(self) -> bool:
        return any(kind == "open" for kind, _show in self._tickets.values())

    def _show_opened(self, reading: Reading) -> None:
        before = self._store.state.reading
        is_first = before is None
        told = _told_of_format(before, reading)
        asked, device = self._asked_formats.device, reading.info.held.device
        if device != asked:
            told = f"There is no {asked!r} device here; the processor computes."
            self._asked_formats = replace(self._asked_formats, device=device)
        heads = reading.conditions.heads_off
        heads_off = replace(self._store.state.heads_off, heads=heads)
        if heads_off != self._store.state.heads_off:
            self._asked_conditions = None  # the model at this path has other heads now
        self._store.update(formats=self._asked_formats, heads_off=heads_off)
        if isinstance(self._store.state.followed, int):
            self._store.update(followed="next")  # an id means another token in another model
        self._show(reading)
        if is_first:
            self._point_at(replace(self._store.state.selection, **_telling_head(reading)))
        if told:
            self._messages.info(told)
        doubt = _doubt_about_vocabulary(reading)
        if doubt and (before is None or before.info.path != reading.info.path):
            self._messages.warning(doubt)

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
        state = self._store.state
        is_awaited = self.is_busy and not self._is_opening
        is_it = reading.document.text == state.text and reading.conditions == state.conditions
        if is_awaited and is_it:
            n_all = len(reading.document) - reading.n_fallen
            notice = f"Reading … {reading.n_tokens:,} of {n_all:,} tokens"
            self._store.update(reading=reading, stale=False, cache_check=None, notice=notice)

    def _show(self, reading: Reading, **more: str) -> None:
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
        if number in self._tickets:  # else it is what is being measured
            _kind, show = self._tickets.pop(number)
            show(answer)

    def _on_drop(self, number: int) -> None:
        if number not in self._tickets:
            return
        kind, _show = self._tickets.pop(number)
        if self._is_closed:
            return
        if kind == "open" and not self._is_opening:  # nothing newer took its place
            is_open = self._store.state.reading is not None
            notice = "" if is_open else "No model is open; choose one in the File menu."
            self._store.update(phase="ready" if is_open else "failed", notice=notice)
            self._messages.info("Opening the model was stopped.")
            self._keep_model()
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
        phase = "failed" if self._store.state.reading is None else "ready"
        if kind == "open" and not self._is_opening:
            self._asked_formats = self._store.state.formats
            self._keep_model()
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
