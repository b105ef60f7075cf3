"""What comes back at the next start, and what a damaged file cannot do."""

from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QByteArray, QSettings

from gui.settings import SETTINGS, Setting, Settings

VALUES: dict[str, Any] = {
    "text": 'To be, or\nnot; [to]=be \\ "quoted" 100% שלום 👩\u200d👧',
    "model": "/models/a, b; c",
    "theme": "projector",
    "number_format": "int8",
    "device": "mps",
    "zoom": 1.25,
    "scale": "log",
    "leave_first_out": True,
    "drawing": "arcs",
    "show_loss": True,
    "show_pass": True,
    "motion": False,
    "geometry": QByteArray(b"\x01\x00\xffgeometry"),
    "layout": QByteArray(b"\x00\xff\x00layout"),
    "training_speed": 2.5e9,
    "library_folders": ('/models/a, b; "c"\n100%',),
    "recent_models": ("/models/é/שלום", "C:\\models\\x", "/not/UTF-8/\udce9"),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the file is."""
    return tmp_path / "scope.ini"


def opened(path: Path) -> Settings:
    """Settings as a new start of the program finds them."""
    return Settings(QSettings(str(path), QSettings.Format.IniFormat))


def keep(path: Path, **values: Any) -> None:
    """What a program that then ended had written."""
    store = QSettings(str(path), QSettings.Format.IniFormat)
    settings = Settings(store)
    for name, value in values.items():
        settings.write(name, value)
    store.sync()
    assert store.status() == QSettings.Status.NoError


def test_every_setting_has_its_own_name_and_a_sentence() -> None:
    """And a default that it takes itself."""
    assert len({row.name for row in SETTINGS}) == len(SETTINGS) == len(VALUES)
    for row in SETTINGS:
        assert row.sentence.endswith(".")
        assert row.is_valid(row.default)
        assert type(row.default) is type(VALUES[row.name])


def test_at_the_first_start_everything_has_its_default(path: Path) -> None:
    """No file is there yet."""
    settings = opened(path)
    assert {row.name: settings.read(row.name) for row in SETTINGS} == {
        row.name: row.default for row in SETTINGS
    }


@pytest.mark.parametrize("row", SETTINGS, ids=lambda row: row.name)
def test_every_setting_comes_back_at_the_next_start(path: Path, row: Setting) -> None:
    """With its type, through a file."""
    assert VALUES[row.name] != row.default
    keep(path, **{row.name: VALUES[row.name]})
    assert opened(path).read(row.name) == VALUES[row.name]
    assert type(opened(path).read(row.name)) is type(row.default)


@pytest.mark.parametrize(
    ("name", "garbage"),
    [
        ("theme", "pink"),
        ("theme", "a, b"),
        ("zoom", "huge"),
        ("zoom", "nan"),
        ("zoom", "1e400"),
        ("zoom", "-1"),
        ("zoom", "17"),
        ("zoom", "@Invalid()"),
        ("zoom", "1, 2"),
        ("scale", "cubic"),
        ("drawing", ""),
        ("leave_first_out", "banana"),
        ("leave_first_out", "1, 2"),
        ("motion", "banana"),
        ("motion", ""),
        ("geometry", "banana"),
        ("text", "@Invalid()"),
        ("text", "one, two"),
        ("model", "@ByteArray(abc)"),
        ("recent_models", "one, two"),
        ("recent_models", "/models/a"),
        ("recent_models", "[1]"),
        ("recent_models", "{}"),
        ("library_folders", "@Invalid()"),
        ("library_folders", "[" * 100_000),
    ],
)
def test_garbage_counts_as_absent(path: Path, name: str, garbage: str) -> None:
    """Whatever somebody, or another version, wrote there."""
    path.write_text(f"[General]\n{name}={garbage}\n", encoding="utf-8")
    default = next(row.default for row in SETTINGS if row.name == name)
    assert opened(path).read(name) == default


def test_a_file_that_is_no_settings_file_counts_as_none(path: Path) -> None:
    """All defaults."""
    path.write_bytes(bytes(range(256)) * 10)
    settings = opened(path)
    for row in SETTINGS:
        assert settings.read(row.name) == row.default


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\ud800 x", "? x"),
        ("a\udfffb", "a?b"),
        ("a\0b", "a\0b"),
        ("", ""),
        (" ", " "),
        ("\n\n", "\n\n"),
        ("\r\n\t\x85\u2028", "\r\n\t\x85\u2028"),
        ("@Invalid()", "@Invalid()"),
        ("@@", "@@"),
        ("<b>&amp;", "<b>&amp;"),
    ],
)
def test_a_prompt_comes_back_or_loses_only_what_no_file_can_hold(
    path: Path, text: str, expected: str
) -> None:
    """A lone surrogate becomes a question mark; nothing else is touched."""
    keep(path, text=text)
    assert opened(path).read("text") == expected


def test_a_very_long_prompt_is_kept_in_part(path: Path) -> None:
    """A megabyte is not worth waiting for at every start."""
    keep(path, text="ab" * 500_000)
    assert opened(path).read("text") == "ab" * 50_000


def test_without_a_store_nothing_is_read_or_kept() -> None:
    """As for a snapshot, which must not depend on who takes it."""
    settings = Settings(None)
    settings.write("theme", "dark")
    assert settings.read("theme") == "light"


def test_a_name_that_is_no_setting_is_a_mistake_of_ours(path: Path) -> None:
    """For reading and for writing."""
    settings = opened(path)
    with pytest.raises(KeyError):
        settings.read("colour")
    with pytest.raises(KeyError):
        settings.write("colour", "red")
