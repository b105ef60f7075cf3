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


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("Lowercase", "'Lowercase'"),
        (None, "None"),
        ({"type": "NFC"}, "{'type': 'NFC'}"),
        ("two\nlines and \ud800", r"'two\nlines and \ud800'"),
    ],
)
def test_what_is_short_is_quoted_as_it_is(value: object, text: str) -> None:
    """On one line, and in letters that every screen has."""
    assert errors.quoted(value) == text


@pytest.mark.parametrize(
    "value",
    ["x" * 10**6, 10**400, ["x" * 50] * 50, {n: {n: {n: ["x" * 50] * 9}} for n in range(9)}],
    ids=["a text", "a number", "a list", "tables in tables"],
)
def test_what_is_long_is_quoted_in_part(value: object) -> None:
    """A sentence with it is still one that can be read."""
    text = errors.quoted(value)
    assert len(text) <= 120
    assert text[:2] == repr(value)[:2]
    assert "..." in text or text.endswith("…")
