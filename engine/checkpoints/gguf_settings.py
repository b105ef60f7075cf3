"""From a GGUF file's metadata to the settings that config.json would have held."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.checkpoints.gguf_families import FAMILIES, REQUIRED, Family
from engine.checkpoints.gguf_header import Header
from engine.errors import CheckpointError, quoted

ROPE_FACTORS = ("rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight")

# Llama 3 stretches slow rotations by one factor and leaves fast ones alone; a file holds only
# the outcome for each pair. These are the bounds of every model that was published so.
_LLAMA_3 = {
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}

_ATTENTION_FACTOR = "rope.scaling.attn_factor"
_YARN = {"rope.scaling.yarn_beta_fast": "beta_fast", "rope.scaling.yarn_beta_slow": "beta_slow"}

_TOKENIZER_SETTINGS = {
    "tokenizer.ggml.bos_token_id": "bos_token_id",
    "tokenizer.ggml.eos_token_id": "eos_token_id",
    "tokenizer.ggml.add_bos_token": "add_bos_token",
}

Numbers = Callable[[str], NDArray[np.float32]]


def family_of(header: Header, path: Path) -> tuple[str, Family]:
    """The name of the file's architecture, and its family.

    Raises:
        CheckpointError: the file holds no whole model, or one of an unknown family.
    """
    metadata = header.metadata
    kind = metadata.get("general.type", "model")
    if kind != "model":
        raise CheckpointError(f"{path} holds no model but what its header calls {kind!r}.")
    name = metadata.get("general.architecture")
    if not isinstance(name, str) or name not in FAMILIES:
        raise CheckpointError(
            f"{path} is of the architecture {name!r}, which is not known here; "
            f"known: {', '.join(FAMILIES)}."
        )
    if metadata.get(f"{name}.expert_count", 0) != 0:
        raise CheckpointError(
            f"{path} is a mixture of {metadata[f'{name}.expert_count']} experts; "
            "only models that use all their weights for every token are read."
        )
    return name, FAMILIES[name]


def settings_of(
    header: Header, architecture: str, family: Family, numbers: Numbers, path: Path
) -> dict[str, Any]:
    """The settings by Hugging Face's names; `numbers` reads a tensor of the file by its name.

    Raises:
        CheckpointError: a setting is missing, of a wrong kind, or differs from layer to layer.
    """
    embedding = header.tensors.get("token_embd.weight")
    if embedding is None:
        raise CheckpointError(f"{path} lacks the tensor 'token_embd.weight'.")
    own = _Own(header, architecture, path)
    for name in REQUIRED:
        own.whole(name)
    found = {theirs: own.get(name) for name, theirs in family.settings.items()}
    settings = {
        "model_type": family.model_type,
        **family.constants,
        **{name: value for name, value in found.items() if value is not None},
        "vocab_size": embedding.shape[0],
        "tie_word_embeddings": "output.weight" not in header.tensors,
        "attention_bias": "blk.0.attn_q.bias" in header.tensors,
        "mlp_bias": "blk.0.ffn_up.bias" in header.tensors,
    }
    for name, theirs in _TOKENIZER_SETTINGS.items():
        if isinstance(header.metadata.get(name), int):
            settings[theirs] = header.metadata[name]
    n_head = _n_head(own)
    width_per_head = own.whole("embedding_length") // n_head
    head_dim = own.whole("attention.key_length", width_per_head)
    if own.whole("attention.value_length", head_dim) != head_dim:
        raise CheckpointError(
            f"{path} has keys of {head_dim} numbers but values of "
            f"{own.whole('attention.value_length')}; only the same size is read."
        )
    if family.scaled_by_width_at is not None:
        big = own.whole("block_count") == family.scaled_by_width_at
        settings["query_pre_attn_scalar"] = width_per_head if big else head_dim
    if "head_dim" in family.settings.values():
        settings["head_dim"] = head_dim
    n_rotated = own.whole("rope.dimension_count", head_dim)
    if n_rotated != head_dim and not family.partly_rotated:
        raise own.wrong("rope.dimension_count", n_rotated, f"should be {head_dim}, all of a head")
    if family.partly_rotated:
        settings["partial_rotary_factor"] = n_rotated / head_dim
    scaling = _rope_scaling(header, own, n_rotated, numbers)
    return settings if scaling is None else {**settings, "rope_scaling": scaling}


def _n_head(own: "_Own") -> int:
    n_head = own.whole("attention.head_count")
    n_kv_head = own.whole("attention.head_count_kv", n_head)
    if n_head % n_kv_head:
        should = f"does not divide the {n_head} heads evenly"
        raise own.wrong("attention.head_count_kv", n_kv_head, should)
    return n_head


class _Own:
    """Asks for a file's settings under the name of its own architecture."""

    def __init__(self, header: Header, architecture: str, path: Path) -> None:
        self._metadata = header.metadata
        self._architecture = architecture
        self.path = path

    def get(self, name: str) -> Any:  # noqa: ANN401 - metadata is of any kind
        """A setting, None where there is none; a list that repeats one number is that number."""
        value = self._metadata.get(f"{self._architecture}.{name}")
        if isinstance(value, np.ndarray):
            different = sorted(set(value.tolist()))
            if len(different) != 1:
                raise self.wrong(name, different, "is not the same number in every layer")
            return different[0]
        return value

    def whole(self, name: str, default: int | None = None) -> int:
        """A size, 1 or more."""
        value = self.get(name)
        if value is None and default is not None:
            return default
        if type(value) is not int or value < 1:
            raise self.wrong(name, value, "should be a whole number, 1 or more")
        return value

    def number(self, name: str, default: float | None = None) -> float:
        """A positive and finite number."""
        value = self.get(name)
        if value is None and default is not None:
            return default
        if type(value) not in (int, float) or not 0 < value < math.inf:
            raise self.wrong(name, value, "should be a positive number")
        return float(value)

    def wrong(self, name: str, value: object, should: str) -> CheckpointError:
        """What to raise about a setting."""
        named = f"{self._architecture}.{name}"
        if value is None:
            return CheckpointError(f"{self.path} lacks {named!r} in its metadata.")
        return CheckpointError(f"{self.path}: {named} = {quoted(value)} {should}.")


