"""Finds tokens of a vocabulary by a part of their text, or by their id. No Qt."""

import re
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gui.widgets.token_text import NEWLINE, SPACE, TAB

_MARKS = {SPACE: " ", NEWLINE: "\n", TAB: "\t"}
_BETWEEN = b"\xff"  # tokens; no text that is looked for holds this byte
_BEGINS, _HOLDS = 1, 2  # how good a match is; 0: the token is the text


class TokenMatches:
    """Searches one vocabulary; ids beyond its texts are found by number alone."""

    def __init__(self, vocabulary: Sequence[bytes], n_ids: int) -> None:
        self.vocabulary = vocabulary
        self._n_ids = n_ids

    @cached_property
    def _joined(self) -> bytes:
        """All tokens in small letters, one after the other: searched at C speed."""
        return _BETWEEN.join(self.vocabulary).lower()

    @cached_property
    def _lengths(self) -> NDArray[np.intp]:
        return np.fromiter(map(len, self.vocabulary), np.intp, len(self.vocabulary))

    @cached_property
    def _starts(self) -> NDArray[np.intp]:
        """Where each token begins in the joined text."""
        return np.cumsum(self._lengths + 1) - self._lengths - 1

    def find(self, text: str, ranks: NDArray[np.intp], most: int) -> list[int]:
        """At most so many ids, the best first.

        A number finds the token with that id before those with its digits. Then come tokens that
        are the text, that are it in other letter case, that begin with it, that hold it; each by
        rank [V]. A space before a token does not matter, but spaces that are looked for do.
        """
        if not text:
            return [int(i) for i in np.argsort(ranks, kind="stable")[:most]]
        digits = text.strip().removeprefix("#")
        found: list[int] = []
        if digits.isascii() and digits.isdigit() and len(digits) < 10 and int(digits) < self._n_ids:
            found.append(int(digits))
        plain = "".join(_MARKS.get(letter, letter) for letter in text)
        needle = plain.encode("utf-8", "surrogatepass")
        ordered = self._matching(needle, ranks)[: most + 1].tolist()
        # Sorting keeps the order of what is equally good.
        ordered.sort(key=lambda token_id: not self._is(token_id, needle))
        return [*found, *(each for each in ordered if each not in found)][:most]

    def _is(self, token_id: int, needle: bytes) -> bool:
        token = self.vocabulary[token_id]
        return needle in {token, token.removeprefix(b" ")}

    def _matching(self, needle: bytes, ranks: NDArray[np.intp]) -> NDArray[np.intp]:
        """The tokens that hold the text in any letter case, the best first."""
        small = re.escape(needle.lower())
        places = np.array([each.start() for each in re.finditer(small, self._joined)], np.intp)
        if not len(places):
            return places
        token_ids = np.searchsorted(self._starts, places, side="right") - 1
        before = places - self._starts[token_ids]
        joined = np.frombuffer(self._joined, np.uint8)
        is_spaced = (before == 1) & (joined[self._starts[token_ids]] == ord(" "))
        begins = (before == 0) | is_spaced
        is_whole = begins & (self._lengths[token_ids] - before == len(needle.lower()))
        grades = np.where(is_whole, 0, np.where(begins, _BEGINS, _HOLDS))
        ordered = token_ids[np.lexsort((token_ids, ranks[token_ids], grades))]
        _, first = np.unique(ordered, return_index=True)
        best: NDArray[np.intp] = ordered[np.sort(first)]
        return best
