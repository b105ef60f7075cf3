"""The sizes and choices that make one decoder-only transformer, as a frozen value."""

import sys
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, Self, get_args

from engine.errors import ConfigError, quoted

Positions = Literal["none", "learned", "sinusoidal", "rotary", "alibi"]
Norm = Literal["layer", "rms"]
NormPlacement = Literal["pre", "post", "output", "both"]  # before a part, after the sum, after it
QkNorm = Literal["none", "head", "all"]  # of each head by itself, or of all heads as one row
Mlp = Literal["plain", "gated"]
Activation = Literal["gelu", "gelu_tanh", "silu", "relu"]
RopeStretch = Literal["linear", "llama3", "yarn", "longrope"]

_CHOICES = {
    "positions": get_args(Positions),
    "norm": get_args(Norm),
    "norm_placement": get_args(NormPlacement),
    "qk_norm": get_args(QkNorm),
    "mlp": get_args(Mlp),
    "activation": get_args(Activation),
}

# No model comes near; a damaged file may, and must not make anyone allocate it.
LARGEST = 2**24
LARGEST_NUMBER = sys.float_info.max  # whole numbers in JSON may be longer
# How many queries attention takes at a time, each block against the keys up to its own end.
# Measured on two cores: smaller blocks save more of the square but cost more calls.
QUERY_BLOCK = 128


