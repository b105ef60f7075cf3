"""Pickles read without being run: dictionaries, lists, tuples, texts, numbers, and nothing else.

Python's own `pickle` calls whatever a file names, and makes room for whatever size it promises.
Here the few instructions that build plain values are followed one by one, and every other one
refuses the file. What else a kind of file needs (torch's tensors) is a table of stand-ins that
its reader passes in; nothing is ever imported or called by a name in the file.
"""

import io
import pickletools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.errors import CheckpointError

# A vocabulary of a hundred thousand characters fits, and the names of ten thousand tensors. What
# is built takes up to a hundred times as much.
MOST_BYTES = 1 << 21

_TEXTS = ("BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8")
_NUMBERS = ("BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT")
_LONGEST_SHOWN = 60  # characters
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_TUPLES = {"EMPTY_TUPLE": 0, "TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
# A tuple as a key could be nested so that working out its hash takes forever.
_KEYS = (str, int, float, bool, type(None))


@dataclass(frozen=True)
class _Named:
    """What stands on the stack for a name that the file mentions."""

    name: str


@dataclass(frozen=True)
class StandIns:
    """What a file may mention besides plain values, and what stands for it.

    `constants` and `functions` go by "module name" as files spell it; `reference` makes a value
    of what a file says lies elsewhere. A stand-in raises ValueError for operands that cannot be.
    """

    constants: Mapping[str, object] = field(default_factory=dict)
    functions: Mapping[str, Callable[..., object]] = field(default_factory=dict)
    reference: Callable[[object], object] | None = None


NONE = StandIns()


def read_pickle(data: bytes, path: Path, stand_ins: StandIns = NONE) -> Any:  # noqa: ANN401 - any plain value
    """The value that the bytes of a pickle describe; `path` only names it in errors.

    Raises:
        CheckpointError: it is cut off, damaged or too large, or holds more than plain values.
    """
    if len(data) > MOST_BYTES:
        raise CheckpointError(
            f"{path} holds more than {MOST_BYTES} bytes of pickled values; no more are read."
        )
    machine = _Machine(path, stand_ins)
    try:
        for instruction, operand, _at in pickletools.genops(_Bytes(data)):
            machine.follow(instruction.name, operand)
        return machine.result()
    except (ValueError, TypeError, LookupError, OverflowError) as error:
        raise CheckpointError(
            f"{path} is cut off or damaged: its pickled values do not fit together."
        ) from error


def shown(value: object) -> str:
    """A value that was read, short enough for a message and on one line."""
    if not isinstance(value, _KEYS):
        return f"a {type(value).__name__}"
    text = repr(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


class _Bytes(io.BytesIO):
    """A pickle's bytes, whose lines are names; Python would warn of a damaged escape in one."""

    def readline(self, size: int | None = -1) -> bytes:
        line = super().readline(size)
        if b"\\" in line:
            raise ValueError(line)
        return line


class _Machine:
    """The stack on which a pickle's instructions build their value."""

    def __init__(self, path: Path, stand_ins: StandIns) -> None:
        self._path = path
        self._stand_ins = stand_ins
        self._stack: list[Any] = []
        self._below: list[list[Any]] = []  # what lies under each mark
        self._memo: dict[int, Any] = {}

    def result(self) -> Any:  # noqa: ANN401 - any plain value
        (value,) = self._stack
        if self._below or isinstance(value, _Named):
            raise ValueError(value)
        return value

    def follow(self, name: str, operand: Any) -> None:  # noqa: ANN401 - as the instruction has it
        stack = self._stack
        if name in _TEXTS or name in _NUMBERS:
            stack.append(operand)
        elif name in _CONSTANTS:
            stack.append(_CONSTANTS[name])
        elif name in ("BINGET", "LONG_BINGET"):
            stack.append(self._memo[operand])
        elif name in ("BINPUT", "LONG_BINPUT"):
            self._memo[operand] = stack[-1]
        elif name == "MEMOIZE":
            self._memo[len(self._memo)] = stack[-1]
        elif name == "MARK":
            self._below.append(stack)
            self._stack = []
        elif name not in ("PROTO", "FRAME", "STOP"):
            self._build(name, operand)

    def _build(self, name: str, operand: Any) -> None:  # noqa: ANN401 - as the instruction has it
        stack = self._stack
        if name == "EMPTY_DICT":
            stack.append({})
        elif name == "EMPTY_LIST":
            stack.append([])
        elif name in _TUPLES:
            stack.append(tuple(self._pop(_TUPLES[name])))
        elif name == "TUPLE":
            items = self._since_mark()
            self._stack.append(tuple(items))
        elif name == "SETITEM":
            self._set_items(self._pop(2))
        elif name == "SETITEMS":
            self._set_items(self._since_mark())
        elif name == "APPEND":
            self._extend(self._pop(1))
        elif name == "APPENDS":
            self._extend(self._since_mark())
        else:
            self._stand_in(name, operand)

    def _pop(self, n: int) -> list[Any]:
        if n > len(self._stack):
            raise IndexError(n)
        start = len(self._stack) - n
        items = self._stack[start:]
        del self._stack[start:]
        return items

    def _since_mark(self) -> list[Any]:
        items, self._stack = self._stack, self._below.pop()
        return items

    def _extend(self, items: list[Any]) -> None:
        target = self._stack[-1]
        if type(target) is not list:
            raise TypeError(target)
        target.extend(items)

    def _set_items(self, items: list[Any]) -> None:
        target = self._stack[-1]
        if type(target) is not dict:
            raise TypeError(target)
        for key, value in zip(items[::2], items[1::2], strict=True):
            if type(key) not in _KEYS:
                raise self._refused(f"a {type(key).__name__} as a key")
            target[key] = value

    # What is more than a plain value

    def _refused(self, what: str) -> CheckpointError:
        return CheckpointError(
            f"{self._path} holds {what}, which is more than the plain values that are read here; "
            "a file with more could run a program."
        )

    def _stand_in(self, name: str, operand: Any) -> None:  # noqa: ANN401 - as the instruction has it
        stack, known = self._stack, self._stand_ins
        if name == "GLOBAL":
            stack.append(self._named(operand))
        elif name == "STACK_GLOBAL":
            stack.append(self._named(" ".join(self._pop(2))))
        elif name == "BINPERSID" and known.reference is not None:
            stack.append(known.reference(stack.pop()))
        elif name == "REDUCE" and known.functions:
            function, operands = self._pop(2)
            if not isinstance(function, _Named):
                raise TypeError(function)
            stack.append(known.functions[function.name](*operands))
        elif name == "BUILD" and known.functions:
            self._pop(1)  # a dictionary's attributes, such as a state dict's versions
            if type(stack[-1]) is not dict:
                raise TypeError(stack[-1])
        else:
            raise self._refused(f"the instruction {name}")

    def _named(self, name: str) -> object:
        known = self._stand_ins
        if name in known.constants:
            return known.constants[name]
        if name in known.functions:
            return _Named(name)
        raise self._refused(shown(name.replace(" ", ".")))
