"""`RowFile`: a file that is read several times, block by block, and must hold the same rows each time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow
from pyarrow import types

from ocrep._files.convert import ColumnKind, declared_kind
from ocrep._files.formats import DataError, FilePath, changed_file
from ocrep._files.frame_reader import NAME, FrameReader, as_table
from ocrep._files.readers import BLOCK_ROWS, PLAIN
from ocrep._files.reading import Reading
from ocrep._files.several import table_reader

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

    def __init__(self, path: FilePath, reading: Reading = PLAIN, *, table: Any = None) -> None:
        self.path, self.reading = path, reading
        first = table_reader(path, reading=reading) if table is None else FrameReader(table)
        rows = max(_FEWEST_ROWS, min(BLOCK_ROWS, _BLOCK_VALUES // max(1, len(first.column_names()))))
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
