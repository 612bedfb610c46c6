"""`RowFile`: a file of rows, read block by block. Read several times, it must hold the same rows each time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow
from pyarrow import types

from ocrep._files.convert import ColumnKind, declared_kind
from ocrep._files.formats import DataError, FilePath, changed_file
from ocrep._files.readers import PLAIN, FileReader, table_reader
from ocrep._files.reading import Reading

# Blocks of wide files have fewer rows: about this number of values each.
_BLOCK_VALUES = 2**19


class RowFile:
    """A file of rows; `kinds` has the kind of each column, None where only the values tell.

    Those of a CSV file are None but for columns of numbers without codes such as 007, as its first block tells; a later
    block may raise `NotNumbersError`.
    """

    def __init__(self, path: FilePath, reading: Reading = PLAIN, *, reader: FileReader | None = None) -> None:
        self.path = path
        self.reading = reading
        self._reader = table_reader(path, reading=reading) if reader is None else reader
        self._reader.limit_blocks(_BLOCK_VALUES // max(1, len(self._reader.column_names())))
        self.fingerprint = self._reader.fingerprint()
        schema = self._reader.schema()
        stated: dict[str, ColumnKind] = {field.name: declared_kind(field.type) for field in schema}
        self.categories = frozenset(field.name for field in schema if types.is_dictionary(field.type))
        self.kinds: dict[str, ColumnKind | None] = {**stated}
        if not self._reader.typed:
            numbers = [name for name, kind in stated.items() if kind == "number"]
            codes = self._reader.codes_among(numbers)
            self.kinds |= {name: None for name in stated if name not in numbers or name in codes}

    def n_rows(self) -> int | None:
        """Return the number of rows that the file states; None if it states none."""
        with self._reader.reading():
            return self._reader.n_rows()

    def blocks(self, kinds: Mapping[str, ColumnKind | None]) -> Iterator[dict[str, Any]]:
        """Yield the rows block by block, as these Arrow columns; a kind that is not known yet is None."""
        # Texts come as categories, which is faster where they repeat.
        texts = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
        wanted = {name: pyarrow.float64() if self._as_number(name, kind) else texts for name, kind in kinds.items()}
        has_rows = False
        self._check_unchanged()
        with self._reader.reading():
            for batch in self._reader.batches(list(kinds), wanted):
                if batch.num_rows:
                    has_rows = True
                    # Not `batch.column(name)`, which takes longer than the work on a column.
                    yield dict(zip(batch.schema.names, map(self.reading.column, batch.columns), strict=True))
        self._check_unchanged()
        if not has_rows:
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
