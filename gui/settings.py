"""What comes back at the next start: rows of name, default and a sentence, kept by QSettings."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QByteArray, QSettings


@dataclass(frozen=True)
class Setting:
    """One remembered value; anything stored that `is_valid` refuses counts as absent."""

    name: str
    default: Any
    sentence: str
    is_valid: Callable[[Any], bool] = lambda _value: True


def _one_of(*names: str) -> Callable[[Any], bool]:
    return lambda value: value in names


def _is_format(value: Any) -> bool:  # noqa: ANN401
    from engine.formats import FORMATS  # noqa: PLC0415 - after the first paint

    return value == "automatic" or value in FORMATS


def _is_device(value: Any) -> bool:  # noqa: ANN401
    from engine.formats import DEVICES  # noqa: PLC0415 - after the first paint

    return value in DEVICES


SETTINGS: tuple[Setting, ...] = (
    Setting("text", "", "The prompt that was on screen last."),
    Setting("model", "", "The folder of the model that was open last."),
    Setting(
        "number_format",
        "automatic",
        "The format of the weights: automatic, float32, bfloat16, float16 or int8.",
        _is_format,
    ),
    Setting("device", "cpu", "Where models compute: cpu, cuda or mps.", _is_device),
    Setting(
        "theme",
        "light",
        "The look: light, dark or projector.",
        _one_of("light", "dark", "projector"),
    ),
    Setting("zoom", 1.0, "How much larger than usual everything is.", lambda z: 0.5 <= z <= 3),
    Setting(
        "scale", "linear", "The scale of the weights' colours.", _one_of("linear", "log", "row")
    ),
    Setting("leave_first_out", False, "Whether the first key's weight is left out of the colours."),
    Setting("drawing", "heatmap", "How one head is drawn.", _one_of("heatmap", "arcs")),
    Setting("show_loss", False, "Whether tokens are coloured by their loss."),
    Setting("show_pass", False, "Whether what the latest pass computed is marked."),
    Setting("motion", True, "Whether what was recomputed flashes."),
    Setting("geometry", QByteArray(), "Where the window stood and how large it was."),
    Setting("layout", QByteArray(), "Where the panels were."),
    Setting("library_folders", (), "The folders that the user added to look for models in."),
    Setting(
        "training_speed",
        0.0,
        "Multiply-adds per second of the last training; 0 before the first.",
        lambda speed: 0 <= speed < 1e18,
    ),
    Setting("recent_models", (), "The models that were opened, the latest first."),
)

_MAX_TEXT = 100_000


class Settings:
    """Reads and writes the rows of SETTINGS; with `store` None nothing is read or kept."""

    def __init__(self, store: QSettings | None) -> None:
        self._store = store
        self._rows = {setting.name: setting for setting in SETTINGS}

    def read(self, name: str) -> Any:  # noqa: ANN401 - each row has its own type
        """The stored value, or the default where none of the right kind is stored.

        Raises:
            KeyError: SETTINGS has no such row.
        """
        row = self._rows[name]
        if self._store is None or not self._store.contains(name):
            return row.default
        try:
            value = _typed(self._store.value(name), type(row.default))
        except (TypeError, ValueError, RecursionError):
            return row.default
        return value if row.is_valid(value) else row.default

    def write(self, name: str, value: Any) -> None:  # noqa: ANN401
        """Keep a value for the next start.

        Raises:
            KeyError: SETTINGS has no such row.
        """
        row = self._rows[name]
        if self._store is None:
            return
        if isinstance(row.default, str):
            # What no file can hold is not worth a crash at the end.
            value = value[:_MAX_TEXT].encode("utf-8", "replace").decode("utf-8")
        if isinstance(row.default, tuple):
            import json  # noqa: PLC0415 - after the first paint

            value = json.dumps(value)  # QSettings gives a list of one text back as a text
        self._store.setValue(name, value)


def _typed(stored: Any, wanted: type) -> Any:  # noqa: ANN401
    """What a file holds, which may be text for everything, as the type of its row.

    Raises:
        TypeError: it is of another type.
        ValueError: its text cannot be read as that type.
        RecursionError: nor as anything else.
    """
    if wanted is bool and stored in {"true", "false"}:
        return stored == "true"
    if wanted is float and isinstance(stored, (str, int)):
        return float(stored)
    if wanted is tuple:
        import json  # noqa: PLC0415 - after the first paint

        return _texts(json.loads(stored))
    if not isinstance(stored, wanted):
        raise TypeError(f"{stored!r} is no {wanted.__name__}.")
    return stored


def _texts(stored: Any) -> tuple[str, ...]:  # noqa: ANN401
    if not isinstance(stored, list) or not all(isinstance(text, str) for text in stored):
        raise TypeError(f"{stored!r} is no list of texts.")
    return tuple(stored)
