"""Readers of rows: one class per format, with schema, number of rows, statistics, fingerprint and batches."""

from __future__ import annotations

import csv
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
import pyarrow
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet

from ocrep._files.csv_text import CsvText
from ocrep._files.formats import DataError, Kind, check_file, format_of

BLOCK_ROWS = 2**15
# Arrow reads some blocks of a CSV file ahead: with 4 MB they would need twice the memory of everything else.
BLOCK_BYTES = 2**20
# Without a buffer size, and with pre-buffering, Arrow holds a whole row group, which may be the whole file. Checksums
# are verified where a file has them.
_LITTLE_MEMORY: dict[str, Any] = {"buffer_size": 2**20, "pre_buffer": False, "page_checksum_verification": True}
_BAD_NUMBER = re.compile(r"In CSV column #(\d+): (?:Row #(\d+): )?CSV conversion error to \S+: invalid value '(.*)'")

Range = tuple[np.ndarray, np.ndarray]
"""Smallest and largest value of each column."""


class Reader(ABC):
    """One file, or one fragment of an Arrow dataset, read in batches of at most `block_rows` rows."""

    _read_as: ClassVar[str] = ""

    def __init__(self, name: str, *, block_rows: int = BLOCK_ROWS) -> None:
        self.name, self._block_rows = name, block_rows

    @abstractmethod
    def schema(self) -> Any:
        """Return the Arrow schema; that of a CSV file is inferred from its first block."""

    @abstractmethod
    def batches(self, columns: Sequence[str], types: Mapping[str, Any]) -> Iterator[Any]:
        """Yield record batches of some columns; `types` are the Arrow types for the columns of a CSV file."""

    def n_rows(self) -> int | None:
        """Return the number of rows that the file states; None if it states none."""
        return None

    def stated_range(self, columns: Sequence[str]) -> Range | None:
        """Return the range that the file's statistics state; None if a column has no statistics."""
        return None

    def fingerprint(self) -> str:
        """Return path, size and modification time of a local file, else the name: it changes when the rows change."""
        if not os.path.exists(self.name):
            return self.name
        state = os.stat(self.name)
        return f"{os.path.abspath(self.name)} {state.st_size} {state.st_mtime_ns}"

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Turn what the libraries raise into a `DataError` that names the file, and the line where that is known."""
        try:
            yield
        except (pyarrow.ArrowException, OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
            raise DataError(self._explain(error)) from error

    def _explain(self, error: Exception) -> str:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        return f"{self.name} cannot be read{self._read_as}: {reason}"

    def _cut(self, batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            for start in range(0, batch.num_rows, self._block_rows):
                yield batch.slice(start, self._block_rows)

    def _parquet_batches(self, source: Any, columns: Sequence[str]) -> Iterator[Any]:
        with pyarrow.parquet.ParquetFile(source, **_LITTLE_MEMORY) as file:
            yield from file.iter_batches(batch_size=self._block_rows, columns=list(columns), use_threads=False)


class FileReader(Reader):
    """A reader of one local file."""

    def column_names(self) -> list[str]:
        """Return the names of the columns in order; raise if one appears twice."""
        check_file(self.name)
        with self.reading():
            names = self._names()
        twice = sorted({name for name in names if name and names.count(name) > 1})
        if twice:
            raise DataError(
                f"{self.name}: the column name {twice[0]!r} appears more than once: give each column its own name."
            )
        return names

    def schema(self) -> Any:
        """Return the Arrow schema, after the checks of `column_names`."""
        names = self.column_names()
        with self.reading():
            return self._schema(names)

    def table(self, columns: Sequence[str]) -> Any:
        """Read columns of the whole file into an Arrow table."""
        batches = list(self.batches(columns, {}))
        return pyarrow.Table.from_batches(batches) if batches else pyarrow.table({name: [] for name in columns})

    def _names(self) -> list[str]:
        return list(self._schema(()).names)

    @abstractmethod
    def _schema(self, names: Sequence[str]) -> Any: ...


class ParquetReader(FileReader):
    """Parquet: the footer states the number of rows, and the range of columns that have statistics."""

    _read_as = " as Parquet"

    def _schema(self, names: Sequence[str]) -> Any:
        return pyarrow.parquet.read_schema(self.name)

    def batches(self, columns: Sequence[str], types: Mapping[str, Any]) -> Iterator[Any]:
        """Yield batches, reading pages as they are needed."""
        return self._parquet_batches(self.name, columns)

    def n_rows(self) -> int:
        """Return the number of rows in the footer."""
        return int(pyarrow.parquet.read_metadata(self.name).num_rows)

    def stated_range(self, columns: Sequence[str]) -> Range | None:
        """Return the range over all row groups, if each of them has statistics.

        Statistics leave out NaN and nulls, but these raise an error when the rows are read.
        """
        return _range_of(pyarrow.parquet.read_metadata(self.name), columns)


class ArrowReader(FileReader):
    """Arrow IPC and Feather: mapped into memory, in the batches it was written in or smaller ones."""

    _read_as = " as Arrow"

    def _file(self) -> Any:
        return pyarrow.ipc.open_file(pyarrow.memory_map(self.name))

    def _schema(self, names: Sequence[str]) -> Any:
        return self._file().schema

    def batches(self, columns: Sequence[str], types: Mapping[str, Any]) -> Iterator[Any]:
        """Yield slices of the stored batches; nothing is copied."""
        file = self._file()
        return self._cut(file.get_batch(i).select(list(columns)) for i in range(file.num_record_batches))

    def n_rows(self) -> int:
        """Return the sum over the stored batches."""
        file = self._file()
        return sum(file.get_batch(i).num_rows for i in range(file.num_record_batches))


class CsvReader(FileReader):
    """CSV and TSV, also gzipped, read in blocks of `block_bytes` bytes."""

    _read_as = " as CSV"

    def __init__(self, path: str, *, block_rows: int = BLOCK_ROWS, block_bytes: int = BLOCK_BYTES) -> None:
        super().__init__(path, block_rows=block_rows)
        self._text, self._block_bytes = CsvText(path), block_bytes

    def _names(self) -> list[str]:
        return self._text.header()

    def _schema(self, names: Sequence[str]) -> Any:
        with pyarrow.csv.open_csv(self.name, **self._options(names)) as reader:
            return reader.schema

    def batches(self, columns: Sequence[str], types: Mapping[str, Any]) -> Iterator[Any]:
        """Yield batches with the given types; a value of another type raises with its line, if that is known."""
        try:
            with pyarrow.csv.open_csv(self.name, **self._options(columns, column_types=dict(types))) as reader:
                yield from self._cut(reader)
        except pyarrow.ArrowInvalid as error:
            found = _BAD_NUMBER.search(str(error))
            if found is None:
                raise
            name, line = self._names()[int(found[1])], "" if found[2] is None else f", line {found[2]}"
            raise DataError(
                f"{self.name}{line}: column {name!r} must hold numbers, but it holds {found[3]!r}."
            ) from error

    def table(self, columns: Sequence[str]) -> Any:
        """Read columns of the whole file; unlike in `schema`, all values of a column decide its type."""
        table = pyarrow.csv.read_csv(self.name, **self._options(columns))
        raw = [field.name for field in table.schema if field.type in (pyarrow.binary(), pyarrow.large_binary())]
        if raw:  # Arrow's types for text that is not UTF-8
            raise UnicodeDecodeError("utf-8", b"", 0, 1, f"column {raw[0]}")
        return table

    def _options(self, columns: Sequence[str], **convert: Any) -> dict[str, Any]:
        return {
            "read_options": pyarrow.csv.ReadOptions(block_size=self._block_bytes, use_threads=False),
            "parse_options": pyarrow.csv.ParseOptions(delimiter=self._text.delimiter(), newlines_in_values=True),
            "convert_options": pyarrow.csv.ConvertOptions(include_columns=list(columns), **convert),
        }

    def _explain(self, error: Exception) -> str:
        return self._text.first_fault() or super()._explain(error)


class FragmentReader(Reader):
    """A fragment of a `pyarrow.dataset.Dataset`, on any file system that Arrow knows."""

    def __init__(self, fragment: Any, schema: Any, number: int, *, block_rows: int = BLOCK_ROWS) -> None:
        super().__init__(getattr(fragment, "path", None) or f"fragment {number}", block_rows=block_rows)
        self._fragment, self._dataset_schema = fragment, schema
        self._is_parquet = isinstance(fragment, pyarrow.dataset.ParquetFileFragment)

    def schema(self) -> Any:
        """Return the fragment's own columns and those that the dataset's partitioning adds."""
        with self.reading():
            own = self._fragment.physical_schema.names
        added = pyarrow.dataset.get_partition_keys(self._fragment.partition_expression)
        return pyarrow.schema([field for field in self._dataset_schema if field.name in added or field.name in own])

    def batches(self, columns: Sequence[str], types: Mapping[str, Any]) -> Iterator[Any]:
        """Yield pages of a whole Parquet file with all columns; otherwise Arrow scans, with little read ahead."""
        if self._is_whole_parquet_file(columns):
            # Arrow's scan holds whole row groups, which may be whole files.
            with self._fragment.open() as opened:
                yield from self._parquet_batches(opened, columns)
            return
        yield from self._fragment.to_batches(
            schema=self._dataset_schema,
            columns=list(columns),
            batch_size=self._block_rows,
            batch_readahead=1,
            fragment_readahead=1,
            use_threads=False,
        )

    def n_rows(self) -> int | None:
        """Return the sum over the fragment's row groups; None for other formats than Parquet."""
        return sum(int(group.num_rows) for group in self._fragment.row_groups) if self._is_parquet else None

    def stated_range(self, columns: Sequence[str]) -> Range | None:
        """Return the range that a whole Parquet file states; None for a part of a file."""
        return _range_of(self._fragment.metadata, columns) if self._is_whole_parquet_file(columns) else None

    def _is_whole_parquet_file(self, columns: Sequence[str]) -> bool:
        return (
            self._is_parquet
            and set(columns) <= set(self._fragment.physical_schema.names)
            and self._fragment.num_row_groups == self._fragment.metadata.num_row_groups
        )


