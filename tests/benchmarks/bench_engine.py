"""What a step costs, and what of it is the recording, the roles, the checks and the pictures.

    python -m tests.benchmarks.bench_engine

Medians in milliseconds on one thread; each round measures every part once, so that whatever
else the machine does falls on all of them alike.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from statistics import median

import numpy as np
import torch

from engine.config import ModelConfig
from engine.kv_cache import KVCache
from engine.model import Transformer
from engine.readouts import checks, head_roles
from engine.run import Run
from engine.sampling import Sampling, stages
from tests.benchmarks.bench_memory import SMOL

BUNDLED = ModelConfig(
    vocab_size=3000, n_layer=6, n_head=8, d_model=256, max_seq_len=1100, positions="rotary"
)
SHAPES = {"bundled, 6 x 8 heads": BUNDLED, "SmolLM2, 30 x 9 heads": replace(SMOL)}
LENGTHS = (256, 1024)
ROUNDS = 15


def milliseconds(work: Callable[[], object]) -> float:
    """How long one call takes."""
    began = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - began)


def measure(config: ModelConfig, n_tokens: int) -> dict[str, float]:
    """Medians of all parts of a step at a length that was reached half by steps."""
    model = Transformer(config)
    model.init_weights(torch.Generator().manual_seed(1))
    run = Run(model)
    text = np.random.default_rng(1).integers(config.vocab_size, size=n_tokens + ROUNDS).tolist()
    prefill = milliseconds(lambda: run.read(text[: n_tokens // 2]))
    for length in range(n_tokens // 2, n_tokens + 1):
        run.thumbnails(run.read(text[:length]))
    bare = KVCache(config)
    with torch.inference_mode():
        bare_prefill = milliseconds(lambda: model.hidden(torch.tensor(text[: n_tokens // 2]), bare))
        model.hidden(torch.tensor(text[n_tokens // 2 : n_tokens]), bare)
    times: dict[str, list[float]] = {}
    for length in range(n_tokens + 1, n_tokens + ROUNDS):
        with torch.inference_mode():
            new = torch.tensor(text[length - 1 : length])
            bare_step = milliseconds(lambda: model.hidden(new, bare))  # noqa: B023 - called at once
        parts: dict[str, Callable[[], object]] = {
            "Run.read": lambda: run.read(text[:length]),  # noqa: B023
            "Run.logits + stages": lambda: stages(
                run.logits(run.session, len(run.session) - 1), Sampling()
            ),
            "Run.thumbnails": lambda: run.thumbnails(run.session),
            "head_roles": lambda: head_roles(run.session),
            "checks": lambda: checks(run.session),
            "Run.pattern": lambda: run.pattern(run.session, 0, 0),
            "Run.visible": lambda: run.visible(0, length),  # noqa: B023
            "Session.token_ids": lambda: run.session.token_ids,
        }
        times.setdefault("step without a record", []).append(bare_step)
        for name, work in parts.items():
            times.setdefault(name, []).append(milliseconds(work))
    back = milliseconds(lambda: run.thumbnails(run.at(n_tokens - 1)))
    halved = milliseconds(lambda: run.thumbnails(run.at(n_tokens // 4)))
    result = {name: median(values) for name, values in times.items()}
    result["share of the record in a step"] = (
        1 - result["step without a record"] / result["Run.read"]
    )
    result["thumbnails one step back"] = back
    result["thumbnails of a cut prompt"] = halved
    result["prefill of half, recorded"] = prefill
    result["prefill of half, bare"] = bare_prefill
    return result


def main() -> None:
    """Print one column per shape and length."""
    torch.set_num_threads(1)
    columns = {
        (shape, n_tokens): measure(config, n_tokens)
        for shape, config in SHAPES.items()
        for n_tokens in LENGTHS
    }
    for shape, n_tokens in columns:
        print(f"{shape}, {n_tokens} tokens")
    for name in next(iter(columns.values())):
        print(f"{name:32s}" + "".join(f"{column[name]:12.2f}" for column in columns.values()))


if __name__ == "__main__":
    main()
