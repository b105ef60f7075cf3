"""The first Gemma: as Llama, with a scaled embedding, norms that store w − 1 and a bend of its own.

Its first files call that bend "gelu" and mean the approximation by a tanh.
"""

from engine.architectures import _gemma_like, _llama_like
from engine.architectures._architecture import Architecture, Settings
from engine.config import ModelConfig


def _config_from(settings: Settings) -> ModelConfig:
    activation = settings.activation("hidden_act", "gelu_pytorch_tanh")
    meant = "gelu_tanh" if activation == "gelu" else activation
    return _gemma_like.first_config(settings, activation=meant)


ARCHITECTURE = Architecture(
    model_types=("gemma",),
    config_from=_config_from,
    weight_names=_llama_like.WEIGHTS,
    reshape={ours: _gemma_like.one_more for ours in _llama_like.WEIGHTS if "norm" in ours},
    prefix=_llama_like.PREFIX,
    ignored=_llama_like.IGNORED,
)
