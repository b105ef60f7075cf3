"""The live machine: a model, its KV cache and the conditions, reading one text."""

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.answers.ablation import Intact
from engine.answers.ablation_pass import EffectSweep, IntactText, intact_at, read_intact
from engine.answers.cell import HeadWeights
from engine.answers.lens import Lens
from engine.answers.lens_pass import LensReader
from engine.answers.recorded_heads import mix_instead, weight_blocks
from engine.answers.residual import Attribution, Stream, attribute
from engine.answers.residual_pass import read_stream
from engine.attention import attention_weights, query_blocks
from engine.cancelling import Cancelled, never
from engine.clock import clock_of
from engine.conditions import Conditions, OffBy
from engine.errors import ContextFullError, EngineError
from engine.growing import Growing
from engine.kv_cache import KVCache
from engine.logit_rows import N_TOGETHER, log_sums, ranks
from engine.model import CAUSAL, Transformer
from engine.reading import CacheCheck, PassStats, Reason
from engine.recorder import PassRecorder, condense, frozen
from engine.session import Session
from engine.sliding_cache import new_cache
from engine.thumbnails import ThumbnailMaker, Thumbnails
from engine.trace import Trace

Floats = NDArray[np.float32]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Pieces:
    """How a text is read where the cache goes on growing: in passes of no more than so many rows.

    The first of them has `first_rows`, where that leaves as many for others. `so_far` hears after
    each pass but the last what has been read, and what that has cost.
    """

    most_rows: int = 0  # 0: of any number
    first_rows: int = 0  # 0: as the others
    so_far: Callable[[Session, PassStats], None] = lambda _session, _stats: None

    def ends(self, start: int, end: int) -> list[int]:
        """Where passes end that compute the rows from `start` to `end`."""
        first = start + self.first_rows
        if self.first_rows and first + self.first_rows <= end:
            return [first, *_ends(first, end, self.most_rows)]
        return _ends(start, end, self.most_rows)


WHOLE = Pieces()

# Rows of logits that are remembered: the text's, and what an edit or a step back may leave of it.
_LOGITS_KEPT = 4


