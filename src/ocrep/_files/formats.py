"""File formats by suffix, the files that a path stands for, and text from files made safe for a terminal.

No library is imported here, so that the program can answer at once.
"""

from __future__ import annotations

import glob
import os
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeAlias
from unicodedata import category

FilePath: TypeAlias = str | os.PathLike[str]
_TEXT = {".csv": "csv", ".tsv": "csv", ".txt": "csv"}
_KINDS = {**_TEXT, ".parquet": "parquet", ".pq": "parquet", ".feather": "arrow", ".arrow": "arrow"}


class DataError(ValueError):
    """A file of rows cannot be used; the message says why, where in the file, and what to do."""


@dataclass(frozen=True, slots=True)
class Format:
    kind: str  # "csv", "parquet" or "arrow"
    tabs: bool
    gzipped: bool


def format_of(path: FilePath) -> Format:
    """The format by the suffix: .csv, .tsv, .txt (also with .gz), .parquet, .pq, .feather, .arrow."""
    name = Path(os.fspath(path).lower())
    gzipped = name.suffix == ".gz"
    suffix = name.with_suffix("").suffix if gzipped else name.suffix
    kind = _KINDS.get(suffix)
    if suffix in (".xlsx", ".xls", ".xlsm", ".xlsb", ".ods"):
        raise DataError(f"{path}: Excel files are not supported; save the sheet as CSV.")
    if kind is None or (gzipped and kind != "csv"):
        raise DataError(
            f"{path}: files of this kind cannot be read; use {', '.join(_KINDS)}, or one of the first three with .gz."
        )
    return Format(kind, tabs=suffix == ".tsv", gzipped=gzipped)


def is_table(path: FilePath) -> bool:
    """Whether a file in a folder is a table: by its suffix, but not .txt, and neither hidden nor a writer's log."""
    try:
        if ".txt" in Path(path).suffixes:
            return False
        format_of(path)
    except DataError:
        return False
    return not os.path.basename(path).startswith((".", "_"))


def check_file(path: FilePath) -> None:
    """Raise unless `path` is a file with content."""
    if not os.path.exists(path):
        raise DataError(f"There is no file {path}.")
    if os.path.isdir(path):
        raise DataError(f"{path} is a folder, not a file of rows.")
    if os.path.getsize(path) == 0:
        raise DataError(f"{path} is empty.")
    if not is_utf8(path):
        raise DataError(f"{path} has a name that is not UTF-8, which Arrow cannot open: rename the file.")


def is_utf8(path: FilePath) -> bool:
    """Whether a file's name is text; Arrow takes no other."""
    name = os.fspath(path)
    return name == name.encode("utf-8", "replace").decode("utf-8")


def changed_file(path: FilePath) -> DataError:
    """Return the error about a file that is not the same at a second reading."""
    return DataError(f"{path} was changed while it was read: start again when it is complete.")


def check_columns(path: FilePath, wanted: Iterable[str], names: Sequence[str]) -> None:
    """Raise if a wanted column is not among the file's, and name the nearest ones."""
    known = set(names)
    for name in wanted:
        if name not in known:
            raise DataError(f"{path} has no column {name!r}: {nearest(name, names)}")


def nearest(name: str, known: Sequence[str]) -> str:
    """Return the end of a sentence about an unknown name: the nearest known names, or the first eight."""
    folded = {other.casefold(): other for other in known}
    near = [folded[match] for match in get_close_matches(name.casefold(), folded, n=3, cutoff=0.6)]
    if near:
        return f"did you mean {' or '.join(map(repr, near))}?"
    return f"it has {', '.join(map(repr, known[:8]))}{' and more' if len(known) > 8 else ''}."


# ------------------------------------------------------------------------------
# The files that a path, a folder or a pattern stands for.


def paths_of(name: str) -> list[str]:
    """The files that a path, a folder or a glob stands for, in the order of their names."""
    if os.path.isdir(name):
        found = [os.path.join(root, file) for root, _, files in os.walk(name) for file in files]
        paths = sorted(path for path in found if is_table(path))
        if not paths:
            raise DataError(f"The folder {name} holds no Parquet, CSV, Feather or Arrow files.")
        return paths
    if os.path.exists(name) or not glob.has_magic(name):
        return [name]
    found = sorted(glob.glob(name, recursive=True))
    # A folder with a file's suffix is what Spark and Dask write as one table.
    paths = [path for match in found if os.path.isfile(match) or is_table(match) for path in paths_of(match)]
    if not paths:
        raise DataError(f"No file matches {name}.")
    return paths


# ------------------------------------------------------------------------------
# Text from files made safe for a terminal.


# ASCII but for control characters, and line ends and tabs, which harm nothing.
_PLAIN = re.compile(r"[\n\t\x20-\x7e]*")
# Categories of Unicode: spaces are shown as they are; other separators (Z) and control characters (C) are not.
_SPACES = "Zs"
_HIDDEN = "CZ"


def visible(text: str) -> str:
    """The text with control characters, marks of direction and bytes that are not UTF-8 as \\uXXXX.

    A column name may hold the escape sequences that recolour, rename or clear a terminal.
    """
    return text if _PLAIN.fullmatch(text) else "".join(map(_shown, text))


def _shown(character: str) -> str:
    kind = category(character)
    if character in "\n\t" or kind == _SPACES or kind[0] not in _HIDDEN:
        return character
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))


class VisibleOutput:
    """Standard output, for a writer of text that does not know whether it writes to a terminal."""

    def write(self, text: str) -> int:
        return sys.stdout.write(visible(text) if sys.stdout.isatty() else text)

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.stdout, name)