def _rope_scaling(
    header: Header, own: _Own, n_rotated: int, numbers: Numbers
) -> dict[str, Any] | None:
    """How rotary positions are stretched, as config.json's `rope_scaling`; None if they are not."""
    if "rope_freqs.weight" in header.tensors:
        return _llama_3_scaling(own, n_rotated, numbers("rope_freqs.weight"))
    if "rope_factors_long.weight" in header.tensors:
        long, short = (numbers(f"rope_factors_{kind}.weight") for kind in ("long", "short"))
        factor = own.get(_ATTENTION_FACTOR)
        return {
            "rope_type": "longrope",
            "long_factor": long.tolist(),
            "short_factor": short.tolist(),
            **({} if factor is None else {"attention_factor": own.number(_ATTENTION_FACTOR)}),
        }
    kind = own.get("rope.scaling.type")
    if kind in (None, "none"):
        return None
    scaling = {"rope_type": kind, "factor": own.number("rope.scaling.factor", 1.0)}
    if own.get("rope.scaling.original_context_length") is not None:
        original = own.whole("rope.scaling.original_context_length")
        scaling["original_max_position_embeddings"] = original
    for theirs, ours in _YARN.items():
        if own.get(theirs) is not None:
            scaling[ours] = own.number(theirs)
    if own.get(_ATTENTION_FACTOR) not in (None, 1.0):
        # llama.cpp multiplies what Hugging Face's library computes by it.
        raise own.wrong(_ATTENTION_FACTOR, own.get(_ATTENTION_FACTOR), "should be 1, as is usual")
    return scaling


def _llama_3_scaling(
    own: _Own, n_rotated: int, factors: NDArray[np.float32]
) -> dict[str, Any] | None:
    """The settings that give these divisors of the rotations [D/2]."""
    if (factors == 1).all():
        return None
    theta = own.number("rope.freq_base", 10_000.0)
    factor = float(factors.max())
    turns = theta ** (-np.arange(0, n_rotated, 2) / n_rotated) / (2 * np.pi)  # per position
    low, high = _LLAMA_3["low_freq_factor"], _LLAMA_3["high_freq_factor"]
    turned = turns * _LLAMA_3["original_max_position_embeddings"]
    kept = np.clip((turned - low) / (high - low), 0, 1)
    expected = 1 / ((1 - kept) / factor + kept)
    if factors.shape != expected.shape or not np.allclose(factors, expected, rtol=1e-3):
        raise CheckpointError(
            f"{own.path} stretches its rotary positions in a way that is not known here "
            f"(rope_freqs.weight of up to {factor:g})."
        )
    return {"rope_type": "llama3", "factor": factor, **_LLAMA_3}