class Run:
    """Owns the KV cache and the session; every change of the text goes through `read`."""

    def __init__(self, model: Transformer) -> None:
        self.model = model.eval().requires_grad_(requires_grad=False)
        self.config = model.config
        self.conditions = Conditions()
        self.use_cache = True
        self.session = Session()
        self.stats: Growing[PassStats] = Growing()
        self._now = clock_of(model.device)
        self._kv_cache = new_cache(self.config, model.device)
        self._thumbnails = ThumbnailMaker(self._recondense)
        self._past: tuple[int, Session] | None = None  # a shorter text, mask off
        self._lens: LensReader | None = None  # the latest
        self._stream: tuple[Session, Stream] | None = None  # the latest
        self._logits: dict[tuple[Trace, int], Floats] = {}  # the latest few; shared by runs beside
        self._intact: IntactText | None = None  # the latest text that all heads have read

    def beside(self) -> "Run":
        """Another run of the same model that has read the same text, and goes its own way."""
        other = copy(self)
        other._part()  # noqa: SLF001
        return other

    def _part(self) -> None:
        """Own alone what changes in place."""
        self._kv_cache = self._kv_cache.copy()
        self._thumbnails = self._thumbnails.beside(self._recondense)
        self._lens = None

    def set_conditions(self, conditions: Conditions) -> None:
        """Change what passes run under; if that differs, everything read so far is void.

        Raises:
            EngineError: a head is to be off that the model does not have.
        """
        n_layer, n_head = self.config.n_layer, self.config.n_head
        for layer, head in conditions.heads_off:
            if not (0 <= layer < n_layer and 0 <= head < n_head):
                raise EngineError(
                    f"there is no head {head} in a layer {layer} to be switched off; this model "
                    f"has {n_layer} layers of {n_head} heads, counted from 0."
                )
        if conditions != self.conditions:
            if len(self.session) and not self.conditions.heads_off:
                self._intact = IntactText.of(self.session, self.conditions)
            before, self.conditions = self.conditions, conditions
            self._forget()
            if _mask_of(before) != _mask_of(conditions):  # which decides what the cache lets go
                self._kv_cache = new_cache(self.config, self.model.device, conditions=conditions)

    def set_cache(self, *, use: bool) -> None:
        """Switch the KV cache on or off; off, every pass computes all rows again."""
        if use != self.use_cache:
            self.use_cache = use
            self._forget()

    def _forget(self) -> None:
        self.session = Session()
        self._past = self._lens = self._stream = None
        self._kv_cache.rewind(0)

    def read(
        self,
        token_ids: Sequence[int],
        cancelled: Cancelled = never,
        pieces: Pieces = WHOLE,
    ) -> Session:
        """Make `token_ids` the text: keep the common prefix, compute the rest.

        Where the cache goes on growing, that is done in `pieces`. If a pass is given up, the run
        holds what it knew before, cut to the common prefix where that can be reused; whatever it
        holds is true of its own text.

        Raises:
            ContextFullError: there are more tokens than the context holds.
            EngineError: a token id lies outside the vocabulary.
            CancelledError: `cancelled` said so between two layers.
        """
        self._check(token_ids)
        wanted = torch.tensor(token_ids, dtype=torch.int64)
        n_common = self._n_common(wanted)
        if n_common == len(wanted) == len(self.session):
            return self.session
        self._past = None
        reuse = self.use_cache and self.conditions.append_only
        n_kept = n_common if reuse else 0
        reason = self._reason(n_common)
        if reuse:
            self.session = self.session.truncate(n_kept)
            self._kv_cache.rewind(n_kept, self.session.keys_and_values)
        seconds, start = 0.0, n_kept
        for end in (pieces if reuse else WHOLE).ends(n_kept, len(wanted)):
            trace = self._pass(wanted[:end], start, self._kv_cache if reuse else None, cancelled)
            self.session = self.session.append(trace)
            seconds, start = seconds + trace.seconds, end
            stats = self._stats(end, n_kept, seconds, reason)
            if end < len(wanted):
                pieces.so_far(self.session, stats)
        if n_kept == len(wanted):
            self.session = self.session.truncate(n_kept)
            stats = self._stats(n_kept, n_kept, seconds, reason)
        self.stats = self.stats.plus(stats)
        return self.session

    def _stats(self, n_tokens: int, n_kept: int, seconds: float, reason: Reason) -> PassStats:
        return PassStats(
            n_tokens=n_tokens,
            n_computed=n_tokens - n_kept,
            n_kept=n_kept,
            seconds=seconds,
            cache_bytes=self._kv_cache.used_bytes,
            cached=self.use_cache,
            reason=reason,
            window=self.conditions.window,
            sinks=self.conditions.sinks,
        )

    def _reason(self, n_common: int) -> Reason:
        if not self.conditions.append_only:
            return "mask off"
        if not self.use_cache:
            return "cache off"
        if not len(self.session):
            return "started"
        return "grown" if n_common == len(self.session) else "edited"

    def _check(self, token_ids: Sequence[int]) -> None:
        n_tokens, limit = len(token_ids), self.config.max_seq_len
        if n_tokens > limit:
            raise ContextFullError(
                f"{n_tokens} tokens do not fit into this model's context of {limit}; "
                "shorten the text."
            )
        if token_ids and not 0 <= min(token_ids) <= max(token_ids) < self.config.vocab_size:
            raise EngineError(
                f"the token ids {min(token_ids)} to {max(token_ids)} do not fit a vocabulary of "
                f"{self.config.vocab_size}; the tokenizer belongs to another model."
            )

    def _n_common(self, wanted: Tensor) -> int:
        known = torch.from_numpy(self.session.token_ids.copy()).to(torch.int64)
        shorter = min(len(known), len(wanted))
        differs = torch.nonzero(known[:shorter] != wanted[:shorter])
        return int(differs[0]) if len(differs) else shorter

    @torch.inference_mode()
    def _pass(
        self,
        token_ids: Tensor,
        start: int,
        kv_cache: KVCache | None,
        cancelled: Cancelled = never,
    ) -> Trace:
        """Compute the rows from `start` on; `token_ids` [S] are all tokens."""
        how = {} if kv_cache is None else {"places": kv_cache.places}
        recorder = PassRecorder(self.config, token_ids, start, self.conditions, **how)
        began = self._now()
        new_ids = token_ids[start:]
        hidden = self.model.hidden(new_ids, kv_cache, self.conditions, recorder, cancelled)
        seconds = self._now() - began
        loss, rank = self._loss(start, hidden, new_ids)
        cache_bytes = kv_cache.used_bytes if kv_cache is not None else 0
        return recorder.trace(hidden, loss, rank, seconds, cache_bytes)

    def _loss(self, start: int, hidden: Tensor, token_ids: Tensor) -> tuple[Tensor, Tensor]:
        """Cross-entropy in nats and rank of each token under the row before it [T].

        A text's first token has no row before it: NaN and −1.
        """
        loss = torch.full((len(token_ids),), torch.nan)
        rank = torch.full((len(token_ids),), -1, dtype=torch.int64)
        at = 0 if start else 1
        for logits in self._logits_before(start, hidden):
            rows = slice(at, at + len(logits))
            at += len(logits)
            target = token_ids[rows, None].to(logits.device)
            chosen = logits.gather(-1, target)
            loss[rows] = (log_sums(logits) - chosen)[:, 0]
            rank[rows] = ranks(logits, chosen)
        return loss, rank

    def _logits_before(self, start: int, hidden: Tensor) -> Iterator[Tensor]:
        """The rows of logits under which the new tokens stand, some [rows, V] after another."""
        if start:  # shown before, as a rule, and known since
            yield torch.tensor(self.logits(self.session, start - 1), device=hidden.device)[None]
        for first in range(0, len(hidden) - 1, N_TOGETHER):
            yield self.model.logits(hidden[:-1][first : first + N_TOGETHER])

    def at(self, n_tokens: int) -> Session:
        """The story as it was when the text had its first `n_tokens` tokens.

        With the mask off earlier rows were different then, so they are computed again.
        """
        if n_tokens >= len(self.session):
            return self.session
        if self.conditions.append_only:
            return self.session.truncate(n_tokens)
        if self._past is None or self._past[0] != n_tokens:
            session = Session()
            if n_tokens:
                token_ids = torch.from_numpy(self.session.token_ids[:n_tokens].copy())
                session = session.append(self._pass(token_ids, 0, None))
            self._past = (n_tokens, session)
        return self._past[1]

    def logits(self, session: Session, position: int) -> Floats:
        """The scores of every token for what follows `position` [V]."""
        place = session.place(position)
        if place not in self._logits:
            for oldest in list(self._logits)[: 1 - _LOGITS_KEPT]:
                self._logits.pop(oldest, None)
            self._logits[place] = self._new_logits(session, position)
        return self._logits[place]

    @torch.inference_mode()
    def _new_logits(self, session: Session, position: int) -> Floats:
        hidden = torch.tensor(session.hidden(position))
        return np.asarray(frozen(self.model.logits(hidden[None])[0]))

    def thumbnails(self, session: Session) -> Thumbnails:
        """All heads of a session of this run, small."""
        return self._thumbnails.make(session)

    @torch.inference_mode()
    def pattern(self, session: Session, layer: int, head: int) -> Floats:
        """One head's weights [S, S], by the function that the passes used, block by block."""
        n_tokens = len(session)
        scoring = self.model.scoring(layer, self.conditions)
        pattern = torch.zeros(n_tokens, n_tokens)
        if n_tokens:
            for rows, weights in weight_blocks(session, layer, head, scoring):
                pattern[rows, : weights.shape[-1]] = weights
        return np.asarray(frozen(pattern))

    def head_weights(self, layer: int, head: int, n_tokens: int) -> HeadWeights:
        """What the model itself holds of one head; whether it is in force is not asked."""
        columns = slice(head * self.config.head_dim, (head + 1) * self.config.head_dim)
        output = self.model.attention(layer).output.weight  # as it is in force
        scoring = self.model.scoring(layer, CAUSAL)
        placed = Conditions(first_position=self.conditions.first_position)
        rotary = self.model.rotations(0, n_tokens, placed)[layer]
        return HeadWeights(
            output=np.asarray(frozen(output[:, columns].to(torch.float32, copy=True))),
            scale=scoring.scale,
            cap=scoring.cap,
            slope=None if scoring.slopes is None else float(scoring.slopes[head]),
            rotary=None if rotary is None else np.asarray(frozen(rotary)),
        )

    @torch.inference_mode()
    def mix_instead(
        self, session: Session, layer: int, head: int, position: int, conditions: Conditions
    ) -> Floats | None:
        """What stands in place of a head's mix [D] at a position; None if the head is on.

        The session is one that was read under the conditions.
        """
        if head not in conditions.off_in(layer):
            return None
        scoring = self.model.scoring(layer, conditions)
        rows = slice(position, position + 1)
        return np.asarray(frozen(mix_instead(session, layer, head, rows, scoring)[0]))

    def visible(self, layer: int, n_tokens: int) -> Bools:
        """Which keys (columns) each query (row) of a layer may see [S, S]."""
        position = np.arange(n_tokens)
        seen = self.model.scoring(layer, self.conditions).visible(position[:, None], position)
        visible: Bools = np.broadcast_to(seen, (n_tokens, n_tokens))
        return visible

    @torch.inference_mode()
    def last_rows(self, session: Session) -> Tensor:
        """The last query's weights in every head [L, H, S]."""
        last = len(session) - 1
        rows = []
        for layer in range(self.config.n_layer):
            q = torch.tensor(session.q(layer)[:, last:])
            k = torch.tensor(session.k(layer))
            scoring = self.model.scoring(layer, self.conditions)
            rows.append(attention_weights(q, k, last, scoring)[:, 0])
        return torch.stack(rows)

    def check_cache(self, session: Session, cancelled: Cancelled = never) -> CacheCheck:
        """Compute a session of this run once more, in one pass and without the cache.

        Raises:
            CancelledError: `cancelled` said so between two layers.
        """
        token_ids = torch.from_numpy(session.token_ids.copy())
        again = Session().append(self._pass(token_ids, 0, None, cancelled))
        last = len(session) - 1
        logits = self.logits(session, last) - self._new_logits(again, last)
        weights = self.last_rows(session) - self.last_rows(again)
        return CacheCheck(
            n_tokens=len(session),
            logits=float(np.abs(logits).max()),
            weights=float(weights.abs().max()),
        )

    def lens(
        self,
        session: Session,
        next_id: int | None,
        around: int = 0,
        cancelled: Cancelled = never,
        *,
        only_some: bool = False,
    ) -> Lens:
        """The logit lens of a session of this run that is not empty, as far as it is read.

        `next_id` is the token that follows its last one, if any does. All positions are read, or
        `only_some`, the one at `around` first; those that the latest lens had under the same
        tokens are taken from it, and so are those that it had when it was given up.

        Raises:
            CancelledError: `cancelled` said so.
        """
        reader = self._lens_reader(session, next_id)
        if not reader.knows(len(session)):
            reader.read(around, cancelled, only_some=only_some)
        return reader.lens(len(session))

    def _lens_reader(self, session: Session, next_id: int | None) -> LensReader:
        """The latest one if it has these answers, else a new one that takes what it can."""
        before, n_tokens = self._lens, len(session)
        n_common = 0 if before is None else before.n_common(session, next_id)
        is_about = n_common == n_tokens
        if before is not None and is_about and (before.knows(n_tokens) or len(before) == n_tokens):
            return before
        answer = int(self.logits(session, n_tokens - 1).argmax()) if next_id is None else next_id
        follows = next_id is not None
        self._lens = LensReader(self.model, session, self.conditions, answer, follows=follows)
        if before is not None:
            self._lens.take(before, n_common)
        return self._lens

    def stream(self, session: Session, position: int, cancelled: Cancelled = never) -> Stream:
        """The residual at a position of a session of this run, and what was added to it.

        Raises:
            CancelledError: `cancelled` said so between two layers.
        """
        known = self._stream
        if known is not None and known[0] == session and known[1].position == position:
            return known[1]
        stream = read_stream(self.model, session, position, self.conditions, cancelled)
        self._stream = session, stream
        return stream

    def attribution(self, stream: Stream, token_id: int) -> Attribution | None:
        """What each part of a stream of this run adds to a token's logit; None for post-norm."""
        return attribute(stream, token_id, np.asarray(frozen(self.model.output_row(token_id))))

    def intact(self, session: Session, position: int, cancelled: Cancelled = never) -> Intact:
        """A session of this run, which is not empty, with all heads on and all else the same.

        What was read before the heads were switched off is remembered; else the text is run.

        Raises:
            CancelledError: `cancelled` said so between two layers.
        """
        conditions = replace(self.conditions, heads_off=frozenset())
        if self._intact is None or not self._intact.holds(session, conditions):
            self._intact = read_intact(self.model, session, conditions, cancelled)
        return intact_at(self.model, self._intact, len(session), position)

    def effects(self, session: Session, position: int, token_id: int, off_by: OffBy) -> EffectSweep:
        """What will measure, head after head, what each does to a session of this run.

        The session is not empty; `token_id` is the token whose logit is followed.
        """
        how = self.conditions, off_by
        return EffectSweep(self.model, session, position, token_id, *how)

    @property
    def cache_bytes(self) -> int:
        """Bytes of the cache's rows in use."""
        return self._kv_cache.used_bytes

    @property
    def cache_layer_bytes(self) -> tuple[int, ...]:
        """The same, layer by layer [L]."""
        return self._kv_cache.layer_bytes

    @property
    def cache_allocated_bytes(self) -> int:
        """Bytes of the cache's tensors, used or not."""
        return self._kv_cache.allocated_bytes

    @property
    def cache_bytes_per_number(self) -> int:
        """Bytes of each number in the cache's tensors."""
        return self._kv_cache.bytes_per_number

    @torch.inference_mode()
    def _recondense(
        self, session: Session, trace: Trace, size: int
    ) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        """Peaks [L, H, T, bins] and first [L, H, T] of a pass, from q and k once more."""
        first = torch.empty(trace.first.shape, dtype=torch.uint8)
        peaks = torch.zeros(*trace.first.shape, -(-trace.end // size), dtype=torch.uint8)
        for layer in range(self.config.n_layer):
            q = torch.tensor(trace.q[layer])
            k = torch.tensor(session.k(layer)[:, : trace.end])
            scoring = self.model.scoring(layer, self.conditions)
            for rows, n_keys in query_blocks(trace.start, trace.n_tokens, self.conditions):
                weights = attention_weights(
                    q[:, rows], k[:, :n_keys], trace.start + rows.start, scoring
                )
                block, first[layer, :, rows] = condense(weights, size)
                peaks[layer, :, rows, : block.shape[-1]] = block
        return frozen(peaks), frozen(first)


def _mask_of(conditions: Conditions) -> tuple[str, int, int]:
    return conditions.mask, conditions.window, conditions.sinks


def _ends(start: int, end: int, most_rows: int) -> list[int]:
    """Where passes end that compute the rows from start to end, about as many in each."""
    n_passes = -(-(end - start) // most_rows) if most_rows else int(start < end)
    return [start + (end - start) * nth // n_passes for nth in range(1, n_passes + 1)]
