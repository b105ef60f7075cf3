"""What a sweep takes of memory, against the bound that refuses it beforehand.

    python -m tests.benchmarks.bench_room [SHAPE LENGTH …]

Each shape and length is swept in a fresh process (Linux): the most that it ever held, less what it
held with the model in memory and one pass made. Short texts take what the machine is measured
with; the longer of these lengths take more. Exits with 1 if a peak lies above the bound, or the
bound above one and a half times the peak.
"""

import subprocess
import sys
from pathlib import Path

import torch

from engine.config import ModelConfig
from engine.cost.length_sweep import sweep
from engine.cost.room import sweep_bytes
from engine.model import Transformer
from tests.benchmarks.bench_memory import SMOL

SHAPES = {
    "SmolLM2": SMOL,
    "bundled": ModelConfig(
        vocab_size=3072, n_layer=6, n_head=8, d_model=256, max_seq_len=512, positions="rotary"
    ),
    "ALiBi": ModelConfig(
        vocab_size=1024, n_layer=4, n_head=4, d_model=128, max_seq_len=256, positions="alibi"
    ),
    "capped": ModelConfig(
        vocab_size=1024,
        n_layer=4,
        n_head=8,
        n_kv_head=4,
        d_model=256,
        max_seq_len=4096,
        score_cap=50.0,
        mlp="gated",
    ),
}
RUNS = (("SmolLM2", 512), ("SmolLM2", 4096), ("bundled", 4096), ("bundled", 16_384))
RUNS += (("ALiBi", 16_384), ("capped", 8192))
TOO_MUCH, MB = 1.5, 1e6


def status(name: str) -> int:
    """A figure of this process in bytes, such as VmRSS or VmHWM (Linux)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(name))


def peak_of(config: ModelConfig, n_tokens: int) -> int:
    """The most that a sweep adds to what this process holds."""
    torch.set_num_threads(1)
    model = Transformer(config).eval().requires_grad_(requires_grad=False)
    model.init_weights(torch.Generator().manual_seed(1))
    with torch.inference_mode():
        model(torch.arange(4))
    before = status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    for _lab in sweep(model, list(range(100)), n_tokens):
        pass
    return status("VmHWM") - before


def bench(shape: str, n_tokens: int) -> bool:
    """One run in a process of its own; returns whether the bound is one, and a near one."""
    command = [sys.executable, "-m", "tests.benchmarks.bench_room", "--child", shape, str(n_tokens)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    peak, bound = map(int, done.stdout.split())
    is_good = peak <= bound <= TOO_MUCH * peak
    print(
        f"{shape:8s} {n_tokens:6,d} tokens "
        f"peak {peak / MB:6.0f} MB, bound {bound / MB:6.0f} MB, {bound / peak:5.2f} x"
        f"{'' if is_good else '  !'}",
        flush=True,
    )
    return is_good


def main(arguments: list[str]) -> int:
    """All runs, or those named; 1 if a bound is none or far off."""
    if arguments[:1] == ["--child"]:
        config, n_tokens = SHAPES[arguments[1]], int(arguments[2])
        print(peak_of(config, n_tokens), sweep_bytes(config, n_tokens))
        return 0
    pairs = zip(arguments[::2], map(int, arguments[1::2]), strict=True)
    good = [bench(*run) for run in tuple(pairs) or RUNS]
    return int(not all(good))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
