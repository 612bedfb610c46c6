"""Files of rows as a source: columns by name, roles checked in every file before the first row is read.

Apart from the other sources, because it needs pyarrow, which only those who read files must have.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
import pyarrow
import pyarrow.compute as pc
import pyarrow.dataset
from pyarrow import types

from ocrep._files.convert import as_kind, first_other, kind_of_type, numbers_of
from ocrep._files.formats import DataError, changed_file, check_columns, paths_of
from ocrep._files.readers import Reader, is_address, reader_of, readers_at, readers_of_dataset
from ocrep._rows.block import Block, skip_rows
from ocrep._rows.checks import check_numeric, check_shape
from ocrep._rows.sources import Roles, Source
from ocrep._rows.survey import Range

_KIND_NAMES = {
    "empty": "unknown",
    "boolean": "booleans",
    "number": "numbers",
    "text": "texts",
    "date": "dates or times",
    "time": "dates or times",
    "other": "other",
}


class FileSource(Source):
    """Rows of files, one file after the other."""

    def __init__(
        self,
        parts: Sequence[Reader],
        *,
        target: str | Sequence[str] | None,
        sample_weight: str | None,
        columns: Sequence[str] | None,
        groups: str | None = None,
        text_labels: bool | None = None,
    ) -> None:
        self.readers = list(parts)
        self.roles = Roles.of(target, sample_weight, groups)
        self.grouped = groups is not None
        self._one_target = isinstance(target, str)
        self.given_columns = None if columns is None else tuple(columns)
        self._text_labels = text_labels

    @classmethod
    def of(cls, source: Any, **roles: Any) -> FileSource:
        """From a path, a glob, a folder, a list of paths, or a `pyarrow.dataset.Dataset`."""
        if isinstance(source, pyarrow.dataset.Dataset):
            parts = readers_of_dataset(source)
            if not parts:
                raise DataError("The dataset has no files.")
            return cls(parts, **roles)
        readers: list[Reader] = []
        for name in map(os.fspath, [source] if isinstance(source, str | os.PathLike) else source):
            readers += readers_at(name) if is_address(name) else map(reader_of, paths_of(name))
        if not readers:
            raise DataError("The list of files is empty.")
        return cls(readers, **roles)

    @cached_property
    def _types(self) -> dict[str, Any]:
        """The first file's columns and Arrow types; the other files must have the same."""
        schema = self.readers[0].schema()
        return dict(zip(schema.names, schema.types, strict=True))

    @cached_property
    def columns(self) -> tuple[str, ...]:
        others = set(self.roles.others)
        return self.given_columns or tuple(name for name in self._types if name not in others)

    def check(self) -> None:
        """Compare the columns of all files."""
        if not self.columns:
            check_shape((self.readers[0].n_rows(), 0), place=f"{self.readers[0].name}: ")
        roles = [*self.columns, *self.roles.others]
        for part in self.readers:
            schema = part.schema()
            kinds = dict(zip(schema.names, map(_kind, schema.types), strict=True))
            check_columns(part.name, roles, schema.names)
            if self.given_columns is None:
                _check_no_more(part.name, roles, schema.names, self.readers[0].name)
            for name in roles:
                if name in self.roles.targets or name == self.roles.groups:
                    self._check_same_kind(part, name, kinds[name])
                else:
                    role = "weights" if name == self.roles.weight else "inputs"
                    check_numeric(name, kinds[name], place=f"{part.name}: ", role=role)

    def _check_same_kind(self, part: Reader, name: str, kind: str) -> None:
        first = _kind(self._types[name])
        if kind not in ("unknown", first, "other") and first != "unknown":
            raise DataError(
                f"{part.name}: column {name!r} holds {kind}, but {first} in {self.readers[0].name}: make them the same."
            )

    def blocks(self, *, inputs: bool = True, skip: int = 0) -> Iterator[Block]:
        """Batches as the files give them; whole files are skipped by their stated sizes."""
        return self._read(replace(self.roles, inputs=self.columns if inputs else ()), skip)

    def inputs(self, columns: Sequence[str] | None) -> Iterator[Block]:
        wanted = self.columns if columns is None else tuple(columns)
        for part in self.readers:
            schema = part.schema()
            check_columns(part.name, wanted, schema.names)
            for name in wanted:
                check_numeric(name, _kind(schema.field(name).type), place=f"{part.name}: ")
        return self._read(Roles(wanted), 0)

    def n_rows(self) -> int | None:
        """The sum of what the files state, if all do."""
        counts = []
        for part in self.readers:
            with part.reading():
                counts.append(part.n_rows())
        return None if None in counts else sum(count for count in counts if count is not None)

    def stated_range(self) -> Range | None:
        """The union of what the files state."""
        # Rows of zero weight have no part in the range, but in the files' statistics.
        if self.roles.weight is not None:
            return None
        ranges = []
        for part in self.readers:
            with part.reading():
                ranges.append(part.stated_range(self.columns))
            if ranges[-1] is None:
                return None
        lows, highs = zip(*[stated for stated in ranges if stated is not None], strict=True)
        return np.min(lows, axis=0), np.max(highs, axis=0)

    def fingerprints(self) -> tuple[str, ...]:
        """Paths with sizes and times, and what is read from them: the same file has other rows for another target."""
        return tuple(f"{part.fingerprint()} {self.roles}" for part in self.readers)

    def check_unchanged(self, fingerprints: Sequence[str]) -> None:
        for part, before, now in zip(self.readers, fingerprints, self.fingerprints(), strict=True):
            if before != now:
                raise changed_file(part.name)

    def _read(self, roles: Roles, skip: int) -> Iterator[Block]:
        first = 0
        while skip and first < len(self.readers):
            with self.readers[first].reading():
                stated = self.readers[first].n_rows()
            if stated is None or stated > skip:
                break
            first += 1
            skip -= stated
        # The rows of a file in which the reading begins are read and left out, since only whole files can be skipped.
        blocks = chain.from_iterable(self._blocks_of(number, roles) for number in range(first, len(self.readers)))
        yield from skip_rows(blocks, skip)

    def _blocks_of(self, number: int, roles: Roles) -> Iterator[Block]:
        part = self.readers[number]
        names = list(dict.fromkeys([*roles.inputs, *roles.others]))
        start = 0
        with part.reading():
            # Types for the columns of text files, so that no file's first rows decide them anew.
            for batch in part.batches(names, {name: self._text_type(name) for name in names}):
                if not batch.num_rows:
                    continue
                labels = [self._target_values(batch, name, part.name, start) for name in roles.targets]
                yield Block(
                    _numbers_of(batch, roles.inputs),
                    None if not labels else labels[0] if self._one_target else np.column_stack(labels),
                    None if roles.weight is None else _numbers(batch.column(roles.weight)),
                    part.name,
                    number,
                    start,
                    roles.inputs,
                    None if roles.groups is None else _group_values(batch.column(roles.groups)),
                )
                start += batch.num_rows

    def _text_type(self, name: str) -> Any:
        """The Arrow type that a column of a text file is read as."""
        if name in self.roles.targets and self._text_labels is not None:
            if self._text_labels:
                return pyarrow.string()
            if _kind(self._types[name]) == "booleans":
                return pyarrow.bool_()
        if name in self.roles.targets and types.is_integer(self._types[name]):
            return pyarrow.string()  # a later row may hold 2.5, and float64 does not hold every whole number
        kind = _kind(self._types.get(name, pyarrow.null()))
        if name == self.roles.groups and kind == "dates or times":
            return pyarrow.string()
        return {"texts": pyarrow.string(), "booleans": pyarrow.bool_()}.get(kind, pyarrow.float64())

    def _target_values(self, batch: Any, name: str, path: str, start: int) -> np.ndarray:
        column = batch.column(name)
        kind = _kind(column.type)
        whole = not self._text_labels and types.is_integer(self._types.get(name, column.type))
        if kind == "texts" and whole:
            return _whole_numbers(column, name, path, start)
        if kind == "texts" and column.null_count:
            return np.asarray(column.to_pylist(), dtype=object)  # the check of labels names the row
        if kind == "texts":
            return as_kind(column, "text", name, start)
        if kind not in ("numbers", "booleans"):
            raise DataError(f"{path}: the target {name!r} holds {kind}, not numbers or texts.")
        values = column.to_numpy(zero_copy_only=False)
        return _as_integers(values) if whole and values.dtype.kind == "f" else values


