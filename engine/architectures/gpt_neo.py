"""GPT-Neo (TinyStories): as GPT-2, with windows in every second layer and scores not scaled."""

from engine.architectures._architecture import Architecture, Settings, with_bias
from engine.config import ModelConfig
from engine.errors import ConfigError, quoted


def _config_from(settings: Settings) -> ModelConfig:
    n_layer = settings.depth("num_layers")
    return ModelConfig(
        vocab_size=settings.whole("vocab_size"),
        n_layer=n_layer,
        n_head=settings.whole("num_heads"),
        d_model=settings.whole("hidden_size"),
        d_ff=settings.whole("intermediate_size", 0),
        max_seq_len=settings.whole("max_position_embeddings"),
        windows=_windows(settings, n_layer),
        score_scale=1.0,
        norm_eps=settings.number("layer_norm_epsilon", 1e-5),
        positions="learned",
        norm="layer",
        mlp="plain",
        activation=settings.activation("activation_function", "gelu_new"),
        qkv_bias=False,
        tied_output=settings.flag("tie_word_embeddings", default=True),
    )


def _windows(settings: Settings, n_layer: int) -> tuple[int, ...]:
    """From [[["global", "local"], 6]]: the kinds of some layers, and how often they repeat."""
    kinds = settings.words("attention_layers")
    groups = [] if kinds else settings.rows("attention_types") or [[["global", "local"], 12]]
    for group in groups:
        match group:
            case [[*names], int(times)] if 0 < times <= n_layer:
                kinds = [*kinds, *(names * times)]
            case _:
                raise ConfigError(
                    f"attention_types holds {quoted(group)}; [[kinds], times] is right."
                )
        if len(kinds) > n_layer:
            break
    if len(kinds) != n_layer:
        raise ConfigError(f"attention_types does not give num_layers = {n_layer} layers.")
    for kind in kinds:
        if kind not in ("global", "local"):
            raise ConfigError(f"attention_types names {kind!r}; known: global, local.")
    window = settings.whole("window_size", 256)
    return tuple(window if kind == "local" else 0 for kind in kinds)


_LAYER = "transformer.h.{layer}"

ARCHITECTURE = Architecture(
    model_types=("gpt_neo",),
    config_from=_config_from,
    weight_names={
        "embedding.weight": "transformer.wte.weight",
        "position_embedding.weight": "transformer.wpe.weight",
        "output.weight": "lm_head.weight",
        "blocks.{layer}.attention.qkv.weight": tuple(
            f"{_LAYER}.attn.attention.{part}_proj.weight" for part in "qkv"
        ),
        **with_bias(
            {
                "blocks.{layer}.attention_norm": f"{_LAYER}.ln_1",
                "blocks.{layer}.attention.output": f"{_LAYER}.attn.attention.out_proj",
                "blocks.{layer}.mlp_norm": f"{_LAYER}.ln_2",
                "blocks.{layer}.mlp.up": f"{_LAYER}.mlp.c_fc",
                "blocks.{layer}.mlp.down": f"{_LAYER}.mlp.c_proj",
                "final_norm": "transformer.ln_f",
            }
        ),
    },
    prefix="transformer.",
    ignored=(r".*\.attn\.attention\.(masked_)?bias",),
)
