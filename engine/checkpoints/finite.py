"""Whether weights are numbers that can be computed with."""

import math

import torch
from torch import Tensor


def all_finite(tensor: Tensor) -> bool:
    """Whether no element of a float tensor of any shape is infinite or not a number."""
    # Not a number wins both; a mask of which are finite would take ten times as long.
    ends = map(float, torch.aminmax(tensor)) if tensor.numel() else ()
    return all(map(math.isfinite, ends))
