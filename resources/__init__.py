"""What ships beside the code: models, corpus, prompts. No heavy imports here."""

from pathlib import Path

_HERE = Path(__file__).parent


def model_folders() -> list[Path]:
    """The bundled models, the one to open first at the front."""
    folders = {path.parent for path in (_HERE / "models").glob("*/config.json")}
    return sorted(folders, key=lambda folder: (folder.name != "shakespeare", folder.name))


def default_prompt() -> str:
    """The text on screen at the very first start."""
    return (_HERE / "prompts" / "default.txt").read_text(encoding="utf-8")
