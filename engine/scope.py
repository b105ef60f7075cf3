"""One model held open on one text: takes a wish, answers with a `Reading`.

This is all that a window needs to know of the engine. A method that raises leaves the document
and the cursor as they were.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from engine.answers.ablation import Intact
from engine.answers.ablation_pass import EffectSweep
from engine.answers.cell import CellArithmetic, cell_arithmetic
from engine.answers.code_lines import EngineCode
from engine.answers.code_pass import read_code
from engine.answers.format_pass import compare, float32_model
from engine.answers.lens import Lens
from engine.answers.residual import Attribution, Stream
from engine.cancelling import Cancelled, never
from engine.conditions import Conditions, OffBy
from engine.cost.length_sweep import sweep
from engine.cost.measurements import BothWays, Lab, OneByOne
from engine.cost.two_ways import parallel_and_serial, with_and_without
from engine.document import Document
from engine.errors import ContextFullError, EngineError
from engine.formats import Consequence
from engine.loading import Loaded
from engine.model import Transformer
from engine.packing import Packing
from engine.reading import CacheCheck, Focus, Look, PassStats, Reading, Reason
from engine.readouts import checks, head_roles
from engine.run import Pieces, Run
from engine.sampling import Floats, Sampling, Stages, draw, stages
from engine.session import Session
from engine.tokenizers import Tokenizer
from engine.tokenizers.utf8 import to_text
from engine.windows.eviction import Budget, Eviction
from engine.windows.eviction_pass import Told, Writing, evict
from engine.windows.masks import Windows, three_masks
from engine.windows.masks_pass import read_windows
from engine.windows.visibility import Visibility
from engine.windows.visibility_pass import read_visibility

# Hears what may be shown while a text is being read.
Meanwhile = Callable[[Reading], None]

# How much of a long text is read before it is shown: rows × weights, half a second's work; of the
# first text of all, so much less, because nothing is on screen yet.
_PIECE = 2.5e10
_SOONER = 4
_LEAST_ROWS = 16  # with fewer, reading the weights takes most of the time


def _nobody(_reading: Reading) -> None:
    """Hears of no piece."""


class Scope:
    """Owns the run and the document; lives on the engine's thread."""

    def __init__(self, loaded: Loaded, *, use_prefix: bool = True) -> None:
        self.info = loaded.info
        self._tokenizer = loaded.tokenizer
        self._run = Run(loaded.model)
        self._document = Document()
        self.use_prefix = use_prefix  # whether texts begin as the model expects
        self._cursor = 0
        self._look = Look()
        self._sampling = Sampling()
        self._latest: tuple[Floats, Sampling, Stages] | None = None
        self._float32: Transformer | None = None  # the same model, while it is compared with
        self._evicted: tuple[object, Eviction] | None = None  # the latest, and what it was asked of
        self._packing: Packing | None = None

    def pack_meanwhile(self) -> None:
        """Have passes of a model that was loaded with `packs_later` become quicker."""
        self._packing = Packing(self._run.model)

    def close(self) -> None:
        """End what goes on beside the passes; the scope can still be used."""
        if self._packing is not None:
            self._packing.stop()

    def beside(self) -> "Scope":
        """Another scope on the same model and text, whose cache and whose text go their own way."""
        loaded = Loaded(self._run.model, self._tokenizer, self.info)
        other = Scope(loaded, use_prefix=self.use_prefix)
        other._run = self._run.beside()
        other._document, other._cursor = self._document, self._cursor
        return other

    # Text

    def edit(
        self, text: str, cancelled: Cancelled = never, meanwhile: Meanwhile = _nobody
    ) -> Reading:
        """Make `text` the prompt; what it shares with the text before is not computed again.

        A long one is read piece by piece, and `meanwhile` hears of each but the last: a moment
        whose cursor stands behind what has been read.
        """
        return self._read(self.document_of(text), cancelled, meanwhile=meanwhile)

    def document_of(self, text: str) -> Document:
        """A prompt as tokens, with those before it that the model expects, unless switched off."""
        text_ids = tuple(self._tokenizer.encode(text))
        in_text = self._tokenizer.spell(text_ids)
        return self._arranged(self._prefix_ids, text_ids, in_text, len(text_ids), text=text)

    def _arranged(
        self,
        prefix_ids: tuple[int, ...],
        text_ids: tuple[int, ...],
        in_text: tuple[bytes, ...],
        n_prompt: int,
        origins: tuple[Sampling | None, ...] = (),
        text: str | None = None,
    ) -> Document:
        """Tokens of a text, `n_prompt` from the prompt; the prefix before what the model sees.

        So a model that expects a token before every text finds it at position 0, however much of
        the text has fallen out.
        """
        n_over = len(prefix_ids) + len(text_ids) - self.info.config.max_seq_len
        n_fallen = max(0, n_over)
        token_ids = (*text_ids[:n_fallen], *prefix_ids, *text_ids[n_fallen:])
        return Document(
            text=to_text(b"".join(in_text)) if text is None else text,
            token_ids=token_ids,
            tokens=tuple(map(self._tokenizer.token_bytes, token_ids)),
            n_prompt=len(prefix_ids) + n_prompt,
            origins=origins,
            n_prefix=len(prefix_ids),
            n_fallen=n_fallen,
            in_text=in_text,
        )

    @property
    def _prefix_ids(self) -> tuple[int, ...]:
        """What goes before a text; nothing where it would leave no room for one."""
        has_room = len(self.info.prefix_ids) < self.info.config.max_seq_len
        return self.info.prefix_ids if self.use_prefix and has_room else ()

    def follow(self, reading: Reading, cancelled: Cancelled = never) -> Reading:
        """Read the very tokens that a reading of the same vocabulary shows."""
        shown = slice(reading.n_fallen, reading.cursor)
        token_ids = reading.document.token_ids[shown]
        n_prefix = reading.n_prefix
        text_ids, in_text = token_ids[n_prefix:], reading.document.spelled[shown][n_prefix:]
        document = self._arranged(token_ids[:n_prefix], text_ids, in_text, len(text_ids))
        return self._read(document, cancelled)

    def step(self, cancelled: Cancelled = never) -> Reading:
        """One token further: along the known text where it still holds, else a fresh draw.

        A known token holds if the user chose it, if it belongs to the prompt, or if it was drawn
        with the sampling now in force.

        Raises:
            ContextFullError: the context limit is reached.
            EngineError: the text is empty.
        """
        document, cursor = self._document, self._cursor
        if cursor < len(document):
            is_drawn = bool(document.generated[cursor])
            known = not is_drawn or document.origin(cursor) in (None, self._sampling)
            if known:
                return self.go_to(cursor + 1)
        shown = self._shown()
        if not len(shown):
            raise EngineError("There is no text to go on from; type something first.")
        last = self._stages(shown, len(shown) - 1)
        token_id = draw(last.probs, self._sampling.seed, cursor)
        return self._append(cursor, token_id, self._sampling, cancelled)

    def choose(self, cursor: int, token_id: int, cancelled: Cancelled = never) -> Reading:
        """Branch: keep the first `cursor` tokens and go on with `token_id`."""
        return self._append(cursor, token_id, None, cancelled)

    def go_to(self, cursor: int) -> Reading:
        """Show the text as it was with its first `cursor` tokens; nothing is forgotten."""
        first = min(self._n_fallen + 1, len(self._document))
        self._cursor = max(first, min(cursor, len(self._document)))
        return self._reading("looked", (0, 0))

    def back(self) -> Reading:
        """Show the text one token shorter than it is shown now; nothing is forgotten."""
        return self.go_to(self._cursor - 1)

    def _append(
        self, cursor: int, token_id: int, origin: Sampling | None, cancelled: Cancelled
    ) -> Reading:
        limit = self.info.config.max_seq_len
        if cursor - self._n_fallen >= limit:
            raise ContextFullError(
                f"The context is full: this model sees at most {limit} tokens. "
                "Shorten the text to go on."
            )
        old = self._document
        prefix_ids = old.prefix_ids if old.n_fallen else old.prefix_ids[:cursor]
        n_kept = old.n_of_text(cursor)
        text_ids = (*old.text_ids[:n_kept], token_id)
        in_text = self._tokenizer.spell(text_ids)
        n_prompt = min(old.n_prompt - old.n_prefix, n_kept)
        origins = (*old.origins[: n_kept - n_prompt], origin)
        document = self._arranged(prefix_ids, text_ids, in_text, n_prompt, origins)
        return self._read(document, cancelled)

    # Settings

    def set_conditions(
        self,
        conditions: Conditions,
        cancelled: Cancelled = never,
        meanwhile: Meanwhile = _nobody,
    ) -> Reading:
        """Run the same text under other conditions, from position 0 on; in pieces as `edit`."""
        self._run.set_conditions(conditions)
        return self._read(self._document, cancelled, self._cursor, meanwhile)

    def prepare(
        self,
        conditions: Conditions,
        sampling: Sampling,
        look: Look | None = None,
        *,
        use_cache: bool | None = None,
    ) -> None:
        """Have the next text read under these, and looked at there; nothing is read before."""
        self._run.set_conditions(conditions)
        self._sampling = sampling
        if look is not None:
            self._look = look
        if use_cache is not None:
            self._run.set_cache(use=use_cache)

    def set_cache(self, *, use: bool, cancelled: Cancelled = never) -> Reading:
        """Switch the KV cache on or off and read the text again."""
        self._run.set_cache(use=use)
        return self._read(self._document, cancelled, self._cursor)

    def set_prefix(self, *, use: bool, cancelled: Cancelled = never) -> Reading:
        """Put before the text what the model expects there, or do not; as much of it stays shown.

        Like other conditions, this is in force even if the pass is given up.
        """
        self.use_prefix = use
        old, prefix_ids = self._document, self._prefix_ids
        if old.prefix_ids == prefix_ids:
            return self._read(old, cancelled, self._cursor)
        grown, n_prompt = len(prefix_ids) - old.n_prefix, old.n_prompt - old.n_prefix
        in_text = self._tokenizer.spell(old.text_ids)
        document = self._arranged(
            prefix_ids, old.text_ids, in_text, n_prompt, old.origins, old.text
        )
        self._document = document
        first = min(self._n_fallen + 1, len(document))
        self._cursor = max(first, self._cursor + grown)
        return self._read(document, cancelled, self._cursor)

    def set_sampling(self, sampling: Sampling) -> Reading:
        """Sample the next tokens in another way."""
        self._sampling = sampling
        return self._reading("looked", (0, 0))

    def look(self, look: Look) -> Reading:
        """Look at another head or position."""
        self._look = look
        return self._reading("looked", (0, 0))

    def aim(self, reading: Reading, look: Look) -> Reading:
        """A reading of this scope with another head in focus, where the next ones look as well.

        Nothing is read, so it may be a moment of a text that is still being read.
        """
        self._look = look
        return replace(reading, focus=self._focus(reading.session))

    def check_cache(self, cancelled: Cancelled = never) -> CacheCheck | None:
        """Compare what is shown with one pass without the cache; None for an empty text."""
        shown = self._shown()
        return self._run.check_cache(shown, cancelled) if len(shown) else None

    def cell(self, reading: Reading, key: int | None = None) -> CellArithmetic | None:
        """The arithmetic behind one weight of a reading, which says the head and the query.

        Without a key it is the one with the row's largest weight. None for an empty text, and
        for a reading of another model, whose weights are no longer here.
        """
        if reading.info is not self.info or not reading.n_tokens:
            return None
        focus = reading.focus
        weights = self._run.head_weights(focus.layer, focus.head, reading.n_tokens)
        instead = self._run.mix_instead(
            reading.session, focus.layer, focus.head, reading.position, reading.conditions
        )
        return cell_arithmetic(reading, key, weights, instead)

    def lens(
        self, reading: Reading, cancelled: Cancelled = never, *, only_some: bool = False
    ) -> Lens | None:
        """What the model would answer after each of its layers, at every position of a reading.

        All positions are read, or `only_some` in a moment, the reading's own first; asked again,
        the lens goes on from there. None for an empty text, and for a reading of another model or
        other conditions.

        Raises:
            CancelledError: `cancelled` said so; what was read till then is kept.
        """
        if not self._is_here(reading):
            return None
        after = reading.document.token_ids[reading.n_fallen + reading.n_tokens :]
        next_id = after[0] if after else None
        about = reading.session, next_id, reading.position
        return self._run.lens(*about, cancelled, only_some=only_some)

    def residual(
        self, reading: Reading, token_id: int, cancelled: Cancelled = never
    ) -> tuple[Stream, Attribution | None] | None:
        """What was added to the residual at a reading's position, and to one token's logit.

        None for an empty text, and for a reading of another model or other conditions; there is no
        attribution in a post-norm model.

        Raises:
            CancelledError: `cancelled` said so.
        """
        if not self._is_here(reading):
            return None
        stream = self._run.stream(reading.session, reading.position, cancelled)
        return stream, self._run.attribution(stream, token_id)

    def code(self, reading: Reading, cancelled: Cancelled = never) -> EngineCode | None:
        """The engine's lines behind a reading's position in the layer in focus.

        None for an empty text, and for a reading of another model or other conditions.

        Raises:
            EngineError: the text of the lines is not what runs.
            CancelledError: `cancelled` said so.
        """
        if not self._is_here(reading):
            return None
        at = reading.focus.layer, reading.position
        return read_code(self._run.model, reading.session, reading.conditions, *at, cancelled)

    def intact(self, reading: Reading, cancelled: Cancelled = never) -> Intact | None:
        """What a reading would be with all heads on: its losses, and its position's logits.

        None for an empty text, with no head off, and for a reading of another model or other
        conditions.

        Raises:
            CancelledError: `cancelled` said so.
        """
        if not self._is_here(reading) or not reading.conditions.heads_off:
            return None
        return self._run.intact(reading.session, reading.position, cancelled)

    def effects(self, reading: Reading, token_id: int, off_by: OffBy) -> EffectSweep | None:
        """What will measure what each head does to a reading's loss and to its prediction.

        `token_id` is the token whose logit is followed. None for an empty text, and for a reading
        of another model or other conditions.
        """
        if not self._is_here(reading):
            return None
        return self._run.effects(reading.session, reading.position, token_id, off_by)

    def consequence(self, reading: Reading, cancelled: Cancelled = never) -> Consequence | None:
        """What the number format does to the predictions on a reading's text.

        The weights are read again in float32 and kept until `forget_float32`. None for an empty
        text, in float32 itself, and for a reading of another model or other conditions.

        Raises:
            EngineError: there is no memory for them, or their file is gone.
            CancelledError: `cancelled` said so.
        """
        if not self._is_here(reading) or self.info.held.number_format == "float32":
            return None
        if self._float32 is None:
            self._float32 = float32_model(self.info, cancelled)
        model = self._run.model
        return compare(model, self._float32, reading.session, reading.conditions, cancelled)

    def forget_float32(self) -> None:
        """Give back the memory that comparing takes."""
        self._float32 = None

    @property
    def tokenizer(self) -> Tokenizer:
        """How the open model cuts a text into tokens."""
        return self._tokenizer

    def windows(
        self,
        token_ids: Sequence[int],
        conditions: Conditions,
        sizes: tuple[int, int],
        query: int,
        cancelled: Cancelled = never,
    ) -> Windows:
        """Some tokens under the causal mask, a window, and the first positions with that window.

        `sizes` are the window's and the number of the first ones; all else is as in the
        conditions. Nothing that is shown changes.

        Raises:
            ConfigError: there is no such window.
            CancelledError: `cancelled` said so.
        """
        masks = three_masks(conditions, *sizes)
        return read_windows(self._run.model, token_ids, masks, query, cancelled)

    def visibility(self, reading: Reading, cancelled: Cancelled = never) -> Visibility | None:
        """What some of a reading's tokens are predicted from; see `engine.windows.visibility`.

        None for an empty text, and for a reading of another model or other conditions.

        Raises:
            CancelledError: `cancelled` said so.
        """
        if not self._is_here(reading):
            return None
        how = reading.session, reading.conditions
        return read_visibility(self._run.model, *how, cancelled=cancelled)

    def eviction(
        self,
        reading: Reading,
        budget: Budget,
        n_more: int,
        cancelled: Cancelled = never,
        told: Told = lambda _share: None,
        so_far: Callable[[Eviction], None] = lambda _found: None,
    ) -> Eviction | None:
        """A reading's text, and what follows it, with a budget for the cache and with all keys.

        Both under the reading's conditions; `n_more` tokens are written at most. None for an empty
        text, and for a reading of another model. What all keys give is remembered, as budgets are
        tried one after another; `so_far` is told what is known before both go on writing.

        Raises:
            EngineError: the mask lets no row stay true.
            CancelledError: `cancelled` said so.
        """
        if reading.info is not self.info or not reading.n_tokens:
            return None
        writing = Writing(reading.sampling, n_more, reading.cursor, self._tokenizer.token_bytes)
        token_ids = reading.document.token_ids[reading.n_fallen : reading.cursor]
        same = token_ids, reading.conditions, reading.sampling, n_more, reading.cursor
        known = self._evicted[1] if self._evicted and self._evicted[0] == same else None
        how = reading.conditions, budget, writing, cancelled, told, known, so_far
        eviction = evict(self._run.model, token_ids, *how)
        self._evicted = same, eviction
        return eviction

    # What things cost, measured beside the text

    def with_and_without(
        self, reading: Reading, n_steps: int, waited_for: Cancelled = never
    ) -> Iterator[BothWays]:
        """Decode after a reading's text with the cache and without; see `engine.cost.two_ways`."""
        self._finish_packing()
        ids, how = reading.session.token_ids.tolist(), (reading.sampling, reading.conditions)
        return with_and_without(self._run.model, ids, n_steps, *how, waited_for)

    def parallel_and_serial(
        self, reading: Reading, waited_for: Cancelled = never
    ) -> Iterator[OneByOne]:
        """Read a reading's text at once and token by token; see `engine.cost.two_ways`."""
        self._finish_packing()
        ids = reading.session.token_ids.tolist()
        return parallel_and_serial(self._run.model, ids, reading.conditions, waited_for)

    def sweep(self, reading: Reading, longest: int, waited_for: Cancelled = never) -> Iterator[Lab]:
        """Time passes of growing length; see `engine.cost.length_sweep`."""
        self._finish_packing()
        return sweep(self._run.model, reading.session.token_ids.tolist(), longest, waited_for)

    def _finish_packing(self) -> None:
        """Have times be those of the model as it is used from now on."""
        if self._packing is not None:
            self._packing.finish()

    def _is_here(self, reading: Reading) -> bool:
        """Whether a reading has tokens, of this model, under the conditions in force."""
        is_ours = reading.info is self.info and reading.conditions == self._run.conditions
        return is_ours and reading.n_tokens > 0

    # The answer

    @property
    def _n_fallen(self) -> int:
        return self._document.n_fallen

    def _read(
        self,
        document: Document,
        cancelled: Cancelled,
        cursor: int | None = None,
        meanwhile: Meanwhile = _nobody,
    ) -> Reading:
        cursor = len(document) if cursor is None else cursor

        def so_far(session: Session, stats: PassStats) -> None:
            at, computed = document.n_fallen + len(session), (stats.n_kept, stats.n_tokens)
            if at < cursor:
                meanwhile(self._reading_of(document, at, session, stats.reason, computed))

        before = len(self._run.stats)
        is_first = not before and meanwhile is not _nobody
        piece = _PIECE / max(1, self.info.n_parameters)
        pieces = Pieces(
            most_rows=max(_LEAST_ROWS, int(piece)),
            first_rows=max(_LEAST_ROWS, int(piece / _SOONER)) if is_first else 0,
            so_far=so_far,
        )
        self._run.read(document.token_ids[document.n_fallen :], cancelled, pieces)
        self._document = document
        self._cursor = cursor
        _ = document.spans  # worked out here, so that the window need not
        fresh = self._run.stats[before:]
        if not fresh:
            return self._reading("looked", (0, 0))
        return self._reading(fresh[-1].reason, (fresh[-1].n_kept, fresh[-1].n_tokens))

    def _shown(self) -> Session:
        # A pass that was given up leaves the run behind the document; catch up first.
        self._run.read(self._document.token_ids[self._n_fallen :])
        return self._run.at(self._cursor - self._n_fallen)

    def _stages(self, session: Session, position: int) -> Stages:
        logits = self._run.logits(session, position)
        latest = self._latest
        if latest is None or latest[0] is not logits or latest[1] != self._sampling:
            latest = self._latest = logits, self._sampling, stages(logits, self._sampling)
        return latest[2]

    def _reading(self, reason: Reason, computed: tuple[int, int]) -> Reading:
        shown = self._shown()
        return self._reading_of(self._document, self._cursor, shown, reason, computed)

    def _reading_of(
        self,
        document: Document,
        cursor: int,
        session: Session,
        reason: Reason,
        computed: tuple[int, int],
    ) -> Reading:
        roles = head_roles(session)
        _ = roles.names, session.loss  # as with the spans of `_read`
        last, query = len(session) - 1, self._look.query
        position = last if query is None else min(max(0, query), last)
        return Reading(
            info=self.info,
            document=document,
            cursor=cursor,
            n_fallen=document.n_fallen,
            session=session,
            conditions=self._run.conditions,
            use_cache=self._run.use_cache,
            computed=(min(computed[0], len(session)), min(computed[1], len(session))),
            reason=reason,
            stats=self._run.stats,
            cache_bytes=self._run.cache_bytes,
            cache_layer_bytes=self._run.cache_layer_bytes,
            cache_allocated_bytes=self._run.cache_allocated_bytes,
            cache_bytes_per_number=self._run.cache_bytes_per_number,
            thumbnails=self._run.thumbnails(session),
            roles=roles,
            checks=checks(session),
            focus=self._focus(session),
            position=position,
            sampling=self._sampling,
            stages=self._stages(session, position) if len(session) else None,
        )

    def _focus(self, session: Session) -> Focus:
        config = self.info.config
        layer = max(0, min(self._look.layer, config.n_layer - 1))
        head = max(0, min(self._look.head, config.n_head - 1))
        weights = self._run.pattern(session, layer, head)
        return Focus(layer, head, weights, self._run.visible(layer, len(session)))
