"""Times passes of growing length, part by part, in pieces between which other work can go on.

A long text is read a block of queries at a time. That is the very arithmetic of one long pass,
which takes queries in the same blocks, each against the keys up to its own end; so after each
block the sum so far is the time of a pass of that length, and one reading times all of them.
What it does not tell is that a matrix can be a little faster with more rows than a block has.
"""

import copy
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from functools import partial
from statistics import median

import torch
from torch import Tensor

from engine.cancelling import Cancelled, give_up_if, never
from engine.clock import finished
from engine.conditions import Conditions
from engine.config import QUERY_BLOCK, ModelConfig
from engine.cost.formulas import PartCost, pass_cost, total
from engine.cost.machine import measure
from engine.cost.measurements import (
    TIMED_PARTS,
    Lab,
    LengthTime,
    Seconds,
    TimedPart,
    Worked,
    ladder,
)
from engine.cost.part_clock import PartClock
from engine.cost.patience import GivingWay, patiently
from engine.cost.slices import Slices
from engine.model import Transformer
from engine.sliding_cache import new_cache

_REPEATS = 3  # of what takes so little that anything could disturb it
_SHORT_REPEATS = 7  # of what takes less still
_LONGEST_WHOLE = 1024  # tokens of the prefill that is timed in one piece


@torch.inference_mode()
def sweep(
    model: Transformer, token_ids: Sequence[int], longest: int, waited_for: Cancelled = never
) -> Iterator[Lab]:
    """What is known after each piece of work, in the end all of it.

    The tokens are repeated up to the length; times hardly depend on them. Lengths beyond the
    model's context are timed as well: the arithmetic does not end there, only what the model
    learned. `waited_for` says that something else is wanted; the piece is then given up within a
    layer, and done again when the sweep goes on.
    """
    lab = yield from _machine(model.device, Lab(longest))
    conditions = Conditions(positions=model.config.positions not in ("learned", "sinusoidal"))
    ids = _repeated(token_ids, longest + 1)
    timing = _Timing(_longer(model, longest + 1), ids, conditions, waited_for)
    lab = yield from _short(timing, lab)
    lab = yield from _long(timing, lab)
    del timing  # and with it the cache
    lab = yield from _machine(model.device, lab)  # once more: something may have slowed it before
    whole = min(longest, model.config.max_seq_len - 1, _LONGEST_WHOLE)
    if whole < 1:
        return
    for worked in _worked(model, ids[: whole + 1], waited_for):
        if worked is not None:
            lab = replace(lab, prefill=worked[0], decode=worked[1])
        yield lab


def _machine(device: torch.device, lab: Lab) -> Generator[Lab, None, Lab]:
    """The best that was seen of the machine so far."""
    for machine in measure(device):
        if machine is not None:
            lab = replace(lab, machine=machine.best(lab.machine))
        yield lab
    return lab


def _short(timing: "_Timing", lab: Lab) -> Generator[Lab, None, Lab]:
    """Lengths below a block, each by itself and several times; of each part the middle time.

    Whatever disturbs passes that are so short disturbs another part each time.
    """
    for n_tokens in [n for n in ladder(lab.longest) if n < QUERY_BLOCK]:
        timed: list[LengthTime] = []
        while len(timed) < _REPEATS or (len(timed) < _SHORT_REPEATS and _seconds(timed) < 1):
            timing.restart()
            for point in timing.point(n_tokens):
                timed += [] if point is None else [point]
                yield lab
        middle = LengthTime(
            n_tokens,
            {part: median(point.seconds[part] for point in timed) for part in TIMED_PARTS},
            median(point.decode_seconds for point in timed),
        )
        lab = replace(lab, points=(*lab.points, middle), n_done=n_tokens)
        yield lab
    return lab


def _seconds(timed: list[LengthTime]) -> float:
    """Of all these passes."""
    return sum(point.total for point in timed)


def _long(timing: "_Timing", lab: Lab) -> Generator[Lab, None, Lab]:
    """All other lengths in one reading."""
    timing.restart()
    for n_tokens in [n for n in ladder(lab.longest) if n >= QUERY_BLOCK]:
        for point in timing.point(n_tokens):
            lab = replace(lab, n_done=timing.n_read)
            if point is not None:
                lab = replace(lab, points=(*lab.points, point))
            yield lab
    return lab


