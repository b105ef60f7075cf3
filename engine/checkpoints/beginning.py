"""What a file begins with: enough to tell its kind."""

from pathlib import Path


def begins_with(path: Path, *beginnings: bytes) -> bool:
    """Whether a file begins with any of these; False where there is none to be read."""
    try:
        if not path.is_file():  # a pipe would never answer
            return False
        with path.open("rb") as file:
            return file.read(max(map(len, beginnings))).startswith(beginnings)
    except (OSError, ValueError):  # ValueError: not allowed in a path
        return False
