"""The pages that explain the program are true of the tree that they lie in."""

import re
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PySide6.QtGui import QImage

import resources
from gui.command_line import parse
from gui.commands import COMMANDS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "resources").rglob("*.md")),
]
LISTED_WHOLE = (
    "engine",
    "engine/answers",
    "engine/checkpoints",
    "engine/cost",
    "engine/experiments",
    "engine/tokenizers",
    "engine/training",
    "engine/windows",
    "gui",
    "gui/export",
    "gui/library",
    "gui/panels",
    "gui/questions",
    "gui/training",
    "gui/words",
)
FOLDERS = ("docs", "engine", "gui", "resources", "tests")
MOST_BYTES = 400_000  # of a picture

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def _section(title: str) -> str:
    return README.split(f"\n## {title}\n")[1].split("\n## ")[0]


def _tree() -> dict[str, str]:
    """The paths of the README's tree, and what it says of each."""
    block = _section("The tree").split("```text\n")[1].split("```")[0]
    phrases: dict[str, str] = {}
    above: list[str] = []
    for line in block.splitlines():
        name, phrase = re.split(r"\s{2,}", line.strip(), maxsplit=1)
        depth = (len(line) - len(line.lstrip())) // 2
        above = [*above[:depth], name]
        phrases["".join(above)] = phrase
    return phrases


def _of_docs(script: str) -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "docs" / script))


# Commands


@pytest.mark.parametrize(
    "command",
    [
        "python -m pip install -e . && python main.py",
        'python -m pip install -e ".[test]" && python -m pytest',
    ],
)
def test_the_readme_gives_the_two_commands_as_one_line_to_copy(command: str) -> None:
    """Each stands alone in a block of its own."""
    assert f"```sh\n{command}\n```" in README


@every_page
def test_modules_that_a_page_runs_are_there(page: Path) -> None:
    for module in re.findall(r"python -m ([\w.]+)", page.read_text(encoding="utf-8")):
        path = ROOT.joinpath(*module.split("."))
        if module.split(".")[0] in FOLDERS:
            assert path.with_suffix(".py").is_file() or (path / "__main__.py").is_file(), module
        else:
            assert module in {"pip", "pytest", "venv"}


def test_the_readme_lists_every_benchmark() -> None:
    listed = re.findall(r"python -m tests\.benchmarks\.(\w+)", _section("Speed"))
    there = [path.stem for path in (ROOT / "tests" / "benchmarks").glob("bench_*.py")]
    assert sorted(listed) == sorted(there)


