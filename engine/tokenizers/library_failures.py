"""What the `tokenizers` library fails with, as sentences."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from engine.errors import EngineError, TokenizerError


@contextmanager
def library_failures(sentence: Callable[[BaseException], str]) -> Iterator[None]:
    """Around calls of the library: what they fail with becomes this sentence about it.

    Raises:
        TokenizerError: the library failed.
    """
    try:
        yield
    except EngineError:
        raise
    except BaseException as error:
        # A panic of the library is no Exception, and would end the thread that it happens on.
        if isinstance(error, Exception) or type(error).__name__ == "PanicException":
            raise TokenizerError(sentence(error)) from error
        raise


def damaged(error: BaseException) -> str:
    """What is wrong with a vocabulary that the library cannot be given."""
    return f"its vocabulary is damaged: {error}."
