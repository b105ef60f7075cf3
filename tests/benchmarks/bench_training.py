"""Tokens per second of the trainer against a plain training loop in the manner of nanoGPT's.

    python -m tests.benchmarks.bench_training [--seconds 20] [--threads 1 2]

The other loop is written here in our own words, after nanoGPT's model.py and train.py: a GPT-2
shaped model with learned positions, LayerNorm, exact GELU and torch's fused attention, a tied
output, batches cut at random offsets out of a memory-mapped file, AdamW (fused) over two groups, a
clipped gradient, a cosine, and the loss read back every tenth step. Ours is `Trainer`, with all
that a step of it does. Both have the same sizes, the same text, float32, and the same setting of
the memory allocator, without which either is slower.

The first line of each size has the very same model in both. The others keep the plain loop as it
is and train ours as the bundled models and the lab do: RMSNorm, rotary or ALiBi positions, and
GELU by tanh in the bundled ones, which are more arithmetic than the plain loop has.

Each round times a step of one and of the other, in turn first and second, so that whatever else
the machine does falls on both alike. Thousands of tokens per second, medians; each ratio is the
median of the rounds' own ratios with their middle half, and more than 1 says that ours is faster.
The first is of the clock's time. The second is of the processor's, which leaves out waiting for
others and is the steadier one on a machine that is not idle.
"""

import argparse
import math
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from engine.config import Activation, ModelConfig, Norm, Positions
from engine.tokenizers import Tokenizer
from engine.training.command import keep_freed_memory
from engine.training.data import Texts, TrainingData, read_texts
from engine.training.plan import TrainingPlan
from engine.training.session import train_tokenizer
from engine.training.settings import TrainingSettings
from engine.training.trainer import Trainer, new_model
from resources.corpus import held_out_names, play_paths

STEPS_OF_A_ROUND = 1
LOG_EVERY = 10  # nanoGPT's log_interval
LEAST_ROUNDS, MOST_ROUNDS = 15, 200


VOCABULARY = 1024  # of byte-level BPE, as the bundled small models have it
Known = dict[str, tuple[Tokenizer, TrainingData]]


@dataclass(frozen=True)
class Size:
    """What both loops train: the model's sizes, and the windows of a step."""

    name: str
    n_layer: int
    d_model: int
    batch: int
    length: int
    positions: Positions = "learned"
    norm: Norm = "layer"
    activation: Activation = "gelu"
    tokenizer: str = "byte-bpe"
    n_head: int = 4


LAB = TrainingPlan()
_BUNDLED: Any = {"norm": "rms", "activation": "gelu_tanh"}
_LAB: Any = {"norm": "rms", "tokenizer": "characters"}
SIZES = (
    Size("4 x 128, 16 x 128, the same model", 4, 128, 16, 128),
    Size("  as positions-learned", 4, 128, 16, 128, "learned", **_BUNDLED),
    Size("  as positions-rotary", 4, 128, 16, 128, "rotary", **_BUNDLED),
    Size("  as positions-alibi", 4, 128, 16, 128, "alibi", **_BUNDLED),
    Size("4 x 128, 16 x 256, the same model", 4, 128, 16, 256),
    Size("  with rotary positions, as bundled", 4, 128, 16, 256, "rotary", **_BUNDLED),
    Size("2 x 128, 16 x 128, the same model", 2, 128, 16, 128),
    Size("  as induction-2", 2, 128, 16, 128, "alibi", **_BUNDLED),
    Size("2 x 64, 16 x 128, the same model", 2, 64, 16, 128, tokenizer="characters"),
    Size("2 x 64, 16 x 64, the same model", 2, 64, 16, 64, tokenizer="characters"),
    Size("  as the lab's first plan", 2, 64, 16, 64, LAB.positions, **_LAB),
)


class PlainBlock(nn.Module):
    """Attention by torch's fused kernel, and an MLP."""

    def __init__(self, width: int, n_head: int) -> None:
        super().__init__()
        self.n_head = n_head
        self.first_norm, self.second_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        """[B, T, C] → [B, T, C]."""
        n_batch, n_tokens, width = x.shape
        q, k, v = (
            each.view(n_batch, n_tokens, self.n_head, -1).transpose(1, 2)
            for each in self.qkv(self.first_norm(x)).split(width, dim=2)
        )
        mix = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mix.transpose(1, 2).contiguous().view(n_batch, n_tokens, width))
        return torch.as_tensor(x + self.down(F.gelu(self.up(self.second_norm(x)))))


class PlainModel(nn.Module):
    """GPT-2's shape with a tied output."""

    def __init__(self, size: Size, vocab_size: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, size.d_model)
        self.places = nn.Embedding(size.length, size.d_model)
        self.blocks = nn.ModuleList(
            PlainBlock(size.d_model, size.n_head) for _ in range(size.n_layer)
        )
        self.norm = nn.LayerNorm(size.d_model)
        self.head = nn.Linear(size.d_model, vocab_size, bias=False)
        self.head.weight = self.tokens.weight
        for parameter in self.parameters():
            if parameter.dim() >= 2:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """The mean loss over all positions of [B, T]."""
        x = self.tokens(inputs) + self.places(torch.arange(inputs.shape[1]))
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1), ignore_index=-1)


