"""What the overview says of heads that are off, and of what each does. No widgets."""

from dataclasses import replace

import numpy as np
import pytest

from engine.answers.ablation import Effects, Outcome
from engine.conditions import Conditions
from engine.reading import Look, Reading
from gui.export.stamp import conditions_said
from gui.mask_memory import MaskMemory
from gui.state import Display, HeadsOff, OpenedEffects, State
from gui.view import resolve
from gui.wishes import SetHeadsOff
from gui.words.head_effects import heads_said, nats, nats_on_tile, switched
from tests.gui.tiny_scope import tiny_scope

DIVERGENCE = np.array([[0.5, 0.1, np.nan, 0.0], [0.2, 0.9, 0.3, 0.4]])
LOSS = np.array([[2.0, 3.5, np.nan, 3.0], [3.1, 2.9, 3.0, 3.0]])


def effects_of(reading: Reading) -> OpenedEffects:
    """Seven heads measured, one not."""
    top = np.where(np.isnan(DIVERGENCE), -1, 4)
    shown = Outcome(loss=3.0, divergence=0.0, logit=1.0, probability=0.2, top=4)
    effects = Effects(
        position=reading.position,
        token_id=1,
        off_by="zero",
        shown=shown,
        n_heads=8,
        loss=LOSS,
        divergence=DIVERGENCE,
        logit=DIVERGENCE,
        probability=DIVERGENCE,
        top=top,
    )
    return OpenedEffects(reading, effects)


def state_of(reading: Reading, **fields: object) -> State:
    """A window on a reading whose heads were measured."""
    return State(phase="ready", reading=reading, effects=effects_of(reading), **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "said", "on_tile"),
    [
        (0.31, "+0.31", "+.31"),
        (-0.0042, "−0.0042", "~0"),
        (-0.012, "−0.012", "−.01"),
        (1.25, "+1.25", "+1.25"),
        (12.5, "+12.50", "+12"),
        (-2345.0, "−2345", "−2345"),
        (3e-6, "+3e−6", "~0"),
        (-4e-12, "−4e−12", "~0"),
        (0.0, "0", "0"),
        (float("nan"), "–", ""),
    ],
)
def test_a_change_is_said_in_few_digits_and_never_as_0_if_it_is_not(
    value: float, said: str, on_tile: str
) -> None:
    """With a real minus; without a sign where none is wanted."""
    assert nats(value) == said
    assert nats(value, signed=False) == said.lstrip("+−")
    assert nats_on_tile(value, signed=True) == on_tile


def test_heads_are_named_by_their_layers() -> None:
    """A whole layer in one word; too many are counted."""
    off = frozenset({(1, 0), (0, 2), (1, 1), (2, 0)})
    assert heads_said(off, 2) == "L0 H2, L1 all, L2 H0"
    many = frozenset((layer, 0) for layer in range(20))
    assert heads_said(many, 8).endswith("L11 H0 and 8 more")


def test_switching_what_is_partly_off_switches_all_of_it_off() -> None:
    """And what is off as a whole, on; the rest stays."""
    state = State(heads_off=HeadsOff(frozenset({(0, 0), (1, 1)})))
    layer = [(0, 0), (0, 1)]
    assert switched(state, *layer) == SetHeadsOff({"heads": {(0, 0), (0, 1), (1, 1)}})
    assert switched(state, (1, 1)) == SetHeadsOff({"heads": {(0, 0)}})


def test_what_is_run_under_is_mask_and_heads_together() -> None:
    off = HeadsOff(frozenset({(0, 0)}), "mean")
    state = State(heads_off=off)
    assert state.conditions == Conditions(heads_off=off.heads, off_by="mean")
    assert replace(state, heads_off=HeadsOff(by="mean")).conditions == Conditions()


def test_heads_are_sorted_by_their_effect_those_not_measured_last() -> None:
    """By the answer, and by the loss in either direction; equals stay in their order."""
    reading = tiny_scope().edit("abcab")
    order = {
        measure: resolve(state_of(reading, display=Display(sort=measure))).order
        for measure in ("answer", "loss")
    }
    answer = [(1, 1), (0, 0), (1, 3), (1, 2), (1, 0), (0, 1), (0, 3), (0, 2)]
    loss = [(0, 0), (0, 1), (1, 0), (1, 1), (0, 3), (1, 2), (1, 3), (0, 2)]
    assert list(order["answer"] or ()) == answer
    assert list(order["loss"] or ()) == loss


@pytest.mark.parametrize("measure", ["answer", "loss"])
def test_shades_and_captions_are_the_scores(measure: str) -> None:
    """The largest in either direction ends the scale."""
    reading = tiny_scope().edit("abcab")
    view = resolve(state_of(reading, display=Display(shade=measure)))  # type: ignore[arg-type]
    assert view.shades is not None
    wanted = DIVERGENCE if measure == "answer" else LOSS - 3.0
    assert np.array_equal(view.shades.scores, wanted, equal_nan=True)
    assert view.shades.largest == np.nanmax(np.abs(wanted))
    assert view.order is None
    said = {"answer": "answer 0.50", "loss": "loss −1.00"}
    assert view.captions[0, 0] == said[measure]
    assert view.captions[0, 2] == (view.reading.roles.name(0, 2) or "")  # type: ignore[union-attr]


def test_effects_of_another_text_position_or_model_shade_nothing() -> None:
    """But the losses are true wherever one looks in the text."""
    scope = tiny_scope()
    reading = scope.edit("abcab")
    elsewhere = scope.look(Look(0, 0, 2))
    shown = {
        (name, measure): resolve(
            replace(state_of(reading, display=Display(shade=measure, sort=measure)), reading=other)
        )
        for name, other in (
            ("elsewhere", elsewhere),
            ("longer", scope.edit("abcabc")),
            ("other model", tiny_scope().edit("abcab")),
        )
        for measure in ("answer", "loss")
    }
    is_shaded = {key for key, view in shown.items() if view.shades is not None}
    assert is_shaded == {("elsewhere", "loss")}
    assert {key for key, view in shown.items() if view.order is not None} == is_shaded


def test_a_head_that_is_off_is_said_to_be() -> None:
    """In its caption, in the status, and in whatever leaves the program."""
    scope = tiny_scope()
    scope.edit("abcab")
    for by, said in (("zero", "off: L0 H1, L1 H3"), ("mean", "off by their mean: L0 H1, L1 H3")):
        conditions = Conditions(heads_off=frozenset({(1, 3), (0, 1)}), off_by=by)  # type: ignore[arg-type]
        view = resolve(state_of(scope.set_conditions(conditions)))
        assert view.off == {(0, 1), (1, 3)}
        assert view.captions[0, 1] == f"off, {by}"
        assert "2 heads are off" in view.status
        assert conditions_said(conditions) == f"causal mask, {said}"


def test_masks_are_compared_under_the_same_heads() -> None:
    """A loss that was measured with other heads on is not another mask's."""
    scope, memory = tiny_scope(), MaskMemory()
    memory.remember(scope.edit("abcab"))
    off = Conditions(heads_off=frozenset({(0, 0)}))
    memory.remember(scope.set_conditions(off))
    narrow = scope.set_conditions(replace(off, mask="window", window=2))
    memory.remember(narrow)
    assert list(memory.others(narrow)) == [off]
