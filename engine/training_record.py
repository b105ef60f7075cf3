"""What a training looked like from step to step, to be drawn while it runs or long after.

A `Moment` is one look at the model between two steps: the losses, where every head looks on one
short text, how much of two roles each head has there, and what the model writes. The watched
text is a passage of the held-out text and the same passage again, so that copying can be seen.
"""

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from engine.checkpoints.folder import read_tensors, write_tensors
from engine.conditions import Conditions
from engine.errors import CheckpointError, TrainingError
from engine.model import Transformer
from engine.readouts import Role, head_roles
from engine.run import Run
from engine.sampling import Sampling, draw, stages
from engine.tokenizers import Tokenizer
from engine.trainer import HeldOutLoss, Progress
from engine.training_data import IntArray

Floats = NDArray[np.float32]

RECORD_FILE = "record.safetensors"
WATCHED_ROLES: tuple[Role, ...] = ("previous token", "induction")

_PASSAGE = 16  # tokens, and the same again: short enough to be kept for every moment
_BEGINNING = 8  # tokens that a sample goes on from
_SAMPLE = 48  # tokens that it goes on with
_SAMPLING = Sampling(temperature=0.8, seed=1)


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

    def with_step(self, progress: Progress) -> "TrainingRecord":
        """The record one step longer."""
        return replace(self, losses=np.append(self.losses, np.float32(progress.loss)))

    def with_moment(self, moment: Moment) -> "TrainingRecord":
        """The record with one more look."""
        return replace(self, moments=(*self.moments, moment))

    def until(self, step: int) -> "TrainingRecord":
        """What was known after so many steps, for a training that goes on from there."""
        moments = tuple(moment for moment in self.moments if moment.step <= step)
        return replace(self, losses=self.losses[:step], moments=moments)


class Watcher:
    """Looks at a model in training; owns a copy of its weights, so that the original is not felt.

    Raises:
        TrainingError: the held-out text or the context is too short to be watched.
    """

    def __init__(self, model: Transformer, held_out: IntArray, tokenizer: Tokenizer) -> None:
        passage = min(_PASSAGE, model.config.max_seq_len // 2, len(held_out))
        if passage < 2:
            raise TrainingError("the context is too short to watch a passage that comes twice.")
        middle = (len(held_out) - passage) // 2
        watched = held_out[middle : middle + passage].tolist()
        self.token_ids = (*watched, *watched)
        self._beginning = held_out[:_BEGINNING].tolist()
        self._tokenizer = tokenizer
        self._model = Transformer(model.config)

    def new_record(self) -> TrainingRecord:
        """A record of nothing yet."""
        tokens = tuple(map(self._tokenizer.token_bytes, self.token_ids))
        return TrainingRecord(self.token_ids, tokens)

    def look(
        self, model: Transformer, step: int, tokens: int, held_out: HeldOutLoss, mask: Conditions
    ) -> Moment:
        """One moment of the training, under the mask that the model is trained with."""
        self._model.load_state_dict(model.state_dict())
        run = Run(self._model)
        run.set_conditions(mask)
        session = run.read(self.token_ids)
        config = self._model.config
        patterns = [
            [run.pattern(session, layer, head) for head in range(config.n_head)]
            for layer in range(config.n_layer)
        ]
        roles = head_roles(session)
        half = len(self.token_ids) // 2
        return Moment(
            step=step,
            tokens=tokens,
            held_out=held_out,
            roles=np.stack([roles.scores[role] for role in WATCHED_ROLES]),
            patterns=np.array(patterns, dtype=np.float32),
            # The passage's first token has nothing in front of it the first time.
            repeat_loss=(
                float(session.loss[1:half].mean()),
                float(session.loss[half + 1 :].mean()),
            ),
            sample=self._sample(run),
        )

    def _sample(self, run: Run) -> str:
        token_ids = list(self._beginning)
        for position in range(len(token_ids), run.config.max_seq_len)[:_SAMPLE]:
            session = run.read(token_ids)
            probs = stages(run.logits(session, position - 1), _SAMPLING).probs
            token_ids.append(draw(probs, _SAMPLING.seed, position))
        return self._tokenizer.decode(token_ids)


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
    tensors = {"losses": torch.from_numpy(record.losses.copy())}
    if moments:
        roles = np.stack([moment.roles for moment in moments])
        patterns = np.stack([moment.patterns for moment in moments])
        tensors["roles"] = torch.from_numpy(roles)
        tensors["patterns"] = torch.from_numpy(patterns).to(torch.float16)
    try:
        write_tensors(path, tensors, {"record": json.dumps(facts)})
    except OSError as error:
        raise TrainingError(f"{path} cannot be written: {error.strerror}.") from error


def load_record(path: Path) -> TrainingRecord:
    """What `save_record` wrote; patterns were kept in float16.

    Raises:
        TrainingError: the file is missing, damaged, or no record of a training.
    """
    try:
        with safe_open(path, framework="pt") as file:
            facts = json.loads((file.metadata() or {})["record"])
        tensors = {name: tensor.numpy() for name, tensor in read_tensors(path).items()}
        moments = tuple(
            _moment(each, tensors["roles"][index], tensors["patterns"][index])
            for index, each in enumerate(facts["moments"])
        )
        tokens = tuple(bytes.fromhex(token) for token in facts["tokens"])
        return TrainingRecord(tuple(facts["token_ids"]), tokens, tensors["losses"], moments)
    except FileNotFoundError:
        raise TrainingError(f"{path} does not exist; nothing was recorded there.") from None
    except (CheckpointError, SafetensorError, OSError, ValueError, TypeError, LookupError) as error:
        raise TrainingError(f"{path} is no record of a training, or damaged.") from error


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
