"""How much memory a model's weights take in each number format, counted before any is read."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from engine import matrices
from engine.errors import CheckpointError
from engine.formats import FORMATS, WEIGHT_BYTES, DeviceName, FormatChoice, FormatName, Held
from engine.layers import TokenEmbedding
from engine.model import Transformer
from engine.sizes import bytes_said

_FLOAT = 4
# Copies in float32 of the matrix in hand: as it was read, and what rounding makes of it.
_IN_HAND: dict[FormatName, int] = {"float32": 1, "bfloat16": 2, "float16": 2, "int8": 3}
_BY_PRECISION: tuple[FormatName, ...] = ("float32", "float16", "bfloat16", "int8")


@dataclass(frozen=True)
class WeightRoom:
    """What reading a model takes at its fullest moment in each format, and what there is."""

    needed: dict[FormatName, int]
    there: int | None  # bytes; None where nobody can tell

    @classmethod
    def of(cls, model: Transformer, device: DeviceName, there: int | None) -> "WeightRoom":
        """For a model of which only shapes are there; another device's memory is not known."""
        needed = {name: peak_bytes(model, name, device) for name in FORMATS}
        return cls(needed, there if device == "cpu" else None)

    def fits(self, name: FormatName) -> bool:
        """Whether there is room in a format, as far as anybody can tell."""
        return self.there is None or self.needed[name] <= self.there

    def settle(self, held: Held, choice: FormatChoice, n_weights: int, path: Path) -> Held:
        """How the model is to be held: "automatic" gives way to the most exact one that fits.

        Raises:
            CheckpointError: there is no room, with the figures; `path` names the model.
        """
        wanted, there = held.number_format, self.there
        if there is None or self.fits(wanted):
            return held
        fitting = next((name for name in _BY_PRECISION if self.fits(name)), None)
        free = f"{bytes_said(there)} are available"
        if choice.number_format != "automatic":
            raise CheckpointError(
                f"{path} needs about {bytes_said(self.needed[wanted])} of memory as {wanted}, and "
                f"{free}; {self._advice(fitting)}."
            )
        if fitting is None:
            least = min(_BY_PRECISION, key=lambda name: self.needed[name])
            raise CheckpointError(
                f"{path} needs about {bytes_said(self.needed[least])} of memory even as {least}, "
                f"and {free}; choose a smaller model."
            )
        reason = (
            f"automatic: the most exact that fits; {wanted} needs about "
            f"{bytes_said(self.needed[wanted])} of memory, and {free}"
        )
        chosen = matrices.decide(replace(choice, number_format=fitting), n_weights)
        return replace(chosen, reason=reason, is_for_room=True)

    def _advice(self, fitting: FormatName | None) -> str:
        if fitting is None:
            return "no number format is small enough, so choose a smaller model"
        return f"as {fitting} it would need {bytes_said(self.needed[fitting])}"


def peak_bytes(model: Transformer, number_format: FormatName, device: DeviceName = "cpu") -> int:
    """Bytes at the fullest moment of reading: what is held by then, and the matrices in hand.

    Those are two: while one is brought into its format, `matrices.prepare` goes through as many
    numbers of others as it has.
    """
    held = peak = 0
    elsewhere: list[tuple[int, int]] = []  # numbers of what may be at hand still, and since then
    for n_bytes, n_in_hand, is_matrix in _modules(model, number_format, device):
        held += n_bytes
        n_both = n_in_hand + max((n_numbers for n_numbers, _since in elsewhere), default=0)
        peak = max(peak, held + _FLOAT * _IN_HAND[number_format] * n_both)
        if is_matrix:
            elsewhere = [(n, since + n_in_hand) for n, since in elsewhere if since <= n]
            elsewhere.append((n_in_hand, 0))
    return peak


def held_bytes(model: Transformer, number_format: FormatName, device: DeviceName = "cpu") -> int:
    """Bytes of all weights when they are read: what `matrices.bytes_of` finds then."""
    return sum(n_bytes for n_bytes, *_ in _modules(model, number_format, device))


def _modules(
    model: Transformer, number_format: FormatName, device: DeviceName
) -> Iterator[tuple[int, int, bool]]:
    """In the order of reading: bytes of each, numbers of its largest tensor, if it gets smaller."""
    is_packed = device == "cpu" and matrices.has_packed(number_format)
    for module in model.modules():
        tensors = [*module.parameters(recurse=False), *module.buffers(recurse=False)]
        n_bytes = sum(tensor.nbytes for tensor in tensors)
        largest = max((tensor.numel() for tensor in tensors), default=0)
        if is_matrix := matrices.becomes_smaller(module, model, number_format):
            weight = module.get_parameter("weight")
            is_table = isinstance(module, TokenEmbedding)
            copies = 2 if is_table and is_packed else 1  # one in fbgemm's order cannot be looked up
            scales = _FLOAT * weight.shape[0] if number_format == "int8" else 0
            n_bytes -= weight.nbytes
            n_bytes += copies * (WEIGHT_BYTES[number_format] * weight.numel() + scales)
        yield n_bytes, largest, is_matrix
