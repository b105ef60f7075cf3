"""Gemma 2: windows in every second layer, scores and logits bent, four norms to a block."""

from engine.architectures import _gemma_like, _llama_like
from engine.architectures._architecture import Architecture, Settings
from engine.config import ModelConfig


def _config_from(settings: Settings) -> ModelConfig:
    n_layer = settings.depth("num_hidden_layers")
    window = settings.whole_or_none("sliding_window", 4096)
    every_second = [layer % 2 == 0 for layer in range(n_layer)]
    return _gemma_like.config(
        settings,
        windows=_llama_like.windows(settings, window, every_second),
        score_cap=settings.number_or_none("attn_logit_softcapping", 50.0),
        logit_cap=settings.number_or_none("final_logit_softcapping", 30.0),
    )


ARCHITECTURE = Architecture(
    model_types=("gemma2",),
    config_from=_config_from,
    weight_names=_gemma_like.NAMES,
    reshape={ours: _gemma_like.one_more for ours in _gemma_like.NAMES if "norm" in ours},
    prefix=_llama_like.PREFIX,
    ignored=_llama_like.IGNORED,
)
