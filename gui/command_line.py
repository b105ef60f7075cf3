"""The command line: what `python main.py --help` explains. No Qt here."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

THEME_NAMES = ("light", "dark", "projector")


@dataclass(frozen=True)
class Options:
    """What the user asked for at the start; None where they asked for nothing."""

    model: Path | None = None
    prompt: str | None = None
    steps: int = 0
    theme: str | None = None
    snapshot: Path | None = None
    size: tuple[int, int] = (1280, 720)
    scale: float = 1.0


def parse(arguments: Sequence[str]) -> Options:
    """The options, or an explanation and the end of the program.

    Raises:
        SystemExit: help was asked for, or an argument cannot be understood.
    """
    parser = argparse.ArgumentParser(
        prog="main.py",
        description="Attention Scope opens a real transformer up while it runs.",
    )
    parser.add_argument(
        "--model",
        type=Path,
        metavar="PATH",
        help="open the model in this folder, or this GGUF file or ckpt.pt",
    )
    parser.add_argument("--prompt", metavar="TEXT", help="begin with this text")
    parser.add_argument(
        "--steps", type=_count, default=0, metavar="N", help="generate N tokens after the prompt"
    )
    parser.add_argument(
        "--theme", choices=THEME_NAMES, metavar="NAME", help="light, dark or projector"
    )
    parser.add_argument(
        "--snapshot",
        type=Path,
        metavar="FILE.png",
        help="render the window without a screen once everything has settled, and exit",
    )
    parser.add_argument(
        "--size",
        type=_size,
        default=(1280, 720),
        metavar="WxH",
        help="pixels of the snapshot, 1280x720 if not given",
    )
    parser.add_argument(
        "--scale",
        type=_scale,
        default=1.0,
        metavar="S",
        help="device pixels per logical pixel of the snapshot, such as 2 for a 4K screen",
    )
    return Options(**vars(parser.parse_args(arguments)))


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no count; use 0, 1, 2 …")
    return int(text)


def _size(text: str) -> tuple[int, int]:
    width, _, height = text.lower().partition("x")
    if not (width.isdecimal() and height.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is no size; write it like 1280x720.")
    size = int(width), int(height)
    if not all(64 <= side <= 16384 for side in size):
        raise argparse.ArgumentTypeError(f"{text!r} is out of range; each side is 64 to 16384.")
    return size


def _scale(text: str) -> float:
    try:
        scale = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no number; use one like 2.") from None
    if not 0.5 <= scale <= 8:
        raise argparse.ArgumentTypeError(f"{text!r} is out of range; use 0.5 to 8.")
    return scale
