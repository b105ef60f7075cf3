"""How a model's matrices can be held, and where: the choices and what came of them, without torch.

Only matrices are held in another format: those of attention and the MLP, and the output's, with
the embedding where both are one. Activations, scores, the KV cache and all records stay float32.
"""

from dataclasses import dataclass
from typing import Literal, get_args

FormatName = Literal["float32", "bfloat16", "float16", "int8"]
DeviceName = Literal["cpu", "cuda", "mps"]
FORMATS: tuple[FormatName, ...] = get_args(FormatName)
DEVICES: tuple[DeviceName, ...] = get_args(DeviceName)

WEIGHT_BYTES: dict[FormatName, int] = {"float32": 4, "bfloat16": 2, "float16": 2, "int8": 1}
DEVICE_TITLES: dict[DeviceName, str] = {
    "cpu": "the processor",
    "cuda": "a CUDA device",
    "mps": "Apple's graphics processor",
}


FORMAT_SENTENCES: dict[FormatName | Literal["automatic"], str] = {
    "automatic": (
        "Use float32 for small models, float16 for large ones where that is not slower here, and a "
        "smaller one where there is no room."
    ),
    "float32": "The weights as exact as torch computes: 4 bytes each.",
    "bfloat16": "Holds 8 bits of precision, exact for files that hold no more: 2 bytes each.",
    "float16": "Holds 11 bits of precision: 2 bytes each, and the fastest that is nearly exact.",
    "int8": "A whole number from −127 to 127 and a scale for each row: 1 byte each, coarse.",
}


@dataclass(frozen=True)
class FormatChoice:
    """What the user chose; "automatic" leaves the format to `engine.matrices.decide`.

    And to `engine.weight_room`, where what that says does not fit.
    """

    number_format: FormatName | Literal["automatic"] = "float32"
    device: DeviceName = "cpu"


FLOAT32 = FormatChoice()


@dataclass(frozen=True)
class Held:
    """How a loaded model is held."""

    number_format: FormatName = "float32"
    device: DeviceName = "cpu"
    how: str = ""  # by which arithmetic, where there is more than one
    reason: str = ""  # why this format
    n_bytes: int = 0  # of all weights, as they are held
    is_for_room: bool = False  # whether another one would have been taken, had there been room

    @property
    def title(self) -> str:
        """The format, with its arithmetic where that is worth telling."""
        return f"{self.number_format} ({self.how})" if self.how else self.number_format


@dataclass(frozen=True)
class Consequence:
    """A text as the format in force predicts it, against float32.

    The largest difference in a probability is that of `token_id` behind `position`.
    """

    n_tokens: int
    difference: float  # |probability − probability in float32|, over all positions and tokens
    position: int
    token_id: int
    probability: float
    in_float32: float
    n_top_changed: int  # positions whose most probable token is another one in float32
    loss: float  # nats per token; NaN for a text of one token
    loss_in_float32: float
