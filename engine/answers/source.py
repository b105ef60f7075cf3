"""The text of the engine's own functions, read while they run, and proven to be what runs."""

import ast
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from textwrap import dedent
from types import CodeType, FunctionType
from typing import Any

from engine.errors import EngineError

_ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Statement:
    """One statement of a function's body, as it stands in the file, without its indentation."""

    first: int  # its first and last line in the file, counted from 1
    last: int
    text: str  # with the comment behind it


@dataclass(frozen=True)
class Source:
    """A function's body without its docstring."""

    file: str  # from the root of the program, with slashes
    name: str  # as in the file, with its class
    statements: tuple[Statement, ...]

    @property
    def first(self) -> int:
        """The body's first line in the file."""
        return self.statements[0].first

    @property
    def last(self) -> int:
        """The body's last line in the file."""
        return self.statements[-1].last

    @property
    def text(self) -> str:
        """The whole body."""
        return "\n".join(statement.text for statement in self.statements)


@lru_cache(maxsize=32)
def source_of(function: Callable[..., Any]) -> Source:
    """What a function of the engine says.

    The file is compiled once more, and what comes out must be the very code that runs: a file
    that was changed since it was imported would tell of something else.

    Raises:
        EngineError: the file is not there, or is no longer what runs.
    """
    assert isinstance(function, FunctionType)  # noqa: S101 - of the engine, not of C
    path = Path(function.__code__.co_filename)
    named = f"{function.__qualname__}, which is in {path.name},"
    try:
        lines, first = inspect.getsourcelines(function)
        module = compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
    except (OSError, SyntaxError) as error:
        raise EngineError(
            f"The text of {named} cannot be read; install the program anew."
        ) from error
    if function.__code__ not in _code_in(module):
        raise EngineError(f"{named} was changed since the program started; start it again.")
    return Source(_relative(path), function.__qualname__, tuple(_statements(lines, first)))


def _code_in(code: CodeType) -> Iterator[CodeType]:
    """All functions' code in a module's, at any depth."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _code_in(constant)


def _relative(path: Path) -> str:
    return path.relative_to(_ROOT).as_posix() if path.is_relative_to(_ROOT) else path.name


def _statements(lines: list[str], first: int) -> Iterator[Statement]:
    text = dedent("".join(lines))
    kept = text.splitlines()
    (function,) = ast.parse(text).body
    assert isinstance(function, ast.FunctionDef)  # noqa: S101 - what was asked for
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    for statement in body:
        last = statement.end_lineno or statement.lineno
        of_it = dedent("\n".join(kept[statement.lineno - 1 : last]))
        yield Statement(first + statement.lineno - 1, first + last - 1, of_it)
