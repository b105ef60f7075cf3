"""The trainer's command line: `python -m engine.training --help`.

Nothing here waits for torch: help and mistakes are told at once, and Ctrl-C is heard from the
beginning on, not only when torch is there.
"""

import argparse
import ctypes
import os
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import get_args

from engine.config import Activation, Mlp, Norm, Positions
from engine.errors import CancelledError, EngineError
from engine.training.orders import Orders
from engine.training.settings import Dtype, TrainedMask, TrainingSettings
from engine.training.telling import ToProgram, ToTerminal

_NICE = 10


def keep_freed_memory() -> None:
    """Have glibc keep what is freed: half of a step's time is else spent on fresh pages.

    Its large blocks come from the system one by one and go back at once; where the C library is
    another one nothing changes.
    """
    m_trim_threshold, m_mmap_max = -1, -4  # malloc.h
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, TypeError, AttributeError):
        return
    mallopt(m_mmap_max, 0)
    mallopt(m_trim_threshold, 2**31 - 1)


SETTING_HELP = {
    "steps": "how often the weights are changed",
    "batch": "windows per step",
    "seq_len": "tokens per window",
    "long_seq_len": "tokens per window in some of the steps, fewer windows then; 0: never",
    "long_every": "one step in so many has the long windows",
    "copy_steps": "first steps, in which a few tokens come again and again, to teach copying",
    "copy_seq_len": "tokens per window in these",
    "repeat_share": "share of later windows in which a passage comes twice, to teach copying",
    "learning_rate": "the highest, after warming up",
    "final_learning_rate": "what the cosine falls to",
    "warmup_steps": "steps over which the learning rate rises",
    "weight_decay": "pull of the matrices towards zero",
    "beta1": "memory of AdamW's mean of the gradients",
    "beta2": "memory of AdamW's mean of their squares",
    "clip": "longest gradient that is followed in full",
    "seed": "of the first weights and of the windows",
    "mask": "what a position may see in training; none: also what it is to predict, a leak",
    "dtype": "of the arithmetic; auto: bfloat16 where the processor multiplies it in hardware",
    "compile": "fuse the arithmetic first, which needs a C++ compiler and a few minutes: a tenth "
    "faster in float32, up to twice in bfloat16",
    "evaluate_every": "steps between two looks at the held-out text",
    "evaluate_windows": "how many windows of it such a look takes; the last one takes all",
}

CHOICES = {"mask": get_args(TrainedMask), "dtype": get_args(Dtype)}


def command_line() -> argparse.ArgumentParser:
    """What the trainer can be told."""
    parser = argparse.ArgumentParser(
        prog="python -m engine.training",
        description="Train a small transformer on text files, on the processor. "
        "Ctrl-C saves and ends; the same command with --resume goes on.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument(
        "--data", type=Path, nargs="+", required=True, help="text files, or folders of .txt files"
    )
    judged = parser.add_mutually_exclusive_group(required=True)
    judged.add_argument(
        "--held-out", nargs="+", default=[], help="files to judge by, named without .txt"
    )
    judged.add_argument(
        "--held-out-share", type=float, default=0.0, help="or this share of each file, at its end"
    )
    parser.add_argument("--out", type=Path, required=True, help="folder for state and models")
    parser.add_argument("--resume", action="store_true", help="go on from the folder's state")
    parser.add_argument("--save-minutes", type=float, default=5.0, help="how often to save")
    parser.add_argument("--report-steps", type=int, default=20, help="how often to tell")
    parser.add_argument("--threads", type=int, default=0, help="0: as many as torch likes")
    parser.add_argument("--nice", action="store_true", help="let other programs go first")
    parser.add_argument(
        "--json",
        action="store_true",
        help="tell in lines of JSON, and obey lines on the input: pause, resume, stop",
    )
    tokens = parser.add_argument_group("tokens")
    tokens.add_argument("--tokenizer", choices=("byte-bpe", "characters"), default="byte-bpe")
    tokens.add_argument("--vocab-size", type=int, default=3072, help="for byte-bpe")
    shape = parser.add_argument_group("model")
    for name, default in (("n_layer", 6), ("n_head", 8), ("d_model", 256), ("max_seq_len", 512)):
        shape.add_argument(_flag(name), type=int, default=default)
    for name in ("n_kv_head", "d_ff"):
        shape.add_argument(_flag(name), type=int, default=0, help="0: the usual")
    for name, usual, known in (
        ("positions", "rotary", get_args(Positions)),
        ("norm", "rms", get_args(Norm)),
        ("mlp", "plain", get_args(Mlp)),
        ("activation", "gelu_tanh", get_args(Activation)),
    ):
        shape.add_argument(_flag(name), choices=known, default=usual)
    shape.add_argument("--no-bias", action="store_true", help="no biases anywhere")
    shape.add_argument(
        "--embedding-scale",
        type=float,
        default=1.0,
        help="what rows of the embedding are multiplied by before positions are added",
    )
    shape.add_argument("--untied", action="store_true", help="an output matrix of its own")
    how = parser.add_argument_group("training")
    for field in fields(TrainingSettings):
        flag, sentence = _flag(field.name), SETTING_HELP[field.name]
        if field.type is bool:
            how.add_argument(flag, action="store_true", help=sentence)
        elif field.name in CHOICES:
            known = CHOICES[field.name]
            how.add_argument(flag, choices=known, default=field.default, help=sentence)
        else:
            kind = float if field.type is float else int
            how.add_argument(flag, type=kind, default=field.default, help=sentence)
    return parser


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def main(words: Sequence[str] | None = None) -> int:
    """The command line; returns its exit status."""
    arguments = command_line().parse_args(words)
    keep_freed_memory()
    if arguments.nice and hasattr(os, "nice"):
        os.nice(_NICE)
    teller = ToProgram() if arguments.json else ToTerminal(arguments.report_steps)
    with Orders(from_input=arguments.json) as orders:
        from engine.training.session import train  # noqa: PLC0415 - torch takes seconds

        try:
            train(arguments, orders, teller)
        except CancelledError as error:
            teller.given_up(str(error))
        except EngineError as error:
            teller.failed(str(error))
            return 1
    return 0