class PlainLoop:
    """The other loop; `run` yields after each step."""

    def __init__(
        self, size: Size, vocab_size: int, tokens: Path, settings: TrainingSettings
    ) -> None:
        self._size, self._tokens, self._settings = size, tokens, settings
        self._model = PlainModel(size, vocab_size)
        parameters = list(self._model.parameters())
        groups = [
            {"params": [p for p in parameters if p.dim() >= 2], "weight_decay": 0.1},
            {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0},
        ]
        self._optimizer = torch.optim.AdamW(
            groups, lr=settings.learning_rate, betas=(0.9, 0.95), fused=True
        )
        self.losses: list[float] = []

    def _batch(self) -> tuple[Tensor, Tensor]:
        # Mapped anew for each batch, as nanoGPT does lest memory grow.
        data = np.memmap(self._tokens, dtype=np.uint16, mode="r")
        length = self._size.length
        starts = torch.randint(len(data) - length, (self._size.batch,)).tolist()
        rows = [[data[at + by : at + by + length] for at in starts] for by in (0, 1)]
        inputs, targets = (
            torch.stack([torch.from_numpy(each.astype(np.int64)) for each in side]) for side in rows
        )
        return inputs, targets

    def run(self) -> Iterator[None]:
        """Train for ever."""
        settings, step = self._settings, 0
        inputs, targets = self._batch()
        while True:
            for group in self._optimizer.param_groups:
                group["lr"] = settings.rate(step)
            loss = self._model(inputs, targets)
            inputs, targets = self._batch()
            loss.backward()
            nn.utils.clip_grad_norm_(self._model.parameters(), settings.clip)
            self._optimizer.step()
            self._optimizer.zero_grad(set_to_none=True)
            if step % LOG_EVERY == 0:
                self.losses.append(loss.item())
            step += 1
            yield


def rates(size: Size, ours: Iterator[object], theirs: Iterator[object], seconds: float) -> str:
    """One line: both medians, and both ratios."""
    n_tokens = STEPS_OF_A_ROUND * size.batch * size.length
    loops = {"ours": ours, "plain": theirs}
    took: dict[str, list[tuple[float, float]]] = {name: [] for name in loops}
    names = list(loops)
    end = time.perf_counter() + seconds
    for number in range(MOST_ROUNDS + 1):
        for name in names if number % 2 else reversed(names):
            began, worked = time.perf_counter(), time.process_time()
            for _step in range(STEPS_OF_A_ROUND):
                next(loops[name])
            if number:  # the first round warms up
                took[name].append((time.perf_counter() - began, time.process_time() - worked))
        if number >= LEAST_ROUNDS and time.perf_counter() > end:
            break
    speeds = (median(n_tokens / clock for clock, _worked in took[name]) for name in names)
    columns = "".join(f"{speed / 1000:8.1f}" for speed in speeds)
    ratios = (
        [theirs[which] / ours[which] for ours, theirs in zip(*took.values(), strict=True)]
        for which in (0, 1)
    )
    return columns + "".join(f"   {_ratio(each)}" for each in ratios)


def _ratio(found: list[float]) -> str:
    low, _middle, high = quantiles(found, n=4)
    return f"{median(found):5.2f} ({low:.2f} to {high:.2f})"


def line(size: Size, folder: Path, texts: Texts, known: Known, seconds: float) -> str:
    """Build both loops for a size and let them run."""
    path = folder / size.tokenizer
    if size.tokenizer not in known:
        tokenizer = train_tokenizer(size.tokenizer, texts, VOCABULARY)
        data = TrainingData(texts, tokenizer, max(each.length for each in SIZES))
        data.training.astype(np.uint16).tofile(path)
        known[size.tokenizer] = tokenizer, data
    tokenizer, data = known[size.tokenizer]
    settings = TrainingSettings(
        steps=10**6,
        batch=size.batch,
        seq_len=size.length,
        dtype="float32",
        evaluate_every=10**6,
    )
    config = ModelConfig(
        vocab_size=tokenizer.vocab_size,
        n_layer=size.n_layer,
        n_head=size.n_head,
        d_model=size.d_model,
        max_seq_len=size.length,
        positions=size.positions,
        norm=size.norm,
        activation=size.activation,
    )
    ours = Trainer(new_model(config, 1), data, settings)
    plain = PlainLoop(size, tokenizer.vocab_size, path, settings)
    found = rates(size, ours.run(), plain.run(), seconds)
    assert all(map(math.isfinite, plain.losses)), "the plain loop must have learned"
    return found


def main() -> None:
    """Print a table for each number of threads."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--seconds", type=float, default=20, help="of one line")
    options = parser.parse_args()
    keep_freed_memory()
    texts = read_texts(play_paths(), held_out_names())
    known: Known = {}
    with tempfile.TemporaryDirectory() as folder:
        for threads in options.threads:
            torch.set_num_threads(threads)
            print(f"{threads} thread{'s' if threads > 1 else ''}, thousands of tokens per second")
            print(f"{'':40s}{'ours':>8s}{'plain':>8s}   by the clock           by the processor")
            for size in SIZES:
                found = line(size, Path(folder), texts, known, options.seconds)
                print(f"{size.name:40s}{found}", flush=True)


if __name__ == "__main__":
    main()
