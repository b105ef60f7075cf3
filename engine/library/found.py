"""What a search tells: a model, a place that is looked into, or why one was not seen whole."""

from dataclasses import dataclass

from engine.formats import WEIGHT_BYTES, FormatName


@dataclass(frozen=True, kw_only=True)
class Description:
    """What the headers of one model say; 0 and "" stand for what they do not."""

    n_bytes: int  # of its weights, on disk
    architecture: str = ""
    n_layer: int = 0
    n_head: int = 0
    n_parameters: int = 0
    reason: str = ""  # why it cannot be opened, a sentence; "" if it can


@dataclass(frozen=True, kw_only=True)
class Found(Description):
    """One model on this computer. `path` is what to open."""

    name: str
    path: str
    place: str  # the title of the place where it was found

    @property
    def is_readable(self) -> bool:
        """Whether its headers promise that it can be opened."""
        return not self.reason

    def needed_bytes(self, number_format: FormatName) -> int:
        """What its weights take in memory in a format; 0 where that is not known.

        Roughly: embeddings of their own and norms stay float32 in every format, which opening
        counts before it reads any (`engine.weight_room`).
        """
        return WEIGHT_BYTES[number_format] * self.n_parameters


@dataclass(frozen=True)
class Looking:
    """The search has come to the place with this title, after `n_done` of `n_places`."""

    place: str
    n_done: int
    n_places: int


@dataclass(frozen=True)
class Note:
    """A place was not seen, or not seen whole, and why: one sentence."""

    sentence: str