def reader_of(path: str | os.PathLike[str], *, block_rows: int = BLOCK_ROWS) -> FileReader:
    """Return the reader for a file, by its suffix; nothing is opened yet."""
    readers: dict[Kind, type[FileReader]] = {"parquet": ParquetReader, "arrow": ArrowReader, "csv": CsvReader}
    return readers[format_of(path).kind](os.fspath(path), block_rows=block_rows)


def readers_of_dataset(dataset: Any) -> list[Reader]:
    """Return one reader per fragment."""
    return [FragmentReader(fragment, dataset.schema, i) for i, fragment in enumerate(dataset.get_fragments())]


def _range_of(metadata: Any, columns: Sequence[str]) -> Range | None:
    """Return the range over all row groups; None unless each states that of every column."""
    places = {metadata.schema.column(i).path: i for i in range(metadata.num_columns)}
    low, high = np.full(len(columns), np.inf), np.full(len(columns), -np.inf)
    for g in range(metadata.num_row_groups):
        group = metadata.row_group(g)
        for j, name in enumerate(columns):
            stated = _number_range(group.column(places[name]).statistics) if name in places else None
            if stated is None:
                return None
            low[j], high[j] = min(low[j], stated[0]), max(high[j], stated[1])
    return low, high


def _number_range(statistics: Any) -> tuple[float, float] | None:
    if statistics is None or not statistics.has_min_max:
        return None
    ends = statistics.min, statistics.max
    if not all(isinstance(end, bool | int | float) and np.isfinite(end) for end in ends):
        return None
    return float(ends[0]), float(ends[1])
