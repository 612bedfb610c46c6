"""Readers of rows: one class per format, with schema, number of rows, statistics, fingerprint and batches.

"To add something" in docs/architecture.md says what a new format touches. Memory decides how files are read: in blocks
of a megabyte of CSV, pages of Parquet and slices of Arrow batches, so that it does not grow with the file.
"""

from __future__ import annotations

import csv
import os
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import groupby
from typing import Any, ClassVar

import numpy as np
import pyarrow
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet
from pyarrow.fs import FileSelector, FileSystem, FileType

from ocrep._files.convert import LEADING_ZERO, MISSING_WORDS
from ocrep._files.formats import DataError, FilePath, Format, check_file, format_of, is_table, paths_of
from ocrep._files.reading import Head, Reading, first_fault, head_of

BLOCK_ROWS = 2**15
_FEWEST_ROWS = 2**6
PLAIN = Reading()
# Arrow reads some blocks of a CSV file ahead: with 4 MB they would need twice the memory of everything else.
BLOCK_BYTES = 2**20
# Without a buffer size, and with pre-buffering, Arrow holds a whole row group, which may be the whole file. Checksums
# are verified where a file has them.
_LITTLE_MEMORY: dict[str, Any] = {"buffer_size": 2**20, "pre_buffer": False, "page_checksum_verification": True}
_BAD_NUMBER = re.compile(r"In CSV column #(\d+): (?:Row #(\d+): )?CSV conversion error to \S+: invalid value '(.*)'")

Range = tuple[np.ndarray, np.ndarray]
"""Smallest and largest value of each column."""


class NotNumbersError(DataError):
    """A column of a CSV file was read as numbers and holds something else."""