def _kind(kind: Any) -> str:
    """What an Arrow type is called in a sentence."""
    if types.is_dictionary(kind):
        return "texts" if kind_of_type(kind.value_type) == "text" else "categories"
    return _KIND_NAMES[kind_of_type(kind)]


def _check_no_more(path: str, wanted: Sequence[str], names: Sequence[str], first: str) -> None:
    known = set(wanted)
    more = [name for name in names if name not in known]
    if more:
        raise DataError(
            f"{path} has a column {more[0]!r} that {first} does not have: name the columns to use as columns=[…]."
        )


def _numbers_of(batch: Any, names: Sequence[str]) -> np.ndarray:
    """Columns as one array: float32 if all are, else float64; NaN where a value is missing."""
    # Not `batch.column(name)`, which searches all names each time.
    by_name = dict(zip(batch.schema.names, batch.columns, strict=True))
    columns = [by_name[name] for name in names]
    narrow = bool(names) and all(types.is_float32(column.type) for column in columns)
    X = np.empty((batch.num_rows, len(names)), dtype=np.float32 if narrow else np.float64)
    for j, column in enumerate(columns):
        X[:, j] = _numbers(column)
    return X


def _whole_numbers(words: Any, name: str, path: str, start: int) -> np.ndarray:
    """A text file's numbers, integers if all are: float64 holds 2⁵³ + 1 as 2⁵³."""
    values = numbers_of(words)
    if values is None:
        place, word = first_other(words, numbers_of)
        raise DataError(f"{path}, row {start + place + 1}: column {name!r} must hold numbers, but it holds {word!r}.")
    try:
        return pc.utf8_trim_whitespace(words).cast(pyarrow.int64()).to_numpy(zero_copy_only=False)
    except pyarrow.ArrowInvalid:  # such as 2.5, 1e3 or a missing value
        return _as_integers(values)


def _as_integers(values: np.ndarray) -> np.ndarray:
    """Numbers as integers if all are, since labels 0, 1, 2 of another file are."""
    return values.astype(np.int64) if ((values == np.floor(values)) & (np.abs(values) < 2.0**63)).all() else values


def _group_values(column: Any) -> np.ndarray:
    """Numbers as they are, everything else as texts; missing values are left to the check."""
    if _kind(column.type) in ("numbers", "booleans", "unknown"):
        return _numbers(column)
    return np.asarray(column.cast(pyarrow.string()).to_pylist(), dtype=object)


def _numbers(column: Any) -> np.ndarray:
    if types.is_float32(column.type) or types.is_float64(column.type):
        return column.to_numpy(zero_copy_only=False)
    if types.is_null(column.type):
        return np.full(len(column), np.nan)
    return column.cast(pyarrow.float64(), safe=False).to_numpy(zero_copy_only=False)
