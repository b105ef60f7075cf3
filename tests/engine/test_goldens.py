"""The same weights give what the `transformers` library gives: logits, and every head's weights."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.attention import QUERY_BLOCK
from engine.config import ModelConfig
from engine.model import Transformer
from engine.run import Run

GOLDENS = Path(__file__).parents[1] / "goldens"
Arrays = dict[str, NDArray[Any]]

# Ours, and what it is called there; {} is the layer. Several names are joined along the outputs.
GPT2_NAMES: dict[str, tuple[str, ...]] = {
    "embedding.weight": ("transformer.wte.weight",),
    "position_embedding.weight": ("transformer.wpe.weight",),
    "final_norm.weight": ("transformer.ln_f.weight",),
    "final_norm.bias": ("transformer.ln_f.bias",),
}
for ours, theirs in {
    "attention_norm": "ln_1",
    "attention.qkv": "attn.c_attn",
    "attention.output": "attn.c_proj",
    "mlp_norm": "ln_2",
    "mlp.up": "mlp.c_fc",
    "mlp.down": "mlp.c_proj",
}.items():
    for part in ("weight", "bias"):
        GPT2_NAMES[f"blocks.{{}}.{ours}.{part}"] = (f"transformer.h.{{}}.{theirs}.{part}",)

LLAMA_NAMES: dict[str, tuple[str, ...]] = {
    "embedding.weight": ("model.embed_tokens.weight",),
    "final_norm.weight": ("model.norm.weight",),
    "output.weight": ("lm_head.weight",),
    "blocks.{}.attention_norm.weight": ("model.layers.{}.input_layernorm.weight",),
    "blocks.{}.mlp_norm.weight": ("model.layers.{}.post_attention_layernorm.weight",),
    "blocks.{}.mlp.gate.weight": ("model.layers.{}.mlp.gate_proj.weight",),
    "blocks.{}.mlp.up.weight": ("model.layers.{}.mlp.up_proj.weight",),
    "blocks.{}.mlp.down.weight": ("model.layers.{}.mlp.down_proj.weight",),
}
for part in ("weight", "bias"):
    LLAMA_NAMES[f"blocks.{{}}.attention.output.{part}"] = (
        f"model.layers.{{}}.self_attn.o_proj.{part}",
    )
    LLAMA_NAMES[f"blocks.{{}}.attention.qkv.{part}"] = tuple(
        f"model.layers.{{}}.self_attn.{which}_proj.{part}" for which in "qkv"
    )


def _gpt2_config(sizes: dict[str, Any]) -> ModelConfig:
    assert sizes["activation_function"] == "gelu_new"
    return ModelConfig(
        vocab_size=sizes["vocab_size"],
        n_layer=sizes["n_layer"],
        n_head=sizes["n_head"],
        d_model=sizes["n_embd"],
        max_seq_len=sizes["n_positions"],
        norm_eps=sizes["layer_norm_epsilon"],
        positions="learned",
        norm="layer",
        mlp="plain",
        activation="gelu_tanh",
    )


def _llama_config(sizes: dict[str, Any]) -> ModelConfig:
    return ModelConfig(
        vocab_size=sizes["vocab_size"],
        n_layer=sizes["num_hidden_layers"],
        n_head=sizes["num_attention_heads"],
        n_kv_head=sizes["num_key_value_heads"],
        head_dim=sizes["head_dim"],
        d_model=sizes["hidden_size"],
        d_ff=sizes["intermediate_size"],
        max_seq_len=sizes["max_position_embeddings"],
        norm_eps=sizes["rms_norm_eps"],
        rope_theta=sizes["rope_theta"],
        positions="rotary",
        norm="rms",
        mlp="gated",
        activation=sizes["hidden_act"],
        qkv_bias=sizes["attention_bias"],
        attention_output_bias=sizes["attention_bias"],
        mlp_bias=sizes["mlp_bias"],
        tied_output=sizes["tie_word_embeddings"],
    )


def _load(name: str) -> tuple[Run, Arrays]:
    with np.load(GOLDENS / f"{name}.npz") as file:
        golden = {key: file[key] for key in file.files}
    sizes = json.loads(str(golden["config"]))
    is_gpt2 = name.startswith("gpt2")
    model = Transformer(_gpt2_config(sizes) if is_gpt2 else _llama_config(sizes))
    names = GPT2_NAMES if is_gpt2 else LLAMA_NAMES
    weights: dict[str, Tensor] = {}
    for ours in model.state_dict():
        layer = ours.split(".")[1]
        template = ours.replace(f".{layer}.", ".{}.") if layer.isdigit() else ours
        parts = [torch.from_numpy(golden.pop(key.format(layer))) for key in names[template]]
        weights[ours] = torch.cat(parts)
        if is_gpt2 and template.startswith("blocks") and weights[ours].dim() == 2:
            weights[ours] = weights[ours].T  # its Conv1D keeps inputs first
    model.load_state_dict(weights)
    assert set(golden) == {"config", "made_with", "token_ids", "logits", "attentions"}
    return Run(model), golden


@pytest.fixture(scope="module", params=["gpt2", "llama", "llama_wide_heads"])
def loaded(request: pytest.FixtureRequest) -> tuple[Run, Arrays]:
    """A toy model with the library's weights, and what the library computed with them."""
    run, golden = _load(request.param)
    run.read(golden["token_ids"].tolist())
    return run, golden