class Reader(ABC):
    """One file, or one fragment of an Arrow dataset, read in batches of at most `block_rows` rows."""

    _read_as: ClassVar[str] = ""

    def __init__(self, name: str, *, block_rows: int = BLOCK_ROWS) -> None:
        self.name = name
        self._block_rows = block_rows
        self._rows_given = 0

    def limit_blocks(self, most_rows: int) -> None:
        """Read no more rows at a time, but a few."""
        self._block_rows = min(self._block_rows, max(_FEWEST_ROWS, most_rows))

    @abstractmethod
    def schema(self) -> Any:
        """Return the Arrow schema; that of a CSV file is inferred from its first block."""

    def batches(self, columns: Sequence[str], types: Mapping[str, Any]) -> Iterator[Any]:
        """Yield record batches of some columns.

        `types` are the Arrow types for the columns of a CSV file; texts of a Parquet file whose type is a dictionary
        here come as one, which is faster.
        """
        self._rows_given = 0
        for batch in self._batches(columns, types):
            yield batch
            self._rows_given += batch.num_rows

    @abstractmethod
    def _batches(self, columns: Sequence[str], types: Mapping[str, Any]) -> Iterator[Any]: ...

    def n_rows(self) -> int | None:
        """Return the number of rows that the file states; None if it states none."""
        return None

    def stated_range(self, columns: Sequence[str]) -> Range | None:
        """Return the range that the file's statistics state; None if a column has no statistics.

        Statistics leave out NaN and nulls, but these raise an error when the rows are read.
        """
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
        except (pyarrow.ArrowException, OSError, EOFError, csv.Error, UnicodeDecodeError) as error:
            raise DataError(self._explain(error)) from error

    def _explain(self, error: Exception) -> str:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        after = f" after row {self._rows_given:,}" if self._rows_given else ""
        return f"{self.name} cannot be read{self._read_as}{after}: {reason}"

    def _cut(self, batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            for start in range(0, batch.num_rows, self._block_rows):
                yield batch.slice(start, self._block_rows)

    def _parquet_batches(self, source: Any, columns: Sequence[str], coded: Sequence[str] = ()) -> Iterator[Any]:
        with pyarrow.parquet.ParquetFile(source, read_dictionary=list(coded), **_LITTLE_MEMORY) as file:
            yield from file.iter_batches(batch_size=self._block_rows, columns=list(columns), use_threads=False)


class FileReader(Reader):
    """One file, or several as one, whose columns have names."""

    typed: ClassVar[bool] = True
    """Whether the file states the types of its columns."""

    def column_names(self) -> list[str]:
        """Return the names of the columns in order; raise if one appears twice."""
        check_file(self.name)
        with self.reading():
            return self._checked(self._names())

    def _checked(self, names: list[str]) -> list[str]:
        twice = sorted(name for name, times in Counter(names).items() if name and times > 1)
        if twice:
            raise DataError(
                f"{self.name}: the column name {twice[0]!r} appears more than once: give each column its own name."
            )
        cut = [name for name in names if name.endswith("\0")]  # NumPy's texts end where NULs begin
        if cut:
            raise DataError(f"{self.name}: the column name {cut[0]!r} ends in a NUL character: rename the column.")
        return names

    def schema(self) -> Any:
        names = self.column_names()
        with self.reading():
            return self._schema(names)

    def codes_among(self, columns: Sequence[str]) -> set[str]:
        """Return those columns of numbers whose first block has codes such as 007, which are not numbers."""
        return set()

    def _names(self) -> list[str]:
        return list(self._schema(()).names)

    @abstractmethod
    def _schema(self, names: Sequence[str]) -> Any: ...


class ParquetReader(FileReader):
    """Parquet: the footer states the number of rows, and the range of columns that have statistics."""

    _read_as = " as Parquet"

    def _schema(self, names: Sequence[str]) -> Any:
        return pyarrow.parquet.read_schema(self.name)

    def _batches(self, columns: Sequence[str], types: Mapping[str, Any]) -> Iterator[Any]:
        schema = self._schema(())
        coded = [name for name in columns if _is_dictionary(types.get(name)) and _is_text(schema.field(name).type)]
        return self._parquet_batches(self.name, columns, coded)

    def n_rows(self) -> int:
        return int(pyarrow.parquet.read_metadata(self.name).num_rows)

    def stated_range(self, columns: Sequence[str]) -> Range | None:
        return _range_of(pyarrow.parquet.read_metadata(self.name), columns)


class ArrowReader(FileReader):
    """Arrow IPC and Feather: mapped into memory, in slices of the batches it was written in; nothing is copied."""

    _read_as = " as Arrow"

    def _stored_batches(self) -> Iterator[Any]:
        file = self._file()
        return (file.get_batch(i) for i in range(file.num_record_batches))

    def _file(self) -> Any:
        return pyarrow.ipc.open_file(pyarrow.memory_map(self.name))

    def _schema(self, names: Sequence[str]) -> Any:
        return self._file().schema

    def _batches(self, columns: Sequence[str], types: Mapping[str, Any]) -> Iterator[Any]:
        # Nothing in such a file has been checked yet: offsets and text may point anywhere.
        for batch in self._cut(batch.select(list(columns)) for batch in self._stored_batches()):
            batch.validate(full=True)
            yield batch

    def n_rows(self) -> int:
        return sum(batch.num_rows for batch in self._stored_batches())


class CsvReader(FileReader):
    """CSV and TSV, also gzipped, read in blocks of `block_bytes` bytes."""

    _read_as = " as CSV"
    typed = False

    def __init__(
        self, path: str, *, block_rows: int = BLOCK_ROWS, block_bytes: int = BLOCK_BYTES, reading: Reading = PLAIN
    ) -> None:
        super().__init__(path, block_rows=block_rows)
        self._block_bytes = block_bytes
        self._reading = reading

    @cached_property
    def _head(self) -> Head:
        return head_of(self.name, self._reading)

    def _names(self) -> list[str]:
        return list(self._head.names)

    def _schema(self, names: Sequence[str]) -> Any:
        with pyarrow.csv.open_csv(self.name, **self._options(names)) as reader:
            return _of_text(reader.schema)

    def codes_among(self, columns: Sequence[str]) -> set[str]:
        if not columns:
            return set()
        with self.reading():
            batch = next(self._batches(columns, dict.fromkeys(columns, pyarrow.string())), None)
        texts = {} if batch is None else dict(zip(batch.schema.names, batch.columns, strict=True))
        return {name for name, own in texts.items() if pc.any(pc.match_substring_regex(own, LEADING_ZERO)).as_py()}

    def _batches(self, columns: Sequence[str], types: Mapping[str, Any]) -> Iterator[Any]:
        """Yield batches with the given types; a value of another type raises with its line, if that is known."""
        try:
            with pyarrow.csv.open_csv(self.name, **self._options(columns, column_types=dict(types))) as reader:
                yield from self._cut(reader)
        except pyarrow.ArrowInvalid as error:
            found = _BAD_NUMBER.search(str(error))
            if found is None:
                raise
            name = self._names()[int(found[1])]
            line = "" if found[2] is None else f", line {found[2]}"
            raise NotNumbersError(
                f"{self.name}{line}: column {name!r} must hold numbers, but it holds {found[3]!r}."
            ) from error

    def _options(self, columns: Sequence[str], **convert: Any) -> dict[str, Any]:
        head = self._head
        # Of one column an empty line is a row whose value is missing; Arrow would take one above the header for it.
        one = len(head.names) == 1
        skip = head.n_blank if one else 0
        return {
            "read_options": pyarrow.csv.ReadOptions(
                block_size=self._block_bytes, use_threads=False, skip_rows=skip, encoding=self._reading.arrow_encoding
            ),
            "parse_options": pyarrow.csv.ParseOptions(
                delimiter=head.delimiter, newlines_in_values=True, ignore_empty_lines=not one
            ),
            "convert_options": pyarrow.csv.ConvertOptions(
                include_columns=list(columns),
                null_values=self._reading.missing_words,
                decimal_point=self._reading.decimal,
                **convert,
            ),
        }

    def _explain(self, error: Exception) -> str:
        return first_fault(self.name, self._reading) or super()._explain(error)


class FragmentReader(Reader):
    """A fragment of a `pyarrow.dataset.Dataset`, on any file system that Arrow knows."""

    def __init__(self, fragment: Any, schema: Any, number: int, *, block_rows: int = BLOCK_ROWS) -> None:
        super().__init__(getattr(fragment, "path", None) or f"fragment {number}", block_rows=block_rows)
        self._fragment = fragment
        self._dataset_schema = schema
        self._is_parquet = isinstance(fragment, pyarrow.dataset.ParquetFileFragment)

    def schema(self) -> Any:
        """Return the fragment's own columns and those that the dataset's partitioning adds."""
        with self.reading():
            own = self._fragment.physical_schema.names
        added = pyarrow.dataset.get_partition_keys(self._fragment.partition_expression)
        return pyarrow.schema([field for field in self._dataset_schema if field.name in added or field.name in own])

    def _batches(self, columns: Sequence[str], types: Mapping[str, Any]) -> Iterator[Any]:
        """Yield pages of a whole Parquet file with all columns; otherwise Arrow scans, with little read ahead."""
        if self._is_whole_parquet_file(columns):
            # Arrow's scan holds whole row groups, which may be whole files.
            with self._fragment.open() as opened:
                yield from self._parquet_batches(opened, columns)
            return
        options = {"batch_size": self._block_rows, "batch_readahead": 1, "fragment_readahead": 1, "use_threads": False}
        yield from self._fragment.to_batches(schema=self._dataset_schema, columns=list(columns), **options)

    def n_rows(self) -> int | None:
        return sum(int(group.num_rows) for group in self._fragment.row_groups) if self._is_parquet else None

    def stated_range(self, columns: Sequence[str]) -> Range | None:
        return _range_of(self._fragment.metadata, columns) if self._is_whole_parquet_file(columns) else None

    def _is_whole_parquet_file(self, columns: Sequence[str]) -> bool:
        part = self._fragment
        is_whole = self._is_parquet and part.num_row_groups == part.metadata.num_row_groups
        return is_whole and set(columns) <= set(part.physical_schema.names)


def reader_of(path: FilePath, *, block_rows: int = BLOCK_ROWS, reading: Reading = PLAIN) -> FileReader:
    """Return the reader for a file, by its suffix; nothing is opened yet."""
    kind = format_of(path).kind
    if kind == "csv":
        return CsvReader(os.fspath(path), block_rows=block_rows, reading=reading)
    return {"parquet": ParquetReader, "arrow": ArrowReader}[kind](os.fspath(path), block_rows=block_rows)


def readers_of_dataset(dataset: Any) -> list[Reader]:
    return [FragmentReader(fragment, dataset.schema, i) for i, fragment in enumerate(dataset.get_fragments())]


def _is_text(kind: Any) -> bool:
    return pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind)


