"""From state to what is shown: clamped, derived, frozen; pure, without Qt.

Panels draw a `View` and decide nothing. Whatever a stale selection or an empty text could break
is settled here, once.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import isnan

import numpy as np
from numpy.typing import NDArray

from engine.answers.ablation import MEASURES
from engine.document import Document
from engine.reading import Focus, Reading
from engine.readouts import HeadRoles, Role
from gui.state import State
from gui.theme import Theme
from gui.widgets.token_text import display, speak
from gui.words.head_effects import (
    HeadAt,
    Shades,
    effect_captions,
    off_caption,
    ranked,
    shades_of,
    true_effects,
)
from gui.words.names import plain
from gui.words.quantities import counted


@dataclass(frozen=True)
class View:
    """One moment, ready to be drawn.

    `labels` [S] are the shown tokens as text that no renderer mistakes for markup; `row` [S] is
    the selected query's weights in the selected head, `lit` the query and key that the token
    strip shows: those under the mouse, or else the selected ones. Positions count from the first
    token that the model sees. Without a text `query` is None and arrays are empty.
    """

    state: State
    theme: Theme
    reading: Reading | None
    tokens: tuple[bytes, ...]
    labels: tuple[str, ...]
    layer: int
    head: int
    query: int | None
    key: int | None
    row: NDArray[np.float32]
    row_visible: NDArray[np.bool_]
    lit: tuple[int | None, int | None]
    role: Role | None
    order: tuple[HeadAt, ...] | None  # None: the natural grid
    dimmed: frozenset[HeadAt]
    off: frozenset[HeadAt]  # that the reading was run without
    shades: Shades | None  # what the overview colours heads by instead of their weights
    row_sentence: str  # the text equivalent of the selected row
    status: str  # one line on the model and the text
    replaced: str  # a sentence on characters that the model cannot read; "" if it reads all

    @property
    def focus(self) -> Focus | None:
        """The head drawn in full, if any is."""
        return self.reading.focus if self.reading else None

    @cached_property
    def captions(self) -> dict[HeadAt, str]:
        """What the overview says of each head; made when it is asked for, at few steps."""
        reading = self.reading
        if reading is None or not reading.n_tokens:
            return {}
        return _all_captions(self.state, reading.roles)

    @property
    def n_tokens(self) -> int:
        """S."""
        return self.reading.n_tokens if self.reading else 0


def _status(state: State) -> str:
    """One line on the model, the text and what goes on."""
    reading = state.reading
    if state.notice or reading is None:
        return state.notice
    if state.measuring:
        return measuring_sentence(state)
    config, n_fallen = reading.info.config, reading.n_fallen
    shape = f"{counted(config.n_layer, 'layer')} × {counted(config.n_head, 'head')}"
    parts = [
        f"{plain(reading.info.name)}: {shape}",
        f"{reading.info.n_parameters / 1e6:.1f} M weights{_held(reading)}",
        f"{reading.n_tokens:,} of at most {config.max_seq_len:,} tokens",
    ]
    if n_off := len(reading.conditions.heads_off):
        parts.append(f"{n_off} heads are off" if n_off > 1 else "1 head is off")
    if n_fallen:
        fallen = f"{n_fallen} tokens have" if n_fallen > 1 else "token has"
        parts.append(f"the first {fallen} fallen out")
    elif reading.full:
        parts.append("the context is full")
    loss = reading.session.loss[1:]
    if len(loss):
        parts.append(f"loss {float(loss.mean()):.3f} nats per token")
    return " · ".join(parts)


def measuring_sentence(state: State) -> str:
    """How far measuring has come."""
    opened = state.effects
    if opened is None or not opened.is_of_text(state.reading) or opened.effects.is_whole:
        return "Measuring what moves the answer most … (Esc stops)"
    effects = opened.effects
    return f"Measured {effects.n_measured} of {effects.n_heads} heads … (Esc stops)"


def _held(reading: Reading) -> str:
    """How the weights are held, where that is not as usual."""
    held = reading.info.held
    place = "" if held.device == "cpu" else f" on {held.device}"
    return f" in {held.number_format}{place}" if held.number_format != "float32" or place else ""


def resolve(state: State) -> View:
    """What the window shows of a state."""
    reading, selection = state.reading, state.selection
    theme = _scaled(state.display.theme, state.display.zoom)
    tokens, labels = _shown_tokens(reading)
    query = key = pointed = None
    row, row_visible = np.empty(0, np.float32), np.empty(0, np.bool_)
    layer, head = selection.layer, selection.head
    if reading is not None:
        layer, head = reading.focus.layer, reading.focus.head
        if reading.n_tokens:
            last = reading.n_tokens - 1
            query = last if selection.query is None else min(max(0, selection.query), last)
            key = None if selection.key is None else min(max(0, selection.key), last)
            if state.pointed is not None and max(state.pointed) <= last:
                pointed = state.pointed
            row, row_visible = reading.focus.weights[query], reading.focus.visible[query]
    roles = reading.roles if reading and reading.n_tokens else None
    sort = state.display.sorted_role
    off = reading.conditions.heads_off if reading is not None else frozenset[HeadAt]()
    return View(
        state=state,
        theme=theme,
        reading=reading,
        tokens=tokens,
        labels=labels,
        layer=layer,
        head=head,
        query=query,
        key=key,
        row=row,
        row_visible=row_visible,
        lit=pointed or (query, key),
        role=roles.name(layer, head) if roles else None,
        order=_order(state, roles) if roles else None,
        dimmed=_dimmed(roles, sort, state.display.least) if roles and sort else frozenset(),
        off=off,
        shades=shades_of(state),
        row_sentence=row_sentence(tokens, query, row),
        status=_status(state),
        replaced=replaced_sentence(reading.document) if reading else "",
    )


@lru_cache(maxsize=8)
def _scaled(theme: Theme, zoom: float) -> Theme:
    return theme.scaled(zoom)


def _shown_tokens(reading: Reading | None) -> tuple[tuple[bytes, ...], tuple[str, ...]]:
    if reading is None:
        return (), ()
    return _tokens_and_labels(reading.document, reading.n_fallen, reading.cursor)


@lru_cache(maxsize=4)
def _tokens_and_labels(
    document: Document, start: int, stop: int
) -> tuple[tuple[bytes, ...], tuple[str, ...]]:
    tokens = document.tokens[start:stop]
    return tokens, tuple(map(_label, tokens))


@lru_cache(maxsize=8192)
def _label(token: bytes) -> str:
    return display(token)


def _heads(scores: NDArray[np.float32]) -> dict[HeadAt, float]:
    """Scores [L, H] by head, layer by layer."""
    n_head = scores.shape[1]
    return {divmod(i, n_head): score for i, score in enumerate(scores.ravel().tolist())}


def _order(state: State, roles: HeadRoles) -> tuple[HeadAt, ...] | None:
    """Heads in the order that is chosen; None for the grid, and where no effect is measured."""
    role, measure = state.display.sorted_role, state.display.sorted_measure
    if measure is not None:
        return ranked(state, measure)
    return None if role is None else _order_by_role(roles, role)


@lru_cache(maxsize=4)
def _order_by_role(roles: HeadRoles, role: Role) -> tuple[HeadAt, ...]:
    """Heads from the highest score of a role to the lowest; entropy from the most focused on."""
    scores = _heads(np.nan_to_num(roles.scores[role]))
    sign = 1 if role == "entropy" else -1
    return tuple(sorted(scores, key=lambda at: (sign * scores[at], at)))


def _dimmed(roles: HeadRoles, role: Role, least: float) -> frozenset[HeadAt]:
    """Heads whose score is below `least`; for entropy, above it."""
    if not least:
        return frozenset()
    scores = _heads(np.nan_to_num(roles.scores[role]))
    if role == "entropy":
        return frozenset(at for at, score in scores.items() if score > least)
    return frozenset(at for at, score in scores.items() if score < least)


def _all_captions(state: State, roles: HeadRoles) -> dict[HeadAt, str]:
    """What is said of each head: that it is off, or else its effect, score or role."""
    reading, display = state.reading, state.display
    captions = _captions(roles, display.sorted_role)
    shown = display.sorted_measure or display.shade
    for measure in MEASURES:
        opened = true_effects(state, measure) if shown == measure else None
        if opened is not None:
            captions = {**captions, **effect_captions(opened, measure)}
    if reading is not None and reading.conditions.heads_off:
        off = dict.fromkeys(reading.conditions.heads_off, off_caption(reading))
        captions = {**captions, **off}
    return captions


@lru_cache(maxsize=4)  # the same reading is shown many times
def _captions(roles: HeadRoles, sort: Role | None) -> dict[HeadAt, str]:
    """What the overview says of each head: the sorted score, or the role that it reaches."""
    if sort is not None:
        return {
            at: "" if isnan(score) else f"{sort} {score:.2f}"
            for at, score in _heads(roles.scores[sort]).items()
        }
    scores = {role: scores.tolist() for role, scores in roles.scores.items()}
    return {
        (layer, head): f"{role} {scores[role][layer][head]:.2f}" if role else ""
        for layer, names in enumerate(roles.names)
        for head, role in enumerate(names)
    }


_MOST_REPLACED = 12  # characters that a sentence names


def replaced_sentence(document: Document) -> str:
    """Which characters of a text the model's vocabulary lacks, and what it reads for them."""
    if not document.replaced:
        return ""
    pieces = list(dict.fromkeys(piece for piece, _token in document.replaced))
    named = " ".join(_label(p.encode("utf-8", "surrogatepass")) for p in pieces[:_MOST_REPLACED])
    more = len(pieces) - _MOST_REPLACED
    others = f" and {more:,} more" if more > 0 else ""
    read = " ".join(dict.fromkeys(_label(token) for _piece, token in document.replaced))
    each = "each of them" if len(pieces) > 1 else "it"
    return f"⚠ This model's vocabulary lacks {named}{others}; it reads {read} for {each}."


def row_sentence(
    tokens: tuple[bytes, ...], query: int | None, row: NDArray[np.float32], n_named: int = 3
) -> str:
    """In words where one query looks, for those who do not see the picture."""
    if query is None or not len(row):
        return "There is no text yet."
    named = np.argsort(-row, kind="stable")[:n_named]
    looks = ", ".join(
        f"{speak(tokens[key])} at position {key} ({row[key]:.1%})" for key in named if row[key] > 0
    )
    return f"{speak(tokens[query])} at position {query} looks most at {looks}."
