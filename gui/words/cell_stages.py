"""The arithmetic of one weight as stages, in words and rows of numbers."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engine.answers.cell import CellArithmetic, Turn
from gui.state import OpenedCell
from gui.widgets.arithmetic_stages import (
    Bars,
    Dials,
    Hue,
    Item,
    Marks,
    Note,
    Stage,
    Term,
    exact,
    short,
)
from gui.widgets.lettering import quoted
from gui.widgets.token_text import display
from gui.words.cell_places import QUERY_AND_KEY, RESIDUAL, SCORE, VALUES, WEIGHT

_N_NAMED = 5  # keys whose weighted values have a row of their own
_LONGEST = 20  # characters of a token

_POSITIONS = {
    "none": "This model is told no positions: q and k know the words, not their order.",
    "learned": "Positions were added to the embeddings (a learned table); q and k carry them.",
    "sinusoidal": "Positions were added to the embeddings (sines); q and k carry them.",
    "rotary": "Thin: before. Thick: turned by the position. Whole turns are left out.",
    "alibi": "Positions enter as a penalty on the score, below.",
}


def token_at(opened: OpenedCell, position: int) -> str:
    """The token at a position that the model sees, quoted."""
    document, n_fallen = opened.reading.document, opened.reading.n_fallen
    return quoted(display(document.tokens[n_fallen + position], _LONGEST))


def stages_of(opened: OpenedCell) -> tuple[Stage, ...]:
    """From q and k to the residual; nothing for an empty text."""
    cell = opened.arithmetic
    if cell is None:
        return ()
    return (
        _query_and_key(opened, cell),
        _score(opened, cell),
        _weight(opened, cell),
        _values(opened, cell),
        _residual(opened, cell),
    )


def _feature(index: int) -> str:
    return f"feature {index}"


def _top(*values: NDArray[np.floating]) -> float:
    """The largest size among finite numbers; 1 without one, so that a bar has a scale."""
    finite = np.concatenate([np.abs(each[np.isfinite(each)]).ravel() for each in values])
    return float(finite.max(initial=0)) or 1.0


# The stages


def _query_and_key(opened: OpenedCell, cell: CellArithmetic) -> Stage:
    config, conditions = opened.reading.info.config, opened.reading.conditions
    query, key = token_at(opened, cell.query), token_at(opened, cell.key)
    items: list[Item] = []
    if opened.key is None:
        items.append(Note("No key is selected, so this is the row's largest weight."))
    if len(cell.sharing) > 1:
        items.append(_shared(cell, config.n_head))
    scheme = config.positions if conditions.positions else "none"
    items.append(Note(_POSITIONS[scheme]))
    if cell.turns is not None:
        items += [
            _dials("q", cell.turns[0], cell.q, cell.query, "query"),
            _dials("k", cell.turns[1], cell.k, cell.key, "key"),
        ]
    top = _top(cell.q, cell.k)
    items += [
        Bars(f"q: query {cell.query} {query}", "q", cell.q, _feature, top, "query"),
        Bars(f"k: key {cell.key} {key}", "k", cell.k, _feature, top, "key"),
    ]
    formula = "q = W_Q · x, k = W_K · x"
    if config.qk_norm != "none":
        formula = "q = norm(W_Q · x), k = norm(W_K · x)"
    turned = ", each turned to its position" if cell.turns else ""
    return Stage(QUERY_AND_KEY, f"{formula}{turned}", items)


def _dials(symbol: str, turn: Turn, after: NDArray[np.floating], position: int, hue: Hue) -> Dials:
    caption = f"{symbol}: its pairs, turned to position {position}"
    turning = slice(2 * len(turn.angles))
    before, turned = (each[turning].reshape(2, -1).T for each in (turn.before, after))
    return Dials(caption, symbol, before, turned, turn.angles, hue)


def _shared(cell: CellArithmetic, n_head: int) -> Marks:
    group = cell.sharing[0] // len(cell.sharing)
    listed = ", ".join(map(str, cell.sharing))
    size = len(cell.sharing)

    def name(head: int) -> str:
        return f"query head {head} uses key and value head {head // size}"

    return Marks(
        f"key and value head {group} serves query heads {listed}",
        n_head,
        frozenset(cell.sharing),
        cell.head,
        "key",
        name,
    )


def _score(opened: OpenedCell, cell: CellArithmetic) -> Stage:
    root = len(cell.q) ** 0.5
    is_usual = bool(np.isclose(cell.scale * root, 1))
    by = f"√{len(cell.q)}" if is_usual else short(1 / cell.scale)
    items: list[Item] = [
        Bars("q · k, feature by feature", "q · k", cell.products, _feature, _top(cell.products)),
        Term("sum = q · k", cell.dot, "sum of the products"),
        Term(
            f"÷ {by} ({short(root)})" if is_usual else f"÷ {by} (this model's own)",
            cell.scaled,
            f"{exact(cell.dot)} ÷ {by if is_usual else exact(1 / cell.scale)}",
        ),
    ]
    formula = "score = q · k ÷ √d" if is_usual else f"score = q · k ÷ {by}"
    if cell.cap:
        formula = f"{formula}, bent by c · tanh(score ÷ c)"
        items.append(
            Term(
                f"bent into ± {short(cell.cap)}",
                cell.bent,
                f"{exact(cell.cap)} · tanh({exact(cell.scaled)} ÷ {exact(cell.cap)})",
            )
        )
    if cell.slope is not None:
        formula += " − slope · distance"
        lowering = f"slope {exact(cell.slope)} · distance {cell.distance}"
        items.append(
            Term(
                f"− {short(cell.slope)} · {cell.distance} (ALiBi)",
                cell.score_before_mask,
                f"{exact(cell.bent)} − {lowering}",
            )
        )
    mask = {"causal": "causal mask", "window": "window", "none": "mask off"}
    name = mask[opened.reading.conditions.mask]
    text = f"{name}: visible" if cell.is_visible else f"{name}: hidden"
    told = "nothing added" if cell.is_visible else f"{exact(cell.score_before_mask)} − ∞"
    items.append(Term(f"score ({text})", cell.score, f"score, {text}, {told}", is_result=True))
    return Stage(SCORE, formula, items)


def _weight(opened: OpenedCell, cell: CellArithmetic) -> Stage:
    def key(index: int) -> str:
        return f"key {index} {token_at(opened, index)}"

    def row(
        caption: str, symbol: str, values: NDArray[np.floating], *, is_signed: bool = False
    ) -> Bars:
        return Bars(
            caption,
            symbol,
            values,
            key,
            _top(values),
            is_signed=is_signed,
            marked=cell.key,
            hidden=~cell.visible,
        )

    below = cell.score - cell.row_maximum
    power = float(cell.exponentials[cell.key])
    items = (
        row(f"scores of query {cell.query}, key by key", "score", cell.scores, is_signed=True),
        Term(
            f"score − row maximum ({short(cell.row_maximum)})",
            below,
            f"{exact(cell.score)} − row maximum {exact(cell.row_maximum)}",
        ),
        Term("exp", power, f"exponential, exp({exact(below)})"),
        row("exp(score − row maximum)", "exp(score − maximum)", cell.exponentials),
        Term(
            f"÷ row sum ({short(cell.row_sum)}) = weight",
            cell.weight,
            f"weight, {exact(power)} ÷ row sum {exact(cell.row_sum)}",
            is_result=True,
        ),
        row("weights", "weight", cell.weights),
        Term(
            "the row's weights together",
            float(cell.weights.sum()),
            "sum of the row's weights",
        ),
    )
    return Stage(WEIGHT, "weight = exp(score − row maximum) ÷ row sum", items)


def _values(opened: OpenedCell, cell: CellArithmetic) -> Stage:
    order = np.argsort(-cell.weights, kind="stable")[:_N_NAMED].tolist()
    named = [at for at in order if cell.weights[at] > 0]
    if cell.key not in named:
        named.append(cell.key)
    rest = sorted(set(np.flatnonzero(cell.visible).tolist()) - set(named))
    parts = [*cell.weighted(named), cell.weighted(rest).sum(axis=0), cell.mix]
    top = _top(*parts)

    def bars(caption: str, values: NDArray[np.floating], symbol: str) -> Bars:
        return Bars(caption, symbol, values, _feature, top, "value")

    own = cell.values[cell.key]
    items: list[Item] = [
        Bars(
            f"v of key {cell.key} {token_at(opened, cell.key)}",
            "v",
            own,
            _feature,
            _top(own),
            "value",
        )
    ]
    for at, part in zip(named, parts, strict=False):
        here = " (this weight)" if at == cell.key else ""
        caption = f"{short(float(cell.weights[at]))} · v of {at} {token_at(opened, at)}{here}"
        items.append(bars(caption, part, f"weight · v of key {at},"))
    if rest:
        others = f"{len(rest)} other keys together" if len(rest) > 1 else "1 other key"
        items.append(bars(f"+ {others}", parts[-2], f"{others},"))
    items.append(bars("= mix, what the head puts out", cell.mix, "mix"))
    return Stage(VALUES, "mix = Σ weight · v", items)


def _residual(opened: OpenedCell, cell: CellArithmetic) -> Stage:
    size, placement = len(cell.q), opened.reading.info.config.norm_placement
    columns = f"columns {cell.head * size} to {(cell.head + 1) * size - 1}"
    items: list[Item] = []
    if cell.is_off:
        by_mean = opened.reading.conditions.off_by == "mean"
        put = "the mean of its mixes at the positions that it sees" if by_mean else "0"
        items.append(Note(f"This head is switched off: the pass put {put} in place of its mix."))
    if placement in {"output", "both"}:
        items.append(Note("This model norms the sum of all heads before it is added."))
    items += [
        Bars(
            f"added to the residual of query {cell.query}",
            "added",
            cell.contribution,
            _feature,
            _top(cell.contribution),
            "residual",
        ),
        Term("length of what is added", cell.length, "length of what is added", is_result=True),
    ]
    if cell.cosine is not None:
        items.append(
            Term(
                "cosine with the final hidden state",
                cell.cosine,
                "cosine of what is added with the final hidden state at the query",
            )
        )
    return Stage(RESIDUAL, f"W_O ({columns}, this head's) · mix", items)


def addresses(opened: OpenedCell, cell: CellArithmetic) -> Sequence[str]:
    """Which weight this is, in ever fewer words."""
    query, key = token_at(opened, cell.query), token_at(opened, cell.key)
    return (
        f"Layer {cell.layer}, head {cell.head} · query {cell.query} {query} · key {cell.key} {key}",
        f"L{cell.layer} H{cell.head} · {cell.query} {query} → {cell.key} {key}",
        f"L{cell.layer} H{cell.head} · {cell.query} → {cell.key}",
    )
