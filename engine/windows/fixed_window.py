"""The plays, counted with the open model's own tokens: a fixed window beside its attention."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from engine.cancelling import Cancelled, give_up_if, never
from engine.tokenizers import Tokenizer
from engine.training.data import read_texts
from engine.windows.fixed_window_loss import FixedWindowLoss
from engine.windows.ngram import IntArray, NGram, longest_history

Told = Callable[[float], None]  # how much is done, 0 to 1


class FixedWindow:
    """Owns the plays as tokens, and the counts for each width of the window that was asked for.

    Cutting the plays takes seconds; one that is given up goes on where it stopped.

    Raises:
        TrainingError: there are no texts, or one that is to be kept out is not among them.
    """

    def __init__(self, folder: Path, held_out: Sequence[str], tokenizer: Tokenizer) -> None:
        """All `.txt` files of the folder, those named in `held_out` for judging alone."""
        self._texts = read_texts([folder], held_out)
        self._tokenizer = tokenizer
        self._cut: list[IntArray] = []  # first those to count, then those kept out
        self._counted: dict[int, tuple[NGram, float]] = {}

    def read(
        self,
        token_ids: Sequence[int],
        n_previous: int,
        cancelled: Cancelled = never,
        told: Told = lambda _share: None,
    ) -> FixedWindowLoss:
        """The losses of a text under a window of so many previous tokens, or as many as can be.

        Raises:
            CancelledError: `cancelled` said so between two texts, or before the counting.
        """
        self._cut_texts(cancelled, told)
        n_training = len(self._texts.training)
        training, held_out = self._cut[:n_training], self._cut[n_training:]
        vocab_size = self._tokenizer.vocab_size
        width = max(1, min(n_previous, longest_history(vocab_size)))
        if width not in self._counted:
            give_up_if(cancelled)
            model = NGram(training, vocab_size, width)
            judged = np.concatenate([model.losses(text)[1:] for text in held_out])
            self._counted[width] = model, float(judged.mean(dtype=np.float64))
        model, held_out_mean = self._counted[width]
        return FixedWindowLoss(
            n_previous=width,
            loss=model.losses(token_ids),
            n_counted=sum(map(len, training)),
            n_texts=n_training,
            held_out_mean=held_out_mean,
        )

    def forget_counts(self) -> None:
        """Give back most of the memory; the tokens, which took longer, stay."""
        self._counted.clear()

    def _cut_texts(self, cancelled: Cancelled, told: Told) -> None:
        texts = (*self._texts.training, *self._texts.held_out)
        while len(self._cut) < len(texts):
            give_up_if(cancelled)
            token_ids = self._tokenizer.encode(texts[len(self._cut)])
            self._cut.append(np.array(token_ids, np.int64))
            told(len(self._cut) / len(texts))
