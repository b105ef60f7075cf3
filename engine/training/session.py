"""One training in its folder: what it reads, what it writes, and when."""

import argparse
import math
import time
from dataclasses import asdict, fields
from pathlib import Path

import torch

from engine.checkpoints.folder import save_checkpoint
from engine.config import ModelConfig
from engine.errors import CancelledError, TrainingError
from engine.folder_lock import FolderLock
from engine.tokenizers import ByteBpe, Characters, Tokenizer, load_tokenizer
from engine.training.data import Texts, TrainingData, read_texts
from engine.training.orders import Orders
from engine.training.record import (
    RECORD_FILE,
    STATE_FILE,
    HeldOutLoss,
    Progress,
    load_record,
    save_record,
)
from engine.training.settings import TrainingSettings
from engine.training.telling import Teller
from engine.training.trainer import Trainer, new_model
from engine.training.watcher import Watcher

_LOCK_SECONDS = 20.0  # in which another process may save and end


def train(arguments: argparse.Namespace, orders: Orders, teller: Teller) -> None:
    """One training, in a folder that is nobody else's meanwhile.

    Raises:
        EngineError: it cannot be begun, or not go on.
        CancelledError: it was stopped before its first step.
    """
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    out: Path = arguments.out
    try:
        out.mkdir(parents=True, exist_ok=True)
        with FolderLock(out, _LOCK_SECONDS):
            _Session(arguments, orders, teller).train()
    except BlockingIOError:
        raise TrainingError(f"{out} is being trained by another process; stop that one.") from None
    except OSError as error:
        raise TrainingError(f"{out} cannot be used: {error.strerror or error}.") from error


def train_tokenizer(kind: str, texts: Texts, vocab_size: int) -> Tokenizer:
    """A vocabulary made from the training side of the texts: "characters" or "byte-bpe"."""
    if kind == "characters":
        return Characters.train(texts.training)
    return ByteBpe.train(texts.training, vocab_size)


def model_config(arguments: argparse.Namespace, vocab_size: int) -> ModelConfig:
    """The model that a command line asks for."""
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
        model = new_model(model_config(arguments, self.tokenizer.vocab_size), settings.seed)
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
