"""Phi-3: as Llama, with q, k and v in one matrix and the MLP's gate and up in another."""

from torch import Tensor

from engine.architectures import _llama_like
from engine.architectures._architecture import Architecture, Settings
from engine.config import ModelConfig


def _config_from(settings: Settings) -> ModelConfig:
    n_layer = settings.depth("num_hidden_layers")
    n_head, d_model = settings.whole("num_attention_heads"), settings.whole("hidden_size")
    head_dim = settings.whole("head_dim", d_model // max(n_head, 1))
    share = _llama_like.rope_of(settings).number(
        "partial_rotary_factor", settings.number("partial_rotary_factor", 1.0)
    )
    window = settings.whole("sliding_window", 0)
    return _llama_like.config(
        settings,
        norm_eps=settings.number("rms_norm_eps", 1e-5),
        rotary_dim=int(head_dim * share),
        windows=_llama_like.windows(settings, window, [True] * n_layer),
    )


def _gate(joined: Tensor, config: ModelConfig) -> Tensor:
    return joined[: config.d_ff]


def _up(joined: Tensor, config: ModelConfig) -> Tensor:
    return joined[config.d_ff :]


_LAYER = "model.layers.{layer}"

ARCHITECTURE = Architecture(
    model_types=("phi3",),
    config_from=_config_from,
    weight_names={
        **_llama_like.WEIGHTS,
        "blocks.{layer}.attention.qkv.weight": f"{_LAYER}.self_attn.qkv_proj.weight",
        "blocks.{layer}.mlp.gate.weight": f"{_LAYER}.mlp.gate_up_proj.weight",
        "blocks.{layer}.mlp.up.weight": f"{_LAYER}.mlp.gate_up_proj.weight",
    },
    reshape={"blocks.{layer}.mlp.gate.weight": _gate, "blocks.{layer}.mlp.up.weight": _up},
    prefix=_llama_like.PREFIX,
    ignored=_llama_like.IGNORED,
)
