"""A CSV file as text: its delimiter, its header, and the first line that is wrong."""

from __future__ import annotations

import csv
import gzip
import io
import re
from collections.abc import Iterator
from typing import Any

from ocrep._files.formats import DataError, format_of


def delimiter_of(path: str) -> str:
    """Return a tab for .tsv; otherwise the first of comma, semicolon and tab that the header contains."""
    if format_of(path).tabs:
        return "\t"
    header = next((line for line in _lines(path) if line.strip("\r\n")), "")
    header = re.sub('"[^"]*"', "", header)  # a comma inside a quoted name separates nothing
    return next((mark for mark in ",;\t" if mark in header), ",")


def header_of(path: str) -> list[str]:
    """Return the names in the first line that is not blank."""
    names = next(filter(None, csv.reader(_lines(path), delimiter=delimiter_of(path))), None)
    if names is None:
        raise DataError(f"{path} is empty.")
    return names


def first_fault(path: str) -> str | None:
    """Say what is wrong with the first bad line; None if every line can be parsed.

    Arrow does not always give a line number, so the file is read again here, line by line.
    """
    line, width = 0, 0
    try:
        rows = csv.reader(_lines(path), delimiter=delimiter_of(path))
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


def _lines(path: str) -> Iterator[str]:
    """Yield the lines of a plain or gzipped file, without a byte-order mark, as the csv module wants them."""
    opened: Any = gzip.open if format_of(path).gzipped else open
    with opened(path, "rb") as file:
        for number, line in enumerate(file, 1):
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError:
                raise DataError(f"{path}, line {number}, is not UTF-8 text: save the file as UTF-8.") from None
            yield from io.StringIO(text, newline="")
