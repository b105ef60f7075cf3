"""GPT-2: learned positions, LayerNorm before each part, matrices stored inputs first."""

from torch import Tensor

from engine.architectures._architecture import Architecture, Settings, with_bias
from engine.config import ModelConfig

HAS_BIAS = "nanogpt_bias"  # no setting of Hugging Face's, whose GPT-2 always has them


def _config_from(settings: Settings) -> ModelConfig:
    settings.refuse("scale_attn_by_inverse_layer_idx", "scores divided by the layer's number")
    settings.refuse("add_cross_attention", "attention to another text")
    is_scaled = settings.flag("scale_attn_weights", default=True)
    has_bias = settings.flag(HAS_BIAS, default=True)
    return ModelConfig(
        vocab_size=settings.whole("vocab_size"),
        n_layer=settings.depth("n_layer"),
        n_head=settings.whole("n_head"),
        d_model=settings.whole("n_embd"),
        d_ff=settings.whole("n_inner", 0),
        max_seq_len=settings.whole("n_positions"),
        norm_eps=settings.number("layer_norm_epsilon", 1e-5),
        positions="learned",
        norm="layer",
        mlp="plain",
        activation=settings.activation("activation_function", "gelu_new"),
        tied_output=settings.flag("tie_word_embeddings", default=True),
        score_scale=0.0 if is_scaled else 1.0,
        norm_bias=has_bias,
        qkv_bias=has_bias,
        attention_output_bias=has_bias,
        mlp_bias=has_bias,
    )


def _outputs_first(weight: Tensor, _config: ModelConfig) -> Tensor:
    return weight.mT


_MATRICES = {
    "blocks.{layer}.attention.qkv": "transformer.h.{layer}.attn.c_attn",
    "blocks.{layer}.attention.output": "transformer.h.{layer}.attn.c_proj",
    "blocks.{layer}.mlp.up": "transformer.h.{layer}.mlp.c_fc",
    "blocks.{layer}.mlp.down": "transformer.h.{layer}.mlp.c_proj",
}
_NORMS = {
    "blocks.{layer}.attention_norm": "transformer.h.{layer}.ln_1",
    "blocks.{layer}.mlp_norm": "transformer.h.{layer}.ln_2",
    "final_norm": "transformer.ln_f",
}

ARCHITECTURE = Architecture(
    model_types=("gpt2",),
    config_from=_config_from,
    weight_names={
        "embedding.weight": "transformer.wte.weight",
        "position_embedding.weight": "transformer.wpe.weight",
        "output.weight": "lm_head.weight",
        **with_bias(_MATRICES | _NORMS),
    },
    reshape={f"{ours}.weight": _outputs_first for ours in _MATRICES},
    prefix="transformer.",
    ignored=(r".*\.attn\.(masked_)?bias",),
)
