r"""What a panel shows as named columns, and these as a CSV or an NPZ file; no Qt.

Every number keeps the digits of its own precision. Tokens are given by id, as text (bytes that
are no UTF-8 as \xNN) and as their bytes in hexadecimal, which alone is exact: numpy drops NULs at
the end of a text.
"""

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Column: TypeAlias = NDArray[Any] | Sequence[str]
Facts: TypeAlias = Mapping[str, str | int | float | bool]


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of n rows under one name.

    A column is [n], or [n, m]: in a CSV the latter is m columns, named by `spread`.
    """

    name: str
    columns: Mapping[str, Column]
    spread: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """How many values there are."""
        return sum(np.size(column) for column in self.columns.values())


def token_columns(
    token_ids: Sequence[int] | NDArray[np.integer], tokens: Sequence[bytes], prefix: str = "token"
) -> dict[str, Column]:
    """The columns that say which tokens these are."""
    return {
        f"{prefix}_id": np.asarray(token_ids, np.int64),
        prefix: [token.decode("utf-8", "backslashreplace") for token in tokens],
        f"{prefix}_hex": [token.hex() for token in tokens],
    }


def vocabulary_columns(
    token_ids: NDArray[np.integer], vocabulary: Sequence[bytes], prefix: str
) -> dict[str, Column]:
    """The same for tokens of a vocabulary; an id beyond it has no text."""
    known = [vocabulary[i] if i < len(vocabulary) else b"" for i in token_ids.tolist()]
    return token_columns(token_ids, known, prefix)


def to_csv(facts: Facts, tables: Sequence[Table]) -> bytes:
    """The tables one after another, in UTF-8.

    Lines that begin with "# " come first: a fact each, its value as JSON. Before each table
    stands such a line with its name, and after it, where another follows, an empty one.
    Nothing is put before a text that a spreadsheet would take for a formula: what is in the
    file is exactly what the model was given and gave.
    """
    text = io.StringIO(newline="")
    for name, value in facts.items():
        text.write(f"# {name}: {json.dumps(value, ensure_ascii=False)}\r\n")
    writer = csv.writer(text)
    for at, table in enumerate(tables):
        text.write("\r\n" if at else "")
        text.write(f"# table: {json.dumps(table.name)}\r\n")
        columns = list(_flat(table))
        writer.writerow([name for name, _values in columns])
        writer.writerows(zip(*(values for _name, values in columns), strict=True))
    return text.getvalue().encode("utf-8", "backslashreplace")


def to_npz(facts: Facts, tables: Sequence[Table]) -> bytes:
    """Each column as an array named "table.column", and the facts as JSON in "stamp"."""
    arrays: dict[str, Any] = {
        f"{table.name}.{name}": np.asarray(column)
        if isinstance(column, np.ndarray)
        else np.array(column, np.str_)
        for table in tables
        for name, column in table.columns.items()
    }
    file = io.BytesIO()
    np.savez_compressed(file, stamp=np.array(json.dumps(facts)), **arrays)
    return file.getvalue()


def _flat(table: Table) -> Iterator[tuple[str, list[str]]]:
    """Each column of a CSV: its name, and its values as text."""
    for name, column in table.columns.items():
        if not isinstance(column, np.ndarray):
            yield name, list(column)
        elif column.ndim == 1:
            yield name, _written(column)
        else:
            parts = column.T
            for label, part in zip(table.spread[name], parts, strict=True):
                yield f"{name} {label}", _written(part)


def _written(values: NDArray[Any]) -> list[str]:
    """Each number with all the digits of its precision; true and false as 1 and 0."""
    if values.dtype == np.bool_:
        values = values.astype(np.uint8)
    written: list[str] = values.astype(np.str_).tolist()
    return written
