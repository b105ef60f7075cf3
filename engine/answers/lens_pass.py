"""Reads the logit lens, position by position in any order, from what the pass recorded."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.answers.lens import Lens
from engine.answers.recorded_rows import RecordedRows
from engine.cancelling import Cancelled, give_up_if, never
from engine.conditions import Conditions
from engine.logit_rows import N_TOGETHER, log_sums, ranks, top
from engine.model import Transformer
from engine.session import Session

# Logits worked out before they are shown: a moment's work, 50 MB.
_NUMBERS = 12 << 20


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
    def read(self, around: int, cancelled: Cancelled = never, *, only_some: bool = False) -> None:
        """Read positions, the one that is asked for first and then those next to it.

        With `only_some`, no more are read than are worked out together: that one alone at first,
        for somebody waits for it, and a moment's work then.

        Raises:
            CancelledError: `cancelled` said so; what was read till then is kept.
        """
        recorded = RecordedRows(self._model, self._session, self._conditions)
        for rows in self._unread(around):
            for few, answers in self._read(recorded, rows, cancelled):
                for name, answer in answers.items():
                    self._arrays[name][..., few] = answer.cpu().numpy()
                self._arrays["known"][few] = True
            if only_some:
                return

    def _unread(self, around: int) -> Iterator[slice]:
        """Positions that are not known yet: one alone, and then neighbours together."""
        config, known = self._model.config, self._arrays["known"]
        most = max(1, _NUMBERS // ((config.n_layer + 1) * config.vocab_size))
        size = most if len(self) <= most or known[around] else 1
        while len(unread := np.flatnonzero(~known)):
            start = int(unread[np.abs(unread - around).argmin()])
            end = start + 1
            while end - start < size:
                if end < len(self) and not known[end]:
                    end += 1
                elif start > 0 and not known[start - 1]:
                    start -= 1
                else:
                    break
            yield slice(start, end)
            size = most

    def _read(
        self, recorded: RecordedRows, rows: slice, cancelled: Cancelled
    ) -> Iterator[tuple[slice, dict[str, Tensor]]]:
        """The answers at some positions, a few of them at a time, at all depths."""
        *depths, end = (self._model.final_norm(x) for x in recorded.residuals(rows, cancelled))
        shown = [self._session.hidden(at) for at in range(rows.start, rows.stop)]
        hidden = torch.stack((*depths, torch.from_numpy(np.stack(shown)).to(end), end))
        target = torch.from_numpy(self._arrays["target"][rows].copy()).to(end.device)
        step = max(1, N_TOGETHER // len(hidden))
        for at in range(0, len(target), step):
            give_up_if(cancelled)
            few = slice(at, at + step)
            here = slice(rows.start + at, min(rows.start + at + step, rows.stop))
            yield here, self._answers(hidden[:, few], target[few])

    def _answers(self, hidden: Tensor, target: Tensor) -> dict[str, Tensor]:
        """What is read off hidden states [L+2, T, C] about T targets, by depth.

        They are those of all depths but the last, of the pass, and of the last. What the model put
        out is the pass; what the residuals end in is only compared with it.
        """
        is_waited_for = len(target) == 1  # one position alone: the one that was asked for
        parts = hidden.tensor_split(2) if is_waited_for and _is_core_idle(hidden) else (hidden,)
        with ThreadPoolExecutor(1) as elsewhere:
            others = [elsewhere.submit(self._read_off, part, target) for part in parts[:-1]]
            last, differences = self._read_off(parts[-1], target)
            read = [*(other.result()[0] for other in others), last]
        answers = {name: torch.cat([part[name] for part in read])[:-1] for name in last}
        return {**answers, "differences": differences}

    @torch.inference_mode()  # of each thread its own
    def _read_off(self, hidden: Tensor, target: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        """The answers of some depths [D, T], and how far apart the last two's logits are [T]."""
        logits = self._model.logits(hidden)  # [D, T, V]
        rows, targets = logits.flatten(0, 1), target.repeat(len(hidden))[:, None]
        best, chosen = top(rows)[:, None].to(rows.device), rows.gather(-1, targets)
        total = log_sums(rows)
        answers = {
            "top": best,
            "top_probability": (rows.gather(-1, best) - total).exp(),
            "target_probability": (chosen - total).exp(),
            "target_rank": ranks(rows, chosen),
        }
        by_depth = {name: answer.view(len(hidden), -1) for name, answer in answers.items()}
        return by_depth, (logits[-1] - logits[-2]).abs().amax(dim=-1)


def _is_core_idle(hidden: Tensor) -> bool:
    """Whether torch leaves a core to the window, which only waits for what is read here."""
    return hidden.device.type == "cpu" and torch.get_num_threads() == 1 < (os.cpu_count() or 1)
