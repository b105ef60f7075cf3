"""Qwen3: as Llama, with each head's q and k normed, and heads of a width of their own."""

from engine.architectures import _llama_like
from engine.architectures._architecture import Architecture, Settings
from engine.config import ModelConfig


def _config_from(settings: Settings) -> ModelConfig:
    bias = settings.flag("attention_bias", default=False)
    return _llama_like.config(
        settings,
        head_dim=settings.whole("head_dim", 128),
        qk_norm="head",
        qkv_bias=bias,
        attention_output_bias=bias,
        windows=_llama_like.late_windows(settings),
    )


ARCHITECTURE = Architecture(
    model_types=("qwen3",),
    config_from=_config_from,
    weight_names={**_llama_like.WEIGHTS, **_llama_like.QK_NORMS},
    prefix=_llama_like.PREFIX,
    ignored=_llama_like.IGNORED,
)
