"""One file of rows, or one fragment of an Arrow dataset: its schema, its size, its statistics and its batches."""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np
import pyarrow
import pyarrow.dataset
import pyarrow.parquet
from pyarrow import csv

from ocrep._features.random_layer import Range
from ocrep._files.formats import DataError, arrow_file, column_names, format_of, reading, schema_of
from ocrep._files.reading import BLOCK_ROWS, FRUGAL, arrow_batches, csv_options, parquet_batches

_BAD_NUMBER = re.compile(r"In CSV column #(\d+): (?:Row #(\d+): )?CSV conversion error to \S+: invalid value '(.*)'")


class Part(ABC):
    """A file or fragment that knows its own columns."""

    name: str

    @abstractmethod
    def schema(self) -> Any:
        """Names and Arrow types of the columns; a text file tells them by its beginning."""

    @abstractmethod
    def batches(self, columns: Sequence[str], types: Mapping[str, Any]) -> Iterator[Any]:
        """Some columns, some rows at a time; `types` says what a text file's columns are to be read as."""

    def reading(self) -> AbstractContextManager[None]:
        """Turn what the libraries raise into a sentence with this part's name."""
        return reading(self.name)

    def n_rows(self) -> int | None:
        """How many rows it says it has."""
        return None

    def stated_range(self, columns: Sequence[str]) -> Range | None:
        """The least and largest values that it states."""
        return None

    def mark(self) -> str:
        """What changes when the rows change."""
        return self.name


class ParquetFile(Part):
    """A Parquet file: it states sizes and ranges."""

    def __init__(self, path: str) -> None:
        self.name = path

    def schema(self) -> Any:
        """The schema that the file states."""
        return _stated_schema(self.name)

    def batches(self, columns: Sequence[str], types: Mapping[str, Any]) -> Iterator[Any]:
        """Pages as they are needed."""
        return parquet_batches(self.name, format_of(self.name), list(columns))

    def n_rows(self) -> int:
        """From the footer."""
        return int(pyarrow.parquet.read_metadata(self.name).num_rows)

    def stated_range(self, columns: Sequence[str]) -> Range | None:
        """Of all row groups' statistics, if every one has them.

        Statistics do not see NaN and nulls, but rows that hold those are refused anyway when they are read.
        """
        return _range_of(pyarrow.parquet.read_metadata(self.name), columns)

    def mark(self) -> str:
        """Path, size and time."""
        return _mark(self.name)


class ArrowFile(Part):
    """An Arrow (Feather) file."""

    def __init__(self, path: str) -> None:
        self.name = path

    def schema(self) -> Any:
        """The schema that the file states."""
        return _stated_schema(self.name)

    def batches(self, columns: Sequence[str], types: Mapping[str, Any]) -> Iterator[Any]:
        """The batches it was written in, cut down to a block of rows."""
        for batch in arrow_batches(self.name, format_of(self.name), list(columns)):
            for start in range(0, batch.num_rows, BLOCK_ROWS):
                yield batch.slice(start, BLOCK_ROWS)

    def n_rows(self) -> int:
        """The batches' sizes."""
        file = arrow_file(self.name)
        return sum(file.get_batch(i).num_rows for i in range(file.num_record_batches))

    def mark(self) -> str:
        """Path, size and time."""
        return _mark(self.name)


class CsvFile(Part):
    """A text file of values: its first megabyte tells what its columns are."""

    def __init__(self, path: str) -> None:
        self.name = path

    def schema(self) -> Any:
        """Names from the header, types from the beginning."""
        names = column_names(self.name)
        with self.reading(), csv.open_csv(self.name, **csv_options(self.name, format_of(self.name), names)) as reader:
            return reader.schema

    def batches(self, columns: Sequence[str], types: Mapping[str, Any]) -> Iterator[Any]:
        """Rows as the values that they must be."""
        options = csv_options(self.name, format_of(self.name), columns, column_types=dict(types))
        try:
            with csv.open_csv(self.name, **options) as reader:
                yield from reader
        except pyarrow.ArrowInvalid as error:
            raise self._explained(error) from error

    def _explained(self, error: Exception) -> Exception:
        found = _BAD_NUMBER.search(str(error))
        if found is None:
            return error
        name, row = column_names(self.name)[int(found[1])], found[2]
        line = "" if row is None else f", line {row}"
        return DataError(f"{self.name}{line}: column {name!r} must hold numbers, but it holds {found[3]!r}.")

    def mark(self) -> str:
        """Path, size and time."""
        return _mark(self.name)


