"""What Gemmas share: a scaled embedding, norms that store w − 1; since Gemma 2, four to a block."""

from typing import Any

from torch import Tensor

from engine.architectures import _llama_like
from engine.architectures._architecture import Settings
from engine.config import ModelConfig
from engine.errors import ConfigError

_LAYER = "model.layers.{layer}"
NAMES: _llama_like.Names = {
    **_llama_like.WEIGHTS,
    "blocks.{layer}.attention_output_norm.weight": f"{_LAYER}.post_attention_layernorm.weight",
    "blocks.{layer}.mlp_norm.weight": f"{_LAYER}.pre_feedforward_layernorm.weight",
    "blocks.{layer}.mlp_output_norm.weight": f"{_LAYER}.post_feedforward_layernorm.weight",
}


def one_more(weight: Tensor, _config: ModelConfig) -> Tensor:
    """A norm's weight as it multiplies."""
    return weight.float() + 1


def config(settings: Settings, **changes: Any) -> ModelConfig:  # noqa: ANN401 - fields of many types
    """A configuration of Gemma 2 or 3, with what is different in it.

    Raises:
        ConfigError: every token may see every other, which is no decoder.
    """
    own = {
        "norm_placement": "both",
        "activation": settings.activation("hidden_activation", "gelu_pytorch_tanh"),
        "score_scale": max(settings.number("query_pre_attn_scalar", 256), 1e-9) ** -0.5,
    }
    return first_config(settings, **(own | changes))


def first_config(settings: Settings, **changes: Any) -> ModelConfig:  # noqa: ANN401 - as above
    """A configuration of the first Gemma, with what is different in it.

    Raises:
        ConfigError: every token may see every other, which is no decoder.
    """
    if settings.flag("use_bidirectional_attention", default=False):
        raise ConfigError(
            "use_bidirectional_attention is true: only models are read whose tokens see the past."
        )
    bias = settings.flag("attention_bias", default=False)
    common = {
        "head_dim": settings.whole("head_dim", 256),
        "qkv_bias": bias,
        "attention_output_bias": bias,
        "tied_output": settings.flag("tie_word_embeddings", default=True),
        "embedding_scale": abs(settings.whole("hidden_size")) ** 0.5,
    }
    return _llama_like.config(settings, **(common | changes))
