"""Rows of a file as columns of numbers, booleans and texts: all at once, or block by block in constant memory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas
import pyarrow
import pyarrow.parquet
from pyarrow import csv

from ocrep._files import convert
from ocrep._files.convert import ColumnKind
from ocrep._files.formats import DataError, Format, arrow_file, delimiter_of, format_of, reading

BLOCK_ROWS = 2**15
# Arrow reads some blocks of a CSV file ahead: with 4 MB they would need twice the memory of all the rest.
_BLOCK_BYTES = 2**20
# Without a buffer size, and with pre-buffering, Arrow holds a whole row group, which may be the whole file. Checksums
# are verified where a file has them.
FRUGAL: dict[str, Any] = {"buffer_size": 2**20, "pre_buffer": False, "page_checksum_verification": True}


@dataclass(frozen=True, slots=True)
class Table:
    """A file of rows in memory.

    `frame` holds the columns that can be inputs or targets: numbers and booleans as floats (NaN where missing), texts
    as objects. `kinds` says what every column that was asked for holds, also those that `frame` leaves out.
    """

    frame: Any
    kinds: dict[str, ColumnKind]


@dataclass(frozen=True, slots=True)
class Block:
    """Some rows of a file: the inputs as a model sees them, and columns that are only carried along."""

    start: int
    """How many rows come before it."""
    inputs: Any
    kept: Any


def read_table(path: str | os.PathLike[str], columns: Sequence[str]) -> Table:
    """Read columns of a whole file; the file tells what each of them holds."""
    form = format_of(path)
    with reading(path):
        table = _read_csv(path, form, columns) if form.kind == "csv" else _collect(path, form, columns)
        if table.num_rows == 0:
            raise DataError(f"{path} has a header but no rows.")
        arrays, kinds = {}, {}
        for name in columns:
            # Each column leaves the Arrow table as it is converted, so that no two copies of all of them exist.
            column = table.column(name)
            table = table.drop_columns([name])
            kinds[name] = convert.kind_of(column)
            if form.kind == "csv" and column.type in convert.raw_bytes():
                raise UnicodeDecodeError("utf-8", b"", 0, 1, f"column {name}")
            if kinds[name] in ("number", "boolean", "text"):
                arrays[name] = convert.as_kind(column, kinds[name], name, 0)
            del column
    pyarrow.default_memory_pool().release_unused()  # Arrow keeps what it has freed: here as much as the whole file
    return Table(_frame(arrays), kinds)


def read_blocks(
    path: str | os.PathLike[str],
    kinds: Mapping[str, Literal["number", "boolean", "text"]],
    *,
    keep: Sequence[str] = (),
) -> Iterator[Block]:
    """Read a file block by block, each column as the kind that it must be; `keep` names columns to carry along.

    A value that is not of its column's kind is refused with its column and row. What is kept stays exactly what it
    is: the texts of a CSV file (007 stays 007), the types of a Parquet or Arrow file.
    """
    form, start = format_of(path), 0
    names = list(dict.fromkeys([*kinds, *keep]))
    with reading(path):
        for batch in _batches(path, form, names):
            inputs = {name: convert.as_kind(batch.column(name), kind, name, start) for name, kind in kinds.items()}
            kept = batch.select(list(keep)).to_pandas(types_mapper=pandas.ArrowDtype)
            yield Block(start, _frame(inputs), kept)
            start += batch.num_rows
    if start == 0:
        raise DataError(f"{path} has a header but no rows.")


def count_rows(path: str | os.PathLike[str]) -> int | None:
    """How many rows a file has, where it says so itself (Parquet); None elsewhere."""
    if format_of(path).kind != "parquet":
        return None
    with reading(path):
        return pyarrow.parquet.read_metadata(path).num_rows


def _frame(arrays: dict[str, np.ndarray]) -> Any:
    # Told to, pandas keeps objects as they are: it would make another copy as a string type.
    columns = {name: pandas.Series(values, dtype=values.dtype, copy=False) for name, values in arrays.items()}
    return pandas.DataFrame(columns, copy=False)


def _batches(path: str | os.PathLike[str], form: Format, columns: list[str]) -> Iterator[Any]:
    """Tables of at most a block of rows."""
    source = {"csv": _csv_batches, "parquet": parquet_batches, "arrow": arrow_batches}[form.kind]
    for batch in source(path, form, columns):
        for start in range(0, batch.num_rows, BLOCK_ROWS):
            yield pyarrow.Table.from_batches([batch.slice(start, BLOCK_ROWS)])


def _collect(path: str | os.PathLike[str], form: Format, columns: Sequence[str]) -> Any:
    source = {"parquet": parquet_batches, "arrow": arrow_batches}[form.kind]
    batches = list(source(path, form, list(columns)))
    return pyarrow.Table.from_batches(batches) if batches else pyarrow.table({name: [] for name in columns})


def parquet_batches(path: str | os.PathLike[str], form: Format, columns: list[str]) -> Iterator[Any]:
    """Some columns of a Parquet file, at most a block of rows at a time."""
    with pyarrow.parquet.ParquetFile(path, **FRUGAL) as file:
        yield from file.iter_batches(batch_size=BLOCK_ROWS, columns=columns, use_threads=False)


def arrow_batches(path: str | os.PathLike[str], form: Format, columns: list[str]) -> Iterator[Any]:
    """Some columns of an Arrow file, in the batches it was written in."""
    file = arrow_file(path)
    for number in range(file.num_record_batches):
        yield file.get_batch(number).select(columns)


def csv_options(path: str | os.PathLike[str], form: Format, columns: Sequence[str], **convert_options: Any) -> Any:
    """How `pyarrow.csv` has to read these columns: little at a time, and with the mark that the header shows."""
    return {
        "read_options": csv.ReadOptions(block_size=_BLOCK_BYTES, use_threads=False),
        "parse_options": csv.ParseOptions(delimiter=delimiter_of(path, form), newlines_in_values=True),
        "convert_options": csv.ConvertOptions(include_columns=list(columns), **convert_options),
    }


def _csv_batches(path: str | os.PathLike[str], form: Format, columns: list[str]) -> Iterator[Any]:
    """Every column as text: converting it ourselves, we can say which value of which row is wrong."""
    options = csv_options(path, form, columns, column_types=dict.fromkeys(columns, pyarrow.string()))
    with csv.open_csv(os.fspath(path), **options) as reader:
        yield from reader


def _read_csv(path: str | os.PathLike[str], form: Format, columns: Sequence[str]) -> Any:
    return csv.read_csv(os.fspath(path), **csv_options(path, form, columns))
