"""A decoder-only transformer, to be read from top to bottom.

One class serves every family: positions (none, learned, sinusoidal, rotary, ALiBi), the norm
and its place (before each part, after it, both, or after each addition), the MLP (plain or gated,
after attention or beside it), grouped heads and the layers' own windows are choices of
`ModelConfig`. The KV cache is an argument, not a part of the model.
"""

import torch
from torch import Tensor, nn

from engine.attention import Attention, Recorder, Scoring
from engine.cancelling import Cancelled, give_up_if, never
from engine.conditions import Conditions
from engine.config import ModelConfig
from engine.errors import ContextFullError
from engine.formats import Held
from engine.kv_cache import KVCache
from engine.layers import MLP, Embedding, Linear, TokenEmbedding, make_norm
from engine.positions import (
    alibi_slopes,
    rotary_frequencies,
    rotary_table,
    sinusoidal_table,
)

CAUSAL = Conditions()


class Block(nn.Module):
    """Attention mixes across positions, the MLP transforms each; both add to the residual."""

    def __init__(self, config: ModelConfig, layer: int) -> None:
        super().__init__()
        self.placement = config.norm_placement
        self.parallel = config.parallel_residual
        before, after = self.placement != "output", self.placement in ("output", "both")
        self.attention_norm = make_norm(config) if before else nn.Identity()
        self.attention = Attention(config, layer)
        self.attention_output_norm = make_norm(config) if after else nn.Identity()
        self.mlp_norm = make_norm(config) if before else nn.Identity()
        self.mlp = MLP(config)
        self.mlp_output_norm = make_norm(config) if after else nn.Identity()

    def forward(
        self,
        x: Tensor,
        scoring: Scoring,
        rotation: Tensor | None,
        kv_cache: KVCache | None,
        record: Recorder | None,
    ) -> Tensor:
        """[..., T, C] → [..., T, C]."""
        read = x if self.placement == "post" else self.attention_norm(x)
        attended = self.attention(read, scoring, rotation, kv_cache, record)
        between = self.add_attention(x, attended)
        read = x if self.parallel else between
        mlp = self.mlp(read if self.placement == "post" else self.mlp_norm(read))
        if record is not None:
            record.keep_mlp(self.attention.layer, mlp)
        return self.add_mlp(between, mlp)

    def add_attention(self, x: Tensor, attended: Tensor) -> Tensor:
        """The residual between the parts, from that before the block and what attention gives."""
        if self.placement == "post":
            return torch.as_tensor(self.attention_norm(x + attended))
        return torch.as_tensor(x + self.attention_output_norm(attended))

    def add_mlp(self, x: Tensor, mlp: Tensor) -> Tensor:
        """The residual behind the block, from that between its parts and what the MLP puts out."""
        if self.placement == "post":
            return torch.as_tensor(self.mlp_norm(x + mlp))
        return torch.as_tensor(x + self.mlp_output_norm(mlp))


