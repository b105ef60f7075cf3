"""Write the reference arrays: random toy models, run by the `transformers` library.

Run by hand, in an environment with `transformers` and `torch`, for all cases or some:

    python tests/goldens/make.py [case ...]

Each `<name>.npz` holds `config` (config.json as the library writes it), every weight under its
name in the library's files (float16, which all of them are exactly), `token_ids` [S], `logits`
[S, V] (of the first tokens of the vocabulary only, where all would be too many) and `attentions`
[L, H, S, S].
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from safetensors.torch import load_file
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
YARN_SCALING = {
    "rope_type": "yarn",
    "rope_theta": 1000.0,
    "factor": 4.0,
    # With which the first pair is kept, the last slowed, two in between.
    "original_max_position_embeddings": 512,
}
YARN_BETWEEN_PAIRS = {
    **YARN_SCALING,
    "truncate": False,
    "mscale": 0.7,
    "mscale_all_dim": 1.3,
}
QWEN2 = {key: value for key, value in LLAMA.items() if key != "head_dim"}
LATE_WINDOWS = {"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 1}
NEOX: Sizes = {
    **VOCAB,
    "max_position_embeddings": 64,
    "hidden_size": 32,
    "intermediate_size": 60,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "rope_parameters": {
        "rope_type": "default",
        "rope_theta": 1000.0,
        "partial_rotary_factor": 0.25,
    },
}
NEO: Sizes = {
    **VOCAB,
    "max_position_embeddings": 64,
    "hidden_size": 16,
    "num_layers": 4,
    "num_heads": 2,
    "attention_types": [[["global", "local"], 2]],
    "window_size": 8,
}
PHI_3: Sizes = {
    **QWEN2,
    "sliding_window": 8,
    "hidden_size": 32,
    "rope_parameters": {**NEOX["rope_parameters"], "partial_rotary_factor": 0.5},
}
PHI_3_LONG: Sizes = {
    **PHI_3,
    "sliding_window": None,
    "max_position_embeddings": 256,
    "original_max_position_embeddings": 48,  # longer than the text
    "rope_parameters": {
        "rope_type": "longrope",
        "rope_theta": 1000.0,
        "partial_rotary_factor": 1.0,
        "short_factor": [1.0, 1.1, 1.5, 2.0],
        "long_factor": [1.0, 2.0, 4.0, 8.0],
    },
}
GEMMA: Sizes = {"sliding_window": 8, "tie_word_embeddings": True, "num_hidden_layers": 3}
GEMMA_3: Sizes = {
    "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
    "query_pre_attn_scalar": 10,
    "rope_parameters": {
        "sliding_attention": {"rope_type": "default", "rope_theta": 100.0},
        "full_attention": LINEAR_SCALING,
    },
}

# Name: the library's name of the family, the sizes, the length of the text.
CASES: dict[str, tuple[str, Sizes, int]] = {
    "gpt2": ("gpt2", GPT2, 40),
    # More than one block of queries.
    "gpt2_long": ("gpt2", {**GPT2, "n_layer": 1}, 132),
    "llama": ("llama", LLAMA, 40),
    "llama_wide_heads": ("llama", {**LLAMA, **WIDE_HEADS}, 40),
    "llama_3": ("llama", {**LLAMA, "rope_parameters": LLAMA_3_SCALING}, 40),
    "llama_linear": ("llama", {**LLAMA, "rope_parameters": LINEAR_SCALING}, 40),
    "mistral": ("mistral", {**LLAMA, "sliding_window": 8}, 40),
    "qwen2": ("qwen2", QWEN2, 40),
    "qwen2_windows": ("qwen2", {**QWEN2, **LATE_WINDOWS}, 40),
    "qwen3": ("qwen3", {**LLAMA, "head_dim": 10}, 40),
    "gpt_neox": ("gpt_neox", NEOX, 40),
    "gpt_neox_one_by_one": ("gpt_neox", {**NEOX, "use_parallel_residual": False}, 40),
    "gpt_neo": ("gpt_neo", NEO, 40),
    "olmo2": ("olmo2", {**LLAMA, "rms_norm_eps": 1e-5}, 40),
    "phi3": ("phi3", PHI_3, 40),
    "gemma2": ("gemma2", {**LLAMA, **GEMMA, "query_pre_attn_scalar": 12}, 40),
    "gemma3": ("gemma3_text", {**LLAMA, **GEMMA, **GEMMA_3}, 40),
    "llama_yarn": ("llama", {**LLAMA, "rope_parameters": YARN_SCALING}, 40),
    "llama_yarn_between_pairs": ("llama", {**LLAMA, "rope_parameters": YARN_BETWEEN_PAIRS}, 40),
    "phi3_long": ("phi3", PHI_3_LONG, 40),
    "gemma": ("gemma", {**LLAMA, "tie_word_embeddings": True, "hidden_act": "gelu"}, 40),
}


@torch.inference_mode()
def write(name: str, model_type: str, sizes: Sizes, n_tokens: int, seed: int) -> None:
    """Draw weights and a text, run the model, store everything."""
    config = AutoConfig.for_model(model_type, **sizes)
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").float()
    generator = torch.Generator().manual_seed(seed)
    for key, parameter in model.named_parameters():
        is_norm = ("norm" in key or "ln_" in key) and key.endswith("weight")
        mean = 1.0 if is_norm and not model_type.startswith("gemma") else 0.0  # it stores w − 1
        drawn = torch.randn(parameter.shape, generator=generator) * 0.3 + mean
        parameter.copy_(drawn.half())
    token_ids = torch.randint(sizes["vocab_size"], (n_tokens,), generator=generator)
    result = model.eval()(token_ids[None], output_attentions=True)
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        written = load_file(Path(folder) / "model.safetensors")
        weights = {key: value.half().numpy() for key, value in written.items()}
        config_file = (Path(folder) / "config.json").read_text(encoding="utf-8")
    n_stored = 260 if n_tokens <= 60 else 64
    path = HERE / f"{name}.npz"
    np.savez_compressed(
        path,
        config=config_file,
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
