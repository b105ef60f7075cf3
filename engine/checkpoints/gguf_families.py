"""What each family of GGUF files calls its settings and tensors, and what Hugging Face calls them.

All of it is data: a family is one row of FAMILIES, by the name in `general.architecture`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

# What a file's tensor went through when it was written, and is undone in reading.
Change = Literal["permuted", "transposed", "one added"]

REQUIRED = (
    "block_count",
    "context_length",
    "embedding_length",
    "feed_forward_length",
    "attention.head_count",
)


@dataclass(frozen=True)
class Family:
    """One architecture: GGUF's names on the left, Hugging Face's on the right.

    `layer` stands for the number of a layer. `changes` are by GGUF's name of the tensor's module.
    """

    model_type: str
    settings: Mapping[str, str]
    modules: Mapping[str, str]
    constants: Mapping[str, Any] = field(default_factory=dict)
    changes: Mapping[str, Change] = field(default_factory=dict)
    partly_rotated: bool = False  # whether some features of a head may know no position
    # Gemma's largest model, told by its depth, scales scores by its width per head.
    scaled_by_width_at: int | None = None


_SETTINGS = {
    "block_count": "num_hidden_layers",
    "context_length": "max_position_embeddings",
    "embedding_length": "hidden_size",
    "feed_forward_length": "intermediate_size",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim",
    "attention.layer_norm_rms_epsilon": "rms_norm_eps",
    "rope.freq_base": "rope_theta",
}
_WINDOW = {"attention.sliding_window": "sliding_window"}

_MODULES = {
    "token_embd": "model.embed_tokens",
    "blk.layer.attn_norm": "model.layers.layer.input_layernorm",
    "blk.layer.attn_q": "model.layers.layer.self_attn.q_proj",
    "blk.layer.attn_k": "model.layers.layer.self_attn.k_proj",
    "blk.layer.attn_v": "model.layers.layer.self_attn.v_proj",
    "blk.layer.attn_output": "model.layers.layer.self_attn.o_proj",
    "blk.layer.ffn_norm": "model.layers.layer.post_attention_layernorm",
    "blk.layer.ffn_gate": "model.layers.layer.mlp.gate_proj",
    "blk.layer.ffn_up": "model.layers.layer.mlp.up_proj",
    "blk.layer.ffn_down": "model.layers.layer.mlp.down_proj",
    "output_norm": "model.norm",
    "output": "lm_head",
}
_QK_NORMS = {
    "blk.layer.attn_q_norm": "model.layers.layer.self_attn.q_norm",
    "blk.layer.attn_k_norm": "model.layers.layer.self_attn.k_norm",
}
_FOUR_NORMS = {
    "blk.layer.post_attention_norm": "model.layers.layer.post_attention_layernorm",
    "blk.layer.ffn_norm": "model.layers.layer.pre_feedforward_layernorm",
    "blk.layer.post_ffw_norm": "model.layers.layer.post_feedforward_layernorm",
}
_FUSED = {
    "blk.layer.attn_qkv": "model.layers.layer.self_attn.qkv_proj",
    "blk.layer.ffn_up": "model.layers.layer.mlp.gate_up_proj",
}
_GEMMA_ACTIVATION = {
    "hidden_act": "gelu_pytorch_tanh",
    "hidden_activation": "gelu_pytorch_tanh",
}


def _norms_with_one_added(modules: Mapping[str, str]) -> dict[str, Change]:
    return {name: "one added" for name in modules if name.endswith("_norm")}


_GEMMA_2 = _MODULES | _FOUR_NORMS
_GEMMA_3 = _MODULES | _FOUR_NORMS | _QK_NORMS

FAMILIES: Mapping[str, Family] = {
    "llama": Family(
        model_type="llama",
        settings=_SETTINGS,
        modules=_MODULES,
        constants={"hidden_act": "silu"},
        changes={"blk.layer.attn_q": "permuted", "blk.layer.attn_k": "permuted"},
    ),
    "qwen2": Family(
        model_type="qwen2",
        settings=_SETTINGS,
        modules=_MODULES,
        constants={"hidden_act": "silu"},
    ),
    "qwen3": Family(
        model_type="qwen3",
        settings=_SETTINGS,
        modules=_MODULES | _QK_NORMS,
        constants={"hidden_act": "silu"},
    ),
    "gemma": Family(
        model_type="gemma",
        settings=_SETTINGS,
        modules=_MODULES,
        constants=_GEMMA_ACTIVATION,
        changes=_norms_with_one_added(_MODULES),
    ),
    "gemma2": Family(
        model_type="gemma2",
        settings=_SETTINGS
        | _WINDOW
        | {
            "attn_logit_softcapping": "attn_logit_softcapping",
            "final_logit_softcapping": "final_logit_softcapping",
        },
        modules=_GEMMA_2,
        constants=_GEMMA_ACTIVATION | {"sliding_window": 4096},
        changes=_norms_with_one_added(_GEMMA_2),
        scaled_by_width_at=46,
    ),
    "gemma3": Family(
        model_type="gemma3_text",
        settings=_SETTINGS
        | _WINDOW
        | {
            "final_logit_softcapping": "final_logit_softcapping",
            "rope.freq_base_swa": "rope_local_base_freq",
        },
        modules=_GEMMA_3,
        constants=_GEMMA_ACTIVATION
        | {"rope_theta": 1e6, "rope_local_base_freq": 1e4, "sliding_window_pattern": 6},
        changes=_norms_with_one_added(_GEMMA_3),
        scaled_by_width_at=62,
    ),
    "gpt2": Family(
        model_type="gpt2",
        settings={
            "block_count": "n_layer",
            "context_length": "n_positions",
            "embedding_length": "n_embd",
            "feed_forward_length": "n_inner",
            "attention.head_count": "n_head",
            "attention.layer_norm_epsilon": "layer_norm_epsilon",
        },
        modules={
            "token_embd": "transformer.wte",
            "position_embd": "transformer.wpe",
            "blk.layer.attn_norm": "transformer.h.layer.ln_1",
            "blk.layer.attn_qkv": "transformer.h.layer.attn.c_attn",
            "blk.layer.attn_output": "transformer.h.layer.attn.c_proj",
            "blk.layer.ffn_norm": "transformer.h.layer.ln_2",
            "blk.layer.ffn_up": "transformer.h.layer.mlp.c_fc",
            "blk.layer.ffn_down": "transformer.h.layer.mlp.c_proj",
            "output_norm": "transformer.ln_f",
            "output": "lm_head",
        },
        constants={"activation_function": "gelu_new"},
        changes={
            "blk.layer.attn_qkv": "transposed",
            "blk.layer.attn_output": "transposed",
            "blk.layer.ffn_up": "transposed",
            "blk.layer.ffn_down": "transposed",
        },
    ),
    "phi3": Family(
        model_type="phi3",
        settings=_SETTINGS
        | _WINDOW
        | {"rope.scaling.original_context_length": "original_max_position_embeddings"},
        modules=_MODULES | _FUSED,
        constants={"hidden_act": "silu"},
        partly_rotated=True,
    ),
}
