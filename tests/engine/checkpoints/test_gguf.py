"""GGUF files give the numbers that were stored in them, or a sentence that says why not."""

import json
import math
import os
import re
import struct
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import gguf as package
import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from engine.architectures import build
from engine.checkpoints import hf_folder
from engine.checkpoints.gguf import _names, _own_name, is_gguf, read
from engine.checkpoints.gguf_families import FAMILIES
from engine.errors import CheckpointError, EngineError
from engine.formats import FLOAT32
from engine.loading import load
from tests.engine.gguf_files import (
    HEAD_DIM,
    KINDS,
    LLAMA,
    N_TOKENS,
    byte_level,
    is_permuted,
    llama_weights,
    neighbours_first,
    stored,
    write,
    write_llama,
)
from tests.engine.hf_files import read_golden, write_golden

# What the package can make itself, and so what a test can store.
MAKEABLE = ("F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0")
# What it can only read: blocks of any bytes stand for some numbers.
READABLE = ("Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS", "IQ3_S", "IQ2_XXS", "TQ1_0")

HUGGING_FACE = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def hugging_face_name(name: str) -> str:
    """The toy model's tensor by its other name."""
    parts = name.split(".")
    layer = f"model.layers.{parts[1]}." if parts[0] == "blk" else ""
    return f"{layer}{HUGGING_FACE[parts[-2]]}.{parts[-1]}"


# Weights


@pytest.mark.parametrize("kind", MAKEABLE)
def test_every_weight_comes_back_under_hugging_faces_name(tmp_path: Path, kind: str) -> None:
    """Rounded as the kind rounds, and with the rows of q and k in the model's own order."""
    raw = read(write_llama(tmp_path / "toy.gguf", KINDS[kind]))
    weights = llama_weights()
    assert set(raw.tensors) == set(map(hugging_face_name, weights))
    for name, numbers in weights.items():
        found = raw.tensors[hugging_face_name(name)].float().numpy()
        assert found.shape == numbers.shape
        if numbers.ndim == 1:
            assert np.array_equal(found, numbers)
            continue
        rounded = package.quants.dequantize(*stored(numbers, KINDS[kind]))
        assert np.array_equal(found, rounded)
        assert np.abs(found - numbers).max() < 0.2


