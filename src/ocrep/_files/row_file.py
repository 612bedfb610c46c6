"""Tables of rows, block by block: `RowFile` for training, `read_blocks` for prediction.

Training reads a file several times, and it must hold the same rows each time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas
import pyarrow
from pyarrow import types

from ocrep._files.convert import ColumnKind, as_kind, declared_kind
from ocrep._files.formats import DataError, FilePath, changed_file
from ocrep._files.readers import BLOCK_ROWS, NAME, PLAIN, FrameReader, as_table, table_reader
from ocrep._files.reading import Reading

# Blocks of wide files have fewer rows: about this number of values each, but at least a few rows.
_BLOCK_VALUES = 2**21
_FEWEST_ROWS = 2**6


@dataclass(frozen=True, slots=True, eq=False)
class FileBlock:
    """Some rows of a file, as Arrow columns."""

    start: int
    """Number of rows before this block."""
    n_rows: int
    columns: dict[str, Any]


class RowFile:
    """A file of rows; `kinds` has the kind of each column, None where only the values tell.

    Those of a CSV file are None but for columns of numbers, as its first block tells; a later block may raise
    `NotNumbersError`.
    """

    def __init__(
        self, path: FilePath, reading: Reading = PLAIN, *, table: Any = None, block_rows: int | None = None
    ) -> None:
        self.path = path
        self.reading = reading
        first = table_reader(path, reading=reading) if table is None else FrameReader(table)
        fitting = max(_FEWEST_ROWS, min(BLOCK_ROWS, _BLOCK_VALUES // max(1, len(first.column_names()))))
        rows = block_rows or fitting
        again = table_reader(path, block_rows=rows, reading=reading) if table is None else None
        self._reader = again or FrameReader(table, block_rows=rows)
        self.fingerprint = self._reader.fingerprint()
        schema = self._reader.schema()
        stated: dict[str, ColumnKind] = {field.name: declared_kind(field.type) for field in schema}
        self.categories = frozenset(field.name for field in schema if types.is_dictionary(field.type))
        self.kinds: dict[str, ColumnKind | None] = {**stated}
        if not self._reader.typed:
            self.kinds = {name: "number" if kind == "number" else None for name, kind in stated.items()}

    @classmethod
    def of_frame(cls, frame: Any) -> RowFile:
        """The rows of a data frame in memory."""
        return cls(NAME, table=as_table(frame))

    def n_rows(self) -> int | None:
        """Return the number of rows that the file states; None if it states none."""
        with self._reader.reading():
            return self._reader.n_rows()

    def blocks(self, kinds: Mapping[str, ColumnKind | None]) -> Iterator[FileBlock]:
        """Yield the rows with these columns; a kind that is not known yet is None."""
        # Texts come as categories, which is faster where they repeat.
        texts = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
        wanted = {name: pyarrow.float64() if self._as_number(name, kind) else texts for name, kind in kinds.items()}
        start = 0
        self._check_unchanged()
        with self._reader.reading():
            for batch in self._reader.batches(list(kinds), wanted):
                if batch.num_rows:
                    # Not `batch.column(name)`, which takes longer than the work on a column.
                    columns = dict(zip(batch.schema.names, map(self.reading.column, batch.columns), strict=True))
                    yield FileBlock(start, batch.num_rows, columns)
                    start += batch.num_rows
        self._check_unchanged()
        if start == 0:
            raise DataError(f"{self.path} has a header but no rows.")

    def _as_number(self, name: str, kind: ColumnKind | None) -> bool:
        """Whether Arrow itself can read a column of numbers: not where they are written in an unusual way."""
        return kind == "number" and (self.reading == PLAIN or self.kinds[name] == "number")

    def forget_kinds(self) -> None:
        """Take all columns as unknown: a later block showed that the kinds of the first were wrong."""
        self.kinds = dict.fromkeys(self.kinds)

    def _check_unchanged(self) -> None:
        if self._reader.fingerprint() != self.fingerprint:
            raise changed_file(self.path)


# ------------------------------------------------------------------------------
# Files of rows as pandas frames of numbers, booleans and texts, block by block in constant memory.


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
    reader = table_reader(path, block_rows=block_rows, reading=reading)
    start = 0
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
