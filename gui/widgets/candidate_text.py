"""What is said of one candidate for the next token: in a row, a line, a tooltip. No Qt."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gui.widgets.token_text import describe, display, speak

if TYPE_CHECKING:
    from engine.sampling import Sampling, Stages

_LONGEST = 40  # characters of a token in a row


@dataclass(frozen=True, eq=False)
class Candidates:
    """The whole vocabulary [V] from the most to the least probable, stage by stage.

    `vocabulary` holds each token id's bytes; ids beyond it have no text. `follows` is the token
    that stands next in the text, if any does, and `loss` its cross-entropy in nats.
    """

    stages: "Stages"
    sampling: "Sampling"
    vocabulary: Sequence[bytes]
    follows: int | None = None
    loss: float = float("nan")

    def __len__(self) -> int:
        """V."""
        return len(self.stages.order)

    @cached_property
    def n_top_k(self) -> int:
        """How many tokens top-k keeps."""
        return int(self.stages.in_top_k.sum())

    @cached_property
    def n_top_p(self) -> int:
        """How many of those top-p keeps."""
        return int(self.stages.in_top_p.sum())

    @cached_property
    def n_drawable(self) -> int:
        """How many tokens have a probability above 0."""
        return int(np.count_nonzero(self.stages.probs))

    @cached_property
    def largest(self) -> float:
        """The largest probability that is drawn, before or after sampling."""
        return float(max(self.stages.probs.max(), self.stages.plain_probs.max()))

    @cached_property
    def _ranks(self) -> NDArray[np.intp]:
        ranks = np.empty(len(self), np.intp)
        ranks[self.stages.order] = np.arange(len(self))
        return ranks

    def token_id(self, row: int) -> int:
        """The id of the token in a row, counted from 0."""
        return int(self.stages.order[row])

    def row(self, token_id: int) -> int:
        """The row of a token, counted from 0; its rank is one more."""
        return int(self._ranks[token_id])

    def text(self, token_id: int) -> str:
        """The token as one line of visible text."""
        return token_label(self.vocabulary, token_id, _LONGEST)

    def removed_by(self, token_id: int) -> str:
        """The stage that took the token out: "greedy", "top-k" or "top-p"; "" if none did."""
        stages = self.stages
        if not self.sampling.temperature and self.row(token_id):
            return "greedy"
        if not stages.in_top_k[token_id]:
            return "top-k"
        return "" if stages.in_top_p[token_id] else "top-p"

    def arithmetic(self, token_id: int) -> str:
        """The way from the token's logit to its probability, in one line."""
        stages, sampling = self.stages, self.sampling
        steps = [f"logit {number(stages.logits[token_id])}"]
        if not sampling.temperature:
            is_first = not self.row(token_id)
            steps.append("the largest: greedy takes it" if is_first else "not the largest: greedy")
            return " → ".join([*steps, probability(stages.probs[token_id])])
        steps[0] += f" ÷ {sampling.temperature:.12g}"
        steps.append(f"p {probability(stages.scaled_probs[token_id])}")
        removed = self.removed_by(token_id)
        steps.append(_kept("top-k", self.n_top_k, len(self), bool(sampling.top_k), removed))
        if removed != "top-k":
            name = f"top-p {sampling.top_p:.12g}" if sampling.top_p < 1 else "top-p"
            steps.append(_kept(name, self.n_top_p, None, sampling.top_p < 1, removed))
        return " → ".join([*steps, probability(stages.probs[token_id])])

    def tooltip(self, token_id: int) -> str:
        """Everything about a candidate with every digit, as lines of plain text."""
        stages = self.stages
        removed = self.removed_by(token_id)
        notes = [
            f"rank {self.row(token_id) + 1:,} of {len(self):,}",
            f"logit {float(stages.logits[token_id])!r}",
            f"plain softmax {float(stages.plain_probs[token_id])!r}",
            f"after temperature {float(stages.scaled_probs[token_id])!r}",
            f"drawn with probability {float(stages.probs[token_id])!r}",
        ]
        if removed:
            notes.append(f"removed by {removed}")
        if token_id == self.follows:
            notes.append(f"follows in the text, loss {self.loss:.4f} nats")
        known = token_id < len(self.vocabulary)
        if not known:
            return "\n".join([f"id {token_id}, for which the tokenizer has no text", *notes])
        return describe(self.vocabulary[token_id], token_id, None, notes=notes)

    def spoken(self, token_id: int) -> str:
        """The candidate in words: "space king 23.1 %"."""
        known = token_id < len(self.vocabulary)
        token = speak(self.vocabulary[token_id]) if known else f"token {token_id}"
        return f"{token} {percent(float(self.stages.probs[token_id]))}"

    def sentence(self, n_named: int = 3) -> str:
        """The most probable tokens in words, for those who do not see the bars."""
        named = [self.token_id(row) for row in range(min(n_named, len(self)))]
        drawable = [token_id for token_id in named if self.stages.probs[token_id] > 0]
        sentence = f"Most probable: {', '.join(map(self.spoken, drawable))}."
        if self.follows is not None:
            rank = self.row(self.follows) + 1
            sentence += (
                f" In the text follows {self.spoken(self.follows)}, "
                f"rank {rank:,}, loss {self.loss:.2f} nats."
            )
        return sentence


def token_label(vocabulary: Sequence[bytes], token_id: int, limit: int = 20) -> str:
    """A token of a vocabulary as one line of visible text; ids beyond it have none."""
    if token_id >= len(vocabulary):
        return f"‹id {token_id}›"
    return display(vocabulary[token_id], limit)


def _kept(name: str, n_kept: int, n_of: int | None, is_on: bool, removed: str) -> str:  # noqa: FBT001
    if not is_on:
        return f"{name} off"
    out_of = "" if n_of is None else f" of {n_of:,}"
    not_this = ", not this one" if removed and name.startswith(removed) else ""
    return f"{name} keeps {n_kept:,}{out_of}{not_this}"


def number(value: float) -> str:
    """A logit with two decimals and a real minus."""
    return f"{value:.2f}".replace("-", "−")


def percent(probability: float) -> str:
    """A probability as a percentage that never claims to be 0 or 100 when it is not."""
    shown = 100 * probability
    if probability in {0, 1}:
        return f"{shown:.0f} %"
    if shown >= 99.95:
        return "> 99.9 %"
    if shown >= 0.1:
        return f"{shown:.1f} %"
    return f"{shown:.1g} %" if shown >= 0.001 else "< 0.001 %"


def probability(value: float, digits: int = 3) -> str:
    """A probability with so many digits: 0.214, 3.2e-7; 0 and 1 only when it is just that."""
    if value in {0, 1}:
        return f"{value:.0f}"
    if value >= 1 - 0.5 * 10**-digits:
        return f"> {1 - 10**-digits:.{digits}f}"
    if value >= 0.001:
        return f"{value:#.{digits}g}"
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def cross_entropy(logits: NDArray[np.floating], token_id: int) -> float:
    """The loss in nats of a token under one row of logits [V]."""
    shifted = logits - logits.max()
    return float(np.log(np.exp(shifted).sum()) - shifted[token_id])
