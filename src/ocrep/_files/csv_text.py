"""A CSV file as text: its delimiter, its header, and the first line that is wrong."""

from __future__ import annotations

import csv
import gzip
import re
from dataclasses import dataclass
from typing import IO, Any

from ocrep._files.formats import DataError, format_of


@dataclass(frozen=True, slots=True)
class CsvText:
    """A text file of values, plain or gzipped."""

    path: str

    def open(self, mode: str = "rt", **options: Any) -> IO[Any]:
        """Open the file, and decompress it if the suffix is .gz."""
        opened: Any = gzip.open if format_of(self.path).gzipped else open
        return opened(self.path, mode, **options)

    def text(self) -> IO[str]:
        """Open as UTF-8, without a byte-order mark."""
        return self.open(encoding="utf-8-sig", newline="")

    def delimiter(self) -> str:
        """Return a tab for .tsv; otherwise the first of comma, semicolon and tab that the header contains."""
        if format_of(self.path).tabs:
            return "\t"
        with self.text() as file:
            header = next((line for line in file if line.strip("\r\n")), "")
        header = re.sub('"[^"]*"', "", header)  # a comma inside a quoted name separates nothing
        return next((mark for mark in ",;\t" if mark in header), ",")

    def header(self) -> list[str]:
        """Return the names in the first line that is not blank."""
        delimiter = self.delimiter()
        with self.text() as file:
            names = next((row for row in csv.reader(file, delimiter=delimiter) if row), None)
        if names is None:
            raise DataError(f"{self.path} is empty.")
        return names

    def first_fault(self) -> str | None:
        """Say what is wrong with the first bad line; None if every line can be parsed.

        Arrow does not always give a line number, so the file is read again here, line by line.
        """
        line = 0
        try:
            delimiter = self.delimiter()
            with self.text() as file:
                rows = csv.reader(file, delimiter=delimiter)
                width = len(next(rows))
                for row in rows:
                    line = rows.line_num
                    if row and len(row) != width:
                        found = f"{len(row)} value{'' if len(row) == 1 else 's'}"
                        return f"{self.path}, line {line}: it has {found}, but the header has {width} columns."
        except UnicodeDecodeError:
            return f"{self.path}{self._line_of_bad_byte()} is not UTF-8 text: save the file as UTF-8."
        except (csv.Error, OSError, EOFError) as error:
            return f"{self.path}, after line {line}: {error}."
        return None

    def _line_of_bad_byte(self) -> str:
        with self.open("rb") as file:
            for number, line in enumerate(file, 1):
                try:
                    line.decode("utf-8")
                except UnicodeDecodeError:
                    return f", line {number},"
        return ""  # pragma: no cover - the caller has found such a byte
