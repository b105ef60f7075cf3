"""Data for training: whole files held out, passages repeated, unusable files refused."""

from pathlib import Path

import numpy as np
import pytest

from engine.errors import TrainingError
from engine.tokenizers import Characters
from engine.training.data import Texts, TrainingData, read_texts

VERSE = "Full fathom five thy father lies;\nOf his bones are coral made;\n"
TEXTS = Texts((VERSE * 40,), (VERSE * 8,))
TOKENIZER = Characters.train(TEXTS.training)


def test_a_share_of_the_windows_repeats_a_passage() -> None:
    """Without it, a random text has no passage of 8 tokens twice; with it, each window does."""
    random = np.random.default_rng(0)
    data = TrainingData(TEXTS, TOKENIZER, 32)
    data.training = random.integers(0, 10**6, size=5000)

    def repeats(window: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> bool:
        passages = [tuple(window[i : i + 8]) for i in range(len(window) - 7)]
        return len(set(passages)) < len(passages)

    none = data.windows(seed=1, step=0, count=50, length=64, repeat_share=0.0)
    some = data.windows(seed=1, step=0, count=50, length=64, repeat_share=0.5)
    assert not any(map(repeats, none))
    assert 10 < sum(map(repeats, some)) < 40
    assert np.array_equal(some, data.windows(1, 0, 50, 64, 0.5))
    assert not np.array_equal(some, data.windows(1, 1, 50, 64, 0.5))


def _write(folder: Path, **texts: str | bytes) -> Path:
    for name, text in texts.items():
        data = text if isinstance(text, bytes) else text.encode()
        (folder / f"{name}.txt").write_bytes(data)
    return folder


def test_more_than_there_is_memory_for_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As bytes and as text it is in memory twice."""
    folder = _write(tmp_path, a=VERSE, b=VERSE)
    n_bytes = 2 * len(VERSE)
    monkeypatch.setattr("engine.training.data.available_bytes", lambda: 2 * n_bytes)
    assert read_texts([folder], ["b"]).training == (VERSE,)
    monkeypatch.setattr("engine.training.data.available_bytes", lambda: 2 * n_bytes - 1)
    sentence = rf"a\.txt and the other files have {n_bytes} bytes, and only {2 * n_bytes - 1} bytes"
    with pytest.raises(TrainingError, match=sentence):
        read_texts([folder], ["b"])


def test_what_cannot_be_read_is_named_with_the_reason(tmp_path: Path) -> None:
    folder = _write(tmp_path, a=VERSE)
    (folder / "b.txt").mkdir()
    with pytest.raises(TrainingError, match=r"b\.txt cannot be read: "):
        read_texts([folder], ["a"])


def test_whole_files_are_held_out_by_name(tmp_path: Path) -> None:
    """Whole files are held out by name."""
    folder = _write(tmp_path, a="one", b="two", c="three")
    assert read_texts([folder], ["b"]) == Texts(("one", "three"), ("two",))


def test_unusable_data_is_refused_in_one_sentence(tmp_path: Path) -> None:
    """Unusable data is refused in one sentence."""
    with pytest.raises(TrainingError, match=r"holds no \.txt file"):
        read_texts([tmp_path], ["b"])
    with pytest.raises(TrainingError, match="nowhere does not exist"):
        read_texts([tmp_path / "nowhere"], ["b"])
    folder = _write(tmp_path, a="", b=VERSE)
    with pytest.raises(TrainingError, match="'z' is not among the data"):
        read_texts([folder], ["z"])
    with pytest.raises(TrainingError, match="the data is empty"):
        read_texts([folder], ["b"])
    with pytest.raises(TrainingError, match="no text is held out"):
        read_texts([folder], [])
    with pytest.raises(TrainingError, match=r"c\.txt is not text in UTF-8 \(byte 2 is not\)"):
        read_texts([_write(tmp_path, c=b"ab\xff\xfe")], ["b"])
    with pytest.raises(TrainingError, match="the data has 5 tokens; windows of 16"):
        TrainingData(Texts(("short",), (VERSE,)), TOKENIZER, 16)
    with pytest.raises(TrainingError, match="the held-out text has 5 tokens"):
        TrainingData(Texts((VERSE,), ("short",)), TOKENIZER, 16)


def test_copying_windows_repeat_a_few_tokens_of_the_text_and_depend_on_seed_and_step() -> None:
    """Each window is one passage of at most half its length, over and over."""
    data = TrainingData(TEXTS, TOKENIZER, 64)
    windows = data.copying_windows(seed=1, step=0, count=40, length=64)
    assert windows.shape == (40, 65)
    assert np.isin(windows, data.training).all()
    for window in windows:
        periods = [n for n in range(1, 33) if (window[n:] == window[:-n]).all()]
        assert periods
    assert np.array_equal(windows, data.copying_windows(1, 0, 40, 64))
    assert not np.array_equal(windows, data.copying_windows(1, 1, 40, 64))
