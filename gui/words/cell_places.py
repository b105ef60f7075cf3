"""The stages of the Cell panel by name, and which of them a line of the engine computes."""

import ast
from collections.abc import Iterator
from typing import NamedTuple

from engine.answers.code_lines import Line
from engine.answers.source import Source

QUERY_AND_KEY = "1 Query and key"
SCORE = "2 Score"
WEIGHT = "3 Weight"
VALUES = "4 Values"
RESIDUAL = "5 Into the residual"


class CellPlace(NamedTuple):
    """A stage, and whether what it comes to is meant, or else what it begins with."""

    stage: str
    is_result: bool = False


# What a line of `attend` gives, by its name.
_GIVEN = {
    "scores": CellPlace(SCORE, is_result=True),
    "weights": CellPlace(WEIGHT, is_result=True),
    "mix": CellPlace(VALUES, is_result=True),
}
_PROJECTED = {"joined", "qk", "q", "k", "v"}


def place_of(line: Line) -> CellPlace | None:
    """The stage that a line computes, by what it took and gave; None: that is no stage."""
    took = {operand.name for operand in line.takes}
    for given in line.gives:
        if given.name == "scores" and "q" in took:
            return CellPlace(SCORE)  # q · k, which the stage begins with
        if given.name in _GIVEN:
            return _GIVEN[given.name]
    return None


def places_in(source: Source) -> tuple[CellPlace | None, ...]:
    """For each line of a function around those, its stage."""
    places: list[CellPlace | None] = []
    for statement in source.statements:
        (node,) = ast.parse(statement.text).body
        place = _of_statement(source.name, node)
        places += [place] * len(statement.text.splitlines())
    return tuple(places)


def _of_statement(function: str, statement: ast.stmt) -> CellPlace | None:
    if function == "Scoring.masked":
        return CellPlace(SCORE, is_result=True)
    if function not in ("Attention.forward", "Attention.project"):
        return None
    if isinstance(statement, ast.Return):
        return CellPlace(RESIDUAL if function == "Attention.forward" else QUERY_AND_KEY)
    names = set(_assigned(statement))
    return CellPlace(QUERY_AND_KEY) if names and names <= _PROJECTED else None


def _assigned(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement gives a value to, at any depth."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
