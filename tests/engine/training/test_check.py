"""Whether texts can be trained on, told before anything starts."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from engine.errors import TrainingError
from engine.training.check import check_texts
from engine.training.plan import TrainingPlan, memory_bytes

VERSE = "Full fathom five thy father lies;\nOf his bones are coral made;\n"
PLAN = TrainingPlan(context=32, n_layer=1)
BPE = replace(PLAN, tokenizer="byte-bpe", vocab_size=300)
PLENTY = 10**12


def _check(path: Path, plan: TrainingPlan = PLAN, available: int | None = PLENTY) -> object:
    return check_texts(plan, [path], (), 0.1, available)


def _file(folder: Path, contents: bytes) -> Path:
    path = folder / "text.txt"
    path.write_bytes(contents)
    return path


def test_a_usable_text_is_counted(tmp_path: Path) -> None:
    """The last tenth of its characters is held out; all different ones are tokens, and bytes."""
    text = VERSE * 20
    facts = check_texts(PLAN, [_file(tmp_path, text.encode())], (), 0.1, None)
    assert facts.n_held_out == round(len(text) / 10)
    assert facts.n_characters + facts.n_held_out == len(text)
    assert facts.vocab_size == len(set(text)) + 256


def test_files_held_out_by_name_are_counted_whole(tmp_path: Path) -> None:
    for name, n_verses in (("a", 30), ("b", 9)):
        (tmp_path / f"{name}.txt").write_text(VERSE * n_verses, encoding="utf-8")
    paths = [tmp_path / "a.txt", tmp_path / "b.txt"]
    facts = check_texts(BPE, paths, ("b",), 0.0, PLENTY)
    assert (facts.n_characters, facts.n_held_out) == (30 * len(VERSE), 9 * len(VERSE))
    assert facts.vocab_size == 300


@pytest.mark.parametrize(
    ("contents", "sentence"),
    [
        (b"", "is empty; choose a file with text in it"),
        (b" \n" * 500, "holds nothing but white space"),
        (b"\xff\xfe" + "Full".encode("utf-16-le"), "is not text in UTF-8"),
        (b"PK\x03\x04\0\0\0" * 300, "is not text: there are zero bytes in it"),
        (bytes(range(1, 32)) * 300, "is not text: 7,800 of its characters are control"),
        (b"abc", "is too short: 10% of it"),
        (b"To be, or not to be" * 10, "is too short: it has 19 tokens held out to judge by"),
    ],
)
def test_an_unusable_file_is_named_in_one_sentence(
    tmp_path: Path, contents: bytes, sentence: str
) -> None:
    path = _file(tmp_path, contents)
    with pytest.raises(TrainingError, match=sentence) as told:
        _check(path)
    assert str(path) in str(told.value)


@pytest.mark.parametrize("letter", ["a", "é", "5", "-", " "])
def test_a_text_without_words_is_for_characters_alone(tmp_path: Path, letter: str) -> None:
    """Across the parts in which it is looked at, too; a long word of a real text is none."""
    words = "to be or not to be, " * 14_000
    path = _file(tmp_path, (words[:250_000] + letter * 30_000 + words).encode())
    with pytest.raises(TrainingError, match="without a space or a mark") as told:
        _check(path, BPE)
    assert "choose characters as tokens" in str(told.value)
    _check(path)
    _check(_file(tmp_path, (words[:250_000] + letter * 300 + words).encode()), BPE)


def test_a_stray_control_character_is_no_reason_to_refuse_a_text(tmp_path: Path) -> None:
    _check(_file(tmp_path, (VERSE * 20 + "\x0c\x1a" + VERSE * 20).encode()))


def test_what_is_no_file_is_named_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="is a folder; choose one text file"):
        _check(tmp_path)
    with pytest.raises(TrainingError, match="does not exist"):
        _check(tmp_path / "nowhere.txt")
    with pytest.raises(TrainingError, match="is no file on a disk"):
        _check(Path(os.devnull))
    with pytest.raises(TrainingError, match="cannot be read"):
        _check(tmp_path / ("x" * 5000))


def test_words_count_as_tokens_where_they_are_merged(tmp_path: Path) -> None:
    """Long enough as characters, too short as byte-level BPE, which makes fewer tokens of it."""
    path = _file(tmp_path, (VERSE * 20).encode())
    _check(path, replace(PLAN, context=64))
    with pytest.raises(TrainingError, match="is too short: it has"):
        _check(path, replace(BPE, context=64, vocab_size=400))


def test_a_text_larger_than_the_memory_is_refused_unread(tmp_path: Path) -> None:
    """With the size that it has, what that takes, what is free, and what would do."""
    path = tmp_path / "huge.txt"
    with path.open("wb") as file:
        file.truncate(2**40)  # nothing of it is on the disk
    with pytest.raises(TrainingError, match=r"huge\.txt has 1 TiB") as told:
        _check(path, available=2**33)
    sentence = str(told.value)
    assert "about 20 TiB" in sentence
    assert "only 8 GiB of memory are free; choose a text of at most" in sentence


def test_a_model_larger_than_the_memory_is_refused(tmp_path: Path) -> None:
    path = _file(tmp_path, (VERSE * 20).encode())
    needed = memory_bytes(PLAN.config(PLAN.vocab_size))
    with pytest.raises(TrainingError, match="a model of these sizes takes about"):
        _check(path, available=needed - 1)
    _check(path, available=needed + 2**20)
    _check(path, available=None)