class Fragment(Part):
    """A fragment of a `pyarrow.dataset.Dataset`, on whatever file system it lies."""

    def __init__(self, fragment: Any, schema: Any, number: int) -> None:
        self.name = getattr(fragment, "path", None) or f"fragment {number}"
        self._fragment, self._schema = fragment, schema

    def schema(self) -> Any:
        """Its own columns, and those that its place in the dataset gives it."""
        with self.reading():
            own = self._fragment.physical_schema
        placed = pyarrow.dataset.get_partition_keys(self._fragment.partition_expression)
        return pyarrow.schema([field for field in self._schema if field.name in placed or field.name in own.names])

    def batches(self, columns: Sequence[str], types: Mapping[str, Any]) -> Iterator[Any]:
        """Pages of a whole Parquet file that holds the columns; else Arrow's own scan, told to read little ahead."""
        fragment = self._fragment
        if self._is_parquet and self._is_whole_file(columns):
            # Arrow's scan holds whole row groups, which may be whole files.
            with fragment.open() as opened, pyarrow.parquet.ParquetFile(opened, **FRUGAL) as file:
                yield from file.iter_batches(batch_size=BLOCK_ROWS, columns=list(columns), use_threads=False)
            return
        yield from fragment.to_batches(
            schema=self._schema,
            columns=list(columns),
            batch_size=BLOCK_ROWS,
            batch_readahead=1,
            fragment_readahead=1,
            use_threads=False,
        )

    @property
    def _is_parquet(self) -> bool:
        return isinstance(self._fragment, pyarrow.dataset.ParquetFileFragment)

    def _is_whole_file(self, columns: Sequence[str]) -> bool:
        fragment = self._fragment
        return set(columns) <= set(fragment.physical_schema.names) and (
            fragment.num_row_groups == fragment.metadata.num_row_groups
        )

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Name the fragment in what Arrow raises."""
        try:
            yield
        except (pyarrow.ArrowException, OSError) as error:
            raise DataError(f"{self.name} cannot be read: {str(error).splitlines()[0]}") from error

    def n_rows(self) -> int | None:
        """What Parquet's footer says of its row groups."""
        if not self._is_parquet:
            return None
        return sum(int(group.num_rows) for group in self._fragment.row_groups)

    def stated_range(self, columns: Sequence[str]) -> Range | None:
        """That of a whole Parquet file."""
        whole = self._is_parquet and self._is_whole_file(columns)
        return _range_of(self._fragment.metadata, columns) if whole else None

    def mark(self) -> str:
        """The path; on a local file system with size and time."""
        return _mark(self.name) if os.path.exists(self.name) else self.name


def parts_of_files(paths: Sequence[str]) -> list[Part]:
    """One part per file, by its suffix."""
    kinds: dict[str, type[Any]] = {"parquet": ParquetFile, "arrow": ArrowFile, "csv": CsvFile}
    return [kinds[format_of(path).kind](path) for path in paths]


def parts_of_dataset(dataset: Any) -> list[Part]:
    """One part per fragment."""
    return [Fragment(fragment, dataset.schema, i) for i, fragment in enumerate(dataset.get_fragments())]


def _stated_schema(path: str) -> Any:
    column_names(path)  # refuses what is no file, is empty or names a column twice
    with reading(path):
        return schema_of(path, format_of(path))


def _range_of(metadata: Any, columns: Sequence[str]) -> Range | None:
    """The range of all row groups, if each states that of every column."""
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


def _mark(path: str) -> str:
    state = os.stat(path)
    return f"{os.path.abspath(path)} {state.st_size} {state.st_mtime_ns}"
