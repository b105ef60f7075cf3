"""What is read off rows of logits [..., V]; the ways here take a fraction of torch's plainest."""

import torch
from torch import Tensor

from engine.cancelling import Cancelled, give_up_if, never
from engine.model import Transformer

# Rows that are worked out together: a whole text's would be T · V numbers.
N_TOGETHER = 64

# Numbers that are gone through together: what is made of them stays in the processor's cache.
_NUMBERS = 1 << 18


def log_sums(logits: Tensor) -> Tensor:
    """The logarithm of the sum of the exponentials of each row [rows, V]: [rows, 1]."""
    parts = torch.split(logits, _rows_of(logits))
    return torch.cat([part.logsumexp(dim=-1, keepdim=True) for part in parts])


def ranks(logits: Tensor, chosen: Tensor) -> Tensor:
    """How many logits of each row [rows, V] are larger than its chosen one [rows, 1]: [rows].

    Sums of booleans become whole numbers one by one; those of float32 are exact up to 2²⁴ tokens.
    """
    n_rows = _rows_of(logits)
    larger = torch.empty_like(logits[:n_rows])
    counts = [
        torch.gt(some, than, out=larger[: len(some)]).sum(dim=-1)
        for some, than in zip(torch.split(logits, n_rows), torch.split(chosen, n_rows), strict=True)
    ]
    return torch.cat(counts).to(torch.int64)


def token_losses(
    model: Transformer, hidden: Tensor, token_ids: Tensor, cancelled: Cancelled = never
) -> Tensor:
    """Cross-entropy in nats of each token [S] under the final hidden state before it [S, C].

    The first has none before it: NaN.

    Raises:
        CancelledError: `cancelled` said so.
    """
    losses = torch.full((len(token_ids),), torch.nan)
    for start in range(1, len(token_ids), N_TOGETHER):
        give_up_if(cancelled)
        rows = slice(start, min(start + N_TOGETHER, len(token_ids)))
        logits = model.logits(hidden[rows.start - 1 : rows.stop - 1])  # [rows, V]
        target = token_ids[rows, None].to(logits.device)
        losses[rows] = (log_sums(logits) - logits.gather(-1, target))[:, 0]
    return losses


def _rows_of(logits: Tensor) -> int:
    """How many rows [V] are gone through together."""
    return max(1, _NUMBERS // logits.shape[-1])


def top(logits: Tensor) -> Tensor:
    """The token with the largest logit of each row [rows, V]; the first one that is NaN: [rows].

    numpy's search is ten times as fast as torch's on a processor.
    """
    return torch.from_numpy(logits.cpu().numpy().argmax(axis=-1))


def most_probable(logits: Tensor, count: int) -> tuple[tuple[int, float], ...]:
    """The tokens with the largest probabilities of a row [V], and these; all, if it has fewer."""
    best = logits.softmax(dim=-1).topk(min(count, len(logits)))
    return tuple(zip(best.indices.tolist(), best.values.tolist(), strict=True))
