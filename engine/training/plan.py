"""What somebody asks of a training, within limits, and what it will cost; without torch."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, Self, get_args

from engine.config import Activation, ModelConfig, Positions
from engine.errors import TrainingError
from engine.training.settings import TrainedMask, TrainingSettings

TokenKind = Literal["characters", "byte-bpe"]
Number = int | float

# What each number is called, and the least and the most that it can be.
LIMITS: dict[str, tuple[str, Number, Number]] = {
    "vocab_size": ("vocabulary", 257, 50_000),
    "n_layer": ("layers", 1, 24),
    "n_head": ("heads", 1, 64),
    "d_model": ("width", 4, 2048),
    "context": ("context", 16, 2048),
    "steps": ("steps", 1, 1_000_000),
    "batch": ("batch", 1, 1024),
    "learning_rate": ("learning rate", 1e-6, 1.0),
    "copy_steps": ("copy steps", 0, 1_000_000),
    "seed": ("seed", 0, 2**32 - 1),
}
_CHOICES = {
    "tokenizer": get_args(TokenKind),
    "positions": get_args(Positions),
    "mask": get_args(TrainedMask),
}

LOOKS = 60  # looks at the model, spread over the steps
_EVALUATE_WINDOWS = 24
_ACTIVATION: Activation = "gelu"  # twice as fast on a processor as its approximation by tanh
_WARMUP_SHARE, _WARMUP_MOST = 0.1, 100
_COPY_LONGEST = 64  # tokens per window in the copy steps
_AT_ONCE = 2048  # tokens whose activations are in memory at once, as in engine.training.trainer
_PROCESS_BYTES = 400 * 2**20  # torch itself, measured


@dataclass(frozen=True, kw_only=True)
class TrainingPlan:
    """A small training: tokens, sizes, positions, mask, and for how long.

    Raises:
        TrainingError: a number is out of its limits, or a choice is unknown.
        ConfigError: the sizes contradict each other.
    """

    tokenizer: TokenKind = "characters"
    vocab_size: int = 512  # at most; of byte-bpe
    n_layer: int = 2
    n_head: int = 4
    d_model: int = 64
    context: int = 64
    positions: Positions = "rotary"
    mask: TrainedMask = "causal"
    steps: int = 2000
    batch: int = 16
    learning_rate: float = 3e-3
    copy_steps: int = 300
    seed: int = 1

    def __post_init__(self) -> None:
        for name in LIMITS:
            check_number(name, getattr(self, name))
        for name, known in _CHOICES.items():
            if getattr(self, name) not in known:
                raise TrainingError(
                    f"{name} = {getattr(self, name)!r} is unknown; use one of {', '.join(known)}."
                )
        _ = self.settings, self.config(self.vocab_size)

    @property
    def settings(self) -> TrainingSettings:
        """How the trainer is to train."""
        return TrainingSettings(
            steps=self.steps,
            batch=self.batch,
            seq_len=self.context,
            copy_steps=min(self.copy_steps, self.steps),
            copy_seq_len=min(_COPY_LONGEST, self.context),
            learning_rate=self.learning_rate,
            warmup_steps=min(_WARMUP_MOST, round(_WARMUP_SHARE * self.steps)),
            seed=self.seed,
            mask=self.mask,
            # Narrow matrices lose more by being rounded first than they gain, where it is in
            # hardware, and elsewhere bfloat16 is several times slower.
            dtype="float32",
            evaluate_every=max(1, self.steps // LOOKS),
            evaluate_windows=_EVALUATE_WINDOWS,
        )

    def config(self, vocab_size: int) -> ModelConfig:
        """The model, once it is known how many tokens there are."""
        return ModelConfig(
            vocab_size=vocab_size,
            n_layer=self.n_layer,
            n_head=self.n_head,
            d_model=self.d_model,
            max_seq_len=self.context,
            positions=self.positions,
            norm="rms",
            activation=_ACTIVATION,
        )

    def words(self, begun: Mapping[str, Any] | None = None) -> list[str]:
        """The plan as words for `python -m engine.training`, but for data and folder.

        `begun` is what a training that goes on noted of its settings and its model. It counts
        before what a plan leaves open, which an earlier version may have chosen otherwise.
        """
        named: dict[str, Any] = {
            "tokenizer": self.tokenizer,
            "vocab_size": self.vocab_size,
            "n_layer": self.n_layer,
            "n_head": self.n_head,
            "d_model": self.d_model,
            "max_seq_len": self.context,
            "positions": self.positions,
            "activation": _ACTIVATION,
            **{
                name: value
                for name, value in asdict(self.settings).items()
                if not isinstance(value, bool)
            },
        }
        for name, value in (begun or {}).items():
            if name in named and type(value) is type(named[name]):
                named[name] = value
        return [f"--{name.replace('_', '-')}={value}" for name, value in named.items()]

    @property
    def title(self) -> str:
        """What tells it from others in a list."""
        mask = "" if self.mask == "causal" else ", no mask"
        return f"{self.n_layer} × {self.n_head} heads, width {self.d_model}, {self.positions}{mask}"

    def to_dict(self) -> dict[str, Any]:
        """All of it by name, ready for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """The plan that `to_dict` wrote.

        Raises:
            EngineError: it is none, or not possible.
        """
        known = {each.name: type(each.default) for each in fields(cls)}
        is_whole = set(values) == set(known) and all(
            type(value) is known[name] for name, value in values.items()
        )
        if not is_whole:
            raise TrainingError("the plan of the training is damaged.")
        return cls(**values)


