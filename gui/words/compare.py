"""What is said of two runs side by side: titles, the cell that is pointed at, the whole; no Qt."""

from math import isnan
from pathlib import Path

import numpy as np

from engine.answers.alignment import ABSENT
from engine.answers.comparison import Comparison
from engine.loss import LossSummary
from gui.export.stamp import conditions_said
from gui.widgets.candidate_text import percent
from gui.widgets.lettering import quoted
from gui.widgets.scales import exact, signed
from gui.widgets.token_text import display, speak
from gui.words.names import plain

OPENING = "Opening"  # what a sentence begins with while a model is read
Cell = tuple[int, int]  # slots: of the query, of the key


def labels(comparison: Comparison) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """The labels of the slots [M], for A, for B and for what is different."""
    of_a, of_b = (
        tuple("" if at == ABSENT else display(tokens[at]) for at in places.tolist())
        for tokens, places in (
            (comparison.tokens_a, comparison.alignment.a),
            (comparison.tokens_b, comparison.alignment.b),
        )
    )
    both = tuple(
        f"{one}→{other}" if one and other and one != other else one or other
        for one, other in zip(of_a, of_b, strict=True)
    )
    return of_a, of_b, both


def titles(comparison: Comparison) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """What stands on top of A, of B and of B − A, the longest wording first."""
    first, second = comparison.losses
    mine, other = comparison.a, comparison.b
    differing = []
    if mine.info is not other.info:
        differing.append(plain(other.info.name))
    if (mine.focus.layer, mine.focus.head) != (other.focus.layer, other.focus.head):
        differing.append(f"L{other.focus.layer} H{other.focus.head}")
    if mine.conditions != other.conditions:
        differing.append(conditions_said(other.conditions))
    apart = second.mean - first.mean
    return (
        _title("A", (), first),
        _title("B", tuple(differing), second),
        ("B − A",) if isnan(apart) else (f"B − A: {signed(f'{apart:.3f}')} nats", "B − A"),
    )


def _title(name: str, differing: tuple[str, ...], loss: LossSummary) -> tuple[str, ...]:
    """What a run cost and in what it differs, in fewer and fewer words."""
    said = ", ".join(differing)
    if isnan(loss.mean):
        return f"{name}: {said}" if said else name, name
    short = f"{name}: {loss.mean:.2f} nats"
    long = f"{name}: loss {loss.mean:.3f} nats"
    return (f"{long}, {said}", f"{short}, {said}", short) if said else (long, short)


def loss_sentence(comparison: Comparison) -> str:
    """What both texts cost, and in bits per character where tokens do not compare."""
    first, second = comparison.losses
    if isnan(first.mean) or isnan(second.mean):
        return "A loss needs two tokens."
    said = (
        f"Loss: A {first.mean:.3f}, B {second.mean:.3f} nats per token, "
        f"B − A {signed(f'{second.mean - first.mean:.3f}')}"
    )
    if first.n_tokens != second.n_tokens:
        a, b = first.bits_per_character, second.bits_per_character
        said += f"; {a:.3f} and {b:.3f} bits per character"
    return f"{said}."


def cell_words(comparison: Comparison, cell: Cell) -> tuple[str, ...]:
    """All three numbers of a cell with every digit, in fewer and fewer words."""
    a, b, apart = (number for _name, number in cell_numbers(comparison, cell))
    numbers = f"A {a}, B {b}, B − A {apart}"
    query, key = (_slot(comparison, slot) for slot in cell)
    places = " → ".join(_places(comparison, slot) for slot in cell)
    return (
        f"{numbers}: query {query} → key {key}",
        f"{numbers}: {places}",
        numbers,
        f"A {a} · B {b} · {apart}",
    )


def cell_numbers(comparison: Comparison, cell: Cell) -> tuple[tuple[str, str], ...]:
    """A's weight, B's and the difference by name; or why there is none."""
    told = []
    for name, weights, visible, places in (
        ("A", comparison.weights_a, comparison.visible_a, comparison.alignment.a),
        ("B", comparison.weights_b, comparison.visible_b, comparison.alignment.b),
    ):
        if ABSENT in {int(places[slot]) for slot in cell}:
            told.append((name, "no token"))
        elif not visible[cell] and weights[cell] == 0:
            told.append((name, "masked"))
        else:
            told.append((name, exact(weights[cell])))
    there = bool(comparison.exists[cell])
    apart = signed(exact(comparison.difference[cell])) if there else "none"
    return (*told, ("B − A", apart))


