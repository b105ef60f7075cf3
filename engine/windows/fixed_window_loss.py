"""What a text costs a model of a fixed window, and what that model knows."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.loss import mean_loss


@dataclass(frozen=True, eq=False)
class FixedWindowLoss:
    """What a text costs a model that sees so many previous tokens, and what it was counted on."""

    n_previous: int
    loss: NDArray[np.float32]  # [S] nats; NaN for the first token
    n_counted: int  # tokens of the texts it was counted on
    n_texts: int
    held_out_mean: float  # nats per token of the texts kept out

    @property
    def mean(self) -> float:
        """Nats per token over all but the first."""
        return mean_loss(self.loss)
