"""Finds tokens of a vocabulary by a part of their text, or by their id. No Qt."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gui.widgets.token_text import NEWLINE, SPACE, TAB

_MARKS = {SPACE: " ", NEWLINE: "\n", TAB: "\t"}


class TokenMatches:
    """Searches one vocabulary; ids beyond its texts are found by number alone."""

    def __init__(self, vocabulary: Sequence[bytes], n_ids: int) -> None:
        self.vocabulary = vocabulary
        self._n_ids = n_ids

    @cached_property
    def _lowered(self) -> list[bytes]:
        return [token.lower() for token in self.vocabulary]

    def find(self, text: str, ranks: NDArray[np.intp], most: int) -> list[int]:
        """At most so many ids, the best first.

        A number finds the token with that id before those with its digits. Then come tokens that
        are the text, that are it in other letter case, that begin with it, that hold it; each by
        rank [V]. A space before a token does not matter, but spaces that are looked for do.
        """
        if not text:
            return [int(i) for i in np.argsort(ranks, kind="stable")[:most]]
        found: list[int] = []
        digits = text.strip().removeprefix("#")
        if digits.isascii() and digits.isdigit() and len(digits) < 10 and int(digits) < self._n_ids:
            found.append(int(digits))
        needle = self._needle(text)
        lowered = needle.lower()
        graded = [
            (self._grade(token_id, needle, lowered), int(ranks[token_id]), token_id)
            for token_id, token in enumerate(self._lowered)
            if lowered in token
        ]
        found += [token_id for _, _, token_id in sorted(graded) if token_id not in found[:1]]
        return found[:most]

    @staticmethod
    def _needle(text: str) -> bytes:
        """The text as it may stand in a token; the marks of spaces and newlines stand for them."""
        plain = "".join(_MARKS.get(letter, letter) for letter in text)
        return plain.encode("utf-8", "surrogatepass")

    def _grade(self, token_id: int, needle: bytes, lowered: bytes) -> int:
        token, small = self.vocabulary[token_id], self._lowered[token_id]
        if needle in {token, token.removeprefix(b" ")}:
            return 0
        if lowered in {small, small.removeprefix(b" ")}:
            return 1
        return 2 if small.removeprefix(b" ").startswith(lowered) or small.startswith(lowered) else 3
