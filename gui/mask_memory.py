"""What was measured of the same text under different masks, so that they can be compared."""

from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from engine.conditions import Conditions
from engine.reading import Reading

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")

_MOST = 256  # measurements that are kept; an old text's go first


@dataclass(frozen=True)
class Text:
    """What must be equal for two measurements to be compared: the model and its tokens."""

    path: str
    load_seconds: float  # tells two loads of one path apart
    token_ids: bytes  # as int64


@dataclass(frozen=True)
class TopCandidate:
    """The most probable token for what follows a position, by the plain softmax."""

    token_id: int
    probability: float


class MaskMemory:
    """Owns measured mean losses and top candidates by text and conditions; nothing is computed."""

    def __init__(self) -> None:
        self._losses: OrderedDict[tuple[Text, Conditions], float] = OrderedDict()
        self._tops: OrderedDict[tuple[Text, Conditions, int], TopCandidate] = OrderedDict()

    def remember(self, reading: Reading) -> None:
        """Keep what this reading measured."""
        text, conditions = _text(reading), reading.conditions
        loss = mean_loss(reading)
        if loss is not None:
            _put(self._losses, (text, conditions), loss)
        top = top_candidate(reading)
        if top is not None:
            _put(self._tops, (text, conditions, reading.position), top)

    def loss(self, reading: Reading, conditions: Conditions) -> float | None:
        """The mean loss in nats that the reading's text had under some conditions, if measured."""
        return self._losses.get((_text(reading), conditions))

    def top(self, reading: Reading, conditions: Conditions) -> TopCandidate | None:
        """The top candidate at the reading's position under some conditions, if measured."""
        return self._tops.get((_text(reading), conditions, reading.position))

    def others(self, reading: Reading) -> dict[Conditions, float]:
        """The mean losses of the reading's text under all other masks, latest last."""
        text, same = _text(reading), causal(reading.conditions)  # heads and positions
        return {
            conditions: loss
            for (known, conditions), loss in self._losses.items()
            if known == text and conditions != reading.conditions and causal(conditions) == same
        }


def causal(conditions: Conditions) -> Conditions:
    """The same conditions under the causal mask."""
    return replace(conditions, mask="causal", window=0, sinks=0)


def mean_loss(reading: Reading) -> float | None:
    """Nats per token over all tokens that have a loss; None if none has."""
    loss = np.asarray(reading.session.loss, dtype=np.float64)
    known = loss[~np.isnan(loss)]
    return float(known.mean()) if len(known) else None


def top_candidate(reading: Reading) -> TopCandidate | None:
    """The most probable token at the reading's position; None for an empty text."""
    if reading.stages is None:
        return None
    token_id = int(reading.stages.order[0])
    return TopCandidate(token_id, float(reading.stages.plain_probs[token_id]))


def _text(reading: Reading) -> Text:
    token_ids = np.asarray(reading.session.token_ids, dtype=np.int64)
    return Text(reading.info.path, reading.info.load_seconds, token_ids.tobytes())


def _put(kept: OrderedDict[_Key, _Value], key: _Key, value: _Value) -> None:
    kept[key] = value
    kept.move_to_end(key)
    while len(kept) > _MOST:
        kept.popitem(last=False)
