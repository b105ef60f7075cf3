"""Trainings on disk: what was asked of each, how far it came, and the models that were kept.

trainings/NAME/training.json   the plan and its data; why it failed, if it did
text.txt        the user's own text, as it was when the training began
state, record, tokenizer, best/, last/   written by `engine.training.command`
models/NAME/                   what was kept
"""

import json
import shutil
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self

from engine.errors import EngineError, TrainingError
from engine.training.plan import TrainingPlan
from engine.training.record import RECORD_FILE, STATE_FILE, TrainingRecord, load_record
from engine.whole_file import put_in_place, write_whole

HELD_OUT_SHARE = 0.1  # of a text of the user's, at its end
_ABOUT_FILE = "training.json"
_TEXT_FILE = "text.txt"
_MODEL_FILES = ("config.json", "model.safetensors", "tokenizer.json", RECORD_FILE)
_LONGEST_NAME = 80


@dataclass(frozen=True)
class TrainingData:
    """What to train on: the user's own text file, or files that come with the program."""

    title: str
    paths: tuple[Path, ...]
    held_out: tuple[str, ...] = ()  # names of files; or, where there are none, a share of the one

    @property
    def held_out_share(self) -> float:
        """The share of the one file that is held out, at its end."""
        return 0.0 if self.held_out else HELD_OUT_SHARE


@dataclass(frozen=True)
class About:
    """What is known of a training beside what it wrote itself."""

    title: str
    plan: TrainingPlan
    data_title: str
    is_own_text: bool
    failure: str = ""

    @classmethod
    def read(cls, folder: Path) -> Self:
        """What `write` wrote.

        Raises:
            EngineError: it is not there, or damaged.
        """
        try:
            values = json.loads((folder / _ABOUT_FILE).read_bytes())
            plan = TrainingPlan.from_dict(values.pop("plan"))
            return cls(plan=plan, **{name: values[name] for name in cls._kinds(values)})
        except (OSError, ValueError, TypeError, LookupError, AttributeError) as error:
            raise TrainingError(
                f"{folder} holds no training, or one that is damaged or of another version of this "
                "program; delete it by hand if nothing in it is wanted."
            ) from error

    @staticmethod
    def _kinds(values: dict[str, Any]) -> tuple[str, ...]:
        kinds = {"title": str, "data_title": str, "is_own_text": bool, "failure": str}
        if any(type(values[name]) is not kind for name, kind in kinds.items()):
            raise TypeError("a value is of another kind.")
        return tuple(kinds)

    def write(self, folder: Path) -> None:
        """Keep it beside the training.

        Raises:
            OSError: the folder cannot be written.
        """
        write_whole(folder / _ABOUT_FILE, json.dumps(asdict(self), indent=2).encode())

    def with_failure(self, sentence: str) -> Self:
        """The same, with why it ended; "" for not at all."""
        return replace(self, failure=sentence)


def make_training(shelf: Path, plan: TrainingPlan, data: TrainingData) -> Path:
    """A new folder for a training, with a copy of the user's text in it.

    Raises:
        TrainingError: it cannot be written.
    """
    is_own = not data.held_out
    about = About(f"{data.title}: {plan.title}", plan, data.title, is_own)
    try:
        folder = _free(shelf, time.strftime("%Y-%m-%d %H.%M.%S"))
        folder.mkdir(parents=True)
        if is_own:
            copy = folder / f"{_TEXT_FILE}.tmp"
            shutil.copyfile(data.paths[0], copy)
            put_in_place(copy, folder / _TEXT_FILE)
        about.write(folder)
    except OSError as error:
        raise TrainingError(f"{shelf} cannot be written: {error.strerror or error}.") from error
    return folder


def training_folders(shelf: Path) -> list[Path]:
    """All trainings, the newest first."""
    return sorted((path.parent for path in shelf.glob(f"*/{_ABOUT_FILE}")), reverse=True)


