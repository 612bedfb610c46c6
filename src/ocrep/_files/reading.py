"""`Reading`: how a text file is written, that is its encoding, its delimiter, its numbers and its missing values."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any

import pyarrow
import pyarrow.compute as pc
from pyarrow import types

from ocrep._files.convert import MISSING_WORDS
from ocrep._files.formats import DataError, format_of

_PLAIN = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
# What spreadsheets and other countries write in place of a space between thousands.
_SPACES = "[\u00a0\u202f\u2009]"


@dataclass(frozen=True, slots=True)
class Reading:
    """What a file's suffix does not tell; texts of Parquet and Arrow files are read so too."""

    decimal: str = "."
    """The decimal mark."""
    thousands: str = ""
    """What stands between thousands; "" for nothing."""
    strip: str = ""
    """Signs before or after numbers, such as $ or %, that are left out."""
    na: tuple[str, ...] = ()
    """Words that stand for a missing value, in addition to `MISSING_WORDS`."""
    encoding: str = "utf-8"
    delimiter: str = ""
    """Between the values of a line; "" guesses."""

    def __post_init__(self) -> None:
        if len(self.decimal) != 1 or self.decimal.isalnum() or not self.decimal.isascii():
            raise ValueError(f"decimal={self.decimal!r} must be one mark of ASCII, such as a comma.")
        if len(self.thousands) > 1 or self.thousands.isalnum() or self.thousands == self.decimal:
            raise ValueError(f"thousands={self.thousands!r} must be one mark, and not the decimal mark {self.decimal}.")
        if any(sign.isdigit() or sign in "+-" or sign in self.decimal + self.thousands for sign in self.strip):
            raise ValueError(f"strip={self.strip!r} must hold signs that are no part of a number, such as $ or %.")
        if len(self.delimiter) > 1 or self.delimiter in ('"', "\n", "\r", "\0") or not self.delimiter.isascii():
            raise ValueError(f"delimiter={self.delimiter!r} must be one character of ASCII, or tab.")
        try:
            "".encode(self.encoding)
        except (LookupError, ValueError):
            raise ValueError(f"encoding={self.encoding!r} is not known: examples are latin-1 and utf-16.") from None

    @property
    def is_utf8(self) -> bool:
        """Whether the bytes are UTF-8, perhaps with a byte-order mark."""
        return codecs.lookup(self.encoding).name in ("utf-8", "utf-8-sig")

    @property
    def arrow_encoding(self) -> str:
        """The encoding by the name that Arrow knows; it passes over the byte-order mark of UTF-8 itself."""
        return "utf8" if self.is_utf8 else self.encoding

    @property
    def missing_words(self) -> list[str]:
        """The words that stand for a missing value."""
        return [*MISSING_WORDS, *self.na]

    def column(self, column: Any) -> Any:
        """An Arrow column whose texts are written as usual: 1234.5, and nothing for a missing value."""
        if not (self.na or self.thousands or self.strip or self.decimal != "."):
            return column
        if types.is_dictionary(column.type):
            if not types.is_string(column.type.value_type) and not types.is_large_string(column.type.value_type):
                return column
            return pyarrow.DictionaryArray.from_arrays(column.indices, self._plain(column.dictionary))
        is_text = types.is_string(column.type) or types.is_large_string(column.type)
        return self._plain(column) if is_text else column

    def _plain(self, words: Any) -> Any:
        trimmed = pc.utf8_trim_whitespace(words)
        bare = trimmed
        if self.strip:
            signs = re.escape(self.strip).replace("]", r"\]")
            bare = pc.utf8_trim_whitespace(pc.replace_substring_regex(bare, f"[{signs}]", ""))
            bare = pc.replace_substring_regex(bare, r"^([+-])\s+", r"\1")
        if self.thousands == " ":
            bare = pc.replace_substring_regex(bare, _SPACES, " ")
        is_number = pc.match_substring_regex(bare, self._numeral())
        plain = pc.replace_substring(bare, self.thousands, "") if self.thousands else bare
        # With a decimal comma 1.5 is not a number: the quotes make sure that it stays a text.
        quoted = pc.binary_join_element_wise("'", trimmed, "'", "")
        other = pc.if_else(pc.match_substring_regex(trimmed, _PLAIN), quoted, words)
        found = pc.if_else(is_number, pc.replace_substring(plain, self.decimal, "."), other)
        missing = pc.is_in(trimmed, pyarrow.array(self.na, type=words.type))
        return pc.if_else(missing, pyarrow.scalar("", type=words.type), found)

    def _numeral(self) -> str:
        point, mark = re.escape(self.decimal), re.escape(self.thousands)
        whole = rf"[1-9]\d{{0,2}}(?:{mark}\d{{3}})+|\d+" if self.thousands else r"\d+"
        return rf"^[+-]?(?:(?:{whole})(?:{point}\d*)?|{point}\d+)(?:[eE][+-]?\d+)?$"

    def differences(self, other: Reading) -> dict[str, Any]:
        """The fields in which it differs from another reading."""
        return {name: value for name, value in asdict(self).items() if value != getattr(other, name)}

    def to_json(self) -> dict[str, Any]:
        """As plain data, for a model file."""
        return {**asdict(self), "na": list(self.na)}

    @classmethod
    def from_json(cls, stored: dict[str, Any], **given: Any) -> Reading:
        """From plain data; what is given goes first."""
        together = {**stored, **given}
        return cls(**{**together, "na": tuple(together.get("na", ()))})


