"""Opens the small models of an experiment and lets all of them read one text."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from engine.attention import Recorder
from engine.cancelling import Cancelled, never
from engine.checkpoints.folder import Checkpoint, load_checkpoint
from engine.conditions import Conditions, Mask
from engine.config import ModelConfig
from engine.errors import EngineError
from engine.experiments.records import (
    MASKS,
    Change,
    Floats,
    LeakTrials,
    SchemeReading,
    SchemeReadings,
    Trial,
)
from engine.experiments.shuffling import shuffled_words
from engine.model import Transformer
from engine.run import Run
from engine.sampling import Sampling, draw, softmax, stages
from engine.session import Session
from engine.tokenizers import Tokenizer

_WRITTEN = 40  # tokens that a continuation has


class SmallModels:
    """Models of one experiment, opened once; they share a vocabulary and a context.

    Raises:
        CheckpointError: a folder holds no model that can be read.
        EngineError: the models do not belong together.
    """

    def __init__(self, folders: Sequence[Path]) -> None:
        checkpoints = [load_checkpoint(folder) for folder in folders]
        for folder, checkpoint in zip(folders, checkpoints, strict=True):
            _check_alike(folder, checkpoint, checkpoints[0])
        self._checkpoints = checkpoints
        self.tokenizer: Tokenizer = checkpoints[0].tokenizer
        self.config: ModelConfig = checkpoints[0].model.config
        self.trained_length = int(checkpoints[0].facts["settings"]["seq_len"])

    def leak(self, text: str, cancelled: Cancelled = never) -> LeakTrials:
        """Every model under the causal mask and under none.

        Raises:
            CancelledError: `cancelled` said so between two passes.
        """
        token_ids, n_left_out = self._fitting(text, 0)
        trials = tuple(
            _trial(checkpoint, token_ids, mask, self.tokenizer, cancelled)
            for checkpoint in self._checkpoints
            for mask in MASKS
        )
        return LeakTrials(self._bytes(token_ids), n_left_out, trials)

    def schemes(
        self, text: str, change: Change, layer: int, head: int, cancelled: Cancelled = never
    ) -> SchemeReadings:
        """Every model on the text as it is and on the changed one.

        Raises:
            EngineError: the text is moved beyond the context.
            CancelledError: `cancelled` said so between two passes.
        """
        token_ids, n_left_out = self._fitting(text, change.shift)
        order = shuffled_words(self._bytes(token_ids), change.shuffle_seed)
        changed = [token_ids[index] for index in order]
        readings = tuple(
            _scheme(checkpoint.model, (token_ids, changed), change, (layer, head), cancelled)
            for checkpoint in self._checkpoints
        )
        return SchemeReadings(
            tokens=self._bytes(token_ids),
            changed_tokens=self._bytes(changed),
            n_left_out=n_left_out,
            change=change,
            trained_length=self.trained_length,
            readings=readings,
        )

    def _fitting(self, text: str, shift: int) -> tuple[list[int], int]:
        """The end of the text that fits, and how many tokens are left out before it."""
        room = self.config.max_seq_len - shift
        if room < 1:
            raise EngineError(
                f"A text cannot begin at position {shift}: these models see "
                f"{self.config.max_seq_len} positions, the last being "
                f"{self.config.max_seq_len - 1}."
            )
        token_ids = self.tokenizer.encode(text)
        n_left_out = max(0, len(token_ids) - room)
        return token_ids[n_left_out:], n_left_out

    def _bytes(self, token_ids: Sequence[int]) -> tuple[bytes, ...]:
        return tuple(map(self.tokenizer.token_bytes, token_ids))


def _check_alike(folder: Path, checkpoint: Checkpoint, first: Checkpoint) -> None:
    def size(each: Checkpoint) -> tuple[int, int, int, int]:
        config = each.model.config
        return config.vocab_size, config.n_layer, config.n_head, config.max_seq_len

    if size(checkpoint) != size(first):
        raise EngineError(
            f"{folder} does not belong to this experiment: it has the sizes {size(checkpoint)} "
            f"(tokens, layers, heads, context), the first model has {size(first)}."
        )


def _trial(
    checkpoint: Checkpoint,
    token_ids: list[int],
    mask: Mask,
    tokenizer: Tokenizer,
    cancelled: Cancelled,
) -> Trial:
    run = Run(checkpoint.model)
    run.set_conditions(Conditions(mask=mask))
    session = run.read(token_ids, cancelled)
    head, pattern = _reader(run, session)
    return Trial(
        trained_mask=checkpoint.facts["settings"].get("mask", "causal"),
        mask=mask,
        loss=session.loss,
        head=head,
        pattern=pattern,
        continuation=tokenizer.decode(list(_written(run, token_ids, cancelled))),
    )


def _reader(run: Run, session: Session) -> tuple[tuple[int, int], Floats]:
    """The layer and head that look most at the next position, and its pattern."""
    n_tokens = len(session)
    best, most, chosen = (0, 0), -1.0, np.zeros((n_tokens, n_tokens), np.float32)
    for layer in range(run.config.n_layer):
        for head in range(run.config.n_head):
            pattern = run.pattern(session, layer, head)
            weight = float(np.diagonal(pattern, offset=1).sum())
            if weight > most:
                best, most, chosen = (layer, head), weight, pattern
    return best, chosen


def _written(run: Run, token_ids: list[int], cancelled: Cancelled) -> Iterator[int]:
    """What the model goes on with, drawn like the main window's first sampling."""
    sampling, known = Sampling(), list(token_ids)
    while known and len(known) < min(len(token_ids) + _WRITTEN, run.config.max_seq_len):
        session = run.read(known, cancelled)
        probs = stages(run.logits(session, len(known) - 1), sampling).probs
        known.append(draw(probs, sampling.seed, len(known)))
        yield known[-1]


