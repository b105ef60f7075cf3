"""The shipped plays are the plays and nothing else, all in one layout."""

import re
from pathlib import Path

import pytest

from resources.corpus import held_out_names, play_paths
from resources.corpus.make import clean

HEADING = re.compile(r"ACT [IVX]+|SCENE [IVX]+\..*|PROLOGUE|EPILOGUE|INDUCTION")
PLAYS = play_paths()


def test_there_are_37_plays_and_two_of_them_are_held_out() -> None:
    """What is held out is there, whole, and about a twentieth of the text."""
    sizes = {path.stem: path.stat().st_size for path in PLAYS}
    held_out = held_out_names()
    assert len(sizes) == 37
    assert len(held_out) == 2
    share = sum(sizes[name] for name in held_out) / sum(sizes.values())
    assert 0.03 < share < 0.07


@pytest.mark.parametrize("path", PLAYS, ids=lambda path: path.stem)
def test_a_play_holds_nothing_but_the_play(path: Path) -> None:
    """It begins with a heading, and no title, list of persons, licence or mark is left."""
    text = path.read_text(encoding="ascii")
    assert HEADING.fullmatch(text.split("\n", 1)[0])
    assert not re.search(r"gutenberg|dramatis|persons represented|copyright", text, re.IGNORECASE)
    assert not re.search(r"[@_<>{}\t\r|\\]|THE END", text)


@pytest.mark.parametrize("path", PLAYS, ids=lambda path: path.stem)
def test_every_play_is_laid_out_alike(path: Path) -> None:
    """One empty line between paragraphs, no indentation, brackets closed, many speeches."""
    text = path.read_text(encoding="ascii")
    assert text.endswith("\n")
    assert "\n\n\n" not in text
    for line in text.splitlines():
        assert line == line.strip()
        assert "  " not in line
        assert line.count("[") == line.count("]"), line
    speeches = re.findall(r"^[A-Z][A-Z ,'.&-]*:$", text, re.MULTILINE)
    assert len(speeches) > 500


SOURCE = """THE TRAGEDY OF NOBODY

by William Shakespeare

DRAMATIS PERSONAE

BOB, a lord.

SCENE: Nowhere.


ACT 1.
SCENE 2.  A  street

[Enter BOB
and others]

BOB.  [Aside.]
   What ho!

BOB.
Nay, [To ANN.] go. {Exit.]

ANN and BOB.

Farewell.

THE END
"""


def test_the_maker_strips_and_straightens() -> None:
    """A small play with each oddity of the sources comes out in the corpus's layout."""
    assert clean("nobody", SOURCE) == (
        "ACT I\n\nSCENE II. A street.\n\n[Enter BOB and others.]\n\n"
        "BOB:\n[Aside.]\nWhat ho!\n\nBOB:\nNay, [To ANN.] go. [Exit.]\n\nANN AND BOB:\nFarewell.\n"
    )


def test_a_text_that_is_no_play_is_refused() -> None:
    """Without an act or a prologue nothing can be cut out."""
    with pytest.raises(ValueError, match="neither an act nor a prologue"):
        clean("letter", "Dear Sir,\n\nhow are you?\n")