@dataclass(frozen=True, kw_only=True)
class RopeScaling:
    """How rotary positions were slowed down for a longer context than the first one.

    - "linear" slows every pair by `factor`.
    - "llama3" slows those that turn less than `low_turns` times within the first context by
      `factor`, those that turn more than `high_turns` times not at all, and those between in
      between, by how often they turn.
    - "yarn" does the same, but between by the pair's number, from the pair that turns
      `high_turns` times to the one that turns `low_turns` times, both rounded outwards if they
      are `whole_pairs` (Peng et al. 2023, section 3.2).
    - "longrope" slows each pair by a divisor of its own (Ding et al. 2024). Such models have one
      set of divisors for texts within the first context and another for longer ones, under which
      every row would change; only the first is held here.

    Cosines and sines are multiplied by `attention_factor`, and scores by its square.

    Raises:
        ConfigError: the kind is unknown, or a number makes no sense.
    """

    kind: RopeStretch
    factor: float
    low_turns: float = 1.0
    high_turns: float = 4.0
    first_context: int = 8192
    attention_factor: float = 1.0
    whole_pairs: bool = True
    divisors: tuple[float, ...] = ()  # [D/2], of "longrope"

    def __post_init__(self) -> None:
        if self.kind not in get_args(RopeStretch):
            raise ConfigError(
                f"the rope scaling {self.kind!r} is unknown; use one of "
                f"{', '.join(get_args(RopeStretch))}."
            )
        for name in ("factor", "low_turns", "high_turns", "first_context", "attention_factor"):
            if not 0 < getattr(self, name) <= LARGEST_NUMBER:
                raise ConfigError(
                    f"{name} = {quoted(getattr(self, name))} is not possible in a rope scaling; "
                    "make it positive and finite."
                )
        if self.low_turns >= self.high_turns:
            raise ConfigError(
                f"low_turns = {self.low_turns} is not below high_turns = {self.high_turns}."
            )
        if not all(0 < divisor <= LARGEST_NUMBER for divisor in self.divisors):
            raise ConfigError("the divisors of a rope scaling must be positive and finite.")


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
    rope_scaling: RopeScaling | None = None
    rotary_dim: int = 0  # features of a head that turn; 0: all
    local_rope_theta: float = 0.0  # of the layers with a window; 0: as all the others, scaling too
    windows: tuple[int, ...] = ()  # each layer's own, 0 for none; (): no layer has one
    score_scale: float = 0.0  # what q · k is multiplied by; 0: 1/√head_dim
    score_cap: float = 0.0  # scores are bent into ± this by a tanh; 0: they are not
    norm: Norm = "layer"
    norm_placement: NormPlacement = "pre"
    norm_eps: float = 1e-5
    norm_bias: bool = True  # LayerNorm's; RMSNorm has none
    qk_norm: QkNorm = "none"
    parallel_residual: bool = False  # the MLP reads what attention read, not what it wrote
    mlp: Mlp = "plain"
    activation: Activation = "gelu_tanh"
    qkv_bias: bool = True
    attention_output_bias: bool = True
    mlp_bias: bool = True
    tied_output: bool = True
    embedding_scale: float = 1.0
    logit_cap: float = 0.0  # as score_cap

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
        completed["rotary_dim"] = self.rotary_dim or completed["head_dim"]
        for name, value in completed.items():
            object.__setattr__(self, name, value)
        self._check_sizes()  # before a root is taken of one
        object.__setattr__(self, "score_scale", self.score_scale or self.head_dim**-0.5)
        self._check()

    def window(self, layer: int) -> int:
        """How many positions a query of the layer sees at most, its own included; 0: all."""
        return self.windows[layer] if self.windows else 0

    def _check_sizes(self) -> None:
        for name in (field.name for field in fields(self) if field.type is int):
            value = getattr(self, name)
            if value < 1:
                raise ConfigError(
                    f"{name} = {quoted(value)} is not possible; it must be 1 or more."
                )
            if value > LARGEST:
                raise ConfigError(
                    f"{name} = {quoted(value)} is not possible; {LARGEST} is the most there can be."
                )

    def _check(self) -> None:
        for name, allowed in _CHOICES.items():
            value = getattr(self, name)
            if value not in allowed:
                raise ConfigError(
                    f"{name} = {quoted(value)} is unknown; use one of {', '.join(allowed)}."
                )
        self._check_heads()
        self._check_numbers()
        self._check_rope_scaling()
        is_possible = all(type(each) is int and 0 <= each <= LARGEST for each in self.windows)
        if self.windows and not (is_possible and len(self.windows) == self.n_layer):
            raise ConfigError(
                f"windows = {quoted(self.windows)} is not possible; give one number, 0 to "
                f"{LARGEST}, for each of the {self.n_layer} layers."
            )
        if self.parallel_residual and self.norm_placement == "post":
            raise ConfigError(
                "parallel_residual = True is not possible with norm_placement = 'post'; "
                "there is one sum, not two to be normed."
            )

    def _check_numbers(self) -> None:
        for name in ("rope_theta", "norm_eps", "embedding_scale", "score_scale"):
            if not 0 < getattr(self, name) <= LARGEST_NUMBER:
                raise ConfigError(
                    f"{name} = {quoted(getattr(self, name))} is not possible; "
                    "make it positive and finite."
                )
        for name in ("local_rope_theta", "score_cap", "logit_cap"):
            if not 0 <= getattr(self, name) <= LARGEST_NUMBER:
                raise ConfigError(
                    f"{name} = {quoted(getattr(self, name))} is not possible; "
                    "make it positive and finite, or 0."
                )

    def _check_rope_scaling(self) -> None:
        scaling = self.rope_scaling
        if scaling is not None and scaling.kind == "yarn" and self.rope_theta <= 1:
            raise ConfigError(
                f"rope_theta = {self.rope_theta} is not possible with the rope scaling 'yarn'; "
                "make it more than 1."
            )
        if scaling is None or scaling.kind != "longrope":
            return
        if 2 * len(scaling.divisors) != self.rotary_dim:
            raise ConfigError(
                f"a rope scaling has {len(scaling.divisors)} divisors; "
                f"{self.rotary_dim // 2} pairs of a head turn, and each needs one."
            )
        if self.max_seq_len > scaling.first_context:
            raise ConfigError(
                f"max_seq_len = {self.max_seq_len} is not possible with the rope scaling "
                f"'longrope'; its first context of {scaling.first_context} is the most."
            )

    def _check_heads(self) -> None:
        if self.n_head * self.head_dim > LARGEST:
            raise ConfigError(
                f"n_head = {self.n_head} heads of head_dim = {self.head_dim} are not possible; "
                f"{LARGEST} features are the most there can be."
            )
        if self.n_head % self.n_kv_head:
            raise ConfigError(
                f"n_head = {self.n_head} is not divisible by n_kv_head = {self.n_kv_head}; "
                "every key/value head must serve the same number of query heads."
            )
        if self.rotary_dim > self.head_dim:
            raise ConfigError(
                f"rotary_dim = {self.rotary_dim} is more than head_dim = {self.head_dim}; "
                "a part of a head cannot be larger than it."
            )
        if self.positions == "rotary" and self.rotary_dim % 2:
            name = "head_dim" if self.rotary_dim == self.head_dim else "rotary_dim"
            raise ConfigError(
                f"{name} = {self.rotary_dim} is odd; rotary positions turn pairs, so make it even."
            )

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """The configuration that `to_dict` wrote.

        Raises:
            ConfigError: a name is unknown, a required one is missing, or a type is wrong.
        """
        known = {field.name: field for field in fields(cls)}
        values = dict(values)
        if isinstance(values.get("windows"), list):  # what JSON makes of a tuple
            values["windows"] = tuple(values["windows"])
        rope_scaling = values.pop("rope_scaling", None)
        if rope_scaling is not None:
            rope_scaling = _rope_scaling_from(rope_scaling)
        for name, value in values.items():
            if name not in known:
                raise ConfigError(
                    f"{name!r} is not a setting of a model; known: {', '.join(known)}."
                )
            wanted = type(getattr(cls, name, 0)) if hasattr(cls, name) else int
            if wanted is float and type(value) is int:
                continue
            if type(value) is not wanted:
                raise ConfigError(f"{name} = {quoted(value)} should be of type {wanted.__name__}.")
        missing = [name for name in known if not hasattr(cls, name) and name not in values]
        if missing:
            raise ConfigError(f"the model's configuration lacks {', '.join(missing)}.")
        return cls(**values, rope_scaling=rope_scaling)

    def to_dict(self) -> dict[str, Any]:
        """All settings by name, completed, ready for JSON."""
        return {**asdict(self), "windows": list(self.windows)}


_KINDS_OF_ROPE: dict[str, tuple[type, ...]] = {
    "kind": (str,),
    "whole_pairs": (bool,),
    "divisors": (tuple,),
}


def _rope_scaling_from(values: Any) -> RopeScaling:  # noqa: ANN401 - JSON
    names = [field.name for field in fields(RopeScaling)]
    if not isinstance(values, dict) or set(values) - set(names) or not {*names[:2]} <= set(values):
        raise ConfigError(
            f"rope_scaling = {quoted(values)} is not possible; it needs kind and factor, "
            f"and may hold {', '.join(names[2:])}."
        )
    values = dict(values)
    if isinstance(values.get("divisors"), list):  # what JSON makes of a tuple
        values["divisors"] = tuple(values["divisors"])
    for name, value in values.items():
        if type(value) not in _KINDS_OF_ROPE.get(name, (int, float)):
            raise ConfigError(f"{name} = {quoted(value)} in rope_scaling is of the wrong type.")
    if not all(type(divisor) in (int, float) for divisor in values.get("divisors", ())):
        raise ConfigError("divisors in rope_scaling should be numbers.")
    return RopeScaling(**values)
