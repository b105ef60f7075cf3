import inspect

import pytest

from engine import errors

ALL = [
    each
    for _, each in inspect.getmembers(errors, inspect.isclass)
    if issubclass(each, Exception) and each is not errors.EngineError
]


@pytest.mark.parametrize("error", ALL)
def test_every_expected_failure_can_be_caught_as_one_kind(error: type[Exception]) -> None:
    """The window shows these as a sentence, and anything else as a bug."""
    assert issubclass(error, errors.EngineError)
    assert str(error("the sentence.")) == "the sentence."
