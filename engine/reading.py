"""Everything that one moment shows: the answer to each wish of the user, frozen."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from engine.conditions import Conditions
from engine.config import ModelConfig
from engine.document import Document
from engine.formats import Held
from engine.readouts import Checks, HeadRoles
from engine.sampling import Sampling, Stages
from engine.session import Session
from engine.thumbnails import Thumbnails

Reason = Literal["started", "grown", "edited", "cache off", "mask off", "looked"]


@dataclass(frozen=True)
class ModelInfo:
    """What is known about a loaded model besides its weights."""

    name: str
    path: str
    config: ModelConfig
    n_parameters: int
    load_seconds: float
    vocabulary: tuple[bytes, ...] = ()  # [V], what each token id stands for
    held: Held = field(default_factory=Held)  # in which format and where
    prefix_ids: tuple[int, ...] = ()  # the tokens that belong before every text


@dataclass(frozen=True)
class PassStats:
    """What one pass cost; kept for the whole life of a run, in order of time."""

    n_tokens: int  # S, after the pass
    n_computed: int  # rows of keys and values that were computed
    n_kept: int  # rows that were taken from the cache
    seconds: float  # the pass's arithmetic, recording included
    cache_bytes: int  # held by the cache's rows in use
    cached: bool  # whether the cache was switched on
    reason: Reason
    window: int = 0  # the mask's, and how many first positions it keeps in sight; 0: none
    sinks: int = 0


@dataclass(frozen=True)
class CacheCheck:
    """The same text once more in one pass without the cache: the largest differences."""

    n_tokens: int
    logits: float  # of the last row's logits
    weights: float  # of any weight of any head's last row

    TOLERANCE = 1e-3


@dataclass(frozen=True)
class Look:
    """Where the user looks: a head, and the position whose row and prediction are shown."""

    layer: int = 0
    head: int = 0
    query: int | None = None  # None: the last position, following the text


@dataclass(frozen=True)
class Focus:
    """One head in full."""

    layer: int
    head: int
    weights: NDArray[np.float32]  # [S, S], row = query, column = key
    visible: NDArray[np.bool_]  # [S, S], what the mask lets each query see


@dataclass(frozen=True)
class Reading:
    """The text up to the cursor as the model has read it, and what panels show of it.

    Positions count from the first token that the model sees; the first `n_fallen` tokens of the
    document lie beyond the context limit and have none. What the model expects before every text
    never falls out: it has the first positions. `computed` are the positions that the
    latest pass computed, `cursor` how many tokens of the document are shown.
    """

    info: ModelInfo
    document: Document
    cursor: int
    n_fallen: int
    session: Session
    conditions: Conditions
    use_cache: bool
    computed: tuple[int, int]
    reason: Reason
    stats: Sequence[PassStats]
    cache_bytes: int
    cache_layer_bytes: tuple[int, ...]  # of each layer [L]
    cache_allocated_bytes: int
    cache_bytes_per_number: int  # in its tensors
    thumbnails: Thumbnails
    roles: HeadRoles
    checks: Checks
    focus: Focus
    position: int  # whose prediction `stages` is; −1 for an empty text
    sampling: Sampling
    stages: Stages | None  # None for an empty text

    @cached_property
    def n_tokens(self) -> int:
        """S: how many tokens the model has read."""
        return len(self.session)

    @property
    def n_prefix(self) -> int:
        """How many of the first positions were put before the text."""
        return min(self.document.n_prefix, self.n_tokens)

    @property
    def at_end(self) -> bool:
        """Whether the cursor stands behind the last token."""
        return self.cursor == len(self.document)

    @property
    def full(self) -> bool:
        """Whether the context limit is reached: nothing more can be appended."""
        return self.n_tokens >= self.info.config.max_seq_len
