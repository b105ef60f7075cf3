"""Mistral: as Llama, with a window in every layer."""

from engine.architectures import _llama_like
from engine.architectures._architecture import Architecture, Settings
from engine.config import ModelConfig


def _config_from(settings: Settings) -> ModelConfig:
    window = settings.whole_or_none("sliding_window", 4096)
    every = [True] * settings.depth("num_hidden_layers")
    return _llama_like.config(settings, windows=_llama_like.windows(settings, window, every))


ARCHITECTURE = Architecture(
    model_types=("mistral",),
    config_from=_config_from,
    weight_names=_llama_like.WEIGHTS,
    prefix=_llama_like.PREFIX,
    ignored=_llama_like.IGNORED,
)
