"""Runs a text again with other heads on or off: all on, or one head off after the other.

A head of layer l changes nothing below it, so each run begins with the residual before layer l,
which is worked out once a layer. Blocks, norms and output are the model's own: what comes out is
what the model makes of the text under those conditions, to the bit.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.answers.ablation import Effects, Head, Intact, Outcome, divergence, log_probabilities
from engine.cancelling import Cancelled, give_up_if, never
from engine.conditions import Conditions, OffBy
from engine.logit_rows import token_losses
from engine.model import Transformer
from engine.recorder import frozen
from engine.session import Session

Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class IntactText:
    """A text as it was read with all heads on: whatever a question about it needs."""

    conditions: Conditions
    token_ids: NDArray[np.int64]  # [S]
    loss: Floats  # [S]
    hidden: Floats  # [S, C], after the final norm

    @classmethod
    def of(cls, session: Session, conditions: Conditions) -> "IntactText":
        """From a session that was read under conditions with all heads on."""
        hidden = np.concatenate([trace.hidden for trace in session.traces])
        return cls(conditions, session.token_ids, session.loss, hidden)

    def holds(self, session: Session, conditions: Conditions) -> bool:
        """Whether this tells of a session's tokens under conditions with all heads on."""
        n_tokens, n_known = len(session), len(self.token_ids)
        if conditions != self.conditions or n_tokens > n_known:
            return False
        if n_tokens < n_known and not conditions.append_only:
            return False
        return bool((self.token_ids[:n_tokens] == session.token_ids).all())


@torch.inference_mode()
def read_intact(
    model: Transformer, session: Session, conditions: Conditions, cancelled: Cancelled = never
) -> IntactText:
    """Run a session's tokens under conditions with all heads on, in one pass.

    Raises:
        CancelledError: `cancelled` said so between two layers.
    """
    token_ids = torch.from_numpy(session.token_ids.copy())
    hidden = model.hidden(token_ids, None, conditions, None, cancelled)
    loss = token_losses(model, hidden, token_ids, cancelled)
    return IntactText(conditions, session.token_ids, frozen(loss), frozen(hidden))


@torch.inference_mode()
def intact_at(model: Transformer, text: IntactText, n_tokens: int, position: int) -> Intact:
    """What is told of the first tokens of a text with all heads on, and of one position."""
    logits = _logits_at(model, torch.tensor(text.hidden[position : position + 1]), 0)
    return Intact(position, text.loss[:n_tokens], np.asarray(frozen(logits)))


class EffectSweep:
    """Owns the residual before the layer whose heads are in turn; each `step` measures one head."""

    @torch.inference_mode()
    def __init__(
        self,
        model: Transformer,
        session: Session,
        position: int,
        token_id: int,
        conditions: Conditions,
        off_by: OffBy,
    ) -> None:
        """The session is one with tokens, read under `conditions`.

        A head is replaced as `off_by` says; where some are off already, as those are.
        """
        self._model, self._conditions = model, conditions
        self._position, self._token_id = position, token_id
        self._off_by: OffBy = conditions.off_by if conditions.heads_off else off_by
        self._token_ids = torch.from_numpy(session.token_ids.copy())
        config = model.config
        every = ((layer, head) for layer in range(config.n_layer) for head in range(config.n_head))
        self._heads: list[Head] = [at for at in every if at not in conditions.heads_off]
        self._rotations = model.rotations(0, len(self._token_ids), conditions)
        self._layer = 0
        self._residual = model.embed(self._token_ids.to(model.device), 0, conditions)  # [S, C]
        self._logs: NDArray[np.float64] | None = None  # of the shown distribution [V]
        self._shown: Outcome | None = None
        self._outcomes: dict[Head, Outcome] = {}

    @torch.inference_mode()
    def step(self, cancelled: Cancelled = never) -> Effects:
        """Measure one more head, at first the text as it is shown; returns all that is known.

        Raises:
            CancelledError: `cancelled` said so between two layers; the next step tries again.
        """
        if self._shown is None:
            self._shown = self._outcome(self._run(self._conditions, cancelled))
        elif len(self._outcomes) < len(self._heads):
            head = self._heads[len(self._outcomes)]
            while self._layer < head[0]:
                self._residual = self._block(
                    self._residual, self._layer, self._conditions, cancelled
                )
                self._layer += 1
            heads_off = self._conditions.heads_off | {head}
            without = replace(self._conditions, heads_off=heads_off, off_by=self._off_by)
            self._outcomes[head] = self._outcome(self._run(without, cancelled))
        return self._effects(self._shown)

    def _block(self, x: Tensor, layer: int, conditions: Conditions, cancelled: Cancelled) -> Tensor:
        """The residual [S, C] one layer further."""
        give_up_if(cancelled)
        scoring = self._model.scoring(layer, conditions)
        block = self._model.blocks[layer]
        return torch.as_tensor(block(x, scoring, self._rotations[layer], None, None))

    def _run(self, conditions: Conditions, cancelled: Cancelled) -> Tensor:
        """The final hidden states [S, C] from the kept residual on."""
        x = self._residual
        for layer in range(self._layer, self._model.config.n_layer):
            x = self._block(x, layer, conditions, cancelled)
        return torch.as_tensor(self._model.final_norm(x))

    def _outcome(self, hidden: Tensor) -> Outcome:
        logits = frozen(_logits_at(self._model, hidden, self._position))
        logs = log_probabilities(logits)
        if self._logs is None:
            self._logs = logs
        losses = frozen(token_losses(self._model, hidden, self._token_ids)[1:]).astype(np.float64)
        return Outcome(
            loss=float(losses.mean()) if len(losses) else float("nan"),
            divergence=divergence(self._logs, logs),
            logit=float(logits[self._token_id]),
            probability=float(np.exp(logs[self._token_id])),
            top=int(logits.argmax()),
        )

    def _effects(self, shown: Outcome) -> Effects:
        shape = self._model.config.n_layer, self._model.config.n_head
        loss, divergences, logit, probability = np.full((4, *shape), np.nan)
        top = np.full(shape, -1, np.int64)
        for head, outcome in self._outcomes.items():
            loss[head], divergences[head] = outcome.loss, outcome.divergence
            logit[head], probability[head] = outcome.logit, outcome.probability
            top[head] = outcome.top
        for array in (loss, divergences, logit, probability, top):
            array.setflags(write=False)
        return Effects(
            position=self._position,
            token_id=self._token_id,
            off_by=self._off_by,
            shown=shown,
            n_heads=len(self._heads),
            loss=loss,
            divergence=divergences,
            logit=logit,
            probability=probability,
            top=top,
        )


def _logits_at(model: Transformer, hidden: Tensor, position: int) -> Tensor:
    """The scores of every token for what follows a position [V]."""
    return model.logits(hidden[position : position + 1])[0]
