"""Which families can be opened, and what their settings call the sizes, without torch.

Tests hold this against `engine.architectures`, which knows how the families compute.
"""

from collections.abc import Mapping
from typing import Any

from engine.config import LARGEST
from engine.errors import CheckpointError

_LONGEST = 60  # characters of a name that a file gives

_SINCE_LLAMA = ("num_hidden_layers", "num_attention_heads")
# Hugging Face's `model_type` → the names of its number of layers and of heads.
FAMILIES: Mapping[str, tuple[str, str]] = {
    "gpt2": ("n_layer", "n_head"),
    "llama": _SINCE_LLAMA,
    "mistral": _SINCE_LLAMA,
    "qwen2": _SINCE_LLAMA,
    "qwen3": _SINCE_LLAMA,
    "gpt_neox": _SINCE_LLAMA,
    "gpt_neo": ("num_layers", "num_heads"),
    "olmo2": _SINCE_LLAMA,
    "phi3": _SINCE_LLAMA,
    "gemma": _SINCE_LLAMA,
    "gemma2": _SINCE_LLAMA,
    "gemma3_text": _SINCE_LLAMA,
}
ROPE_SCALINGS = ("default", "linear", "llama3", "yarn", "longrope")
_ALSO = ("su",)  # what longrope was called when Phi-3 was new


def layers_and_heads(settings: Mapping[str, Any]) -> tuple[int, int]:
    """The sizes that a config.json gives, whatever its family; 0 for what it does not."""
    known = FAMILIES.get(str(settings.get("model_type")))
    for names in [known] if known else dict.fromkeys(FAMILIES.values()):
        n_layer, n_head = (size(settings.get(name)) for name in names)
        if n_layer and n_head:
            return n_layer, n_head
    return 0, 0


def size(value: object) -> int:
    """A size as a file gives it; 0 if it cannot be one."""
    return value if type(value) is int and 0 < value <= LARGEST else 0


def called(value: object) -> str:
    """A name as a file gives it, not longer than a name."""
    text = value if isinstance(value, str) else ""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def check_family(settings: Mapping[str, Any]) -> None:
    """See that there is such a family here, with positions that are computed here.

    Raises:
        CheckpointError: there is not; the known are named.
    """
    family = settings.get("model_type")
    if not isinstance(family, str) or family not in FAMILIES:
        raise CheckpointError(
            f"The family {called(family)!r} is not known here; known: {', '.join(FAMILIES)}."
        )
    rope = settings.get("rope_parameters") or settings.get("rope_scaling")
    if not isinstance(rope, Mapping):
        return
    kind = rope.get("rope_type", rope.get("type")) or "default"
    if kind not in (*ROPE_SCALINGS, *_ALSO):
        raise CheckpointError(
            f"The rope scaling {called(kind)!r} is not computed here; "
            f"known: {', '.join(ROPE_SCALINGS)}."
        )
