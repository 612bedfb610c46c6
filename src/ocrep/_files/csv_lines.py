"""The lines of a CSV file: the header and its delimiter, and the first line that cannot be parsed."""

from __future__ import annotations

import csv
import gzip
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ocrep._files.formats import DataError, format_of
from ocrep._files.reading import Reading

# Compressed files can hold lines, and empty lines, without end.
LONGEST_LINE = 2**24
MOST_BLANK_LINES = 10_000


@dataclass(frozen=True, slots=True)
class Head:
    """The first line that is not blank."""

    names: tuple[str, ...]
    delimiter: str
    n_blank: int
    """Blank lines above it."""


def head_of(path: str, reading: Reading) -> Head:
    """Return names and delimiter.

    Without a given one it is a tab for .tsv, otherwise the first of comma, semicolon, tab and | in the header.
    """
    n_blank, header = 0, ""
    for header in _lines(path, reading):
        if header.strip("\r\n"):
            break
        n_blank += 1
        if n_blank > MOST_BLANK_LINES:
            raise DataError(f"{path} begins with more than {MOST_BLANK_LINES:,} empty lines: remove them.")
    unquoted = re.sub('"[^"]*"', "", header)  # a comma inside a quoted name separates nothing
    guess = "\t" if format_of(path).tabs else next((mark for mark in ",;\t|" if mark in unquoted), ",")
    delimiter = reading.delimiter or guess
    names = next(filter(None, csv.reader(_lines(path, reading), delimiter=delimiter)), None)
    if names is None:
        raise DataError(f"{path} is empty.")
    return Head(tuple(names), delimiter, n_blank)


def first_fault(path: str, reading: Reading) -> str | None:
    """Say what is wrong with the first bad line; None if every line can be parsed.

    Arrow does not always give a line number, so the file is read again here, line by line.
    """
    line, width = 0, 0
    try:
        rows = csv.reader(_lines(path, reading), delimiter=head_of(path, reading).delimiter)
        for row in filter(None, rows):
            line, width = rows.line_num, width or len(row)
            if len(row) != width:
                found = f"{len(row)} value{'' if len(row) == 1 else 's'}"
                return f"{path}, line {line}: it has {found}, but the header has {width} columns."
    except DataError as error:
        return str(error)
    except (csv.Error, OSError, EOFError) as error:
        return f"{path}, after line {line}: {error}."
    return None


def _lines(path: str, reading: Reading) -> Iterator[str]:
    """Yield the lines of a plain or gzipped file, without a byte-order mark, as the csv module wants them."""
    opened: Any = gzip.open if format_of(path).gzipped else open
    with opened(path, "rb") as file:
        # A line of UTF-8 is decoded alone, so that an error can name it.
        lines = file if reading.is_utf8 else io.TextIOWrapper(file, encoding=reading.encoding, newline="")
        number = 0
        while line := _next_line(lines, path, number, reading):
            number += 1
            if len(line) > LONGEST_LINE:
                raise DataError(f"{path}, line {number}, is longer than {LONGEST_LINE >> 20} MB: is it a table?")
            yield from io.StringIO(line, newline="")


def _next_line(lines: Any, path: str, number: int, reading: Reading) -> str:
    try:
        line: bytes | str = lines.readline(LONGEST_LINE + 1)
        return line.decode("utf-8" if number else "utf-8-sig") if isinstance(line, bytes) else line
    except UnicodeError:
        if reading.is_utf8:
            hint = "save the file as UTF-8, or name its encoding, as in --encoding latin-1."
            raise DataError(f"{path}, line {number + 1}, is not UTF-8 text: {hint}") from None
        raise DataError(f"{path} is not {reading.encoding} text: name another --encoding.") from None
