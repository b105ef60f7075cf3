"""The bundled models are what their cards say, and can be made again by the commands there."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

import resources
from engine.training.command import command_line
from engine.training.record import RECORD_FILE, load_record
from resources.models.make import RECIPES

FOLDERS = resources.model_folders()
SMALL = [folder for folder in FOLDERS if folder.name in RECIPES]


def _stored(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "config.json").read_text(encoding="utf-8")))


def _card(folder: Path) -> str:
    return (folder / "README.md").read_text(encoding="utf-8")


def test_every_recipe_has_its_model() -> None:
    """And each is a folder that the model menu offers, behind the two large ones."""
    assert {folder.name for folder in SMALL} == set(RECIPES)
    assert [folder.name for folder in FOLDERS[:2]] == ["shakespeare", "shakespeare-chars"]


def test_all_checkpoints_together_are_small() -> None:
    """Under 40 MB, so that a clone stays quick."""
    files = [file for folder in FOLDERS for file in folder.iterdir()]
    assert sum(file.stat().st_size for file in files) < 40e6


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_the_command_on_a_card_has_the_settings_that_the_model_was_trained_with(
    folder: Path,
) -> None:
    """Read by the trainer's own command line, and compared with what it noted."""
    command = re.search(r"python -m engine\.training ((?:.*\\\n)*.*)", _card(folder))
    assert command is not None
    arguments = command_line().parse_args(command[1].replace("\\\n", " ").split())
    stored = _stored(folder)
    for name, value in stored["training"]["settings"].items():
        # These change nothing that is learned, or are noted by a newer trainer only.
        if name not in {"evaluate_every", "evaluate_windows"}:
            assert getattr(arguments, name) == value, name
    for name in (
        "n_layer",
        "n_head",
        "d_model",
        "max_seq_len",
        "embedding_scale",
        "positions",
        "norm",
    ):
        assert getattr(arguments, name) == stored["model"][name], name
    assert arguments.held_out == stored["training"]["held_out_texts"]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_card_tells_the_measured_loss_and_the_size(folder: Path) -> None:
    """Both as the trainer noted them."""
    facts = _stored(folder)["training"]
    assert f"{facts['held_out_nats_per_character']:.4f} nats" in _card(folder)
    assert f"{facts['parameters']:,}" in _card(folder)


@pytest.mark.parametrize("folder", SMALL, ids=lambda folder: folder.name)
def test_a_small_model_comes_with_its_recorded_training(folder: Path) -> None:
    """To its very end."""
    facts, record = _stored(folder)["training"], load_record(folder / RECORD_FILE)
    assert len(record.losses) == record.moments[-1].step == facts["step"]
    assert record.moments[0].step == 0
    assert len(record.moments) > 20


def test_the_position_schemes_differ_in_nothing_else() -> None:
    """Nor does the leaking model from its honest twin but in the mask."""
    stored = {folder.name: _stored(folder) for folder in SMALL}

    def differing(one: str, other: str) -> set[str]:
        a, b = (
            {**stored[name]["model"], **stored[name]["training"]["settings"]}
            for name in (one, other)
        )
        return {name for name in a if a[name] != b[name]}

    for name in stored:
        if name.startswith("positions-") and name != "positions-rotary":
            assert differing(name, "positions-rotary") == {"positions"}, name
    assert differing("leak", "positions-rotary") == {"mask"}