@pytest.mark.parametrize("kind", READABLE)
def test_blocks_of_every_kind_are_read_as_the_package_reads_them(tmp_path: Path, kind: str) -> None:
    """More of them than are read at a time, and not a whole number of such times."""
    block, block_bytes = package.GGML_QUANT_SIZES[KINDS[kind]]
    rows, columns = 257, 3 * 256
    raw_bytes = np.random.default_rng(1).integers(
        0, 60, (rows, columns // block * block_bytes), dtype=np.uint8
    )
    weights = {"token_embd.weight": (raw_bytes, KINDS[kind])}
    path = write(tmp_path / "toy.gguf", "llama", {**LLAMA, **byte_level()}, weights)
    found = read(path).tensors["model.embed_tokens.weight"].numpy()
    assert found.shape == (rows, columns)
    assert np.array_equal(found, package.quants.dequantize(raw_bytes, KINDS[kind]))


def test_plain_kinds_keep_their_own_number_format(tmp_path: Path) -> None:
    """So that a model in 16 bits need not take 32."""
    for kind, dtype in (("F16", torch.float16), ("BF16", torch.bfloat16), ("Q8_0", torch.float32)):
        raw = read(write_llama(tmp_path / f"{kind}.gguf", KINDS[kind]))
        assert raw.tensors["model.embed_tokens.weight"].dtype == dtype


def test_no_weight_is_read_before_it_is_asked_for(tmp_path: Path) -> None:
    """A file of a gigabyte opens at once and in little memory."""
    path = tmp_path / "big.gguf"
    writer = package.GGUFWriter(path, "llama")
    for name, value in LLAMA.items():
        (writer.add_uint32 if isinstance(value, int) else writer.add_float32)(name, value)
    vocabulary = byte_level()
    writer.add_string("tokenizer.ggml.model", "gpt2")
    for name in ("tokens", "token_type", "merges"):
        writer.add_array(f"tokenizer.ggml.{name}", vocabulary[f"tokenizer.ggml.{name}"])
    rows = 1 << 20
    writer.add_tensor_info("token_embd.weight", (rows, 256), np.dtype(np.float32), rows * 1024)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    writer.close()
    with path.open("r+b") as file:
        begin = -(-path.stat().st_size // 32) * 32
        file.truncate(begin + rows * 1024)  # takes no room on most disks
    tracemalloc.start()
    began = time.process_time()
    raw = read(path)
    assert "model.embed_tokens.weight" in raw.tensors
    assert "lm_head.weight" not in raw.tensors
    seconds, (_, most) = time.process_time() - began, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert raw.settings["vocab_size"] == rows
    assert seconds < 1
    assert most < 10_000_000


def test_a_tensor_is_memory_of_its_own(tmp_path: Path) -> None:
    """Whoever writes into one changes neither the file nor what is read next."""
    raw = read(write_llama(tmp_path / "toy.gguf"))
    for name in ("model.norm.weight", "model.layers.0.self_attn.q_proj.weight"):
        before = raw.tensors[name].clone()
        raw.tensors[name].fill_(7.0)
        assert torch.equal(raw.tensors[name], before)


def test_a_loaded_weight_keeps_nothing_else_in_memory(tmp_path: Path) -> None:
    """Nor is it a view of the file: what lies behind it is as large as itself."""
    model = load(write_llama(tmp_path / "toy.gguf")).model
    for name, weight in model.named_parameters():
        assert weight.untyped_storage().nbytes() == weight.nbytes, name
    expected = llama_weights()["token_embd.weight"]
    (tmp_path / "toy.gguf").write_bytes(bytes((tmp_path / "toy.gguf").stat().st_size))
    np.testing.assert_array_equal(model.embedding.weight.detach().numpy(), expected)


def test_a_part_of_a_larger_tensor_does_not_keep_it_in_memory(tmp_path: Path) -> None:
    """Phi-3's gate and up are the halves of one matrix."""
    write_golden(tmp_path, "phi3")
    raw = hf_folder.read(tmp_path)
    own = {name: raw.tensors[name].clone() for name in raw.tensors}
    model = build(replace(raw, tensors=own, has_own_memory=True), FLOAT32)
    gate = model.get_submodule("blocks.0.mlp.gate").weight
    half = own["model.layers.0.mlp.gate_up_proj.weight"][: len(gate)]
    assert torch.equal(gate, half)
    assert gate.untyped_storage().nbytes() == gate.nbytes


# Settings

TOKENIZER = {"vocab_size": N_TOKENS}
NO_BIAS = {"attention_bias": False, "mlp_bias": False}
COMMON = {
    "block_count": 2,
    "context_length": 64,
    "embedding_length": 48,
    "feed_forward_length": 96,
    "attention.head_count": 4,
}
COMMON_THERE = {
    "num_hidden_layers": 2,
    "max_position_embeddings": 64,
    "hidden_size": 48,
    "intermediate_size": 96,
    "num_attention_heads": 4,
    "head_dim": 12,
    "tie_word_embeddings": True,
    **TOKENIZER,
    **NO_BIAS,
}
ROTARY = {
    "attention.head_count_kv": 2,
    "attention.layer_norm_rms_epsilon": 1e-6,
    "rope.freq_base": 1e6,
}
ROTARY_THERE = {"num_key_value_heads": 2, "rms_norm_eps": 1e-6, "rope_theta": 1e6}
GEMMA_ACTIVATION = {
    "hidden_act": "gelu_pytorch_tanh",
    "hidden_activation": "gelu_pytorch_tanh",
}
WIDE = {"attention.key_length": 16, "attention.value_length": 16}

SETTINGS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "llama": (
        "llama",
        COMMON | ROTARY | {"rope.dimension_count": 12},
        COMMON_THERE | ROTARY_THERE | {"model_type": "llama", "hidden_act": "silu"},
    ),
    "one number per layer, all alike": (
        "llama",
        COMMON | ROTARY | {"attention.head_count_kv": [2, 2]},
        COMMON_THERE | ROTARY_THERE | {"model_type": "llama", "hidden_act": "silu"},
    ),
    "positions stretched evenly": (
        "llama",
        COMMON | ROTARY | {"rope.scaling.type": "linear", "rope.scaling.factor": 4.0},
        COMMON_THERE
        | ROTARY_THERE
        | {
            "model_type": "llama",
            "hidden_act": "silu",
            "rope_scaling": {"rope_type": "linear", "factor": 4.0},
        },
    ),
    "qwen2": (
        "qwen2",
        COMMON | ROTARY,
        COMMON_THERE | ROTARY_THERE | {"model_type": "qwen2", "hidden_act": "silu"},
    ),
    "qwen3": (
        "qwen3",
        COMMON | ROTARY | WIDE,
        COMMON_THERE | ROTARY_THERE | {"model_type": "qwen3", "hidden_act": "silu", "head_dim": 16},
    ),
    "gemma": (
        "gemma",
        COMMON | ROTARY | WIDE,
        COMMON_THERE | ROTARY_THERE | GEMMA_ACTIVATION | {"model_type": "gemma", "head_dim": 16},
    ),
    "gemma2": (
        "gemma2",
        COMMON
        | ROTARY
        | WIDE
        | {
            "attention.sliding_window": 32,
            "attn_logit_softcapping": 50.0,
            "final_logit_softcapping": 30.0,
        },
        COMMON_THERE
        | ROTARY_THERE
        | GEMMA_ACTIVATION
        | {
            "model_type": "gemma2",
            "head_dim": 16,
            "query_pre_attn_scalar": 16,
            "sliding_window": 32,
            "attn_logit_softcapping": 50.0,
            "final_logit_softcapping": 30.0,
        },
    ),
    "gemma2 of 27 billion": (
        "gemma2",
        COMMON | ROTARY | WIDE | {"block_count": 46},
        COMMON_THERE
        | ROTARY_THERE
        | GEMMA_ACTIVATION
        | {
            "model_type": "gemma2",
            "num_hidden_layers": 46,
            "head_dim": 16,
            "query_pre_attn_scalar": 12,  # 48 / 4
            "sliding_window": 4096,
        },
    ),
    "gemma3": (
        "gemma3",
        COMMON | ROTARY | WIDE | {"attention.sliding_window": 32},
        COMMON_THERE
        | ROTARY_THERE
        | GEMMA_ACTIVATION
        | {
            "model_type": "gemma3_text",
            "head_dim": 16,
            "query_pre_attn_scalar": 16,
            "sliding_window": 32,
            "sliding_window_pattern": 6,
            "rope_local_base_freq": 1e4,
        },
    ),
    "gpt2": (
        "gpt2",
        COMMON | {"attention.layer_norm_epsilon": 1e-5},
        {
            "model_type": "gpt2",
            "n_layer": 2,
            "n_positions": 64,
            "n_embd": 48,
            "n_inner": 96,
            "n_head": 4,
            "layer_norm_epsilon": 1e-5,
            "activation_function": "gelu_new",
            "tie_word_embeddings": True,
            **TOKENIZER,
            **NO_BIAS,
        },
    ),
    "phi3": (
        "phi3",
        COMMON
        | ROTARY
        | {
            "attention.sliding_window": 32,
            "rope.scaling.original_context_length": 16,
            "rope.dimension_count": 9,
        },
        COMMON_THERE
        | ROTARY_THERE
        | {
            "model_type": "phi3",
            "hidden_act": "silu",
            "sliding_window": 32,
            "original_max_position_embeddings": 16,
            "partial_rotary_factor": 0.75,
        },
    ),
}


def _own(architecture: str, entries: dict[str, Any]) -> dict[str, Any]:
    return {f"{architecture}.{name}": value for name, value in entries.items()}


def _embedding(columns: int = 48) -> dict[str, Any]:
    return {"token_embd.weight": stored(np.ones((N_TOKENS, columns)))}


@pytest.mark.parametrize(("architecture", "there", "here"), SETTINGS.values(), ids=SETTINGS)
def test_settings_come_by_the_names_of_config_json(
    tmp_path: Path, architecture: str, there: dict[str, Any], here: dict[str, Any]
) -> None:
    """Each family's settings come by the names of config.json."""
    metadata = _own(architecture, there) | byte_level()
    path = write(tmp_path / "toy.gguf", architecture, metadata, _embedding())
    assert read(path).settings == here


def test_special_tokens_are_known_by_their_ids(tmp_path: Path) -> None:
    """What begins and ends a text is told."""
    ids = {"bos_token_id": 0, "eos_token_id": 3, "add_bos_token": True}
    vocabulary = byte_level(**{f"tokenizer.ggml.{name}": value for name, value in ids.items()})
    raw = read(write_llama(tmp_path / "toy.gguf", vocabulary=vocabulary))
    assert {name: raw.settings[name] for name in ids} == ids


def test_an_output_matrix_of_its_own_is_not_tied(tmp_path: Path) -> None:
    """An output matrix of its own is not tied."""
    weights = llama_weights()
    weights["output.weight"] = weights["token_embd.weight"] * 2
    raw = read(write_llama(tmp_path / "toy.gguf", weights=weights))
    assert raw.settings["tie_word_embeddings"] is False
    assert torch.equal(raw.tensors["lm_head.weight"], 2 * raw.tensors["model.embed_tokens.weight"])


def llama_3_factors(theta: float, head_dim: int, factor: float) -> NDArray[np.float64]:
    """What llama.cpp's converter stores for Llama 3's scaling, pair by pair."""
    factors = []
    for i in range(0, head_dim, 2):
        wavelength = 2 * np.pi * theta ** (i / head_dim)
        if wavelength < 8192 / 4:
            factors.append(1.0)
        elif wavelength > 8192 / 1:
            factors.append(factor)
        else:
            smooth = (8192 / wavelength - 1) / (4 - 1)
            factors.append(1 / ((1 - smooth) / factor + smooth))
    return np.array(factors)


def test_llama_3s_stretched_positions_are_recognised(tmp_path: Path) -> None:
    """The file holds a divisor for each pair; the settings that give them are found."""
    metadata = _own("llama", COMMON | ROTARY | {"rope.freq_base": 500_000.0, **WIDE})
    factors = llama_3_factors(500_000.0, 16, 8.0)
    assert len(set(factors)) > 1
    tensors = _embedding() | {"rope_freqs.weight": stored(factors)}
    raw = read(write(tmp_path / "toy.gguf", "llama", metadata | byte_level(), tensors))
    assert raw.settings["rope_scaling"] == {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    }
    assert "rope_freqs.weight" not in raw.tensors
    tensors["rope_freqs.weight"] = stored(factors * 1.5)
    path = write(tmp_path / "other.gguf", "llama", metadata | byte_level(), tensors)
    with pytest.raises(CheckpointError, match="stretches its rotary positions in a way"):
        read(path)
    tensors["rope_freqs.weight"] = stored(np.ones(8))
    path = write(tmp_path / "even.gguf", "llama", metadata | byte_level(), tensors)
    assert "rope_scaling" not in read(path).settings


def test_phi_3s_two_lists_of_divisors_are_settings(tmp_path: Path) -> None:
    """Phi-3's divisors for long and for short texts come as config.json holds them."""
    metadata = _own("phi3", COMMON | ROTARY) | byte_level()
    tensors = _embedding() | {
        "rope_factors_long.weight": stored(np.arange(2.0, 8.0)),
        "rope_factors_short.weight": stored(np.arange(1.0, 7.0)),
    }
    raw = read(write(tmp_path / "toy.gguf", "phi3", metadata, tensors))
    assert raw.settings["rope_scaling"] == {
        "rope_type": "longrope",
        "long_factor": [2.0, 3.0, 4.0, 5.0, 6.0, 7.0],
        "short_factor": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
    }
    assert set(raw.tensors) == {"model.embed_tokens.weight"}


def test_the_factor_that_llama_cpp_gives_phi_3s_scores_is_a_setting(tmp_path: Path) -> None:
    metadata = _own("phi3", COMMON | ROTARY | {"rope.scaling.attn_factor": 1.19}) | byte_level()
    tensors = _embedding() | {
        f"rope_factors_{kind}.weight": stored(np.arange(1.0, 7.0)) for kind in ("long", "short")
    }
    raw = read(write(tmp_path / "toy.gguf", "phi3", metadata, tensors))
    assert raw.settings["rope_scaling"]["attention_factor"] == pytest.approx(1.19)


def test_yarn_turns_as_the_same_settings_of_a_folder_do(tmp_path: Path) -> None:
    """By Hugging Face's names; a factor of llama.cpp's own is refused."""
    yarn = {
        "llama.rope.scaling.type": "yarn",
        "llama.rope.scaling.factor": 4.0,
        "llama.rope.scaling.original_context_length": 512,
        "llama.rope.scaling.yarn_beta_fast": 16.0,
    }
    path = write_llama(tmp_path / "yarn.gguf", metadata={**LLAMA, **yarn})
    assert read(path).settings["rope_scaling"] == {
        "rope_type": "yarn",
        "factor": 4.0,
        "original_max_position_embeddings": 512,
        "beta_fast": 16.0,
    }
    scaling = load(path).model.config.rope_scaling
    assert scaling is not None
    assert (scaling.kind, scaling.high_turns, scaling.low_turns) == ("yarn", 16.0, 1.0)
    assert scaling.attention_factor == pytest.approx(0.1 * math.log(4) + 1)
    odd = {**LLAMA, **yarn, "llama.rope.scaling.attn_factor": 0.5}
    path = write_llama(tmp_path / "odd.gguf", metadata=odd)
    with pytest.raises(CheckpointError, match=r"attn_factor = 0.5 should be 1"):
        read(path)


def test_what_a_family_does_to_its_tensors_is_undone(tmp_path: Path) -> None:
    """Gemma's norms are stored with one added, GPT-2's matrices outputs first."""
    numbers = np.random.default_rng(3).normal(size=(48, 96))
    gemma = _embedding() | {
        "blk.1.attn_norm.weight": stored(numbers[0]),
        "blk.1.attn_q_norm.weight": stored(numbers[1]),
        "blk.1.post_ffw_norm.weight": stored(numbers[2]),
        "blk.1.ffn_norm.weight": stored(numbers[3]),
        "blk.1.attn_q.weight": stored(numbers),
    }
    metadata = _own("gemma3", COMMON | ROTARY) | byte_level()
    raw = read(write(tmp_path / "gemma.gguf", "gemma3", metadata, gemma))
    expected = {
        "input_layernorm": numbers[0] - 1,
        "self_attn.q_norm": numbers[1] - 1,
        "post_feedforward_layernorm": numbers[2] - 1,
        "pre_feedforward_layernorm": numbers[3] - 1,
        "self_attn.q_proj": numbers,
    }
    for name, values in expected.items():
        found = raw.tensors[f"model.layers.1.{name}.weight"].numpy()
        assert np.allclose(found, values, atol=1e-6)

    gpt2 = _embedding() | {
        "position_embd.weight": stored(numbers),
        "blk.0.attn_qkv.weight": stored(numbers, KINDS.Q8_0),
        "blk.0.attn_qkv.bias": stored(numbers[0]),
        "blk.0.ffn_norm.bias": stored(numbers[1]),
    }
    metadata = _own("gpt2", COMMON) | byte_level()
    raw = read(write(tmp_path / "gpt2.gguf", "gpt2", metadata, gpt2))
    assert np.allclose(raw.tensors["transformer.wpe.weight"], numbers, atol=1e-6)
    found = raw.tensors["transformer.h.0.attn.c_attn.weight"]
    assert np.allclose(found, numbers.T, atol=0.02)
    assert np.allclose(raw.tensors["transformer.h.0.attn.c_attn.bias"], numbers[0], atol=1e-6)
    assert np.allclose(raw.tensors["transformer.h.0.ln_2.bias"], numbers[1], atol=1e-6)


def test_a_tensor_that_the_family_has_no_place_for_keeps_its_name(tmp_path: Path) -> None:
    """So that it can be named when it is in the way."""
    weights = llama_weights() | {"blk.0.attn_sinks.weight": np.ones(4, np.float32)}
    raw = read(write_llama(tmp_path / "toy.gguf", weights=weights))
    assert "blk.0.attn_sinks.weight" in raw.tensors


# The whole model


def _rms(x: NDArray[np.float64], weight: NDArray[Any]) -> NDArray[np.float64]:
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * weight


def _turned(x: NDArray[np.float64], theta: float) -> NDArray[np.float64]:
    """Turn feature i with feature i + D/2 [T, H, D], as a complex number."""
    half = x.shape[-1] // 2
    pairs = x[..., :half] + 1j * x[..., half:]
    angle = np.arange(len(x))[:, None] * theta ** (-np.arange(half) / half)
    turned = pairs * np.exp(1j * angle)[:, None]
    return np.concatenate((turned.real, turned.imag), -1)


def llama_logits(
    weights: dict[str, NDArray[np.float32]], token_ids: list[int]
) -> NDArray[np.float64]:
    """The toy model in plain numpy and float64 [T, V]."""
    w = {name.removesuffix(".weight"): numbers.astype(float) for name, numbers in weights.items()}
    x = w["token_embd"][token_ids]
    n = len(token_ids)
    for layer in range(2):
        own = {name.split(".")[-1]: w[name] for name in w if name.startswith(f"blk.{layer}.")}
        h = _rms(x, own["attn_norm"])
        q = _turned((h @ own["attn_q"].T).reshape(n, 4, HEAD_DIM), 500.0)
        k = _turned((h @ own["attn_k"].T).reshape(n, 2, HEAD_DIM), 500.0)
        v = (h @ own["attn_v"].T).reshape(n, 2, HEAD_DIM)
        mixed = np.zeros((n, 4, HEAD_DIM))
        for head in range(4):
            for query in range(n):
                scores = k[: query + 1, head // 2] @ q[query, head] / np.sqrt(HEAD_DIM)
                shares = np.exp(scores - scores.max())
                mixed[query, head] = shares / shares.sum() @ v[: query + 1, head // 2]
        x = x + mixed.reshape(n, -1) @ own["attn_output"].T
        h = _rms(x, own["ffn_norm"])
        gate = h @ own["ffn_gate"].T
        x = x + (gate / (1 + np.exp(-gate)) * (h @ own["ffn_up"].T)) @ own["ffn_down"].T
    return _rms(x, w["output_norm"]) @ w["token_embd"].T


@pytest.mark.parametrize("kind", ["F32", "F16", "Q4_1", "Q8_0"])
def test_a_models_logits_are_those_of_its_weights(tmp_path: Path, kind: str) -> None:
    """Of the rounded ones, where the file holds rounded ones; q and k turned the right way."""
    weights = {
        name: package.quants.dequantize(*stored(numbers, KINDS[kind])).reshape(numbers.shape)
        if numbers.ndim > 1
        else numbers
        for name, numbers in llama_weights().items()
    }
    token_ids = [5, 200, 17, 17, 90, 3, 250, 61]
    loaded = load(write_llama(tmp_path / "toy.gguf", KINDS[kind]))
    with torch.no_grad():
        logits = loaded.model(torch.tensor(token_ids)).numpy()
    assert np.allclose(logits, llama_logits(weights, token_ids), atol=1e-4)
    assert loaded.info.name == "toy"
    assert loaded.info.vocabulary[0] == b"<|end|>"


def test_a_gemma_file_computes_what_its_folder_does(tmp_path: Path) -> None:
    """What the library computed: such files hold the norms with one added, q and k as they are."""
    golden, weights = read_golden("gemma")
    config = json.loads(str(golden["config"]))
    renamed = {theirs: ours for ours, theirs in FAMILIES["gemma"].modules.items()}
    tensors = {}
    for name, numbers in weights.items():
        module, _, part = name.rpartition(".")
        layer = re.search(r"\.(\d+)\.", module)
        template = re.sub(r"\.\d+\.", ".layer.", module)
        number = layer[1] if layer else ""
        ours = renamed[template].replace(".layer.", f".{number}.")
        tensors[f"{ours}.{part}"] = stored(numbers.float().numpy() + ("norm" in name))
    metadata = _own(
        "gemma",
        {
            "block_count": config["num_hidden_layers"],
            "context_length": config["max_position_embeddings"],
            "embedding_length": config["hidden_size"],
            "feed_forward_length": config["intermediate_size"],
            "attention.head_count": config["num_attention_heads"],
            "attention.head_count_kv": config["num_key_value_heads"],
            "attention.key_length": config["head_dim"],
            "attention.value_length": config["head_dim"],
            "attention.layer_norm_rms_epsilon": config["rms_norm_eps"],
            "rope.freq_base": config["rope_parameters"]["rope_theta"],
        },
    )
    vocabulary = byte_level()  # of which the first 260 are as many as the model has
    for name, n in (("tokens", 260), ("token_type", 260), ("merges", 3)):
        vocabulary[f"tokenizer.ggml.{name}"] = vocabulary[f"tokenizer.ggml.{name}"][:n]
    loaded = load(write(tmp_path / "gemma.gguf", "gemma", metadata | vocabulary, tensors))
    token_ids = torch.from_numpy(golden["token_ids"])
    with torch.no_grad():
        logits = loaded.model(token_ids).numpy()
    assert np.allclose(logits, golden["logits"], atol=1e-4, rtol=0)


def test_a_tensor_in_the_way_is_named(tmp_path: Path) -> None:
    """A tensor in the way is named."""
    weights = llama_weights() | {"blk.0.attn_sinks.weight": np.ones(4, np.float32)}
    path = write_llama(tmp_path / "toy.gguf", weights=weights)
    with pytest.raises(CheckpointError, match=r"'blk\.0\.attn_sinks\.weight'"):
        load(path)


# Bad files


def text(value: str) -> bytes:
    """A text as the format stores it."""
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def header(
    entries: bytes = b"", n_entries: int = 0, tensors: bytes = b"", n_tensors: int = 0
) -> bytes:
    """A file's beginning, put together by hand."""
    return b"GGUF" + struct.pack("<IQQ", 3, n_tensors, n_entries) + entries + tensors


def tensor(*sizes: int, kind: int = 0, start: int = 0) -> bytes:
    """One tensor's entry."""
    return (
        text("t")
        + struct.pack("<I", len(sizes))
        + struct.pack(f"<{len(sizes)}Q", *sizes)
        + struct.pack("<IQ", kind, start)
    )


HUGE = 1 << 60
BAD_BYTES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "is empty; it should hold a model"),
    "another format": (b"PK\x03\x04 and so on", "no GGUF file; one begins with the letters GGUF"),
    "only the letters": (b"GGUF", "cut off or damaged"),
    "version 1": (b"GGUF" + struct.pack("<IQQ", 1, 0, 0), "has the version 1; only GGUF"),
    "version 77": (b"GGUF" + struct.pack("<IQQ", 77, 0, 0), "has the version 77; only GGUF"),
    "the other byte order": (
        b"GGUF" + struct.pack(">IQQ", 3, 0, 0),
        "is stored most significant byte first; only GGUF",
    ),
    "a promise of many entries": (header(n_entries=HUGE), f"promises {HUGE} entries of metadata"),
    "a promise of many tensors": (header(n_tensors=HUGE), f"promises {HUGE} tensors, more than"),
    "a long name": (header(struct.pack("<Q", HUGE) + b"abcdefgh", 1), f"needs {HUGE + 8} bytes"),
    "a long text": (
        header(text("a") + struct.pack("<IQ", 8, HUGE), 1),
        "cut off or damaged: its header needs",
    ),
    "a long list of texts": (
        header(text("a") + struct.pack("<IIQ", 9, 8, HUGE), 1),
        f"promises {HUGE} texts in 'a'",
    ),
    "a long list of numbers": (
        header(text("a") + struct.pack("<IIQ", 9, 6, HUGE), 1),
        f"promises {HUGE} numbers in 'a'",
    ),
    "a list of lists": (
        header(text("a") + struct.pack("<IIQ", 9, 9, 1), 1),
        "the list 'a' is of the unknown kind 9",
    ),
    "an entry of an unknown kind": (
        header(text("a") + struct.pack("<IQ", 13, 1), 1),
        "the entry 'a' is of the unknown kind 13",
    ),
    "an entry twice": (
        header((text("a") + struct.pack("<II", 4, 1)) * 2, 2),
        "the entry 'a' is there twice",
    ),
    "a text that is no UTF-8": (
        header(text("a") + struct.pack("<IQ", 8, 2) + b"\xff\xfe", 1),
        "a text is not UTF-8",
    ),
    "an odd alignment": (
        header(text("general.alignment") + struct.pack("<II", 4, 33), 1),
        "general.alignment = 33 is no power of two",
    ),
    "a tensor without axes": (header(tensors=tensor(), n_tensors=1), "the tensor 't' has 0 axes"),
    "a tensor with many axes": (
        header(tensors=tensor(*[1] * 5), n_tensors=1),
        "the tensor 't' has 5 axes",
    ),
    "a tensor without numbers": (
        header(tensors=tensor(4, 0), n_tensors=1),
        r"the tensor 't' has the sizes \[4, 0\]",
    ),
    "a tensor twice": (
        header(tensors=tensor(1) * 2, n_tensors=2) + b"\0" * 64,
        "the tensor 't' is there twice",
    ),
    "no architecture": (header() + b"\0" * 32, "of the architecture None, which is not known here"),
}


@pytest.mark.parametrize(("content", "sentence"), BAD_BYTES.values(), ids=BAD_BYTES)
def test_a_damaged_header_is_refused_with_the_reason(
    tmp_path: Path, content: bytes, sentence: str
) -> None:
    """A damaged header is refused, with the reason."""
    path = tmp_path / "bad.gguf"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=sentence) as caught:
        read(path)
    assert str(path) in str(caught.value)


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    """A missing file and a folder are refused."""
    for path in (tmp_path / "none.gguf", tmp_path):
        assert not is_gguf(path)
        with pytest.raises(CheckpointError, match="cannot be read"):
            read(path)


