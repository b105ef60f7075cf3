"""Gemma 3's text models: five layers with a window to one without, which turns at its own speed.

Each head's q and k are normed; nothing is bent.
"""

from engine.architectures import _gemma_like, _llama_like
from engine.architectures._architecture import Architecture, Settings
from engine.config import ModelConfig


def _config_from(settings: Settings) -> ModelConfig:
    n_layer = settings.depth("num_hidden_layers")
    window = settings.whole_or_none("sliding_window", 4096)
    stride = max(settings.whole("sliding_window_pattern", 6), 1)
    all_but_one = [(layer + 1) % stride != 0 for layer in range(n_layer)]
    rope = settings.table("rope_parameters")
    far, near = rope.table("full_attention"), rope.table("sliding_attention")
    far = far or settings.table("rope_scaling")
    return _gemma_like.config(
        settings,
        windows=_llama_like.windows(settings, window, all_but_one),
        rope_theta=far.number("rope_theta", settings.number("rope_theta", 1_000_000.0)),
        rope_scaling=_llama_like.rope_scaling(far, settings),
        local_rope_theta=near.number(
            "rope_theta", settings.number("rope_local_base_freq", 10_000.0)
        ),
        qk_norm="head",
        score_cap=settings.number_or_none("attn_logit_softcapping", 0.0),
        logit_cap=settings.number_or_none("final_logit_softcapping", 0.0),
    )


_NAMES = {**_gemma_like.NAMES, **_llama_like.QK_NORMS}

ARCHITECTURE = Architecture(
    model_types=("gemma3_text",),
    config_from=_config_from,
    weight_names=_NAMES,
    reshape={ours: _gemma_like.one_more for ours in _NAMES if "norm" in ours},
    prefix=_llama_like.PREFIX,
    ignored=_llama_like.IGNORED,
)
