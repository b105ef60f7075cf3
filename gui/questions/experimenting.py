"""Asks for the experiments on small models while somebody looks at them."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import resources
from engine.cancelling import Cancelled
from engine.experiments.records import LeakTrials, SchemeReadings
from gui.questions.asking import IDLE, Asking, attempt
from gui.state import ExperimentChoice, OpenedExperiment, Store
from gui.wishes import Want, WantLeak, WantSchemes

if TYPE_CHECKING:
    from engine.experiments.small_models import SmallModels
    from engine.scope import Scope

LEAK, SCHEMES = "leak", "schemes"
KINDS = frozenset({LEAK, SCHEMES})

LEAK_MODELS = ("positions-rotary", "leak")  # the honest one first
SCHEME_MODELS = (
    "positions-learned",
    "positions-sinusoidal",
    "positions-rotary",
    "positions-alibi",
    "positions-none",
)


class Experimenting:
    """Owns the small models, which live on the engine's thread, and what was asked of them."""

    def __init__(self, store: Store, asking: Asking) -> None:
        self._store, self._asking = store, asking
        self._models: dict[str, SmallModels] = {}  # made and used on the engine's thread alone
        self._asked: dict[str, tuple[int, object]] = {}  # the latest job of a kind, and what for

    def want(self, wish: Want) -> None:
        """Somebody looks at an experiment, or no longer does."""
        self._store.want(wish)
        self.open()

    def change(self, changes: dict[str, Any]) -> None:
        """Do something else to the text, or look at another head."""
        self._store.update(experiment=replace(self._store.state.experiment, **changes))
        self.open()

    def open(self) -> None:
        """Ask for what is wanted now, unless it is there or on its way."""
        state = self._store.state
        if state.reading is None:
            return
        text, choice = state.reading.document.text, state.experiment
        leak, schemes = state.leak, state.schemes
        if WantLeak in state.wanted and not (leak and leak.is_of(text, choice)):
            self._ask(LEAK, text, lambda void: self._leak(text, void), self._show_leak)
        if WantSchemes in state.wanted and not (schemes and schemes.is_of(text, choice)):
            self._ask(
                SCHEMES,
                (text, choice),
                lambda void: self._schemes(text, choice, void),
                self._show_schemes,
            )

    def _ask(
        self,
        kind: str,
        wanted: object,
        work: Callable[[Cancelled], object],
        show: Callable[[Any], None],
    ) -> None:
        if self._asking.awaits_more_than(IDLE | KINDS):
            return
        number, asked = self._asked.get(kind, (-1, None))
        if asked == wanted and self._asking.awaits(number):
            return

        def on_scope(_scope: "Scope", void: Cancelled) -> object:
            return work(void)

        number = self._asking.ask_aside(kind, on_scope, show, IDLE | {kind})
        self._asked[kind] = number, wanted

    # On the engine's thread

    def _leak(self, text: str, void: Cancelled) -> OpenedExperiment[LeakTrials]:
        def work() -> LeakTrials:
            return self._open_models(LEAK, LEAK_MODELS).leak(text, void)

        return OpenedExperiment(text, None, *attempt(work))

    def _schemes(
        self, text: str, choice: ExperimentChoice, void: Cancelled
    ) -> OpenedExperiment[SchemeReadings]:
        def work() -> SchemeReadings:
            models = self._open_models(SCHEMES, SCHEME_MODELS)
            return models.schemes(text, choice.change, choice.layer, choice.head, void)

        return OpenedExperiment(text, choice, *attempt(work))

    def _open_models(self, kind: str, names: tuple[str, ...]) -> "SmallModels":
        from engine.experiments.small_models import SmallModels  # noqa: PLC0415 - torch, here only

        if kind not in self._models:
            folders: list[Path] = [resources.model_folder(name) for name in names]
            self._models[kind] = SmallModels(folders)
        return self._models[kind]

    # On the window's

    def _show_leak(self, opened: OpenedExperiment[LeakTrials]) -> None:
        self._store.update(leak=opened)
        self._asking.settle()

    def _show_schemes(self, opened: OpenedExperiment[SchemeReadings]) -> None:
        self._store.update(schemes=opened)
        self._asking.settle()
