"""What it takes to record times, next to what is timed: `python -m tests.benchmarks.bench_times`.

Two records: of a step (two looks at the clock, and one more entry in the list of passes), and of
the parts of a pass (everything that `PartClock` puts into it, around work that is nothing). Each
is timed by itself, a thousand times over, because a hundredth of a pass is less than what two
passes differ by. Processor time of this thread, the least of many rounds, interleaved with the
passes. Exits with 1 if a record takes a hundredth of what it records.
"""

import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch

import resources
from engine.cancelling import give_up_if, never
from engine.config import ModelConfig
from engine.cost.part_clock import PartClock
from engine.cost.slices import _AskingScoring
from engine.growing import Growing
from engine.kv_cache import KVCache
from engine.loading import load
from engine.model import CAUSAL, Transformer
from engine.reading import PassStats
from engine.run import Run
from tests.benchmarks.bench_memory import SMOL

ROUNDS, OFTEN, GOAL = 40, 200, 0.01
N_PASSES = 10_000  # recorded before


def microseconds(work: Callable[[], object], often: int = 1) -> float:
    """Processor time of one of so many calls."""
    began = time.thread_time_ns()
    for _time in range(often):
        work()
    return (time.thread_time_ns() - began) / 1000 / often


def least(first: Callable[[], object], often: int, second: Callable[[], object]) -> list[float]:
    """The least of both, one after the other in each round."""
    rounds = [(microseconds(first, often), microseconds(second)) for _ in range(ROUNDS)]
    return [min(each) for each in zip(*rounds, strict=True)]


def bench_step(model: Transformer) -> float:
    """A decoded token as the program makes it, and its record after many others."""
    run = Run(model)
    longest = model.config.max_seq_len
    text = np.random.default_rng(1).integers(model.config.vocab_size, size=longest).tolist()
    n_tokens = min(256, longest - ROUNDS)
    run.read(text[:n_tokens])
    entry = PassStats(1, 1, 0, 0.1, 1, cached=True, reason="grown")
    passes = Growing([entry] * N_PASSES, N_PASSES)

    def record() -> None:
        nonlocal passes
        seconds = run._now() - run._now()
        passes = passes.plus(
            PassStats(
                n_tokens=1,
                n_computed=1,
                n_kept=0,
                seconds=seconds,
                cache_bytes=1,
                cached=True,
                reason="grown",
                window=model.config.max_seq_len,
                sinks=1,
            )
        )

    def step() -> None:
        nonlocal n_tokens
        n_tokens += 1
        run.read(text[:n_tokens])

    recorded, taken = least(record, OFTEN, step)
    print(f"  a step: {taken:8.0f} µs, its record {recorded:5.1f} µs, {recorded / taken:.2%}")
    return recorded / taken


def bench_parts(model: Transformer, n_tokens: int) -> float:
    """A pass of a sweep with its logits, and all that the clock of parts does in it."""
    clock, token_ids = PartClock(model), torch.zeros(n_tokens, dtype=torch.int64)
    kv_cache, row = KVCache(model.config), torch.zeros(1)
    timed = clock._timed("MLP", lambda x: x)
    told = clock._told(lambda left, _right: left)
    plain = model.scoring(0, CAUSAL)  # which a pass makes in any case
    asking = partial(_AskingScoring.like, lambda _layer, _conditions: plain, never)

    def watch() -> None:
        clock._entered = []
        for layer in range(model.config.n_layer):
            timed(row)
            clock.keep_qkv(layer, row, row, row)
            told(row, row)
            asking(layer, CAUSAL)
            give_up_if(never)
            give_up_if(never)
            told(row, row)
            clock.keep_weights(layer, slice(0), row)
            timed(row)
            timed(row)
        timed(row)

    def whole() -> None:
        kv_cache.rewind(0)
        model.logits(model.hidden(token_ids, kv_cache))

    watched, taken = least(watch, OFTEN // 10, whole)
    print(
        f"  {n_tokens:3d} tokens: {taken:8.0f} µs, watching its parts {watched:5.1f} µs, "
        f"{watched / taken:.2%}"
    )
    return watched / taken


def smol() -> Transformer:
    """A model of SmolLM2-135M's shape, with fresh weights."""
    config: ModelConfig = SMOL
    model = Transformer(config).eval().requires_grad_(requires_grad=False)
    model.init_weights(torch.Generator().manual_seed(1))
    return model


def main() -> int:
    """All models; 1 if the goal is missed."""
    torch.set_num_threads(1)
    models = Path(resources.__file__).parent / "models"
    shares = []
    for name in ("induction-1", "shakespeare", "SmolLM2-135M's shape"):
        print(name)
        model = load(models / name).model.eval() if (models / name).is_dir() else smol()
        with torch.inference_mode():
            shares += [bench_step(model), *(bench_parts(model, n) for n in (8, 128))]
    print(f"at most {max(shares):.2%}; the goal is {GOAL:.0%}")
    return int(max(shares) >= GOAL)


if __name__ == "__main__":
    sys.exit(main())