def _is_dictionary(kind: Any) -> bool:
    return kind is not None and pyarrow.types.is_dictionary(kind)


def _of_text(schema: Any) -> Any:
    """Return the schema of a CSV file; raise if it has binary columns, Arrow's type for text that is not UTF-8."""
    for field in schema:
        if pyarrow.types.is_binary(field.type) or pyarrow.types.is_large_binary(field.type):
            raise pyarrow.ArrowInvalid(f"column {field.name} is not UTF-8 text")
    return schema


def _range_of(metadata: Any, columns: Sequence[str]) -> Range | None:
    """Return the range over all row groups; None unless each states that of every column."""
    places = {metadata.schema.column(i).path: i for i in range(metadata.num_columns)}
    if not places.keys() >= set(columns):
        return None
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    stated = [[_ends(group.column(places[name]).statistics) for name in columns] for group in groups]
    low, high = np.moveaxis(np.array(stated, dtype=np.float64).reshape(len(groups), len(columns), 2), 2, 0)
    if not (np.isfinite(low) & np.isfinite(high)).all():
        return None
    return low.min(axis=0, initial=np.inf), high.max(axis=0, initial=-np.inf)


def _ends(statistics: Any) -> tuple[float, float]:
    stated = statistics is not None and statistics.has_min_max and isinstance(statistics.min, bool | int | float)
    return (statistics.min, statistics.max) if stated else (np.nan, np.nan)


