"""How a token is written on screen, in a tooltip and for a screen reader. No Qt.

A token is bytes, and not always whole characters. What would be invisible is made visible: spaces
as ␣, newlines as ⏎, tabs as ⇥, everything else without a shape by its name in ‹›, bytes that are no
whole UTF-8 character in hexadecimal in ‹›.
"""

import math
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import groupby, pairwise

import numpy as np

SPACE, NEWLINE, TAB, DOTTED_CIRCLE = "␣", "⏎", "⇥", "◌"
ISOLATE, END_ISOLATE = "\u2068", "\u2069"

_MARKS = {" ": SPACE, "\n": NEWLINE, "\t": TAB}
_CONTROLS = (  # noqa: SIM905 - as a list it would fill half a screen
    "NUL SOH STX ETX EOT ENQ ACK BEL BS HT LF VT FF CR SO SI "
    "DLE DC1 DC2 DC3 DC4 NAK SYN ETB CAN EM SUB ESC FS GS RS US"
).split()
_NAMES = {
    **{chr(code): name for code, name in enumerate(_CONTROLS)},
    "\x7f": "DEL",
    "\x85": "NEL",
    "\u00a0": "NBSP",
    "\u00ad": "SHY",
    "\u034f": "CGJ",
    "\u061c": "ALM",
    "\u115f": "HCF",
    "\u1160": "HJF",
    "\u180e": "MVS",
    "\u200b": "ZWSP",
    "\u200c": "ZWNJ",
    "\u200d": "ZWJ",
    "\u200e": "LRM",
    "\u200f": "RLM",
    "\u2028": "LS",
    "\u2029": "PS",
    "\u202a": "LRE",
    "\u202b": "RLE",
    "\u202c": "PDF",
    "\u202d": "LRO",
    "\u202e": "RLO",
    "\u202f": "NNBSP",
    "\u2060": "WJ",
    "\u2066": "LRI",
    "\u2067": "RLI",
    "\u2068": "FSI",
    "\u2069": "PDI",
    "\u2800": "BRAILLE BLANK",
    "\u3000": "IDEOGRAPHIC SPACE",
    "\u3164": "HF",
    "\ufeff": "BOM",
    "\uffa0": "HWHF",
    **{chr(0xFE00 + i): f"VS{i + 1}" for i in range(16)},
}
_SPOKEN = {
    " ": ("space", "spaces"),
    "\n": ("newline", "newlines"),
    "\t": ("tab", "tabs"),
    "\r": ("carriage return", "carriage returns"),
    "\x00": ("null character", "null characters"),
}
_RIGHT_TO_LEFT = {"R", "AL", "AN"}


@lru_cache(maxsize=1 << 16)
def display(token_bytes: bytes, limit: int | None = None) -> str:
    """The token as one line of visible text, at most `limit` characters of it and then "…"."""
    if token_bytes.isascii() and limit is None:
        text = token_bytes.decode("ascii")
        if text and text.isprintable():
            return text.replace(" ", SPACE)
    shown: list[str] = []
    literal: list[str] = []
    for count, piece in enumerate(_pieces(token_bytes)):
        if limit is not None and count >= limit:
            literal.append("…")
            break
        name = f"‹{piece.hex(' ').upper()}›" if isinstance(piece, bytes) else _named(piece)
        if name is None:
            assert isinstance(piece, str)  # noqa: S101 - bytes always have a name
            literal.append(_drawn(piece, literal))
        else:
            shown += [_isolated("".join(literal)), name]
            literal.clear()
    shown.append(_isolated("".join(literal)))
    return "".join(shown) or "‹empty›"


def describe(
    token_bytes: bytes,
    token_id: int,
    position: int | None,
    *,
    loss: float = math.nan,
    part_of: str = "",
    notes: Sequence[str] = (),
) -> str:
    """All that is known of one token, as lines of plain text.

    `loss` is a float32 in nats, NaN where there is none, and told with all its digits; `part_of`
    is the character that this token spells together with its neighbours; each of `notes` is a
    line of its own.
    """
    where = "" if position is None else f" · position {position}"
    lines = [display(token_bytes, 200), f"id {token_id}{where}", f"bytes {_hex(token_bytes)}"]
    if part_of:
        lines.append(f"part of {part_of}")
    if not math.isnan(loss):
        lines.append(
            f"loss {np.float32(loss)!s} nats · {loss / math.log(2)!r} bits · "
            f"probability {math.exp(-loss)!r}"
        )
    return "\n".join([*lines, *notes])


@lru_cache(maxsize=1 << 12)
def speak(token_bytes: bytes) -> str:
    """The token in words, for a screen reader: "space king", "2 newlines", "bytes E2 82"."""
    if not token_bytes:
        return "empty token"
    pieces = list(_pieces(token_bytes))
    has_words = any(isinstance(piece, str) and piece.isalnum() for piece in pieces)
    words: list[str] = []
    for spoken, run in groupby(pieces, key=lambda piece: _spoken(piece, has_words=has_words)):
        same = list(run)
        if spoken is None:
            words.append("".join(piece for piece in same if isinstance(piece, str)))
        elif spoken[1] and len(same) > 1:
            words.append(f"{len(same)} {spoken[1]}")
        else:
            words += [spoken[0]] * len(same)
    return " ".join(words)


