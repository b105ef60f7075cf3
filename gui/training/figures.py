"""What the lab's charts and sentences show of a record; plain arithmetic, no Qt."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engine.training.record import WATCHED_ROLES, Moment, TrainingRecord
from gui.widgets.axis_ticks import linear_ticks, round_up
from gui.widgets.curves import Axis, Points

HeadAt = tuple[int, int]  # layer, head
_SMOOTHED_SHARE = 40  # the running mean goes over so large a part of the steps
_N_TICKS = 4


def smoothed(losses: NDArray[np.float32]) -> NDArray[np.float64]:
    """The mean of each step's loss and of those before it, over a fortieth of all steps."""
    n_mean = max(1, len(losses) // _SMOOTHED_SHARE)
    sums = np.concatenate(([0.0], np.cumsum(losses, dtype=np.float64)))
    ends = np.arange(1, len(sums))
    starts = np.maximum(0, ends - n_mean)
    return np.asarray((sums[ends] - sums[starts]) / (ends - starts), np.float64)


def strongest(moment: Moment, role: int) -> HeadAt | None:
    """The head that has most of a role of WATCHED_ROLES; None where it cannot be asked."""
    scores = moment.roles[role]  # [L, H]
    if np.isnan(scores).all():
        return None
    layer, head = np.unravel_index(int(np.nanargmax(scores)), scores.shape)
    return int(layer), int(head)


def score_points(record: TrainingRecord, role: int) -> Points:
    """The strongest head's score at each look."""
    looks = [
        (moment.step, moment.roles[role][at])
        for moment in record.moments
        if (at := strongest(moment, role)) is not None
    ]
    return _points(looks)


def loss_points(record: TrainingRecord) -> tuple[Points, Points, Points]:
    """Each step's loss, its running mean, and the held-out loss at each look."""
    x = np.arange(1, len(record.losses) + 1, dtype=np.float64)
    looks = [(moment.step, moment.held_out.per_token) for moment in record.moments]
    return (x, record.losses.astype(np.float64)), (x, smoothed(record.losses)), _points(looks)


def repeat_points(record: TrainingRecord) -> tuple[Points, Points]:
    """The loss on the watched passage, the first and the second time, at each look."""
    first = [(moment.step, moment.repeat_loss[0]) for moment in record.moments]
    second = [(moment.step, moment.repeat_loss[1]) for moment in record.moments]
    return _points(first), _points(second)


def _points(pairs: Sequence[tuple[float, float]]) -> Points:
    pairs = [pair for pair in pairs if math.isfinite(pair[1])]
    x, y = np.array(pairs, np.float64).reshape(-1, 2).T
    return x, y


def step_axis(steps: int) -> Axis:
    """From the first to the last step that there will be."""
    ticks = linear_ticks(0, max(1, steps), _N_TICKS, whole=True)
    return Axis(0.0, float(max(1, steps)), tuple(ticks))


def from_zero(points: Sequence[Points]) -> Axis:
    """From 0 to above the highest point."""
    top = round_up(max((float(y.max()) for _x, y in points if len(y)), default=1.0))
    return Axis(0.0, top * 1.03, tuple(linear_ticks(0.0, top, _N_TICKS)))


def share_axis() -> Axis:
    """From 0 to 1."""
    return Axis(0.0, 1.03, tuple(linear_ticks(0.0, 1.0, 2)))


def head_words(moment: Moment, at: HeadAt) -> str:
    """A head's scores at a look."""
    layer, head = at
    scores = [
        f"{role} {moment.roles[number][at]:.2f}"
        for number, role in enumerate(WATCHED_ROLES)
        if not math.isnan(moment.roles[number][at])
    ]
    return " · ".join([f"Layer {layer}, head {head}", *scores])


def head_wordings(moment: Moment, at: HeadAt) -> tuple[str, ...]:
    """The same in fewer and fewer words, for less and less room."""
    whole = head_words(moment, at)
    short = whole.replace("Layer ", "L").replace(", head ", " H")
    shorter = short.replace("previous token", "previous")
    return whole, short, shorter, f"L{at[0]} H{at[1]}"


def loss_words(record: TrainingRecord, moment: Moment) -> str:
    """The losses at a look, in nats per token."""
    held_out = moment.held_out
    parts = []
    if moment.step:
        trained = smoothed(record.losses[: moment.step])[-1]
        parts.append(f"training {trained:.2f}")
    first, second = moment.repeat_loss
    parts += [
        f"held out {held_out.per_token:.2f} ({held_out.per_character:.2f} per character)",
        f"a passage the first time {first:.2f}, the second time {second:.2f}",
    ]
    return f"Nats per token: {'; '.join(parts)}."


def loss_wordings(record: TrainingRecord, moment: Moment) -> tuple[str, ...]:
    """The same in fewer words, for less room."""
    whole = loss_words(record, moment)
    short = whole.replace(" per character", "/character").replace("the first time", "1st")
    return whole, short.replace("the second time", "2nd"), whole.split(";")[0]
