"""What the user asks about the cost of context, and what was measured last: frozen values."""

from dataclasses import dataclass, field
from typing import Generic, Literal, TypeVar

from engine.cost.measurements import BothWays, Lab, OneByOne
from engine.reading import Reading

Experiment = Literal["both ways", "one by one", "sweep"]
CacheFormat = Literal["float32", "16 bit", "int8"]

_Found = TypeVar("_Found")


@dataclass(frozen=True, eq=False)
class Measured(Generic[_Found]):
    """What was found out so far, and the reading whose text or model it was found out on."""

    reading: Reading
    found: _Found


@dataclass(frozen=True)
class Costs:
    """Choices first; then what runs and what was found, which `gui.questions.costing` changes."""

    n_steps: int = 32  # to decode both ways
    longest: int = 4096  # tokens of the sweep
    length: int = 0  # whose parts the lab lists; 0: the longest
    cache_format: CacheFormat = "float32"  # of the caches under other designs
    running: Experiment | Literal[""] = ""
    is_resting: bool = False  # whether what runs waits until nothing else is wanted
    obstacles: dict[Experiment, str] = field(default_factory=dict)  # why one could not be made
    both_ways: Measured[BothWays] | None = None
    one_by_one: Measured[OneByOne] | None = None
    lab: Measured[Lab] | None = None