def group(tokens_bytes: Sequence[bytes]) -> list[tuple[int, int]]:
    """The tokens as runs [start, stop) in order: a character spelled by several is one run."""
    joined = joined_to_previous(tokens_bytes)
    starts = [i for i, is_joined in enumerate(joined) if not is_joined]
    return list(pairwise([*starts, len(joined)]))


def joined_to_previous(tokens_bytes: Sequence[bytes]) -> list[bool]:
    """For each token whether its first bytes end a character that the token before began.

    The answer at a boundary depends on at most three bytes to each side of it.
    """
    joined = [False] * len(tokens_bytes)
    broken = [i for i, token in enumerate(tokens_bytes) if not _is_whole(token)]
    for _, run in groupby(enumerate(broken), key=lambda pair: pair[1] - pair[0]):
        places = [place for _, place in run]
        data = b"".join(tokens_bytes[place] for place in places)
        inside = {at for start, stop in _characters(data) for at in range(start + 1, stop)}
        at = 0
        for place in places:
            joined[place] = at in inside
            at += len(tokens_bytes[place])
    return joined


def begun_character(tokens_bytes: Sequence[bytes], index: int) -> str:
    """The character that ends this token's bytes and that the next ones complete, "" if none."""
    own = tokens_bytes[index][-3:]
    spelled = own + b"".join(tokens_bytes[index + 1 : index + 4])[:3]
    for start, stop in _characters(spelled):
        if start < len(own) < stop:
            return display(spelled[start:stop])
    return ""


def _is_whole(token: bytes) -> bool:
    if token.isascii():
        return True
    try:
        token.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return False
    return True


def _length(lead: int) -> int:
    """How many bytes a character takes that begins with this one; 0 if none does."""
    if lead < 0x80:
        return 1
    return 0 if lead < 0xC2 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4 if lead < 0xF5 else 0


def _characters(data: bytes) -> Iterator[tuple[int, int]]:
    """The byte ranges of the whole characters, lone surrogates among them."""
    at = 0
    while at < len(data):
        stop = at + _length(data[at])
        if stop > at and stop <= len(data) and _is_whole(data[at:stop]):
            yield at, stop
            at = stop
        else:
            at += 1


def _pieces(data: bytes) -> Iterator[str | bytes]:
    """Whole characters as str, what lies between them as bytes."""
    at = 0
    for start, stop in _characters(data):
        if start > at:
            yield data[at:start]
        yield data[start:stop].decode("utf-8", "surrogatepass")
        at = stop
    if at < len(data):
        yield data[at:]


def _named(char: str) -> str | None:
    """What stands for a character that has no shape of its own, None for one that has."""
    if char in _MARKS:
        return None
    if char in _NAMES:
        return f"‹{_NAMES[char]}›"
    category = unicodedata.category(char)
    if category == "Cs":
        return f"\\u{ord(char):04X}"
    if (
        category in {"Cc", "Cf", "Cn", "Co", "Zs", "Zl", "Zp"}
        or "\U000e0100" <= char < "\U000e01f0"
    ):
        return f"‹U+{ord(char):04X}›"
    return None


def _drawn(char: str, before: list[str]) -> str:
    if char in _MARKS:
        return _MARKS[char]
    has_base = bool(before) and before[-1] not in _MARKS.values()
    if unicodedata.category(char)[0] == "M" and not has_base:
        return DOTTED_CIRCLE + char
    return char


def _isolated(text: str) -> str:
    """Right-to-left text shut in, so that it cannot reorder its surroundings."""
    if text.isascii() or not any(unicodedata.bidirectional(c) in _RIGHT_TO_LEFT for c in text):
        return text
    lead = len(text) - len(text.lstrip(SPACE))
    return f"{text[:lead]}{ISOLATE}{text[lead:]}{END_ISOLATE}"


def _spoken(piece: str | bytes, *, has_words: bool) -> tuple[str, str] | None:
    """One piece in words and in the plural; None for what is spoken as part of its word."""
    if isinstance(piece, bytes):
        return f"bytes {piece.hex(' ').upper()}", ""
    if piece in _SPOKEN:
        return _SPOKEN[piece]
    category = unicodedata.category(piece)
    if category[0] in "LN" or (has_words and category[0] in "PM"):
        return None
    if category == "Cs":
        return f"lone surrogate {ord(piece):04X}", ""
    if category == "Cc":
        return f"control character {_NAMES.get(piece, f'{ord(piece):02X}')}", ""
    return unicodedata.name(piece, f"character U+{ord(piece):04X}").lower(), ""


def _hex(data: bytes) -> str:
    most = 32
    more = f" … ({len(data)} bytes)" if len(data) > most else ""
    return data[:most].hex(" ").upper() + more or "none"
