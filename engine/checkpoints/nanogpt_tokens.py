"""The vocabulary of a nanoGPT checkpoint: `meta.pkl` for characters, else GPT-2's own.

nanoGPT keeps `meta.pkl` with the data (data/NAME/meta.pkl) and checkpoints in a folder beside
data; whoever passes a model on puts it next to the checkpoint. It is read, never run.
"""

from pathlib import Path
from typing import Any, TypeGuard

from engine.checkpoints.plain_pickle import MOST_BYTES, read_pickle, shown
from engine.errors import CheckpointError, TokenizerError
from engine.tokenizers import Tokenizer
from engine.tokenizers.hugging_face import read_vocabulary
from engine.tokenizers.known_characters import KnownCharacters

META_FILE = "meta.pkl"

# GPT-2's 50,257 tokens, and those rounded up to a multiple of 64 as nanoGPT does by itself.
_GPT_2_SIZES = (50257, 50304)
_ROUNDED_TO = 64
_LONGEST_NAME = 60  # of a dataset; few disks take more than 255 bytes


def vocabulary_of(checkpoint: Path, config: object, vocab_size: int) -> Tokenizer:
    """The tokenizer that belongs to a checkpoint; `config` is what it says of its training.

    Raises:
        CheckpointError: there is none, or it is damaged, or of another size than the model.
    """
    folder = checkpoint.parent
    places = _places(folder, config)
    found = next((place for place in places if place.is_file()), None)
    if found is not None:
        return _characters(found, vocab_size)
    if (folder / "tokenizer.json").exists() or (folder / "vocab.json").exists():
        return _tokens(folder, vocab_size)
    if vocab_size in _GPT_2_SIZES:
        raise CheckpointError(
            f"{checkpoint} was trained on GPT-2's tokens, which are not beside it; put GPT-2's "
            f"tokenizer.json, or its vocab.json and merges.txt, into {folder}."
        )
    raise CheckpointError(
        f"{checkpoint} has a vocabulary of {vocab_size}, but no {META_FILE} that says what of "
        f"(looked for {', '.join(map(str, places))}); put it into {folder}."
    )


def _places(folder: Path, config: object) -> list[Path]:
    """Where the file may be: beside the checkpoint, or with the data that it was trained on."""
    places = [folder / META_FILE]
    dataset = config.get("dataset") if isinstance(config, dict) else None
    if _is_name(dataset):
        places += [each / "data" / dataset / META_FILE for each in (folder.parent, folder)]
    return places


def _is_name(dataset: object) -> TypeGuard[str]:
    """Whether it names one folder, and none elsewhere."""
    if not isinstance(dataset, str) or not dataset.isprintable() or len(dataset) > _LONGEST_NAME:
        return False
    return dataset not in ("", ".", "..") and Path(dataset).name == dataset


def _tokens(folder: Path, vocab_size: int) -> Tokenizer:
    try:
        tokenizer = read_vocabulary(folder)
    except TokenizerError as error:
        raise CheckpointError(str(error)) from error
    if not tokenizer.vocab_size <= vocab_size < tokenizer.vocab_size + _ROUNDED_TO:
        raise CheckpointError(
            f"{folder}: the tokenizer has {tokenizer.vocab_size} tokens, the model {vocab_size}; "
            "they do not belong together."
        )
    return tokenizer


def _characters(path: Path, vocab_size: int) -> KnownCharacters:
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}.") from error
    meta = read_pickle(data, path)
    if not isinstance(meta, dict):
        raise CheckpointError(f"{path} holds no dictionary; one with 'itos' and 'stoi' is right.")
    itos, stoi = (_table(meta, name, path) for name in ("itos", "stoi"))
    characters = [_character(itos, i, path) for i in range(len(itos))]
    for i, character in enumerate(characters):
        if type(stoi.get(character)) is not int or stoi[character] != i:
            raise CheckpointError(
                f"{path} contradicts itself: itos[{i}] is {character!r}, but stoi[{character!r}] "
                f"is {shown(stoi.get(character))}."
            )
    for sizes, what in (
        (len(stoi), "stoi has {} entries"),
        (meta.get("vocab_size", len(itos)), "vocab_size is {}"),
        (vocab_size, "the model has a vocabulary of {}; they do not belong together"),
    ):
        if sizes != len(itos):
            raise CheckpointError(
                f"{path}: itos has {len(itos)} entries, but {what.format(shown(sizes))}."
            )
    try:
        return KnownCharacters(characters)
    except TokenizerError as error:
        raise CheckpointError(f"{path}: {error}") from error


def _table(meta: dict[Any, Any], name: str, path: Path) -> dict[Any, Any]:
    table = meta.get(name)
    if not isinstance(table, dict):
        raise CheckpointError(
            f"{path} lacks {name!r}; a character vocabulary has 'itos' and 'stoi'."
        )
    return table


def _character(itos: dict[Any, Any], i: int, path: Path) -> str:
    if i not in itos:
        raise CheckpointError(
            f"{path}: itos has {len(itos)} entries but none for {i}; ids should run on from 0."
        )
    character = itos[i]
    if not isinstance(character, str) or len(character) != 1:
        raise CheckpointError(
            f"{path}: itos[{i}] is {shown(character)}; each entry should be one character."
        )
    return character
