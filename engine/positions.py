"""How a model learns where a token stands: small pure functions, one per scheme.

- learned: a table trained with the rest, added to the embedding; sinusoidal: a fixed one
  (Vaswani et al. 2017, section 3.5).
- rotary: pairs of features of q and k turn by an angle that grows with the position, so their
  product depends on the distance only (Su et al. 2021). Feature i is paired with i + D/2.
- ALiBi: nothing is added to the text; scores fall with the distance, each head at its own
  slope (Press et al. 2022).
"""

import math

import torch
from torch import Tensor


def sinusoidal_table(length: int, d_model: int) -> Tensor:
    """The fixed table [length, C]: sine in even features, cosine in odd ones."""
    position = torch.arange(length, dtype=torch.float32)[:, None]
    even = torch.arange(0, d_model, 2, dtype=torch.float32)
    angle = position * torch.exp(-math.log(10_000.0) * even / d_model)  # [length, C/2]
    table = torch.zeros(length, d_model)
    table[:, 0::2] = angle.sin()
    table[:, 1::2] = angle.cos()[:, : d_model // 2]
    return table


def rotary_table(length: int, head_dim: int, theta: float) -> Tensor:
    """Cosines and sines [2, length, D/2] of the angles position · theta^(-2i/D)."""
    frequency = theta ** (-torch.arange(0, head_dim, 2, dtype=torch.float32) / head_dim)
    angle = torch.arange(length, dtype=torch.float32)[:, None] * frequency  # [length, D/2]
    return torch.stack((angle.cos(), angle.sin()))


def rotate(x: Tensor, table: Tensor) -> Tensor:
    """Turn the pairs of x [..., T, D] by the angles of table [2, T, D/2]."""
    cos, sin = table.to(x.dtype)
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


def alibi_slopes(n_head: int) -> Tensor:
    """How fast each head's scores fall with the distance [H].

    A geometric sequence; for a head count that is no power of two, every second slope of the
    next longer sequence fills up (Press et al. 2022, appendix of their code's release).
    """
    power = 2 ** math.floor(math.log2(n_head))
    slopes = [2.0 ** (-8.0 * (i + 1) / power) for i in range(power)]
    longer = [2.0 ** (-8.0 * (i + 1) / (2 * power)) for i in range(2 * power)]
    return torch.tensor(slopes + longer[0::2][: n_head - power])
