"""What moves the answer most: which head is to be switched off next, and what came of it so far.

The engine is asked for one head at a time, so that whatever else is wished for comes in between.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from engine.answers.ablation import Effects
from engine.cancelling import Cancelled
from engine.reading import Reading
from gui.state import OpenedEffects, Store, is_same_text

if TYPE_CHECKING:
    from engine.answers.ablation_pass import EffectSweep
    from engine.scope import Scope

Work = Callable[["Scope", Cancelled], Effects | None]


class _Sweep:
    """Holds the engine's sweep, which the engine's thread alone makes and uses."""

    def __init__(self) -> None:
        self.engines: EffectSweep | None = None


class Measuring:
    """Owns which reading is being measured; ends by itself when all heads are, or the text goes."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._reading: Reading | None = None  # that is measured; None: not begun
        self._sweep = _Sweep()

    def begin(self) -> None:
        """Measure the text that is shown, from the first head on, and shade the overview by it."""
        self._reading, self._sweep = None, _Sweep()
        display = self._store.state.display
        if display.shade == "weights":
            display = replace(display, shade="answer")
        self._store.update(measuring=True, display=display)

    def stop(self) -> None:
        """Measure no more; what was measured stays."""
        self._reading, self._sweep = None, _Sweep()
        self._store.update(measuring=False)

    def next_work(self) -> Work | None:
        """What the engine should do next, if anything."""
        state = self._store.state
        reading, token_id = state.reading, state.followed_id
        if not state.measuring or reading is None:
            return None
        if self._reading is None and token_id is not None:
            self._reading = reading
        elif self._reading is None or not is_same_text(self._reading, reading):
            self.stop()
            return None
        measured, off_by, sweep = self._reading, state.heads_off.by, self._sweep

        def work(scope: "Scope", void: Cancelled) -> Effects | None:
            if sweep.engines is None and token_id is not None:
                sweep.engines = scope.effects(measured, token_id, off_by)
            return None if sweep.engines is None else sweep.engines.step(void)

        return work

    def take(self, effects: Effects | None) -> None:
        """Show what the engine answered; None says that the text is no longer there."""
        if effects is None or self._reading is None:
            self.stop()
            return
        self._store.update(effects=OpenedEffects(self._reading, effects))
        if effects.is_whole:
            self.stop()
