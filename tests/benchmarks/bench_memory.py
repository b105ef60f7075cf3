"""Memory against tokens in SmolLM2-135M's shape, with random weights.

    python tests/benchmarks/bench_memory.py

Prints the records, the KV cache and the process at growing lengths; the ratios compare each row
with a straight line through the first one.
"""

import torch

from engine.config import ModelConfig
from engine.model import Transformer
from engine.run import Run

SMOL = ModelConfig(
    vocab_size=49152,
    n_layer=30,
    n_head=9,
    n_kv_head=3,
    head_dim=64,
    d_model=576,
    d_ff=1536,
    max_seq_len=2048,
    positions="rotary",
    norm="rms",
    mlp="gated",
    activation="silu",
    qkv_bias=False,
    attention_output_bias=False,
    mlp_bias=False,
)
LENGTHS = (128, 512, 1024, 2048)
MB = 1e6


def resident_bytes() -> int:
    """What the process holds in memory now (Linux)."""
    with open("/proc/self/statm") as file:  # noqa: PTH123 - not a file of ours
        return int(file.read().split()[1]) * 4096


def main() -> None:
    """Read a text that grows by prompts and single steps, and print the table."""
    torch.set_num_threads(1)
    model = Transformer(SMOL)
    model.init_weights(torch.Generator().manual_seed(1))
    run = Run(model)
    text = torch.randint(SMOL.vocab_size, (LENGTHS[-1],)).tolist()
    run.read(text[:8])
    empty = resident_bytes()
    weights = sum(parameter.nbytes for parameter in model.parameters())
    print(f"weights {weights / MB:.0f} MB, process before the text {empty / MB:.0f} MB")
    print("tokens  records MB  ratio   cache MB  ratio   process +MB  ratio")
    first: tuple[float, ...] = ()
    for n_tokens in LENGTHS:
        run.read(text[: n_tokens - 16])
        for step in range(n_tokens - 15, n_tokens + 1):
            session = run.read(text[:step])
            run.thumbnails(session)
        held = (session.nbytes, run.cache_bytes, resident_bytes() - empty)
        per_token = tuple(part / n_tokens for part in held)
        first = first or per_token
        columns = [
            f"{part / MB:10.1f}  {each / begin:5.2f}"
            for part, each, begin in zip(held, per_token, first, strict=True)
        ]
        print(f"{n_tokens:6d}  {'  '.join(columns)}")


if __name__ == "__main__":
    main()
