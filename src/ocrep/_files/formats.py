"""Which kind of file it is, which columns it has, and what is wrong with one that cannot be read."""

from __future__ import annotations

import csv
import gzip
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import IO, Any, Literal

try:
    import pandas  # noqa: F401 - not here, but by all that read and write
    import pyarrow
    import pyarrow.parquet
except ImportError:
    raise ImportError('Files of rows need pandas and pyarrow: pip install "ocrep[cli]".') from None

Kind = Literal["csv", "parquet", "arrow"]
_KINDS: dict[str, Kind] = {
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".feather": "arrow",
    ".arrow": "arrow",
}
_READ_AS = {"csv": "CSV", "parquet": "Parquet", "arrow": "Arrow"}


class DataError(ValueError):
    """A file of rows cannot be used; the message says why, where in the file, and what to do."""


@dataclass(frozen=True, slots=True)
class Format:
    """How a file of rows is stored."""

    kind: Kind
    tabs: bool = False
    gzipped: bool = False


def format_of(path: str | os.PathLike[str]) -> Format:
    """Tell the format from the file's suffix: .csv, .tsv (also with .gz), .parquet, .pq, .feather, .arrow."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    gzipped = suffixes[-1:] == [".gz"]
    last = (suffixes[:-1] if gzipped else suffixes)[-1:]
    kind = _KINDS.get(last[0]) if last else None
    if kind is None or (gzipped and kind != "csv"):
        raise DataError(
            f"{path}: its suffix does not tell a known format; known are {', '.join(_KINDS)}, .csv.gz and .tsv.gz."
        )
    return Format(kind, tabs=last == [".tsv"], gzipped=gzipped)


def column_names(path: str | os.PathLike[str]) -> list[str]:
    """The names of the columns, in order; a name that appears twice is refused."""
    _refuse_no_file(path)
    form = format_of(path)
    with reading(path):
        names = _csv_header(path, form) if form.kind == "csv" else schema_of(path, form).names
    twice = sorted({name for name in names if name and names.count(name) > 1})
    if twice:
        raise DataError(f"{path}: the column name {twice[0]!r} appears more than once: give each column its own name.")
    return list(names)


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown name: the nearest known ones, or all if they are few."""
    known = list(known)
    folded = {other.casefold(): other for other in known}
    near = [folded[match] for match in get_close_matches(name.casefold(), folded, n=3, cutoff=0.6)]
    if near:
        return f"did you mean {' or '.join(map(repr, near))}?"
    shown = ", ".join(map(repr, known[:8]))
    return f"it has {shown}{' and more' if len(known) > 8 else ''}."


def delimiter_of(path: str | os.PathLike[str], form: Format) -> str:
    """Tab for .tsv; otherwise comma, or where the header has none, semicolon or tab."""
    if form.tabs:
        return "\t"
    with text_of(path, form) as file:
        header = next((line for line in file if line.strip("\r\n")), "")
    header = re.sub('"[^"]*"', "", header)  # a mark inside a quoted name divides nothing
    return next((mark for mark in ",;\t" if mark in header), ",")


@contextmanager
def text_of(path: str | os.PathLike[str], form: Format) -> Iterator[IO[str]]:
    """A text file, unpacked if need be, without its byte-order mark."""
    opened: Any = gzip.open if form.gzipped else open
    with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
        yield file


@contextmanager
def reading(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn what the libraries raise into one sentence that says what is wrong with the file, and where."""
    try:
        yield
    except DataError:
        raise
    except (pyarrow.ArrowException, OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(_what_is_wrong(path, error)) from error


def arrow_file(path: str | os.PathLike[str]) -> Any:
    """An Arrow (Feather) file, mapped into memory rather than read."""
    return pyarrow.ipc.open_file(pyarrow.memory_map(os.fspath(path)))


def _refuse_no_file(path: str | os.PathLike[str]) -> None:
    if not os.path.exists(path):
        raise DataError(f"There is no file {path}.")
    if os.path.isdir(path):
        raise DataError(f"{path} is a folder, not a file of rows.")
    if os.path.getsize(path) == 0:
        raise DataError(f"{path} is empty.")


def _csv_header(path: str | os.PathLike[str], form: Format) -> list[str]:
    delimiter = delimiter_of(path, form)
    with text_of(path, form) as file:
        names = next((row for row in csv.reader(file, delimiter=delimiter) if row), None)
    if names is None:
        raise DataError(f"{path} is empty.")
    return names


def schema_of(path: str | os.PathLike[str], form: Format) -> Any:
    """The Arrow schema that a Parquet or Arrow file states."""
    return pyarrow.parquet.read_schema(path) if form.kind == "parquet" else arrow_file(path).schema


def _what_is_wrong(path: str | os.PathLike[str], error: Exception) -> str:
    form = format_of(path)
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    if form.kind == "csv":
        return _wrong_text(path, form) or f"{path} cannot be read as CSV: {reason}"
    return f"{path} cannot be read as {_READ_AS[form.kind]}: {reason}"


def _wrong_text(path: str | os.PathLike[str], form: Format) -> str | None:
    """Read the file again, slowly, up to its first fault: only this way is the line's number exact."""
    line = 0
    try:
        delimiter = delimiter_of(path, form)
        with text_of(path, form) as file:
            rows = csv.reader(file, delimiter=delimiter)
            width = len(next(rows))
            for row in rows:
                line = rows.line_num
                if row and len(row) != width:
                    found = f"{len(row)} value{'' if len(row) == 1 else 's'}"
                    return f"{path}, line {line}: it has {found}, but the header has {width} columns."
    except UnicodeDecodeError:
        return f"{path}{_line_of_bad_byte(path, form)} is not UTF-8 text: save the file as UTF-8."
    except (csv.Error, OSError, EOFError) as error:
        return f"{path}, after line {line}: {error}."
    return None


def _line_of_bad_byte(path: str | os.PathLike[str], form: Format) -> str:
    opened: Any = gzip.open if form.gzipped else open
    with opened(path, "rb") as file:
        for number, line in enumerate(file, 1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError:
                return f", line {number},"
    return ""  # pragma: no cover - the caller saw such a byte