def largest_cell(comparison: Comparison) -> Cell | None:
    """Where the largest difference is; None where there is none at all."""
    if not comparison.difference.any():
        return None
    at = int(np.abs(comparison.difference).argmax())
    row, column = np.unravel_index(at, comparison.difference.shape)
    return int(row), int(column)


def largest_words(comparison: Comparison) -> tuple[str, ...]:
    """The largest difference in words."""
    cell = largest_cell(comparison)
    if cell is None:
        if not comparison.exists.any():
            return ("The two have no cell in common",) * 2
        return "No weight of this head differs", "No difference"
    apart = signed(exact(comparison.difference[cell]))
    query, key = (_slot(comparison, slot) for slot in cell)
    return (
        f"Largest difference {apart}: query {query} → key {key}",
        f"Largest: {apart} at {' → '.join(_places(comparison, slot) for slot in cell)}",
    )


def way_sentence(comparison: Comparison) -> str:
    """Which tokens are compared, and how many have no counterpart."""
    n_pairs = len(comparison.alignment.pairs)
    way = "position by position" if comparison.way == "position" else "equal tokens"
    alone = comparison.a.n_tokens - n_pairs, comparison.b.n_tokens - n_pairs
    said = f"Compared {way}: {n_pairs} pairs of tokens"
    return f"{said}, {alone[0]} of A and {alone[1]} of B alone." if any(alone) else f"{said}."


def follows_words(comparison: Comparison) -> tuple[str, ...]:
    """After which tokens the candidates are compared."""
    if comparison.position_b is None:
        return ("The selected token has no counterpart in B.",)
    a, b = (
        f"{quoted(display(tokens[at], 20))} at {at} in {name}"
        for name, tokens, at in (
            ("A", comparison.tokens_a, comparison.a.position),
            ("B", comparison.tokens_b, comparison.position_b),
        )
    )
    return f"After {a} and {b}, plain softmax", f"After {a} and {b}", "Next token, plain softmax"


def next_sentence(comparison: Comparison) -> str:
    """The most probable token of each run in words."""
    tokens = comparison.next_tokens
    if tokens is None:
        return follows_words(comparison)[0]
    said = []
    for name, probs in (("A", tokens.prob_a), ("B", tokens.prob_b)):
        best = int(np.nanargmax(probs))
        said.append(f"{name} {speak(tokens.tokens[best])} {percent(float(probs[best]))}")
    return f"Most probable next: {', '.join(said)}."


def runs_sentence(comparison: Comparison) -> str:
    """Which two runs these are."""
    return " ".join(
        f"{name} is {plain(each.info.name)}, layer {each.focus.layer}, head {each.focus.head}, "
        f"{conditions_said(each.conditions)}."
        for name, each in (("A", comparison.a), ("B", comparison.b))
    )


def waiting(path: Path | None, *, is_open: bool) -> str:
    """What goes on until the next comparison is there: B's model is read, or runs."""
    if path is not None and not is_open:
        return f"{OPENING} {path.name} for B …"
    return "The second run is being worked out."


def _slot(comparison: Comparison, slot: int) -> str:
    """A slot's tokens with their positions, once if they are the same."""
    at_a, at_b = (int(each[slot]) for each in (comparison.alignment.a, comparison.alignment.b))
    a = "" if at_a == ABSENT else f"{at_a} {quoted(display(comparison.tokens_a[at_a], 20))}"
    b = "" if at_b == ABSENT else f"{at_b} {quoted(display(comparison.tokens_b[at_b], 20))}"
    return f"{a} / {b}" if a and b and a != b else a or b


def _places(comparison: Comparison, slot: int) -> str:
    at_a, at_b = (int(each[slot]) for each in (comparison.alignment.a, comparison.alignment.b))
    a, b = ("–" if at == ABSENT else str(at) for at in (at_a, at_b))
    return a if a == b else f"{a}/{b}"
