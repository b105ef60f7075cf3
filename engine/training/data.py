"""Text for training: which files, which of them are held out, and the windows drawn from them."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engine.errors import TrainingError
from engine.memory import available_bytes
from engine.tokenizers import Tokenizer

IntArray = NDArray[np.int64]

_FEWEST_DRAWN = 4  # tokens that come again and again
SHORTEST_REPEAT = 8  # tokens; a shorter copy is found by chance in any text


@dataclass(frozen=True)
class Texts:
    """The texts to learn from and those to be judged by, whole files each."""

    training: tuple[str, ...]
    held_out: tuple[str, ...]


def read_texts(
    paths: Sequence[Path], held_out: Iterable[str] = (), held_out_share: float = 0.0
) -> Texts:
    """Read files, and the `.txt` files of folders; `held_out` are file names without `.txt`.

    Or else a share of each file is held out, at its end.

    Raises:
        TrainingError: nothing to read, not UTF-8, more than there is memory for, an unknown
            held-out name, or an empty side.
    """
    if not 0 <= held_out_share < 1:
        raise TrainingError(
            f"a held-out share of {held_out_share} is not possible; it must be less than 1."
        )
    files: list[Path] = []
    for path in paths:
        if not path.exists():
            raise TrainingError(f"{path} does not exist; give text files or folders of them.")
        files += sorted(path.glob("*.txt")) if path.is_dir() else [path]
    if not files:
        raise TrainingError(
            f"{paths[0] if paths else 'the data'} holds no .txt file to learn from."
        )
    names = list(held_out)
    for name in names:
        if name not in {file.stem for file in files}:
            raise TrainingError(f"the held-out text {name!r} is not among the data.")
    _check_room(files)
    texts = {file: _read(file) for file in files}
    training = tuple(text for file, text in texts.items() if file.stem not in names)
    judged = tuple(text for file, text in texts.items() if file.stem in names)
    if held_out_share:
        training, judged = zip(*(cut_off(text, held_out_share) for text in training), strict=True)
    texts_read = Texts(training, judged)
    _check_sides(texts_read, paths, held_out_share)
    return texts_read


def _check_room(files: Sequence[Path]) -> None:
    """See that the bytes and the text made of them have room, before any is read."""
    n_bytes, free = sum(map(_size, files)), available_bytes()
    if free is not None and 2 * n_bytes > free:
        raise TrainingError(
            f"{files[0]}{' and the other files have' if len(files) > 1 else ' has'} {n_bytes:,} "
            f"bytes, and only {free:,} bytes of memory are free; choose less text."
        )


def _size(path: Path) -> int:
    with _in_sentences(path):
        return path.stat().st_size


def _check_sides(texts: Texts, paths: Sequence[Path], held_out_share: float) -> None:
    if not "".join(texts.training):
        raise TrainingError("the data is empty; at least one file must hold text to learn from.")
    if "".join(texts.held_out):
        return
    if held_out_share:
        raise TrainingError(
            f"{paths[0]} is too short: {held_out_share:.0%} of it, which would be held out, is "
            "less than one character; choose a longer text."
        )
    raise TrainingError("no text is held out; name at least one file that is not empty.")


def cut_off(text: str, share: float) -> tuple[str, str]:
    """The text without its last part, and that part, which is the share of its characters."""
    stop = len(text) - round(share * len(text))
    return text[:stop], text[stop:]


@contextmanager
def _in_sentences(path: Path) -> Iterator[None]:
    """What is wrong with a file, in one sentence."""
    try:
        yield
    except OSError as error:
        raise TrainingError(f"{path} cannot be read: {error.strerror or error}.") from error


def _read(path: Path) -> str:
    with _in_sentences(path):
        data = path.read_bytes()
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise TrainingError(
            f"{path} is not text in UTF-8 (byte {error.start} is not); convert it first."
        ) from None
    except OSError as error:
        raise TrainingError(f"{path} cannot be read: {error.strerror}.") from error


class TrainingData:
    """Owns the token ids [tokens] of both sides, and how many characters each token completes.

    Raises:
        TrainingError: a side is shorter than one window of `longest` tokens and its target.
    """

    def __init__(self, texts: Texts, tokenizer: Tokenizer, longest: int) -> None:
        self.training = _encode(texts.training, tokenizer)
        self.held_out = _encode(texts.held_out, tokenizer)
        for side, token_ids in (("data", self.training), ("held-out text", self.held_out)):
            if len(token_ids) <= longest:
                raise TrainingError(
                    f"the {side} has {len(token_ids)} tokens; windows of {longest} tokens need "
                    f"at least {longest + 1}."
                )
        # A character is complete with its first byte; the other bytes of UTF-8 are 10xxxxxx.
        self.characters: IntArray = np.array(
            [
                sum(byte & 0xC0 != 0x80 for byte in tokenizer.token_bytes(token_id))
                for token_id in range(tokenizer.vocab_size)
            ],
            dtype=np.int64,
        )

    def digest(self) -> str:
        """A fingerprint of the token ids: a training must go on with what it began with."""
        return hashlib.sha256(self.training.tobytes() + self.held_out.tobytes()).hexdigest()

    def windows(
        self, seed: int, step: int, count: int, length: int, repeat_share: float
    ) -> IntArray:
        """Random windows [count, length + 1] to learn from at one step: inputs and last target.

        They depend on `seed` and `step` alone, so a training that is taken up again draws what
        it would have drawn. In a share of them a passage comes again, so that looking back for
        an earlier copy pays; in half of these its tokens are shuffled first and fill the whole
        window again and again, so that nothing but the copy tells what comes next.
        """
        random = np.random.default_rng((seed, step))
        starts = random.integers(0, len(self.training) - length, size=count)
        windows: IntArray = self.training[starts[:, None] + np.arange(length + 1)]
        for row in np.flatnonzero(random.random(count) < repeat_share):
            _repeat(windows[row], random)
        return windows

    def copying_windows(self, seed: int, step: int, count: int, length: int) -> IntArray:
        """Windows [count, length + 1] of a few tokens drawn one by one, again and again.

        Each token is as frequent as in the text, so that only copying does better than its
        frequency: in such windows heads learn to copy within a few hundred steps, in text they
        take thousands.
        """
        random = np.random.default_rng((seed, step))
        windows = np.empty((count, length + 1), np.int64)
        for row, size in enumerate(random.integers(_FEWEST_DRAWN, length // 2 + 1, size=count)):
            windows[row] = np.resize(random.choice(self.training, size), length + 1)
        return windows

    def held_out_windows(self, length: int, at_most: int | None = None) -> Iterator[IntArray]:
        """Windows [length + 1] side by side over the held-out text; evenly spread if fewer."""
        starts = np.arange(0, len(self.held_out) - length, length)
        if at_most is not None and at_most < len(starts):
            starts = starts[np.linspace(0, len(starts) - 1, at_most).astype(int)]
        for start in starts:
            yield self.held_out[start : start + length + 1]


def _encode(texts: Sequence[str], tokenizer: Tokenizer) -> IntArray:
    return np.concatenate([np.array(tokenizer.encode(text), dtype=np.int64) for text in texts])


def _repeat(window: IntArray, random: np.random.Generator) -> None:
    """Copy a random passage of the window to a random later place in it, or fill it with one.

    Half of the passages keep their order and are copied once. The tokens of the others are
    shuffled and tiled over the window: only copying predicts them, and it pays at every token
    from the second time on, which is what makes heads learn it early.
    """
    longest = len(window) // 2
    if longest <= SHORTEST_REPEAT:
        return
    size = int(random.integers(SHORTEST_REPEAT, longest + 1))
    source = int(random.integers(0, len(window) - 2 * size + 1))
    passage = window[source : source + size].copy()
    if random.random() < 0.5:
        window[:] = np.resize(random.permutation(passage), len(window))
        return
    target = int(random.integers(source + size, len(window) - size + 1))
    window[target : target + size] = passage
