"""What a family's file says about it, and the reading of its config.json.

Names of settings and weights are Hugging Face's; a name of ours is that of `engine.model`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from torch import Tensor

from engine.config import LARGEST_NUMBER, Activation, ModelConfig
from engine.errors import ConfigError, quoted

_ACTIVATIONS: dict[str, Activation] = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "silu": "silu",
    "swish": "silu",
    "relu": "relu",
}

# A damaged file must not make anyone list more layers than a model has.
_DEEPEST = 4096

Reshape = Callable[[Tensor, ModelConfig], Tensor]


class Settings:
    """Owns the settings of one config.json; each is asked for with the kind it must have.

    A setting that is null counts as left out.

    Raises:
        ConfigError: from every method, where a setting is of another kind, or is left out and
            has no default.
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def whole(self, name: str, default: int | None = None) -> int:
        """A whole number."""
        value = self._get(name, default)
        if type(value) is not int:
            raise ConfigError(f"{name} = {quoted(value)} should be a whole number.")
        return value

    def whole_or_none(self, name: str, default: int) -> int:
        """A whole number, 0 for null: here null says something else than leaving it out."""
        return (
            0 if name in self._values and self._values[name] is None else self.whole(name, default)
        )

    def depth(self, name: str) -> int:
        """A number of layers."""
        n_layer = self.whole(name)
        if not 1 <= n_layer <= _DEEPEST:
            raise ConfigError(f"{name} = {n_layer} is not possible; 1 to {_DEEPEST} layers are.")
        return n_layer

    def number(self, name: str, default: float | None = None) -> float:
        """A finite number."""
        value = self._get(name, default)
        if not _is_finite(value):
            raise ConfigError(f"{name} = {quoted(value)} should be a number.")
        return float(value)

    def number_or_none(self, name: str, default: float) -> float:
        """A finite number, 0 for null: here null says something else than leaving it out."""
        is_null = name in self._values and self._values[name] is None
        return 0.0 if is_null else self.number(name, default)

    def flag(self, name: str, *, default: bool) -> bool:
        """True or false."""
        value = self._get(name, default)
        if type(value) is not bool:
            raise ConfigError(f"{name} = {quoted(value)} should be true or false.")
        return value

    def word(self, name: str, default: str | None = None) -> str:
        """A string."""
        value = self._get(name, default)
        if type(value) is not str:
            raise ConfigError(f"{name} = {quoted(value)} should be a word.")
        return value

    def words(self, name: str) -> list[str]:
        """A list of strings; an empty one where it is left out."""
        values = self.rows(name)
        if not all(type(value) is str for value in values):
            raise ConfigError(f"{name} = {quoted(values)} should be a list of words.")
        return values

    def numbers(self, name: str) -> list[float]:
        """A list of finite numbers."""
        values = self._get(name, None)
        if type(values) is not list or not all(map(_is_finite, values)):
            raise ConfigError(f"{name} should be a list of numbers.")
        return [float(value) for value in values]

    def rows(self, name: str) -> list[Any]:
        """A list; an empty one where it is left out."""
        values = self._get(name, [])
        if type(values) is not list:
            raise ConfigError(f"{name} = {quoted(values)} should be a list.")
        return values

    def table(self, name: str) -> "Settings":
        """Settings inside of a setting; empty where it is left out."""
        values = self._get(name, {})
        if type(values) is not dict:
            raise ConfigError(f"{name} = {quoted(values)} should hold settings by name.")
        return Settings(values)

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._values)

    def activation(self, name: str, default: str | None = None) -> Activation:
        """The bend of the MLP, by our name."""
        theirs = self.word(name, default)
        if theirs not in _ACTIVATIONS:
            raise ConfigError(
                f"{name} = {quoted(theirs)} is not known here; known: {', '.join(_ACTIVATIONS)}."
            )
        return _ACTIVATIONS[theirs]

    def refuse(self, name: str, meaning: str) -> None:
        """Stop where a flag is set whose arithmetic the model here does not have."""
        if self.flag(name, default=False):
            raise ConfigError(f"{name} is true: {meaning} is not computed here.")

    def _get(self, name: str, default: object) -> Any:  # noqa: ANN401 - JSON
        value = self._values.get(name)
        if value is not None:
            return value
        if default is None:
            raise ConfigError(f"config.json lacks {name!r}.")
        return default


def _is_finite(value: object) -> bool:
    """Whether it is a number that float can hold; whole ones in JSON may be longer."""
    return type(value) in (int, float) and abs(cast("float", value)) <= LARGEST_NUMBER


@dataclass(frozen=True)
class Architecture:
    """One family: how its settings and its weights become ours.

    `weight_names` maps each name of ours to theirs; `{layer}` stands for the layer's number, and
    several names are joined along the outputs. `reshape` makes of their tensor (joined, where
    there are several) what we keep under our name. Files may leave `prefix` away. `ignored` are
    regular expressions for what files hold besides weights.
    """

    model_types: tuple[str, ...]
    config_from: Callable[[Settings], ModelConfig]
    weight_names: Mapping[str, str | tuple[str, ...]]
    reshape: Mapping[str, Reshape] = field(default_factory=dict)
    prefix: str = ""
    ignored: tuple[str, ...] = ()


def with_bias(names: Mapping[str, str | tuple[str, ...]]) -> dict[str, str | tuple[str, ...]]:
    """Names of modules, ours to theirs, as those of their weights and their biases."""
    return {
        f"{ours}.{part}": f"{theirs}.{part}"
        if isinstance(theirs, str)
        else tuple(f"{name}.{part}" for name in theirs)
        for ours, theirs in names.items()
        for part in ("weight", "bias")
    }
