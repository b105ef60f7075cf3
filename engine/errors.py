"""Failures that a user can cause and mend; every message is one sentence for them."""

from reprlib import Repr

_MOST_QUOTED = 60  # characters of a text or a number, and a few more of what holds several
_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxother = _MOST_QUOTED


def quoted(value: object) -> str:
    """A value as a sentence quotes it, whatever a damaged file holds: on one line, and short."""
    text = _SHORT.repr(value)
    return text if len(text) <= 2 * _MOST_QUOTED else f"{text[: 2 * _MOST_QUOTED - 1]}…"


class EngineError(Exception):
    """An expected failure: its text names the offending value and what would be right."""


class ConfigError(EngineError):
    """A model's sizes contradict each other or are out of range."""


class CheckpointError(EngineError):
    """A model on disk cannot be read: missing, damaged, or of an unknown kind."""


class DownloadError(EngineError):
    """A model cannot be fetched: its name, the network, the server, the disk, or its kind."""


class TokenizerError(EngineError):
    """A vocabulary is damaged, or a token id lies outside of it."""


class TrainingError(EngineError):
    """A training cannot start or go on: its data or its settings are unusable."""


class ContextFullError(EngineError):
    """The context limit is reached; nothing more can be appended."""


class CancelledError(EngineError):
    """The pass was given up between two layers because something newer is wanted."""
