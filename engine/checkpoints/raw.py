"""What a reader of foreign files hands over: settings and weights, named as Hugging Face does."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from engine.tokenizers import Tokenizer


@dataclass(frozen=True)
class RawCheckpoint:
    """A model as it was found; `engine.architectures` knows what its family means by it.

    `tensors` may be lazy: each is asked for by its name when it is needed, perhaps twice, and
    comes in the file's own dtype; `has_own_memory` says that none of them is a view of the file.
    `name_in_file` is what the file itself calls one of them, or
    would call it if it had it.
    """

    settings: dict[str, Any]  # as config.json names them, "model_type" among them
    tensors: Mapping[str, Tensor]
    tokenizer: Tokenizer
    name: str
    path: Path
    name_in_file: Callable[[str], str] = str
    has_own_memory: bool = False
