"""Who may know whom: the import contracts, and what a fresh process really loads."""

import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

TORCH_FREE = [
    "engine.answers.alignment",
    "engine.answers.comparison",
    "engine.conditions",
    "engine.config",
    "engine.document",
    "engine.errors",
    "engine.reading",
    "engine.readouts",
    "engine.sampling",
    "engine.session",
    "engine.thumbnails",
    "engine.tokenizers.byte_bpe",
    "engine.tokenizers.characters",
    "engine.tokenizers.utf8",
    "engine.trace",
    "engine.training.check",
    "engine.training.lines",
    "engine.training.plan",
    "engine.training.record",
]


def _all_modules(package: str) -> list[str]:
    found = pkgutil.walk_packages([str(ROOT / package)], prefix=f"{package}.")
    return [package, *(module.name for module in found)]


def _python(code: str) -> str:
    """What a fresh process prints; fails with what it complains about."""
    done = subprocess.run(  # noqa: S603 - our own interpreter and code
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert not done.returncode, done.stdout + done.stderr
    return done.stdout


def _loaded_by(modules: list[str]) -> set[str]:
    """The top-level packages that a fresh process holds after importing `modules`."""
    code = f"import sys, importlib\nfor name in {modules!r}: importlib.import_module(name)\n"
    return {name.split(".")[0] for name in _python(f"{code}print(*sys.modules)").split()}


def test_the_import_contracts_hold() -> None:
    """As written in pyproject.toml."""
    _python(
        "from importlinter.cli import lint_imports\n"
        "raise SystemExit(lint_imports(no_cache=True, no_logo=True))"
    )


def test_the_engine_loads_without_qt_the_window_or_the_resources() -> None:
    modules = _all_modules("engine")
    assert "engine.run" in modules
    assert "engine.tokenizers.characters" in modules
    assert not _loaded_by(modules) & {"PySide6", "shiboken6", "pyqtgraph", "gui", "resources"}


def test_what_the_window_shares_with_the_engine_loads_without_torch() -> None:
    assert "torch" not in _loaded_by(TORCH_FREE)


def test_nothing_that_goes_to_a_network_is_loaded_before_it_is_wanted() -> None:
    """`huggingface_hub` and what it talks through come with the first download."""
    loaded = _loaded_by([*_all_modules("gui"), *_all_modules("engine")])
    assert "engine" in loaded
    assert not loaded & {"huggingface_hub", "httpx", "httpx2", "requests"}


def test_the_whole_window_loads_without_torch() -> None:
    """The engine's thread imports it, after the first paint."""
    modules = _all_modules("gui")
    assert "gui.view" in modules
    loaded = _loaded_by(modules)
    assert "PySide6" in loaded
    assert "torch" not in loaded


@pytest.mark.parametrize(
    ("module", "unwanted"),
    [
        ("main", {"PySide6", "numpy", "torch"}),
        ("gui.theme", {"numpy", "torch", "engine"}),
    ],
)
def test_what_comes_before_the_first_paint_stays_light(module: str, unwanted: set[str]) -> None:
    """`--help` waits for nothing heavy; colours need no arithmetic."""
    assert not _loaded_by([module]) & unwanted