BAD_METADATA: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown family": (
        {"general.architecture": "mamba"},
        "of the architecture 'mamba', .* known: llama, qwen2, qwen3, gemma, .*, gpt2, phi3",
    ),
    "an adapter": ({"general.type": "adapter"}, "holds no model but what .* calls 'adapter'"),
    "one part of many": (
        {"split.count": 3},
        "part of no number of a model in 3 files, and its name does not say so",
    ),
    "experts": ({"llama.expert_count": 8}, "is a mixture of 8 experts"),
    "no depth": ({"llama.block_count": None}, "lacks 'llama.block_count' in its metadata"),
    "a depth of none": ({"llama.block_count": 0}, "llama.block_count = 0 should be a whole number"),
    "a depth in words": ({"llama.block_count": "two"}, "block_count = 'two' should be a whole"),
    "heads that differ": (
        {"llama.attention.head_count_kv": [2, 1]},
        r"head_count_kv = \[1, 2\] is not the same number in every layer",
    ),
    "heads that do not fit": (
        {"llama.attention.head_count": 6},
        "'blk.0.attn_q.weight' has 32 rows; its 6 heads need a multiple",
    ),
    "half a head that turns": (
        {"llama.rope.dimension_count": 4},
        "rope.dimension_count = 4 should be 8, all of a head",
    ),
    "wide keys": (
        {"llama.attention.key_length": 8, "llama.attention.value_length": 4},
        "has keys of 8 numbers but values of 4",
    ),
    "no vocabulary": ({"tokenizer.ggml.tokens": None}, "it holds no vocabulary"),
    "another vocabulary": (
        {"tokenizer.ggml.model": "bert"},
        "of the kind 'bert', which is not read; known: gpt2, llama",
    ),
    "another splitting": (
        {"tokenizer.ggml.pre": "by-the-moon"},
        "in the way 'by-the-moon', which is not known here; known: .*gpt-2.*smollm",
    ),
}


