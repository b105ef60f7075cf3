"""What most families share since Llama: names of weights, and how settings are written down."""

from collections.abc import Mapping
from typing import Any

from engine.architectures._architecture import Settings, with_bias
from engine.config import ModelConfig, RopeScaling
from engine.errors import ConfigError

Names = Mapping[str, str | tuple[str, ...]]

_SELF = "model.layers.{layer}.self_attn"
EMBEDDING_AND_OUTPUT: Names = {
    "embedding.weight": "model.embed_tokens.weight",
    "final_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
NORMS_BEFORE: Names = {
    "blocks.{layer}.attention_norm.weight": "model.layers.{layer}.input_layernorm.weight",
    "blocks.{layer}.mlp_norm.weight": "model.layers.{layer}.post_attention_layernorm.weight",
}
ATTENTION: Names = with_bias(
    {
        "blocks.{layer}.attention.qkv": tuple(f"{_SELF}.{part}_proj" for part in "qkv"),
        "blocks.{layer}.attention.output": f"{_SELF}.o_proj",
    }
)
QK_NORMS: Names = {
    "blocks.{layer}.attention.q_norm.weight": f"{_SELF}.q_norm.weight",
    "blocks.{layer}.attention.k_norm.weight": f"{_SELF}.k_norm.weight",
}
MLP: Names = with_bias(
    {
        "blocks.{layer}.mlp.gate": "model.layers.{layer}.mlp.gate_proj",
        "blocks.{layer}.mlp.up": "model.layers.{layer}.mlp.up_proj",
        "blocks.{layer}.mlp.down": "model.layers.{layer}.mlp.down_proj",
    }
)
WEIGHTS: Names = {**EMBEDDING_AND_OUTPUT, **NORMS_BEFORE, **ATTENTION, **MLP}
PREFIX = "model."
IGNORED = (r".*\.rotary_emb\.inv_freq",)


def sizes(settings: Settings) -> dict[str, Any]:
    """What ModelConfig needs of every such family; RMSNorm, no biases, all layers see all."""
    return {
        "vocab_size": settings.whole("vocab_size"),
        "n_layer": settings.depth("num_hidden_layers"),
        "n_head": settings.whole("num_attention_heads"),
        "n_kv_head": settings.whole("num_key_value_heads", 0),
        "head_dim": settings.whole("head_dim", 0),
        "d_model": settings.whole("hidden_size"),
        "d_ff": settings.whole("intermediate_size"),
        "max_seq_len": settings.whole("max_position_embeddings"),
        "norm": "rms",
        "norm_eps": settings.number("rms_norm_eps", 1e-6),
        "mlp": "gated",
        "activation": settings.activation("hidden_act", "silu"),
        "qkv_bias": False,
        "attention_output_bias": False,
        "mlp_bias": False,
        "tied_output": settings.flag("tie_word_embeddings", default=False),
        **rotary(settings),
    }


def rope_of(settings: Settings) -> Settings:
    """What is said about rotary positions, under its newer or its older name."""
    return settings.table("rope_parameters") or settings.table("rope_scaling")


def rotary(settings: Settings, theta: float = 10_000.0) -> dict[str, Any]:
    """Rotary positions, from `rope_parameters` or from the older `rope_theta`, `rope_scaling`."""
    rope = rope_of(settings)
    return {
        "positions": "rotary",
        "rope_theta": rope.number("rope_theta", settings.number("rope_theta", theta)),
        "rope_scaling": rope_scaling(rope, settings),
    }


def rope_scaling(rope: Settings, settings: Settings) -> RopeScaling | None:
    """How rotary positions were slowed down, where they were.

    Raises:
        ConfigError: in a way that is not computed here.
    """
    kind = rope.word("rope_type", rope.word("type", "default"))
    if kind == "default":
        return None
    if kind == "linear":
        return RopeScaling(kind="linear", factor=rope.number("factor"))
    if kind == "llama3":
        first = rope.whole(
            "original_max_position_embeddings", settings.whole("max_position_embeddings")
        )
        return RopeScaling(
            kind="llama3",
            factor=rope.number("factor"),
            low_turns=rope.number("low_freq_factor"),
            high_turns=rope.number("high_freq_factor"),
            first_context=first,
        )
    raise ConfigError(
        f"the rope scaling {kind!r} is not computed here; known: default, linear, llama3."
    )


def windows(settings: Settings, window: int, otherwise: list[bool]) -> tuple[int, ...]:
    """Each layer's window: in those that `layer_types` calls sliding, else in `otherwise`."""
    kinds = settings.words("layer_types")
    unknown = set(kinds) - {"sliding_attention", "full_attention"}
    if unknown:
        raise ConfigError(
            f"layer_types names {min(unknown)!r}; known: full_attention, sliding_attention."
        )
    has_one = [kind == "sliding_attention" for kind in kinds] or otherwise
    return tuple(window if has_it else 0 for has_it in has_one) if window and any(has_one) else ()


def late_windows(settings: Settings) -> tuple[int, ...]:
    """Windows from layer `max_window_layers` on, where they are switched on at all."""
    if not settings.flag("use_sliding_window", default=False):
        return ()
    n_layer, first = settings.depth("num_hidden_layers"), settings.whole("max_window_layers", 28)
    late = [layer >= first for layer in range(n_layer)]
    return windows(settings, settings.whole_or_none("sliding_window", 4096), late)


def config(settings: Settings, **changes: Any) -> ModelConfig:  # noqa: ANN401 - fields of many types
    """A configuration of such a family, with what is different in it."""
    return ModelConfig(**(sizes(settings) | changes))