# ------------------------------------------------------------------------------
# One or several files with the same columns, read one after the other as one table.


class SeveralReader(FileReader):
    """Files one after the other; all must have the columns of the first, which is the table's."""

    def __init__(self, name: str, readers: Sequence[FileReader]) -> None:
        super().__init__(name)
        self._readers = readers
        self.typed = all(reader.typed for reader in readers)  # type: ignore[misc]

    def limit_blocks(self, most_rows: int) -> None:
        """Read no more rows at a time, but a few."""
        for reader in self._readers:
            reader.limit_blocks(most_rows)

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

    def codes_among(self, columns: Sequence[str]) -> set[str]:
        return set().union(*(reader.codes_among(columns) for reader in self._readers))

    def n_rows(self) -> int | None:
        """The sum, if all files state theirs."""
        numbers = [reader.n_rows() for reader in self._readers]
        return None if None in numbers else sum(number or 0 for number in numbers)

    def fingerprint(self) -> str:
        """The fingerprints of all files."""
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
# Files named by addresses such as s3://bucket/folder/*.parquet, on every file system that Arrow knows.


# Two letters at least: C:// is a drive.
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


def is_address(name: str) -> bool:
    """Whether a name says on which file system it lies."""
    return _ADDRESS.match(name) is not None


def readers_at(address: str) -> list[Reader]:
    """Readers of the files that an address stands for: a file, a folder, or a pattern with `*` and `**`."""
    try:
        filesystem, path = FileSystem.from_uri(address)
        paths = _paths(filesystem, path, address)
        readers = []
        for form, some in groupby(paths, format_of):
            dataset = pyarrow.dataset.dataset(list(some), filesystem=filesystem, format=_as_arrow(form))
            readers += readers_of_dataset(dataset)
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(
            f"{address} cannot be opened ({str(error).splitlines()[0]}): Arrow knows file://, s3://, gs://, "
            "abfss:// and hdfs://, and takes credentials from the environment."
        ) from error
    return readers


def _paths(filesystem: Any, path: str, address: str) -> list[str]:
    """All files in the order of their names; each has a known suffix."""
    if "*" in path:
        fixed, _, rest = path.partition("*")
        folder = fixed.rpartition("/")[0]
        matching = re.compile(_regex(path))
        infos = filesystem.get_file_info(FileSelector(folder, allow_not_found=True, recursive="/" in f"*{rest}"))
        found = [info for info in infos if matching.fullmatch(info.path)]
    else:
        found = [filesystem.get_file_info(path)]
        if found[0].type == FileType.File:
            if not found[0].size:
                raise DataError(f"{address} is empty.")
            return [path]
    paths = [
        file for info in sorted(found, key=lambda info: info.path) for file in _tables(filesystem, info, "*" in path)
    ]
    if not paths:
        raise DataError(f"There are no Parquet, CSV, Feather or Arrow files at {address}.")
    return list(dict.fromkeys(paths))


def _tables(filesystem: Any, info: Any, matched: bool) -> list[str]:
    """A file itself, or the tables of a folder; of matched folders, those that Spark and Dask write as one table."""
    if info.type == FileType.File:
        return [info.path]
    if info.type != FileType.Directory or (matched and not is_table(info.path)):
        return []
    inside = filesystem.get_file_info(FileSelector(info.path, recursive=True))
    return sorted(file.path for file in inside if file.type == FileType.File and is_table(file.path))


def _regex(pattern: str) -> str:
    """`*` matches within a name, `**` any number of folders."""
    parts = re.split(r"(\*\*/|\*)", pattern)
    return "".join({"**/": "(?:.*/)?", "*": "[^/]*"}.get(part, re.escape(part)) for part in parts)


def _as_arrow(form: Format) -> Any:
    if form.kind != "csv":
        return "ipc" if form.kind == "arrow" else form.kind
    return pyarrow.dataset.CsvFileFormat(
        pyarrow.csv.ParseOptions(delimiter="\t" if form.tabs else ",", newlines_in_values=True),
        convert_options=pyarrow.csv.ConvertOptions(null_values=MISSING_WORDS),
    )