@pytest.mark.parametrize(("change", "sentence"), BAD_METADATA.values(), ids=BAD_METADATA)
def test_metadata_that_makes_no_model_is_refused_with_the_reason(
    tmp_path: Path, change: dict[str, Any], sentence: str
) -> None:
    """Metadata that makes no model is refused, with the reason."""
    metadata = LLAMA | byte_level() | change
    architecture = metadata.pop("general.architecture", "llama")
    metadata = {name: value for name, value in metadata.items() if value is not None}
    tensors = {
        name: stored(neighbours_first(numbers) if is_permuted(name) else numbers)
        for name, numbers in llama_weights().items()
    }
    path = write(tmp_path / "bad.gguf", architecture, metadata, tensors)
    with pytest.raises(CheckpointError, match=sentence) as caught:
        read(path)
    assert str(path) in str(caught.value)


def _patched(name: str, at: int, value: bytes) -> Callable[[bytes], bytes]:
    """Overwrite bytes of a tensor's entry, counted from the end of its name."""

    def patch(content: bytes) -> bytes:
        begin = content.index(text(name)) + len(text(name)) + at
        return content[:begin] + value + content[begin + len(value) :]

    return patch


# After the name of a matrix: rank (4 bytes), two sizes (8 each), kind (4), first byte (8).
BAD_TENSORS: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "a kind without a name": (
        _patched("blk.1.ffn_up.weight", 20, struct.pack("<I", 99)),
        "'blk.1.ffn_up.weight' is stored as number 99, which is not read",
    ),
    "a kind that cannot be read": (
        _patched("blk.1.ffn_up.weight", 20, struct.pack("<I", KINDS.Q8_K)),
        "'blk.1.ffn_up.weight' is stored as Q8_K, which is not read; choose a file in another",
    ),
    "whole numbers": (
        _patched("blk.1.ffn_up.weight", 20, struct.pack("<I", KINDS.I8)),
        "is stored as I8, which is not read",
    ),
    "rows that are no whole blocks": (
        _patched("blk.1.ffn_up.weight", 4, struct.pack("<QQI", 33, 64, KINDS.Q8_0)),
        "'blk.1.ffn_up.weight' has rows of 33 numbers, stored in blocks of 32",
    ),
    "a place beyond the end": (
        _patched("blk.1.ffn_up.weight", 24, struct.pack("<Q", 1 << 40)),
        "is cut off: 'blk.1.ffn_up.weight' takes 8192 bytes",
    ),
    "sizes beyond the end": (
        _patched("blk.1.ffn_up.weight", 4, struct.pack("<QQ", 1 << 62, 1 << 62)),
        "is cut off: 'blk.1.ffn_up.weight' takes",
    ),
    "another name for the embedding": (
        lambda content: content.replace(b"token_embd.weight", b"token_embd.wright"),
        "lacks the tensor 'token_embd.weight'",
    ),
}