def test_the_readme_lists_every_option_as_help_does(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(["--help"])
    usage = " ".join(capsys.readouterr().out.split("\n\n")[0].split())
    listed = re.findall(r"^\| `(--.+?)` \|", _section("Command line"), re.MULTILINE)
    assert listed == re.findall(r"\[(--.+?)\]", usage)


def test_the_readme_names_the_libraries_that_the_program_names() -> None:
    """What `main.py` says when Qt cannot start, and what the README says beforehand."""
    told = (ROOT / "main.py").read_text(encoding="utf-8").split("apt install ")[1]
    packages = re.findall(r"lib[\w.-]+", told)
    assert f"apt install {' '.join(packages)}\n" in README


# Paths


@every_page
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if not target.startswith(("https://", "http://", "#")):
            assert (page.parent / target.split("#")[0]).exists(), target


@every_page
def test_paths_in_a_text_are_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for path in re.findall(rf"`((?:{'|'.join(FOLDERS)})/[\w./]+)`", text):
        assert (ROOT / path).exists(), path


def test_everything_in_the_tree_is_there_and_says_what_it_is() -> None:
    tree = _tree()
    assert len(tree) > 80
    for path, phrase in tree.items():
        assert (ROOT / path).exists(), path
        assert (ROOT / path).is_dir() == path.endswith("/"), path
        assert phrase


@pytest.mark.parametrize("folder", LISTED_WHOLE)
def test_the_tree_leaves_no_module_out(folder: str) -> None:
    """Whoever adds one writes its line."""
    there = {f"{folder}/{path.name}" for path in (ROOT / folder).glob("*.py")}
    assert there - set(_tree()) == {f"{folder}/__init__.py"}


def test_every_bundled_model_has_a_card_that_the_readme_links() -> None:
    for folder in resources.model_folders():
        card = (folder / "README.md").relative_to(ROOT)
        assert (ROOT / card).is_file()
        assert f"]({card.as_posix()})" in README


# Keys


def test_the_page_of_keys_is_what_the_commands_say() -> None:
    """If not: python -m docs.make_keys."""
    page = (ROOT / "docs" / "keys.md").read_text(encoding="utf-8")
    assert page == _of_docs("make_keys.py")["keys_page"]()


def test_every_command_and_key_is_on_the_page_of_keys() -> None:
    page = (ROOT / "docs" / "keys.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (.+?) \| (.*) \| (.+) \|$", page, re.MULTILINE)
    found = {(title, tuple(re.findall(r"`(.+?)`", keys))) for title, keys, _help in rows}
    assert found >= {(command.title, command.shortcuts) for command in COMMANDS}


def test_keys_that_the_readme_names_do_something() -> None:
    shortcuts = {keys for command in COMMANDS for keys in command.shortcuts}
    named = re.findall(r"`((?:(?:Ctrl|Alt)\+[^`]+|F\d+))`", README)
    assert len(named) > 15
    assert set(named) <= shortcuts


# Pictures


def test_the_script_makes_exactly_the_pictures_that_are_there_and_shown() -> None:
    script = (ROOT / "docs" / "make_pictures.sh").read_text(encoding="utf-8")
    made = sorted(re.findall(r"^take (\w+)", script, re.MULTILINE))
    assert made == sorted(path.stem for path in (ROOT / "docs" / "pictures").glob("*.png"))
    assert made == sorted(set(re.findall(r"\]\(docs/pictures/(\w+)\.png\)", README)))


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("light", (1600, 1000)),
        ("dark", (1600, 1000)),
        ("projector", (1280, 720)),
        ("4k", (3840, 2160)),
    ],
)
def test_a_picture_is_small_to_fetch_and_has_its_size(name: str, size: tuple[int, int]) -> None:
    path = ROOT / "docs" / "pictures" / f"{name}.png"
    assert path.stat().st_size < MOST_BYTES
    picture = QImage(str(path))
    assert (picture.width(), picture.height()) == size


def _pixels(picture: QImage) -> NDArray[np.int64]:
    """Red, green, blue of each pixel [height, width, 3]."""
    rows = range(picture.height())
    colours = [[picture.pixelColor(x, y) for x in range(picture.width())] for y in rows]
    return np.array([[(c.red(), c.green(), c.blue()) for c in row] for row in colours], np.int64)


def test_a_shrunk_picture_keeps_its_colours(tmp_path: Path) -> None:
    """A ground and a line of text keep theirs exactly, 900 shades on them nearly."""
    pixels = np.full((40, 37, 3), (243, 244, 246), np.uint8)
    pixels[0] = (27, 31, 36)
    shades = np.linspace((255, 255, 255), (30, 10, 120), 900).round().astype(np.uint8)
    pixels[5:35, 3:33] = shades.reshape(30, 30, 3)
    path = tmp_path / "picture.png"
    QImage(pixels.tobytes(), 37, 40, 37 * 3, QImage.Format.Format_RGB888).save(str(path))
    docs = _of_docs("shrink_picture.py")
    docs["shrink"](path)
    shrunk = QImage(str(path))
    assert shrunk.colorCount() <= 256
    off = np.abs(_pixels(shrunk) - pixels)
    assert off.max() <= docs["MOST_OFF"]
    assert not off[:5].any()


def test_a_picture_of_too_many_colours_is_left_as_it_is(tmp_path: Path) -> None:
    noise = np.random.default_rng(1).integers(0, 256, (64, 64, 3), np.uint8)
    path = tmp_path / "noise.png"
    QImage(noise.tobytes(), 64, 64, 64 * 3, QImage.Format.Format_RGB888).save(str(path))
    before = path.read_bytes()
    with pytest.raises(ValueError, match="too many colours: one would be off by"):
        _of_docs("shrink_picture.py")["shrink"](path)
    assert path.read_bytes() == before


@every_page
def test_every_table_has_a_head(page: Path) -> None:
    """Rows after an empty line begin a table of their own, and without a head they are none."""
    lines = ["", *page.read_text(encoding="utf-8").splitlines(), ""]
    for before, line, after in zip(lines, lines[1:], lines[2:], strict=False):
        if line.startswith("|") and not before.startswith("|"):
            assert re.fullmatch(r"[|: -]*-[|: -]*", after), line