def _all_patterns(run: Run) -> NDArray[np.float32]:
    return np.array(
        [
            [run.pattern(run.session, layer, head) for head in range(run.config.n_head)]
            for layer in range(run.config.n_layer)
        ]
    )


def _all_logits(run: Run) -> NDArray[np.float32]:
    return np.array([run.logits(run.session, at) for at in range(len(run.session))])


def test_one_golden_text_is_longer_than_a_block_of_queries() -> None:
    """Otherwise the way blocks are cut would go unproven."""
    _, golden = _load("gpt2")
    assert len(golden["token_ids"]) > QUERY_BLOCK


def test_one_prefill_gives_the_reference_logits(loaded: tuple[Run, Arrays]) -> None:
    """All positions of a text read in one pass."""
    run, golden = loaded
    np.testing.assert_allclose(_all_logits(run), golden["logits"], atol=1e-4, rtol=0)


def test_a_bare_forward_pass_gives_the_reference_logits(loaded: tuple[Run, Arrays]) -> None:
    """Without cache, record or run, and with a batch axis in front."""
    run, golden = loaded
    logits = run.model(torch.from_numpy(golden["token_ids"])[None])[0]
    np.testing.assert_allclose(logits.numpy(), golden["logits"], atol=1e-4, rtol=0)


def test_what_is_shown_after_a_prefill_is_the_reference_attention(
    loaded: tuple[Run, Arrays],
) -> None:
    """Every weight of every head of every layer."""
    run, golden = loaded
    np.testing.assert_allclose(_all_patterns(run), golden["attentions"], atol=1e-5, rtol=0)


def test_token_by_token_gives_the_same_as_the_reference(loaded: tuple[Run, Arrays]) -> None:
    """Through the KV cache, one token at a time after a short prefill."""
    run, golden = loaded
    stepped = Run(run.model)
    token_ids = golden["token_ids"].tolist()
    for n_tokens in range(10, len(token_ids) + 1):
        stepped.read(token_ids[:n_tokens])
    assert stepped.stats[-1].n_computed == 1
    np.testing.assert_allclose(_all_logits(stepped), golden["logits"], atol=1e-4, rtol=0)
    np.testing.assert_allclose(_all_patterns(stepped), golden["attentions"], atol=1e-5, rtol=0)


def test_the_loss_is_the_cross_entropy_of_the_reference_logits(
    loaded: tuple[Run, Arrays],
) -> None:
    """And the rank counts the tokens that the reference finds more probable."""
    run, golden = loaded
    logits, target = golden["logits"][:-1].astype(np.float64), golden["token_ids"][1:]
    chosen = logits[np.arange(len(target)), target]
    expected = np.log(np.exp(logits).sum(axis=-1)) - chosen
    np.testing.assert_allclose(run.session.loss[1:], expected, atol=1e-4, rtol=0)
    np.testing.assert_array_equal(run.session.rank[1:], (logits > chosen[:, None]).sum(axis=-1))