class Transformer(nn.Module):
    """Token ids → embeddings + positions → N blocks → final norm → logits."""

    frequencies: Tensor | None
    local_frequencies: Tensor | None
    position_table: Tensor | None
    alibi: Tensor | None

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.held = Held()
        self.embedding = TokenEmbedding(config.vocab_size, config.d_model)
        learned = config.positions == "learned"
        self.position_embedding = Embedding(config.max_seq_len, config.d_model) if learned else None
        self.blocks = nn.ModuleList(Block(config, layer) for layer in range(config.n_layer))
        is_normed = config.norm_placement == "post"
        self.final_norm = nn.Identity() if is_normed else make_norm(config)
        self.output = (
            None if config.tied_output else Linear(config.d_model, config.vocab_size, bias=False)
        )
        self.n_weights = sum(each.numel() for each in self.parameters())  # in whichever format
        with torch.device("cpu"):  # also where the weights are only shapes
            self._make_tables()

    def _make_tables(self) -> None:
        """Work out what the position scheme fixes; no checkpoint holds it."""
        config = self.config
        tables: dict[str, Tensor | None] = dict.fromkeys(
            ("frequencies", "local_frequencies", "position_table", "alibi")
        )
        if config.positions == "rotary":
            tables["frequencies"] = rotary_frequencies(
                config.rotary_dim, config.rope_theta, config.rope_scaling
            )
            if config.local_rope_theta:
                tables["local_frequencies"] = rotary_frequencies(
                    config.rotary_dim, config.local_rope_theta
                )
        if config.positions == "sinusoidal":
            tables["position_table"] = sinusoidal_table(config.max_seq_len, config.d_model)
        if config.positions == "alibi":
            tables["alibi"] = alibi_slopes(config.n_head)
        for name, table in tables.items():
            self.register_buffer(name, table, persistent=False)

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

    @property
    def device(self) -> torch.device:
        """Where the model computes; what it is asked about is brought there."""
        return next(self.parameters()).device

    def attention(self, layer: int) -> Attention:
        """The attention of one layer."""
        attention = self.get_submodule(f"blocks.{layer}.attention")
        assert isinstance(attention, Attention)  # noqa: S101 - which a submodule does not know
        return attention

    def scoring(self, layer: int, conditions: Conditions) -> Scoring:
        """How a layer scores its queries under the conditions; whoever shows weights asks here."""
        return Scoring(
            conditions,
            scale=self.config.score_scale,
            window=conditions.hiding(self.config.window(layer)),
            cap=self.config.score_cap,
            slopes=self.alibi if conditions.positions else None,
        )

    def rotations(self, start: int, n_new: int, conditions: Conditions) -> list[Tensor | None]:
        """Each layer's turns [2, T, ≤ D/2] of the rows from `start` on, where it turns."""
        if self.frequencies is None or not conditions.positions:
            return [None] * self.config.n_layer
        start += conditions.first_position
        scaling = self.config.rope_scaling
        factor = 1.0 if scaling is None else scaling.attention_factor
        table = local = rotary_table(self.frequencies, start, n_new, factor)
        if self.local_frequencies is not None:
            local = rotary_table(self.local_frequencies, start, n_new)
        return [
            local if self.config.window(layer) else table for layer in range(self.config.n_layer)
        ]

    def embed(self, token_ids: Tensor, start: int, conditions: Conditions) -> Tensor:
        """The residual before the first block [..., T, C]."""
        x = self.embedding(token_ids)  # [..., T, C]
        if self.config.embedding_scale != 1:
            x = x * self.config.embedding_scale
        if not conditions.positions:
            return torch.as_tensor(x)
        start += conditions.first_position
        rows = slice(start, start + token_ids.shape[-1])
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
        cancelled: Cancelled = never,
    ) -> Tensor:
        """The normed residual after the last block [..., T, C] of the new tokens.

        With a cache the new tokens follow what it holds, and it is advanced once, at the end.

        Raises:
            ContextFullError: there are more tokens than the context holds.
            CancelledError: `cancelled` said so between two layers; the cache is as before.
        """
        start = 0 if kv_cache is None else kv_cache.length
        n_new = token_ids.shape[-1]
        n_before = conditions.first_position
        if n_before + start + n_new > self.config.max_seq_len:
            placed = f" from position {n_before} on" if n_before else ""
            raise ContextFullError(
                f"{start + n_new} tokens{placed} do not fit into this model's context of "
                f"{self.config.max_seq_len}; shorten the text."
            )
        x = self.embed(token_ids.to(self.device), start, conditions)
        if record is not None:
            record.keep_residual(0, x)
        rotations = self.rotations(start, n_new, conditions)
        for layer, block in enumerate(self.blocks):
            give_up_if(cancelled)
            x = block(x, self.scoring(layer, conditions), rotations[layer], kv_cache, record)
            if record is not None:
                record.keep_residual(layer + 1, x)
        if kv_cache is not None:
            kv_cache.advance(n_new)
        return torch.as_tensor(self.final_norm(x))

    def logits(self, hidden: Tensor) -> Tensor:
        """One score per vocabulary token [..., V] from the final hidden state [..., C]."""
        output = self.embedding.unembed if self.output is None else self.output
        logits = torch.as_tensor(output(hidden.to(self.device)))
        cap = self.config.logit_cap
        return torch.tanh(logits / cap) * cap if cap else logits

    def output_row(self, token_id: int) -> Tensor:
        """What the final hidden state is multiplied by for a token's logit, before the cap [C]."""
        matrix = self.embedding if self.output is None else self.output
        return matrix.rows(token_id)

    def forward(
        self,
        token_ids: Tensor,
        kv_cache: KVCache | None = None,
        conditions: Conditions = CAUSAL,
        record: Recorder | None = None,
    ) -> Tensor:
        """Logits [..., T, V] of the new tokens [..., T]; raises as `hidden` does."""
        return self.logits(self.hidden(token_ids, kv_cache, conditions, record))

    def batch_logits(self, token_ids: Tensor, conditions: Conditions = CAUSAL) -> Tensor:
        """Logits [B, T, V] of whole windows [B, T], for training: no cache, no record."""
        return self.forward(token_ids, conditions=conditions)
