"""A small trainer: deterministic given its seed, and resumable to the bit.

Every step's windows depend on (seed, step) alone and nothing else is random, so the whole state
is the weights, the optimizer's two averages, and the number of the step.
"""

import json
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import torch
from safetensors import safe_open
from torch import Tensor
from torch.nn import functional as F

from engine.checkpoints.folder import check_tensors, read_tensors, write_tensors
from engine.config import ModelConfig
from engine.errors import TrainingError
from engine.model import Transformer
from engine.training.data import IntArray, TrainingData
from engine.training.kernels import summed_loss, use_training_kernels
from engine.training.record import HeldOutLoss, Progress
from engine.training.settings import TrainingSettings

TOKENS_AT_ONCE = 4096  # of a step's windows; more only fills memory, the gradient is the same sum
SECONDS_OF_SPEED = 60.0  # tokens per second are told over about the last minute


class Trainer:
    """Owns the optimizer and the count of steps; trains the given model in place.

    Raises:
        TrainingError: the windows are longer than the model's context, or the arithmetic is to be
            compiled where that does not work.
    """

    def __init__(self, model: Transformer, data: TrainingData, settings: TrainingSettings) -> None:
        if settings.longest > model.config.max_seq_len:
            raise TrainingError(
                f"windows of {settings.longest} tokens do not fit a model of "
                f"max_seq_len = {model.config.max_seq_len}."
            )
        self.model = model
        self.data = data
        self.settings = settings
        self.step = 0
        self.tokens = 0
        self.seconds = 0.0
        self._speed = 0.0
        self._loss: Callable[[Tensor], Tensor] = self._summed_loss
        if settings.compile:  # which finds kernels of its own
            compiled(torch.neg)(torch.zeros(1))  # before anything is trained or written
            self._loss = compiled(self._plain_loss)
        else:
            use_training_kernels(model)
        self._parameters = list(model.parameters())
        self._autocast = settings.dtype == "bfloat16" or (
            settings.dtype == "auto" and has_fast_bfloat16()
        )
        self._optimizer = torch.optim.AdamW(
            self._parameter_groups(),
            lr=settings.learning_rate,
            betas=(settings.beta1, settings.beta2),
            fused=True,
        )

    def _parameter_groups(self) -> list[dict[str, Any]]:
        return [
            {
                "params": [p for p in self._parameters if p.dim() >= 2],
                "weight_decay": self.settings.weight_decay,
            },
            {"params": [p for p in self._parameters if p.dim() < 2], "weight_decay": 0.0},
        ]

    def run(self) -> Iterator[Progress]:
        """Train to the last step; yields after each, and may be left or taken up in between.

        Raises:
            TrainingError: the loss is no longer finite.
        """
        while self.step < self.settings.steps:
            yield self._one_step()

    def _windows(self, step: int) -> IntArray:
        settings = self.settings
        count, length = settings.shape(step)
        if step < settings.copy_steps:
            return self.data.copying_windows(settings.seed, step, count, length)
        return self.data.windows(settings.seed, step, count, length, settings.repeat_share)

    def _one_step(self) -> Progress:
        started = time.perf_counter()
        settings, step = self.settings, self.step
        rate, windows = settings.rate(step), self._windows(step)
        loss = self._update(windows, rate)
        if not math.isfinite(loss):
            raise TrainingError(
                f"the loss became {loss} at step {step + 1}; lower the learning rate "
                f"(it was {settings.learning_rate})."
            )
        self.step += 1
        n_tokens = windows.size - len(windows)  # all but the last of each are learned from
        self.tokens += n_tokens
        due = self.step % settings.evaluate_every == 0 or self.step == settings.steps
        held_out = self.held_out_loss(settings.evaluate_windows) if due else None
        seconds = time.perf_counter() - started
        self.seconds += seconds
        self._speed = self._smoothed(n_tokens / seconds, seconds)
        left = (settings.steps - self.step) * settings.batch * settings.seq_len
        return Progress(
            step=self.step,
            steps=settings.steps,
            tokens=self.tokens,
            loss=loss,
            learning_rate=rate,
            held_out=held_out,
            tokens_per_second=self._speed,
            seconds_left=left / self._speed,
        )

    def _update(self, windows: IntArray, rate: float) -> float:
        """One step of AdamW on the mean loss over the windows [B, T + 1]; returns that loss."""
        targets = windows.shape[0] * (windows.shape[1] - 1)
        at_once = max(1, TOKENS_AT_ONCE // (windows.shape[1] - 1))
        total = 0.0
        for first in range(0, len(windows), at_once):
            part = torch.from_numpy(windows[first : first + at_once])
            loss = self._run_loss(part) / targets
            loss.backward()
            total += loss.item()
        gradients = [p.grad for p in self._parameters if p.grad is not None]
        length = torch.nn.utils.get_total_norm(gradients)
        if not length <= self.settings.clip:  # seldom, after the beginning
            torch.nn.utils.clip_grads_with_norm_(self._parameters, self.settings.clip, length)
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        self._optimizer.step()
        self._optimizer.zero_grad()
        return total

    def _run_loss(self, windows: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self._autocast):
            return self._loss(windows)

    def _summed_loss(self, windows: Tensor) -> Tensor:
        hidden = self.model.hidden(windows[:, :-1], conditions=self.settings.conditions)
        return summed_loss(self.model, hidden.flatten(0, 1), windows[:, 1:].flatten())

    def _plain_loss(self, windows: Tensor) -> Tensor:
        logits = self.model.batch_logits(windows[:, :-1], self.settings.conditions)  # [B, T, V]
        targets = windows[:, 1:]  # [B, T]
        return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten(), reduction="sum")

    def _smoothed(self, speed: float, seconds: float) -> float:
        keep = math.exp(-seconds / SECONDS_OF_SPEED) if self._speed else 0.0
        return keep * self._speed + (1 - keep) * speed

    @torch.no_grad()
    def held_out_loss(self, at_most: int | None = None) -> HeldOutLoss:
        """The loss over the held-out text, or over that many windows spread evenly over it.

        Windows are as long as the longest trained on, side by side; what stands in front of a
        window is not seen, so the figure is a little worse than reading the text through.
        """
        nats, tokens, characters = 0.0, 0, 0
        length = self.settings.longest
        at_once = max(1, TOKENS_AT_ONCE // length)
        every = np.stack(list(self.data.held_out_windows(length, at_most)))  # [N, T + 1]
        for windows in np.split(every, range(at_once, len(every), at_once)):
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self._autocast):
                nats += self._summed_loss(torch.from_numpy(windows)).item()
            tokens += windows[:, 1:].size
            characters += int(self.data.characters[windows[:, 1:]].sum())
        return HeldOutLoss(per_token=nats / tokens, per_character=nats / max(1, characters))

    def save_state(self, path: Path) -> None:
        """Write all that `load_state` needs to go on to the bit, whole or not at all.

        Raises:
            TrainingError: the file cannot be written.
        """
        tensors: dict[str, Tensor] = {}
        for name, parameter in self.model.named_parameters():
            tensors[f"weights.{name}"] = parameter.detach()
            for key, tensor in self._optimizer.state.get(parameter, {}).items():
                if tensor.shape == parameter.shape:
                    tensors[f"{key}.{name}"] = tensor
        facts = {
            "step": self.step,
            "tokens": self.tokens,
            "seconds": self.seconds,
            "settings": asdict(self.settings),
            "model": self.model.config.to_dict(),
            "data": self.data.digest(),
        }
        try:
            write_tensors(path, tensors, {"training": json.dumps(facts)})
        except OSError as error:
            raise TrainingError(f"{path} cannot be written: {error.strerror}.") from error

    def load_state(self, path: Path) -> None:
        """Go on where `save_state` was called; only the number of steps may differ.

        Raises:
            TrainingError: the file is damaged, or belongs to another training.
        """
        facts = read_facts(path)
        self._check_same(path, facts)
        stored = read_tensors(path)
        named = dict(self.model.named_parameters())
        averages = ("exp_avg", "exp_avg_sq") if facts["step"] else ()
        wanted = {
            f"{kind}.{name}": parameter.detach()
            for name, parameter in named.items()
            for kind in ("weights", *averages)
        }
        check_tensors(path, stored, wanted)
        for name, parameter in named.items():
            parameter.data.copy_(stored[f"weights.{name}"])
            self._optimizer.state[parameter] = {
                kind: stored[f"{kind}.{name}"].clone() for kind in averages
            }
            if averages:
                self._optimizer.state[parameter]["step"] = torch.tensor(float(facts["step"]))
        self.step, self.tokens = facts["step"], facts["tokens"]
        self.seconds = facts["seconds"]

    def _check_same(self, path: Path, facts: dict[str, Any]) -> None:
        here = asdict(self.settings) | self.model.config.to_dict()
        there = facts["settings"] | facts["model"]
        for name, value in there.items():
            if name not in here:
                raise TrainingError(
                    f"{path} comes from another version of this program, in which {name} = {value} "
                    "could be chosen; resume it there, or begin a new training."
                )
            if name != "steps" and here[name] != value:
                raise TrainingError(
                    f"{path} was trained with {name} = {value}, not {here.get(name)}; "
                    "resume with the same settings."
                )
        if facts["data"] != self.data.digest():
            raise TrainingError(f"{path} was trained on other texts; resume with the same ones.")


