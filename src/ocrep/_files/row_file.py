"""`RowFile`: a file that is read several times, block by block, and must hold the same rows each time."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas
import pyarrow
from pyarrow import types

from ocrep._files.convert import ColumnKind, as_kind, declared_kind
from ocrep._files.formats import DataError, FilePath, changed_file, check_file, paths_of
from ocrep._files.readers import BLOCK_ROWS, NAME, PLAIN, FileReader, FrameReader, as_table, reader_of
from ocrep._files.reading import Reading

# ------------------------------------------------------------------------------
# One or several files with the same columns, read one after the other as one table.


class SeveralReader(FileReader):
    """Files one after the other; the columns are those of the first, which all others must have."""

    def __init__(self, name: str, readers: Sequence[FileReader]) -> None:
        super().__init__(name)
        self._readers = readers
        self.typed = all(reader.typed for reader in readers)  # type: ignore[misc]

    def column_names(self) -> list[str]:
        """The names in the first file."""
        names = self._readers[0].column_names()
        for reader in self._readers[1:]:
            lacking = sorted(set(names) - set(reader.column_names()))
            if lacking:
                raise DataError(f"{reader.name} has no column {lacking[0]!r}, which {self._readers[0].name} has.")
        return names

    def _schema(self, names: Sequence[str]) -> Any:
        """The types that all files agree on; text for a column that is not the same in all of them."""
        schemas = [reader.schema() for reader in self._readers]
        types = {name: {schema.field(name).type for schema in schemas} for name in names}
        return pyarrow.schema([(name, of.pop() if len(of) == 1 else pyarrow.string()) for name, of in types.items()])

    def _batches(self, columns: Sequence[str], types: Mapping[str, Any]) -> Iterator[Any]:
        for reader in self._readers:
            with reader.reading():
                for batch in reader.batches(columns, types):
                    yield batch.select(list(columns))

    def n_rows(self) -> int | None:
        """The sum, if all files state theirs."""
        numbers = [reader.n_rows() for reader in self._readers]
        return None if None in numbers else sum(number or 0 for number in numbers)

    def fingerprint(self) -> str:
        """Those of all files."""
        return "\n".join(reader.fingerprint() for reader in self._readers)


def table_reader(path: FilePath, *, block_rows: int = BLOCK_ROWS, reading: Reading = PLAIN) -> FileReader:
    """Return the reader of a file, of all tables in a folder, or of all files that match a pattern."""
    name = os.fspath(path)
    paths = paths_of(name)
    for one in paths:
        check_file(one)  # before the suffix: a missing file is the likelier mistake
    readers = [reader_of(one, block_rows=block_rows, reading=reading) for one in paths]
    return readers[0] if len(readers) == 1 else SeveralReader(name, readers)


# ------------------------------------------------------------------------------

# Blocks of wide files have fewer rows: about so many values each.
_BLOCK_VALUES, _FEWEST_ROWS = 2**21, 2**6


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
        self.path, self.reading = path, reading
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
        """Take all columns as unknown, since what the first block told was not true of a later one."""
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