@pytest.mark.parametrize(("damage", "sentence"), BAD_TENSORS.values(), ids=BAD_TENSORS)
def test_a_damaged_tensor_entry_is_refused_with_the_reason(
    tmp_path: Path, damage: Callable[[bytes], bytes], sentence: str
) -> None:
    """A damaged tensor entry is refused, with the reason."""
    path = write_llama(tmp_path / "bad.gguf")
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(CheckpointError, match=sentence) as caught:
        read(path)
    assert str(path) in str(caught.value)


def _without_a_matrix(weights: dict[str, NDArray[np.float32]]) -> None:
    del weights["blk.1.attn_k.weight"]


def _one_too_many(weights: dict[str, NDArray[np.float32]]) -> None:
    weights["blk.2.ffn_up.weight"] = np.ones((64, 32), np.float32)


def _misshaped(weights: dict[str, NDArray[np.float32]]) -> None:
    weights["blk.1.ffn_norm.weight"] = np.ones(31, np.float32)


def _not_finite(weights: dict[str, NDArray[np.float32]]) -> None:
    weights["blk.1.attn_v.weight"][0, 0] = np.nan


def _bad_last_norm(weights: dict[str, NDArray[np.float32]]) -> None:
    weights["output_norm.weight"][0] = np.inf


WRONG_WEIGHTS: list[tuple[Callable[[dict[str, NDArray[np.float32]]], None], str]] = [
    (_without_a_matrix, r"lacks the tensor 'blk\.1\.attn_k\.weight'"),
    (_one_too_many, r"holds 'blk\.2\.ffn_up\.weight', which a model of these settings has no"),
    (
        _misshaped,
        r"'blk\.1\.ffn_norm\.weight' has the shape \[31\], which does not give the \[32\]",
    ),
    (_not_finite, r"toy\.gguf: 'blk\.1\.attn_v\.weight' holds values that are not finite"),
    (_bad_last_norm, r"toy\.gguf: 'output_norm\.weight' holds values that are not finite"),
]