def read_facts(path: Path) -> dict[str, Any]:
    """What `save_state` noted beside the tensors: step, tokens, seconds, settings, model, data.

    Raises:
        TrainingError: the file is missing, damaged, or not a training's state.
    """
    try:
        with safe_open(path, framework="pt") as file:
            facts = json.loads((file.metadata() or {}).get("training", "null"))
    except FileNotFoundError:
        raise TrainingError(f"{path} does not exist; there is no training to resume.") from None
    except (OSError, ValueError, safetensors.SafetensorError) as error:
        raise TrainingError(f"{path} is damaged ({error}).") from error
    wanted = {"step", "tokens", "seconds", "settings", "model", "data"}
    if not isinstance(facts, dict) or set(facts) != wanted:
        raise TrainingError(f"{path} is not the state of a training.")
    return facts


def compiled(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """The function with its arithmetic fused; each shape is compiled when it first comes.

    Raises:
        TrainingError: when called, if it cannot be compiled.
    """
    from torch._dynamo.exc import TorchDynamoException  # noqa: PLC0415 - takes longer than torch

    fused = torch.compile(function, dynamic=False)

    def call(x: Tensor) -> Tensor:
        try:
            return fused(x)
        except TorchDynamoException as error:
            cause = getattr(error, "inner_exception", error)
            why = str(cause).strip().partition("\n")[0].rstrip(".")
            raise TrainingError(
                f"the arithmetic cannot be compiled here ({why}); install a C++ compiler such as "
                "g++, or leave out --compile."
            ) from error

    return call


def has_fast_bfloat16() -> bool:
    """Whether this processor multiplies bfloat16 matrices in hardware (AMX).

    Elsewhere autocast to bfloat16 is several times slower than float32.
    """
    return bool(torch.cpu._is_amx_tile_supported())  # noqa: SLF001 - torch offers no other way


def new_model(config: ModelConfig, seed: int) -> Transformer:
    """A model with fresh weights that depend on the seed alone."""
    model = Transformer(config)
    model.init_weights(torch.Generator().manual_seed(seed))
    return model
