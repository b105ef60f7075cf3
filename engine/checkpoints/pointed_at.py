"""From what a user points at to the model that is meant, or to a sentence on why there is none.

People drop the file of the weights where its folder is wanted, or the folder of the one GGUF file.
"""

from pathlib import Path

from engine.checkpoints.gguf_parts import one_of_each
from engine.checkpoints.hf_folder import CONFIG_FILE
from engine.checkpoints.lfs_pointer import NOT_FETCHED, is_lfs_pointer
from engine.checkpoints.nanogpt import CHECKPOINT_FILE
from engine.errors import CheckpointError

_GGUF = ".gguf"
_OF_A_FOLDER = (".safetensors", ".json")
_PARTS = (".safetensors", ".json", ".txt", ".model", ".gguf", ".pt", ".pkl")
_PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl")
_WHAT = "a folder that holds a model's config.json, a GGUF file, or nanoGPT's ckpt.pt"
_ADAPTER_FILE = "adapter_config.json"
_MOST_NAMED = 3


def meant(path: Path) -> Path:
    """The folder of a file that is a part of one, the GGUF file that is alone in a folder, or it.

    Raises:
        CheckpointError: a folder holds several GGUF files and no other model, or what would be
            waited for without an end.
        OSError: it cannot be looked into.
    """
    if path.is_file():
        is_part = path.suffix.lower() in _OF_A_FOLDER and (path.parent / CONFIG_FILE).is_file()
        path = path.parent if is_part else path
    if path.is_dir():
        _check_files(path)
    if not path.is_dir() or any((path / name).is_file() for name in (CONFIG_FILE, CHECKPOINT_FILE)):
        return path
    names = one_of_each(
        each.name for each in path.iterdir() if each.suffix.lower() == _GGUF and each.is_file()
    )
    if len(names) > 1:
        more = ", …" if len(names) > _MOST_NAMED else ""
        raise CheckpointError(
            f"{path} holds {len(names)} models, {', '.join(names[:_MOST_NAMED])}{more}; open one "
            "of these files."
        )
    return path / names[0] if names else path


def _check_files(folder: Path) -> None:
    """See that whatever may belong to a model has an end; a pipe or a socket has none."""
    for each in folder.iterdir():
        is_part = each.suffix.lower() in _PARTS and each.exists()
        if is_part and not (each.is_file() or each.is_dir()):
            raise CheckpointError(
                f"{folder} cannot be opened: {each.name} in it is a pipe, a socket or a device, "
                "and no file."
            )


def no_model(path: Path) -> CheckpointError:
    """What to raise about a path that no reader recognises."""
    try:
        return CheckpointError(f"{path} {_why_not(path)}")
    except PermissionError as error:
        return CheckpointError(f"{path} cannot be read: {error.strerror}.")
    except (OSError, ValueError):  # too long for a path, or not allowed in one
        return CheckpointError(f"{path} does not exist; open {_WHAT}.")


def _why_not_folder(folder: Path) -> str:
    if (folder / _ADAPTER_FILE).is_file():
        return (
            f"holds only an adapter ({_ADAPTER_FILE}), which changes another model's weights; "
            "open a model that it was merged into."
        )
    pickled = sorted(each.name for each in folder.iterdir() if each.suffix in _PICKLES)
    if pickled:
        return (
            f"holds no {CONFIG_FILE}, and weights in {pickled[0]} only, a pickle, which may "
            "run programs when it is opened; look for the model as safetensors or GGUF."
        )
    return f"holds no model; open {_WHAT}."


def _why_not(path: Path) -> str:
    suffix = path.suffix.lower()
    if path.is_dir():
        return _why_not_folder(path)
    if not path.exists():
        return f"does not exist; open {_WHAT}."
    if is_lfs_pointer(path):
        return NOT_FETCHED
    if path.is_file() and suffix == _GGUF:
        return (
            "is no GGUF file, which begins with the letters GGUF; it may not have been copied or "
            "downloaded whole."
        )
    if path.is_file() and suffix in _PICKLES:
        return (
            "is no checkpoint of nanoGPT's, and others of this kind are not opened because they "
            "may run programs; look for the model as safetensors or GGUF."
        )
    return f"is no model; open {_WHAT}."
