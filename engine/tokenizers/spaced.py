"""The space that many vocabularies put before a text, because their words begin with one.

SentencePiece writes "to be" as "▁to▁be": a first word is the token that it is within a text. The
space is the vocabulary's, not the text's. So it is put in when a text is encoded and left out when
its tokens are spelled, and every text comes back, even one that begins with spaces of its own.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

_SPACE = b" "


class Spaced:
    """Owns the tokens that are found in a text before it is merged, and knows where a space goes.

    It goes before the text; with `everywhere` also before what follows such a token, as llama.cpp
    and the normaliser `Prepend` of the `tokenizers` library do it. It never goes before such a
    token itself.
    """

    def __init__(
        self,
        apart: Mapping[str, int],
        *,
        everywhere: bool,
        single_words: frozenset[str] = frozenset(),
    ) -> None:
        """`apart` are the ids of those tokens; `single_words` are no parts of longer words."""
        self._ids = dict(apart)
        self._everywhere = everywhere
        self._apart = frozenset(apart.values())
        longest_first = sorted(filter(None, apart), key=len, reverse=True)
        patterns = [
            rf"(?<!\w){re.escape(token)}(?!\w)" if token in single_words else re.escape(token)
            for token in longest_first
        ]
        self._found = re.compile(f"({'|'.join(patterns)})") if patterns else None

    def pieces(self, text: str) -> Iterator[int | str]:
        """The text in order: ids of tokens that stand apart, and what is to be merged."""
        parts = [text] if self._found is None else self._found.split(text)
        for i, part in enumerate(parts):
            if i % 2:
                yield self._ids[part]
            elif part:
                has_space = self._everywhere or i == 0
                yield f" {part}" if has_space else part

    def spell(self, token_ids: Sequence[int], token_bytes: Sequence[bytes]) -> tuple[bytes, ...]:
        """What tokens of these bytes stand for in a text: all of them but the spaces put in."""
        spelled, is_first = [], True
        for token_id, data in zip(token_ids, token_bytes, strict=True):
            is_apart = token_id in self._apart
            spelled.append(data.removeprefix(_SPACE) if is_first and not is_apart else data)
            is_first = self._everywhere and is_apart
        return tuple(spelled)
