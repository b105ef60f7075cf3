"""What can be asked for at the start, and how a mistake is answered."""

import subprocess
import sys
from pathlib import Path

import pytest

from gui.command_line import THEME_NAMES, Options, parse
from gui.theme import THEMES

ROOT = Path(__file__).parents[2]


def test_nothing_asked_for_is_nothing_set() -> None:
    """A window with the last prompt and model."""
    assert parse([]) == Options()
    assert (Options().size, Options().scale, Options().steps) == ((1280, 720), 1.0, 0)


def test_everything_can_be_asked_for() -> None:
    """Each option arrives as its own type."""
    wanted = "--model=some/folder --prompt=hello --steps=12 --theme=dark"
    picture = "--snapshot=out.png --size=1920X1080 --scale=1.5"
    options = parse(f"{wanted} {picture}".split())
    assert options == Options(
        model=Path("some/folder"),
        prompt="hello",
        steps=12,
        theme="dark",
        snapshot=Path("out.png"),
        size=(1920, 1080),
        scale=1.5,
    )


@pytest.mark.parametrize("text", ["", " ", "\ud800", "<b>", "👩\u200d👧"])
def test_a_prompt_is_taken_as_it_is(text: str) -> None:
    """An empty one is not the same as none."""
    assert parse(["--prompt", text]).prompt == text


def test_the_themes_offered_are_those_there_are() -> None:
    """By name, in the same order."""
    assert tuple(THEMES) == THEME_NAMES


def test_help_explains_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    """And ends well."""
    with pytest.raises(SystemExit) as ended:
        parse(["--help"])
    assert ended.value.code == 0
    said = " ".join(capsys.readouterr().out.split())
    for name, meaning in {
        "--model PATH": "open the model in this folder",
        "--prompt TEXT": "begin with this text",
        "--steps N": "generate N tokens after the prompt",
        "--theme NAME": "light, dark or projector",
        "--snapshot FILE.png": "render the window without a screen",
        "--size WxH": "pixels of the snapshot",
        "--scale S": "device pixels per logical pixel",
    }.items():
        assert f"{name} {meaning}" in said


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--steps", "-1"], "'-1' is no count; use 0, 1, 2"),
        (["--steps", "many"], "'many' is no count; use 0, 1, 2"),
        (["--size", "12"], "'12' is no size; write it like 1280x720."),
        (["--size", "axb"], "'axb' is no size; write it like 1280x720."),
        (["--size", "10x720"], "'10x720' is out of range; each side is 64 to 16384."),
        (["--scale", "big"], "'big' is no number; use one like 2."),
        (["--scale", "0"], "'0' is out of range; use 0.5 to 8."),
        (["--scale", "nan"], "'nan' is out of range; use 0.5 to 8."),
        (["--theme", "pink"], "invalid choice: 'pink'"),
        (["--banana"], "unrecognized arguments: --banana"),
    ],
)
def test_a_mistake_is_answered_in_one_sentence(
    capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    """It quotes the value, and the program ends with status 2."""
    with pytest.raises(SystemExit) as ended:
        parse(arguments)
    assert ended.value.code == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("main.py: error: ")
    assert sentence in last


def test_help_does_not_wait_for_qt_or_torch() -> None:
    """Neither is imported for it."""
    code = (
        "import sys; sys.argv[1:] = ['--help']\n"
        "import main\n"
        "try: main.main()\n"
        "except SystemExit: pass\n"
        "heavy = {'PySide6', 'torch', 'numpy', 'pyqtgraph'} & set(sys.modules)\n"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    done = subprocess.run(  # noqa: S603 - our own line
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "--snapshot" in done.stdout
