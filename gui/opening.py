"""Opening a model: the work on the engine's thread, and what is told of it then and afterwards."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from engine.cancelling import Cancelled, give_up_if
from engine.errors import CancelledError
from engine.formats import FormatChoice
from engine.reading import Look, Reading
from engine.readouts import ROLE_THRESHOLD, Role
from engine.sizes import bytes_said
from gui.state import State
from gui.words.names import plain

if TYPE_CHECKING:
    from engine.scope import Scope

_NONE: frozenset[tuple[int, int]] = frozenset()
_PROGRESS_SECONDS = 0.2


@dataclass(eq=False)
class Opening:
    """A model that was asked for, and what was there when it was."""

    path: Path
    formats: FormatChoice
    before: State  # what is shown of it comes back if the model does not come
    is_shown: bool = False  # whether the first part of its text is on screen

    @property
    def is_first(self) -> bool:
        """Whether no other model is open."""
        return self.before.reading is None


def open_model(
    opening: Opening,
    newest_text: Callable[[], str],
    void: Cancelled,
    tell: Callable[[str, float], None],
    show: Callable[[Opening, Reading], None],
) -> tuple["Scope", Reading]:
    """Work for the engine's thread: the model, open on the text that is wished for by then.

    `tell` hears how much of the weights has been read, `show` of each part of a long text that
    has been; a text that was changed meanwhile is given up for the newer one. Of a first model the
    head to begin with is chosen by the first part.

    Raises:
        EngineError: the model cannot be opened, or cannot read the text.
        CancelledError: `void` said so.
    """
    scope, look = _loaded(opening, void, tell), _look(opening.before)
    is_aimed = not opening.is_first

    def aimed(reading: Reading) -> Reading:
        nonlocal is_aimed
        if is_aimed:
            return reading
        is_aimed = True
        return scope.aim(reading, _telling(reading, look))

    def read(text: str) -> Reading:
        is_void: Cancelled = lambda: void() or newest_text() != text  # noqa: E731
        return aimed(scope.edit(text, is_void, lambda part: show(opening, aimed(part))))

    while True:
        try:
            return scope, read(newest_text())
        except CancelledError:
            give_up_if(void)


def _loaded(opening: Opening, void: Cancelled, tell: Callable[[str, float], None]) -> "Scope":
    """The model on an empty text, under the conditions that are wished for."""
    from engine.loading import load, use_threads  # noqa: PLC0415 - torch, on that thread only
    from engine.matrices import or_processor  # noqa: PLC0415
    from engine.scope import Scope  # noqa: PLC0415

    # One core stays the window's: two threads for two cores wait for each other.
    use_threads(max(1, (os.cpu_count() or 2) - 1))
    state, path = opening.before, opening.path
    # A device that was remembered may be gone; it must not keep the program from starting.
    chosen = or_processor(opening.formats) if opening.is_first else opening.formats
    loaded = load(path, chosen, void, _Hearer(path.name, tell), packs_later=True)
    scope = Scope(loaded, use_prefix=state.use_prefix)
    is_same = state.reading is not None and scope.info.config == state.reading.info.config
    conditions = state.conditions if is_same else replace(state.conditions, heads_off=_NONE)
    scope.prepare(conditions, state.sampling, _look(state), use_cache=state.use_cache)
    return scope


def _look(state: State) -> Look:
    selection = state.selection
    return Look(selection.layer, selection.head, selection.query)


def _telling(reading: Reading, look: Look) -> Look:
    """The head to open with: the best copier, if any copies, else the one that looks back most."""
    wanted: tuple[tuple[Role, float], ...] = (("induction", ROLE_THRESHOLD), ("previous token", 0))
    for role, least in wanted:
        scores = reading.roles.scores[role]  # [L, H]
        if scores.size and scores.max() >= least:  # NaN is not
            layer, head = np.unravel_index(int(scores.argmax()), scores.shape)
            return replace(look, layer=int(layer), head=int(head))
    return look


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


def told_of_format(before: Reading | None, now: Reading) -> str:
    """What to say when a model was opened again in another format or place, or for lack of room."""
    held = now.info.held
    if held.is_for_room and (before is None or before.info != now.info):
        why = held.reason.removeprefix("automatic: ")
        return f"{plain(now.info.name)} was opened in {held.number_format}, {why}."
    if before is None or before.info.path != now.info.path or before.info.held == now.info.held:
        return ""
    n_bytes = before.info.held.n_bytes
    return (
        f"{plain(now.info.name)} was opened again in {held.title} on {held.device!r}: "
        f"{bytes_said(held.n_bytes)} of weights, {bytes_said(n_bytes)} before. "
        "The text was run again."
    )


def doubt_about_vocabulary(reading: Reading) -> str:
    """What to say of a vocabulary that may be another model's; "" if nothing.

    Embeddings are rounded up, by a few hundred rows; one that is more than half empty is rare, and
    so is a text that another model's tokenizer cuts right.
    """
    info = reading.info
    n_tokens, n_rows = len(info.vocabulary), info.config.vocab_size
    if not n_tokens or 2 * n_tokens >= n_rows:
        return ""
    return (
        f"{plain(info.name)} has {n_rows:,} token ids, its tokenizer only {n_tokens:,} tokens: "
        "if they do not belong together, what it reads is not the text."
    )
