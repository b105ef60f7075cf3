"""The logit lens: what the model would answer if it stopped after each of its layers.

The residual after some layers goes through the final norm and the output matrix as if no layer
followed (nostalgebraist 2020). Depth 0 is the embedding, depth l the residual after l layers, and
depth L is the model's own output; that the residuals end there is measured. What lies between was
never trained to be read like this: it is a way of looking, not a thought of the model's.

Where each block ends in a norm (post-norm), there is no final norm to apply, and every depth is
read as it is.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Ids = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Lens:
    """Answers [L+1, S] by depth and position; all arrays are read-only.

    Positions are read one after another: at one that is not `known` yet, nothing else is either,
    but which token is followed. Probabilities are NaN there.

    One token is followed through the depths at each position: the one that stands next in the
    text or, where the text ends, the model's own answer.
    """

    known: Bools  # [S], whether a position has been read
    top: Ids  # [L+1, S], the most probable token
    top_probability: Floats  # [L+1, S]
    target: Ids  # [S], the token that is followed
    follows: Bools  # [S], whether it stands next in the text
    target_probability: Floats  # [L+1, S]
    target_rank: Ids  # [L+1, S], how many tokens are more probable
    differences: Floats  # [S], largest |logit of the residual's end − logit of the shown pass|
    has_final_norm: bool

    TOLERANCE = 1e-3  # of logits

    def __len__(self) -> int:
        """S."""
        return len(self.target)

    @property
    def n_layer(self) -> int:
        """L, the depth of the output."""
        return len(self.top) - 1

    @cached_property
    def n_known(self) -> int:
        """How many positions have been read."""
        return int(self.known.sum())

    @property
    def is_whole(self) -> bool:
        """Whether all have."""
        return self.n_known == len(self)

    @cached_property
    def difference(self) -> float:
        """How far the residuals that were read end from the model's own output at most."""
        return float(self.differences.max(initial=0.0))

    @cached_property
    def settled(self) -> Ids:
        """The depth [S] from which on the model's final answer stays on top."""
        differs = self.top != self.top[-1]
        after_last: Ids = len(self.top) - differs[::-1].argmax(axis=0)
        return np.where(differs.any(axis=0), after_last, 0)
