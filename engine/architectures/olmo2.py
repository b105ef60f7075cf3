"""OLMo 2: as Llama, with norms after each part instead of before, and q and k normed whole."""

from engine.architectures import _llama_like
from engine.architectures._architecture import Architecture, Settings
from engine.config import ModelConfig


def _config_from(settings: Settings) -> ModelConfig:
    bias = settings.flag("attention_bias", default=False)
    return _llama_like.config(
        settings,
        norm_placement="output",
        norm_eps=settings.number("rms_norm_eps", 1e-5),
        qk_norm="all",
        qkv_bias=bias,
        attention_output_bias=bias,
    )


_LAYER = "model.layers.{layer}"

ARCHITECTURE = Architecture(
    model_types=("olmo2",),
    config_from=_config_from,
    weight_names={
        **_llama_like.EMBEDDING_AND_OUTPUT,
        **_llama_like.ATTENTION,
        **_llama_like.QK_NORMS,
        **_llama_like.MLP,
        "blocks.{layer}.attention_output_norm.weight": f"{_LAYER}.post_attention_layernorm.weight",
        "blocks.{layer}.mlp_output_norm.weight": f"{_LAYER}.post_feedforward_layernorm.weight",
    },
    prefix=_llama_like.PREFIX,
    ignored=_llama_like.IGNORED,
)
