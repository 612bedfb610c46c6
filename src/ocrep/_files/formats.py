"""File formats, told by the suffix, and the error for a file that cannot be used."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TypeAlias

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
    """Tell the format by the suffix: .csv, .tsv, .txt (also with .gz), .parquet, .pq, .feather, .arrow."""
    name = Path(os.fspath(path).lower())
    gzipped = name.suffix == ".gz"
    suffix = name.with_suffix("").suffix if gzipped else name.suffix
    kind = _KINDS.get(suffix)
    if kind is None or (gzipped and kind != "csv"):
        raise DataError(
            f"{path}: the suffix does not tell a known format; known are {', '.join(_KINDS)}, "
            "and the first three with .gz."
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
    """Return the error about rows that are not those of the first reading."""
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
