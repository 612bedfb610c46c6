"""Tables that need not fit into memory: files, Dask frames and streams of frames.

A table of at most 100,000 rows is read once and is then a frame in memory. Of a longer one, the first pass keeps a
random sample, from which the kinds of the columns, the coder and the layers of the network are learned; later passes
code all rows, block by block. The sample holds the rows whose numbers have the smallest hashes, so that every part of
a file is in it, however the file is cut. Behind them come the first rows of every label, so that no class is unknown;
a regression leaves these out, for rows that are chosen by their targets are no random sample.

Held-out rows of a long table are those with a small hash, so that each pass finds them again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow
import pyarrow.compute as pc
from pyarrow import types

from ocrep._files.formats import DataError, FilePath, check_columns
from ocrep._files.readers import PLAIN, FileReader, NotNumbersError, SeveralReader
from ocrep._files.reading import Reading
from ocrep._files.row_file import RowFile
from ocrep._linalg.folds import mixed
from ocrep._rows.block import Block, is_dask
from ocrep._rows.files import FileSource
from ocrep._rows.sources import IterableSource, Source
from ocrep._rows.stream import Scan
from ocrep.tables.frames import Frame, of_pandas, whole_array, without_mask

SAMPLE_ROWS = 100_000
# Of wide tables fewer rows are sampled.
_MOST_SAMPLED_VALUES = 20_000_000
_FEWEST_SAMPLED = 2_000
_ROWS_PER_LABEL = 20
_MOST_LABELS = 1000

Progress = Callable[[str, int, "int | None"], None]
"""Called with the stage, the amount done, and the whole amount (None if it is not known)."""


def silent(stage: str, done: int, total: int | None) -> None:
    """Ignore all progress."""


class Part(NamedTuple):
    """Some rows of a table."""

    frame: Frame
    """The inputs."""
    y: Any
    """The target, an Arrow array or whatever `TableRegressor.fit` takes."""
    weight: Any = None
    groups: Any = None
    target: str = ""
    """The name of the target, for errors."""
    numbers: np.ndarray | None = None
    """The numbers of the rows in their table, from 0, where they are known."""


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A table with its targets: all rows in memory, or a sample of them and a way to read them all again."""

    sample: Part
    """All rows, or some of them."""
    n_rows: int
    numbers: np.ndarray | None = None
    """The numbers of the sampled rows; None if the sample is the whole table."""
    parts: Callable[[], Iterator[Part]] | None = None
    """All rows once more, for a table that is not in memory."""
    n_for_labels: int = 0
    """So many of the last rows of the sample are in it for their labels alone."""

    @property
    def in_memory(self) -> bool:
        """Whether the sample is the whole table."""
        return self.numbers is None

    def of_random_rows(self) -> Table:
        """The table with a sample of which no row was chosen for its target."""
        if self.numbers is None or not self.n_for_labels:
            return self
        rows = np.arange(len(self.numbers) - self.n_for_labels)
        sample = some_rows_of(self.sample, rows)
        return replace(self, sample=sample, numbers=self.numbers[rows], n_for_labels=0)

    def divided(self, test: float, seed: int) -> tuple[Table, Callable[[], Iterator[Part]]]:
        """The table without a share of its rows, chosen at random; and these rows. For tables that are read anew."""
        assert self.numbers is not None
        mine = np.flatnonzero(~_is_held_out(self.numbers, test, seed))
        rest = replace(
            self,
            sample=some_rows_of(self.sample, mine),
            numbers=self.numbers[mine],
            parts=lambda: self._side(test, seed, held_out=False),
            n_rows=int(self.n_rows * (1.0 - test)),
            n_for_labels=int(np.sum(mine >= len(self.numbers) - self.n_for_labels)),
        )
        return rest, lambda: self._side(test, seed, held_out=True)

    def _side(self, test: float, seed: int, *, held_out: bool) -> Iterator[Part]:
        assert self.parts is not None
        start = 0
        for part in self.parts():
            numbers = np.arange(start, start + part.frame.n_rows)
            start += part.frame.n_rows
            mine = np.flatnonzero(_is_held_out(numbers, test, seed) == held_out)
            if len(mine):
                yield some_rows_of(part._replace(numbers=numbers), mine)


