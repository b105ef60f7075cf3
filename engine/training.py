"""The trainer's command line: `python -m engine.training --help`."""

import argparse
import ctypes
import math
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import get_args

import torch

from engine.checkpoints.folder import save_checkpoint
from engine.config import Activation, Mlp, ModelConfig, Norm, Positions
from engine.errors import CancelledError, EngineError, TrainingError
from engine.folder_lock import FolderLock
from engine.tokenizers import ByteBpe, Characters, Tokenizer, load_tokenizer
from engine.trainer import Trainer, new_model
from engine.training_data import Texts, TrainingData, read_texts
from engine.training_orders import Orders
from engine.training_record import (
    RECORD_FILE,
    HeldOutLoss,
    Progress,
    load_record,
    save_record,
)
from engine.training_settings import Dtype, TrainedMask, TrainingSettings
from engine.training_telling import Teller, ToProgram, ToTerminal
from engine.training_watcher import Watcher

STATE_FILE = "state.safetensors"

_LOCK_SECONDS = 20.0  # in which another process may save and end
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


def train_tokenizer(kind: str, texts: Texts, vocab_size: int) -> Tokenizer:
    """A vocabulary made from the training side of the texts: "characters" or "byte-bpe"."""
    if kind == "characters":
        return Characters.train(texts.training)
    return ByteBpe.train(texts.training, vocab_size)


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
    "compile": "fuse the arithmetic first: about a third faster, needs a C++ compiler",
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


def _model_config(arguments: argparse.Namespace, vocab_size: int) -> ModelConfig:
    bias = not arguments.no_bias
    return ModelConfig(
        vocab_size=vocab_size,
        n_layer=arguments.n_layer,
        n_head=arguments.n_head,
        d_model=arguments.d_model,
        max_seq_len=arguments.max_seq_len,
        n_kv_head=arguments.n_kv_head,
        d_ff=arguments.d_ff,
        positions=arguments.positions,
        norm=arguments.norm,
        mlp=arguments.mlp,
        activation=arguments.activation,
        qkv_bias=bias,
        attention_output_bias=bias,
        mlp_bias=bias,
        embedding_scale=arguments.embedding_scale,
        tied_output=not arguments.untied,
    )