class _PassRecorder(Recorder):
    """Owns what one pass shows of a text: one head's weights, and the last row at every depth."""

    def __init__(self, head: tuple[int, int], n_tokens: int) -> None:
        self._layer, self._head = head
        self.pattern = torch.zeros(n_tokens, n_tokens)
        self.residuals: list[Tensor] = []

    def keep_weights(self, layer: int, rows: slice, weights: Tensor) -> None:
        """Keep the head's rows of the weights [H, rows, keys]."""
        if layer == self._layer:
            self.pattern[rows, : weights.shape[-1]] = weights[self._head]

    def keep_residual(self, depth: int, residual: Tensor) -> None:
        """Keep one row [C] of [T, C]."""
        assert depth == len(self.residuals)  # noqa: S101 - the model tells every depth in turn
        self.residuals.append(residual[-1].clone())


@dataclass(frozen=True, eq=False)
class _Pass:
    """What one pass of a model makes of a text."""

    loss: Floats  # nats of each token [T], NaN at the first
    pattern: Floats  # of one head [T, T]
    residuals: NDArray[np.float64]  # the last position's [L + 1, C]
    probs: NDArray[np.floating]  # of the next token [V]


def _scheme(
    model: Transformer,
    texts: tuple[list[int], list[int]],
    change: Change,
    head: tuple[int, int],
    cancelled: Cancelled,
) -> SchemeReading:
    plain, changed = texts
    before = after = _read(model, plain, Conditions(), head, cancelled)
    if changed != plain or change.shift:
        moved_on = Conditions(first_position=change.shift)
        after = _read(model, changed, moved_on, head, cancelled)
    lengths = np.linalg.norm(before.residuals, axis=-1)
    moved = np.linalg.norm(after.residuals - before.residuals, axis=-1) / lengths
    difference = np.abs(after.probs - before.probs)
    return SchemeReading(
        positions=model.config.positions,
        loss=before.loss,
        changed_loss=after.loss,
        pattern=before.pattern,
        changed_pattern=after.pattern,
        moved=moved.astype(np.float32),
        probability_change=float(difference.max()) if difference.size else 0.0,
    )


@torch.inference_mode()
def _read(
    model: Transformer,
    token_ids: list[int],
    conditions: Conditions,
    head: tuple[int, int],
    cancelled: Cancelled,
) -> _Pass:
    """One pass over a text, which may be empty.

    Raises:
        CancelledError: `cancelled` said so between two layers.
    """
    n_tokens = len(token_ids)
    if not n_tokens:
        none = np.zeros(0, np.float32)
        return _Pass(none, none.reshape(0, 0), np.zeros((0, model.config.d_model)), none)
    wanted = torch.tensor(token_ids)
    record = _PassRecorder(head, n_tokens)
    logits = model.logits(model.hidden(wanted, None, conditions, record, cancelled))  # [T, V]
    loss = torch.full((n_tokens,), torch.nan)
    loss[1:] = F.cross_entropy(logits[:-1], wanted[1:], reduction="none")
    return _Pass(
        loss=loss.numpy(),
        pattern=record.pattern.numpy(),
        residuals=torch.stack(record.residuals).double().numpy(),
        probs=softmax(logits[-1].numpy()),
    )
