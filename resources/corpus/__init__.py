"""The plays of Shakespeare as plain text, and which of them are held out for validation."""

from pathlib import Path

PLAYS_FOLDER = Path(__file__).parent / "plays"
HELD_OUT_FILE = Path(__file__).parent / "held_out.txt"


def play_paths() -> list[Path]:
    """Every play's file, in alphabetical order of its name."""
    return sorted(PLAYS_FOLDER.glob("*.txt"))


def held_out_names() -> list[str]:
    """The plays (file names without `.txt`) that no bundled model was trained on."""
    return HELD_OUT_FILE.read_text(encoding="utf-8").split()
