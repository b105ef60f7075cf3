"""Qwen2 and 2.5: as Llama, with biases of q, k and v; some sizes have windows in late layers."""

from engine.architectures import _llama_like
from engine.architectures._architecture import Architecture, Settings
from engine.config import ModelConfig


def _config_from(settings: Settings) -> ModelConfig:
    return _llama_like.config(settings, qkv_bias=True, windows=_llama_like.late_windows(settings))


ARCHITECTURE = Architecture(
    model_types=("qwen2",),
    config_from=_config_from,
    weight_names=_llama_like.WEIGHTS,
    prefix=_llama_like.PREFIX,
    ignored=_llama_like.IGNORED,
)
