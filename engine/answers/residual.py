"""Where a prediction comes from: what each part of the model added to one residual.

The residual at a position is a sum: the token's embedding, its position, and in each layer what
every head, attention's bias and the MLP added. The final norm, given the one scale that it had at
that position, is linear, and so is the output matrix: each part's share of a token's logit can be
worked out by itself, and the shares add up to the logit (direct logit attribution, Elhage et al.
2021). That says what reached the logit directly, not what later layers made of it.

- Where a norm follows a part (OLMo 2, Gemma 2), it too is linear given its scale, and a part is
  what came out of it.
- Where the sum is normed after each part (post-norm), nothing that a part added reaches the end
  as it was; lengths are told, shares are not.
- Where logits are bent into ± a cap, the shares are of the logit before that.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from engine.reading import Reading

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Added:
    """Vectors of one kind [..., C], and how they lie to the residual in the end.

    A cosine is NaN where a length is 0.
    """

    vectors: Floats  # [..., C]
    lengths: Doubles  # [...]
    cosines: Doubles  # [...], with the residual after the last layer

    @classmethod
    def along(cls, vectors: Floats, final: Doubles) -> "Added":
        """Measure vectors [..., C] against the residual in the end [C]."""
        doubles = vectors.astype(np.float64)
        lengths = np.asarray(np.linalg.norm(doubles, axis=-1))
        both = lengths * np.linalg.norm(final)
        cosines = np.full(both.shape, np.nan)
        np.divide(doubles @ final, both, out=cosines, where=both != 0)
        for array in (vectors, lengths, cosines):
            array.setflags(write=False)
        return cls(vectors, lengths, cosines)


@dataclass(frozen=True, eq=False)
class FinalNorm:
    """The final norm as the linear map that it was at one position: (x − mean) · gain + bias."""

    centres: bool  # whether it takes off the mean
    gain: Doubles  # [C], its weight ÷ the scale that it divided by
    bias: Doubles | None  # [C]

    def towards(self, row: Floats) -> Doubles:
        """What a vector of the residual is multiplied by for a logit [C]: `row` seen through it."""
        direction = self.gain * row
        return direction - direction.mean() if self.centres else direction


@dataclass(frozen=True, eq=False)
class Stream:
    """The residual at one position, from the embedding to the end, and what was added to it."""

    position: int
    token: Added  # []: the token's embedding
    place: Added | None  # []: its position's; None where the scheme adds nothing
    heads: Added  # [L, H]: each head through its columns of W_O
    bias: Added | None  # [L]: W_O's, with that of a norm after it; None where there is neither
    attention: Added  # [L]: all heads and the bias
    mlp: Added  # [L]
    residual: Added  # [L+1]: after so many layers
    norm: FinalNorm | None  # None for post-norm: the parts do not add up to the end
    cap: float  # logits are bent into ± this; 0: they are not
    logits: Floats  # [V], of the pass that is shown
    difference: float  # largest |logit from the parts − logit of the shown pass| of any token

    TOLERANCE = 1e-3  # of logits

    @property
    def n_layer(self) -> int:
        """L."""
        return len(self.mlp.lengths)

    @property
    def n_head(self) -> int:
        """H."""
        return int(self.heads.lengths.shape[1])


@dataclass(frozen=True, eq=False)
class Attribution:
    """What each part of a stream adds to the logit of one token; the fields are the stream's."""

    token_id: int
    token: float
    place: float | None
    heads: Doubles  # [L, H]
    bias: Doubles | None  # [L]
    mlp: Doubles  # [L]
    norm_bias: float | None  # the final norm's, which is in no vector of the residual
    cap: float
    logit: float  # of the pass that is shown, after the cap if there is one

    @cached_property
    def attention(self) -> Doubles:
        """All heads and the bias [L]."""
        heads: Doubles = self.heads.sum(axis=1)
        return heads if self.bias is None else heads + self.bias

    @cached_property
    def total(self) -> float:
        """All parts' sum: the logit, before the cap if there is one."""
        start = self.token + (self.place or 0.0) + (self.norm_bias or 0.0)
        return float(start + self.attention.sum() + self.mlp.sum())

    @property
    def bent(self) -> float:
        """The sum after the cap: cap · tanh(sum ÷ cap); itself without one."""
        return float(np.tanh(self.total / self.cap) * self.cap) if self.cap else self.total

    @property
    def difference(self) -> float:
        """|logit from the parts − logit of the shown pass|."""
        return abs(self.bent - self.logit)


def attribute(stream: Stream, token_id: int, row: Floats) -> Attribution | None:
    """Each part's share of the logit of the token with this row of the output matrix [C].

    None for post-norm.
    """
    norm = stream.norm
    if norm is None:
        return None
    towards = norm.towards(row)

    def share(added: Added) -> Doubles:
        products: Doubles = added.vectors.astype(np.float64) @ towards
        return products

    return Attribution(
        token_id=token_id,
        token=float(share(stream.token)),
        place=None if stream.place is None else float(share(stream.place)),
        heads=share(stream.heads),
        bias=None if stream.bias is None else share(stream.bias),
        mlp=share(stream.mlp),
        norm_bias=None if norm.bias is None else float(norm.bias @ row),
        cap=stream.cap,
        logit=float(stream.logits[token_id]),
    )


def next_token(reading: Reading) -> int | None:
    """The token that stands behind the reading's position; None if the text ends there."""
    at = reading.n_fallen + reading.position + 1
    is_there = reading.position >= 0 and at < len(reading.document)
    return reading.document.token_ids[at] if is_there else None


def top_token(reading: Reading) -> int | None:
    """The most probable token behind the reading's position; None for an empty text."""
    return None if reading.stages is None else int(reading.stages.order[0])
