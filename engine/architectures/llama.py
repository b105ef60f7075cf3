"""Llama 1 to 3, and whoever is built alike: TinyLlama, SmolLM2."""

from engine.architectures import _llama_like
from engine.architectures._architecture import Architecture, Settings
from engine.config import ModelConfig


def _config_from(settings: Settings) -> ModelConfig:
    bias = settings.flag("attention_bias", default=False)
    return _llama_like.config(
        settings,
        qkv_bias=bias,
        attention_output_bias=bias,
        mlp_bias=settings.flag("mlp_bias", default=False),
    )


ARCHITECTURE = Architecture(
    model_types=("llama",),
    config_from=_config_from,
    weight_names=_llama_like.WEIGHTS,
    prefix=_llama_like.PREFIX,
    ignored=_llama_like.IGNORED,
)
