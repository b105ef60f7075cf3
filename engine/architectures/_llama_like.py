"""What most families share since Llama: names of weights, and how settings are written down."""

import math
from collections.abc import Mapping
from typing import Any

from engine.architectures._architecture import Settings, with_bias
from engine.config import ModelConfig, RopeScaling
from engine.errors import ConfigError, quoted

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
LONGROPE = ("longrope", "su")  # now, and when Phi-3 was new
IGNORED = (r".*\.rotary_emb\.inv_freq",)


def sizes(settings: Settings) -> dict[str, Any]:
    """What ModelConfig needs of every such family; RMSNorm, no biases, all layers see all."""
    turning = rotary(settings)
    return {
        "vocab_size": settings.whole("vocab_size"),
        "n_layer": settings.depth("num_hidden_layers"),
        "n_head": settings.whole("num_attention_heads"),
        "n_kv_head": settings.whole("num_key_value_heads", 0),
        "head_dim": settings.whole("head_dim", 0),
        "d_model": settings.whole("hidden_size"),
        "d_ff": settings.whole("intermediate_size"),
        "max_seq_len": context(settings, turning["rope_scaling"]),
        "norm": "rms",
        "norm_eps": settings.number("rms_norm_eps", 1e-6),
        "mlp": "gated",
        "activation": settings.activation("hidden_act", "silu"),
        "qkv_bias": False,
        "attention_output_bias": False,
        "mlp_bias": False,
        "tied_output": settings.flag("tie_word_embeddings", default=False),
        **turning,
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
    first = first_context(rope, settings)
    if kind == "llama3":
        return RopeScaling(
            kind="llama3",
            factor=rope.number("factor"),
            low_turns=rope.number("low_freq_factor"),
            high_turns=rope.number("high_freq_factor"),
            first_context=first,
        )
    stretch = settings.whole("max_position_embeddings") / max(first, 1)
    factor = rope.number("factor", stretch)
    if kind == "yarn":
        return RopeScaling(
            kind="yarn",
            factor=factor,
            low_turns=rope.number("beta_slow", 1.0),
            high_turns=rope.number("beta_fast", 32.0),
            first_context=first,
            attention_factor=rope.number("attention_factor", _yarn_attention(rope, factor)),
            whole_pairs=rope.flag("truncate", default=True),
        )
    if kind in LONGROPE:
        usual = math.sqrt(1 + math.log(max(factor, 1.0)) / math.log(max(first, 2)))
        return RopeScaling(
            kind="longrope",
            factor=factor,
            first_context=first,
            attention_factor=rope.number("attention_factor", usual),
            divisors=tuple(rope.numbers("short_factor")),
        )
    raise ConfigError(
        f"the rope scaling {kind!r} is not computed here; "
        "known: default, linear, llama3, yarn, longrope."
    )


def first_context(rope: Settings, settings: Settings) -> int:
    """How long texts were at first: Phi-3 writes it beside its rope scaling, others into it."""
    name = "original_max_position_embeddings"
    return settings.whole(name, rope.whole(name, settings.whole("max_position_embeddings")))


def _yarn_attention(rope: Settings, factor: float) -> float:
    """What cosines and sines are multiplied by, where that is not given."""

    def usual(weight: float) -> float:
        return 0.1 * weight * math.log(factor) + 1.0 if factor > 1 else 1.0

    above, below = rope.number("mscale", 0.0), rope.number("mscale_all_dim", 0.0)
    return usual(above) / usual(below) if above and below else usual(1.0)


def context(settings: Settings, scaling: RopeScaling | None) -> int:
    """How many tokens a model sees: with "longrope" only as many as at first.

    Beyond them it would turn all positions by other angles, and no row would stay true.
    """
    n_tokens = settings.whole("max_position_embeddings")
    is_long = scaling is not None and scaling.kind == "longrope"
    return min(n_tokens, scaling.first_context) if is_long and scaling else n_tokens


def windows(settings: Settings, window: int, otherwise: list[bool]) -> tuple[int, ...]:
    """Each layer's window: in those that `layer_types` calls sliding, else in `otherwise`."""
    kinds = settings.words("layer_types")
    unknown = set(kinds) - {"sliding_attention", "full_attention"}
    if unknown:
        raise ConfigError(
            f"layer_types names {quoted(min(unknown))}; known: full_attention, sliding_attention."
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