def _is_held_out(numbers: np.ndarray, test: float, seed: int) -> np.ndarray:
    # The sample has the rows with the smallest hashes, so the split needs others: the key is not 0 for any seed.
    keys = mixed(mixed(numbers.astype(np.uint64) + np.uint64(1)) + np.uint64(2 * seed + 1))
    return keys < np.uint64(test * 2.0**64)


def some_rows_of(part: Part, rows: np.ndarray) -> Part:
    """Some of the rows, by their numbers."""
    y = part.y.take(pyarrow.array(rows)) if isinstance(part.y, pyarrow.Array) else np.asarray(part.y)[rows]
    of_rows = (part.weight, part.groups, part.numbers)
    weight, groups, numbers = (None if values is None else np.asarray(values)[rows] for values in of_rows)
    return Part(part.frame.take(rows), y, weight, groups, part.target, numbers)


# ------------------------------------------------------------------------------
# Where tables come from


def open_table(X: Any, y: Any, sample_weight: Any, groups: Any) -> Table:
    """The rows that a user gives to `fit`: a frame with its targets, a scan, or Dask frames."""
    if isinstance(X, Scan):
        if y is not None or sample_weight is not None or groups is not None:
            raise ValueError("A scan names its targets, weights and groups itself: leave y and the others out.")
        return _table_of_scan(X)
    if is_dask(X):
        return _table_of(lambda: _parts_of_dask(X, y, sample_weight, groups), len(X.columns))
    frame = Frame.of(X)
    name = getattr(y, "name", None)
    weight, groups = without_mask(sample_weight), without_mask(groups)
    return Table(Part(frame, y, weight, groups, "" if name is None else str(name)), frame.n_rows)


def open_file(
    path: FilePath,
    target: str,
    *,
    ignore: Sequence[str] = (),
    reading: Reading = PLAIN,
    progress: Progress = silent,
) -> Table:
    """The rows of a file, a folder or a pattern; columns without a name are left out."""
    file = RowFile(path, reading)
    check_columns(path, (target, *ignore), list(file.kinds))
    if target in ignore:
        raise DataError(f"Column {target!r} is the target: it cannot be ignored or used as an id.")
    if _nameless(target):
        raise DataError(f"Column {target!r} of {path} has no proper name: give the target column a name.")
    columns = [name for name in file.kinds if not _nameless(name) and name not in ignore]
    if len(columns) < 2:
        raise DataError(f"{path} has no column to learn from other than the target {target!r}.")
    total = file.n_rows()

    def parts() -> Iterator[Part]:
        done = 0
        for frame in _frames_of_file(file, columns):
            yield _with_roles(frame, target)
            done += frame.n_rows
            progress("Reading", done, total)

    return _table_of(parts, len(columns), again=file.forget_kinds)


def _nameless(name: str) -> bool:
    # pandas writes its row labels under such a name.
    return not name.strip() or name.startswith("__index_level_")


def _frames_of_file(file: RowFile, columns: Sequence[str]) -> Iterator[Frame]:
    for block in file.blocks({name: file.kinds[name] for name in columns}):
        found = {
            name: whole_array(column) if name in file.categories else _decoded(column) for name, column in block.items()
        }
        yield Frame(found, len(found[columns[0]]), named=True)


def _decoded(column: Any) -> Any:
    """Texts that were read as categories, because that is faster, as texts."""
    return column.dictionary_decode() if types.is_dictionary(column.type) else column


def _with_roles(
    frame: Frame, target: str, weight: str | None = None, groups: str | None = None, inputs: Sequence[str] = ()
) -> Part:
    wanted = inputs or [name for name in frame.columns if name not in (target, weight, groups)]
    others = {name: frame.column(name) for name in wanted}
    weights, group = (
        None if name is None else frame.column(name).to_numpy(zero_copy_only=False) for name in (weight, groups)
    )
    return Part(Frame(others, frame.n_rows, frame.named), frame.column(target), weights, group, target)