def recorded_folders(models: Iterable[Path]) -> list[Path]:
    """Those folders of models that have the record of their training beside them."""
    return [
        folder
        for folder in models
        if (folder / RECORD_FILE).is_file() and (folder / "config.json").is_file()
    ]


def data_words(folder: Path, about: About, plays: TrainingData) -> list[str]:
    """The data of a training as words for `engine.training.command`."""
    if about.is_own_text:
        return ["--data", str(folder / _TEXT_FILE), f"--held-out-share={HELD_OUT_SHARE}"]
    return ["--data", *map(str, plays.paths), "--held-out", *plays.held_out]


def model_facts(folder: Path, section: Literal["training", "model"] = "training") -> dict[str, Any]:
    """What a training noted beside its model in a folder; empty where there is no model."""
    try:
        facts = json.loads((folder / "config.json").read_bytes())[section]
    except (OSError, ValueError, TypeError, LookupError):
        return {}
    return facts if isinstance(facts, dict) else {}


def n_steps_saved(folder: Path) -> int:
    """After how many steps a training can go on; 0 where it has to begin."""
    step = _saved(folder).get("step")
    return step if type(step) is int else 0


def begun_with(folder: Path) -> dict[str, Any]:
    """The settings and the sizes that a training was begun with; empty where it has to begin."""
    saved = _saved(folder)
    parts = (saved.get("settings"), saved.get("model"))
    return {name: each for part in parts if isinstance(part, dict) for name, each in part.items()}


def _saved(folder: Path) -> dict[str, Any]:
    """What a training noted beside its state; empty where there is none, or a damaged one."""
    from safetensors import SafetensorError, safe_open  # noqa: PLC0415 - hardly any start needs it

    try:
        with safe_open(folder / STATE_FILE, framework="numpy") as file:
            facts = json.loads((file.metadata() or {})["training"])
    except (OSError, SafetensorError, ValueError, TypeError, LookupError):
        return {}
    return facts if isinstance(facts, dict) else {}


def read_record(folder: Path) -> TrainingRecord | None:
    """What was recorded in a folder; None where nothing can be read.

    Its own training says why, if it cannot go on from there.
    """
    try:
        return load_record(folder / RECORD_FILE)
    except EngineError:
        return None


def keep_model(model: Path, shelf: Path, name: str) -> Path:
    """Copy a model and its record under a name of the user's; returns its folder.

    Raises:
        TrainingError: the name is taken or no name for a folder, or nothing can be written.
    """
    check_name(shelf, name)
    folder = shelf / name.strip()
    try:
        folder.mkdir(parents=True)
        for file in _MODEL_FILES:
            shutil.copyfile(model / file, folder / file)
    except (OSError, ValueError) as error:
        shutil.rmtree(folder, ignore_errors=True)
        why = getattr(error, "strerror", None) or error
        raise TrainingError(f"{folder} cannot be written: {why}.") from error
    return folder


def check_name(shelf: Path, name: str) -> None:
    """See that a model can have this name.

    Raises:
        TrainingError: it cannot.
    """
    name = name.strip()
    if not name:
        raise TrainingError("A model needs a name; type one.")
    if len(name) > _LONGEST_NAME:
        raise TrainingError(f"The name has {len(name)} letters; use at most {_LONGEST_NAME}.")
    bad = [letter for letter in name if letter in '<>:"/\\|?*' or not letter.isprintable()]
    if bad or name.startswith(".") or name.endswith("."):
        wrong = repr(bad[0]) if bad else "a dot at its beginning or end"
        raise TrainingError(f"A model cannot be named {name!r}, with {wrong}; leave that out.")
    if (shelf / name).exists():
        raise TrainingError(f"There is a model named {name!r} already; choose another name.")


def _free(shelf: Path, name: str) -> Path:
    """A folder of this name that is not there yet."""
    number, folder = 1, shelf / name
    while folder.exists():
        number += 1
        folder = shelf / f"{name} ({number})"
    return folder
