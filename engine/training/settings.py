"""How to train, as a frozen value that refuses what is not possible; without torch."""

import math
from dataclasses import dataclass
from typing import Literal, get_args

from engine.conditions import Conditions
from engine.errors import TrainingError

Dtype = Literal["auto", "float32", "bfloat16"]
TrainedMask = Literal["causal", "none"]


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """How to train. `batch` windows of `seq_len` tokens per step, or as many tokens in long ones.

    One step in `long_every` has windows of `long_seq_len`, so that every position is trained
    from the beginning, at the price of the short ones most of the time; 0: none has. The first
    `copy_steps` have windows of `copy_seq_len` in which nothing but copying pays. With the mask
    "none" every position sees the whole window, the token that it is to predict included.

    Raises:
        TrainingError: a number is out of its range.
    """

    steps: int = 5000
    batch: int = 16
    seq_len: int = 256
    long_seq_len: int = 0  # 0: no long windows
    long_every: int = 5
    copy_steps: int = 0
    copy_seq_len: int = 64
    repeat_share: float = 0.15
    learning_rate: float = 1e-3
    final_learning_rate: float = 0.0
    warmup_steps: int = 100
    weight_decay: float = 0.1
    beta1: float = 0.9
    beta2: float = 0.95
    clip: float = 1.0
    seed: int = 1
    mask: TrainedMask = "causal"
    dtype: Dtype = "auto"
    compile: bool = False
    evaluate_every: int = 200
    evaluate_windows: int = 48

    def __post_init__(self) -> None:
        at_least = {
            "steps": 1,
            "batch": 1,
            "seq_len": 2,
            "long_every": 1,
            "evaluate_every": 1,
            "evaluate_windows": 1,
            "long_seq_len": 0,
            "copy_steps": 0,
            "copy_seq_len": 8,
            "warmup_steps": 0,
            "weight_decay": 0,
            "final_learning_rate": 0,
            "seed": 0,
        }
        for name, least in at_least.items():
            if getattr(self, name) < least:
                raise TrainingError(
                    f"{name} = {getattr(self, name)} is not possible; it must be {least} or more."
                )
        for name in ("learning_rate", "clip"):
            if not getattr(self, name) > 0:
                raise TrainingError(f"{name} = {getattr(self, name)} must be more than 0.")
        for name in ("repeat_share", "beta1", "beta2"):
            if not 0 <= getattr(self, name) < 1:
                raise TrainingError(
                    f"{name} = {getattr(self, name)} must be 0 or more and less than 1."
                )
        for name, known in (("dtype", get_args(Dtype)), ("mask", get_args(TrainedMask))):
            if getattr(self, name) not in known:
                raise TrainingError(
                    f"{name} = {getattr(self, name)!r} is unknown; use one of {', '.join(known)}."
                )

    @property
    def conditions(self) -> Conditions:
        """What the model is trained and judged under."""
        return Conditions(mask=self.mask)

    @property
    def longest(self) -> int:
        """The longest window, in tokens."""
        return max(self.seq_len, self.long_seq_len, self.copy_seq_len if self.copy_steps else 0)

    def shape(self, step: int) -> tuple[int, int]:
        """How many windows the step has, and of how many tokens each."""
        if step < self.copy_steps:
            return max(1, self.batch * self.seq_len // self.copy_seq_len), self.copy_seq_len
        if self.long_seq_len and step % self.long_every == self.long_every - 1:
            return max(1, self.batch * self.seq_len // self.long_seq_len), self.long_seq_len
        return self.batch, self.seq_len

    def rate(self, step: int) -> float:
        """The learning rate: linear up, then half a cosine down."""
        if step < self.warmup_steps:
            return self.learning_rate * (step + 1) / self.warmup_steps
        done = (step - self.warmup_steps) / max(1, self.steps - self.warmup_steps)
        fall = self.learning_rate - self.final_learning_rate
        return self.final_learning_rate + fall * 0.5 * (1 + math.cos(math.pi * done))
