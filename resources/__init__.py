"""What ships beside the code: models, corpus, prompts. No heavy imports here."""

from dataclasses import dataclass
from pathlib import Path

_HERE = Path(__file__).parent


@dataclass(frozen=True)
class Pair:
    """Two runs to compare, as `prompts/pairs.toml` explains; None or "" is as on screen."""

    title: str
    a: str | None = None
    b: str | None = None
    way: str = "automatic"
    mask: str = ""
    window: int = 0
    positions: bool = True


@dataclass(frozen=True)
class CacheFamily:
    """A well-known model and what its cache is made of, as `cache_families.toml` explains."""

    name: str
    design: str
    n_layer: int
    max_seq_len: int
    source: str
    n_kv_head: int = 0
    head_dim: int = 0
    latent: int = 0
    windowed: int = 0
    window: int = 0
    note: str = ""


def model_folders() -> list[Path]:
    """The bundled models, the one to open first at the front."""
    folders = {path.parent for path in (_HERE / "models").glob("*/config.json")}
    return sorted(folders, key=lambda folder: (folder.name != "shakespeare", folder.name))


def default_prompt() -> str:
    """The text on screen at the very first start."""
    return (_HERE / "prompts" / "default.txt").read_text(encoding="utf-8")


def pairs() -> tuple[Pair, ...]:
    """The runs that are offered to be compared."""
    import tomllib  # noqa: PLC0415 - after the first paint

    data = tomllib.loads((_HERE / "prompts" / "pairs.toml").read_text(encoding="utf-8"))
    return tuple(Pair(**row) for row in data["pair"])


def cache_families() -> tuple[CacheFamily, ...]:
    """Well-known models, from their published configurations."""
    import tomllib  # noqa: PLC0415 - after the first paint

    data = tomllib.loads((_HERE / "cache_families.toml").read_text(encoding="utf-8"))
    return tuple(CacheFamily(**row) for row in data["family"])
