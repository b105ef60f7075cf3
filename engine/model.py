"""A decoder-only transformer, to be read from top to bottom.

One class serves every family: positions (none, learned, sinusoidal, rotary, ALiBi), the norm
and its place (before each part, or after each addition), the MLP (plain or gated) and grouped
heads are choices of `ModelConfig`. The KV cache is an argument, not a part of the model.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from engine.attention import Attention, Recorder
from engine.conditions import Conditions
from engine.config import ModelConfig
from engine.errors import CancelledError, ContextFullError
from engine.kv_cache import KVCache
from engine.layers import MLP, make_norm
from engine.positions import alibi_slopes, rotary_table, sinusoidal_table

CAUSAL = Conditions()


class Block(nn.Module):
    """Attention mixes across positions, the MLP transforms each; both add to the residual."""

    def __init__(self, config: ModelConfig, layer: int) -> None:
        super().__init__()
        self.pre_norm = config.norm_placement == "pre"
        self.attention_norm = make_norm(config)
        self.attention = Attention(config, layer)
        self.mlp_norm = make_norm(config)
        self.mlp = MLP(config)

    def forward(
        self,
        x: Tensor,
        conditions: Conditions,
        rotation: Tensor | None,
        slopes: Tensor | None,
        kv_cache: KVCache | None,
        record: Recorder | None,
    ) -> Tensor:
        """[..., T, C] → [..., T, C]."""
        how = (conditions, rotation, slopes, kv_cache, record)
        if self.pre_norm:
            x = x + self.attention(self.attention_norm(x), *how)
            return torch.as_tensor(x + self.mlp(self.mlp_norm(x)))
        x = self.attention_norm(x + self.attention(x, *how))
        return torch.as_tensor(self.mlp_norm(x + self.mlp(x)))


class Transformer(nn.Module):
    """Token ids → embeddings + positions → N blocks → final norm → logits."""

    rotary: Tensor | None
    position_table: Tensor | None
    alibi: Tensor | None

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocab_size, config.d_model)
        learned = config.positions == "learned"
        self.position_embedding = (
            nn.Embedding(config.max_seq_len, config.d_model) if learned else None
        )
        self.blocks = nn.ModuleList(Block(config, layer) for layer in range(config.n_layer))
        pre_norm = config.norm_placement == "pre"
        self.final_norm = make_norm(config) if pre_norm else nn.Identity()
        self.output = (
            None if config.tied_output else nn.Linear(config.d_model, config.vocab_size, bias=False)
        )
        length = config.max_seq_len
        self.register_buffer(
            "rotary",
            rotary_table(length, config.head_dim, config.rope_theta)
            if config.positions == "rotary"
            else None,
            persistent=False,
        )
        self.register_buffer(
            "position_table",
            sinusoidal_table(length, config.d_model) if config.positions == "sinusoidal" else None,
            persistent=False,
        )
        self.register_buffer(
            "alibi",
            alibi_slopes(config.n_head) if config.positions == "alibi" else None,
            persistent=False,
        )

    def init_weights(self, generator: torch.Generator) -> None:
        """Draw fresh weights: normal, 0.02 wide, the two that write to the residual narrower.

        The narrowing by 1/√(2·L) keeps the residual's size independent of depth (Radford et
        al. 2019, section 2.3).
        """
        residual_writers = ("attention.output.weight", "mlp.down.weight")
        for name, parameter in self.named_parameters():
            if parameter.dim() < 2:
                nn.init.zeros_(parameter) if name.endswith("bias") else nn.init.ones_(parameter)
                continue
            narrow = (2 * self.config.n_layer) ** -0.5 if name.endswith(residual_writers) else 1.0
            nn.init.normal_(parameter, std=0.02 * narrow, generator=generator)

    def slopes(self, conditions: Conditions) -> Tensor | None:
        """ALiBi's slopes [H], the same in every layer, where they are in force."""
        return self.alibi if conditions.positions else None

    def embed(self, token_ids: Tensor, start: int, conditions: Conditions) -> Tensor:
        """The residual before the first block [..., T, C]."""
        x = self.embedding(token_ids)  # [..., T, C]
        rows = slice(start, start + token_ids.shape[-1])
        if not conditions.positions:
            return torch.as_tensor(x)
        if self.position_embedding is not None:
            x = x + self.position_embedding.weight[rows]
        if self.position_table is not None:
            x = x + self.position_table[rows]
        return torch.as_tensor(x)

    def hidden(
        self,
        token_ids: Tensor,
        kv_cache: KVCache | None = None,
        conditions: Conditions = CAUSAL,
        record: Recorder | None = None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> Tensor:
        """The normed residual after the last block [..., T, C] of the new tokens.

        With a cache the new tokens follow what it holds, and it is advanced once, at the end.

        Raises:
            ContextFullError: there are more tokens than the context holds.
            CancelledError: `cancelled` said so between two layers; the cache is as before.
        """
        start = 0 if kv_cache is None else kv_cache.length
        n_new = token_ids.shape[-1]
        if start + n_new > self.config.max_seq_len:
            raise ContextFullError(
                f"{start + n_new} tokens do not fit into this model's context of "
                f"{self.config.max_seq_len}; shorten the text."
            )
        rotation = None
        if self.rotary is not None and conditions.positions:
            rotation = self.rotary[:, start : start + n_new]  # [2, T, D/2]
        slopes = self.slopes(conditions)
        x = self.embed(token_ids, start, conditions)
        for block in self.blocks:
            if cancelled():
                raise CancelledError("the pass was given up for a newer one.")
            x = block(x, conditions, rotation, slopes, kv_cache, record)
        if kv_cache is not None:
            kv_cache.advance(n_new)
        return torch.as_tensor(self.final_norm(x))

    def logits(self, hidden: Tensor) -> Tensor:
        """One score per vocabulary token [..., V] from the final hidden state [..., C]."""
        if self.output is None:
            return F.linear(hidden, self.embedding.weight)
        return torch.as_tensor(self.output(hidden))

    def forward(
        self,
        token_ids: Tensor,
        kv_cache: KVCache | None = None,
        conditions: Conditions = CAUSAL,
        record: Recorder | None = None,
    ) -> Tensor:
        """Logits [..., T, V] of the new tokens [..., T]; raises as `hidden` does."""
        return self.logits(self.hidden(token_ids, kv_cache, conditions, record))

    def batch_logits(self, token_ids: Tensor) -> Tensor:
        """Logits [B, T, V] of whole windows [B, T], for training: no cache, no record."""
        return self.forward(token_ids)
