"""Write the reference arrays: random toy models, run by the `transformers` library.

Run by hand, in an environment with `transformers` and `torch`, for all cases or some:

    python tests/goldens/make.py [case ...]

Each `<name>.npz` holds `config` (config.json as the library writes it), every weight under the
library's name (float16, which all of them are exactly), `token_ids` [S], `logits` [S, V] (of the
first tokens of the vocabulary only, where all would be too many) and `attentions` [L, H, S, S].
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM

HERE = Path(__file__).parent

Sizes = dict[str, Any]

# 256 tokens for the bytes, and a few that no tokenizer knows.
VOCAB = {"vocab_size": 260, "bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
GPT2: Sizes = {
    **VOCAB,
    "n_positions": 160,
    "n_embd": 16,
    "n_layer": 2,
    "n_head": 2,
}
LLAMA: Sizes = {
    **VOCAB,
    "max_position_embeddings": 64,
    "hidden_size": 24,
    "intermediate_size": 44,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "rms_norm_eps": 1e-6,
    "rope_parameters": {"rope_type": "default", "rope_theta": 1000.0},
}
WIDE_HEADS = {
    "head_dim": 12,
    "num_key_value_heads": 1,
    "attention_bias": True,
    "mlp_bias": True,
    "tie_word_embeddings": True,
}
LLAMA_3_SCALING = {
    "rope_type": "llama3",
    "rope_theta": 1000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 48,  # with which some pairs are slowed, some half, some not
}
LINEAR_SCALING = {"rope_type": "linear", "rope_theta": 1000.0, "factor": 4.0}

# Name: the library's name of the family, the sizes, the length of the text.
CASES: dict[str, tuple[str, Sizes, int]] = {
    "gpt2": ("gpt2", GPT2, 40),
    # More than one block of queries.
    "gpt2_long": ("gpt2", {**GPT2, "n_layer": 1}, 132),
}


@torch.inference_mode()
def write(name: str, model_type: str, sizes: Sizes, n_tokens: int, seed: int) -> None:
    """Draw weights and a text, run the model, store everything."""
    config = AutoConfig.for_model(model_type, **sizes)
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").float()
    generator = torch.Generator().manual_seed(seed)
    for key, parameter in model.named_parameters():
        is_norm = ("norm" in key or "ln_" in key) and key.endswith("weight")
        drawn = torch.randn(parameter.shape, generator=generator) * 0.3 + (1.0 if is_norm else 0.0)
        parameter.copy_(drawn.half())
    token_ids = torch.randint(sizes["vocab_size"], (n_tokens,), generator=generator)
    result = model.eval()(token_ids[None], output_attentions=True)
    weights = {key: value.half().numpy() for key, value in model.named_parameters()}
    n_stored = 260 if n_tokens <= 60 else 64
    path = HERE / f"{name}.npz"
    np.savez_compressed(
        path,
        config=config.to_json_string(),
        made_with=f"transformers {transformers.__version__}, torch {torch.__version__}",
        token_ids=token_ids.numpy(),
        logits=result.logits[0, :, :n_stored].numpy(),
        attentions=torch.stack([layer[0] for layer in result.attentions]).numpy(),
        **weights,
    )
    print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB, {len(weights)} weights")


if __name__ == "__main__":
    for at, (case, details) in enumerate(CASES.items()):
        if case in sys.argv[1:] or len(sys.argv) == 1:
            write(case, *details, seed=at + 1)
