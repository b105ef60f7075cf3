"""UTF-8 that takes every Python str, lone surrogates included, and shows broken bytes as U+FFFD."""

import codecs

_SURROGATES = codecs.lookup_error("surrogatepass")
_REPLACE = codecs.lookup_error("replace")


def _surrogate_or_replacement(error: UnicodeError) -> tuple[str | bytes, int]:
    try:
        return _SURROGATES(error)
    except UnicodeError:
        return _REPLACE(error)


codecs.register_error("engine.surrogate_or_replacement", _surrogate_or_replacement)


def to_bytes(text: str) -> bytes:
    """UTF-8; a lone surrogate, which strict UTF-8 refuses, takes the three bytes it would need."""
    return text.encode("utf-8", "surrogatepass")


def to_text(data: bytes) -> str:
    """The inverse of `to_bytes`; bytes that no text could have produced become U+FFFD."""
    return data.decode("utf-8", "engine.surrogate_or_replacement")
