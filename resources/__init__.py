"""What ships beside the code: models, corpus, prompts. No heavy imports here."""

from dataclasses import dataclass, replace
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


def model_folder(name: str) -> Path:
    """One of the bundled models."""
    return _HERE / "models" / name


def long_passage() -> str:
    """A held-out passage that is longer than the small models were trained on."""
    text = (_HERE / "corpus" / "plays" / "macbeth.txt").read_text(encoding="utf-8")
    return text[5000:5800]


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
    first = ("shakespeare", "shakespeare-chars")
    return sorted(folders, key=lambda folder: (folder.name not in first, folder.name))


def default_prompt() -> str:
    """The text on screen at the very first start."""
    return (_HERE / "prompts" / "default.txt").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Example:
    """A prompt that shows something, as `prompts/examples.toml` has it."""

    title: str
    help: str
    text: str = ""  # "": that of the very first start


def examples() -> tuple[Example, ...]:
    """The prompts that are offered."""
    import tomllib  # noqa: PLC0415 - after the first paint

    data = tomllib.loads((_HERE / "prompts" / "examples.toml").read_text(encoding="utf-8"))
    rows = (Example(**row) for row in data["example"])
    return tuple(replace(row, text=row.text or default_prompt()) for row in rows)


def pairs() -> tuple[Pair, ...]:
    """The runs that are offered to be compared."""
    import tomllib  # noqa: PLC0415 - after the first paint

    data = tomllib.loads((_HERE / "prompts" / "pairs.toml").read_text(encoding="utf-8"))
    return tuple(Pair(**row) for row in data["pair"])


def plays() -> tuple[Path, tuple[str, ...]]:
    """The folder of the plays that bundled models learnt from, and the names of those held out."""
    corpus = _HERE / "corpus"
    return corpus / "plays", tuple((corpus / "held_out.txt").read_text("utf-8").split())


def cache_families() -> tuple[CacheFamily, ...]:
    """Well-known models, from their published configurations."""
    import tomllib  # noqa: PLC0415 - after the first paint

    data = tomllib.loads((_HERE / "cache_families.toml").read_text(encoding="utf-8"))
    return tuple(CacheFamily(**row) for row in data["family"])
