"""What the overview shows of heads that are off, and of what each head does; pure, without Qt."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from engine.answers.ablation import Effects, Measure
from engine.conditions import OffBy
from engine.reading import Reading
from gui.state import OpenedEffects, State
from gui.wishes import SetHeadsOff

HeadAt = tuple[int, int]  # layer, head

EFFECT_TITLES: dict[Measure, str] = {
    "answer": "effect on the answer",
    "loss": "effect on the loss",
}
OFF_BY_TITLES: dict[OffBy, str] = {"zero": "zero", "mean": "its mean over positions"}
_WIDEST = 1000.0


@dataclass(frozen=True, eq=False)
class Shades:
    """What the overview colours heads by instead of their weights [L, H]; NaN: not measured."""

    measure: Measure
    scores: NDArray[np.float64]
    largest: float  # |score|, which has the map's last colour

    @property
    def sentence(self) -> str:
        """What the colours mean."""
        top = nats(self.largest, signed=False)
        if self.measure == "answer":
            return f"answer moves, 0 to {top} nats"
        return f"loss changes, ± {top} nats"


def true_effects(state: State, measure: Measure) -> OpenedEffects | None:
    """What was measured, as far as it is true of what is shown."""
    opened = state.effects
    return opened if opened is not None and opened.answers(state.reading, measure) else None


def shades_of(state: State) -> Shades | None:
    """By what the overview is shaded; None: by the weights."""
    measure = state.display.shade
    opened = None if measure == "weights" else true_effects(state, measure)
    if measure == "weights" or opened is None:
        return None
    return _shades(opened.effects, measure)


@lru_cache(maxsize=2)  # the same effects are shown many times
def _shades(effects: Effects, measure: Measure) -> Shades:
    scores = effects.scores(measure)
    return Shades(measure, scores, float(np.nan_to_num(np.abs(scores)).max(initial=0.0)))


def ranked(state: State, measure: Measure) -> tuple[HeadAt, ...] | None:
    """All heads, those that move most first and those not measured last; None: nothing is true."""
    opened = true_effects(state, measure)
    if opened is None:
        return None
    first = opened.effects.ranked(measure)
    rest = [at for at in np.ndindex(opened.effects.top.shape) if opened.effects.top[at] < 0]
    return (*first, *((layer, head) for layer, head in rest))


def effect_captions(opened: OpenedEffects, measure: Measure) -> dict[HeadAt, str]:
    """What the overview says of each head that is measured."""
    scores = opened.effects.scores(measure)
    return {
        (layer, head): f"{measure} {nats(float(scores[layer, head]), signed=measure == 'loss')}"
        for layer, head in np.ndindex(scores.shape)
        if not np.isnan(scores[layer, head])
    }


def off_caption(reading: Reading) -> str:
    """What is said of a head that is off."""
    return f"off, {'mean' if reading.conditions.off_by == 'mean' else 'zero'}"


def nats(value: float, *, signed: bool = True) -> str:
    """A change with two telling digits: +0.31, −0.0042, 0."""
    size = abs(value)
    if not np.isfinite(value):
        return "–"
    if size >= _WIDEST:
        text = f"{size:.0f}"
    elif size >= 0.1:
        text = f"{size:.2f}"
    elif size >= 0.0001:
        text = f"{size:.4f}" if size < 0.01 else f"{size:.3f}"
    elif size:
        mantissa, exponent = f"{size:.0e}".split("e")
        text = f"{mantissa}e{int(exponent)}".replace("-", "−")
    else:
        text = "0"
    sign = ("−" if value < 0 else "+") if signed and value else ""
    return f"{sign}{text}"


def nats_on_tile(value: float, *, signed: bool) -> str:
    """The same in as few letters as a tile has room for; ~0 is less than half of 0.01."""
    if not np.isfinite(value) or value == 0:
        return "0" if value == 0 else ""
    if abs(value) < 0.005:
        return "~0"
    text = f"{abs(value):.2f}" if abs(value) < 10 else f"{abs(value):.0f}"
    text = text.removeprefix("0") if abs(value) < 1 else text
    sign = ("−" if value < 0 else "+") if signed else ""
    return f"{sign}{text}"


# Wishes


def switched(state: State, *heads: HeadAt) -> SetHeadsOff:
    """The wish that switches these heads off, or on again if all of them are off."""
    off, some = state.heads_off.heads, frozenset(heads)
    return SetHeadsOff({"heads": off - some if some <= off else off | some})


def layer_heads(reading: Reading, layer: int) -> tuple[HeadAt, ...]:
    """All heads of a layer."""
    return tuple((layer, head) for head in range(reading.info.config.n_head))


def all_on() -> SetHeadsOff:
    """The wish that switches every head on."""
    return SetHeadsOff({"heads": frozenset()})


def heads_said(heads: frozenset[HeadAt], n_head: int, most: int = 12) -> str:
    """Heads by their layers, a whole layer in one word: "L0 H1, L2 all"."""
    layers = sorted({layer for layer, _head in heads})
    said: list[str] = []
    for layer in layers:
        mine = sorted(head for at, head in heads if at == layer)
        said += [f"L{layer} all"] if len(mine) == n_head else [f"L{layer} H{at}" for at in mine]
    shown = ", ".join(said[:most])
    return f"{shown} and {len(said) - most} more" if len(said) > most else shown