class _Session:
    """One run of the command line: the trainer, its folder, and what to write into it when."""

    def __init__(self, arguments: argparse.Namespace, orders: Orders, teller: Teller) -> None:
        self.arguments = arguments
        self.orders = orders
        self.teller = teller
        self.out: Path = arguments.out
        self.state_path = self.out / STATE_FILE
        if self.state_path.exists() and not arguments.resume:
            raise TrainingError(
                f"{self.out} already holds a training; add --resume, or choose another folder."
            )
        settings = TrainingSettings(
            **{field.name: getattr(arguments, field.name) for field in fields(TrainingSettings)}
        )
        self._stage("Reading the text …")
        texts = read_texts(arguments.data, arguments.held_out, arguments.held_out_share)
        self._stage("Cutting it into tokens …")
        if arguments.resume:
            self.tokenizer: Tokenizer = load_tokenizer(self.out)
        else:
            self.tokenizer = train_tokenizer(arguments.tokenizer, texts, arguments.vocab_size)
        data = TrainingData(texts, self.tokenizer, settings.longest)
        self._stage("Building the model …")
        model = new_model(_model_config(arguments, self.tokenizer.vocab_size), settings.seed)
        self.trainer = Trainer(model, data, settings)
        self.best = math.inf
        self._saved_at = time.monotonic()
        self.watcher = Watcher(model, data.held_out, self.tokenizer)
        self.record = self.watcher.new_record()
        if arguments.resume:
            self.trainer.load_state(self.state_path)
            self.record = load_record(self.out / RECORD_FILE).until(self.trainer.step)
        self._stage("Looking at the held-out text …")
        held_out = self.trainer.held_out_loss(settings.evaluate_windows)
        teller.began(self.record, self.trainer.step, model.config, is_new=not arguments.resume)
        if arguments.resume:
            self.best = held_out.per_character
        else:
            self._look(held_out)
            self.tokenizer.save(self.out)
            self._save_state()

    def _stage(self, sentence: str) -> None:
        if self.orders.now == "stop":
            raise CancelledError("It was stopped before the first step.")
        self.teller.stage(sentence)

    def train(self) -> None:
        """Train to the end or until asked to stop, saving now and then and at the end."""
        for progress in self.trainer.run():
            self._note(progress)
            if time.monotonic() - self._saved_at > 60 * self.arguments.save_minutes:
                self._save_state()
            if self.orders.now == "pause":
                self._pause()
            if self.orders.now == "stop":
                break
        self._save_state()
        step, steps = self.trainer.step, self.trainer.settings.steps
        if step < steps:
            self._save_model("last", self.trainer.settings.evaluate_windows)
            self.teller.stopped(step, self.out)
            return
        self.teller.stage("Reading the whole held-out text …")
        self.teller.finished(self._save_model("last", None), self.out)

    def _note(self, progress: Progress) -> None:
        """Take a step down, and look at the model if that is due."""
        self.record = self.record.with_losses([progress.loss])
        self.teller.stepped(progress)
        held_out = progress.held_out
        if held_out is None:
            return
        self._look(held_out)
        if held_out.per_character < self.best:
            self.best = held_out.per_character
            self._write_model("best", held_out, self.trainer.settings.evaluate_windows)

    def _pause(self) -> None:
        """Save, and wait for another order."""
        self._save_state()
        self._save_model("last", self.trainer.settings.evaluate_windows)
        self.teller.paused(self.trainer.step)
        self.orders.wait_while_paused()
        if not self.orders.now:
            self.teller.resumed(self.trainer.step)

    def _look(self, held_out: HeldOutLoss) -> None:
        trainer = self.trainer
        moment = self.watcher.look(
            trainer.model, trainer.step, trainer.tokens, held_out, trainer.settings.conditions
        )
        self.record = self.record.with_moment(moment)
        self.teller.looked(moment)

    def _save_state(self) -> None:
        # The record first: it may know more steps than the state, but never fewer.
        save_record(self.out / RECORD_FILE, self.record)
        self.trainer.save_state(self.state_path)
        self._saved_at = time.monotonic()
        self.teller.saved(self.trainer.step)

    def _save_model(self, name: str, windows: int | None) -> HeldOutLoss:
        """Write the model as it is now, judged by so many windows; None: by all."""
        held_out = self.trainer.held_out_loss(windows)
        self._write_model(name, held_out, windows)
        return held_out

    def _write_model(self, name: str, held_out: HeldOutLoss, windows: int | None) -> None:
        trainer = self.trainer
        facts = {
            "step": trainer.step,
            "tokens": trainer.tokens,
            "seconds": round(trainer.seconds),
            "parameters": self._n_parameters(),
            "held_out_texts": self.arguments.held_out,
            "held_out_share": self.arguments.held_out_share,
            "held_out_windows": windows,
            "held_out_nats_per_token": held_out.per_token,
            "held_out_nats_per_character": held_out.per_character,
            "settings": asdict(trainer.settings),
        }
        save_checkpoint(self.out / name, trainer.model, self.tokenizer, "float16", facts)
        save_record(self.out / name / RECORD_FILE, self.record)

    def _n_parameters(self) -> int:
        return sum(p.numel() for p in self.trainer.model.parameters())


def _train(arguments: argparse.Namespace, orders: Orders, teller: Teller) -> None:
    """One training, in a folder that is nobody else's meanwhile.

    Raises:
        EngineError: it cannot be begun, or not go on.
        CancelledError: it was stopped before its first step.
    """
    out: Path = arguments.out
    try:
        out.mkdir(parents=True, exist_ok=True)
        with FolderLock(out, _LOCK_SECONDS):
            _Session(arguments, orders, teller).train()
    except BlockingIOError:
        raise TrainingError(f"{out} is being trained by another process; stop that one.") from None
    except OSError as error:
        raise TrainingError(f"{out} cannot be used: {error.strerror or error}.") from error


def main(words: Sequence[str] | None = None) -> int:
    """The command line; returns its exit status."""
    arguments = command_line().parse_args(words)
    keep_freed_memory()
    if arguments.nice and hasattr(os, "nice"):
        os.nice(_NICE)
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    teller = ToProgram() if arguments.json else ToTerminal(arguments.report_steps)
    with Orders(from_input=arguments.json) as orders:
        try:
            _train(arguments, orders, teller)
        except CancelledError:
            return 0
        except EngineError as error:
            teller.failed(str(error))
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