class _Timing:
    """Owns a cache, reads on in it block by block, and adds up what that took since `restart`."""

    def __init__(
        self, model: Transformer, token_ids: Tensor, conditions: Conditions, waited_for: Cancelled
    ) -> None:
        self._model, self._ids = model, token_ids
        self._kv_cache = new_cache(model.config, model.device, len(token_ids))
        self._conditions, self._waited_for = conditions, waited_for
        self._clock = PartClock(model)
        self._sums: dict[TimedPart, float] = {}
        self.restart()

    @property
    def n_read(self) -> int:
        """Tokens that were read since `restart`."""
        return self._kv_cache.length

    def restart(self) -> None:
        """Begin at the first token, with a new sum."""
        self._kv_cache.rewind(0)
        self._sums = dict.fromkeys(TIMED_PARTS, 0.0)

    def point(self, n_tokens: int) -> Iterator[LengthTime | None]:
        """Read on to that length, then time one more token, which is forgotten again."""
        while self.n_read < n_tokens:
            end = min(self.n_read + QUERY_BLOCK, n_tokens)
            for seconds in patiently(partial(self._read_to, end)):
                if seconds is not None:
                    self._sums = {part: self._sums[part] + seconds[part] for part in TIMED_PARTS}
                yield None
        decoded: list[float] = []
        for _repeat in range(_REPEATS):
            for taken in patiently(partial(self._decode, n_tokens)):
                decoded += [] if taken is None else [taken]
                yield None
        yield LengthTime(n_tokens, dict(self._sums), median(decoded))

    def _read_to(self, end: int) -> Seconds:
        block = self._ids[self.n_read : end]
        return self._clock.timed_pass(block, self._kv_cache, self._conditions, self._waited_for)

    def _decode(self, n_tokens: int) -> float:
        new_ids = self._ids[n_tokens : n_tokens + 1]
        how = (self._kv_cache, self._conditions, None, self._waited_for)
        began = finished(self._model.device)
        self._model.logits(self._model.hidden(new_ids, *how))
        taken = finished(self._model.device) - began
        self._kv_cache.rewind(n_tokens)
        return taken


def _worked(
    model: Transformer, token_ids: Tensor, waited_for: Cancelled
) -> Iterator[tuple[Worked, Worked] | None]:
    """One real prefill in one pass, and one real decoded token after it."""
    n_tokens = len(token_ids) - 1
    kv_cache = new_cache(model.config, model.device, n_tokens + 1)
    slices = Slices(model)

    def timed(n_new: int, start: int) -> float:
        kv_cache.rewind(start)  # from the time before
        began = finished(model.device)
        new_ids = token_ids[start : start + n_new]
        record = GivingWay(waited_for)
        with slices.of_pass(n_new, waited_for):
            hidden = model.hidden(new_ids, kv_cache, record=record, cancelled=waited_for)
            for rows in torch.split(hidden, QUERY_BLOCK):
                give_up_if(waited_for)
                model.logits(rows)
        return finished(model.device) - began

    found = []
    for n_new, start in ((n_tokens, 0), (1, n_tokens)):
        seconds: list[float] = []
        while len(seconds) < _REPEATS and sum(seconds) < 1:
            for taken in patiently(partial(timed, n_new, start)):
                seconds += [] if taken is None else [taken]
                yield None
        cost = _cost_in_pieces(model, n_new, start)
        found.append(Worked(n_new, start, cost.multiply_adds, cost.n_bytes, median(seconds)))
    yield found[0], found[1]


def _cost_in_pieces(model: Transformer, n_new: int, start: int) -> PartCost:
    """What such a pass costs: its logits come block by block, each reading the whole matrix."""
    how = model.held.number_format
    cost = total(pass_cost(model.config, n_new, start, number_format=how, n_logits=0))
    for at in range(0, n_new, QUERY_BLOCK):
        n_logits = min(QUERY_BLOCK, n_new - at)
        block = pass_cost(model.config, n_new, start, number_format=how, n_logits=n_logits)
        cost += block["output"]
    return cost


def _repeated(token_ids: Sequence[int], n_tokens: int) -> Tensor:
    known = torch.tensor(list(token_ids) or [0], dtype=torch.int64)
    return known.repeat(-(-n_tokens // len(known)))[:n_tokens]


def _longer(model: Transformer, n_tokens: int) -> Transformer:
    """The same modules under a longer context limit."""
    config: ModelConfig = model.config
    if config.max_seq_len >= n_tokens:
        return model
    longer = copy.copy(model)
    longer.config = replace(config, max_seq_len=n_tokens)
    return longer
