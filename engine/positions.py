"""How a model learns where a token stands: small pure functions, one per scheme.

- learned: a table trained with the rest, added to the embedding; sinusoidal: a fixed one
  (Vaswani et al. 2017, section 3.5).
- rotary: pairs of features of q and k turn by an angle that grows with the position, so their
  product depends on the distance only (Su et al. 2021). Feature i is paired with i + D/2.
  Where only the first features of a head turn, D is their number; the rest know no position.
- ALiBi: nothing is added to the text; scores fall with the distance, each head at its own
  slope (Press et al. 2022).
"""

import math

import torch
from torch import Tensor

from engine.config import RopeScaling


def sinusoidal_table(length: int, d_model: int) -> Tensor:
    """The fixed table [length, C]: sine in even features, cosine in odd ones."""
    position = torch.arange(length, dtype=torch.float32)[:, None]
    even = torch.arange(0, d_model, 2, dtype=torch.float32)
    angle = position * torch.exp(-math.log(10_000.0) * even / d_model)  # [length, C/2]
    table = torch.zeros(length, d_model)
    table[:, 0::2] = angle.sin()
    table[:, 1::2] = angle.cos()[:, : d_model // 2]
    return table


def rotary_frequencies(rotary_dim: int, theta: float, scaling: RopeScaling | None = None) -> Tensor:
    """How far each pair turns from one position to the next, in radians [D/2]: theta^(−2i/D)."""
    frequencies = 1.0 / theta ** (torch.arange(0, rotary_dim, 2, dtype=torch.float32) / rotary_dim)
    if scaling is None:
        return frequencies
    if scaling.kind == "longrope":
        return frequencies / torch.tensor(scaling.divisors)
    slow = frequencies / scaling.factor
    if scaling.kind == "linear":
        return slow
    if scaling.kind == "yarn":
        return torch.lerp(frequencies, slow, _yarn_share(rotary_dim, theta, scaling))
    turns = scaling.first_context * frequencies / (2 * math.pi)
    share = (turns - scaling.low_turns) / (scaling.high_turns - scaling.low_turns)
    return torch.lerp(slow, frequencies, share.clamp(0, 1))


def _yarn_share(rotary_dim: int, theta: float, scaling: RopeScaling) -> Tensor:
    """How much of its slowing down each pair gets [D/2], 0 to 1."""

    def pair_that_turns(times: float) -> float:
        """The number of the pair, and what lies between two, that turns so often at first."""
        turns = scaling.first_context / (2 * math.pi)  # of pair 0
        return rotary_dim / 2 * math.log(turns / times) / math.log(theta)

    first, last = pair_that_turns(scaling.high_turns), pair_that_turns(scaling.low_turns)
    if scaling.whole_pairs:
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, rotary_dim - 1)
    pairs = torch.arange(rotary_dim // 2, dtype=torch.float32)
    return ((pairs - first) / ((last - first) or 0.001)).clamp(0, 1)


def rotary_table(frequencies: Tensor, start: int, length: int, factor: float = 1.0) -> Tensor:
    """Cosines and sines [2, length, D/2] of the angles at the positions from `start` on.

    A `factor` lengthens what is turned (Peng et al. 2023, section 3.4).
    """
    position = torch.arange(start, start + length, dtype=torch.float32, device=frequencies.device)
    angle = position[:, None] * frequencies  # [length, D/2]
    return torch.stack((angle.cos(), angle.sin())) * factor


def rotate(x: Tensor, table: Tensor) -> Tensor:
    """Turn the first pairs of x [..., T, D] by the angles of table [2, T, ≤ D/2]."""
    cos, sin = table.to(x.dtype)
    half = cos.shape[-1]
    first, second, rest = x.tensor_split((half, 2 * half), dim=-1)
    turned = (
        torch.addcmul(first * cos, second, sin, value=-1),
        torch.addcmul(second * cos, first, sin),
    )
    return torch.cat((*turned, rest), dim=-1)


def alibi_slopes(n_head: int) -> Tensor:
    """How fast each head's scores fall with the distance [H].

    A geometric sequence; for a head count that is no power of two, every second slope of the
    next longer sequence fills up (Press et al. 2022, appendix of their code's release).
    """
    power = 2 ** math.floor(math.log2(n_head))
    slopes = [2.0 ** (-8.0 * (i + 1) / power) for i in range(power)]
    longer = [2.0 ** (-8.0 * (i + 1) / (2 * power)) for i in range(2 * power)]
    return torch.tensor(slopes + longer[0::2][: n_head - power])