@pytest.mark.parametrize(("damage", "sentence"), WRONG_WEIGHTS)
def test_a_wrong_tensor_is_named_as_the_file_names_it(
    tmp_path: Path, damage: Callable[[dict[str, NDArray[np.float32]]], None], sentence: str
) -> None:
    """Not by the name that other files have for it."""
    weights = llama_weights()
    damage(weights)
    with pytest.raises(CheckpointError, match=sentence):
        load(write_llama(tmp_path / "toy.gguf", weights=weights))


@pytest.mark.parametrize("architecture", FAMILIES)
def test_every_tensor_has_one_name_in_a_file(architecture: str) -> None:
    """And is called by it, whatever the family calls it elsewhere."""
    family = FAMILIES[architecture]
    for module in family.modules:
        name = f"{module.replace('.layer.', '.17.')}.weight"
        assert _own_name(_names(name, family)[1], family) == name
    assert _own_name("no.such.weight", family) == "no.such.weight"


def test_heads_that_cannot_share_keys_evenly_are_told_in_the_files_words(tmp_path: Path) -> None:
    path = write_llama(tmp_path / "toy.gguf", metadata=LLAMA | {"llama.attention.head_count_kv": 3})
    with pytest.raises(CheckpointError, match=r"head_count_kv = 3 does not divide the 4 heads"):
        load(path)


