"""Folders as Hugging Face's library writes them, for tests: of a golden, or with damage."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file
from torch import Tensor

from engine.tokenizers import ByteBpe

GOLDENS = Path(__file__).parents[1] / "goldens"

Arrays = dict[str, NDArray[Any]]

_RESULTS = ("config", "made_with", "token_ids", "logits", "attentions")


def _is_whole_model(path: Path) -> bool:
    """Whether the file holds a model's weights beside its results."""
    with np.load(path) as file:
        return set(_RESULTS) < set(file.files)


NAMES = tuple(sorted(path.stem for path in GOLDENS.glob("*.npz") if _is_whole_model(path)))


def read_golden(name: str) -> tuple[Arrays, dict[str, Tensor]]:
    """What the library computed (and from which config), and the weights it computed with."""
    with np.load(GOLDENS / f"{name}.npz") as file:
        arrays = {key: file[key] for key in file.files}
    results = {key: arrays.pop(key) for key in _RESULTS}
    return results, {key: torch.from_numpy(array) for key, array in arrays.items()}


def write_folder(folder: Path, config: str, weights: dict[str, Tensor]) -> Path:
    """A folder with these weights in one file, and a vocabulary of the 256 bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(config, encoding="utf-8")
    save_file(weights, folder / "model.safetensors")
    ByteBpe.train([], 256).save(folder)
    return folder


def write_golden(folder: Path, name: str) -> Arrays:
    """The folder of a golden's model; what the library computed with it."""
    golden, weights = read_golden(name)
    write_folder(folder, str(golden["config"]), weights)
    return golden
