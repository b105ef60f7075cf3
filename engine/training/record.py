"""What a training looked like from step to step, to be drawn while it runs or long after.

A `Moment` is one look at the model between two steps: the losses, where every head looks on one
short text, how much of two roles each head has there, and what the model writes. The watched
text is a passage of the held-out text and the same passage again, so that copying can be seen.
The window reads records itself, so there is no torch here.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load_file, save

from engine.errors import TrainingError
from engine.readouts import Role
from engine.whole_file import write_whole

Floats = NDArray[np.float32]

RECORD_FILE = "record.safetensors"
STATE_FILE = "state.safetensors"  # beside it, by `Trainer.save_state`
WATCHED_ROLES: tuple[Role, ...] = ("previous token", "induction")


@dataclass(frozen=True, kw_only=True)
class HeldOutLoss:
    """The mean of −log p over the held-out text, in nats."""

    per_token: float
    per_character: float


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Where a training stands after a step; `loss` is that step's, in nats per token."""

    step: int
    steps: int
    tokens: int
    loss: float
    learning_rate: float
    held_out: HeldOutLoss | None
    tokens_per_second: float
    seconds_left: float


@dataclass(frozen=True, eq=False)
class Moment:
    """One look at the model after `step` steps and `tokens` tokens; losses are in nats."""

    step: int
    tokens: int
    held_out: HeldOutLoss
    roles: Floats  # [role, L, H], in the order of WATCHED_ROLES, on the watched text
    patterns: Floats  # [L, H, T, T] on the watched text
    repeat_loss: tuple[float, float]  # per token of the passage, the first and the second time
    sample: str


@dataclass(frozen=True, eq=False)
class TrainingRecord:
    """Everything kept of one training: the loss of every step, and the moments between."""

    token_ids: tuple[int, ...]  # of the watched text [T]
    tokens: tuple[bytes, ...]  # the same as bytes
    losses: Floats = field(default_factory=lambda: np.zeros(0, np.float32))  # [steps], per token
    moments: tuple[Moment, ...] = ()

    def with_losses(self, losses: Sequence[float]) -> "TrainingRecord":
        """The record so many steps longer."""
        return replace(self, losses=np.append(self.losses, np.array(losses, np.float32)))

    def with_moment(self, moment: Moment) -> "TrainingRecord":
        """The record with one more look."""
        return replace(self, moments=(*self.moments, moment))

    def until(self, step: int) -> "TrainingRecord":
        """What was known after so many steps, for a training that goes on from there."""
        moments = tuple(moment for moment in self.moments if moment.step <= step)
        return replace(self, losses=self.losses[:step], moments=moments)

    @property
    def visible(self) -> NDArray[np.bool_]:
        """Which keys of the watched text a query could see [T, T]: without a mask, all.

        Told by the weights: a softmax leaves nothing at 0 but what the mask forbids.
        """
        n_tokens = len(self.tokens)
        seen = np.tri(n_tokens, dtype=np.bool_)
        if any(moment.patterns[..., ~seen].any() for moment in self.moments):
            seen[:] = True
        return seen


def save_record(path: Path, record: TrainingRecord) -> None:
    """Write a record whole or not at all.

    Raises:
        TrainingError: the file cannot be written.
    """
    moments = record.moments
    facts = {
        "token_ids": record.token_ids,
        "tokens": [token.hex() for token in record.tokens],
        "moments": [
            {
                "step": moment.step,
                "tokens": moment.tokens,
                "per_token": moment.held_out.per_token,
                "per_character": moment.held_out.per_character,
                "repeat_loss": moment.repeat_loss,
                "sample": moment.sample,
            }
            for moment in moments
        ],
    }
    tensors: dict[str, NDArray[Any]] = {"losses": record.losses}
    if moments:
        tensors["roles"] = np.stack([moment.roles for moment in moments])
        patterns = [moment.patterns.astype(np.float16) for moment in moments]
        tensors["patterns"] = np.stack(patterns)
    try:
        write_whole(path, save(tensors, {"record": json.dumps(facts)}))
    except OSError as error:
        raise TrainingError(f"{path} cannot be written: {error.strerror}.") from error


def load_record(path: Path) -> TrainingRecord:
    """What `save_record` wrote; patterns were kept in float16.

    Raises:
        TrainingError: the file is missing, damaged, or no record of a training.
    """
    try:
        with safe_open(path, framework="numpy") as file:
            facts = json.loads((file.metadata() or {})["record"])
        tensors = {name: each.astype(np.float32) for name, each in load_file(path).items()}
        moments = tuple(
            _moment(each, tensors["roles"][index], tensors["patterns"][index])
            for index, each in enumerate(facts["moments"])
        )
        tokens = tuple(bytes.fromhex(token) for token in facts["tokens"])
        record = TrainingRecord(tuple(facts["token_ids"]), tokens, tensors["losses"], moments)
        _check(record)
        return record  # noqa: TRY300 - what a damaged file raises on the way is one sentence
    except FileNotFoundError:
        raise TrainingError(f"{path} does not exist; nothing was recorded there.") from None
    except (SafetensorError, OSError, ValueError, TypeError, LookupError) as error:
        raise TrainingError(f"{path} is no record of a training, or damaged.") from error


def _check(record: TrainingRecord) -> None:
    """See that the arrays fit each other, so that whoever draws them need not ask.

    Raises:
        ValueError: they do not.
    """
    n_tokens = len(record.tokens)
    fits = record.losses.ndim == 1 and len(record.token_ids) == n_tokens
    for moment in record.moments:
        heads = moment.patterns.shape[:2]  # L, H
        fits &= moment.patterns.shape == (*heads, n_tokens, n_tokens) and 0 not in heads
        fits &= moment.roles.shape == (len(WATCHED_ROLES), *heads)
    steps = [moment.step for moment in record.moments]
    if not fits or steps != sorted(set(steps)):
        raise ValueError("the record's parts do not fit each other.")


def _moment(facts: dict[str, Any], roles: Floats, patterns: Floats) -> Moment:
    first, second = facts["repeat_loss"]
    return Moment(
        step=int(facts["step"]),
        tokens=int(facts["tokens"]),
        held_out=HeldOutLoss(
            per_token=float(facts["per_token"]), per_character=float(facts["per_character"])
        ),
        roles=roles,
        patterns=patterns,
        repeat_loss=(float(first), float(second)),
        sample=str(facts["sample"]),
    )
