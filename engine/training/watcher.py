"""Looks at a model in training, without being felt by it."""

import numpy as np

from engine.conditions import Conditions
from engine.errors import TrainingError
from engine.model import Transformer
from engine.readouts import head_roles
from engine.run import Run
from engine.sampling import Sampling, draw, stages
from engine.tokenizers import Tokenizer
from engine.training.data import IntArray
from engine.training.record import WATCHED_ROLES, HeldOutLoss, Moment, TrainingRecord

_PASSAGE = 16  # tokens, and the same again: short enough to be kept for every moment
_BEGINNING = 8  # tokens that a sample goes on from
_SAMPLE = 48  # tokens that it goes on with
_SAMPLING = Sampling(temperature=0.8, seed=1)


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
