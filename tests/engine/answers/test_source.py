"""What is shown as the engine's text is what stands in its files, and what runs."""

import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from engine.answers.fused import fused_mix
from engine.answers.source import source_of
from engine.attention import Attention, Scoring, attend, matmul_heads
from engine.errors import EngineError
from engine.model import Transformer

ROOT = Path(__file__).parents[3]
FUNCTIONS = (attend, matmul_heads, Scoring.masked, Attention.forward, fused_mix)

BEFORE = '''"""Two functions."""


class Box:
    def grow(self, x):
        """Wider.

        By one."""
        y = (
            x + 1  # one
        )
        if y:
            y = y * 2  # twice
        return y


def bare(x): return x
'''


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda each: each.__qualname__)
def test_every_line_stands_in_the_file_at_its_number(function: Callable[..., Any]) -> None:
    source = source_of(function)
    lines = (ROOT / source.file).read_text(encoding="utf-8").splitlines()
    assert source.name == function.__qualname__
    for statement in source.statements:
        in_file = lines[statement.first - 1 : statement.last]
        shown = statement.text.splitlines()
        assert [line.strip() for line in in_file] == [line.strip() for line in shown]
        indent = len(in_file[0]) - len(in_file[0].lstrip())
        assert [line[indent:] for line in in_file] == shown
    first = function.__code__.co_firstlineno
    assert first < source.first <= source.last
    assert source.text.splitlines()[-1].strip().startswith("return")


def test_the_function_that_is_shown_is_the_one_that_every_pass_calls(
    tiny: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A layer's pass goes through `Attention.forward`, which calls `attend` once a block."""
    run = tiny("rotary")
    assert isinstance(run.model, Transformer)
    assert run.model.attention(1).forward.__func__ is Attention.forward
    assert "weights, mix = attend(" in source_of(Attention.forward).text
    called = []
    monkeypatch.setattr(
        "engine.attention.attend", lambda *given: called.append(given) or attend(*given)
    )
    run.read([1, 2, 3])
    assert len(called) == run.config.n_layer


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A module that was imported from a file of ours."""
    path = tmp_path / "written.py"
    path.write_text(BEFORE, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("written", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "written", module)
    spec.loader.exec_module(module)
    yield module
    source_of.cache_clear()


def test_statements_keep_their_comments_and_lose_docstring_and_indentation(
    written: ModuleType,
) -> None:
    source = source_of(written.Box.grow)
    assert [(each.first, each.last) for each in source.statements] == [(9, 11), (12, 13), (14, 14)]
    assert source.statements[0].text == "y = (\n    x + 1  # one\n)"
    assert source.statements[1].text == "if y:\n    y = y * 2  # twice"
    assert (source.file, source.name) == ("written.py", "Box.grow")


@pytest.mark.parametrize("change", ["x + 2  # one", "x + 1  # one\n"])
def test_a_file_that_was_changed_since_it_was_imported_is_not_shown(
    written: ModuleType, change: str
) -> None:
    """Also if only its lines have moved."""
    assert written.__file__ is not None
    changed = BEFORE.replace("x + 1  # one", change)
    Path(written.__file__).write_text(changed, encoding="utf-8")
    with pytest.raises(
        EngineError, match=r"^Box\.grow, which is in written\.py, was changed since"
    ):
        source_of(written.Box.grow)


@pytest.mark.parametrize("text", [None, "def broken("])
def test_a_file_that_is_gone_or_broken_is_said_in_one_sentence(
    written: ModuleType, text: str | None
) -> None:
    assert written.__file__ is not None
    path = Path(written.__file__)
    path.unlink()
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(EngineError, match=r"^The text of Box\.grow, which is in written\.py,"):
        source_of(written.Box.grow)