def check_number(name: str, value: Number) -> None:
    """See that a number of a plan is within its limits.

    Raises:
        TrainingError: it is not.
    """
    title, least, most = LIMITS[name]
    if not least <= value <= most:
        raise TrainingError(f"{title} = {written(value)} is not possible; {limits_words(name)}.")


def limits_words(name: str) -> str:
    """What a number of a plan can be, as an advice."""
    _title, least, most = LIMITS[name]
    return f"use {written(least)} to {written(most)}"


def written(value: Number) -> str:
    """A number without an exponent."""
    return f"{value:,.6f}".rstrip("0").rstrip(".")


def n_parameters(config: ModelConfig) -> int:
    """How many weights a model has, counted without building it."""
    d, ff = config.d_model, config.d_ff
    queries = config.n_head * config.head_dim
    keys = config.n_kv_head * config.head_dim
    norm = d if config.norm == "rms" else 2 * d
    attention = d * (2 * queries + 2 * keys)
    attention += (queries + 2 * keys) * config.qkv_bias + d * config.attention_output_bias
    n_in = 2 if config.mlp == "gated" else 1
    mlp = (n_in + 1) * d * ff + (n_in * ff + d) * config.mlp_bias
    embeddings = config.vocab_size * d * (1 if config.tied_output else 2)
    if config.positions == "learned":
        embeddings += config.max_seq_len * d
    return embeddings + config.n_layer * (attention + mlp + 2 * norm) + norm


def multiply_adds(config: ModelConfig) -> int:
    """Multiplications with an addition that training on one token takes, nearly.

    Every matrix once forward and twice backward, and scores and mix over a full context: after
    Kaplan et al. 2020, section 2.1, where it is counted in operations, two for each.
    """
    queries = config.n_head * config.head_dim
    matrices = config.n_layer * (4 * config.d_model * queries + 2 * config.d_model * config.d_ff)
    matrices += config.vocab_size * config.d_model
    attention = 2 * config.n_layer * queries * config.max_seq_len
    return 3 * (matrices + attention)


def memory_bytes(config: ModelConfig) -> int:
    """About how much memory a training takes beside its text, in bytes.

    Weights, gradients, AdamW's two averages, the watcher's copy and what is being written; what
    the backward pass needs of the tokens that are computed at once, in float32; and torch.
    """
    of_layer = 16 * config.d_model + 3 * config.d_ff + 3 * config.n_head * config.max_seq_len
    tokens = max(_AT_ONCE, config.max_seq_len)
    activations = tokens * (config.n_layer * of_layer + 4 * config.vocab_size)
    return 4 * (7 * n_parameters(config) + activations) + _PROCESS_BYTES
