"""Files of rows as pandas frames of numbers, booleans and texts, block by block in constant memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas
import pyarrow

from ocrep._files.convert import ColumnKind, as_kind
from ocrep._files.formats import DataError, FilePath
from ocrep._files.readers import BLOCK_ROWS, PLAIN
from ocrep._files.reading import Reading
from ocrep._files.several import table_reader


@dataclass(frozen=True, slots=True)
class TableBlock:
    """Some rows of a file: the inputs of a model, and the columns that are copied to the output."""

    start: int
    """Number of rows before this block."""
    inputs: Any
    kept: Any


def column_names(path: FilePath, reading: Reading = PLAIN) -> list[str]:
    """Return the names of the columns in order; raise if one appears twice."""
    return table_reader(path, reading=reading).column_names()


def count_rows(path: FilePath) -> int | None:
    """Return the number of rows that a file states."""
    reader = table_reader(path)
    with reader.reading():
        return reader.n_rows()


def read_blocks(
    path: FilePath,
    kinds: Mapping[str, ColumnKind],
    *,
    keep: Sequence[str] = (),
    block_rows: int = BLOCK_ROWS,
    reading: Reading = PLAIN,
) -> Iterator[TableBlock]:
    """Read a file in blocks of at most `block_rows` rows, each column as its kind in training.

    A value of another kind raises a `DataError` with its column and row. The columns in `keep` are not converted: they
    stay the texts of a CSV file (007 stays 007) or have the types of a Parquet or Arrow file.
    """
    reader, start = table_reader(path, block_rows=block_rows, reading=reading), 0
    names = list(dict.fromkeys([*kinds, *keep]))
    with reader.reading():
        # CSV as text: converted here, the error can name the value and its row.
        for batch in reader.batches(names, dict.fromkeys(names, pyarrow.string())):
            columns = dict(zip(batch.schema.names, batch.columns, strict=True))
            inputs = {name: as_kind(reading.column(columns[name]), kind, name, start) for name, kind in kinds.items()}
            own = batch.select(list(keep)).replace_schema_metadata(None)  # what pandas left there may be damaged
            kept = own.to_pandas(types_mapper=pandas.ArrowDtype)
            yield TableBlock(start, _frame(inputs), kept)
            start += batch.num_rows
    if start == 0:
        raise DataError(f"{path} has a header but no rows.")


def _frame(arrays: dict[str, np.ndarray]) -> Any:
    # With an explicit dtype pandas keeps the objects; otherwise it would copy them to a string type.
    columns = {name: pandas.Series(values, dtype=values.dtype, copy=False) for name, values in arrays.items()}
    return pandas.DataFrame(columns, copy=False)