def test_a_file_cut_off_anywhere_is_refused(tmp_path: Path) -> None:
    """At every byte of the header and of the last tensor, and at many in between."""
    path = write_llama(tmp_path / "toy.gguf")
    content = path.read_bytes()
    header_end, end = content.rindex(b"ffn_down.weight") + 80, len(content)
    last = llama_weights()["blk.1.ffn_down.weight"].nbytes
    cuts = {*range(header_end), *range(header_end, end, 997), *range(end - last, end, 61), end - 1}
    for cut in sorted(cuts, reverse=True):
        os.truncate(path, cut)
        with pytest.raises(CheckpointError):
            read(path)


def _sentence(path: Path) -> str | None:
    """Open a model and read a text with it; what was said where that failed."""
    try:
        loaded = load(path)
        token_ids = loaded.tokenizer.encode("the ll\ud800 a\0")
        with torch.no_grad():
            loaded.model(torch.tensor(token_ids))
    except EngineError as error:
        return str(error)
    return None


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole file, not to be changed; read once, so that later reads import nothing more."""
    path = write_llama(tmp_path_factory.mktemp("gguf") / "toy.gguf", KINDS.Q8_0)
    assert _sentence(path) is None
    return path


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_flipped_bytes_give_a_model_or_a_sentence(
    toy: Path, tmp_path: Path, data: st.DataObject
) -> None:
    """Never a crash, a hang, or memory out of proportion."""
    content = bytearray(toy.read_bytes())
    header_end = content.rindex(b"ffn_down.weight") + 60
    places = st.integers(4, header_end)
    for place in data.draw(st.lists(places, min_size=1, max_size=4)):
        content[place] = data.draw(st.integers(0, 255))
    path = tmp_path / "flipped.gguf"
    path.write_bytes(content)
    began = time.process_time()
    tracemalloc.start()
    sentence = _sentence(path)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert sentence is None or (str(path) in sentence and "\n" not in sentence)
    assert most < 50 * len(content) + 5_000_000
    assert time.process_time() - began < 5


@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(rest=st.binary(max_size=400))
def test_any_bytes_after_the_letters_give_a_sentence(tmp_path: Path, rest: bytes) -> None:
    """Any bytes after the letters give a sentence."""
    path = tmp_path / "any.gguf"
    path.write_bytes(b"GGUF\x03\0\0\0" + rest)
    assert is_gguf(path)
    with pytest.raises(CheckpointError):
        read(path)


def test_half_of_a_head_is_told_apart(tmp_path: Path) -> None:
    """The toy heads are wide enough that a wrong order of rows would show."""
    assert HEAD_DIM > 4
    rows = np.arange(32)[:, None] * np.ones((1, 32))
    assert not np.array_equal(neighbours_first(rows), rows)
    weights = llama_weights() | {"blk.0.attn_q.weight": rows.astype(np.float32)}
    raw = read(write_llama(tmp_path / "toy.gguf", weights=weights))
    found = raw.tensors["model.layers.0.self_attn.q_proj.weight"]
    assert found[:, 0].tolist() == list(range(32))
