"""The same mix from torch's fused kernel: a second opinion, never what is shown.

The kernel (flash attention, Dao et al. 2022) computes no weights that could be looked at, which
is why no pass that is shown uses it; only a training does (`engine.training.kernels`).
"""

from contextlib import AbstractContextManager

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from engine.attention import Scoring


def only_fused() -> AbstractContextManager[None]:
    """Within it `fused_mix` is a fused kernel's, or fails: torch would use a plain one in silence.

    It holds for the whole process; nothing else here calls torch's attention.
    """
    return sdpa_kernel(SDPBackend.FLASH_ATTENTION)


def fused_mix(q: Tensor, k: Tensor, v: Tensor, start: int, scoring: Scoring) -> Tensor:
    """The mix [H, T, D] of q [H, T, D] and k, v [G, S, D], as `engine.attention.attend` has it.

    Scores must not be capped, which the kernel cannot do.

    Raises:
        RuntimeError: torch has no fused kernel for these tensors (within `only_fused`).
    """
    mask = fused_mask(q, k, start, scoring)
    mix = F.scaled_dot_product_attention(
        q[None], k[None], v[None], attn_mask=mask, scale=scoring.scale, enable_gqa=True
    )
    return mix[0]


def fused_mask(q: Tensor, k: Tensor, start: int, scoring: Scoring) -> Tensor:
    """Which keys may be seen [1, 1, T, S] or, with ALiBi, what is added to scores [1, H, T, S]."""
    query = torch.arange(start, start + q.shape[-2])[:, None]
    key = scoring.keys(k[:1].mT).flatten()  # [S]
    seen: Tensor = scoring.visible(query, key)[None, None]
    if scoring.slopes is None:
        return seen
    lowered = -scoring.slopes.to(q)[:, None, None] * (query - key).abs()  # [H, T, S]
    return torch.where(seen, lowered, -torch.inf)