def _table_of_scan(scan: Scan) -> Table:
    source = scan.source
    if source.once:
        raise ValueError(
            "A table is read more than once, and this stream cannot be: scan a function that makes it anew."
        )
    if isinstance(source, FileSource):
        readers = [reader for reader in source.readers if isinstance(reader, FileReader)]
        roles = source.roles
        columns = None if source.given_columns is None else [*source.given_columns, *roles.others]
        if len(readers) < len(source.readers):
            raise ValueError("A table is read from files of this machine: give paths to ocrep.scan, not addresses.")
        one = readers[0] if len(readers) == 1 else SeveralReader("The files", readers)
        file = RowFile(one.name, reader=one)
        again: Any = file.forget_kinds
        n_columns = len(file.kinds)

        def frames() -> Iterator[Frame]:
            return _frames_of_file(file, columns or list(file.kinds))

    elif isinstance(source, IterableSource):
        roles = source.roles
        again, n_columns = None, 1

        def frames() -> Iterator[Frame]:
            return map(Frame.of, source.items())

    else:
        raise TypeError("A table has named columns: scan files or frames, and give arrays to PinvRegressorCV.")
    if len(roles.targets) != 1:
        raise ValueError("A table has one target: name it by ocrep.scan(…, target=…).")

    def parts() -> Iterator[Part]:
        done = 0
        for frame in frames():
            yield _with_roles(frame, roles.targets[0], roles.weight, roles.groups, roles.inputs)
            done += frame.n_rows
            if scan.progress is not None:
                scan.progress(done, source.n_rows())

    return _table_of(parts, n_columns, again=again)


def _parts_of_dask(X: Any, y: Any, sample_weight: Any, groups: Any) -> Iterator[Part]:
    """The partitions, one after the other, so that one of them must fit into memory."""
    from ocrep._rows.dask import partition

    given = [X, y, sample_weight, groups]
    if y is None or not all(values is None or is_dask(values) for values in given):
        raise TypeError("X is a Dask frame: give y, weights and groups as Dask series of the same partitions.")
    for number in range(X.npartitions):
        inputs, own, weight, group = (None if values is None else partition(values, number) for values in given)
        frame = Frame.of(inputs)
        if frame.n_rows:
            yield Part(frame, of_pandas("y", own), weight, group, str(getattr(y, "name", "") or ""))


# ------------------------------------------------------------------------------
# The first pass


