"""Whether the kind of a tokenizer.json is read, told by its beginning, without its vocabulary.

A vocabulary takes a tenth of a second to parse, and a list of models many of those. The
`tokenizers` library writes it last; a file that is laid out in another way is left to the opening.
"""

import re
from pathlib import Path
from typing import Any

from engine.checkpoints.lfs_pointer import NOT_FETCHED, is_lfs_pointer
from engine.errors import CheckpointError, TokenizerError
from engine.library.files import parse_json, read_beginning

_MOST = 4 << 20  # bytes; Gemma 3 has 1.2 million of added tokens before its vocabulary
_VOCABULARY = re.compile(rb'"vocab"\s*:')

Json = dict[str, Any]


def check_tokenizer(path: Path) -> None:
    """See that what a tokenizer.json begins with is of a kind that is read.

    Raises:
        CheckpointError: it is not, or the file cannot be read.
    """
    settings = _beginning(path)
    if settings is None:
        return
    from engine.tokenizers.hugging_face import check_kind  # noqa: PLC0415 - loads a library

    try:
        check_kind(settings)
    except TokenizerError as error:
        raise CheckpointError(f"{path.name}: {error}") from error
    except RecursionError:
        return


def _beginning(path: Path) -> Json | None:
    """What a file says before its vocabulary, by name; None if it cannot be told from the rest.

    Raises:
        CheckpointError: the file cannot be read, or is a short one that is not JSON.
    """
    data = read_beginning(path, _MOST)
    found = _VOCABULARY.search(data)
    if found is None:
        if is_lfs_pointer(path):
            raise CheckpointError(f"{path.name} {NOT_FETCHED}")
        return parse_json(data, path.name) if len(data) < _MOST else None
    try:
        return parse_json(data[: found.start()] + b'"vocab": {}}}', path.name)
    except CheckpointError:
        return None