# ------------------------------------------------------------------------------
# The lines of a CSV file: the header and its delimiter, and the first line that cannot be parsed.


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
    with closing(_lines(path, reading)) as lines:
        return _head(lines, path, reading)


def _head(lines: Iterator[str], path: str, reading: Reading) -> Head:
    n_blank = 0
    header = ""
    for header in lines:
        if header.strip("\r\n"):
            break
        n_blank += 1
        if n_blank > MOST_BLANK_LINES:
            raise DataError(f"{path} begins with more than {MOST_BLANK_LINES:,} empty lines: remove them.")
    unquoted = re.sub('"[^"]*"', "", header)  # a comma inside a quoted name separates nothing
    guess = "\t" if format_of(path).tabs else next((mark for mark in ",;\t|" if mark in unquoted), ",")
    delimiter = reading.delimiter or guess
    names = next(filter(None, csv.reader(chain([header], lines), delimiter=delimiter)), None)
    if names is None:
        raise DataError(f"{path} is empty.")
    return Head(tuple(names), delimiter, n_blank)


def first_fault(path: str, reading: Reading) -> str | None:
    """Say what is wrong with the first bad line; None if every line can be parsed.

    Arrow does not always give a line number, so the file is read again here, line by line.
    """
    line = 0
    width = 0
    try:
        rows = csv.reader(_lines(path, reading), delimiter=head_of(path, reading).delimiter)
        for row in filter(None, rows):
            line = rows.line_num
            width = width or len(row)
            if len(row) != width:
                found = f"{len(row)} value{'' if len(row) == 1 else 's'}"
                return f"{path}, line {line}: it has {found}, but the header has {width} columns."
    except DataError as error:
        return str(error)
    except (csv.Error, OSError, EOFError) as error:
        return f"{path}, after line {line}: {error}."
    return None


def _lines(path: str, reading: Reading) -> Generator[str, None, None]:
    """Yield the lines of a plain or gzipped file, without a byte-order mark, as the csv module wants them."""
    opened: Any = gzip.open if format_of(path).gzipped else open
    with opened(path, "rb") as file:
        begin = file.peek(max(map(len, _OTHER_FILES)))
        other = next((found for start, found in _OTHER_FILES.items() if begin.startswith(start)), None)
        if other is not None:
            raise DataError(f"{path} is no text, but {other}.")
        # A line of UTF-8 is decoded alone, so that an error can name it.
        lines = file if reading.is_utf8 else io.TextIOWrapper(file, encoding=reading.encoding, newline="")
        number = 0
        while line := _next_line(lines, path, number, reading):
            number += 1
            if len(line) > LONGEST_LINE:
                raise DataError(f"{path}, line {number}, is longer than {LONGEST_LINE >> 20} MB: is it a table?")
            yield from io.StringIO(line, newline="")


# How files begin that are no text, whatever they are called; all with a character that no header has.
_OTHER_FILES = {
    b"PK\x03\x04": "an Excel file or another archive: save the sheet as CSV",
    b"\xd0\xcf\x11\xe0": "an Excel file: save the sheet as CSV",
    b"PAR1\x15": "a Parquet file: name it .parquet",
    b"ARROW1\0": "an Arrow file: name it .arrow",
    b"\x1f\x8b\x08": "compressed by gzip: name it .csv.gz",
}


def _next_line(lines: Any, path: str, number: int, reading: Reading) -> str:
    line: bytes | str = b""
    try:
        line = lines.readline(LONGEST_LINE + 1)
        return line.decode("utf-8" if number else "utf-8-sig") if isinstance(line, bytes) else line
    except UnicodeError:
        if reading.is_utf8:
            likely = "utf-16" if line[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "latin-1"
            hint = f"save the file as UTF-8, or name its encoding, as in --encoding {likely}."
            raise DataError(f"{path}, line {number + 1}, is not UTF-8 text: {hint}") from None
        raise DataError(f"{path} is not {reading.encoding} text: name another --encoding.") from None
