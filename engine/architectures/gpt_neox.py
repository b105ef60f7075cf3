"""GPT-NeoX (Pythia): attention and MLP side by side, a quarter of each head turns.

Its joined matrix holds q, k and v of one head after the other; ours all q, then k, then v.
"""

from torch import Tensor

from engine.architectures import _llama_like
from engine.architectures._architecture import Architecture, Settings, with_bias
from engine.config import ModelConfig


def _config_from(settings: Settings) -> ModelConfig:
    n_head, d_model = settings.whole("num_attention_heads"), settings.whole("hidden_size")
    rope = _llama_like.rope_of(settings)
    share = rope.number("partial_rotary_factor", settings.number("rotary_pct", 0.25))
    bias = settings.flag("attention_bias", default=True)
    return ModelConfig(
        vocab_size=settings.whole("vocab_size"),
        n_layer=settings.depth("num_hidden_layers"),
        n_head=n_head,
        d_model=d_model,
        d_ff=settings.whole("intermediate_size"),
        max_seq_len=settings.whole("max_position_embeddings"),
        positions="rotary",
        rope_theta=rope.number("rope_theta", settings.number("rotary_emb_base", 10_000.0)),
        rope_scaling=_llama_like.rope_scaling(rope, settings),
        rotary_dim=int(d_model // max(n_head, 1) * share),
        norm="layer",
        norm_eps=settings.number("layer_norm_eps", 1e-5),
        parallel_residual=settings.flag("use_parallel_residual", default=True),
        mlp="plain",
        activation=settings.activation("hidden_act", "gelu"),
        qkv_bias=bias,
        attention_output_bias=bias,
        tied_output=settings.flag("tie_word_embeddings", default=False),
    )


def _by_kind(joined: Tensor, config: ModelConfig) -> Tensor:
    """Rows [head, q k v, D] → [q k v, head, D], of the weight and the bias alike."""
    apart = joined.reshape(config.n_head, 3, config.head_dim, *joined.shape[1:])
    return apart.transpose(0, 1).flatten(0, 2)


_LAYER = "gpt_neox.layers.{layer}"

ARCHITECTURE = Architecture(
    model_types=("gpt_neox",),
    config_from=_config_from,
    weight_names={
        "embedding.weight": "gpt_neox.embed_in.weight",
        "output.weight": "embed_out.weight",
        **with_bias(
            {
                "blocks.{layer}.attention_norm": f"{_LAYER}.input_layernorm",
                "blocks.{layer}.attention.qkv": f"{_LAYER}.attention.query_key_value",
                "blocks.{layer}.attention.output": f"{_LAYER}.attention.dense",
                "blocks.{layer}.mlp_norm": f"{_LAYER}.post_attention_layernorm",
                "blocks.{layer}.mlp.up": f"{_LAYER}.mlp.dense_h_to_4h",
                "blocks.{layer}.mlp.down": f"{_LAYER}.mlp.dense_4h_to_h",
                "final_norm": "gpt_neox.final_layer_norm",
            }
        ),
    },
    reshape={
        "blocks.{layer}.attention.qkv.weight": _by_kind,
        "blocks.{layer}.attention.qkv.bias": _by_kind,
    },
    prefix="gpt_neox.",
    ignored=(r".*\.attention\.(masked_)?bias", r".*\.rotary_emb\.inv_freq"),
)
