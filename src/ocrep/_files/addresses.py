"""Files named by addresses such as s3://bucket/folder/*.parquet, on every file system that Arrow knows."""

from __future__ import annotations

import re
from itertools import groupby
from typing import Any

import pyarrow
import pyarrow.csv
import pyarrow.dataset
from pyarrow.fs import FileSelector, FileSystem, FileType

from ocrep._files.convert import MISSING_WORDS
from ocrep._files.formats import DataError, Format, format_of, is_table
from ocrep._files.readers import Reader, readers_of_dataset

# Two letters at least: C:// is a drive.
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


def is_address(name: str) -> bool:
    """Whether a name says on which file system it lies."""
    return _ADDRESS.match(name) is not None


def readers_at(address: str) -> list[Reader]:
    """Readers of the files that an address stands for: a file, a folder, or a pattern with `*` and `**`."""
    try:
        filesystem, path = FileSystem.from_uri(address)
        paths = _paths(filesystem, path, address)
        readers = []
        for form, some in groupby(paths, format_of):
            dataset = pyarrow.dataset.dataset(list(some), filesystem=filesystem, format=_as_arrow(form))
            readers += readers_of_dataset(dataset)
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(
            f"{address} cannot be opened ({str(error).splitlines()[0]}): Arrow knows file://, s3://, gs://, "
            "abfss:// and hdfs://, and takes credentials from the environment."
        ) from error
    return readers


def _paths(filesystem: Any, path: str, address: str) -> list[str]:
    """All files in the order of their names; each has a known suffix."""
    if "*" in path:
        fixed, _, rest = path.partition("*")
        folder = fixed.rpartition("/")[0]
        matching = re.compile(_regex(path))
        infos = filesystem.get_file_info(FileSelector(folder, allow_not_found=True, recursive="/" in f"*{rest}"))
        found = [info for info in infos if matching.fullmatch(info.path)]
    else:
        found = [filesystem.get_file_info(path)]
        if found[0].type == FileType.File:
            if not found[0].size:
                raise DataError(f"{address} is empty.")
            return [path]
    paths = [
        file for info in sorted(found, key=lambda info: info.path) for file in _tables(filesystem, info, "*" in path)
    ]
    if not paths:
        raise DataError(f"There are no Parquet, CSV, Feather or Arrow files at {address}.")
    return list(dict.fromkeys(paths))


def _tables(filesystem: Any, info: Any, matched: bool) -> list[str]:
    """A file itself, or the tables of a folder; of matched folders, those that Spark and Dask write as one table."""
    if info.type == FileType.File:
        return [info.path]
    if info.type != FileType.Directory or (matched and not is_table(info.path)):
        return []
    inside = filesystem.get_file_info(FileSelector(info.path, recursive=True))
    return sorted(file.path for file in inside if file.type == FileType.File and is_table(file.path))


def _regex(pattern: str) -> str:
    """`*` matches within a name, `**` any number of folders."""
    parts = re.split(r"(\*\*/|\*)", pattern)
    return "".join({"**/": "(?:.*/)?", "*": "[^/]*"}.get(part, re.escape(part)) for part in parts)


def _as_arrow(form: Format) -> Any:
    if form.kind != "csv":
        return "ipc" if form.kind == "arrow" else form.kind
    return pyarrow.dataset.CsvFileFormat(
        pyarrow.csv.ParseOptions(delimiter="\t" if form.tabs else ",", newlines_in_values=True),
        convert_options=pyarrow.csv.ConvertOptions(null_values=MISSING_WORDS),
    )
