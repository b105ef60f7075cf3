"""Puts the words of a text into another order; on tokens, whatever a tokenizer cuts words into.

A word is a run of letters and digits, an apostrophe inside it included, with the space in front of
it. Words change places with each other; punctuation, line breaks and the token at the end, which
is the one that is asked what comes next, with the rest of its word, stay where they are.
"""

import re
from collections.abc import Iterator, Sequence

import numpy as np

_WORD = re.compile(r" ?[^\W_]+(?:['’][^\W_]+)*")


def shuffled_words(tokens: Sequence[bytes], seed: int) -> list[int]:
    """Which token comes where [T] once the seed has put the words in order; 0 leaves them alone.

    Tokens are the bytes that they spell; each is kept, so that nothing but the order changes. And
    it does change, whatever the seed, unless the words have no other order.
    """
    pieces = list(_pieces(tokens))
    movable = [at for at, (is_word, _tokens) in enumerate(pieces[:-1]) if is_word]
    words = [pieces[at] for at in movable]
    spelled = [b"".join(tokens[index] for index in indices) for _is_word, indices in words]
    if seed and len(set(spelled)) > 1:
        random = np.random.default_rng(seed)
        order = random.permutation(len(words))
        while [spelled[at] for at in order] == spelled:  # of two words every second order is that
            order = random.permutation(len(words))
        for at, word in zip(movable, order, strict=True):
            pieces[at] = words[word]
    return [index for _is_word, indices in pieces for index in indices]


def _pieces(tokens: Sequence[bytes]) -> Iterator[tuple[bool, list[int]]]:
    """The tokens of each word together, and every other token by itself."""
    word_of = _words_by_byte(b"".join(tokens))
    piece: list[int] = []
    latest, start = -1, 0
    for index, token in enumerate(tokens):
        words = [word for word in word_of[start : start + len(token)] if word >= 0]
        start += len(token)
        if piece and not (words and words[0] == latest):
            yield latest >= 0, piece
            piece = []
        piece.append(index)
        latest = words[-1] if words else -1
    if piece:
        yield latest >= 0, piece


def _words_by_byte(spelled: bytes) -> list[int]:
    """For each byte the number of its word, −1 between words."""
    text = spelled.decode("utf-8", "surrogateescape")  # a byte that is no text is a letter of none
    words = [-1] * len(text)
    for number, found in enumerate(_WORD.finditer(text)):
        words[found.start() : found.end()] = [number] * (found.end() - found.start())
    return [
        word
        for letter, word in zip(text, words, strict=True)
        for _byte in letter.encode("utf-8", "surrogateescape")
    ]
