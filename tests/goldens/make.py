"""Write the reference arrays: random toy models, run by the `transformers` library.

Run by hand, in an environment with `transformers` and `torch`:

    python tests/goldens/make.py

Each `<name>.npz` holds the sizes (`config`, as JSON in the library's names), every weight under
the library's name, `token_ids` [S], `logits` [S, V] and `attentions` [L, H, S, S].
"""

import json
from pathlib import Path

import numpy as np
import torch
import transformers
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

HERE = Path(__file__).parent

# 150 tokens are more than one block of queries.
GPT2 = {
    "vocab_size": 61,
    "n_positions": 160,
    "n_embd": 16,
    "n_layer": 2,
    "n_head": 2,
    "activation_function": "gelu_new",
    "layer_norm_epsilon": 1e-5,
    "tie_word_embeddings": True,
}
LLAMA = {
    "vocab_size": 61,
    "max_position_embeddings": 64,
    "hidden_size": 32,
    "intermediate_size": 44,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-6,
    "rope_theta": 1000.0,
    "attention_bias": False,
    "mlp_bias": False,
    "tie_word_embeddings": False,
}
WIDE_HEADS = {**LLAMA, "head_dim": 12, "num_key_value_heads": 1, "attention_bias": True}


def make_gpt2(sizes: dict) -> GPT2LMHeadModel:
    """A GPT-2-shaped model with the library's explicit attention."""
    return GPT2LMHeadModel(
        GPT2Config(**sizes, bos_token_id=None, eos_token_id=None, attn_implementation="eager")
    )


def make_llama(sizes: dict) -> LlamaForCausalLM:
    """A Llama-shaped model with the library's explicit attention."""
    sizes = dict(sizes)
    theta = sizes.pop("rope_theta")
    config = LlamaConfig(
        **sizes,
        rope_parameters={"rope_type": "default", "rope_theta": theta},
        attn_implementation="eager",
    )
    return LlamaForCausalLM(config)


@torch.inference_mode()
def write(name: str, model: torch.nn.Module, sizes: dict, n_tokens: int, seed: int) -> None:
    """Draw weights and a text, run the model, store everything."""
    generator = torch.Generator().manual_seed(seed)
    for key, parameter in model.named_parameters():
        is_norm = ("norm" in key or "ln_" in key) and key.endswith("weight")
        parameter.normal_(1.0 if is_norm else 0.0, 0.3, generator=generator)
    token_ids = torch.randint(sizes["vocab_size"], (n_tokens,), generator=generator)
    result = model.eval()(token_ids[None], output_attentions=True)
    weights = {key: value.numpy() for key, value in model.named_parameters()}
    path = HERE / f"{name}.npz"
    np.savez_compressed(
        path,
        config=json.dumps(sizes),
        made_with=f"transformers {transformers.__version__}, torch {torch.__version__}",
        token_ids=token_ids.numpy(),
        logits=result.logits[0].numpy(),
        attentions=torch.stack([layer[0] for layer in result.attentions]).numpy(),
        **weights,
    )
    print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB, {len(weights)} weights")


if __name__ == "__main__":
    write("gpt2", make_gpt2(GPT2), GPT2, n_tokens=150, seed=1)
    write("llama", make_llama(LLAMA), LLAMA, n_tokens=40, seed=2)
    write("llama_wide_heads", make_llama(WIDE_HEADS), WIDE_HEADS, n_tokens=40, seed=3)
