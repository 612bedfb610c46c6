"""One or several files with the same columns, read one after the other as one table."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow

from ocrep._files.formats import DataError, FilePath, check_file
from ocrep._files.paths import paths_of
from ocrep._files.readers import BLOCK_ROWS, PLAIN, FileReader, reader_of
from ocrep._files.reading import Reading


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
