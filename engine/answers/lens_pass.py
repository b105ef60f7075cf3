"""Reads the logit lens, position by position in any order, from what the pass recorded."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.answers.lens import Lens
from engine.answers.recorded_rows import RecordedRows
from engine.cancelling import Cancelled, give_up_if, never
from engine.conditions import Conditions
from engine.logit_rows import ranks, top
from engine.model import Transformer
from engine.session import Session

# Logits worked out between two looks at whether that is enough: a moment's work, 50 MB.
_NUMBERS = 12 << 20
# Rows of logits worked out together: the weights are read once for them.
_ROWS = 64

Enough = Callable[[], bool]


class LensReader:
    """Owns the answers about a session that a model has read; `read` fills them in."""

    def __init__(
        self,
        model: Transformer,
        session: Session,
        conditions: Conditions,
        last_target: int,
        *,
        follows: bool,
    ) -> None:
        """Of the last position `last_target` is followed: what stands next, if it `follows`."""
        self._model, self._session, self._conditions = model, session, conditions
        n_tokens, n_depths = len(session), model.config.n_layer + 1
        self._arrays: dict[str, NDArray[Any]] = {
            "known": np.zeros(n_tokens, np.bool_),
            "top": np.zeros((n_depths, n_tokens), np.int64),
            "top_probability": np.full((n_depths, n_tokens), np.nan, np.float32),
            "target": np.append(session.token_ids[1:], last_target),
            "follows": np.append(np.ones(n_tokens - 1, np.bool_), follows),
            "target_probability": np.full((n_depths, n_tokens), np.nan, np.float32),
            "target_rank": np.zeros((n_depths, n_tokens), np.int64),
            "differences": np.zeros(n_tokens, np.float32),
        }

    def __len__(self) -> int:
        """At how many positions there are answers to be read."""
        return len(self._session)

    def n_common(self, session: Session, next_id: int | None) -> int:
        """At how many positions these are the answers about another session too.

        Only where a text's rows are those of every longer one, as `Conditions.append_only` says,
        can that be some of them.
        """
        ours, theirs = self._session.token_ids, session.token_ids
        shorter = min(len(ours), len(theirs))
        differs = np.flatnonzero(ours[:shorter] != theirs[:shorter])
        n_common = int(differs[0]) if len(differs) else shorter
        target, follows = self._arrays["target"], self._arrays["follows"]
        if n_common:
            wanted = int(theirs[n_common]) if n_common < len(theirs) else next_id
            followed = int(target[n_common - 1]) if follows[n_common - 1] else None
            n_common -= wanted != followed
        is_same = n_common == len(ours) == len(theirs)
        return n_common if is_same or self._conditions.append_only else 0

    def knows(self, n_tokens: int) -> bool:
        """Whether the first so many positions have been read."""
        return bool(self._arrays["known"][:n_tokens].all())

    def take(self, other: "LensReader", n_tokens: int) -> None:
        """Take up what another one knows of the first positions."""
        for name, array in self._arrays.items():
            array[..., :n_tokens] = other._arrays[name][..., :n_tokens]  # noqa: SLF001

    def lens(self, n_tokens: int) -> Lens:
        """What is known of the first so many positions; nothing of it changes any more."""
        first = {name: array[..., :n_tokens].copy() for name, array in self._arrays.items()}
        for array in first.values():
            array.setflags(write=False)
        return Lens(**first, has_final_norm=self._model.config.norm_placement != "post")

    @torch.inference_mode()
    def read(self, around: int, enough: Enough = never, cancelled: Cancelled = never) -> None:
        """Read positions, the one that is asked for first and then those next to it.

        It ends with all of them, or sooner when what was read is `enough`.

        Raises:
            CancelledError: `cancelled` said so; what was read till then is kept.
        """
        recorded = RecordedRows(self._model, self._session, self._conditions)
        for rows in self._unread(around):
            for few, answers in self._read(recorded, rows, cancelled):
                for name, answer in answers.items():
                    self._arrays[name][..., few] = answer.cpu().numpy()
                self._arrays["known"][few] = True
            if enough():
                return

    def _unread(self, around: int) -> Iterator[slice]:
        """Positions that are not known yet: one alone, and then neighbours together."""
        config, known = self._model.config, self._arrays["known"]
        most = max(1, _NUMBERS // ((config.n_layer + 1) * config.vocab_size))
        size = most if len(self) <= most else 1
        while len(unread := np.flatnonzero(~known)):
            nearest = int(unread[np.abs(unread - around).argmin()])
            step = 1 if nearest >= around else -1
            end = nearest + step
            while abs(end - nearest) < size and 0 <= end < len(self) and not known[end]:
                end += step
            yield slice(nearest, end) if step == 1 else slice(end + 1, nearest + 1)
            size = most

    def _read(
        self, recorded: RecordedRows, rows: slice, cancelled: Cancelled
    ) -> Iterator[tuple[slice, dict[str, Tensor]]]:
        """The answers at some positions, a few of them at a time, at all depths."""
        *depths, end = (self._model.final_norm(x) for x in recorded.residuals(rows, cancelled))
        shown = [self._session.hidden(at) for at in range(rows.start, rows.stop)]
        hidden = torch.stack((*depths, torch.from_numpy(np.stack(shown)).to(end), end))
        target = torch.from_numpy(self._arrays["target"][rows].copy()).to(end.device)
        step = max(1, _ROWS // len(hidden))
        for at in range(0, len(target), step):
            give_up_if(cancelled)
            few = slice(at, at + step)
            logits = self._model.logits(hidden[:, few])  # [L+2, few, V]
            here = slice(rows.start + at, min(rows.start + at + step, rows.stop))
            yield here, _answers(logits, target[few])


def _answers(logits: Tensor, target: Tensor) -> dict[str, Tensor]:
    """What is read off the logits [L+2, T, V] of all depths but the last, the pass, and the last.

    What the model put out is the last depth; what the residuals end in is only compared with it.
    """
    read, end = logits[:-1], logits[-1]
    rows, targets = read.flatten(0, 1), target.repeat(len(read))[:, None]
    best, chosen = top(rows)[:, None].to(rows.device), rows.gather(-1, targets)
    total = rows.logsumexp(dim=-1, keepdim=True)
    answers = {
        "top": best,
        "top_probability": (rows.gather(-1, best) - total).exp(),
        "target_probability": (chosen - total).exp(),
        "target_rank": ranks(rows, chosen),
    }
    by_depth = {name: answer.view(len(read), -1) for name, answer in answers.items()}
    return {**by_depth, "differences": (end - read[-1]).abs().amax(dim=-1)}