def _table_of(parts: Callable[[], Iterator[Part]], n_columns: int, again: Callable[[], None] | None = None) -> Table:
    """Read all rows once: keep them if they are few, else a sample of them."""
    size = min(SAMPLE_ROWS, max(_FEWEST_SAMPLED, _MOST_SAMPLED_VALUES // n_columns))
    try:
        return _first_pass(parts, size)
    except NotNumbersError:  # a column that is numbers in the first block of a CSV file is not in a later one
        if again is None:
            raise
        again()
        return _first_pass(parts, size)


def _first_pass(parts: Callable[[], Iterator[Part]], size: int) -> Table:
    kept: list[tuple[np.ndarray, Part]] = []
    limit = np.uint64(2**64 - 1)
    seen: dict[Any, int] | None = {}
    rare: list[tuple[np.ndarray, Part]] = []
    n_rows = n_kept = n_for_labels = 0
    for part in parts():
        numbers = np.arange(n_rows, n_rows + part.frame.n_rows)
        n_rows += len(numbers)
        mine = np.flatnonzero(mixed(numbers.astype(np.uint64)) <= limit)
        if seen is not None:
            first, seen = _first_of_labels(part.y, seen)
            if len(first):  # also those that the sample has so far: it may lose them
                rare.append((numbers[first], some_rows_of(part, first)))
        kept.append((numbers[mine], part if len(mine) == len(numbers) else some_rows_of(part, mine)))
        n_kept += len(mine)
        if n_kept > 2 * size:
            all_numbers, joined = _joined(kept)
            keys = mixed(all_numbers.astype(np.uint64))
            limit = np.partition(keys, size - 1)[size - 1]
            mine = np.flatnonzero(keys <= limit)
            kept = [(all_numbers[mine], some_rows_of(joined, mine))]
            n_kept = len(mine)
    if not kept:
        raise DataError("The table has no rows.")
    numbers, whole = _joined(kept)
    if n_rows <= 2 * size and n_kept == n_rows:
        return Table(whole, n_rows)
    if n_kept > size:
        keys = mixed(numbers.astype(np.uint64))
        mine = np.sort(np.argsort(keys)[:size])
        numbers, whole = numbers[mine], some_rows_of(whole, mine)
    if seen is not None and rare:  # few labels: those that the sample lacks
        more, others = _joined(rare)
        new = np.flatnonzero(~np.isin(more, numbers))
        n_for_labels = len(new)
        numbers, whole = _joined([(numbers, whole), (more[new], some_rows_of(others, new))])
    return Table(whole, n_rows, numbers, parts, n_for_labels)


def _first_of_labels(y: Any, seen: dict[Any, int]) -> tuple[np.ndarray, dict[Any, int] | None]:
    """The first rows of each label that has had few rows so far, and its rows until now; None if labels are many."""
    counts = pc.value_counts(y)
    values, numbers = counts.field("values").to_pylist(), counts.field("counts").to_numpy(zero_copy_only=False)
    rows = []
    for value, number in zip(values, numbers.tolist(), strict=True):
        before = seen.get(value, 0)
        seen[value] = before + number
        if len(seen) > _MOST_LABELS:
            return np.empty(0, dtype=np.intp), None
        if before < _ROWS_PER_LABEL and value is not None:
            same = pc.equal(y, pyarrow.scalar(value, type=y.type)).fill_null(False).to_numpy(zero_copy_only=False)
            rows.append(np.flatnonzero(same)[: _ROWS_PER_LABEL - before])
    return np.sort(np.concatenate(rows)) if rows else np.empty(0, dtype=np.intp), seen


def _joined(parts: Sequence[tuple[np.ndarray, Part]]) -> tuple[np.ndarray, Part]:
    """Several parts as one."""
    numbers = np.concatenate([some for some, _ in parts])
    if len(parts) == 1:
        return numbers, parts[0][1]
    first = parts[0][1].frame
    columns = {
        name: whole_array(pyarrow.chunked_array([part.frame.column(name) for _, part in parts]))
        for name in first.columns
    }
    y = whole_array(pyarrow.chunked_array([part.y for _, part in parts]))
    weight, groups = (
        None if parts[0][1][place] is None else np.concatenate([np.asarray(part[place]) for _, part in parts])
        for place in (2, 3)
    )
    return numbers, Part(Frame(columns, len(numbers), first.named), y, weight, groups, parts[0][1].target)


# ------------------------------------------------------------------------------
# All rows of a long table, coded, as a network reads them


class CodedRows(Source):
    """Coded rows of a long table; the sample stands for all of them in what a network must know before it begins."""

    def __init__(self, typical: Block, read: Callable[[], Iterator[Block]]) -> None:
        self.typical = typical
        self.grouped = typical.groups is not None
        self.n_read = 0  # rows that can be learned from, known when all have been read once
        self._read = read

    def blocks(self, *, inputs: bool = True, skip: int = 0) -> Iterator[Block]:
        """All rows; a table has no checkpoint, so none are skipped."""
        assert not skip
        n_rows = 0
        for block in self._read():
            n_rows += block.X.shape[0]
            yield block
        self.n_read = n_rows

    def inputs(self, columns: Sequence[str] | None) -> Iterator[Block]:
        """The same rows."""
        return self._read()
