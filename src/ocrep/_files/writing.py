"""Writing rows block by block into a file that is complete or absent."""

from __future__ import annotations

import errno
import gzip
import io
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import chain, repeat
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from ocrep._files.formats import DataError, FilePath, Format, VisibleOutput, format_of, is_utf8

# ------------------------------------------------------------------------------
# Files of named arrays (`.npz`), read without running code.


def read_arrays(file: Any) -> dict[str, np.ndarray]:
    """All arrays of an open `.npz` file; pickled objects raise."""
    held = np.load(file, allow_pickle=False)
    if not isinstance(held, Mapping):
        raise ValueError("it is a single array")
    return dict(held)


def check_names(held: Mapping[str, np.ndarray], needed: set[str]) -> None:
    """Raise if arrays are lacking."""
    lacking = needed - held.keys()
    if lacking:
        raise ValueError(f"it lacks {', '.join(sorted(lacking))}")


# ------------------------------------------------------------------------------
# Files that are complete or absent: written under a temporary name, then renamed.


# On POSIX a rename is refused only where no waiting helps.
_WAITS = (0.05, 0.2, 0.75) if os.name == "nt" else ()


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path in the same folder that replaces `path` at the end; on error it is removed.

    A rename within one file system is atomic, so an interrupted write leaves the old file as it was. If `path` is a
    symbolic link, the link stays and the file it points to is replaced.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        # A rename over a device such as /dev/null, by a user who may, would take it from every program.
        raise OSError(errno.EINVAL, "it is not a regular file", os.fspath(path))
    part = target.with_name(_part_name(target, uuid4().hex[:8]))
    # Until it has the mode of the file it replaces, only its owner may read it.
    part.touch(mode=0o600 if target.exists() else 0o666, exist_ok=False)
    try:
        yield part
        with part.open("r+b") as written:  # Windows flushes only files that are open for writing
            os.fsync(written.fileno())
        if target.exists():
            part.chmod(target.stat().st_mode & 0o777)
        _rename(part, target)
    finally:
        part.unlink(missing_ok=True)


def _rename(part: Path, target: Path) -> None:
    """Rename, and wait for a program that has the target open, such as a virus scanner: Windows refuses until then."""
    for seconds in _WAITS:
        try:
            part.replace(target)
        except PermissionError:
            time.sleep(seconds)
        else:
            return
    part.replace(target)


def unfinished(path: str | os.PathLike[str]) -> list[Path]:
    """Temporary files that writes of `path` left because the process was killed."""
    target = Path(os.path.realpath(path))
    pattern = re.compile(re.escape(_part_name(target, "#")).replace("\\#", "[0-9a-f]{8}"))
    return [other for other in target.parent.glob(".*.part") if pattern.fullmatch(other.name)]


def _part_name(target: Path, unique: str) -> str:
    # Most systems allow 255 bytes for a name.
    return f".{os.fsdecode(os.fsencode(target.name)[:200])}.{unique}.part"


# ------------------------------------------------------------------------------

STANDARD_OUTPUT = "-"
Write = Callable[[Any], None]


class OutputError(OSError):
    """A file cannot be written; the message says which and why."""


def check_output(
    path: FilePath, *, source: FilePath | None = None, table: bool = False, suffixes: tuple[str, ...] = ()
) -> None:
    """Raise before the work begins if `path` cannot be written, or is `source`, the file that is to be read.

    With `table` the suffix must tell a format for rows; otherwise it must be one of `suffixes`, if there are any.
    """
    if os.fspath(path) == STANDARD_OUTPUT:
        return
    if table:
        try:
            format_of(path)
        except DataError as error:
            raise OutputError(f"Cannot write {error}") from None
    target = Path(path)
    with writing(path):  # a name may be too long to be asked about
        is_source = source is not None and target.exists() and os.path.exists(source) and target.samefile(source)
        faults = {
            "it is a folder": target.is_dir(),
            "it is not a regular file": target.exists() and not target.is_file(),
            "it is the file to be read; give the output another name": is_source,
            f"there is no folder {target.parent}": not target.parent.is_dir(),
            f"its name must end in {' or '.join(suffixes)}": bool(suffixes) and target.suffix.lower() not in suffixes,
            "its name is not UTF-8; give it another name": table and not is_utf8(path),
        }
        for fault, is_so in faults.items():
            if is_so:
                raise OutputError(f"Cannot write {path}: {fault}.")
        with tempfile.TemporaryFile(dir=target.parent):
            pass


@contextmanager
def writing(path: FilePath) -> Iterator[None]:
    """Turn an operating system's error into an `OutputError` that names the file."""
    try:
        yield
    except (OutputError, BrokenPipeError):
        raise
    except OSError as error:
        where = "to standard output" if os.fspath(path) == STANDARD_OUTPUT else path
        raise OutputError(f"Cannot write {where}: {error.strerror or error}.") from error


@contextmanager
def table_writer(path: FilePath) -> Iterator[Write]:
    """Yield a function that appends a frame; the file appears at the end, and not at all after an error.

    The suffix tells the format, as in `format_of`; "-" is CSV on standard output.
    """
    with writing(path), ExitStack() as stack:
        if os.fspath(path) == STANDARD_OUTPUT:
            yield _csv_writer(VisibleOutput(), ",")
            sys.stdout.flush()
            return
        form = format_of(path)
        part = stack.enter_context(replacing(path))
        if form.kind != "csv":
            yield _arrow_writer(part, form, stack)
            return
        raw: Any = stack.enter_context(part.open("wb"))
        if form.gzipped:  # no time stamp in the header: the same rows give the same bytes
            raw = gzip.GzipFile("", "wb", fileobj=raw, mtime=0)
        text = stack.enter_context(io.TextIOWrapper(raw, encoding="utf-8", newline=""))
        yield _csv_writer(text, "\t" if form.tabs else ",")


def _csv_writer(file: Any, delimiter: str) -> Write:
    header = chain([True], repeat(False))
    return lambda frame: frame.to_csv(file, sep=delimiter, header=next(header), index=False, lineterminator="\n")


def _arrow_writer(part: Path, form: Format, stack: ExitStack) -> Write:
    import pyarrow.parquet  # here, because model files and checkpoints are written without it

    writers: dict[str, Any] = {"parquet": pyarrow.parquet.ParquetWriter, "arrow": pyarrow.ipc.new_file}
    open_writer = writers[form.kind]
    schema = None
    writer = None

    def write(frame: Any) -> None:
        nonlocal schema, writer
        table = pyarrow.Table.from_pandas(frame, schema=schema, preserve_index=False)
        if writer is None:
            schema = table.schema.remove_metadata()
            writer = stack.enter_context(open_writer(os.fspath(part), schema))
        writer.write_table(table)

    return write
