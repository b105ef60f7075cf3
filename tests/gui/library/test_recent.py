"""The last models that were opened: what is remembered, and the menu that offers it."""

from pathlib import Path

from PySide6.QtCore import QSettings
from pytestqt.qtbot import QtBot

from gui.library.recent import MOST, RecentMenu, RecentModels
from gui.settings import Settings


def remembered(path: Path) -> RecentModels:
    """As a new start of the program finds them."""
    return RecentModels(Settings(QSettings(str(path), QSettings.Format.IniFormat)))


def test_the_last_eight_come_back_the_latest_first(tmp_path: Path) -> None:
    """One that is opened again moves to the front."""
    paths = [Path(f"/models/{i}") for i in range(10)]
    models = remembered(tmp_path / "scope.ini")
    for path in [*paths, paths[5]]:
        models.add(path)
    expected = (paths[5], paths[9], paths[8], paths[7], paths[6], paths[4], paths[3], paths[2])
    assert remembered(tmp_path / "scope.ini").paths() == expected
    assert len(expected) == MOST == 8


def test_a_name_that_is_not_utf_8_comes_back_as_it_was(tmp_path: Path) -> None:
    path = Path("/models/\udce9")
    remembered(tmp_path / "scope.ini").add(path)
    assert remembered(tmp_path / "scope.ini").paths() == (path,)


def test_the_menu_offers_what_is_remembered_when_it_is_opened(qtbot: QtBot, tmp_path: Path) -> None:
    models = remembered(tmp_path / "scope.ini")
    menu = RecentMenu(models)
    qtbot.addWidget(menu)
    (empty,) = menu.actions()
    assert not empty.isEnabled()
    models.add(Path("/hub/models--owner--model/snapshots/abc"))
    models.add(Path("/models/R&D\n<b>.gguf"))
    menu.aboutToShow.emit()
    first, second = menu.actions()
    assert first.text() == "&1  R&&D�<b>"
    assert second.text() == "&2  owner/model"
    with qtbot.waitSignal(menu.chosen) as told:
        second.trigger()
    assert told.args == [Path("/hub/models--owner--model/snapshots/abc")]
