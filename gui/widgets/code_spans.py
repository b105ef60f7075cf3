"""What a text with code is made of, and which letters of the code are what; no Qt."""

import io
import keyword
import tokenize
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal, NamedTuple

PartKind = Literal["title", "code", "shapes", "note", "sentence"]
Kind = Literal["keyword", "comment", "number", "query", "key", "value"]

# The names that have a hue of their own in every panel.
_HUES: dict[str, Kind] = {
    "q": "query",
    "query": "query",
    "k": "key",
    "key": "key",
    "keys": "key",
    "v": "value",
    "values": "value",
}


@dataclass(frozen=True)
class Part:
    """A paragraph, or some lines of code.

    `leads` has for each line what it leads to, None where that is nothing.
    """

    kind: PartKind
    text: str
    leads: tuple[Hashable | None, ...] = ()

    @property
    def n_lines(self) -> int:
        """How many it has."""
        return self.text.count("\n") + 1

    @property
    def line_leads(self) -> tuple[Hashable | None, ...]:
        """What each line leads to."""
        return (*self.leads, *(None,) * self.n_lines)[: self.n_lines]


class Span(NamedTuple):
    """Letters from `start` to before `stop`."""

    start: int
    stop: int
    kind: Kind


@cache
def spans(code: str) -> tuple[Span, ...]:
    """The letters of whole statements that are more than plain, in order, by Python's tokenizer.

    Kept, for there are no more texts of code than the engine has functions to be shown.
    """
    return tuple(_spans(code))


def _spans(code: str) -> Iterator[Span]:
    starts = [0]  # of the lines
    for line in code.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        kind = _kind(token)
        if kind is not None:
            (row, column), (last, end) = token.start, token.end
            yield Span(starts[row - 1] + column, starts[last - 1] + end, kind)


def _kind(token: tokenize.TokenInfo) -> Kind | None:
    if token.type == tokenize.COMMENT:
        return "comment"
    if token.type == tokenize.NUMBER:
        return "number"
    if token.type == tokenize.NAME:
        return "keyword" if keyword.iskeyword(token.string) else _HUES.get(token.string)
    return None
