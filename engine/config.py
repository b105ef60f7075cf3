"""The sizes and choices that make one decoder-only transformer, as a frozen value."""

import math
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, Self, get_args

from engine.errors import ConfigError

Positions = Literal["none", "learned", "sinusoidal", "rotary", "alibi"]
Norm = Literal["layer", "rms"]
NormPlacement = Literal["pre", "post"]
Mlp = Literal["plain", "gated"]
Activation = Literal["gelu", "gelu_tanh", "silu", "relu"]

_CHOICES = {
    "positions": get_args(Positions),
    "norm": get_args(Norm),
    "norm_placement": get_args(NormPlacement),
    "mlp": get_args(Mlp),
    "activation": get_args(Activation),
}


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """A model's shape. Sizes left at 0 are completed once, here, and never again downstream.

    Raises:
        ConfigError: a size is not positive, a choice is unknown, or sizes contradict each other.
    """

    vocab_size: int
    n_layer: int
    n_head: int
    d_model: int
    max_seq_len: int
    n_kv_head: int = 0  # 0: as many as n_head
    head_dim: int = 0  # 0: d_model / n_head
    d_ff: int = 0  # 0: 4 · d_model
    positions: Positions = "learned"
    rope_theta: float = 10_000.0
    norm: Norm = "layer"
    norm_placement: NormPlacement = "pre"
    norm_eps: float = 1e-5
    mlp: Mlp = "plain"
    activation: Activation = "gelu_tanh"
    qkv_bias: bool = True
    attention_output_bias: bool = True
    mlp_bias: bool = True
    tied_output: bool = True

    def __post_init__(self) -> None:
        if self.n_head > 0 and not self.head_dim and self.d_model % self.n_head:
            raise ConfigError(
                f"d_model = {self.d_model} is not divisible by n_head = {self.n_head}; "
                "choose a multiple, or give head_dim."
            )
        completed = {
            "n_kv_head": self.n_kv_head or self.n_head,
            "head_dim": self.head_dim or self.d_model // max(self.n_head, 1),
            "d_ff": self.d_ff or 4 * self.d_model,
        }
        for name, value in completed.items():
            object.__setattr__(self, name, value)
        self._check()

    def _check(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.type is int and value < 1:
                raise ConfigError(f"{field.name} = {value} is not possible; it must be 1 or more.")
        for name, allowed in _CHOICES.items():
            value = getattr(self, name)
            if value not in allowed:
                raise ConfigError(
                    f"{name} = {value!r} is unknown; use one of {', '.join(allowed)}."
                )
        if self.n_head % self.n_kv_head:
            raise ConfigError(
                f"n_head = {self.n_head} is not divisible by n_kv_head = {self.n_kv_head}; "
                "every key/value head must serve the same number of query heads."
            )
        if self.positions == "rotary" and self.head_dim % 2:
            raise ConfigError(
                f"head_dim = {self.head_dim} is odd; rotary positions turn pairs, so make it even."
            )
        for name in ("rope_theta", "norm_eps"):
            if not 0 < getattr(self, name) < math.inf:
                raise ConfigError(
                    f"{name} = {getattr(self, name)} is not possible; make it positive and finite."
                )

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """The configuration that `to_dict` wrote.

        Raises:
            ConfigError: a name is unknown, a required one is missing, or a type is wrong.
        """
        known = {field.name: field for field in fields(cls)}
        for name, value in values.items():
            if name not in known:
                raise ConfigError(
                    f"{name!r} is not a setting of a model; known: {', '.join(known)}."
                )
            wanted = type(getattr(cls, name, 0)) if hasattr(cls, name) else int
            if wanted is float and type(value) is int:
                continue
            if type(value) is not wanted:
                raise ConfigError(f"{name} = {value!r} should be of type {wanted.__name__}.")
        missing = [name for name in known if not hasattr(cls, name) and name not in values]
        if missing:
            raise ConfigError(f"the model's configuration lacks {', '.join(missing)}.")
        return cls(**values)

    def to_dict(self) -> dict[str, Any]:
        """All settings by name, completed, ready for JSON."""
        return asdict(self)
