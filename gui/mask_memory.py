"""What was measured of the same text under different masks, so that they can be compared."""

from collections import OrderedDict, deque
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from engine.conditions import Conditions
from engine.reading import ModelInfo, Reading

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


@dataclass(frozen=True, eq=False)
class _Measured:
    """What a reading measured, its records apart: they are large."""

    info: ModelInfo
    token_ids: NDArray[np.int64]  # [S]
    loss: NDArray[np.float32]  # [S]
    conditions: Conditions
    position: int
    top: TopCandidate | None


class MaskMemory:
    """Owns measured mean losses and top candidates by text and conditions; nothing is computed."""

    def __init__(self) -> None:
        self._losses: OrderedDict[tuple[Text, Conditions], float] = OrderedDict()
        self._tops: OrderedDict[tuple[Text, Conditions, int], TopCandidate] = OrderedDict()
        self._fresh: deque[_Measured] = deque(maxlen=_MOST)  # that nobody has asked after yet

    def remember(self, reading: Reading) -> None:
        """Keep what this reading measured; every step calls, so what can wait is left to wait."""
        session = reading.session
        self._fresh.append(
            _Measured(
                reading.info,
                session.token_ids,
                session.loss,
                reading.conditions,
                reading.position,
                top_candidate(reading),
            )
        )

    def _take_in(self) -> None:
        while self._fresh:
            fresh = self._fresh.popleft()
            text, loss = _text_of(fresh.info, fresh.token_ids), _mean(fresh.loss)
            if loss is not None:
                _put(self._losses, (text, fresh.conditions), loss)
            if fresh.top is not None:
                _put(self._tops, (text, fresh.conditions, fresh.position), fresh.top)

    def loss(self, reading: Reading, conditions: Conditions) -> float | None:
        """The mean loss in nats that the reading's text had under some conditions, if measured."""
        self._take_in()
        return self._losses.get((_text(reading), conditions))

    def top(self, reading: Reading, conditions: Conditions) -> TopCandidate | None:
        """The top candidate at the reading's position under some conditions, if measured."""
        self._take_in()
        return self._tops.get((_text(reading), conditions, reading.position))

    def others(self, reading: Reading) -> dict[Conditions, float]:
        """The mean losses of the reading's text under all other masks, latest last."""
        self._take_in()
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
    return _mean(reading.session.loss)


def _mean(losses: NDArray[np.float32]) -> float | None:
    loss = losses.astype(np.float64)
    known = loss[~np.isnan(loss)]
    return float(known.mean()) if len(known) else None


def top_candidate(reading: Reading) -> TopCandidate | None:
    """The most probable token at the reading's position; None for an empty text."""
    if reading.stages is None:
        return None
    token_id = int(reading.stages.order[0])
    return TopCandidate(token_id, float(reading.stages.plain_probs[token_id]))


def _text(reading: Reading) -> Text:
    return _text_of(reading.info, reading.session.token_ids)


def _text_of(info: ModelInfo, token_ids: NDArray[np.int64]) -> Text:
    return Text(info.path, info.load_seconds, token_ids.tobytes())


def _put(kept: OrderedDict[_Key, _Value], key: _Key, value: _Value) -> None:
    kept[key] = value
    kept.move_to_end(key)
    while len(kept) > _MOST:
        kept.popitem(last=False)
