"""A text as a QTextDocument can hold it, and back, without losing a character.

Qt's documents turn some characters into line ends (carriage return, U+2029, U+FDD0, U+FDD1), the
way from Python to Qt drops lone surrogates and a leading U+FEFF, and one paragraph of a million
characters takes Qt half a minute to lay out. So the former are held 0x100000 further up, in the
last plane of private use (a real character from there would come back as its twin below), and
long paragraphs are cut into blocks whose ends carry a mark that the text does not.
"""

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gui.widgets.agreement import agreeing

CUT = "\U0010fffe"  # a noncharacter: no text is allowed to carry it
_PLANE = 0x100000
_HELD_ELSEWHERE = re.compile("[\ud800-\udfff\r\u2029\ufdd0\ufdd1\ufeff]")
_MOVED = re.compile("[\U0010d800-\U0010dfff\U0010000d\U00102029\U0010fdd0\U0010fdd1\U0010feff]")
_LONGEST_BLOCK = 4096
_LONG_PARAGRAPH = re.compile(f"[^\n]{{{_LONGEST_BLOCK + 1},}}")
_BLOCK = re.compile(f"(?s).{{1,{_LONGEST_BLOCK}}}")


def held(text: str) -> str:
    """What to put into the document, newlines as such, for this text to come out of it."""
    text = _HELD_ELSEWHERE.sub(lambda found: chr(ord(found[0]) + _PLANE), text)
    if len(text) <= _LONGEST_BLOCK:
        return text
    return _LONG_PARAGRAPH.sub(lambda found: f"{CUT}\n".join(_BLOCK.findall(found[0])), text)


def told(raw: str) -> str:
    """The text of a document, given its `toRawText()`."""
    text = raw.replace("\u2029", "\n")
    if text.isascii():
        return text
    text = text.replace(f"{CUT}\n", "").replace(CUT, "")
    return _MOVED.sub(lambda found: chr(ord(found[0]) - _PLANE), text)


@dataclass(frozen=True)
class Places:
    """Where the characters of a text stand in the document, counted in Qt's UTF-16 units."""

    units: NDArray[np.int64] | None  # [characters + 1]; None: character i is unit i

    @classmethod
    def of(cls, raw: str) -> "Places":
        """The places of all characters of `told(raw)`, and of its end."""
        if len(raw.encode("utf-16-le", "surrogatepass")) == 2 * len(raw):
            return cls(None)
        codes = np.frombuffer(raw.encode("utf-32-le", "surrogatepass"), np.uint32)
        ends = np.cumsum(np.where(codes > 0xFFFF, 2, 1))
        is_cut = codes == ord(CUT)
        after_cut = np.concatenate(([False], is_cut[:-1])) & (codes == 0x2029)
        starts = np.concatenate(([0], ends[:-1]))[~(is_cut | after_cut)]
        return cls(np.append(starts, ends[-1]))

    def __call__(self, characters: ArrayLike) -> NDArray[np.int64]:
        """The UTF-16 position of each of these character positions."""
        indices = np.asarray(characters, np.int64)
        if self.units is None:
            return indices
        return self.units[np.clip(indices, 0, len(self.units) - 1)]


def difference(old: str, new: str) -> tuple[int, int, int]:
    """What to replace: old[start:stop] with new[start:end], as little as possible."""
    if new.startswith(old):  # text that grows at its end, the common case
        return len(old), len(old), len(new)
    start = agreeing(old, new)
    tail = agreeing(old[start:][::-1], new[start:][::-1])
    return start, len(old) - tail, len(new) - tail
